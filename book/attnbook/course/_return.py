"""Marks and feedback as a platform takes them back: its own table filled in, its own names.

Nothing of the table changes but the cells of one column; what cannot be matched is told.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from attnbook.course._collect import HAND, recorded
from attnbook.course._course import Course
from attnbook.course._report import Row, rows
from attnbook.course._tables import NOBODY, Student
from attnbook.course._which import named, set_named
from attnbook.course._words import clean
from attnlab import checks as check

MOODLE = re.compile(r"[^_]+_\d+_assignsubmission_(?:file|onlinetext)", re.S)
CANVAS = re.compile(r"(?:[^_]+_(?:LATE_)?\d+|anon_\w{5}(?:_LATE)?)_\d+_", re.S)
WHERE = "attnlab course collect, and then attnlab course grade"
CLOSED = ("no", "nein", "non")  # of Moodle's column "Grade can be changed"


@dataclass
class Returned:
    """What was written, and what could not be."""

    written: list[Path] = field(default_factory=list)
    pages: int = 0
    filled: int = 0
    told: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    """A cell of a table, and where it stands in its text."""

    start: int
    end: int
    text: str


def give_back(
    course: Course, platform: str, name: str, out: Path, *,
    worksheet: Path | None = None, column: str = "", scale: bool = False,
) -> Returned:  # fmt: skip
    """Write the archive of feedback, and the table with the marks of one set filled in."""
    if platform not in FILLERS:
        expected = f"one of {', '.join(FILLERS)} (for others: attnlab course report --format)"
        raise check.fail("platform", expected, platform)
    if out.suffix.lower() != ".zip":
        raise check.fail("out", "a file that ends in .zip", str(out))
    name = set_named(course, name or (course.sets[0] if len(course.sets) == 1 else ""))
    course.report()  # feedback as the marks are now
    everybody = [row for row in rows(course) if name in row.verdicts]
    if not everybody:
        raise check.fail(name, f"submissions with a verdict: {WHERE}", "none")
    found = Returned()
    table = None
    if worksheet is not None:  # before anything is written: it may be refused
        table = filled(course, platform, name, everybody, worksheet, column, scale, found)
    archive(course, platform, name, everybody, out, found)
    if worksheet is not None and table is not None:
        target = out.with_name(f"{worksheet.stem}-filled{worksheet.suffix}")
        target.write_bytes(table.encode("utf-8"))
        found.written.append(target)
    return found


def sources(course: Course, name: str) -> dict[str, tuple[str, str]]:
    """What the platform called each student of a set, and the part of a path that it wrote."""
    return {
        one.student: (one.source, one.folder)
        for one in recorded(course)
        if one.name == name and one.told in ("", HAND)
    }


def archive(
    course: Course, platform: str, name: str, everybody: list[Row], out: Path, found: Returned
) -> None:
    """Feedback pages, under the names by which the platform knows whose they are."""
    known = sources(course, name)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as pages:
        for row in everybody:
            page = course.place / "feedback" / row.student.id / name / f"{name}.html"
            source, folder = known.get(row.student.id, ("", ""))
            begins = (MOODLE if platform == "moodle" else CANVAS).match(folder)
            if not source.startswith(f"{platform}:") or begins is None:
                words = f"did not come from {platform}: send {page.relative_to(course.place)}"
                found.told.append(f"{row.student.id}: {words} yourself")
                continue
            if platform == "moodle":
                start = folder if folder == begins[0] else f"{begins[0]}_"
                start += "/"
            else:
                start = begins[0]
            pages.writestr(zipfile.ZipInfo(f"{start}{name}.html"), page.read_bytes())
            found.pages += 1
    found.written.append(out)


# -- tables ------------------------------------------------------------------------------------
def cells(text: str, mark: str) -> Iterator[list[Cell]]:
    """The lines of a table, with the place of every cell."""
    one = re.compile(rf'("(?:[^"]+|"")*"[^{mark}\r\n]*|[^{mark}\r\n]*)({mark}|\r\n|\n|\r|\Z)')
    line: list[Cell] = []
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text) or line:
        found = one.match(text, at)
        if found is None:  # a quotation mark that nobody closes
            raise check.fail("worksheet", "a table as the platform wrote it", text[at : at + 60])
        told = found[1].strip()
        if told.startswith('"') and told.endswith('"') and len(told) > 1:
            told = told[1:-1].replace('""', '"')
        line.append(Cell(found.start(1), found.end(1), told.strip()))
        at = found.end()
        if found[2] != mark:
            if any(one.text for one in line):
                yield line
            line = []


def opened(path: Path) -> tuple[str, list[list[Cell]]]:
    """A table as text, and its lines."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise check.fail("worksheet", "a CSV file in UTF-8", f"{path} ({error})") from None
    head = re.split(r"[\r\n]", text, maxsplit=1)[0]
    mark = max(",;\t", key=head.count)
    lines = list(cells(text, mark))
    if len(lines) < 2:
        raise check.fail("worksheet", "a header and students", f"{len(lines)} lines")
    return text, lines


def put(text: str, edits: list[tuple[Cell, str]]) -> str:
    """The same text with other words in some cells."""
    for cell, words in sorted(edits, key=lambda edit: -edit[0].start):
        quoted = text[cell.start : cell.end].lstrip().startswith('"')
        text = text[: cell.start] + (f'"{words}"' if quoted else words) + text[cell.end :]
    return text


def at(header: list[Cell], *names: str) -> int:
    """The column of one of these names; -1 where there is none."""
    told = [one.text.casefold() for one in header]
    return next((told.index(name) for name in names if name in told), -1)


def word(line: list[Cell], column: int) -> str:
    """A cell's words; none where there is no such cell."""
    return line[column].text if 0 <= column < len(line) else ""


def grade(points: float, own: float, told: str, scale: bool) -> str:
    """Points as the platform counts them; a maximum that is not the set's is an error."""
    try:
        most = float(told.replace(",", ".")) if told else own
    except ValueError:
        raise check.fail("worksheet", "a number of points as the maximum", told) from None
    if abs(most - own) > 1e-9 and not scale:
        expected = f"a maximum of {own:g} points, as the set has (or --scale)"
        raise check.fail("worksheet", expected, f"{most:g}")
    words = f"{points * (most / own if scale else 1.0):.6g}"
    return words.replace(".", ",") if "," in told else words


class Whose:
    """Which student a line of the table is about."""

    def __init__(self, course: Course, platform: str, name: str) -> None:
        self.students = course.students()
        self.keys: dict[str, set[str]] = {}
        for student in self.students:
            for key in student.platform.split():
                self.keys.setdefault(key, set()).add(student.id)
        for who, (source, _) in sources(course, name).items():
            if source.startswith(f"{platform}:"):
                self.keys.setdefault(source, set()).add(who)

    def find(self, key: str, *logins: str) -> set[str]:
        """Everybody that the platform's number, the id or the address points at."""
        wanted = {login.casefold() for login in logins} - {""}
        return self.keys.get(key, set()) | {one.id for one in self.students if wanted & names(one)}


def names(one: Student) -> set[str]:
    """A student's id and address."""
    return {one.id.casefold(), one.email.casefold()} - {""}


@dataclass(frozen=True)
class Line:
    """A student's line of a table, as far as marks are concerned."""

    label: str
    key: str  # the platform's own name of the student
    logins: tuple[str, ...]
    cell: Cell | None  # the mark goes here
    most: str
    shut: bool = False


def moodle(_course: Course, _name: str, lines: list[list[Cell]], column: str) -> Iterator[Line]:
    """Moodle's grading worksheet: its column Grade."""
    header = lines[0]
    marks = at(header, column.casefold() or "grade")
    if marks < 0:
        expected = f"a column {column or 'Grade (in another language: --column)'}"
        raise check.fail("worksheet", expected, [one.text for one in header])
    most, can = at(header, "maximum grade"), at(header, "grade can be changed")
    logins = at(header, "id number"), at(header, "email address")
    for line in lines[1:]:
        digits = re.search(r"\d+$", word(line, 0))
        yield Line(
            label(line), f"moodle:{digits[0] if digits else ''}",
            tuple(word(line, one) for one in logins), line[marks] if marks < len(line) else None,
            word(line, most), word(line, can).casefold() in CLOSED,
        )  # fmt: skip


def canvas(course: Course, name: str, lines: list[list[Cell]], column: str) -> Iterator[Line]:
    """Canvas' grade book: the column of the assignment, whose name ends with its number."""
    header = lines[0]
    told = [one.text for one in header]
    works = [k for k, words in enumerate(told) if re.search(r"\(\d+\)$", words)]
    if column:
        works = [k for k in works if column in (told[k], told[k].rpartition("(")[2].rstrip(")"))]
    else:
        works = [k for k in works if named(course, told[k].rpartition("(")[0]) == name]
    number = at(header, "id")
    if len(works) != 1 or number < 0:
        expected = f"columns ID and one 'title (number)' of {name} (or its number as --column)"
        raise check.fail("worksheet", expected, [told[k] for k in works] or told)
    (marks,), most = works, ""
    for line in lines[1:]:
        if word(line, 0).casefold().startswith("points possible"):
            most = word(line, marks)
        elif word(line, number) and not word(line, 0).casefold().startswith(NOBODY):
            logins = at(header, "sis user id"), at(header, "sis login id")
            yield Line(
                label(line), f"canvas:{word(line, number)}",
                tuple(word(line, one) for one in logins),
                line[marks] if marks < len(line) else None, most,
            )  # fmt: skip


def label(line: list[Cell]) -> str:
    """How a line is named to the instructor."""
    return clean(", ".join(one.text for one in line[:2] if one.text), 80)


def filled(
    course: Course, platform: str, name: str, everybody: list[Row], worksheet: Path,
    column: str, scale: bool, found: Returned,
) -> str:  # fmt: skip
    """The platform's table with the marks of everybody who can be told; the others are named."""
    text, lines = opened(worksheet)
    own, whose = course.source(name).points, Whose(course, platform, name)
    marks = {row.student.id: row.counted(name) for row in everybody}
    places: dict[str, list[Line]] = {}
    for line in FILLERS[platform](course, name, lines, column):
        who = whose.find(line.key, *line.logins)
        if len(who) != 1:
            fits = " or ".join(sorted(who)) or "nobody of the roster"
            found.told.append(f"{line.label}: left alone, for it fits {fits}")
        elif (one := who.pop()) in marks:
            places.setdefault(one, []).append(line)
    edits: list[tuple[Cell, str]] = []
    for one, some in places.items():
        if len(some) > 1 or some[0].cell is None:
            found.told.append(
                f"{one}: left alone, for {len(some)} lines are theirs, or a short one"
            )
        elif some[0].shut:
            found.told.append(f"{one}: left alone, for the platform says it cannot be changed")
        else:
            edits.append((some[0].cell, grade(marks[one], own, some[0].most, scale)))
    found.told += [f"{one}: is not in the table" for one in marks if one not in places]
    found.filled = len(edits)
    return put(text, edits)


FILLERS: dict[str, Callable[[Course, str, list[list[Cell]], str], Iterator[Line]]] = {
    "moodle": moodle,
    "canvas": canvas,
}
