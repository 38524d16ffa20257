"""``attnlab course mark``: what a marker sees of a course, and what a click changes."""

from __future__ import annotations

import importlib.metadata
import math
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from attnbook.course import _marking as marking
from attnbook.course import _sheets as sheets
from attnbook.course._course import Course
from attnbook.course._marking import Answer, Answers, Given, Marks, Schemes
from attnbook.course._report import read_by_hand
from attnbook.course._rubric import Rubric
from attnbook.course._source import folder
from attnbook.course._tables import Student
from attnbook.course._words import clean
from attnlab import checks as check

KINDS = {".js": "text/javascript", ".css": "text/css", ".woff": "font/woff"}
SCRIPT, FONTS = "tex-mml-chtml.js", "output/chtml/fonts"  # of MathJax, and all it needs


def mathjax(sources: Path | None) -> Path | None:
    """Where MathJax is: in the environment, in a built book, or in the instructor archive."""
    places = []
    try:
        package = importlib.metadata.distribution("sphinx-mathjax-offline")
        places.append(Path(str(package.locate_file("sphinx-mathjax-offline"))) / "static/mathjax")
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        above = folder(sources).resolve().parent
        built = above.parent / "_build"
        places += [above / "mathjax", built / "html/vendor/mathjax", built / "web/vendor/mathjax"]
    except ValueError:
        pass
    return next((place for place in places if (place / SCRIPT).is_file()), None)


@dataclass
class View:
    """Answers and marks at one moment, as one marker sees them."""

    course: Course
    marker: str
    schemes: Schemes
    answers: Answers
    marks: Marks
    typed: dict[marking.Place, float]
    names: dict[str, Student]  # empty where marking is anonymous

    @cached_property
    def queue(self) -> list[Answer]:
        """What there is to mark, in order."""
        every = self.answers.values()
        return [one for one in every if not one.blank and one.place not in self.typed]

    def scheme(self, answer: Answer) -> Rubric:
        """Of its problem."""
        return marking.scheme_of(self.course, self.schemes, answer)

    def own(self, answer: Answer) -> Given | None:
        """This marker's marks, finished or not, if they are of this answer."""
        one = self.marks.marks.get(self.marker, {}).get(marking.key_of(answer.place))
        return one if one and one.fits(answer, self.scheme(answer)) else None

    def old(self, answer: Answer) -> Given | None:
        """This marker's marks of an earlier version."""
        return self.marks.old(answer, self.scheme(answer)).get(self.marker)

    def done(self, answer: Answer) -> bool:
        """Whether this marker has marked it."""
        own = self.own(answer)
        return own is not None and own.done

    def differing(self) -> list[Answer]:
        """Answers whose markers differ, settled or not; those that wait come first."""
        found = [
            one
            for one in self.queue
            if len({g.points for g in self.marks.of(one, self.scheme(one)).values()}) > 1
        ]
        return sorted(found, key=lambda one: not self.waits(one))

    def waits(self, answer: Answer) -> bool:
        """Whether somebody still has to settle, or to mark it."""
        return self.marks.outcome(answer, self.scheme(answer)).waits

    def line(self, answer: Answer, settle: bool) -> list[Answer]:
        """The answers it is counted with: of its problem, or all that differ."""
        if settle:
            return self.differing()
        key = answer.name, answer.problem
        return [one for one in self.queue if (one.name, one.problem) == key]

    def finished(self, line: list[Answer], settle: bool) -> int:
        """How many of them are settled, or marked by this marker."""
        return sum(not self.waits(one) if settle else self.done(one) for one in line)

    def after(self, answer: Answer | None, settle: bool = False) -> Answer | None:
        """The next that is not done: further down, or else from the beginning."""
        line = self.differing() if settle else self.queue
        at = line.index(answer) + 1 if answer in line else 0
        for one in [*line[at:], *line[:at]]:
            if one is not answer and (self.waits(one) if settle else not self.done(one)):
                return one
        return None


class Desk:
    """A course on one marker's desk."""

    def __init__(self, course: Course, marker: str, names: bool = False) -> None:
        self.course, self.marker, self.names = course, marker, names
        marking.marker_file(course, marker)
        self.schemes = marking.by_hand(course)
        if not self.schemes:
            raise check.fail("course", "a set with problems that a person marks", course.folders)
        self.titles = {name: course.source(name).title for name in course.folders}
        self.mathjax = mathjax(course.sources)
        self.token = secrets.token_urlsafe(18)

    def view(self) -> View:
        """Everything as it is now."""
        typed = read_by_hand(self.course).items()
        return View(
            self.course,
            self.marker,
            self.schemes,
            marking.answers(self.course, self.schemes),
            Marks.read(self.course),
            {place: points for place, (points, _) in typed if points is not None},
            {one.id: one for one in self.course.students()} if self.names else {},
        )

    # -- what is shown -----------------------------------------------------------------------------
    def page(self, parts: list[str]) -> str | None:
        """The page of an address; None where there is none."""
        view = self.view()
        if not parts:
            return sheets.overview(self, view)
        if parts == ["differ"]:
            return sheets.differences(self, view)
        settle = parts[0] == "settle"
        answer = find(view, parts[1:] if settle else parts)
        if answer is None:
            return None
        return sheets.answer(self, view, answer, settle and answer in view.differing())

    def file(self, parts: list[str]) -> tuple[bytes, str] | None:
        """A file of ours, or of MathJax; nothing else of this machine."""
        kind = KINDS.get(Path(parts[-1]).suffix)
        home, inner = Path(__file__).parent, parts
        if parts[0] == "mathjax" and self.mathjax and len(parts) > 1:
            home, inner = self.mathjax.resolve(), parts[1:]
        elif parts not in (["marking.js"], ["marking.css"]):
            return None
        path = home.joinpath(*inner).resolve()
        if kind is None or not path.is_relative_to(home) or not path.is_file():
            return None
        return path.read_bytes(), kind

    # -- what is saved -----------------------------------------------------------------------------
    def save(self, told: dict[str, Any]) -> dict[str, Any]:
        """A click; gives what the page says then. Errors name what is wrong with it."""
        view, settle = self.view(), bool(told.get("settle"))
        answer = find(view, [str(told.get(word, "")) for word in ("set", "problem", "who")])
        if answer is None:
            raise check.fail("answer", "one of this course", told.get("who"))
        if told.get("of") != answer.of:
            raise check.fail("answer", "the one that is handed in now: load this page again", "old")
        scheme = view.scheme(answer)
        given = Given(
            items=levels(told.get("items"), scheme),
            otherwise=otherwise(told.get("otherwise"), sum(scheme.shape)),
            comment=clean(told.get("comment", ""), marking.COMMENT, lines=True).strip(),
            of=answer.of,
            shape=scheme.shape,
        )
        if settle:
            marks = view.marks.of(answer, scheme)
            given.over = {who: one.points for who, one in marks.items()}
            if len(set(given.over.values())) < 2:
                raise check.fail("answer", "one whose markers differ", given.over)
        empty = not settle and not given.comment and given.otherwise is None
        empty = empty and set(given.items) == {None}
        marking.keep(self.course, self.marker, answer.place, None if empty else given, settle)
        view.marks = Marks.read(self.course)
        following = view.after(answer, settle)
        return {
            "points": given.points,
            "done": given.done,
            "finished": view.finished(view.line(answer, settle), settle),
            "next": self.address(following, settle) if following else self.address(),
        }

    def address(self, answer: Answer | None = None, settle: bool = False) -> str:
        """Of a page, as this server knows it."""
        base = f"/{self.token}/"
        if answer is None:
            return base
        told = f"{answer.name}/{answer.problem}/{answer.alias.replace(' ', '-')}"
        return base + ("settle/" if settle else "") + told


def find(view: View, parts: list[str]) -> Answer | None:
    """The answer of an address: set, problem, name."""
    for one in view.answers.values():
        if [one.name, one.problem, one.alias.replace(" ", "-")] == parts:
            return one
    return None


def levels(told: Any, scheme: Rubric) -> list[float | None]:
    """Points by item, each a level of its item, or None."""
    if not isinstance(told, list) or len(told) != len(scheme.items):
        raise check.fail("items", f"{len(scheme.items)} entries", told)
    for entry, item in zip(told, scheme.items, strict=True):
        if entry is not None and (isinstance(entry, bool) or entry not in item.levels):
            raise check.fail("items", f"one of {item.levels}, or null", entry)
    return [None if entry is None else float(entry) for entry in told]


def otherwise(told: Any, most: float) -> float | None:
    """Points instead of those of the items."""
    if told is None:
        return None
    if isinstance(told, bool) or not isinstance(told, int | float) or not math.isfinite(told):
        raise check.fail("points", f"a number from 0 to {most:g}", told)
    if not 0 <= told <= most:
        raise check.fail("points", f"a number from 0 to {most:g}", told)
    return float(told)
