"""One submission in Gradescope's container, marked as everywhere.

    python -m attnbook.course._autograder ROOT      what `run_autograder` starts

Student code answers questions in a process of its own, which can neither read the judge nor write
the results.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from attnbook.course._grade import Mark, Verdict
from attnbook.course._marker import Marker
from attnbook.course._sandbox import NoSandboxError, available
from attnbook.course._source import read
from attnbook.course._unpack import is_notebook, junk
from attnbook.course._words import clean

MOST = 50  # notebooks that are counted


def results(verdict: Verdict) -> dict[str, Any]:
    """What Gradescope shows: to students what was tested and found, to staff what was noticed."""
    tests = [shown(mark) for mark in verdict.marks if not mark.by_hand]
    if verdict.notices:
        told = "\n".join(["A notice is no verdict.", *verdict.notices])
        name = "Notices, for staff"
        tests.append({"name": name, "output": told, "visibility": "hidden"})
    hand = [mark.title for mark in verdict.marks if mark.by_hand]
    more = [f"Marked by a person: {', '.join(hand)}."] if hand else []
    bad = verdict.notices[:1] if verdict.status == "unreadable" else []
    return {
        "score": verdict.points,
        "output": "\n".join([*bad, *more]),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def shown(mark: Mark) -> dict[str, Any]:
    """A problem."""
    lines = [
        f"{part.name}: {part.points:g} of {part.most:g}{f': {part.told}' if part.told else ''}"
        for part in mark.parts
    ]
    output = "\n".join([*lines, *([mark.told] if mark.told else [])])
    return {"name": mark.title, "score": mark.points, "max_score": mark.most, "output": output,
            "output_format": "text"}  # fmt: skip


def chosen(folder: Path) -> Path | str:
    """The notebook to mark; why there is none."""
    found: list[str] = []
    for place, _, files in os.walk(folder):  # links to folders are not followed
        names = (os.path.relpath(os.path.join(place, one), folder) for one in files)
        found += [name for name in names if is_notebook(name) and not junk(name)]
        if len(found) > MOST:
            break
    if len(found) != 1:
        return f"hand in one notebook, a file that ends in .ipynb: there are {len(found)}"
    return folder / found[0]


def mark(root: Path) -> dict[str, Any]:
    """The results of the one submission that is there."""
    source = root / "source"
    about = json.loads((source / "about.json").read_text("utf-8"))
    sheet = source / f"{about['name']}.md"
    asked = read(sheet).part(about["problems"])
    path = chosen(root / "submission")
    if isinstance(path, str):
        marks = [Mark(one.id, one.title, 0.0, one.points, not one.answer) for one in asked.problems]
        return results(Verdict(asked.name, marks, [path], "unreadable"))
    marker = Marker()
    try:
        verdict, _ = marker.mark(path, sheet, about["seed"], problems=tuple(about["problems"]))
    finally:
        marker.close()
    return results(verdict)


def main(arguments: list[str]) -> int:
    """Write the results, or none at all where the fault is ours: then Gradescope says so."""
    root = Path(arguments[0])
    try:
        print(f"sandbox: {available()}")
        told = mark(root)
    except (NoSandboxError, RuntimeError) as error:
        print(f"could not be marked: {clean(error, 500)}", file=sys.stderr)
        return 3
    target = root / "results" / "results.json"
    target.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
