"""One long token or many short ones: Figure 3 of the encoder paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures.encoder._widths import epochs
from attnlab import models, ntk, optim, problems

NAMES = ("one token of 100 features", "100 tokens of one feature", "two-layer network")


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """The same vectors as one token, as many tokens, and in a two-layer network.

    The two-layer network is the encoder with one token and another draw of its weights: with a
    single logit softmax is 1, and nothing else is left of the Transformer.
    """
    size = cell["features"]
    model = models.Encoder(cell["width"], init="lecun", scaling="linear")
    losses, values, energy = [], [], []
    step = np.zeros(0)
    for _ in range(trials):
        drawn = problems.gaussian_regression(n=cell["n"], T=1, d=size, unit_tokens=True, rng=rng)
        many = problems.SequenceProblem(drawn.X.reshape(cell["n"], size, 1), drawn.y)
        rows, tops = [], []
        for problem in (drawn, many, drawn):
            start = model.init(problem, rng)
            kernel = np.linalg.eigvalsh(ntk.empirical(model, start, problem))[::-1]
            run = optim.train(
                model,
                problem,
                optim.GD(cell["step_size"]),
                cell["epochs"],
                params=start,
                every=epochs(cell["epochs"]),
            )
            step = run.history["step"]
            rows.append(run.history["loss"])
            tops.append(kernel[:6])
        losses.append(np.stack(rows))
        values.append(np.stack(tops))
        energy.append(np.mean(drawn.y**2))
    return {
        "loss": np.stack(losses),
        "eigenvalues": np.stack(values),
        "energy": np.array(energy),
        "step": np.broadcast_to(step, (trials, len(step))),
    }


ROUNDING = 1e-12  # what is smaller is drawn here: it differs between processors


def paint(data: Data, canvas: Any) -> None:
    """Loss and the kernel's first eigenvalues."""
    left, right = canvas.subplots(1, 2)
    step = data["step"][0]
    for k, name in enumerate(NAMES):
        loss = np.maximum(data["loss"][:, k] / data["energy"][:, None], ROUNDING)
        left.plot(step[1:], np.median(loss, axis=0)[1:], marker=mark(k), markevery=3, label=name)
        left.fill_between(
            step[1:], loss.min(axis=0)[1:], loss.max(axis=0)[1:], color=tone(k), alpha=0.15, lw=0
        )
        tops = np.median(data["eigenvalues"][:, k], axis=0)
        shown = np.maximum(tops / tops[0], ROUNDING)
        right.plot(range(1, len(shown) + 1), shown, marker=mark(k), label=name)
    left.set(xscale="log", yscale="log", title="loss over mean of y squared", xlabel="epoch")
    right.set(yscale="log", title="kernel's eigenvalues, first = 1", xlabel="number")
    canvas.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _size(x: float) -> str:
    """A number, or that there is nothing left of it but rounding."""
    return f"{x:.1e}" if x > ROUNDING else f"below {ROUNDING:.0e}"


def alt(data: Data) -> str:
    """Where each ends, and the rank of the kernel."""
    end = np.median(data["loss"][:, :, -1] / data["energy"][:, None], axis=0)
    tops = np.median(data["eigenvalues"][:, 1], axis=0)
    told = ", ".join(f"{name} {_size(value)}" for name, value in zip(NAMES, end, strict=True))
    return (
        f"Loss over the mean of y squared after {int(data['step'][0, -1])} epochs: {told}. With "
        f"one feature a token the kernel's fourth eigenvalue is {_size(abs(tops[3]) / tops[0])} of "
        "the first: its rank is at most 3."
    )


SETTINGS = {"width": 100, "step_size": 1.0}


@figure(
    "encoder.3",
    "a vector as one token trains like a two-layer network; as many tokens it does not train",
    status="with a stated reading",
    reading=(
        "The number of samples, the targets, the step and the width are not stated. With one "
        "feature a token the network has three effective numbers at any width: the failure is "
        "exact."
    ),
    quick={**SETTINGS, "n": 30, "features": 40, "epochs": 150, "trials": 1},
    paper={**SETTINGS, "n": 100, "features": 100, "epochs": 400, "trials": 5},
    arrays={
        "step": "(trials, times) recorded epochs",
        "loss": "(trials, 3, times) mean squared error: one token, many tokens, two-layer network",
        "eigenvalues": "(trials, 3, 6) largest eigenvalues of the tangent kernel at the start",
        "energy": "(trials,) mean of y squared, the loss of the zero function",
    },
    no_draws=("step_size", "epochs"),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("encoder.corollary-1",),
    size=(9.0, 4.2),
)
def encoder_3(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
