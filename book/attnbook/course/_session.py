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

from attnbook.course import _group, wire
from attnbook.course._notices import grave
from attnbook.course._words import clean

if TYPE_CHECKING:
    from attnbook.course._sandbox import Limits

GRACE = 3.0  # seconds after which a process that ignores its alarm is killed
LEAST = 2.0  # seconds that are always left to a call
LINE = 32 << 20  # bytes of a reply
JUNK = 100  # lines that are no replies, before the process is sent away
LOOK = 0.1  # seconds between two looks at what it uses
FORGED = "wrote what is no reply into the grader's pipe"
ODD = "sent a reply that is none"
LEFT = "tried to leave (SystemExit)"
SEEN = 300  # notices of one reply
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass
class Reply:
    """What came back: an answer, or an error in words; what was seen meanwhile.

    Where ``raised``, the words of the error are those of the student's code.
    """

    answer: Any = None
    error: str = ""
    seen: list[str] = field(default_factory=list)
    died: bool = False
    raised: bool = False


class Session:
    """A student's process; where it dies it can be started again."""

    def __init__(
        self, command: list[str], folder: Path, limits: Limits, *, counted: bool = False
    ) -> None:
        self.command, self.folder, self.limits = command, folder, limits
        self.counted = counted  # by a control group, where there is one
        self.left = limits.total
        self.patience = 1.0  # halved whenever time runs out
        self.process: subprocess.Popen[bytes] | None = None
        self.group = _group.Group()
        self.start()

    def start(self) -> None:
        """A fresh process, in a group of its own."""
        self.close_process()
        self.buffer = bytearray()
        self.looked = 0.0
        if self.counted:
            self.group = _group.make(self.limits)
        self.process = subprocess.Popen(
            self.group.inside(self.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)

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
        self.group.close()
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
        seconds = min(max(seconds * self.patience, min(seconds, LEAST)), self.left)
        number = secrets.token_hex(8)
        began = time.monotonic()
        try:
            reply = self.exchange(
                {**message, "number": number, "seconds": seconds}, number, seconds
            )
        finally:
            spent = time.monotonic() - began
            self.left -= spent
        if reply.error and spent >= seconds:
            self.patience /= 2
        return reply

    def exchange(self, message: dict[str, Any], number: str, seconds: float) -> Reply:
        """Write, then read lines until the one that repeats our number."""
        if not self.alive or self.process is None:
            return Reply(error="the process had ended", died=True)
        end = time.monotonic() + seconds + GRACE
        why = self.write(wire.line(message), end)
        if why:
            return self.dead(why)
        seen: list[str] = []
        for _ in range(JUNK):
            text, why = self.read(end)
            if text is None:
                reply = self.dead(why)
                reply.seen += seen
                return reply
            with contextlib.suppress(ValueError, RecursionError):
                told = json.loads(text)
                if isinstance(told, dict) and told.get("number") == number:
                    reply = self.understand(told, float(message["seconds"]))
                    reply.seen += seen
                    return reply
            seen = [FORGED]
        reply = self.dead("wrote into the grader's pipe without end")
        reply.seen += seen
        return reply

    def understand(self, told: dict[str, Any], seconds: float) -> Reply:
        """A reply as plain values; anything else is an error of the student's."""
        seen, error = told.get("seen", []), told.get("error", "")
        if not isinstance(seen, list) or not isinstance(error, str):
            return Reply(error=ODD, seen=[FORGED])
        # whoever writes replies could write notices too: only sentences of ours are believed
        words = [clean(word, 200) for word in seen[:SEEN] if isinstance(word, str)]
        known = [word for word in words if grave(word)]
        if len(known) < len(seen):
            known.append(FORGED)
        ended = {"slow": f"took longer than {seconds:g} seconds", "left": LEFT}
        if "ended" in told:
            return Reply(error=ended.get(str(told["ended"]), ODD), seen=known)
        if "error" in told:
            return Reply(error=clean(error, 500) or ODD, seen=known, raised=True)
        try:
            return Reply(answer=wire.unpack(told.get("answer")), seen=known)
        except (wire.NotPlainError, RecursionError, MemoryError) as problem:
            known.append("sent an answer in another form than the grader's")
            return Reply(error=f"the answer could not be read: {clean(problem, 200)}", seen=known)

    def dead(self, why: str) -> Reply:
        """The process is gone, or is sent away."""
        self.close_process()
        return Reply(error=why, died=True)

    def write(self, data: bytes, end: float) -> str:
        """Send all of it, without ever waiting for a process that does not read; why not."""
        assert self.process is not None
        assert self.process.stdin is not None
        place, rest = self.process.stdin.fileno(), memoryview(data)
        with selectors.DefaultSelector() as ready:
            ready.register(place, selectors.EVENT_WRITE)
            while rest:
                if time.monotonic() > end:
                    return "did not read what it was asked"
                if ready.select(timeout=0.1):
                    try:
                        rest = rest[os.write(place, rest[: 1 << 16]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        return "the process ended"
                if wrong := self.excess():
                    return wrong
        return ""

    def read(self, end: float) -> tuple[bytes | None, str]:
        """One line, while time, memory and the number of processes allow."""
        assert self.process is not None
        assert self.process.stdout is not None
        place, sought = self.process.stdout.fileno(), 0
        with selectors.DefaultSelector() as ready:
            ready.register(place, selectors.EVENT_READ)
            while (at := self.buffer.find(b"\n", sought)) < 0:
                sought = len(self.buffer)
                if sought > LINE:
                    return None, "sent an answer that is too large"
                if time.monotonic() > end:
                    return None, "did not stop when its time was up"
                if wrong := self.excess():
                    return None, wrong
                if ready.select(timeout=0.1):
                    try:
                        piece = os.read(place, 1 << 20)
                    except BlockingIOError:
                        continue
                    if not piece:
                        return None, self.ended()
                    self.buffer += piece
        text = bytes(self.buffer[:at])
        del self.buffer[: at + 1]
        return text, ""

    def ended(self) -> str:
        """Why the pipe is closed, as far as it can be known."""
        if self.group.spent():
            return f"held more than {self.limits.memory >> 20} MB"
        return "the process ended (left early, was killed, or ran out)"

    def excess(self) -> str:
        """What the family of processes uses too much of; looked at ten times a second."""
        assert self.process is not None
        if time.monotonic() - self.looked < LOOK:
            return ""
        members = family(self.process.pid)
        held, threads, made = 0, 0, 0
        for pid in members:
            with contextlib.suppress(OSError, ValueError, IndexError):
                held += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
                threads += len(os.listdir(f"/proc/{pid}/task"))
        with contextlib.suppress(OSError):
            disk = os.statvfs(Path("/proc", str(members[-1]), "root", "tmp"))
            small = disk.f_blocks * disk.f_frsize <= self.limits.disk  # it is the sandbox's own
            made = disk.f_files - disk.f_ffree if small else 0
        self.looked = time.monotonic()
        if threads > self.limits.processes:
            return f"started more than {self.limits.processes} processes"
        if held > self.limits.memory:
            return f"held more than {self.limits.memory >> 20} MB"
        if made > self.limits.files:
            return f"made more than {self.limits.files:,} files"
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
