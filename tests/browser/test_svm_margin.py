"""The attention SVM: its pictures show what attnlab computes; sealed, they tell nothing."""

from __future__ import annotations

import json
from urllib.parse import quote

import numpy as np
import pytest

from attnbook import widgets
from attnlab import problems, svm

PAGE = "book/svm/margin.html"
OPEN = {"open": 2}


def start(open_page, name: str, state: dict[str, object]):
    page = open_page(f"{PAGE}?{name}={quote(json.dumps(state))}", typeset=False, only=name)
    page.wait_for_selector(f'[data-explorable="{name}"][data-ready]')
    return page, page.locator(f'[data-explorable="{name}"]').first


def of_two(X: object, v: object, angle: float) -> problems.TokenProblem:
    turn = np.radians(angle)
    return problems.TokenProblem(X=X, z=[[1, 0], [np.cos(turn), np.sin(turn)]], y=[1, 1], v=v)


@pytest.mark.parametrize("angle", [0, 15, 30, 90, 180])
def test_the_strip_is_that_of_attnlab(open_page, angle: int) -> None:
    given = widgets.MarginStreet()
    problem = of_two(given.now("X"), given.now("v"), angle)
    margin = svm.attention_svm(problem)
    _, root = start(open_page, "margin_street", {**OPEN, "angle": angle})
    assert float(root.get_attribute("data-margin")) == pytest.approx(1 / margin.norm, abs=2e-6)
    held = [(np.flatnonzero(row) + 1).tolist() for row in margin.support]
    assert json.loads(root.get_attribute("data-support")) == held


def test_the_data_were_searched_for() -> None:
    """Three tokens in turn hold sequence 1; the margin only grows with the angle."""
    given = widgets.MarginStreet()
    found = [
        svm.attention_svm(of_two(given.now("X"), given.now("v"), angle))
        for angle in (0, 15, 30, 60, 90, 120, 150, 180)
    ]
    assert [np.flatnonzero(found[k].support[0]).tolist() for k in (1, 2, 4)] == [[3], [0], [1]]
    assert (np.diff([1 / one.norm for one in found]) > 0).all()
    assert found[0].norm > 3.5 * found[-1].norm


def test_what_adds_up(kernel) -> None:
    """The arrows under the board: own pushes and those of the other sequence make W z."""
    rng = np.random.default_rng(0)
    given, expected = [], []
    for _ in range(40):
        problem = of_two(
            rng.standard_normal((2, 4, 2)), rng.standard_normal(2), rng.uniform(10, 170)
        )
        margin = svm.attention_svm(problem)
        told = {key: getattr(problem, key).tolist() for key in ("X", "z", "y", "v")}
        others = np.arange(4) != problem.optimal[:, None]
        found = {"multipliers": margin.multipliers[others].tolist()}
        given += [[told, found, i] for i in range(2)]
        expected += [margin.W @ problem.z[i] for i in range(2)]
    shown = [np.add(one["own"], one["other"]) for one in kernel("pushes", "parts", given)]
    assert np.abs(np.array(shown) - expected).max() < 1e-8 * np.abs(expected).max()


def test_sealed_it_tells_nothing(open_page) -> None:
    _, root = start(open_page, "margin_street", {"which": 1})
    assert root.get_attribute("data-sealed") == "true"
    assert root.get_attribute("data-margin") is None
    inside = root.inner_html()
    for told in ("al-fill-rival", "al-fill-fro", "0.69", "1.15", "support"):
        assert told not in inside
    assert root.locator(".al-grip:visible").count() == 0


def test_answers_open_it_and_get_their_own_words(open_page) -> None:
    sketch = [1.0] * 6 + [0.5] * 7
    _, root = start(open_page, "margin_street", {"which": 4, "margins": sketch})
    root.locator("[data-go]").click()
    words = root.locator(".al-verdict").inner_text()
    assert "Scores decide who is best" in words
    assert "the other way round" in words


def test_selections_of_one_sequence(open_page, kernel) -> None:
    """Corners have a W, others a balance of pushes; both agree with attnlab."""
    rng = np.random.default_rng(1)
    given, expected = [], []
    for k in range(60):
        X = rng.standard_normal((5, 2))
        problem = problems.TokenProblem(X=X[None], z=[[1, 0]], y=[1], v=[0, 1])
        given.append([X.tolist(), k % 5])
        try:
            expected.append(float(svm.attention_svm(problem, tokens=[k % 5]).norm))
        except svm.InfeasibleMargin:
            expected.append(0.0)
    found = kernel("exposed", "exposed", given)
    assert 5 < expected.count(0.0) < 30
    for (X, pick), one, norm in zip(given, found, expected, strict=True):
        assert (one["u"] is None) == (norm == 0.0)
        if norm:
            assert np.linalg.norm(one["u"]) == pytest.approx(norm, rel=1e-7)
            continue
        gaps = np.array(X)[pick] - np.delete(X, pick, axis=0)
        unit = gaps / np.linalg.norm(gaps, axis=1, keepdims=True)
        assert min(one["weights"]) >= 0.0
        assert np.abs(np.array(one["weights"]) @ unit).max() < 1e-9
    _, root = start(open_page, "exposed_token", {**OPEN, "pick": 4})
    assert root.get_attribute("data-status") == "infeasible"


def test_the_share_of_corners(kernel) -> None:
    share = kernel("exposed", "shareOfCorners", [[5, 4000]])[0]
    X = np.random.default_rng(2).standard_normal((1500, 1, 5, 2))
    drawn = problems.TokenProblem(
        X=X, z=np.ones((1500, 1, 2)), y=np.ones((1500, 1)), v=np.ones((1500, 2))
    )
    angles = np.sort(np.arctan2(*np.moveaxis(X[:, 0, :1] - X[:, 0, 1:], -1, 0)), axis=1)
    around = np.diff(angles, axis=1, append=angles[:, :1] + 2 * np.pi)
    assert drawn.n == 1
    assert share == pytest.approx((around.max(axis=1) > np.pi).mean(), abs=0.03)


def test_width_is_the_stored_sweep(open_page) -> None:
    found = widgets.stored.load("feasible")
    _, root = start(open_page, "enough_width", {"n": 2, "which": 0})
    mean = found["found"][0, list(found["n"]).index(2)].mean() / found["trials"][0]
    assert float(root.get_attribute("data-mean")) == pytest.approx(mean, abs=1e-3)
    n, T, d = np.meshgrid(found["n"], found["T"], found["d"], indexing="ij")
    promised = d >= np.maximum(T - 1, n)
    assert (found["found"][:, promised] == found["trials"][0]).all(), "Theorem 8"
    best = found["found"][0][d >= n]
    assert (best == found["trials"][0]).all(), "W z = y v needs independent queries only"
