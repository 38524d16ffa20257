"""A race of initialisations at one step size: Figure 5 of the encoder paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures.encoder._widths import READING, over_trials
from attnlab import models

SCHEMES = (("lecun", 1.0), ("he", 1.0), ("ntk", 1.0), ("ntk", 10.0))
NAMES = ("LeCun, step 1", "He, step 1", "NTK, step 1", "NTK, step 10")


def paint(data: Data, canvas: Any) -> None:
    """One panel a scheme, one line a width."""
    step = data["step"][0, 0, 0]
    panels = canvas.subplots(2, 2, sharex=True, sharey=True)
    for s, (axes, name) in enumerate(zip(panels.flat, NAMES, strict=True)):
        for k, width in enumerate(data["width"]):
            loss = data["loss"][k, :, s]
            how = {"marker": mark(k), "markevery": 3, "label": f"width {width}"}
            axes.plot(step[1:], np.median(loss, axis=0)[1:], **how)
            low, high = loss.min(axis=0)[1:], loss.max(axis=0)[1:]
            axes.fill_between(step[1:], low, high, color=tone(k), alpha=0.15, lw=0)
        axes.set(xscale="log", yscale="log", title=f"loss, {name}")
    for axes in panels[1]:
        axes.set_xlabel("epoch")
    canvas.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """By how much each scheme brings the loss down at the largest width."""
    loss = data["loss"][-1]
    drop = np.median(loss[:, :, -1] / loss[:, :, 0], axis=0)
    told = ", ".join(f"{name} {value:.1e}" for name, value in zip(NAMES, drop, strict=True))
    return (
        f"Training loss of four initialisations by width. At width {data['width'][-1]} the loss "
        f"falls to these shares of its start: {told}."
    )


SETTINGS = {"unit_tokens": True, "scaling": "sqrt"}
PAPER = {"n": 100, "T": 10, "d": 100, "width": (10, 100, 1000, 4000), "epochs": 400, "trials": 3}
QUICK = {"n": 40, "T": 5, "d": 40, "width": (10, 80), "epochs": 120, "trials": 2}


@figure(
    "encoder.5",
    "LeCun, He and NTK initialisation at the same step size, and NTK with a larger one",
    status="with a stated reading",
    reading=READING + " That NTK trails at step 1 is a matter of the step: its limit is larger.",
    quick={**SETTINGS, **QUICK},
    paper={**SETTINGS, **PAPER},
    grid=("width",),
    arrays={
        "width": "(widths,) d_m",
        "step": "(widths, trials, 4, times) recorded epochs",
        "loss": "(widths, trials, 4, times) mean squared error, for LeCun, He, NTK, NTK at step 10",
        "stable_below": "(widths, trials, 4) largest stable step at the start",
    },
    no_draws=("epochs",),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("encoder.section-c5", "encoder.theorem-2"),
    size=(9.0, 6.4),
)
def encoder_5(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """One width, all four schemes."""
    found: dict[str, list[np.ndarray]] = {"loss": [], "step": [], "stable_below": []}
    for scheme, size in SCHEMES:
        model = models.Encoder(cell["width"], init=scheme, scaling=cell["scaling"])
        runs = over_trials({**cell, "step_size": size}, model, trials, rng)
        for name, values in found.items():
            values.append(runs[name])
    return {name: np.stack(values, axis=1) for name, values in found.items()}
