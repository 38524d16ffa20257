"""Head and attention trained together: Figure 3 of the bias paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnlab import models, optim, problems, svm

METHODS = ("GD", "NGD", "joint NGD", "Polyak")
PANELS = (
    ("loss", "loss", True),
    ("attention", "mean attention on the deciding token", False),
    ("align_v", "cosine of the head with its margin", False),
    ("align_W", "cosine of W with its margin", False),
)


def head_margin(problem: problems.TokenProblem) -> np.ndarray:
    r"""Max-margin head: the hard-margin SVM of the deciding tokens, as attention sees it.

    One token a sample against the origin, the sample's label as its query: $y\,w^\top x\ge1$.
    """
    assert problem.relevant is not None  # the model DM marks the deciding token
    tokens = np.asarray((problem.X * problem.relevant[..., None]).sum(axis=-2))
    X = np.stack([tokens, np.zeros_like(tokens)], axis=-2)
    y = problem.y[..., None]
    one = np.zeros((*tokens.shape[:-2], X.shape[-1]))
    pair = problems.TokenProblem(
        X=X, z=np.concatenate([y, 0.0 * tokens[..., 1:]], -1), y=problem.y, v=one
    )
    chosen = np.zeros(problem.y.shape, dtype=np.int64)
    return np.asarray(svm.attention_svm(pair, chosen).W[..., 0])


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """All rules from zero on the same draws of the model DM."""
    drawn = problems.gaussian(
        n=cell["n"],
        T=cell["T"],
        d=cell["d"],
        rho=cell["rho"],
        alpha=cell["alpha"],
        trials=trials,
        rng=rng,
    )
    assert drawn.relevant is not None
    deciding = drawn.relevant.argmax(axis=-1)
    goal, head = svm.attention_svm(drawn, deciding).W, head_margin(drawn)
    model = models.Attention(loss="exponential", start="zero", train_head=True)

    def cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.asarray(svm.correlation(one[..., None], other[..., None]))

    own = {
        "align_v": lambda params, _: cosine(params["v"], head),
        "align_W": lambda params, _: np.asarray(svm.correlation(params["W"], goal)),
    }
    rules: list[optim.Rule] = [
        optim.GD(cell["gd_step"]),
        optim.NormalizedGD(cell["ngd_step"]),
        optim.JointNormalizedGD(cell["ngd_step"]),
        optim.PolyakStep(max_step=cell["polyak_cap"], floor=0.0),
    ]
    found: dict[str, list[np.ndarray]] = {}
    step = np.zeros(0)
    for rule in rules:
        run = optim.train(
            model,
            drawn,
            rule,
            cell["steps"],
            record=["loss", "attention", "norm", own],
            every="log",
        )
        step = run.history["step"]
        for name in ("loss", "attention", "norm_v", *own):
            found.setdefault(name, []).append(np.moveaxis(run.history[name], 0, -1))
    stacked = {name: np.stack(values, axis=1) for name, values in found.items()}
    return {**stacked, "step": np.broadcast_to(step, (trials, len(step)))}


def paint(data: Data, canvas: Any) -> None:
    """Four panels; the band is the range over trials."""
    step = data["step"][0]
    for axes, (name, title, log) in zip(canvas.subplots(2, 2).flat, PANELS, strict=True):
        for k, method in enumerate(METHODS):
            values = data[name][:, k, 1:]
            axes.plot(step[1:], values.mean(axis=0), label=method, marker=mark(k), markevery=9)
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(step[1:], low, high, color=tone(k), alpha=0.15, lw=0)
        axes.set(xscale="log", title=title)
        if log:
            axes.set_yscale("log")
    for axes in canvas.axes[2:]:
        axes.set_xlabel("step")
    canvas.legend(*canvas.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """The order at the end, in numbers."""
    loss = data["loss"][:, :, -1].mean(axis=0)
    told = ", ".join(f"{name} {value:.2e}" for name, value in zip(METHODS, loss, strict=True))
    turned = data["align_W"][:, :, -1].mean(axis=0)
    return (
        f"Head and attention trained together for {int(data['step'][0, -1])} steps. Mean loss at "
        f"the end: {told}. Cosine of W with its max-margin direction: NGD {turned[1]:.3f}, joint "
        f"NGD {turned[2]:.3f}, GD {turned[0]:.3f}."
    )


SETTINGS: dict[str, Any] = {
    "n": 10,
    "T": 2,
    "d": 100,
    "rho": 0.1,
    "alpha": 3.0,
    "gd_step": 0.02,
    "ngd_step": 0.002,
    "polyak_cap": 10.0,
}


@figure(
    "bias.3",
    "head and attention trained together: loss, attention, and both alignments",
    status="with a stated reading",
    reading=(
        "The cap of the Polyak step (10), the number of steps (4,000) and the fixed u* (a random "
        "unit vector) are not stated. The curves use constant steps; the decayed update that the "
        "theorems analyse barely moves at this step size."
    ),
    quick={**SETTINGS, "trials": 4, "steps": 4000},
    paper={**SETTINGS, "trials": 10, "steps": 4000},
    arrays={
        "step": "(trials, times) recorded steps",
        "loss": "(trials, 4, times) training loss, for GD, NGD, joint NGD, Polyak",
        "attention": "(trials, 4, times) mean attention on the deciding token",
        "align_v": "(trials, 4, times) cosine of the head with the max-margin head; 0 at the start",
        "align_W": "(trials, 4, times) cosine of W with the max-margin W; 0 at the start",
        "norm_v": "(trials, 4, times) norm of the head",
    },
    no_draws=("gd_step", "ngd_step", "polyak_cap", "steps"),
    paint=paint,
    alt=alt,
    chunk=5,
    claims=("bias.theorem-2", "bias.theorem-3", "bias.theorem-4", "bias.lemma-11"),
    size=(9.0, 6.4),
)
def bias_3(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
