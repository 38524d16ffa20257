"""The page "Why one token wins": its board and its dissector say what attnlab computes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from attnbook import widgets
from attnlab import models, optim, problems, svm

BOARD = widgets.token_board.DEFAULT
OPEN = {"open": 2, "k": 200}


@pytest.fixture
def explorable(open_page):
    """``explorable("token_board", {"k": 3})``: alone, as this page shows it."""

    def visit(name: str, state: dict[str, Any] | None = None, **how: Any):
        query = f"?{name}={quote(json.dumps(state))}" if state else ""
        home = "index" if name == "two_forms" else "tokens"
        page = open_page(f"book/svm/{home}.html{query}", typeset=False, only=name, **how)
        mark = f'[data-explorable="{name}"]'
        page.wait_for_selector(f"{mark}[data-ready]", timeout=60_000)
        return page, page.locator(mark).first

    return visit


def problem_of(state: dict[str, Any]) -> problems.TokenProblem:
    return problems.TokenProblem(**{k: np.array(state[k], float) for k in ("X", "z", "y", "v")})


def trained(problem: problems.TokenProblem, steps: int, form: str = "W") -> np.ndarray:
    if form == "W":
        model, rule, start = models.Attention(start="zero"), optim.NormalizedGD(0.1), None
    else:
        K, Q = np.array([[0.1, 0.02], [-0.03, 0.1]]), np.array([[0.1, -0.02], [0.03, 0.1]])
        model, rule, start = models.Attention(factors=2), optim.NormalizedGD(0.05), {"K": K, "Q": Q}
    found = optim.train(model, problem, rule, steps, params=start).params
    return found["W"] if form == "W" else found["K"] @ found["Q"].T


def degrees(A: np.ndarray, B: np.ndarray) -> float:
    return float(np.degrees(np.arccos(np.clip(svm.correlation(A, B), -1, 1))))


def settled(page) -> None:
    page.evaluate(
        """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
          setTimeout(done, 120))))"""
    )


def readout(root) -> str:
    return root.locator(".al-readout").inner_text()


@pytest.mark.parametrize("steps", [10, 46, 80, 200, 2000])
def test_the_board_says_what_attnlab_computes(explorable, steps: int) -> None:
    _, root = explorable("token_board", {"open": 2, "k": steps, "K": max(200, steps)})
    problem = problem_of(BOARD)
    W = trained(problem, steps)
    margin = svm.attention_svm(problem)
    s = models.Attention().attention({"W": W}, problem)
    assert json.loads(root.get_attribute("data-attention")) == pytest.approx(s, abs=1e-9)
    assert float(root.get_attribute("data-angle")) == pytest.approx(degrees(W, margin.W), abs=1e-6)
    gamma = problem.scores
    behind = (s * (gamma.max(axis=-1, keepdims=True) - gamma)).sum(axis=-1)
    e = np.exp(-gamma.max(axis=-1))
    gap = np.log1p(e * np.expm1(behind) / (1 + e)).mean()
    assert float(root.get_attribute("data-gap")) == pytest.approx(gap, rel=1e-6)
    assert f"the margin is {1 / margin.norm:.3f}, with 2 support tokens" in readout(root)


@pytest.mark.parametrize("form", ["W", "KQ"])
@pytest.mark.parametrize("seed", [0, 6, 11])
def test_rings_belong_to_the_norm_in_training(explorable, form: str, seed: int) -> None:
    """Margin, number and place of the support tokens: with K and Q those of the nuclear norm."""
    rng = np.random.default_rng(seed)
    state = dict(BOARD)
    for key in ("X", "z"):
        moved = np.array(BOARD[key]) + 0.3 * rng.standard_normal(np.shape(BOARD[key]))
        state[key] = moved.round(3).tolist()
    problem = problem_of(state)
    margin = svm.attention_svm(problem, norm="nuc" if form == "KQ" else "fro")
    _, root = explorable("token_board", {**state, **OPEN, "form": form, "k": 30})
    assert json.loads(root.get_attribute("data-support")) == margin.support.tolist()
    assert root.locator(".al-ring-line").count() == margin.support.sum()
    assert float(root.get_attribute("data-margin")) == pytest.approx(1 / margin.norm, rel=1e-6)
    assert f"In the {'nuclear' if form == 'KQ' else 'Frobenius'} norm" in readout(root)
    expected = degrees(trained(problem, 30, form), margin.W)
    assert float(root.get_attribute("data-angle")) == pytest.approx(expected, abs=1e-3)
    assert "After 30 steps" in readout(root), "what is said is said of the step shown"


def test_the_two_norms_have_other_support_tokens_somewhere() -> None:
    """Otherwise the test above could not tell one from the other."""
    counts = []
    for seed in (0, 6, 11):
        rng = np.random.default_rng(seed)
        X, z = (np.array(BOARD[k]) + 0.3 * rng.standard_normal(np.shape(BOARD[k])) for k in "Xz")
        problem = problem_of({**BOARD, "X": X.round(3), "z": z.round(3)})
        pair = [svm.attention_svm(problem, norm=norm).support for norm in ("fro", "nuc")]
        counts.append((pair[0] != pair[1]).any())
    assert any(counts)


def test_sealed_until_both_predictions_are_in(explorable) -> None:
    """Before: nothing of the run. Keys alone draw the line; after: its distance is said."""
    page, root = explorable("token_board")
    assert root.get_attribute("data-sealed") == "true"
    before = root.inner_html()
    for told in (
        "0.7 %",
        "0.7&nbsp;%",
        "step 46",
        "max margin",
        "what happened",
        "197",
        "17.4",
        "al-ring-line",
    ):
        assert told not in before, told
    assert root.get_attribute("data-angle") is None
    go = root.locator("[data-go]")
    assert go.is_disabled()
    root.locator("input[type=radio]").nth(2).check()
    knob = root.locator("[role=slider].al-knobkey").first
    knob.focus()
    for key in ("PageUp", "ArrowRight", "PageUp", "ArrowRight", "End"):
        page.keyboard.press(key)
    settled(page)
    assert go.is_enabled()
    page.emulate_media(reduced_motion="reduce")
    go.click()
    settled(page)
    assert root.get_attribute("data-sealed") == "false"
    verdict = root.locator(".al-verdict").inner_text()
    assert "Right: longer for ever" in verdict
    assert "at step 46 the best token of sequence 1 has 0.7 %" in verdict
    assert "it loses before it wins" in verdict


def test_dragging_a_far_token_leaves_the_direction_a_rival_turns_it(explorable) -> None:
    page, root = explorable("token_board", OPEN)
    lines = root.locator("[data-mark~=goal] line")
    before = lines.first.evaluate("(n) => n.outerHTML")
    root.locator('[data-handle="x03"]').focus()
    page.keyboard.press("ArrowUp")
    settled(page)
    assert lines.first.evaluate("(n) => n.outerHTML") == before
    root.locator('[data-handle="x01"]').focus()
    page.keyboard.press("Shift+ArrowUp")
    settled(page)
    assert lines.first.evaluate("(n) => n.outerHTML") != before


def test_it_runs_on_until_it_is_aligned(explorable) -> None:
    for form in ("W", "KQ"):
        page, root = explorable("token_board", {**OPEN, "form": form}, reduced_motion="reduce")
        root.locator("[data-longer]").click()
        settled(page)
        assert float(root.get_attribute("data-angle")) < 1


def test_a_tie_in_every_place_is_infeasible(explorable) -> None:
    """Tokens of one sequence in one point cannot be told apart."""
    flat = [[[1, 0.5]] * 4, BOARD["X"][1]]
    _, root = explorable("token_board", {**OPEN, "X": flat})
    assert root.get_attribute("data-status") == "infeasible"
    assert "infeasible" in readout(root)


@pytest.mark.parametrize("way", ["margin", "first"])
@pytest.mark.parametrize("length", [0.0, 3.2, 8.0, 20.0])
def test_the_dissector_pulls_as_attnlab(explorable, way: str, length: float) -> None:
    _, root = explorable("gradient_dissector", {"length": length, "way": way})
    problem, model = problem_of(BOARD), models.Attention()
    margin = svm.attention_svm(problem)
    first = -model.value_and_grad({"W": np.zeros((2, 2))}, problem)[1]["W"]
    D = margin.W if way == "margin" else first
    s = model.attention({"W": length * D / np.linalg.norm(D)}, problem)
    gamma = problem.scores
    expected = s * (gamma - (s * gamma).sum(axis=-1, keepdims=True))
    found = np.array(json.loads(root.get_attribute("data-pulls")))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)
    rivals = np.abs(found)[np.arange(4) != problem.optimal[:, None]].sum()
    share = np.abs(found)[margin.support].sum() / rivals
    assert float(root.get_attribute("data-share")) == pytest.approx(share, rel=1e-9)


def test_far_rivals_die_as_the_matrix_grows(explorable) -> None:
    """By keyboard, and said: the support tokens have more and more of the pull."""
    page, root = explorable("gradient_dissector")
    shares = []
    slider = root.locator("input[data-key=length]")
    slider.focus()
    for key in ("Home", "End"):
        page.keyboard.press(key)
        settled(page)
        shares.append(float(root.get_attribute("data-share")))
    assert shares[0] < 0.25
    assert shares[1] > 0.999
    assert "support tokens have > 99" in readout(root)


JUDGE = """async ([address, states]) => {
  const { default: walk } = await import(address);
  return states.map((state) => walk.judge({ ...walk.defaults, ...state }));
}"""


def test_the_gradients_derivation_has_attnlabs_numbers(open_page, site) -> None:
    page, rng, model = open_page("404.html"), np.random.default_rng(0), models.Attention()
    states = []
    for k in (10, 46, 80, 200):
        for scale in (0.0, 0.2, 0.2):
            X = np.array(BOARD["X"]) + scale * rng.standard_normal((2, 4, 2))
            states.append({"X": X.round(3).tolist(), "k": k, "drop": []})
    address = f"{site}/explorables/derivations/svm-gradient.js"
    for state, found in zip(states, page.evaluate(JUDGE, [address, states]), strict=True):
        problem = problem_of({**BOARD, "X": state["X"]})
        W = trained(problem, state["k"])
        assert np.allclose(found["situation"]["W"], W, atol=1e-9)
        rows = [result["rows"] for result in found["results"]]
        gradient = -model.value_and_grad({"W": W}, problem)[1]["W"]
        size = np.linalg.norm(gradient)
        told = np.array([row[2] for row in rows[0]])
        within = 1e-9 * size + 1e-16  # attnlab's plain gradient rounds there
        assert np.abs(told - gradient.ravel()).max() < within
        assert [row[1] for row in rows[0]] == pytest.approx(
            gradient.ravel(), abs=1e-6 * size + 1e-16
        )
        s, gamma = model.attention({"W": W}, problem), problem.scores
        pull = s * (gamma - (s * gamma).sum(axis=-1, keepdims=True))
        slope = np.einsum("t,td,k->dk", pull[0], problem.X[0], problem.z[0]).ravel()
        for step in (1, 2):
            for side in (1, 2):
                told = np.array([row[side] for row in rows[step]])
                size = np.linalg.norm(slope)
                assert np.abs(told - slope).max() < 1e-6 * size + 1e-15
        others = np.arange(4) != problem.optimal[:, None]
        top = gamma.max(axis=-1, keepdims=True)
        assert [row[1] for row in rows[3]] == pytest.approx(-pull[others], rel=1e-6, abs=1e-15)
        assert [row[2] for row in rows[3]] == pytest.approx((s * (top - gamma))[others], rel=1e-9)
        ahead = (s.argmax(axis=-1) == problem.optimal).all()
        assert found["failed"] == (None if ahead else "long")


def test_two_forms_end_apart(explorable) -> None:
    """Sealed by a number; then both runs, their directions and their angle are attnlab's."""
    page, root = explorable("two_forms", reduced_motion="reduce")
    before = root.inner_html()
    for told in ("37°", "33°", "36.7", "nuclear"):
        assert told not in before, told
    root.locator(".al-number-ask input").focus()
    for key in ("Home", "ArrowRight"):
        page.keyboard.press(key)
    settled(page)
    root.locator("[data-go]").click()
    settled(page)
    problem = widgets.TwoForms().problem
    W, V = (trained(problem, 240, form) for form in ("W", "KQ"))
    assert float(root.get_attribute("data-between")) == pytest.approx(degrees(W, V), abs=1e-5)
    goals = [svm.attention_svm(problem, norm=norm).W for norm in ("fro", "nuc")]
    expected = [degrees(W, goals[0]), degrees(V, goals[1])]
    assert json.loads(root.get_attribute("data-to")) == pytest.approx(expected, abs=1e-3)
    verdict = root.locator(".al-verdict").inner_text()
    assert "Nearly the same, you said" in verdict
    assert f"are {degrees(*goals):.0f}° apart" in verdict
