"""Section 5: margins of the tokenized mixture DM1, and the scale at which attention saturates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least, out, share
from attnlab import checks as check
from attnlab.checks import Array


def token_bound(S: ArrayLike, Z: ArrayLike = 0.0, Z_nu: ArrayLike = 0.0, M: int = 1) -> Array:
    r"""The mixture's $R=\sqrt{S^2+Z^2+2Z_\nu/M}$; Assumption 1 wants at least 1 (Assumption 3).

    >>> from attnbook import theory
    >>> float(theory.multihead.token_bound(2.0, Z=1.0, Z_nu=4.0, M=2))
    3.0
    """
    noise = least("Z", Z) ** 2 + 2.0 * least("Z_nu", Z_nu) / check.count("M", M)
    return out(np.sqrt(above("S", S) ** 2 + noise))


def gamma_lin(
    T: ArrayLike = 10, zeta: ArrayLike = 0.1, S: ArrayLike = 2.0, Z_mu: ArrayLike = 0.0
) -> Array:
    r"""Margin of the linear oracle on the mixture (Appendix F, equation 132).

    $$\gamma_{\mathrm{lin}}=\frac{S\sqrt T}{\sqrt2}\Big(\zeta-\frac{2(1-\zeta)Z_\mu}{S^2}\Big),$$
    negative where the bound says nothing.

    >>> from attnbook import theory
    >>> round(float(theory.multihead.gamma_lin(T=10, zeta=0.1, S=2)), 4)
    0.4472
    """
    part, size, noise = share("zeta", zeta), above("S", S), least("Z_mu", Z_mu)
    inner = part - 2.0 * (1.0 - part) * noise / size**2
    return out(size * np.sqrt(above("T", T) / 2.0) * inner)


def gamma_star(
    T: ArrayLike = 10,
    zeta: ArrayLike = 0.1,
    S: ArrayLike = 2.0,
    M: ArrayLike = 2,
    Z: ArrayLike = 0.0,
    P: ArrayLike = 0.0,
    *,
    Z_mu: ArrayLike | None = None,
    Z_nu: ArrayLike | None = None,
    sharp: bool = False,
) -> Array:
    r"""Margin of the stated target in tangent features after the first phase (equation 7).

    $$\gamma_\star=\frac{T(1-\zeta)\zeta}{4\sqrt{2(M+1)}}\Big(\zeta S^4-7\bar ZS^2-12\bar Z^2
    -\frac{16\bar Z^3}{S^2}\Big)-PT^{5/2}(S+Z)^3+\gamma_{\mathrm{lin}},\qquad
    \bar Z=Z_\mu\vee Z_\nu$$
    (Proposition 2, Lemmas 13 and 15; ``Z_mu`` and ``Z_nu`` are ``Z`` unless told). Without noise it
    is the margin of `theta_star` exactly, for signs $\alpha_h=\pm1$ and the coefficient $\zeta/4$
    of the first phase (the paper's $\zeta/2$ comes with $\mathbb E|\alpha|=\frac12$: the two
    factors cancel). The target has norm $\sqrt2$, so the margin over the unit ball is
    $\gamma_\star/\sqrt2$. Negative where the bound says nothing; sharp has $PT(S+Z)^3$, which
    suffices for signs too.

    >>> from attnbook import theory
    >>> f = theory.multihead.gamma_star
    >>> round(float(f(T=10, zeta=0.1, S=2, M=2, Z=0, P=0)), 6)
    0.594183
    >>> round(float(f() / 2**0.5), 6)  # over the unit ball
    0.420151
    >>> f(S=[5.0, 10.0]).round(2).tolist()
    [6.86, 94.09]
    >>> round(float(f(Z_mu=0.8, Z_nu=1.6)), 1)  # Figure 2: four sigma
    -9.5
    """
    tokens, part, size = above("T", T), share("zeta", zeta), above("S", S)
    noise, error, patterns = least("Z", Z), least("P", P), least("M", M, 1.0)
    on_mu = noise if Z_mu is None else least("Z_mu", Z_mu)
    on_nu = noise if Z_nu is None else least("Z_nu", Z_nu)
    bar = np.maximum(on_mu, on_nu)
    inner = part * size**4 - 7.0 * bar * size**2 - 12.0 * bar**2 - 16.0 * bar**3 / size**2
    attended = tokens * (1.0 - part) * part * inner / (4.0 * np.sqrt(2.0 * (patterns + 1.0)))
    lost = error * tokens ** (1.0 if sharp else 2.5) * (size + noise) ** 3
    return out(attended - lost + gamma_lin(tokens, part, size, on_mu))


def gamma_attn(
    T: ArrayLike = 10, S: ArrayLike = 2.0, eps: ArrayLike = 0.0, Z_mu: ArrayLike = 0.0
) -> Array:
    r"""Margin of attention that leaves $\epsilon$ of its mass to irrelevant tokens (Proposition 3).

    $\gamma_{\mathrm{attn}}(\epsilon)=\frac{\sqrt T}{\sqrt2S}\big(S^2(1-\epsilon)-2\epsilon
    Z_\mu\big)$ (equation 11); $\gamma_{\mathrm{attn}}=S\sqrt{T/2}$.

    >>> from attnbook import theory
    >>> [round(float(theory.multihead.gamma_attn(T=10, S=2, eps=e)), 4) for e in (0, 0.01)]
    [4.4721, 4.4274]
    >>> theory.multihead.gamma_attn(S=[5.0, 10.0]).round(2).tolist()
    [11.18, 22.36]
    """
    small, size = least("eps", eps), above("S", S)
    inner = size**2 * (1.0 - small) - 2.0 * small * least("Z_mu", Z_mu)
    return out(np.sqrt(above("T", T) / 2.0) / size * inner)


def crossing(T: ArrayLike = 10, zeta: ArrayLike = 0.1, M: ArrayLike = 2) -> Array:
    r"""Signal beyond which $\gamma_\star>\gamma_{\mathrm{attn}}$ without noise (this book's).

    $S^3=4\sqrt{M+1}/(\sqrt T\zeta^2)$: the order $\gamma_{\mathrm{attn}}\ge\gamma_\star$ of
    Section 5.3 holds below it only.

    >>> from attnbook import theory
    >>> S = float(theory.multihead.crossing(T=10, zeta=0.1, M=2))
    >>> round(S, 3)
    6.028
    >>> round(float(theory.multihead.gamma_star(S=S) / theory.multihead.gamma_attn(S=S)), 9)
    1.0
    """
    root = np.sqrt(above("T", T)) * share("zeta", zeta) ** 2
    return out(np.cbrt(4.0 * np.sqrt(least("M", M, 1.0) + 1.0) / root))


def Gamma_eps(
    eps: ArrayLike,
    *,
    zeta: ArrayLike = 0.1,
    S: ArrayLike = 2.0,
    M: ArrayLike = 2,
    noise_free: bool = False,
) -> Array:
    r"""Scale of $W_{\mathrm{opt}}$ with which attention misses at most $\epsilon$ (Proposition 3).

    $$\Gamma_\epsilon=\frac{8\sqrt{2(M+1)}}{3S^2}\log\frac{\zeta^{-1}-1}\epsilon$$
    suffices for $Z_\mu=Z_\nu\le S^2/8$. Without noise (``noise_free``, this book's), exactly
    $\frac{\sqrt{2(M+1)}}{S^2}\log\frac{(\zeta^{-1}-1)(1-\epsilon)}\epsilon$ is needed.

    >>> from attnbook import theory
    >>> f = theory.multihead.Gamma_eps
    >>> round(float(f(0.01)), 3), round(float(f(0.01, noise_free=True)), 3)
    (11.108, 4.159)
    """
    small, part, size = share("eps", eps), share("zeta", zeta), above("S", S)
    unit = np.sqrt(2.0 * (least("M", M, 1.0) + 1.0)) / size**2
    odds = (1.0 / part - 1.0) / small
    needed = np.log(odds * (1.0 - small)) if noise_free else 8.0 / 3.0 * np.log(odds)
    return out(unit * np.maximum(needed, 0.0))
