"""Each measure of the sandbox: with it an attack fails, and without it the same attack succeeds."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from attnbook import course
from attnbook.course import _sandbox, _session
from attnbook.course._session import Session

pytestmark = pytest.mark.usefixtures("sandbox")
ROOT = os.geteuid() == 0
CANARY = "attnlab-canary-4711"
Measure = Callable[[list[str], Path], list[str]]


# -- measures, each as what takes it away ----------------------------------------------------------
def without(*flags: str, values: int = 0) -> Measure:
    """Take flags, each with so many values, out of bubblewrap's command."""

    def change(command: list[str], _: Path) -> list[str]:
        for flag in flags:
            at = command.index(flag)
            command = command[:at] + command[at + 1 + values :]
        return command

    return change


def all_but(name: str) -> Measure:
    """Share one kind of namespace with the machine."""

    def change(command: list[str], folder: Path) -> list[str]:
        every = ("user", "ipc", "pid", "net", "uts", "cgroup-try")
        at = command.index("--unshare-all")
        words = [f"--unshare-{kind}" for kind in every if kind != name]
        command = [*command[:at], *words, *command[at + 1 :]]
        return command if name != "pid" else without("--as-pid-1")(command, folder)

    return change


def without_filter(command: list[str], folder: Path) -> list[str]:
    (folder / "sandbox" / "gate.py").write_text("def close(): pass\n")
    return command


def without_own_limits(command: list[str], folder: Path) -> list[str]:
    runner = folder / "sandbox" / "runner.py"
    text = runner.read_text()
    assert "        limit()\n" in text
    runner.write_text(text.replace("        limit()\n", ""))
    return command


def not_read_only(place: str) -> Measure:
    def change(command: list[str], _: Path) -> list[str]:
        at = next(
            k for k, word in enumerate(command)
            if word == "--remount-ro" and command[k + 1] == place
        )  # fmt: skip
        return command[:at] + command[at + 2 :]

    return change


def same_user(command: list[str], _: Path) -> list[str]:
    """Root's sandbox stays root's; an ordinary user's is that user's anyway."""
    at = next((k for k, word in enumerate(command) if "setpriv" in word), None)
    return command if at is None else [*command[:at], *command[at + 7 :]]


def writable_library(command: list[str], folder: Path) -> list[str]:
    for path in (folder / "library", *(folder / "library").rglob("*")):
        path.chmod(0o777)
    at = command.index("/library", command.index("--ro-bind"))
    return [*command[: at - 2], "--bind", *command[at - 1 :]]


def folder_shown(command: list[str], folder: Path) -> list[str]:
    """Show a folder of ours: what keeps it out is that nothing binds it."""
    own = folder / "own"
    own.mkdir()
    (own / "marks.csv").write_text(CANARY)
    at, source = command.index("--chdir"), str(own)
    if ROOT:
        before = command.index("--", command.index("-c"))
        command = [*command[:before], source, "/run/own", *command[before:]]
        at, source = at + 2, "/run/own"
    return [*command[: at - 2], "--ro-bind", source, "/teacher", *command[at - 2 :]]


ENVIRONMENT, FIRST = without("-i"), without("--as-pid-1")
PROCESSES = all_but("pid")
NETWORK = all_but("net")
ORPHANS = without("--die-with-parent")
# what a student tries: an expression that is true where it succeeds; the measures that stop it
LIBC = "import ctypes, os, socket, mmap, threading, time\nlibc = ctypes.CDLL(None)\n"
ATTACKS: dict[str, tuple[str, list[Measure]]] = {
    "reads the grader's environment": (
        f"""
def attack():
    found = str(dict(os.environ)).encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += open(f"/proc/{{pid}}/environ", "rb").read()
        except OSError:
            pass
    return {CANARY!r}.encode() in found
""",
        [ENVIRONMENT],
    ),
    "overwrites the memory of the first process": (
        """
def attack():
    if os.getpid() == 1:
        return False
    line = next(l for l in open("/proc/1/maps") if " r-xp " in l)
    with open("/proc/1/mem", "r+b", buffering=0) as memory:
        memory.seek(int(line.split("-")[0], 16))
        code = memory.read(1)
        memory.seek(int(line.split("-")[0], 16))
        return memory.write(code) == 1
""",
        [FIRST, not_read_only("/proc")],
    ),
    "writes to /proc": (
        "def attack():\n    open('/proc/self/comm', 'w')\n    return True",
        [not_read_only("/proc")],
    ),
    "sees other processes": (
        """
def attack():
    return any(pid.isdigit() and int(pid) != os.getpid() for pid in os.listdir("/proc"))
""",
        [PROCESSES],
    ),
    "asks a server on this machine": (
        """
def attack():
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as line:
        return line.recv(100) == b"hello"
""",
        [NETWORK, without_filter],
    ),
    "reads a file of the teacher's": (
        f"def attack():\n    return open('/teacher/marks.csv').read() == {CANARY!r}",
        [folder_shown],
    ),
    "changes the library for its next start": (
        "def attack():\n    open('/library/attnlab/__init__.py', 'a').close()\n    return True",
        [writable_library],
    ),
    "fills 96 MB of disk": (
        """
def attack():
    for k in range(4):
        with open(str(k), "wb") as out:
            out.write(bytes(24 << 20))
    return True
""",
        [without("--size", values=1)],
    ),
    "fills shared memory": (
        "def attack():\n    open('/dev/shm/x', 'w').close()\n    return True",
        [not_read_only("/dev")],
    ),
    "starts a process": (
        """
def attack():
    pid = libc.fork()
    if pid == 0:
        os._exit(0)
    return pid > 0
""",
        [without_filter],
    ),
    "starts a program": (
        "def attack():\n    return os.posix_spawn('/bin/true', ['true'], {}) > 0",
        [without_filter],
    ),
    "becomes another program": (
        """
def attack():
    try:
        os.execv("./nothing", ["nothing"])
    except FileNotFoundError:  # the kernel has looked for it
        return True
""",
        [without_filter],
    ),
    "opens a socket": (
        "def attack():\n    return len(socket.socketpair()) == 2",
        [without_filter],
    ),
    "makes a name space": (
        "def attack():\n    return libc.unshare(0x10000000) == 0",
        [without_filter],
    ),
    "holds memory in a file without a name": (
        "def attack():\n    return os.memfd_create('x') > 0",
        [without_filter],
    ),
    "chooses its processor": (
        "def attack():\n    os.sched_setaffinity(0, os.sched_getaffinity(0))\n    return True",
        [without_filter],
    ),
    "takes more than 3 GB": (
        "def attack():\n    return len(mmap.mmap(-1, (3 << 30) + (1 << 28))) > 0",
        [without_own_limits],
    ),
    "writes a file of 40 MB": (
        """
def attack():
    with open("x", "wb") as out:
        return out.write(bytes(40 << 20)) == 40 << 20
""",
        [without_own_limits],
    ),
    "opens 300 files": (
        "def attack():\n    return len([open('/dev/null') for _ in range(300)]) == 300",
        [without_own_limits],
    ),
    "starts 55 threads": (
        """
def attack():
    end = threading.Event()
    for _ in range(55):
        threading.Thread(target=end.wait, daemon=True).start()
    end.set()
    return True
""",
        [without_own_limits],
    ),
}


@contextmanager
def server() -> Iterator[int]:
    """A port of this machine on which one caller is greeted."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:

        def greet() -> None:
            try:
                with closing(door.accept()[0]) as line:
                    line.sendall(b"hello")
            except OSError:  # nobody called
                return

        thread = threading.Thread(target=greet)
        thread.start()
        yield int(door.getsockname()[1])
        door.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def opened(removed: list[Measure], monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session in a sandbox without these measures."""
    _sandbox.available()
    build = _sandbox.command

    def changed(folder: Path, limits: course.Limits) -> list[str]:
        command = build(folder, limits)
        for measure in removed:
            command = measure(command, folder)
        return command

    with monkeypatch.context() as patch:
        patch.setattr(_sandbox, "command", changed)
        patch.setenv("ATTNLAB_CANARY", CANARY)
        with course.Sandbox().open() as session:
            yield session


def succeeds(name: str, removed: list[Measure], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether an attack succeeds where these measures are taken away."""
    with opened(removed, monkeypatch) as session, server() as port:
        told = session.cell(f"{LIBC}PORT = {port}\n{ATTACKS[name][0]}")
        assert not told.error
        return session.call("attack").answer is True


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not succeeds(name, [], monkeypatch)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_succeeds_without_its_measures(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert succeeds(name, ATTACKS[name][1], monkeypatch)


SEVERAL = [(name, k) for name, (_, many) in ATTACKS.items() if len(many) > 1
           for k in range(len(many))]  # fmt: skip


@pytest.mark.parametrize(("name", "kept"), SEVERAL)
def test_each_of_several_measures_is_enough(
    name: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = ATTACKS[name][1]
    assert not succeeds(name, measures[:kept] + measures[kept + 1 :], monkeypatch)


CORE = """
def attack():
    try:
        open("/proc/sys/kernel/core_pattern", "r+").close()
    except PermissionError:
        return "no rights"
    except OSError:
        return "read-only"
    return "opened"
"""


@pytest.mark.parametrize(
    ("removed", "found"),
    [
        ([], "no rights"),
        ([not_read_only("/proc")], "no rights"),
        # an ordinary user has no rights on it in any case
        ([same_user], "read-only" if ROOT else "no rights"),
        ([not_read_only("/proc"), same_user], "opened" if ROOT else "no rights"),
    ],
)
def test_settings_of_the_kernel_cannot_be_written(
    removed: list[Measure], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes core_pattern can have a program started as root, outside."""
    with opened(removed, monkeypatch) as session:
        session.cell(CORE)
        assert session.call("attack").answer == found


STATUS = """
import ctypes, os
def status():
    told = dict(line.split(":", 1) for line in open("/proc/self/status"))
    wanted = "Uid Gid Groups CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp".split()
    return {name: told[name].split() for name in wanted}
"""


def test_students_code_has_no_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither inside nor, looked at from outside, on this machine."""
    with opened([], monkeypatch) as session:
        session.cell(STATUS)
        inside = session.call("status").answer
        assert session.process is not None
        children = Path(f"/proc/{session.process.pid}/task/{session.process.pid}/children")
        first = children.read_text().split()[0]
        lines = Path(f"/proc/{first}/status").read_text().splitlines()
        outside = dict(line.split(":", 1) for line in lines if ":" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(inside[name][0], 16) == 0, name
    assert inside["NoNewPrivs"] == ["1"]
    assert inside["Seccomp"] == ["2"]
    assert "0" not in outside["Uid"].split()
    assert "0" not in outside["Gid"].split()
    assert outside["Uid"].split()[0] != "0"


def test_nothing_of_ours_is_open_inside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that the grader has open are not handed down."""
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        with opened([], monkeypatch) as session:
            session.cell(
                "import os\ndef seen():\n"
                "    told = [os.readlink(f'/proc/self/fd/{n}') for n in range(20)\n"
                "            if os.path.lexists(f'/proc/self/fd/{n}')]\n"
                "    return sorted({name.split(':')[0] for name in told})"
            )
            assert session.call("seen").answer == ["/dev/null", "pipe"]


def orphan_answers(removed: list[Measure], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a student's process still answers after bubblewrap's own process was killed."""
    with opened(removed, monkeypatch) as session:
        assert not session.reset().error  # it has begun
        assert session.process is not None
        children = Path(f"/proc/{session.process.pid}/task/{session.process.pid}/children")
        (first,) = children.read_text().split()
        session.process.kill()
        session.process.wait()
        assert session.process.stdin is not None
        assert session.process.stdout is not None
        try:
            os.set_blocking(session.process.stdout.fileno(), True)
            question = b'{"do": "reset", "number": "1", "seconds": 9}\n'
            session.process.stdin.write(question)
            session.process.stdin.flush()
            return bool(session.process.stdout.read(1))
        except BrokenPipeError:
            return False
        finally:
            with suppress(ProcessLookupError):
                os.kill(int(first), 9)


def test_students_code_dies_with_the_grader(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not orphan_answers([], monkeypatch)
    assert orphan_answers([ORPHANS], monkeypatch)


def test_other_packages_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside, folders of packages are empty; without the measure they hold what they hold here."""
    places = _sandbox.hidden(Path(_sandbox.sys.base_prefix).resolve())
    ours = {name for place in places for name in os.listdir(place)}

    def shown(command: list[str], _: Path) -> list[str]:
        for place in places:
            at = command.index(place)
            command = command[: at - 1] + command[at + 3 :]
        return command

    look = f"import os\ndef seen(): return [n for p in {places!r} for n in os.listdir(p)]"
    for removed, wanted in (([], set()), ([shown], ours)):
        with opened(removed, monkeypatch) as session:
            session.cell(look)
            assert set(session.call("seen").answer) == wanted


@pytest.mark.parametrize("tool", ["setpriv", "unshare", "mount"])
def test_root_who_cannot_become_another_user_is_refused(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = _sandbox.shutil.which
    monkeypatch.setattr(_sandbox.os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        _sandbox.shutil, "which", lambda name: None if name == tool else which(name) or f"/{name}"
    )
    _sandbox.available.cache_clear()
    try:
        with pytest.raises(course.NoSandboxError, match=f"not work: {tool} is missing, of the"):
            course.Sandbox().open()
    finally:
        _sandbox.available.cache_clear()


def test_two_sandboxes_of_roots_are_two_users() -> None:
    """The kernel counts processes by user: one submission's must not use up another's."""
    users = {word for _ in range(40) for word in _sandbox.as_nobody([]) if "--reuid" in word}
    assert len(users) > 20
    assert not {"--reuid=0", "--reuid=65534"} & users


FILES = """
def attack():
    for k in range(200_000):
        open(str(k), "w").close()
        if k == 60_000:
            return True
"""
DEAF = """
import signal, time
def attack():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    end = time.monotonic() + 4.5
    while time.monotonic() < end:
        pass
    return True
"""


def test_files_are_counted_by_the_grader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty files take no space of the scratch space, so its size does not bound them."""
    limits = course.Limits(files=200, call=100.0)
    with course.Sandbox(limits=limits).open() as session:
        session.cell(FILES)
        assert session.call("attack").error == "made more than 200 files"
    with monkeypatch.context() as patch:
        patch.setattr(Session, "excess", lambda _: "")
        with course.Sandbox(limits=limits).open() as session:
            session.cell(FILES)
            assert session.call("attack").answer is True


@pytest.mark.long
def test_who_ignores_the_alarm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = course.Limits(call=0.5)
    with course.Sandbox(limits=limits).open() as session:
        session.cell(DEAF)
        assert session.call("attack").error == "did not stop when its time was up"
        assert not session.alive
    with monkeypatch.context() as patch:
        patch.setattr(_session, "GRACE", 300.0)
        with course.Sandbox(limits=limits).open() as session:
            session.cell(DEAF)
            assert session.call("attack").answer is True
