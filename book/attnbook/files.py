"""What rooms of the book share about files and processes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from attnlab import checks as check


def atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds all of it or none."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def folder(out: str | Path) -> Path:
    """``out`` as a folder that can be written; said before any work starts."""
    place = Path(out)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise check.fail("out", "a folder that can be written", f"{place} ({error})") from None
    return place


def cores() -> int:
    """How many processes this machine runs well."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
