"""Before a notebook is handed in: what of it can be marked. No solution is needed, no hidden test.

A notebook says in its metadata what it asks for. That is believed only as far as it helps: it names
cells and answers, and a changed one misleads nobody but its owner.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbook.course import _notebook as notebooks
from attnbook.course import cells, wire
from attnbook.course._grade import Run
from attnbook.course._here import Here
from attnbook.course._library import LOWER
from attnbook.course._sandbox import Limits, NoSandboxError, Sandbox, available
from attnbook.course._submission import OUR_OWN, Submission, grade_id, joined, load
from attnbook.course._words import clean
from attnlab import checks as check

NO_SANDBOX = "No sandbox on this machine, so your code ran in a plain process: marking allows less."
GOOD = ("accepted", "in words", "blank")
BLANK = "NotImplementedError: yours to write"
WATCH = """import cells as _cells
_own, _came = {name}, []
{name} = _cells.watched(_own, _came) if callable(_own) else _own
_value = not callable(_own)"""
PUT_BACK = "{name} = _own\n_came = [{name}] if _value else _came"


@dataclass(frozen=True)
class Finding:
    r"""What marking could do with one answer.

    Args:
        problem: its id, or the name of the answer.
        status: ``accepted``, ``in words``, ``blank``, ``not plain``, ``missing``, ``renamed``,
            ``edited`` (the check cell), ``raises``, ``check fails`` or ``not checked``.
        told: what came, and what to do.

    Returns:
        A finding.

    Examples:
        >>> from attnbook import course
        >>> print(course.Finding("reach", "missing", "write a function reach"))
        reach: missing: write a function reach
    """

    problem: str
    status: str
    told: str = ""

    @property
    def good(self) -> bool:
        """Whether there is nothing to do, blanks apart."""
        return self.status in GOOD

    def __str__(self) -> str:
        return f"{self.problem}: {self.status}" + (f": {self.told}" if self.told else "")


@dataclass(frozen=True)
class Asked:
    """A problem as its notebook names it."""

    id: str
    answer: str
    check: str


def preflight(path: str | Path) -> tuple[list[Finding], str]:
    r"""What marking could do with a notebook: its cells run as they will be when it is marked.

    Args:
        path: the notebook.

    Returns:
        A finding for each problem, in order, and a sentence about the place where the code ran;
        empty where that was the sandbox of marking.

    Examples:
        >>> from attnbook import course
        >>> course.preflight("none.ipynb")
        Traceback (most recent call last):
        ...
        ValueError: notebook: expected one that can be read, got no notebook: none.ipynb
    """
    found = Submission()
    notebook = load(Path(path), found)
    if notebook is None:
        raise check.fail("notebook", "one that can be read", found.error)
    told = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    rooms, problems = asked(told)
    code: list[tuple[str, str]] = []
    checks: dict[str, str] = {}
    words: dict[str, str] = {}
    for number, cell in enumerate(notebook):
        name, text = grade_id(cell), joined(cell)
        if cell.get("cell_type") == "markdown":
            words[name] = text
        elif cell.get("cell_type") == "code" and name.endswith("-check"):
            checks[name] = text
        elif cell.get("cell_type") == "code" and (name == "setup" or name not in OUR_OWN):
            code.append((name or str(number + 1), text))
    box, remark = place(rooms)
    run = Run(box, code)
    try:
        return [look(run, one, checks, words) for one in problems], remark
    finally:
        run.session.close()


def place(rooms: tuple[str, ...]) -> tuple[Sandbox | Here, str]:
    """The sandbox of marking, or what there is."""
    try:
        available()
    except NoSandboxError:
        return Here(rooms), NO_SANDBOX
    return Sandbox(rooms, Limits()), ""


def asked(told: dict[str, Any]) -> tuple[tuple[str, ...], list[Asked]]:
    """What a notebook says of itself, read with distrust."""
    try:
        about = told["metadata"][notebooks.ABOUT]
        rooms = tuple(room for room in about["rooms"] if room in LOWER)
        found = [
            Asked(clean(one["id"], 80), str(one["answer"]), str(one["check"]))
            for one in about["problems"][:200]
        ]
    except (KeyError, TypeError):
        found = []
    if not found or any(one.answer and not one.answer.isidentifier() for one in found):
        raise check.fail("notebook", "one as the course hands it out", "another") from None
    return rooms, found


def look(run: Run, one: Asked, checks: dict[str, str], words: dict[str, str]) -> Finding:
    """One problem."""
    if not one.answer:
        return in_words(one.id, words.get(one.id))
    own = {name: text for name, text in run.cells if name == one.id}
    found = Finding(one.id, "missing", f"the cell of {one.answer} is not there")
    if not run.session.alive and not restarted(run):
        return Finding(one.id, "raises", "the process ended too often, or time was up")
    reply = run.session.cell(WATCH.format(name=one.answer), "watch")
    if "NameError" in reply.error:
        error = run.errors.get(one.id, "")
        if not own:
            return found
        if error:
            return Finding(one.id, "raises", clean(error))
        return nameless(one, own[one.id])
    text = checks.get(f"{one.id}-check")
    error = run.session.cell(text, "check").error if text is not None else ""
    put_back = run.session.cell(PUT_BACK.format(name=one.answer), "watch")
    answer = run.session.value("_came") if not put_back.error else put_back
    if BLANK in error:
        return Finding(one.id, "blank")
    if "NotPlainError" in answer.error:
        return Finding(one.id, "not plain", answer.error.removeprefix("NotPlainError: "))
    if answer.error:
        return Finding(one.id, "raises", answer.error)
    if text is None:
        return Finding(one.id, "missing", "its check cell; the answer is there, and not checked")
    if notebooks.digest(text) != one.check:
        return Finding(one.id, "edited", "its check cell; marking uses its own")
    return judged(one.id, error)


def restarted(run: Run) -> bool:
    """A fresh process, with all cells that do not kill it."""
    if not run.again():
        return False
    run.load()
    return run.session.alive


def judged(name: str, error: str) -> Finding:
    """What its check says."""
    if not error:
        return Finding(name, "accepted")
    if error.startswith("AssertionError"):
        return Finding(name, "check fails", clean(error.removeprefix("AssertionError: ")))
    return Finding(name, "raises", clean(error))


def in_words(name: str, text: str | None) -> Finding:
    """An answer that a person reads."""
    if text is None:
        return Finding(name, "missing", "the cell for your words is not there")
    if not text.strip() or text.strip() == notebooks.PROSE:
        return Finding(name, "blank")
    return Finding(name, "in words", f"{len(text.strip()):,} characters, for a person to read")


def nameless(one: Asked, text: str) -> Finding:
    """The cell is there, what is asked for is not."""
    try:
        body = cells.tree(text).body
    except SyntaxError as error:
        return Finding(one.id, "raises", f"SyntaxError: {clean(error)}")
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    if names:
        return Finding(one.id, "renamed", f"{one.answer} is asked for, not {clean(names[-1], 60)}")
    return Finding(one.id, "missing", f"its cell does not define {one.answer}")


def look_over(space: dict[str, Any], names: str, say: Callable[[str], None] = print) -> None:
    r"""What of a running notebook's answers can be handed over, as its last cell asks.

    Args:
        space: the notebook's names, with a function ``check_NAME`` for each answer.
        names: of the answers, with spaces between them.
        say: takes each line.

    Returns:
        Nothing; each answer has its line.

    Examples:
        >>> from attnbook import course
        >>> space = {"half": lambda x: {x / 2}}
        >>> space["check_half"] = lambda: space["half"](3)
        >>> course.look_over(space, "half third")
        half: not plain: a set, which has no order: return sorted(...) of it
        third: missing: run its cell first
    """
    for name in names.split():
        say(str(live(space, name)))


def live(space: dict[str, Any], name: str) -> Finding:
    """One answer, on the example of its check."""
    own, test = space.get(name), space.get(f"check_{name}")
    if own is None or test is None:
        return Finding(name, "missing", "run its cell first" if own is None else "run its check")
    came: list[Any] = []
    error = ""
    if callable(own):
        space[name] = cells.watched(own, came)
    else:
        came.append(own)
    try:
        test()
    except Exception as stop:
        error = f"{type(stop).__name__}: {stop}"
    finally:
        space[name] = own
    if error == BLANK:
        return Finding(name, "blank")
    try:
        for value in came:
            wire.pack(wire.simple(value))
    except wire.NotPlainError as stop:
        return Finding(name, "not plain", str(stop))
    return judged(name, error)
