"""Live pages: cells run where they are read, and a stranger's code reaches nothing."""

from __future__ import annotations

import json
import re
import time
import zipfile
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from live_pages import (
    KEPT,
    QUIET,
    STATE,
    Visit,
    alive,
    code,
    edit,
    run,
    settled,
    write,
)
from marionette import Firefox
from patience import handed
from playwright.sync_api import Browser, Page, Route
from policy import unsecured

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
CELLS = HTML / "live" / "pages"
ALL = sorted(path.relative_to(CELLS).with_suffix("").as_posix() for path in CELLS.rglob("*.json"))
FIRST = {"book/multihead/statistics", "book/svm/tokens"}  # two chapters are enough to begin with
# What another machine's arithmetic changes, and why; clocks besides.
DIFFERS: dict[str, str] = {
    "book/bias/momentum al-cell-19": "a distance of two runs as a power of ten, of many roundings",
}
CLOCK = re.compile(r"\d[\d.]*\s*(ms|s|seconds|µs|times)\b")


AXE = {"resultTypes": ["violations"], "preload": False}


def accessible(page: Page) -> None:
    """What is alive is within reach of everybody, in light and in dark."""
    before = page.evaluate("document.documentElement.dataset.theme")
    for theme in ("light", "dark"):
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        page.wait_for_timeout(400)  # colours fade in
        context = {"include": [["div.cell"], [".live-bar"]], "exclude": [[".math"]]}
        found = Axe().run(page, context=context, options=AXE).response["violations"]
        serious = [
            f"{theme}: {one['id']}: {one['help']} {[node['target'] for node in one['nodes']][:4]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, "\n".join(serious)
    page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", before)


def same(built: str, live: str) -> str:
    """What differs: words, or numbers beyond rounding; clocks do not count."""
    number = re.compile(r"[-−]?\d+(?:\.\d+)?(?:[eE][-+−]?\d+)?")
    a, b = (CLOCK.sub("CLOCK", text).split() for text in (built, live))
    if len(a) != len(b):
        return f"{built[:300]!r} became {live[:300]!r}"
    for x, y in zip(a, b, strict=True):
        if number.sub("#", x) != number.sub("#", y):
            return f"{x} became {y}"
        for u, v in zip(number.findall(x), number.findall(y), strict=True):
            s, t = (float(w.replace("−", "-")) for w in (u, v))
            if abs(s - t) > max(1e-6, 2e-3 * max(abs(s), abs(t))):
                return f"{u} became {v} in {x}"
    return ""


# -- what it costs ---------------------------------------------------------------------------------
def test_site_and_archive_grow_by_at_most_50_megabytes() -> None:
    beside = sum(path.stat().st_size for path in (HTML / "live").rglob("*") if path.is_file())
    with zipfile.ZipFile(HTML / "downloads" / "attnlab-book.zip") as archive:
        inside = [one for one in archive.infolist() if one.filename.startswith("live/")]
    assert {one.filename for one in inside if not one.is_dir()} == {
        path.relative_to(HTML).as_posix() for path in (HTML / "live").rglob("*") if path.is_file()
    }, "reading without a network is live, too"
    assert beside + sum(one.compress_size for one in inside) <= 50_000_000


# -- before it is pressed --------------------------------------------------------------------------
def test_nothing_is_loaded_before_the_button_is_pressed(visit: Visit, chromium: Browser) -> None:
    context, asked = chromium.new_context(), []
    context.on(
        "request",
        lambda request: asked.append(request.url.partition("/live/")[2].partition("?")[0]),
    )
    page = visit("book/scratch.html", context=context)
    assert page.locator("[data-live]").inner_text() == "Make this page live"
    assert {name for name in asked if name} == {"start.js", "here.js", "live.css"}
    context.close()


def test_a_site_without_python_has_no_button(visit: Visit, chromium: Browser) -> None:
    def null(route: Route) -> None:
        route.fulfill(body="export default null;", content_type="text/javascript")

    context = chromium.new_context()
    context.route("**/live/here.js", null)
    page = visit("book/scratch.html", context=context)
    page.wait_for_timeout(300)
    assert not page.locator("[data-live], .live-bar").count()
    context.close()


# -- the scratch page, from the first click to the last --------------------------------------------
REACH = """
import js
found = []
for name in ("localStorage", "sessionStorage", "document", "window", "caches", "parent"):
    try:
        thing = getattr(js, name)
        found.append(name) if thing is not None else None
    except Exception:
        pass
for ask in ("HOST", "/book/index.html", "https://example.org/"):
    try:
        await_ = js.fetch(ask)
        from pyodide.ffi import run_sync
        run_sync(await_)
        found.append(ask)
    except Exception:
        pass
try:
    js.indexedDB.open("attnlab")
    found.append("indexedDB")
except Exception:
    pass
try:
    request = js.XMLHttpRequest.new()
    request.open("GET", "HOST", False)
    request.send()
    found.append("XMLHttpRequest")
except Exception:
    pass
print("reached:", found, js.location.origin, js.self.origin)
"""


def test_the_scratch_page(visit: Visit, hosts: dict[str, str]) -> None:
    page = visit("book/scratch.html")
    alive(page)
    found = run(page, "value = 6 * 7\nprint('said', value)\nvalue")
    assert found["ran"] == "ok"
    assert found["text"].split() == ["said", "42", "42"]

    # errors: the reader's lines first, the line is marked
    wrong = run(page, "import json\n\njson.loads('{')")
    assert wrong["ran"] == "error"
    assert "<cell 101>" in wrong["text"]
    assert "inside libraries" in wrong["text"]
    assert "JSONDecodeError" in wrong["text"]
    assert wrong["cell"].locator(".live-wrong").inner_text() == "json.loads('{')"

    # an endless loop ends, and variables are kept
    write(page, "print('before')\nwhile True: pass")
    page.locator('.al-scratch [data-do="run"]').first.click()
    page.wait_for_function("() => document.querySelector('.al-scratch .live-stdout')")
    start = time.perf_counter()
    page.click('[data-do="stop"]')
    settled(page, 20)
    assert time.perf_counter() - start < 15
    cell = page.locator(".al-scratch .cell").first
    assert cell.get_attribute("data-ran") == "error"
    assert "you stopped this cell" in cell.inner_text()
    assert run(page, "print(value + 1)")["text"].strip() == "43", "its names are still there"

    # a stranger's code has no storage, no page, no network, no origin
    reach = run(page, REACH.replace("HOST", hosts["headers"]))["text"].strip()
    assert reach.splitlines()[-1] == "reached: [] null null"

    # an explorable made here is alive, and Python reads what was moved
    page.click('.al-scratch [data-do="add"]')
    board = run(page, "from attnbook import widgets\nboard = widgets.PhasePlane()\nboard", 0)
    assert board["ran"] == "ok", board["text"]
    made = page.locator('.al-scratch [data-explorable="phase_plane"][data-ready]')
    made.wait_for(timeout=30_000)
    assert run(page, "dict(board.state)", 1)["text"].strip() == "{}"
    made.locator("[data-show]").click()  # without the question above it
    made.locator('input[data-key="gap"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    shown = made.evaluate("(el) => el.alState.gap")
    assert f"'gap': {shown}" in run(page, "dict(board.state)", 1)["text"]

    accessible(page)

    # kept on this device; saved as a notebook
    page.reload()
    page.click("[data-live]")
    page.wait_for_selector('[data-do="save"]')
    assert "board.state" in page.locator(".al-scratch .cm-content").nth(1).inner_text()
    with page.expect_download() as saving:
        page.click('[data-do="save"]')
    notebook = json.loads(Path(saving.value.path()).read_text("utf-8"))
    assert notebook["cells"][1]["source"] == ["dict(board.state)"]


NUMBERS = "() => [...document.querySelectorAll('.pasted-text')].map((el) => el.textContent)"


# -- pages -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", [one if one in FIRST else pytest.param(one, marks=pytest.mark.long) for one in ALL]
)
def test_a_page_runs(visit: Visit, name: str) -> None:
    page = visit(f"{name}.html", typeset=name in FIRST)
    built = {one["cell"]: one for one in page.evaluate(STATE)}
    numbers = page.evaluate(NUMBERS)
    alive(page)
    page.evaluate(
        "() => document.querySelectorAll('.pasted-text').forEach((el) => { el.textContent = '?'; })"
    )
    page.click('[data-do="run-all"]')
    found = [one for one in settled(page) if one["cell"]]  # a reader's own cells wait
    assert len(found) == len(built) - ("" in built)
    assert [one for one in found if one["ran"] not in ("ok", "skipped")] == []
    for one in found:
        if one["hidden"] or one["cell"] not in built:
            continue
        difference = same(built[one["cell"]]["text"], one["text"])
        assert not difference or f"{name} {one['cell']}" in DIFFERS, f"{one['cell']}: {difference}"
    # the numbers in the words are those of the build, to the letter, computed anew in WebAssembly
    again = page.evaluate(NUMBERS)
    words = [(was.replace("’", "'"), now) for was, now in zip(numbers, again, strict=True)]
    assert [(was, now) for was, now in words if now not in (was, "?")] == []
    skipped = any(one["ran"] == "skipped" for one in found)
    assert skipped or "?" not in again, "every number was told again"
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-explorable]')].filter((el) => el.alLive)"
        ".every((el) => el.dataset.ready !== undefined)",
        timeout=30_000,
    )
    if name in FIRST:
        accessible(page)


# -- code that comes by a link ---------------------------------------------------------------------
def test_a_link_carries_code_and_never_runs_it(visit: Visit) -> None:
    page = visit("book/scratch.html", permissions=[])
    page.click("[data-live]")
    page.wait_for_selector('[data-do="link"]')
    edit(page, 1, "print('a stranger was here')")
    assert page.locator('[data-do="undo-all"]').inner_text() == "Undo all edits (1)"
    page.click('[data-do="link"]')
    page.wait_for_selector(".live-top[data-link]")
    address = page.get_attribute(".live-top", "data-link")

    other = page.context.browser.new_context()
    shared = handed(other.new_page())
    shared.goto(address)
    assert "runs only when you run it" in shared.inner_text(".live-status")
    shared.click("[data-live]")
    shared.wait_for_selector(".live-top[data-editors]")
    assert "cell 2" in shared.inner_text(".live-notice")
    assert "a stranger" in shared.inner_text(".live-offer pre")
    assert "SignDescent" in code(shared, 1), "the link's code stands beside the page's"
    assert {one["ran"] for one in shared.evaluate(STATE)} == {""}
    assert "stranger" not in shared.evaluate(KEPT)
    shared.click('[data-do="refuse"]')
    assert "SignDescent" in code(shared, 1)
    assert not shared.locator(".live-offer").count()
    assert "live=" not in shared.url
    other.close()


@pytest.mark.long
def test_edits_are_kept_and_undone(visit: Visit) -> None:
    page = visit("book/bias/setting.html")
    page.click("[data-live]")
    page.wait_for_selector('[data-do="undo-all"]')
    code = page.locator("div.cell[class*=al-cell] .cm-content").first.inner_text()
    edit(page, 0, "changed = 1")
    page.reload()
    page.click("[data-live]")
    page.wait_for_selector('[data-do="undo-all"]:not(:disabled)')
    assert page.locator("div.cell[class*=al-cell] .cm-content").first.inner_text() == "changed = 1"
    page.click('[data-do="undo-all"]')
    assert page.locator("div.cell[class*=al-cell] .cm-content").first.inner_text() == code
    assert page.evaluate(KEPT) == ""


@pytest.mark.long
@pytest.mark.parametrize("fragment", ["live=AAAA", "live=" + "A" * 70_000, "live=%00", "live="])
def test_a_mangled_link_is_a_page_without_it(visit: Visit, fragment: str) -> None:
    page = visit(f"book/scratch.html#{fragment}")
    page.click("[data-live]")
    page.wait_for_selector('[data-do="run-all"]')
    assert not page.locator(".live-notice").count()


# -- stopping, on other hosts ----------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize(
    ("host", "workers"), [("reads", "block"), ("plain", "allow"), ("plain", "block")]
)
def test_stop_on_other_hosts(visit: Visit, host: str, workers: str) -> None:
    """A host that reads `_headers`; one that cannot send any, where a service worker adds them;
    without either Python is ended, and the page says so."""
    page = visit("book/scratch.html", host, service_workers=workers)
    page.click("[data-live]")
    page.wait_for_selector(".live-top[data-ready]", timeout=120_000)
    stops = host == "reads" or workers == "allow"
    assert page.get_attribute(".live-top", "data-stops") == str(stops).lower()
    assert run(page, "x = 1; print(x)")["text"].strip() == "1"
    page.click('.al-scratch [data-do="add"]')
    write(page, "while True: pass", 1)
    page.locator('.al-scratch [data-do="run"]').nth(1).click()
    page.wait_for_timeout(1500)
    page.click('[data-do="stop"]')
    settled(page, 30)
    if stops:
        assert run(page, "print(x + 1)", 1)["text"].strip() == "2"
    else:
        page.wait_for_function("() => /must run again/.test(document.body.innerText)")
        assert page.locator('.al-scratch .cell[data-ran="ok"]').count() == 0
        assert run(page, "print(x + 1)", 1, 120)["text"].strip() == "2", "what it needs ran again"


@pytest.mark.long
def test_the_second_visit_loads_nothing_again(visit: Visit, hosts: dict[str, str]) -> None:
    page = visit("book/scratch.html")
    alive(page)
    page.reload()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    alive(page)
    assert not [url for url in asked if "/live/py-" in url]
    assert run(page, "print(1)")["text"].strip() == "1"

    # what was changed where it was kept is not used
    page.evaluate("""async () => {
      const cache = await caches.open("attnlab-live");
      const { url } = (await cache.keys()).find((one) => one.url.endsWith("python_stdlib.zip"));
      await cache.put(url, new Response("PK other"));
    }""")
    page.reload()
    asked.clear()
    alive(page)
    assert [url.rpartition("/")[2] for url in asked if "/live/py-" in url] == ["python_stdlib.zip"]


@pytest.mark.long
def test_a_file_that_is_not_what_was_built_is_refused(visit: Visit, chromium: Browser) -> None:
    context = chromium.new_context()
    context.route("**/live/py-*/python_stdlib.zip", lambda route: route.fulfill(body="PK other"))
    page = visit("book/scratch.html", context=context)
    page.click("[data-live]")
    page.wait_for_function(
        "() => /sha256 differs/.test(document.querySelector('.live-status').textContent)"
    )
    context.close()


# -- outputs are a stranger's ----------------------------------------------------------------------
HERE = Path(__file__).resolve().parent
ATTACKS: dict[str, str] = json.loads((HERE / "attacks.json").read_text("utf-8"))
ATTACK = (HERE / "attack.js").read_text("utf-8").split("\n", 1)[1]
BAD_TAGS = {
    "script", "style", "iframe", "object", "embed", "form", "input", "button", "base", "meta",
    "link",
    "template", "noscript", "math", "foreignobject", "animate", "set", "slot", "source", "picture",
}  # fmt: skip


def test_outputs_are_attacked(visit: Visit, hosts: dict[str, str], chromium: Browser) -> None:
    """On a page without its policy, which would stop some of them too."""
    context = chromium.new_context()
    context.route("**/book/scratch.html", lambda route: route.fulfill(
        body=unsecured((HTML / "book" / "scratch.html").read_text("utf-8")),
        content_type="text/html"))  # fmt: skip
    page = visit("book/scratch.html", context=context)
    home = page.evaluate("document.baseURI")
    for name, text in ATTACKS.items():
        found = page.evaluate(ATTACK, [hosts["headers"], text])
        assert found["pwned"] == 0, name
        assert found["polluted"] is None, name
        assert found["base"].partition("#")[0] == home, name
        assert not found["clobbered"], name
        assert not found["covers"], name
        assert not BAD_TAGS & {tag.lower() for tag in found["tags"]}, (name, found["tags"])
        assert not [one for one in found["classes"] if one.startswith("al-")], name
        assert set(found["explorables"]) <= {"pick_token"}, name
        assert not [a for a in found["attributes"] if a.lower().startswith("on")], name
        assert "javascript:" not in found["values"], name
        assert "evil.invalid" not in found["values"], name
        assert found["count"] <= 30_001, name
        assert all(one.startswith("mark-") for one in found["ids"]) or found["mounts"], name
        for word in ("\\href", "\\style", "__proto__", "<img", "pwn()>"):
            assert word not in found["json"], name
        for word in ("\\href", "\\style"):
            assert word not in found["words"], name
    assert page.evaluate("!document.querySelector('[data-ran]')")
    context.close()


def test_the_book_s_own_outputs_come_through(visit: Visit, hosts: dict[str, str]) -> None:
    """What cells of this book show loses nothing that one sees: a figure, an exercise, a table."""
    page = visit("book/scratch.html")
    figure = (
        '<div class="al-figure-frame"><svg class="al-figure" xmlns="http://www.w3.org/2000/svg" '
        'viewBox="0 0 9 9" width="9" height="9" role="img" aria-label="a line"><defs><clipPath '
        'id="c"><rect x="0" y="0" width="9" height="9"/></clipPath></defs><path clip-path='
        '"url(#c)" d="M0 0L9 9" style="fill: none; stroke: var(--al-0); stroke-width: 1.5"/>'
        "</svg></div>"
    )
    found = page.evaluate(ATTACK, [hosts["headers"], figure])
    assert {"div", "svg", "defs", "clipPath", "rect", "path"} <= set(found["tags"])
    assert "url(#mark-c)" in found["values"]
    assert "mark-c" in found["ids"]
    assert "stroke: var(--al-0)" in found["values"]
    assert "a line" in found["values"]
    assert {"al-figure", "al-figure-frame"} <= set(found["classes"])
    exercise = (
        '<div data-exercise="ex-a" class="al-exercise mathjax_process"><script type='
        '"application/json">{"id": "ex-a"}</script><p class="al-ask-head">Exercise</p></div>'
    )
    found = page.evaluate(ATTACK, [hosts["headers"], exercise])
    assert {"al-exercise", "al-ask-head"} <= set(found["classes"])
    assert found["mounts"] == 1
    table = (
        "<table class=dataframe><tr><th scope=col>a</th>"
        "<td style='text-align:right'>1</td></tr></table>"
    )
    found = page.evaluate(ATTACK, [hosts["headers"], table])
    assert {"table", "tr", "th", "td"} <= set(found["tags"])
    assert "text-align: right" in found["values"]


# -- the library under WebAssembly -----------------------------------------------------------------
@pytest.mark.long
def test_a_slice_of_the_library_s_tests_runs_in_the_browser(visit: Visit) -> None:
    code = (ROOT / "tests" / "webassembly" / "slice.py").read_text("utf-8")
    page = visit("book/scratch.html")
    alive(page)
    found = run(page, code, 0, 240)
    assert found["ran"] == "ok", found["text"][-2000:]
    assert "6 of 6 parts hold" in found["text"]


# -- Firefox ---------------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(FIRST | {"book/encoder/model", "book/bias/growth"}))
def test_a_page_runs_in_firefox(firefox: Firefox, hosts: dict[str, str], name: str) -> None:
    firefox.go(f"{hosts['headers']}{name}.html")
    built = {one["cell"]: one for one in firefox.run(f"return ({STATE})()")}
    firefox.run("document.querySelector('[data-live]').click()")
    firefox.wait("return document.querySelector('.live-top[data-ready]') !== null")
    firefox.run("""document.querySelector('[data-do="run-all"]').click()""")
    firefox.wait(f"return ({QUIET})()", 240)
    found = [one for one in firefox.run(f"return ({STATE})()") if one["cell"]]
    assert [one for one in found if one["ran"] not in ("ok", "skipped")] == []
    for one in found:
        if not one["hidden"] and one["cell"] in built:
            difference = same(built[one["cell"]]["text"], one["text"])
            assert not difference or f"{name} {one['cell']}" in DIFFERS, difference


@pytest.mark.long
@pytest.mark.parametrize("host", ["headers", "plain"])
def test_stop_in_firefox(firefox: Firefox, hosts: dict[str, str], host: str) -> None:
    """With the host's headers, and with the service worker's."""
    firefox.go(f"{hosts[host]}book/scratch.html")
    firefox.run("document.querySelector('[data-live]').click()")
    firefox.wait("return document.querySelector('.live-top[data-ready]') !== null")
    assert firefox.run("return document.querySelector('.live-top').dataset.stops") == "true"
    firefox.type(".al-scratch .cm-content", "\nprint(1)\nwhile True: pass")
    firefox.run("""document.querySelector('.al-scratch [data-do="run"]').click()""")
    firefox.wait("return document.querySelector('.al-scratch .live-stdout') !== null", 30)
    firefox.run("""document.querySelector('[data-do="stop"]').click()""")
    firefox.wait(f"return ({QUIET})()", 20)
    shown = firefox.run("return document.querySelector('.al-scratch .cell').innerText")
    assert "you stopped this cell" in shown


def test_a_number_that_a_reader_changed_is_marked(visit: Visit) -> None:
    page = visit("book/svm/margin.html", typeset=False)
    was = page.evaluate(NUMBERS)
    alive(page)
    edit(page, 0, 'from attnbook.widgets import tell\n\ntell("inside", 7)')
    page.locator('div.cell[class*=al-cell] [data-do="run"]').first.click()
    settled(page)
    marked = page.locator(".pasted-text.live-changed")
    assert marked.all_inner_texts() == ["7"]
    (changed,) = [old for old, new in zip(was, page.evaluate(NUMBERS), strict=True) if old != new]
    assert marked.get_attribute("title") == f"The built book says {changed}."
    edit(page, 0, f'from attnbook.widgets import tell\n\ntell("inside", {changed})')
    page.locator('div.cell[class*=al-cell] [data-do="run"]').first.click()
    settled(page)
    assert page.evaluate(NUMBERS) == was
    assert marked.count() == 0
