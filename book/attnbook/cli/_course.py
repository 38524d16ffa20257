"""``attnlab course``: problem sets from a seed to marks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Register the command and its steps."""
    parser = commands.add_parser("course", help="problem sets, from a seed to marks")
    steps = parser.add_subparsers(dest="step", required=True, metavar="step")

    new = steps.add_parser("new", help="make a course folder with its own variants")
    new.add_argument("name")
    new.add_argument("--seed", type=int, required=True, help="of the variants")
    new.add_argument("--sets", default="1,2,3,4", help="such as 1,3 or 2,project")
    new.add_argument("--out", help="the folder (default: the name)")
    new.add_argument(
        "--install",
        default="attnlab[course]",
        help="what the first cell installs: a package, or the address of the book's wheel",
    )
    new.set_defaults(run=make)

    for word, act, told in (
        ("add", enrol, "add the students of a roster"),
        ("collect", collect, "sort what a learning platform hands back"),
        ("grade", grade, "form the verdicts, in a sandbox"),
        ("report", report, "marks, distributions, feedback"),
        ("forget", forget, "delete all that is kept about a student"),
    ):
        step = steps.add_parser(word, help=told)
        step.add_argument("course", help="the course's folder")
        step.set_defaults(run=act)
        if word == "add":
            step.add_argument("--roster", required=True, help="a CSV file with a column id")
        if word == "collect":
            step.add_argument("downloads", help="a folder, or a zip file")
        if word == "grade":
            step.add_argument("--again", action="store_true", help="also what was marked before")
            step.add_argument("--workers", type=int, default=0, help="at once (default: the cores)")
        if word == "report":
            step.add_argument("--format", default="plain", help="plain, canvas, moodle, blackboard")
        if word == "forget":
            step.add_argument("student", help="an id")
    for step in steps.choices.values():
        step.add_argument("--sources", help="the folder of the problem sets (default: found)")


def guarded(act: Any) -> int:
    """A refusal is a message, not a traceback."""
    from attnbook.course import NoSandboxError

    try:
        return int(act())
    except NoSandboxError as error:
        print(f"attnlab course: {error}", file=sys.stderr)
        return 3
    except ModuleNotFoundError as error:
        print(f"attnlab course: needs {error.name}: pip install {error.name}", file=sys.stderr)
        return 2


def make(given: argparse.Namespace) -> int:
    """A new course."""
    from attnbook.course import Course

    sets = tuple(one.strip() for one in given.sets.split(",") if one.strip())
    place = Path(given.out or given.name)
    sources = Path(given.sources) if given.sources else None

    def act() -> int:
        course = Course(place, given.name, given.seed, sets, sources, given.install)
        course.create()
        print(f"{place}: {', '.join(course.folders)}, seed {given.seed}")
        print(f"hand out:  {place}/release/")
        print(f"then:      attnlab course add {place} --roster students.csv")
        return 0

    return guarded(act)


def enrol(given: argparse.Namespace) -> int:
    """Add students."""
    from attnbook.course import Course

    course = Course.open(given.course, given.sources)
    fresh = course.add(given.roster)
    print(f"{len(fresh)} students read, {len(course.students())} in the roster")
    return 0


def collect(given: argparse.Namespace) -> int:
    """Sort downloads."""
    from attnbook.course import Course

    def act() -> int:
        told = Course.open(given.course, given.sources).collect(given.downloads)
        placed = [one for one in told if one.name and not one.told]
        late = sum(one.late for one in placed)
        print(f"{len(placed)} notebooks placed, {late} of them late")
        for one in told:
            if one.told:
                print(f"  {one.file}: {one.told}")
        return 0

    return guarded(act)


def grade(given: argparse.Namespace) -> int:
    """Form verdicts."""
    from attnbook.course import Course

    course = Course.open(given.course, given.sources)

    def act() -> int:
        waiting = list(course.submissions())
        if not waiting:
            next_step = f"attnlab course collect {course.place} downloads/"
            print(f"nothing in {course.place}/submitted: {next_step}", file=sys.stderr)
            return 1

        def say(words: str) -> None:
            print(words, flush=True)

        found = course.grade(say=say, again=given.again, workers=given.workers)
        print(f"{len(found)} of {len(waiting)} submissions have a verdict")
        return 0 if len(found) == len(waiting) else 1

    return guarded(act)


def report(given: argparse.Namespace) -> int:
    """Write marks and feedback."""
    from attnbook.course import Course

    def act() -> int:
        course = Course.open(given.course, given.sources)
        written = course.report(given.format)
        for path in written:
            if path.parent.name == "reports":
                print(path)
        told = {p.parts[-3] for p in written if p.parts[-4:-3] == ("feedback",)}
        print(f"feedback for {len(told)} students: {course.place}/feedback/")
        if left := course.unmarked():
            again = f"attnlab course grade {given.course}"
            print(f"{left} submissions without a verdict, or changed since: {again}")
        if left := course.waiting():
            print(f"{left} answers wait for a person: {course.place}/by-hand.csv")
        return 0

    return guarded(act)


def forget(given: argparse.Namespace) -> int:
    """Delete a student's data."""
    from attnbook.course import Course

    def act() -> int:
        gone = Course.open(given.course, given.sources).forget(given.student)
        print("deleted: " + (", ".join(gone) or "nothing was kept"))
        if "reports" in gone:
            print(f"reports for the others: attnlab course report {given.course}")
        return 0

    return guarded(act)
