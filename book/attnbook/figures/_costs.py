"""What figures cost, as measured: ``python -m benchmarks.figures`` renews the table."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def measured() -> dict[str, Any]:
    """Seconds by figure and preset, on two cores, and where they were measured."""
    place = resources.files("attnbook.figures").joinpath("costs.json")
    found: dict[str, Any] = json.loads(place.read_text()) if place.is_file() else {"seconds": {}}
    return found


def told(name: str) -> tuple[str, str]:
    """The two costs of a figure, in words."""
    seconds = measured()["seconds"].get(name, {})
    return _words(seconds.get("quick")), _words(seconds.get("paper"))


def _words(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
