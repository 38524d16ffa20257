"""How alike real texts and images are, pair by pair: Figures 1 and 6 of the encoder paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import real
from attnbook.figures._interval import interval, short
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import tone
from attnbook.figures._verdict import Verdict
from attnbook.figures.encoder._images import given, patched
from attnlab.checks import Array

POINTS, UPTO = 7, 0.8  # thresholds from the median to this share of the way to the largest
BINS = 400  # of the similarities that are kept, from 0 to 1
EXPONENTIAL = (0.9, 1.1)  # spread over mean, above the median, of what is called exponential


def exponent(t: Array, share: Array) -> Array:
    r"""The least c with $\mathrm{share}\le\exp(-t^c)$ at a threshold below 1; 0: any will do."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(-np.log(share)) / np.log(t)
    return np.where(share < 1, np.maximum(found, 0.0), np.inf)


def measured(groups: list[list[Array]]) -> Arrays:
    """Similarities of each group's pairs, their tail, and what the assumption would ask."""
    rows: dict[str, list[Any]] = {}
    edges = np.linspace(0.0, 1.0, BINS + 1)
    for group in groups:
        values = real.probe.similarities(group)
        tail = real.probe.tail(values, points=POINTS, upto=UPTO)
        row = {
            "t": tail.t,
            "share": tail.share,
            "slope": tail.slope,
            "r2": tail.r2,
            "exponent": exponent(tail.t, tail.share).max(),
            "least": values.min(),
            "largest": values.max(),
            "counts": np.histogram(values, edges)[0].astype(np.float64),
        }
        for name, value in row.items():
            rows.setdefault(name, []).append(value)
    return {name: np.array(found) for name, found in rows.items()}


def texts(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Reviews as the word vectors of a real model, in the order of their words."""
    reviews = real.data.texts(cell["data"]).texts
    model = real.models.minilm()
    table = model.weights["embeddings.word_embeddings.weight"]
    groups = []
    for _ in range(trials):
        group = []
        chosen = rng.choice(len(reviews), int(cell["samples"]), replace=False)
        for row in chosen:
            words = model.tokens(reviews[row], cell["longest"] + 2)[1:-1]
            X = table[[model.vocabulary[one] for one in words]].astype(np.float64)
            group.append(X / np.linalg.norm(X, axis=1, keepdims=True))
        groups.append(group)
    return measured(groups)


def pictures(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Images as the embedding of a Vision Transformer that has learned nothing yet."""
    images = given(cell["data"], "train")
    model = real.train.vit(images, cell["patch"], d=cell["d"], block="plain")
    groups = []
    for _ in range(trials):
        weights = {name: one.astype(np.float64) for name, one in model.init(rng).items()}
        rows = rng.choice(len(images.y), int(cell["samples"]), replace=False)
        X = patched(images, rows, cell["patch"]) @ weights["embed.W"] + weights["position"]
        X = X - X.mean(axis=-1, keepdims=True)  # the layer normalizes its tokens
        groups.append(list(X / X.std(axis=-1, keepdims=True)))
    return measured(groups)


def paint(data: Data, canvas: Any) -> None:
    """The tail on a logarithmic scale with its line, and every pair."""
    left, right = canvas.subplots(1, 2)
    t, share = data["t"], data["share"]
    for run in range(len(t)):
        left.plot(t[run], share[run], color=tone(0), alpha=0.35, lw=1, marker=".", ls="-")
    low, high = float(t.min()), float(t.max())
    at = np.array([low, high])
    middle = np.mean(data["slope"])
    start = np.mean(np.log(share).mean(axis=1) - data["slope"] * t.mean(axis=1))
    left.plot(at, np.exp(start + middle * at), color=tone(1), ls="--", label="fitted line")
    left.set(yscale="log", title="share of pairs at least so alike", xlabel="t, from the median")
    left.legend()
    total = data["counts"].sum(axis=0)
    centres = (np.arange(len(total)) + 0.5) / len(total)
    right.fill_between(centres, total / total.sum(), color=tone(0), alpha=0.5, lw=0, step="mid")
    right.set(title="all pairs", xlabel="similarity, 0 to 1", xlim=(0, 1), ylabel="share")


def spread_above_median(counts: Array) -> float:
    """`real.probe.spread_above_median` from the counts of bins, each filled evenly."""
    edges = np.linspace(0.0, 1.0, BINS + 1)
    below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
    middle = float(np.interp(0.5, below, edges))
    low, high = np.maximum(edges[:-1], middle) - middle, np.maximum(edges[1:], middle) - middle
    share = counts * (high - low)
    mean = np.average((low + high) / 2, weights=share)
    square = np.average((low * low + low * high + high * high) / 3, weights=share)
    return float(np.sqrt(square - mean**2) / mean)


def verdict(data: Data) -> Verdict:
    """Whether the tail falls like an exponential, or faster, or more slowly."""
    spread = interval([spread_above_median(row) for row in data["counts"]])
    exponents = data["exponent"]
    word, kind = "undecided", "may be exponential"
    if EXPONENTIAL[0] <= spread.low and spread.high <= EXPONENTIAL[1]:
        word, kind = "as the paper says", "is exponential"
    elif spread.high < 1.0:
        word, kind = (
            "otherwise",
            "falls faster than an exponential, which a bound from above allows",
        )
    elif spread.low > 1.0:
        word, kind = "otherwise", "is heavier than an exponential"
    return Verdict(
        word,
        f"Above the median, spread over mean is {spread.told(sign=False)}, where an exponential "
        f"has 1, a normal distribution .76 and a uniform one .58: the tail {kind} "
        f"({len(exponents)} draws of {data.settings['samples']}). With X of length 1 half of the "
        f"pairs are above {short(float(data['t'][:, 0].mean()))}, and at these thresholds "
        f"Assumption 3 as it is written holds with exponents above {short(exponents.mean(), 2)}.",
    )


def alt(data: Data) -> str:
    """The line, and where the pairs lie."""
    return (
        f"{len(data['t'])} draws of {data.settings['samples']}: the share of pairs falls from a "
        f"half at t = {data['t'][:, 0].mean():.2f} to {data['share'][:, -1].mean():.4f} at "
        f"{data['t'][:, -1].mean():.2f}, along a line on a logarithmic scale (R squared "
        f"{data['r2'].mean():.3f}). The least alike pair has {data['least'].min():.2f}."
    )


ARRAYS = {
    "t": "(trials, 7) thresholds, from the median of the similarities on",
    "share": "(trials, 7) share of pairs that are at least so alike",
    "slope": "(trials,) of the logarithm of the share against t",
    "r2": "(trials,) how much of it the line explains",
    "exponent": "(trials,) the least c with share <= exp(-t^c) at all seven thresholds",
    "least": "(trials,) similarity of the least alike pair",
    "largest": "(trials,) of the most alike pair",
    "counts": "(trials, 400) pairs by similarity, bins from 0 to 1",
}
READING = (
    "What is normalized is not stated: here each X has Frobenius norm 1, so a similarity is from "
    "0 to 1. "
)


@figure(
    "encoder.1",
    "how alike two reviews are: the tail that Assumption 3 is about, on IMDB",
    reading=READING + "Reviews are cut at their first words, each word's vector has length 1.",
    quick={"data": "imdb", "samples": 100, "longest": 126, "trials": 10},
    paper={"data": "imdb", "samples": 100, "longest": 510, "trials": 10},
    arrays=ARRAYS,
    paint=paint,
    alt=alt,
    chunk=2,
    claims=("encoder.assumption-3",),
    size=(9.0, 3.6),
    needs="real",
    stand_in="the word vectors of MiniLM stand for an embedding that the paper does not name",
    verdict=verdict,
    stored=True,
)
def encoder_1(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Texts."""
    return texts(cell, trials, rng)


@figure(
    "encoder.6",
    "how alike two digits are in the embedding of an untrained Vision Transformer, on MNIST",
    reading=READING
    + "X is what attention sees in the network of Figure 4: patches of 7 of an image with "
    "mean 0 and variance 1, embedded and normalized.",
    quick={"data": "mnist", "patch": 7, "d": 64, "samples": 100, "trials": 10},
    paper={"data": "mnist", "patch": 7, "d": 64, "samples": 100, "trials": 10},
    arrays=ARRAYS,
    paint=paint,
    alt=alt,
    chunk=2,
    claims=("encoder.assumption-3",),
    size=(9.0, 3.6),
    needs="real",
    stand_in="none in data and size; the draw of the embedding is our own",
    verdict=verdict,
    stored=True,
)
def encoder_6(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Images."""
    return pictures(cell, trials, rng)
