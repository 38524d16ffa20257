"""Marks per problem as CSV and one page, feedback per student, and what a person still marks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from attnbook.course._course import Course
from attnbook.course._grade import Mark, Verdict
from attnbook.course._source import fill, variant
from attnbook.course._tables import Student, replace, table
from attnlab import checks as check

NOT_YET = "not marked yet"
FORMATS = ("plain", "canvas", "moodle", "blackboard")
STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --quiet: #545b64; --ground: #fff; --bar: #0067a3; --rule: #b5bac1 }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --quiet: #b5bcc4; --ground: #14181e; --bar: #56b4e9; --rule: #48525e } }
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; display: block; overflow-x: auto } td, th { border-bottom: 1px solid var(--rule); padding: .25rem .6rem; text-align: right }
td:first-child, th:first-child { text-align: left } .told { color: var(--quiet) } svg rect { fill: var(--bar) } svg text { fill: var(--ink); font-size: 11px }
pre { white-space: pre-wrap; border-left: 3px solid var(--rule); padding-left: .8rem }
"""  # noqa: E501


@dataclass
class Row:
    """One student's results."""

    student: Student
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)

    @property
    def points(self) -> float:
        """Of all sets."""
        return sum(verdict.points for verdict in self.verdicts.values())

    @property
    def open(self) -> int:
        """Problems that a person still has to mark."""
        return sum(waiting(verdict) for verdict in self.verdicts.values())


def waiting(verdict: Verdict) -> int:
    """Problems of a set that a person still has to mark."""
    return sum(mark.by_hand and mark.told == NOT_YET for mark in verdict.marks)


def page(title: str, body: str) -> str:
    """A page that needs nothing else."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f'</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def rows(course: Course) -> list[Row]:
    """Everybody of the roster, and whoever handed in without being on it."""
    verdicts = course.verdicts()
    known = {one.id: Row(one) for one in course.students()}
    by_hand = read_by_hand(course)
    for (student, name), verdict in verdicts.items():
        row = known.setdefault(student, Row(Student(student)))
        for mark in verdict.marks:
            if not mark.by_hand:
                continue
            points, comment = by_hand.get((student, name, mark.id), (None, ""))
            mark.told = NOT_YET
            if points is not None:
                if not 0 <= points <= mark.most:
                    where = f"by-hand.csv, {student} {name} {mark.id}"
                    raise check.fail(where, f"points from 0 to {mark.most:g}", points)
                mark.points, mark.told = points, comment or "marked by a person"
        row.verdicts[name] = verdict
    path = course.place / "collected.csv"
    if path.is_file():
        for entry in table(path):
            if entry["late"] == "True" and not entry["remark"] and entry["student"] in known:
                known[entry["student"]].late.add(entry["set"])
    return [known[name] for name in sorted(known)]


ByHand = dict[tuple[str, str, str], tuple[float | None, str]]


def read_by_hand(course: Course) -> ByHand:
    """Points and comments that a person gave."""
    path = course.place / "by-hand.csv"
    found: ByHand = {}
    for number, entry in enumerate(table(path) if path.is_file() else [], 2):
        missing = {"student", "set", "problem", "points"} - set(entry)
        if missing:
            raise check.fail("by-hand.csv", "the columns it was written with", sorted(entry))
        told, comment = entry["points"].strip(), entry.get("comment", "").strip()
        try:
            points = float(told.replace(",", ".")) if told else None
        except ValueError:
            raise check.fail(f"by-hand.csv, line {number}", "points as a number", told) from None
        if points is not None or comment:
            found[entry["student"], entry["set"], entry["problem"]] = (points, comment)
    return found


def write_by_hand(course: Course, everybody: list[Row]) -> None:
    """The list of what a person marks; points and comments that stand there stay."""
    known = read_by_hand(course)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["student", "set", "problem", "most", "points", "comment"])
    asked = {
        (row.student.id, name, mark.id): f"{mark.most:g}"
        for row in everybody
        for name, verdict in row.verdicts.items()
        for mark in verdict.marks
        if mark.by_hand
    }
    for key in [*asked, *(key for key in known if key not in asked)]:
        points, comment = known.get(key, (None, ""))
        told = "" if points is None else f"{points:g}"
        writer.writerow([*key, asked.get(key, ""), told, comment])
    replace(course.place / "by-hand.csv", out.getvalue())


# -- files -------------------------------------------------------------------------------------
def report(course: Course, form: str = "plain") -> list[Path]:
    """Write everything; gives the files."""
    if form not in FORMATS:
        raise check.fail("format", f"one of {', '.join(FORMATS)}", form)
    everybody = rows(course)
    write_by_hand(course, everybody)
    target = course.place / "reports"
    target.mkdir(exist_ok=True)
    written = [target / "marks.csv", target / "marks.html"]
    replace(written[0], marks_csv(course, everybody))
    replace(written[1], marks_page(course, everybody))
    if form != "plain":
        written.append(target / f"{form}.csv")
        replace(written[-1], platform_csv(course, everybody, form))
    for name in course.folders:
        path = target / f"by-hand-{name}.html"
        replace(path, by_hand_page(course, name, everybody))
        written.append(path)
    for row in everybody:
        for name, verdict in row.verdicts.items():
            path = course.place / "feedback" / row.student.id / name
            path.mkdir(parents=True, exist_ok=True)
            replace(path / f"{name}.html", feedback(course, row, verdict))
            written.append(path / f"{name}.html")
    return written


def marks_csv(course: Course, everybody: list[Row]) -> str:
    """One line a student, one column a problem."""
    columns = [(name, one.id) for name in course.folders for one in course.source(name).problems]
    out = io.StringIO()
    writer = csv.writer(out)
    head = ["id", "first_name", "last_name", "email", *(f"{n}:{p}" for n, p in columns)]
    writer.writerow([*head, "total", "not_marked_yet", "late", "notices"])
    for row in everybody:
        marks = {(n, m.id): m for n, verdict in row.verdicts.items() for m in verdict.marks}
        cells = [f"{marks[key].points:g}" if key in marks else "" for key in columns]
        notices = sum(len(verdict.notices) for verdict in row.verdicts.values())
        one = row.student
        about = [one.id, one.first_name, one.last_name, one.email]
        writer.writerow(
            [*about, *cells, f"{row.points:g}", row.open, " ".join(sorted(row.late)), notices]
        )
    return out.getvalue()


def platform_csv(course: Course, everybody: list[Row], form: str) -> str:
    """With the column names that a learning platform imports."""
    out = io.StringIO()
    writer = csv.writer(out)
    sets = [course.source(name) for name in course.folders]
    if form == "canvas":
        writer.writerow(
            ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *(s.title for s in sets)]
        )
        writer.writerow(["    Points Possible", "", "", "", "", *(f"{s.points:g}" for s in sets)])
    elif form == "moodle":
        writer.writerow(
            ["ID number", "First name", "Last name", "Email address", *(s.title for s in sets)]
        )
    else:
        writer.writerow(
            [
                "Last Name",
                "First Name",
                "Username",
                *(f"{s.title} [Total Pts: {s.points:g}]" for s in sets),
            ]
        )
    for row in everybody:
        one = row.student
        points = [
            f"{row.verdicts[n].points:g}" if n in row.verdicts else "" for n in course.folders
        ]
        start = {
            "canvas": [f"{one.last_name}, {one.first_name}", "", one.id, one.id, ""],
            "moodle": [one.id, one.first_name, one.last_name, one.email],
            "blackboard": [one.last_name, one.first_name, one.id],
        }[form]
        writer.writerow([*start, *points])
    return out.getvalue()


def histogram(values: list[float], most: float) -> str:
    """A distribution in ten bars, with its numbers in words."""
    if not values:
        return "<p class='told'>Nothing handed in.</p>"
    counts = [0] * 10
    for value in values:
        counts[min(9, int(10 * value / most)) if most else 0] += 1
    tall = max(counts)
    middle = sorted(values)[len(values) // 2]
    words = f"{len(values)} submissions, median {middle:g} of {most:g}; by tenths: {counts}"
    bars = ""
    for k, n in enumerate(counts):
        left, high = 30 * k, 80 * n / tall
        bars += f'<rect x="{left + 4}" y="{100 - high:.1f}" width="24" height="{high:.1f}"/>'
        for y, told in ((94 - high, n or ""), (114, f"{10 * k}%")):
            bars += f'<text x="{left + 16}" y="{y:.1f}" text-anchor="middle">{told}</text>'
    return f'<svg viewBox="0 0 308 120" width="400" role="img" aria-label="{words}">{bars}</svg>'


def marks_page(course: Course, everybody: list[Row]) -> str:
    """Distributions, marks, notices."""
    parts = [f"<p>Seed {course.seed}. {len(everybody)} students.</p>"]
    if left := sum(row.open for row in everybody):
        parts.append(f"<p class='told'>{left} answers wait for a person and count 0 so far.</p>")
    for name in course.folders:
        source = course.source(name)
        some = [row.verdicts[name] for row in everybody if name in row.verdicts]
        parts.append(f"<h2>{escape(source.title)}</h2>")
        parts.append(histogram([verdict.points for verdict in some], source.points))
        lines = ["<table><tr><th>problem</th><th>points</th><th>mean</th><th>full marks</th></tr>"]
        for k, one in enumerate(source.problems):
            got = [verdict.marks[k].points for verdict in some]
            mean = f"{sum(got) / len(got):.2f}" if got else ""
            full = f"{sum(p >= one.points for p in got)} of {len(got)}"
            lines.append(
                f"<tr><td>{escape(one.title)}</td><td>{one.points:g}</td><td>{mean}</td><td>{full}</td></tr>"
            )
        parts.append("".join(lines) + "</table>")
    parts.append("<h2>Students</h2><table><tr><th>id</th><th>name</th>")
    parts += [f"<th>{escape(name)}</th>" for name in course.folders]
    parts.append("<th>total</th><th>open</th><th>late</th></tr>")
    for row in everybody:
        who = row.student
        cells = [
            f"{row.verdicts[n].points:g}" if n in row.verdicts else "–" for n in course.folders
        ]
        told = [
            escape(f"{who.first_name} {who.last_name}"),
            *cells,
            f"{row.points:g}",
            str(row.open or ""),
        ]
        told.append(escape(" ".join(sorted(row.late))))
        parts.append(
            f"<tr><td>{escape(who.id)}</td>" + "".join(f"<td>{t}</td>" for t in told) + "</tr>"
        )
    told_about = "What marking saw. A notice is no verdict: marks follow from answers alone."
    parts.append(f"</table><h2>Notices</h2><p class='told'>{told_about}</p><ul>")
    for row in everybody:
        for name, verdict in row.verdicts.items():
            for words in verdict.notices:
                parts.append(f"<li>{escape(row.student.id)}, {escape(name)}: {escape(words)}</li>")
    return page(f"Marks of {course.name}", "\n".join([*parts, "</ul>"]))


def lines_of(mark: Mark) -> Iterator[str]:
    """What a mark says about its parts."""
    for part in mark.parts:
        why = f": {escape(part.told)}" if part.told else ""
        yield f"<li>{escape(part.name)}: {part.points:g} of {part.most:g}{why}</li>"
    if mark.told:
        yield f"<li class='told'>{escape(mark.told)}</li>"


def feedback(course: Course, row: Row, verdict: Verdict) -> str:
    """For a student: what was tested and found, not what was asked."""
    left = waiting(verdict)
    parts = [f"<p>{escape(row.student.id)}: {verdict.points:g} of {verdict.most:g} points"
             + (f", {left} problems not marked yet" if left else "") + ".</p>"]  # fmt: skip
    for mark in verdict.marks:
        parts.append(f"<h2>{escape(mark.title)}: {mark.points:g} of {mark.most:g}</h2><ul>")
        parts += [*lines_of(mark), "</ul>"]
    return page(f"{course.name}: {verdict.name}", "\n".join(parts))


def by_hand_page(course: Course, name: str, everybody: list[Row]) -> str:
    """Answers in words beside the marking scheme; points go into by-hand.csv."""
    parts = ["<p>Write points and comments into <code>by-hand.csv</code>, then report again.</p>"]
    for one in course.source(name).problems:
        if one.answer:
            continue
        scheme = fill(one.scheme, variant(one, name, course.seed))
        parts.append(f"<h2>{escape(one.title)} ({one.points:g} points)</h2>")
        parts.append(f"<details><summary>Scheme</summary><pre>{escape(scheme)}</pre></details>")
        for row in everybody:
            path = course.verdict_path(row.student.id, name)
            if name in row.verdicts and path.is_file():
                prose = json.loads(path.read_text("utf-8")).get("prose", {}).get(one.id, "")
                parts.append(f"<h3>{escape(row.student.id)}</h3><pre>{escape(prose)}</pre>")
    return page(f"{course.name}: {name}, marked by a person", "\n".join(parts))
