"""Sets of an instructor's own: where they lie, and which of them a course has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from attnbook.course._source import SETS, folder
from attnbook.course._tables import NAME
from attnlab import checks as check

if TYPE_CHECKING:
    from attnbook.course._course import Course

OWN = re.compile(r"[a-z][a-z0-9-]{0,40}")


def own_sets(private: Path | None) -> list[str]:
    """The sets in an instructor's folder, by the names of their files."""
    if private is None:
        return []
    names = sorted(path.stem for path in private.glob("*.md"))
    odd = [one for one in names if not OWN.fullmatch(one) or one in SETS]
    if not names or odd:
        expected = "a folder of problem sets, such as hw1.md, named by small letters, digits and -"
        raise check.fail("private", expected, ", ".join(odd) or str(private))
    return names


def file_of(name: str, sources: Path | None, private: Path | None) -> Path:
    """The text notebook of a set: an instructor's own, or else the book's."""
    if private is not None and (own := private / f"{name}.md").is_file():
        return own
    if name not in SETS.values():
        raise check.fail("private", f"a folder with {name}.md", str(private))
    return folder(sources) / f"{name}.md"


def well_asked(course: Course) -> None:
    """That a new course has sets that there are, a name and a seed."""
    known = [*SETS, *own_sets(course.private)]
    sets = course.sets
    if not sets or len(set(sets)) != len(sets) or not set(sets) <= set(known):
        raise check.fail("sets", f"some of {', '.join(known)}, each once", ",".join(sets))
    if not NAME.fullmatch(course.name):
        raise check.fail("name", "letters and digits", course.name)
    if course.seed < 0:
        raise check.fail("seed", "a number from 0 on", course.seed)


def places(course: Course) -> dict[str, str]:
    """Where the sets are, for ``course.json``."""
    told = {}
    if any(one in SETS for one in course.sets):
        told["sources"] = str(folder(course.sources).absolute())
    if course.private is not None:
        told["private"] = str(course.private.absolute())
    return told
