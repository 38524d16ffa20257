"""Explorables of real texts in the browser: their arithmetic against NumPy, and what they show."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import figures, real
from attnbook.figures.bias import races, words

SHARES = """async ([site, sizes, thresholds, shares]) => {
  const { lineOf, shareAt } = await import(`${site}/explorables/word_angles.js`);
  return { shares: sizes.map((size) => shareAt(size, thresholds, shares)), line: lineOf(20, 12) };
}"""


def test_the_share_below_a_line_is_numpys(open_page, site) -> None:
    data = figures.kept("bias.10")
    sizes = [1e-4, 3.8e-4, 0.02, 0.1, 0.5]
    shares = data["below"][:, 0, 0].mean(axis=0)
    page = open_page("404.html")
    found = page.evaluate(SHARES, [site, sizes, words.THRESHOLDS.tolist(), shares.tolist()])
    assert found["line"] == pytest.approx(real.probe.line(20, 12), rel=1e-12)
    expected = [words.share_below(data, size) for size in sizes]
    assert found["shares"] == pytest.approx(expected, rel=1e-9)


def test_the_race_shows_the_best_of_each_grid(explorable) -> None:
    data = figures.kept("bias.1")
    _, root = explorable("real_race", state={"open": 2, "how": "best"})
    best = races.best(data)
    sizes = json.loads(root.get_attribute("data-sizes"))
    assert sizes == pytest.approx(data["sizes"][np.arange(4), best], rel=1e-5)
    ends = data["loss"][np.arange(4), best].mean(axis=1)[:, -1]
    assert json.loads(root.get_attribute("data-now")) == pytest.approx(ends, rel=1e-5)


@pytest.mark.parametrize("world", range(4))
def test_worlds_count_their_trainings(explorable, world: int) -> None:
    state = {"open": 2, "tokens": world % 2, "scores": world // 2}
    _, root = explorable("four_worlds", state=state)
    hits, _ = words.arrive(figures.kept("bias.10"), world)
    assert root.get_attribute("data-arrived") == str(hits)


def test_a_line_is_moved_by_the_number_of_texts(explorable) -> None:
    _, root = explorable("word_angles", state={"open": 2, "n": 2, "T": 2})
    assert float(root.get_attribute("data-line")) == pytest.approx(real.probe.line(2, 2))
    share = words.share_below(figures.kept("bias.10"), real.probe.line(2, 2))
    assert float(root.get_attribute("data-share")) == pytest.approx(share, rel=1e-4)
