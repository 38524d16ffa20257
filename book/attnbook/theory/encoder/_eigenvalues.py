r"""Smallest eigenvalues: $\lambda_0$, $\lambda_*$, and what Lemmas 15 to 19 say about them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import least
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Encoder, Params
from attnlab.problems import SequenceProblem


def relu_hermite(order: int) -> float:
    r"""Hermite coefficients of relu, $\mu_k=\mathbb E[\sigma_r(g)h_k(g)]$ with normalised $h_k$.

    $\mu_0=1/\sqrt{2\pi}$, $\mu_1=\frac12$ (the $\mu(\sigma_r)$ of Lemma 15), odd ones beyond
    vanish, and $\mu_{2k}=(-1)^{k+1}(2k-3)!!/\sqrt{2\pi(2k)!}$.

    >>> from attnbook import theory
    >>> [round(theory.encoder.relu_hermite(k), 6) for k in range(5)]
    [0.398942, 0.5, 0.282095, 0.0, -0.081434]
    """
    k = check.count("order", order, 0)
    if k == 1:
        return 0.5
    if k % 2:
        return 0.0
    sign = 1.0 if k % 4 == 2 or k == 0 else -1.0
    odd = math.lgamma(k - 1) - math.lgamma(k / 2) - (k / 2 - 1) * math.log(2.0) if k > 2 else 0.0
    return sign * math.exp(odd - 0.5 * math.log(2.0 * math.pi) - 0.5 * math.lgamma(k + 1))


def first_token_features(model: Encoder, params: Params, problem: SequenceProblem) -> Array:
    r"""$\Phi$, rows $\beta_{1,n}^\top X_n$: what the first token attends to (Lemma 15).

    >>> from attnlab import models, problems
    >>> from attnbook import theory
    >>> p = problems.SequenceProblem(X=[[[1.0, 0.0], [0.0, 1.0]]], y=[1.0])
    >>> flat = {"W_Q": [[0.0, 0.0]], "W_K": [[0.0, 0.0]], "W_V": [[1.0, 1.0]], "w_O": [1.0]}
    >>> theory.encoder.first_token_features(models.Encoder(width=1), flat, p).tolist()
    [[0.5, 0.5]]
    """
    first = model.attention(params, problem)[..., :, :1, :]
    return np.asarray((first @ problem.X)[..., 0, :])


def mean_tokens(problem: SequenceProblem) -> Array:
    r"""$\Phi^*$, rows $\frac1{d_s}\mathbf1^\top X_n$: the limit of $\Phi$ (Lemma 1).

    >>> from attnlab import problems
    >>> from attnbook import theory
    >>> p = problems.SequenceProblem(X=[[[1.0, 0.0], [0.0, 1.0]]], y=[1.0])
    >>> theory.encoder.mean_tokens(p).tolist()
    [[0.5, 0.5]]
    """
    return np.asarray(problem.X.mean(axis=-2))


def smallest_eigenvalue(kernel: ArrayLike) -> Array:
    r"""$\lambda_{\min}$: $\lambda_0$ of a relu kernel, $\lambda_*$ of a Gram matrix.

    (Lemmas 15 to 19.) With the relu kernel
    $\mathbb E[\sigma_r(\Phi w)\sigma_r(\Phi w)^\top]$ for standard normal $w$, $\lambda_0$ is
    $\eta_V$ times this. A kernel that is not symmetric is refused.

    >>> from attnbook import theory
    >>> float(theory.encoder.smallest_eigenvalue([[2.0, 1.0], [1.0, 2.0]]).round(12))
    1.0
    """
    K = check.frozen("kernel", kernel, ndim=2)
    size = np.abs(K).max()
    if K.shape[-1] != K.shape[-2] or not np.allclose(K, K.mT, rtol=0.0, atol=1e-9 * size):
        raise check.fail("kernel", "a symmetric matrix", f"shape {K.shape}, not symmetric")
    return np.asarray(np.linalg.eigvalsh(K)[..., 0])


def lambda_0_lower(features: ArrayLike, eta: float = 1.0) -> Array:
    r"""Bound (38) from below: $\lambda_0\ge\eta_V\mu_1^2\lambda_{\min}(\Phi\Phi^\top)$.

    The linear Hermite term of relu; it is 0 as soon as $N>d$, while $\lambda_0$ need not be.

    >>> from attnbook import theory
    >>> float(theory.encoder.lambda_0_lower([[1.0, 0.0], [0.0, 2.0]]))
    0.25
    """
    phi = check.frozen("features", features, ndim=2)
    scale = check.number("eta", eta, above=0.0) * relu_hermite(1) ** 2
    return np.asarray(scale * np.maximum(smallest_eigenvalue(phi @ phi.mT), 0.0))


def lambda_0_upper(features: ArrayLike, eta: float = 1.0, *, printed: bool = False) -> Array:
    r"""Bound (42) from above: $\lambda_0\le\frac1N\mathrm{tr}=\frac{\eta_V}{2N}\sum_n\|\Phi_n\|^2$.

    At most $\frac12\eta_Vd_sC_x^2$, whatever $N$ is: $\lambda_0$ cannot grow with $N$. The printed
    (43) has lost $\eta_V$.

    >>> from attnbook import theory
    >>> [float(theory.encoder.lambda_0_upper([[1.0, 0.0], [0.0, 2.0]], 0.5, printed=p))
    ...  for p in (False, True)]
    [0.625, 1.25]
    """
    phi = check.frozen("features", features, ndim=2)
    scale = 1.0 if printed else check.number("eta", eta, above=0.0)
    return np.asarray(0.5 * scale * (phi**2).sum(axis=-1).mean(axis=-1))


def gershgorin(features: ArrayLike) -> Array:
    r"""Gershgorin's bound (39) on $\lambda_{\min}(\Phi\Phi^\top)$ from below; it may be negative.

    $\min_k\big(\|\phi_k\|^2-\sum_{j\ne k}|\phi_k^\top\phi_j|\big)$.

    >>> from attnbook import theory
    >>> float(theory.encoder.gershgorin([[1.0, 0.0], [0.6, 0.8]]).round(12))
    0.4
    """
    phi = check.frozen("features", features, ndim=2)
    gram = phi @ phi.mT
    own = np.diagonal(gram, axis1=-2, axis2=-1)
    return np.asarray((2.0 * own - np.abs(gram).sum(axis=-1)).min(axis=-1))


def lemma_15_bound(C_lambda: ArrayLike, T: int, eta: float = 1.0) -> Array:
    r"""$\lambda_0\ge\frac18\eta_VC_\lambda/d_s$ for separated samples (Lemma 15, equation 41).

    $C_\lambda=\min_n\lambda_{\min}(X_nX_n^\top)$. It asks that
    $\|X_kX_j^\top\|_F\le\|\beta_{1,k}\|C_\lambda/(2(N-1))$ for all $j\ne k$ (half of what the paper
    asks, which leaves a margin of 0). Such samples have $N\le d$.

    >>> from attnbook import theory
    >>> float(theory.encoder.lemma_15_bound(1.0, 4))
    0.03125
    """
    smallest = least("C_lambda", C_lambda)
    half = 0.5 * check.number("eta", eta, above=0.0) * relu_hermite(1) ** 2
    return np.asarray(half * smallest / check.count("T", T))


def lemma_16_gap(
    N: int, T: int, d: int, Cx: ArrayLike, entry: ArrayLike, *, printed: bool = False
) -> Array:
    r"""$\|\Phi\Phi^\top-\Phi^*\Phi^{*\top}\|_F\le4NC_x^4d_s^2d\,m$ (equations 65 to 68).

    ``entry`` is $m$, which bounds the entries of $\tau_0W_Q^\top W_K$, such as `logit_entry_bound`.
    In print $d_s$ stands for $d_s^2$.

    >>> from attnbook import theory
    >>> [float(theory.encoder.lemma_16_gap(2, 3, 4, 1.0, 0.5, printed=p)) for p in (0, 1)]
    [144.0, 48.0]
    """
    size, largest = check.frozen("Cx", Cx), check.frozen("entry", entry)
    tokens = check.count("T", T) ** (1 if printed else 2)
    return np.asarray(4.0 * check.count("N", N) * size**4 * tokens * check.count("d", d) * largest)


def lemma_16_width(
    N: int,
    T: int,
    d: int,
    Cx: float,
    eta: float,
    star: float,
    delta: float,
    *,
    printed: bool = False,
) -> float:
    r"""Width from which Lemma 16's proof gives the gap $\lambda_*/4$, for $\tau_0=d_m^{-1}$.

    $d_m\ge(32N\eta_{QK}C_x^4d_s^2d/\lambda_*)^2\log(2d^2N^2/\delta)$; ``star`` is $\lambda_*$. In
    print the logarithm has a root (and the entries $d_s$).

    >>> from attnbook import theory
    >>> [round(theory.encoder.lemma_16_width(1, 2, 1, 0.5, 1.0, 0.25, 0.1, printed=p), 2)
    ...  for p in (0, 1)]
    [3067.63, 443.09]
    """
    gap = lemma_16_gap(N, T, d, Cx, check.number("eta", eta, above=0.0), printed=printed)
    chance = check.number("delta", delta, above=0.0, below=1.0)
    log = math.log(2.0 * (N * d) ** 2 / chance)
    ratio = 8.0 * float(gap) / check.number("star", star, above=0.0)
    return ratio**2 * (math.sqrt(log) if printed else log)


def lemma_17_printed(N: int, d: int) -> float:
    r"""What Lemmas 17 to 19 would have for $\lambda_{\min}$: $N/d-9N^{2/3}d^{1/3}$.

    Positive from $N>729d^4$ on. It belongs to the $d\times d$ matrix $\Phi^{*\top}\Phi^*$ (with
    $\Sigma=I$); the $N\times N$ matrix $\Phi^*\Phi^{*\top}$ has rank at most $d<N$ and smallest
    eigenvalue 0.

    >>> from attnbook import theory
    >>> round(theory.encoder.lemma_17_printed(1000, 1), 6)
    100.0
    """
    samples, features = check.count("N", N), check.count("d", d)
    return float(samples / features - 9.0 * np.cbrt(samples**2 * features))
