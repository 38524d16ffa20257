"""Look at explorables apart from the book: pictures on a desk and a phone, light and dark.

    python book/_tools/look.py WaterFilling [--state '{"tau": 3}'] [--out _build/look]

Says what the browser complains about, how long a drawing took, and what the read-out says.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import shutil
import sys
import threading
from pathlib import Path
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
    from attnlab import widgets

    source = ROOT / "attnlab" / "widgets"
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


def main() -> int:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--state", default="")
    parser.add_argument("--out", default=str(ROOT / "_build" / "look"))
    given = parser.parse_args()
    folder = Path(given.out)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["ATTNLAB_STATIC"] = "1"
    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = os.environ.get("ATTNLAB_CHROMIUM") or shutil.which("chromium")
    complaints = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in given.names:
            file = write(folder, name)
            for width, theme in ((900, "light"), (390, "dark")):
                page = browser.new_page(viewport={"width": width, "height": 800})
                wrong: list[str] = []
                page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
                page.on(
                    "console",
                    lambda line, wrong=wrong: (
                        wrong.append(line.text)
                        if line.type == "error" and "favicon" not in str(line.location)
                        else None
                    ),
                )
                query = f"?{file}={quote(given.state)}" if given.state else ""
                address = f"http://127.0.0.1:{server.server_port}/{file}.html{query}"
                page.goto(address)
                page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
                page.wait_for_timeout(700)
                root = page.query_selector("[data-explorable]")
                wide = page.evaluate("document.documentElement.scrollWidth")
                marks = root.evaluate("(node) => ({...node.dataset})")
                said = page.inner_text(".al-readout") if not wrong else ""
                picture = folder / f"{file}-{width}.png"
                page.screenshot(path=picture, full_page=True)
                print(f"{file} {width}: scroll width {wide}, {json.dumps(marks)[:600]}\n  {said}")
                print(f"  {picture}")
                for line in wrong:
                    print(f"  ERROR {line}")
                complaints += len(wrong) + (wide > width)
                page.close()
        browser.close()
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
