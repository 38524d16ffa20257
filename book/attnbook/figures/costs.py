"""What figures cost, as measured: ``python -m benchmarks.figures`` renews the table."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from attnbook.figures import _kept


@cache
def measured() -> dict[str, Any]:
    """Seconds by figure and preset, on two cores, and where they were measured."""
    place = resources.files("attnbook.figures").joinpath("costs.json")
    found: dict[str, Any] = json.loads(place.read_text()) if place.is_file() else {"seconds": {}}
    return found


def told(name: str, preset: str) -> str:
    """What a figure costs, in words."""
    seconds = measured()["seconds"].get(name, {}).get(preset)
    if seconds is None and preset == "quick":
        seconds = _kept.seconds(name)
    if seconds is None:
        return "?"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
