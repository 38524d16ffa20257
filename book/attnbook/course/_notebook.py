"""Student versions, solutions and submissions of a problem set, as notebooks."""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from typing import Any

from attnbook.course._source import Problem, ProblemSet, fill, variant
from attnbook.install import requirement
from attnlab import checks as check

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
ABOUT = "attnlab"  # what the notebook says of itself, in its metadata
STUB = 'raise NotImplementedError("yours to write")'
PROSE = "*Your answer here.*"
PACKAGE = requirement("course", "wheel")
INSTALL = """# Run this first: it installs what the notebook needs, where it is missing.
try:
    import attnlab
except ImportError:
    %pip install --quiet "WHERE"
"""
LAST = "hand-in"
HAND_IN = """## Before you hand in

Run all cells, then the one below: it says what of your answers can be handed over as it is. The
same, for the saved file and in the sandbox of marking, says `attnlab course check NOTEBOOK.ipynb`
in a terminal. Neither says whether an answer is right.
"""
HIDDEN = "# More is tested when this is marked: other inputs, edge cases, extreme values.\n"


def text_cell(name: str, source: str, **grading: Any) -> dict[str, Any]:
    """A cell of words."""
    return {
        "cell_type": "markdown",
        "id": name,
        "metadata": {"nbgrader": nbgrader(name, **grading)},
        "source": source.strip(),
    }


def code_cell(name: str, source: str, **grading: Any) -> dict[str, Any]:
    """A cell of code."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {"nbgrader": nbgrader(name, **grading)},
        "outputs": [],
        "source": source.strip(),
    }


def nbgrader(
    name: str, *, solution: bool = False, points: float | None = None, locked: bool = True
) -> dict[str, Any]:
    """What nbgrader keeps with a cell."""
    told = {
        "grade": points is not None,
        "grade_id": name,
        "locked": locked and not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    return told | ({"points": points} if points is not None else {})


def without(source: str) -> str:
    """A solution cell with its solution taken out."""
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        if line.strip() == BEGIN:
            inside = True
            lines.append(line[: len(line) - len(line.lstrip())] + STUB)
        elif line.strip() == END:
            inside = False
        elif not inside:
            lines.append(line)
    if inside or BEGIN not in source:
        raise check.fail("solution", f"lines between {BEGIN} and {END}", source[:60])
    return "\n".join(lines)


def head(one: Problem, values: dict[str, Any]) -> str:
    """The words of a problem, with what an instructor and a student want to know first."""
    kind = "" if one.answer else " · marked by a person"
    facts = f"{one.points:g} points · {one.difficulty} · about {one.minutes} minutes{kind}"
    if one.parts:
        facts += "*\n\n*Parts: " + ", ".join(f"{part} {most:g}" for part, most in one.parts.items())
    return f"## {one.title}\n\n*{facts}*\n\n**You learn** {one.goal}\n\n{fill(one.text, values)}"


def build(
    source: ProblemSet, seed: int, *, solutions: bool = False, install: str = PACKAGE
) -> dict[str, Any]:
    """A notebook of the set in a course; with solutions it is nbgrader's source version."""
    cells = [
        text_cell("intro", source.text),
        code_cell("install", INSTALL.replace("WHERE", install)),
        code_cell("setup", source.setup),
    ]
    for one in source.problems:
        values = variant(one, source.name, seed)
        cells.append(text_cell(f"{one.id}-text", head(one, values)))
        if not one.answer:
            words = one.scheme if solutions else PROSE
            cells.append(text_cell(one.id, fill(words, values), solution=True, points=one.points))
            continue
        shown = fill(one.solution, values)
        cells.append(code_cell(one.id, shown if solutions else without(shown), solution=True))
        test = shown_test(one, values)
        cells.append(code_cell(f"{one.id}-check", test, points=one.points))
    cells += last(source)
    built = notebook(cells)
    built["metadata"][ABOUT] = about(source, cells)
    return built


def shown_test(one: Problem, values: dict[str, Any]) -> str:
    """The visible test, as a function that is called: it leaves no names behind but its own."""
    name = f"check_{one.answer}"
    body = textwrap.indent(fill(one.visible, values).strip(), "    ")
    return f"def {name}():\n{body}\n\n\n{name}()\n{HIDDEN}"


def last(source: ProblemSet) -> list[dict[str, Any]]:
    """Words and a cell that look over all answers before they are handed in."""
    names = " ".join(one.answer for one in source.problems if one.answer)
    lines = ["from attnbook import course", "", f'course.look_over(globals(), "{names}")']
    return [text_cell(f"{LAST}-text", HAND_IN), code_cell(LAST, "\n".join(lines))]


def about(source: ProblemSet, cells: list[dict[str, Any]]) -> dict[str, Any]:
    """What a student's own machine is told about the set: names, and how checks began."""
    marks = {cell["id"]: digest(cell["source"]) for cell in cells}
    return {
        "set": source.name,
        "title": source.title,
        "rooms": list(source.rooms),
        "problems": [
            {"id": one.id, "answer": one.answer, "check": marks.get(f"{one.id}-check", "")}
            for one in source.problems
        ],
    }


def digest(text: str) -> str:
    """Of a cell, to see whether it was edited."""
    return hashlib.sha256(text.strip().encode("utf-8", "replace")).hexdigest()[:16]


def submission(
    source: ProblemSet, seed: int, answers: dict[str, str] | None = None
) -> dict[str, Any]:
    """A notebook handed in: the reference solutions, or other code for some problems."""
    built = build(source, seed, solutions=True)
    ids = {one.id: one for one in source.problems}
    for cell in built["cells"]:
        one = ids.get(cell["id"])
        if one is None or cell["cell_type"] != "code":
            continue
        if answers is not None and one.id in answers:
            cell["source"] = fill(answers[one.id], variant(one, source.name, seed))
    return built


def notebook(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Cells as a notebook that every Jupyter opens."""
    for cell in cells:
        cell["source"] = re.sub(r"[ \t]+$", "", cell["source"], flags=re.M)
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def write(built: dict[str, Any]) -> str:
    """As a file: the same notebook always gives the same bytes."""
    return json.dumps(built, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
