"""Every explorable by mouse, touch and keyboard; what it says is what attnlab computes."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from attnbook import widgets

SHOWN = {"bet": -1, "open": 2}  # questions are answered, or shown without an answer
HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
BUILT = sorted((HTML / "book").rglob("*.html")) if HTML.is_dir() else []


def home(name: str) -> str:
    """The first page that carries an explorable."""
    for path in BUILT:
        if f'data-explorable="{name}"' in path.read_text(encoding="utf-8"):
            return path.relative_to(HTML).as_posix()
    raise AssertionError(f"no page shows {name}")


TOLD = ".al-told, .al-verdict p"  # what is said of the answer
OTHERS = ("Explorable", "tell")  # no explorables themselves
NAMES = [getattr(widgets, name).name for name in widgets.__all__ if name not in OTHERS]


def start(open_page, name: str, query: str = "", chapter: bool = False, **how: Any):
    """An explorable alone, or in its chapter; `test_pages` opens every chapter as it is."""
    state = json.loads(unquote(query.partition("=")[2] or "{}"))
    query = f"?{name}={quote(json.dumps({**SHOWN, **state}))}"
    page = open_page(home(name) + query, typeset=False, only="" if chapter else name, **how)
    selector = f'[data-explorable="{name}"]'
    page.locator(selector).first.scroll_into_view_if_needed()
    page.wait_for_selector(f"{selector}[data-ready]", timeout=60_000)
    running = f"{selector}[data-done='false']"  # a lab trains over frames
    page.wait_for_selector(running, state="detached", timeout=60_000)
    return page, page.locator(selector).first


def readout(root) -> str:
    return root.locator(".al-readout").inner_text()


def settled(page) -> None:
    """Two frames, and the state's way into the address; a lab that trains comes to its end."""
    page.evaluate(
        """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
          setTimeout(done, 120))))"""
    )
    page.wait_for_selector("[data-done='false']", state="detached", timeout=60_000)


@pytest.mark.parametrize("name", NAMES)
def test_keyboard_changes_what_is_said(open_page, name: str) -> None:
    """Tab reaches a control, arrow keys move it, the read-out follows; reset brings it back."""
    page, root = start(open_page, name)
    before = readout(root)
    controls = root.locator(
        '[tabindex="0"][role], input[type="range"]:enabled:visible, .al-grip:visible'
    )
    if not controls.count():
        controls = root.locator('button[data-value][aria-pressed="false"]:visible')
    keys = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Enter")
    for k, key in itertools.product(range(min(2, controls.count())), keys):
        controls.nth(k).focus()  # a slider may stand at one end, a button may be chosen already
        page.keyboard.press(key)
        settled(page)
        if readout(root) != before:
            break
    changed = readout(root)
    assert changed != before
    page.wait_for_timeout(600)
    assert root.locator('.al-hidden[aria-live="polite"]').inner_text(), (
        "assistive technology hears it"
    )
    root.get_by_role("button", name="Reset").click()
    settled(page)
    assert readout(root) == before


@pytest.mark.parametrize("name", NAMES)
def test_the_address_restores_the_state(open_page, name: str) -> None:
    page, root = start(open_page, name)
    control = root.locator(
        'input[type="range"]:enabled:visible, '
        'button[data-value]:not([aria-pressed="true"]):visible, [role="button"]'
    ).first
    if control.get_attribute("type") == "range":
        control.focus()
        at_its_end = control.input_value() == (control.get_attribute("min") or "0")
        for _ in range(2):
            page.keyboard.press("ArrowRight" if at_its_end else "ArrowLeft")
    else:
        control.click()
    if root.locator("[data-bet]").count():
        root.locator("[data-bet]").first.click()
    settled(page)
    said, told = readout(root), root.locator(TOLD).all_inner_texts()
    assert f"{name}=" in page.url
    query = page.url[page.url.index("?") :].split("#")[0]
    again, other = start(open_page, name, query)
    settled(again)
    assert readout(other) == said
    assert other.locator(TOLD).all_inner_texts() == told


# Every control at its ends and between: a number without a value must not reach a picture.
EVERY_STOP = """async (name) => {
  const el = document.querySelector(`[data-explorable="${name}"]`);
  const wrong = [];
  const look = async (what) => {
    const limit = performance.now() + 60000;
    while (!el.alDrawn() || el.dataset.done === "false") {
      if (performance.now() > limit) throw new Error(`not drawn in a minute: ${what}`);
      await new Promise((done) => setTimeout(done, 4));
    }
    const shown = el.outerHTML.replace(/<pre[^]*?<\\/pre>| data-[a-z]+="[^"]*"/g, "");
    const seen = shown.match(/.{30}(NaN|undefined|Infinity).{30}/);
    if (seen) wrong.push(`${what}: ${seen[0]}`);
  };
  const began = { ...el.alState };
  const sliders = [...el.querySelectorAll('input[type="range"]:not(:disabled)')];
  for (const key of new Set(sliders.map((one) => one.dataset.key))) {
    const slider = () => el.querySelector(`input[data-key="${key}"]`);
    const most = slider() ? Number(slider().max) : 0;
    const by = Math.max(1, Math.floor(most / 12));
    for (let k = 0; k <= most; k += Math.max(1, Math.min(by, most - 6 - k))) { // the last few
      if (!slider()) break; // another control's doing
      slider().value = k;
      slider().dispatchEvent(new Event("input", { bubbles: true }));
      await look(`${key} at stop ${k}`);
    }
    el.dispatchEvent(new CustomEvent("al-state", { detail: began }));
    await look(`${key} as it was`);
  }
  const buttons = [...el.querySelectorAll("button[data-key][data-value]")];
  for (const { key, value } of buttons.map((one) => one.dataset)) {
    el.querySelector(`button[data-key="${key}"][data-value="${value}"]`)?.click();
    await look(`${key}: ${value}`);
  }
  return wrong;
}"""


@pytest.mark.parametrize("name", NAMES)
def test_every_stop_has_a_picture(open_page, name: str) -> None:
    page, _ = start(open_page, name, width=390)
    assert not page.evaluate(EVERY_STOP, name)


@pytest.mark.parametrize("name", NAMES)
def test_touch_and_mouse(open_page, name: str) -> None:
    """A finger on a phone, and a mouse, move the first thing that can be moved."""
    for how in ({"width": 390, "has_touch": True}, {"width": 1280}):
        page, root = start(open_page, name, chapter=True, **how)
        before = readout(root)
        handle = root.locator('.al-handle[role="slider"]')
        if handle.count():
            handle.first.scroll_into_view_if_needed()
            box = handle.first.locator(".al-reach").bounding_box()
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            drag(page, root, x, y, 25, -40, "has_touch" in how)
        elif root.locator('.al-handle[role="button"]').count():
            target = root.locator('.al-handle[role="button"]').first
            target.scroll_into_view_if_needed()
            target.tap() if "has_touch" in how else target.click()
        elif root.locator(".al-grip:visible").count():
            grip = root.locator(".al-grip:visible").first
            grip.scroll_into_view_if_needed()
            box = grip.bounding_box()
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            drag(page, root, x, y, 25, -40, "has_touch" in how)
        elif not root.locator('input[type="range"]').count():
            target = root.locator('button[data-value][aria-pressed="false"]:visible').first
            target.scroll_into_view_if_needed()
            target.tap() if "has_touch" in how else target.click()
        else:
            slider = root.locator('input[type="range"]').first
            slider.scroll_into_view_if_needed()
            box = slider.bounding_box()
            there = slider.evaluate("(el) => (el.value - el.min) / (el.max - el.min)")
            share = 0.96 if there < 0.1 else 0.04  # away from where it stands
            x, y = box["x"] + share * box["width"], box["y"] + box["height"] / 2
            if "has_touch" in how:
                page.touchscreen.tap(x, y)
            else:
                page.mouse.click(x, y)
        limit = time.monotonic() + 10
        while readout(root) == before and time.monotonic() < limit:
            settled(page)
        assert readout(root) != before, how


def drag(page, root, x: float, y: float, dx: float, dy: float, touch: bool) -> None:
    if not touch:
        page.mouse.move(x, y)
        page.mouse.down()
        for k in range(1, 6):
            page.mouse.move(x + dx * k / 5, y + dy * k / 5)
        page.mouse.up()
        return
    client = page.context.new_cdp_session(page)
    point = [{"x": x, "y": y}]
    client.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": point})
    for k in range(1, 6):
        point = [{"x": x + dx * k / 5, "y": y + dy * k / 5}]
        client.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": point})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def state_of(page, name: str) -> dict[str, Any]:
    """What the address says, over the module's own start."""
    found = page.evaluate(
        """async ([name]) => {
          const root = new URL("../".repeat(document.body.dataset.depth || 1), document.baseURI);
          const text = new URLSearchParams(location.search).get(name) || "{}";
          return JSON.parse(text);
        }""",
        [name],
    )
    return dict(found)


def test_two_norms_swap(open_page) -> None:
    _, root = start(open_page, "two_norms")
    (w_fro, w_nuc), (kq_fro, kq_nuc) = json.loads(root.get_attribute("data-correlations"))
    assert w_fro > 0.985
    assert kq_nuc > 0.985
    assert w_nuc == pytest.approx(0.86, abs=0.04)
    assert kq_fro == pytest.approx(0.86, abs=0.04)


def test_how_often_is_the_stored_sweep(open_page) -> None:
    _, root = start(open_page, "how_often")
    found = widgets.stored.load("how_often")
    kind = found["kind"][list(found["n"]).index(5), list(found["T"]).index(5), :, :, 0]
    expected = (kind == 2).mean(axis=-1)
    shown = json.loads(root.get_attribute("data-global"))
    assert shown == pytest.approx(expected, abs=1e-6)
    cell = list(found["n"]).index(5), list(found["T"]).index(5)
    exact, proxy = (found[name][cell].mean(axis=-1) for name in ("exact", "support"))
    assert json.loads(root.get_attribute("data-exact")) == pytest.approx(exact, abs=1e-6)
    assert exact[-1] < 0.05 < 0.9 < proxy[-1], "what was called B.1 is not B.1"
    assert f"B.1 itself holds in {100 * exact[-1]:.1f} %" in readout(root)
    n, T = list(found["n"]), list(found["T"])
    at_4 = (found["kind"][..., list(found["d"]).index(4), :, 0] == 2).mean(axis=-1)
    few, many = at_4[n.index(10), T.index(3)], at_4[n.index(5), T.index(10)]
    assert few < many, "fewer constraints, and yet less often global"
    assert "the paper's proxy" in root.inner_text()
    assert expected[-1] > 0.95 > 0.5 > expected[0]


def test_reduced_motion_jumps_to_the_end(open_page) -> None:
    page, root = start(open_page, "two_norms", reduced_motion="reduce")
    slider = root.locator('input[type="range"]')
    slider.focus()
    page.keyboard.press("Home")
    root.get_by_role("button", name="Play").click()
    settled(page)
    assert int(slider.input_value()) == int(slider.get_attribute("max"))


def test_events_of_one_frame_are_drawn_once(open_page) -> None:
    """However many arrive; ``benchmarks/drag.py`` measures what a drawing costs."""
    page, root = start(open_page, "token_board")
    before = int(root.get_attribute("data-draws"))
    root.locator('[data-handle="x00"]').evaluate(
        """(node) => {
          for (let k = 0; k < 50; k++) {
            node.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
          }
        }"""
    )
    settled(page)
    assert 1 <= int(root.get_attribute("data-draws")) - before <= 3
    moved = state_of(page, "token_board")["X"][0][0][0]
    assert moved == pytest.approx(-2.0), "fifty steps to the left end at the border"
