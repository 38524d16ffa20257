"""Sequences and causal masks: the mask under the hand, the mask forgotten, against attnlab."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import widgets
from attnlab import models, optim, problems, svm

V = [0.0, 1.0]


def masked(X: np.ndarray, mask: np.ndarray) -> problems.TokenProblem:
    """A sequence as rows, scores its tokens' heights."""
    T = len(X)
    return problems.TokenProblem(np.repeat(X[None], T, 0), X, np.ones(T), np.array(V), mask=mask)


def draws(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        mask = rng.random((5, 5)) < 0.6
        mask[np.arange(5), np.arange(5)] = True
        found.append((rng.uniform(-1.5, 1.5, (5, 2)).round(2), mask))
    return found


def test_margins_of_masks(kernel) -> None:
    """Margin, values and support of random masks; 0 where there is no W."""
    cases = draws(60)
    given = [[{"X": X.tolist(), "y": [1] * 5, "v": V}, mask.tolist()] for X, mask in cases]
    infeasible = 0
    for (X, mask), told in zip(cases, kernel("masks", "inequalities", given), strict=True):
        problem = masked(X, mask)
        assert told["best"] == problem.optimal.tolist()
        try:
            margin = svm.attention_svm(problem)
        except svm.InfeasibleMargin:
            infeasible += 1
            assert told["margin"] == 0
            continue
        assert told["margin"] == pytest.approx(1 / margin.norm, rel=1e-7)
        assert np.allclose(told["W"], margin.W, atol=1e-6 * margin.norm)
        assert len(told["where"]) == mask.sum() - 5
        support = [[k, t] for (k, t), on in zip(told["where"], told["support"], strict=True) if on]
        assert support == np.argwhere(margin.support).tolist()
    assert 5 < infeasible < 55


def test_training_behind_a_mask(kernel) -> None:
    cases = draws(10)
    given = [[{"X": X.tolist(), "y": [1] * 5, "v": V}, m.tolist(), 0.5, 60] for X, m in cases]
    rule, model = optim.NormalizedGD(0.5), models.Attention(start="zero")
    for (X, mask), found in zip(cases, kernel("masks", "run", given), strict=True):
        run = optim.train(model, masked(X, mask), rule, 60, every=60)
        assert len(found) == 61
        assert np.allclose(found[-1], run.params["W"], atol=1e-7)


def test_the_mask_under_the_hand(explorable) -> None:
    """A reader draws, opens all cells, presses one; every state has attnlab's margin."""
    page, root = explorable("causal_mask", sealed=True)
    board = widgets.CausalMask()
    assert root.get_attribute("data-sealed") == "true"
    assert not root.locator(".al-cell:visible").count(), "no cell may be opened yet"
    knob = root.locator('.al-knobkey[tabindex="0"]')
    knob.focus()
    page.keyboard.press("ArrowDown")
    root.locator("[data-go]").click()
    page.wait_for_selector('[data-explorable="causal_mask"] .al-verdict p', timeout=30_000)
    assert "falls to 0.33" in root.locator(".al-verdict").inner_text()
    board.state = {**board.state, "cells": 10}
    full = 1 / svm.attention_svm(board.problem).norm
    assert float(root.get_attribute("data-margin")) == pytest.approx(full, abs=1e-6)
    slider = root.locator('input[data-key="cells"]')
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_selector('[data-explorable="causal_mask"][data-pressed="0"]')
    root.locator('[data-cell="2,3"]').click()
    page.wait_for_selector('[data-explorable="causal_mask"][data-pressed="1"]')
    X = np.array(widgets.sequences.START)
    mask = np.tril(np.ones((5, 5), bool))
    before = 1 / svm.attention_svm(masked(X, mask)).norm
    mask[2, 3] = True
    after = 1 / svm.attention_svm(masked(X, mask)).norm
    assert after > before
    assert float(root.get_attribute("data-margin")) == pytest.approx(after, abs=1e-6)
    assert root.get_attribute("data-asked") == "11"


def test_a_forgotten_mask(explorable) -> None:
    state = {"open": 1, "bet": "stay"}
    _, root = explorable("mask_forgotten", state)
    causal = widgets.CausalMask().problem
    free = problems.TokenProblem(causal.X, causal.z, causal.y, causal.v)
    model = models.Attention(start="zero")
    run = optim.train(model, causal, optim.NormalizedGD(0.5), 120, every=120)
    row = model.attention(run.params, free)[1]
    assert np.allclose(json.loads(root.get_attribute("data-removed")), row, atol=1e-9)
    assert row[3] > 0.99
    cosines = [svm.correlation(run.params["W"], svm.attention_svm(p).W) for p in (causal, free)]
    angles = np.degrees(np.arccos(cosines))
    assert np.allclose(json.loads(root.get_attribute("data-angles")), angles, atol=1e-4)
    assert "token 4" in root.locator(".al-verdict").inner_text()


JUDGE = """async ([site, states]) => {
  const found = (await import(`${site}/explorables/derivations/svm-masks.js`)).default;
  return states.map((state) => {
    const { results, failed } = found.judge(state);
    return { failed, rows: results.map(({ rows }) => rows.map((row) => row.slice(1, 3))) };
  });
}"""


def test_the_derivation(open_page, site: str) -> None:
    """With one selection it always holds; without, the first line fails, as by attnlab."""
    page = open_page("404.html")
    X = np.array(widgets.sequences.START)
    states = [{"X": X.tolist(), "cells": c, "drop": d} for c in range(11) for d in ([], ["same"])]
    few = masked(X, widgets.sequences.opened(5, 0))
    own, failures = 1 / svm.attention_svm(few).norm, 0
    for state, told in zip(states, page.evaluate(JUDGE, [site, states]), strict=True):
        many = masked(X, widgets.sequences.opened(5, state["cells"]))
        chosen = many.optimal if state["drop"] else few.optimal
        try:
            margin = svm.attention_svm(many, chosen)
        except svm.InfeasibleMargin:
            assert not state["drop"]
            assert told["rows"][2][0][1] == 0.0
            continue
        logits = X @ margin.W @ X.T  # token, position
        lead = logits[few.optimal, np.arange(5)][:, None] - logits.T
        least = np.where(few.mask & (few.optimal[:, None] != np.arange(5)), lead, np.inf).min()
        assert told["failed"] == ("among" if least < 1 - 1e-7 else None)
        assert told["rows"][0][0] == pytest.approx([least, 1.0], abs=1e-7)
        failures += bool(told["failed"])
        if not told["failed"]:
            assert np.allclose(told["rows"][2][0], [own, 1 / margin.norm], atol=1e-9)
    assert failures == 8
