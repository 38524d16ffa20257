"""``attnlab course``: problem sets from a seed to marks."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from pathlib import Path
from typing import Any

from attnbook import install
from attnbook.cli import _course_more

MOST = 200  # lines about files that are not used
WITHOUT_SETS = ("check", "template", "extend", "forget")  # steps that read no problem set


def add(commands: Any) -> None:
    """Register the command and its steps."""
    parser = commands.add_parser("course", help="problem sets, from a seed to marks")
    steps = parser.add_subparsers(dest="step", required=True, metavar="step")

    new = steps.add_parser("new", help="make a course folder with its own variants")
    new.add_argument("name")
    new.add_argument("--seed", type=int, required=True, help="of the variants")
    new.add_argument("--sets", default="", help="such as 1,3 or 2,project (default: 1,2,3,4)")
    new.add_argument("--private", help="a folder with sets of your own; --sets may name them")
    new.add_argument("--out", help="the folder (default: the name)")
    new.add_argument(
        "--install",
        default=install.requirement("course", "wheel"),
        help="what the first cell of the notebooks installs: a wheel beside the notebook, the "
        "address of one, or a package (default: %(default)s)",
    )
    new.add_argument(
        "--problems", action="append", default=[], metavar="SET:ID,ID",
        help="assign these of a set only, such as 4:rank-gap,reachable; again for another set",
    )  # fmt: skip
    new.add_argument("--each", action="store_true", help="every student has their own variant")
    new.add_argument("--zone", default="", help="of the due dates, such as Europe/Berlin")
    new.add_argument("--late", default="", help="what lateness costs, such as '10%%/day,max 3'")
    new.add_argument("--drop", type=int, default=0, help="how many of the worst sets do not count")
    new.set_defaults(run=make)

    for word, act, told in (
        ("add", enrol, "add the students of a roster"),
        ("collect", collect, "sort what a learning platform hands back"),
        ("place", settle, "say whose answer a file is, where collect is in doubt"),
        ("grade", grade, "form the verdicts, in a sandbox"),
        ("mark", mark, "mark answers in words, on a local page"),
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
            step.add_argument("--set", default="", help="which set all of it answers")
        if word == "place":
            step.add_argument("file", help="a notebook, or one in an archive: a.zip/folder/x.ipynb")
            step.add_argument("student", help="an id")
            step.add_argument("set", help="a set, such as 1")
        if word == "grade":
            step.add_argument("--again", action="store_true", help="also what was marked before")
            step.add_argument("--workers", type=int, default=0, help="at once (default: the cores)")
        if word == "mark":
            step.add_argument("--as", dest="marker", default="marker", help="whose marks these are")
            step.add_argument(
                "--port", type=int, default=0, help="of the page (default: a free one)"
            )
            step.add_argument("--no-open", action="store_true", help="do not open a browser")
            step.add_argument("--names", action="store_true", help="show whose answers they are")
        if word == "report":
            step.add_argument("--format", default="plain", help="plain, canvas or moodle")
        if word == "forget":
            step.add_argument("student", help="an id")
    one = steps.add_parser("check", help="what of a notebook can be marked, before it is handed in")
    one.add_argument("notebook", help="a file; no course folder is needed")
    one.set_defaults(run=look)
    _course_more.add(steps)
    for name, step in steps.choices.items():
        step.add_argument("--sources", help="the folder of the problem sets (default: found)")
        if name not in WITHOUT_SETS:
            step.set_defaults(needs={"instructor": ("jupytext",)})


def guarded(act: Any) -> int:
    """A refusal is a message, not a traceback."""
    from attnbook.course import NoSandboxError

    try:
        return int(act())
    except NoSandboxError as error:
        print(f"attnlab course: {error}", file=sys.stderr)
        return 3
    except ModuleNotFoundError as error:
        line = install.local_install_line("instructor")
        print(
            f"attnlab course: this step needs {error.name}, which is not installed: {line}",
            file=sys.stderr,
        )
        return 2


def make(given: argparse.Namespace) -> int:
    """A new course."""
    from attnbook.course import Course

    sets = tuple(one.strip() for one in given.sets.split(",") if one.strip())
    place = Path(given.out or given.name)
    sources = Path(given.sources) if given.sources else None

    def act() -> int:
        rules = {key: vars(given)[key] for key in ("each", "zone", "late", "drop")}
        rules["private"] = Path(given.private) if given.private else None
        course = Course(place, given.name, given.seed, sets, sources, given.install, **rules)
        course = course.having(*sets).assigning(given.problems)
        course.create()
        print(f"{place}: {', '.join(course.folders)}, seed {given.seed}")
        own = "SET/ID.ipynb, after the next step" if given.each else ""
        print(f"hand out:  {place}/release/{own}")
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
        told = Course.open(given.course, given.sources).collect(given.downloads, given.set, print)
        placed = [one for one in told if one.name and not one.told]
        late = sum(one.late for one in placed)
        print(f"{len(placed)} notebooks placed, {late} of them late")
        doubtful = [one for one in told if one.doubt]
        unused = [one for one in told if one.told and not one.doubt]
        for one in unused[:MOST]:
            print(f"  {one.file}: {one.told}")
        if len(unused) > MOST:
            print(f"  and {len(unused) - MOST:,} more: see {given.course}/collected.csv")
        if doubtful:
            print(
                f"{len(doubtful)} in doubt, and not placed; settle each with attnlab course place"
            )
        for one in sorted(doubtful, key=lambda one: (one.student, one.name, one.file)):
            who, name = one.student or "ID", one.name or "SET"
            path = Path(given.downloads)
            whole = path / one.file if path.is_dir() else path.parent / one.file
            print(f"  {one.file} ({one.when}): {one.doubt}")
            words = [given.course, str(whole), who, name]
            print(f"    attnlab course place {' '.join(shlex.quote(word) for word in words)}")
        return 0

    return guarded(act)


def settle(given: argparse.Namespace) -> int:
    """Say whose a file is."""
    from attnbook.course import Course

    def act() -> int:
        course = Course.open(given.course, given.sources)
        one = course.settle(given.file, given.student, given.set)
        late = ", late" if one.late else ""
        print(f"{one.file}: {one.student}, {one.name}, {one.when}{late}")
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


def mark(given: argparse.Namespace) -> int:
    """Serve the marking page until it is stopped."""
    import webbrowser

    from attnbook.course import Course

    def act() -> int:
        course = Course.open(given.course, given.sources)
        with course.marking(given.marker, port=given.port, names=given.names) as server:
            print(f"marking as {given.marker}: {server.address}", flush=True)
            print(f"saved at each click: {course.place}/marking/{given.marker}.json", flush=True)
            print("stop with Ctrl-C; then attnlab course report", flush=True)
            if not given.no_open:
                webbrowser.open(server.address)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        return 0

    return guarded(act)


def look(given: argparse.Namespace) -> int:
    """Look over a student's notebook; 1 where something would not be marked as it stands."""
    from attnbook.course import preflight

    found, remark = preflight(given.notebook)
    for one in found:
        print(one)
    blank = sum(one.status == "blank" for one in found)
    bad = sum(not one.good for one in found)
    ready = len(found) - blank - bad
    print(f"{len(found)} problems: {ready} ready, {blank} blank, {bad} to look at")
    print("This says whether answers can be marked. It does not say whether they are right.")
    if remark:
        print(remark)
    return 1 if bad else 0


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
            print(f"{left} answers wait for a person: attnlab course mark {given.course}")
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
