"""The stored sweep of planted teachers: ``python -m attnbook.widgets.planted`` renews it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from attnbook.figures.multihead import heads as heads_of
from attnbook.files import atomically
from attnlab import models, optim, problems

DATA: dict[str, Any] = {"n": 400, "T": 5, "d": 3, "trials": 12, "rng": 0}
STEPS = 800
HEADS = (1, 4, 16, 64)
FILE = "planted.npz"


def rules(H: int) -> tuple[optim.Rule, ...]:
    """The settings that the sweep compares, for a number of heads."""
    return (
        optim.GD(H**0.5),
        optim.Momentum(0.3 * H**0.5, 0.9),
        optim.Adam(0.01),
        optim.Adam(0.1),
        optim.Adam(0.5),
    )


def sweep(heads: Sequence[int] = HEADS, which: Sequence[int] = range(5)) -> dict[str, np.ndarray]:
    """Training loss and cosine with the teacher's W in percent: (rules, heads, teachers, times)."""
    problem = problems.planted(**DATA)
    times = heads_of.moments(STEPS)
    align: list[list[np.ndarray]] = []
    loss: list[list[np.ndarray]] = []
    for k in which:
        align.append([])
        loss.append([])
        for H in heads:
            run = optim.train(
                models.MultiHead(heads=H),
                problem,
                rules(H)[k],
                STEPS,
                record=["loss", {"align": heads_of.teacher_alignment}],
                every=times,
            )
            align[-1].append(run.history["align"][1:, :, 0].T)
            loss[-1].append(run.history["loss"][1:].T)
    return {
        "step": np.array(times[1:]),
        "heads": np.array(heads),
        "align": np.round(100.0 * np.array(align)).astype(np.int8),
        "loss": np.array(loss).astype(np.float32),
    }


def stored() -> dict[str, np.ndarray]:
    """The sweep as it was stored."""
    place = resources.files("attnbook.widgets").joinpath("data", FILE)
    with place.open("rb") as file, np.load(file) as archive:
        return {name: archive[name] for name in archive.files}


def main() -> None:
    """Renew the stored sweep."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = sweep()
    np.savez_compressed(buffer, **arrays)
    path = Path(__file__).with_name("data") / FILE
    atomically(path, buffer.getvalue())
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
