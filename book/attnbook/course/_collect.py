"""What a platform hands back, sorted into a course folder: zips, odd names, late files."""

from __future__ import annotations

import csv
import io
import json
import re
import stat
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from attnbook.course._course import Course
from attnbook.course._source import SETS
from attnbook.course._tables import Student, replace, table
from attnlab import checks as check

LARGEST = 20 << 20  # bytes of a notebook
WHOLE = 2 << 30  # bytes of all that an archive unpacks to
DEEP = 3  # zips within zips
STAMP = re.compile(r"(?<!\d)(20\d\d)-?(\d\d)-?(\d\d)[-_T ]?(\d\d)[-:]?(\d\d)(?:[-:]?(\d\d))?(?!\d)")
OTHER = "not a notebook: not used"
EARLIER = "an earlier attempt: not used"


@dataclass
class Found:
    """A notebook among the downloads."""

    name: str
    data: bytes
    when: datetime


@dataclass
class Sorted:
    """Where a notebook went, and why."""

    file: str
    student: str = ""
    name: str = ""
    when: str = ""
    late: bool = False
    told: str = ""


def collect(course: Course, downloads: str | Path) -> list[Sorted]:
    """Put every notebook where it belongs; what fits nobody is told, and stays where it is."""
    place = Path(downloads)
    if not place.exists():
        raise check.fail("downloads", "a folder or a zip file", str(place))
    students = course.students()
    if not students:
        raise check.fail("roster", "students: attnlab course add", "none")
    ids = {name: cell_names(course, name) for name in course.folders}
    told: list[Sorted] = []
    before = recorded(course)
    best: dict[tuple[str, str], tuple[datetime, Found | None, Sorted]] = {
        (one.student, one.name): (datetime.fromisoformat(one.when), None, one)
        for one in before
        if not one.told and handed_in(course, one.student, one.name).is_file()
    }
    for found in walk(place, told):
        entry = Sorted(found.name, when=found.when.isoformat(timespec="seconds"))
        told.append(entry)
        owners = match(found.name, students)
        if len(owners) != 1:
            who = ", ".join(sorted(one.id for one in owners)) or "nobody of the roster"
            entry.told = f"belongs to {who}: put it into submitted/ID/SET/SET.ipynb by hand"
            continue
        name = which(found, ids)
        if not name:
            entry.student, entry.told = owners[0].id, "not a problem set of this course"
            continue
        entry.student, entry.name = owners[0].id, name
        entry.late = bool(re.search(r"(?:^|[_\W])late(?:[_\W]|$)", found.name, re.I)) or late(
            course, name, found.when
        )
        key = (entry.student, name)
        if key in best:
            newer = found.when >= best[key][0]
            (best[key][2] if newer else entry).told = EARLIER
        if key not in best or found.when >= best[key][0]:
            best[key] = (found.when, found, entry)
    for (student, name), (when, chosen, _) in sorted(best.items(), key=lambda pair: pair[0]):
        if chosen is None:
            continue  # it is there from before
        target = handed_in(course, student, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(chosen.data)
        stamped = when.strftime("%Y-%m-%d %H:%M:%S UTC\n")
        (target.parent / "timestamp.txt").write_text(stamped, "utf-8")
    again = {one.file for one in told}
    record(course, [one for one in before if not one.told or one.file not in again] + told)
    return told


def handed_in(course: Course, student: str, name: str) -> Path:
    """Where nbgrader, and we, look for a submission."""
    return course.place / "submitted" / student / name / f"{name}.ipynb"


def recorded(course: Course) -> list[Sorted]:
    """What was collected before."""
    path = course.place / "collected.csv"
    return [
        Sorted(
            row["file"], row["student"], row["set"], row["time"], row["late"] == "True",
            row["remark"],
        )
        for row in (table(path) if path.is_file() else [])
    ]  # fmt: skip


def record(course: Course, told: list[Sorted]) -> None:
    """What went where, for the report."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["student", "set", "time", "late", "file", "remark"])
    for one in told:
        writer.writerow([one.student, one.name, one.when, one.late, one.file, one.told])
    replace(course.place / "collected.csv", out.getvalue())


def walk(place: Path, told: list[Sorted]) -> Iterator[Found]:
    """Notebooks in a folder, and in the zips in it."""
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    for path in files:
        name = path.name if place.is_file() else path.relative_to(place).as_posix()
        if path.is_symlink():
            told.append(Sorted(name, told="a symbolic link: not followed"))
        elif not path.is_file() or junk(name):
            continue
        elif path.suffix.lower() == ".zip":
            yield from unzip(name, path.read_bytes(), told, DEEP)
        elif not is_notebook(name):
            told.append(Sorted(name, told=OTHER))
        else:
            if path.stat().st_size > LARGEST:
                told.append(Sorted(name, told="too large"))
                continue
            moment = datetime.fromtimestamp(path.stat().st_mtime)
            yield Found(name, path.read_bytes(), stamp(name) or moment)


def unzip(name: str, data: bytes, told: list[Sorted], depth: int) -> Iterator[Found]:
    """Notebooks of an archive; names that lead outside, links and bombs are told, not unpacked."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError):
        told.append(Sorted(name, told="not a zip file"))
        return
    if sum(entry.file_size for entry in entries) > WHOLE:
        told.append(Sorted(name, told="unpacks to more than 2 GB: not unpacked"))
        return
    for entry in entries:
        whole = f"{name}/{entry.filename}"
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        suffix = PurePosixPath(entry.filename).suffix.lower()
        if entry.is_dir() or junk(entry.filename):
            continue
        if suffix != ".zip" and not is_notebook(entry.filename):
            told.append(Sorted(whole, told=OTHER))
            continue
        if ".." in parts or entry.filename.startswith(("/", "\\")):
            told.append(Sorted(whole, told="its name leads outside: not unpacked"))
            continue
        if stat.S_ISLNK(entry.external_attr >> 16):
            told.append(Sorted(whole, told="a symbolic link: not followed"))
            continue
        if entry.file_size > (20 * LARGEST if suffix == ".zip" else LARGEST):
            told.append(Sorted(whole, told="too large"))
            continue
        try:
            content = archive.read(entry)
        except (zipfile.BadZipFile, RuntimeError, OSError, EOFError, NotImplementedError):
            told.append(Sorted(whole, told="could not be unpacked (damaged, or with a password)"))
            continue
        if suffix == ".zip":
            if depth:
                yield from unzip(whole, content, told, depth - 1)
            else:
                told.append(Sorted(whole, told="a zip in too many zips: not unpacked"))
            continue
        yield Found(whole, content, stamp(whole) or moment(entry))


def is_notebook(name: str) -> bool:
    """By its name; browsers also write x.ipynb.txt and x.ipynb.json."""
    return ".ipynb" in PurePosixPath(name.replace("\\", "/")).name.lower()


def junk(name: str) -> bool:
    """What no student meant to hand in: hidden files, an editor's copies, a platform's receipts."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    hidden = any(part.startswith(".") and part != ".." for part in parts)
    receipt = parts[-1:] and re.search(r"_attempt_[\d-]+\.txt$", parts[-1])
    return hidden or "__MACOSX" in parts or bool(receipt)


def moment(entry: zipfile.ZipInfo) -> datetime:
    """When a file of an archive was written; some archives say month 0 of 1980."""
    try:
        return datetime(*entry.date_time)
    except ValueError:
        return datetime(1980, 1, 1)


def stamp(name: str) -> datetime | None:
    """The time that a platform writes into names."""
    found = STAMP.findall(name)
    if not found:
        return None
    year, month, day, hour, minute, second = found[-1]
    try:
        return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
    except ValueError:
        return None


def plain(text: str) -> str:
    """Lower case letters and digits without accents; other signs as one space."""
    flat = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", " ", flat).strip()


def match(name: str, students: list[Student]) -> list[Student]:
    """Who a file belongs to: by id, by address, by name; the surest way that finds somebody."""
    pieces = [plain(piece) for piece in re.split(r"[/\\]", name)]
    words = set(" ".join(pieces).split())
    tight = {piece.replace(" ", "") for piece in pieces} | {
        plain(piece) for part in re.split(r"[/\\]", name) for piece in part.split("_")
    }

    def by_id(one: Student) -> bool:
        wanted = plain(one.id)
        return wanted in words or f" {wanted} " in f" {' '.join(pieces)} "

    def by_mail(one: Student) -> bool:
        wanted = plain(one.email.split("@")[0])
        return bool(wanted) and f" {wanted} " in f" {' '.join(pieces)} "

    def by_name(one: Student) -> bool:
        first, last = plain(one.first_name), plain(one.last_name)
        if not first or not last:
            return False
        both = (first + last).replace(" ", ""), (last + first).replace(" ", "")
        whole = f" {' '.join(pieces)} "
        near = f" {first} {last} " in whole or f" {last} {first} " in whole
        return near or any(word.replace(" ", "") in both for word in tight)

    for way in (by_id, by_mail, by_name):
        owners = [one for one in students if way(one)]
        if owners:
            return owners
    return []


def cell_names(course: Course, name: str) -> set[str]:
    """The ids of a set's problems."""
    return {one.id for one in course.source(name).problems}


def which(found: Found, ids: dict[str, set[str]]) -> str:
    """The set that a notebook answers: by its cells, or else by its name."""
    try:
        cells = json.loads(found.data.decode("utf-8-sig"))["cells"]
        seen = {str(cell.get("id")) for cell in cells} | {
            str(cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")) for cell in cells
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        seen = set()
    counts = {name: len(seen & wanted) for name, wanted in ids.items()}
    best = max(counts, key=lambda name: counts[name])
    if counts[best]:
        return best
    flat = plain(found.name)
    named = next((name for name in ids if plain(name) in flat), by_number(flat, ids))
    return named or (next(iter(ids)) if len(ids) == 1 else "")


def by_number(flat: str, ids: dict[str, set[str]]) -> str:
    """'set 3' or 'problemset3' in a name."""
    for short, name in SETS.items():
        if name in ids and re.search(rf"\b(problem ?)?(set|assignment|ps) ?{short}\b", flat):
            return name
    return ""


def late(course: Course, name: str, when: datetime) -> bool:
    """Whether it came after the time that course.json tells."""
    due = course.due().get(name) or course.due().get(
        next(short for short, long in SETS.items() if long == name)
    )
    if not due:
        return False
    try:
        moment = datetime.fromisoformat(due)
    except ValueError:
        raise check.fail(f"due of {name}", "an ISO date such as 2027-10-04T23:59", due) from None
    return when > moment.replace(tzinfo=None)
