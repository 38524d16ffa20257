"""Cells as people write them in a notebook: its own commands, and pictures, cost no answer.

This file is also mounted into the sandbox, so it imports nothing of attnlab.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import re
import traceback
import types
from collections.abc import Callable
from typing import Any

SHOWN = (
    "matplotlib",
    "mpl_toolkits",
    "seaborn",
    "plotly",
    "IPython",
    "ipywidgets",
    "anywidget",
    "tqdm",
)  # fmt: skip  (for eyes, not for answers)
PYTHON = ("time", "timeit", "capture", "prun")  # commands for a whole cell that is Python
COMMANDS = 20  # of a cell that are looked for one by one
COMMAND = re.compile(r"^([ \t]*)([\w.,\[\] \t]+=)?[ \t]*([%!].*|\?.*|[^#]*\?)$")


class NotShownError(Exception):
    """The cell needs what a picture would give back."""


class Absent(types.ModuleType):
    """What shows things: it may be used, and does nothing."""

    def __call__(self, *given: Any, **about: Any) -> Any:
        """As good as nothing: tqdm(range(9)), display(x), interact(f), subplots(2, 2)."""
        root, word = self.__name__.split(".")[0], self.__name__.rpartition(".")[2]
        if word == "subplots":
            return Absent("matplotlib.figure"), axes(*given, **about)
        if word == "trange":
            return range(*given)
        if given and (root == "tqdm" or word == "display" or callable(given[0])):
            return given[0]
        return Absent(f"{self.__name__}()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")

    def __enter__(self) -> Absent:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""

    def __getitem__(self, _: object) -> Absent:
        return self

    def __setitem__(self, *_: object) -> None:
        """Nothing is kept."""

    def __mro_entries__(self, _: object) -> tuple[()]:
        return ()

    def __iter__(self) -> Any:
        raise NotShownError(f"{self.__name__} is not there when this is marked")

    __float__ = __int__ = __len__ = __iter__


def axes(nrows: int = 1, ncols: int = 1, *, squeeze: bool = True, **_: Any) -> Any:
    """What `subplots` gives beside the figure: as many as were asked for."""
    import numpy as np

    grid = np.empty((nrows, ncols), dtype=object)
    for place in np.ndindex(grid.shape):
        grid[place] = Absent("matplotlib.axes")
    return (grid.item() if grid.size == 1 else grid.squeeze()) if squeeze else grid


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for what a notebook shows things with."""

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """Only those of the list, and what is below them."""
        if name.split(".")[0] not in SHOWN:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """A stand-in."""
        return Absent(spec.name)

    def exec_module(self, _: types.ModuleType) -> None:
        """There is nothing to run."""


def watched(function: Callable[..., Any], came: list[Any]) -> Callable[..., Any]:
    """The same function; what it gives to others is kept, what it gives to itself is not."""
    inside = [0]

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        inside[0] += 1
        try:
            found = function(*given, **named)
        finally:
            inside[0] -= 1
        if not inside[0]:
            came.append(found)
        return found

    return call


def plain(source: str) -> str:
    """A cell without commands at the start of lines; Python's `% n` on a line of its own stays."""
    return re.sub(r"^([ \t]*)(%%?|!!?)(?=[A-Za-z./])", r"\1pass  # ", source, flags=re.M)


def tree(source: str, parse: Callable[[str], ast.Module] = ast.parse) -> ast.Module:
    """A cell as Python: as it stands if it is, without the notebook's commands otherwise."""
    whole = re.match(r"\s*%%(\w+)", source)
    if whole and whole[1] not in PYTHON:
        return ast.Module([], [])  # words for a shell, a browser, a file
    try:
        return parse(source)
    except SyntaxError:
        lines = plain(source).split("\n")
    for _ in range(COMMANDS):  # x = !ls, f?: where Python stumbles, and nowhere else
        try:
            return parse("\n".join(lines))
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            found = COMMAND.match(lines[at]) if 0 <= at < len(lines) else None
            if found is None:
                raise
            lines[at] = found[1] + (f"{found[2]} []" if found[2] else "pass")
    return parse("\n".join(lines))


def run(source: str, name: str, space: dict[str, Any]) -> None:
    """Run a cell; a statement that needs what a picture gives back is left out."""
    rest = tree(source, lambda text: ast.parse(text, name)).body
    while rest:
        try:
            exec(compile(ast.Module(rest, []), name, "exec"), space)
        except NotShownError as error:
            frames = traceback.extract_tb(error.__traceback__)
            at = next(frame.lineno or 0 for frame in frames if frame.filename == name)
            rest = [one for one in rest if one.lineno > at]
        else:
            return
