"""Lipschitz constants of the gradient: svm, Lemma 4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Attention, Params, fit, losses
from attnlab.problems import TokenProblem


@dataclass(frozen=True, eq=False)
class Smoothness:
    r"""Lipschitz constants of the gradient, of the shape of the trials.

    $\|\nabla\mathcal L(\theta)-\nabla\mathcal L(\theta')\|\le L\|\theta-\theta'\|$ for one
    parameter, the other held fixed.

    Args:
        W: $L_W$.
        K: $\|Q\|^2L_W$, for ``K`` with ``Q`` held fixed; None where no factors were given.
        Q: $\|K\|^2L_W$, for ``Q`` with ``K`` held fixed.
        K_printed: $\|Q\|L_W$, the paper's constant, which is one factor short.
        Q_printed: $\|K\|L_W$, likewise.

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import curvature, models, problems
        >>> found = curvature.smoothness(models.Attention(), problems.two_token())
        >>> found.K is None, float(found.W) > 0.0
        (True, True)

    Reference: svm, Lemma 4 (its constants for K and Q corrected).
    """

    W: Array
    K: Array | None = None
    Q: Array | None = None
    K_printed: Array | None = None
    Q_printed: Array | None = None

    def __repr__(self) -> str:
        def largest(name: str) -> str:
            value = getattr(self, name)
            return "" if value is None else f"{name}={float(np.max(value)):.4g}"

        names = ("W", "K", "Q", "K_printed", "Q_printed")
        inside = ", ".join(text for text in map(largest, names) if text)
        many = f", largest of trials={self.W.shape}" if self.W.shape else ""
        return f"Smoothness({inside}{many})"


def smoothness(model: Attention, problem: TokenProblem, params: Params | None = None) -> Smoothness:
    r"""Smoothness constants of attention with a fixed linear head.

    $L_W=\frac1n\sum_i\|v\|\|z_i\|^2\|X_i\|^3(M_0\|v\|\|X_i\|+3M_1)$, with $M_0$ the Lipschitz
    constant and $M_1$ the bound of $\ell'$ (`models.Loss.constants`). Given factors, the
    constants for $K$ and $Q$ too, as corrected ($\|Q\|^2L_W$) and as printed ($\|Q\|L_W$, which
    a rescaling $Q\to cQ$, $K\to K/c$ violates).

    Args:
        model: an `Attention` with a linear head that is not trained.
        problem: samples; tokens that a mask forbids do not count.
        params: ``K`` and ``Q`` ``(..., d, factors)``, needed only for their constants.

    Returns:
        A `Smoothness` record; entries have the shape of the trials.

    Examples:
        >>> from attnlab import curvature, models, problems
        >>> p = problems.sphere(n=3, T=4, d=5, rng=0)
        >>> model = models.Attention(factors=2)
        >>> params = model.init(p, rng=1)
        >>> found = curvature.smoothness(model, p, params)
        >>> bool(found.K < found.K_printed)  # here the spectral norm of Q is below 1
        True

    Reference: svm, Lemma 4 and Assumption A.
    """
    if not isinstance(model, Attention):
        raise check.fail("model", "an Attention", type(model).__name__)
    if not model.head.linear or model.train_head:
        raise check.fail("model", "a linear head that is not trained (svm, Lemma 4)", model)
    model.shapes(problem)
    X = problem.X if problem.mask is None else problem.X * problem.mask[..., None]
    M0, M1, _ = losses()[model.loss].constants(_lowest(model.loss, problem))
    x = np.linalg.norm(X, ord=2, axis=(-2, -1))  # (..., n)
    v = np.linalg.norm(problem.v, axis=-1)[..., None]
    a = v * (problem.z**2).sum(axis=-1) * x**3
    W = np.asarray((a * (M0[..., None] * v * x + 3.0 * M1[..., None])).mean(axis=-1))
    if model.factors is None or params is None:
        return Smoothness(W)
    params = fit(model, params, problem, copy=False)
    k, q = (_spectral(params[name]) for name in ("K", "Q"))
    return Smoothness(W, q**2 * W, k**2 * W, q * W, k * W)


def _lowest(loss: str, problem: TokenProblem) -> Array:
    """Where the loss needs it, the least margin: a mean of the scores stays above the lowest."""
    if loss != "exponential":
        return np.full(problem.trials, -np.inf)
    lowest = np.where(problem.allowed, problem.scores, np.inf).min(axis=(-1, -2))
    return np.asarray(lowest)


def _spectral(matrix: Array) -> Array:
    return np.asarray(np.linalg.norm(matrix, ord=2, axis=(-2, -1)))
