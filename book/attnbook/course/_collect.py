"""What a platform hands back, sorted into a course folder: whose, which set, which attempt, when.

Nothing that a student chose decides it: not the name of a file, not a time in that name, not
what stands in the notebook. Where the platform's own words leave a doubt, nothing is placed; the
files are shown side by side, and `place` settles it.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from attnbook.course._course import Course
from attnbook.course._deadlines import Clock, deadlines
from attnbook.course._schemes import Path as Written
from attnbook.course._schemes import Sign, owners, read_paths
from attnbook.course._tables import Student, replace, table
from attnbook.course._unpack import LARGEST, unpack
from attnbook.course._which import Found, cell_names, plain, set_named, sets_of
from attnbook.course._words import cell, clean, uncell
from attnlab import checks as check

EARLIER = "an earlier attempt: not used"
SAME = "the same notebook again: not used"
CONFLICT = "in doubt: "
HAND = "placed by hand"


@dataclass
class Sorted:
    """Where a notebook went, and why."""

    file: str
    student: str = ""
    name: str = ""
    when: str = ""
    late: bool = False
    told: str = ""
    source: str = ""  # the platform's own name of the student
    folder: str = ""  # the part of the path that the platform wrote
    word: bool = False  # whether the platform's own word is that it is late

    @property
    def doubt(self) -> str:
        """Why it was not placed, where only the instructor can decide."""
        return self.told.removeprefix(CONFLICT) if self.told.startswith(CONFLICT) else ""


@dataclass
class Try:
    """A notebook that can be somebody's answer to a set."""

    when: datetime
    entry: Sorted
    found: Found | None = None  # None where it is there from before


@dataclass
class Plan:
    """Where everything would go: what is told of each file, and the attempts of each student."""

    told: list[Sorted]
    before: list[Sorted]
    tries: dict[tuple[str, str], list[Try]]
    best: list[tuple[str, str, Try]]
    archives: list[str]  # by which platform's rules each was read


def collect(
    course: Course,
    downloads: str | Path,
    only: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> list[Sorted]:
    """Put every notebook where it belongs; what is in doubt is told, and stays where it is.

    ``say`` hears by which platform's rules each archive is read.
    """
    plan = planned(course, downloads, only)
    for words in plan.archives:
        say(words)
    for student, name, best in plan.best:
        if best.found is not None:
            put(course, student, name, best.found.data, best.when)
    told = plan.told
    again = {one.file for one in told}
    kept_rows = [one for one in plan.before if one.told in ("", HAND) or one.file not in again]
    record(course, [one for one in kept_rows if one not in told] + told)
    return told


def planned(course: Course, downloads: str | Path, only: str = "") -> Plan:
    """The same, without a file being written."""
    place = Path(downloads)
    if not place.exists():
        raise check.fail("downloads", "a folder or a zip file", str(place))
    students = course.students()
    if not students:
        raise check.fail("roster", "students: attnlab course add", "none")
    wanted = {name: cell_names(course, name) for name in course.folders}
    chosen = set_named(course, only) if only else ""
    told: list[Sorted] = []
    before, limits = recorded(course), deadlines(course)
    tries: dict[tuple[str, str], list[Try]] = {}
    for one in before:
        if one.told in ("", HAND) and handed_in(course, one.student, one.name).is_file():
            kept = Try(limits.clock.read(datetime.fromisoformat(one.when)), one)
            tries.setdefault((one.student, one.name), []).append(kept)
    ids = frozenset(one.id for one in students)
    archives: list[str] = []
    everything = list(walk(place, wanted, ids, told, limits.clock, archives))
    sets = sets_of(course, everything, chosen)
    for found in everything:
        entry = Sorted(found.name, when=found.when.isoformat(timespec="seconds"))
        entry.folder = found.folder
        told.append(entry)
        if found.sign is None:
            entry.told = CONFLICT + found.why
            continue
        who, why = owners(found.sign, students)
        entry.source = found.sign.key
        if len(who) != 1:
            fits = " or ".join(one.id for one in who) or "nobody of the roster"
            entry.told = f"{CONFLICT}{why}, which fits {fits}"
            continue
        entry.student = who[0].id
        entry.name, doubt = sets[found.sign.container, entry.source, found.name]
        if doubt:
            entry.told = CONFLICT + doubt
            continue
        key = (entry.student, entry.name)
        entry.word = found.sign.late
        entry.late = limits.late(*key, found.when, entry.word) is not None
        tries.setdefault(key, []).append(Try(found.when, entry, found))
    plan = Plan(told, before, tries, [], archives)
    for (student, name), some in sorted(tries.items(), key=lambda pair: pair[0]):
        best = settle(some, name)
        if best is not None:
            plan.best.append((student, name, best))
    return plan


def settle(some: list[Try], name: str) -> Try | None:
    """The attempt that counts: the newest of one source; or none, and why."""
    hand = [one for one in some if one.entry.told == HAND]
    if hand:
        limit = max(one.when for one in hand)
        for one in some:
            if one.found is not None:
                newer = one.when > limit
                fresh_one = f"{CONFLICT}newer than what was {HAND}"
                one.entry.told = fresh_one if newer else f"another was {HAND}: not used"
        return None
    there = [one for one in some if one.found is None]
    fresh = [one for one in some if one.found is not None]
    sources = {one.entry.source for one in some} - {""}
    if len(sources) > 1:
        names = ", ".join(sorted(sources))
        names += "".join(f"; {one.entry.file} is placed already" for one in there)
        for one in fresh:
            one.entry.told = f"{CONFLICT}{len(sources)} sources for one student: {names}"
        return None
    newest = max(one.when for one in some)
    last = [one for one in fresh if one.when == newest]
    for one in some:
        if one not in last and (one.found is not None or one.when < newest):
            one.entry.told = EARLIER
    if not last:
        return None
    different = {one.found.digest: one for one in last if one.found}
    answering = [one for one in different.values() if one.found and one.found.hits.get(name)]
    choice = answering if len(answering) == 1 else list(different.values())
    if len(choice) > 1:
        for one in last:
            one.entry.told = f"{CONFLICT}{len(different)} notebooks of the same time"
        for one in there:
            one.entry.told = ""
        return None
    for one in [*last, *there]:
        if one is not choice[0]:
            same = one.found is None or (choice[0].found and one.found.digest == choice[0].found.digest)  # fmt: skip  # noqa: E501
            one.entry.told = SAME if same else EARLIER
    return choice[0]


def put(course: Course, student: str, name: str, data: bytes, when: datetime) -> None:
    """Write a submission where it is looked for."""
    target = handed_in(course, student, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    when = when.astimezone(UTC) if when.tzinfo else when
    stamped = when.strftime("%Y-%m-%d %H:%M:%S UTC\n")
    (target.parent / "timestamp.txt").write_text(stamped, "utf-8")


def place(course: Course, file: str | Path, student: str, name: str) -> Sorted:
    """Settle a doubt by hand: this file, in a folder or in an archive, is that student's answer."""
    students = course.students()
    if student not in {one.id for one in students}:
        raise check.fail("id", "a student of the roster", student)
    name = set_named(course, name)
    path = Path(file)
    root = next((one for one in (path, *path.parents) if one.exists()), None)
    if root is None or (root.is_dir() and root != path.parent) or path.is_dir():
        raise check.fail("file", "a notebook, or one in an archive as collect names it", str(file))
    wanted = {one: cell_names(course, one) for one in course.folders}
    inside = clean(f"{root.name}/{path.relative_to(root).as_posix()}".removesuffix("/."), 1000)
    told: list[Sorted] = []
    ids = frozenset(one.id for one in students)
    limits = deadlines(course)
    some = [one for one in walk(root, wanted, ids, told, limits.clock, []) if one.name == inside]
    if len({one.digest for one in some}) != 1:
        expected = f"one notebook of at most {LARGEST >> 20} MB"
        got = f"{len(some)} of that name" if some else "; ".join(one.told for one in told) or "none"
        raise check.fail("file", expected, got)
    found = some[0]
    entry = Sorted(clean(file, 1000), student, name, found.when.isoformat(timespec="seconds"))
    entry.word = found.sign is not None and found.sign.late
    entry.late = limits.late(student, name, found.when, entry.word) is not None
    entry.told = HAND
    if found.sign and root.suffix.lower() == ".zip":  # a loose file may have a name of a student's
        entry.source, entry.folder = found.sign.key, found.folder
    put(course, student, name, found.data, found.when)
    before = recorded(course)
    for one in before:
        if (one.student, one.name) == (student, name) and one.told in ("", HAND):
            one.told = EARLIER
    ends = {entry.file, *(entry.file[k + 1 :] for k, c in enumerate(entry.file) if c == "/")}
    left = [one for one in before if not (one.told.startswith(CONFLICT) and one.file in ends)]
    record(course, [*left, entry])
    return entry


def walk(
    place: Path, wanted: dict[str, set[str]], ids: frozenset[str], told: list[Sorted],
    clock: Clock, archives: list[str],
) -> Iterable[Found]:  # fmt: skip
    """Notebooks in a folder, and in the zips in it; unpacked in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="attnlab-collect-") as spool:
        lines = unpack(place, Path(spool), wanted)
        told += [Sorted(line["file"], told=line["told"]) for line in lines if "told" in line]
        kept = [line for line in lines if "spool" in line]
        paths = [Written(tuple(line["parts"]), line["folders"]) for line in kept]
        signs, said = read_paths(paths, ids)
        archives += said
        for line, read in zip(kept, signs, strict=True):
            sign, why = (read, "") if isinstance(read, Sign) else (None, read)
            written, exact = time_of(line["times"], sign.at if sign else 0)
            when = clock.read(written, sign.platform.split()[0] if sign else "", exact)
            data = (Path(spool) / line["spool"]).read_bytes()
            folder = line["own"][sign.at] if sign else ""
            facts = line["hits"], folder, line["count"], line["marks"]
            yield Found(line["file"], data, when, sign, *facts, why=why)


def time_of(times: list[tuple[int, str, float | None]], at: int) -> tuple[datetime, float | None]:
    """The time of the file that a platform wrote: the first at or below its part of the path.

    What lies deeper is an archive of the student's, and its times are what the student wrote.
    """
    _, when, exact = next(one for one in times if one[0] >= at)
    return datetime.fromisoformat(when), exact


def handed_in(course: Course, student: str, name: str) -> Path:
    """Where nbgrader, and we, look for a submission."""
    return course.place / "submitted" / student / name / f"{name}.ipynb"


def recorded(course: Course) -> list[Sorted]:
    """What was collected before."""
    path = course.place / "collected.csv"
    return [
        Sorted(
            uncell(row["file"]), row["student"], row["set"], row["time"], row["late"] == "True",
            row["remark"], row.get("source", ""), uncell(row.get("folder", "")),
            row.get("word", row["late"]) == "True",
        )
        for row in (table(path) if path.is_file() else [])
    ]  # fmt: skip


def record(course: Course, told: list[Sorted]) -> None:
    """What went where, for the report."""
    out = io.StringIO()
    writer = csv.writer(out)
    columns = ["student", "set", "time", "late", "file", "remark", "source", "folder", "word"]
    writer.writerow(columns)
    for one in told:
        remark = clean(one.told, 400)
        start = [one.student, one.name, one.when, one.late, cell(one.file), remark]
        writer.writerow([*start, cell(one.source), cell(one.folder), one.word])
    replace(course.place / "collected.csv", out.getvalue())


def about(file: str, who: Student) -> bool:
    """Whether a path that belongs to nobody yet has a student's id, address or name in it."""
    words = f" {plain(file)} "
    told = [who.id, who.email.split("@")[0], f"{who.first_name} {who.last_name}"]
    return any(plain(one) and f" {plain(one)} " in words for one in told)
