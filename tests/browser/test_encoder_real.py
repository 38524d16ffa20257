"""Maps and tails of the encoder's page on real data: what is told is what the kept runs hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attnbook import figures


def told(root: Any, name: str) -> Any:
    return json.loads(root.get_attribute(f"data-{name}"))


@pytest.mark.parametrize(("data", "c", "scale"), [("texts", 1.0, 0.3), ("images", 0.2, 0.0)])
def test_the_worst_excess_over_the_tail(explorable, data: str, c: float, scale: float) -> None:
    state = {"open": 1, "texts": 0.5, "images": 0.5, "data": data, "c": c, "scale": scale}
    _, root = explorable("real_tails", state)
    counts = figures.kept({"texts": "encoder.1", "images": "encoder.6"}[data])["counts"].sum(0)
    share = counts[::-1].cumsum()[::-1] / counts.sum()
    t = 10 ** (4 * scale) * np.arange(len(counts)) / len(counts)
    some = (share > 0) & (share < 1)
    excess = (share - np.exp(-(t**c)))[some].max()
    assert np.isclose(told(root, "excess"), excess, rtol=1e-9)
    assert told(root, "kept") == (excess <= 0)


def test_both_maps_at_every_width(explorable) -> None:
    data = figures.kept("encoder.4")
    for w, width in enumerate(data["width"].astype(int)):
        state = {"open": 1, "times": 5, "loss": "behind", "k": 7, "width": int(width)}
        _, root = explorable("vit_maps", state)
        moved = data["attention_moved"][w, :, :, 7].mean(axis=0)
        np.testing.assert_allclose(told(root, "moved"), moved, rtol=1e-6)
        np.testing.assert_allclose(told(root, "last"), data["last"][w].mean(axis=0), rtol=1e-6)


def test_maps_are_drawn_and_scrubbed_by_keys(explorable) -> None:
    page, root = explorable("vit_maps", {"open": 1, "times": 5, "loss": "behind", "k": 3})
    assert root.locator("svg rect.al-fill-best").count() >= 2 * 16 * 16
    scrubber = root.locator("input[data-key=k]")
    scrubber.focus()
    before = root.get_attribute("data-moved")
    scrubber.press("ArrowRight")
    page.wait_for_function(
        "(before) => document.querySelector('[data-explorable=vit_maps]').dataset.moved !== before",
        arg=before,
    )
    moved = figures.kept("encoder.4")["attention_moved"][-1, :, :, 4].mean(axis=0)
    np.testing.assert_allclose(told(root, "moved"), moved, rtol=1e-6)
