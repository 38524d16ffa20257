r"""One feature a token, $d=1$: three numbers are the whole network, and its Hessian in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.encoder._bars import Bars
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Encoder, Params
from attnlab.problems import SequenceProblem


def effective_scalars(model: Encoder, params: Params) -> tuple[Array, Array, Array]:
    r"""The three numbers that a network with $d=1$ consists of (Corollary 1).

    $\kappa=\tau_0w_Q^\top w_K$, $p=\sigma_r(w_V)^\top w_O$ and $q=\sigma_r(-w_V)^\top w_O$.

    >>> import numpy as np
    >>> from attnlab import models
    >>> from attnbook import theory
    >>> one = np.ones((2, 1))
    >>> params = {"W_Q": one, "W_K": one, "W_V": [[3.0], [-1.0]], "w_O": [1.0, 5.0]}
    >>> found = theory.encoder.effective_scalars(models.Encoder(2, scaling="linear"), params)
    >>> [float(number) for number in found]
    [1.0, 3.0, 5.0]
    """
    columns = {name: check.frozen(f"params[{name!r}]", params[name]) for name in params}
    for name in ("W_Q", "W_K", "W_V"):
        if columns[name].shape[-1] != 1:
            raise check.fail(f"params[{name!r}]", "one column", f"shape {columns[name].shape}")
    w_Q, w_K, w_V = (columns[name][..., 0] for name in ("W_Q", "W_K", "W_V"))
    kappa = model.tau0 * (w_Q * w_K).sum(axis=-1)
    p = (np.maximum(w_V, 0.0) * columns["w_O"]).sum(axis=-1)
    q = (np.maximum(-w_V, 0.0) * columns["w_O"]).sum(axis=-1)
    return np.asarray(kappa), np.asarray(p), np.asarray(q)


def effective_features(kappa: ArrayLike, problem: SequenceProblem) -> Array:
    r"""$\sum_im_i^+$ and $\sum_im_i^-$ of each sample, with $m_i=\beta_i^\top x$ (Corollary 1).

    $\beta_i=\mathrm{softmax}(\kappa x_ix)$, shape ``(..., n, 2)``; a grid of $\kappa$ comes in
    front of the trials. The network is $f=c\,(p\sum m_i^++q\sum m_i^-)$ with $c=\tau_1/d_s$ (mean
    pooling) or $\tau_1$ (sum): two features at every width, so $\mathrm{rank}F_{pre}\le2$ and
    $\mathrm{rank}K\le3$.

    >>> from attnlab import problems
    >>> from attnbook import theory
    >>> p = problems.SequenceProblem(X=[[[1.0], [-2.0]], [[1.0], [3.0]]], y=[0.0, 1.0])
    >>> theory.encoder.effective_features(0.0, p).tolist()
    [[0.0, 1.0], [4.0, 0.0]]
    """
    if problem.d != 1:
        raise check.fail("problem", "one feature a token", f"d = {problem.d}")
    x = problem.X[..., 0]
    logits = check.frozen("kappa", kappa)[..., None, None, None] * (
        x[..., :, None] * x[..., None, :]
    )
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    m = (weights * x[..., None, :]).sum(axis=-1)
    positive, negative = np.maximum(m, 0.0).sum(axis=-1), np.maximum(-m, 0.0).sum(axis=-1)
    return np.stack([positive, negative], axis=-1)


def effective_floor(kappa: ArrayLike, problem: SequenceProblem) -> Array:
    r"""Least mean loss at given attention, $\min_{p,q}\frac1N\|p\,a+q\,b-y\|^2$ (Corollary 1).

    With the features $a,b$ of `effective_features`. No network with $d=1$ and attention $\kappa$
    has a smaller loss, whatever its width and its scaling.

    >>> from attnlab import problems
    >>> from attnbook import theory
    >>> p = problems.SequenceProblem(X=[[[1.0]], [[2.0]], [[-1.0]]], y=[1.0, 1.0, 1.0])
    >>> float(theory.encoder.effective_floor(0.0, p).round(6))
    0.066667
    """
    A = effective_features(kappa, problem)
    U, sizes, _ = np.linalg.svd(A, full_matrices=False)
    U = U * (sizes > 1e-12 * np.maximum(sizes[..., :1], 1e-300))[..., None, :]
    along = (U * problem.y[..., None]).sum(axis=-2)
    rest = (problem.y**2).sum(axis=-1) - (along**2).sum(axis=-1)
    return np.asarray(np.maximum(rest, 0.0) / problem.n)


def hessian_block_bounds(x: ArrayLike, bars: Bars) -> dict[tuple[str, str], Array]:
    r"""Bounds on the blocks of the output's Hessian for $d=1$ (Theorem 3, with its repairs).

    With $\mathrm{Var}_\beta(x)\le\frac12\|x\|^2$, third moments at most $\|x\|^3$ and
    $|m_i|\le\max|x|$:
    $$\begin{aligned}\|H_{QQ}\|&\le\tau_0^2\tau_1\textstyle\sum x_i^2\,\|x\|^3
    \bar\lambda_V\bar\lambda_O\bar\lambda_K^2,&
    \|H_{QK}\|&\le\dots\bar\lambda_Q\bar\lambda_K+
    \tfrac12\tau_0\tau_1\textstyle\sum|x_i|\,\|x\|^2\bar\lambda_V\bar\lambda_O,\\
    \|H_{QV}\|&\le\tfrac12\tau_0\tau_1\textstyle\sum|x_i|\,\|x\|^2\bar\lambda_K\bar\lambda_O,&
    \|H_{OV}\|&\le\tau_1d_s\max|x|.\end{aligned}$$
    The second summand of $H_{QK}$ (its diagonal term) is missing in the paper. For NTK weights and
    $\tau_0=d_m^{-1}$ every bound but that summand is of order $d_m^{-1/2}$, not $1/d_m$. ``x`` is
    one sample, ``(..., T)``; of each symmetric pair of names one is given.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(1, 2, 1.0, 0.5, 1.0, Q=1.0, K=2.0, V=1.0, O=3.0)
    >>> found = theory.encoder.hessian_block_bounds([0.6, 0.8], b)
    >>> [round(float(found[pair]), 6) for pair in (("W_Q", "W_Q"), ("W_Q", "W_K"))]
    [3.0, 2.55]
    """
    tokens = check.frozen("x", x, ndim=1)
    size = np.linalg.norm(tokens, axis=-1)
    first, c = np.abs(tokens).sum(axis=-1), bars.pool
    third = bars.tau0**2 * c * size**2 * size**3 * bars.V * bars.O
    second = 0.5 * bars.tau0 * c * first * size**2
    return {
        ("W_Q", "W_Q"): np.asarray(third * bars.K**2),
        ("W_K", "W_K"): np.asarray(third * bars.Q**2),
        ("W_Q", "W_K"): np.asarray(third * bars.Q * bars.K + second * bars.V * bars.O),
        ("W_Q", "W_V"): np.asarray(second * bars.K * bars.O),
        ("W_K", "W_V"): np.asarray(second * bars.Q * bars.O),
        ("W_Q", "w_O"): np.asarray(second * bars.K * bars.V),
        ("W_K", "w_O"): np.asarray(second * bars.Q * bars.V),
        ("W_V", "w_O"): np.asarray(c * bars.T * np.abs(tokens).max(axis=-1)),
    }
