"""The page "Many tokens at once": the level, the thresholds and the two parts are attnlab's."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from attnbook import theory, widgets

GAMMA = [1.0, 0.9, 0.5, 0.43, 0.4, 0.35]
OPEN = {"open": 2}


@pytest.fixture
def explorable(open_page):
    """``explorable("water_filling", {"tau": 3})``: alone, as this page shows it."""

    def visit(name: str, state: dict[str, Any] | None = None, **how: Any):
        query = f"?{name}={quote(json.dumps(state))}" if state else ""
        page = open_page(f"book/svm/many.html{query}", typeset=False, only=name, **how)
        page.wait_for_selector(f'[data-explorable="{name}"][data-ready]', timeout=60_000)
        return page, page.locator(f'[data-explorable="{name}"]').first

    return visit


@pytest.mark.parametrize("penalty", [0.02, 0.3, 0.7, 4])
def test_shares_are_lemma_6s(explorable, penalty: float) -> None:
    _, root = explorable("water_filling", {**OPEN, "lambda": penalty})
    expected = theory.svm.water_filling(GAMMA, penalty)
    assert json.loads(root.get_attribute("data-weights")) == pytest.approx(expected, abs=1e-9)
    assert int(root.get_attribute("data-kept")) == (expected > 0).sum()


@pytest.mark.parametrize(
    ("gamma", "empty"), [(GAMMA, False), ([1, 0.2, 0.1, 0.05, 0.02, 0.02], True)]
)
def test_it_says_where_the_printed_range_is_empty(
    explorable, gamma: list[float], empty: bool
) -> None:
    _, root = explorable("water_filling", {**OPEN, "gamma": gamma, "tau": 2})
    low, high = theory.svm.thresholds(gamma, tokens=2, printed=True)
    assert bool(low >= high) is empty
    said = root.locator(".al-readout").inner_text()
    assert ("its range is empty" in said) is empty
    sharp = theory.svm.thresholds(gamma, tokens=2)
    assert f"from {sharp[0]:.3f} to {sharp[1]:.3f}" in said


def test_a_score_is_dragged_by_keys(explorable) -> None:
    page, root = explorable("water_filling", {**OPEN, "lambda": 0.3})
    root.locator('[data-handle="g2"]').focus()
    for _ in range(12):
        page.keyboard.press("ArrowUp")
    page.wait_for_function(
        "() => document.querySelector('[data-explorable=water_filling]').dataset.kept === '3'"
    )


def test_both_questions_are_answered(explorable) -> None:
    page, root = explorable("water_filling")
    assert root.get_attribute("data-weights") is None
    root.locator(".al-number-ask input").fill("0.1")
    root.locator(".al-knobkey").last.focus()
    page.keyboard.press("End")
    root.locator("[data-go]").click()
    page.wait_for_selector("[data-explorable=water_filling] .al-verdict p")
    said = root.locator(".al-verdict").inner_text()
    assert "You said the whole difference" in said
    assert f"λ = {theory.svm.thresholds(GAMMA, tokens=2)[0]:.3f}" in said
    share = max(theory.svm.water_filling(GAMMA, x)[1] for x in np.geomspace(0.02, 4, 400))
    assert f"at most {100 * share:.0f} %" in said


def test_the_finite_part_keeps_the_shares(explorable) -> None:
    shares, masked = [], []
    for R in (2, 30):
        _, root = explorable("finite_part", {**OPEN, "R": R})
        shares.append(root.get_attribute("data-shares"))
        masked.append(float(root.get_attribute("data-masked")))
    assert shares[0] == shares[1] == "0.700 : 0.300;0.400 : 0.600"
    assert masked[1] < 1e-4 * masked[0]
    _, root = explorable("finite_part", {**OPEN, "R": 30, "part": "single"})
    first, second = root.get_attribute("data-shares").split(";")
    assert float(first.split(" : ")[0]) > 0.99
    assert float(second.split(" : ")[1]) > 0.99


def test_one_token_wins_is_answered(explorable) -> None:
    page, root = explorable("finite_part")
    root.locator(".al-knobkey").last.focus()
    page.keyboard.press("End")
    root.locator("[data-go]").click()
    page.wait_for_selector("[data-explorable=finite_part] .al-verdict p")
    assert "One token wins" in root.locator(".al-verdict").inner_text()
    assert widgets.FinitePart().data["single"]["shape"] == [8, 8]
