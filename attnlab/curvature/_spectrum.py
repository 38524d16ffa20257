"""Extreme eigenvalues of the loss Hessian, and the weak convexity of multihead's Corollary 1."""

from __future__ import annotations

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.curvature._hessian import DENSE, LARGEST_BYTES, hessian
from attnlab.curvature._lanczos import by_lanczos
from attnlab.curvature._network import AnyModel, Problem, known, order, size
from attnlab.models import Encoder, Params, fit

# An eigenvalue below this, relative to the largest, is 0: what Lanczos and eigvalsh both resolve.
ROUNDING = 1e-11


def extremes(model: AnyModel, params: Params, problem: Problem) -> tuple[Array, Array]:
    r"""Smallest and largest eigenvalue of the Hessian of the loss, by Lanczos.

    Only products are used, so the number of parameters is limited by their own storage. Errors
    are about $10^{-12}\|\nabla^2L\|_F$.

    Args:
        model: `Attention`, `MultiHead` or `Encoder`.
        params: a dict of arrays; leading axes may be missing.
        problem: the samples.

    Returns:
        ``(smallest, largest)``, each of the shape of the trials.

    Examples:
        >>> from attnlab import curvature, models, problems
        >>> reg = problems.gaussian_regression(n=4, T=3, d=5, unit_tokens=True, rng=0)
        >>> model = models.Encoder(width=300)
        >>> smallest, largest = curvature.extremes(model, model.init(reg, rng=0), reg)
        >>> bool(smallest < 0.0 < largest)
        True

    Reference: multihead, Corollary 1; encoder, Theorem 3.
    """
    known(model)
    return by_lanczos(model, fit(model, params, problem), problem, "loss")


def weak_convexity(model: AnyModel, params: Params, problem: Problem) -> Array:
    r"""How far from convex the loss is, in units of the loss: $-\lambda_{\min}(\nabla^2L)/L$.

    Multihead's Corollary 1 (3) bounds it by $\beta_3/\sqrt H$: with many heads a small loss is
    nearly convex.

    Args:
        model: a model whose loss is bounded below by 0.
        params: a dict of arrays; leading axes may be missing.
        problem: the samples.

    Returns:
        The ratio, shape of the trials; 0 where the Hessian has no negative eigenvalue beyond
        rounding.

    Examples:
        >>> from attnlab import curvature, models, problems
        >>> seq = problems.tokenized_mixture(n=20, rng=0)
        >>> model = models.MultiHead(heads=2, start="gaussian", scale=1.0)
        >>> bool(curvature.weak_convexity(model, model.init(seq, rng=0), seq) > 0.0)
        True

    Reference: multihead, Corollary 1 (3) and Lemma 6.
    """
    known(model)
    if not isinstance(model, Encoder) and model.loss == "correlation":
        raise check.fail("model.loss", "a loss that is bounded below by 0", model.loss)
    params = fit(model, params, problem)
    p = size(order(model, problem))
    trials = int(np.prod(problem.trials, dtype=int))
    if p <= DENSE and 8.0 * p * p * trials <= LARGEST_BYTES:
        lowest, highest = hessian(model, params, problem).extremes
    else:
        lowest, highest = by_lanczos(model, params, problem, "loss")
    loss = model.value_and_grad(params, problem)[0]  # type: ignore[arg-type]
    noise = ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
    bent = (lowest < -noise) & (loss > 0.0)
    return np.asarray(np.where(bent, -lowest / np.where(bent, loss, 1.0), 0.0))
