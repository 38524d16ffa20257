"""Gradient descent in the plane: Figure 3 of the svm paper, drawn from computed runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import ink, mark, tone
from attnlab import models, optim, problems, svm

TOKENS = ((-0.9, 1.0), (0.8, 0.9), (0.1, -1.2))  # three tokens, in the order of their scores
HEAD = (-0.35, 1.0)
QUERY = (1.0, 0.0)


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """One sequence of three tokens: runs from many starts, and the direction of each token."""
    problem = problems.TokenProblem(
        X=np.array([TOKENS]), z=np.array([QUERY]), y=np.array([1.0]), v=np.array(HEAD)
    )
    angles = rng.uniform(0.0, 2.0 * np.pi) + np.linspace(0, 2 * np.pi, cell["starts"] + 1)[:-1]
    start = np.zeros((cell["starts"], 2, 2))
    start[:, :, 0] = cell["radius"] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    paths = []
    for k in range(cell["starts"]):
        run = optim.train(
            models.Attention(start="zero"),
            problem,
            optim.NormalizedGD(cell["step_size"]),
            cell["steps"],
            params={"W": start[k]},
            record=[{"Wz": lambda params, p: params["W"] @ p.z[0]}],
        )
        paths.append(run.history["Wz"])
    directions, supports = [], []
    for token in range(len(TOKENS)):
        margin = svm.attention_svm(problem, np.array([token]))
        directions.append(margin.W @ np.array(QUERY))
        supports.append(margin.support[0])
    one = {
        "path": np.stack(paths),
        "direction": np.stack(directions),
        "support": np.stack(supports),
        "score": problem.scores[0],
        "token": np.array(TOKENS),
    }
    return {name: np.broadcast_to(array, (trials, *array.shape)) for name, array in one.items()}


def paint(data: Data, canvas: Any) -> None:
    """Tokens, the max-margin direction of each, and the paths of W z."""
    axes = canvas.add_subplot()
    token, path = data["token"][0], data["path"][0]
    for k in range(len(path)):
        axes.plot(*path[k].T, color=tone(0), linestyle="-", lw=1.1, alpha=0.8)
        axes.plot(*path[k, 0], color=tone(0), marker="o", ms=3)
    axes.plot([], [], color=tone(0), linestyle="-", marker="o", ms=3, label="W z in training")
    reach = 1.05 * np.abs(path).max()
    for k, direction in enumerate(data["direction"][0]):
        unit = reach * direction / np.linalg.norm(direction)
        axes.plot(
            [0, unit[0]],
            [0, unit[1]],
            color=tone(k + 1),
            lw=2.4,
            label=f"max margin, token {k + 1}",
        )
        axes.plot(*(0.5 * reach * token[k]), mark(k + 1), color=tone(k + 1), ms=11, mec=ink())
        axes.annotate(
            f"token {k + 1}", 0.5 * reach * token[k], textcoords="offset points", xytext=(9, 6)
        )
    axes.set(xlabel="first coordinate of W z", ylabel="second", aspect="equal")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def alt(data: Data) -> str:
    """Where the paths end, in words."""
    path, direction = data["path"][0], data["direction"][0]
    ends = path[:, -1] / np.linalg.norm(path[:, -1], axis=-1, keepdims=True)
    best = direction[0] / np.linalg.norm(direction[0])
    near = int((ends @ best > 0.99).sum())
    return (
        f"The plane of W z with three tokens and the max-margin direction of each. Of {len(path)} "
        f"training paths {near} end along the direction of the best token."
    )


SETTINGS = {"trials": 1, "radius": 0.6, "step_size": 0.05}


@figure(
    "svm.3",
    "in the plane: tokens, their max-margin directions, and where W z goes",
    status="with a stated reading",
    reading="The paper's figure is a cartoon; this one is computed, with three tokens of our own.",
    quick={**SETTINGS, "starts": 6, "steps": 200},
    paper={**SETTINGS, "starts": 12, "steps": 400},
    arrays={
        "path": "(1, starts, steps + 1, 2) W z in training",
        "direction": "(1, 3, 2) max-margin W z of each token",
        "support": "(1, 3, 3) support tokens of each selection",
        "score": "(1, 3) scores y v'x",
        "token": "(1, 3, 2) the tokens",
    },
    no_draws=("step_size", "steps"),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("svm.theorem-4", "svm.theorem-7"),
    size=(7.0, 4.6),
)
def svm_3(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
