"""Lemma 6 at random penalties: Figure 12 of the svm paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import theory
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import ink, mark, tone
from attnbook.figures.svm._concave import draw, scaled, train
from attnlab import checks as check
from attnlab import problems

POOL = 1000  # draws looked at together
PATIENCE = 500  # pools without a single pair after which the range counts as empty


def pairs(
    cell: Cell, trials: int, rng: np.random.Generator
) -> tuple[problems.TokenProblem, np.ndarray]:
    """Tokens and penalties that meet the lemma's condition, kept from uniform penalties."""
    picked: list[problems.TokenProblem] = []
    kept: list[np.ndarray] = []
    found = idle = 0
    while found < trials:
        pool = draw(POOL, cell["T"], rng)
        penalty = rng.uniform(0.0, cell["largest"], POOL)
        low, high = theory.svm.thresholds(pool.scores[:, 0], cell["tau"], printed=True)
        good = np.flatnonzero((low < penalty) & (penalty < high))[: trials - found]
        idle = 0 if good.size else idle + 1
        if idle == PATIENCE:
            raise check.fail("tau", f"a range met within {PATIENCE * POOL} draws", cell["tau"])
        if good.size:
            picked.append(pool.trial(good))
            kept.append(penalty[good])
            found += good.size
    X, z, y, v = (
        np.concatenate([getattr(part, name) for part in picked]) for name in ("X", "z", "y", "v")
    )
    return problems.TokenProblem(X=X, z=z, y=y, v=v), np.concatenate(kept)


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Pairs of tokens and penalty for one bound tau; a long exact run without a filter."""
    drawn, penalty = pairs(cell, trials, rng)
    T = cell["T"]
    start = {"W": rng.uniform(-(T**-0.5), T**-0.5, (trials, T, T))}
    problem = scaled(drawn, penalty)
    s = train(cell, problem, "exact", cell["long_steps"], start)[1]
    closed = theory.svm.water_filling(drawn.scores[:, 0], penalty)
    return {
        "penalty": penalty,
        "count": (s > cell["selected_above"]).sum(axis=-1),
        "closed": (closed > 0.0).sum(axis=-1),
    }


def shares(data: Data) -> np.ndarray:
    """Share of runs with each number of selected tokens, ``(taus, T)``."""
    tokens = np.arange(1, data.settings["T"] + 1)
    return np.asarray((data["count"][..., None] == tokens).mean(axis=1))


def within(data: Data) -> np.ndarray:
    """Share of runs with 2 to tau selected tokens, one number a tau."""
    count = data["count"]
    return np.asarray(((count >= 2) & (count <= data["tau"][:, None])).mean(axis=1))


def paint(data: Data, canvas: Any) -> None:
    """Penalty and count by tau, the counts' distribution, and count by penalty."""
    (penalties, counts), (spread, cloud) = canvas.subplots(2, 2)
    tau = data["tau"]
    for axes, name, title in (
        (penalties, "penalty", "penalty λ that τ allows"),
        (counts, "count", "selected tokens"),
    ):
        middle = data[name].mean(axis=1)
        low, high = np.quantile(data[name], (0.1, 0.9), axis=1)
        axes.plot(tau, middle, "-", color=tone(0), marker=mark(0), label="mean of runs")
        axes.fill_between(tau, low, high, color=tone(0), alpha=0.15, lw=0)
        axes.set(title=title, xlabel="bound τ")
        axes.set_xticks(tau)
    counts.plot(
        tau, data["closed"].mean(axis=1), "--", color=tone(1), marker=mark(1), label="closed form"
    )
    counts.plot(tau, tau, ":", color=ink(), label="τ")
    counts.legend(fontsize=9.5)
    tokens = np.arange(1, data.settings["T"] + 1)
    hatches = ("", "//", "..", "xx", "--", "oo")
    for k, value in enumerate(tau):
        where = tokens + 0.8 * ((k + 0.5) / len(tau) - 0.5)
        look = {"color": tone(k), "hatch": hatches[k % len(hatches)]}
        spread.bar(where, shares(data)[k], width=0.78 / len(tau), label=f"τ = {value}", **look)
        shift = 0.5 * ((k + 0.5) / len(tau) - 0.5)
        line = {"marker": mark(k), "color": tone(k), "linestyle": "", "ms": 3.5, "alpha": 0.7}
        cloud.plot(data["penalty"][k], data["count"][k] + shift, **line)
    spread.set(title="share of runs by count", xlabel="selected tokens", xlim=(0.4, None))
    spread.legend(fontsize=9.5)
    cloud.set(title="run by run", xlabel="penalty λ", ylabel="selected tokens")


def alt(data: Data) -> str:
    """Counts by tau, and how many runs stay within the bound."""
    told = "; ".join(
        f"τ={t}: {count:.2f} tokens ({closed:.2f}), {inside:.0%} within 2 to τ"
        for t, count, closed, inside in zip(
            data["tau"],
            data["count"].mean(axis=1),
            data["closed"].mean(axis=1),
            within(data),
            strict=True,
        )
    )
    return (
        "Penalties that Lemma 6 allows for a bound τ on the number of selected tokens, and what "
        f"long runs select on average (closed form in brackets). {told}."
    )


SETTINGS = {
    "T": 10,
    "step_size": 0.1,
    "selected_above": 1e-3,
    "largest": 2.0,
    "tau": (3, 5, 7, 9),
}


@figure(
    "svm.12",
    "the number of selected tokens stays within the bound of Lemma 6",
    status="with a stated reading",
    reading=(
        "The law of the random penalty is not stated: uniform on (0, 2), kept where the lemma's "
        "condition holds for τ. The filter of Figure 9 would leave next to nothing, so tokens are "
        "counted without it after 10,000 exact steps; a masked token that fades slowly can then "
        "still count, which the closed form beside it shows."
    ),
    quick={**SETTINGS, "trials": 15, "long_steps": 4000},
    paper={**SETTINGS, "trials": 100, "long_steps": 10000},
    grid=("tau",),
    arrays={
        "tau": "(taus,) bound on the number of selected tokens",
        "penalty": "(taus, trials) the random penalty",
        "count": "(taus, trials) tokens above the threshold at the end",
        "closed": "(taus, trials) tokens selected by the closed form",
    },
    no_draws=("step_size", "selected_above", "long_steps"),
    paint=paint,
    alt=alt,
    chunk=50,
    claims=("svm.lemma-6",),
    size=(9.0, 7.0),
)
def svm_12(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
