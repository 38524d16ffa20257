"""The marking page in a browser: keys alone, formulas set, hostile words, light and dark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from handed import HERE, NAME, PROBLEM, made_course
from playwright.sync_api import Browser, Page

from attnbook import course
from attnbook.course import _marking as marking
from attnbook.course._desk import Desk
from attnbook.course._server import Server, serve

WORDS = {
    "s01": "As $s_t>0$, the margin is below $\\max_t\\gamma_t$:\n\n$$u<\\max_t\\gamma_t$$",
    "s02": "<img src=x onerror=alert(1)> <a href='http://there'>x</a>\n\n"
    '$\\newcommand{\\max}{X}\\href{javascript:alert(1)}{y}\\mmlToken{mi}[href="javascript:alert(1)"]{x}'
    "\\kern-99em\\text{over}$ and $$" + "x+" * 300 + "x$$",
    "s03": "",
    "s04": "The loss is monotone.",
}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Server]:
    there = made_course(tmp_path / "fall27", WORDS)
    server = serve(Desk(course.Course.open(there, HERE), "ana"))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(chromium: Browser, desk: Server) -> Iterator[Page]:
    """A page that must not err, nor ask another host."""
    wrong: list[str] = []
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    here = (f"http://127.0.0.1:{desk.server_port}/", "data:")
    found.on("request", lambda one: one.url.startswith(here) or wrong.append(one.url))
    found.on("console", lambda told: wrong.append(told.text))
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    found.goto(desk.address)
    yield found
    context.close()
    assert not wrong, "\n".join(wrong)


def ready(page: Page, where: str) -> str:
    """The next page, with its formulas set; gives its address."""
    page.wait_for_function("(old) => location.href !== old && document.body.dataset.typeset === ''",
                           arg=where)  # fmt: skip
    return page.url


def faults(page: Page) -> list[str]:
    """What axe finds; MathJax's own nodes are not looked at."""
    told = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in told.response["violations"]]


def test_three_answers_are_marked_by_keys(page: Page, desk: Server) -> None:
    seen = []
    page.keyboard.press("Enter")
    where = ready(page, desk.address)
    for keys in ("1124", "a", "3"):
        seen.append(page.text_content("h1"))
        for key in keys:
            page.keyboard.press(key)
        if keys == "3":
            page.keyboard.press("c")
            page.keyboard.type("1 a 0 n?")
            page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        if keys != "3":
            where = ready(page, where)
    page.wait_for_url(desk.address)
    assert page.inner_text("strong") == "All is marked."
    told = {one.place[0]: one for one in desk.desk.view().answers.values()}
    called = {one.alias: student for student, one in told.items()}
    outcomes = marking.outcomes(desk.desk.course)
    found = [outcomes[called[alias], NAME, PROBLEM] for alias in seen]
    assert [[part.points for part in one.parts] for one in found] == [
        [1, 2, 0, 1], [2, 2, 1, 1], [0, 0, 1, 0],
    ]  # fmt: skip
    assert found[2].comment == "1 a 0 n?"
    assert outcomes["s03", NAME, PROBLEM].state == "blank"


@pytest.mark.long
def test_hostile_words_stay_in_their_box(page: Page, desk: Server) -> None:
    view = desk.desk.view()
    answer = view.answers["s02", NAME, PROBLEM]
    page.goto(desk.address.removesuffix(desk.desk.address()) + desk.desk.address(answer))
    page.wait_for_selector("body[data-typeset]")
    assert page.locator("main a:not(.steps a)").count() == 0
    assert page.locator(".prose img, .prose script, [onerror]").count() == 0
    assert page.locator(".prose mjx-container").count() == 2
    box, over = page.locator(".prose").bounding_box(), page.locator("fieldset legend").first
    assert page.evaluate("getComputedStyle(document.querySelector('.prose')).contain") == "content"
    spot = over.bounding_box()
    top = page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('.prose') === null",
                        [spot["x"] + 5, spot["y"] + 5])  # fmt: skip
    assert top
    assert box["width"] < 1280
    page.keyboard.press("m")
    model = page.locator("details[data-fold=m]")
    assert model.get_attribute("open") is not None


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_anybody_can_use_it(page: Page, desk: Server, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    assert not faults(page)
    answer = desk.desk.view().answers["s02", NAME, PROBLEM]
    for settle in (False, True):
        where = desk.desk.address(answer, settle)
        page.goto(desk.address.removesuffix(desk.desk.address()) + where)
        page.wait_for_selector("body[data-typeset]")
        for key in ("a", "m", "t"):
            page.keyboard.press(key)
        page.wait_for_selector("#said:text-is('Saved.')")
        assert not faults(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        marking.keep(desk.desk.course, "bo", answer.place, given(desk, answer), settle=False)
    page.goto(desk.address + "differ")
    assert not faults(page)


def given(desk: Server, answer: marking.Answer) -> marking.Given:
    """Marks of somebody else."""
    scheme = desk.desk.view().scheme(answer)
    items: list[float | None] = [0.0, 0.0, 0.0, 0.0]
    return marking.Given(items, None, "no", answer.of, scheme.shape)
