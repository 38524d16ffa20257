r"""Block principal pivoting on the dual, batched.

The dual of $\min\frac12\|W\|^2$ s.t. $\langle F_k,W\rangle\ge b_k$ is solved by the
$\lambda\ge0$ with $K\lambda-b\ge0$ and $\lambda^\top(K\lambda-b)=0$. A guess of the support is
solved exactly ($K_{SS}\lambda_S=b_S$); whatever has the wrong sign then changes sides, all at
once as long as that makes progress, the last one alone (Murty's rule, which cannot cycle)
otherwise. The first guess is that every token is a support vector; where there are many, a few
steps of conjugate gradients make a better one.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from attnlab._blas import blas
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.svm._rows import among

# Signs are read with this much slack relative to the largest number of their kind: a factor 100
# above the rounding of a solve with a Gram matrix of condition 1e4; the caller's certificate, not
# this constant, decides what counts as solved.
SLACK = 1e-12
ASKED = np.array(1.0 - SLACK)  # an array: a number is made one at every call
HOLD = 1e30
EXCHANGES = 40
PATIENCE = 3  # block exchanges without progress before Murty's rule takes over
ALONE = 40  # rows from which arithmetic costs more than calls: one system at a time
MANY = 120  # rows from which a guess costs less than the factorizations that it saves
FLAT = 1e-6  # curvature, relative to the first, that single precision cannot tell from none
STEPS = (3, 5, 7)  # of conjugate gradients between guesses of the support


def pivot(K: Array, b: Array, valid: BoolArray, limit: int = 100) -> tuple[Array, BoolArray]:
    """Multipliers ``(B, m)`` and which systems ended with every sign right.

    ``K (B, m, m)`` positive definite on the valid rows, ``b (B, m)`` positive. A system whose
    Gram matrix is singular is given up (its flag is False), not an error. K is written to on the
    way, and is at the end what it was.
    """
    B, m = b.shape
    found, solved = np.zeros((B, m)), np.zeros(B, bool)
    if B == 1 or m >= ALONE:
        for k in range(B):
            found[k], solved[k] = pivot_one(K[k], b[k], valid[k], limit)
        return found, solved
    todo = np.arange(B)
    S, fewest, patience = valid, np.full(B, m + 1), np.full(B, PATIENCE)
    whole = bool(valid.all())
    padded = not whole
    for _ in range(limit):
        x, keep = _on_support(K, b, S, whole)
        whole = False
        slack = (K @ x[..., None])[..., 0] - b
        wrong = np.where(S, x < -SLACK * np.abs(x).max(axis=1, keepdims=True), slack < -SLACK)
        if padded:
            wrong &= valid
        count = wrong.sum(axis=1)
        done = (count == 0) & keep
        found[todo[done]] = np.maximum(x[done], 0.0)
        solved[todo[done]] = True
        keep &= ~done
        alive = np.count_nonzero(keep)
        if not alive:
            break
        better = count < fewest
        fewest = np.where(better, count, fewest)
        patience = np.where(better, PATIENCE, patience - 1)
        if patience.min() > 0:
            S = S ^ wrong
        else:
            last = m - 1 - wrong[:, ::-1].argmax(axis=1)
            alone = np.arange(m) == last[:, None]
            S = S ^ np.where(patience[:, None] > 0, wrong, alone & wrong)
        if alive <= 0.5 * len(todo) or alive < len(todo) - np.count_nonzero(done):
            todo, K, b, valid, S = todo[keep], K[keep], b[keep], valid[keep], S[keep]
            fewest, patience = fewest[keep], patience[keep]
    return found, solved


def pivot_one(K: Array, b: Array, valid: BoolArray, limit: int = 100) -> tuple[Array, bool]:
    """The same for one system, on the support's own submatrix and without batch bookkeeping."""
    m = len(b)
    whole = np.count_nonzero(valid) == m
    S = _guess(K, b) if whole and m >= MANY else valid
    fewest, patience = m + 1, PATIENCE
    size = float(K[0, 0]) or 1.0  # makes multipliers pure numbers
    dposv = lapack().dposv
    for _ in range(limit):
        inside = S.nonzero()[0]
        if not inside.size:  # no row is asked to hold: W = 0
            wrong, found = valid, np.empty(0)
        else:
            rows = K.take(inside, axis=0)
            _, found, info = dposv(among(K, inside, rows).T, b[inside], 1, 1)
            if info:
                break
            signs = found @ rows - b  # slack off the support, where it counts
            signs[inside] = size * found  # multipliers on it
            wrong = signs < -SLACK
            if not whole:
                wrong &= valid
        count = int(np.count_nonzero(wrong))
        if not count:
            x = np.zeros(m)
            x[inside] = np.maximum(found, 0.0)
            return x, bool(np.isfinite(x).all())
        if count < fewest:
            fewest, patience = count, PATIENCE
        else:
            patience -= 1
        if patience > 0:
            S = S ^ wrong
        else:
            S = S.copy()
            last = wrong.nonzero()[0][-1]
            S[last] = not S[last]
    return np.zeros(m), False


def _guess(K: Array, b: Array) -> BoolArray:
    """A guess of the support where single precision can hold the numbers; else every row."""
    if not 1e-20 < K.item(0) < 1e20:
        return np.ones(len(b), bool)
    with np.errstate(all="ignore"):  # it is only a guess
        return guess(K.astype(np.float32), b.astype(np.float32))


def guess(K: Any, b: Any) -> BoolArray:
    """A support from a few steps of conjugate gradients, restarted where it changes.

    Of ``K``, in single precision, the lower triangle is read. Whatever comes out, pivoting goes on
    from there: it decides how many factorizations that takes. The caller silences warnings.
    """
    m, few = len(b), blas()
    ssymv, saxpy, sdot, sscal = few.ssymv, few.saxpy, few.sdot, few.sscal
    K, flat = K.T, FLAT * K.item(0)
    x, slack, inside = np.zeros(m, np.float32), -b, ones(m)
    for stage in range(len(STEPS)):
        left = slack * inside
        direction, square = left.copy(), sdot(left, left)
        for _ in range(STEPS[stage]):
            image = ssymv(1.0, K, direction)
            curved = sdot(direction, image)
            if not 0.0 < flat * square < curved < np.inf:  # nothing left, or singular
                break
            length = -square / curved
            x = saxpy(direction, x, m, length)
            slack = saxpy(image, slack, m, length)  # of every row
            np.multiply(slack, inside, out=left)
            before, square = square, sdot(left, left)
            direction = saxpy(left, sscal(square / before, direction))
        S: BoolArray = x > slack * (1.0 - inside)  # x is 0 off the support
        if stage + 1 < len(STEPS):
            inside = S.astype(np.float32)
            x *= inside
            slack = ssymv(1.0, K, x)
            slack -= b
    return S


def exchange(K: Array, one: Array, S: BoolArray) -> tuple[Array, IntArray, Array, BoolArray] | None:
    """`pivot_one` where every row counts and asks for 1, from a guessed support, and lean.

    Multipliers on the support, its rows, the lower Cholesky factor of its Gram matrix, the support
    as a mask; None where a matrix is singular or no support is right. NaN is the caller's to see.
    """
    m, fewest, patience = len(one), len(one) + 1, PATIENCE
    size = K.item(0)  # makes multipliers pure numbers
    if not size > 0.0:
        return None
    dposv, least = lapack().dposv, np.array(-SLACK / size)
    for _ in range(EXCHANGES):
        inside = S.nonzero()[0]
        k = len(inside)
        if k == m:
            factor, found, info = dposv(K.T, one, 1)
            wrong = found < least
        elif k:
            rows = K.take(inside, 0)
            factor, found, info = dposv(among(K, inside, rows).T, one[:k], 1, 1)
            wrong = found.dot(rows) < ASKED  # off the support, where it counts
            wrong[inside] = found < least
        if not k or info:
            return None
        count = wrong.tobytes().count(1)  # half a call of np.count_nonzero
        if not count:
            return found, inside, factor, S
        if count < fewest:
            fewest, patience = count, PATIENCE
        else:
            patience -= 1
        if patience > 0:
            S = S ^ wrong
        else:
            S = S.copy()
            last = wrong.nonzero()[0][-1]
            S[last] = not S[last]
    return None


@lru_cache(maxsize=64)
def ones(m: int) -> Any:
    """In single precision."""
    one = np.ones(m, np.float32)
    one.flags.writeable = False
    return one


@cache
def lapack() -> Any:
    from scipy.linalg import lapack

    return lapack


def _on_support(K: Array, b: Array, S: BoolArray, whole: bool) -> tuple[Array, BoolArray]:
    """Solve on the support, 0 elsewhere; False where the system is singular."""
    if whole:
        return _solved(K, b)
    # a huge diagonal holds x at 0 (to 1e-30) without touching the other rows
    diagonal = np.einsum("bii->bi", K)  # a view
    kept = diagonal.copy()
    diagonal += HOLD * ~S
    x, fine = _solved(K, b)
    diagonal[...] = kept
    return np.where(S, x, 0.0), fine


def _solved(K: Array, b: Array) -> tuple[Array, BoolArray]:
    """Solve; False, and 0, where the system is singular."""
    fine = np.ones(len(K), bool)
    try:
        x: Array = np.asarray(np.linalg.solve(K, b[..., None])[..., 0])
    except np.linalg.LinAlgError:
        fine = np.asarray(np.linalg.slogdet(K)[0] != 0.0)
        x = np.zeros_like(b)
        if fine.any():
            x[fine] = np.linalg.solve(K[fine], b[fine][..., None])[..., 0]
    # WebAssembly's LAPACK does not raise: what is singular comes back as NaN or infinite
    finite = np.asarray(np.isfinite(x).all(axis=1))
    if not finite.all():
        fine, x = fine & finite, np.where(finite[:, None], x, 0.0)
    return x, fine
