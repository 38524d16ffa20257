"""Lipschitz constants: of a loss (svm, Assumption A) and of the gradient (svm, Lemma 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Attention, Params, fit, losses
from attnlab.problems import TokenProblem


class LossConstants(NamedTuple):
    """What Assumption A asks of a loss on an interval: numbers, or arrays like its ends."""

    lipschitz: Any  # M_0, the Lipschitz constant of l'
    steepest: Any  # M_1 = max |l'|
    flattest: Any  # min |l'|, above 0 where the loss is strictly decreasing


def loss_constants(loss: str, low: ArrayLike = -np.inf, high: ArrayLike = np.inf) -> LossConstants:
    r"""$M_0$, $M_1$ and the least slope of a loss on an interval of margins.

    On the whole line the logistic loss has $M_0=1/4$ and $M_1=1$, the correlation loss $0$ and
    $1$; the exponential loss has constants only where margins are bounded below.

    Args:
        loss: ``"logistic"``, ``"exponential"`` or ``"correlation"``.
        low: left end of the interval; any shape.
        high: right end.

    Returns:
        A named tuple: ``lipschitz`` ($M_0$, of $\ell'$), ``steepest`` ($M_1=\max|\ell'|$) and
        ``flattest`` ($\min|\ell'|$).

    Examples:
        >>> from attnlab import curvature
        >>> print(*curvature.loss_constants("logistic"))
        0.25 1.0 0.0
        >>> print(*curvature.loss_constants("exponential", low=0.0))
        1.0 1.0 0.0

    Reference: svm, Assumption A.
    """
    check.choice("loss", loss, losses())
    low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
    if not (low <= high).all():
        raise check.fail("low", "at most high", f"{low} with high = {high}")
    if loss == "correlation":
        steep = flat = np.ones(low.shape)
        top = np.zeros(low.shape)
    elif loss == "exponential":
        if (low == -np.inf).any():
            text = "a finite number: e^-u has no constants on the whole line"
            raise check.fail("low", text, f"{low}")
        steep, flat = np.exp(-low), np.exp(-high)
        top = steep
    else:
        steep, flat = (0.5 * (1.0 - np.tanh(end / 2.0)) for end in (low, high))
        inner = np.clip(0.0, low, high)  # l'' is largest where |u| is least
        top = 0.25 * (1.0 - np.tanh(inner / 2.0) ** 2)
    return LossConstants(top[()], steep[()], flat[()])  # numbers, where the ends are numbers


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
    constant and $M_1$ the bound of $\ell'$ (`loss_constants`). Given factors, the
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
    if type(model) is not Attention:
        raise check.fail("model", "an Attention", type(model).__name__)
    if not model.has_linear_head or model.train_head:
        raise check.fail("model", "a linear head that is not trained (svm, Lemma 4)", model)
    model.shapes(problem)
    X = problem.X if problem.mask is None else problem.X * problem.mask[..., None]
    M0, M1, _ = loss_constants(model.loss, _lowest(model.loss, problem))
    x = np.linalg.norm(X, ord=2, axis=(-2, -1))  # (..., n)
    v = np.linalg.norm(problem.v, axis=-1)[..., None]
    a = v * (problem.z**2).sum(axis=-1) * x**3
    W = np.asarray((a * (M0[..., None] * v * x + 3.0 * M1[..., None])).mean(axis=-1))
    params = None if params is None else fit(model, params, problem, copy=False)
    if model.factors is None or params is None:
        return Smoothness(W)
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
