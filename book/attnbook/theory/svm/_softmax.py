r"""The softmax derivative against token values: Lemma 7, its exact residual, and equation 25."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array, IntArray


def softmax_covariance(values: ArrayLike, attention: ArrayLike, scores: ArrayLike) -> Array:
    r"""$a^\top S'\gamma=a^\top\mathrm{diag}(s)\gamma-a^\top ss^\top\gamma$ (svm, equations 13, 24).

    The covariance of values $a$ and scores $\gamma$ under $s$, formed as
    $\sum_ts_t(a_t-\bar a)(\gamma_t-\bar\gamma)$, which cancels least. One number a row.

    >>> from attnbook import theory
    >>> float(theory.svm.softmax_covariance([1.0, 0.0], [0.75, 0.25], [2.0, 0.0]))
    0.375
    """
    a, s, g = _rows(values, attention, scores)
    return _mean(s, (a - _mean(s, a)[..., None]) * (g - _mean(s, g)[..., None]))


def lemma_7_sum(
    values: ArrayLike, attention: ArrayLike, scores: ArrayLike, tokens: Any = None
) -> Array:
    r"""$\sum_{t\ne1}(a_1-a_t)s_t(\gamma_1-\gamma_t)$, the covariance's leading part (svm, Lemma 7).

    ``tokens`` says which token of each row is called 1; the first where None.

    >>> from attnbook import theory
    >>> float(theory.svm.lemma_7_sum([1.0, 0.0], [0.75, 0.25], [2.0, 0.0]))
    0.5
    """
    a, s, g = _rows(values, attention, scores)
    at = _first(tokens, s)
    return _mean(s, (_take(a, at) - a) * (_take(g, at) - g))


def lemma_7_bound(
    values: ArrayLike, attention: ArrayLike, scores: ArrayLike, tokens: Any = None
) -> Array:
    r"""$2\Gamma A(1-s_1)^2$: how far covariance and leading part may differ (svm, Lemma 7).

    $\Gamma=\max_{t,\tau}|\gamma_t-\gamma_\tau|$, $A=\max_t|a_t|$; ``tokens`` as in `lemma_7_sum`.

    >>> from attnbook import theory
    >>> float(theory.svm.lemma_7_bound([1.0, -1.0], [0.75, 0.25], [2.0, 0.0]))
    0.25
    """
    a, s, g = _rows(values, attention, scores)
    missing = _missing(s, _first(tokens, s))
    return np.asarray(2.0 * np.ptp(g, axis=-1) * np.abs(a).max(axis=-1) * missing**2)


def lemma_7_residual(
    values: ArrayLike, attention: ArrayLike, scores: ArrayLike, tokens: Any = None
) -> Array:
    r"""$-(a_1-\bar a)(\gamma_1-\bar\gamma)$: covariance minus leading part
    (svm, Lemma 7, made exact).

    $\bar a=\sum_ts_ta_t$ and likewise $\bar\gamma$; ``tokens`` as in `lemma_7_sum`.

    >>> from attnbook import theory
    >>> float(theory.svm.lemma_7_residual([1.0, -1.0], [0.75, 0.25], [2.0, 0.0]))
    -0.25
    """
    a, s, g = _rows(values, attention, scores)
    at = _first(tokens, s)
    lost_a = _mean(s, _take(a, at) - a)  # a_1 minus its mean, without cancellation
    return np.asarray(-lost_a * _mean(s, _take(g, at) - g))


def equal_score_form(
    values: ArrayLike, attention: ArrayLike, scores: ArrayLike, tokens: Any = None
) -> Array:
    r"""The covariance where all tokens but one score the same (svm, equation 25).

    $(\gamma_1-\gamma)(1-s_1)s_1\Big[a_1-\sum_{t\ne1}a_ts_t\big/\sum_{t\ne1}s_t\Big]$, $\gamma$ the
    common score (their mean under $s$); ``tokens`` as in `lemma_7_sum`. By symmetry, with $a$ and
    $\gamma$ swapped, it serves where all tokens but one have the same value (Assumption B.1).

    >>> from attnbook import theory
    >>> row = [2.0, 0.0, 1.0], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]
    >>> float(theory.svm.equal_score_form(*row)), float(theory.svm.softmax_covariance(*row))
    (0.375, 0.375)
    """
    a, s, g = _rows(values, attention, scores)
    at = _first(tokens, s)
    rest = np.where(np.arange(s.shape[-1]) == at[..., None], 0.0, s)
    missing = rest.sum(axis=-1)
    if not (missing > 0.0).all():
        raise check.fail("attention", "weight on the other tokens too", "rows that have none")
    own = _take(s, at)[..., 0]
    gap = _mean(rest, _take(g, at) - g) / missing
    return np.asarray(gap * missing * own * (_mean(rest, _take(a, at) - a) / missing))


def _rows(values: Any, attention: Any, scores: Any) -> tuple[Array, Array, Array]:
    a = check.frozen("values", values, ndim=1)
    s = check.frozen("attention", attention, ndim=1)
    g = check.frozen("scores", scores, ndim=1)
    if not a.shape[-1] == s.shape[-1] == g.shape[-1]:
        raise check.fail("scores", f"rows of {s.shape[-1]} tokens throughout", f"shape {g.shape}")
    if s.min(initial=0.0) < 0.0 or np.abs(s.sum(axis=-1) - 1.0).max(initial=0.0) > 1e-9:
        raise check.fail("attention", "nonnegative rows that sum to 1", s)
    found = np.broadcast_arrays(a, s, g)
    return found[0], found[1], found[2]


def _first(tokens: Any, s: Array) -> IntArray:
    if tokens is None:
        return np.zeros(s.shape[:-1], np.int64)
    at = np.asarray(tokens)
    if at.dtype.kind not in "iu" or at.min(initial=0) < 0 or at.max(initial=0) >= s.shape[-1]:
        raise check.fail("tokens", f"whole numbers from 0 to {s.shape[-1] - 1}", tokens)
    return np.broadcast_to(at.astype(np.int64), s.shape[:-1])


def _take(array: Array, at: IntArray) -> Array:
    return np.take_along_axis(array, at[..., None], axis=-1)


def _mean(s: Array, array: Array) -> Array:
    return np.asarray((s * array).sum(axis=-1))


def _missing(s: Array, at: IntArray) -> Array:
    """1 - s_1, summed over the others: exact however close s_1 is to 1."""
    rest = np.where(np.arange(s.shape[-1]) == at[..., None], 0.0, s)
    return np.asarray(rest.sum(axis=-1))
