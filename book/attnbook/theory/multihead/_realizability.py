"""From a good initialization to realizability, and the corollaries that follow from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least, many, out, sizes
from attnlab import checks as check
from attnlab.checks import Array


def g0(eps: ArrayLike, *, B_Phi: ArrayLike, gamma: ArrayLike, printed: bool = False) -> Array:
    r"""How far from a good start a loss of $\epsilon\le1$ is found (Proposition 7).

    The target is $\theta_0+c\,\theta_\star$ with $c=(2B_\Phi+\log(1/\epsilon))/\gamma$; since
    $\|\theta_\star\|=\sqrt2$ its distance is $\sqrt2c$, where the paper prints $c$. ``gamma`` is
    the margin of the tangent features (P3) over that $\theta_\star$; Corollaries 2 and 5 have
    $\epsilon=1/K$.

    >>> from attnbook import theory
    >>> [round(float(theory.multihead.g0(0.01, B_Phi=1, gamma=0.5, printed=p)), 4)
    ...  for p in (True, False)]
    [13.2103, 18.6822]
    """
    small = above("eps", eps)
    if not (small <= 1.0).all():
        raise check.fail("eps", "numbers of at most 1", eps)
    c = (2.0 * least("B_Phi", B_Phi, 1.0) - np.log(small)) / above("gamma", gamma)
    return out(c if printed else np.sqrt(2.0) * c)


def H_min_realizable(
    eps: ArrayLike,
    *,
    B2: ArrayLike,
    B_Phi: ArrayLike,
    gamma: ArrayLike,
    T: ArrayLike,
    d: ArrayLike,
    R: float,
    printed: bool = False,
) -> Array:
    r"""Heads with which a good start makes the data realizable (Proposition 7, equation 98).

    $$\sqrt H\ge b\sqrt{Td}R^3\frac{B_2}{B_\Phi}(3\sqrt dR^2+1)\,c^2(1\vee c),\qquad
    c=\frac{2B_\Phi+\log(1/\epsilon)}\gamma,$$
    not rounded, with $b=5$ in print. The target is at distance $\sqrt2c$, which doubles the
    curvature term: $b=10$ by the paper's own estimate of $\beta_3$. $B_2$, $B_\Phi$ and $R$ are at
    least 1.

    >>> from attnbook import theory
    >>> sizes = dict(B2=1, B_Phi=1, gamma=1, T=1, d=1, R=1.0)
    >>> [float(theory.multihead.H_min_realizable(1.0, **sizes, printed=p)) for p in (1, 0)]
    [25600.0, 102400.0]
    """
    c = g0(eps, B_Phi=B_Phi, gamma=gamma, printed=True)
    tokens, width, longest = sizes(T, d, R)
    ratio = least("B2", B2, 1.0) / least("B_Phi", B_Phi, 1.0)
    root = np.sqrt(tokens * width) * longest**3 * ratio
    root = root * (3.0 * np.sqrt(width) * longest**2 + 1.0) * c**2 * np.maximum(1.0, c)
    return out(((5.0 if printed else 10.0) * root) ** 2)


def H_min_good(g0: ArrayLike, *, B2: ArrayLike, T: ArrayLike, d: ArrayLike, R: float) -> Array:
    r"""Heads that Corollaries 2 and 5 ask for, not rounded.

    $$\sqrt H\ge256\sqrt{Td}R^3B_2\big(3\sqrt dR^2(4g_0(\tfrac1K)+B_2)+1\big)g_0(\tfrac1K)^2.$$

    >>> from attnbook import theory
    >>> theory.multihead.H_min_good(1.0, B2=1, T=1, d=1, R=1.0) == (256 * 16) ** 2
    np.True_
    """
    far, head = least("g0", g0), least("B2", B2, 1.0)
    tokens, width, longest = sizes(T, d, R)
    inner = 3.0 * np.sqrt(width) * longest**2 * (4.0 * far + head) + 1.0
    return out((256.0 * np.sqrt(tokens * width) * longest**3 * head * inner * far**2) ** 2)


def realizable_step(g0_at_1: ArrayLike, start_loss: ArrayLike, rho: ArrayLike) -> Array:
    r"""$\eta=1\wedge\frac1\rho\wedge g_0(1)^2\wedge\frac{g_0(1)^2}{\hat L(\theta_0)}$.

    The largest step for realizable data (Corollaries 3, 4 and 5), with $\rho=\rho(K)$;
    ``start_loss`` is at most $\log(1+e^{B_\Phi})$ at a good start.

    >>> from attnbook import theory
    >>> float(theory.multihead.realizable_step(0.5, 0.5, 2.0))
    0.25
    """
    square = above("g0_at_1", g0_at_1) ** 2
    limit = np.minimum(1.0, 1.0 / above("rho", rho))
    return out(np.minimum(limit, np.minimum(square, square / above("start_loss", start_loss))))


def realizable_gap_bound(g0: ArrayLike, *, eta: ArrayLike, n: ArrayLike) -> Array:
    r"""Expected gap of realizable data: at most $17g_0(1/K)^2/(\eta n)$ (Corollaries 2, 4 and 5).

    The 17 is $4(2+\frac94)$. With $g_0=\sqrt2(2B_\Phi+\log K)/\gamma$ this is Corollary 5 with
    34, where 17 is printed.

    >>> from attnbook import theory
    >>> far = [theory.multihead.g0(1, B_Phi=1, gamma=2, printed=p) for p in (True, False)]
    >>> [round(float(theory.multihead.realizable_gap_bound(c, eta=1.0, n=1))) for c in far]
    [17, 34]
    """
    return out(17.0 * least("g0", g0) ** 2 / (above("eta", eta) * above("n", n)))


def head_exponents(p: float, *, printed: bool = False) -> tuple[float, float]:
    r"""Powers of $H$ in the two conditions on $W_h=CH^{-p}W_{\mathrm{opt}}$ (Section 5.3).

    $H^a\gtrsim C$ and $H^b\lesssim C/\log^{5/2}n$ with $a=p-2$ and $b=p-\frac34$ (printed:
    $p-\frac14$). Since $a<b$ the first contradicts the second, whatever $p$ and $C$.

    >>> from attnbook import theory
    >>> theory.multihead.head_exponents(1.0), theory.multihead.head_exponents(1.0, printed=True)
    ((-1.0, 0.25), (-1.0, 0.75))
    """
    power = check.number("p", p)
    return power - 2.0, power - (0.25 if printed else 0.75)


def saturating_target(
    H: ArrayLike, S: ArrayLike, *, n: int, W_norm: ArrayLike
) -> tuple[Array, Array]:
    r"""Length of a target that saturates attention in every head (Section 5.3, equation 12).

    $\|\tilde U\|=\log(n)/\gamma_{\mathrm{attn}}\approx\log(n)/S$ and
    $\|\tilde W\|=\sqrt H\,\|W_h\|$, where saturation needs $\|W_h\|\ge1/S^2$. With
    $\|\tilde\theta\|$ comes back what equation 12 asks $\sqrt H$ to exceed,
    $S^5\|\tilde\theta\|^3$.

    >>> from attnbook import theory
    >>> length, needed = theory.multihead.saturating_target(100, 10.0, n=1000, W_norm=0.01)
    >>> round(float(length), 4), round(float(needed))
    (0.698, 34003)
    """
    heads, signal = many("H", H), above("S", S)
    logarithm = np.log(check.count("n", n, least=3))
    length = np.hypot(logarithm / signal, np.sqrt(heads) * least("W_norm", W_norm))
    return out(length), out(signal**5 * length**3)
