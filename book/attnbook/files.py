"""What rooms of the book share about files and processes."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from attnlab import checks as check

WATCH_INTERVAL = 1.0  # seconds between two looks at whether the parent is still there


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


def end_with_parent(parent: int) -> None:
    """End this process soon after its parent has ended, even by ``kill -9``.

    Call it first in each worker process, such as by the initializer of a pool: a worker waits on
    a pipe that it holds open itself, so it would never notice. Where the parent's id cannot
    change (Windows), this does nothing.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_INTERVAL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """Let BLAS use one thread: the last bits are then the same everywhere, and cores are shared."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return contextlib.nullcontext()
    limited: contextlib.AbstractContextManager[Any] = threadpool_limits(1)
    return limited
