"""`make edit`: a saved page, script or module is in the browser, and so is what fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = "book/svm/margin"


class Book:
    """A copy of the book that is being edited, and what a browser would see of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tool = folder / "book" / "_tools" / "edit.py"
        packages = os.pathsep.join([str(folder), str(folder / "book")])
        self.process = subprocess.Popen(
            [sys.executable, str(tool), "8700"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": packages},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.said: list[str] = []
        for line in self.process.stdout:
            self.said.append(line)
            if "http://" in line:
                break
        self.address = next(word for word in "".join(self.said).split() if "http://" in word)
        self.address = self.address.replace("localhost", "127.0.0.1").rstrip("/")
        self._reader = threading.Thread(target=self._drain)
        self._reader.start()

    def _drain(self) -> None:
        assert self.process.stdout is not None
        self.said += list(self.process.stdout)

    def close(self) -> None:
        assert self.process.stdout is not None
        self.process.terminate()
        self.process.wait(20)
        self._reader.join(20)
        self.process.stdout.close()

    def text(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.address}/{path}") as found:
            return str(found.read().decode())

    def until(self, what: str, wanted: Any) -> float:
        """Seconds until the browser is told something; fails after a minute."""
        start = time.perf_counter()
        with urllib.request.urlopen(f"{self.address}/-/events?page=/{PAGE}.html") as events:
            while time.perf_counter() - start < 120:
                line = events.readline().decode()
                if line.startswith("data: ") and wanted(json.loads(line[6:])):
                    return time.perf_counter() - start
        raise AssertionError(f"{what}: {''.join(self.said)}")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    """A book of two pages; links to the others lead nowhere, and are told so."""
    folder = tmp_path_factory.mktemp("book")
    skip = shutil.ignore_patterns("__pycache__")
    for name in ("attnlab", "book", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    config = ("_config.yml", "pyproject.toml", "hatch_build.py")
    for name in (*config, "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copy2(ROOT / name, folder)
    (folder / "_toc.yml").write_text(
        f"format: jb-book\nroot: book/index\nchapters:\n  - file: {PAGE}\n"
    )
    found = Book(folder)
    yield found
    found.close()


def reload(told: dict[str, Any]) -> bool:
    return bool(told.get("reload"))


def test_what_is_saved_is_shown(book: Book) -> None:
    """Prose, a script, a cell that fails and is mended; the site on disk has no script of ours."""
    page = book.folder / f"{PAGE}.md"
    words = page.read_text("utf-8")

    def save(text: str, what: str, wanted: Any) -> float:
        timer = threading.Timer(0.5, page.write_text, [text, "utf-8"])
        timer.start()
        return book.until(what, wanted) - 0.5

    took = {"prose": save(words + "\n\nHello from the editor.\n", "prose", reload)}
    assert "Hello from the editor." in book.text(f"{PAGE}.html")
    assert "data-live" in book.text(f"{PAGE}.html")
    assert "data-live" not in (book.folder / "_build/edit/html" / f"{PAGE}.html").read_text("utf-8")

    cell = "\n\n```{code-cell}\nprint(6 * 7)\n1 / 0\n```\n"
    took["failing cell"] = save(
        words + cell, "a failing cell",
        lambda told: any("ZeroDivisionError" in text for text in told.get("problems", ())),
    )  # fmt: skip
    took["cell"] = save(words + cell.replace("1 / 0\n", ""), "a cell", reload)
    assert "42" in book.text(f"{PAGE}.html")
    took["reference"] = save(
        words + "\n{ref}`nowhere-at-all`\n", "a reference that leads nowhere",
        lambda told: any("nowhere-at-all" in text for text in told.get("problems", ())),
    )  # fmt: skip

    script = book.folder / "book" / "attnbook" / "widgets" / "token_board.js"
    changed = script.read_text("utf-8") + "// saved\n"
    threading.Timer(0.5, script.write_text, [changed, "utf-8"]).start()
    took["script"] = book.until("a script", reload) - 0.5
    assert book.text("explorables/token_board.js").endswith("// saved\n")
    print("seconds to show what was saved:", {name: round(x, 1) for name, x in took.items()})
