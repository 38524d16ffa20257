"""The page "When width makes it global": its plane, its flow and its derivation are attnlab's."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from attnbook import theory
from attnlab import models, optim, problems, svm

F = [[1.0, 0.0], [-1.6, 0.5]]
GAPS = [1.0, 0.12]
START = [0.405, 1.735]
PAGE = "book/svm/global.html"
KERNELS = """async ([address, cases]) => {
  const two = await import(address);
  return cases.map(({ f, gaps, start }) => {
    const G = two.gram(f);
    return { path: two.follow(start, G, gaps, 200), fate: two.fate(start, G, gaps),
      risk: two.atRisk(G), threshold: two.threshold(G), loss: two.loss(start, gaps),
      curve: two.separatrix(G, gaps, [-6, 6]), mm: two.maxMargin(G) };
  });
}"""
JUDGE = """async ([address, states]) => {
  const { default: walk } = await import(address);
  return states.map((state) => walk.judge({ ...walk.defaults, ...state }));
}"""


def pair(f: Any, gaps: Any, trials: int = 0) -> problems.TokenProblem:
    """Two sequences of two tokens with these features and score gaps; several of them as trials."""
    f, z = np.array(f, float), np.array([[1.0, 0.0]] * 2)
    X, v = np.stack([f, -f], axis=1) / 2, np.linalg.solve(f, gaps)
    arrays = X, z, np.ones(2), v
    if trials:
        arrays = tuple(np.stack([array] * trials) for array in arrays)
    return problems.TokenProblem(*arrays)


def start_of(f: Any, leads: Any) -> np.ndarray:
    W = np.zeros((2, 2))
    W[:, 0] = np.linalg.solve(np.array(f, float), leads)
    return W


def draw(count: int) -> list[dict[str, Any]]:
    rng, found = np.random.default_rng(3), []
    while len(found) < count:
        f2, gaps = rng.uniform(-1.8, 1.8, 2), rng.uniform(0.1, 1.5, 2)
        if abs(f2[1]) > 0.2:
            case = {"f": [[1.0, 0.0], f2.tolist()], "gaps": gaps.tolist()}
            found.append(case | {"start": rng.uniform(-3, 3, 2).tolist()})
    return found


@pytest.fixture
def explorable(open_page):
    """``explorable("phase_plane", {"k": 3})``: alone, as this page shows it."""

    def visit(name: str, state: dict[str, Any] | None = None, **how: Any):
        query = f"?{name}={quote(json.dumps(state))}" if state else ""
        page = open_page(f"{PAGE}{query}", typeset=False, only=name, **how)
        page.wait_for_selector(f'[data-explorable="{name}"][data-ready]', timeout=60_000)
        return page, page.locator(f'[data-explorable="{name}"]').first

    return visit


@pytest.fixture
def evaluate(open_page, site):
    page = open_page("404.html", wait=False, typeset=False)

    def call(code: str, module: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return page.evaluate(code, [f"{site}/explorables/{module}", cases])

    return call


def test_kernels_follow_attnlab(evaluate) -> None:
    model, cases = models.Attention(start="zero"), draw(12)
    for case, found in zip(cases, evaluate(KERNELS, "kit/two_features.js", cases), strict=True):
        problem, f = pair(case["f"], case["gaps"]), np.array(case["f"])
        W = start_of(f, case["start"])
        run = optim.train(model, problem, optim.NormalizedGD(0.1), 200, params={"W": W})
        assert found["path"][-1] == pytest.approx(f @ run.params["W"][:, 0], abs=1e-7)
        assert found["loss"] == pytest.approx(float(model.evaluate({"W": W}, problem).loss))
        gram = f @ f.T
        assert found["threshold"] == pytest.approx(theory.svm.opposing_threshold(gram))
        best = svm.attention_svm(problem)
        assert found["mm"] == pytest.approx(f @ best.W[:, 0], abs=1e-6)
        a, c, b = gram[0, 0], gram[0, 1], gram[1, 1]
        assert found["risk"] == (2 if -c > a else 1 if -c > b else 0)
        assert bool(svm.assumption_d(problem).holds) is (found["risk"] == 0)
        on = optim.train(model, problem, optim.NormalizedGD(0.2), 3000, params=run.params)
        seen = model.attention(on.params, problem)[:, 0] > 0.5
        assert found["fate"] == seen.tolist()


def test_the_boundary_separates_the_fates(evaluate) -> None:
    """Starts a little on either side of it end on different tokens, as attnlab trains them."""
    case = {"f": F, "gaps": GAPS, "start": START}
    curve = np.array(evaluate(KERNELS, "kit/two_features.js", [case])[0]["curve"])
    points = curve[(np.abs(curve) < 4).all(axis=1)][::25]
    assert len(points) >= 3
    starts = np.concatenate([points + 0.25, points - 0.25])
    problem = pair(F, GAPS, trials=len(starts))
    W = np.stack([start_of(F, leads) for leads in starts])
    model = models.Attention(start="zero")
    run = optim.train(model, problem, optim.NormalizedGD(0.2), 3000, params={"W": W})
    kept = model.attention(run.params, problem)[:, 1, 0] > 0.5
    assert kept.tolist() == [True] * len(points) + [False] * len(points)


def test_the_reader_sketches_and_is_answered(explorable) -> None:
    page, root = explorable("phase_plane")
    assert root.get_attribute("data-sealed") == "true"
    assert root.get_attribute("data-fate") is None
    assert not root.locator("[data-handle]").first.is_visible()
    root.locator("input[value=lead]").check()
    knob = root.locator(".al-knobkey").last
    knob.focus()
    page.keyboard.press("Home")
    page.emulate_media(reduced_motion="reduce")
    root.locator("[data-go]").click()
    page.wait_for_selector("[data-explorable=phase_plane] .al-verdict p")
    told = root.locator(".al-verdict").inner_text()
    assert "Both led, and one was overtaken" in told
    assert root.get_attribute("data-fate") == "one"


@pytest.mark.parametrize(
    ("state", "fate", "risk"),
    [({}, "one", "2"), ({"m": [0.81, 3.47]}, "both", "2"), ({"f": [0.2, 1.0]}, "both", "0")],
)
def test_what_is_dragged_decides(explorable, state: dict[str, Any], fate: str, risk: str) -> None:
    page, root = explorable("phase_plane", {"open": 2, "k": 120, **state})
    assert (root.get_attribute("data-fate"), root.get_attribute("data-risk")) == (fate, risk)
    assert root.locator('svg [data-mark~="basin"]').count() == (risk != "0")
    grip = root.locator('[data-handle="f"]')
    grip.focus()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => document.querySelector('[data-explorable=phase_plane]').dataset.risk === '0'"
    )


def test_how_often_answers_a_guess(explorable) -> None:
    page, root = explorable("how_often")
    assert root.get_attribute("data-exact") is None
    root.locator("input[type=range]").last.fill("90")
    root.locator("[data-go]").click()
    page.wait_for_selector("[data-explorable=how_often] .al-verdict p")
    exact = json.loads(root.get_attribute("data-exact"))[-1]
    assert f"{100 * exact:.1f} %" in root.locator(".al-verdict").inner_text()


def test_theorem_4s_failure_has_attnlabs_numbers(evaluate) -> None:
    rng = np.random.default_rng(0)
    states = [{"m": rng.uniform(-1, 2, 2).tolist(), "k": int(k)} for k in (0, 5, 10, 20, 40, 80)]
    found = evaluate(JUDGE, "derivations/svm-theorem-4.js", [s | {"drop": []} for s in states])
    problem, f, model = pair(F, GAPS), np.array(F), models.Attention(start="zero")
    gram = f @ f.T
    for state, judged in zip(states, found, strict=True):
        start = {"W": start_of(F, state["m"])}
        rule = optim.NormalizedGD(0.1)
        W = optim.train(model, problem, rule, state["k"], params=start).params["W"]
        s = model.attention({"W": W}, problem)
        slopes = 1 / (1 + np.exp(model.forward({"W": W}, problem)))
        w = slopes * theory.svm.score_gaps(problem)[0] * s.prod(axis=-1) / 2
        down = -model.value_and_grad({"W": W}, problem)[1]["W"][:, 0]
        weights, leads, race, fade = (result["rows"] for result in judged["results"][:4])
        assert [row[1] for row in weights] == pytest.approx(down, rel=1e-6, abs=1e-12)
        assert [row[2] for row in weights] == pytest.approx(w @ f, rel=1e-6, abs=1e-12)
        assert [row[1] for row in leads] == pytest.approx(f @ down, rel=1e-6, abs=1e-12)
        assert [row[2] for row in leads] == pytest.approx(gram @ w, rel=1e-6, abs=1e-12)
        assert race[0][1:3] == pytest.approx([-gram[0, 1], gram[0, 0]])
        assert fade[0][1] == pytest.approx(w[1] / w[0], rel=1e-6)
        theta = theory.svm.opposing_threshold(gram)
        assert judged["situation"]["theta"] == pytest.approx(theta)


OVERLAPS = """(root) => {
  const texts = [...root.querySelectorAll(".al-features text")];
  const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
  const beside = (a, b) => a.right <= b.left || b.right <= a.left;
  const above = (a, b) => a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  return boxes.flatMap(([one, a], i) => boxes.slice(0, i)
    .filter(([, b]) => !beside(a, b) && !above(a, b)).map(([two]) => `${one} over ${two}`));
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_both_regions_of_features_have_whole_labels(explorable, width: int) -> None:
    _, root = explorable("phase_plane", {"open": 2}, width=width)
    told = " ".join(root.locator(".al-features text").all_text_contents())
    for sequence in (1, 2):
        assert re.search(rf"sequence {sequence} can be lost", told), told
    assert not root.evaluate(OVERLAPS)
