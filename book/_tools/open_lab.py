"""The book's pages as notebooks in JupyterLab: ``make lab``.

    python book/_tools/open_lab.py [--folder FOLDER] [options of JupyterLab]

Each page with code becomes a notebook in ``lab/``, and JupyterLab shows that folder and nothing
else. What a reader changed there is kept: a page that has changed since is written beside it.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from results import BUILD, ENVIRONMENT, Pages, runnable, write
from sources import ROOT, Sources

WRITTEN = ".pages.json"  # what was written last, by file; JupyterLab does not show it
SETTINGS = ".jupyter"  # of JupyterLab, beside the reader's own
# what would stand in the way: a question about news, and kinds of files that are not notebooks
DISABLED = ("@jupyterlab/apputils-extension:announcements", "jupyterlab-jupytext")
SECONDS = 4.0  # that a page takes on one core of an ordinary machine, on average


def main() -> NoReturn:
    """Write the notebooks, then become JupyterLab."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "lab")
    given, options = parser.parse_known_args()
    folder = given.folder.resolve()
    environment = dict(os.environ)  # JupyterLab's: its cells are not those of the static site
    os.environ.update(ENVIRONMENT)
    os.chdir(ROOT)
    changed = renew(folder, notebooks_of(runnable()))
    for place in changed:
        say(f"a page that you changed has a new version, beside yours: {place}")
    say(f"JupyterLab shows {folder} in the browser (stop with Ctrl-C)")
    command = [
        *(sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", "--allow-root"),
        *("--LabApp.default_url=/lab/tree/index.ipynb", "--ServerApp.log_level=ERROR"),
        f"--LabApp.workspaces_dir={folder / SETTINGS / 'workspaces'}",  # open tabs
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",  # it asks no other host
        *options,
    ]
    settings = {"disabledExtensions": dict.fromkeys(DISABLED, True)}
    write(folder / SETTINGS / "labconfig" / "page_config.json", json.dumps(settings))
    paths = (str(folder / SETTINGS), environment.get("JUPYTER_CONFIG_PATH"))
    environment["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    os.execve(sys.executable, command, environment)


def say(words: str) -> None:
    """Progress, at once."""
    print(f"lab: {words}", flush=True)


def notebooks_of(pages: list[str]) -> dict[str, str]:
    """The notebook of each page by its file's name; pages run first that have not run yet."""
    from build import run_all
    from notebooks import clean

    store = Pages(Sources())
    stale = [page for page in pages if not store.current(page)]
    if stale:
        minutes = max(1, round(len(stale) * SECONDS / (os.cpu_count() or 1) / 60))
        say(f"running {len(stale)} pages, whose sentences quote results: about {minutes} min")
        BUILD.mkdir(exist_ok=True)
        run_all(pages, checks=False)
    executed = functools.lru_cache(maxsize=4)(store.executed)
    texts = {}
    for page in pages:
        if executed(page) is None:
            say(f"{page}.md has a cell that fails: its notebook stays as it is")
        else:
            texts[f"{page.removeprefix('book/')}.ipynb"] = clean(page, executed, first="")
    return texts


def renew(folder: Path, notebooks: dict[str, str]) -> list[Path]:
    """Write notebooks, but over nothing that somebody changed.

    Args:
        folder: where they go.
        notebooks: the text of each by its place in the folder.

    Returns:
        The files that were written beside a changed one.
    """
    record = folder / WRITTEN
    written = json.loads(record.read_text("utf-8")) if record.is_file() else {}
    beside = []
    for name, text in notebooks.items():
        today = fingerprint(text)
        for place in copies(folder / name):
            key = place.relative_to(folder).as_posix()
            now = fingerprint(place.read_text("utf-8", "replace")) if place.is_file() else None
            if now is None or now in (today, written.get(key)):  # nobody changed it
                if now != today:
                    write(place, text)
                    beside += [place] if place != folder / name else []
                written[key] = today
                break
            if written.get(key) == today:  # somebody did, and the page is still the same
                break
    write(record, json.dumps(written, indent=1))
    return beside


def copies(place: Path) -> Iterator[Path]:
    """``margin.ipynb``, ``margin (2).ipynb``, ``margin (3).ipynb``, and so on."""
    yield place
    for number in itertools.count(2):
        yield place.with_stem(f"{place.stem} ({number})")


def fingerprint(text: str) -> str:
    """Of the cells of a notebook as somebody types them; outputs do not count."""
    import nbformat

    try:
        cells = [[cell.cell_type, cell.source] for cell in nbformat.reads(text, 4).cells]
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError, KeyError):
        cells = [["", text]]  # no notebook (any more): somebody's file
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


if __name__ == "__main__":
    main()
