"""What the explorables of the bias paper's real data carry, against the kept runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnbook import figures, widgets
from attnbook.figures.bias import races, words
from attnbook.widgets._base import Explorable


def carried(widget: Explorable, name: str) -> Any:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


def test_the_race_carries_the_kept_runs() -> None:
    widget = widgets.RealRace()
    for place, name in enumerate(("bias.1", "bias.4")):
        data = figures.kept(name)
        assert carried(widget, f"loss{place}") == pytest.approx(data["loss"], rel=1e-6, nan_ok=True)
        best = races.best(data)
        assert carried(widget, f"best{place}").tolist() == best.tolist()
        gaps = carried(widget, f"gaps{place}")
        for mode, at in enumerate((races.ends(data)[:, 0], races.tuned(data))):
            for k, found in enumerate(races.ahead(at).values(), 1):
                assert gaps[mode, k] == pytest.approx(list(found), rel=1e-5)
        assert (gaps[:, 0] == 0).all()


def test_angles_are_counted_over_all_draws() -> None:
    widget, data = widgets.WordAngles(), figures.kept("bias.10")
    below = carried(widget, "below")
    near = int(np.abs(words.THRESHOLDS - words.NEAR).argmin())
    assert below[0, 0, near] == pytest.approx(words.share_below(data, words.NEAR), rel=1e-5)
    assert carried(widget, "counts").sum(axis=-1) == pytest.approx(data["pairs"].sum(axis=0))


def test_worlds_carry_every_training() -> None:
    widget, data = widgets.FourWorlds(), figures.kept("bias.10")
    attention = carried(widget, "attention") / 127
    for world in range(4):
        hits, of = words.arrive(data, world)
        least = attention[world, ..., -1].min(axis=-1)
        assert (int((least > 0.5).sum()), len(least)) == (hits, of)
    arrived = (attention[3].min(axis=1) > 0.5).sum(axis=-1)
    assert arrived[widget.now("run")] == arrived.min()
