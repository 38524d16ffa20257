"""Marks per problem as CSV and one page, feedback per student, and what a person still marks."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from attnbook.course import _counting
from attnbook.course._course import Course
from attnbook.course._deadlines import Late
from attnbook.course._feedback import NOT_YET, body
from attnbook.course._grade import Mark, Verdict
from attnbook.course._marking import Answers, answers, by_hand, outcomes
from attnbook.course._source import Problem, fill, variant
from attnbook.course._statistics import READ, cells, histogram, plot, share, statistics
from attnbook.course._tables import Student, replace, table
from attnbook.course._words import cell, uncell
from attnlab import checks as check

FORMATS = ("plain", "canvas", "moodle")
STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --quiet: #545b64; --ground: #fff; --bar: #0067a3; --rule: #b5bac1 }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --quiet: #b5bcc4; --ground: #14181e; --bar: #56b4e9; --rule: #48525e } }
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; display: block; overflow-x: auto } td, th { border-bottom: 1px solid var(--rule); padding: .25rem .6rem; text-align: right }
td:first-child, th:first-child { text-align: left } .told { color: var(--quiet) } svg rect, svg circle { fill: var(--bar) } svg text { fill: var(--ink); font-size: 11px } svg { max-width: 100%; height: auto }
svg rect.open { fill-opacity: .2; stroke: var(--bar); stroke-dasharray: 2 2 } svg .rule { stroke: var(--rule) } svg .lead { stroke: var(--quiet) }
td:first-child { min-width: 9rem } td + td { white-space: nowrap }
pre { white-space: pre-wrap; border-left: 3px solid var(--rule); padding-left: .8rem }
"""  # noqa: E501


@dataclass
class Row:
    """One student's results."""

    student: Student
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    late: dict[str, Late] = field(default_factory=dict)
    lost: dict[str, float] = field(default_factory=dict)  # points of late sets
    dropped: set[str] = field(default_factory=set)
    most: float = 0.0  # of the sets that count

    @property
    def points(self) -> float:
        """Of all sets."""
        return sum(verdict.points for verdict in self.verdicts.values())

    def counted(self, name: str) -> float:
        """Points of a set, without what its being late costs."""
        return self.verdicts[name].points - self.lost.get(name, 0.0)

    @property
    def total(self) -> float:
        """What counts of all sets."""
        return sum(self.counted(name) for name in self.verdicts if name not in self.dropped)

    @property
    def open(self) -> int:
        """Problems that a person still has to mark."""
        return sum(waiting(verdict) for verdict in self.verdicts.values())


def waits(mark: Mark) -> bool:
    """Whether a person still has to mark it."""
    return mark.by_hand and mark.told == NOT_YET


def waiting(verdict: Verdict) -> int:
    """Problems of a set that a person still has to mark."""
    return sum(map(waits, verdict.marks))


def page(title: str, body: str, style: str = "") -> str:
    """A page that needs nothing else."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f'</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{style}</style></head><body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def rows(course: Course) -> list[Row]:
    """Everybody of the roster, and whoever handed in without being on it."""
    verdicts = course.verdicts()
    known = {one.id: Row(one) for one in course.students()}
    typed, found = read_by_hand(course), outcomes(course)
    for (student, name), verdict in verdicts.items():
        row = known.setdefault(student, Row(Student(student)))
        for mark in verdict.marks:
            if not mark.by_hand:
                continue
            points, comment = typed.get((student, name, mark.id), (None, ""))
            outcome = found.get((student, name, mark.id))
            mark.told = NOT_YET
            if points is None and outcome is not None and not outcome.waits:
                mark.points, mark.parts = outcome.points, outcome.parts
                mark.told = comment or outcome.comment or "marked by a person"
                if verdict.status == "unreadable" and outcome.state == "blank":
                    mark.told = comment or "the file could not be read"
            if points is not None:
                if not 0 <= points <= mark.most:
                    where = f"by-hand.csv, {student} {name} {mark.id}"
                    raise check.fail(where, f"points from 0 to {mark.most:g}", points)
                mark.points, mark.told = points, comment or "marked by a person"
        row.verdicts[name] = verdict
    _counting.settle(course, known)
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
        told, comment = entry["points"].strip(), uncell(entry.get("comment", "").strip())
        try:
            points = float(told.replace(",", ".")) if told else None
        except ValueError:
            raise check.fail(f"by-hand.csv, line {number}", "points as a number", told) from None
        if points is not None or comment:
            found[entry["student"], entry["set"], entry["problem"]] = (points, comment)
    return found


def write_by_hand(course: Course, everybody: list[Row]) -> None:
    """The list of what waits for a person; points and comments that stand there stay."""
    known = read_by_hand(course)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["student", "set", "problem", "most", "points", "comment"])
    asked = {
        (row.student.id, name, mark.id): f"{mark.most:g}"
        for row in everybody
        for name, verdict in row.verdicts.items()
        for mark in verdict.marks
        if mark.by_hand and (waits(mark) or (row.student.id, name, mark.id) in known)
    }
    for key in [*asked, *(key for key in known if key not in asked)]:
        points, comment = known.get(key, (None, ""))
        told = "" if points is None else f"{points:g}"
        writer.writerow([*key, asked.get(key, ""), told, cell(comment)])
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
    told = answers(course, by_hand(course))
    for name in course.folders:
        path = target / f"by-hand-{name}.html"
        replace(path, by_hand_page(course, name, everybody, told))
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
    tail = ["total", "not_marked_yet", "late", "notices"]
    writer.writerow([*head, *tail, *_counting.columns(course)])
    for row in everybody:
        marks = {(n, m.id): m for n, verdict in row.verdicts.items() for m in verdict.marks}
        cells = [f"{marks[key].points:g}" if key in marks else "" for key in columns]
        notices = sum(len(verdict.notices) for verdict in row.verdicts.values())
        one = row.student
        about = [cell(word) for word in (one.id, one.first_name, one.last_name, one.email)]
        late, counts = " ".join(sorted(row.late)), _counting.cells(course, row)
        writer.writerow([*about, *cells, f"{row.points:g}", row.open, late, notices, *counts])
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
    else:
        writer.writerow(
            ["ID number", "First name", "Last name", "Email address", *(s.title for s in sets)]
        )
    for row in everybody:
        one = row.student
        points = [
            _counting.shown(row.counted(n)) if n in row.verdicts else "" for n in course.folders
        ]
        start = {
            "canvas": [f"{one.last_name}, {one.first_name}", "", one.id, one.id, ""],
            "moodle": [one.id, one.first_name, one.last_name, one.email],
        }[form]
        writer.writerow([*map(cell, start), *points])
    return out.getvalue()


def marks_page(course: Course, everybody: list[Row]) -> str:
    """Distributions, marks, notices."""
    parts = [f"<p>Seed {course.seed}. {len(everybody)} students.</p>"]
    if left := sum(row.open for row in everybody):
        words = f"{left} answers wait for a person. Totals count them as 0, shares leave them out."
        parts.append(f"<p class='told'>{words}</p>")
    for name in course.folders:
        source = course.source(name)
        some = [row.verdicts[name] for row in everybody if name in row.verdicts]
        parts.append(f"<h2>{escape(source.title)}</h2>")
        scores = [(share(v.marks, waits), waiting(v) > 0) for v in some]
        parts.append(histogram([(s, o) for s, o in scores if s is not None], source.points))
        items = statistics(source, some, waits)
        heads = ("problem", "points", "mean", "full marks", "difficulty", "discrimination", "n")
        lines = ["<table><tr>", *(f"<th>{head}</th>" for head in heads), "</tr>"]
        for k, one in enumerate(source.problems):
            got = [v.marks[k].points for v in some if not waits(v.marks[k])]
            mean = f"{sum(got) / len(got):.2f}" if got else ""
            full = f"{sum(p >= one.points for p in got)} of {len(got)}"
            line = [
                f"{k + 1}. {escape(one.title)}",
                f"{one.points:g}",
                mean,
                full,
                *cells(items[k]),
            ]
            lines.append("<tr>" + "".join(f"<td>{entry}</td>" for entry in line) + "</tr>")
        parts.append("".join(lines) + "</table>" + plot(items))
    parts.append(f"<p class='told'>{READ}</p>")
    parts.append("<h2>Students</h2><table><tr><th>id</th><th>name</th>")
    parts += [f"<th>{escape(name)}</th>" for name in course.folders]
    ruled = bool(_counting.columns(course))
    counts = "<th>counts</th>" if ruled else ""
    parts.append(f"<th>total</th>{counts}<th>open</th><th>late</th></tr>")
    for row in everybody:
        who = row.student
        sums = [_counting.short(row, n) if n in row.verdicts else "–" for n in course.folders]
        told = [
            escape(f"{who.first_name} {who.last_name}"),
            *sums,
            f"{row.points:g}",
            *([f"{_counting.shown(row.total)} of {row.most:g}"] if ruled else []),
            str(row.open or ""),
        ]
        told.append(escape(_counting.late_words(row)))
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


def feedback(course: Course, row: Row, verdict: Verdict) -> str:
    """For a student: what was tested and found, not what was asked."""
    left = waiting(verdict)
    parts = [f"<p>{escape(row.student.id)}: {verdict.points:g} of {verdict.most:g} points"
             + (f", {left} problems not marked yet" if left else "") + ".</p>"]  # fmt: skip
    if told := _counting.sentence(course, row, verdict.name):
        parts.append(f"<p>{escape(told)}</p>")
    parts += body(course, row.student.id, verdict)
    return page(f"{course.name}: {verdict.name}", "\n".join(parts))


def by_hand_page(course: Course, name: str, everybody: list[Row], told: Answers) -> str:
    """Answers in words beside the marking scheme; points go into by-hand.csv."""
    parts = [
        (
            "<p><code>attnlab course mark</code> shows these one by one, with their formulas set. "
            "Or write points and comments into <code>by-hand.csv</code>. Then report again.</p>"
        )
    ]
    for one in course.source(name).problems:
        if one.answer:
            continue
        parts.append(f"<h2>{escape(one.title)} ({one.points:g} points)</h2>")
        own = course.each and bool(one.variant)
        if not own:
            parts.append(scheme(one, name, course.seed))
        some = [told[key] for row in everybody if (key := (row.student.id, name, one.id)) in told]
        if empty := [answer.student for answer in some if answer.blank]:
            parts.append(f"<p class='told'>Blank, so 0: {escape(', '.join(empty))}.</p>")
        for answer in some:
            if not answer.blank:
                parts.append(f"<h3>{escape(answer.student)}</h3><pre>{escape(answer.text)}</pre>")
                if own:
                    parts.append(scheme(one, name, course.seed_of(answer.student)))
    return page(f"{course.name}: {name}, marked by a person", "\n".join(parts))


def scheme(one: Problem, name: str, seed: int) -> str:
    """A marking scheme, folded."""
    told = fill(one.scheme, variant(one, name, seed))
    return f"<details><summary>Scheme</summary><pre>{escape(told)}</pre></details>"
