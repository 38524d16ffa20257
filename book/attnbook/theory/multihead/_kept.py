"""Theorems 3 and 4 with heads that stay short: how many heads are needed at which distance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least, out
from attnbook.theory.multihead._bounds import beta1, beta3
from attnbook.theory.multihead._training import generalization_bound
from attnlab import checks as check
from attnlab.checks import Array

# of beta_3(M) delta^2: Proposition 4 wants twice the squared length of a segment, which is at most
# 3 delta from an iterate to the target, and 8 delta from one run to another
SHARES = {"training": 18.0, "generalization": 128.0}


def kept_length(norm: ArrayLike, start: ArrayLike, *, R: ArrayLike) -> Array:
    r"""$M=\|\theta\|_{2,\infty}\vee\big(\|\theta_0\|_{2,\infty}+\frac1{10R^2}\big)$, for all heads.

    No head gets longer. A step moves a head by at most
    $\frac{\eta}{\sqrt H}\sqrt TR(2R^2\|\theta_h\|+1)\hat L$, and the losses of a run under the
    theorems' premises sum to $\frac{17}4\delta^2/\eta$. With the heads that `H_min_kept` asks for,
    $R^2\|\theta_h\|$ grows at most by $\frac12(e^{85/468}-1)<\frac1{10}$ from a start at zero, and
    by less from a longer start.

    >>> from attnbook import theory
    >>> float(theory.multihead.kept_length(0.05, 0.0, R=1.0))
    0.1
    >>> 0.5 * math.expm1(17 / 72 / 1.3)  # 85/468: 1.3 is 3 R^2 M + 1
    0.09958...
    """
    grown = least("start", start) + 0.1 / least("R", R, 1.0) ** 2
    return out(np.maximum(least("norm", norm), grown))


def H_min_kept(
    distance: ArrayLike,
    kept: ArrayLike,
    *,
    T: ArrayLike,
    d: ArrayLike,
    R: ArrayLike,
    purpose: str = "training",
) -> Array:
    r"""Heads that are enough where none gets longer than $M$, ``kept``: $\delta^4$ for $\delta^6$.

    $$\sqrt H\ge18\,\beta_3(M)\,\delta^2,$$
    and 128 for ``"generalization"``. This book's; Theorems 3 and 4 have
    $D=3\delta+\|\theta\|_{2,\infty}$ in the place of $M$.

    >>> from attnbook import theory
    >>> b, sizes = theory.multihead, dict(T=2, d=1, R=1.0)
    >>> for distance in (1.0, 10.0):
    ...     ours = b.H_min_kept(distance, 0.1, **sizes)
    ...     print(f"{ours:.1e} for {b.H_min(distance, 0.0, **sizes):.1e}")
    4.4e+03 for 2.6e+05
    4.4e+07 for 2.1e+11
    """
    share = SHARES[check.choice("purpose", purpose, SHARES)]
    return out((share * beta3(kept, T=T, d=d, R=R) * least("distance", distance) ** 2) ** 2)


def gap_bound_kept(
    target_loss: ArrayLike,
    distance: ArrayLike,
    kept: ArrayLike,
    *,
    eta: ArrayLike,
    K: ArrayLike,
    n: ArrayLike,
    T: ArrayLike,
    R: ArrayLike,
) -> Array:
    r"""Expected gap where no head gets longer than $M$, ``kept``; this book's.

    $$\frac{2e^{1/10}}n\,\eta\,\beta_1(M)^2\Big(2K\hat L(\theta)+\frac{9\delta^2}{4\eta}\Big).$$
    Theorem 4 has 4 for $2e^{1/10}$, and 1 for $\eta\beta_1^2$, which is far below it.

    >>> from attnbook import theory
    >>> one = dict(eta=0.1, K=10, n=100)
    >>> print(f"{theory.multihead.gap_bound_kept(0.1, 1.0, 0.5, **one, T=1, R=1.0):.3f}")
    0.217
    """
    printed = generalization_bound(target_loss, distance, eta=eta, K=K, n=n)
    lipschitz = beta1(kept, T=T, R=R)
    return out(0.5 * math.exp(0.1) * above("eta", eta) * lipschitz**2 * printed)


def too_few_heads(distance: ArrayLike) -> Array:
    r"""Fewer heads are too few for Theorem 3's conclusion at this distance (Proposition 8).

    Label: which of the two words $\pm1$ comes first. Their mean is 0, so that descent from zero
    never moves. Equal heads $(\pm v/\sqrt{2H},w)$ have the margin $\sqrt2\,v\tanh w$ at distance
    $\sqrt{v^2+Hw^2}$, and a loss below $\frac4{13}\log2$ contradicts the theorem with
    $\eta K=\delta^2/\hat L(\theta)$. Small $w$ and $v^2=\delta^2/2$ give
    $(1-o(1))\,\delta^4/(2m^2)$, with the margin $m=-\log(2^{4/13}-1)$ of that loss.

    >>> from attnbook import theory
    >>> theory.multihead.too_few_heads([10.0, 100.0]).round(-2).tolist()
    [2400.0, 24222400.0]
    """
    margin = -math.log(math.expm1(4.0 / 13.0 * math.log(2.0)))
    far = least("distance", distance, 1.5 * margin)[..., None]
    v = far * np.cos(np.linspace(0.0, np.pi / 2.0, 4001)[1:-1])
    tanh = margin / (2.0**0.5 * v)
    w = np.arctanh(np.minimum(tanh, 1.0 - 1e-15))
    return out(((far**2 - v**2) / w**2).max(axis=-1))
