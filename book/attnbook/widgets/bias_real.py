"""Explorables of kept runs on real data: step rules, angles of words, missed hypotheses."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import figures
from attnbook.figures.bias import races
from attnbook.widgets._base import Explorable

KNOWN = ("bias.1", "bias.4", "bias.6", "bias.7")  # what the module has names for


class RealRace(Explorable):
    r"""Four step rules on real data, with the paper's steps and with the best of a grid for each.

    Args:
        ids: of figures whose runs are kept; the question is about the first.

    Returns:
        A widget.

    Reference: bias, Figures 1, 4, 6 and 7.
    """

    name = "real_race"

    def __init__(self, ids: tuple[str, ...] = ("bias.1", "bias.4")) -> None:
        arrays: dict[str, Any] = {"which": np.array([KNOWN.index(one) for one in ids])}
        for place, one in enumerate(ids):
            data = figures.kept(one)
            chosen = races.best(data)
            gaps = [races.ahead(at) for at in (races.ends(data)[:, 0], races.tuned(data))]
            rows = [[[0.0] * 3, *(list(found[rule]) for rule in races.RULES[1:])] for found in gaps]
            arrays |= {
                f"loss{place}": data["loss"],
                f"sizes{place}": data["sizes"],
                f"times{place}": data["times"],
                f"best{place}": chosen,
                f"ends{place}": races.ends(data).mean(axis=-1),
                f"gaps{place}": np.array(rows),  # (printed and tuned, rules, mean and interval)
            }
        super().__init__({}, arrays)


class WordAngles(Explorable):
    r"""Cosines of the words of real texts, with the line of Assumption 1 under the hand.

    Returns:
        A widget.

    Reference: bias, Assumption 1 and Figure 10.
    """

    name = "word_angles"

    def __init__(self) -> None:
        data = figures.kept("bias.10")
        below = data["below"].mean(axis=0)
        arrays = {
            "thresholds": np.logspace(-5, 0, below.shape[-1]),
            "edges": np.linspace(-1.0, 1.0, data["counts"].shape[-1] + 1),
            "below": below,  # (sets, kinds of pairs, thresholds)
            "counts": data["counts"].sum(axis=0),
        }
        super().__init__({}, arrays)


class FourWorlds(Explorable):
    r"""Trainings on real words, with each of two hypotheses kept or dropped.

    Returns:
        A widget.

    Reference: bias, Assumptions 1 and 2, Theorem 1.
    """

    name = "four_worlds"

    def __init__(self) -> None:
        data = figures.kept("bias.10")

        def together(name: str) -> Any:  # (worlds or scores, all trainings, ...)
            found = np.moveaxis(data[name], 1, 0)
            return found.reshape(len(found), -1, *found.shape[3:])

        arrays = {
            "step": data["step"][0].astype(int),
            "attention": np.round(127 * together("attention")).astype(np.int8),  # in 127ths
            "scores": together("scores"),
        }
        late = (arrays["attention"][3].min(axis=1) < 64).sum(axis=-1)  # the last one to arrive
        super().__init__(
            {"k": arrays["attention"].shape[-1] - 1, "run": int(late.argmax())}, arrays
        )
