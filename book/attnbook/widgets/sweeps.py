"""Stored sweeps of the explorables: ``python -m attnbook.widgets.sweeps`` renews them (minutes)."""

from __future__ import annotations

import io
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from attnbook import figures
from attnbook.files import atomically

SETTINGS: dict[str, Any] = {"trials": 250, "steps": 2000, "d": (2, 4, 6, 8, 10, 15, 20)}
GRID = {"n": (3, 5, 10), "T": (3, 5, 10)}
FILE = "how_often.npz"


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


def stored() -> dict[str, np.ndarray]:
    """The sweep as it was stored."""
    place = resources.files("attnbook.widgets").joinpath("data", FILE)
    with place.open("rb") as file, np.load(file) as archive:
        return {name: archive[name] for name in archive.files}


def main() -> None:
    """Renew the stored sweep."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = how_often()
    np.savez_compressed(buffer, **arrays)
    path = Path(__file__).with_name("data") / FILE
    path.parent.mkdir(exist_ok=True)
    atomically(path, buffer.getvalue())
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
