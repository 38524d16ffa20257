"""Heads of a real model, each beside the SVM of what it selects."""

from __future__ import annotations

import numpy as np

from attnbook import figures
from attnbook.figures import Data
from attnbook.widgets._base import Explorable


class RealHeads(Explorable):
    r"""72 heads of MiniLM over six sentences, and how close each lies to its own SVM.

    Returns:
        A widget over the kept run of ``svm.real``; `data` of that run is ``figures.kept``.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.RealHeads().kept["own"].shape[-2:]
        (12, 4)

    Reference: svm, Theorem 3.
    """

    name = "real_heads"

    def __init__(self) -> None:
        run = self.kept
        own, random, other = (run[name].mean(axis=1) for name in ("own", "random", "other"))
        arrays = {
            "maps": run["maps"],
            "cosines": run["cosines"],
            "letters": run["tokens"],
            "own": own,
            "random": random[..., 2],
            "other": other[..., 2],
            "special": run["special"].mean(axis=1),
            "agree": run["agree"].mean(axis=1),
            "offsets": run["offsets"].mean(axis=1),
            "taught": run["taught"][..., 2].mean(axis=(0, 1)),
            "taught_random": np.array([run["taught_random"][..., 2].mean()]),
            "sentences": np.array([run.settings["sentences"]]),
        }
        super().__init__({}, arrays)

    @property
    def kept(self) -> Data:
        """The run that is shown."""
        return figures.kept("svm.real")
