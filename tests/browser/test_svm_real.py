"""Heads of MiniLM on their page: what is drawn is what was kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import figures

NAME = "real_heads"


@pytest.fixture(scope="module")
def run() -> figures.Data:
    return figures.kept("svm.real")


def count(run: figures.Data, sentence: int) -> int:
    return int(run["tokens"][sentence].any(axis=1).sum())


@pytest.mark.parametrize(("layer", "head", "sentence", "query"), [(0, 0, 0, 0), (5, 11, 5, 7)])
def test_the_words_get_what_the_head_gave(
    explorable, run: figures.Data, layer: int, head: int, sentence: int, query: int
) -> None:
    state = {"layer": layer, "head": head, "sentence": sentence, "query": query}
    _, root = explorable(NAME, state)
    T = count(run, sentence)
    for which, name in enumerate(("weights", "svm")):
        rows = (run["maps"][layer, head, which, sentence, query, :T] / 127.0) ** 2
        shown = json.loads(root.get_attribute(f"data-{name}"))
        np.testing.assert_allclose(shown, rows / rows.sum(), atol=1e-9)
    inside = run["own"][layer, :, head, 2].mean()
    assert float(root.get_attribute("data-inside")) == pytest.approx(inside, abs=1e-6)


def test_as_many_heads_come_first_as_in_the_run(explorable, run: figures.Data) -> None:
    own, random, other = (run[name].mean(axis=1)[..., 2] for name in ("own", "random", "other"))
    first = int((own > np.maximum(random.max(-1), other.max(-1))).sum())
    _, root = explorable(NAME, {"first": 30, "taught": 0.9, "open": 1})
    assert int(root.get_attribute("data-firsts")) == first
    told = root.inner_text()
    assert f"it is {first} heads" in told
    taught = run["taught"][..., 2].mean(axis=(0, 1))
    assert f"it is {taught[1]:.2f}" in told
    assert "The matrix has not changed, but the SVM has" in told


def test_any_address_and_any_press(explorable, run: figures.Data) -> None:
    page, root = explorable(NAME, {"layer": 99, "head": -3, "sentence": 40, "query": 400})
    last = count(run, len(run["tokens"]) - 1)
    assert len(json.loads(root.get_attribute("data-weights"))) == last
    # a word that is pressed asks
    root.locator(".al-words [data-query='2']").click()
    page.wait_for_function(
        "(name) => document.querySelector(`[data-explorable=${name}]`).alState.query === 2",
        arg=NAME,
    )
    # so does one that keys choose, and sealed pages show no strip
    root.locator("input[data-key=query]").press("ArrowRight")
    page.wait_for_function(
        "(name) => document.querySelector(`[data-explorable=${name}]`).alState.query === 3",
        arg=NAME,
    )
    _, sealed = explorable(NAME, sealed=True)
    assert sealed.locator(".al-strip circle").count() == 0
    assert sealed.get_attribute("data-firsts") is None
