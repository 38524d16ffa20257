"""What a reader typed goes only by the reader's own click: links, rebuilds, windows, storage."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from live_pages import HTML, KEPT, STATE, Visit, alive, code, edit, opened, settled, write
from patience import handed
from playwright.sync_api import Browser, Page, Route

PAGE = "book/bias/setting"
CELLS = json.loads((HTML / "live" / "pages" / f"{PAGE}.json").read_text("utf-8"))["cells"]
SCRATCH = json.loads((HTML / "live" / "pages" / "book/scratch.json").read_text("utf-8"))["cells"]
SEEN = [one for one in CELLS if not {"remove-cell", "remove-input"} & set(one["tags"])]
STRANGER = "print('a stranger was here')"


def digest(text: str) -> str:
    """As kept.js tells one text from another."""
    total = 7
    for letter in text:
        total = (total * 31 + ord(letter)) & 0xFFFFFFFF
    total -= (total & 0x80000000) * 2
    digits, left = "", abs(total)
    while left:
        digits, left = "0123456789abcdefghijklmnopqrstuvwxyz"[left % 36] + digits, left // 36
    return ("-" if total < 0 else "") + (digits or "0")


def carrying(cell: dict[str, Any], text: str = STRANGER, was: str | None = None) -> str:
    """The part of an address that brings a cell's code."""
    entry = {"was": digest(cell["code"]) if was is None else was, "code": text}
    packer = zlib.compressobj(wbits=-15)
    given = json.dumps({f"c{cell['index']}": entry}).encode()
    packed = packer.compress(given) + packer.flush()
    return "#live=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def window(page: Page, address: str) -> Page:
    """Another window of the same reader, alive."""
    other = handed(page.context.new_page())
    other.goto(address)
    opened(other)
    return other


def live(visit: Visit, path: str = f"{PAGE}.html", **how: Any) -> Page:
    page = visit(path, typeset=False, **how)
    opened(page)
    return page


def address(page: Page) -> str:
    return page.url.partition("#")[0]


# -- links -----------------------------------------------------------------------------------------
def test_a_link_that_is_not_decided_leaves_the_reader_s_edit(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    home = address(page)
    shared = window(page, home + carrying(SEEN[0]))
    assert "has not run" in shared.inner_text(".live-notice")
    assert code(shared, 0) == "mine = 1"
    assert STRANGER in shared.inner_text(".live-offer pre")
    shared.close()
    page.reload()
    opened(page)
    assert code(page, 0) == "mine = 1"


@pytest.mark.long
def test_leaving_the_link_s_code_settles_the_address(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    shared = window(page, address(page) + carrying(SEEN[0]))
    shared.click('[data-do="refuse"]')
    assert code(shared, 0) == "mine = 1"
    assert "#" not in shared.url
    edit(shared, 0, "mine = 2")
    shared.reload()
    opened(shared)
    assert code(shared, 0) == "mine = 2"
    assert not shared.locator(".live-notice").count()


@pytest.mark.long
def test_using_the_link_s_code_keeps_the_reader_s_own(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    shared = window(page, address(page) + carrying(SEEN[0]))
    shared.click('[data-do="take"]')
    assert code(shared, 0) == STRANGER
    assert "#" not in shared.url
    assert {one["ran"] for one in shared.evaluate(STATE)} == {""}
    shared.reload()
    opened(shared)
    assert code(shared, 0) == STRANGER
    assert shared.inner_text(".live-offer pre") == "mine = 1"
    shared.click('.live-offer [data-do="use"]')
    assert code(shared, 0) == "mine = 1"
    assert shared.inner_text(".live-offer pre") == STRANGER


@pytest.mark.long
def test_a_link_for_an_older_page_is_only_offered(visit: Visit) -> None:
    page = live(visit, f"{PAGE}.html{carrying(SEEN[0], was='older')}")
    assert code(page, 0) == SEEN[0]["code"]
    assert page.inner_text(".live-offer pre") == STRANGER
    page.click('.live-offer [data-do="discard"]')
    assert not page.locator(".live-offer, .live-notice").count()
    assert "#" not in page.url
    assert page.evaluate(KEPT) == ""


@pytest.mark.long
def test_a_link_that_changes_nothing_is_taken_from_the_address(visit: Visit) -> None:
    page = live(visit, f"{PAGE}.html{carrying(SEEN[0], SEEN[0]['code'])}")
    assert "#" not in page.url
    assert not page.locator(".live-notice").count()


@pytest.mark.long
def test_a_link_typed_into_a_live_page_is_offered_there(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    page.evaluate("(hash) => { location.hash = hash; }", carrying(SEEN[0]))
    page.wait_for_selector(".live-notice")
    assert code(page, 0) == "mine = 1"


def test_nothing_that_is_pressed_runs_a_link_s_code_before_it_is_used(visit: Visit) -> None:
    """Copied into the notebook, run with it, run with all: it is the page's own code."""
    page = visit(f"book/scratch.html{carrying(SCRATCH[0])}", typeset=False)
    alive(page)
    page.wait_for_selector(".live-notice")
    page.locator('[data-do="copy"]').first.click()
    page.click('[data-do="run-notebook"]')
    settled(page)
    page.locator('div.cell[class*=al-cell] [data-do="run"]').first.click()
    settled(page)
    page.click('[data-do="run-all"]')
    settled(page)
    assert page.locator(".live-notice").count()
    outputs = page.locator(".cell_output").all_inner_texts()
    assert not any("a stranger was here" in text for text in outputs), outputs
    assert "stranger" not in page.evaluate(KEPT)


# -- rebuilds --------------------------------------------------------------------------------------
def rebuilt(page: Page, cells: list[dict[str, Any]]) -> None:
    """The site has these cells for the page from now on."""

    def answer(route: Route) -> None:
        route.fulfill(json={"cells": cells, "told": []})

    page.context.route(f"**/live/pages/{PAGE}.json", answer)


def changed(index: int, text: str = "rebuilt = 1") -> list[dict[str, Any]]:
    return [one | ({"code": text} if one["index"] == index else {}) for one in CELLS]


def test_a_rebuild_keeps_an_edit_and_shows_both(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    rebuilt(page, changed(SEEN[0]["index"]))
    for _ in range(2):  # the first visit deletes nothing either
        page.reload()
        opened(page)
        assert code(page, 0) == "rebuilt = 1"
        assert page.inner_text(".live-offer pre") == "mine = 1"
        assert "older version of the page" in page.inner_text(".live-offer")
    page.click('.live-offer [data-do="use"]')
    assert code(page, 0) == "mine = 1"
    page.reload()
    opened(page)
    assert code(page, 0) == "mine = 1"
    assert not page.locator(".live-offer").count()


@pytest.mark.long
def test_an_edit_follows_its_cell_to_another_place(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    moved = [one | {"code": SEEN[k - 1]["code"]} if k else one | {"code": "new = 1"}
             for k, one in enumerate(SEEN)]  # fmt: skip
    rebuilt(page, moved)
    page.reload()
    opened(page)
    assert code(page, 0) == "new = 1"
    assert code(page, 1) == "mine = 1"


@pytest.mark.long
def test_an_edit_of_a_cell_that_is_gone_is_offered(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    rebuilt(page, [one for one in CELLS if one["index"] != SEEN[0]["index"]])
    page.reload()
    opened(page)
    assert "no longer has" in page.inner_text(".live-offer")
    assert page.inner_text(".live-offer pre") == "mine = 1"
    page.click('.live-offer [data-do="discard"]')
    assert page.evaluate(KEPT) == ""


@pytest.mark.long
def test_what_former_sites_kept_is_still_there(visit: Visit) -> None:
    page = visit(f"{PAGE}.html", typeset=False)
    first, second = SEEN[:2]
    entry = {f"c{first['index']}": {"was": digest(first["code"]), "code": "mine = 1"},
             f"c{second['index']}": {"was": "older", "code": "mine = 2"}}  # fmt: skip
    page.evaluate("(text) => { localStorage['attnlab-live:' + location.pathname] = text; }",
                  json.dumps(entry))  # fmt: skip
    opened(page)
    assert code(page, 0) == "mine = 1"
    assert page.inner_text(".live-offer pre") == "mine = 2"
    edit(page, 0, "mine = 3")
    page.reload()
    opened(page)
    assert code(page, 0) == "mine = 3"
    assert page.inner_text(".live-offer pre") == "mine = 2"


# -- two windows -----------------------------------------------------------------------------------
def test_two_windows_keep_what_was_typed_in_each(visit: Visit) -> None:
    one = live(visit)
    two = window(one, address(one))
    edit(one, 0, "first = 1")
    edit(two, 0, "second = 1")
    edit(one, 0, "first = 2")
    edit(one, 1, "other = 1")
    edit(two, 0, "second = 2")
    two.wait_for_function("() => document.querySelectorAll('.live-offer').length === 2")
    third = window(one, address(one))
    assert code(third, 0) == "second = 2"
    assert code(third, 1) == "other = 1"
    assert third.locator(".live-offer pre").all_inner_texts() == ["first = 2"]


@pytest.mark.long
def test_a_window_keeps_what_it_shows(visit: Visit) -> None:
    """Another window opens with the same edit, changes it, and is the last that is closed."""
    one = live(visit)
    edit(one, 0, "first = 1")
    two = window(one, address(one))
    assert code(two, 0) == "first = 1"
    edit(two, 0, "second = 1")
    one.wait_for_selector(".live-offer")
    one.close()
    two.reload()
    opened(two)
    assert code(two, 0) == "second = 1"
    assert two.inner_text(".live-offer pre") == "first = 1"


@pytest.mark.long
def test_undoing_in_one_window_leaves_the_other_s(visit: Visit) -> None:
    one = live(visit)
    two = window(one, address(one))
    edit(one, 0, "first = 1")
    edit(two, 0, "second = 1")
    two.click('[data-do="undo-all"]')
    assert code(two, 0) == SEEN[0]["code"]
    one.reload()
    opened(one)
    assert code(one, 0) == "first = 1"
    assert not one.locator(".live-offer").count()


@pytest.mark.long
def test_two_windows_keep_two_notebooks(visit: Visit) -> None:
    one = live(visit, "book/scratch.html")
    two = window(one, address(one))
    write(one, "first = 1")
    write(two, "second = 1")
    two.wait_for_selector(".al-scratch .live-offer")
    two.click('.al-scratch .live-offer [data-do="use"]')
    cells = two.locator(".al-scratch .cm-content").all_inner_texts()
    assert [text.strip() for text in cells] == ["second = 1", "first = 1"]


# -- storage that is closed, or full ---------------------------------------------------------------
CLOSED = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("closed", "SecurityError"); } });"""
TAKES_NOTHING = """Storage.prototype.setItem = () => {
  throw new DOMException("full", "QuotaExceededError"); };"""
FILL = """() => {
  let text = "x".repeat(1 << 20), count = 0;
  while (text) {
    try { localStorage["other-" + count++] = text; }
    catch { text = text.slice(0, text.length >> 1); }
  }
}"""


@pytest.mark.parametrize("script", [CLOSED, TAKES_NOTHING], ids=["closed", "takes-nothing"])
def test_an_edit_that_is_not_kept_is_said_and_not_lost(chromium: Browser, hosts: dict[str, str],
                                                       script: str) -> None:  # fmt: skip
    context = chromium.new_context()
    context.add_init_script(script)
    page = handed(context.new_page())
    page.goto(f"{hosts['headers']}{PAGE}.html{carrying(SEEN[0])}")
    opened(page)
    edit(page, 0, "mine = 1")
    assert "does not keep your changes" in page.inner_text(".live-unsaved")
    page.click('[data-do="take"]')
    assert code(page, 0) == STRANGER
    assert page.inner_text(".live-offer pre") == "mine = 1"
    with page.expect_event("dialog") as asked:
        page.evaluate("() => { setTimeout(() => location.reload()); }")
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    assert page.inner_text(".live-offer pre") == "mine = 1"
    context.close()


def test_full_storage_loses_nothing_that_it_has(visit: Visit) -> None:
    page = live(visit)
    edit(page, 0, "mine = 1")
    page.evaluate(FILL)
    edit(page, 1, "other = 1")
    assert "does not keep your changes" in page.inner_text(".live-unsaved")
    other = window(page, address(page))
    assert code(other, 0) == "mine = 1"
    other.evaluate("() => Object.keys(localStorage).filter((one) => one.startsWith('other-'))"
                   ".forEach((one) => localStorage.removeItem(one))")  # fmt: skip
    edit(page, 1, "other = 2")
    assert page.inner_text(".live-unsaved") == ""
    page.reload()
    opened(page)
    assert code(page, 1) == "other = 2"


@pytest.mark.long
def test_an_edit_that_another_program_mangled_is_left(visit: Visit) -> None:
    page = visit(f"{PAGE}.html", typeset=False)
    page.evaluate("() => { localStorage['attnlab-live:' + location.pathname] = '{not json'; }")
    opened(page)
    edit(page, 0, "mine = 1")
    page.reload()
    opened(page)
    assert code(page, 0) == "mine = 1"
    assert "{not json" in page.evaluate(KEPT)
