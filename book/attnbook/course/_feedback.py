"""Feedback for a student: each part and what it was about, the answer as it came, where to read."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from pathlib import Path

from attnbook.course._course import Course
from attnbook.course._grade import Mark, Verdict
from attnbook.course._rubric import rubric
from attnbook.course._source import Problem, ProblemSet, fill, read, variant
from attnbook.course._submission import PROSE
from attnbook.course._words import clean

FORMULA = re.compile(r"\$([^$\n]+)\$|`([^`\n]+)`")
NOT_YET = "not marked yet"


@lru_cache(maxsize=4096)
def typeset(words: str) -> str:
    """An instructor's words with formulas that a browser sets, without a script or another host."""
    out, at = [], 0
    for hit in FORMULA.finditer(words):
        inner = formula(hit[1]) if hit[1] else f"<code>{escape(hit[2])}</code>"
        out += [escape(words[at : hit.start()]), inner]
        at = hit.end()
    return "".join([*out, escape(words[at:])])


def formula(tex: str) -> str:
    """MathML, by docutils; TeX as it stands where that is absent or does not know a command."""
    try:
        writer = importlib.import_module("docutils.utils.math.latex2mathml")
        return str(writer.tex2mathml(tex, as_block=False))
    except Exception:  # what it raises has another place in another version
        return escape(f"${tex}$")


@lru_cache(maxsize=8)
def sheet(path: Path, _: int) -> ProblemSet:
    """A problem set as of a time, read once for all students."""
    return read(path)


def problems(course: Course, name: str) -> dict[str, Problem]:
    """The problems of a set, by id."""
    path = course.sheet(name)
    return {one.id: one for one in sheet(path, path.stat().st_mtime_ns).problems}


def answers(course: Course, student: str, name: str) -> dict[str, str]:
    """What was handed in, by problem: words, and code."""
    try:
        told = json.loads(course.verdict_path(student, name).read_text("utf-8"))["prose"]
        return {str(key): str(text) for key, text in told.items()}
    except (OSError, ValueError, KeyError, AttributeError):
        return {}


def body(course: Course, student: str, verdict: Verdict) -> Iterator[str]:
    """The problems of a verdict, as pieces of a page."""
    known, given = problems(course, verdict.name), answers(course, student, verdict.name)
    for mark in verdict.marks:
        one = known.get(mark.id)
        yield f"<h2>{typeset(mark.title)}: {mark.points:g} of {mark.most:g}</h2>"
        if one:
            yield f"<p class='told'>You learn {typeset(one.goal)}</p>"
        yield f"<ul>{''.join(lines(mark, one))}</ul>"
        if one and mark.by_hand and not mark.parts and mark.told != NOT_YET:
            yield "<p>What the points are for:</p>"
            yield f"<ul>{''.join(steps(course, student, verdict.name, one))}</ul>"
        if one and one.read and mark.points < mark.most:
            yield f"<p>To read again: {where(course, one.read)}</p>"
        text = given.get(mark.id, "")
        if text.strip():
            told = escape(clean(text, PROSE, lines=True))
            yield f"<details><summary>Your answer, as it came</summary><pre>{told}</pre></details>"


def lines(mark: Mark, one: Problem | None) -> Iterator[str]:
    """What a mark says about its parts."""
    for part in mark.parts:
        about = one.about.get(part.name, "") if one else ""
        why = f": {escape(part.told)}" if part.told else ""
        told = f"<br><span class='told'>{typeset(about)}</span>" if about else ""
        yield f"<li>{escape(part.name)}: {part.points:g} of {part.most:g}{why}{told}</li>"
    if mark.told:
        yield f"<li class='told'>{escape(mark.told)}</li>"


def steps(course: Course, student: str, name: str, one: Problem) -> Iterator[str]:
    """The steps of a marking scheme, without its answer: for points that were given as a whole."""
    values = variant(one, name, course.seed_of(student))
    for item in rubric(fill(one.scheme, values), one.points, f"{name}.md, {one.id}").items:
        yield f"<li>{typeset(item.words)}: {item.points:g}</li>"


def where(course: Course, page: str) -> str:
    """A page of the book; a link where course.json says where the book is."""
    try:
        book = str(json.loads((course.place / "course.json").read_text("utf-8")).get("book", ""))
    except (OSError, ValueError):
        book = ""
    if not book.startswith(("https://", "http://")):
        return f"<code>{escape(page)}</code> in the book"
    address = escape(f"{book.rstrip('/')}/{page}.html", quote=True)
    return f'<a href="{address}">{escape(page)}</a> in the book'
