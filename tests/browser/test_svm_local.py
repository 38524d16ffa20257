"""The page "Staying at a worse token": pictures and derivation say what attnlab computes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from attnbook import theory, widgets
from attnlab import models, optim, svm

PROBLEM = widgets.PickToken().problem
KERNEL = """async ([site, picks, places]) => {
  const local = await import(`${site}/explorables/kit/local.js`);
  const problem = local.problemOf(local.FIVE.X[0]);
  const constants = picks.map((pick) => {
    const goal = local.selected(problem, [pick]);
    return { ...local.localConstants(problem, [pick], goal), u: goal.u };
  });
  return { constants, ends: places.map(([x, y]) => local.endsAt(problem, x, y)) };
}"""
JUDGE = """async ([site, states]) => {
  const { default: walk } = await import(`${site}/explorables/derivations/svm-theorem-7.js`);
  return states.map((state) => {
    const { situation, results, failed } = walk.judge({ ...walk.defaults, ...state });
    return { situation, results, failed };
  });
}"""


@pytest.fixture
def shown(open_page):
    """``shown("pick_token", {"pick": 3})``: alone, as this page shows it."""

    def visit(name: str, state: dict[str, Any] | None = None, **how: Any):
        query = f"?{name}={quote(json.dumps(state))}" if state else ""
        page = open_page(f"book/svm/local.html{query}", typeset=False, only=name, **how)
        mark = f'[data-explorable="{name}"]'
        page.wait_for_selector(f"{mark}[data-ready]", timeout=60_000)
        return page, page.locator(mark).first

    return visit


def ended(start: np.ndarray, steps: int, size: float) -> np.ndarray:
    model = models.Attention()
    rule = optim.NormalizedGD(size)
    run = optim.train(model, PROBLEM, rule, steps, params={"W": start}, every=steps)
    return model.attention(run.params, PROBLEM)[0]


def column(u: Any) -> np.ndarray:
    return np.array([[u[0], 0.0], [u[1], 0.0]])


@pytest.mark.parametrize("pick", range(5))
def test_only_two_tokens_hold(shown, pick: int) -> None:
    found = svm.locally_optimal(PROBLEM, [pick])
    _, root = shown("pick_token", {"pick": pick, "c": 12, "k": 240, "open": 2})
    assert root.get_attribute("data-local") == str(bool(found.as_printed)).lower()
    seen = ended(12 * found.margin.W / found.margin.norm, 240, 0.2)
    np.testing.assert_allclose(json.loads(root.get_attribute("data-attention")), seen, atol=1e-6)
    assert root.get_attribute("data-stays") == str(seen.argmax() == pick).lower()
    assert (seen.argmax() == pick) == (pick in (2, 3))


@pytest.mark.parametrize(("c", "stays"), [(3, False), (5, False), (6, True)])
def test_a_short_start_loses_even_a_locally_optimal_token(shown, c: float, stays: bool) -> None:
    _, root = shown("pick_token", {"pick": 3, "c": c, "k": 240, "open": 2})
    assert root.get_attribute("data-stays") == str(stays).lower()
    margin = svm.attention_svm(PROBLEM, [3])
    assert (ended(c * margin.W / margin.norm, 240, 0.2).argmax() == 3) == stays
    assert ("too short" in root.locator(".al-readout").inner_text()) is not stays


def test_nothing_is_told_before_the_answer(shown) -> None:
    page, root = shown("pick_token", {"k": 240, "pick": 3})
    assert root.get_attribute("data-sealed") == "true"
    for name in ("local", "stays", "attention"):
        assert root.get_attribute(f"data-{name}") is None
    assert root.locator("[data-mark~=rival]").count() == 0
    words = page.content()
    assert "locally optimal" not in words
    assert "token 5, which scores even less" not in words


def test_a_reader_answers_by_keyboard(shown) -> None:
    page, root = shown("pick_token")
    root.locator("[data-handle=x3]").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.search.includes('pick')")
    root.locator("input[value=second]").focus()
    page.keyboard.press("Space")
    root.locator(".al-number-ask input").focus()
    page.keyboard.press("ArrowRight")
    root.locator("[data-go]:enabled").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-explorable="pick_token"][data-sealed="false"]')
    words = root.locator(".al-verdict").inner_text()
    assert "That is the score" in words
    assert "Token 4 holds" in words


@pytest.mark.parametrize("u", [(-3.6, 4.4), (-6, 4.6), (4.0, -3.0), (-9.0, -4.0)])
def test_the_map_of_starts(shown, u: tuple[float, float]) -> None:
    _, root = shown("start_map", {"u": u, "open": 2})
    end = ended(column(u), 400, 0.25).argmax()
    assert root.get_attribute("data-end") == str(end)


def test_the_map_is_drawn_after_the_answer(shown) -> None:
    page, root = shown("start_map")
    assert root.get_attribute("data-sealed") == "true"
    assert root.get_attribute("data-end") is None
    assert (
        root.locator("svg rect.al-fill-best[height]").count()
        == root.locator(".al-bars rect.al-fill-best").count()
    )
    root.locator(".al-number-ask input").focus()
    page.keyboard.press("ArrowLeft")
    root.locator("[data-go]:enabled").click()
    page.wait_for_function("() => document.querySelector('[data-filled]')?.dataset.filled > 1800")
    assert "end on token 4" in root.locator(".al-verdict").inner_text()


def test_kernels_agree_with_attnlab(open_page, site) -> None:
    page = open_page("404.html")
    rng = np.random.default_rng(0)
    places = rng.uniform(-11, 11, (12, 2)).tolist()
    found = page.evaluate(KERNEL, [site, [2, 3], places])
    for pick, got in zip((2, 3), found["constants"], strict=True):
        margin = svm.attention_svm(PROBLEM, [pick])
        own = theory.svm.local_constants(PROBLEM, margin.W, [pick])
        np.testing.assert_allclose(got["u"], margin.W[:, 0], atol=1e-7)
        for name in ("delta", "reach", "mu", "span", "gap", "norm", "radius"):
            assert got[name] == pytest.approx(float(getattr(own, name)), rel=1e-6)
    for place, end in zip(places, found["ends"], strict=True):
        assert ended(column(place), 600, 0.1).argmax() == end


def test_theorem_7_has_the_numbers_of_the_ledger(open_page, site) -> None:
    page, model = open_page("404.html"), models.Attention()
    states = [{"length": 1.2, "off": 0.8}, {"length": 1, "off": -1}, {"length": 3, "off": 0}]
    margin = svm.attention_svm(PROBLEM, [3])
    for got in page.evaluate(JUDGE, [site, states]):
        assert got["failed"] is None
        here = got["situation"]
        W, V = column(here["u"]), column(here["V"])
        _, grad, scale = model.scaled_grad({"W": W}, PROBLEM)
        push = -float((grad["W"] * V).sum() * np.exp(scale))
        s = model.attention({"W": W}, PROBLEM)
        slopes = 1 / (1 + np.exp(PROBLEM.y * model.forward({"W": W}, PROBLEM)))
        low, high = theory.svm.lemma_13_bounds(PROBLEM, margin.W, s, slopes, [3])
        rows = got["results"][2]["rows"]
        assert rows[0][1] == pytest.approx(push, rel=1e-6)
        assert rows[0][2] == pytest.approx(float(low), rel=1e-6)
        assert rows[1][2] == pytest.approx(float(high), rel=1e-6)
        assert low <= push <= high
        leads = theory.svm.token_margins(PROBLEM, V, [3])[0]
        np.testing.assert_allclose(here["vMargins"][0], leads, atol=1e-6)


def centre(grip) -> tuple[float, float]:
    box = grip.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_press_selects_a_token_and_a_drag_moves_it(shown) -> None:
    """As "Break it" asks: token 4 stays selected while token 5 is dragged above its score."""
    page, root = shown("pick_token", {"pick": 3, "c": 12, "k": 240, "open": 2})
    assert root.get_attribute("data-local") == "true"
    x, y = centre(root.locator("[data-handle=x4]"))
    page.mouse.move(x, y)
    page.mouse.down()
    for part in (0.5, 1.0):
        page.mouse.move(x, y + part * (centre(root.locator("[data-handle=x3]"))[1] - y))
    page.mouse.up()
    assert root.get_attribute("data-pick") == "3", "the drag selected another token"
    assert root.get_attribute("data-local") == "false"
    assert root.locator(".al-readout").inner_text().startswith("Token 4 scores")
    page.mouse.click(*centre(root.locator("[data-handle=x4]")))
    assert root.get_attribute("data-pick") == "4"


def test_the_cone_promises_no_more_than_the_theorem(shown, open_page, site) -> None:
    """From R of (74) on the cone holds no rest; staying is proven from Lemma 14's radius on."""
    margin = svm.attention_svm(PROBLEM, [3])
    cone = theory.svm.local_constants(PROBLEM, margin.W, [3])
    script = """async (site) => {
      const local = await import(`${site}/explorables/kit/local.js`);
      const problem = local.problemOf(local.FIVE.X[0]);
      const cone = local.localConstants(problem, [3], local.selected(problem, [3]));
      return [1, 0.5, 0.1].map((part) => local.stayRadius(problem, cone, part * cone.mu));
    }"""
    for part, got in zip((1, 0.5, 0.1), open_page("404.html").evaluate(script, site), strict=True):
        epsilon = part * float(cone.mu)
        own = theory.svm.lemma_14_radius(PROBLEM, cone, epsilon / (1 - epsilon))
        assert got == pytest.approx(float(own), rel=1e-5)
        assert got > 1e6 * cone.radius
    size = 1.1 * float(cone.radius)
    u = (size * margin.W[:, 0] / margin.norm).round(2).tolist()
    _, root = shown("start_map", {"u": u, "scale": "far", "open": 2})
    assert root.get_attribute("data-inside") == "true"
    words = root.inner_text()
    assert "inside the cone without a place of rest" in words
    assert "never leaves it is proven from length 3.4 · 10⁸ on" in words
    assert "no rest here" in root.locator("svg").first.inner_html()
    for promise in ("sure of", "sure to", ">proven<"):
        assert promise not in root.inner_html(), promise
