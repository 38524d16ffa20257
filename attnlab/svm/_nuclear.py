r"""Att-SVM in the nuclear norm: reduce to the spans of the tokens and queries, then solve.

$W=U_xAU_z^\top$ with $U_x$ spanning the token differences and $U_z$ the queries loses nothing
(Lemma 1 of svm, and its transpose), and the interior point then works with $A$ only. Which
systems have an answer at all is settled by the Frobenius problem: the constraints are the same.
"""

from __future__ import annotations

import numpy as np

from attnlab.checks import GAP, UNRESOLVED, Array
from attnlab.svm._interior import nuclear
from attnlab.svm._least_norm import Answer, solve
from attnlab.svm._rows import RankOne


def basis(vectors: Array) -> Array:
    """An orthonormal basis of a space that holds the vectors ``(B, k, d)``: ``(B, d, r)``."""
    B, k, d = vectors.shape
    if k >= d:
        return np.broadcast_to(np.eye(d), (B, d, d))
    return np.linalg.qr(vectors.swapaxes(1, 2))[0]


def solve_nuclear(rows: RankOne) -> Answer:
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
