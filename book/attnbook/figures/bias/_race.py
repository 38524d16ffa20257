"""A race of step rules on nearly orthogonal tokens: Figures 2 and 5 of the bias paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnlab import models, optim, problems, svm

METHODS = ("GD", "NGD", "NGD, heavy ball", "Polyak")
PANELS = (
    ("excess", "loss above its floor", True),
    ("norm", "norm of W", False),
    ("attention", "mean attention on the best token", False),
    ("alignment", "cosine with the max-margin W", False),
)


def rules(cell: Cell) -> list[optim.Rule]:
    """The four step rules, with the paper's caps on the step."""
    ngd, cap = float(cell["ngd_step"]), float(cell["ngd_cap"])
    return [
        optim.GD(cell["gd_step"]),
        optim.NormalizedGD(ngd, max_step=cap),
        optim.NormalizedGD(ngd, momentum=cell["momentum"], max_step=cap),
        optim.PolyakStep(max_step=cell["polyak_cap"]),
    ]


def race(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """All rules from the same zero start on the same data."""
    drawn = problems.orthogonal(
        n=cell["n"],
        T=cell["T"],
        d=cell["d"],
        U=cell["U"],
        rho=cell["rho"],
        sigma=cell["sigma"],
        antipodal=cell["antipodal"],
        trials=trials,
        rng=rng,
    )
    goal = svm.attention_svm(drawn)
    model = models.Attention(loss="exponential", start="zero")

    def alignment(params: Mapping[str, Any], _: Any) -> np.ndarray:
        return np.asarray(svm.correlation(params["W"], goal.W))

    found: dict[str, list[np.ndarray]] = {name: [] for name, _, _ in PANELS}
    step = np.zeros(0)
    for rule in rules(cell):
        run = optim.train(
            model,
            drawn,
            rule,
            cell["steps"],
            record=["excess", "norm", "attention", {"alignment": alignment}],
            every="log",
        )
        step = run.history["step"]
        for name, values in found.items():
            key = "norm_W" if name == "norm" else name
            values.append(np.moveaxis(run.history[key], 0, -1))
    stacked = {name: np.stack(values, axis=1) for name, values in found.items()}
    return {**stacked, "step": np.broadcast_to(step, (trials, len(step)))}


def alignment_at(data: Data, step: int) -> np.ndarray:
    """Mean alignment of each rule at the recorded step nearest to ``step``."""
    at = int(np.abs(data["step"][0] - step).argmin())
    return np.asarray(data["alignment"][:, :, at].mean(axis=0))


def paint(data: Data, canvas: Any) -> None:
    """Four panels; the band is the range over trials."""
    step = data["step"][0]
    for axes, (name, title, log) in zip(canvas.subplots(2, 2).flat, PANELS, strict=True):
        for k, method in enumerate(METHODS):
            values = data[name][:, k]
            shown = slice(1, None)
            axes.plot(
                step[shown], values.mean(axis=0)[shown], label=method, marker=mark(k), markevery=9
            )
            low, high = values.min(axis=0)[shown], values.max(axis=0)[shown]
            axes.fill_between(step[shown], low, high, color=tone(k), alpha=0.15, lw=0)
        axes.set(xscale="log", title=title)
        if log:
            axes.set_yscale("log")
    for axes in canvas.axes[2:]:
        axes.set_xlabel("step")
    canvas.legend(*canvas.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """Who leads at the end, in numbers."""
    last = int(data["step"][0, -1])
    ends = alignment_at(data, last)
    told = ", ".join(f"{name} {value:.4f}" for name, value in zip(METHODS, ends, strict=True))
    return (
        f"Four panels over {last} steps for gradient descent, normalized descent with and without "
        f"momentum, and the Polyak step. Mean cosine with the max-margin W at the end: {told}."
    )


SETTINGS = {
    "n": 20,
    "T": 6,
    "d": 100,
    "U": 1.0,
    "rho": 0.05,
    "sigma": 0.0,
    "gd_step": 0.25,
    "ngd_step": 0.025,
    "ngd_cap": 100.0,
    "momentum": 0.9,
}
ARRAYS = {
    "step": "(trials, times) recorded steps",
    "excess": "(trials, 4, times) loss above its floor 1/e, for GD, NGD, NGD with momentum, Polyak",
    "norm": "(trials, 4, times) Frobenius norm of W",
    "attention": "(trials, 4, times) mean attention on the best token",
    "alignment": "(trials, 4, times) cosine with the max-margin W; 0 at the zero start",
}
READING = (
    "The start (zero), the number of steps (2,000) and the form of momentum are not stated; heavy "
    "ball on the unit gradient is our reading, and its lead is that of a ten times longer step. "
    "The cap of 100 on the step binds for momentum: without it the norm would be five times "
    "larger. The cap of the Polyak step binds from the first step on (on most draws the rule never "
    "asks for less than ten times as much): its curve is gradient descent with the cap as step "
    "throughout."
)
CLAIMS = ("bias.theorem-1", "bias.lemma-1", "bias.lemma-5", "bias.theorem-7")


@figure(
    "bias.2",
    "normalized steps, momentum and the Polyak step against gradient descent, four curves",
    status="with a stated reading",
    reading=READING,
    quick={**SETTINGS, "polyak_cap": 10.0, "antipodal": False, "trials": 3, "steps": 1000},
    paper={**SETTINGS, "polyak_cap": 10.0, "antipodal": False, "trials": 8, "steps": 2000},
    arrays=ARRAYS,
    no_draws=("gd_step", "ngd_step", "ngd_cap", "momentum", "polyak_cap", "steps"),
    paint=paint,
    alt=alt,
    chunk=2,
    claims=CLAIMS,
    size=(9.0, 6.4),
)
def bias_2(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Orthogonal optimal tokens."""
    return race(cell, trials, rng)


@figure(
    "bias.5",
    "the same race where the optimal tokens of the two classes are opposite",
    status="with a stated reading",
    reading=READING
    + " The head u* is not stated either: the mean of class +1 over its norm squared.",
    quick={**SETTINGS, "polyak_cap": 5.0, "antipodal": True, "trials": 3, "steps": 1000},
    paper={**SETTINGS, "polyak_cap": 5.0, "antipodal": True, "trials": 8, "steps": 2000},
    arrays=ARRAYS,
    no_draws=("gd_step", "ngd_step", "ngd_cap", "momentum", "polyak_cap", "steps"),
    paint=paint,
    alt=alt,
    chunk=2,
    claims=CLAIMS,
    size=(9.0, 6.4),
)
def bias_5(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Antipodal optimal tokens."""
    return race(cell, trials, rng)
