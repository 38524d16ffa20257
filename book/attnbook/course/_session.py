"""One process in the sandbox, asked cell by cell and call by call, and watched meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnbook.course import wire

if TYPE_CHECKING:
    from attnbook.course._sandbox import Limits

GRACE = 3.0  # seconds after which a process that ignores its alarm is killed
LINE = 32 << 20  # bytes of a reply
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Reply:
    """What came back: an answer, or an error in words; what was seen meanwhile."""

    answer: Any = None
    error: str = ""
    seen: list[str] = field(default_factory=list)
    died: bool = False


class Session:
    """A student's process; where it dies it can be started again."""

    def __init__(self, command: list[str], folder: Path, limits: Limits) -> None:
        self.command, self.folder, self.limits = command, folder, limits
        self.left = limits.total
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """A fresh process."""
        self.close_process()
        self.buffer = b""
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and leave nothing behind."""
        self.close_process()
        shutil.rmtree(self.folder, ignore_errors=True)

    def close_process(self) -> None:
        """Kill everything: the first process of the namespace takes the others with it."""
        process, self.process = self.process, None
        if process is None:
            return
        for pid in reversed(family(process.pid)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    @property
    def alive(self) -> bool:
        """Whether there is a process to ask."""
        return self.process is not None and self.process.poll() is None

    # -- asking ------------------------------------------------------------------------------------
    def cell(self, source: str, name: str = "cell") -> Reply:
        """Run a cell."""
        return self.ask({"do": "cell", "source": source, "name": name}, self.limits.cell)

    def call(self, name: str, *given: Any) -> Reply:
        """Call a function of the student's with plain values."""
        packed = [wire.pack(value) for value in given]
        return self.ask({"do": "call", "name": name, "given": packed}, self.limits.call)

    def value(self, name: str) -> Reply:
        """A variable of the student's."""
        return self.ask({"do": "value", "name": name}, self.limits.call)

    def reset(self) -> Reply:
        """Forget all names."""
        return self.ask({"do": "reset"}, self.limits.call)

    def ask(self, message: dict[str, Any], seconds: float) -> Reply:
        """Send one question and wait for its answer, no longer than it may take."""
        if self.left <= 0:
            self.close_process()
            return Reply(error=f"used up its {self.limits.total:g} seconds", died=True)
        seconds = min(seconds, self.left)
        number = secrets.token_hex(8)
        began = time.monotonic()
        try:
            return self.exchange({**message, "number": number, "seconds": seconds}, number, seconds)
        finally:
            self.left -= time.monotonic() - began

    def exchange(self, message: dict[str, Any], number: str, seconds: float) -> Reply:
        """Write, then read lines until the one that repeats our number."""
        if not self.alive or self.process is None:
            return Reply(error="the process had ended", died=True)
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(wire.line(message))
            self.process.stdin.flush()
        except OSError:
            return self.dead("the process ended")
        end = time.monotonic() + seconds + GRACE
        seen: list[str] = []
        while True:
            text, why = self.read(end)
            if text is None:
                return self.dead(why)
            with contextlib.suppress(ValueError, RecursionError):
                told = json.loads(text)
                if isinstance(told, dict) and told.get("number") == number:
                    reply = self.understand(told)
                    reply.seen += seen
                    return reply
            seen = ["wrote what is no reply into the grader's pipe"]

    def understand(self, told: dict[str, Any]) -> Reply:
        """A reply as plain values; anything else is an error of the student's."""
        seen = [str(word)[:200] for word in (told.get("seen") or [])[:20]]
        if "error" in told:
            return Reply(error=str(told["error"])[:500], seen=seen)
        try:
            return Reply(answer=wire.unpack(told.get("answer")), seen=seen)
        except wire.NotPlainError as error:
            seen.append("sent an answer in another form than the grader's")
            return Reply(error=f"the answer could not be read: {error}", seen=seen)

    def dead(self, why: str) -> Reply:
        """The process is gone, or is sent away."""
        self.close_process()
        return Reply(error=why, died=True)

    def read(self, end: float) -> tuple[bytes | None, str]:
        """One line, while time, memory and the number of processes allow."""
        assert self.process is not None
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                if len(self.buffer) > LINE:
                    return None, "sent an answer that is too large"
                if time.monotonic() > end:
                    return None, "did not stop when its time was up"
                if ready.select(timeout=0.1):
                    piece = os.read(self.process.stdout.fileno(), 1 << 20)
                    if not piece:
                        return None, "the process ended (left early, was killed, or ran out)"
                    self.buffer += piece
                    continue
                wrong = self.excess()
                if wrong:
                    return None, wrong
        text, _, self.buffer = self.buffer.partition(b"\n")
        return text, ""

    def excess(self) -> str:
        """What the family of processes uses too much of."""
        assert self.process is not None
        members = family(self.process.pid)
        if len(members) > self.limits.processes:
            return f"started more than {self.limits.processes} processes"
        held = 0
        for pid in members:
            with contextlib.suppress(OSError, ValueError, IndexError):
                held += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        if held > self.limits.memory:
            return f"held more than {self.limits.memory >> 20} MB"
        return ""


def family(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    try:
        entries = os.listdir("/proc")
    except OSError:
        return [root]
    for entry in entries:
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{entry}/stat").read_text()
            parent = int(text.rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(entry))
    found, wanted = [], [root]
    while wanted:
        pid = wanted.pop()
        found.append(pid)
        wanted += parents.get(pid, [])
    return found
