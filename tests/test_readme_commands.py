"""Every command that README, how-to and CONTRIBUTING tell people to type.

A command is a line of a block of commands, or words in backticks that begin with a program. Each
has a row in one of the tables below, so that a new command cannot be forgotten. Most run as they
are written. What would take minutes runs on a smaller setting, and of a target of the Makefile
its plan is read, except `make read`, which runs.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from addresses import addresses
from archives import build, unpack

from attnbook.install import install_line

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "book/how-to.md", "CONTRIBUTING.md")
BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<kind>\S*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PROGRAM = re.compile(
    r"(make|pip|git|python3?|cd|source|apt-get|pre-commit)\s+\S"
    r"|attnlab +(check|figures?|probe|course)\b"
)
PROGRAMS = Path(sys.executable).parent
REPOSITORY = addresses()["repository"] or "ADDRESS"
CLONE = f"git clone {REPOSITORY} attnlab"
REVIEWS = """\
The film was slow at first, but the second half was so good that we stayed until the very end.
I did not like the music at all, although the actors were as good as they could have been there.
A quiet story about two sisters who meet again after many years, and about what they never said.
The jokes are old, the plot is older, and the only surprise is how long it takes to finish it.
We laughed from the first minute to the last, and then we went back to see it a second time.
"""

# these run as they are written
AS_WRITTEN = (
    "attnlab check svm.theorem-1 bias.lemma-4 --instances 100 --seed 7",
    "attnlab course new fall27 --seed 2027 --sets 1,3 --out fall27",
    "attnlab figure svm.5 --out out",
    "attnlab figures",
    "cd attnlab",
    CLONE,
    "source .venv/bin/activate",
    *(install_line(extra) for extra in ("figures", "real", "real-train")),
    install_line("book", "wheel"),
)
# these run on a smaller setting
SMALLER = {
    "attnlab check": "attnlab check --list",
    "attnlab check --slack": "attnlab check svm.theorem-1 --instances 3 --slack",
    "attnlab figure bias.10": "attnlab figure bias.2 --set trials=1 --set steps=50",  # no download
    "attnlab figure svm.5 --preset paper --workers 2 --set d=4,8 --seed 3": (
        "attnlab figure svm.5 --preset paper --workers 2 --set d=4,8 --seed 3 --set trials=2"
    ),
    "attnlab probe": "attnlab probe --help",
    "attnlab probe minilm --layer 1 --head 8 --text reviews.txt": (
        "attnlab probe random --layer 1 --head 1 --text reviews.txt"  # two heads; no download
    ),
    "pre-commit install": "ruff check --force-exclude hatch_build.py",  # what its hook calls
    "python -m attnbook.course._verify 4 --seeds 5": "python -m attnbook.course._verify --help",
    "python book/_tools/addresses.py --write": "python book/_tools/addresses.py",
    "python book/_tools/build.py --course": "python book/_tools/build.py --help",
    "python book/_tools/look.py TokenBoard": "python book/_tools/look.py --help",
    "python book/_tools/look.py svm/margin": "python book/_tools/look.py --help",
}
# of these, what make would do: words that its plan must have
PLANS = {
    "make bench": ("pip install", "-m benchmarks"),
    "make book": ("book/_tools/build.py",),
    "make clean": ("rm -rf",),
    "make edit": ("book/_tools/edit.py",),
    "make env": (),
    "make lab": ("open_lab.py",),
    "make lint-all": ("ruff check", ".ci/types"),
    "make programs": (".ci/programs",),
    "make lint": ("ruff check", "ruff format", "mypy"),
    "make lock": ("uv pip compile", "dev.lock", "book.lock"),
    "make read": ("book/_tools/",),  # and test_make_read_serves_the_book
    "make real": ("attnbook figure real",),
    "make test": ("ruff", "mypy", ".ci/programs", "build.py", "hatchling build", '-m "not long"'),
    "make test-all": (".ci/programs all", "hatchling build", "build.py", "-m long"),
    "make test-kernels": (".ci/kernels", ".ci/kernels --pages"),
}
# these need root; the packages that `.ci/programs` installs are among them
PACKAGES = (
    "apt-get install chromium-headless-shell bubblewrap libatomic1",
    "apt-get install python3 python3-venv git make ca-certificates",
)


def commands(text: str) -> set[str]:
    """What a document tells people to type, without comments."""
    found = set()
    for block in BLOCK.finditer(text):
        for line in block["text"].splitlines():
            command = re.sub(r"\s+#.*", "", line).strip()
            if command and (block["kind"] == "bash" or PROGRAM.match(command)):
                found.add(command)
    prose = BLOCK.sub("", text)
    return found | {words for words in INLINE.findall(prose) if PROGRAM.match(words)}


def test_commands_are_found_in_blocks_and_in_prose() -> None:
    text = "\n".join([
        "Say `make book` or `W`; `attnlab.svm` and `make` are no commands.", "```bash",
        "frobnicate --all    # of an unknown program", "```", "```", "pip install x", "a drawing",
        "```", "```python", ">>> make = 3", "```",
    ])  # fmt: skip
    assert commands(text) == {"make book", "frobnicate --all", "pip install x"}


def test_every_command_has_a_row_and_every_row_a_command() -> None:
    found = set[str]()
    for name in DOCUMENTS:
        found |= commands((ROOT / name).read_text(encoding="utf-8"))
    assert found == {*AS_WRITTEN, *SMALLER, *PLANS, *PACKAGES}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands expect to find where they are typed."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "reviews.txt").write_text(REVIEWS, encoding="utf-8")
    (folder / "coursework").symlink_to(ROOT / "book" / "coursework")
    (folder / ".venv").symlink_to(PROGRAMS.parent)
    build(ROOT, folder, "wheel")
    repository = folder / "ADDRESS"
    identity = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    shutil.copy(ROOT / "README.md", repository)
    for words in (["add", "."], ["commit", "--quiet", "--no-verify", "--message", "one"]):
        subprocess.run(["git", *identity, *words], cwd=repository, check=True)
    return folder


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command in a shell; pip installs nothing, and the address of git is a folder here."""
    environment = os.environ | {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        "PIP_DRY_RUN": "1", "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": REPOSITORY,
        "GIT_CONFIG_KEY_0": f"url.{folder / 'ADDRESS'}.insteadOf",
    }  # fmt: skip
    place = ROOT if re.match(r"python|ruff|pip install \"\.", command) else folder
    return subprocess.run(
        ["bash", "-euc", command], cwd=place, env=environment, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("command", AS_WRITTEN)
def test_it_runs_as_written(command: str, desk: Path) -> None:
    if command == "cd attnlab" and not (desk / "attnlab").exists():
        assert typed(CLONE, desk).returncode == 0
    elif command == CLONE:
        shutil.rmtree(desk / "attnlab", ignore_errors=True)
    done = typed(command, desk)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not provide the extra" not in done.stderr
    if command == CLONE:
        assert (desk / "attnlab" / "README.md").is_file()
    if command == "attnlab figure svm.5 --out out":
        assert (desk / "out" / "svm.5.svg").is_file()
    if command.startswith("attnlab course new"):
        assert (desk / "fall27" / "release").is_dir()


@pytest.mark.parametrize("command", SMALLER)
def test_it_runs_on_a_smaller_setting(command: str, desk: Path) -> None:
    done = typed(SMALLER[command], desk)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", PLANS)
def test_make_would_do_this(command: str) -> None:
    done = subprocess.run(
        [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [words for words in PLANS[command] if words not in done.stdout] == [], done.stdout


def test_packages_that_make_test_installs_are_named() -> None:
    program = (ROOT / ".ci" / "programs").read_text(encoding="utf-8")
    names = set(re.findall(r'\["([a-z][\w-]*)"\](?: if |$)', program, re.M))
    names -= {"firefox-esr", "firefox"}  # what make test-all needs
    assert {"chromium-headless-shell", "bubblewrap", "libatomic1"} <= names
    assert names <= set(PACKAGES[0].split())


def lines_of(process: subprocess.Popen[str], said: list[str]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        said.extend(lines)


FAILURES = ("Traceback", "not finished", "without the rest")


def wait_for(words: str, said: list[str], process: subprocess.Popen[str], seconds: float) -> str:
    """The first line with these words; fails at the end of the process, an error, or the time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended = process.poll() is not None
        for line in list(said):
            if words in line:
                return line
            assert not any(sign in line for sign in FAILURES), "".join(said)
        assert not ended, f"it ended before it said {words!r}:\n{''.join(said)}"
        time.sleep(0.2)
    raise AssertionError(f"it did not say {words!r}:\n{''.join(said)}")


def test_make_read_serves_the_book(tmp_path: Path) -> None:
    """In the unpacked source archive, without git, until all is done and an interrupt ends it.

    Results of pages and checks are those of the book's last build, where they are current.
    """
    folder = unpack(build(ROOT, tmp_path / "archive", "sdist"), tmp_path)
    (folder / ".venv").symlink_to(PROGRAMS.parent)  # its files are older, so it counts as ready
    for kept in ("cache", "evidence", "results", "runtime"):
        if (ROOT / "_build" / kept).is_dir():
            shutil.copytree(ROOT / "_build" / kept, folder / "_build" / kept)
    without_git = tmp_path / "git"
    without_git.write_text("#!/bin/sh\nexit 127\n")
    without_git.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'book'}",
    }
    said: list[str] = []
    process = subprocess.Popen(
        ["make", "read"], cwd=folder, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        # a shell that starts the tests in its background has them ignore interrupts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    reader = threading.Thread(target=lines_of, args=(process, said), daemon=True)
    reader.start()
    try:
        line = wait_for("http://localhost:", said, process, 600)
        found = re.search(r"http://localhost:\d+/", line)
        assert found, line
        with urllib.request.urlopen(found[0]) as answer:
            assert answer.status == 200
        wait_for("everything is up to date", said, process, 900)
        with urllib.request.urlopen(f"{found[0]}book/teaching.html") as answer:
            assert "The problem sets are not listed here" in answer.read().decode()
        # GNU make that is interrupted itself never exits with 0, so the signal is for its child
        (server,) = psutil.Process(process.pid).children()
        server.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0, "".join(said)
        reader.join(timeout=10)
        assert "Traceback" not in "".join(said)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
