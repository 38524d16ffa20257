"""Finished pieces on disk: killed at any moment, the same command goes on from them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnlab
from attnbook.figures._plan import Task
from attnbook.figures._record import Arrays
from attnbook.files import atomically

# What a result depends on besides its settings: everything below this room, and this room.
LIBRARY = ("checks.py", "problems", "models", "curvature", "optim", "svm", "ntk")
BOOK = ("theory", "real", "figures")


@cache
def code() -> str:
    """Digest of the code that computes: results of other code are not reused."""
    digest = hashlib.sha256()
    here = Path(__file__).parents[1]
    for home, rooms in ((Path(attnlab.__file__).parent, LIBRARY), (here, BOOK)):
        for path in sorted(path for room in rooms for path in _sources(home / room)):
            digest.update(path.relative_to(home.parent).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _sources(place: Path) -> list[Path]:
    return [place] if place.suffix == ".py" else list(place.rglob("*.py"))


class Store:
    """A folder of pieces.

    A file is written under another name and moved into place, so it is there whole or not at
    all, and two processes that write the same piece write the same bytes. A file that cannot be
    read, or whose content is not what its name says, is set aside under a name of its own.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = print) -> None:
        self.folder, self.say = folder, say
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, task: Task) -> Path:
        """Where a piece is kept."""
        name = hashlib.sha256((task.key + code()).encode()).hexdigest()[:32]
        return self.folder / f"{name}.npz"

    def load(self, task: Task) -> Arrays | None:
        """The piece, or None where it must be computed."""
        path = self.path(task)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _decode(content, task)
        except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
            aside = _aside(path)
            self.say(f"{path.name} is not a finished piece ({error}); set aside as {aside.name}")
            return None

    def save(self, task: Task, arrays: Arrays) -> None:
        """Keep a finished piece."""
        atomically(self.path(task), _encode(arrays, task))

    def finished(self, tasks: list[Task]) -> Iterator[tuple[Task, Arrays]]:
        """The pieces that are there already."""
        for task in tasks:
            arrays = self.load(task)
            if arrays is not None:
                yield task, arrays


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Of names, kinds, shapes and numbers."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name}{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def _encode(arrays: Arrays, task: Task) -> bytes:
    stamp = np.frombuffer(f"{task.key} {code()} {digest(arrays)}".encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **{"stamp of attnlab": stamp}, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _decode(content: bytes, task: Task) -> Arrays:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if "stamp of attnlab" not in arrays:
        raise ValueError("a foreign file")
    words = arrays.pop("stamp of attnlab").tobytes().decode().split()
    if words[:2] != [task.key, code()]:
        raise ValueError("a piece of another run")
    if words[2:] != [digest(arrays)]:
        raise ValueError("its numbers were changed")
    return arrays


def _aside(path: Path) -> Path:
    for number in range(1, 10_000):
        aside = path.with_name(f"{path.name}.aside-{number}")
        with contextlib.suppress(FileNotFoundError):
            if not aside.exists():
                path.rename(aside)
        if not path.exists():
            return aside
    raise OSError(f"{path} cannot be set aside")
