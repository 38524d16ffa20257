"""The part of attnlab and attnbook that a problem set allows, as a folder for the sandbox."""

from __future__ import annotations

import ast
import shutil
import threading
from functools import cache
from pathlib import Path

import attnlab
from attnlab import checks as check

LOWER = ("problems", "models", "theory", "curvature", "optim", "svm", "ntk")
UNDER = ("checks", "_blas")  # what rooms stand on
HOMES = {room: Path(attnlab.__file__).parent for room in (*LOWER, *UNDER) if room != "theory"}
HOMES["theory"] = Path(__file__).parents[1]  # the one room of the book that answers may use
PARSING = threading.Lock()
ROOT = '''"""The part of attnlab that this problem set allows."""

import importlib

__version__ = {version!r}
ALLOWED = {allowed!r}


def __getattr__(name):
    if name in ALLOWED:
        return importlib.import_module(f"{package}.{{name}}")
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        f"{package}.{{name}} may not be used in this problem set; allowed: {{ALLOWED}}"
    )
'''


def parse(text: str) -> ast.Module:
    """Python as a tree; one thread at a time, because Python 3.11 counts their depths together."""
    with PARSING:
        return ast.parse(text)


@cache
def needs(rooms: tuple[str, ...]) -> frozenset[str]:
    """The rooms, and what they import from below."""
    wanted, found = list(rooms), set[str]()
    while wanted:
        room = wanted.pop()
        if room in found:
            continue
        found.add(room)
        for path in sources(room):
            for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ImportFrom):
                    continue
                module = str(node.module)
                if module in ("attnlab", "attnbook"):
                    wanted += [alias.name for alias in node.names if alias.name in HOMES]
                elif module.startswith(("attnlab.", "attnbook.")):
                    wanted.append(module.split(".")[1])
    return frozenset(found)


def sources(room: str) -> list[Path]:
    """Files of a room, which is a folder or a module."""
    place = HOMES[room] / room
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


def write(rooms: tuple[str, ...], folder: Path) -> Path:
    """Packages `attnlab` and `attnbook` with the rooms and nothing else."""
    unknown = set(rooms) - set(LOWER)
    if unknown:
        raise check.fail("rooms", f"some of {', '.join(LOWER)}", ", ".join(sorted(unknown)))
    wanted = needs(rooms)
    for package in ("attnlab", "attnbook"):
        target = folder / package
        inside = sorted(room for room in wanted if HOMES[room].name == package)
        target.mkdir(parents=True)
        for room in inside:
            source = HOMES[room] / room
            if source.is_dir():
                skip = shutil.ignore_patterns("__pycache__", "*.md")
                shutil.copytree(source, target / room, ignore=skip)
            else:
                shutil.copy(source.with_suffix(".py"), target)
        allowed = [room for room in inside if not room.startswith("_")]
        text = ROOT.format(package=package, version=attnlab.__version__, allowed=allowed)
        (target / "__init__.py").write_text(text, encoding="utf-8")
    return folder
