"""What `collect` would make of downloads, and what is odd among them; nothing is written."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TypeVar

from attnbook.course._assign import VARIANTS, whose
from attnbook.course._collect import EARLIER, Try, planned
from attnbook.course._course import Course
from attnbook.course._deadlines import deadlines
from attnbook.course._which import Found

FEW = 5  # below it, nothing stands out
SPREADS = 6  # from the median, in robust standard deviations
SIZE, CELLS, HOURS = 2.0, 10.0, 72.0  # doublings, cells, hours that are never odd
EMPTY = 1990  # archives without times say 1980

Key = TypeVar("Key", bound=Hashable)
Section = tuple[str, list[str]]


def preview(course: Course, downloads: str | Path, only: str = "") -> list[Section]:
    """Sections with lines; one without lines is left out."""
    plan = planned(course, downloads, only)
    used = {(s, n): one.found for s, n, one in plan.best if one.found is not None}
    doubts = sorted((one for one in plan.told if one.doubt), key=lambda one: one.file)
    unused = [one for one in plan.told if one.told and not one.doubt and one.told != EARLIER]
    sections: list[Section] = [
        ("read as", plan.archives),
        ("would be placed", list(placed(course, used))),
        ("late", list(late(course, used))),
        ("in doubt, and not placed", [f"{one.file} ({one.when}): {one.doubt}" for one in doubts]),
        ("students without a file", list(without(course, plan.tries))),
        ("several attempts", list(several(plan.tries))),
        ("unlike the others", list(unlike(used))),
        ("the same file", list(same(used))),
        ("another student's variant", list(foreign(course, used))),
        ("not used", some_of([f"{one.file}: {one.told}" for one in unused])),
    ]
    return [(title, lines) for title, lines in sections if lines]


def some_of(lines: list[str], most: int = 200) -> list[str]:
    """The first lines, and how many more there are."""
    return [*lines[:most], *([f"and {len(lines) - most:,} more"] if len(lines) > most else [])]


Used = Mapping[tuple[str, str], Found]


def placed(course: Course, used: Used) -> Iterator[str]:
    """How many of each set."""
    count = Counter(name for _, name in used)
    for name in course.folders:
        if count[name]:
            yield f"{name}: {count[name]} of {len(course.students())} students"


def late(course: Course, used: Used) -> Iterator[str]:
    """By how much, with extensions."""
    limits = deadlines(course)
    for (student, name), one in sorted(used.items()):
        word = one.sign is not None and one.sign.late
        if told := limits.late(student, name, one.when, word):
            yield f"{student}, {name}: {told} ({one.when.isoformat(timespec='seconds')})"


def without(course: Course, tries: Mapping[tuple[str, str], list[Try]]) -> Iterator[str]:
    """Of the sets that somebody handed in, now or before."""
    for name in course.folders:
        there = {student for student, of in tries if of == name}
        left = [one.id for one in course.students() if one.id not in there]
        if there and left:
            yield f"{name}: {', '.join(left)}"


def several(tries: Mapping[tuple[str, str], list[Try]]) -> Iterator[str]:
    """Students with more than one file for a set."""
    for (student, name), some in sorted(tries.items()):
        if len(some) > 1:
            times = sorted(one.when.isoformat(timespec="seconds") for one in some)
            yield f"{student}, {name}: {len(some)}, of {', '.join(times)}"


def unlike(used: Used) -> Iterator[str]:
    """Much larger or smaller, more or fewer cells, long before or after, or without a time."""
    for name in sorted({name for _, name in used}):
        some = {student: one for (student, of), one in sorted(used.items()) if of == name}
        sizes = {who: math.log2(max(1, len(one.data))) for who, one in some.items()}
        for who in far(sizes, SIZE):
            yield f"{who}, {name}: {len(some[who].data):,} bytes"
        for who in far({who: float(one.count) for who, one in some.items()}, CELLS):
            yield f"{who}, {name}: {some[who].count} cells"
        first = min(one.when for one in some.values())
        hours = {who: (one.when - first) / timedelta(hours=1) for who, one in some.items()}
        away, now = set(far(hours, HOURS)), datetime.now(UTC) + timedelta(days=1)
        strange = {who for who, one in some.items() if one.when.year < EMPTY or ahead(one, now)}
        if len(strange) > max(FEW, len(some) // 2):
            yield f"{name}: {len(strange)} of {len(some)} have no time, or one in the future"
            strange = set()
        for who in sorted(strange | away):
            yield f"{who}, {name}: its time is {some[who].when.isoformat(timespec='seconds')}"
        if len(some) >= FEW and not any(hours.values()):
            yield f"{name}: all have the same time; were the archives unpacked?"


def ahead(one: Found, now: datetime) -> bool:
    """Whether its time is still to come."""
    return one.when > (now if one.when.tzinfo else now.replace(tzinfo=None))


def far(values: Mapping[Key, float], least: float) -> list[Key]:
    """Whose value is far from the median: in robust standard deviations, and by more than least."""
    if len(values) < FEW:
        return []
    middle = median(values.values())
    spread = 1.4826 * median(abs(value - middle) for value in values.values())
    return [key for key, x in values.items() if abs(x - middle) > max(SPREADS * spread, least)]


def same(used: Used) -> Iterator[str]:
    """Byte for byte; similar ones are for `similar`."""
    owners: dict[str, list[str]] = {}
    for (student, name), one in sorted(used.items()):
        owners.setdefault(one.digest, []).append(f"{student} ({name})")
    for some in owners.values():
        if len(some) > 1:
            yield ", ".join(some)


def foreign(course: Course, used: Used) -> Iterator[str]:
    """In a course with a variant for each."""
    path = course.place / VARIANTS
    if not course.each or not path.is_file():
        return
    index = json.loads(path.read_text("utf-8"))
    for (student, name), one in sorted(used.items()):
        if told := whose(one.marks, index.get(name, {}), student):
            yield f"{student}, {name}: {told}"
