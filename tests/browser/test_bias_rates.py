"""Rates of the bias paper in the browser: what is shown is what attnlab computes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from attnbook import theory
from attnlab import models, optim, problems, svm

MODEL = models.Attention(loss="exponential", start="zero")
CASES = 200


@cache
def figure_2(antipodal: bool = False) -> tuple[problems.TokenProblem, svm.Margin]:
    problem = problems.orthogonal(n=20, T=6, d=100, rho=0.05, antipodal=antipodal, rng=0)
    return problem, svm.attention_svm(problem)


def miss(rule: optim.Rule, steps: int, antipodal: bool = False) -> float:
    problem, goal = figure_2(antipodal)
    run = optim.train(MODEL, problem, rule, steps)
    return 1.0 - float(svm.correlation(run.params["W"], goal.W))


def near(found: Any, expected: Any, within: float = 1e-9) -> None:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert (np.abs(found - expected) <= within * np.maximum(1.0, np.abs(expected))).all()


def test_two_token_closed_form(kernel) -> None:
    draw = np.random.default_rng(0)
    t, start = 10 ** draw.uniform(-2, 8, CASES), draw.uniform(-3, 5, CASES)
    step = 10 ** draw.uniform(-2, 1, CASES)
    cases = [[t[k], start[k], step[k]] for k in range(CASES)]
    expected = [float(theory.bias.two_token_gd(*case)) for case in cases]
    near(kernel("bias_rates", "twoTokenGd", cases), expected)


def test_two_token_miss(kernel) -> None:
    draw = np.random.default_rng(1)
    w, off = 10 ** draw.uniform(-3, 6, CASES), 10 ** draw.uniform(-6, 2, CASES)
    found = np.array(kernel("bias_rates", "twoTokenMiss", [[w[k], off[k]] for k in range(CASES)]))
    expected = theory.bias.two_token_miss(w, off)
    assert (np.abs(found / expected - 1.0) < 1e-9).all(), "relative: misses reach 1e-18"


def test_two_token_descent(kernel) -> None:
    """The recursion against the training loop, from 200 starts at once."""
    draw = np.random.default_rng(2)
    one = problems.two_token()
    X = np.broadcast_to(one.X, (CASES, *one.X.shape))
    many = problems.TokenProblem(X, X[..., 0, :], np.ones((CASES, 1)), np.tile(one.v, (CASES, 1)))
    W = draw.uniform(-1.0, 3.0, (CASES, 2, 2))
    for step in (0.1, 2.0):
        run = optim.train(MODEL, many, optim.GD(step), 300, params={"W": W})
        cases = [[float(w), step, [0, 1, 300]] for w in W[:, 0, 0]]
        found = np.array(kernel("bias_rates", "twoTokenRun", cases))
        near(found[:, 0], W[:, 0, 0])
        near(found[:, 2], run.params["W"][:, 0, 0])


def test_gap_sets_and_threshold(kernel) -> None:
    draw = np.random.default_rng(3)
    gap, eps = draw.normal(size=CASES), draw.uniform(0.02, 0.9, CASES)
    found = kernel("bias_rates", "gapSet", [[gap[k], eps[k]] for k in range(CASES)])
    assert found == [int(theory.bias.gap_set(gap[k], eps[k])) for k in range(CASES)]
    facts = [[1.0 + k % 3, 2.0 + k, 5 + k, 2 + k % 5, 2.7 + 10.0**k % 7] for k in range(CASES)]
    facts = [[*row[:2], int(row[2]), int(row[3]), row[4]] for row in facts[:CASES]]
    expected = [
        float(theory.bias.norm_threshold(eps[k], B, width, n=n, T=T, conditioning=spread))
        for k, (B, width, n, T, spread) in enumerate(facts)
    ]
    cases = [[eps[k], facts[k]] for k in range(CASES)]
    near(kernel("bias_rates", "normThreshold", cases), expected)


@pytest.mark.parametrize("start", [[0.1, 0.54], [-0.6, 1.5]])
def test_two_by_two_is_the_example(explorable, start: list[float]) -> None:
    state = {"start": start, "t": 28, "gd": 0.5, "ngd": 0.2}
    _, root = explorable("two_by_two", state)
    t = int(root.get_attribute("data-t"))
    W = {"W": np.array([[start[0], start[1]], [0.0, 0.0]])}
    problem = problems.two_token()
    slow = optim.train(MODEL, problem, optim.GD(0.5), t, params=W).params["W"]
    fast = optim.train(MODEL, problem, optim.NormalizedGD(0.2), t, params=W).params["W"]
    for name, end in (("gd", slow), ("ngd", fast)):
        assert float(root.get_attribute(f"data-{name}")) == pytest.approx(end[0, 0], rel=1e-9)
        assert float(root.get_attribute(f"data-miss-{name}")) == pytest.approx(
            float(theory.bias.two_token_miss(end[0, 0], start[1] ** 2)), rel=1e-6
        )
    closed = float(theory.bias.two_token_gd(t, start[0], 0.5))
    assert float(root.get_attribute("data-closed")) == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("data", [0, 1])
def test_the_race_is_attnlab_s(explorable, data: int) -> None:
    _, root = explorable("optimizer_race", {"data": data, "k": 70})
    steps = int(root.get_attribute("data-step"))
    found = json.loads(root.get_attribute("data-misses"))
    rules = [
        optim.GD(0.25),
        optim.NormalizedGD(0.025),
        optim.NormalizedGD(0.025, momentum=0.9),
        optim.PolyakStep(max_step=5.0 if data else 10.0),
        optim.Adam(0.001),
    ]
    expected = [miss(rule, steps, bool(data)) for rule in rules]
    assert found == pytest.approx(expected, rel=1e-4)
    problem, goal = figure_2(bool(data))
    B = np.linalg.norm(problem.X, axis=-1).max()
    begin = (10 * B * goal.norm / np.sqrt(0.025)) ** 3
    assert float(root.get_attribute("data-begin")) == pytest.approx(float(begin), rel=1e-5)


def test_adam_goes_elsewhere(explorable) -> None:
    _, root = explorable("optimizer_race", {"k": 10_000, "measure": 3})
    misses = json.loads(root.get_attribute("data-misses"))
    attention = json.loads(root.get_attribute("data-shown"))
    assert misses[4] > 0.5 > 0.11 > max(misses[:4])
    assert attention[4] > 0.95


def test_the_paper_s_cap_binds_from_the_first_step(explorable) -> None:
    _, root = explorable("polyak_cap", {"cap": 1})
    assert float(root.get_attribute("data-bound")) == 1.0
    assert float(root.get_attribute("data-asked")) > np.log10(200.0)
    steps = int(root.get_attribute("data-step"))
    found = float(root.get_attribute("data-miss"))
    assert found == pytest.approx(miss(optim.GD(10.0), steps), rel=1e-4)


def test_no_cap_moves_by_half_the_margin_norm(explorable) -> None:
    _, root = explorable("polyak_cap", {"cap": 7, "k": 140})
    _, goal = figure_2()
    found = float(root.get_attribute("data-length"))
    assert found == pytest.approx(float(goal.norm) / 2.0, rel=1e-3)
    assert "It binds nowhere" in root.locator(".al-readout").inner_text()


@pytest.mark.parametrize("kind", [0, 1])
def test_momentum_forms_are_attnlab_s(explorable, kind: int) -> None:
    _, root = explorable("momentum_forms", {"kind": kind, "beta": 0.8, "k": 90})
    steps = int(root.get_attribute("data-step"))
    rules: list[optim.Rule] = (
        [optim.GD(0.25), optim.Momentum(0.25, 0.8), optim.Momentum(0.05, 0.8), optim.GD(1.25)]
        if kind
        else [
            optim.NormalizedGD(0.025),
            optim.NormalizedGD(0.025, momentum=0.8),
            optim.NormalizedGD(0.025, momentum=0.8, averaged=True),
            optim.NormalizedGD(0.125),
        ]
    )
    expected = [miss(rule, steps) for rule in rules]
    found = json.loads(root.get_attribute("data-misses"))
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("data", "eps"), [(0, 0.5), (1, 0.2)])
def test_three_sets_are_the_proof_s(explorable, data: int, eps: float) -> None:
    _, root = explorable("three_sets", {"data": data, "eps": eps, "k": 60})
    steps = int(root.get_attribute("data-step"))
    pairs = problems.sphere(n=12, T=2, d=4, min_gap=0.2, rng=2)
    problem, size = (pairs, 0.1) if data else (figure_2()[0], 0.025)
    goal = svm.attention_svm(problem)
    run = optim.train(MODEL, problem, optim.NormalizedGD(size), steps)
    W = run.params["W"] * goal.norm / np.linalg.norm(run.params["W"])
    others = np.arange(problem.T) != problem.optimal[:, None]
    margins = np.where(others, theory.svm.token_margins(problem, W), np.inf).min(axis=-1)
    sets = theory.bias.gap_set(margins - 1.0, eps)
    found = json.loads(root.get_attribute("data-counts"))
    assert found == [int((sets == which).sum()) for which in (1, 2, 3)]
    direction = -MODEL.scaled_grad({"W": run.params["W"]}, problem)[1]["W"]
    direction /= np.linalg.norm(direction)
    toward = float((direction * goal.W).sum() / goal.norm)
    along = float((direction * W).sum() / np.linalg.norm(W))
    assert float(root.get_attribute("data-toward")) == pytest.approx(toward, abs=1e-5)
    assert float(root.get_attribute("data-along")) == pytest.approx(along, abs=1e-5)
    assert root.get_attribute("data-holds") == str(toward >= (1 - eps) * along).lower()
