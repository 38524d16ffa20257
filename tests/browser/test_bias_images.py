"""Explorables of real images in the browser: what they show is what the kept runs hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attnbook import figures


def shown(root: Any, name: str) -> Any:
    return json.loads(root.get_attribute(f"data-{name}"))


def wait(page: Any, widget: str, key: str, value: str) -> None:
    page.wait_for_function(
        "([name, key, value]) => document.querySelector(`[data-explorable=${name}]`)"
        ".dataset[key] === value",
        arg=[widget, key, value],
        timeout=30_000,
    )


@pytest.mark.parametrize("place", [0, 1])
def test_race_printed_steps_and_best(explorable, place: int) -> None:
    data = figures.kept(("bias.6", "bias.7")[place])
    last = np.nan_to_num(data["loss"][..., -1], nan=1e3, posinf=1e3).clip(max=1e3)
    means = last.mean(axis=-1).clip(max=10.0)
    page, root = explorable("image_race", state={"bet": 1, "data": place})
    assert np.allclose(shown(root, "ends"), means[:, 0], rtol=1e-4)
    root.get_by_role("button", name="each its best").click()
    wait(page, "image_race", "steps", "best")
    assert np.allclose(shown(root, "ends"), means.min(axis=1), rtol=1e-4)


def test_race_one_s_own_step(explorable) -> None:
    data = figures.kept("bias.6")
    page, root = explorable("image_race", state={"bet": 1})
    slider = root.locator("input[data-key=own0]")
    slider.focus()
    slider.press("End")
    wait(page, "image_race", "steps", "own")
    picks = shown(root, "picks")
    assert picks[0] == int(data["size"][0].argmax())
    assert picks[1:] == [0, 0, 0], "the others stay where they were"


def test_digit_ends_as_the_kept_run(explorable) -> None:
    data = figures.kept("bias.9")
    _, root = explorable("digit_patch", state={"bet": 1, "gd": 0, "ngd": 1})
    ends = 1.0 - data["cosine"][..., -1].mean(axis=0)
    assert np.allclose(shown(root, "misses"), ends[[0, 5, 8]], rtol=1e-2, atol=1e-7)
    assert shown(root, "step") == data["step"][0, -1]


def test_watched_run_shows_its_maps(explorable) -> None:
    data = figures.kept("bias.vit")
    last = len(data["epoch"]) - 1
    given = {"open": 2, "t": last, "rule": 1, "digit": 3, "layer": 1, "head": 2}
    _, root = explorable("trained_vit", state=given)
    assert np.allclose(shown(root, "attention"), data["maps"][1, last, 3, 1, 1] / 127, atol=1e-6)
    assert shown(root, "frame") == last


def test_watched_run_is_sealed_at_its_start(explorable) -> None:
    _, root = explorable("trained_vit", sealed=True, state={"t": 12})
    assert root.get_attribute("data-sealed") == "true"
    assert shown(root, "frame") == 0, "an address cannot look ahead"
