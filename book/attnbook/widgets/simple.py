"""Explorables whose whole state lives in the page: nothing is computed ahead."""

from __future__ import annotations

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab.problems import TokenProblem


class FateOfStart(Explorable):
    r"""The 2x2 counterexample to Theorem 4, with the length of the start on a slider.

    Returns:
        A widget.

    Reference: svm, Theorems 4 and 7; bias, Figure 8.
    """

    name = "fate_of_start"

    def __init__(self) -> None:
        super().__init__()


class WaterFilling(Explorable):
    r"""Softmax weights of a concave head, with both thresholds of Lemma 6.

    Returns:
        A widget.

    Reference: svm, Lemma 6.
    """

    name = "water_filling"

    def __init__(self) -> None:
        super().__init__()


class PickToken(Explorable):
    r"""Choose a selection of tokens; its margin problem, and whether training stays there.

    Returns:
        A widget; `problem` is the data and ``now("pick")`` the selection.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.PickToken().problem.X.shape
        (2, 3, 2)

    Reference: svm, Definition 2, Theorem 7.
    """

    name = "pick_token"

    def __init__(self) -> None:
        super().__init__(dict(DEFAULT))

    @property
    def problem(self) -> TokenProblem:
        """The data on the board."""
        X, z, y, v = (np.array(self.now(key), float) for key in ("X", "z", "y", "v"))
        return TokenProblem(X=X, z=z, y=y, v=v)


# of the eight selections that are not the best one, (1, 0) holds training
DEFAULT = {
    "X": [[[-1.1, 1.2], [1.5, 1.1], [0.7, -1.2]], [[-1.3, -0.3], [0.4, -1.0], [1.6, 0.3]]],
    "z": [[-0.1, 0.9], [-1.1, -0.9]],
    "y": [1.0, 1.0],
    "v": [0.2, 1.0],
    "pick": [1, 0],
}
