"""Costs of the figures, end to end, and what two workers gain."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from attnbook import figures
from attnbook.figures._output import versions
from attnbook.files import cores
from benchmarks import timing


def costs(presets: tuple[str, ...] = ("quick",), names: tuple[str, ...] = ()) -> None:
    """Measure every figure and renew ``costs.json`` of `figures`, which the listing prints."""
    place = Path(figures.__file__).with_name("costs.json")
    record = json.loads(place.read_text()) if place.is_file() else {"seconds": {}}
    for figure in figures.all():
        if figure.needs or (names and figure.id not in names):
            continue  # what is measured on real data says its cost itself
        for preset in presets:
            start = time.perf_counter()
            figure.run(preset, each=figures.mapper(workers=cores()))
            seconds = time.perf_counter() - start
            record["seconds"].setdefault(figure.id, {})[preset] = round(seconds, 1)
            print(f"{figure.id} {preset}: {seconds:.1f} s", flush=True)
            record |= {"machine": timing.machine(), "workers": cores(), "versions": versions()}
            place.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    # python -m benchmarks.figures quick paper [ids]
    words = sys.argv[1:]
    chosen = tuple(word for word in words if word in ("quick", "paper")) or ("quick", "paper")
    costs(chosen, tuple(word for word in words if word not in ("quick", "paper")))
