"""Serve the book while it is written: what is saved is in the browser within seconds.

    python book/_tools/edit.py [port]

A saved page is shown anew; its cells run again only where they, or what they import, changed. A
saved explorable or style is copied. A saved module of the library runs the pages that are open in
a browser, and others when they are visited. What fails is shown on the page. The site in
`_build/html` is not touched: this one is a copy, in `_build/edit`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from pathlib import Path

import live
import recovery
from build import downloads, run_all, serve_files
from results import BUILD, ENVIRONMENT, Pages, run_page, runnable, toc_pages
from sources import HOMES, ROOT, Sources
from zygote import Kernels, Zygote

HERE = BUILD / "edit"
HTML, DOCTREES = HERE / "html", HERE / ".doctrees"
WIDGETS = HOMES["attnbook"] / "widgets"
PAUSE = 0.2  # seconds between two looks at the files
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def watched() -> dict[Path, tuple[int, int]]:
    """Every file that the book is made of, with its time and size."""
    found: dict[Path, tuple[int, int]] = {}
    for home in (ROOT / "attnlab", ROOT / "book", ROOT / "_toc.yml", ROOT / "_config.yml"):
        todo = [home]
        while todo:
            path = todo.pop()
            if path.is_dir():
                skip = path.name.startswith(("__pycache__", "."))
                todo += [] if skip else list(path.iterdir())
            elif not path.name.endswith(("~", ".swp", ".tmp")):
                try:
                    state = path.stat()
                except FileNotFoundError:
                    continue
                found[path] = (state.st_mtime_ns, state.st_size)
    return found


def served(path: Path) -> Path | None:
    """Where a script or a style stands in the site."""
    if path.is_relative_to(WIDGETS) and path.suffix in (".js", ".css"):
        inside = path.relative_to(WIDGETS)
        return Path("explorables") / ("host.js" if path.name == "host.js" else inside)
    if path == ROOT / "book" / "_web" / "book.css":
        return Path("explorables") / "book.css"
    if path.parent == ROOT / "book" / "_web" / "live" and path.name != "here.js":
        return Path("live") / path.name
    return None


class Editor:
    """Looks at files, and brings pages up to date."""

    def __init__(self) -> None:
        self.zygote, self.kernels = Zygote(), Kernels()
        self.sources = Sources()
        self.stale: set[str] = set()  # pages whose results are not today's
        self.told = live.Told(self.visited)
        self.again = threading.Event()

    # -- what happened -------------------------------------------------------------------------
    def saved(self, paths: set[Path]) -> None:
        """Show what these files change."""
        start = time.perf_counter()
        self.told.working(", ".join(sorted(path.name for path in paths)))
        copied = [path for path in paths if served(path) and path.is_file()]
        for path in copied:
            for site in (BUILD / "web", HTML):
                shutil.copy(path, site / str(served(path)))
        if copied:
            self.told.reload()
        rest = paths - set(copied)
        pages = {page for path in rest if (page := page_of(path))}
        code = {path for path in rest if path.suffix != ".md"}
        everything = any(path.suffix in (".yml", ".bib") or path.parent.name == "_ext"
                         for path in code)  # fmt: skip
        if code:
            self.sources = Sources()
            store = Pages(self.sources)
            self.stale = {page for page in runnable() if not store.current(page)}
            pages |= self.stale & self.told.open_pages()
        if everything:
            self.site(None)
        elif pages:
            self.refresh(pages)
        self.told.done()
        say(f"{', '.join(sorted(path.name for path in paths))}: "
            f"{time.perf_counter() - start:.1f} s")  # fmt: skip

    def visited(self, page: str) -> None:
        """A browser opened a page: is it today's?"""
        if page in self.stale:
            self.again.set()

    def refresh(self, pages: set[str]) -> None:
        """Run the cells of pages where that is needed, then make the pages."""
        good = {page for page in pages if self.run(page)}
        if good:
            self.site(sorted(good))

    def run(self, page: str) -> bool:
        """Whether the page's results are today's now."""
        if page not in runnable():
            return True
        store = Pages(self.sources)
        try:
            if store.current(page):
                self.told.mend(page, "cells")
                self.stale.discard(page)
                return True
            key = store.key(page)
            _, notebook, seconds, error = run_page(page, self.kernels.take())
        except Exception as problem:  # a page that cannot be read, such as a broken header
            error = f"{type(problem).__name__}: {problem}"
        self.stale.discard(page)
        if error:
            self.told.fail(page, "cells", f"a cell of {page}.md fails\n{COLOURS.sub('', error)}")
            return False
        self.told.mend(page, "cells")
        store.keep(page, key, notebook, seconds)
        return True

    def site(self, pages: list[str] | None) -> None:
        """Let Sphinx make pages, or all that changed; what it complains about is shown."""
        said = self.zygote.build(HTML, DOCTREES, pages)
        for page in pages or [*toc_pages(), ""]:
            self.told.mend(page, "site")
        wrong: dict[str, list[str]] = {}
        for line in said.splitlines():
            line = COLOURS.sub("", line)
            if re.search(r"WARNING|ERROR|CRITICAL|Error|Exception", line):
                at = line.split(".md")[0].removeprefix(f"{ROOT}/")
                wrong.setdefault(at if at in toc_pages() else "", []).append(line)
        for page, lines in wrong.items():
            self.told.fail(page, "site", "\n".join(lines))
        self.told.reload()

    # -- the loop ------------------------------------------------------------------------------
    def watch(self, before: dict[Path, tuple[int, int]]) -> None:
        """Show what differs from the files as they were before, until interrupted."""
        while True:
            self.again.wait(PAUSE)
            if self.again.is_set():
                self.again.clear()
                wanted = self.stale & self.told.open_pages()
                if wanted:
                    self.told.working(", ".join(sorted(wanted)))
                    self.refresh(wanted)
                    self.told.done()
            now = watched()
            changed = {path for path in before.keys() | now.keys()
                       if before.get(path) != now.get(path)}  # fmt: skip
            before = now
            if changed:
                try:
                    self.saved(changed)
                except Exception as error:  # shown, and the next save tries again
                    self.told.fail("", "editor", f"{type(error).__name__}: {error}")
                    self.told.done()
                else:
                    self.told.mend("", "editor")


def page_of(path: Path) -> str:
    """The page that a file is the source of, or nothing."""
    page = path.relative_to(ROOT).with_suffix("").as_posix()
    return page if path.suffix == ".md" and path.is_file() and page in toc_pages() else ""


def say(words: str) -> None:
    """Progress, at once."""
    print(f"edit: {words}", flush=True)


def begin(zygote: Zygote) -> None:
    """A copy of the built site to work on; where there is none, pages run and are made."""
    shutil.rmtree(HERE, ignore_errors=True)
    if (BUILD / "html" / ".buildinfo").is_file():
        shutil.copytree(BUILD / "html", HTML, ignore=shutil.ignore_patterns("*.zip"))
        shutil.copytree(BUILD / ".doctrees", DOCTREES)
        return
    say("the book is not built yet: all pages run first")
    serve_files()
    run_all(runnable(), checks=False)
    downloads(runnable())
    print(zygote.build(HTML, DOCTREES, None))


def main() -> None:
    """Serve, watch, until interrupted."""
    recovery.end_with_make()
    os.environ.update(ENVIRONMENT)
    os.chdir(ROOT)
    editor = Editor()
    try:
        say("getting ready, some seconds; after that what is saved is shown within seconds")
        begin(editor.zygote)
        editor.zygote.wait_until_ready()
        editor.kernels.wait_until_ready()
        server = live.serve(HTML, editor.told, int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
        store = Pages(editor.sources)
        editor.stale = {page for page in runnable() if not store.current(page)}
        before = watched()  # what is saved while late pages are made is shown after them
        late = [page for page in toc_pages() if newer(page)]
        say(f"the book is at http://localhost:{server.server_port}/ (stop with Ctrl-C)")
        if late:
            editor.saved({ROOT / f"{page}.md" for page in late})
        editor.watch(before)
    except KeyboardInterrupt:
        print()
    finally:  # what stands ready must not be waited for, whatever failed
        editor.kernels.close()
        editor.zygote.close()


def newer(page: str) -> bool:
    """Whether a page was saved after the site was built."""
    built = HTML / f"{page}.html"
    source = (ROOT / f"{page}.md").stat().st_mtime
    return not built.is_file() or built.stat().st_mtime < source


if __name__ == "__main__":
    main()
