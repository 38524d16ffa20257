"""Verdicts: what a submission earns, decided outside of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from attnbook.course._notices import Notices, grave
from attnbook.course._numbers import RangeError, within
from attnbook.course._raised import without_words
from attnbook.course._sandbox import Limits, Sandbox
from attnbook.course._session import Reply, Session
from attnbook.course._source import Problem, ProblemSet, generator, variant
from attnbook.course._submission import Submission
from attnbook.course._words import clean

RESTARTS = 12  # of one submission's process


@dataclass
class Part:
    """One hidden test of a problem."""

    name: str
    points: float
    most: float
    told: str = ""  # to the student
    raised: str = ""  # an error in the words of the student's code, for the instructor


@dataclass
class Mark:
    """What a problem earned, and why."""

    id: str
    title: str
    points: float
    most: float
    by_hand: bool = False
    parts: list[Part] = field(default_factory=list)
    told: str = ""


@dataclass
class Verdict:
    r"""What a submission earned. Nothing in it depends on when, where or how fast it was formed.

    Args:
        name: of the problem set.
        marks: points by problem, and by hidden test within it.
        notices: what marking saw besides answers; never a reason for points.
        status: ``graded``, or ``unreadable`` where the file was no notebook.

    Returns:
        A verdict.

    Examples:
        >>> from attnbook import course
        >>> course.Verdict("set4-svm", [], []).points
        0
    """

    name: str
    marks: list[Mark]
    notices: list[str]
    status: str = "graded"

    @property
    def points(self) -> float:
        """Of all that a machine marks."""
        return sum(mark.points for mark in self.marks)

    @property
    def most(self) -> float:
        """Of all problems, those that a person marks included."""
        return sum(mark.most for mark in self.marks)


def quoted(error: str) -> str:
    """Words of a student's code, so that nobody takes them for ours."""
    return "“" + error.replace("“", '"').replace("”", '"') + "”"


class Box(Protocol):
    """Where cells run: a sandbox, or less on a student's own machine."""

    def open(self) -> Session:
        """Start a process."""
        ...


class Run:
    """A submission's cells in a session; the cell that kills the process is left out next time."""

    def __init__(self, box: Box, cells: list[tuple[str, str]]) -> None:
        self.cells, self.deadly = cells, set[int]()
        self.errors: dict[str, str] = {}
        self.raised: dict[str, bool] = {}  # whether an error is in the words of the code
        self.notices = Notices()
        self.restarts = 0
        self.session: Session = box.open()
        self.load()

    def load(self) -> None:
        """Run all cells that do not kill, from a fresh start."""
        while True:
            for number, (name, source) in enumerate(self.cells):
                if number in self.deadly:
                    continue
                reply = self.session.cell(source, f"cell {name}")
                self.hear(reply, f"cell {name}")
                if reply.error:
                    self.errors[name] = reply.error
                    self.raised[name] = reply.raised
                    self.hear_error(reply, f"cell {name}")
                if reply.died:
                    self.deadly.add(number)
                    break
            else:
                return
            if not self.again():
                return

    def again(self) -> bool:
        """A fresh process, if there is still time and patience."""
        self.restarts += 1
        if self.restarts > RESTARTS or self.session.left <= 0:
            return False
        self.session.start()
        return True

    def hear_error(self, reply: Reply, where: str) -> None:
        """Keep an error; it is said where the words are those of the student's code."""
        if reply.raised and "yours to write" not in reply.error:
            self.notices.add("errors", f"{where}: its code says {quoted(reply.error)}")
        elif not reply.raised:
            is_grave = reply.died or bool(grave(reply.error))
            self.notices.add("what ended it" if is_grave else "limits", f"{where}: {reply.error}",
                             is_grave=is_grave)  # fmt: skip

    def hear(self, reply: Reply, where: str) -> None:
        """What was seen while it answered."""
        for words in reply.seen:
            self.notices.hear(where, words)

    def ask(self, one: Problem, given: tuple[Any, ...]) -> Reply:
        """An answer of the student's; where the process died on an earlier one, a fresh one."""
        if not self.session.alive:
            if not self.again():
                return Reply(error="the process had died too often, or time was up")
            self.load()
        reply = (
            self.session.value(one.answer) if one.value else self.session.call(one.answer, *given)
        )
        self.hear(reply, one.answer)
        if reply.died or (reply.error and not reply.raised and grave(reply.error)):
            self.hear_error(reply, one.answer)
        return reply


class Judge:
    """The hidden tests of a problem, in the grader's own process."""

    def __init__(self, source: ProblemSet, one: Problem, seed: int) -> None:
        self.one, self.values = one, variant(one, source.name, seed)
        self.space: dict[str, Any] = {"v": self.values}
        exec(compile(one.judge, f"{source.name} {one.id} judge", "exec"), self.space)
        self.rng = generator(seed, source.name, one.id, "cases")
        self.stumbled: list[str] = []

    def cases(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Which part a case tests, and what is given."""
        for part, *given in self.space["cases"](self.rng, self.values):
            if part not in self.one.parts:
                raise LookupError(f"{self.one.id}: a case of the unknown part {part!r}")
            yield part, tuple(given)

    def why_not(self, part: str, given: tuple[Any, ...], answer: Any) -> str:
        """Empty where the answer is right; a judge that stumbles over it finds it wrong.

        Numbers are finite and of a size that the problem declares; over- and underflow and
        division by 0 end the judge, so that ``inf >= inf`` and ``0 >= 0`` are never asked.
        """
        try:
            answer = within(answer, self.one.sizes, infinite=self.one.infinite)
            eased = np.errstate(under="ignore") if self.one.underflow else nullcontext()
            with np.errstate(over="raise", divide="raise", invalid="raise", under="raise"), eased:
                found = self.space["judge"](part, given, answer, self.values)
        except AssertionError as error:
            return clean(str(error), 500) or "not what was asked for"
        except RangeError as error:
            return f"an answer that is not judged: {error}"
        except (Exception, RecursionError) as error:
            words = f"the judge of {self.one.id}, {part}, ended in {type(error).__name__}"
            self.stumbled.append(f"{words}: 0 for this part")
            return f"an answer of another form than asked for ({type(error).__name__})"
        if found is None or found is True:
            return ""
        return clean(found, 500) if isinstance(found, str) and found else "not what was asked for"


Tell = Callable[[str], None]


def mark_problem(
    run: Run,
    source: ProblemSet,
    one: Problem,
    seed: int,
    tell: Tell = lambda _: None,
    skip: frozenset[str] = frozenset(),
) -> Mark:
    """All cases of all parts; a part earns its points if all its cases pass.

    ``tell`` hears what comes next, and what is in ``skip`` is not tried again: it ended the
    process that marks.
    """
    mark = Mark(one.id, one.title, 0.0, one.points, by_hand=not one.answer)
    if not one.answer:
        mark.told = "marked by a person"
        return mark
    judge = Judge(source, one, seed)
    wrong: dict[str, str] = {}
    raised: dict[str, str] = {}
    tried: set[str] = set()
    for part, given in judge.cases():
        tried.add(part)
        if part in wrong:
            continue
        ask, weigh = f"ask {one.id}, {part}", f"judge {one.id}, {part}"
        if {ask, weigh} & skip:
            wrong[part] = "an answer that could not be judged in the time and memory there is"
            run.notices.add("answers that were not judged", f"{one.id}, {part}: {wrong[part]}")
            continue
        tell(ask)
        reply = run.ask(one, given)
        tell(weigh)
        why = reply.error
        if reply.raised:
            raised[part] = reply.error
            why = without_words(reply.error, one.answer, run.cells)
        elif not why:
            why = judge.why_not(part, given, reply.answer)
        if why:
            wrong[part] = why
    for words in judge.stumbled:
        run.notices.add("judges that ended in an error", words)
    untried = set(one.parts) - tried
    if untried:
        raise LookupError(f"{source.name} {one.id}: no case tests {sorted(untried)}")
    for part, most in one.parts.items():
        points = 0.0 if part in wrong else most
        mark.parts.append(Part(part, points, most, wrong.get(part, ""), raised.get(part, "")))
    mark.points = sum(part.points for part in mark.parts)
    return mark


def grade(
    submission: Submission,
    source: ProblemSet,
    seed: int,
    *,
    limits: Limits | None = None,
    only: str = "",
    tell: Tell = lambda _: None,
    skip: frozenset[str] = frozenset(),
) -> Verdict:
    r"""What a submission earns in a course.

    Args:
        submission: as `read_submission` gives it.
        source: the problem set.
        seed: of the course.
        limits: what the student's code may use.
        only: the id of one problem; all of them where empty.
        tell: hears each step before it is taken.
        skip: steps that are not taken, because they ended an earlier attempt.

    Returns:
        Marks by problem and part, and what was noticed.
    """
    wanted = [one for one in source.problems if only in ("", one.id)]
    if submission.error:
        marks = [Mark(one.id, one.title, 0.0, one.points, not one.answer) for one in wanted]
        return Verdict(source.name, marks, [submission.error, *submission.notices], "unreadable")
    tell("talk")
    run = Run(Sandbox(source.rooms, limits or Limits()), submission.cells)
    try:
        marks = [mark_problem(run, source, one, seed, tell, skip) for one in wanted]
    finally:
        run.session.close()
    for mark in marks:
        if not mark.points and not mark.by_hand and mark.id in run.errors:
            error = run.errors[mark.id]
            mark.told = f"its cell: {quoted(error) if run.raised[mark.id] else error}"
    return Verdict(source.name, marks, [*run.notices.lines(), *submission.notices])
