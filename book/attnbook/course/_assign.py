"""What is assigned, and to whom: parts of sets, and variants of a student's own.

A variant never says whose a notebook is. Where it is another's than the platform says, that is
told: `variants.json` knows the texts and checks of every notebook that was handed out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnbook.course._notebook import build, write
from attnbook.course._tables import NAME, replace
from attnbook.course._words import digest
from attnlab import checks as check

if TYPE_CHECKING:
    from attnbook.course._course import Course

VARIANTS = "variants.json"
GIVEN = re.compile(r".+-(?:text|check)")  # cells that hold a variant's numbers
SAME = 0.5  # of the cells that differ between students: below it, nothing is said

Index = Mapping[str, Mapping[str, list[str]]]  # cell: digest of its source: who was given it


def chosen(words: Iterable[str], sets: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """``4:steepest,attained`` a set, or ids alone where the course has one set."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, _, ids = word.rpartition(":")
        name = name.strip() or (sets[0] if len(sets) == 1 else "")
        if name not in sets or name in found:
            expected = f"SET:ID,ID with a set of {', '.join(sets)}, each once"
            raise check.fail("problems", expected, word)
        found[name] = tuple(one.strip() for one in ids.split(",") if one.strip())
        if not found[name]:
            raise check.fail("problems", "SET:ID,ID", word)
    return found


def notebooks_of(course: Course, place: Path) -> None:
    """The notebooks of a new course: with solutions, and to hand out."""
    for name in course.folders:
        source = course.source(name)
        for kind, solutions in (("source", True), ("release", False)):
            target = place / kind / name
            target.mkdir(parents=True)
            if course.each and not solutions:
                continue  # `add` writes one for everybody
            built = build(source, course.seed, solutions=solutions, install=course.install)
            (target / f"{name}.ipynb").write_text(write(built), "utf-8")


# -- variants of a student's own ---------------------------------------------------------------
def hand_out(course: Course) -> None:
    """Write everybody's notebooks, as far as they are not there, and the index of all."""
    students = [one.id for one in course.students()]
    index: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name in course.folders:
        source, place = course.source(name), course.place / "release" / name
        cells: dict[str, dict[str, list[str]]] = {}
        place.mkdir(parents=True, exist_ok=True)
        for student in students:
            path = place / f"{student}.ipynb"
            if not path.is_file():
                built = build(source, course.seed_of(student), install=course.install)
                replace(path, write(built))
            for cell in json.loads(path.read_text("utf-8"))["cells"]:
                if GIVEN.fullmatch(cell["id"]):
                    known = cells.setdefault(cell["id"], {})
                    known.setdefault(digest(cell["source"]), []).append(student)
        index[name] = {cell: known for cell, known in cells.items() if len(known) > 1}
    replace(course.place / VARIANTS, json.dumps(index, indent=0, sort_keys=True) + "\n")


def take_back(course: Course, student: str) -> list[str]:
    """Forget a student's own notebooks, and their lines in the index."""
    gone: list[str] = []
    if not course.each or not NAME.fullmatch(student):
        return gone
    for name in course.folders:
        path = course.place / "release" / name / f"{student}.ipynb"
        if path.is_file():
            path.unlink()
            gone.append(f"release/{name}/{student}.ipynb")
    path = course.place / VARIANTS
    if path.is_file():
        text = path.read_text("utf-8")
        index = json.loads(text)
        for cells in index.values():
            for known in cells.values():
                for mark in [mark for mark, who in known.items() if who == [student]]:
                    del known[mark]
                for who in known.values():
                    who[:] = [one for one in who if one != student]
        fresh = json.dumps(index, indent=0, sort_keys=True) + "\n"
        if fresh != text:
            replace(path, fresh)
            gone.append(VARIANTS)
    return gone


def whose(cells: Mapping[str, str], index: Index, student: str) -> str:
    """That a notebook's numbers are another's, in words; empty where they are the student's own.

    ``cells`` are digests by name, of a notebook that may be anything.
    """
    others: Counter[str] = Counter()
    for name, mark in cells.items():
        who = index.get(name, {}).get(mark, [])
        if student not in who:
            others.update(who)
    if not others:
        return ""
    most = max(others.values())
    if most < SAME * len(index):
        return ""
    names = sorted(one for one, count in others.items() if count == most)
    told = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return f"the variant of {told}: {most} of its {len(index)} texts and checks"


def foreign(job: dict[str, Any], name: str) -> list[str]:
    """A notice where a submission answers another student's variant; for a process that marks."""
    from attnbook.course._submission import Submission, grade_id, joined, load

    index = json.loads(Path(job["variants"]).read_text("utf-8")).get(name, {})
    notebook = load(Path(job["path"]), Submission()) or []
    cells = {grade_id(cell): digest(joined(cell)) for cell in notebook}
    told = whose(cells, index, job["student"])
    return [told] if told else []
