r"""What initialisation and scaling do: logits, kernels, and the step size they allow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Encoder

INITS = ("lecun", "he", "ntk")
LOSSES = {"mean": 1.0, "half_mean": 2.0, "half_sum": 2.0}


def variances(init: str, width: int, d: int) -> dict[str, float]:
    r"""Table 1: variances of the weights by name, and $\tau_1$.

    >>> from attnbook import theory
    >>> theory.encoder.variances("he", width=100, d=10)
    {'W_Q': 0.2, 'W_K': 0.2, 'W_V': 0.2, 'w_O': 0.02, 'tau1': 1.0}
    """
    check.choice("init", init, INITS)
    m, features = check.count("width", width), check.count("d", d)
    if init == "ntk":
        return dict.fromkeys(("W_Q", "W_K", "W_V", "w_O"), 1.0) | {"tau1": m**-0.5}
    gain = 2.0 if init == "he" else 1.0
    inner = gain / features
    return {"W_Q": inner, "W_K": inner, "W_V": inner, "w_O": gain / m, "tau1": 1.0}


def logit_variance(model: Encoder, d: int, size: ArrayLike, other: ArrayLike) -> Array:
    r"""Variance of a logit at the start: $\tau_0^2d_m\eta_Q\eta_K\|x\|^2\|x'\|^2$ for $x\ne x'$.

    ``size`` is $\|x\|$, ``other`` $\|x'\|$ (Section 3). 1 for NTK, unit tokens and
    $\tau_0=d_m^{-1/2}$; $1/d_m$ with $\tau_0=d_m^{-1}$; and $1/d^2$ for LeCun and unit tokens,
    where attention is a mean whatever $\tau_0$.

    >>> from attnlab import models
    >>> from attnbook import theory
    >>> variance = theory.encoder.logit_variance
    >>> lecun, ntk = models.Encoder(width=1000), models.Encoder(width=1000, init="ntk")
    >>> [float(variance(lecun, 100, s, s).round(12)) for s in (10.0, 1.0)]
    [1.0, 0.0001]
    >>> linear = models.Encoder(width=1000, init="ntk", scaling="linear")
    >>> [float(variance(m, 100, 1.0, 1.0).round(12)) for m in (ntk, linear)]
    [1.0, 0.001]
    """
    if not isinstance(model, Encoder):
        raise check.fail("model", "an Encoder", type(model).__name__)
    eta = variances(model.init, model.width, d)
    sizes = (check.frozen("size", size) * check.frozen("other", other)) ** 2
    return np.asarray(model.tau0**2 * model.width * eta["W_Q"] * eta["W_K"] * sizes)


def output_deviation(init: str, T: int, d: int) -> float:
    r"""Standard deviation of an output at the start, $(\tau_1^2d_m\eta_O\eta_V\|\phi\|^2/2)^{1/2}$.

    For unit tokens, uniform attention and mean pooling, with $\|\phi\|^2\approx1/d_s$; the width
    cancels (Section 5.1, made explicit).

    >>> from attnbook import theory
    >>> [round(theory.encoder.output_deviation(k, 10, 100), 4) for k in ("lecun", "he", "ntk")]
    [0.0224, 0.0447, 0.2236]
    """
    size = variances(init, 1, d)
    return math.sqrt(0.5 * size["w_O"] * size["W_V"] / check.count("T", T))


def mean_field_kernel(
    relu: ArrayLike, step: ArrayLike, products: ArrayLike, init: str, width: int, d: int
) -> Array:
    r"""Tangent kernel at large width, uniform attention and mean pooling (Lemma 1 and Table 1).

    $\mathcal A_1+\mathcal A_0\circ\Phi^*\Phi^{*\top}$ for NTK; $\frac{d_m}d\mathcal A_1+\mathcal
    A_0\circ\Phi^*\Phi^{*\top}$ for LeCun, and twice that for He: their $w_O$ block grows like
    $d_m$, so that they have no limit. ``relu``, ``step`` and ``products`` are
    $\mathcal A_1=\mathbb E[\sigma_r(\Phi^*w)\sigma_r(\Phi^*w)^\top]$,
    $\mathcal A_0=\mathbb E[\dot\sigma_r(\Phi^*w)\dot\sigma_r(\Phi^*w)^\top]$ and
    $\Phi^*\Phi^{*\top}$.

    >>> from attnbook import theory
    >>> kernel = theory.encoder.mean_field_kernel
    >>> [float(kernel([[0.5]], [[0.5]], [[1.0]], init, 100, 10)[0, 0])
    ...  for init in ("lecun", "he", "ntk")]
    [5.5, 11.0, 1.0]
    """
    first, second = check.frozen("relu", relu, ndim=2), check.frozen("step", step, ndim=2)
    hidden = second * check.frozen("products", products, ndim=2)
    return np.asarray(_both_blocks(first, hidden, init, width, d))


def _both_blocks(output: Any, hidden: Any, init: str, width: int, d: int) -> Any:
    """The blocks of $w_O$ and of $W_V$ together, from their values for NTK."""
    check.choice("init", init, INITS)
    ratio = check.count("width", width) / check.count("d", d)
    if init == "ntk":
        return output + hidden
    return (2.0 if init == "he" else 1.0) * (ratio * output + hidden)


def top_eigenvalue(init: str, N: int, T: int, d: int, width: int) -> float:
    r"""$\lambda_{\max}(K)$ at the start in closed form (Section 5.1, made explicit).

    For unit tokens, many dimensions and mean pooling: mean tokens have $\|\phi\|^2\approx1/d_s$ and
    are nearly orthogonal, so the relu kernel is close to
    $\frac1{2d_s}I+\frac1{2\pi d_s}(\mathbf{11}^\top-I)$ and the other one to $\frac1{2d_s}I$. At
    $N=100$, $d_s=10$, $d=100$ it is $0.0163d_m+0.05$ for LeCun.

    >>> from attnbook import theory
    >>> [round(theory.encoder.top_eigenvalue(init, 100, 10, 100, 1000), 3)
    ...  for init in ("lecun", "he", "ntk")]
    [16.306, 32.613, 1.676]
    """
    samples, tokens = check.count("N", N), check.count("T", T)
    relu = (0.5 + (samples - 1) / (2.0 * math.pi)) / tokens
    return float(_both_blocks(relu, 0.5 / tokens, init, width, d))


def stability_limit(top: ArrayLike, N: int, loss: str = "mean") -> Array:
    r"""Largest step at which gradient descent is linearly stable (what "step size 1" means).

    $N/\lambda_{\max}(K)$ for the ``"mean"`` $\frac1N\sum(f-y)^2$, $2N/\lambda_{\max}$ for
    ``"half_mean"`` and $2/\lambda_{\max}$ for ``"half_sum"`` $\frac12\sum(f-y)^2$ (Section 5.1).

    >>> from attnbook import theory
    >>> top = theory.encoder.top_eigenvalue("lecun", 100, 10, 100, 1000)
    >>> [round(float(theory.encoder.stability_limit(top, 100, loss)), 3)
    ...  for loss in ("mean", "half_mean", "half_sum")]
    [6.133, 12.265, 0.123]
    """
    check.choice("loss", loss, LOSSES)
    size = above("top", top)
    samples = 1 if loss == "half_sum" else check.count("N", N)
    return np.asarray(LOSSES[loss] * samples / size)


def alpha_ratio(width: int, d: int, init: str = "lecun", other: str = "ntk") -> float:
    r"""$\alpha^2$ under ``init`` over $\alpha^2$ under ``other``, at the same attention.

    $\alpha^2$ is proportional to $\tau_1^2d_m\eta_V$: $d_m/d$ for LeCun over NTK, 2 for He over
    LeCun (Appendix C.5, corrected). The largest eigenvalue of the same block has the same ratio, so
    that at equal relative steps nothing is gained.

    >>> from attnbook import theory
    >>> theory.encoder.alpha_ratio(1000, 100), theory.encoder.alpha_ratio(1000, 100, "he")
    (10.0, 20.0)
    """
    one, two = (variances(name, width, d) for name in (init, other))
    size = one["tau1"] ** 2 * one["W_V"] / (two["tau1"] ** 2 * two["W_V"])
    return round(size, 12)
