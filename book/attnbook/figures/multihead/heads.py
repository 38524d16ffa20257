"""Training with several numbers of heads on the same data: what Figures 2 to 5 have in common.

From a zero start all heads stay equal, bit for bit, so one head tells of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._style import ink, mark, tone
from attnlab import models, optim
from attnlab.checks import Array
from attnlab.problems import SequenceProblem

ONE = models.MultiHead(heads=1)
Measure = Callable[[Mapping[str, Any], Any], Any]
PLOTTED = {
    "train": "training loss",
    "test": "test loss",
    "norm_W": "average norm of W, the mean over heads",
    "norm_U": "average norm of U, the sum over heads divided by sqrt(heads)",
    "margin": "smallest y times output over the training set, divided by the norm of all U; "
    "0 at the zero start",
}


def moments(steps: int) -> list[int]:
    """Recorded steps, about 40 on a logarithmic scale, and the start."""
    found = np.unique(np.geomspace(1, steps, 40).round().astype(int))
    return [0, *found.tolist()]


def first(params: Mapping[str, Any]) -> dict[str, Array]:
    """The first head, with the axis of heads kept."""
    return {"U": params["U"][..., :1, :, :], "W": params["W"][..., :1, :, :]}


def size(array: Array) -> Array:
    """Frobenius norm of the last two axes."""
    return np.asarray(np.sqrt((array * array).sum(axis=(-1, -2))))


def ratio(value: Array, norm: Array) -> Array:
    """Value over norm, and 0 where the norm is 0: at the zero start nothing is aligned."""
    return np.asarray(value / np.where(norm > 0.0, norm, np.inf))


def cosine(array: Array, goal: Array) -> Array:
    """Cosine of two matrices; of concatenated heads too, where heads are equal."""
    return ratio((array * goal).sum(axis=(-1, -2)), size(array) * size(goal))


def attention(params: Mapping[str, Any], problem: Any) -> Array:
    """Softmax mass on relevant tokens, mean over samples, queries and (equal) heads."""
    maps = ONE.attention(first(params), problem)[..., 0, :, :]
    return np.asarray((maps * problem.relevant[..., None, :]).sum(axis=-1).mean(axis=(-1, -2)))


def teacher_alignment(params: Mapping[str, Any], problem: Any) -> Array:
    """Cosines with the planted W and U, on a last axis."""
    head, teacher = first(params), problem.teacher
    pairs = ((head["W"], teacher.W), (head["U"], teacher.U))
    return np.stack([cosine(array[..., 0, :, :], goal) for array, goal in pairs], axis=-1)


def follow(
    problem: SequenceProblem,
    test: SequenceProblem,
    rule: Callable[[int], optim.Rule],
    cell: Cell,
    extra: Mapping[str, Measure],
) -> Arrays:
    """Train with each number of heads by ``rule(heads)``: (trials, heads, times, ...)."""
    found: dict[str, list[Array]] = {}
    for heads in cell["heads"]:
        model = models.MultiHead(heads=heads)

        def measured(params: Mapping[str, Any], p: Any, model: Any = model) -> Array:
            """Test loss, average norms and margin, on a last axis."""
            U, W = size(params["U"]), size(params["W"])
            m = (p.y * model.forward(params, p)).min(axis=-1)
            margin = ratio(m, np.sqrt((U * U).sum(axis=-1)))
            unseen = np.logaddexp(0.0, -test.y * model.forward(params, test)).mean(axis=-1)
            norms = W.mean(axis=-1), U.sum(axis=-1) / model.heads**0.5
            return np.stack([unseen, *norms, margin], axis=-1)

        run = optim.train(
            model,
            problem,
            rule(heads),
            cell["steps"],
            record=["loss", {"measured": measured}, {f"own {k}": f for k, f in extra.items()}],
            every=moments(cell["steps"]),
        )
        columns = np.moveaxis(run.history["measured"], -1, 0)
        told = dict(zip(list(PLOTTED)[1:], columns, strict=True))
        told |= {
            "train": run.history["loss"],
            **{name: run.history[f"own {name}"] for name in extra},
        }
        for name, values in told.items():
            found.setdefault(name, []).append(np.moveaxis(values, 0, 1))
    return {name: np.stack(values, axis=1) for name, values in found.items()}


def by_rule(runs: Sequence[Arrays]) -> Arrays:
    """Stack runs of several step rules: (trials, rules, heads, times, ...)."""
    return {name: np.stack([run[name] for run in runs], axis=1) for name in runs[0]}


def coordinates(settings: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Add the numbers of heads and the recorded steps."""
    steps = np.array(moments(int(settings["steps"])))
    return {**arrays, "heads": np.array(settings["heads"]), "step": steps}


def described(axes: str, more: Mapping[str, str]) -> dict[str, str]:
    """What each array is; ``axes`` are those between trials and times."""
    shape = f"(trials, {axes}, times)"
    told = {name: f"{shape} {words}" for name, words in (PLOTTED | dict(more)).items()}
    return {"heads": "(heads,) number of heads", "step": "(times,) recorded steps", **told}


def curves(axes: Any, data: Data, values: Array, *, thin: bool = False) -> None:
    """One line a number of heads, ``values`` (trials, heads, times).

    The line is the median over trials, the band their range.
    """
    step = data["step"][1:]
    for k, heads in enumerate(data["heads"]):
        shown = values[:, k, 1:]
        look: dict[str, Any] = {"linewidth": 0.9, "linestyle": ":", "color": tone(k)}
        if not thin:
            words = "1 head" if heads == 1 else f"{heads} heads"
            look = {"marker": mark(k), "markevery": (2 * k, 8), "label": words}
            low, high = shown.min(axis=0), shown.max(axis=0)
            axes.fill_between(step, low, high, color=tone(k), alpha=0.13, lw=0)
        axes.plot(step, np.median(shown, axis=0), **look)
    axes.set_xscale("log")


def level(axes: Any, height: float) -> None:
    """A dashed line across, at the margin that attention is meant to reach."""
    axes.axhline(height, color=ink(), linestyle=(0, (4, 3)), linewidth=1.1)
    axes.annotate(
        r"$\gamma_{\mathrm{attn}}$",
        (0.02, height),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        va="top",
    )


def legend(canvas: Any) -> None:
    """One legend below all panels, once."""
    pairs = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(*pairs, loc="outside lower center", ncols=min(5, len(pairs[1])))


def each(data: Data, values: Array, form: str = ".3g") -> str:
    """Last values, medians over trials, one number a number of heads, in words."""
    ends = np.median(values[..., -1], axis=0)
    told = [f"{end:{form}} (H={heads})" for heads, end in zip(data["heads"], ends, strict=True)]
    return ", ".join(told)
