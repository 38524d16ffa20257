"""A figure of a paper: what is computed, in which pieces, and how it is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnbook import install
from attnbook.figures._plan import Task, piece, plan
from attnbook.figures._verdict import EXTRAS, Verdict
from attnlab import checks as check
from attnlab.checks import Array

STATUSES = ("reproduced", "with a stated reading", "not as described", "measured")
PRESETS = ("quick", "paper")
Cell = Mapping[str, Any]
Arrays = dict[str, Array]
Compute = Callable[[Cell, int, np.random.Generator], Arrays]
Done = tuple[int, Arrays]


@dataclass(frozen=True, eq=False)
class Data:
    r"""What a figure shows, as arrays.

    Args:
        figure: the figure's id.
        preset: ``quick`` or ``paper``, the start of the settings.
        seed: of every draw.
        settings: the numbers used.
        arrays: by name; what each is stands in the figure's ``arrays``.

    Returns:
        A frozen record; ``data["loss"]`` is the array of that name.

    Examples:
        >>> from attnbook import figures
        >>> data = figures.get("svm.3").run()
        >>> data.figure, data.preset, data.seed
        ('svm.3', 'quick', 0)
    """

    figure: str
    preset: str
    seed: int
    settings: dict[str, Any]
    arrays: Arrays = field(repr=False)

    def __getitem__(self, name: str) -> Array:
        check.choice("name", name, self.arrays)
        return self.arrays[name]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in self.arrays.items())
        return f"Data({self.figure}, {self.preset}, seed {self.seed}: {shapes})"


@dataclass(frozen=True, eq=False)
class Figure:
    r"""A figure of a paper, by name.

    Work is a grid of cells, each with ``trials`` independent trials, computed in pieces that draw
    from seeds of their own: results depend neither on the order nor on who computes them.

    Args:
        id: such as ``svm.5``.
        number: as the paper counts.
        words: what it shows, in a line.
        status: ``reproduced``, ``with a stated reading``, ``not as described``, or ``measured``
            where a verdict says what came out.
        reading: what the paper leaves open and how it was read, or what cannot be reproduced.
        quick: settings that take seconds.
        paper: the paper's own numbers.
        arrays: what each stored array is: shape, unit, meaning.
        compute: ``(cell, trials, rng) -> arrays``, each with the trials first.
        grid: settings that list several values, one axis of cells each.
        cells: instead of a grid, ``settings -> list of cells``.
        finish: ``(settings, arrays) -> arrays``, once everything is there.
        paint: draws the data into a matplotlib figure.
        alt: ``data -> str``, what the picture shows, with its numbers.
        chunk: trials a piece.
        claims: ids of the claims it bears on.
        size: of the picture, in inches.
        needs: the extra without which it cannot be computed: ``real``, ``real-train`` or none.
        stand_in: how data, model and size differ from the paper's, where they do.
        verdict: ``data -> Verdict``, whether the run shows what the paper says.
        stored: whether the book keeps a run of the quick preset, which `kept` reads.
        no_draws: settings that decide nothing that is drawn, such as step sizes: changing one
            leaves the data and the starts in place.

    Returns:
        A frozen record; `run` computes, `draw` draws.

    Examples:
        >>> from attnbook import figures
        >>> figures.get("svm.3").number
        'Figure 3'

    Reference: the four papers.
    """

    id: str
    number: str
    words: str
    status: str
    reading: str
    quick: dict[str, Any]
    paper: dict[str, Any]
    arrays: dict[str, str]
    compute: Compute = field(repr=False)
    grid: tuple[str, ...]
    cells: Callable[[Mapping[str, Any]], list[dict[str, Any]]] | None
    finish: Callable[[Mapping[str, Any], Arrays], Arrays] | None
    paint: Callable[[Data, Any], None] = field(repr=False)
    alt: Callable[[Data], str] = field(repr=False)
    chunk: int = 25
    claims: tuple[str, ...] = ()
    size: tuple[float, float] = (7.0, 4.0)
    needs: str = ""
    stand_in: str = ""
    verdict: Callable[[Data], Verdict] | None = field(default=None, repr=False)
    stored: bool = False
    no_draws: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.no_draws:
            check.choice("no_draws", name, set(self.quick) - set(self.grid))
        check.choice("status", self.status, STATUSES)
        if set(self.quick) != set(self.paper):
            raise check.fail("paper", f"the settings of quick, {sorted(self.quick)}", self.paper)
        if self.needs:
            check.choice("needs", self.needs, EXTRAS)
        if (self.status == "measured") != (self.verdict is not None):
            raise check.fail("status", "'measured' with a verdict, and only there", self.status)
        if not (self.reading or self.status in ("reproduced", "measured")):
            raise check.fail("reading", "what was read into the paper", "''")

    def settings(self, preset: str = "quick", **changes: Any) -> dict[str, Any]:
        """The preset's numbers with ``changes``; each must be known and of the preset's kind."""
        check.choice("preset", preset, PRESETS)
        chosen = dict(self.quick if preset == "quick" else self.paper)
        for name, value in changes.items():
            check.choice("setting", name, chosen)
            chosen[name] = _like(name, value, chosen[name])
        return chosen

    @property
    def optional_modules(self) -> dict[str, tuple[str, ...]]:
        """By extra, the modules without which it cannot be computed."""
        return {self.needs: EXTRAS[self.needs]} if self.needs else {}

    def ready(self) -> None:
        """Refuse, in one sentence that says what to install, what cannot be computed here."""
        install.require(f"Computing {self.id}", self.optional_modules)

    def tasks(self, settings: Mapping[str, Any], seed: int, preset: str = "quick") -> list[Task]:
        """The pieces of work; ``preset`` is what the settings began from."""
        began = self.settings(preset)
        no_draws = {name: began[name] for name in self.no_draws}
        cells, trials = self._cells(settings), int(settings["trials"])
        return plan(self.id, cells, trials, self.chunk, seed, no_draws)

    def work(self, task: Task) -> Arrays:
        """Compute one piece."""
        found = piece(self.compute, task)
        for name, array in found.items():
            if array.shape[:1] != (task.trials,):
                raise check.fail(name, f"{task.trials} trials first", f"shape {array.shape}")
        return found

    def run(
        self,
        preset: str = "quick",
        seed: int = 0,
        *,
        each: Callable[[Figure, list[Task]], Iterable[Done]] | None = None,
        **settings: Any,
    ) -> Data:
        """Compute the figure; nothing is drawn and no file is touched.

        Settings by keyword override the preset's. ``each`` maps the work over the pieces (in
        several processes, on a cluster, with a store); by default one after the other.
        """
        chosen = self.settings(preset, **settings)
        self.ready()
        seed = check.count("seed", seed, least=0)
        tasks = self.tasks(chosen, seed, preset)
        found: dict[int, Arrays] = {}
        for index, arrays in (each or _one_by_one)(self, tasks):
            found[index] = arrays
        arrays = self._gather(chosen, tasks, found)
        if set(arrays) != set(self.arrays):
            raise check.fail("arrays", f"those described, {sorted(self.arrays)}", sorted(arrays))
        return Data(self.id, preset, seed, chosen, arrays)

    def draw(self, data: Data, theme: str = "light") -> Any:
        """The picture: a matplotlib figure, with its text alternative as ``gid`` metadata."""
        from attnbook.figures import _style

        if not isinstance(data, Data) or data.figure != self.id:
            raise check.fail("data", f"what run of {self.id} gave", data)
        return _style.picture(self, data, check.choice("theme", theme, _style.THEMES))

    def _cells(self, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self.cells is not None:
            return self.cells(settings)
        fixed = {name: value for name, value in settings.items() if name not in self.grid}
        axes = [settings[name] for name in self.grid]
        return [
            {**fixed, **dict(zip(self.grid, point, strict=True))}
            for point in itertools.product(*axes)
        ]

    def _gather(
        self, settings: Mapping[str, Any], tasks: list[Task], found: dict[int, Arrays]
    ) -> Arrays:
        """Stack the pieces: cells (or the axes of the grid) first, then trials."""
        by_cell: dict[int, list[Arrays]] = {}
        for task in tasks:
            by_cell.setdefault(task.cell_index, []).append(found[task.index])
        arrays: Arrays = {}
        for name in found[0]:
            joined = [np.concatenate([part[name] for part in parts]) for parts in by_cell.values()]
            stacked = np.stack(joined)
            if self.cells is None:
                lead = tuple(len(settings[axis]) for axis in self.grid)
                stacked = stacked.reshape(lead + stacked.shape[1:])
            arrays[name] = stacked
        if self.cells is None:
            for axis in self.grid:
                arrays[axis] = np.asarray(settings[axis])
        return arrays if self.finish is None else self.finish(settings, arrays)

    def __repr__(self) -> str:
        return f"Figure({self.id}: {self.words}; {self.status})"


def _one_by_one(figure: Figure, tasks: list[Task]) -> Iterator[Done]:
    for task in tasks:
        yield task.index, figure.work(task)


def _like(name: str, value: Any, pattern: Any) -> Any:
    """``value`` as the kind of thing that the preset has there."""
    if isinstance(pattern, tuple):
        entries = value if isinstance(value, list | tuple | np.ndarray) else (value,)
        if not len(entries):
            raise check.fail(name, "at least one value", value)
        return tuple(_like(name, entry, pattern[0]) for entry in entries)
    if isinstance(pattern, bool):
        if not isinstance(value, bool):
            raise check.fail(name, "True or False", value)
        return value
    if isinstance(pattern, int):
        return check.count(name, value, least=0 if pattern == 0 else 1)
    if isinstance(pattern, float):
        return check.number(name, value)
    if not isinstance(value, str):
        raise check.fail(name, f"a word such as {pattern!r}", value)
    return value
