"""`make read`: the book is served until it is interrupted, whatever fails behind it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
INDEX = "# A small book\n\n```{ledger-totals}\n```\n"
PAGE = """---
file_format: mystnb
kernelspec:
  name: python3
  display_name: Python 3
---
# A page

```{code-cell}
print(6 * 7)
```
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with a book of two pages, beside the evidence of the last build."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("attnlab", "book", "requirements", ".ci"):
        skip = shutil.ignore_patterns("__pycache__", "coursework")
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    for name in (
        "_config.yml",
        "hatch_build.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "LICENSE-TEXT",
    ):
        shutil.copy2(ROOT / name, folder)
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n  - file: book/page\n"
    )
    (folder / "book" / "index.md").write_text(INDEX)
    (folder / "book" / "page.md").write_text(PAGE)
    shutil.copytree(ROOT / "_build" / "evidence", folder / "_build" / "evidence")
    return folder


class Command:
    """A command of the project that runs, and the lines that it has printed."""

    def __init__(self, project: Path, *command: str) -> None:
        packages = os.pathsep.join([str(project), str(project / "book")])
        self.environment = {**os.environ, "PYTHONPATH": packages, "ATTNLAB_PYODIDE": "nowhere"}
        self.process = subprocess.Popen(
            command,
            cwd=project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
        self.process.stdout.close()

    def wait_for(self, what: str, seconds: float = 600) -> str:
        """The first line that contains some words."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in list(self.lines):
                if what in line:
                    return line
            assert self.process.poll() is None, "".join(self.lines)
            time.sleep(0.1)
        raise AssertionError(f"{what!r} did not come: {''.join(self.lines)}")

    def end(self, number: signal.Signals) -> int:
        """The exit code after a signal to this process alone."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(60)
        assert not self._reader.is_alive(), "a process that holds its output is left"
        return code


Start = Callable[..., Command]


@pytest.fixture
def start(project: Path) -> Iterator[Start]:
    """Start a tool of the book in the project; its whole session is ended after the test."""
    running: list[Command] = []

    def run(*command: str) -> Command:
        running.append(Command(project, *command))
        return running[-1]

    yield run
    for command in running:
        if command.process.poll() is None:
            command.end(signal.SIGKILL)


def test_book_is_served_until_interrupted(project: Path, start: Start) -> None:
    (project / "_build" / "evidence" / "bias.json").unlink()  # so that some checks run
    read = start(sys.executable, "book/_tools/read.py", "8720")
    address = read.wait_for("http://").split()[5].replace("localhost", "127.0.0.1")
    assert b"A small book" in urllib.request.urlopen(f"{address}book/index.html").read()
    assert "nowhere" in read.wait_for('stay without the button "Make this page live"')
    read.wait_for("the ledger shows what its checks found")
    read.wait_for("the book is served without the rest")
    assert (project / "_build" / "evidence" / "bias.json").is_file()
    page = urllib.request.urlopen(f"{address}book/page.html").read()
    assert b"42" in page
    assert read.end(signal.SIGINT) == 0
    assert read.lines[-1] == "book: stopped\n"
    assert not any("Traceback" in line for line in read.lines)
    assert not (project / "_build" / "unfinished").exists()


def test_error_behind_the_served_book_is_one_sentence(project: Path, start: Start) -> None:
    program = (
        "import sys; sys.path.insert(0, 'book/_tools'); sys.argv = ['read', '8740'];"
        "import read, build;"
        "read.build = lambda **_: True;"
        "read.bring_live_pages = lambda: True;"
        "read.refresh_evidence = lambda: 1 / 0;"
        "sys.exit(read.main())"
    )
    read = start(sys.executable, "-c", program)
    read.wait_for("the ledger: not finished (division by zero). The book is served all the same.")
    read.wait_for("the book is served without the rest")
    assert read.process.poll() is None
    assert read.end(signal.SIGTERM) == 0


def test_killed_build_leaves_no_process(project: Path, start: Start) -> None:
    page = project / "book" / "page.md"
    page.write_text(PAGE.replace("print(6 * 7)", "import time; time.sleep(300)"))
    build = start(sys.executable, "book/_tools/build.py", "--quick", "--no-live")
    build.wait_for("pages to run")
    this, end = psutil.Process(build.process.pid), time.monotonic() + 60
    while not has_kernel(this) and time.monotonic() < end:
        time.sleep(0.1)
    descendants = this.children(recursive=True)
    assert len(descendants) >= 3, "processes of the pool, and a kernel"
    build.end(signal.SIGKILL)
    _, alive = psutil.wait_procs(descendants, timeout=20)
    assert not alive
    assert (project / "_build" / "unfinished").exists()
    page.write_text(PAGE)


def has_kernel(build: psutil.Process) -> bool:
    """Whether a kernel runs the page: it is the child of a child of the build."""
    return any(child.children() for child in build.children())


def test_truncated_bytecode_is_removed_after_an_unfinished_build(project: Path) -> None:
    folder = project / "attnlab" / "__pycache__"
    folder.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(project / "attnlab")], check=True)
    whole, *_ = sorted(folder.glob("checks.*.pyc"))
    cut = whole.with_name(whole.name.replace("checks", "cut"))
    cut.write_bytes(whole.read_bytes()[:-100])
    (project / "_build" / "unfinished").touch()
    tool = [sys.executable, "book/_tools/recovery.py"]
    said = subprocess.run(tool, cwd=project, capture_output=True, text=True, check=True).stdout
    assert "removed 1 of them" in said
    assert whole.exists()
    assert not cut.exists()
    said = subprocess.run(tool, cwd=project, capture_output=True, text=True, check=True).stdout
    assert said == ""


def test_result_store_that_a_full_disk_cut_short_is_begun_anew(tmp_path: Path) -> None:
    from results import Pages
    from sources import Sources
    from sqlalchemy.exc import DatabaseError

    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "global.db").write_bytes(b"cut short" * 1000)
    pages = Pages(Sources(), tmp_path)
    with pytest.raises(DatabaseError):
        pages.executed("book/svm/margin")
    pages.forget_unreadable()
    assert pages.executed("book/svm/margin") is None
