"""Two parameterisations, two norms: the balls that decide where training goes."""

from __future__ import annotations

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab.problems import TokenProblem


class TwoBalls(Explorable):
    r"""The shaded set of all $W$ with margins of at least 1, touched by a circle and by a diamond.

    The second sequence is the mirror image of the first, so that $W$ stays diagonal: the plane
    holds training of $W$, training of $K$ and $Q$, and both max-margin answers.

    Returns:
        A widget; `problem` is what the reader made of it.

    Examples:
        >>> from attnlab import svm
        >>> from attnbook import widgets
        >>> int(svm.attention_svm(widgets.TwoBalls().problem, norm="nuc").rank)
        1

    Reference: svm, Theorem 2, KQ-SVM.
    """

    name = "two_balls"

    def __init__(self) -> None:
        super().__init__(dict(BALLS))

    @property
    def problem(self) -> TokenProblem:
        """Both sequences as they are now."""
        X, mirror = np.array(self.now("X"), float), np.array([1.0, -1.0])
        return TokenProblem(
            X=np.stack([X, X * mirror]),
            z=np.stack([np.ones(2), mirror]),
            y=np.ones(2),
            v=np.array([1.0, 0.0]),
        )


# K and Q first run towards the wrong axis: an angle of 18 degrees at step 16, of 90 in the end
BALLS = {"X": [[0.2, -0.1], [-1.0, -0.7], [0.5, -0.5], [0.9, 1.0]]}
