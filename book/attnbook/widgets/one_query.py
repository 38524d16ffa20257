"""Explorables with one query for all sequences: the space of W is a plane."""

from __future__ import annotations

from typing import Any

from attnbook.widgets._base import Explorable
from attnlab.problems import TokenProblem


class FirstStep(Explorable):
    r"""A first step that ranks all best tokens first, and where descent goes from there.

    Three sequences of two tokens with one query: the space of W that matters is a plane.

    Returns:
        A widget; `problem` is the data.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.FirstStep().problem.X.shape
        (3, 2, 2)

    Reference: svm, Theorem 6 and Assumption C.
    """

    name = "first_step"

    def __init__(self) -> None:
        super().__init__()

    @property
    def problem(self) -> TokenProblem:
        """The three sequences."""
        return TokenProblem(**TRAP)


class InsideCone(Explorable):
    r"""A gradient step inside the cone where all best tokens lead, and what it does to each lead.

    The data are those of `FirstStep`.

    Returns:
        A widget.

    Reference: svm, Lemmas 9 and 11, and inequality 63a of the proof of Theorem 6.
    """

    name = "inside_cone"

    def __init__(self) -> None:
        super().__init__()


class PickToken(Explorable):
    r"""Choose the token where training starts, and see whether it stays there.

    One sequence of five tokens in the plane, one query.

    Returns:
        A widget; `problem` is the data and ``now("pick")`` the token, counted from 0.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.PickToken().problem.X.shape
        (1, 5, 2)

    Reference: svm, Definition 2, Theorem 7.
    """

    name = "pick_token"

    def __init__(self) -> None:
        super().__init__()

    @property
    def problem(self) -> TokenProblem:
        """The data in the picture."""
        return TokenProblem(**{**FIVE, "X": [self.now("X") or FIVE["X"][0]]})


class StartMap(Explorable):
    r"""Every start of one query as a point of a plane, coloured by the token where training ends.

    The data are those of `PickToken`; the cone in which Theorem 7 leaves no
    place of rest is drawn with the paper's constants.

    Returns:
        A widget.

    Reference: svm, Theorem 7, equations 67, 74 and 80.
    """

    name = "start_map"

    def __init__(self) -> None:
        super().__init__()


# after a short first step the best token of sequence 2 reaches 97 % of the attention and loses it
TRAP: dict[str, Any] = {
    "X": [[[0.3, 0.2], [-0.2, 0.0]], [[-2.1, -2.2], [0.1, -3.0]], [[-1.2, -1.5], [-0.6, -2.8]]],
    "z": [[1.0, 0.0]] * 3,
    "y": [1.0, -1.0, 1.0],
    "v": [0.4, 1.0],
}

# the second best token does not hold training, the second worst does
FIVE: dict[str, Any] = {
    "X": [[[1.4, -1.0], [1.9, -0.3], [1.9, 0.5], [-1.6, -0.4], [-0.3, -1.4]]],
    "z": [[1.0, 0.0]],
    "y": [1.0],
    "v": [0.2, 0.8],
}
