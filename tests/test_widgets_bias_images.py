"""What the explorables of real images carry is what the kept runs hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import figures, widgets
from attnbook.widgets._base import Explorable


def carried(widget: Explorable, name: str) -> Any:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


def size(widget: Explorable) -> int:
    return sum(len(entry["bytes"]) for entry in widget.data.values())


def test_the_race_carries_both_data_sets() -> None:
    widget = widgets.ImageRace()
    curves = carried(widget, "curves")
    for k, name in enumerate(("bias.6", "bias.7")):
        data = figures.kept(name)
        assert np.allclose(carried(widget, "size")[k], data["size"])
        assert np.allclose(carried(widget, "gaps")[k], data["gaps"], atol=1e-6)
        assert carried(widget, "seeds")[k] == data.settings["trials"]
        well = np.isfinite(data["loss"]).all(axis=(2, 3)) & (data["loss"] < 100).all(axis=(2, 3))
        assert np.allclose(curves[k, :, :, 0][well], data["loss"].mean(axis=2)[well], rtol=1e-5)
        norm = data["norm"].mean(axis=(2, 4))
        assert np.allclose(curves[k, :, :, 3][well], norm[well], rtol=1e-5)
    assert np.isfinite(curves).all()
    assert size(widget) < 40_000


def test_the_digit_carries_means_over_draws() -> None:
    widget, data = widgets.DigitPatch(), figures.kept("bias.9")
    curves = carried(widget, "curves")
    assert np.allclose(curves[:, 0], 1 - data["cosine"].mean(axis=0), atol=1e-6)
    assert np.allclose(curves[:, 1], data["attention"].mean(axis=0), atol=1e-6)
    assert carried(widget, "draws") == len(data["cosine"])
    assert len(curves) == len(data.settings["gd_steps"]) + 2 * len(data.settings["ngd_steps"])
    assert size(widget) < 40_000


def test_the_watched_run_carries_its_maps() -> None:
    widget, data = widgets.TrainedViT(), figures.kept("bias.vit")
    assert np.array_equal(carried(widget, "maps"), data["maps"])
    assert np.array_equal(carried(widget, "picture"), data["picture"])
    inside = carried(widget, "inside")
    for place, name in enumerate(("keys", "norm", "rank")):
        assert np.allclose(inside[:, place], data[name][:, 0], rtol=1e-5)
    assert size(widget) < 120_000
