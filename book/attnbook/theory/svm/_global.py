"""Global convergence of gradient descent: radii and bounds of Lemmas 10 to 12, and Theorem 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._tokens import (
    frobenius,
    matrices,
    others,
    positive,
    score_gaps,
    span,
    widths,
)
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def reach(problem: TokenProblem, W_mm: ArrayLike, *, differences: bool = False) -> Array:
    r"""$A=\max_{i,t}\|x_{it}z_i^\top\|\,\|W^{mm}\|_F$, which no logit exceeds
    (svm, equations 53 and 67).

    ``differences`` lets token differences $x_{it}-x_{i\tau}$ count too (equation 53).

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> float(theory.svm.reach(problems.two_token(), [[2, 0], [0, 0]]))
    2.0
    """
    W = matrices("W_mm", W_mm, problem)
    size = np.where(problem.allowed, np.linalg.norm(problem.X, axis=-1), 0.0).max(axis=-1)
    if differences:
        size = np.maximum(size, widths(problem))
    longest = (size * np.linalg.norm(problem.z, axis=-1)).max(axis=-1)
    return np.asarray(longest * frobenius(W))


def lemma_10_radius(problem: TokenProblem, W_mm: ArrayLike, pi: float) -> Array:
    r"""$R_\pi=\log(2\bar MT/\pi)/(\delta\Theta)$, all explicit (svm, Lemma 10, equation 32).

    $M=\max\|x_tz^\top\|$, $\bar M=M/\Theta$ and $\delta=(\varepsilon\Theta)^2/4$,
    $\varepsilon=\pi/(2M)$: a matrix of length $\|W^{mm}\|$ that is $\varepsilon$ away from $W^{mm}$
    has a margin of at most $1-2\delta$. For one sample a trial; for more the lemma is false.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> R = theory.svm.lemma_10_radius(problems.two_token(), [[1, 0], [0, 0]], 1.0)
    >>> float(R.round(4))  # 16 log 4
    22.1807
    """
    pi = check.number("pi", pi, above=0.0)
    if problem.n != 1:
        raise check.fail("problem", "one sample a trial", f"n = {problem.n}")
    far = reach(problem, W_mm)  # M / Theta
    delta = (pi / (2.0 * far)) ** 2 / 4.0
    size = frobenius(matrices("W_mm", W_mm, problem))
    return np.asarray(size / delta * np.log(np.maximum(2.0 * far * problem.T / pi, 1.0)))


def lemma_12_radius(problem: TokenProblem, W_mm: ArrayLike, mu: ArrayLike) -> Array:
    r"""$R_\mu=\frac1{\mu\Theta}\log\frac{4T\Gamma A}{\mu\gamma_{\min}^{gap}}$ (svm, Lemma 12).

    $\gamma_{\min}^{gap}$ is the least score gap of all samples (equation 59 prints ``sup``).

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> R = theory.svm.lemma_12_radius(problems.two_token(), [[1, 0], [0, 0]], 0.5)
    >>> float(R.round(4))  # 2 log 16
    5.5452
    """
    mu = positive("mu", mu)
    size, far = frobenius(matrices("W_mm", W_mm, problem)), reach(problem, W_mm, differences=True)
    gap = least_gap(problem)
    return np.asarray(size / mu * np.log(4.0 * problem.T * span(problem) * far / (mu * gap)))


def lemma_12_bounds(
    problem: TokenProblem, W_mm: ArrayLike, mu: ArrayLike, attention: ArrayLike, slopes: ArrayLike
) -> tuple[Array, Array]:
    r"""Both bounds on $-\langle\nabla\mathcal L(W),V\rangle$ in the cone (svm, Lemma 12).

    $\frac\mu{2n}\sum_i|\ell'_i|q_i\gamma_i^{gap}$ and
    $\frac{2A}n\sum_i|\ell'_i|q_i\bar\gamma_i^{gap}$ with $q_i=1-s_{i\,\mathrm{opt}_i}$. In the
    paper's equation 60 the order is reversed, because $\ell'<0$ was passed by.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p, W = problems.two_token(), [[1, 0], [0, 0]]
    >>> low, high = theory.svm.lemma_12_bounds(p, W, 1.0, [[0.9, 0.1]], [0.5])
    >>> float(low.round(6)), float(high.round(6))
    (0.025, 0.1)
    """
    mu = positive("mu", mu)
    s, slope = check.frozen("attention", attention, ndim=2), check.frozen("slopes", slopes, ndim=1)
    rest = others(problem, problem.optimal)
    missing = np.where(rest, s, 0.0).sum(axis=-1)
    least, most = score_gaps(problem)
    far = reach(problem, W_mm, differences=True)
    low = mu / 2.0 * (slope * missing * least).mean(axis=-1)
    return np.asarray(low), np.asarray(2.0 * far * (slope * missing * most).mean(axis=-1))


def lemma_11_radius(
    problem: TokenProblem, W_mm: ArrayLike, mu: ArrayLike, pi: float, slope_ratio: float = 1.0
) -> Array:
    r"""From here on the gradient points more to $W^{mm}$ than to $W$ in the cone (svm, Lemma 11).

    The larger of $\frac1{\mu\Theta}\log\frac{12T\Gamma A}{\pi\gamma_{\min}^{gap}}$ (equation 51)
    and $\frac1{\nu\Theta}\log\frac{8nr\,T\Gamma A}{\pi\gamma_{\min}^{gap}}$ with
    $\nu=\pi^2/(64A^2)$, which the paper leaves open. The factor $2nr$, $r$ (``slope_ratio``) the
    ratio of the largest to the least $|\ell'|$, lets the nearest tokens of one sample outweigh all
    other samples: the paper's comparison sample by sample is not true.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> R = theory.svm.lemma_11_radius(problems.two_token(), [[1, 0], [0, 0]], 1.0, 1.0)
    >>> float(R.round(2))  # 64 log 16
    177.45
    """
    mu = positive("mu", mu)
    size, far = frobenius(matrices("W_mm", W_mm, problem)), reach(problem, W_mm, differences=True)
    share, late = overtaking(problem, size, far, least_gap(problem), pi, slope_ratio)
    return np.asarray(np.maximum(size / mu * np.log(12.0 * share), late))


def equal_scores(problem: TokenProblem) -> TokenProblem:
    r"""The nearby problem whose other tokens all score the same (svm, Theorem 5, Appendix B.3).

    $\tilde x_{it}=(v^\top x_{i\sigma}/\|v\|^2)v+P_v^\perp x_{it}$ for $t\ne\mathrm{opt}_i$, with
    $\sigma$ the first token that is not optimal; the optimal token and the query stay. It satisfies
    Assumption B.2. For problems without a mask, whose queries are not their tokens.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> twin = theory.svm.equal_scores(problems.sphere(n=2, T=4, d=5, rng=0))
    >>> twin.scores.round(3).tolist()
    [[-0.573, -0.573, -0.573, 0.687], [-0.581, -0.581, -0.581, 0.204]]
    """
    rest = others(problem, problem.optimal)
    if problem.mask is not None:
        raise check.fail("problem", "one without a mask", repr(problem))
    v = problem.v[..., None, None, :]
    along = (problem.X * v).sum(axis=-1, keepdims=True) / (v * v).sum(axis=-1, keepdims=True)
    first = rest.argmax(axis=-1)[..., None, None]
    moved = problem.X + (np.take_along_axis(along, first, axis=-2) - along) * v
    X = np.where(rest[..., None], moved, problem.X)
    return TokenProblem(X, problem.z, problem.y, problem.v)


def opposing_threshold(gram: ArrayLike) -> float:
    r"""When two samples of two tokens are drawn to a wrong selection
    (svm, Theorem 4; bias, Appendix C.1).

    With $w_i$ the weight of feature $F_i$ in $-\nabla\mathcal L$, the logit of sample 2 runs away
    on the wrong side, faster than that of sample 1 grows, while $w_2/w_1$ stays below
    $(-\langle F_1,F_2\rangle-\|F_1\|^2)/(\|F_2\|^2+\langle F_1,F_2\rangle)$; softmax then keeps
    the ratio falling. A positive threshold, $-\langle F_1,F_2\rangle>\|F_1\|^2$, is what makes the
    wrong selection's direction attract; 0 where it does not. ``gram`` holds inner products, 2 by 2.

    >>> from attnbook import theory
    >>> round(theory.svm.opposing_threshold([[4.3264, -23.04], [-23.04, 169.0]]), 4)
    0.1282
    >>> theory.svm.opposing_threshold([[1.0, -0.9], [-0.9, 1.0]])
    0.0
    """
    G = check.frozen("gram", gram, ndim=2)
    check.shape("gram", G, (2, 2), "two features")
    against, rest = -G[0, 1] - G[0, 0], G[1, 1] + G[0, 1]
    return float(against / rest) if against > 0.0 and rest > 0.0 else 0.0


def overtaking(
    problem: TokenProblem, norm: Array, far: Array, gap: Array, pi: float, slope_ratio: float
) -> tuple[Array, Array]:
    r"""$T\Gamma A/(\pi\gamma_{\min}^{gap})$ and the second radius of `lemma_11_radius`."""
    pi = check.number("pi", pi, above=0.0, most=1.0)
    ratio = check.number("slope_ratio", slope_ratio, least=1.0)
    share = problem.T * span(problem) * far / (pi * gap)
    nu = pi**2 / (64.0 * far**2)
    return share, np.asarray(norm / nu * np.log(8.0 * problem.n * ratio * share))


def least_gap(problem: TokenProblem) -> Array:
    r"""$\gamma_{\min}^{gap}$: the least lead of an optimal token, one number a trial."""
    gap = np.asarray(score_gaps(problem)[0].min(axis=-1))
    if not (gap > 0.0).all():
        raise check.fail("problem", "one optimal token in every sample", "a tie of scores")
    return gap
