"""Training at several widths: Figures 2 and 9 of the encoder paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnlab import models, ntk, optim, problems

GROUPS = ("W_Q", "W_K", "W_V", "w_O")
READING = (
    "Taken at its word (raw Gaussian tokens, mean pooling, half the sum of squares) the text makes "
    "step 1 about 1,600 times too long at width 1000. Tokens of length 1 and the mean of squares "
    "make it stable at every width. The reference of the kernel distance is not stated: here it is "
    "the kernel at the start."
)


def epochs(last: int) -> list[int]:
    """Recorded epochs, about 24 on a logarithmic scale."""
    found = np.unique(np.geomspace(1, last, 24).round().astype(int))
    return [0, *found.tolist()]


def train_one(cell: Cell, model: models.Encoder, rng: np.random.Generator) -> Arrays:
    """One network on data of its own: loss, movement by group, kernel distance."""
    problem = problems.gaussian_regression(
        n=cell["n"], T=cell["T"], d=cell["d"], unit_tokens=cell["unit_tokens"], rng=rng
    )
    start = model.init(problem, rng)
    kernel = ntk.empirical(model, start, problem)
    sizes = {name: float(np.linalg.norm(start[name])) for name in GROUPS}

    def moved(params: Mapping[str, Any], _: Any) -> np.ndarray:
        return np.array(
            [np.linalg.norm(params[name] - start[name]) / sizes[name] for name in GROUPS]
        )

    def distance(params: Mapping[str, Any], p: Any) -> np.ndarray:
        return np.asarray(ntk.distance(ntk.empirical(model, dict(params), p), kernel))

    run = optim.train(
        model,
        problem,
        optim.GD(cell["step_size"]),
        cell["epochs"],
        params=start,
        record=["loss", {"moved": moved, "distance": distance}],
        every=epochs(cell["epochs"]),
    )
    limit = len(problem.y) / float(np.linalg.eigvalsh(kernel)[-1])
    history = {name: run.history[name] for name in ("loss", "moved", "distance")}
    return {**history, "step": run.history["step"], "stable_below": np.array(limit)}


def over_trials(cell: Cell, model: models.Encoder, trials: int, rng: np.random.Generator) -> Arrays:
    """Trials one after the other: a wide network fills the memory that many would share."""
    runs = [train_one(cell, model, rng) for _ in range(trials)]
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}


def paint(data: Data, canvas: Any) -> None:
    """Loss, movement of all weights, kernel distance; one line a width."""
    left, middle, right = canvas.subplots(1, 3)
    step = data["step"][0, 0]
    for k, width in enumerate(data["width"]):
        how = {"marker": mark(k), "markevery": 3, "label": f"width {width}"}
        loss = data["loss"][k]
        left.plot(step[1:], np.median(loss, axis=0)[1:], **how)
        left.fill_between(
            step[1:], loss.min(axis=0)[1:], loss.max(axis=0)[1:], color=tone(k), alpha=0.15, lw=0
        )
        middle.plot(step[1:], np.median(data["moved"][k].mean(axis=-1), axis=0)[1:], **how)
        right.plot(step[1:], np.median(data["distance"][k], axis=0)[1:], **how)
    left.set(xscale="log", yscale="log", title="training loss", xlabel="epoch")
    middle.set(xscale="log", yscale="log", title="relative movement", xlabel="epoch")
    right.set(xscale="log", title="kernel distance", xlabel="epoch")
    canvas.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """Loss and kernel distance at the end, by width."""
    told = []
    for k, width in enumerate(data["width"]):
        drop = np.median(data["loss"][k, :, -1] / data["loss"][k, :, 0])
        far = np.median(data["distance"][k, :, -1])
        told.append(f"width {width}: loss times {drop:.1e}, kernel distance {far:.3f}")
    return f"Three panels over {int(data['step'][0, 0, -1])} epochs. " + "; ".join(told) + "."


ARRAYS = {
    "width": "(widths,) d_m",
    "step": "(widths, trials, times) recorded epochs",
    "loss": "(widths, trials, times) mean squared error on the training set",
    "moved": "(widths, trials, times, 4) |W_t - W_0| / |W_0| of W_Q, W_K, W_V, w_O",
    "distance": "(widths, trials, times) 1 - cosine of the kernel with the one at the start",
    "stable_below": "(widths, trials) largest stable step, n over the kernel's top eigenvalue",
}
SETTINGS = {
    "unit_tokens": True,
    "step_size": 1.0,
    "init": "lecun",
}
QUICK = {"n": 40, "T": 5, "d": 40, "width": (10, 40, 160), "epochs": 150, "trials": 2}
PAPER = {"n": 100, "T": 10, "d": 100, "width": (10, 100, 1000, 4000), "epochs": 400, "trials": 3}


@figure(
    "encoder.2",
    "loss, movement of the weights and of the kernel at several widths, tau0 = width^-1/2",
    status="with a stated reading",
    reading=READING,
    quick={**SETTINGS, "scaling": "sqrt", **QUICK},
    paper={**SETTINGS, "scaling": "sqrt", **PAPER},
    grid=("width",),
    arrays=ARRAYS,
    no_draws=("step_size", "epochs"),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("encoder.theorem-1", "encoder.proposition-1"),
    size=(9.0, 3.8),
)
def encoder_2(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """One width."""
    model = models.Encoder(cell["width"], init=cell["init"], scaling=cell["scaling"])
    return over_trials(cell, model, trials, rng)


@figure(
    "encoder.9",
    "the same with tau0 = 1/width",
    status="with a stated reading",
    reading=READING,
    quick={**SETTINGS, "scaling": "linear", **QUICK},
    paper={**SETTINGS, "scaling": "linear", **PAPER},
    grid=("width",),
    arrays=ARRAYS,
    no_draws=("step_size", "epochs"),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("encoder.theorem-1", "encoder.lemma-1"),
    size=(9.0, 3.8),
)
def encoder_9(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """One width."""
    return encoder_2(cell, trials, rng)
