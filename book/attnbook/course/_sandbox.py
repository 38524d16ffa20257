"""A place where a student's code can run: no network, no files of ours, limits on everything."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from attnbook.course import _alone, _group, _library, gate
from attnbook.course._session import Session

HERE = Path(__file__).parent
PACKAGES = ("numpy", "numpy.libs", "scipy", "scipy.libs")
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache", "/etc/ld.so.conf")
IMAGE = "ATTNLAB_IMAGE"  # of a container that has Python, NumPy and SciPy
MISSING = "missing"
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
REFUSAL = (
    "no sandbox: student code is not run without one. Install bubblewrap (apt-get install "
    "bubblewrap, dnf install bubblewrap), or Docker or Podman with an image that has Python, NumPy "
    f"and SciPy named in {IMAGE}. On macOS and Windows: a Linux virtual machine, or a container."
)


class NoSandboxError(RuntimeError):
    """Neither bubblewrap nor a container works here: student code is not run.

    Args:
        words: what to say; how to get a sandbox, unless told.

    Returns:
        An error that says what to install.

    Examples:
        >>> from attnbook import course
        >>> "bubblewrap" in str(course.NoSandboxError())
        True
    """

    def __init__(self, words: str = REFUSAL) -> None:
        super().__init__(words)


@dataclass(frozen=True)
class Limits:
    r"""What a submission may use.

    Args:
        cell: seconds for one cell.
        call: seconds for one call of a function.
        total: seconds for the whole submission.
        memory: bytes that all its processes may hold together.
        disk: bytes it may write.
        processes: how many there may be at a time, threads included.
        files: how many it may make.

    Returns:
        Limits.

    Examples:
        >>> from attnbook import course
        >>> course.Limits(total=60.0).call
        10.0
    """

    cell: float = 20.0
    call: float = 10.0
    total: float = 120.0
    memory: int = 3 << 30
    disk: int = 64 << 20
    processes: int = 64
    files: int = 20_000


@dataclass(frozen=True)
class Sandbox:
    r"""How student code is run: bubblewrap, or a container.

    Args:
        rooms: the rooms of attnlab that the code may import.
        limits: what it may use.
        kind: ``bubblewrap``, ``docker`` or ``podman``; the first that works where none is named.

    Returns:
        A sandbox; its `open` gives a session in which cells run and functions are called.

    Examples:
        >>> from attnbook import course
        >>> box = course.Sandbox(rooms=("problems",))
        >>> with box.open() as session:
        ...     told = session.cell("def double(x): return 2 * x")
        ...     session.call("double", 21.0).answer
        42.0
    """

    rooms: tuple[str, ...] = ()
    limits: Limits = Limits()
    kind: str = ""

    def open(self) -> Session:
        """Start a process in the sandbox."""
        kind = self.kind or available()
        alone = kind == "user"
        folder = _alone.place() if alone else Path(tempfile.mkdtemp(prefix="attnlab-sandbox-"))
        try:
            (folder / "sandbox").mkdir()
            for name in ("runner.py", "wire.py", "cells.py", "gate.py"):
                shutil.copy(HERE / name, folder / "sandbox")
            _library.write(self.rooms, folder / "library")
            if alone:
                _alone.open_up(folder, packages())
            return Session(command(kind, folder, self.limits), folder, self.limits, kind)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@cache
def available() -> str:
    """What works on this machine: tried, not guessed."""
    told = REFUSAL
    for kind in ("bubblewrap", "docker", "podman", *(["user"] if _alone.meant() else [])):
        why = why_not(kind)
        if not why:
            return kind
        told += f" {kind} is there but does not work: {why}." if why != MISSING else ""
    raise NoSandboxError(told)


def why_not(kind: str) -> str:
    """Empty where a trivial program runs in it."""
    with tempfile.TemporaryDirectory() as place:
        try:
            start = command(kind, Path(place), Limits(), ["-c", "import numpy"], bare=True)
            done = subprocess.run(
                start, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL
            )
        except LookupError:
            return MISSING
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{type(error).__name__}"
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit status {done.returncode}"


def command(
    kind: str,
    folder: Path,
    limits: Limits,
    run: list[str] | None = None,
    *,
    bare: bool = False,
) -> list[str]:
    """What to start: Python in the sandbox, with the runner as its program."""
    if kind == "bubblewrap":
        return bubblewrap(folder, limits, run, bare)
    if kind in ("docker", "podman"):
        return container(kind, folder, limits, run, bare)
    if kind == "user":
        return _alone.command(folder, ENVIRONMENT, packages(), run, bare)
    raise ValueError(f"kind: expected bubblewrap, docker or podman, got {kind!r}")


def bubblewrap(folder: Path, limits: Limits, run: list[str] | None, bare: bool) -> list[str]:
    """New namespaces of every kind; the system and Python read-only; a small /tmp; nothing else."""
    tool = shutil.which("bwrap")
    if tool is None:
        raise LookupError("bwrap")
    told = [tool, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    told += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--cap-drop", "ALL"]
    for name, value in ENVIRONMENT.items():
        told += ["--setenv", name, value]
    for system in SYSTEM:
        told += ["--ro-bind-try", system, system]
    told += ["--proc", "/proc", "--dev", "/dev", "--size", str(limits.disk), "--tmpfs", "/tmp"]
    base = Path(sys.base_prefix).resolve()
    if not str(base).startswith("/usr"):
        told += ["--ro-bind", str(base), str(base)]
    told += ["--dir", "/packages"]
    for place in hidden(base):
        told += ["--tmpfs", place, "--remount-ro", place]
    for name, path in packages().items():
        told += ["--ro-bind", str(path), f"/packages/{name}"]
    if not bare:
        for name in ("sandbox", "library"):
            told += ["--ro-bind", str(folder / name), f"/{name}"]
    python = str(Path(sys.executable).resolve())
    code = run or ["/sandbox/runner.py"]
    if bare:
        code = ["-c", f"import sys; sys.path.insert(0, '/packages'); {(run or [''])[-1]}"]
    told += ["--remount-ro", "/dev", "--remount-ro", "/"]  # /dev/shm would have no limit
    return [*told, "--chdir", "/tmp", python, "-I", "-S", "-B", *code]


def hidden(base: Path) -> list[str]:
    """Packages of the system's Python and of ours, and attnlab itself if it is among them."""
    bound = [Path("/usr"), Path("/lib"), Path("/lib64"), base]
    shapes = ("python3*/*-packages", "lib*/python3*/*-packages", "local/lib*/python3*/*-packages")
    found = {place for root in bound for shape in shapes for place in root.glob(shape)}
    homes = {
        home.parent for home in _library.HOMES.values()
    }  # a checkout, or the folder of packages
    found |= {own for own in homes if any(root in own.parents for root in bound)}
    return sorted(str(place) for place in found if place.is_dir())


def container(
    kind: str, folder: Path, limits: Limits, run: list[str] | None, bare: bool
) -> list[str]:
    """The same in a container, from an image that has Python and NumPy."""
    tool, image = shutil.which(kind), os.environ.get(IMAGE)
    if tool is None or not image:
        raise LookupError(kind)
    told = [tool, "run", "--rm", "-i", "--network", "none", "--read-only", "--cap-drop", "ALL"]
    told += ["--security-opt", "no-new-privileges", "--user", "65534:65534", "--workdir", "/tmp"]
    told += ["--pids-limit", str(limits.processes), "--memory", str(limits.memory)]
    told += ["--memory-swap", str(limits.memory), "--cpus", "1"]
    told += ["--tmpfs", f"/tmp:size={limits.disk},mode=1777"]
    for name, value in ENVIRONMENT.items():
        if name != "PATH":  # the image knows where its Python is
            told += ["--env", f"{name}={value}"]
    if not bare:
        for name in ("sandbox", "library"):
            told += ["--volume", f"{folder / name}:/{name}:ro"]
    return [*told, image, "python3", "-B", *(run or ["/sandbox/runner.py"])]


@cache
def packages() -> dict[str, Path]:
    """NumPy and SciPy where they are installed; nothing else of the environment is shown."""
    found = {}
    for name in PACKAGES:
        root = name.split(".")[0]
        spec: Any = importlib.util.find_spec(root)
        if spec is None or spec.origin is None:
            continue
        place = Path(spec.origin).parent.parent / name
        if place.is_dir():
            found[name] = place.resolve()
    return found


def describe() -> str:
    """One line about the sandbox of this machine, for reports."""
    version = sysconfig.get_python_version()
    packed = ", ".join(name for name in packages() if "." not in name)
    calls = "its system calls filtered" if gate.known() else "no filter of system calls here"
    return f"{available()}, {calls}, {_group.describe()}, Python {version}, {packed}"
