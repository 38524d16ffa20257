"""Two sequences in the plane, trained by W and by K and Q: Figure 1 of the svm paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import ink, mark, tone
from attnbook.figures.svm._local import product
from attnlab import models, optim, problems, svm

NAMES = ("W", "K and Q")
DASH = ("-", "--")


def starts(cell: Cell, trials: int, rng: np.random.Generator) -> list[models.Params]:
    """W = 0, and K small with Q = 0."""
    K = cell["start"] * rng.standard_normal((trials, 2, 2))
    return [{"W": np.zeros((trials, 2, 2))}, {"K": K, "Q": np.zeros((trials, 2, 2))}]


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Both forms on the same tokens."""
    n, T = 2, cell["T"]
    X = cell["spread"] * rng.standard_normal((trials, n, T, 2))
    X[..., 0] += np.array([-1.0, 1.0])[:, None]
    z = rng.standard_normal((trials, n, 2))
    z /= np.linalg.norm(z, axis=-1, keepdims=True)
    v = rng.standard_normal((trials, 2))
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    drawn = problems.TokenProblem(X=X, z=z, y=np.ones((trials, n)), v=v)
    goals = [svm.attention_svm(drawn, norm=norm) for norm in ("fro", "nuc")]
    rule = optim.NormalizedGD(cell["step_size"], recipe="paper")
    paths, aligned, hits = [], [], []
    for k, start in enumerate(starts(cell, trials, rng)):
        model = models.Attention(factors=None if k == 0 else 2, loss=cell["loss"], start="zero")
        run = optim.train(
            model,
            drawn,
            rule,
            cell["steps"],
            params=start,
            record=[{"W": lambda params, _: product(params).copy()}],
            every="log",
        )
        W = run.history["W"]
        paths.append(np.moveaxis(z @ W.swapaxes(-1, -2), 0, 1))
        aligned.append(np.stack([svm.correlation(W, goal.W).T for goal in goals], axis=1))
        top = model.attention(run.params, drawn).argmax(axis=-1)
        hits.append((top == drawn.optimal).all(axis=-1))
    step = run.history["step"]
    return {
        "token": X,
        "best": drawn.optimal,
        "query": z,
        "direction": np.stack([z @ goal.W.swapaxes(-1, -2) for goal in goals], axis=1),
        "path": np.stack(paths, axis=1),
        "alignment": np.stack(aligned, axis=1),
        "hit": np.stack(hits, axis=1),
        "step": np.broadcast_to(step, (trials, len(step))),
    }


def chosen(data: Data) -> int:
    """The trial that is drawn: the first where both forms select the optimal tokens, and the two
    directions can be told apart.
    """
    both = data["hit"].all(axis=1)
    unit = data["direction"] / np.linalg.norm(data["direction"], axis=-1, keepdims=True)
    apart = (unit[:, 0] * unit[:, 1]).sum(axis=-1).min(axis=-1) < data.settings["apart"]
    for wanted in (both & apart, both):
        if wanted.any():
            return int(wanted.argmax())
    return 0


def paint(data: Data, canvas: Any) -> None:
    """The path of W z and of K Q z beside their directions, the tokens, and the cosines."""
    panels = canvas.subplots(2, 2)
    at = chosen(data)
    for k, axes in enumerate(panels[0]):
        path = data["path"][at, k]
        reach = 1.1 * float(np.abs(path).max())
        for i in range(2):
            for norm, name in enumerate(("Frobenius", "nuclear")):
                direction = data["direction"][at, norm, i]
                end = reach * direction / np.linalg.norm(direction)
                label = name if i == 0 and k == 0 else None
                axes.plot(
                    *zip((0, 0), end, strict=True), DASH[norm], color=ink(), lw=1, label=label
                )
            axes.plot(*path[:, i].T, color=tone(i), linestyle="-", lw=2.4, label=f"sample {i + 1}")
            axes.plot(*path[-1, i], mark(i), color=tone(i), ms=8)
        axes.set(title=f"trained: {NAMES[k]}")
        axes.set_aspect("equal", adjustable="datalim")
    tokens, cosines = panels[1]
    for i in range(2):
        places = data["token"][at, i]
        tokens.plot(*places.T, mark(i), color=tone(i), linestyle="", ms=8)
        best = places[data["best"][at, i]]
        tokens.plot(*best, "*", color=tone(i), ms=19, mec=ink())
    tokens.set(title="tokens (star: optimal)")
    tokens.set_aspect("equal", adjustable="datalim")
    step = data["step"][at]
    for k, name in enumerate(NAMES):
        own = data["alignment"][at, k, k]
        cosines.plot(step[1:], 1.0 - own[1:], color=tone(k + 2), linestyle=DASH[k], label=name)
    cosines.set(xscale="log", yscale="log", xlabel="step", title="1 − cosine with own direction")
    cosines.legend()
    canvas.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """How well the drawn runs align, and how many of all runs select the optimal tokens."""
    at = chosen(data)
    own, other = data["alignment"][at, :, :, -1].diagonal(), data["alignment"][at, :, ::-1, -1]
    hits = int(data["hit"].all(axis=1).sum())
    return (
        "Two planes with the paths of W z and K Q z for two samples, beside the max-margin "
        f"directions. At the end W has cosine {own[0]:.4f} with the Frobenius direction "
        f"({other[0, 0]:.4f} with the nuclear one) and K Q {own[1]:.4f} with the nuclear direction "
        f"({other[1, 1]:.4f} with the Frobenius one). Of {len(data['hit'])} draws, {hits} select "
        "the optimal tokens in both forms; the first of these is drawn."
    )


SETTINGS = {
    "T": 3,
    "spread": 0.3,
    "start": 0.1,
    "step_size": 0.1,
    "loss": "logistic",
    "steps": 2000,
    "apart": 0.97,
}


@figure(
    "svm.1",
    "two sequences in the plane: W z and K Q z turn to their own max-margin directions",
    status="with a stated reading",
    reading=(
        "The paper gives n = d = 2 and T = 3 only. Tokens are normal around (-1, 0) and (1, 0), "
        "W and Q start at 0 and K small, as in the public code; queries and head are uniform on "
        "the circle. Not every draw selects the optimal tokens: the first that does, and whose "
        "two directions differ to the eye, is drawn."
    ),
    quick={**SETTINGS, "trials": 20},
    paper={**SETTINGS, "trials": 100},
    arrays={
        "token": "(trials, 2, T, 2) tokens of the two samples",
        "best": "(trials, 2) which token is optimal",
        "query": "(trials, 2, 2) the queries z",
        "direction": "(trials, norms, 2, 2) max-margin W z of each sample; Frobenius, nuclear",
        "path": "(trials, forms, times, 2, 2) W z (or K Q z) of each sample; forms W, KQ",
        "alignment": "(trials, forms, norms, times) cosine of W with each max-margin W",
        "hit": "(trials, forms) whether the optimal tokens were selected",
        "step": "(trials, times) recorded steps",
    },
    no_draws=("step_size", "loss", "steps", "apart"),
    paint=paint,
    alt=alt,
    chunk=20,
    claims=("svm.theorem-2", "svm.erratum-14"),
    size=(9.0, 7.0),
)
def svm_1(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
