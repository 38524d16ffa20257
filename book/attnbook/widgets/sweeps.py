"""Stored sweeps of the explorables: ``python -m attnbook.widgets.sweeps`` renews them (minutes)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import figures
from attnbook.widgets import stored

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


if __name__ == "__main__":
    stored.save("how_often", how_often())
