"""What counts in the end: what lateness costs, and which sets are dropped. Raw points stay."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from attnbook.course._collect import HAND, recorded
from attnbook.course._course import Course
from attnbook.course._deadlines import Late, deadlines, policy, well_ruled

if TYPE_CHECKING:
    from attnbook.course._report import Row


def lateness(course: Course) -> dict[tuple[str, str], Late]:
    """Who was late, with which set: by the times that were collected and the due dates of today."""
    limits, found = deadlines(course), {}
    for one in recorded(course):
        if one.told not in ("", HAND) or not one.student:
            continue
        when = limits.clock.read(datetime.fromisoformat(one.when))
        late = limits.late(one.student, one.name, when, one.word)
        if late is not None:
            found[one.student, one.name] = late
    return found


def settle(course: Course, known: Mapping[str, Row]) -> None:
    """Fill in what rows do not know of themselves."""
    well_ruled(course)
    rule = policy(course.late)
    for (student, name), late in lateness(course).items():
        if student in known:
            known[student].late[name] = late
    for row in known.values():
        for name, late in row.late.items():
            if rule is not None and name in row.verdicts:
                row.lost[name] = rule.lost(row.verdicts[name].points, late)
    most = {
        name: next(row.verdicts[name].most for row in known.values() if name in row.verdicts)
        for name in course.folders
        if any(name in row.verdicts for row in known.values())
    }
    for row in known.values():
        got = {name: row.counted(name) for name in row.verdicts}
        row.dropped = worst(got, most, course.drop)
        row.most = sum(most.values()) - sum(most[name] for name in row.dropped)


def worst(got: Mapping[str, float], most: Mapping[str, float], drop: int) -> set[str]:
    """The sets with the lowest shares; one that was not handed in has 0, and one always counts.

    ``most`` names the sets that somebody handed in: sets that are still to come are not dropped.
    """
    share = {name: got.get(name, 0.0) / whole if whole else 0.0 for name, whole in most.items()}
    later = {name: -number for number, name in enumerate(most)}
    order = sorted(most, key=lambda name: (share[name], later[name]))
    return set(order[: max(0, min(drop, len(order) - 1))])


def shown(points: float) -> str:
    """Points, to the hundredth."""
    return f"{round(points, 2):g}"


# -- words -------------------------------------------------------------------------------------
def columns(course: Course) -> list[str]:
    """Of marks.csv, beside the raw marks, where the course has such rules."""
    found = ["late_by", "deducted"] if course.late else []
    found += ["dropped"] if course.drop else []
    return [*found, "counts", "counts_of"] if found else []


def late_words(row: Row) -> str:
    """Which sets, and by how much."""
    return "; ".join(f"{name}: {one}" for name, one in sorted(row.late.items()))


def cells(course: Course, row: Row) -> list[str]:
    """What stands in them."""
    told = {
        "late_by": late_words(row),
        "deducted": shown(sum(row.lost.values())),
        "dropped": " ".join(sorted(row.dropped)),
        "counts": shown(row.total),
        "counts_of": f"{row.most:g}",
    }
    return [told[name] for name in columns(course)]


def sentence(course: Course, row: Row, name: str) -> str:
    """For a student: how late a set was, what that costs, and whether it counts."""
    told = []
    if name in row.late:
        told.append(f"Handed in {row.late[name]}.")
        if row.lost.get(name):
            lost, left = shown(row.lost[name]), shown(row.counted(name))
            told.append(f"By the rule {course.late} that costs {lost} points: {left} count.")
    if name in row.dropped:
        told.append("So far it is among the lowest, which do not count.")
    return " ".join(told)


def short(row: Row, name: str) -> str:
    """For a table: the points of a set, and beside them what counts."""
    points = f"{row.verdicts[name].points:g}"
    if row.lost.get(name):
        points += f" → {shown(row.counted(name))}"
    return f"({points})" if name in row.dropped else points
