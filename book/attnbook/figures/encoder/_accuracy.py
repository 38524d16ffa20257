"""How often a Vision Transformer is right under both scalings: Figures 7 and 8 of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnbook.figures._interval import Interval
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._verdict import Verdict
from attnbook.figures.encoder._images import (
    NAMES,
    PAPER,
    QUICK,
    READING,
    SMALL,
    both,
    curves,
    gaps,
    judge,
    times,
)


def finish_accuracy(settings: Any, arrays: Arrays) -> Arrays:
    """Times once."""
    del settings
    return times(arrays)


def finish_error(settings: Any, arrays: Arrays) -> Arrays:
    """The paper's error of a sign: 4 where it is wrong."""
    found = finish_accuracy(settings, arrays)
    found["error"] = 4.0 * (1.0 - found.pop("accuracy"))
    return found


def painted(name: str, words: str) -> Callable[[Data, Any], None]:
    """One panel a width."""

    def paint(data: Data, canvas: Any) -> None:
        row = canvas.subplots(1, len(data["width"]), sharey=True, squeeze=False)[0]
        for k, axes in enumerate(row):
            curves(axes, data, name, k)
        row[0].set(ylabel=words)
        canvas.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

    return paint


def told(name: str, words: str) -> Callable[[Data], str]:
    """Where it ends, by width."""

    def alt(data: Data) -> str:
        ends = [
            f"width {int(width)}: {row[:, 0, -1].mean():.3f} and {row[:, 1, -1].mean():.3f}"
            for width, row in zip(data["width"], data[name], strict=True)
        ]
        return f"{words} after {data['epoch'][-1]:g} epochs, {NAMES[0]} and {NAMES[1]}: " + (
            "; ".join(ends) + "."
        )

    return alt


def verdict_7(data: Data) -> Verdict:
    """Whether 1/width is less accurate where the layer is wide."""
    narrow, *_, wide = gaps(data["held_accuracy"][..., -1])
    less = Interval(-wide.mean, -wide.high, -wide.low)
    first, last = int(data["width"][0]), int(data["width"][-1])
    return Verdict(
        judge(less),
        f"Test accuracy with 1/width less that with width^-1/2, after {data['epoch'][-1]:g} epochs "
        f"at width {last}: {wide.told()} over {data['held_accuracy'].shape[1]} seeds; at width "
        f"{first}: {narrow.told()}.",
    )


def verdict_8(data: Data) -> Verdict:
    """Whether 1/width errs longer, and more so where the layer is wide: mean over training."""
    values = data["error"][..., 1:].mean(axis=-1)
    narrow, *_, wide = gaps(values)
    first, last = int(data["width"][0]), int(data["width"][-1])
    word = judge(wide, narrow)
    flat = ", so it does not come with the width" if wide.above and word == "weaker" else ""
    return Verdict(
        word,
        f"Training error with 1/width less that with width^-1/2, mean over the "
        f"{data['epoch'][-1]:g} epochs at width {last}: {wide.told()} over "
        f"{data['error'].shape[1]} seeds (errors are 4 or 0); at width {first}: {narrow.told()}"
        f"{flat}.",
    )


TIMES = {
    "width": "(widths,) d_m",
    "step": "(times,) steps at which things were written down",
    "epoch": "(times,) the same in epochs",
}


@figure(
    "encoder.7",
    "test accuracy of the Vision Transformer under both scalings",
    reading=READING,
    quick={**QUICK, "width": (16, 1024), "trials": 3},
    paper={**PAPER, "width": (16, 1024, 16384), "trials": 3},
    grid=("width",),
    finish=finish_accuracy,
    arrays={**TIMES, "held_accuracy": "(widths, trials, 2, times) for sqrt and linear"},
    no_draws=("step_size", "momentum", "batch", "epochs"),
    paint=painted("held_accuracy", "test accuracy"),
    alt=told("held_accuracy", "Test accuracy"),
    chunk=1,
    claims=("encoder.lemma-1", "encoder.theorem-1"),
    size=(8.0, 3.8),
    needs="real-train",
    stand_in=SMALL.format(epochs=6) + "; accuracy on 1,000 test images",
    verdict=verdict_7,
    stored=True,
)
def encoder_7(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """One width."""
    return both({**cell, "watched": 1}, trials, rng, record=["held_accuracy"])


@figure(
    "encoder.8",
    "telling 0 from 1 by regression under both scalings: training error",
    reading=READING + " The step size is not stated. With that of Figure 4 squares diverge at both "
    "widths, with a tenth of it one of five wide networks with width^-1/2 did; here it is 0.003.",
    quick={
        **QUICK,
        "step_size": 0.003,
        "n": 2000,
        "epochs": 4,
        "width": (16, 1024),
        "every": 4,
        "trials": 5,
    },
    paper={**PAPER, "step_size": 0.003, "width": (16, 1024, 16384), "every": 120, "trials": 3},
    grid=("width",),
    finish=finish_error,
    arrays={
        **TIMES,
        "error": "(widths, trials, 2, times) mean of (sign f - y)^2 over the training set, for "
        "sqrt and linear",
        "loss": "(widths, trials, 2, times) mean of (f - y)^2",
    },
    no_draws=("step_size", "momentum", "batch", "epochs", "every"),
    paint=painted("error", "training error"),
    alt=told("error", "Training error"),
    chunk=1,
    claims=("encoder.lemma-1", "encoder.theorem-1"),
    size=(8.0, 3.8),
    needs="real-train",
    stand_in="2,000 of 12,665 images, 4 epochs of 50, widths to 1,024 of 16,384",
    verdict=verdict_8,
    stored=True,
)
def encoder_8(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """One width."""
    wanted = ["loss", "accuracy"]
    return both(
        {**cell, "watched": 1}, trials, rng, record=wanted, every=cell["every"], loss="squares"
    )
