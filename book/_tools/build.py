"""Build the book: pages run two at a time, results go into a strict build.

    python book/_tools/build.py [--quick] [--course]

``--quick`` leaves the checks of the ledger out; ``--course`` builds without solutions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "_build"
WEB = BUILD / "web"
ENVIRONMENT = {
    "ATTNLAB_STATIC": "1",
    "ATTNLAB_BUILD": str(BUILD),
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "IPYTHONDIR": str(BUILD / "ipython"),
}


def main() -> int:
    """Do all of it; every failure has a page and a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--course", action="store_true")
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    if given.course:
        os.environ["ATTNLAB_COURSE"] = "1"
    os.chdir(ROOT)
    start = time.perf_counter()
    pages = runnable()
    cache = BUILD / f"cache-{source_digest()[:16]}"
    for old in BUILD.glob("cache-*"):
        if old != cache:
            shutil.rmtree(old)
    os.environ["ATTNLAB_CACHE"] = str(cache)
    serve_files()
    downloads(pages)
    if not run_pages(pages, cache, checks=not given.quick):
        return 1
    say(f"building the site ({time.perf_counter() - start:.0f} s so far)")
    shutil.rmtree(BUILD / "html", ignore_errors=True)
    command = ["jupyter-book", "build", ".", "-W", "-n", "--keep-going", "--all", "-q"]
    tool = str(Path(sys.executable).with_name(command[0]))
    done = subprocess.run([tool, *command[1:]], check=False)
    if done.returncode:
        say("the build failed: see the warnings above")
        return 1
    finish()
    say(f"built {BUILD.name}/html in {time.perf_counter() - start:.0f} s")
    return 0


def say(words: str) -> None:
    """Progress, at once."""
    print(f"book: {words}", flush=True)


def source_digest() -> str:
    """Of all that a page's result depends on besides its own cells."""
    digest = hashlib.sha256(sys.version.encode())
    homes = (ROOT / "attnlab", ROOT / "book" / "attnbook")
    files = [
        *(p for home in homes for p in sorted(home.rglob("*.*"))),
        ROOT / "requirements" / "dev.lock",
    ]
    for path in files:
        if path.suffix in (".py", ".js", ".css", ".json", ".lock", ".npz", ".toml"):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def toc_pages() -> list[str]:
    """Every page of the table of contents, without suffix."""
    import yaml

    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    found: list[str] = []

    def walk(entry: Any) -> None:
        if isinstance(entry, dict):
            found.extend(entry[key] for key in ("root", "file") if key in entry)
            for value in entry.values():
                walk(value)
        elif isinstance(entry, list):
            for value in entry:
                walk(value)

    walk(toc)
    return found


def runnable() -> list[str]:
    """Pages with code."""
    return [page for page in toc_pages() if "{code-cell}" in (ROOT / f"{page}.md").read_text()]


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
    widgets, place = ROOT / "book" / "attnbook" / "widgets", WEB / "explorables"
    shutil.copytree(widgets / "kit", place / "kit", ignore=shutil.ignore_patterns("host.js"))
    shutil.copy(widgets / "kit" / "host.js", place)
    for module in widgets.glob("*.js"):
        shutil.copy(module, place)
    shutil.copy(ROOT / "book" / "_web" / "book.css", place)
    shutil.copy(ROOT / "book" / "_web" / "404.html", WEB)
    shutil.copy(ROOT / "book" / "_web" / "offline.txt", WEB / "READ-ME-FIRST.txt")
    (WEB / ".nojekyll").touch()
    wheels = WEB / "downloads"
    wheels.mkdir()
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels)]
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"book: the wheel could not be built\n{done.stdout}{done.stderr}")


def downloads(pages: list[str]) -> None:
    """Each page with code as a clean notebook."""
    sys.path.insert(0, str(ROOT / "book" / "_tools"))
    from notebooks import clean

    for page in pages:
        target = WEB / "downloads" / f"{page.removeprefix('book/')}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(clean(ROOT / f"{page}.md"), encoding="utf-8")


# -- what runs ---------------------------------------------------------------------------------
def read_page(page: str) -> Any:
    """A page as the notebook that the build will look up."""
    from myst_nb.core.read import read_myst_markdown_notebook
    from myst_parser.config.main import MdParserConfig

    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    return read_myst_markdown_notebook(text, MdParserConfig(), path=ROOT / f"{page}.md")


def run_page(page: str) -> tuple[str, Any, float, str]:
    """Run the cells of a page in a kernel of its own; the error's text where one fails."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook, start = read_page(page), time.perf_counter()
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40"],  # it warns each reader about its sockets
        record_timing=False,  # time stamps would make two builds differ, and the cache miss
        resources={"metadata": {"path": str(ROOT / Path(page).parent)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        return page, None, 0.0, str(error)
    notebook.metadata.pop("widgets", None)  # explorables carry their state themselves
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    return page, notebook, time.perf_counter() - start, ""


def joined(outputs: list[Any]) -> list[Any]:
    """What was printed in one go as one output: where a kernel cuts it is chance."""
    found: list[Any] = []
    for output in outputs:
        last = found[-1] if found else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            found.append(output)
    return found


def run_checks(part: list[str]) -> dict[str, Any]:
    """Some of the ledger's checks, and what they call; their evidence stands in the book."""
    sys.path.insert(0, str(ROOT / "book" / "_ext"))
    from attnlab_calls import watched

    from attnbook import claims

    found = {}
    for name in part:
        [outcome], called = watched(lambda name=name: list(claims.run([name], 0)))
        found[outcome.id] = {
            "agrees": outcome.agrees,
            "evidence": outcome.evidence,
            "seconds": round(outcome.seconds, 3),
        } | called
    return found


def run_pages(pages: list[str], cache: Path, checks: bool) -> bool:
    """Execute what the cache lacks, and the ledger's checks beside it, two at a time."""
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn

    store = get_cache(cache)
    fresh = [page for page in pages if not cached(store, page)]
    ledger = cache / "evidence.json"
    ran = cache / "ran.json"
    times: dict[str, Any] = json.loads(ran.read_text()) if ran.is_file() else {}
    evidence: dict[str, Any] = json.loads(ledger.read_text()) if ledger.is_file() else {}
    parts: list[list[str]] = []
    if checks and not evidence:
        from attnbook import claims

        names = [claim.id for claim in claims.all()]
        parts = [names[k : k + 12] for k in range(0, len(names), 12)]
    say(f"{len(fresh)} of {len(pages)} pages to run, {sum(map(len, parts))} checks")
    good = True
    with ProcessPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        work = {pool.submit(run_page, page): page for page in fresh}
        work |= {pool.submit(run_checks, part): "" for part in parts}
        for count, future in enumerate(as_completed(work), 1):
            if not work[future]:
                evidence |= future.result()
                continue
            page, notebook, seconds, error = future.result()
            if error:
                say(f"{page}.md: a cell fails\n{error}")
                good = False
                continue
            bundle = CacheBundleIn(notebook, page, data={"execution_seconds": seconds})
            store.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            cells = sum(cell.cell_type == "code" for cell in notebook.cells)
            times[page] = {"seconds": round(seconds, 2), "cells": cells}
            say(f"[{count}/{len(work)}] {page} in {seconds:.1f} s")
    wrong = [name for name, entry in evidence.items() if not entry["agrees"]]
    for name in wrong:
        say(f"{name}: {evidence[name]['evidence']}")
    if parts and not wrong:
        ledger.write_text(json.dumps(evidence, indent=1))
    ran.write_text(json.dumps(times, indent=1))
    (BUILD / "evidence.json").write_text(json.dumps(evidence, indent=1))
    record = {"pages": times, "versions": versions(), "machine": machine()}
    (BUILD / "ran.json").write_text(json.dumps(record, indent=1))
    return good and not wrong


def cached(store: Any, page: str) -> bool:
    """Whether the results of exactly these cells, with exactly this library, are there."""
    try:
        store.match_cache_notebook(read_page(page))
    except KeyError:
        return False
    return True


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
    for junk in (html / ".buildinfo", html / "objects.inv.bak"):
        junk.unlink(missing_ok=True)
    archive = shutil.make_archive(str(BUILD / "attnlab-book"), "zip", html)
    shutil.move(archive, html / "downloads" / "attnlab-book.zip")


if __name__ == "__main__":
    sys.exit(main())
