"""Build the book: pages run two at a time, results go into a strict build.

    python book/_tools/build.py [--quick] [--course] [--no-live]

A page runs again when its cells change or what it imports (``sources.py`` says what that is); the
checks of a paper likewise. ``--quick`` leaves the checks of the ledger out; ``--course`` builds
without solutions; ``--no-live`` leaves Python for live pages out (``runtime.py``). ``read.py``
serves the book and finishes it behind the reader; ``edit.py`` shows one saved page at a time.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
import policy
import recovery
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
WEB, HTML = BUILD / "web", BUILD / "html"
DRAFT = BUILD / "html.draft"  # a site is made here, and takes the place of HTML when it is whole
ARCHIVE = Path("downloads") / "attnlab-book.zip"
SLOWEST = 10
PART = 12  # checks that one process takes at a time
# seconds on one core, where nothing has been measured yet: what takes longest runs first
LONG = {f"book/{page}": 9.0 for page in (
    "multihead/heads", "encoder/scaling", "bias/momentum", "bias/decoder", "svm/norms", "svm/many",
    "bias/rate", "encoder/curvature")}  # fmt: skip
USUAL, CHECK, SITE = 2.5, 0.4, 20.0  # a page, a check of the ledger, all of Sphinx


def main() -> int:
    """Build the book; every failure has a page and a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--course", action="store_true")
    parser.add_argument("--no-live", action="store_true")
    given = parser.parse_args()
    if given.course:
        os.environ["ATTNLAB_COURSE"] = "1"
    try:
        with recovery.guard(say):
            return 0 if build(checks=not given.quick, live=not given.no_live) else 1
    except KeyboardInterrupt:
        say("stopped; the next build goes on from here")
        return 130


def build(*, checks: bool, live: bool) -> bool:
    """Run what changed, make the site, put it in place of the last one; False after an error."""
    recovery.end_with_make()
    os.environ.update(ENVIRONMENT)
    os.chdir(ROOT)
    start, stages = time.perf_counter(), Stages()
    pages = runnable()
    with stages("files"):
        serve_files()
        if live:
            runtime.bring([WEB], say)
    with stages("pages and checks"):
        good = run_all(pages, checks=checks)
    if not good:
        return False
    with stages("notebooks"):
        downloads(pages)  # their words have the numbers of the cells
    with stages("site"):
        shutil.rmtree(DRAFT, ignore_errors=True)
        made = make_site("--fresh")
    if not made:
        say("the build failed: see the warnings above")
        return False
    with stages("archive"):
        archive(DRAFT)
        publish()
    say(f"built {BUILD.name}/html in {time.perf_counter() - start:.0f} s ({stages})")
    return True


def make_site(*arguments: str) -> bool:
    """Let Sphinx make the site in ``DRAFT``, strictly, on all cores; each page gets its policy."""
    tool = ROOT / "book" / "_tools" / "sphinx_site.py"
    places = [str(DRAFT), str(BUILD / ".doctrees")]
    jobs = ["--jobs", str(os.cpu_count() or 1)]
    command = [sys.executable, str(tool), *places, *jobs, *arguments]
    good = subprocess.run(command, check=False).returncode == 0
    policy.secure(DRAFT)
    return good


def publish() -> None:
    """Put the finished draft in place of the site; who reads meanwhile finds one or the other."""
    last = BUILD / "html.last"
    shutil.rmtree(last, ignore_errors=True)
    if HTML.exists():
        HTML.rename(last)
    DRAFT.rename(HTML)
    shutil.rmtree(last, ignore_errors=True)


def refresh_evidence() -> bool:
    """Run the ledger's checks that are not of this version; show what they find on its pages.

    Whether every check agrees with its status; an error of the site raises.
    """
    if not to_check(Evidence(Sources())):
        return True
    agree = run_all([], checks=True)
    describe_build(Pages(Sources()), Evidence(Sources()), runnable())
    shutil.rmtree(DRAFT, ignore_errors=True)
    shutil.copytree(HTML, DRAFT)
    pages = [page for page in toc_pages() if shows_evidence(page)]
    for page in pages:  # Sphinx reads again what has no doctree; their text has not changed
        (BUILD / ".doctrees" / f"{page}.doctree").unlink(missing_ok=True)
    if not make_site(*(str(ROOT / f"{page}.md") for page in pages)):
        raise RuntimeError("its pages could not be made anew: see the warnings above")
    archive(DRAFT)
    publish()
    return agree


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
    names = sorted(module.stem for module in widgets.glob("*.js"))
    (place / "names.json").write_text(json.dumps(names), "utf-8")  # what an output may bring
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
    store.forget_unreadable()
    fresh = [page for page in pages if not store.current(page)]
    wanted = to_check(ledger) if checks else {}
    keys = {name: store.key(name) for name in fresh} | {name: ledger.key(name) for name in wanted}
    announce(fresh, pages, wanted, store)
    parts = [(paper, names[k : k + PART]) for paper, names in wanted.items()
             for k in range(0, len(names), PART)]  # fmt: skip
    good, found = True, {paper: {} for paper in wanted}
    cores = max(2, os.cpu_count() or 1)
    with (
        forked.ready() as kernels,
        ProcessPoolExecutor(
            cores, initializer=begin_worker, initargs=(kernels, os.getpid())
        ) as pool,
    ):
        # the longest pages first, so that no core waits at the end
        fresh.sort(key=lambda page: -expected(page, store))
        work: dict[Future[Any], str] = {pool.submit(run_page, page): page for page in fresh}
        checked = {pool.submit(run_checks, names): paper for paper, names in parts}
        try:
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
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what waits is not begun
            raise
    for paper, claims in found.items():
        wrong = [name for name, entry in claims.items() if not entry["agrees"]]
        for name in wrong:
            say(f"{name}: {claims[name]['evidence']}")
        if not wrong:
            ledger.keep(paper, keys[paper], claims)
        good &= not wrong
    if pages:
        describe_build(store, ledger, pages)
    slowest(fresh, store, found)
    return good


def begin_worker(kernels: str, build: int) -> None:
    """Prepare a process of the pool: its kernels are forked, and it ends when the build does."""
    from attnbook.files import end_with_parent

    signal.signal(signal.SIGINT, lambda *_: os._exit(1))  # the build says that it was interrupted
    end_with_parent(build)
    forked.use(kernels)


def expected(page: str, store: Pages) -> float:
    """Seconds that a page is expected to run: as long as last time, where that is known."""
    return float(store.record(page).get("seconds", LONG.get(page, USUAL)))


def announce(
    fresh: list[str], pages: list[str], wanted: dict[str, list[str]], store: Pages
) -> None:
    """Say what will be run, and about how long that and the site take."""
    count = sum(map(len, wanted.values()))
    what = [f"{len(fresh)} of {len(pages)} pages"] * bool(pages) + [f"{count} checks"] * bool(count)
    work = sum(expected(page, store) for page in fresh) + CHECK * count
    seconds = work / min(2, os.cpu_count() or 1) + (SITE if pages else 0)
    say(f"{' and '.join(what)} to run; done in about {duration(seconds)}")


def duration(seconds: float) -> str:
    """Rounded up, as people say it."""
    if seconds < 50:
        return f"{max(10, 10 * math.ceil(seconds / 10))} seconds"
    minutes = math.ceil(seconds / 60)
    return "a minute" if minutes == 1 else f"{minutes} minutes"


def describe_build(store: Pages, ledger: Evidence, pages: list[str]) -> None:
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
def archive(site: Path) -> None:
    """Offer the whole site as one archive, for reading without a network."""
    target = site / ARCHIVE
    draft = target.with_suffix(".part")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(site.rglob("*")):
            inside = path.relative_to(site)
            if path.is_file() and inside != ARCHIVE and path not in (draft, site / ".buildinfo"):
                out.write(path, inside)
    draft.replace(target)


if __name__ == "__main__":
    sys.exit(main())
