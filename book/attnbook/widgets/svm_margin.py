"""The attention SVM: what holds W, which tokens can be selected, and how wide is wide enough."""

from __future__ import annotations

import numpy as np

from attnbook.widgets import stored
from attnbook.widgets._base import Explorable
from attnlab.problems import TokenProblem


class MarginStreet(Explorable):
    r"""Two sequences and the angle between their queries: the shortest $W$ and what holds it.

    Returns:
        A widget; `problem` is what the reader made of it.

    Examples:
        >>> from attnlab import svm
        >>> from attnbook import widgets
        >>> svm.attention_svm(widgets.MarginStreet().problem).support.sum()
        np.int64(2)

    Reference: svm, Att-SVM.
    """

    name = "margin_street"

    def __init__(self) -> None:
        super().__init__(dict(STREET))

    @property
    def problem(self) -> TokenProblem:
        """The two sequences as they are on the board now."""
        turn = np.radians(float(self.now("angle")))
        z = np.array([[1.0, 0.0], [np.cos(turn), np.sin(turn)]])
        X, v = (np.array(self.now(key), float) for key in ("X", "v"))
        return TokenProblem(X=X, z=z, y=np.ones(2), v=v)


# sequence 1 is held by token 4, 1, 2 at 15, 30, 90 degrees; the margin rises from 0.31 to 1.15
STREET = {
    "X": [
        [[0.0, 0.1], [0.6, -0.2], [1.6, 0.9], [-1.4, 0.2]],
        [[-0.2, 0.0], [0.9, 0.9], [-1.5, 0.9], [1.0, -1.0]],
    ],
    "v": [-0.1, 1.0],
    "angle": 30,
}


class ExposedToken(Explorable):
    r"""One sequence and one query: which tokens can be selected, and what forbids the others.

    Returns:
        A widget; `problem` is the sequence, ``now("pick")`` the selected token.

    Reference: svm, Theorem 8.
    """

    name = "exposed_token"

    def __init__(self) -> None:
        super().__init__(dict(EXPOSED))

    @property
    def problem(self) -> TokenProblem:
        """The sequence as it is on the board now."""
        X = np.array([self.now("X")], float)
        return TokenProblem(X=X, z=np.array([[1.0, 0.0]]), y=np.ones(1), v=np.array([0.0, 1.0]))


EXPOSED = {
    "X": [[1.2, -0.8], [-1.3, -0.6], [0.1, 1.1], [0.3, 0.0], [-0.9, 0.7]],
    "pick": 4,
}


class EnoughWidth(Explorable):
    r"""How often a max-margin $W$ exists, over the width $d$ and the length $T$ of a sequence.

    Returns:
        A widget; its sweep is stored and renewed by ``python -m attnbook.widgets.sweeps``.

    Reference: svm, Theorems 1 and 8.
    """

    name = "enough_width"

    def __init__(self) -> None:
        super().__init__({"n": 3}, stored.load("feasible"))
