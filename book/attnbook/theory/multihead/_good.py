"""Proposition 2: constants with which the first phase ends in a good initialization."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least, out, share
from attnbook.theory.multihead._chance import hoeffding
from attnlab.checks import Array


def B2(T: ArrayLike, S: ArrayLike, P: ArrayLike, *, zeta: ArrayLike | None = None) -> Array:
    r"""P1 after the first phase: $\|\theta_h^{(1)}\|\le B_2=\sqrt T(S+P)$ (Proposition 2).

    With ``zeta`` the sharper $\sqrt T(\frac{\zeta}{2\sqrt2}S+P)$.

    >>> from attnbook import theory
    >>> float(theory.multihead.B2(9, 2.0, 1.0))
    9.0
    """
    coefficient = 1.0 if zeta is None else share("zeta", zeta) / math.sqrt(8.0)
    return out(np.sqrt(above("T", T)) * (coefficient * above("S", S) + least("P", P)))


def B_Phi(
    T: ArrayLike,
    S: ArrayLike,
    P: ArrayLike,
    *,
    R: ArrayLike,
    delta: ArrayLike,
    n: ArrayLike = 1,
    printed: bool = False,
) -> Array:
    r"""P2 after the first phase: $|\tilde\Phi(X_i)|\le B_\Phi$ (Proposition 2, Lemma 12).

    $B_\Phi=TR(S+P)\sqrt{2\log(2n/\delta)}$ for $n$ samples at once with probability $1-\delta$.
    Both signs can fail; the paper prints $\log(n/\delta)$.

    >>> from attnbook import theory
    >>> [round(float(theory.multihead.B_Phi(1, 1.0, 0.0, R=1.0, delta=0.1, printed=p)), 4)
    ...  for p in (True, False)]
    [2.146, 2.4477]
    """
    odds = (1.0 if printed else 2.0) * least("n", n, 1.0) / share("delta", delta)
    size = above("T", T) * above("R", R) * (above("S", S) + least("P", P))
    return out(size * np.sqrt(2.0 * np.log(odds)))


def head_margin_bound(T: ArrayLike, S: ArrayLike, P: ArrayLike, *, R: ArrayLike) -> Array:
    r"""No head's tangent margin exceeds $2(2R^3T(S+P)+\sqrt TR)$ (Lemma 14, equation 118).

    >>> from attnbook import theory
    >>> float(theory.multihead.head_margin_bound(4, 1.0, 0.0, R=1.0))
    20.0
    """
    tokens, longest = above("T", T), above("R", R)
    size = 2.0 * longest**3 * tokens * (above("S", S) + least("P", P))
    return out(2.0 * (size + np.sqrt(tokens) * longest))


def H_min_p3(
    gamma_star: ArrayLike,
    *,
    T: ArrayLike,
    S: ArrayLike,
    P: ArrayLike,
    R: ArrayLike,
    delta: ArrayLike,
    n: ArrayLike,
) -> Array:
    r"""Heads with which P3 holds with $\gamma=\gamma_\star/2$ (Proposition 2, Lemma 15).

    $$\sqrt H\ge\frac{4(2R^3T(S+P)+\sqrt TR)}{\gamma_\star}\sqrt{2\log(n/\delta)},$$
    not rounded, with probability $1-\delta$. For signs $\alpha_h=\pm1$ every head has the same
    margin: one head is enough, and for $\gamma_\star$ itself.

    >>> from attnbook import theory
    >>> found = theory.multihead.H_min_p3(
    ...     0.594183, T=10, S=2.0, P=0.0, R=2.0, delta=0.01, n=100)
    >>> print(f"{found:.2g}")
    8.9e+07
    """
    spread = hoeffding(
        head_margin_bound(T, S, P, R=R), out(share("delta", delta) / least("n", n, 1.0)), H=1
    )
    return out((2.0 * spread / above("gamma_star", gamma_star)) ** 2)
