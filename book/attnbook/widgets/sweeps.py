"""Stored sweeps of the explorables: ``python -m attnbook.widgets.sweeps`` renews them (minutes)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import figures
from attnbook.widgets import stored
from attnlab import problems, svm

SETTINGS: dict[str, Any] = {"trials": 250, "steps": 2000, "d": (2, 4, 6, 8, 10, 15, 20)}
GRID = {"n": (3, 5, 10), "T": (3, 5, 10)}


def how_often(**changes: Any) -> dict[str, np.ndarray]:
    """Figure 5 of the svm paper over a grid of n and T: kinds, proxy and B.1 of every trial."""
    settings = {**SETTINGS, **GRID, **changes}
    n, T = settings.pop("n"), settings.pop("T")
    kinds, support, exact = [], [], []
    for rows in n:
        for tokens in T:
            data = figures.get("svm.5").run("paper", 0, n=rows, T=tokens, **settings)
            kinds.append(data["kind"].astype(np.int8))
            support.append(data["mean_margin"] < 1.1)  # the paper's proxy of B.1
            exact.append(data["largest_margin"] <= 1.0 + 1e-6)
    lead = (len(n), len(T))
    return {
        "n": np.array(n),
        "T": np.array(T),
        "d": np.array(settings["d"]),
        "kind": np.reshape(np.stack(kinds), (*lead, *kinds[0].shape)),
        "support": np.reshape(np.stack(support), (*lead, *support[0].shape)),
        "exact": np.reshape(np.stack(exact), (*lead, *exact[0].shape)),
    }


WIDTHS: dict[str, Any] = {
    "n": (1, 2, 3, 4, 5, 6),
    "T": (2, 3, 4, 5, 6, 7),
    "d": (1, 2, 3, 4, 5, 6, 7),
}


def feasible(trials: int = 100, rng: int = 0) -> dict[str, np.ndarray]:
    """How often a max-margin W exists, for the best tokens and for a selection by chance.

    Tokens, queries and head are Gaussian: on a sphere every token would be at a corner.
    """
    n, T, d = (WIDTHS[key] for key in ("n", "T", "d"))
    draw = np.random.default_rng(rng)
    found = np.zeros((2, len(n), len(T), len(d)), dtype=np.int32)
    for place in np.ndindex(found.shape[1:]):
        rows, tokens, width = n[place[0]], T[place[1]], d[place[2]]
        drawn = problems.TokenProblem(
            X=draw.standard_normal((trials, rows, tokens, width)),
            z=draw.standard_normal((trials, rows, width)),
            y=np.ones((trials, rows)),
            v=draw.standard_normal((trials, width)),
        )
        chance = draw.integers(0, tokens, (trials, rows))
        for k, chosen in enumerate((None, chance)):
            status = svm.attention_svm(drawn, chosen).status
            found[(k, *place)] = np.sum(status == "optimal")
    return {
        "n": np.array(n),
        "T": np.array(T),
        "d": np.array(d),
        "trials": np.array([trials]),
        "found": found,
    }


if __name__ == "__main__":
    stored.save("how_often", how_often())
    stored.save("feasible", feasible())
