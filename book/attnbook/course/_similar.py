"""Submissions whose code is alike, in pairs, and side by side on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING

from attnbook.course import _notebook as notebooks
from attnbook.course._prints import OWN, RUN, Print, names, prints
from attnbook.course._tables import replace
from attnbook.course._unpack import ATTEMPTS, ask
from attnlab import checks as check

if TYPE_CHECKING:
    from pathlib import Path

    from attnbook.course._course import Course

LEAST = 0.5  # alike, to be shown
FEW = 4  # fingerprints: fewer in common say nothing
SHARED = 5  # students who may have the same without its being what everybody writes ...
MOST = 0.3  # ... or this share of all
SHOWN = 200  # pairs on the page
PROVES = (
    "Alike code proves nothing. Two who think alike, sat in the same lecture, read the same page "
    "or were allowed to work together write alike, and short problems have few answers. Whoever "
    "rewrote an answer is not on this page. Read both, and talk with both, before anything else."
)
DEFINED = re.compile(r"^(?:(?:import|from) .*|(?:def|class) \w+)", re.MULTILINE)  # in a setup
STYLE = """
.two { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem }
.two pre { font-size: .85rem; overflow-wrap: anywhere } mark { background: #ffe08a; color: #1c1c1c }
summary { cursor: pointer }
@media (max-width: 50rem) { .two { grid-template-columns: minmax(0, 1fr) } }
"""


@dataclass(frozen=True)
class Answer:
    """What a student wrote for a problem."""

    code: str
    prints: tuple[Print, ...]


@dataclass(frozen=True)
class Pair:
    """Two answers to one problem that are alike."""

    set: str
    problem: str
    students: tuple[str, str]
    alike: float  # of the shorter one, rare pieces weighing more
    weight: float  # of what they share
    marks: frozenset[int]


Answers = dict[tuple[str, str], dict[str, Answer]]  # by set and problem, by student


def answers(course: Course) -> tuple[Answers, list[str]]:
    """All answers with their fingerprints, and who could not be read."""
    work = list(course.submissions())
    files = [[str(path.absolute()), name] for _, name, path in work]
    given = {}
    for name in course.folders:
        stubs, others = handed_out(course, name)
        known = {key: sorted(names(text)) for key, text in stubs.items()}
        given[name] = {"problems": known, "others": others}
    skip: list[int] = []
    while True:
        lines, at = ask("_prints", {"files": files, "given": given, "skip": skip})
        if lines and lines[-1].get("end"):
            break
        if not isinstance(at, int) or at in skip or len(skip) >= ATTEMPTS:
            raise RuntimeError(f"similar: the process that reads ended at {at}")
        skip.append(at)
    found: Answers = {}
    for line in lines[:-1]:
        student, name, _ = work[line["file"]]
        some = tuple(Print(*one) for one in line["prints"])
        found.setdefault((name, line["problem"]), {})[student] = Answer(line["code"], some)
    return found, [f"{work[one][0]}, {work[one][1]}" for one in skip]


def handed_out(course: Course, name: str) -> tuple[dict[str, str], list[str]]:
    """Code that everybody was given, by problem, and the names of cells that hold no answer."""
    source = course.source(name)
    cells = {one["id"]: one["source"] for one in notebooks.build(source, course.seed)["cells"]}
    coded = [one.id for one in source.problems if one.answer]
    setup = "\n".join(DEFINED.findall(source.setup))
    stubs = {key: f"{setup}\n{cells[key]}" for key in coded}
    return stubs | {OWN: "\n".join(stubs.values())}, sorted(set(cells) - set(coded))


def skeleton(course: Course, name: str) -> frozenset[int]:
    """Fingerprints of what everybody was given."""
    stubs, _ = handed_out(course, name)
    return frozenset(one.mark for text in stubs.values() for one in prints(text, names(text)))


def alike(
    group: Mapping[str, Answer], given: frozenset[int]
) -> Iterator[tuple[tuple[str, str], float, float, frozenset[int]]]:
    """Pairs of one problem; what was given, and what most have, counts for nothing."""
    sets = {who: {one.mark for one in answer.prints} - given for who, answer in group.items()}
    owners: dict[int, list[str]] = {}
    for who in sorted(sets):
        for mark in sets[who]:
            owners.setdefault(mark, []).append(who)
    count = sum(map(bool, sets.values()))
    limit = max(SHARED, MOST * count)
    weight = {
        mark: math.log((count + 1) / len(some))
        for mark, some in owners.items()
        if len(some) <= limit
    }
    whole = {who: sum(weight.get(mark, 0.0) for mark in marks) for who, marks in sets.items()}
    shared: dict[tuple[str, str], set[int]] = {}
    for mark in weight:
        for pair in combinations(owners[mark], 2):
            shared.setdefault(pair, set()).add(mark)
    for pair, marks in sorted(shared.items()):
        if len(marks) >= FEW:
            heavy = math.fsum(weight[mark] for mark in marks)
            yield pair, heavy / min(whole[who] for who in pair), heavy, frozenset(marks)


def pairs(course: Course, found: Answers, least: float) -> list[Pair]:
    """All pairs that are alike, the most remarkable first."""
    given = {name: skeleton(course, name) for name in course.folders}
    some = [
        Pair(name, problem, who, share, heavy, marks)
        for (name, problem), group in sorted(found.items())
        for who, share, heavy, marks in alike(group, given[name])
        if share >= least
    ]
    return sorted(some, key=lambda one: (-one.alike * one.weight, one.students, one.problem))


def similar(course: Course, least: float = LEAST) -> tuple[Path, list[str], list[str]]:
    """Write the page; gives it, the pairs in words, and what could not be read."""
    if not 0 < least <= 1:
        raise check.fail("least", "a share between 0 and 1", least)
    found, unread = answers(course)
    some = pairs(course, found, least)
    target = course.place / "reports"
    target.mkdir(exist_ok=True)
    path = target / "similar.html"
    replace(path, page_of(course, found, some, unread))
    return path, overview(some), unread


# -- words -------------------------------------------------------------------------------------
def overview(some: list[Pair]) -> list[str]:
    """Two students a line, with all that is alike between them."""
    weight: dict[tuple[str, str], float] = {}
    problems: dict[tuple[str, str], list[str]] = {}
    for one in some:
        weight[one.students] = weight.get(one.students, 0.0) + one.alike * one.weight
        word = f"{one.problem or 'cells of their own'} {100 * min(1.0, one.alike):.0f} %"
        problems.setdefault(one.students, []).append(word)
    order = sorted(weight, key=lambda pair: (-weight[pair], pair))
    return [f"{a}, {b}: {', '.join(problems[a, b])}" for a, b in order]


def page_of(course: Course, found: Answers, some: list[Pair], unread: list[str]) -> str:
    """The pairs, and both texts of each beside each other."""
    from attnbook.course._report import page

    count = len({who for group in found.values() for who in group})
    parts = [f"<p><strong>{PROVES}</strong></p>"]
    parts.append(
        f"<p class='told'>{count} students, {len(some)} pairs of answers. Compared are runs of "
        f"{RUN} signs, with names, comments and spaces made equal. What was handed out, and what "
        f"more than {100 * MOST:.0f} % (and {SHARED} students) wrote, counts for nothing; what few "
        "wrote counts more. A share is of the shorter answer; what both have is marked.</p>"
    )
    parts += [f"<p>Could not be read: {escape(one)}.</p>" for one in unread]
    parts += ["<ol>", *(f"<li>{escape(line)}</li>" for line in overview(some)[:SHOWN]), "</ol>"]
    for one in some[:SHOWN]:
        head = f"{one.set}, {one.problem or 'cells of their own'}: {' and '.join(one.students)}"
        texts = [
            f"<section><h2>{escape(who)}</h2><pre>"
            + marked(found[one.set, one.problem][who], one.marks)
            + "</pre></section>"
            for who in one.students
        ]
        share = f"{100 * min(1.0, one.alike):.0f} %, {len(one.marks)} pieces"
        parts.append(f"<details><summary>{escape(head)}, {share}</summary>")
        parts.append(f"<div class='two'>{''.join(texts)}</div></details>")
    if len(some) > SHOWN:
        parts.append(f"<p>{len(some) - SHOWN} more are less alike.</p>")
    return page(f"{course.name}: alike code", "\n".join(parts), STYLE)


def marked(answer: Answer, marks: frozenset[int]) -> str:
    """A text with the lines marked that the other has too."""
    lit: set[int] = set()
    for one in answer.prints:
        if one.mark in marks:
            lit |= set(range(one.first, one.last + 1))
    lines = enumerate(answer.code.split("\n"))
    return "\n".join(f"<mark>{escape(x)}</mark>" if k in lit and x.strip() else escape(x) for k, x in lines)  # fmt: skip  # noqa: E501
