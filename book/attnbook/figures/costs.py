"""What figures cost, as measured: ``python -m benchmarks.figures`` renews the table."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def seconds(name: str, preset: str) -> float | None:
    """What a figure costs; None if it was never measured."""
    found = measured()["seconds"].get(name, {}).get(preset)
    if found is None and preset == "quick":
        found = _kept.seconds(name)
    return None if found is None else float(found)


def told(name: str, preset: str) -> str:
    """What a figure costs, for a table."""
    found = seconds(name, preset)
    if found is None:
        return "?"
    return f"{found:.1f} s" if found < 100 else f"{found / 60:.1f} min"


def estimate(names: Sequence[str], preset: str) -> str:
    """About how long some figures take together, as a sentence."""
    known = [found for name in names if (found := seconds(name, preset)) is not None]
    missing, total = len(names) - len(known), sum(known)
    what = names[0] if len(names) == 1 else f"{len(names)} figures"
    if not known:
        return f"{what}, preset {preset}: how long this takes has not been measured"
    if total < 5:
        duration = "a few seconds"
    elif total < 100:
        duration = f"about {total:.0f} seconds"
    else:
        duration = f"about {total / 60:.0f} minutes"
    rest = f", and {missing} that were never timed" if missing else ""
    return f"{what}, preset {preset}: {duration}{rest}"
