"""Sweeps that take minutes, kept as files beside the explorables that show them."""

from __future__ import annotations

import io
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from attnbook.files import atomically


def load(name: str) -> dict[str, Any]:
    """A sweep as it was stored."""
    place = resources.files("attnbook.widgets").joinpath("data", f"{name}.npz")
    with place.open("rb") as file, np.load(file) as archive:
        return {key: archive[key] for key in archive.files}


def save(name: str, arrays: dict[str, Any]) -> None:
    """Renew a stored sweep."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    path = Path(__file__).with_name("data") / f"{name}.npz"
    path.parent.mkdir(exist_ok=True)
    atomically(path, buffer.getvalue())
    print(f"{path.name}: {path.stat().st_size} bytes")
