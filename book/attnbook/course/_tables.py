"""The tables of a course, as spreadsheets and platforms write them."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from attnbook.course._words import uncell
from attnlab import checks as check

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
COLUMNS = ("id", "first_name", "last_name", "email", "platform")
ALIASES = {
    "id": (
        *("sis user id", "id number", "id", "username", "login", "student_id", "student id"),
        "student",
    ),
    "first_name": ("first_name", "first name", "firstname", "given name"),
    "last_name": ("last_name", "last name", "lastname", "surname", "family name"),
    "email": ("email", "e-mail", "email address", "mail"),
    "name": ("student", "name", "full name"),  # Canvas writes "Last, First"
    "platform": ("platform",),
    "moodle": ("identifier",),  # of a grading worksheet: "Participant 4711"
}
NOBODY = ("points possible", "student, test", "test student")


@dataclass(frozen=True)
class Student:
    """A row of the roster."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    platform: str = ""  # what platforms call this student in paths, such as "moodle:4711"


def merged(old: Student | None, new: Student) -> Student:
    """A student brought up to date: what a platform calls them is added, nothing is lost."""
    if old is None:
        return new
    words = " ".join(dict.fromkeys(f"{old.platform} {new.platform}".split()))
    told = {key: value or getattr(old, key) for key, value in dataclasses.asdict(new).items()}
    return Student(**(told | {"platform": words}))


def roster(path: Path) -> Iterable[Student]:
    """The students of a CSV file, whatever its columns are called."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise check.fail("roster", "a CSV file in UTF-8", f"{path} ({error})") from None
    lines = text.splitlines()
    mark = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    rows = list(csv.reader(lines, delimiter=mark))
    if not rows:
        raise check.fail("roster", f"a header with {', '.join(COLUMNS)}", "an empty file")
    header = [entry.strip().lower() for entry in rows[0]]
    place = {
        name: next((header.index(word) for word in words if word in header), None)
        for name, words in ALIASES.items()
    }
    if place["id"] is None:
        raise check.fail("roster", "a column id", rows[0])
    seen: set[str] = set()
    for number, row in enumerate(rows[1:], 2):
        told = {
            name: uncell(row[at].strip()) if at is not None and at < len(row) else ""
            for name, at in place.items()
        }
        whole = told.pop("name")
        told["platform"] = platforms(told["platform"], told.pop("moodle"), row, header)
        if not any(entry.strip() for entry in row) or whole.lower() in NOBODY:
            continue
        if "," in whole and not told["first_name"] + told["last_name"]:
            told["last_name"], told["first_name"] = (w.strip() for w in whole.split(",", 1))
        elif whole != told["id"] and not told["first_name"] + told["last_name"]:
            told["first_name"] = whole
        if not NAME.fullmatch(told["id"]):
            raise check.fail(f"roster, line {number}", "an id of letters and digits", told["id"])
        if told["id"] in seen:
            raise check.fail(f"roster, line {number}", "each id once", told["id"])
        seen.add(told["id"])
        yield Student(**told)


def platforms(told: str, moodle: str, row: list[str], header: list[str]) -> str:
    """What platforms call a student: as told, Moodle's participant, Canvas' own number."""
    words = told.split()
    words += [f"moodle:{number}" for number in re.findall(r"\d+$", moodle)]
    if "sis user id" in header and "id" in header and header.index("id") < len(row):
        words += [f"canvas:{number}" for number in re.findall(r"^\d+$", row[header.index("id")])]
    return " ".join(dict.fromkeys(words))


def strike(path: Path, gone: Callable[[dict[str, str]], bool]) -> bool:
    """Take rows out of a table; whether there were some."""
    rows = table(path) if path.is_file() else []
    left = [row for row in rows if not gone(row)]
    if len(left) == len(rows):
        return False
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(left)
    replace(path, out.getvalue())
    return True


def table(path: Path) -> list[dict[str, str]]:
    """A CSV file that a spreadsheet may have saved: with a mark, with semicolons, with gaps."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise check.fail(path.name, "a CSV file in UTF-8", error) from None
    head = text.partition("\n")[0]
    mark = ";" if head.count(";") > head.count(",") else ","
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=mark, restval="")
    return [{str(k): v for k, v in row.items() if k is not None} for row in lines]


def replace(path: Path, text: str) -> None:
    """Write a file whole, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{id(text)}")
    draft.write_text(text, "utf-8")
    os.replace(draft, path)
