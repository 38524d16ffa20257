"""Whose a file is: read from the part of its path that the platform wrote.

Moodle and Canvas write the student's name and a number first in an archive. So one level of each
archive is read, by the rules of the one platform that all of it fits. What a student chose (the
rest of a name, an archive of the student's own) lies behind or below that and is never read. Where
an archive fits no platform, or two, its files belong to nobody until the instructor says whose they
are. A folder of the instructor's that is named by an id belongs to that student, whatever is in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnbook.course._tables import Student

MOODLE = re.compile(r"([^_]+)_(\d{1,19})_assignsubmission_(?:file|onlinetext)(?:_.*)?", re.S)
CANVAS = re.compile(r"([^_]+)_(LATE_)?(\d{1,19})_(\d{1,19})_.+", re.S)
HIDDEN = re.compile(r"anon_([A-Za-z0-9]{5})_(LATE_)?(\d{1,19})_.+", re.S)  # Canvas, anonymous
# what a platform may have written for a name that its rule does not know: nothing below it is read
NEAR = re.compile(r"_assignsubmission_|_\d+_\d+_")
NOBODY = "no platform wrote this path, so it belongs to nobody yet"


@dataclass(frozen=True)
class Sign:
    """What a platform wrote about a file."""

    platform: str
    key: str  # its own name of the student: two of them are two people, or one in doubt
    container: str = ""  # what stands before: a folder of the instructor's, an archive
    name: str = ""  # as it writes names
    logins: tuple[str, ...] = ()  # what may be an id
    late: bool = False
    at: int = 0  # which part of the path it is


@dataclass(frozen=True)
class Path:
    """A file's path: its parts, of which the first few are folders on this machine's disk."""

    parts: tuple[str, ...]
    folders: int = 0


def moodle(part: str) -> Sign | None:
    """``First Last_4711_assignsubmission_file_``: a folder, or the beginning of a file's name."""
    found = MOODLE.fullmatch(part)
    return Sign("Moodle", f"moodle:{found[2]}", name=found[1]) if found else None


def canvas(part: str) -> Sign | None:
    """``lastfirst_LATE_4711_99_file``."""
    found = CANVAS.fullmatch(part)
    if not found:
        return None
    return Sign("Canvas", f"canvas:{found[3]}", name=found[1], late=bool(found[2]))


def anonymous(part: str) -> Sign | None:
    """``anon_x7Yz2_99_file``."""
    found = HIDDEN.fullmatch(part)
    return Sign("Canvas (anonymous)", f"canvas:{found[1]}", late=bool(found[2])) if found else None


RULES = {"Moodle": moodle, "Canvas (anonymous)": anonymous, "Canvas": canvas}


def read_paths(
    paths: Sequence[Path], ids: frozenset[str] = frozenset()
) -> tuple[list[Sign | str], list[str]]:
    """For each file what a platform wrote about it, or why nothing did; and a line per archive."""
    found: list[Sign | str] = [NOBODY] * len(paths)
    told: list[str] = []
    everything = list(range(len(paths)))
    own = [k for k in everything if paths[k].folders and paths[k].parts[0] in ids]
    for name in sorted({paths[k].parts[0] for k in own}):
        some = [k for k in own if paths[k].parts[0] == name]
        inside = {sign.key for k in some for part in paths[k].parts[1:] if (sign := anyone(part))}
        for k in some:
            if len(inside) > 1:
                found[k] = f"the folder of {name} holds what a platform wrote of {len(inside)}"
            else:
                found[k] = Sign("a folder", f"folder:{name}", "", logins=(name,))
        told.append(f"{name}/: {count(some)}, a folder named by an id")
    read_level(paths, [k for k in everything if k not in set(own)], 0, found, told)
    return found, told


def read_level(
    paths: Sequence[Path], some: list[int], at: int, found: list[Sign | str], told: list[str]
) -> None:
    """Read one level of paths that begin alike, by one platform's rules, or look below it."""
    if not some:
        return
    before = "/".join(paths[some[0]].parts[:at])
    parts = {k: paths[k].parts[at] for k in some}
    fits = {name: [k for k in some if rule(parts[k])] for name, rule in RULES.items()}
    named, hidden = fits["Canvas"], fits["Canvas (anonymous)"]  # "anon" can also be a name
    if set(named) <= set(hidden):
        fits["Canvas"] = []
    elif set(hidden) <= set(named):
        fits["Canvas (anonymous)"] = []
    platforms = [name for name, fit in fits.items() if fit]
    where = f"{before}/" if before else "the downloads themselves"
    if len(platforms) > 1:
        why = f"{where} has names as {' and as '.join(platforms)} write them"
        for k in some:
            found[k] = why
        told.append(f"{why}: none was read")
        return
    if platforms:
        (platform,) = platforms
        for k in fits[platform]:
            if sign := RULES[platform](parts[k]):
                found[k] = replace(sign, container=before, at=at)
        told.append(f"{where}: {count(fits[platform])}, read as {platform} writes names")
        if not on_disk(paths[some[0]], at):
            return
    some = [k for k in some if k not in fits[platforms[0]]] if platforms else some
    alone = len(set(parts.values())) == 1  # a folder around everything, by who packed it again
    for name in sorted({parts[k] for k in some if not NEAR.search(parts[k])}):
        below = [k for k in some if parts[k] == name and len(paths[k].parts) > at + 1]
        if below and (alone or on_disk(paths[below[0]], at) or name.lower().endswith(".zip")):
            read_level(paths, below, at + 1, found, told)


def on_disk(path: Path, at: int) -> bool:
    """Whether a part is a folder or a file of this machine, not of an archive."""
    return at <= path.folders


def anyone(part: str) -> Sign | None:
    """What any of the platforms could have written."""
    return next((sign for rule in RULES.values() if (sign := rule(part))), None)


def count(some: Sequence[int]) -> str:
    """How many notebooks."""
    return f"{len(some)} notebook{'s' * (len(some) != 1)}"


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
    by_login = [one for one in students if one.id in sign.logins]
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
