"""The rank of max-margin directions: Figure 4 of the svm paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures.svm._designs import cells, finish, sides, titles
from attnlab import problems, svm

NORMS = ("fro", "nuc")
NAMES = ("Frobenius", "nuclear")


def mean_rank(data: Data) -> np.ndarray:
    """Mean over the feasible trials, ``(designs, dims, norms)``; NaN where there are none."""
    count = np.isfinite(data["rank"]).sum(axis=2)
    total = np.nansum(data["rank"], axis=2)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def paint(data: Data, canvas: Any) -> None:
    """Two panels; solid is Frobenius, dashed nuclear; bands are the range over trials."""
    left, right = canvas.subplots(1, 2, sharey=True)
    middle, d = mean_rank(data), data["d"]
    for axes, picked, title in zip((left, right), sides(data), titles(data), strict=True):
        for j, (k, label) in enumerate(picked):
            for norm, dash in enumerate(("-", "--")):
                held = np.isfinite(data["rank"][k, :, :, norm])
                low = np.where(held, data["rank"][k, :, :, norm], np.inf).min(axis=1)
                high = np.where(held, data["rank"][k, :, :, norm], -np.inf).max(axis=1)
                some = held.any(axis=1)
                axes.plot(
                    d,
                    middle[k, :, norm],
                    dash,
                    color=tone(j),
                    marker=mark(j),
                    label=f"{label}, {NAMES[norm]}",
                )
                axes.fill_between(d[some], low[some], high[some], color=tone(j), alpha=0.15, lw=0)
        axes.set(xlabel="token dimension d", title=title)
        axes.legend(fontsize=9.5, loc="upper left")
    left.set_ylabel("rank")


def alt(data: Data) -> str:
    """The ranks at the largest dimension, in words."""
    middle, at = mean_rank(data), int(data["d"][-1])
    told = "; ".join(
        f"n={n}, T={T}: Frobenius {fro:.1f}, nuclear {nuc:.1f}"
        if np.isfinite(fro)
        else f"n={n}, T={T}: no feasible trial"
        for (n, T), (fro, nuc) in zip(data["design"], middle[:, -1], strict=True)
    )
    over = over_bound(data)
    bound = f"{over} ranks exceed" if over else "No rank exceeds"
    return (
        f"Mean rank of the max-margin directions by token dimension. At d={at}: {told}. {bound} "
        "min(n, d)."
    )


def over_bound(data: Data) -> int:
    """How many ranks exceed min(n, d)."""
    bound = np.minimum(data["design"][:, :1], data["d"])[..., None, None]
    return int((np.nan_to_num(data["rank"]) > bound).sum())


SETTINGS = {"base": 5, "gap": 0.0}


@figure(
    "svm.4",
    "the rank of the max-margin directions by token dimension, in both norms",
    status="with a stated reading",
    reading=(
        "Dimensions are those of the public code; trials whose optimal tokens no W separates are "
        "left out. The text's bound max(n, d) is a slip for min(n, d): no rank exceeds that. "
        "Singular values count above 1e-6 of the largest."
    ),
    quick={
        **SETTINGS,
        "n": (5, 10, 15),
        "T": (5, 10, 15),
        "d": (2, 5, 10, 20),
        "trials": 6,
    },
    paper={
        **SETTINGS,
        "n": (5, 10, 15),
        "T": (5, 10, 15),
        "d": (1, 2, 3, 4, 5, 10, 15, 20),
        "trials": 100,
    },
    cells=cells,
    finish=finish,
    arrays={
        "design": "(designs, 2) n and T",
        "d": "(dims,) token dimension",
        "rank": "(designs, dims, trials, norms) rank, Frobenius and nuclear; NaN where infeasible",
        "feasible": "(designs, dims, trials) whether the optimal tokens can be separated",
    },
    paint=paint,
    alt=alt,
    chunk=25,
    claims=("svm.lemma-1",),
    size=(9.0, 4.4),
)
def svm_4(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Solve in both norms."""
    drawn = problems.sphere(
        n=cell["n"], T=cell["T"], d=cell["d"], trials=trials, min_gap=cell["gap"], rng=rng
    )
    solved = [svm.attention_svm(drawn, norm=norm) for norm in NORMS]
    fine = [np.asarray(margin.status == "optimal") for margin in solved]
    ranks = [np.where(ok, m.rank, np.nan) for ok, m in zip(fine, solved, strict=True)]
    return {"rank": np.stack(ranks, axis=-1), "feasible": fine[0]}
