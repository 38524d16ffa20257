"""Explorables of the bias chapter's page on real models, over kept runs: images."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import figures
from attnbook.widgets._base import Explorable

CAP = 1e3  # a loss above it has left every picture
MEASURES = ("loss", "held_loss", "held_accuracy", "norm")


class ImageRace(Explorable):
    r"""SGD, SNGD, SPS and Adam on images: step sizes as printed, each rule's best, or one's own.

    Returns:
        A widget over the kept runs of Figures 6 and 7.

    Reference: bias, Figures 6 and 7, Appendix C.
    """

    name = "image_race"

    def __init__(self) -> None:
        runs = [figures.kept("bias.6"), figures.kept("bias.7")]
        curves, gaps, seeds = [], [], []
        for data in runs:
            values = []
            for name in MEASURES:
                found = data[name]
                found = found.mean(axis=-1) if name == "norm" else found
                values.append(np.nan_to_num(found, nan=CAP, posinf=CAP).clip(max=CAP).mean(axis=2))
            curves.append(np.stack(values, axis=2))
            gaps.append(data["gaps"])
            seeds.append(data["loss"].shape[2])
        super().__init__(
            arrays={
                "epoch": np.stack([data["epoch"] for data in runs]),
                "size": np.stack([data["size"] for data in runs]),  # data, rules, step sizes
                "curves": np.stack(curves).astype(np.float32),  # the same, then measures, times
                "gaps": np.stack(gaps).astype(np.float32),  # data, printed or best, rules, interval
                "seeds": np.array(seeds),
            }
        )


class DigitPatch(Explorable):
    r"""One digit among noise: GD, normalized descent, and what cancellation costs it.

    Returns:
        A widget over the kept run of Figure 9.

    Reference: bias, Figure 9, Theorem 5.
    """

    name = "digit_patch"

    def __init__(self) -> None:
        data = figures.kept("bias.9")
        gd, ngd = data.settings["gd_steps"], data.settings["ngd_steps"]
        curves = [1.0 - data["cosine"], data["attention"], data["excess"]]
        super().__init__(
            arrays={
                "step": data["step"][0],
                "curves": np.stack([c.mean(axis=0) for c in curves], axis=1).astype(np.float32),
                "draws": np.array([len(data["step"])]),
                "gd": np.array(gd),
                "ngd": np.array(ngd),
            }
        )


class TrainedViT(Explorable):
    r"""A small Vision Transformer, scrubbed through its training: attention, norm and rank of W.

    Returns:
        A widget over the kept run ``bias.vit``.

    Reference: bias, Figures 6 and 7, Theorem 1.
    """

    name = "trained_vit"

    def __init__(self) -> None:
        data = figures.kept("bias.vit")
        inside = [data[name][:, 0] for name in ("keys", "norm", "rank")]
        arrays: dict[str, Any] = {
            "epoch": data["epoch"],
            "digit": data["digit"],
            "picture": data["picture"],
            "maps": data["maps"],
            "told": data["told"].astype(np.float32),
            "loss": data["loss"][:, 0].astype(np.float32),
            "accuracy": data["held_accuracy"][:, 0].astype(np.float32),
            "inside": np.stack(inside, axis=1).astype(np.float32),  # rules, measures, times, heads
        }
        super().__init__(arrays=arrays)
