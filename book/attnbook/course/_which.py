"""Which set a file answers: what the platform calls it, or what most of its folder are."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from attnbook.course._course import Course
from attnbook.course._schemes import Sign
from attnbook.course._source import SETS
from attnlab import checks as check


@dataclass
class Found:
    """A notebook among the downloads."""

    name: str
    data: bytes
    when: datetime
    sign: Sign | None = None
    hits: dict[str, int] = field(default_factory=dict)
    folder: str = ""  # the platform's part of its path, as it stands there
    count: int = 0  # of its cells
    marks: dict[str, str] = field(default_factory=dict)  # of its texts and checks
    why: str = ""  # no sign: why not

    @property
    def digest(self) -> str:
        """Of its bytes."""
        return hashlib.sha256(self.data).hexdigest()


def sets_of(
    course: Course, everything: list[Found], chosen: str
) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Which set each file answers: what the platform calls it, or what most of its folder are."""
    signed = [(one, one.sign) for one in everything if one.sign is not None]
    votes: dict[str, Counter[str]] = {}
    for one, sign in signed:
        best = max(one.hits, key=lambda name: one.hits[name], default="")
        if best and one.hits[best]:
            votes.setdefault(group_of(sign), Counter())[best] += 1
    found = {}
    for one, sign in signed:
        name = chosen or named(course, sign.container)
        if not name and len(course.folders) == 1:
            name = course.folders[0]
        ballot = votes.get(group_of(sign), Counter())
        if not name and ballot:
            first, count = ballot.most_common(1)[0]
            name = first if 2 * count > ballot.total() else ""
        doubt = "" if name else "which set? collect it alone, with --set"
        best = max(one.hits, key=lambda name: one.hits[name], default="")
        if name and best != name and one.hits.get(best, 0) > one.hits.get(name, 0):
            doubt = f"its cells are those of {best}, among submissions of {name}"
        found[sign.container, sign.key, one.name] = (name, doubt)
    return found


def group_of(sign: Sign) -> str:
    """What came together: an archive, or a folder, of one assignment."""
    return f"{sign.container}|{sign.platform}"


def named(course: Course, words: str) -> str:
    """The one set of the course that words of a platform, or of the instructor, name."""
    flat = plain(words)
    told = {
        name
        for name in course.folders
        if plain(name) in flat or plain(titles(course)[name]) in flat
    }
    told |= {by_number(flat, {name: set() for name in course.folders})} - {""}
    return told.pop() if len(told) == 1 else ""


def titles(course: Course) -> dict[str, str]:
    """What the sets are called."""
    return {name: course.source(name).title for name in course.folders}


def set_named(course: Course, name: str) -> str:
    """A set of this course, by its short name or its folder's."""
    full = SETS.get(name, name)
    if full not in course.folders:
        raise check.fail("set", f"one of {', '.join(course.sets)}", name)
    return full


def plain(text: str) -> str:
    """Lower case letters and digits without accents; other signs as one space."""
    flat = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", " ", flat).strip()


def cell_names(course: Course, name: str) -> set[str]:
    """The ids of a set's problems."""
    return {one.id for one in course.source(name).problems}


def by_number(flat: str, ids: dict[str, set[str]]) -> str:
    """'set 3' or 'problemset3' in a name."""
    for short, name in SETS.items():
        if name in ids and re.search(rf"\b(problem ?)?(set|assignment|ps) ?{short}\b", flat):
            return name
    return ""
