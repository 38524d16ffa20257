"""Build the book: pages run two at a time, results go into a strict build.

    python book/_tools/build.py [--quick | --serve] [--course] [--no-live]

A page runs again when its cells change or what it imports (``sources.py`` says what that is); the
checks of a paper likewise. ``--quick`` leaves the checks of the ledger out; ``--serve`` serves the
book before it runs them; ``--course`` builds without solutions; ``--no-live`` leaves Python for
live pages out (``runtime.py``). ``edit.py`` shows one saved page at a time.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
import runtime
from results import (
    BUILD,
    ENVIRONMENT,
    Evidence,
    Pages,
    read_page,
    run_checks,
    run_page,
    runnable,
    to_check,
    toc_pages,
    write,
)
from sources import PAPERS, ROOT, Sources

__all__ = ["ENVIRONMENT", "read_page", "run_page", "runnable"]
WEB = BUILD / "web"
SLOWEST = 10
PART = 12  # checks that one process takes at a time
# where nothing is known yet: what takes longest, first
LONG = ("multihead/heads", "encoder/scaling", "bias/momentum", "bias/decoder", "svm/norms",
        "svm/many", "bias/rate", "encoder/curvature")  # fmt: skip


def main() -> int:
    """Do all of it; every failure has a page and a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--course", action="store_true")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--no-live", action="store_true")
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    if given.course:
        os.environ["ATTNLAB_COURSE"] = "1"
    os.chdir(ROOT)
    start, stages = time.perf_counter(), Stages()
    pages = runnable()
    with stages("files"):
        serve_files()
        if given.no_live:
            say('pages stay without the button "Make this page live": --no-live')
        elif not given.serve:  # a reader need not wait for it
            runtime.bring([WEB], say)
    with stages("pages and checks"):
        good = run_all(pages, checks=not (given.quick or given.serve))
    if not good:
        return 1
    with stages("notebooks"):
        downloads(pages)  # their words have the numbers of the cells
    with stages("site"):
        shutil.rmtree(BUILD / "html", ignore_errors=True)
        done = site("--fresh")
    if done:
        say("the build failed: see the warnings above")
        return 1
    with stages("archive"):
        finish()
    say(f"built {BUILD.name}/html in {time.perf_counter() - start:.0f} s ({stages})")
    return serve_and_check(live=not given.no_live) if given.serve else 0


def site(*how: str) -> int:
    """Let Sphinx make the site, strictly, on all cores."""
    tool = ROOT / "book" / "_tools" / "sphinx_site.py"
    places = [str(BUILD / "html"), str(BUILD / ".doctrees")]
    jobs = ["--jobs", str(os.cpu_count() or 1)]
    command = [sys.executable, str(tool), *places, *jobs, *how]
    return subprocess.run(command, check=False).returncode


def serve_and_check(live: bool = True) -> int:
    """Readers need not wait for Python of live pages, nor for the ledger's checks.

    Pages offer to become live when it is there; pages that show evidence are made anew.
    """
    from serve import serve

    server = serve(8000)
    say(f"the book is at http://localhost:{server.server_port}/ (stop with Ctrl-C)")
    try:
        if live and runtime.bring([WEB, BUILD / "html"], say):
            finish()  # the archive has it too
        if to_check(Evidence(Sources())):
            say("the ledger's checks run now; its pages show what they find when they are done")
            run_all([], checks=True)
            tell(Pages(Sources()), Evidence(Sources()), runnable())
            shutil.copy(BUILD / "buildinfo", BUILD / "html" / ".buildinfo")
            pages = [page for page in toc_pages() if shows_evidence(page)]
            for page in pages:  # what has no doctree is read again: its text is as it was
                (BUILD / ".doctrees" / f"{page}.doctree").unlink(missing_ok=True)
            if site(*(str(ROOT / f"{page}.md") for page in pages)):
                say("the ledger's pages could not be made anew: see the warnings above")
            else:
                finish()
                say("the ledger shows its evidence: read its pages again")
        threading.Event().wait()
    except KeyboardInterrupt:
        print()
    return 0


def shows_evidence(page: str) -> bool:
    """Whether a page has a table over what the checks found."""
    text = (ROOT / f"{page}.md").read_text("utf-8")
    return any(f"{{{name}}}" in text for name in ("ledger", "api"))


class Stages:
    """How long each part took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time what is inside."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.seconds.items())


def say(words: str) -> None:
    """Progress, at once."""
    print(f"book: {words}", flush=True)


# -- what is served as it is -------------------------------------------------------------------
def serve_files() -> None:
    """MathJax, explorables, the page for lost readers, the library's wheel."""
    import importlib.metadata

    shutil.rmtree(WEB, ignore_errors=True)
    package = importlib.metadata.distribution("sphinx-mathjax-offline")
    mathjax = Path(str(package.locate_file("sphinx-mathjax-offline"))) / "static" / "mathjax"
    target = WEB / "vendor" / "mathjax"
    target.mkdir(parents=True)
    shutil.copy(mathjax / "tex-mml-chtml.js", target)
    fonts = Path("output") / "chtml" / "fonts"
    shutil.copytree(mathjax / fonts, target / fonts)
    html = Path("input") / "tex" / "extensions" / "html.js"  # what \class needs
    (target / html).parent.mkdir(parents=True)
    shutil.copy(mathjax / html, target / html)
    widgets, place = ROOT / "book" / "attnbook" / "widgets", WEB / "explorables"
    shutil.copytree(
        widgets / "kit", place / "kit", ignore=shutil.ignore_patterns("host.js", "*.md")
    )
    shutil.copy(widgets / "kit" / "host.js", place)
    for module in widgets.glob("*.js"):
        shutil.copy(module, place)
    shutil.copytree(widgets / "derivations", place / "derivations")
    shutil.copy(ROOT / "book" / "_web" / "book.css", place)
    shutil.copy(ROOT / "book" / "_web" / "404.html", WEB)
    shutil.copy(ROOT / "book" / "_web" / "offline.txt", WEB / "READ-ME-FIRST.txt")
    (WEB / ".nojekyll").touch()
    runtime.host(WEB)
    wheels = WEB / "downloads"
    wheels.mkdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"book: the wheel could not be built\n{done.stdout}{done.stderr}")


def downloads(pages: list[str]) -> None:
    """Each page with code as a clean notebook."""
    from notebooks import clean

    executed = functools.lru_cache(maxsize=4)(Pages(Sources()).executed)
    for page in pages:
        target = WEB / "downloads" / f"{page.removeprefix('book/')}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(clean(page, executed), encoding="utf-8")


# -- what runs ---------------------------------------------------------------------------------
def run_all(pages: list[str], checks: bool) -> bool:
    """Run what is not today's: pages, and the ledger's checks beside them, two at a time."""
    sources = Sources()
    store, ledger = Pages(sources), Evidence(sources)
    fresh = [page for page in pages if not store.current(page)]
    wanted = to_check(ledger) if checks else {}
    keys = {name: store.key(name) for name in fresh} | {name: ledger.key(name) for name in wanted}
    say(f"{len(fresh)} of {len(pages)} pages to run, {sum(map(len, wanted.values()))} checks")
    parts = [(paper, names[k : k + PART]) for paper, names in wanted.items()
             for k in range(0, len(names), PART)]  # fmt: skip
    good, found = True, {paper: {} for paper in wanted}
    cores = max(2, os.cpu_count() or 1)
    with (
        forked.ready() as kernels,
        ProcessPoolExecutor(cores, initializer=forked.use, initargs=(kernels,)) as pool,
    ):
        # the longest pages first, so that no core waits at the end
        guess = {f"book/{page}": 9.0 for page in LONG}
        fresh.sort(key=lambda page: -store.record(page).get("seconds", guess.get(page, 3.0)))
        work: dict[Future[Any], str] = {pool.submit(run_page, page): page for page in fresh}
        checked = {pool.submit(run_checks, names): paper for paper, names in parts}
        for count, future in enumerate(as_completed(work | checked), 1):
            if future in checked:
                found[checked[future]] |= future.result()
                continue
            page, notebook, seconds, error = future.result()
            if error:
                say(f"{page}.md: a cell fails\n{error}")
                good = False
                continue
            store.keep(page, keys[page], notebook, seconds)
            say(f"[{count}/{len(work) + len(checked)}] {page} in {seconds:.1f} s")
    for paper, claims in found.items():
        wrong = [name for name, entry in claims.items() if not entry["agrees"]]
        for name in wrong:
            say(f"{name}: {claims[name]['evidence']}")
        if not wrong:
            ledger.keep(paper, keys[paper], claims)
        good &= not wrong
    if pages:
        tell(store, ledger, pages)
    slowest(fresh, store, found)
    return good


def tell(store: Pages, ledger: Evidence, pages: list[str]) -> None:
    """What the book says of this build: evidence, times, versions."""
    evidence = {name: entry for paper in PAPERS for name, entry in ledger.of(paper).items()}
    write(BUILD / "evidence.json", json.dumps(evidence, indent=1))
    times = {page: {k: v for k, v in store.record(page).items() if k in ("seconds", "cells")}
             for page in pages if store.record(page)}  # fmt: skip
    record = {"pages": times, "versions": versions(), "machine": machine()}
    write(BUILD / "ran.json", json.dumps(record, indent=1))


def slowest(fresh: list[str], store: Pages, found: dict[str, dict[str, Any]]) -> None:
    """The ten that took longest, of the pages and checks that ran."""
    times = {page: store.record(page).get("seconds", 0.0) for page in fresh}
    times |= {name: one["seconds"] for claims in found.values() for name, one in claims.items()}
    longest = sorted(times.items(), key=lambda item: -item[1])[:SLOWEST]
    if longest:
        say("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in longest))


def versions() -> dict[str, str]:
    """Of all that the pages' numbers depend on."""
    from importlib.metadata import version

    names = ("attnlab", "numpy", "scipy", "cvxpy", "matplotlib", "jupyter-book", "anywidget")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def machine() -> str:
    """What kind of machine, without its name."""
    return f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores."


# -- afterwards --------------------------------------------------------------------------------
def finish() -> None:
    """The whole site as one archive, for reading without a network."""
    html = BUILD / "html"
    shutil.copy(html / ".buildinfo", BUILD / "buildinfo")  # edit.py goes on from here
    for junk in (html / ".buildinfo", html / "objects.inv.bak"):
        junk.unlink(missing_ok=True)
    archive = shutil.make_archive(str(BUILD / "attnlab-book"), "zip", html)
    shutil.move(archive, html / "downloads" / "attnlab-book.zip")


if __name__ == "__main__":
    sys.exit(main())
