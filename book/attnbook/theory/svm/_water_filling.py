"""How many tokens a concave head selects: Lemma 6 in closed form, with its sharp thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array


def water_filling(scores: ArrayLike, curvature: ArrayLike) -> Array:
    r"""$s_t=(\gamma_t/(2\lambda)-\theta)_+$ of sum 1, a concave head's weights (svm, Lemma 6).

    $\min_{s\in\Delta_T}\lambda\|X^\top s\|^2-v^\top X^\top s$ for orthonormal tokens is the
    projection of $\gamma/(2\lambda)$ onto the simplex. Scores in any order; ``curvature`` is
    $\lambda$.

    >>> from attnbook import theory
    >>> theory.svm.water_filling([1.0, 0.8, 0.3, 0.0], 0.3).round(4)
    array([0.6667, 0.3333, 0.    , 0.    ])
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


def thresholds(scores: ArrayLike, tokens: int, *, printed: bool = False) -> tuple[Array, Array]:
    r"""Between which $\lambda$ the number of selected tokens is 2 to ``tokens`` (svm, Lemma 6).

    Sharply: at least two iff $\lambda>(\gamma_1-\gamma_2)/2$; at most $\tau$ (2 to $T-1$) iff
    $\lambda\le\frac12\sum_{t\le\tau}(\gamma_t-\gamma_{\tau+1})$. The paper's own range, which is
    sufficient (``printed``, equation 8), is
    $\gamma_1-\gamma_2<\lambda<\tau(\gamma_\tau-\gamma_{\tau+1})/2$: within the sharp one, and empty
    unless its lower end is below the upper one. Scores in any order.

    >>> from attnbook import theory
    >>> scores = [1.0, 0.8, 0.3, 0.0]
    >>> [float(end.round(4)) for end in theory.svm.thresholds(scores, tokens=2)]
    [0.1, 0.6]
    >>> [float(end.round(4)) for end in theory.svm.thresholds(scores, tokens=2, printed=True)]
    [0.2, 0.5]
    """
    gamma = -np.sort(-check.frozen("scores", scores, ndim=1), axis=-1)
    most = gamma.shape[-1] - 1
    tau = check.count("tokens", tokens, least=2)
    if tau > most:
        raise check.fail("tokens", f"at most T - 1 = {most}", tokens)
    if printed:
        high = tau * (gamma[..., tau - 1] - gamma[..., tau]) / 2.0
        return np.asarray(gamma[..., 0] - gamma[..., 1]), np.asarray(high)
    low = (gamma[..., 0] - gamma[..., 1]) / 2.0
    high = (gamma[..., :tau] - gamma[..., tau : tau + 1]).sum(axis=-1) / 2.0
    return np.asarray(low), np.asarray(high)
