"""Live pages in a browser: hosts of three kinds, and what a reader does on a page."""

from __future__ import annotations

import fnmatch
import http.server
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"
Visit = Callable[..., Page]


class Plain(http.server.SimpleHTTPRequestHandler):
    """A host that cannot send headers."""

    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
    }

    def log_message(self, *_: object) -> None:
        pass


class Reads(Plain):
    """A host that sends what the site's file `_headers` says."""

    def end_headers(self) -> None:
        """Of each pattern that the address fits, its lines."""
        fits = False
        for line in (HTML / "_headers").read_text("utf-8").splitlines():
            if line.startswith("/"):
                fits = fnmatch.fnmatch(self.path, line)
            elif fits:
                name, _, value = line.strip().partition(": ")
                self.send_header(name, value)
        super().end_headers()


def alive(page: Page) -> None:
    """Press the button and wait for Python."""
    page.click("[data-live]")
    page.wait_for_selector('[data-do="run-all"]', timeout=90_000)
    page.wait_for_selector(".live-top[data-ready]", timeout=120_000)


STATE = """() => [...document.querySelectorAll("div.cell")].map((el) => ({
  cell: el.className.match(/al-cell-\\d+/)?.[0] ?? "", ran: el.dataset.ran ?? "",
  state: el.dataset.state ?? "", hidden: el.classList.contains("live-hidden"),
  error: el.querySelector(".live-error")?.innerText ?? "",
  text: [...el.querySelectorAll(".cell_output pre")].map((one) => one.textContent).join("\\n"),
}))"""
QUIET = """() => ![...document.querySelectorAll("div.cell")].some((el) =>
  ["waits", "runs"].includes(el.dataset.state))"""


def settled(page: Page, seconds: float = 240) -> list[dict[str, Any]]:
    """Until nothing waits or runs."""
    page.wait_for_timeout(100)
    page.wait_for_function(QUIET, timeout=seconds * 1000)
    return list(page.evaluate(STATE))


def run(page: Page, code: str, place: int = 0, seconds: float = 60) -> dict[str, Any]:
    """Put code into a cell of the scratch page and run it."""
    write(page, code, place)
    cell = page.locator(".al-scratch .cell").nth(place)
    cell.locator('[data-do="run"]').click()
    settled(page, seconds)
    text = cell.locator(".cell_output").inner_text()
    return {"ran": cell.get_attribute("data-ran"), "text": text, "cell": cell}


def write(page: Page, code: str, place: int = 0) -> None:
    """As somebody who types, at once."""
    typed(page, page.locator(".al-scratch .cm-content").nth(place), code)


def typed(page: Page, editor: Any, code: str) -> None:
    """An editor that has this code, and nothing else."""
    editor.focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(code)
    lines = editor.locator(".cm-line")
    assert lines.count() == code.count("\n") + 1
    assert lines.last.inner_text().strip() == code.rpartition("\n")[2].strip()


KEPT = """() => Object.keys(localStorage).filter((key) => key.startsWith("attnlab-live"))
  .map((key) => localStorage[key]).join()"""


def edit(page: Page, place: int, code: str) -> None:
    typed(page, page.locator("div.cell[class*=al-cell] .cm-content").nth(place), code)


def code(page: Page, place: int) -> str:
    """What stands in the editor of one of the page's own cells."""
    lines = page.locator("div.cell[class*=al-cell] .cm-content").nth(place).locator(".cm-line")
    return "\n".join(line.rstrip("\n") for line in lines.all_inner_texts())


def opened(page: Page) -> None:
    """Press the button and wait for the editors; Python may still be on its way."""
    page.click("[data-live]")
    page.wait_for_selector(".live-top[data-editors]", timeout=90_000)
