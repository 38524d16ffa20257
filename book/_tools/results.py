"""What pages and checks gave, kept with a key over all that it depends on.

A result whose key is not today's is never used: the page runs again.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import isfinite, isinf
from pathlib import Path
from typing import Any

from sources import PAPERS, ROOT, Sources, content

BUILD = ROOT / "_build"
ENVIRONMENT = {
    "ATTNLAB_STATIC": "1",
    "ATTNLAB_BUILD": str(BUILD),
    "ATTNLAB_CACHE": str(BUILD / "cache"),
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "IPYTHONDIR": str(BUILD / "ipython"),
}
CALLS = ROOT / "book" / "_ext" / "attnlab_calls.py"


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


# -- pages -------------------------------------------------------------------------------------
def read_page(page: str) -> Any:
    """A page as the notebook that the build will look up."""
    from myst_nb.core.read import read_myst_markdown_notebook
    from myst_parser.config.main import MdParserConfig

    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    return read_myst_markdown_notebook(text, MdParserConfig(), path=ROOT / f"{page}.md")


def run_page(page: str, kernel: Any = None) -> tuple[str, Any, float, str]:
    """Run the cells of a page in a kernel of its own (or one that stands ready).

    The error's text comes back where one fails.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    for attempt in (1, 2):
        notebook, start = read_page(page), time.perf_counter()
        client = NotebookClient(
            notebook,
            km=kernel,
            timeout=300,
            kernel_name="python3",
            extra_arguments=["--IPKernelApp.log_level=40"],  # it warns readers about its sockets
            record_timing=False,  # time stamps would make two builds differ, and the cache miss
            resources={"metadata": {"path": str(ROOT / Path(page).parent)}},
        )
        try:
            client.execute()
            break
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            return page, None, 0.0, str(error)
        except RuntimeError as error:  # it did not start: its port was free, and then another's
            if attempt == 2 or kernel is not None:
                return page, None, 0.0, str(error)
        finally:
            if kernel is not None:
                kernel.shutdown_kernel(now=True)
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


class Pages:
    """The results of pages, and the store where the site's build looks them up."""

    def __init__(self, sources: Sources, folder: Path = BUILD) -> None:
        self.sources, self.folder = sources, folder

    def key(self, page: str) -> str:
        """Of the cells, of the files they depend on, of what runs them."""
        notebook = read_page(page)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        cells = [cell.source for cell in code]
        told = [json.dumps([cell.source, cell.metadata], sort_keys=True) for cell in code]
        kernel = json.dumps(notebook.metadata.get("kernelspec", {}), sort_keys=True)
        runner = content(Path(__file__)).hex()
        return self.sources.digest(self.sources.of_page(cells), page, kernel, runner, *told)

    def _place(self, page: str) -> Path:
        return self.folder / "results" / f"{page}.json"

    def record(self, page: str) -> dict[str, Any]:
        """What is kept of a page: key, seconds, cells and when it ran; empty where nothing is."""
        place = self._place(page)
        return dict(json.loads(place.read_text("utf-8"))) if place.is_file() else {}

    def current(self, page: str) -> bool:
        """Whether what is kept is the result of these cells with this library."""
        if self.record(page).get("key") != self.key(page):
            return False
        try:
            self._kept(page)
        except Exception:  # it is not there, or a full disk cut it short: the page runs again
            return False
        return True

    def _kept(self, page: str) -> Any:
        """The notebook that is kept of a page, with its outputs; KeyError where there is none."""
        with self._store() as store:
            record = store.match_cache_notebook(read_page(page))
            return store.get_cache_bundle(record.pk).nb

    def keep(self, page: str, key: str, notebook: Any, seconds: float) -> None:
        """Put a result where the site's build finds it; ``key`` is from before the run."""
        from jupyter_cache.base import CacheBundleIn

        self._place(page).unlink(missing_ok=True)
        bundle = CacheBundleIn(notebook, page, data={"execution_seconds": seconds})
        with self._store() as store:
            store.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        cells = sum(cell.cell_type == "code" for cell in notebook.cells)
        told = {"key": key, "seconds": round(seconds, 2), "cells": cells}
        write(self._place(page), json.dumps(told))

    def forget_unreadable(self) -> None:
        """Begin a new store where a full disk has left one that cannot be read."""
        try:
            with self._store() as store:
                store.list_cache_records()
        except Exception:
            shutil.rmtree(self.folder / "cache")

    def executed(self, page: str) -> Any:
        """The page as a notebook with what its cells gave; None where nothing is kept."""
        try:
            return self._kept(page)
        except KeyError:
            return None

    @contextmanager
    def _store(self) -> Iterator[Any]:
        """The cache that the site's build reads; its database is closed on leaving."""
        from jupyter_cache import get_cache

        store = get_cache(self.folder / "cache")
        try:
            yield store
        finally:
            store.db.dispose()


# -- checks ------------------------------------------------------------------------------------
class Evidence:
    """What the checks of each paper found with seed 0, and the public names that they ran."""

    def __init__(self, sources: Sources, folder: Path = BUILD) -> None:
        self.sources, self.folder = sources, folder

    def key(self, paper: str) -> str:
        """Of all files that the checks of a paper depend on, and of what watches them."""
        runner = [content(path).hex() for path in (CALLS, Path(__file__))]
        return self.sources.digest(self.sources.of_claims(paper), paper, *runner)

    def of(self, paper: str) -> dict[str, Any]:
        """What is kept of a paper, where it is today's; else nothing."""
        place = self.folder / "evidence" / f"{paper}.json"
        found = json.loads(place.read_text("utf-8")) if place.is_file() else {}
        return dict(found["claims"]) if found.get("key") == self.key(paper) else {}

    def keep(self, paper: str, key: str, claims: dict[str, Any]) -> None:
        """``key`` is from before the run."""
        place = self.folder / "evidence" / f"{paper}.json"
        write(place, json.dumps({"key": key, "claims": claims}, indent=1))


def run_checks(names: list[str]) -> dict[str, Any]:
    """Some of the ledger's checks, and what they call; their evidence stands in the book."""
    sys.path.insert(0, str(CALLS.parent))
    from attnlab_calls import watched

    return {
        name: told | called for name in names for told, called in [watched(partial(_check, name))]
    }


def _check(name: str) -> dict[str, Any]:
    """One check; one that raises does not agree, and hides no other."""
    from attnbook import claims

    start = time.perf_counter()
    try:
        found = claims.get(name).check(rng=0)
    except Exception as error:
        told = {"agrees": False, "evidence": f"DISAGREES: {type(error).__name__}: {error}"}
        return told | {"finite": False, "seconds": 0.0}
    return {
        "agrees": bool(found.agrees),
        "evidence": found.summary,
        "finite": bool(isfinite(found.measured) or isinf(found.bound)),
        "slack": [row.told() for row in found.slack],
        "seconds": round(time.perf_counter() - start, 3),
    }


def to_check(evidence: Evidence) -> dict[str, list[str]]:
    """Claims by paper whose evidence is not today's."""
    from attnbook import claims

    return {
        paper: [claim.id for claim in claims.all(paper=paper) if claim.has_check]
        for paper in PAPERS
        if not evidence.of(paper)
    }


def write(place: Path, text: str) -> None:
    """Whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    draft.write_text(text, "utf-8")
    draft.replace(place)
