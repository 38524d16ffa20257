"""Explorables of the bias chapter's first sections: what they show is what attnlab computes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import theory, widgets
from attnlab import models, optim, problems, svm

CASES = 200
HEAD = np.array([0.0, 1.0])
MODEL = models.Attention(loss="exponential", start="zero")


def shared_query(f: np.ndarray) -> problems.TokenProblem:
    """Samples of the tokens f_i and 0, all with the query e_1."""
    z = np.broadcast_to([1.0, 0.0], f.shape).copy()
    v = np.broadcast_to(HEAD, (*f.shape[:-2], 2)).copy()
    return problems.TokenProblem(
        X=np.stack([f, np.zeros_like(f)], axis=-2), z=z, y=np.ones(f.shape[:-1]), v=v
    )


def logistic(f: np.ndarray, w: np.ndarray, rule: str, eta: float, steps: int) -> np.ndarray:
    """Logistic regression, plainly; the trials lead."""
    for _ in range(steps):
        h = np.einsum("...nd,...d->...n", f, w)
        pull = np.einsum("...n,...nd->...d", 1.0 / (1.0 + np.exp(h)), f) / f.shape[-2]
        w = w + eta * (pull if rule == "gd" else pull / np.linalg.norm(pull, axis=-1)[..., None])
    return w


@pytest.mark.parametrize("rule", ["gd", "ngd"])
def test_twin_kernel(kernel, rule: str) -> None:
    """Both paths after 20 steps, on 200 random sets of vectors and starts."""
    rng = np.random.default_rng(0)
    f = rng.uniform(-3.0, 3.0, (CASES, 3, 2))
    f[..., 1] = rng.uniform(0.2, 2.0, (CASES, 3))
    w = rng.uniform(-3.0, 3.0, (CASES, 2))
    eta = 0.7 if rule == "gd" else 0.05
    step = optim.GD(eta) if rule == "gd" else optim.NormalizedGD(eta)
    start = {"W": np.einsum("ki,j->kij", w, [1.0, 0.0])}
    run = optim.train(MODEL, shared_query(f), step, 20, params=start)
    expected = {
        "attention": run.params["W"][..., 0],
        "logistic": logistic(f, w, rule, eta, 20),
    }
    for model, ends in expected.items():
        given = [[f[k].tolist(), w[k].tolist(), model, rule, eta, [0, 20]] for k in range(CASES)]
        found = np.array(kernel("twin", "trainPath", given))
        assert np.allclose(found[:, 0], w, rtol=0, atol=1e-12)
        assert np.abs(found[:, 1] - ends).max() < 1e-9


@pytest.mark.parametrize(
    ("state", "lost"),
    [({}, 0), ({"w": [2.0, -1.0]}, 1), ({"w": [2.0, -1.0], "rule": "ngd"}, 1)],
)
def test_logistic_twin_recovers_where_attention_does_not(explorable, state, lost: int) -> None:
    _, root = explorable("logistic_twin", state)
    board = widgets.LogisticTwin()
    rule = state.get("rule", "gd")
    eta, step = (1.0, optim.GD(1.0)) if rule == "gd" else (0.05, optim.NormalizedGD(0.05))
    w = np.array(state.get("w", [0.0, 0.0]))
    goal = svm.attention_svm(board.problem).W
    start = {"W": np.outer(w, [1.0, 0.0])}
    run = optim.train(MODEL, board.problem, step, 10_000, params=start, every=10_000)
    twin = logistic(np.array(board.now("f")), w, rule, eta, 10_000)
    expected = [
        float(svm.correlation(np.outer(twin, [1.0, 0.0]), goal)),
        float(svm.correlation(run.params["W"], goal)),
    ]
    assert json.loads(root.get_attribute("data-cosines")) == pytest.approx(expected, abs=1e-8)
    assert int(root.get_attribute("data-lost")) == lost
    assert expected[0] > 0.999
    assert (expected[1] > 0.999) is (lost == 0)


@pytest.mark.parametrize(
    "state", [{}, {"s": 30, "D": [[-1.0, 0.2], [0.7, -0.4]]}, {"s": 0.1, "D": [[0.1, 1], [1, 2]]}]
)
def test_lemma_four_shows_both_sides(explorable, state) -> None:
    _, root = explorable("lemma_four", state)
    meter = widgets.LemmaFour()
    meter.state = {**meter.state, **state}
    margin = svm.attention_svm(meter.problem)
    against = -MODEL.scaled_grad({"W": meter.W}, meter.problem)[1]["W"]
    B = np.linalg.norm(meter.problem.X, axis=-1).max()
    bound = float(theory.bias.alignment_bound(B, margin.norm))
    shown = {name: float(root.get_attribute(f"data-{name}")) for name in ("cosine", "bound", "low")}
    assert shown["cosine"] == pytest.approx(float(svm.correlation(against, margin.W)), abs=1e-9)
    assert shown["bound"] == pytest.approx(bound, abs=1e-9)
    assert min(shown["cosine"], shown["low"]) >= bound


def test_no_hand_and_no_hunt_gets_below_lemma_four(explorable) -> None:
    """Tokens move as Assumption 2 allows; a search for the lowest cosine stays above the bound."""
    page, root = explorable("lemma_four")
    for handle, key in (
        ("x00", "Shift+ArrowRight"),
        ("x01", "Shift+ArrowDown"),
        ("x12", "ArrowUp"),
    ):
        root.locator(f'[data-handle="{handle}"]').focus()
        for _ in range(4):
            page.keyboard.press(key)
        assert float(root.get_attribute("data-spread")) < 1e-9
        assert float(root.get_attribute("data-low")) >= float(root.get_attribute("data-bound"))
    root.get_by_role("button", name="Hunt").click()
    found = float(root.get_attribute("data-cosine"))
    assert float(root.get_attribute("data-bound")) <= found
    assert found <= float(root.get_attribute("data-low")) + 1e-3


def test_setting_the_worse_tokens_free_takes_the_floor_away_once_one_is_raised(explorable) -> None:
    """Free alone changes nothing; one worse token raised above the other does."""
    page, root = explorable("lemma_four", {"level": "no"})
    low, bound = (float(root.get_attribute(f"data-{name}")) for name in ("low", "bound"))
    assert low >= bound
    root.locator('[data-handle="x00"]').focus()
    for _ in range(20):
        page.keyboard.press("Shift+ArrowUp")
        low, bound = (float(root.get_attribute(f"data-{name}")) for name in ("low", "bound"))
        if low < bound:
            break
    assert float(root.get_attribute("data-spread")) > 0.1
    assert low < bound


def test_the_hunt_goes_on_from_the_lowest_dot(explorable) -> None:
    """On a board without Assumption 2 its 400 moves end below all 150 dots."""
    X = [[[-1.2, -0.9], [0.3, 0.3], [0.2, -1.2]], [[1.2, 0.8], [0.7, -0.9], [-0.2, 1.0]]]
    _, root = explorable("lemma_four", {"X": X, "level": "no"})
    before = float(root.get_attribute("data-low"))
    root.get_by_role("button", name="Hunt").click()
    assert float(root.get_attribute("data-cosine")) < before - 1e-3


def test_lemma_four_promises_nothing_without_assumption_2(explorable) -> None:
    X = [[[-1.2, -0.9], [0.3, 0.3], [0.2, -1.2]], [[1.2, 0.8], [0.7, -0.9], [-0.2, 1.0]]]
    _, root = explorable("lemma_four", {"X": X, "level": "no"})
    assert float(root.get_attribute("data-low")) < -0.5
    assert "no promise" in root.locator(".al-readout").inner_text()


@pytest.mark.parametrize("state", [{}, {"rho": 4, "d": 4}, {"rho": 1, "d": 0}])
def test_assumption_one_measures_example_1(explorable, state) -> None:
    _, root = explorable("assumption_one", state)
    kind = widgets.AssumptionOne
    rho, d = kind.sizes[state.get("rho", 1)], kind.widths[state.get("d", 3)]
    drawn = [problems.orthogonal(n=20, T=6, d=d, rho=rho, rng=seed) for seed in range(3)]
    factors = [float(theory.bias.orthogonality(p)) for p in drawn]
    assert json.loads(root.get_attribute("data-factors")) == pytest.approx(factors, rel=1e-5)
    assert max(factors) < 10 < float(theory.bias.orthogonality_needed(20, 6, np.e))
    cosines = json.loads(root.get_attribute("data-cosines"))
    assert (min(cosines) > 0.99) is (state.get("d", 3) > 0)


def test_antipodal_means_share_one_direction(explorable) -> None:
    """With optimal tokens as queries Lambda is nearly sqrt(2 / (1 + cos^2))."""
    for angle in (90, 180):
        _, root = explorable("antipodal", {"angle": angle, "query": "optimal"})
        shown = float(root.get_attribute("data-margin"))
        law = np.sqrt(2.0 / (1.0 + np.cos(np.deg2rad(angle)) ** 2))
        assert shown == pytest.approx(law, rel=0.01)
    _, root = explorable("antipodal", {"angle": 180})
    opposite = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0, antipodal=True)
    assert float(root.get_attribute("data-factor")) == pytest.approx(1.0, abs=1e-6)
    assert float(theory.bias.orthogonality(opposite)) <= 1.0 + 1e-9
    assert json.loads(root.get_attribute("data-cosines"))[0] > 0.99
