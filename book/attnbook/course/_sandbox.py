"""A place where a student's code can run: no network, no files of ours, limits on everything."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from attnbook.course import _group, _library, gate
from attnbook.course._session import Session

HERE = Path(__file__).parent
PACKAGES = ("numpy", "numpy.libs", "scipy", "scipy.libs")
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache", "/etc/ld.so.conf")
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
# Root's sandboxes run as a user of their own from this range, which Linux distributions leave to
# users that exist for a moment only (systemd's DynamicUser). No two sandboxes share a user, because
# the kernel counts processes and pipes by user.
FIRST_USER, USERS = 61_184, 4_336
STAGE = "/run"  # covered, in a mount namespace of the sandbox's own
BIND = (
    f"mount -t tmpfs -o mode=755 tmpfs {STAGE} || exit 91; "
    'while [ "$1" != -- ]; do mkdir "$2" && mount --bind "$1" "$2" || exit 91; shift 2; done; '
    'shift; exec "$@"'
)
REFUSAL = (
    "no sandbox: student code is not run without one. Install bubblewrap (apt-get install "
    "bubblewrap, dnf install bubblewrap). On macOS and Windows: a Linux virtual machine."
)


class NoSandboxError(RuntimeError):
    """Bubblewrap does not work here: student code is not run.

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
    r"""How student code is run: in bubblewrap, as an unprivileged user.

    Args:
        rooms: the rooms of attnlab that the code may import.
        limits: what it may use.

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

    def open(self) -> Session:
        """Start a process in the sandbox."""
        available()
        folder = Path(tempfile.mkdtemp(prefix="attnlab-sandbox-"))
        try:
            (folder / "sandbox").mkdir()
            for name in ("runner.py", "wire.py", "cells.py", "gate.py"):
                shutil.copy(HERE / name, folder / "sandbox")
            _library.write(self.rooms, folder / "library")
            for path in folder.rglob("*"):  # whatever our umask: root's sandboxes are other users
                path.chmod(0o755 if path.is_dir() else 0o644)
            return Session(command(folder, self.limits), folder, self.limits, counted=True)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@cache
def available() -> None:
    """Return if a sandbox works on this machine, which is tried; else raise `NoSandboxError`."""
    if why := why_not():
        told = "" if why == MISSING else f" bubblewrap is there but does not work: {why}."
        raise NoSandboxError(REFUSAL + told)


def why_not() -> str:
    """Empty where a trivial program runs in the sandbox."""
    with tempfile.TemporaryDirectory() as place:
        try:
            start = command(Path(place), Limits(), ["-c", "import numpy"], bare=True)
            done = subprocess.run(
                start, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL
            )
        except LookupError:
            return MISSING
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error) or type(error).__name__
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit status {done.returncode}"


def command(
    folder: Path, limits: Limits, run: list[str] | None = None, *, bare: bool = False
) -> list[str]:
    """The command that starts Python in the sandbox, with the runner as its program.

    Everything has new namespaces; the system and Python are read-only; /tmp is small; there is
    nothing else. Bubblewrap starts with an environment made from nothing, and the student's process
    is the first of its process namespace, so there is no other process whose memory or environment
    it could read. `tests/test_course_sandbox.py` takes each of these away and sees an attack win.
    """
    tool = shutil.which("bwrap")
    if tool is None:
        raise LookupError("bwrap")
    told = [tool, "--unshare-all", "--as-pid-1", "--die-with-parent", "--new-session"]
    told += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--cap-drop", "ALL"]
    for system in SYSTEM:
        told += ["--ro-bind-try", system, system]
    told += ["--proc", "/proc", "--dev", "/dev", "--size", str(limits.disk), "--tmpfs", "/tmp"]
    base = Path(sys.base_prefix).resolve()
    shown = {f"/packages/{name}": path for name, path in packages().items()}
    if not bare:
        shown |= {f"/{name}": folder / name for name in ("sandbox", "library")}
    if not str(base).startswith("/usr"):
        shown = {str(base): base} | shown
    # as root, `as_nobody` lets the user that it becomes reach them here
    sources = {target: f"{STAGE}/{k}" if as_root() else str(shown[target])
               for k, target in enumerate(shown)}  # fmt: skip
    for target, source in sources.items():
        told += ["--ro-bind", source, target]
    for place in hidden(base):
        told += ["--tmpfs", place, "--remount-ro", place]
    python = str(Path(sys.executable).resolve())
    code = run or ["/sandbox/runner.py"]
    if bare:
        code = ["-c", f"import sys; sys.path.insert(0, '/packages'); {(run or [''])[-1]}"]
    # /dev/shm would have no limit, and settings in /proc/sys are open to whoever has rights on them
    told += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"]
    told += ["--chdir", "/tmp", python, "-I", "-S", "-B", *code]
    start = ["env", "-i", *(f"{name}={value}" for name, value in ENVIRONMENT.items())]
    if as_root():
        pairs = [word for target, path in shown.items() for word in (str(path), sources[target])]
        start += as_nobody(pairs)
    return [*start, *told]


def as_root() -> bool:
    """Whether we are root, whose files root in a user namespace would still own."""
    return os.geteuid() == 0


def as_nobody(pairs: list[str]) -> list[str]:
    """What comes before a command of root's so that it runs as a user that owns nothing.

    That user may not be able to reach what is to be shown, such as a Python below /root. So folders
    are first bound to other places (``pairs`` of words: from, to), in a mount namespace that ends
    with the command.
    """
    tools = {name: shutil.which(name) for name in ("unshare", "mount", "setpriv")}
    if missing := [name for name, path in tools.items() if path is None]:
        raise OSError(f"{missing[0]} is missing, of the packages util-linux and mount")
    user = FIRST_USER + secrets.randbelow(USERS)
    mounts = [str(tools["unshare"]), "--mount", "--propagation", "private", "/bin/sh", "-c", BIND]
    become = [str(tools["setpriv"]), f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    become += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    return [*mounts, "sh", *pairs, "--", *become]


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
    available()
    user = "an unprivileged user" if os.geteuid() else "an unprivileged user (not root)"
    return f"bubblewrap as {user}, {calls}, {_group.describe()}, Python {version}, {packed}"
