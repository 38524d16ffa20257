"""Races of starts and scalings, tokens or features, three numbers: what is shown is true."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attnbook import theory
from attnlab import models, ntk, optim, problems

CASES = 200


def told(root: Any, name: str) -> Any:
    return json.loads(root.get_attribute(f"data-{name}"))


def settled(page: Any) -> None:
    """Two frames."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def test_sums_and_fits_of_one_feature(kernel) -> None:
    rng = np.random.default_rng(0)
    given, sums, fits = [], [], []
    for _ in range(CASES):
        n, T = int(rng.integers(2, 13)), int(rng.integers(1, 7))
        X, y = rng.standard_normal((n, T)), rng.standard_normal(n)
        kappa = float(rng.normal(scale=3.0))
        problem = problems.SequenceProblem(X[..., None], y)
        given.append((kappa, X.tolist(), y.tolist()))
        sums.append(theory.encoder.effective_features(kappa, problem))
        fits.append((float(theory.encoder.effective_floor(kappa, problem)), sums[-1] / T, y))
    found = kernel("one_feature", "partSums", [list(case[:2]) for case in given])
    for mine, theirs in zip(found, sums, strict=True):
        assert np.allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    found = kernel("one_feature", "bestFit", [list(case) for case in given])
    for mine, (floor, features, y) in zip(found, fits, strict=True):
        assert np.isclose(mine["floor"], floor, rtol=1e-9, atol=1e-12)
        residual = features @ [mine["p"], mine["q"]] - y
        assert np.isclose(np.mean(residual**2), floor, rtol=1e-7, atol=1e-9)
    cases = [[kappa, 1.5, -0.5, X] for kappa, X, _ in given]
    found = kernel("one_feature", "outputsOf", cases)
    for mine, (_, features, _) in zip(found, fits, strict=True):
        assert np.allclose(mine, features @ [1.5, -0.5], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("mode", "s", "w"), [("equal", 2, 1), ("relative", 1, 1)])
def test_init_race_shows_real_runs(explorable, mode: str, s: int, w: int) -> None:
    _, root = explorable("init_race", {"mode": mode, "s": s, "w": w})
    problem = problems.gaussian_regression(n=20, T=4, d=20, unit_tokens=True, rng=0)
    share = ((0.25, 0.5, 1.0), (0.125, 0.25, 0.5))[mode == "relative"][s]
    for i, init in enumerate(("lecun", "he", "ntk")):
        model = models.Encoder((20, 80, 240)[w], init=init)
        start = model.init(problem, rng=0)
        top = np.linalg.eigvalsh(ntk.empirical(model, start, problem))[-1]
        limit = float(theory.encoder.stability_limit(top, problem.n))
        step = share * (limit if mode == "relative" else 1.0)
        assert np.isclose(told(root, "limits")[i], limit, rtol=1e-5)
        assert np.isclose(told(root, "steps")[i], step, rtol=1e-5)
        run = optim.train(model, problem, optim.GD(step), steps=200, params=start)
        fell = run.history["loss"][-1] / run.history["loss"][0]
        assert np.isclose(told(root, "shares")[i], fell, rtol=1e-3)


def test_init_race_turns_round(explorable) -> None:
    page, root = explorable("init_race")
    shares = told(root, "shares")
    assert shares[2] > 1e6 * max(shares[:2])
    root.locator('[data-value="relative"]').click()
    settled(page)
    shares = told(root, "shares")
    assert shares[2] < min(shares[:2])
    root.locator("[data-bet='1']").click()
    settled(page)
    assert root.locator(".al-told").inner_text().startswith("Yes.")


def test_scale_race_turns_round(explorable) -> None:
    for seed in range(3):
        page, root = explorable("scale_race", {"seed": seed})
        sqrt, linear = told(root, "shares")
        assert sqrt < linear
        assert told(root, "alpha")[0] < told(root, "alpha")[1]
        root.locator('[data-value="relative"]').click()
        settled(page)
        sqrt, linear = told(root, "shares")
        assert linear < sqrt
        assert "1/width ahead" in root.locator(".al-readout").inner_text()


def test_tokens_or_features(explorable) -> None:
    drawn = problems.gaussian_regression(n=24, T=1, d=24, unit_tokens=True, rng=3)
    for t, tokens in ((0, 1), (5, 8), (7, 24)):
        _, root = explorable("token_or_feature", {"t": t, "w": 0, "scaling": "linear"})
        problem = problems.SequenceProblem(drawn.X.reshape(24, tokens, 24 // tokens), drawn.y)
        model = models.Encoder(24, scaling="linear")
        start = model.init(problem, rng=3)
        values = np.linalg.eigvalsh(ntk.empirical(model, start, problem))[::-1]
        assert told(root, "rank") == int((values > 1e-10 * values[0]).sum())
        assert np.isclose(told(root, "least"), max(values[-1], 0.0), rtol=1e-3, atol=1e-12)
        step = 0.25 * float(theory.encoder.stability_limit(values[0], problem.n))
        run = optim.train(model, problem, optim.GD(step), steps=150, params=start)
        left = run.history["loss"][-1] / (problem.y**2).mean()
        assert np.isclose(told(root, "loss"), left, rtol=1e-3)
    assert told(root, "rank") == 3
    assert told(root, "block") == 2
    assert "violated" in root.locator(".al-readout").inner_text()


def test_three_numbers(explorable) -> None:
    drawn = problems.gaussian_regression(n=12, T=5, d=1, rng=4)
    page, root = explorable("three_numbers", {"kappa": -1.5, "pq": [0.5, 2.0], "N": 6, "net": 1})
    problem = problems.SequenceProblem(drawn.X[:6], drawn.y[:6])
    features = theory.encoder.effective_features(-1.5, problem) / problem.T
    outputs = features @ [0.5, 2.0]
    assert np.allclose(told(root, "outputs"), outputs, rtol=1e-5, atol=1e-6)
    floor = float(theory.encoder.effective_floor(-1.5, problem))
    assert np.isclose(told(root, "floor"), floor, rtol=1e-5, atol=1e-7)
    assert told(root, "loss") >= told(root, "floor")
    assert np.isclose(told(root, "again"), told(root, "network")["loss"], rtol=1e-4)
    root.get_by_role("button", name="Take its three numbers").click()
    settled(page)
    assert np.isclose(told(root, "loss"), told(root, "network")["loss"], rtol=1e-4)


def test_dragging_p_and_q_changes_the_loss(explorable) -> None:
    page, root = explorable("three_numbers")
    before = told(root, "loss")
    root.locator('[data-handle="pq"]').focus()
    for _ in range(5):
        page.keyboard.press("ArrowUp")
    settled(page)
    assert told(root, "loss") != before


def test_the_tail_of_assumption_3(explorable) -> None:
    page, root = explorable("tail_meter")
    rng = np.random.default_rng(0)
    problems.gaussian_regression(n=100, T=10, d=100, rng=rng)  # the raw tokens come first
    own = problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=True, rng=rng)
    alike = theory.encoder.similarity(own.X)[np.triu_indices(100, 1)]
    assert np.isclose(told(root, "middle"), np.median(alike), rtol=0.001)
    allowed = theory.encoder.dissimilarity(np.sort(alike), 1.0)
    excess = (1.0 - np.arange(len(alike)) / len(alike) - allowed).max()
    assert np.isclose(told(root, "excess"), excess, atol=1e-5)
    assert root.get_attribute("data-inside") == "false"
    root.locator('[data-value="onehot"]').click()
    settled(page)
    assert root.get_attribute("data-inside") == "true"
    _, root = explorable("tail_meter", {"kind": "number", "c": 0.5})
    assert root.get_attribute("data-inside") == "true"
    _, root = explorable("tail_meter", {"kind": "number", "c": 1})
    assert root.get_attribute("data-inside") == "false"


@pytest.mark.parametrize(
    ("state", "inside"),
    [
        ({"kind": "unit", "c": 3, "scale": -0.3}, "false"),  # half the length: 3e-5 of the pairs
        ({"kind": "unit", "c": 3, "scale": -1}, "false"),
        ({"kind": "number", "c": 0.45}, "false"),
        ({"kind": "number", "c": 0.5, "scale": -0.5}, "true"),
        ({"kind": "number", "c": 0.5, "scale": 0.05}, "false"),
        ({"kind": "onehot", "c": 1.2, "scale": 0.1}, "false"),  # 1/20 against 0.0488
        ({"kind": "onehot", "c": 1.15, "scale": 0.1}, "true"),
    ],
)
def test_the_tail_meter_has_no_tolerance(explorable, state, inside: str) -> None:
    """What a sample does not show is no evidence that a tail is kept for every t."""
    _, root = explorable("tail_meter", state)
    assert root.get_attribute("data-inside") == inside
    words = root.locator(".al-readout").inner_text()
    assert ("The assumption holds" in words) == (inside == "true")
