"""A start in a bad direction: Figure 8 of the bias paper, with its basin."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark
from attnlab import models, optim, problems, svm

METHODS = ("GD", "NGD")


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:  # noqa: ARG001  # no draws
    """Both rules from -c I / |I|, for each length c of the start."""
    problem = problems.bad_direction()
    good = svm.attention_svm(problem)
    model = models.Attention(loss="exponential", start="zero")
    lengths = np.array(cell["start"])
    start = -lengths[:, None, None] * np.eye(2) / np.sqrt(2.0)
    many = problems.TokenProblem(
        X=np.broadcast_to(problem.X, (len(lengths), *problem.X.shape)),
        z=np.broadcast_to(problem.z, (len(lengths), *problem.z.shape)),
        y=np.broadcast_to(problem.y, (len(lengths), *problem.y.shape)),
        v=np.broadcast_to(problem.v, (len(lengths), *problem.v.shape)),
    )

    def weights(params: dict[str, np.ndarray], p: problems.TokenProblem) -> np.ndarray:
        s = model.attention(params, p)
        return np.take_along_axis(s, p.optimal[..., None], axis=-1)[..., 0]

    own = {
        "weights": weights,
        "alignment": lambda params, _: np.asarray(svm.correlation(params["W"], good.W)),
    }
    found: dict[str, list[np.ndarray]] = {}
    step = np.zeros(0)
    for rule in (optim.GD(cell["gd_step"]), optim.NormalizedGD(cell["ngd_step"])):
        run = optim.train(
            model, many, rule, cell["steps"], params={"W": start}, record=["loss", own], every="log"
        )
        step = run.history["step"]
        for name in ("loss", *own):
            found.setdefault(name, []).append(np.moveaxis(run.history[name], 0, 1))
    arrays = {name: np.stack(values) for name, values in found.items()}
    arrays |= {"step": step, "start": lengths, "tokens": problem.X}
    return {name: np.broadcast_to(array, (trials, *array.shape)) for name, array in arrays.items()}


def paint(data: Data, canvas: Any) -> None:
    """Alignment and attention on the harder sample, for every length of the start."""
    step = data["step"][0]
    panels = canvas.subplots(2, 2, sharex=True)
    for row, method in enumerate(METHODS):
        for k, c in enumerate(data["start"][0]):
            label = f"c = {c:g}"
            how = {"marker": mark(k), "markevery": 12, "label": label}
            panels[row, 0].plot(step[1:], data["alignment"][0, row, k, 1:], **how)
            panels[row, 1].plot(step[1:], data["weights"][0, row, k, 1:, 1], **how)
        panels[row, 0].set(xscale="log", title=f"{method}: cosine with the max-margin W")
        panels[row, 1].set(xscale="log", title=f"{method}: attention, sample 2", ylim=(-0.03, 1.03))
    for axes in panels[1]:
        axes.set_xlabel("step")
    canvas.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """Which starts turn round, and which do not."""
    ends = data["alignment"][0, 0, :, -1]
    told = ", ".join(f"c={c:g}: {end:.3f}" for c, end in zip(data["start"][0], ends, strict=True))
    return (
        "Two samples of two tokens in the plane, started at length c in a bad direction. Cosine of "
        f"gradient descent with the max-margin W at the end: {told}. Short starts turn round, long "
        "ones stay with the wrong token."
    )


SETTINGS = {"trials": 1, "gd_step": 0.1, "ngd_step": 0.025}


@figure(
    "bias.8",
    "a start in a bad direction: short ones recover, long ones do not",
    status="with a stated reading",
    reading=(
        "The start, its length and the step sizes are not stated. From -c I/|I| recovery depends "
        "on c: that gradient descent still converges holds for short starts only."
    ),
    quick={**SETTINGS, "start": (0.1, 0.3, 1.0, 3.0), "steps": 2000},
    paper={**SETTINGS, "start": (0.1, 0.3, 1.0, 3.0), "steps": 20000},
    arrays={
        "step": "(1, times) recorded steps",
        "start": "(1, starts) length c of the start -c I/|I|",
        "tokens": "(1, 2, 2, 2) the two samples",
        "loss": "(1, 2, starts, times) loss, for GD and NGD",
        "weights": "(1, 2, starts, times, 2) attention of each sample on its best token",
        "alignment": "(1, 2, starts, times) cosine with the max-margin W",
    },
    no_draws=("gd_step", "ngd_step", "steps"),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("bias.theorem-1", "svm.theorem-4"),
    size=(9.0, 6.4),
)
def bias_8(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
