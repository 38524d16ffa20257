"""Interleaved timing, and the table that comes of it."""

from __future__ import annotations

import datetime
import os
import platform
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass(frozen=True)
class Contender:
    """Something to time, and how many units of work one call does."""

    run: Callable[[], object]
    units: float


@dataclass(frozen=True)
class Row:
    """One comparison: ours against theirs, and the least ratio asked for."""

    work: str
    against: str
    unit: str
    ours: float
    theirs: float
    least: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.theirs / self.ours

    @property
    def reached(self) -> bool:
        """Whether the ratio asked for was reached."""
        return self.ratio >= self.least


def side_by_side(contenders: dict[str, Contender], repeats: int = 5) -> dict[str, float]:
    """Seconds per unit: the minimum over repeats, contenders taking turns so that a slow spell
    of the machine falls on all of them; every contender warms up once.
    """
    for contender in contenders.values():
        contender.run()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender.run()
            best[name] = min(best[name], (time.perf_counter() - start) / contender.units)
    return best


def peak(run: Callable[[], object]) -> float:
    """The most memory that one call holds at a time, in kB, as Python's allocators count it.

    NumPy's arrays are counted, the own memory of compiled solvers is not: what is said of them is
    a lower bound. The first call is not counted, for it fills caches.
    """
    run()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / 1e3
    finally:
        tracemalloc.stop()


def machine() -> str:
    """The processor, the threads and the versions, in one line."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        name = models[0] if models else name
    found = []
    for package in ("numpy", "scipy", "torch", "jax", "cvxpy"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return (
        f"{name}, {os.cpu_count()} cores, 1 thread used; Python {platform.python_version()}; "
        + ", ".join(found)
        + f"; {datetime.date.today().isoformat()}"
    )


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table: what was compared, how many times faster, and the numbers."""
    lines = ["| work | against | ratio | asked for | attnlab and theirs |", "|---|---|---|---|---|"]
    for row in rows:
        asked = f"{row.least:.2g}" if row.least < 1.0 else f"{row.least:,g}"
        lines.append(
            f"| {row.work} | {row.against} | **{_digits(row.ratio)}×** "
            f"| {asked}×{'' if row.reached else ': missed'} "
            f"| {_digits(row.ours)} and {_digits(row.theirs)} {row.unit} |"
        )
    return "\n".join(lines)


def _digits(x: float) -> str:
    """Three significant digits, never an exponent."""
    return f"{float(f'{x:.3g}'):,.0f}" if x >= 100.0 else f"{float(f'{x:.3g}'):.6g}"
