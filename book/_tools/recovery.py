"""What a build does about being killed, and about a disk that runs out of room.

    python book/_tools/recovery.py    remove truncated bytecode that an unfinished build left

On a full disk Python writes bytecode files that are cut short, and later fails to import them. So
a build leaves a mark while it runs. Where the mark is still there, ``make`` runs this file before
the next build imports anything; it needs nothing but the standard library.
"""

from __future__ import annotations

import errno
import marshal
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = ROOT / "_build" / "unfinished"
HEADER = 16  # bytes of a bytecode file before its code
ROOM = 300_000_000  # bytes that a build may need
LITTLE = 5_000_000  # with less than this left, an error is put down to the full disk


@contextmanager
def guard(say: Callable[[str], None]) -> Iterator[None]:
    """Mark the build as unfinished while it lasts; say it in a sentence where the disk is full."""
    free = shutil.disk_usage(ROOT).free
    if free < ROOM:
        say(f"a build needs about {ROOM / 1e6:.0f} MB of disk, and {free / 1e6:.0f} MB are free")
        sys.exit(1)
    MARK.parent.mkdir(exist_ok=True)
    MARK.touch()
    full = False
    try:
        yield
    except Exception as error:
        full = is_disk_full(error)
        if not full:
            raise
        say("the disk is full. Make room and run the same command again: it will go on from here")
        sys.exit(1)
    finally:
        if not full and not is_disk_full():
            MARK.unlink(missing_ok=True)


def is_disk_full(error: BaseException | None = None) -> bool:
    """Whether there is no room left, or an error says that there was none."""
    told = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return told or shutil.disk_usage(ROOT).free < LITTLE


def repair() -> int:
    """Remove bytecode that cannot be read, of this project and its environment; how many files."""
    removed = 0
    for home in (ROOT / ".venv", ROOT / "attnlab", ROOT / "book"):
        for path in home.rglob("__pycache__/*.pyc*"):
            if not readable(path):
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def readable(path: Path) -> bool:
    """Whether Python can load the code of a bytecode file."""
    try:
        marshal.loads(path.read_bytes()[HEADER:])
    except (EOFError, ValueError, TypeError):
        return False
    return True


def end_with_make() -> None:
    """End this process soon after make, if make began it; a build of one's own may go on."""
    from attnbook.files import end_with_parent

    if os.environ.get("MAKELEVEL"):
        end_with_parent(os.getppid())


if __name__ == "__main__":
    if MARK.exists():
        print("the last build did not finish: looking for files that it left half-written")
        print(f"removed {repair()} of them", flush=True)
        MARK.unlink()
