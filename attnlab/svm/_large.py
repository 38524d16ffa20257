r"""One large instance, Frobenius norm: in single precision up to a correction in double.

At 180 constraints arithmetic is what costs, and half the digits take half the time. Gram matrix,
guess of the support and Cholesky factor on it are in single precision; the multipliers are then
corrected by what the margins of the rows, in double precision, still miss, which gains six digits
a time. The certificate is that of ``_least_norm`` and trusts none of this. Whatever it does not
accept is left to the general way: a singular Gram matrix, features of very different lengths, a
contradiction.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from attnlab._blas import blas
from attnlab.checks import Array, IntArray
from attnlab.svm._least_norm import Answer, One, certify_one, empty
from attnlab.svm._pivot import PATIENCE, guess, lapack, ones
from attnlab.svm._rows import RankOne, among

ALIKE = 1e4  # largest ratio of squared lengths
LEAST, MOST = 1e-18, 1e18  # of squared lengths: what single precision holds with room
# signs are read with this much slack: before the first correction, the second, the third
SLACK = (1e-4, 1e-8, 1e-11)
FINE = 1e-11  # a gap below which no more is corrected


def by_halves(rows: RankOne) -> tuple[Answer, IntArray]:
    """Answers of rows that all count, each system on its own, and which are still to be found."""
    answer = empty(rows.valid.shape, rows.left.shape[3], rows.right.shape[2])
    left = []
    for k in range(len(rows.left)):
        found = large(rows.left[k], rows.right[k])
        if found is None:
            left.append(k)
            continue
        for kept, new in zip(answer, found, strict=False):
            kept[k] = np.asarray(new)
        answer.status[k] = "optimal"
    return answer, np.array(left, int)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is no number is refused
def large(left: Array, right: Array) -> One | None:
    """The certified answer for rows ``left (n, t, d)`` and ``right (n, e)``, or None."""
    n, t, d = left.shape
    m, queries = n * t, right.dot(right.T)
    K = _gram(left.reshape(m, d), queries.astype(np.float32))
    squares = K.diagonal()
    least, most = float(np.minimum.reduce(squares)), float(np.maximum.reduce(squares))
    if not LEAST < least <= most < min(MOST, ALIKE * least):  # or NaN
        return None
    S, fewest, patience = guess(K, ones(m)), m + 1, PATIENCE
    best: One | None = None
    while patience:
        # backwards, which turns the triangle into the one that is quick to factor
        inside = S.nonzero()[0][::-1].copy()
        if not inside.size:
            return best
        factor, info = lapack().spotrf(among(K, inside).T, 1, 0, 1)
        if info:
            return best
        lam = np.zeros(m)
        lam[inside] = _solved(factor, ones(len(inside)))
        for slack in SLACK:
            missing = 1.0 - _margins(left, queries, lam)
            wrong = missing > slack  # off the support, where it counts
            wrong[inside] = lam[inside] < -slack / K.item(0)
            count = int(np.count_nonzero(wrong))
            if count:
                fewest, patience = (count, PATIENCE) if count < fewest else (fewest, patience - 1)
                S = S ^ wrong
                break
            lam[inside] += _solved(factor, missing[inside].astype(np.float32))
            found = _certified(left, right, np.maximum(lam, 0.0), 1.001 * sqrt(most))
            if found is not None and found[-1] <= FINE:
                return found
            best = found or best
        else:
            return best
    return best


def _solved(factor: Any, b: Any) -> Any:
    """Half the time of LAPACK's own, which is made for many sides."""
    strsv = blas().strsv
    return strsv(factor, strsv(factor, b, lower=1), lower=1, trans=1)


def _certified(left: Array, right: Array, lam: Array, longest: float) -> One | None:
    W = _combined(left, lam).T.dot(right)
    margins = (left @ right.dot(W.T)[:, :, None]).reshape(-1)
    ends = float(np.minimum.reduce(margins)), float(np.add.reduce(lam))
    return certify_one(W, margins, lam, ends, longest)


def _gram(rows: Array, queries: Any) -> Any:
    """The lower triangle of the Gram matrix in single precision; the other is 0."""
    m, n = len(rows), len(queries)
    half = rows.astype(np.float32)
    K = blas().ssyrk(1.0, half.T, trans=1).T
    by_sample = K.reshape(n, m // n, m)  # a view
    by_sample *= queries.repeat(m // n, axis=1)[:, None]
    return K


def _combined(left: Array, lam: Array) -> Array:
    """Weighted sums of the rows of each sample, ``(n, d)``."""
    n, t, _ = left.shape
    return np.asarray((lam.reshape(n, 1, t) @ left)[:, 0])


def _margins(left: Array, queries: Array, lam: Array) -> Array:
    """Margins of W from the inner products of the queries, without W."""
    return np.asarray((left @ queries.dot(_combined(left, lam))[:, :, None]).reshape(-1))
