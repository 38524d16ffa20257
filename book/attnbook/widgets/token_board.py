"""The token board: a problem of two sequences in the plane, under the hand."""

from __future__ import annotations

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab import checks as check
from attnlab.problems import TokenProblem


class TokenBoard(Explorable):
    r"""Attention in training: say first what it will do, then drag tokens and queries.

    Args:
        problem: any single problem with tokens in the plane, at most 6 sequences of 8 tokens, about
            which nothing is asked; two sequences of four tokens where none is given.

    Returns:
        A widget; `problem` is what the reader made of it.

    Examples:
        >>> from attnlab import svm
        >>> from attnbook import widgets
        >>> board = widgets.TokenBoard()
        >>> board.problem.X.shape, svm.attention_svm(board.problem).status
        ((2, 4, 2), 'optimal')

    Reference: svm, Figure 1, Theorem 2.
    """

    name = "token_board"

    def __init__(self, problem: TokenProblem | None = None) -> None:
        initial = {} if problem is None else _state(problem)
        super().__init__(initial or dict(DEFAULT))

    @property
    def problem(self) -> TokenProblem:
        """The problem as it is on the board now."""
        return _problem(self)


class GradientDissector(Explorable):
    r"""The gradient token by token: who pulls on W, as its length grows.

    Returns:
        A widget; `problem` is what the reader made of it.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.GradientDissector().problem.X.shape
        (2, 4, 2)

    Reference: svm, Lemma 7; Theorem 7.
    """

    name = "gradient_dissector"

    def __init__(self) -> None:
        super().__init__(dict(DEFAULT))

    @property
    def problem(self) -> TokenProblem:
        """The problem as it is in the picture now."""
        return _problem(self)


class TwoForms(Explorable):
    r"""The same attention trained as one matrix and as keys and queries: how far apart they end.

    Returns:
        A widget; `problem` is what the reader made of it.

    Examples:
        >>> from attnlab import svm
        >>> from attnbook import widgets
        >>> board = widgets.TwoForms().problem
        >>> [int(svm.attention_svm(board, norm=norm).support.sum()) for norm in ("fro", "nuc")]
        [2, 3]

    Reference: svm, Figures 1 and 7, Theorem 2.
    """

    name = "two_forms"

    def __init__(self) -> None:
        super().__init__(dict(FORMS))

    @property
    def problem(self) -> TokenProblem:
        """The problem as it is in the picture now."""
        return _problem(self)


# the two norms send the queries 45 and 43 degrees apart
FORMS = {
    "X": [[[-1.0, 0.4], [1.4, 1.5], [1.0, 0.3]], [[-1.0, 0.6], [-0.4, -1.4], [-0.3, -0.5]]],
    "z": [[-0.4, 1.1], [0.9, -0.1]],
    "y": [1.0, 1.0],
    "v": [0.1, 1.0],
}
# searched for: the best token of sequence 1 falls to 0.7 % of the attention before it takes all
DEFAULT = {
    "X": [
        [[-1.5, 0.8], [1.5, 0.0], [0.2, -1.0], [-0.7, -1.0]],
        [[-1.1, -1.1], [1.4, 0.2], [0.7, -0.8], [-0.4, -0.4]],
    ],
    "z": [[0.1, -0.9], [-0.1, -1.1]],
    "y": [1.0, 1.0],
    "v": [0.2, 1.0],
}


def _problem(widget: Explorable) -> TokenProblem:
    X, z, y, v = (np.array(widget.now(key), float) for key in ("X", "z", "y", "v"))
    return TokenProblem(X=X, z=z, y=y, v=v)


def _state(problem: TokenProblem) -> dict[str, object]:
    X = getattr(problem, "X", None)
    wanted = "a single problem in the plane, up to 6 sequences of 8 tokens"
    if not isinstance(problem, TokenProblem) or X is None or X.ndim != 3 or X.shape[-1] != 2:
        raise check.fail("problem", wanted, getattr(X, "shape", type(problem).__name__))
    if X.shape[0] > 6 or X.shape[1] > 8:
        raise check.fail("problem", wanted, X.shape)
    if problem.mask is not None:
        raise check.fail("problem", "one without a mask", "a mask")
    data = {key: getattr(problem, key) for key in ("X", "z", "y", "v")}
    return {**data, "asks": False, "k": 200}
