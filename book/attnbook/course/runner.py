"""Runs a student's cells and calls their functions, inside the sandbox.

Nothing is decided here: what comes back are answers, and the grader outside judges them. Cells
and calls arrive as lines of JSON, one at a time, each with a number that its reply repeats.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import resource
import signal
import sys
import traceback
import types
from typing import Any

MEMORY = 3 << 30
PROCESSES = 48
FILES = 32 << 20


SHOWN = ("matplotlib", "IPython", "ipywidgets", "anywidget", "tqdm")  # for eyes, not for answers


class Absent(types.ModuleType):
    """What may be imported but not used, so that a picture in a cell does not cost its answer."""

    def __call__(self, *given: Any, **_: Any) -> Any:
        """As good as nothing: tqdm(range(9)), display(x)."""
        return given[0] if given else None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__name__}.{name} is not there when this is marked")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for what a notebook shows things with."""

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """Only those of the list, and what is below them."""
        if name.split(".")[0] not in SHOWN:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """A stand-in."""
        return Absent(spec.name)

    def exec_module(self, _: types.ModuleType) -> None:
        """There is nothing to run."""


class SlowError(BaseException):
    """Time is up for this cell, or this call."""


def limit() -> None:
    """What one process may use; the grader watches all of them together."""
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

    home = (sys.base_prefix, "/usr", "/packages", "/library", "/sandbox", "/tmp", "/dev", "/lib")

    def hook(event: str, given: tuple[Any, ...]) -> None:
        told = words.get(event)
        if event == "open" and given and isinstance(given[0], str | bytes):
            path = os.fsdecode(given[0])
            mode = str(given[1] or "r")
            if mode.strip("rbt") and not path.startswith(("/tmp", "/dev/null")):
                told = f"tried to write to {path[:120]}"
            elif ".." in path or (path.startswith("/") and not path.startswith(home)):
                told = f"tried to read {path[:120]}"
        if event in ("os.listdir", "os.scandir") and given:
            place = str(given[0] or ".")
            if ".." in place or (place.startswith("/") and not place.startswith(home)):
                told = f"looked into {place[:120]}"
        if told and told not in seen and len(seen) < 20:
            seen.append(told)

    sys.addaudithook(hook)


def plain(source: str) -> str:
    """A cell without the notebook's own commands; Python's `% n` on a line of its own stays."""
    return re.sub(r"^([ \t]*)(%%?|!!?)(?=[A-Za-z./])", r"\1pass  # ", source, flags=re.M)


def prepared(source: str, name: str) -> Any:
    """A cell as code: as it stands if it is Python, without the notebook's commands otherwise."""
    try:
        return compile(source, name, "exec")
    except SyntaxError:
        return compile(plain(source), name, "exec")


def say(error: BaseException) -> str:
    """An error in a few words, with the student's own line."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("cell")]
    place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


def main() -> None:
    """Answer until the grader closes the pipe."""
    ask, answer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    sys.path[:0] = ["/library", "/packages", "/sandbox"]
    sys.meta_path.append(Finder())
    import numpy  # noqa: F401  (before the limits: its threads)

    wire = importlib.import_module("wire")

    limit()
    seen: list[str] = []
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}

    def late(*_: Any) -> None:
        raise SlowError

    signal.signal(signal.SIGALRM, late)
    watch(seen)
    stream = os.fdopen(ask, "rb")
    for text in stream:
        asked = json.loads(text)
        reply: dict[str, Any] = {"number": asked["number"]}
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, float(asked["seconds"]))
        try:
            if asked["do"] == "reset":
                space = {"__name__": "__main__", "__builtins__": __builtins__}
            elif asked["do"] == "cell":
                exec(prepared(asked["source"], asked["name"]), space)
            else:
                if asked["name"] not in space:
                    raise NameError(f"{asked['name']} is not defined")
                value = space[asked["name"]]
                if asked["do"] == "call":
                    value = value(*[wire.unpack(entry) for entry in asked["given"]])
                reply["answer"] = wire.pack(value)
        except SlowError:
            reply["error"] = f"took longer than {asked['seconds']:g} seconds"
        except SystemExit:
            reply["error"] = "tried to leave (SystemExit)"
        except BaseException as error:
            reply["error"] = say(error)
        signal.setitimer(signal.ITIMER_REAL, 0)
        reply["seen"] = list(seen)
        seen.clear()
        try:
            os.write(answer, b"")
            with os.fdopen(os.dup(answer), "wb") as out:
                out.write(wire.line(reply))
        except OSError:
            os._exit(1)


if __name__ == "__main__":
    main()
