"""Explorables over the kept run of many heads on real sentences: multihead, Figure 6."""

from __future__ import annotations

import numpy as np

from attnbook import figures
from attnbook.widgets._base import Explorable

RUN = "multihead.6"
SHOWN = ("train", "test", "accuracy")


class MoreHeads(Explorable):
    r"""Loss of one head and of many: heads that differ, copies of one, one head's parameters.

    Returns:
        A widget over the run that the book keeps; nothing is trained.

    Reference: multihead, Figure 6.
    """

    name = "more_heads"

    def __init__(self) -> None:
        data = figures.kept(RUN)
        common = int(np.abs(data["rate"] - data.settings["rate"]).argmin())
        arrays = {name: data[name].mean(axis=0) for name in SHOWN}
        arrays |= {
            "heads": data["heads"],
            "rates": data["rate"],
            "epoch": data["epoch"],
            "common": np.array([common]),
            "seeds": np.array([len(data["train"])]),
        }
        super().__init__({"H": int(data["heads"][-1]), "rate": common}, arrays)


class BestSteps(Explorable):
    r"""The last loss by the number of heads: one step for all, or each its best.

    Returns:
        A widget over the run that the book keeps; the best step is that of the lowest mean.

    Reference: multihead, Figure 6.
    """

    name = "best_steps"

    def __init__(self) -> None:
        data = figures.kept(RUN)
        common = int(np.abs(data["rate"] - data.settings["rate"]).argmin())
        arrays = {"heads": data["heads"]}
        for name in ("train", "test"):
            ends = data[name][..., -1]  # (seeds, arms, rates, heads)
            place = ends.mean(axis=0).argmin(axis=1)[None, :, None, :]
            best = np.take_along_axis(ends, place, axis=2)[:, :, 0]
            for how, values in (("same", ends[:, :, common]), ("best", best)):
                parts = [values.mean(axis=0), values.min(axis=0), values.max(axis=0)]
                arrays[f"{name}_{how}"] = np.stack(parts, axis=-1)
        super().__init__({}, arrays)


class HeadsApart(Explorable):
    r"""What each head looks at in one sentence, before training and after.

    Returns:
        A widget over the first seed of the run that the book keeps.

    Reference: multihead, equation 2.
    """

    name = "heads_apart"

    def __init__(self) -> None:
        super().__init__({}, {"look": figures.kept(RUN)["look"][0]})
