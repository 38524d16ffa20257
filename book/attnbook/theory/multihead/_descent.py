"""The lemmas behind Theorem 1: quasi-convexity on segments, regret, how far iterates go."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.multihead._arguments import above, least, many, out
from attnlab import checks as check
from attnlab.checks import Array


def quasi_convexity(*, sharp: bool = False) -> float:
    r"""How much higher a short segment is than its ends: $4/3$, sharper $16/15$.

    Expand at the inner maximum towards the nearer end: with
    $2\beta_3\|\theta_1-\theta_2\|^2\le\sqrt H$ the loss there is at least
    $1-\frac12\cdot\frac14\cdot\frac12=\frac{15}{16}$ of the maximum.

    Args:
        sharp: 16/15 in place of the printed 4/3.

    Returns:
        The factor.

    Examples:
        >>> from attnbook import theory
        >>> [round(theory.multihead.quasi_convexity(sharp=s), 6) for s in (False, True)]
        [1.333333, 1.066667]

    Reference: multihead, Propositions 4 and 6; the sharp constant is this book's.
    """
    return 16.0 / 15.0 if sharp else 4.0 / 3.0


def short_enough(length: ArrayLike, beta3: ArrayLike, *, H: ArrayLike) -> Array:
    r"""How much of the admissible length a segment uses: $2\beta_3\|\theta_1-\theta_2\|^2/\sqrt H$.

    Args:
        length: $\|\theta_1-\theta_2\|$.
        beta3: the larger of $\beta_3(\theta_1)$ and $\beta_3(\theta_2)$.
        H: heads.

    Returns:
        The share, a number or an array; Proposition 4 asks for at most 1.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.short_enough(0.5, 8.0, H=16))
        1.0

    Reference: multihead, equation 18.
    """
    size = 2.0 * least("beta3", beta3) * least("length", length) ** 2
    return out(size / np.sqrt(many("H", H)))


def expansiveness(
    loss: ArrayLike, beta2: ArrayLike, beta3: ArrayLike, *, eta: ArrayLike, H: ArrayLike
) -> Array:
    r"""How much a step spreads two points: $(1+\frac{\eta\beta_3}{\sqrt H}\hat L)\vee\eta\beta_2$.

    The largest value on the segment between the points bounds the ratio of distances.

    Args:
        loss: $\hat L$ at points of the segment.
        beta2: $\beta_2$ there.
        beta3: $\beta_3$ there.
        eta: step size.
        H: heads.

    Returns:
        The factor at each point.

    Examples:
        >>> from attnbook import theory
        >>> theory.multihead.expansiveness(0.5, 3.0, 4.0, eta=[0.1, 1.0], H=4).tolist()
        [1.1, 3.0]

    Reference: multihead, equation 19.
    """
    step = above("eta", eta)
    spread = 1.0 + step * least("beta3", beta3) * least("loss", loss) / np.sqrt(many("H", H))
    return out(np.maximum(spread, step * least("beta2", beta2)))


def regret_bound(
    target_loss: ArrayLike,
    distance: ArrayLike,
    bent: ArrayLike,
    *,
    eta: ArrayLike,
    K: ArrayLike,
) -> Array:
    r"""Mean loss of the iterates where every step descends.

    $$\frac1K\sum_{k=1}^K\hat L(\theta_k)\le\hat L(\theta)+\frac{\delta^2}{2\eta K}
    +\frac1{2K}\sum_{k=0}^{K-1}\tau_k\|\theta-\theta_k\|^2.$$

    Args:
        target_loss: $\hat L(\theta)$.
        distance: $\delta=\|\theta-\theta_0\|$ of the target.
        bent: $\tau_k\|\theta-\theta_k\|^2$ for $k<K$ along the last axis, with
            $\tau_k=\frac{\beta_3(\theta)\vee\beta_3(\theta_k)}{\sqrt H}
            \max_{[\theta,\theta_k]}\hat L$.
        eta: step size.
        K: steps.

    Returns:
        The bound, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.regret_bound(0.1, 1.0, [0.2, 0.4], eta=0.5, K=2))
        0.75

    Reference: multihead, Lemma 8, equation 17.
    """
    steps, terms = above("K", K), least("bent", bent)
    first = least("distance", distance) ** 2 / (2.0 * above("eta", eta) * steps)
    return out(least("target_loss", target_loss) + first + terms.sum(axis=-1) / (2.0 * steps))


def local_regret_bound(
    target_loss: ArrayLike,
    distance: ArrayLike,
    start_loss: ArrayLike,
    *,
    eta: ArrayLike,
    K: ArrayLike,
) -> Array:
    r"""Mean loss of the iterates where all of them stay near the target.

    $$\frac1K\sum_{k=1}^K\hat L(\theta_k)\le2\hat L(\theta)+\frac{3\delta^2}{4\eta K}
    +\frac{\hat L(\theta_0)}{2K}.$$

    Args:
        target_loss: $\hat L(\theta)$.
        distance: $\delta=\|\theta-\theta_0\|$ of the target.
        start_loss: $\hat L(\theta_0)$.
        eta: step size.
        K: steps.

    Returns:
        The bound, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> round(float(theory.multihead.local_regret_bound(0.1, 1.0, 0.8, eta=0.5, K=10)), 6)
        0.39

    Reference: multihead, Lemma 9.
    """
    steps = above("K", K)
    first = 3.0 * least("distance", distance) ** 2 / (4.0 * above("eta", eta) * steps)
    last = least("start_loss", start_loss) / (2.0 * steps)
    return out(2.0 * least("target_loss", target_loss) + first + last)


def iterate_radius(*, sharp: bool = False) -> float:
    r"""How far iterates stay from the target, in units of the start's distance: 3.

    The proof gives $\sqrt{1+\frac83+\frac23}=\sqrt{13/3}$.

    Args:
        sharp: what the proof gives in place of the printed 3.

    Returns:
        The factor.

    Examples:
        >>> from attnbook import theory
        >>> [round(theory.multihead.iterate_radius(sharp=s), 4) for s in (False, True)]
        [3.0, 2.0817]

    Reference: multihead, Lemma 10, equation 78.
    """
    return float(np.sqrt(13.0 / 3.0)) if sharp else 3.0


def on_average_bound(stability: ArrayLike, lipschitz: ArrayLike) -> Array:
    r"""Expected gap of a $G$-Lipschitz loss: at most $2G\,\mathbb E[\frac1n\sum_i\|\cdot\|]$.

    Args:
        stability: mean over $i$ (and over training sets) of $\|\theta_K-\theta_K^{\neg i}\|$.
        lipschitz: $G$.

    Returns:
        The bound, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.on_average_bound(0.1, 2.0))
        0.4

    Reference: multihead, Lemma 3 (Lei and Ying 2020, Theorem 2).
    """
    return out(2.0 * least("lipschitz", lipschitz) * least("stability", stability))


def one_head_steps(eta: float, heads: int, *, rule: str = "gd") -> tuple[float, float]:
    r"""From a zero start, $H$ heads are one head with two learning rates.

    All heads stay equal. With $V=\sqrt HU_h$ the network is one head $(V,W_h)$ that gradient
    descent trains with step $\eta$ for $V$ and $\eta/H$ for $W$; momentum likewise; Adam with
    $\sqrt H\eta$ and $\eta$, exactly if its $\epsilon$ is $\sqrt H$ and $H$ times as large for
    the two, and up to $\epsilon$ otherwise.

    Args:
        eta: step of the network.
        heads: $H$.
        rule: ``"gd"`` (also for momentum) or ``"adam"``.

    Returns:
        Steps for $V$ and for $W$.

    Examples:
        >>> from attnbook import theory
        >>> theory.multihead.one_head_steps(1.0, 16)
        (1.0, 0.0625)
        >>> V, W = theory.multihead.one_head_steps(0.06, 4, rule="adam")
        >>> round(V * (10 * 4) ** 0.5, 4)  # length of V after Adam's first step, T=10, d=4
        0.7589

    Reference: this book's, on multihead, Appendix G (Figures 2 to 5).
    """
    step, many_heads = check.number("eta", eta, above=0.0), check.count("heads", heads)
    if check.choice("rule", rule, ("gd", "adam")) == "adam":
        return step * many_heads**0.5, step
    return step, step / many_heads
