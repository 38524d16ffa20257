"""Runs a student's cells and calls their functions, inside the sandbox.

Nothing is decided here: what comes back are answers, and the grader outside judges them. Cells
and calls arrive as lines of JSON, one at a time, each with a number that its reply repeats.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import json
import os
import signal
import sys
import traceback
from types import ModuleType
from typing import Any

resource: ModuleType | None = None
with contextlib.suppress(ImportError):  # not on Windows
    import resource

MEMORY = 3 << 30
PROCESSES = 48
FILES = 32 << 20
EACH = 5  # notices of a kind, between two replies
WATCHED = ("/proc", "/sys", "/etc", "/home", "/root", "/var", "/run", "/dev", "/sandbox", "..")
ALLOWED = ("numpy", "scipy", "attnlab", "attnbook", "wire", "cells")


class SlowError(BaseException):
    """Time is up for this cell, or this call."""


def limit() -> None:
    """What one process may use; the grader watches all of them together."""
    assert resource is not None
    for what, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_NPROC, PROCESSES),
        (resource.RLIMIT_FSIZE, FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        resource.setrlimit(what, (most, most))
    with contextlib.suppress(AttributeError):
        os.register_at_fork(after_in_child=lambda: os._exit(1))  # a copy must not answer for us


class Only(importlib.abc.MetaPathFinder):
    """Refuses what is not there when a notebook is marked."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Nothing, or an error."""
        root = name.split(".")[0]
        if root not in (*sys.stdlib_module_names, *ALLOWED) and not root.startswith("_"):
            raise ModuleNotFoundError(f"{root} is not there when this is marked", name=name)


def alarm(seconds: float) -> None:
    """Stop by an alarm, where the system has them."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def watch(seen: list[str]) -> None:
    """Name what a program has no reason to do when it answers a question."""
    words = {
        "os.fork": "started a process (os.fork)",
        "os.forkpty": "started a process (os.forkpty)",
        "os.system": "started a program (os.system)",
        "os.exec": "tried to become another program",
        "os.posix_spawn": "started a program",
        "subprocess.Popen": "started a program (subprocess)",
        "socket.connect": "asked the network",
        "socket.getaddrinfo": "asked the network",
        "socket.bind": "opened a network port",
        "ctypes.dlopen": "loaded machine code (ctypes)",
        "os.symlink": "made a symbolic link",
        "os.kill": "sent a signal",
    }

    kinds: list[str] = []
    home = (sys.base_prefix, "/usr", "/packages", "/library", "/sandbox", "/tmp", "/dev", "/lib")

    def note(verb: str, place: str = "") -> None:
        """Keep a notice; of a verb and a place the first few, so that none crowds out another."""
        told = f"{verb} {place[:120]}".strip()
        top = ".." if ".." in place else "/".join(place.split("/")[:2])
        kind = f"{verb} {top if top in WATCHED else ''}"
        if told not in seen and sum(one == kind for one in kinds) < EACH:
            seen.append(told)
            kinds.append(kind)

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if not seen:
            kinds.clear()
        if event in words:
            note(words[event])
        if event == "open" and given and isinstance(given[0], str | bytes):
            path = os.fsdecode(given[0])
            if not path.startswith("/") and ".." not in path:
                return  # in the scratch space, unless it has moved, which is noted
            mode = str(given[1] or "r")
            if mode.strip("rbt") and not path.startswith(("/tmp", "/dev/null")):
                note("tried to write to", path)
            elif ".." in path or not path.startswith(home):
                note("tried to read", path)
        if event in ("os.listdir", "os.scandir", "os.chdir") and given:
            place = str(given[0] or ".")
            if ".." in place or (place.startswith("/") and not place.startswith(home)):
                note("looked into", place)

    sys.addaudithook(hook)


def say(error: BaseException) -> str:
    """An error in a few words, with the student's own line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename.startswith("cell") and f.name != "expect"]
    place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


def main(folder: str = "") -> None:
    """Answer until the grader closes the pipe; with a folder, at a student's desk, unguarded."""
    ask, answer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    sys.path[:0] = [f"{folder}/library", f"{folder}/packages", f"{folder}/sandbox"]
    import numpy  # noqa: F401  (before the limits: its threads)

    wire, cells = (importlib.import_module(name) for name in ("wire", "cells"))
    if folder:  # pictures are drawn by nobody here either
        sys.meta_path[:0] = [cells.Finder(), Only()]
    else:
        sys.meta_path.append(cells.Finder())
        limit()
        importlib.import_module("gate").close()
    seen: list[str] = []
    shown = {name: cells.Absent(f"IPython.{name}") for name in ("display", "get_ipython")}
    start = {"__name__": "__main__", "__builtins__": __builtins__, **shown}
    space: dict[str, Any] = dict(start)

    def late(*_: Any) -> None:
        raise SlowError

    watch(seen)
    stream = os.fdopen(ask, "rb")
    for text in stream:
        asked = json.loads(text)
        reply: dict[str, Any] = {"number": asked["number"]}
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, late)
        alarm(float(asked["seconds"]))
        try:
            if asked["do"] == "reset":
                space = dict(start)
            elif asked["do"] == "cell":
                cells.run(asked["source"], asked["name"], space)
            else:
                if asked["name"] not in space:
                    raise NameError(f"{asked['name']} is not defined")
                value = space[asked["name"]]
                if asked["do"] == "call":
                    value = value(*[wire.unpack(entry) for entry in asked["given"]])
                reply["answer"] = wire.pack(wire.simple(value))
        except SlowError:
            reply["ended"] = "slow"
        except SystemExit:
            reply["ended"] = "left"
        except BaseException as error:
            reply["error"] = say(error)
        alarm(0)
        reply["seen"] = list(seen)
        seen.clear()
        try:
            os.write(answer, b"")
            with os.fdopen(os.dup(answer), "wb") as out:
                out.write(wire.line(reply))
        except OSError:
            os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
