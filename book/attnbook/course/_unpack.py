"""What a platform handed back, unpacked in a process of its own with limits on time and memory.

    python -m attnbook.course._unpack      waits for one job on its standard input

It looks into folders and archives, copies notebooks out, counts which set's cells they have, and
says so in lines. What ends it is named, left out, and the rest is looked at again.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import selectors
import stat
import struct
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from attnbook.course._words import clean, digest

LARGEST = 20 << 20  # bytes of a notebook
WHOLE = 2 << 30  # bytes of all that is unpacked
ENTRIES = 20_000  # of an archive
NAME = 1000  # characters of a path
DEEP = 3  # zips within zips
NOTEBOOKS = 50  # of one student, or of one folder or archive that lies among the downloads
LINES = 5  # about files of one student that are not used
ALL_LINES = 2_000  # the same, of one file or folder among the downloads
ALL_NOTEBOOKS = 5_000
ALL_ENTRIES = 200_000  # of one file among the downloads, and of all archives in it
MEMORY = 3 << 30
STEP = 60.0  # seconds for one file
ATTEMPTS = 50  # files that may end the process, before we give up
OTHER = "not a notebook: not used"
Time = tuple[datetime, float | None]  # as it is written, and in seconds where that is known
Times = dict[int, Time]  # of the files on a path, by which part of it they are


def unpack(place: Path, spool: Path, cells: dict[str, set[str]]) -> list[dict[str, Any]]:
    """All notebooks below a place, as lines; what could not be unpacked is told among them."""
    skip: list[str] = []
    while True:
        lines, at = attempt(place, spool, cells, skip)
        if lines and lines[-1].get("end"):
            told = "could not be unpacked in the time and memory there is"
            return [*lines[:-1], *({"file": name, "told": told} for name in skip)]
        if at in skip or len(skip) >= ATTEMPTS or not at:
            raise RuntimeError(f"downloads: the process that unpacks ended at {at or 'the start'}")
        skip.append(at)


def attempt(
    place: Path, spool: Path, cells: dict[str, set[str]], skip: list[str]
) -> tuple[list[dict[str, Any]], str]:
    """One process: its lines, and the file that it was at."""
    job: dict[str, Any] = {"place": str(place.absolute()), "spool": str(spool), "skip": skip}
    job |= {"cells": {name: sorted(wanted) for name, wanted in cells.items()}}
    return ask("_unpack", job)


def ask(module: str, job: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    """The lines of a process that works on what students wrote, and what it was at last."""
    roots = [str(Path(__file__).parents[2]), *map(os.path.abspath, sys.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "OPENBLAS_NUM_THREADS": "1"}
    found: list[dict[str, Any]] = []
    at: Any = ""
    with subprocess.Popen(
        [sys.executable, "-m", f"attnbook.course.{module}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(OSError), process.stdin:
                process.stdin.write(json.dumps(job).encode() + b"\n")
            for text in lines(process.stdout):
                told = json.loads(text)
                at = told.get("at", at)
                if "at" not in told:
                    found.append(told)
        finally:
            process.kill()
    return found, at


def lines(stream: Any) -> Iterator[bytes]:
    """Lines of a pipe, for as long as they come in time."""
    os.set_blocking(stream.fileno(), False)
    held, end = b"", time.monotonic() + STEP
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ)
        while time.monotonic() < end:
            if not ready.select(timeout=max(0.0, end - time.monotonic())):
                return
            piece = os.read(stream.fileno(), 1 << 16)
            if not piece:
                return
            *whole, held = (held + piece).split(b"\n")
            if whole:
                end = time.monotonic() + STEP
            yield from whole


# -- inside ------------------------------------------------------------------------------------
class Walk:
    """One look at a place.

    What one student handed in lies below one name in an archive, or is one file or folder among the
    downloads. For each such name there is a limit on files, on notebooks, and on lines about files
    that are not used, so that nobody's files crowd out another's.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self.place, self.spool = Path(job["place"]), Path(job["spool"])
        self.skip, self.cells = set(job["skip"]), job["cells"]
        self.count, self.spent = len(list(self.spool.iterdir())), 0
        self.entries: Counter[str] = Counter()
        self.notebooks: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self.shown: Counter[str] = Counter()
        self.left: Counter[str] = Counter()

    def say(self, **told: Any) -> None:
        """A line."""
        print(json.dumps(told), flush=True)

    def tell(self, name: str, words: str, folders: int) -> None:
        """A file that is not used; of one student the first few are named."""
        owner, whole = owner_of(name, folders), PurePosixPath(name).parts[0]
        if self.lines[owner] < LINES and self.shown[whole] < ALL_LINES:
            self.shown[whole] += 1
            self.say(file=clean(name, NAME), told=words)
        else:
            self.left[owner if self.shown[whole] < ALL_LINES else whole] += 1
        self.lines[owner] += 1

    def run(self) -> None:
        """Folders and archives, in order."""
        alone = self.place.is_file() or self.place.is_symlink()
        for path in [self.place] if alone else sorted(self.place.rglob("*")):
            name = path.name if alone else path.relative_to(self.place).as_posix()
            folders = len(PurePosixPath(name).parts) - 1
            label = clean(name, NAME)
            if path.is_symlink():
                self.tell(name, "a symbolic link: not followed", folders)
            elif path.is_file() and not junk(name) and label not in self.skip:
                self.say(at=label)
                self.file(name, path, folders)
        for owner, count in self.left.items():
            self.say(file=clean(owner, NAME), told=f"and {count:,} more files: not used")
        self.say(end=True)

    def file(self, name: str, path: Path, folders: int) -> None:
        """A file of a folder."""
        exact = path.stat().st_mtime
        times: Times = {folders: (datetime.fromtimestamp(exact), exact)}
        if path.suffix.lower() == ".zip":
            if path.stat().st_size > WHOLE:
                self.tell(name, "too large", folders)
                return
            with path.open("rb") as data:
                self.unzip(name, data, DEEP, times, folders)
        elif not is_notebook(name):
            self.tell(name, OTHER, folders)
        elif path.stat().st_size > LARGEST:
            self.tell(name, "too large", folders)
        else:
            self.keep(name, path.read_bytes(), times, folders)

    def unzip(self, name: str, data: Any, depth: int, times: Times, folders: int) -> None:
        """An archive; names that lead outside, links and bombs are told, not unpacked."""
        try:
            archive = zipfile.ZipFile(data)
            entries = archive.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            self.tell(name, "not a zip file", folders)
            return
        whole = f"{PurePosixPath(name).parts[0]}/"
        for owner, most in ((owner_of(name, folders), ENTRIES), (whole, ALL_ENTRIES)):
            self.entries[owner] += len(entries)
            if self.entries[owner] > most:
                self.tell(name, f"more than {most:,} entries: not unpacked", folders)
                return
        if sum(entry.file_size for entry in entries) > WHOLE:
            self.tell(name, "unpacks to more than 2 GB: not unpacked", folders)
            return
        for entry in entries:
            self.entry(name, archive, entry, depth, times, folders)

    def entry(
        self, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, depth: int,
        times: Times, folders: int,
    ) -> None:  # fmt: skip
        """A file of an archive."""
        inner = entry.filename.replace("\\", "/")
        whole, suffix = f"{name}/{inner}", PurePosixPath(inner).suffix.lower()
        if entry.is_dir() or junk(inner) or clean(whole, NAME) in self.skip:
            return
        if why := self.refused(entry, inner, suffix):
            self.tell(whole, why, folders)
            return
        self.say(at=clean(whole, NAME))
        most = 20 * LARGEST if suffix == ".zip" else LARGEST
        try:
            with archive.open(entry) as stream:
                content = stream.read(most + 1)
        except (
            zipfile.BadZipFile,
            RuntimeError,
            OSError,
            EOFError,
            NotImplementedError,
            ValueError,
        ):
            self.tell(whole, "could not be unpacked (damaged, or with a password)", folders)
            return
        except Exception as error:  # the unpackers have errors of their own
            self.tell(whole, f"could not be unpacked ({type(error).__name__})", folders)
            return
        self.spent += len(content)
        times = times | {len(PurePosixPath(whole).parts) - 1: moment(entry)}
        if self.spent > WHOLE:
            self.tell(whole, "unpacks to more than 2 GB: not unpacked", folders)
        elif len(content) > most:
            self.tell(whole, "too large", folders)
        elif suffix != ".zip":
            self.keep(whole, content, times, folders)
        elif depth:
            self.unzip(whole, io.BytesIO(content), depth - 1, times, folders)
        else:
            self.tell(whole, "a zip in too many zips: not unpacked", folders)

    def refused(self, entry: zipfile.ZipInfo, inner: str, suffix: str) -> str:
        """Why a file of an archive is not opened."""
        if suffix != ".zip" and not is_notebook(inner):
            return OTHER
        if ".." in PurePosixPath(inner).parts or inner.startswith("/"):
            return "its name leads outside: not unpacked"
        if stat.S_ISLNK(entry.external_attr >> 16):
            return "a symbolic link: not followed"
        if len(inner) > NAME:
            return f"a name of {len(inner):,} characters: not unpacked"
        if entry.file_size > (20 * LARGEST if suffix == ".zip" else LARGEST):
            return "too large"
        return ""

    def keep(self, name: str, data: bytes, times: Times, folders: int) -> None:
        """A notebook: copied out, and its cells counted."""
        whole = f"{PurePosixPath(name).parts[0]}/"
        for owner, most in ((owner_of(name, folders), NOTEBOOKS), (whole, ALL_NOTEBOOKS)):
            self.notebooks[owner] += 1
            if self.notebooks[owner] > most:
                self.tell(name, f"more than {most:,} notebooks: not used", folders)
                return
        self.count += 1
        target = self.spool / str(self.count)
        target.write_bytes(data)
        parts = [clean(part, NAME) for part in PurePosixPath(name).parts]
        self.say(
            file=clean(name, NAME), parts=parts, spool=str(self.count), folders=folders,
            times=[[at, when.isoformat(), exact] for at, (when, exact) in sorted(times.items())],
            own=PurePosixPath(name).parts, **look(data, self.cells),
        )  # fmt: skip


def owner_of(name: str, folders: int) -> str:
    """What holds all that one student handed in, in whatever way the downloads are arranged."""
    parts = PurePosixPath(name).parts
    return "/".join(parts[: folders + 2])


def look(data: bytes, cells: dict[str, list[str]]) -> dict[str, Any]:
    """How many of each set's cells a notebook has, how many at all, and what its numbers are."""
    known = {f"{one}-{kind}" for ids in cells.values() for one in ids for kind in ("text", "check")}
    found: dict[str, Any] = {"hits": {}, "count": 0, "marks": {}}
    try:
        seen = set()
        for cell in json.loads(data.decode("utf-8-sig"))["cells"]:
            own = str(cell.get("id"))
            name = str(cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") or own)
            seen |= {own, name}
            if name in known:
                source = cell.get("source", "")
                text = "".join(map(str, source)) if isinstance(source, list) else str(source)
                found["marks"][name] = digest(text)
            found["count"] += 1
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
        return {"hits": {}, "count": 0, "marks": {}}
    found["hits"] = {name: len(seen & set(wanted)) for name, wanted in cells.items()}
    return found


def is_notebook(name: str) -> bool:
    """By its name; browsers also write x.ipynb.txt and x.ipynb.json."""
    return ".ipynb" in PurePosixPath(name.replace("\\", "/")).name.lower()


def junk(name: str) -> bool:
    """What no student meant to hand in: hidden files, an editor's copies."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    hidden = any(part.startswith(".") and part != ".." for part in parts)
    return hidden or "__MACOSX" in parts


def moment(entry: zipfile.ZipInfo) -> Time:
    """When a file of an archive was written; some archives say month 0 of 1980.

    The clock's time is in no zone. Some archives add the seconds since 1970 (field 0x5455).
    """
    exact, rest = None, entry.extra
    while len(rest) >= 4:
        kind, size = struct.unpack("<HH", rest[:4])
        if kind == 0x5455 and size >= 5 and len(rest) >= 9 and rest[4] & 1:
            exact = float(struct.unpack("<i", rest[5:9])[0])
        rest = rest[4 + size :]
    try:
        return datetime(*entry.date_time), exact
    except ValueError:
        return datetime(1980, 1, 1), exact


def main() -> None:
    """One job."""
    job = json.loads(sys.stdin.readline())
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))
    Walk(job).run()


if __name__ == "__main__":
    main()
