"""What people give to answers in words: a file for each marker, and what all of them come to."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from attnbook.course._course import Course
from attnbook.course._grade import Part
from attnbook.course._notebook import PROSE
from attnbook.course._rubric import Rubric, rubric
from attnbook.course._source import Problem, fill, variant
from attnbook.course._tables import NAME, replace
from attnbook.course._words import clean
from attnlab import checks as check

FOLDER = "marking"
COMMENT = 4000  # characters
COLOURS = (
    "amber azure coral cream grey indigo ivory jade lilac olive pearl plum rose ruby sand teal"
)
TREES = "alder aspen beech birch cedar elm fir hazel holly juniper larch maple oak pine rowan yew"

Place = tuple[str, str, str]  # student, set, problem


@dataclass(frozen=True)
class Answer:
    """What a student wrote, under a name that says nothing."""

    student: str
    name: str
    problem: str
    alias: str
    text: str

    @property
    def place(self) -> Place:
        """Whose, of which set, to which problem."""
        return self.student, self.name, self.problem

    @property
    def blank(self) -> bool:
        """Whether there is nothing to mark."""
        return not re.sub(r"[\s*\u200c\u200d]", "", self.text.replace(PROSE.strip("*"), ""))

    @property
    def of(self) -> str:
        """A mark holds for this text and no other."""
        return hashlib.sha256(self.text.strip().encode("utf-8", "replace")).hexdigest()


@dataclass
class Given:
    """What one person gave to one answer: by item, or otherwise; None is not decided."""

    items: list[float | None]
    otherwise: float | None = None  # instead of what the items add up to
    comment: str = ""
    of: str = ""
    shape: list[float] = field(default_factory=list)
    at: str = ""
    over: dict[str, float] = field(default_factory=dict)  # the marks that this one settles

    @property
    def done(self) -> bool:
        """Whether it is a mark."""
        return self.otherwise is not None or None not in self.items

    @property
    def points(self) -> float:
        """So far."""
        if self.otherwise is not None:
            return self.otherwise
        return sum(item for item in self.items if item is not None)

    def fits(self, answer: Answer, scheme: Rubric) -> bool:
        """Whether it is of this text and of this scheme."""
        fits = self.shape == scheme.shape and len(self.items) == len(self.shape)
        return fits and self.of == answer.of


@dataclass
class Outcome:
    """What an answer comes to, and why."""

    state: str  # blank, open, changed, differ, marked
    points: float = 0.0
    parts: list[Part] = field(default_factory=list)
    comment: str = ""

    @property
    def waits(self) -> bool:
        """Whether a person still has to say something."""
        return self.state not in ("blank", "marked")


# -- answers -----------------------------------------------------------------------------------
Answers = dict[Place, Answer]
Schemes = dict[tuple[str, str], tuple[Problem, Rubric]]


def by_hand(course: Course) -> Schemes:
    """Problems that people mark, with their schemes."""
    found = {}
    for name in course.folders:
        for one in course.source(name).problems:
            if not one.answer:
                scheme = fill(one.scheme, variant(one, name, course.seed))
                where = f"{name}.md, {one.id}"
                found[name, one.id] = one, rubric(scheme, one.points, where)
    return found


def scheme_of(course: Course, schemes: Schemes, answer: Answer) -> Rubric:
    """The scheme of an answer: with a student's own numbers, where everybody has their own."""
    one, scheme = schemes[answer.name, answer.problem]
    if not (course.each and one.variant):
        return scheme
    values = variant(one, answer.name, course.seed_of(answer.student))
    return rubric(fill(one.scheme, values), one.points, f"{answer.name}.md, {one.id}")


def aliases(course: Course) -> dict[str, str]:
    """A name for everybody that hangs on the course's seed and the id, and on nothing else."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for student in sorted({student for student, _, _ in course.submissions()}):
        for number in range(1000):
            sign = hashlib.sha256(f"{course.seed} {student} {number}".encode()).digest()
            told = f"{COLOURS.split()[sign[0] % 16]} {TREES.split()[sign[1] % 16]}"
            told += f" {100 + int.from_bytes(sign[2:4], 'big') % 900}"
            if told not in taken:
                break
        taken.add(told)
        found[student] = told
    return found


def answers(course: Course, schemes: Schemes) -> Answers:
    """All answers in words of graded submissions, in an order of its own for each problem."""
    called, wanted = aliases(course), list(schemes)
    found: list[Answer] = []
    for student, name, _ in course.submissions():
        try:
            told = json.loads(course.verdict_path(student, name).read_text("utf-8"))
            prose = {str(key): str(text) for key, text in dict(told.get("prose", {})).items()}
        except (OSError, ValueError, TypeError, AttributeError):
            continue
        for folder, problem in wanted:
            if folder == name:
                text = prose.get(problem, "")
                found.append(Answer(student, name, problem, called[student], text))

    def shuffled(one: Answer) -> tuple[int, bytes]:
        words = f"{course.seed} {one.name} {one.problem} {one.student}"
        order = wanted.index((one.name, one.problem))
        return order, hashlib.sha256(words.encode()).digest()

    return {one.place: one for one in sorted(found, key=shuffled)}


# -- files -------------------------------------------------------------------------------------
def key_of(place: Place) -> str:
    """As files write it."""
    return "/".join(place)


def marker_file(course: Course, name: str) -> Path:
    """Where a marker's marks are."""
    if not NAME.fullmatch(name):
        raise check.fail("as", "a name of letters and digits", repr(name))
    return course.place / FOLDER / f"{name}.json"


def read_file(path: Path) -> dict[str, dict[str, Given]]:
    """Marks and settlements of a file; a damaged one is named, and never written over."""
    try:
        told = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        return {
            kind: {str(key): Given(**entry) for key, entry in told.get(kind, {}).items()}
            for kind in ("marks", "settled")
        }
    except (ValueError, TypeError, AttributeError) as error:
        expected = "marks as `attnlab course mark` writes them"
        raise check.fail(f"{FOLDER}/{path.name}", expected, clean(error, 100)) from None


def write_file(path: Path, told: dict[str, dict[str, Given]]) -> None:
    """Whole, or not at all."""
    plain = {
        kind: {key: asdict(one) for key, one in sorted(entries.items())}
        for kind, entries in told.items()
    }
    replace(path, json.dumps(plain, indent=1) + "\n")


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Nobody else changes this file meanwhile, where the system knows locks."""
    path.parent.mkdir(exist_ok=True)
    with path.with_suffix(".lock").open("w") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep(course: Course, marker: str, place: Place, given: Given | None, settle: bool) -> None:
    """Save what a marker gave; None takes it back."""
    path = marker_file(course, marker)
    with alone(path):
        told = read_file(path)
        entries = told["settled" if settle else "marks"]
        if given is None:
            entries.pop(key_of(place), None)
        else:
            given.at = datetime.now().astimezone().isoformat(timespec="seconds")
            entries[key_of(place)] = given
        write_file(path, told)


def forget(course: Course, student: str) -> list[str]:
    """Take a student out of all markers' files; those that had something."""
    gone = []
    for path in sorted((course.place / FOLDER).glob("*.json")):
        with alone(path):
            told = read_file(path)
            left = {
                kind: {k: v for k, v in entries.items() if k.split("/")[0] != student}
                for kind, entries in told.items()
            }
            if left != told:
                write_file(path, left)
                gone.append(f"{FOLDER}/{path.name}")
    return gone


@dataclass
class Marks:
    """All that is in the markers' files, by marker."""

    marks: dict[str, dict[str, Given]]
    settled: dict[str, dict[str, Given]]

    @classmethod
    def read(cls, course: Course) -> Marks:
        """As it is now."""
        found = {
            path.stem: read_file(path) for path in sorted((course.place / FOLDER).glob("*.json"))
        }
        return cls(
            *({who: one[kind] for who, one in found.items()} for kind in ("marks", "settled"))
        )

    def of(self, answer: Answer, scheme: Rubric) -> dict[str, Given]:
        """Finished marks of an answer as it is now, by marker."""
        every = ((who, marks.get(key_of(answer.place))) for who, marks in self.marks.items())
        return {who: one for who, one in every if one and one.done and one.fits(answer, scheme)}

    def old(self, answer: Answer, scheme: Rubric) -> dict[str, Given]:
        """Marks of an earlier version of the answer, or of the scheme."""
        every = ((who, marks.get(key_of(answer.place))) for who, marks in self.marks.items())
        return {who: one for who, one in every if one and not one.fits(answer, scheme)}

    def settlement(self, answer: Answer, scheme: Rubric) -> Given | None:
        """The last word on marks that differ, as long as they are the marks it was about."""
        now = {who: one.points for who, one in self.of(answer, scheme).items()}
        every = [entries.get(key_of(answer.place)) for entries in self.settled.values()]
        fit = [one for one in every if one and one.done and one.fits(answer, scheme)]
        fit = [one for one in fit if one.over == now]
        return max(fit, key=lambda one: one.at, default=None)

    def outcome(self, answer: Answer, scheme: Rubric) -> Outcome:
        """What an answer comes to."""
        marks = self.of(answer, scheme)
        if not marks:
            if answer.blank:
                parts = [Part(item.words, 0.0, item.points) for item in scheme.items]
                return Outcome("blank", 0.0, parts, "nothing was written")
            return Outcome("changed" if self.old(answer, scheme) else "open")
        comments = dict.fromkeys(one.comment.strip() for one in marks.values())
        chosen = next(iter(marks.values()))
        if len({one.points for one in marks.values()}) > 1:
            settled = self.settlement(answer, scheme)
            if settled is None:
                return Outcome("differ")
            chosen, comments = settled, {settled.comment.strip(): None}
        parts = [
            Part(item.words, points or 0.0, item.points)
            for item, points in zip(scheme.items, chosen.items, strict=True)
        ]
        if chosen.otherwise is not None:
            parts = []
        return Outcome("marked", chosen.points, parts, "\n".join(filter(None, comments)))


def outcomes(course: Course) -> dict[Place, Outcome]:
    """What all answers in words come to."""
    schemes, marks = by_hand(course), Marks.read(course)
    return {
        place: marks.outcome(answer, scheme_of(course, schemes, answer))
        for place, answer in answers(course, schemes).items()
    }
