"""Local convergence: the constants of Theorem 7 and Lemmas 13 and 14."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._global import overtaking, reach
from attnbook.theory.svm._tokens import frobenius, leads, matrices, others, span, token_margins
from attnlab import checks as check
from attnlab.checks import Array, BoolArray
from attnlab.problems import TokenProblem, selection

SUPPORT = 1e-6  # a margin of 1 up to this much


@dataclass(frozen=True, eq=False)
class LocalConstants:
    r"""The cone in which descent stays with a locally optimal selection (svm, equations 67 and 74).

    - ``delta``: $\delta=\frac12\min(x_{it}-x_{i\tau})^\top W^{mm}_\alpha z_i$ over support tokens
      $t$ and other tokens $\tau$; infinite where there are no other tokens.
    - ``reach``: $A=\max\|x_{it}z_i^\top\|/\Theta$.
    - ``mu``: $\mu=\frac18(\min(\frac12,\delta)/A)^2$, the cone's opening.
    - ``span``: $\Gamma$, the largest difference of scores in a sample.
    - ``gap``: $\gamma^{gap}_{\min}$, the least lead of a selected token over its support tokens.
    - ``norm``: $\|W^{mm}_\alpha\|_F=1/\Theta$.
    - ``radius``: $R=\frac{\max(2,1/\delta)}\Theta\log\frac{64T\Gamma A}{\gamma^{gap}_{\min}}$.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> theory.svm.local_constants(problems.two_token(), [[1, 0], [0, 0]])
    LocalConstants(delta=inf, reach=1, mu=0.03125, span=1, gap=1, norm=1, radius=9.704)
    """

    delta: Array
    reach: Array
    mu: Array
    span: Array
    gap: Array
    norm: Array
    radius: Array

    def __repr__(self) -> str:
        names = ("delta", "reach", "mu", "span", "gap", "norm", "radius")
        told = ", ".join(f"{name}={float(np.median(getattr(self, name))):.4g}" for name in names)
        many = f", medians of trials={self.mu.shape}" if self.mu.shape else ""
        return f"LocalConstants({told}{many})"


def local_constants(
    problem: TokenProblem, W_mm: ArrayLike, tokens: Any = None, *, printed: bool = False
) -> LocalConstants:
    r"""$\delta$, $A$, $\mu$, $\Gamma$, $\gamma^{gap}_{\min}$ and $R$ (svm, Theorem 7).

    ``tokens`` are a locally optimal selection. A sample without support tokens does not enter the
    printed $\delta$ (``printed``), although one of its tokens may come near inside the cone:
    corrected, it enters with its least margin in place of 1, halved once more so that its tokens
    stay behind the support tokens of the others.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.bad_direction()
    >>> W = theory.svm.features(p)[0, 0] / 4.3264  # margins 1 and 5.325 at the second tokens
    >>> both = [theory.svm.local_constants(p, W, [1, 1], printed=x) for x in (True, False)]
    >>> [(float(c.delta.round(4)), float(c.reach.round(3)), float(c.radius.round(2))) for c in both]
    [(inf, 3.125, 6.64), (1.0814, 3.125, 6.64)]
    """
    alpha = selection(problem, tokens)
    W = matrices("W_mm", W_mm, problem)
    near, far = support(problem, W, alpha)
    margins = token_margins(problem, W, alpha)
    bare = ~near.any(axis=-1)
    beyond = (np.where(far, margins, np.inf).min(axis=-1) - 1.0) / 2.0
    beyond = np.where(bare, np.inf if printed else beyond / 2.0, beyond)
    delta = beyond.min(axis=-1)
    gap = np.where(bare, np.inf, leads(problem, near, alpha)[0]).min(axis=-1)
    if not (np.isfinite(gap) & (gap > 0.0)).all():
        raise check.fail("tokens", "a locally optimal selection with its own W_mm", "another one")
    A, norm, Gamma = reach(problem, W), frobenius(W), span(problem)
    mu = (np.minimum(0.5, delta) / A) ** 2 / 8.0
    with np.errstate(divide="ignore"):
        slow = np.maximum(2.0, 1.0 / delta)
    radius = norm * slow * np.log(64.0 * problem.T * Gamma * A / gap)
    return LocalConstants(
        *(np.asarray(entry) for entry in (delta, A, mu, Gamma, gap, norm, radius))
    )


def lemma_13_bounds(
    problem: TokenProblem,
    W_mm: ArrayLike,
    attention: ArrayLike,
    slopes: ArrayLike,
    tokens: Any = None,
) -> tuple[Array, Array]:
    r"""Both bounds on $-\langle\nabla\mathcal L(W),V\rangle$ in the local cone (svm, Lemma 13).

    $\frac1{8n}\sum_i|\ell'_i|q_i\gamma_i^{gap}$ and $\frac2n\sum_i|\ell'_i|q_i\bar\gamma_i^{gap}$
    with $q_i=1-s_{i\alpha_i}$ and the gaps over support tokens, which every sample must have. In
    the paper's equation 75 the order is reversed.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p, W = problems.two_token(), [[1, 0], [0, 0]]
    >>> low, high = theory.svm.lemma_13_bounds(p, W, [[0.92, 0.08]], [0.5])
    >>> float(low.round(6)), float(high.round(6))
    (0.005, 0.08)
    """
    alpha = selection(problem, tokens)
    s, slope = check.frozen("attention", attention, ndim=2), check.frozen("slopes", slopes, ndim=1)
    near, _ = support(problem, matrices("W_mm", W_mm, problem), alpha)
    if not near.any(axis=-1).all():
        raise check.fail("tokens", "support tokens in every sample", "a sample without one")
    least, most = leads(problem, near, alpha)
    missing = np.where(others(problem, alpha), s, 0.0).sum(axis=-1)
    low = (slope * missing * least).mean(axis=-1) / 8.0
    return np.asarray(low), np.asarray(2.0 * (slope * missing * most).mean(axis=-1))


def lemma_14_radius(
    problem: TokenProblem, constants: LocalConstants, pi: float, slope_ratio: float = 1.0
) -> Array:
    r"""From here on gradients prefer $W^{mm}_\alpha$ to $W$ in the local cone (svm, Lemma 14).

    The larger of $\frac{\max(2,1/\delta)}\Theta\log\frac{96T\Gamma A}{\pi\gamma^{gap}_{\min}}$
    (the paper's constant $C$, made explicit) and the second radius of `lemma_11_radius`;
    ``constants`` are `local_constants`.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.two_token()
    >>> found = theory.svm.local_constants(p, [[1, 0], [0, 0]])
    >>> float(theory.svm.lemma_14_radius(p, found, pi=1.0).round(2))  # 64 log 16
    177.45
    """
    c = constants
    share, late = overtaking(problem, c.norm, c.reach, c.gap, pi, slope_ratio)
    with np.errstate(divide="ignore"):
        slow = np.maximum(2.0, 1.0 / c.delta)
    return np.asarray(np.maximum(c.norm * slow * np.log(96.0 * share), late))


def support(problem: TokenProblem, W: Array, alpha: Any) -> tuple[BoolArray, BoolArray]:
    """Support tokens and the other ones that are not selected, ``(..., n, T)`` each."""
    rest, margins = others(problem, alpha), token_margins(problem, W, alpha)
    least = np.where(rest, margins, np.inf).min(axis=(-1, -2))
    if not (np.abs(least - 1.0) <= SUPPORT).all():
        raise check.fail("W_mm", "matrices whose least margin is 1", least.tolist())
    near = rest & (np.abs(margins - 1.0) <= SUPPORT)
    return near, rest & ~near
