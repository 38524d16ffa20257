"""More steps of ``attnlab course``: what goes back to a platform, and who has more time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(steps: Any) -> None:
    """Register the steps."""
    back = steps.add_parser("return", help="marks and feedback, as a platform takes them back")
    back.add_argument("course", help="the course's folder")
    back.add_argument("--platform", required=True, help="moodle or canvas")
    back.add_argument("--set", default="", help="which set (default: the only one)")
    back.add_argument("--worksheet", help="the platform's own table, to be filled in")
    back.add_argument("--column", default="", help="the table's column, where it is not found")
    back.add_argument("--scale", action="store_true", help="to the platform's maximum")
    back.add_argument("--out", required=True, help="the archive of feedback, a new zip file")
    back.set_defaults(run=give_back)

    begin = steps.add_parser("template", help="a small problem set to begin with")
    begin.add_argument("file", help="a new file such as hw1.md")
    begin.set_defaults(run=template)
    verify = steps.add_parser("verify", help="what a problem set still misses, in sentences")
    verify.add_argument("file", help="its text notebook")
    verify.add_argument("--seeds", type=int, default=3, help="how many variants are tried")
    verify.set_defaults(run=review)

    look = steps.add_parser("preview", help="what collect would do, and what is odd")
    look.add_argument("course", help="the course's folder")
    look.add_argument("downloads", help="a folder, or a zip file")
    look.add_argument("--set", default="", help="which set all of it answers")
    look.set_defaults(run=preview)

    alike = steps.add_parser("similar", help="pairs of submissions whose code is alike")
    alike.add_argument("course", help="the course's folder")
    alike.add_argument("--least", type=float, default=0.5, help="share to be shown (default 0.5)")
    alike.set_defaults(run=similar)

    more = steps.add_parser("extend", help="give a student more time for a set")
    more.add_argument("course", help="the course's folder")
    more.add_argument("student", help="an id")
    more.add_argument("set", help="a set, such as 1")
    more.add_argument("when", help="such as 2027-10-07T23:59; none takes it back")
    more.set_defaults(run=extend)


def give_back(given: argparse.Namespace) -> int:
    """Fill in what a platform gave."""
    from attnbook.course import Course

    course = Course.open(given.course, given.sources)
    found = course.give_back(
        given.platform, given.set, given.out,
        worksheet=Path(given.worksheet) if given.worksheet else None,
        column=given.column, scale=given.scale,
    )  # fmt: skip
    for path in found.written:
        print(path)
    print(
        f"feedback of {found.pages} students"
        + (f", marks of {found.filled} in the table" if given.worksheet else "")
    )
    for words in found.told:
        print(f"  {words}")
    if left := course.waiting():
        print(f"{left} answers wait for a person, and count 0 so far")
    return 0


def extend(given: argparse.Namespace) -> int:
    """More time."""
    from attnbook.course import Course

    course = Course.open(given.course, given.sources)
    until = course.extend(given.student, given.set, given.when)
    print(f"{given.student}, set {given.set}: " + (f"until {until}" if until else "no extension"))
    return 0


def preview(given: argparse.Namespace) -> int:
    """Look, and write nothing."""
    from attnbook.course import Course

    course = Course.open(given.course, given.sources)
    for title, lines in course.preview(given.downloads, given.set):
        print(f"{title}:")
        for line in lines:
            print(f"  {line}")
    print("nothing was written")
    return 0


def similar(given: argparse.Namespace) -> int:
    """Pairs that are alike."""
    from attnbook.course import Course

    path, pairs, unread = Course.open(given.course, given.sources).similar(given.least)
    for line in pairs[:20]:
        print(f"  {line}")
    for one in unread:
        print(f"  {one}: could not be read")
    print(f"{len(pairs)} pairs of students, side by side: {path}")
    print("alike code proves nothing: read both, and talk with both")
    return 0


def template(given: argparse.Namespace) -> int:
    """Write a set to begin with."""
    from attnbook.course import template

    path = template(given.file)
    print(f"{path}: change it, and then: attnlab course verify {path}")
    return 0


def review(given: argparse.Namespace) -> int:
    """Say what a set misses; 1 where something does."""
    from attnbook.cli._course import guarded
    from attnbook.course import review

    def act() -> int:
        missing, looks = review(given.file, given.seeds)
        for words in missing:
            print(f"- {words}")
        for words in looks:
            print(f"? {words}")
        print(f"{len(missing) or 'nothing'} to mend, {len(looks) or 'nothing'} to look at")
        return 1 if missing else 0

    return guarded(act)
