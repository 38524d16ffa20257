r"""Least nuclear norm under margin constraints, by Newton's method on a factor.

As $\|W\|_\star=\min\frac12(\|K\|^2+\|Q\|^2)$ over $W=KQ^\top$, and the best $K$ for a given $Q$ is
a Frobenius problem of its own, what is left is to minimise

$$f(Q)=\tfrac12\|Q\|^2+\max_{\lambda\ge0}\mathbf 1^\top\lambda-\tfrac12\lambda^\top K_Q\lambda,
\qquad K_Q=(DD^\top)\circ(ZQQ^\top Z^\top).$$

Block pivoting solves the inner problem exactly, support and all, from the support of the last
step. With $M=\sum\lambda_kd_kz_k^\top$ and rows $J_k=M^\top d_k(Q^\top z_k)^\top+
z_k(Q^\top M^\top d_k)^\top$ on the support, gradient and Hessian are $Q-M^\top MQ$ and
$(I-M^\top M)\otimes I+J^\top K_Q^{-1}J$. The first term is what must not be negative at the end
($\|M\|_2\le1$ is the dual certificate), and is replaced by its absolute value on the way: what is
a saddle is left along the right side. Columns of $Q$ that die out are dropped, and one is added
where a factor with too few of them has settled. Nothing here is trusted: the caller certifies.

Reference: svm, Lemma 15 (the factors); Dauphin et al., "Identifying and attacking the saddle
point problem in high-dimensional non-convex optimization", 2014 (the absolute value).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from attnlab.checks import Array, BoolArray, IntArray
from attnlab.svm._pivot import exchange, lapack

SETTLED = 1e-11  # gradient relative to Q; the gap is of its order
NEARLY = 1e-7  # no step leads down from here: rounding, so that the certificate may decide
DEAD = 1e-3  # a column whose square is this part of the largest is dropped
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
    eye = np.eye(q)
    dsyevd, dposv, dtrtrs = lapack().dsyevd, lapack().dposv, lapack().dtrtrs
    for _ in range(STEPS):
        Q, inside = now.Q, now.inside
        r = Q.shape[1]
        z = Z.take(inside, 0)
        weighted = now.lam[:, None] * z
        T = DD.take(inside, 0).take(inside, 1).dot(weighted)  # rows M' d
        A = eye - weighted.T.dot(T)
        g = A.dot(Q)
        small = float(np.vdot(g, g)) / float(np.vdot(Q, Q))
        curvature, V, bad = dsyevd(A)
        if bad or not small < np.inf:
            return None
        lowest = float(curvature[0])
        if small < SETTLED**2 and (lowest > -NEGATIVE or escapes == ESCAPES):
            return _whole(now, m)
        if lowest < -NEGATIVE and small < (MISSING * lowest) ** 2 and escapes < ESCAPES:
            escapes, dead = escapes + 1, 0.0
            new = MUCH * sqrt(np.vdot(Q, Q) / r) * V[:, :1]
            then = _search(DD, Z, one, now, np.hstack([Q, 0.0 * new]), np.hstack([0.0 * Q, new]))
            if then is None:
                return _whole(now, m)
            now = then
            continue
        zq = now.ZQ.take(inside, 0)
        if dead and r > 1:
            size, turn, bad = dsyevd(Q.T.dot(Q))
            alive = int(np.count_nonzero(size > dead * size[-1]))
            if alive < r and not bad:
                turn = turn[:, r - alive :]
                Q, g, zq, r = Q.dot(turn), g.dot(turn), zq.dot(turn), alive
        J = zq[:, :, None] * T[:, None]  # unknowns column by column of Q
        J += T.dot(Q)[:, :, None] * z[:, None]
        J = J.reshape(len(inside), r * q)
        half = dtrtrs(now.factor, J, 1)[0]
        H = half.T.dot(half)
        blocks = np.einsum("aiaj->aij", H.reshape(r, q, r, q))  # a view: those of kron(I, |A|)
        blocks += (V * (abs(curvature) + RIDGE)).dot(V.T)
        _, step, bad = dposv(H.T, g.T.reshape(-1), 1, 1)
        then = None if bad else _search(DD, Z, one, now, Q, -step.reshape(r, q).T)
        if then is None:
            return _whole(now, m) if small < NEARLY**2 else None
        now = then
    return None


def _start(DD: Array, Z: Array, one: Array) -> Inner | None:
    """From the Frobenius answer: Q its right singular vectors, at the best scale."""
    m, q = Z.shape
    solved = exchange(DD * Z.dot(Z.T), one, np.ones(m, bool))
    if solved is None:
        return None
    lam, inside, _, S = solved
    weighted = lam[:, None] * Z.take(inside, 0)
    G = weighted.T.dot(DD.take(inside, 0).take(inside, 1).dot(weighted))
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
    Q, ZQ, lam, inside, factor, S, _ = start
    square = sqrt(float(np.add.reduce(lam)) / float(np.vdot(Q, Q)))
    c = sqrt(square)
    value = square * float(np.vdot(Q, Q))
    return Inner(c * Q, c * ZQ, lam / square, inside, c * factor, S, value)


def _inner(DD: Array, Z: Array, one: Array, Q: Array, S: BoolArray) -> Inner | None:
    ZQ = Z.dot(Q)
    K = ZQ.dot(ZQ.T)
    K *= DD
    solved = exchange(K, one, S)
    if solved is None:
        return None
    lam, inside, factor, S = solved
    value = 0.5 * float(np.vdot(Q, Q) + lam.dot(one[: len(lam)]))
    return Inner(Q, ZQ, lam, inside, factor, S, value)


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
