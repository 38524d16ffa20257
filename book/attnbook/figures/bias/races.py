"""Races of four step rules on real data: what Figures 1, 4, 6 and 7 have in common.

Arrays of such a run: ``loss`` is ``(rules, sizes, draws, times)``, rules in the order of `RULES`,
the first size the paper's and the others a grid of the rule's own; ``times`` in epochs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnbook.figures._interval import Interval, chosen_by_others, interval
from attnbook.figures._record import Data
from attnbook.figures._style import mark, tone
from attnbook.figures._verdict import Verdict
from attnlab.checks import Array

RULES = ("SGD", "SNGD", "SPS", "Adam")


def ends(data: Data) -> Array:
    """Training loss of the last epoch, ``(rules, sizes, draws)``; infinite where it ran away."""
    last = data["loss"][..., -2:].mean(axis=-1)
    return np.asarray(np.where(np.isfinite(last), last, np.inf))


def best(data: Data) -> NDArray[np.int_]:
    """Which size ends lowest, for each rule; 0 is the printed one, which is not in its grid."""
    return np.asarray(1 + ends(data)[:, 1:].mean(axis=-1).argmin(axis=-1))


def tuned(data: Data) -> Array:
    """Of each rule and draw the end with the size of its grid that is best for the other draws."""
    return chosen_by_others(ends(data)[:, 1:])


def ahead(at: Array) -> dict[str, Interval]:
    """Loss of each rule minus that of SGD, over draws; below 0 is ahead."""
    return {rule: interval(at[k] - at[0]) for k, rule in enumerate(RULES) if k}


def verdict(data: Data) -> Verdict:
    """The paper's order with its steps, and with the best of a grid for each."""
    printed, best_of_grid = ahead(ends(data)[:, 0]), ahead(tuned(data))
    adaptive = ("SNGD", "SPS")
    if any(printed[rule].above for rule in adaptive):
        word = "otherwise"
    elif not all(printed[rule].below for rule in adaptive):
        word = "undecided"
    elif all(best_of_grid[rule].below for rule in adaptive):
        word = "as the paper says"
    else:
        word = "weaker"
    told = [
        f"{how} " + ", ".join(f"{rule} {one.told()}" for rule, one in found.items())
        for how, found in (
            ("with the paper's steps", printed),
            ("with the best of a grid for each rule, chosen by the other draws", best_of_grid),
        )
    ]
    return Verdict(
        word,
        f"Training loss of the last epoch minus that of SGD, {data['loss'].shape[2]} draws, 95 % "
        f"intervals: {'; '.join(told)}.",
    )


def paint(data: Data, canvas: Any) -> None:
    """Loss with the paper's steps, and with the best of each grid."""
    left, right = canvas.subplots(1, 2, sharey=True)
    for axes, chosen, title in (
        (left, np.zeros(len(RULES), int), "steps as printed"),
        (right, best(data), "each rule's best of its grid"),
    ):
        for k, rule in enumerate(RULES):
            many = data["loss"][k, chosen[k]]
            axes.plot(data["times"], many.mean(axis=0), color=tone(k), marker=mark(k), label=rule)
            low, high = many.min(axis=0), many.max(axis=0)
            axes.fill_between(data["times"], low, high, color=tone(k), alpha=0.15, lw=0)
        axes.set(title=title, xlabel="epoch", ylim=(0.2, 1.2))
    left.set_ylabel("training loss")
    canvas.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """What both panels show, in numbers."""
    return (
        "Training loss by epoch for SGD, SNGD, SPS and Adam, left with the paper's steps, right "
        f"with the best of a grid for each. {verdict(data)}"
    )
