"""The page "Where gradient descent really goes": its two pictures say what attnlab computes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from attnbook import theory, widgets
from attnlab import curvature, models, optim, problems, svm

PROBLEM = widgets.FirstStep().problem
JUDGE = """async ([site, states]) => {
  const { default: walk } = await import(`${site}/explorables/derivations/svm-theorem-3.js`);
  return states.map((state) => {
    const { situation, results, failed } = walk.judge({ ...walk.defaults, ...state });
    return { situation, results, failed };
  });
}"""
KERNEL = """async ([site, problem, places]) => {
  const kit = await import(`${site}/explorables/kit/prompt.js`);
  return places.map((u) => {
    const { parts, sum, logScale, slopes } = kit.push(problem, u);
    const end = kit.follow(problem, u, 0.1, 40)[40];
    return { parts, sum, logScale, slopes, s: kit.attentionAt(problem, u), end };
  });
}"""


@pytest.fixture
def shown(open_page):
    """``shown("first_step", {"k": 3})``: alone, as this page shows it."""

    def visit(name: str, state: dict[str, Any] | None = None, **how: Any):
        query = f"?{name}={quote(json.dumps(state))}" if state else ""
        page = open_page(f"book/svm/descent.html{query}", typeset=False, only=name, **how)
        mark = f'[data-explorable="{name}"]'
        page.wait_for_selector(f"{mark}[data-ready]", timeout=60_000)
        return page, page.locator(mark).first

    return visit


def column(u: Any) -> np.ndarray:
    return np.array([[u[0], 0.0], [u[1], 0.0]])


def first_way() -> np.ndarray:
    step = -models.Attention().value_and_grad({"W": column((0, 0))}, PROBLEM)[1]["W"]
    return step / np.linalg.norm(step)


def test_the_plane_of_one_query_is_that_of_attnlab(open_page, site) -> None:
    rng, model = np.random.default_rng(0), models.Attention()
    page = open_page("404.html")
    for case in range(12):
        n, T = (3, 2) if case % 2 else (2, 4)
        problem = problems.TokenProblem(
            X=rng.standard_normal((n, T, 2)), z=[[1.0, 0.0]] * n,
            y=rng.choice([-1.0, 1.0], n), v=rng.standard_normal(2),
        )  # fmt: skip
        places = (rng.standard_normal((5, 2)) * 10.0 ** rng.uniform(-1, 1.5, (5, 1))).tolist()
        told = {name: getattr(problem, name).tolist() for name in ("X", "z", "y", "v")}
        found = page.evaluate(KERNEL, [site, told, places])
        for u, got in zip(places, found, strict=True):
            W = {"W": column(u)}
            _, grad, log_scale = model.scaled_grad(W, problem)
            own = -np.asarray(got["sum"]) * np.exp(got["logScale"] - float(log_scale))
            np.testing.assert_allclose(own, grad["W"][:, 0], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(
                got["s"], model.attention(W, problem), rtol=1e-9, atol=1e-300
            )
            run = optim.train(model, problem, optim.NormalizedGD(0.1), 40, params=W, every=40)
            np.testing.assert_allclose(got["end"], run.params["W"][:, 0], atol=1e-7)


@pytest.mark.parametrize(("c", "kept"), [(0.5, False), (2.0, False), (2.8, True), (4.0, True)])
def test_the_first_step_decides(shown, c: float, kept: bool) -> None:
    _, root = shown("first_step", {"c": c, "k": 150, "open": 2})
    model = models.Attention()
    start = {"W": c * first_way()}
    run = optim.train(model, PROBLEM, optim.NormalizedGD(0.1), 149, params=start, every=149)
    seen = float(model.attention(run.params, PROBLEM)[1, 0])
    assert float(root.get_attribute("data-second")) == pytest.approx(seen, abs=1e-6)
    goal = svm.attention_svm(PROBLEM).W
    cosine = np.clip(float(svm.correlation(run.params["W"], goal)), -1, 1)
    angle = np.degrees(np.arccos(cosine))
    assert float(root.get_attribute("data-angle")) == pytest.approx(angle, abs=1e-4)
    assert (seen > 0.5) is kept


def test_before_the_answer_nothing_of_the_run_is_there(shown) -> None:
    page, root = shown("first_step", {"k": 150})
    assert root.get_attribute("data-sealed") == "true"
    assert root.get_attribute("data-second") is None
    words = page.content()
    assert "97 %" not in words
    assert "step 150 " not in root.inner_text()
    assert root.locator(".al-play").is_hidden()


def test_a_reader_answers_by_keyboard(shown) -> None:
    page, root = shown("first_step")
    root.locator("input[value=same]").focus()
    page.keyboard.press("Space")
    knob = root.locator('[role="slider"][tabindex="0"]').first
    knob.focus()
    page.keyboard.press("End")
    root.locator("[data-go]:enabled").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-explorable="first_step"][data-sealed="false"]')
    page.wait_for_selector(".al-verdict:not([hidden])", timeout=20_000)
    assert "The loss does fall" in root.locator(".al-verdict").inner_text()
    grip = root.locator("[data-handle=start]")
    grip.focus()
    before = root.get_attribute("data-second")
    page.keyboard.press("Shift+ArrowUp")
    page.wait_for_function(
        "(old) => document.querySelector('[data-explorable]').dataset.second !== old", arg=before
    )


@pytest.mark.parametrize(("length", "turn"), [(4.6, 11), (4.6, 0), (6.2, 26.5), (3.2, -60)])
def test_a_step_inside_the_cone(shown, length: float, turn: float) -> None:
    _, root = shown("inside_cone", {"length": length, "turn": turn, "open": 2})
    middle = svm.attention_svm(PROBLEM).W[:, 0]
    angle = np.radians(turn) + np.arctan2(middle[1], middle[0])
    u = length * np.array([np.cos(angle), np.sin(angle)])
    step = -models.Attention().scaled_grad({"W": column(u)}, PROBLEM)[1]["W"]
    step /= np.linalg.norm(step)
    rise = theory.svm.token_margins(PROBLEM, step)[:, 1]
    np.testing.assert_allclose(
        json.loads(root.get_attribute("data-rise")), rise, rtol=1e-9, atol=1e-12
    )
    goal = svm.attention_svm(PROBLEM).W
    assert float(root.get_attribute("data-to")) == pytest.approx(
        float(svm.correlation(step, goal)), abs=1e-9
    )
    leads = theory.svm.token_margins(PROBLEM, column(u))[:, 1]
    assert root.get_attribute("data-inside") == str(bool((leads > 0).all())).lower()


def test_inside_the_cone_is_sealed_until_answered(shown) -> None:
    page, root = shown("inside_cone")
    assert root.get_attribute("data-sealed") == "true"
    assert root.get_attribute("data-rise") is None
    assert root.locator("[data-mark=violation]").count() == 0
    root.locator("input[value=all]").check()
    root.locator("[data-go]").click()
    page.wait_for_selector('[data-explorable="inside_cone"][data-sealed="false"]')
    assert root.locator("[data-mark=violation]").count() == 1
    assert "63a" in root.locator(".al-verdict").inner_text()


def test_theorem_3_has_the_numbers_of_the_ledger(open_page, site) -> None:
    page, model = open_page("404.html"), models.Attention()
    goal, L = svm.attention_svm(PROBLEM), float(curvature.smoothness(model, PROBLEM).W)
    states = [{"u": [1.5, 2.5], "eta": 1}, {"u": [-3.0, -2.0], "eta": 0.5}, {"u": [0.0, 6.0]}]
    for state, got in zip(states, page.evaluate(JUDGE, [site, states]), strict=True):
        assert got["failed"] is None
        here, W = got["situation"], column(state["u"])
        assert here["L"] == pytest.approx(L, rel=1e-9)
        loss, grads = model.value_and_grad({"W": W}, PROBLEM)
        eta = state.get("eta", 1) / L
        after = model.value_and_grad({"W": W - eta * grads["W"]}, PROBLEM)[0]
        assert here["fall"] == pytest.approx(float(loss - after), abs=1e-13)
        square = float((grads["W"] ** 2).sum())
        sure = float(theory.svm.guaranteed_decrease(eta, L)) * square
        assert got["results"][0]["rows"][0][2] == pytest.approx(sure, rel=1e-9)
        s = model.attention({"W": W}, PROBLEM)
        slopes = 1 / (1 + np.exp(PROBLEM.y * model.forward({"W": W}, PROBLEM)))
        bound = float(theory.svm.lemma_9_bound(PROBLEM, goal.W, s, slopes))
        assert here["bound"] == pytest.approx(bound, rel=1e-6)
        assert here["along"] == pytest.approx(-float((grads["W"] * goal.W).sum()), rel=1e-6)
        rule, kept = optim.GD(eta), ["grad_norm"]
        run = optim.train(model, PROBLEM, rule, 300, params={"W": W}, record=kept)
        total = float((run.history["grad_norm"][:-1] ** 2).sum())
        assert here["sum"] == pytest.approx(total, rel=1e-9)


def test_the_reply_gives_the_angles_of_the_read_out(shown) -> None:
    """At the same step of the same runs, and it says at which."""
    _, root = shown("first_step", {"c": 0.5, "k": 150, "open": 1, "ends": "long", "sketch": []})
    reply = root.locator(".al-verdict").inner_text()
    assert "At step 150" in reply
    for length in (0.5, 3.0):
        _, root = shown("first_step", {"c": length, "k": 150, "open": 2})
        assert f"{float(root.get_attribute('data-angle')):.0f}°" in reply
