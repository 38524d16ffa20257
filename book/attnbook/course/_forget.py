"""A student's data, deleted."""

from __future__ import annotations

import re
import shutil

from attnbook.course import _marking as marking
from attnbook.course._assign import take_back
from attnbook.course._collect import about
from attnbook.course._course import Course
from attnbook.course._tables import NAME, Student, strike


def forget(course: Course, student: str) -> list[str]:
    """Delete all that is kept about a student; gives what was deleted."""
    who = next((one for one in course.students() if one.id == student), Student(student))
    word = re.compile(rf"(?<![\w.-]){re.escape(student)}(?![\w.-])")
    gone = []
    if (course.place / "gradebook.db").is_file():  # first: without nbgrader, nothing is deleted
        from attnbook.course.hub import forget as strike_out

        gone += ["gradebook.db"] if strike_out(course, student) else []

    def theirs(row: dict[str, str]) -> bool:
        if row["student"]:
            return row["student"] == student
        return bool(word.search(row.get("remark", "")) or about(row.get("file", ""), who))

    for kind in ("submitted", "verdicts", "feedback", "autograded", "collected"):
        path = course.place / kind / student
        if NAME.fullmatch(student) and path.is_dir():
            shutil.rmtree(path)
            gone.append(f"{kind}/{student}")
    gone += take_back(course, student)
    kept = [one for one in course.students() if one.id != student]
    if len(kept) != len(course.students()):
        course.enrol(kept)
        gone.append("roster.csv")
    gone += marking.forget(course, student)
    for name in ("by-hand.csv", "collected.csv", "extensions.csv"):
        if strike(course.place / name, theirs):
            gone.append(name)
    if gone and (course.place / "reports").is_dir():
        shutil.rmtree(course.place / "reports")
        gone.append("reports")
    return gone
