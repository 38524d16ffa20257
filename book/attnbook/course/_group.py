"""A control group for each sandbox, where this system has one: memory and processes, counted whole.

Without one, the limits of the one process that there can be (see ``gate``) and the grader's own
look at ``/proc`` hold alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnbook.course._sandbox import Limits

NONE = "no control group here: a process's own limits hold alone"
ENTER = (
    'for place; do shift; [ "$place" = -- ] && break; echo $$ >"$place" || exit 90; done; exec "$@"'
)


@dataclass
class Group:
    """Where the processes of one sandbox are counted."""

    kind: str = ""
    places: list[Path] = field(default_factory=list)
    limits: tuple[int, int] = (0, 0)

    def inside(self, command: list[str]) -> list[str]:
        """The command, begun in the group."""
        if self.kind == "systemd":
            memory, processes = self.limits
            told = [f"MemoryMax={memory}", "MemorySwapMax=0", f"TasksMax={processes}"]
            words = [word for one in told for word in ("-p", one)]
            start = ["systemd-run", "--user", "--scope", "--quiet", "--collect"]
            return [*start, *words, "--", *command]
        if not self.places:
            return command
        doors = [str(place / "cgroup.procs") for place in self.places]
        return ["/bin/sh", "-c", ENTER, "sh", *doors, "--", *command]

    def spent(self) -> bool:
        """Whether it ran into its memory."""
        for place in self.places:
            with contextlib.suppress(OSError, ValueError):
                for name in ("memory.events", "memory.oom_control"):
                    path = place / name
                    told = path.read_text().split() if path.is_file() else []
                    if "oom_kill" in told and int(told[told.index("oom_kill") + 1]):
                        return True
        return False

    def close(self) -> None:
        """Kill what is left in it, and remove it."""
        for place in self.places:
            for _ in range(50):
                with contextlib.suppress(OSError, ValueError):
                    for pid in (place / "cgroup.procs").read_text().split():
                        os.kill(int(pid), signal.SIGKILL)
                try:
                    place.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)
        self.places = []


def make(limits: Limits) -> Group:
    """A group with these limits; one that does nothing where the system has none."""
    kind, homes = found()
    most = (limits.memory + limits.disk, limits.processes)
    if kind in ("", "systemd"):
        return Group(kind, [], most)
    group = Group(kind, [], most)
    try:
        fill(group, homes, most)
    except OSError:  # it was there a moment ago
        group.close()
        return Group()
    return group


def fill(group: Group, homes: tuple[Path, ...], most: tuple[int, int]) -> None:
    """Make the folders, and write the limits."""
    sizes = {"memory.max": most[0], "memory.swap.max": 0, "pids.max": most[1]}
    old = {"memory.limit_in_bytes": most[0], "memory.memsw.limit_in_bytes": most[0]}
    needed = ("memory.max", "memory.limit_in_bytes", "pids.max")
    for home in homes:
        place = home / f"attnlab-{os.getpid()}-{secrets.token_hex(4)}"
        place.mkdir()
        group.places.append(place)
        for name, value in (sizes | old).items():
            if (place / name).exists():
                try:
                    (place / name).write_text(str(value))
                except OSError:
                    if name in needed:
                        raise


@cache
def found() -> tuple[str, tuple[Path, ...]]:
    """Which kind of control group works here: tried, not guessed."""
    for kind, homes in (("version 2", newer()), ("version 1", older())):
        if not homes:
            continue
        group = Group(kind)
        try:
            fill(group, homes, (1 << 30, 64))
            command = group.inside(["/bin/true"])
            wanted = {"memory.max", "memory.limit_in_bytes", "pids.max"}
            there = {name for place in group.places for name in wanted if (place / name).exists()}
            if len(there) == 2 and not subprocess.run(command, check=False, timeout=20).returncode:
                return kind, homes
        except (OSError, subprocess.TimeoutExpired):
            pass
        finally:
            group.close()
    if shutil.which("systemd-run"):
        command = Group("systemd", [], (1 << 30, 64)).inside(["/bin/true"])
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, check=False, timeout=20)
            if done.returncode == 0:
                return "systemd", ()
    return "", ()


def mounts() -> list[tuple[Path, str, list[str]]]:
    """Control groups that are mounted: where, of which kind, with which words."""
    told = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            first, _, last = line.partition(" - ")
            words = last.split()
            if words and words[0] in ("cgroup", "cgroup2"):
                told.append((Path(first.split()[4]), words[0], words[-1].split(",")))
    return told


def own() -> list[list[str]]:
    """Our own groups."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        return [line.split(":", 2) for line in lines if line.count(":") >= 2]
    return []


def newer() -> tuple[Path, ...]:
    """Our own group of version 2, where it may have groups below it that count memory."""
    for place, kind, _ in mounts():
        path = next((words[2] for words in own() if words[0] == "0"), None)
        if kind != "cgroup2" or path is None:
            continue
        for home in (place / path.lstrip("/"), place):
            with contextlib.suppress(OSError):
                if {"memory", "pids"} <= set((home / "cgroup.subtree_control").read_text().split()):
                    return (home,)
    return ()


def older() -> tuple[Path, ...]:
    """Our own groups of version 1 for memory and for processes."""
    homes = []
    for what in ("memory", "pids"):
        path = next((words[2] for words in own() if what in words[1].split(",")), None)
        place = next((p for p, kind, words in mounts() if kind == "cgroup" and what in words), None)
        if path is None or place is None:
            return ()
        homes.append(place / path.lstrip("/"))
    return tuple(homes)


def describe() -> str:
    """In words, for reports."""
    kind, _ = found()
    return f"control group ({kind})" if kind else NONE
