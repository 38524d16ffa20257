"""The Content-Security-Policy of the site's pages: what a page may load, and no other script.

It stands in each page, so that it holds on every host. Inline scripts of the theme are allowed by
their hashes, so that a script that somebody smuggled in does not run. A policy in a page cannot say
who may frame it: hosts that send headers say so (``book/_web/_headers``), and elsewhere
``framed.js`` refuses.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

from sources import ROOT

FRAME = Path("live") / "python.js"  # its frame inherits the page's policy
FRAMED = ROOT / "book" / "_web" / "framed.js"
SCRIPTS = ("", "text/javascript", "application/javascript", "module")  # other types are data
META = '<meta http-equiv="Content-Security-Policy"'


class Inline(HTMLParser):
    """The inline scripts of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A script without a source begins."""
        given = dict(attrs)
        self._open = tag == "script" and "src" not in given and (given.get("type") or "") in SCRIPTS
        if self._open:
            self.found.append("")

    def handle_data(self, data: str) -> None:
        """Its text, in one part or several."""
        if self._open:
            self.found[-1] += data

    def handle_endtag(self, tag: str) -> None:
        """It ends."""
        self._open = False


def inline(text: str) -> list[str]:
    """The inline scripts of a page, as browsers see them."""
    reader = Inline()
    reader.feed(text.replace("\r\n", "\n"))
    reader.close()
    return reader.found


def digest(script: str) -> str:
    """A script as a policy names it."""
    told = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(told).decode()}'"


def policy(scripts: list[str]) -> str:
    """What a page may do that has these inline scripts."""
    allowed = " ".join(sorted({digest(script) for script in scripts}))
    rules = {
        "default-src": "'self'",  # Firefox asks it whether the next page may be fetched ahead
        **dict.fromkeys(("object-src", "media-src", "manifest-src"), "'none'"),
        # blob: the editor and Python, whose hashes python.js compared; wasm: Python
        "script-src": f"'self' blob: 'wasm-unsafe-eval' {allowed}".strip(),
        "worker-src": "'self' blob:",
        "connect-src": "'self' blob:",
        "style-src": "'self' 'unsafe-inline'",  # styles of formulas and pictures
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "frame-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def frame(site: Path) -> list[str]:
    """The script of the frame that holds a live page's Python."""
    path = site / FRAME
    if not path.is_file():
        return []
    text = path.read_text("utf-8")
    found = re.search(r"const FRAME = `.*?<script>(.*?)<\\/script>`;", text, re.S)
    if not found:
        raise ValueError(f"{FRAME}: expected the frame's script, found none")
    return [found[1]]


def secured(text: str, more: list[str]) -> str:
    """A page with its policy, and with what keeps it out of other sites' frames."""
    if META in text:
        return text
    start = re.search(r"<meta charset=[^>]*>|<head>|<!doctype[^>]*>", text, re.I)
    before, after = (text[: start.end()], text[start.end() :]) if start else ("", text)
    framed = f"<script>{FRAMED.read_text('utf-8')}</script>"
    rules = policy([*inline(f"{framed}{text}"), *more])
    return f'{before}{META} content="{rules}">{framed}{after}'


def unsecured(text: str) -> str:
    """A page without its policy, for a server that puts a script of its own into it."""
    return re.sub(f"{re.escape(META)}[^>]*>", "", text)


def secure(site: Path) -> None:
    """Give each page of a site its policy; pages that have one keep it."""
    more = frame(site)
    for path in site.rglob("*.html"):
        if path.relative_to(site).parts[0] in ("_static", "vendor"):  # templates, no pages
            continue
        text = path.read_text("utf-8")
        if (made := secured(text, more)) != text:
            path.write_text(made, "utf-8")
