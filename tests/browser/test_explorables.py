"""Every explorable by mouse, touch and keyboard; what it says is what attnlab computes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import theory, widgets
from attnlab import models, optim, problems, svm

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
BUILT = sorted((HTML / "book").rglob("*.html")) if HTML.is_dir() else []


def home(name: str) -> str:
    """The first page that carries an explorable."""
    for path in BUILT:
        if f'data-explorable="{name}"' in path.read_text(encoding="utf-8"):
            return path.relative_to(HTML).as_posix()
    raise AssertionError(f"no page shows {name}")


NAMES = [getattr(widgets, name).name for name in widgets.__all__ if name != "Explorable"]


def start(open_page, name: str, query: str = "", chapter: bool = False, **how: Any):
    """An explorable alone, or in its chapter; `test_pages` opens every chapter as it is."""
    page = open_page(home(name) + query, typeset=False, only="" if chapter else name, **how)
    selector = f'[data-explorable="{name}"]'
    page.locator(selector).first.scroll_into_view_if_needed()
    page.wait_for_selector(f"{selector}[data-ready]", timeout=60_000)
    return page, page.locator(selector).first


def readout(root) -> str:
    return root.locator(".al-readout").inner_text()


def settled(page) -> None:
    """Two frames, and the state's way into the address; on a busy machine frames come late."""
    page.evaluate(
        """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
          setTimeout(done, 120))))"""
    )


@pytest.mark.parametrize("name", NAMES)
def test_keyboard_changes_what_is_said(open_page, name: str) -> None:
    """Tab reaches a control, arrow keys move it, the read-out follows; reset brings it back."""
    page, root = start(open_page, name)
    before = readout(root)
    controls = root.locator('[tabindex="0"][role], input[type="range"]')
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
    assert root.locator('[aria-live="polite"]').inner_text(), "assistive technology hears it"
    root.get_by_role("button", name="Reset").click()
    settled(page)
    assert readout(root) == before


@pytest.mark.parametrize("name", NAMES)
def test_the_address_restores_the_state(open_page, name: str) -> None:
    page, root = start(open_page, name)
    control = root.locator('input[type="range"], button[data-value], [role="button"]').first
    if control.get_attribute("type") == "range":
        control.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
    else:
        control.click()
    root.locator("[data-bet]").first.click()
    settled(page)
    said, told = readout(root), root.locator(".al-told").inner_text()
    assert f"{name}=" in page.url
    query = page.url[page.url.index("?") :].split("#")[0]
    again, other = start(open_page, name, query)
    settled(again)
    assert readout(other) == said
    assert other.locator(".al-told").inner_text() == told


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
        else:
            slider = root.locator('input[type="range"]').first
            slider.scroll_into_view_if_needed()
            box = slider.bounding_box()
            x, y = box["x"] + 0.04 * box["width"], box["y"] + box["height"] / 2
            if "has_touch" in how:
                page.touchscreen.tap(x, y)
            else:
                page.mouse.click(x, y)
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


def test_token_board_says_what_attnlab_computes(open_page) -> None:
    page, root = start(open_page, "token_board")
    handle = root.locator('[data-handle="x00"]')
    handle.focus()
    for key in ("Shift+ArrowRight", "ArrowUp", "ArrowUp", "Shift+ArrowDown"):
        page.keyboard.press(key)
    settled(page)
    state = {**widgets.token_board.DEFAULT, **state_of(page, "token_board")}
    problem = problems.TokenProblem(**{k: np.array(state[k], float) for k in ("X", "z", "y", "v")})
    margin = svm.attention_svm(problem)
    rule = optim.NormalizedGD(0.1)
    run = optim.train(models.Attention(start="zero"), problem, rule, steps=240)
    expected = float(svm.correlation(run.params["W"], margin.W))
    assert float(root.get_attribute("data-cosine")) == pytest.approx(expected, abs=1e-9)
    assert f"the margin is {1 / margin.norm:.3f}" in readout(root)
    assert root.get_attribute("data-status") == "optimal"


@pytest.mark.parametrize("form", ["W", "KQ"])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_token_board_rings_belong_to_the_norm_in_training(open_page, form: str, seed: int) -> None:
    """Margin, number and place of the support tokens: with K and Q those of the nuclear norm."""
    state: dict[str, Any] = {key: widgets.token_board.DEFAULT[key] for key in ("X", "z", "y", "v")}
    if seed is not None:
        rng = np.random.default_rng(seed)
        for key in ("X", "z"):
            moved = np.array(state[key]) + 0.2 * rng.standard_normal(np.shape(state[key]))
            state[key] = moved.round(3).tolist()
    problem = problems.TokenProblem(**{k: np.array(state[k], float) for k in ("X", "z", "y", "v")})
    margin = svm.attention_svm(problem, norm="nuc" if form == "KQ" else "fro")
    query = json.dumps({**state, "form": form, "t": 10})
    _, root = start(open_page, "token_board", f"?token_board={query}")
    assert json.loads(root.get_attribute("data-support")) == margin.support.tolist()
    assert root.locator(".al-handle.al-glow").count() == margin.support.sum()
    assert float(root.get_attribute("data-margin")) == pytest.approx(1 / margin.norm, rel=1e-6)
    told = readout(root)
    name = "nuclear" if form == "KQ" else "Frobenius"
    assert f"In the {name} norm the margin is {1 / margin.norm:.3f}" in told
    assert f"with {margin.support.sum()} support tokens" in told
    assert "After 10 steps" in told, "what is said is said of the step shown"
    if form == "KQ":
        K = np.array([[0.1, 0.02], [-0.03, 0.1]])
        Q = np.array([[0.1, -0.02], [0.03, 0.1]])
        model, rule = models.Attention(factors=2), optim.NormalizedGD(0.05)
        run = optim.train(model, problem, rule, 10, params={"K": K, "Q": Q})
        W = run.params["K"] @ run.params["Q"].T
        expected = float(svm.correlation(W, margin.W))
        assert float(root.get_attribute("data-cosine")) == pytest.approx(expected, abs=1e-5)


def test_the_two_norms_of_the_board_have_other_support_tokens() -> None:
    """Otherwise the test above could not tell one from the other."""
    problem = widgets.TokenBoard().problem
    found = [svm.attention_svm(problem, norm=norm) for norm in ("fro", "nuc")]
    assert [int(margin.support.sum()) for margin in found] == [2, 3]
    assert [round(float(1 / margin.norm), 3) for margin in found] == [0.786, 0.612]


def test_token_board_shows_infeasible_as_such(open_page) -> None:
    """Tokens of one sequence in one point cannot be told apart."""
    flat = {"X": [[[1, 0.5], [1, 0.5], [1, 0.5]], [[0.9, 1], [-0.5, -0.8], [-1.1, 0.3]]]}
    _, root = start(open_page, "token_board", f"?token_board={json.dumps(flat)}")
    assert root.get_attribute("data-status") == "infeasible"
    assert "infeasible" in readout(root)


def test_pick_token_agrees_about_local_optimality(open_page) -> None:
    board = widgets.PickToken()
    for pick in ([0, 0], [1, 0], [2, 0], [0, 2], [1, 2], [2, 2]):
        found = svm.locally_optimal(board.problem, np.array(pick))
        query = f"?pick_token={json.dumps({'pick': pick})}"
        _, root = start(open_page, "pick_token", query)
        assert root.get_attribute("data-local") == str(bool(found.as_printed)).lower()


@pytest.mark.parametrize("c", [0.5, 1, 1.5, 3])
def test_pick_token_at_short_lengths(open_page, c: float) -> None:
    """From a short start a locally optimal selection is left for a token without a ring."""
    problem, pick = widgets.PickToken().problem, [1, 0]
    found = svm.locally_optimal(problem, np.array(pick))
    begin = {"W": c * found.margin.W / found.margin.norm}
    rule, model = optim.NormalizedGD(0.1), models.Attention()
    run = optim.train(model, problem, rule, 400, params=begin, every=400)
    ended = model.attention(run.params, problem).argmax(axis=-1)
    stays = (ended == pick).all()
    query = json.dumps({"pick": pick, "c": c, "bet": 1})
    _, root = start(open_page, "pick_token", f"?pick_token={query}")
    assert root.get_attribute("data-stays") == str(bool(stays)).lower()
    assert root.get_attribute("data-local") == "true"
    assert ("tokens without a ring pull as well" in readout(root)) is not bool(stays)
    assert stays == (c > 1)
    if not stays:
        assert not found.neighbours[1, ended[1]], "the token that won has no ring"
    told = root.locator(".al-told").inner_text()
    assert "Far out only support tokens" in told
    assert "From a short start every token still pulls" in told


@pytest.mark.parametrize(("c", "good"), [(0.1, True), (0.3, True), (0.5, False), (1.0, False)])
def test_fate_of_start_flips_between_3_and_5_tenths(open_page, c: float, good: bool) -> None:
    _, root = start(open_page, "fate_of_start", f"?fate_of_start={json.dumps({'c': c})}")
    found = float(root.get_attribute("data-good"))
    assert (found > 0.99) is good
    problem = problems.bad_direction()
    wrong = svm.attention_svm(problem, np.array([1, 1]))
    model, start_at = models.Attention(start="zero"), {"W": c * wrong.W / wrong.norm}
    run = optim.train(model, problem, optim.GD(0.05), 19330, params=start_at, every=19330)
    expected = float(svm.correlation(run.params["W"], svm.attention_svm(problem).W))
    assert found == pytest.approx(expected, abs=1e-6)


def test_water_filling_is_lemma_6(open_page) -> None:
    _, root = start(open_page, "water_filling", f"?water_filling={json.dumps({'lambda': 0.7})}")
    expected = theory.svm.water_filling([1, 0.8, 0.55, 0.3, 0], 0.7)
    assert json.loads(root.get_attribute("data-weights")) == pytest.approx(expected, abs=1e-9)
    assert "softmax weight" not in root.inner_text(), "a softmax weight is never 0"


@pytest.mark.parametrize(
    ("gamma", "empty"), [([1, 0.8, 0.55, 0.3, 0], False), ([1, 0.2, 0.1, 0.05, 0], True)]
)
def test_water_filling_says_where_the_printed_range_is_empty(
    open_page, gamma: list[float], empty: bool
) -> None:
    query = json.dumps({"gamma": gamma, "tau": 2})
    _, root = start(open_page, "water_filling", f"?water_filling={query}")
    low, high = theory.svm.thresholds(gamma, tokens=2, printed=True)
    assert bool(low >= high) is empty
    assert ("The printed range is empty" in readout(root)) is empty


def test_finite_part_keeps_the_shares(open_page) -> None:
    shares, masked = [], []
    for R in (2, 30):
        _, root = start(open_page, "finite_part", f"?finite_part={json.dumps({'R': R})}")
        shares.append(root.get_attribute("data-shares"))
        masked.append(float(root.get_attribute("data-masked")))
    assert shares[0] == shares[1] == "0.700 : 0.300;0.400 : 0.600"
    assert masked[1] < 1e-4 * masked[0]


def test_two_norms_swap(open_page) -> None:
    _, root = start(open_page, "two_norms")
    (w_fro, w_nuc), (kq_fro, kq_nuc) = json.loads(root.get_attribute("data-correlations"))
    assert w_fro > 0.985
    assert kq_nuc > 0.985
    assert w_nuc == pytest.approx(0.86, abs=0.04)
    assert kq_fro == pytest.approx(0.86, abs=0.04)


def test_arithmetic_parts(open_page) -> None:
    _, root = start(open_page, "arithmetic")
    published, exact = json.loads(root.get_attribute("data-angles"))
    assert exact < 1e-4 < 1e-3 < published


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
    root.locator("[data-bet]").first.click()
    told = f"{100 * few:.0f} % against {100 * many:.0f} % global"
    root.get_by_text(told).first.wait_for(timeout=5000)  # the answer is drawn after the click
    legend = root.inner_text()
    assert "proxy of B.1" in legend
    assert "all tokens support (B.1)" in legend
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
