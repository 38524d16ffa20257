"""Processes that mark: one submission each, with limits on time and memory.

What a student wrote is read, parsed, run (in the sandbox) and judged here, never in the process
that keeps the course. That one only waits for lines, each with a time by which it must come. A
step that ends its process is named, left out, and the rest is marked again in a fresh one.

    python -m attnbook.course._marker      waits for jobs on its standard input
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from attnbook.course import _group
from attnbook.course._assign import foreign
from attnbook.course._grade import Mark, Part, Verdict, grade
from attnbook.course._sandbox import Limits, available, packages
from attnbook.course._source import ProblemSet, read
from attnbook.course._submission import read_submission
from attnbook.course._words import clean

with contextlib.suppress(ImportError):  # not on Windows, where nothing is marked
    import resource

MEMORY = 2560 << 20  # bytes of a process that marks
TIMES = {"start": 60.0, "read": 20.0, "look": 20.0, "judge": 60.0}  # seconds of a step
SPARE = 60.0  # seconds beyond a submission's own, for a step that talks to its code
ATTEMPTS = 8
LINE = 8 << 20  # bytes of a verdict


class MarkingError(RuntimeError):
    """A fault of a set or of the grader; never of what was handed in."""


class Marker:
    """A process from which processes that mark are forked, quickly and one at a time."""

    def __init__(self, core: int | None = None) -> None:
        self.core = core
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = bytearray()

    def start(self) -> None:
        """Have the process, if it is not there."""
        if self.process is not None and self.process.poll() is None:
            return
        self.close()
        roots = [str(Path(__file__).parents[2])]
        roots += [root for root in map(os.path.abspath, sys.path) if root not in roots]
        told = {"PYTHONPATH": os.pathsep.join(roots)}
        told |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attnbook.course._marker", str(self.core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | told,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def close(self) -> None:
        """End it, and what it does."""
        process, self.process = self.process, None
        self.buffer = bytearray()
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()

    def mark(
        self, path: Path, sheet: Path, seed: int, limits: Limits | None = None, **about: Any
    ) -> tuple[Verdict, dict[str, str]]:
        """The verdict of a file, and its answers in words; a bad file never takes longer.

        ``about`` is what else the process is told: ``problems``, the ids that are asked, and
        ``variants`` and ``student``, the variants that were handed out and whose file it is.
        """
        limits = limits or Limits()
        skip: list[str] = []
        left = limits.total
        for _ in range(ATTEMPTS):
            self.start()
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="attnlab-mark-") as place:
                job = {"path": str(path), "sheet": str(sheet), "seed": seed, "skip": skip, **about}
                job |= {"limits": dataclasses.asdict(dataclasses.replace(limits, total=left))}
                told, step = self.attempt({**job, "place": place}, left)
            left = max(1.0, left - (time.monotonic() - began))
            if "verdict" in told:
                return verdict_from(told["verdict"]), dict(told["prose"])
            if "fault" in told or step == "start" or step in skip:
                raise MarkingError(told.get("fault", f"the process that marks ended at: {step}"))
            skip.append(step)
        raise MarkingError(f"gave up after {ATTEMPTS} attempts, the last at: {step}")

    def attempt(self, job: dict[str, Any], left: float) -> tuple[dict[str, Any], str]:
        """One process; what it said last, and the step that it was at."""
        assert self.process is not None
        assert self.process.stdin is not None
        step, pid, result = "start", 0, {}
        try:
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.close()
            return {}, step
        while True:
            told = self.line(TIMES.get(step.split()[0], left + SPARE))
            if told is None:
                stop(pid)
                told = self.line(10.0) if pid else None
                if told is None or "over" not in told:
                    self.close()
                return {}, step
            pid = int(told.get("pid", pid))
            step = str(told.get("at", step))
            if "verdict" in told or "fault" in told:
                result = told
            if "over" in told:
                return result, step

    def line(self, seconds: float) -> dict[str, Any] | None:
        """What it says next, if it does in time."""
        assert self.process is not None
        assert self.process.stdout is not None
        end, place, sought = time.monotonic() + seconds, self.process.stdout.fileno(), 0
        with selectors.DefaultSelector() as ready:
            ready.register(place, selectors.EVENT_READ)
            while (at := self.buffer.find(b"\n", sought)) < 0:
                sought = len(self.buffer)
                wait = end - time.monotonic()
                if wait <= 0 or sought > LINE or not ready.select(timeout=wait):
                    return None
                with contextlib.suppress(BlockingIOError):
                    piece = os.read(place, 1 << 16)
                    if not piece:
                        return None
                    self.buffer += piece
        text = bytes(self.buffer[:at])
        del self.buffer[: at + 1]
        found: dict[str, Any] = json.loads(text)
        return found


class Markers:
    """As many as work at a time, each on a core of its own where there are several."""

    def __init__(self, count: int) -> None:
        cores = cores_here()
        alone = count < 2 or len(cores) < 2
        self.all = [Marker(None if alone else cores[k % len(cores)]) for k in range(count)]
        self.free: queue.SimpleQueue[Marker] = queue.SimpleQueue()
        for marker in self.all:
            self.free.put(marker)

    def __enter__(self) -> Markers:
        return self

    def __exit__(self, *_: object) -> None:
        for marker in self.all:
            marker.close()

    @contextlib.contextmanager
    def one(self) -> Iterator[Marker]:
        """One that is free."""
        marker = self.free.get()
        try:
            yield marker
        finally:
            self.free.put(marker)


def cores_here() -> list[int]:
    """The processors that we may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def stop(pid: int) -> None:
    """Kill a process that marks; its sandbox dies with it."""
    if pid:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def verdict_from(told: dict[str, Any]) -> Verdict:
    """A verdict as it was before it became JSON."""
    marks = [
        Mark(**{**entry, "parts": [Part(**part) for part in entry["parts"]]})
        for entry in told["marks"]
    ]
    return Verdict(told["name"], marks, list(told["notices"]), told["status"])


def load_verdict(path: Path, mark: str = "") -> Verdict | None:
    """A verdict, if it is there and of this submission; a damaged one counts as missing."""
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if mark and told["of"] != mark:
            return None
        return verdict_from(told)
    except (OSError, ValueError, KeyError, TypeError):
        return None


# -- inside ------------------------------------------------------------------------------------
def main(core: str) -> None:
    """Fork for every job, one after the other."""
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    with_parent()
    if core.isdigit() and sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {int(core)})

    def tell(**told: Any) -> None:
        data = memoryview(json.dumps(told).encode() + b"\n")
        while data:
            data = data[os.write(out, data) :]

    sheets: dict[tuple[str, int], Any] = {}
    for text in sys.stdin.buffer:
        job = json.loads(text)
        try:
            ready()
            sheet = Path(job["sheet"])
            key = (str(sheet), sheet.stat().st_mtime_ns)
            if key not in sheets:
                sheets[key] = read(sheet)
            asked = sheets[key].part(job.get("problems", ()))
        except Exception as error:
            tell(fault=clean(f"{type(error).__name__}: {error}", 500))
            tell(over=0)
            continue
        pid = os.fork()
        if pid == 0:
            try:
                with_parent()
                work(job, asked, tell)
            finally:
                os._exit(0)
        tell(pid=pid)
        _, status = os.waitpid(pid, 0)
        shutil.rmtree(job["place"], ignore_errors=True)
        tell(over=status)


def with_parent() -> None:
    """Die when the process that waits for us does."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@cache
def ready() -> None:
    """What every process that marks needs, loaded and tried once."""
    available()
    _group.found()
    packages()
    with contextlib.suppress(ImportError):
        import scipy.linalg
        import scipy.optimize
        import scipy.special
        import scipy.stats  # noqa: F401


def work(job: dict[str, Any], source: ProblemSet, tell: Callable[..., None]) -> None:
    """Read, parse, talk and judge, within limits."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TMPDIR"] = tempfile.tempdir = job["place"]
    skip = frozenset(job["skip"])
    try:
        verdict, prose = marked(job, source, skip, lambda step: tell(at=step))
    except (MemoryError, RecursionError):
        return  # as if it had been killed: the step is to blame
    except Exception as error:
        tell(fault=f"{type(error).__name__}: {clean(error)}")
        return
    tell(verdict=dataclasses.asdict(verdict), prose=prose)


def marked(
    job: dict[str, Any], source: ProblemSet, skip: frozenset[str], at: Callable[[str], None]
) -> tuple[Verdict, dict[str, str]]:
    """The same, with the steps it is at."""
    if skip & {"read", "talk"}:
        what = "read" if "read" in skip else "run"
        words = f"could not be {what} in the time and memory there is"
        marks = [
            Mark(one.id, one.title, 0.0, one.points, not one.answer) for one in source.problems
        ]
        return Verdict(source.name, marks, [words], "unreadable"), {}
    at("read" if "look" in skip else "look")
    submission = read_submission(Path(job["path"]), source, job["seed"], look="look" not in skip)
    if "variants" in job:
        submission.notices[:0] = foreign(job, source.name)
    limits = Limits(**job["limits"])
    verdict = grade(submission, source, job["seed"], limits=limits, tell=at, skip=skip)
    return verdict, submission.prose


if __name__ == "__main__":
    main(sys.argv[1])
