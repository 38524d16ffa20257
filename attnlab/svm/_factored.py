r"""Least nuclear norm under margin constraints, by Newton's method on a factor.

As $\|W\|_\star=\min\frac12(\|K\|^2+\|Q\|^2)$ over $W=KQ^\top$, and the best $K$ for a given $Q$ is
a Frobenius problem of its own, what is left is to minimise

$$f(Q)=\tfrac12\|Q\|^2+\max_{\lambda\ge0}\mathbf 1^\top\lambda-\tfrac12\lambda^\top K_Q\lambda,
\qquad K_Q=(DD^\top)\circ(ZQQ^\top Z^\top).$$

Block pivoting solves the inner problem exactly, support and all, from the support of the last
step. With $M=\sum\lambda_kd_kz_k^\top$ and rows $J_k=M^\top d_k(Q^\top z_k)^\top+
z_k(Q^\top M^\top d_k)^\top$ on the support, gradient and Hessian are $Q-M^\top MQ$ and
$(I-M^\top M)\otimes I+J^\top K_Q^{-1}J$. The first term is what must not be negative at the end
($\|M\|_2\le1$ is the dual certificate); where its lowest eigenvalue is, the Hessian is shifted by
more than that on the way. Columns of $Q$ that die out are dropped, and one is added where a factor
with too few of them has settled. Nothing here is trusted: the caller certifies.

Reference: svm, Lemma 15 (the factors).
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from attnlab import checks as check
from attnlab._blas import blas
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.svm._pivot import exchange, lapack
from attnlab.svm._rows import among

SETTLED = 1e-11  # gradient relative to Q; the gap is of its order
NEXT = 2e-6  # gradient that one more step, which squares it, settles
NEARLY = 1e-7  # no step leads down from here: rounding, so that the certificate may decide
DEAD = 1e-3  # a column whose square is this part of the largest is dropped
ALIVE = 1e-3  # gradient below which the columns that are there are those that stay
SHIFT = 1.5  # what is added to the Hessian, relative to its lowest curvature where negative
RIDGE = 3e-9  # rotations of Q change nothing: there the Hessian, a pure number, is singular
FIRST, STEPS, ESCAPES = 4, 40, 4
SHORTEST = 1e-3
NEGATIVE = 1e-10  # 1 - sigma^2 below which a column is missing
MISSING = 0.1  # one is added where the gradient is this small beside that
MUCH = 0.1  # how long a new column is


class Inner(NamedTuple):
    """The Frobenius problem of one Q, solved."""

    Q: Array  # (q, r)
    ZQ: Array  # (m, r)
    lam: Array  # multipliers on the support
    inside: IntArray  # the support
    factor: Array  # lower Cholesky factor of K on it
    S: BoolArray  # the support as a mask
    square: float  # of the length of Q
    value: float


def factored(DD: Array, Z: Array, one: Array) -> tuple[Array, Array] | None:
    r"""Multipliers and $QQ^\top$ at the end of the descent, or None where it did not settle.

    ``DD (m, m)`` is the Gram matrix of the $d_k$, ``Z (m, q)`` has the $z_k$ in coordinates of
    their span, ``one`` is a vector of ones. $W=MQQ^\top$ is the answer.
    """
    m, q = Z.shape
    now = _start(DD, Z, one)
    if now is None:
        return None
    dead, escapes = DEAD, 0
    eye, entries = _eye(q), np.zeros(q * q + 1)  # of A, and a 0
    A = entries[:-1].reshape(q, q)
    dsyevd, dposv, dtrtrs, dsyrk = lapack().dsyevd, lapack().dposv, lapack().dtrtrs, blas().dsyrk
    for _ in range(STEPS):
        Q, inside = now.Q, now.inside
        r = Q.shape[1]
        z = Z.take(inside, 0)
        weighted = now.lam[:, None] * z
        T = weighted.T.dot(among(DD, inside))  # columns M' d
        np.subtract(eye, T.dot(weighted), out=A)
        g = A.dot(Q)
        small = float(np.vdot(g, g)) / now.square
        curvature, _, bad = dsyevd(A, 0)
        if bad or not small < np.inf:
            return None
        lowest = curvature.item(0)
        if small < SETTLED**2 and (lowest > -NEGATIVE or escapes == ESCAPES):
            return _whole(now, m)
        if lowest < -NEGATIVE and small < (MISSING * lowest) ** 2 and escapes < ESCAPES:
            escapes, dead = escapes + 1, 0.0
            new = MUCH * sqrt(now.square / r) * dsyevd(A)[1][:, :1]
            then = _search(DD, Z, one, now, np.hstack([Q, 0.0 * new]), np.hstack([0.0 * Q, new]))
            if then is None:
                return _whole(now, m)
            now = then
            continue
        if dead and r > 1 and small > ALIVE**2:
            size, turn, bad = dsyevd(Q.T.dot(Q))
            least = dead * size.item(-1)
            if size.item(0) <= least and not bad:
                turn = turn[:, size > least]
                Q, g, r = Q.dot(turn), g.dot(turn), turn.shape[1]
        column, row, blocks = _unknowns(q, r)
        wide, z = Q.T.take(column, 0), z.T
        J = wide.dot(z) * T.take(row, 0)
        J += wide.dot(T) * z.take(row, 0)
        half = dtrtrs(now.factor, J.T, 1)[0]
        entries[: -1 : q + 1] += RIDGE - SHIFT * min(0.0, lowest)
        H = dsyrk(1.0, half, 1.0, entries.take(blocks).T, 1, 1, 1)  # onto kron(I, A)
        _, step, bad = dposv(H, g.T.reshape(-1), 1, 1)
        then = None if bad else _search(DD, Z, one, now, Q, -step.reshape(r, q).T)
        if then is None:
            return _whole(now, m) if small < NEARLY**2 else None
        if small < NEXT**2 and lowest > -NEXT:
            return _whole(then, m)
        now = then
    return None


@lru_cache(maxsize=64)
def _eye(q: int) -> Array:
    return check.seal(np.eye(q))


@lru_cache(maxsize=64)
def _unknowns(q: int, r: int) -> tuple[IntArray, IntArray, IntArray]:
    """Of the entries of Q, column by column: column, row; and where kron(I, A) has which of A.

    Beside the diagonal blocks it has the 0 that comes after them.
    """
    column, row = divmod(np.arange(q * r), q)
    blocks = np.where(column[:, None] == column, q * row[:, None] + row, q * q)
    return check.seal(column), check.seal(row), check.seal(blocks)


def _start(DD: Array, Z: Array, one: Array) -> Inner | None:
    """From the Frobenius answer: Q its right singular vectors, at the best scale."""
    q = Z.shape[1]
    solved = exchange(DD * Z.dot(Z.T), one, one > 0.0)
    if solved is None:
        return None
    lam, inside, _, S = solved
    weighted = lam[:, None] * Z.take(inside, 0)
    G = weighted.T.dot(among(DD, inside).dot(weighted))
    values, V, bad = lapack().dsyevd(G)
    if bad or not values[-1] > 0.0:
        return None
    root = V * np.maximum(values, 1e-12 * values[-1]) ** 0.25
    # ranks of answers are far below q; but too few columns may leave K_Q singular
    start = _inner(DD, Z, one, root[:, -min(q, FIRST + q // 12) :], S)
    start = start or _inner(DD, Z, one, root, S)
    if start is None:
        return None
    # c Q asks for lam / c^2: the best c makes both halves of the value equal
    Q, ZQ, lam, inside, factor, S, size, _ = start
    square = sqrt(float(np.add.reduce(lam)) / size)
    c = sqrt(square)
    return Inner(c * Q, c * ZQ, lam / square, inside, c * factor, S, square * size, square * size)


def _inner(DD: Array, Z: Array, one: Array, Q: Array, S: BoolArray) -> Inner | None:
    ZQ = Z.dot(Q)
    K = ZQ.dot(ZQ.T)
    K *= DD
    solved = exchange(K, one, S)
    if solved is None:
        return None
    lam, inside, factor, S = solved
    square = float(np.vdot(Q, Q))
    value = 0.5 * (square + float(lam.dot(one[: len(lam)])))
    return Inner(Q, ZQ, lam, inside, factor, S, square, value)


def _search(DD: Array, Z: Array, one: Array, now: Inner, Q: Array, step: Array) -> Inner | None:
    """The longest of Newton's step, its half, ... that does not lead up."""
    length = 1.0
    while length > SHORTEST:
        then = _inner(DD, Z, one, Q + (step if length == 1.0 else length * step), now.S)
        if then is not None and then.value < now.value * (1.0 + 1e-11):
            return then
        length *= 0.5
    return None


def _whole(now: Inner, m: int) -> tuple[Array, Array]:
    lam = np.zeros(m)
    lam[now.inside] = np.maximum(now.lam, 0.0)
    return lam, now.Q.dot(now.Q.T)
