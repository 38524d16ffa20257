r"""Least-distance form for one system whose Gram matrix is singular or nearly so.

$\min\|w\|$ s.t. $Aw\ge b$ is the nonnegative least-squares problem of $[A^\top;b^\top]$ against
the last unit vector (Lawson and Hanson): its residual $r$ gives $w=-r_{1:p}/r_{p+1}$, and it
vanishes exactly when the constraints contradict each other, the multipliers then being the
certificate. Near that point the residual loses its digits, so the answer is polished: on the
support the least-norm solution is a plain QR problem.
"""

from __future__ import annotations

import numpy as np

from attnlab.checks import Array, BoolArray

ROUNDS = 30  # exchanges in the polish; the support is right up to one or two tokens


def weights(A: Array, b: Array) -> tuple[Array, float]:
    """Multipliers up to scale and the residual norm; ``A (m, r)`` has rows of length 1."""
    from scipy.optimize import nnls

    system = np.vstack([A.T, b / b.max()])
    target = np.zeros(len(system))
    target[-1] = 1.0
    try:
        found, residual = nnls(system, target, maxiter=50 * system.shape[1])
    except RuntimeError:  # cycling among ties: what it would have found is polished all the same
        return np.zeros(len(b)), 1.0
    return np.asarray(found), float(residual)


def polish(A: Array, b: Array, guess: Array) -> BoolArray:
    """The support of the least-norm ``w`` with ``A w >= b``, from a guess of its multipliers.

    One row enters (the most violated) or leaves (the most negative) at a time; the support with
    the least duality gap is kept. Near infeasibility ``A^T lam`` cancels: ``w`` is found apart.
    """
    S = guess > 0.0
    if not S.any():
        S[np.argmax(b)] = True
    best, least = S.copy(), np.inf
    for _ in range(ROUNDS):
        w = _solve(A[S], b[S])
        lam = np.zeros(len(b))
        lam[S] = np.linalg.lstsq(A[S].T, w, rcond=1e-14)[0]
        gap = relative_gap(A, b, w, np.maximum(lam, 0.0))
        if gap < least:
            best, least = S.copy(), gap
        if least < 1e-13:
            break
        drop, short = int(np.argmin(lam)), (A @ w - b) / b
        add = int(np.argmin(short))
        if lam[drop] < 0.0 and lam[drop] < -1e-12 * lam.max():
            S[drop] = False
        elif short[add] < -1e-12 and not S[add]:
            S[add] = True
        else:
            break
    return best


def _solve(A: Array, b: Array) -> Array:
    """Least-norm solution of ``A w = b``, refined: its residual is that of one rounding of w."""
    w = np.zeros(A.shape[1])
    for _ in range(3):
        w = w + np.linalg.lstsq(A, b - A @ w, rcond=1e-14)[0]
    return w


def relative_gap(A: Array, b: Array, w: Array, lam: Array) -> float:
    """Relative duality gap of ``w`` and ``lam``; infinite where w separates nothing."""
    size, bound = float(np.linalg.norm(w)), float(np.linalg.norm(A.T @ lam))
    reach = float(((A @ w) / b).min())
    if min(size, bound, reach) <= 0.0:
        return float("inf")
    return max(0.0, 1.0 - float(b @ lam) / bound * reach / size)


def contradiction(A: Array) -> tuple[Array, float]:
    r"""Farkas weights: the point of the convex hull of the unit rows that is nearest to 0.

    Its distance bounds the margin of every unit vector from above.
    """
    ones = np.ones(len(A))
    lam = weights(A, ones)[0]
    if not lam.any():
        lam = ones
    lam = lam / lam.sum()
    S = lam > 1e-12
    system = np.vstack([A[S].T, np.ones(int(S.sum()))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    again = np.zeros(len(A))
    again[S] = np.maximum(np.linalg.lstsq(system, target, rcond=None)[0], 0.0)
    tried = [lam] + ([again / again.sum()] if again.any() else [])
    distances = [float(np.linalg.norm(A.T @ x)) for x in tried]
    best = int(np.argmin(distances))
    return tried[best], distances[best]
