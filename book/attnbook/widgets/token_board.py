"""The token board: a problem of two sequences in the plane, under the hand."""

from __future__ import annotations

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab import checks as check
from attnlab.problems import TokenProblem


class TokenBoard(Explorable):
    r"""Drag tokens, queries and head; training and both max-margin directions follow.

    Args:
        problem: any single problem with tokens in the plane, at most 6 sequences of 8 tokens; two
            sequences of three tokens where none is given.

    Returns:
        A widget; `problem` is what the reader made of it.

    Examples:
        >>> from attnlab import svm
        >>> from attnbook import widgets
        >>> board = widgets.TokenBoard()
        >>> board.problem.X.shape, svm.attention_svm(board.problem).status
        ((2, 3, 2), 'optimal')

    Reference: svm, Figure 1, Theorem 2.
    """

    name = "token_board"

    def __init__(self, problem: TokenProblem | None = None) -> None:
        initial = {} if problem is None else _state(problem)
        super().__init__(initial or dict(DEFAULT))

    @property
    def problem(self) -> TokenProblem:
        """The problem as it is on the board now."""
        X, z, y, v = (np.array(self.now(key), float) for key in ("X", "z", "y", "v"))
        return TokenProblem(X=X, z=z, y=y, v=v)


# the two norms point 43 and 45 degrees apart, and one token of each sequence is support
DEFAULT = {
    "X": [[[-1.0, 0.4], [1.4, 1.5], [1.0, 0.3]], [[-1.0, 0.6], [-0.4, -1.4], [-0.3, -0.5]]],
    "z": [[-0.4, 1.1], [0.9, -0.1]],
    "y": [1.0, 1.0],
    "v": [0.1, 1.0],
}


def _state(problem: TokenProblem) -> dict[str, object]:
    X = getattr(problem, "X", None)
    wanted = "a single problem in the plane, up to 6 sequences of 8 tokens"
    if not isinstance(problem, TokenProblem) or X is None or X.ndim != 3 or X.shape[-1] != 2:
        raise check.fail("problem", wanted, getattr(X, "shape", type(problem).__name__))
    if X.shape[0] > 6 or X.shape[1] > 8:
        raise check.fail("problem", wanted, X.shape)
    if problem.mask is not None:
        raise check.fail("problem", "one without a mask", "a mask")
    return {key: getattr(problem, key) for key in ("X", "z", "y", "v")}
