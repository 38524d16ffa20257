"""Facts 1 and 2 and Lemma 18: concentration, and how softmax saturates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least, out, share
from attnlab import checks as check
from attnlab.checks import Array


def hoeffding(B: ArrayLike, delta: ArrayLike, *, H: ArrayLike, two_sided: bool = False) -> Array:
    r"""How far a mean of $H$ numbers in $[-B,B]$ strays from its expectation (Fact 2).

    $2B\sqrt{\log(1/\delta)/(2H)}$ to one side, $2B\sqrt{\log(2/\delta)/(2H)}$ to both, each with
    probability $1-\delta$. The paper prints the one-sided form for both sides.

    >>> from attnbook import theory
    >>> [round(float(theory.multihead.hoeffding(1, 0.1, H=50, two_sided=s)), 4) for s in (0, 1)]
    [0.3035, 0.3462]
    """
    odds = (2.0 if two_sided else 1.0) / share("delta", delta)
    return out(2.0 * least("B", B) * np.sqrt(np.log(odds) / (2.0 * least("H", H, 1.0))))


def subgaussian_norm(d: ArrayLike, sigma: ArrayLike, delta: ArrayLike) -> Array:
    r"""Length of a subgaussian vector: $\sigma(\sqrt d+\sqrt{2\log(1/\delta)})$ (Fact 1).

    With probability $1-\delta$, for $\mathbb E\,e^{\langle v,x\rangle}\le e^{\sigma^2\|v\|^2/2}$:
    the paper's $CK(\sqrt d+\sqrt{\log(1/\delta)})$ with the constant of Hsu, Kakade and Zhang
    (2012, Theorem 1).

    >>> from attnbook import theory
    >>> round(float(theory.multihead.subgaussian_norm(4, 1.0, 0.01)), 4)
    5.0349
    """
    root = np.sqrt(-2.0 * np.log(share("delta", delta)))
    return out(least("sigma", sigma) * (np.sqrt(least("d", d, 1.0)) + root))


def saturation(A: ArrayLike, eps: ArrayLike, *, T: int, L: int) -> Array:
    r"""Scale at which softmax misses at most $\epsilon$: $\Gamma=\frac2A\log\frac{T/L-1}\epsilon$.

    Lemma 18: the ``L`` largest of ``T`` logits are at least $A>0$, the others at most $B<A/2$.

    >>> from attnbook import theory
    >>> round(float(theory.multihead.saturation(2.0, 0.01, T=10, L=1)), 4)
    6.8024
    """
    total, large = check.count("T", T, least=2), check.count("L", L)
    if large >= total:
        raise check.fail("L", f"fewer than T = {total}", large)
    odds = (total / large - 1.0) / above("eps", eps)
    return out(2.0 / above("A", A) * np.maximum(np.log(odds), 0.0))
