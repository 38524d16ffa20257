r"""Att-SVM*: the nuclear norm, reduced to the spans of differences and queries.

Projecting $W=U_xAU_z^\top$ onto the differences and $U_z$ the queries loses nothing
(Lemma 1 of svm, and its transpose), so that both methods work with small matrices. First the
descent on a factor is asked, one system at a time, and its answers are certified; what it leaves
goes to the interior point. Which systems have an answer at all is settled by the Frobenius
problem: the constraints are the same.
"""

from __future__ import annotations

import numpy as np

from attnlab.checks import GAP, UNRESOLVED, Array, BoolArray
from attnlab.svm._factored import factored
from attnlab.svm._interior import nuclear
from attnlab.svm._least_norm import ENDED, Answer, solve
from attnlab.svm._rows import RankOne

ALIKE = 100.0  # features whose lengths differ by more go to the interior point


def basis(vectors: Array) -> Array:
    """An orthonormal basis of a space that holds the vectors ``(B, k, d)``: ``(B, d, r)``."""
    B, k, d = vectors.shape
    if k >= d:
        return np.broadcast_to(np.eye(d), (B, d, d))
    return np.linalg.qr(vectors.swapaxes(1, 2))[0]


def solve_nuclear(rows: RankOne, method: str = "auto") -> Answer:
    """The certified answers; systems without one keep the Frobenius verdict."""
    if method == "interior":
        return _by_interior(rows)
    answer = _by_factors(rows)
    left = (answer.status != "optimal").nonzero()[0]
    if left.size == len(rows.left):
        return _by_interior(rows)
    if left.size:
        answer.fill(left, _by_interior(rows.take(left)))
    return answer


def _by_factors(rows: RankOne) -> Answer:
    """Answers with a gap of at most 1e-9; the status of the others is not optimal.

    Each system is solved on its own, so that its bits do not depend on its company.
    """
    B, n, t, d = rows.left.shape
    m = n * t
    flat, queries = rows.left.reshape(B, m, d), rows.right
    E, coordinates = _coordinates(queries)
    DD = flat @ flat.swapaxes(1, 2)
    Z = coordinates.repeat(t, axis=1)
    squares = DD.diagonal(axis1=1, axis2=2) * np.add.reduce(Z * Z, axis=2)
    least = np.minimum.reduce(squares if rows.full else np.where(rows.valid, squares, np.inf), 1)
    most = np.maximum.reduce(squares if rows.full else np.where(rows.valid, squares, 0.0), 1)
    lam, square = np.zeros((B, m)), np.zeros((B, Z.shape[2], Z.shape[2]))
    done = np.zeros(B, bool)
    one = np.ones(m)
    # False for NaN, and where no row counts
    for k in ((least > 0.0) & (most < ALIKE**2 * least) & (most > 0.0)).nonzero()[0].tolist():
        if rows.full:
            found = factored(DD[k], Z[k], one)
            if found is not None:
                lam[k], square[k] = found
                done[k] = True
            continue
        here = rows.valid[k].nonzero()[0]
        part = DD[k].take(here, 0).take(here, 1)
        found = factored(part, Z[k].take(here, 0), one[: len(here)])
        if found is not None:
            lam[k, here], square[k] = found
            done[k] = True
    return _certified(rows, lam, square, E, done)


def _coordinates(queries: Array) -> tuple[Array, Array]:
    """Directions ``(B, q, d)``, and coordinates ``(B, n, q)`` in them."""
    B, n, d = queries.shape
    if n >= d:
        return np.broadcast_to(np.eye(d), (B, d, d)), queries
    E = basis(queries).swapaxes(1, 2)
    return E, queries @ E.swapaxes(1, 2)


def _certified(rows: RankOne, lam: Array, square: Array, E: Array, done: BoolArray) -> Answer:
    r"""$W=MQQ^\top$ scaled to smallest margin 1 against $\lambda$ scaled to $\|M\|_2=1$."""
    B = len(lam)
    finite = np.isfinite(np.add.reduce(lam, axis=1) + square.trace(axis1=1, axis2=2))
    if not finite.all():
        lam[~finite], square[~finite] = 0.0, 0.0
        done &= finite
    sides = np.empty((2, B, rows.left.shape[3], E.shape[1]))
    np.matmul(rows.combine(lam), E.swapaxes(1, 2), out=sides[0])
    np.matmul(sides[0], square, out=sides[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.linalg.svd(sides, compute_uv=False)
        W = sides[1] @ E
        margins = rows.apply(W)
        reach = np.minimum.reduce(
            margins if rows.full else np.where(rows.valid, margins, np.inf), axis=1
        )
        lam = lam / values[0, :, :1]
        norm = np.add.reduce(values[1], axis=1) / reach
        gap = np.maximum(1.0 - np.add.reduce(lam, axis=1) / norm, 0.0)
        done = done & (reach > 0.0) & (gap <= GAP)  # False for NaN
        W /= reach[:, None, None]
        margins = margins / reach[:, None]
    if not rows.full:
        margins = np.where(rows.valid, margins, 0.0)
    return Answer(W, margins, lam, norm, gap, np.zeros(B), ENDED.take(done))


def _by_interior(rows: RankOne) -> Answer:
    """The certified answers; systems without one keep the Frobenius verdict."""
    answer = solve(rows)
    good = np.flatnonzero((answer.status == "optimal") & rows.valid.any(axis=1))
    if not good.size:
        return answer
    part = rows.take(good)
    B, n, t, d = part.left.shape
    flat = part.left.reshape(B, n * t, d)
    U, V = basis(flat), basis(part.right)
    left, right = flat @ U, np.repeat(part.right @ V, t, axis=1)
    found = nuclear(left, right, part.valid)
    # the margin over normalized features that the Frobenius answer reaches: how hard it was
    lengths = np.linalg.norm(left, axis=2) * np.linalg.norm(right, axis=2)
    shortest = np.where(part.valid, lengths, np.inf).min(axis=1)
    relative = 1.0 / (answer.norm[good] * np.where(np.isfinite(shortest), shortest, 1.0))
    reached = np.isfinite(found.primal)
    W = U @ np.where(reached[:, None, None], found.A, np.nan) @ V.swapaxes(1, 2)
    answer.W[good] = W
    answer.margins[good] = np.where(part.valid, part.apply(answer.W[good]), 0.0)
    answer.multipliers[good] = found.multipliers
    answer.norm[good] = found.primal
    answer.gap[good] = np.where(reached, np.maximum(found.gap, 0.0), np.inf)
    poor = np.where(relative < UNRESOLVED, "unresolved", "iteration_limit")
    answer.status[good] = np.where(answer.gap[good] <= GAP, "optimal", poor)
    return answer
