"""Whose a file is, and when it came: read from the part of its path that the platform wrote.

What a student chose, the name of a file and what stands in it, begins after that part and is
never looked at. Where no scheme is found, nobody is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from attnbook.course._tables import Student

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MOODLE = re.compile(r"([^_]+)_(\d{1,19})_assignsubmission_(?:file|onlinetext)(?:_.*)?", re.S)
CANVAS = re.compile(r"([^_]+)_(LATE_)?(\d{1,19})_(\d{1,19})_.+", re.S)
HIDDEN = re.compile(r"anon_([A-Za-z0-9]{5})_(LATE_)?(\d{1,19})_.+", re.S)  # Canvas, anonymous
BLACKBOARD = re.compile(r"(.+?)_attempt_(\d{4}(?:-\d\d){5})(?:[_.].*)?", re.S)
BRIGHTSPACE = re.compile(
    r"(\d{1,19})-(\d{1,19}) ?- ?(.+?) ?- ?([A-Z][a-z]{2})[a-z]*\.? (\d{1,2}), (\d{4}) "
    r"(\d{1,2}):?(\d\d) ?([AP]M)(?: ?- ?.*)?",
    re.S,
)
GRADESCOPE = re.compile(r"submission_(\d{1,19})")
EXPORT = re.compile(r"assignment_\d{1,19}_export")


@dataclass(frozen=True)
class Sign:
    """What a platform wrote about a file."""

    platform: str
    key: str  # its own name of the student: two of them are two people, or one in doubt
    container: str = ""  # what stands before: a folder of the instructor's, an archive
    name: str = ""  # as it writes names
    logins: tuple[str, ...] = ()  # what may be an id, or an address
    when: datetime | None = None
    late: bool = False
    about: str = ""  # how it calls the assignment
    at: int = 0  # which part of the path it is


Sheet = dict[str, dict[str, Any]]  # what an export says of its submissions, by folder


def read_path(
    parts: Sequence[str],
    *,
    folders: int = 0,
    ids: frozenset[str] = frozenset(),
    sheet: Sheet | None = None,
) -> Sign | None:
    """The sign of the first part that a platform wrote; the first ``folders`` are no archives."""
    for at, part in enumerate(parts):
        before = "/".join(parts[:at])
        for scheme in SCHEMES:
            if found := scheme(part, before):
                return replace(found, at=at)
        if GRADESCOPE.fullmatch(part) and at and EXPORT.fullmatch(parts[at - 1]):
            told = (sheet or {}).get(f"{before}/{part}", {})
            return replace(gradescope(part, before, told), at=at)
    if folders and len(parts) > 1 and parts[0] in ids:  # a folder that the instructor named
        return Sign("a folder", f"folder:{parts[0]}", "", logins=(parts[0],))
    return None


def moodle(part: str, before: str) -> Sign | None:
    """``First Last_4711_assignsubmission_file_``: a folder, or the beginning of a file's name."""
    found = MOODLE.fullmatch(part)
    return Sign("Moodle", f"moodle:{found[2]}", before, found[1]) if found else None


def canvas(part: str, before: str) -> Sign | None:
    """``lastfirst_LATE_4711_99_file``, or ``anon_x7Yz2_99_file``."""
    if found := HIDDEN.fullmatch(part):
        return Sign("Canvas", f"canvas:{found[1]}", before, late=bool(found[2]))
    found = CANVAS.fullmatch(part)
    if not found:
        return None
    return Sign("Canvas", f"canvas:{found[3]}", before, found[1], late=bool(found[2]))


def blackboard(part: str, before: str) -> Sign | None:
    """``Assignment_user_attempt_2027-10-04-12-00-00_file``, where names hold underscores."""
    found = BLACKBOARD.fullmatch(part)
    if not found:
        return None
    words = found[1].split("_")
    logins = tuple("_".join(words[k:]) for k in range(len(words)))
    try:
        when = datetime.strptime(found[2], "%Y-%m-%d-%H-%M-%S")
    except ValueError:
        return None
    return Sign(
        "Blackboard", f"blackboard:{found[1]}", before, logins=logins, when=when, about=found[1]
    )


def brightspace(part: str, before: str) -> Sign | None:
    """``12345-4711 - First Last - Oct 4, 2027 1122 PM``: a folder, or a file's beginning."""
    found = BRIGHTSPACE.fullmatch(part)
    if not found or found[4].lower() not in MONTHS:
        return None
    hour = int(found[7]) % 12 + (12 if found[9] == "PM" else 0)
    month = MONTHS.index(found[4].lower()) + 1
    try:
        when = datetime(int(found[6]), month, int(found[5]), hour, int(found[8]))
    except ValueError:
        return None
    return Sign("Brightspace", f"brightspace:{found[2]}", before, found[3], when=when)


def gradescope(part: str, before: str, told: dict[str, Any]) -> Sign:
    """``assignment_1_export/submission_4711``, and what the export's own list says of it."""
    people = [one for one in told.get("submitters") or [] if isinstance(one, dict)]
    logins = tuple(str(one[k]) for one in people for k in ("sid", "email") if one.get(k))
    name = str(people[0].get("name", "")) if len(people) == 1 else ""
    when = told.get("created_at")
    return Sign(
        "Gradescope", f"gradescope:{'+'.join(logins) or part}", before, name, logins,
        when if isinstance(when, datetime) else None,
    )  # fmt: skip


SCHEMES: tuple[Callable[[str, str], Sign | None], ...] = (moodle, blackboard, brightspace, canvas)


# -- people ------------------------------------------------------------------------------------
def folded(text: str) -> str:
    """Letters and digits of any script, without accents, capitals and everything between."""
    flat = unicodedata.normalize("NFKD", text).casefold()
    kept = [c for c in flat if not "\u0300" <= c <= "\u036f"]
    return "".join(c for c in kept if c.isalnum() or unicodedata.category(c)[0] == "M")


def names(one: Student) -> set[str]:
    """A student's whole name, in both orders."""
    first, last = folded(one.first_name), folded(one.last_name)
    return {first + last, last + first} - {""}


def called(sign: Sign, students: Sequence[Student]) -> list[Student]:
    """Who has exactly the name that the platform wrote; a group's name may stand before it."""
    tails = [sign.name]
    if sign.platform == "Moodle":
        tails += [sign.name.split("-", k)[-1] for k in range(1, 1 + sign.name.count("-"))]
    for tail in tails:
        wanted = folded(tail)
        found = [one for one in students if wanted and wanted in names(one)]
        if found:
            return found
    return []


def owners(sign: Sign, students: Sequence[Student]) -> tuple[list[Student], str]:
    """Who a file can belong to, and why; where that is not one person, the instructor decides."""
    by_key = [one for one in students if sign.key in one.platform.split()]
    logins = {login.casefold() for login in sign.logins}
    by_login = [one for one in students if one.id.casefold() in logins]
    if not by_login:
        by_login = [one for one in students if one.email and one.email.casefold() in logins]
    if not by_login and sign.platform == "Blackboard":
        by_login = [one for one in students if one.email.split("@")[0].casefold() in logins - {""}]
    by_name = called(sign, students)
    sure = [one for one in students if one in by_key or one in by_login]
    if not sure:
        return by_name, f"{sign.platform} calls the student {sign.name!r}" if sign.name else (
            f"{sign.platform} names no student"
        )
    why = f"{sign.platform} writes {sign.key.partition(':')[2]!r}"
    if by_name and not set(by_name) & set(sure):
        return [*sure, *by_name], f"{why}, but also the name {sign.name!r}"
    return sure, why
