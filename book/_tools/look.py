"""Look at an explorable apart from the book, or at a page of the built book, as pictures.

    python book/_tools/look.py WaterFilling [--state '{"tau": 3}'] [--out _build/look]
    python book/_tools/look.py svm/margin index [--looks 1280-light 1280-dark 390-light 390-dark]
    python book/_tools/look.py tests/browser/derivations/svm-theorem-2.md [--state '{"R": 40}']

Says what the browser complains about; of an explorable also how long a drawing took and what
the read-out says. A page is cut into slices that can be read. A file of Markdown becomes a page
of its own: directives, formulas, derivations; no code cells.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
DARK = {
    "background": "#14181e",
    "text-base": "#eeeeee",
    "surface": "#222832",
    "text-muted": "#b5bcc4",
    "border": "#48525e",
}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves quietly."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def write(folder: Path, name: str) -> str:
    """One page with one explorable."""
    from attnbook import widgets

    source = ROOT / "book" / "attnbook" / "widgets"
    place = folder / "explorables"
    shutil.copytree(source / "kit", place / "kit", dirs_exist_ok=True)
    shutil.copy(source / "kit" / "host.js", place)
    widget = getattr(widgets, name)()
    shutil.copy(source / f"{widget.name}.js", place)
    dark = "".join(f"--pst-color-{key}: {value};" for key, value in DARK.items())
    (folder / f"{widget.name}.html").write_text(
        f"""<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{name}</title>
<link rel="stylesheet" href="explorables/kit/kit.css"><style>
[data-theme=dark] body {{ {dark} background: #14181e; color: #eee }}
body {{ max-width: 760px; margin: auto; padding: 0 12px; font-family: sans-serif }}</style>
{widget.html()}<script type="module" src="explorables/host.js"></script></html>""",
        encoding="utf-8",
    )
    return str(widget.name)


def fragment(text: str) -> str:
    """Markdown with the book's own directives, without code cells, as the inside of a page."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    sys.path.insert(0, str(ROOT / "book" / "_ext"))
    found: list[str] = []
    with tempfile.TemporaryDirectory() as place, docutils_namespace():
        (Path(place) / "index.md").write_text(text, encoding="utf-8")
        settings = {
            "extensions": ["myst_parser", "attnlab_book", "attnlab_teach"],
            "myst_enable_extensions": ["amsmath", "colon_fence", "deflist", "dollarmath"],
            "myst_dmath_double_inline": True,
            "html_theme": "basic",
            "suppress_warnings": ["config.cache", "toc.not_readable"],
        }
        out = Path(place) / "out"
        how: dict[str, Any] = {"status": None, "warningiserror": True, "confoverrides": settings}
        app = Sphinx(place, None, out, out / "trees", "html", **how)
        app.connect("html-page-context", lambda _, name, __, context, ___: (
            found.append(context["body"]) if name == "index" else None))  # fmt: skip
        app.build()
        if app.statuscode:
            raise SystemExit("the text above has a mistake")
    return found[0]


def serve_kit(folder: Path) -> None:
    """What pages need beside themselves: the kit, derivations, MathJax."""
    import importlib.metadata

    source = ROOT / "book" / "attnbook" / "widgets"
    place = folder / "explorables"
    for name in ("kit", "derivations"):
        shutil.copytree(source / name, place / name, dirs_exist_ok=True)
    shutil.copy(source / "kit" / "host.js", place)
    shutil.copy(ROOT / "book" / "_web" / "book.css", place)
    package = importlib.metadata.distribution("sphinx-mathjax-offline")
    mathjax = Path(str(package.locate_file("sphinx-mathjax-offline"))) / "static" / "mathjax"
    if not (folder / "vendor" / "mathjax").exists():
        (folder / "vendor").mkdir(exist_ok=True)
        (folder / "vendor" / "mathjax").symlink_to(mathjax)


def page_of(text: str, title: str) -> str:
    """A page around a fragment, with the book's styles and macros."""
    import yaml

    config = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
    math = json.dumps({**config["mathjax3_config"], "options": {"processHtmlClass": "math"}})
    dark = "".join(f"--pst-color-{key}: {value};" for key, value in DARK.items())
    sheets = "".join(
        f'<link rel="stylesheet" href="explorables/{name}">'
        for name in ("kit/kit.css", "kit/derive.css", "book.css")
    )
    return f"""<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{title}</title>{sheets}<style>
[data-theme=dark] body {{ {dark} background: #14181e; color: #eee }}
body {{ max-width: 700px; margin: auto; padding: 0 12px; font: 16px/1.5 sans-serif }}
a {{ color: inherit }}
</style><body><main class="bd-article">{text}</main><script>window.MathJax = {math};</script>
<script defer src="vendor/mathjax/tex-mml-chtml.js"></script>
<script type="module" src="explorables/host.js"></script></body></html>"""


def written(browser: Any, root: str, folder: Path, name: str, given: Any) -> int:
    """Pictures of a page made of one file of Markdown."""
    serve_kit(folder)
    file, complaints = Path(name).stem, 0
    text = page_of(fragment(Path(name).read_text(encoding="utf-8")), file)
    (folder / f"{file}.html").write_text(text, encoding="utf-8")
    query = f"?{file}={quote(given.state)}" if given.state else ""
    for look in given.looks:
        width, theme = int(look.split("-")[0]), look.split("-")[1]
        page, wrong = opened(
            browser, f"{root}/{file}.html{query}", viewport={"width": width, "height": 900}
        )
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        page.wait_for_timeout(2500)
        wide = page.evaluate("document.documentElement.scrollWidth")
        picture = folder / f"{file}-{look}.png"
        page.screenshot(path=picture, full_page=True)
        print(f"{file} {look}: scroll width {wide}\n  {picture}")
        print(*(f"  ERROR {line}" for line in wrong), sep="\n")
        complaints += len(wrong) + (wide > width)
        page.close()
    return complaints


def chromium(playwright: Any) -> Any:
    """The system's Chromium, or the one of ATTNLAB_CHROMIUM, or Playwright's own."""
    names = ("chromium-headless-shell", "chromium")
    path = os.environ.get("ATTNLAB_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


def opened(browser: Any, address: str, **how: Any) -> tuple[Any, list[str]]:
    """A page, and what the browser will complain about."""
    page, wrong = browser.new_page(**how), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda line: (
            wrong.append(line.text)
            if line.type == "error" and "favicon" not in str(line.location)
            else None
        ),
    )
    page.goto(address)
    return page, wrong


def explorable(browser: Any, root: str, folder: Path, name: str, state: str) -> int:
    """Pictures of one explorable; how many complaints there were."""
    file, complaints = write(folder, name), 0
    query = f"?{file}={quote(state)}" if state else ""
    for width, theme in ((900, "light"), (390, "dark")):
        how = {"viewport": {"width": width, "height": 800}}
        page, wrong = opened(browser, f"{root}/{file}.html{query}", **how)
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        page.wait_for_timeout(700)
        wide = page.evaluate("document.documentElement.scrollWidth")
        marks = page.query_selector("[data-explorable]").evaluate("(node) => ({...node.dataset})")
        said = page.inner_text(".al-readout") if not wrong else ""
        picture = folder / f"{file}-{width}.png"
        page.screenshot(path=picture, full_page=True)
        print(f"{file} {width}: scroll width {wide}, {json.dumps(marks)[:600]}\n  {said}")
        print(*(f"  {line}" for line in (picture, *(f"ERROR {line}" for line in wrong))), sep="\n")
        complaints += len(wrong) + (wide > width)
        page.close()
    return complaints


def built(browser: Any, root: str, folder: Path, name: str, looks: list[str]) -> int:
    """Pictures of one page of the built site, in slices; how many complaints there were."""
    complaints = 0
    for look in looks:
        width, theme = int(look.split("-")[0]), look.split("-")[1]
        how = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
        page, wrong = opened(browser, f"{root}/book/{name}.html", **how)
        page.wait_for_timeout(500)
        tall = page.evaluate("document.documentElement.scrollHeight")
        for y in range(0, tall, 700):  # explorables start when they come near
            page.evaluate(f"scrollTo(0, {y})")
            page.wait_for_timeout(60)
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(900)
        tall = page.evaluate("document.documentElement.scrollHeight")
        wide = page.evaluate("document.documentElement.scrollWidth")
        print(f"{name} {look}: scroll width {wide}, height {tall}")
        for k, y in enumerate(range(0, tall, 1800)):
            picture = folder / f"{name.replace('/', '_')}-{look}-{k:02d}.png"
            clip = {"x": 0, "y": y, "width": width, "height": min(1800, tall - y)}
            page.screenshot(path=picture, full_page=True, clip=clip)
            print(f"  {picture}")
        for line in wrong:
            print(f"  ERROR {line}")
        complaints += len(wrong) + (wide > width)
        page.close()
    return complaints


def serve(where: Path) -> tuple[http.server.ThreadingHTTPServer, str]:
    """A server of a folder on a free port, and its address."""
    handler = functools.partial(Handler, directory=str(where))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def main() -> int:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", help="TokenBoard, or a page: svm/margin")
    parser.add_argument("--state", default="")
    parser.add_argument("--out", default=str(ROOT / "_build" / "look"))
    parser.add_argument("--looks", nargs="+", default=["1280-light", "390-dark"])
    given = parser.parse_args()
    folder = Path(given.out)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["ATTNLAB_STATIC"] = "1"

    alone, site = serve(folder)[1], serve(ROOT / "_build" / "html")[1]
    complaints = 0
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        for name in given.names:
            if name.endswith(".md"):
                complaints += written(browser, alone, folder, name, given)
            elif name[0].isupper():
                complaints += explorable(browser, alone, folder, name, given.state)
            else:
                complaints += built(browser, site, folder, name, given.looks)
        browser.close()
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
