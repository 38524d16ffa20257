"""Explorables of real data in the encoder chapter, over kept runs of its figures."""

from __future__ import annotations

import numpy as np

from attnbook import figures
from attnbook.widgets._base import Explorable

UNIT = 1e4  # maps travel as whole numbers of 1e-4


class VitMaps(Explorable):
    r"""A Vision Transformer on MNIST under both scalings: its maps, its loss, by width.

    Returns:
        A widget.

    Reference: encoder, Section 5.2, Figure 4.
    """

    name = "vit_maps"

    def __init__(self) -> None:
        data = figures.kept("encoder.4")
        arrays = {
            "width": data["width"].astype(int),
            "epoch": data["epoch"],
            "loss": data["batch_loss"],
            "last": data["last"],
            "moved": data["attention_moved"],
            "maps": np.round(data["maps"].astype(float) * UNIT).astype(int),
            "ink": data["ink"],
        }
        super().__init__({}, arrays)


class RealTails(Explorable):
    r"""How alike two reviews or two digits are, against the tail of Assumption 3.

    Returns:
        A widget.

    Reference: encoder, Assumption 3, Figures 1 and 6.
    """

    name = "real_tails"

    def __init__(self) -> None:
        runs = [figures.kept(name) for name in ("encoder.1", "encoder.6")]
        middle = [float(run["t"][:, 0].mean()) for run in runs]  # as the verdicts say it
        slope = [float(run["slope"].mean()) for run in runs]
        start = [
            float(np.mean(np.log(run["share"]).mean(1) - run["slope"] * run["t"].mean(1)))
            for run in runs
        ]
        arrays = {
            "counts": np.stack([run["counts"].sum(axis=0) for run in runs]).astype(int),
            "least": np.array([run["least"].min() for run in runs]),
            "middle": np.array(middle),
            "slope": np.array(slope),
            "start": np.array(start),
            # most reviews are longer than where they are cut
            "tokens": np.array(
                [runs[0].settings["longest"], (28 // runs[1].settings["patch"]) ** 2]
            ),
        }
        super().__init__({}, arrays)
