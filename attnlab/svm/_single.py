r"""One small instance at a time, Frobenius norm: the batched method without its bookkeeping.

At twenty constraints every call of NumPy costs as much as its arithmetic. This path makes as few
of them as it can, and what is one number is a Python float. The method (block principal pivoting)
and the certificate are those of ``_pivot`` and ``_least_norm``. Whatever is not certified at once
is left to them: a singular Gram matrix, features of very different lengths, a contradiction.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

import numpy as np

from attnlab import checks as check
from attnlab.checks import GAP, Array, BoolArray, IntArray
from attnlab.problems import TokenProblem
from attnlab.svm._margin import Margin
from attnlab.svm._pivot import exchange

SMALL = 64  # most constraints, and most features; above, arithmetic is what costs
ALIKE = 1e4  # largest ratio of squared lengths
ZERO = np.array(0.0)  # an array: a number is made one at every call
ROUNDING = float(np.finfo(np.float64).eps)


def single(problem: TokenProblem, alpha: IntArray) -> Margin | None:
    """The certified answer of one instance without a mask, or None: the general way is asked."""
    n, T, d = problem.X.shape
    m = n * (T - 1)
    if not (0 < m <= SMALL and d <= SMALL):
        return None
    first, owner, all_tokens, everything, one = _constants(n, T)
    own = first + alpha
    keep = all_tokens.copy()
    keep[own] = False
    others = keep.nonzero()[0]
    tokens = problem.X.reshape(n * T, d)
    left = tokens.take(own.take(owner), 0)
    left -= tokens.take(others, 0)
    right = problem.z.take(owner, 0)
    K = left.dot(left.T)
    K *= right.dot(right.T)
    squares = K.diagonal().tolist()
    least, most = min(squares), max(squares)
    if not 1e-140 < least <= most < min(1e140, ALIKE * least):  # or NaN
        return None
    solved = exchange(K, one, everything)
    if solved is None:
        return None
    found, inside, _, _ = solved
    lam = np.zeros(m)
    lam[inside] = np.maximum(found, ZERO)
    return _certified(left, right, lam, one, sqrt(most), others, (n, T))


@lru_cache(maxsize=64)
def _constants(n: int, T: int) -> tuple[IntArray, IntArray, BoolArray, BoolArray, Array]:
    """Where each sample's tokens begin; the sample of each row; all tokens; all rows; ones."""
    m, first = n * (T - 1), check.seal(np.arange(0, n * T, T))
    return (
        first,
        check.seal(np.arange(n).repeat(T - 1)),
        check.seal(np.ones(n * T, bool)),
        check.seal(np.ones(m, bool)),
        check.seal(np.ones(m)),
    )


def _certified(
    left: Array,
    right: Array,
    lam: Array,
    one: Array,
    longest: float,
    others: IntArray,
    shape: tuple[int, int],
) -> Margin | None:
    """The answer scaled to smallest margin 1, if its gap is small; see `_least_norm.certify`.

    Rounding is charged at the length of the longest row: never less than there.
    """
    n, T = shape
    W = (left.T * lam).dot(right)
    margins = np.vecdot(left.dot(W), right)
    size, total = sqrt(np.vdot(W, W)), float(lam.dot(one))
    charge = ROUNDING * longest
    reach = min(margins.tolist()) - charge * size
    if not (reach > 0.0 and total > 0.0):  # or NaN
        return None
    bound, scale = size + charge * total, np.array(1.0 / reach)
    norm = size / reach
    gap = max(1.0 - total / (bound * norm), 0.0)
    if not gap <= GAP:
        return None
    by_token, weights = np.zeros(n * T), np.zeros(n * T)
    by_token[others] = margins * scale
    weights[others] = lam * np.array(norm / bound)
    return Margin(
        W=W * scale,
        margins=by_token.reshape(n, T),
        multipliers=weights.reshape(n, T),
        norm=np.array(norm),
        gap=np.array(gap),
        residual=np.array(0.0),
        status="optimal",
        norm_name="fro",
    )
