"""The same work in a browser and here: Pyodide in Chromium, with the library of this tree.

    PYTHONPATH=. python -m benchmarks.browser

Both take turns; ratios are of the least processor seconds, where the system tells them (Linux), of
the least seconds elsewhere.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ASKED = 2.0  # times as long as here
TURNS = 4
LEAST = 0.1  # seconds of one measurement: a message to the browser costs a millisecond
BOUND = (
    "What the interpreter and NumPy themselves cost there bounds all of this: NumPy has no BLAS "
    "and vectors of two numbers, not of four or eight. Work that is mostly calls can come near "
    "to 2, work that is mostly products or exp cannot."
)
START = """async () => {
  const { loadPyodide } = await import("/pyodide.mjs");
  self.py = await loadPyodide({ indexURL: "/" });
  await py.loadPackage(["numpy", "scipy"], { messageCallback: () => {} });
  py.unpackArchive(await (await fetch("/attnlab.zip")).arrayBuffer(), "zip");
}"""


class NoBrowserError(RuntimeError):
    """There is no browser, or no Python for it."""


@dataclass(frozen=True)
class Pair:
    """Least seconds of the same work in both places."""

    work: str
    here: float
    there: float

    @property
    def ratio(self) -> float:
        """How many times longer the browser takes."""
        return self.there / self.here


def started() -> float:
    """Seconds of processor of all that this process started; the clock where nobody tells them."""
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            told = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(told[1]), []).append(int(place.name))
    total, todo = 0, parents.get(os.getpid(), [])
    while todo:
        one = todo.pop()
        todo += parents.get(one, [])
        for thread in Path(f"/proc/{one}/task").glob("*/schedstat"):
            try:
                total += int(thread.read_text().split()[0])
            except OSError:
                continue
    return total / 1e9 if total else time.perf_counter()


@contextmanager
def python() -> Iterator[Callable[[str], Any]]:
    """Python in a page of Chromium: what it is given is evaluated there."""
    sys.path.insert(0, str(ROOT / "book" / "_tools"))
    from runtime import NoRuntimeError, fetch, pins
    from serve import Handler

    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise NoBrowserError("Playwright is not installed") from None
    try:
        files = fetch()
    except (NoRuntimeError, OSError) as error:
        raise NoBrowserError(str(error)) from None
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for path in files.iterdir():
            (Path(folder) / path.name).symlink_to(path.resolve())
        lock = {key: pins()["pyodide"][key] for key in ("info", "packages")}
        (Path(folder) / "pyodide-lock.json").write_text(json.dumps(lock))
        with zipfile.ZipFile(Path(folder) / "attnlab.zip", "w") as archive:
            sources = [*(ROOT / "attnlab").rglob("*.py"), *(ROOT / "benchmarks").glob("[_w]*.py")]
            for path in sources:
                archive.write(path, path.relative_to(ROOT))
        handler = functools.partial(Handler, directory=folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/pyodide-lock.json")
            page.evaluate(START)
            yield lambda code: page.evaluate("(code) => py.runPython(code)", code)
            browser.close()
        except Error as error:
            print(error)  # it names places of this machine
            raise NoBrowserError("no Chromium that runs the work") from None
        finally:
            server.shutdown()
            server.server_close()


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """What a call takes."""
    start = clock()
    call()
    return clock() - start


def measure(names: Iterable[str]) -> list[Pair]:
    """Each work here and there, in turns."""
    from benchmarks import work

    found = []
    with python() as there:
        there("from benchmarks import work")
        for name in names:

            def far(times: int, name: str = name) -> float:
                return seconds(lambda: there(f"work.repeat({name!r}, {times})"), started) / times

            def near(times: int, name: str = name) -> float:
                return seconds(lambda: work.repeat(name, times), time.process_time) / times

            best, times = dict.fromkeys((near, far), 0.0), dict.fromkeys((near, far), 1)
            for place in best:
                place(1)  # warms up
                best[place] = place(1)
                while times[place] * best[place] < LEAST:
                    times[place] *= 2
                    best[place] = place(times[place])
            for _ in range(TURNS):
                for place in best:
                    best[place] = min(best[place], place(times[place]))
            found.append(Pair(name, best[near], best[far]))
            print(f"{name}: {found[-1].ratio:.1f}", flush=True)
    return found


def table(found: list[Pair], *, asked: bool) -> str:
    """As Markdown."""
    lines = [f"| work | times as long {'| asked for ' if asked else ''}| here and there |"]
    lines.append("|---|---|---|" + "---|" * asked)
    for each in found:
        unit, scale = ("µs", 1e6) if each.there < 1e-3 else ("ms", 1e3)
        here, there = (f"{float(f'{scale * x:.3g}'):,g}" for x in (each.here, each.there))
        goal = f"| {ASKED:g}{'' if each.ratio <= ASKED else ': missed'} " if asked else ""
        lines.append(f"| {each.work} | **{each.ratio:.1f}** {goal}| {here} and {there} {unit} |")
    return "\n".join(lines)


def section() -> str:
    """What stands in RESULTS.md."""
    from benchmarks import work

    try:
        library, primitives = measure(work.LIBRARY), measure(work.NUMPY)
    except NoBrowserError as error:
        return f"Not measured: {error}"
    return "\n".join(
        [
            table(library, asked=True),
            "",
            BOUND,
            "",
            table(primitives, asked=False),
        ]
    )


def main() -> None:
    """Print both tables."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(section())


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    main()
