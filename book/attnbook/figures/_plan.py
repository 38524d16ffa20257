"""Work in pieces: every piece draws from a seed of its own, whoever computes it and when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook.files import one_thread
from attnlab.checks import Array


@dataclass(frozen=True)
class Task:
    """Some trials of one cell.

    ``key`` names cell, seed and place among the trials: a piece keeps its key, and its result,
    when other cells or more trials are asked for. ``draws`` is the key of the same piece as the
    preset has it, but for what decides draws: two pieces with the same ``draws`` draw alike.
    """

    index: int
    cell_index: int
    cell: Mapping[str, Any]
    start: int
    trials: int
    seed: int
    key: str
    draws: str


def plan(
    figure: str,
    cells: list[dict[str, Any]],
    trials: int,
    chunk: int,
    seed: int,
    no_draws: Mapping[str, Any] | None = None,
) -> list[Task]:
    """Cut the trials of each cell into pieces of ``chunk``.

    ``no_draws`` has the preset's values of settings that decide nothing that is drawn, such as a
    step size: where another value is asked for, the piece draws what it draws with the preset's.
    """
    tasks: list[Task] = []
    for cell_index, cell in enumerate(cells):
        own = {name: value for name, value in cell.items() if name != "trials"}
        preset = {name: value for name, value in (no_draws or {}).items() if name in own}
        for start in range(0, trials, chunk):
            size = min(chunk, trials - start)
            key = _digest([figure, own, seed, start, size])
            draws = _digest([figure, own | preset, seed, start, size])
            tasks.append(Task(len(tasks), cell_index, own, start, size, seed, key, draws))
    return tasks


def _digest(named: list[Any]) -> str:
    text = json.dumps(named, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a setting must be a number or a word, not {type(value).__name__}")


def generator(task: Task) -> np.random.Generator:
    """The draws of a piece, from the seed and all that decides draws."""
    words = [int(task.draws[k : k + 8], 16) for k in range(0, 32, 8)]
    return np.random.default_rng(np.random.SeedSequence([task.seed, *words]))


def piece(
    compute: Callable[[Mapping[str, Any], int, np.random.Generator], dict[str, Array]],
    task: Task,
) -> dict[str, Array]:
    """Compute one piece on one thread, so that the last bits are the same everywhere."""
    with one_thread():
        found = compute(task.cell, task.trials, generator(task))
    return {name: np.asarray(array) for name, array in found.items()}
