"""Global convergence by n and by T: Figure 6 of the svm paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures.svm._designs import cells, finish, sides, titles
from attnbook.figures.svm._global import SETTINGS, sweep

GLOBAL = 2
NAMES = ("W", "K and Q")


def share(data: Data) -> np.ndarray:
    """Share of trials that find the global direction, ``(designs, dims, forms)``."""
    return np.asarray((data["kind"] == GLOBAL).mean(axis=2))


def paint(data: Data, canvas: Any) -> None:
    """Two panels; W solid, K and Q dashed; bands are one standard error of a share."""
    left, right = canvas.subplots(1, 2, sharey=True)
    found, d = share(data), data["d"]
    error = np.sqrt(found * (1.0 - found) / data["kind"].shape[2])
    for axes, picked, title in zip((left, right), sides(data), titles(data), strict=True):
        for j, (k, label) in enumerate(picked):
            for form, dash in enumerate(("-", "--")):
                middle, width = found[k, :, form], error[k, :, form]
                name = f"{label}, {NAMES[form]}"
                axes.plot(d, middle, dash, color=tone(j), marker=mark(j), label=name)
                axes.fill_between(
                    d, middle - width, middle + width, color=tone(j), alpha=0.13, lw=0
                )
        axes.set(xlabel="token dimension d", title=title, ylim=(-0.02, 1.04))
        axes.legend(fontsize=9.5, loc="lower right")
    left.set_ylabel("share that is global")


def alt(data: Data) -> str:
    """The shares at both ends, in words."""
    found, d = share(data), data["d"]
    told = "; ".join(
        f"n={n}, T={T}: W {found[k, 0, 0]:.0%} to {found[k, -1, 0]:.0%}, "
        f"K and Q {found[k, 0, 1]:.0%} to {found[k, -1, 1]:.0%}"
        for k, (n, T) in enumerate(data["design"])
    )
    return f"Share of trials that reach the global direction, from d={d[0]} to d={d[-1]}. {told}."


@figure(
    "svm.6",
    "how the share of global convergence grows with d, and falls with n and T",
    status="with a stated reading",
    reading=(
        "The dimensions and the number of trials are not stated; loss, threshold (.99) and 2,000 "
        "steps are read as in Figures 2 and 5."
    ),
    quick={
        **SETTINGS,
        "base": 5,
        "n": (5, 10),
        "T": (5, 10),
        "d": (5, 10, 20),
        "trials": 10,
        "steps": 1000,
    },
    paper={
        **SETTINGS,
        "base": 5,
        "n": (5, 10, 20),
        "T": (5, 10, 20),
        "d": (5, 10, 15, 20, 30, 40, 60),
        "trials": 100,
        "steps": 2000,
    },
    cells=cells,
    finish=finish,
    arrays={
        "design": "(designs, 2) n and T",
        "d": "(dims,) token dimension",
        "kind": "(designs, dims, trials, forms) 0 not local, 1 local, 2 global; forms W, KQ",
        "correlation": "(designs, dims, trials, forms) cosine with the direction of its tokens",
        "feasible": "(designs, dims, trials) whether the optimal tokens can be separated",
        "mean_margin": "(designs, dims, trials) of the optimal tokens' SVM; NaN where infeasible",
        "largest_margin": "(designs, dims, trials) likewise: 1 where all tokens are support tokens",
    },
    no_draws=("step_size", "loss", "steps", "threshold"),
    paint=paint,
    alt=alt,
    chunk=25,
    claims=("svm.theorem-1", "svm.conjecture-1"),
    size=(9.0, 4.4),
)
def svm_6(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """W, and K with Q."""
    return sweep(cell, trials, rng, ("W", "KQ"))
