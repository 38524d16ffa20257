"""The part of attnlab that a problem set allows, as a folder for the sandbox."""

from __future__ import annotations

import ast
import shutil
import threading
from functools import cache
from pathlib import Path

import attnlab
from attnlab import _checks as check

LOWER = ("problems", "models", "theory", "curvature", "optim", "svm", "ntk")
HERE = Path(attnlab.__file__).parent
PARSING = threading.Lock()
ROOT = '''"""The part of attnlab that this problem set allows."""

import importlib

__version__ = {version!r}
ALLOWED = {allowed!r}


def __getattr__(name):
    if name in ALLOWED or name == "_checks":
        return importlib.import_module(f"attnlab.{{name}}")
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"attnlab.{{name}} may not be used in this problem set; allowed: {{ALLOWED}}")
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
        place = HERE / room
        for path in place.rglob("*.py") if place.is_dir() else [HERE / f"{room}.py"]:
            for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module == "attnlab":
                    wanted += [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                    "attnlab."
                ):
                    wanted.append(str(node.module).split(".")[1])
    return frozenset(
        room for room in found if (HERE / room).exists() or (HERE / f"{room}.py").exists()
    )


def write(rooms: tuple[str, ...], folder: Path) -> Path:
    """A package `attnlab` with the rooms and nothing else."""
    unknown = set(rooms) - set(LOWER)
    if unknown:
        raise check.fail("rooms", f"some of {', '.join(LOWER)}", ", ".join(sorted(unknown)))
    target = folder / "attnlab"
    target.mkdir(parents=True)
    for room in sorted(needs(rooms)):
        source = HERE / room
        if source.is_dir():
            skip = shutil.ignore_patterns("__pycache__", "*.md")
            shutil.copytree(source, target / room, ignore=skip)
        else:
            shutil.copy(HERE / f"{room}.py", target)
    allowed = sorted(needs(rooms) - {"_checks"})
    text = ROOT.format(version=attnlab.__version__, allowed=allowed)
    (target / "__init__.py").write_text(text, encoding="utf-8")
    return folder
