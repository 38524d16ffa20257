"""Processes that stand ready: Sphinx with its imports done, and a kernel that has NumPy.

Of attnlab and of the book's extensions nothing is imported before a process is taken, so each sees
what was saved last.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from sources import ROOT

MODULES = (
    "jupyter_book.sphinx", "myst_nb.sphinx_ext", "jupyter_cache", "sphinx.builders.html",
    "sphinx_book_theme", "sphinx_design", "sphinx_exercise", "sphinx_proof", "sphinxcontrib.bibtex",
    "numpy", "anywidget",
)  # fmt: skip
# in a scope of its own: a page must import what it uses
WARM = "exec('import anywidget, matplotlib.pyplot, numpy, scipy.optimize, scipy.sparse', {})"


class Zygote:
    """One process that imported Sphinx and its extensions; it forks for each build."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")  # taken before any thread is started
        self._here, there = context.Pipe()
        self._process = context.Process(target=_wait, args=(there, self._here), daemon=False)
        self._process.start()
        there.close()
        self._imported = False

    def wait_until_ready(self) -> None:
        """Return when its imports are done; until then the first build would wait for them."""
        if not self._imported:
            self._here.recv()
            self._imported = True

    def build(self, html: Path, doctrees: Path, pages: list[str] | None) -> str:
        """Bring pages, or all that changed, up to date; what was said."""
        self.wait_until_ready()
        self._here.send((html, doctrees, pages))
        return str(self._here.recv())

    def close(self) -> None:
        """End it."""
        self._here.close()
        self._process.join(3)
        if self._process.is_alive():
            self._process.terminate()


def _wait(pipe: Any, other: Any) -> None:
    other.close()
    for name in MODULES:
        importlib.import_module(name)
    from sphinx_site import make

    pipe.send("ready")
    context = multiprocessing.get_context("fork")
    while True:
        try:
            html, doctrees, pages = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            child = context.Process(target=_build, args=(log, make, html, doctrees, pages))
            child.start()
            child.join()
            said = log.read_text("utf-8") if log.is_file() else ""
        pipe.send(said + ("" if child.exitcode == 0 else f"\nERROR: exit code {child.exitcode}"))


def _build(log: Path, make: Any, html: Path, doctrees: Path, pages: list[str] | None) -> None:
    target = os.open(log, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(target, stream)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    files = [str(ROOT / f"{page}.md") for page in pages] if pages else []
    code = make(html, doctrees, fresh=False, strict=False, files=files)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Kernels:
    """A kernel that is started, and knows NumPy, before a page asks for one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: Any = None
        self._thread = threading.Thread(target=self._start, daemon=True)
        self._thread.start()

    def _start(self) -> None:
        from jupyter_client.manager import start_new_kernel

        manager, client = start_new_kernel(
            kernel_name="python3", extra_arguments=["--IPKernelApp.log_level=40"]
        )
        client.execute(WARM, silent=True, store_history=False)
        client.stop_channels()
        self._ready = manager

    def wait_until_ready(self) -> None:
        """Return when a kernel stands ready."""
        self._thread.join()

    def take(self) -> Any:
        """The kernel that is ready; another is started for the next page."""
        with self._lock:
            self._thread.join()
            manager, self._ready = self._ready, None
            self._thread = threading.Thread(target=self._start, daemon=True)
            self._thread.start()
            return manager

    def close(self) -> None:
        """End what was not taken."""
        self._thread.join(5)
        if self._ready is not None:
            self._ready.shutdown_kernel(now=True)
