"""What the explorables of the encoder's real page carry, against the kept runs."""

from typing import Any

import numpy as np

from attnbook import figures, widgets
from attnlab.checks import Array


def array(widget: Any, name: str) -> Array:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


def test_maps_travel_to_a_ten_thousandth() -> None:
    kept, widget = figures.kept("encoder.4"), widgets.VitMaps()
    maps = array(widget, "maps") / 1e4
    np.testing.assert_allclose(maps, kept["maps"].astype(float), atol=1e-4)
    np.testing.assert_allclose(maps.sum(-1), 1, atol=0.01)
    np.testing.assert_allclose(array(widget, "moved"), kept["attention_moved"], rtol=1e-6)


def test_tails_are_those_of_all_pairs() -> None:
    widget = widgets.RealTails()
    counts, least = array(widget, "counts"), array(widget, "least")
    for k, name in enumerate(("encoder.1", "encoder.6")):
        kept = figures.kept(name)
        n, trials = kept.settings["samples"], kept.settings["trials"]
        assert counts[k].sum() == trials * n * (n - 1) // 2
        assert np.flatnonzero(counts[k])[0] == int(least[k] * counts.shape[1])
        # the line of the picture goes through the tail that it was fitted to
        line = np.exp(array(widget, "start")[k] + array(widget, "slope")[k] * kept["t"].mean(0))
        np.testing.assert_allclose(np.log(line), np.log(kept["share"]).mean(0), atol=1.2)
