r"""Sub-exponential variables, the law of an entry of the logits' matrix, and probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import least
from attnlab import checks as check
from attnlab.checks import Array


def product_log_mgf(exponent: ArrayLike, terms: int = 1, scale: float = 1.0) -> Array:
    r"""$\log\mathbb E\,e^{\lambda S}$ of a sum $S$ of products of independent $\mathcal N(0,\eta)$.

    $-\frac m2\log(1-\lambda^2\eta^2)$ for $m$ ``terms``, $\eta$ the ``scale``, and
    $|\lambda|\eta<1$, infinite beyond (Appendix B.2). It is at most $m\eta^2\lambda^2$ while
    $\lambda^2\eta^2\le\frac12$, so that one product is $SE(\sqrt2\eta,\sqrt2\eta)$.

    >>> from attnbook import theory
    >>> theory.encoder.product_log_mgf([0.0, 0.5, 1.0]).round(6).tolist()
    [0.0, 0.143841, inf]
    """
    eta = check.number("scale", scale, above=0.0)
    square = (check.frozen("exponent", exponent) * eta) ** 2
    inside = np.where(square < 1.0, square, 0.0)
    value = -0.5 * check.count("terms", terms) * np.log1p(-inside)
    return np.where(square < 1.0, value, np.inf)


def sub_exponential_log_mgf(exponent: ArrayLike, nu: ArrayLike) -> Array:
    r"""$\log\mathbb E\,e^{\lambda(X-\mu)}\le\nu^2\lambda^2/2$ for $|\lambda|<1/\alpha$.

    The bound that makes $X$ sub-exponential, $X\sim SE(\nu,\alpha)$ (Appendix B.2).

    >>> from attnbook import theory
    >>> float(theory.encoder.sub_exponential_log_mgf(0.5, 2.0))
    0.5
    """
    lam, size = check.frozen("exponent", exponent), check.frozen("nu", nu)
    return np.asarray(0.5 * (size * lam) ** 2)


def scaled_sub_exponential(s: float, nu: float, alpha: float) -> tuple[float, float]:
    r"""Parameters of $sX$ for $X\sim SE(\nu,\alpha)$: $(s\nu,s\alpha)$ (Lemma 2).

    >>> from attnbook import theory
    >>> theory.encoder.scaled_sub_exponential(2.0, 1.0, 3.0)
    (2.0, 6.0)
    """
    factor = check.number("s", s, above=0.0)
    nu, alpha = (
        check.number(name, value, least=0.0) for name, value in (("nu", nu), ("alpha", alpha))
    )
    return factor * nu, factor * alpha


def summed_sub_exponential(nu: ArrayLike, alpha: ArrayLike) -> tuple[float, float]:
    r"""Of a sum of independent $SE(\nu_i,\alpha_i)$: $(\sqrt{\sum\nu_i^2},\max\alpha_i)$ (Lemma 3).

    >>> from attnbook import theory
    >>> theory.encoder.summed_sub_exponential([3.0, 4.0], [1.0, 2.0])
    (5.0, 2.0)
    """
    sizes, rates = check.frozen("nu", nu, ndim=1), check.frozen("alpha", alpha, ndim=1)
    check.shape("alpha", rates, sizes.shape, "one for each nu")
    return float(np.sqrt((sizes**2).sum())), float(rates.max())


def sub_exponential_tail(nu: float, alpha: float, delta: float) -> float:
    r"""What $|X-\mu|$ exceeds with probability at most $\delta$ (Lemma 4).

    $\max\big(\nu\sqrt{2\log\frac2\delta},\,2\alpha\log\frac2\delta\big)$ for
    $X\sim SE(\nu,\alpha)$.

    >>> from attnbook import theory
    >>> round(theory.encoder.sub_exponential_tail(2.0**0.5, 2.0**0.5, 0.1), 4)
    8.4732
    """
    log = _log_odds(delta)
    size = check.number("nu", nu, least=0.0) * np.sqrt(2.0 * log)
    return float(max(size, 2.0 * check.number("alpha", alpha, least=0.0) * log))


def _log_odds(delta: float) -> float:
    return float(np.log(2.0 / check.number("delta", delta, above=0.0, below=1.0)))


def logit_entry_bound(tau0: float, eta: float, width: int, delta: float) -> float:
    r"""Bound (67) on an entry of $\tau_0W_Q^\top W_K$: $2\tau_0\eta_{QK}\sqrt{d_m\log(2/\delta)}$.

    With probability at least $1-\delta$, for $d_m\ge2\log(2/\delta)$.

    >>> from attnbook import theory
    >>> round(theory.encoder.logit_entry_bound(1 / 400, 1.0, 400, 0.1), 6)
    0.173082
    """
    log = _log_odds(delta)
    if check.count("width", width) < 2.0 * log:
        raise check.fail("width", f"at least 2 log(2/delta) = {2.0 * log:g}", width)
    scale = check.number("tau0", tau0, above=0.0) * check.number("eta", eta, above=0.0)
    return float(2.0 * scale * np.sqrt(width * log))


def product_log_tail(width: int, threshold: ArrayLike) -> Array:
    r"""$\log\mathbb P(S>t)$ for a sum $S$ of ``width`` products of standard normals (67), exactly.

    Given the first factors, $S\sim\mathcal N(0,r^2)$ with $r^2\sim\chi^2_m$; the integral over $r$
    is done on a grid in logarithms, so that probabilities far below 1e-300 are fine.

    >>> import numpy as np
    >>> from attnbook import theory
    >>> found = theory.encoder.product_log_tail(2, [0.0, 1.0, 3.0])  # Laplace: e^{-t}/2
    >>> np.exp(found).round(6).tolist()
    [0.5, 0.18394, 0.024894]
    """
    from scipy.special import gammaln, log_ndtr, logsumexp

    m, t = check.count("width", width), least("threshold", threshold)
    low = -max(12.0, 80.0 / m)  # few terms: the density of r falls slowly towards 0
    u = np.linspace(low, 12.0, int((12.0 - low) / 0.004))  # r^2 = (m + t) exp(u)
    base = (m + t)[..., None]
    log_square = np.log(base) + u
    density = (
        0.5 * m * log_square - 0.5 * np.exp(log_square) - 0.5 * m * np.log(2.0) - gammaln(m / 2)
    )
    inner = log_ndtr(-t[..., None] * np.exp(-0.5 * log_square))
    return np.asarray(logsumexp(density + inner, axis=-1) + np.log(u[1] - u[0]))


def dissimilarity(t: ArrayLike, exponent: float) -> Array:
    r"""$\mathbb P(\langle X_n^\top X_n,X_{n'}^\top X_{n'}\rangle\ge t)\le\exp(-t^{\hat c})$.

    The tail of Assumption 3; ``exponent`` is $\hat c$.

    >>> from attnbook import theory
    >>> theory.encoder.dissimilarity([0.0, 0.25, 1.0], 0.5).round(4).tolist()
    [1.0, 0.6065, 0.3679]
    """
    return np.asarray(np.exp(-(least("t", t) ** check.number("exponent", exponent, above=0.0))))


def similarity(X: ArrayLike) -> Array:
    r"""Assumption 3's statistic $\langle X_n^\top X_n,X_{n'}^\top X_{n'}\rangle$ of all pairs.

    It is $\|X_nX_{n'}^\top\|_F^2$, never negative and of degree four in the data.

    >>> from attnbook import theory
    >>> theory.encoder.similarity([[[1.0, 0.0]], [[1.0, 1.0]]]).tolist()
    [[1.0, 1.0], [1.0, 4.0]]
    """
    tokens = check.frozen("X", X, ndim=3)
    second = (tokens.mT @ tokens).reshape(*tokens.shape[:-2], -1)
    return np.asarray(second @ second.mT)


def theorem_1_failure(
    width: int, N: int, T: int, exponent: float, *, constant: float = 1.0
) -> tuple[float, float]:
    r"""The two explicit parts of the failure probability of Theorems 1 and 2.

    $8e^{-d_m/2}$, and $\exp(-c(N-1)^{-\hat c}d_s^{-1})$ (``constant`` is the $c$ that $\Omega$
    hides, ``exponent`` the $\hat c$ of Assumption 3), which is close to 1 for every $\hat c$: it
    does not become small, as the remark after Theorem 1 has it.

    >>> from attnbook import theory
    >>> [round(theory.encoder.theorem_1_failure(1000, 100, 10, c)[1], 3)
    ...  for c in (1.0, 0.5, 0.1, 0.01)]
    [0.999, 0.99, 0.939, 0.909]
    """
    samples = check.count("N", N, 2)
    power = float(samples - 1) ** -check.number("exponent", exponent, above=0.0)
    held = check.number("constant", constant, above=0.0) * power / check.count("T", T)
    return 8.0 * float(np.exp(-0.5 * check.count("width", width))), float(np.exp(-held))
