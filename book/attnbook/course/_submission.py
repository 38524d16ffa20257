"""What a student handed in, read with distrust: whatever it holds, reading it cannot fail."""

from __future__ import annotations

import ast
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnbook.course import cells
from attnbook.course._library import parse
from attnbook.course._notebook import LAST, build
from attnbook.course._notices import Notices
from attnbook.course._source import ProblemSet
from attnbook.course._words import clean

LARGEST = 20 << 20  # bytes of a notebook
CELLS = 2000
CODE = 200_000  # characters of a cell that is looked at
PROSE = 40_000  # characters of an answer in words
SHOWN = 12_000  # characters of code that feedback shows
OUR_OWN = ("install", "setup", LAST)
SPIES = {"_getframe", "currentframe", "get_objects", "get_referrers", "settrace", "setprofile"}
OURS = ("attnlab", "attnbook")
MODULES = {"np", "numpy", "scipy", "attnlab", "attnbook", "builtins", "math", "unittest"}


@dataclass
class Submission:
    r"""What a student handed in.

    Args:
        cells: code to run, with the names of its cells.
        prose: answers by problem: words, and code to be shown.
        notices: what was odd about the file.
        error: why it could not be read; empty where it could.

    Returns:
        A submission.

    Examples:
        >>> from attnbook import course
        >>> course.Submission(error="not a notebook").cells
        []
    """

    cells: list[tuple[str, str]] = field(default_factory=list)
    prose: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    error: str = ""


def read_submission(path: Path, source: ProblemSet, seed: int, *, look: bool = True) -> Submission:
    r"""A submitted notebook.

    Args:
        path: the file.
        source: the problem set it answers.
        seed: of the course.
        look: whether its code is parsed for what is odd about it.

    Returns:
        A submission; its ``error`` says why a file could not be read.

    Examples:
        >>> from pathlib import Path
        >>> from attnbook import course
        >>> course.read_submission(Path("none.ipynb"), None, 0).error
        'no notebook: none.ipynb'
    """
    found = Submission()
    notebook = load(path, found)
    if notebook is None:
        return found
    expected = {cell["id"]: cell for cell in build(source, seed)["cells"]}
    notices = Notices()
    seen: dict[str, int] = {}
    ids: dict[str, int] = {}
    found.cells.append(("setup", expected["setup"]["source"]))
    for number, cell in enumerate(notebook):
        name = grade_id(cell)
        text = joined(cell)
        ids[str(cell.get("id"))] = ids.get(str(cell.get("id")), 0) + 1
        if name:
            seen[name] = seen.get(name, 0) + 1
        kind = cell.get("cell_type")
        if kind == "markdown" and name in expected and expected[name]["cell_type"] == "markdown":
            found.prose[name] = clean(text, PROSE, lines=True)
            if len(text) > PROSE:
                cut = f"cell {name}: {len(text):,} characters, cut at {PROSE:,}"
                notices.add("answers that were cut", cut)
        if kind != "code":
            continue
        if name in OUR_OWN or (name.endswith("-check") and name in expected):
            if name != "install" and text.strip() != expected[name]["source"].strip():
                notices.add("edited cells", f"cell {name} was edited: marking uses its own")
            continue
        found.cells.append((name or str(number + 1), text))
        if name in expected:
            found.prose[name] = clean(text, SHOWN, lines=True)
        if look:
            for sort, words in odd(text, name or str(number + 1), source.rooms):
                notices.add(sort, words)
    for name, cell in expected.items():
        if name not in seen and (
            name.endswith("-check") or cell["metadata"]["nbgrader"]["solution"]
        ):
            notices.add("missing cells", f"cell {name} is missing")
    for name, k in seen.items():
        if k > 1:
            notices.add("doubled cells", f"cell {name} is there {k} times")
    for name, k in ids.items():
        if k > 1 and name != "None":
            notices.add("doubled ids", f"the cell id {name[:40]!r} is there {k} times")
    if not look:
        notices.add("not parsed", "its code could not be parsed in the time and memory there is")
    found.notices = notices.lines()
    return found


def load(path: Path, found: Submission) -> list[dict[str, Any]] | None:
    """The cells of a file, or None and the reason."""
    try:
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode):
            found.error = "not a regular file (a symbolic link, or a device): not opened"
            return None
        if about.st_size > LARGEST:
            found.error = f"a notebook of {about.st_size:,} bytes: too large"
            return None
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
        cells = notebook["cells"]
        if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
            raise TypeError
    except FileNotFoundError:
        found.error = f"no notebook: {path.name}"
        return None
    except RecursionError:
        found.error = "not a notebook: nested too deep"
        return None
    except (ValueError, KeyError, TypeError) as error:
        found.error = f"not a notebook ({type(error).__name__}): not valid JSON, or without cells"
        return None
    except OSError as error:
        found.error = f"could not be read ({error.strerror})"
        return None
    if len(cells) > CELLS:
        found.error = f"{len(cells)} cells: more than {CELLS}"
        return None
    return cells


def joined(cell: dict[str, Any]) -> str:
    """The source of a cell as one text."""
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def grade_id(cell: dict[str, Any]) -> str:
    """The name of a cell: nbgrader's, or its own id where a platform took the metadata away."""
    about = cell.get("metadata")
    told = about.get("nbgrader") if isinstance(about, dict) else None
    name = told.get("grade_id") if isinstance(told, dict) else None
    return clean(name or cell.get("id") or "", 80)


def odd(text: str, name: str, rooms: tuple[str, ...]) -> list[tuple[str, str]]:
    """Things in a cell that an answer does not need: their kinds and words, never punished."""
    if len(text) > CODE:
        return [("not parsed", f"cell {name}: {len(text):,} characters of code: not parsed")]
    try:
        return list(dict.fromkeys(seen_in(text, name, rooms)))
    except (RecursionError, MemoryError):
        return [("not parsed", f"cell {name}: its code is nested too deep to be looked at")]


def seen_in(text: str, name: str, rooms: tuple[str, ...]) -> list[tuple[str, str]]:
    """The same, where the code can be walked."""
    told: list[tuple[str, str]] = []
    try:
        tree = cells.tree(text, parse)
    except (SyntaxError, ValueError):
        return told
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in ("__eq__", "__array__", "__reduce__"):
            told.append((f"defines {node.name}", f"cell {name}: defines {node.name}"))
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and root(target) in MODULES:
                told.append(("changes of modules", f"cell {name}: changes {ast.unparse(target)}"))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            told.append(("uses setattr", f"cell {name}: uses setattr"))
        if isinstance(node, ast.Attribute) and node.attr in SPIES:
            told.append((f"uses {node.attr}", f"cell {name}: uses {node.attr}"))
        words: list[str] = []
        module = str(node.module) if isinstance(node, ast.ImportFrom) else ""
        if module.split(".")[0] in OURS and isinstance(node, ast.ImportFrom):
            words = [module] if "." in module else [f"{module}.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            words = [name for name in names if "." in name and name.split(".")[0] in OURS]
        for word in words:
            if word.split(".")[1] not in rooms:
                not_allowed = f"uses {word}, which this set does not allow"
                told.append(("rooms that are not allowed", f"cell {name}: {not_allowed}"))
    return told


def root(node: ast.expr) -> str:
    """The name at the left end of a.b.c."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
