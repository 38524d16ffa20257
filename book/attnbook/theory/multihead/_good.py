"""Proposition 2: constants with which the first phase ends in a good initialization."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.multihead._arguments import above, least, out, share
from attnbook.theory.multihead._chance import hoeffding
from attnlab.checks import Array


def B2(T: ArrayLike, S: ArrayLike, P: ArrayLike, *, zeta: ArrayLike | None = None) -> Array:
    r"""P1 after the first phase: $\|\theta_h^{(1)}\|\le B_2=\sqrt T(S+P)$.

    Args:
        T: tokens in a sample.
        S: length of the patterns.
        P: bound on the error of the first phase.
        zeta: share of relevant tokens, for the sharper $\sqrt T(\frac{\zeta}{2\sqrt2}S+P)$.

    Returns:
        $B_2$, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.B2(9, 2.0, 1.0))
        9.0

    Reference: multihead, Proposition 2 (P1).
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
    r"""P2 after the first phase, for $n$ samples at once with probability $1-\delta$.

    $$|\tilde\Phi(X_i)|\le B_\Phi=TR(S+P)\sqrt{2\log(2n/\delta)}.$$
    Both signs can fail; the paper prints $\log(n/\delta)$.

    Args:
        T: tokens in a sample.
        S: length of the patterns.
        P: bound on the error of the first phase.
        R: length of the longest token.
        delta: probability of failure.
        n: samples.
        printed: $\log(n/\delta)$ in place of $\log(2n/\delta)$.

    Returns:
        $B_\Phi$, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> [round(float(theory.multihead.B_Phi(1, 1.0, 0.0, R=1.0, delta=0.1, printed=p)), 4)
        ...  for p in (True, False)]
        [2.146, 2.4477]

    Reference: multihead, Proposition 2 (P2), Lemma 12.
    """
    odds = (1.0 if printed else 2.0) * least("n", n, 1.0) / share("delta", delta)
    size = above("T", T) * above("R", R) * (above("S", S) + least("P", P))
    return out(size * np.sqrt(2.0 * np.log(odds)))


def head_margin_bound(T: ArrayLike, S: ArrayLike, P: ArrayLike, *, R: ArrayLike) -> Array:
    r"""No head's tangent margin exceeds $2(2R^3T(S+P)+\sqrt TR)$.

    Args:
        T: tokens in a sample.
        S: length of the patterns.
        P: bound on the error of the first phase.
        R: length of the longest token.

    Returns:
        The bound, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.head_margin_bound(4, 1.0, 0.0, R=1.0))
        20.0

    Reference: multihead, Lemma 14, equation 118.
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
    r"""Heads with which P3 holds with $\gamma=\gamma_\star/2$, with probability $1-\delta$.

    $$\sqrt H\ge\frac{4(2R^3T(S+P)+\sqrt TR)}{\gamma_\star}\sqrt{2\log(n/\delta)}.$$
    For signs $\alpha_h=\pm1$ every head has the same margin: one head is enough, and for
    $\gamma_\star$ itself.

    Args:
        gamma_star: $\gamma_\star$, above 0.
        T: tokens in a sample.
        S: length of the patterns.
        P: bound on the error of the first phase.
        R: length of the longest token.
        delta: probability of failure.
        n: samples.

    Returns:
        The least $H$ (not rounded), a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> found = theory.multihead.H_min_p3(
        ...     0.594183, T=10, S=2.0, P=0.0, R=2.0, delta=0.01, n=100)
        >>> print(f"{found:.2g}")
        8.9e+07

    Reference: multihead, Proposition 2 (P3), Lemma 15.
    """
    spread = hoeffding(
        head_margin_bound(T, S, P, R=R), out(share("delta", delta) / least("n", n, 1.0)), H=1
    )
    return out((2.0 * spread / above("gamma_star", gamma_star)) ** 2)
