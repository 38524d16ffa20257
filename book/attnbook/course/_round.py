"""A round of marking: all submissions of a course, each in a process of its own."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from attnbook.course._course import Course
from attnbook.course._grade import Verdict
from attnbook.course._marker import Markers, cores_here, load_verdict
from attnbook.course._sandbox import Limits, available
from attnbook.course._tables import replace
from attnbook.course._words import clean
from attnlab import checks as check

FIRST = (0, 2)  # the version whose rooms notebooks import as they are named today


def made_by(course: Course) -> None:
    """Refuse notebooks of a version whose imports have moved since."""
    about = json.loads((course.place / "course.json").read_text("utf-8"))
    made = str(about.get("version", "0.1.0"))
    if tuple(int(part) for part in re.findall(r"\d+", made)[:2]) < FIRST:
        expected = (
            f"one made by attnlab {'.'.join(map(str, FIRST))} or newer, because rooms moved to "
            "attnbook since: mark this one with the version that made it"
        )
        raise check.fail("course", expected, f"one made by {made}")


def grade(
    course: Course,
    say: Callable[[str], None],
    *,
    again: bool = False,
    workers: int = 0,
    limits: Limits | None = None,
) -> list[Verdict]:
    """Form the verdicts that are missing or stale, and say each."""
    available()  # refuse before anything runs
    made_by(course)
    for name in course.folders:
        course.source(name)  # a problem that is not there is an error before anything runs, too
    sheets = {name: course.sheet(name) for name in course.folders}
    work = list(course.submissions())
    count = min(workers or len(cores_here()), max(1, len(work)))
    found: list[Verdict] = []

    def one(student: str, name: str, path: Path) -> tuple[str, str, Verdict, bool]:
        mark = course.digest(path, name)
        target = course.verdict_path(student, name)
        if not again:
            kept = load_verdict(target, mark)
            if kept is not None:
                return student, name, kept, True
        about = course.asked(student, name)
        with markers.one() as marker:
            seed = course.seed_of(student)
            verdict, prose = marker.mark(path, sheets[name], seed, limits, **about)
        told = dataclasses.asdict(verdict) | {"of": mark, "prose": prose}
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(target, json.dumps(told, indent=1, sort_keys=True) + "\n")
        return student, name, verdict, False

    with Markers(count) as markers, ThreadPoolExecutor(count) as pool:
        waiting = {pool.submit(one, *entry): entry for entry in work}
        try:
            for count, future in enumerate(as_completed(waiting), 1):
                student, name, _ = waiting[future]
                where = f"[{count}/{len(work)}] {student} {name}"
                try:
                    *_, verdict, kept = future.result()
                except Exception as error:
                    told = f"{type(error).__name__}: {clean(error)}"
                    say(f"{where}: could not be marked ({told})")
                    continue
                found.append(verdict)
                odd = f", notices: {len(verdict.notices)}" if verdict.notices else ""
                word = "unchanged" if kept else verdict.status
                hand = sum(mark.most for mark in verdict.marks if mark.by_hand)
                most, more = verdict.most - hand, f" (and {hand:g} by hand)" if hand else ""
                say(f"{where}: {verdict.points:g} of {most:g}{more}, {word}{odd}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found
