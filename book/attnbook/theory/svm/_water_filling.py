"""How many tokens a concave head selects: Lemma 6 in closed form, with its sharp thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array


def water_filling(scores: ArrayLike, curvature: ArrayLike) -> Array:
    r"""Softmax weights that a concave head asks for, in closed form.

    $\min_{s\in\Delta_T}\lambda\|X^\top s\|^2-v^\top X^\top s$ for orthonormal tokens is the
    projection of $\gamma/(2\lambda)$ onto the simplex: $s_t=(\gamma_t/(2\lambda)-\theta)_+$.

    Args:
        scores: $\gamma$ ``(..., T)``, in any order.
        curvature: $\lambda>0$, of the shape of the trials.

    Returns:
        Weights ``(..., T)`` that sum to 1.

    Examples:
        >>> from attnbook import theory
        >>> theory.svm.water_filling([1.0, 0.8, 0.3, 0.0], 0.3).round(4)
        array([0.6667, 0.3333, 0.    , 0.    ])

    Reference: svm, Lemma 6.
    """
    gamma = check.frozen("scores", scores, ndim=1)
    scale = check.frozen("curvature", curvature)
    if not (scale > 0).all():
        raise check.fail("curvature", "numbers above 0", curvature)
    c = gamma / (2.0 * scale[..., None])
    u = -np.sort(-c, axis=-1)
    level = (np.cumsum(u, axis=-1) - 1.0) / np.arange(1, u.shape[-1] + 1)
    k = (u > level).sum(axis=-1, keepdims=True)
    return np.maximum(c - np.take_along_axis(level, k - 1, axis=-1), 0.0)


def thresholds(scores: ArrayLike, tokens: int) -> tuple[Array, Array]:
    r"""Between which $\lambda$ the number of selected tokens is 2 to ``tokens``, sharply.

    At least two tokens iff $\lambda>(\gamma_1-\gamma_2)/2$; at most $\tau$ iff
    $\lambda\le\frac12\sum_{t\le\tau}(\gamma_t-\gamma_{\tau+1})$. The paper's sufficient
    condition is $\gamma_1-\gamma_2<\lambda<\tau(\gamma_\tau-\gamma_{\tau+1})/2$.

    Args:
        scores: $\gamma$ ``(..., T)``, in any order.
        tokens: $\tau$, from 2 to $T-1$.

    Returns:
        The lower and the upper threshold, of the shape of the trials.

    Examples:
        >>> from attnbook import theory
        >>> low, high = theory.svm.thresholds([1.0, 0.8, 0.3, 0.0], tokens=2)
        >>> float(low.round(4)), float(high.round(4))
        (0.1, 0.6)

    Reference: svm, Lemma 6, made sharp.
    """
    gamma = -np.sort(-check.frozen("scores", scores, ndim=1), axis=-1)
    most = gamma.shape[-1] - 1
    tau = check.count("tokens", tokens, least=2)
    if tau > most:
        raise check.fail("tokens", f"at most T - 1 = {most}", tokens)
    low = (gamma[..., 0] - gamma[..., 1]) / 2.0
    high = (gamma[..., :tau] - gamma[..., tau : tau + 1]).sum(axis=-1) / 2.0
    return np.asarray(low), np.asarray(high)


def sufficient_range(scores: ArrayLike, tokens: int) -> tuple[Array, Array]:
    r"""The paper's own range of $\lambda$ for 2 to ``tokens`` selected tokens.

    $\gamma_1-\gamma_2<\lambda<\tau(\gamma_\tau-\gamma_{\tau+1})/2$; empty unless the lower end is
    below the upper one. It lies within `thresholds`.

    Args:
        scores: $\gamma$ ``(..., T)``, in any order.
        tokens: $\tau$, from 2 to $T-1$.

    Returns:
        The two ends, of the shape of the trials.

    Examples:
        >>> from attnbook import theory
        >>> low, high = theory.svm.sufficient_range([1.0, 0.8, 0.3, 0.0], tokens=2)
        >>> float(low.round(4)), float(high.round(4))
        (0.2, 0.5)

    Reference: svm, Lemma 6 and equation 8.
    """
    gamma = -np.sort(-check.frozen("scores", scores, ndim=1), axis=-1)
    most = gamma.shape[-1] - 1
    tau = check.count("tokens", tokens, least=2)
    if tau > most:
        raise check.fail("tokens", f"at most T - 1 = {most}", tokens)
    high = tau * (gamma[..., tau - 1] - gamma[..., tau]) / 2.0
    return np.asarray(gamma[..., 0] - gamma[..., 1]), np.asarray(high)
