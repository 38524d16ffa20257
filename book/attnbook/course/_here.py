"""A student's own code on the student's own machine, where there is no sandbox: a process, a clock.

Nothing is guarded. It is for `attnlab course check`, never for marking.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from attnbook.course import _library
from attnbook.course._sandbox import HERE, Limits
from attnbook.course._session import LINE, Session

LIMITS = Limits()


@dataclass(frozen=True)
class Here:
    """Where there is no `Sandbox`: the same cells, the same questions."""

    rooms: tuple[str, ...] = ()
    limits: Limits = LIMITS

    def open(self) -> Session:
        """Start a process."""
        folder = Path(tempfile.mkdtemp(prefix="attnlab-check-"))
        try:
            (folder / "sandbox").mkdir()
            for name in ("runner.py", "wire.py", "cells.py"):
                shutil.copy(HERE / name, folder / "sandbox")
            _library.write(self.rooms, folder / "library")
            runner = folder / "sandbox" / "runner.py"
            command = [sys.executable, "-I", "-B", str(runner), str(folder)]
            return Process(command, folder, self.limits)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


class Process(Session):
    """A session that needs nothing of the system but pipes and threads."""

    def start(self) -> None:
        """A fresh process, and a thread that reads its lines."""
        self.close_process()
        self.lines: queue.Queue[bytes] = queue.Queue()
        ones = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env=os.environ | ones,
        )
        self.process = process
        threading.Thread(target=listen, args=(process, self.lines), daemon=True).start()

    def close_process(self) -> None:
        """End it."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if process.stdin:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def write(self, data: bytes, end: float) -> str:
        """Send all of it."""
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError:
            return "the process ended"
        return ""

    def read(self, end: float) -> tuple[bytes | None, str]:
        """One line, in time."""
        try:
            found = self.lines.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            return None, "did not stop when its time was up"
        return (found, "") if found else (None, self.ended())


def listen(process: subprocess.Popen[bytes], lines: queue.Queue[bytes]) -> None:
    """Pass on what comes; an empty line means that it is over."""
    assert process.stdout is not None
    with contextlib.suppress(OSError, ValueError), process.stdout:
        while found := process.stdout.readline(LINE):
            lines.put(found)
    lines.put(b"")
