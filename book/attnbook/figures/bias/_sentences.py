"""Step rules on real sentences and tweets: Figures 1 and 4 of the bias paper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from attnbook import real
from attnbook.figures._record import Arrays, Cell
from attnbook.figures._registry import figure
from attnbook.figures.bias import _layer as layer
from attnbook.figures.bias import races

RULES = races.RULES
BATCH = 32
# a grid for each rule, around its best; SNGD's caps are in the paper's proportion, ten times the
# step, and SPS has nothing but its cap, which no longer binds at the longest
GRIDS = {
    "SGD": (0.01, 0.04, 0.16, 0.64),
    "SNGD": (0.04, 0.16, 0.64, 2.56),
    "SPS": (0.1, 0.4, 1.6, 6.4),
    "Adam": (5e-5, 2e-4, 8e-4, 3.2e-3),
}
CAP = 10.0  # of a step of SNGD over its size
# what the paper prints, as (step, cap); a rule's first size is this one, then its grid
PRINTED = {
    "rotten-tomatoes": {
        "SGD": (1e-3, 0.0),
        "SNGD": (1e-2, 0.1),
        "SPS": (0.1, 0.1),
        "Adam": (2e-5, 0.0),
    },
    "snippets-tweets": {
        "SGD": (1e-3, 0.0),
        "SNGD": (1e-2, 1e-2),
        "SPS": (1e-2, 1e-2),
        "Adam": (1e-5, 0.0),
    },
}


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each rule at the printed size, then at those of its grid."""
    found = []
    for rule in RULES:
        size, cap = PRINTED[settings["data"]][rule]
        found.append({"rule": rule, "size": size, "cap": cap})
        found += [{"rule": rule, "size": s, "cap": caps(rule, s)} for s in GRIDS[rule]]
    return [{**settings, **one} for one in found]


def caps(rule: str, size: float) -> float:
    """The cap that goes with a size of the grid."""
    return {"SNGD": CAP * size, "SPS": size}.get(rule, 0.0)


@lru_cache(maxsize=1)
def given(name: str, count: int, most: int) -> tuple[real.models.Encoder, layer.Features]:
    """The encoder, and ``count`` texts as all layers but its last leave them."""
    encoder, texts = real.models.minilm(), real.data.texts(name)
    middle = 0.0 if name.startswith("snippets") else 0.5
    chosen = np.random.default_rng(0).permutation(len(texts.texts))[:count]
    y = [1.0 if texts.labels[k] > middle else -1.0 for k in chosen]
    below = layer.features(encoder, [texts.texts[k] for k in chosen], y, most)
    return encoder, below


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Trials draw which texts are for training, the classifier's start, and the order.

    The draws are the same for every rule and size: differences between rules are paired.
    """
    count = int(cell["texts"]) + int(cell["fresh"])
    encoder, texts = given(cell["data"], count, int(cell["most"]))
    top = layer.top(encoder)
    del rng  # a seed of its own for each trial, whatever the cell
    found = []
    for trial in range(trials):
        draw = np.random.default_rng([int(cell["first"]) + trial, 1])
        order = draw.permutation(len(texts.y))
        rows = layer.train(
            top,
            top.start(encoder, draw),
            layer.part(texts, order[: int(cell["texts"])]),
            layer.part(texts, order[int(cell["texts"]) :]),
            (cell["rule"], float(cell["size"]), float(cell["cap"])),
            int(cell["epochs"]),
            draw,
            BATCH,
        )
        found.append(rows)
    return {"rows": np.stack(found)}


def finish(settings: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Rules and sizes apart: ``(rules, sizes, draws, times)``."""
    rows = arrays["rows"]  # (cells, draws, 4, times)
    rows = rows.reshape(len(RULES), -1, *rows.shape[1:])
    sizes = [(PRINTED[settings["data"]][rule][0], *GRIDS[rule]) for rule in RULES]
    return {
        "loss": rows[..., 0, :],
        "fresh": rows[..., 1, :],
        "accuracy": rows[..., 2, :],
        "largest": rows[..., 3, :],
        "sizes": np.array(sizes),
        "times": np.arange(rows.shape[-1]) / 2.0,
    }


ARRAYS = {
    "loss": "(4 rules, 5 sizes, draws, times) training loss since the last time; the first size is "
    "the paper's; nan where it ran away",
    "fresh": "(4, 5, draws, times) loss on texts that were not trained on",
    "accuracy": "(4, 5, draws, times) share of those that are classified rightly",
    "largest": "(4, 5, draws, times) largest attention weight of a head, mean",
    "sizes": "(4, 5) step sizes; of SPS, caps",
    "times": "(times,) in epochs",
}
QUICK = {"texts": 1000, "fresh": 500, "most": 32, "epochs": 5, "first": 0, "trials": 5}
STAND_IN = (
    "The paper trains all of BERT (110 million weights, 12 layers) for 10 epochs. Here the last "
    "attention layer of MiniLM and a linear classifier are trained, 0.6 million weights, and the "
    "layers below are frozen; {data}."
)
SENTENCES = "1,000 sentences of film reviews, good or bad, for the pairs of sentences of MultiNLI"
TWEETS = "1,000 tweets, rated above 0 or not, for the comments of Civil Comments"
CLAIMS = ("bias.theorem-1", "bias.theorem-7")


@figure(
    "bias.1",
    "SGD, normalized SGD, the stochastic Polyak step and Adam on sentences",
    quick={"data": "rotten-tomatoes", **QUICK},
    paper={"data": "rotten-tomatoes", **QUICK, "texts": 7500, "fresh": 1000, "epochs": 10},
    arrays=ARRAYS,
    cells=cells,
    finish=finish,
    paint=races.paint,
    alt=races.alt,
    claims=CLAIMS,
    size=(9.0, 3.6),
    needs="real",
    stand_in=STAND_IN.format(data=SENTENCES),
    verdict=races.verdict,
    stored=True,
)
def bias_1(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Sentences of film reviews."""
    return compute(cell, trials, rng)


@figure(
    "bias.4",
    "SGD, normalized SGD, the stochastic Polyak step and Adam on tweets",
    quick={"data": "snippets-tweets", **QUICK},
    paper={"data": "snippets-tweets", **QUICK, "texts": 3500, "fresh": 700, "epochs": 10},
    arrays=ARRAYS,
    cells=cells,
    finish=finish,
    paint=races.paint,
    alt=races.alt,
    claims=CLAIMS,
    size=(9.0, 3.6),
    needs="real",
    stand_in=STAND_IN.format(data=TWEETS),
    verdict=races.verdict,
    stored=True,
)
def bias_4(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Tweets."""
    return compute(cell, trials, rng)
