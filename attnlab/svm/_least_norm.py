"""Least norm under margins of at least 1: the solvers, the certificate, the verdict."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from attnlab import checks as check
from attnlab.checks import GAP, UNRESOLVED, Array, BoolArray, IntArray
from attnlab.svm import _nnls
from attnlab.svm._pivot import pivot
from attnlab.svm._rows import Dense, Rows

INFEASIBLE = 1e-14  # relative margin that no W exceeds: rounding of sums of unit rows
# relative rounding of an inner product, in the lengths of the two sides
ROUNDING = {np.dtype(kind).char: float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble)}
ENDED = np.array(["iteration_limit", "optimal"])
ALIKE = 100.0  # features whose lengths differ by less need no normalization
REFINEMENTS = 4  # each gains about 8 digits where the margin is a hundred-millionth of the rows

# certified: W, margins and multipliers (m,), norm, gap; a plain tuple, which is made in no time
One: TypeAlias = tuple[Array, Array, Array, float, float]


class Answer(NamedTuple):
    """``B`` answers; W and margins are NaN where there is none."""

    W: Array  # (B, ...)
    margins: Array  # (B, m)
    multipliers: Array  # (B, m)
    norm: Array  # (B,)
    gap: Array  # (B,)
    residual: Array  # (B,)
    status: Array  # (B,) strings

    def fill(self, index: IntArray, other: Answer) -> None:
        """Put the answers of some of the systems in their places."""
        for kept, new in zip(self, other, strict=True):
            kept[index] = new


def solve(rows: Rows, method: str = "auto") -> Answer:
    r"""$\min\|W\|$ s.t. $\langle F_k,W\rangle\ge1$, certified."""
    valid, lengths = rows.valid, rows.lengths
    shortest, longest = rows.span
    whole = rows.full and shortest > 0.0
    if method == "nnls":
        lam, fine = np.zeros(valid.shape), np.zeros(len(valid), bool)
    elif whole and longest < ALIKE * shortest:
        lam, fine = pivot(rows.gram, valid.astype(np.float64), valid)
    else:
        usable = valid & (lengths > 0.0)
        b = 1.0 / np.where(usable, lengths, np.inf)
        top = b.max(axis=1, keepdims=True)
        top[top == 0.0] = 1.0
        K = rows.gram * b[:, :, None]
        K *= b[:, None, :]
        lam, fine = pivot(K, _eased(b / top), usable)
        lam *= b * top
    answer = certify(rows, lam)
    fine &= answer.gap <= GAP
    if not rows.full:
        fine |= ~valid.any(axis=1)  # nothing asked, W = 0 is certified
    if not whole:  # a difference that is exactly zero
        fine &= ~(valid & (lengths == 0.0)).any(axis=1)
    if np.count_nonzero(fine) < len(fine):
        for index in np.flatnonzero(~fine):
            _one(rows, int(index), answer, lengths[index])
    return answer


def least_norm(features: Array) -> Answer:
    r"""Least norm of a vector under margins of at least 1 with given features, certified.

    $\min\|W\|$ s.t. $\langle F_k,W\rangle\ge1$ for all $k$.

    Args:
        features: $F_k$, ``B`` systems of ``m`` vectors, shape ``(B, m, D)``.

    Returns:
        A named tuple: ``W (B, D)``, ``margins`` and ``multipliers (B, m)``, and for each system
        ``norm``, ``gap`` (relative, of norm and dual bound), ``residual`` and ``status``
        (``optimal``, ``infeasible``, ``unresolved`` or ``iteration_limit``). Where there is no
        answer ``W`` is NaN, the norm infinite, and the multipliers show why: $\lambda\ge0$ with
        $\sum_k\lambda_kF_k/\|F_k\|$ of length ``residual``.

    Examples:
        >>> import numpy as np
        >>> from attnlab import svm
        >>> found = svm.least_norm(np.array([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [-1.0, 0.0]]]))
        >>> found.status.tolist(), found.W[0].round(9).tolist()
        (['optimal', 'infeasible'], [0.5, 1.0])
    """
    if features.ndim != 3:
        raise check.fail("features", "shape (B, m, D)", f"shape {features.shape}")
    if not np.isfinite(features).all():
        raise check.fail("features", "finite numbers", "NaN or infinity")
    return solve(Dense(features, np.ones(features.shape[:2], bool)))


def _eased(b: Array) -> Array:
    """Right-hand sides with room for rounding where features differ much in length.

    A row a million times longer than the shortest asks for a margin that is a millionth of
    ||W||, and rounding W alone moves it. Such rows are asked for 1e-12 ||W|| more: that costs the
    gap as much, and keeps their margins above 1.
    """
    small = b < 1e-4
    return b + 1e-12 * small if small.any() else b


def empty(shape: tuple[int, ...], *tail: int) -> Answer:
    """Answers to be filled in; until then there is none."""
    B, m = shape
    inf = np.full(B, np.inf)
    return Answer(
        W=np.full((B, *tail), np.nan),
        margins=np.full((B, m), np.nan),
        multipliers=np.zeros((B, m)),
        norm=inf,
        gap=inf.copy(),
        residual=np.zeros(B),
        status=np.full(B, "iteration_limit"),
    )


def certify(rows: Rows, lam: Array, W: Array | None = None) -> Answer:
    r"""The answer that multipliers give, scaled to smallest margin 1, with its gap.

    For any $\lambda\ge0$ a feasible $W'$ has
    $\|W'\|\ge\mathbf 1^\top\lambda/\|\sum\lambda_kF_k\|$: the gap needs no trust in the solver.
    ``W`` is that sum unless it is given apart. What rounding can have done to margins and sums
    is charged to the gap.
    """
    combined = rows.combine(lam)
    bound = _length(combined)
    W, size = (combined, bound) if W is None else (W, _length(W))
    margins = rows.apply(W)
    rounding = ROUNDING[margins.dtype.char]
    safe = margins - rows.lengths * (rounding * size)[:, None]
    reach = np.minimum.reduce(safe if rows.full else np.where(rows.valid, safe, np.inf), axis=1)
    total = np.add.reduce(lam, axis=1)
    bound = bound + rounding * np.add.reduce(lam * rows.lengths, axis=1)
    works: BoolArray | None = None
    if not (np.minimum.reduce(reach) > 0.0 and np.minimum.reduce(total) > 0.0):  # or NaN
        works = (reach > 0.0) & (total > 0.0) & (reach < np.inf)
        reach, total, bound, size = (np.where(works, x, 1.0) for x in (reach, total, bound, size))
    scale = 1.0 / reach
    wide = scale[:, None]
    norm = size * scale
    gap = np.maximum(1.0 - total / (bound * norm), 0.0)
    lam = lam * (norm / bound)[:, None]
    if works is not None:
        lam[~works] = 0.0
        norm[~works], gap[~works] = np.inf, np.inf
        free = ~rows.valid.any(axis=1)  # nothing asked: W = 0
        norm[free] = gap[free] = 0.0
    return Answer(
        W * (wide if W.ndim == 2 else wide[..., None]),
        margins * wide,
        lam,
        norm,
        gap,
        np.zeros(len(gap)),
        ENDED.take(gap <= GAP),
    )


def certify_one(
    W: Array, margins: Array, lam: Array, ends: tuple[float, float], longest: float
) -> One | None:
    r"""`certify` for $W=\sum\lambda_kF_k$ and its margins; None where the gap is not small.

    ``ends`` are the least margin and the sum of the multipliers. Rounding is charged at the length
    of the longest row: never less than there.
    """
    least, total = ends
    size, charge = sqrt(np.vdot(W, W)), ROUNDING["d"] * longest
    reach = least - charge * size
    if not (reach > 0.0 and total > 0.0):  # or NaN
        return None
    bound, scale = size + charge * total, np.array(1.0 / reach)
    norm = size / reach
    gap = max(1.0 - total / (bound * norm), 0.0)
    if not gap <= GAP:
        return None
    return W * scale, margins * scale, lam * np.array(norm / bound), norm, gap


def _length(W: Array) -> Array:
    flat = W.reshape(len(W), 1, -1)
    return np.asarray(np.sqrt((flat @ flat.swapaxes(1, 2))[:, 0, 0]))


def _one(rows: Rows, index: int, answer: Answer, lengths: Array) -> None:
    """One system that pivoting did not certify, by the least-distance form; fills in place."""
    valid = np.flatnonzero(rows.valid[index])
    lam = np.zeros(rows.valid.shape[1])
    residual = 0.0
    if not lengths[valid].all():
        lam[valid[lengths[valid] == 0.0][0]] = 1.0
    else:
        A, lift = rows.dense(index)
        lengths = np.linalg.norm(A, axis=1)
        A, b = A / lengths[:, None], lengths.min() / lengths
        guess, left = _nnls.weights(A, _eased(b))
        if left > 1e-14:
            support = _nnls.polish(A, _eased(b), guess)
            if _refined(rows, index, support, (A, lengths, lift), _eased(b) / b, answer):
                return
        lam[:] = 0.0
        lam[valid], residual = _nnls.contradiction(A)
    for broken in (answer.W, answer.margins):
        broken[index] = np.nan
    answer.multipliers[index] = lam
    answer.norm[index] = answer.gap[index] = np.inf
    answer.residual[index] = residual
    if residual <= INFEASIBLE:
        answer.status[index] = "infeasible"
    elif residual < UNRESOLVED:
        answer.status[index] = "unresolved"
    else:
        answer.status[index] = "iteration_limit"


def _refined(
    rows: Rows,
    index: int,
    support: BoolArray,
    dense: tuple[Array, Array, Callable[[Array], Array]],
    asked: Array,
    answer: Answer,
) -> bool:
    r"""The answer on a known support, in one precision more; fills in place, True if certified.

    Near infeasibility margins are differences of large numbers, and so is $\sum\lambda_kF_k$:
    both sides are corrected by their residuals, which are taken with the rows as they are.
    ``dense`` has unit rows, their lengths, and the way back; ``asked`` the margins.
    """
    A, lengths, lift = dense
    valid = np.flatnonzero(rows.valid[index])
    exact = rows.take(np.array([index]), np.longdouble)
    inverse = np.linalg.pinv(A[support], rcond=1e-14)
    lam: Any = np.zeros((1, rows.valid.shape[1]), np.longdouble)
    W = exact.combine(lam)

    def missing(found: Array) -> Array:
        short = (asked - exact.apply(found)[0, valid]) / lengths
        return np.asarray(inverse @ short[support].astype(np.float64))

    for _ in range(REFINEMENTS):
        W = W + lift(missing(W))[None]
        step = inverse.T @ missing(exact.combine(lam))
        lam[0, valid[support]] += step / lengths[support]
    tried = certify(exact, np.maximum(lam, 0.0), W)
    if tried.gap[0] < answer.gap[index]:
        for kept, new in zip(answer, tried, strict=True):
            kept[index] = new[0]
    return bool(answer.gap[index] <= GAP)
