"""Global convergence of gradient descent: radii and bounds of Lemmas 10 to 12, and Theorem 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._tokens import frobenius, matrices, others, score_gaps, span
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def reach(problem: TokenProblem, W_mm: ArrayLike, *, differences: bool = False) -> Array:
    r"""$A=\max_{i,t}\|x_{it}z_i^\top\|\,\|W^{mm}\|_F$: no logit of $W^{mm}$'s length exceeds it.

    Args:
        problem: the data.
        W_mm: a max-margin direction, ``(..., d, d)``.
        differences: let token differences $x_{it}-x_{i\tau}$ count too (equation 53).

    Returns:
        One number a trial.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> float(theory.svm.reach(problems.two_token(), np.diag([2.0, 0.0])))
        2.0

    Reference: svm, equations 53 and 67.
    """
    W = matrices("W_mm", W_mm, problem)
    ok = problem.allowed
    size = np.where(ok, np.linalg.norm(problem.X, axis=-1), 0.0).max(axis=-1)
    if differences:
        apart = np.linalg.norm(problem.X[..., :, None, :] - problem.X[..., None, :, :], axis=-1)
        both = ok[..., :, None] & ok[..., None, :]
        size = np.maximum(size, np.where(both, apart, 0.0).max(axis=(-1, -2)))
    longest = (size * np.linalg.norm(problem.z, axis=-1)).max(axis=-1)
    return np.asarray(longest * frobenius(W))


def lemma_10_radius(problem: TokenProblem, W_mm: ArrayLike, pi: float) -> Array:
    r"""A radius from which Lemma 10 holds for a single sample, with every constant explicit.

    $R_\pi=\log(2\bar MT/\pi)/(\delta\Theta)$ with $M=\max\|x_tz^\top\|$, $\bar M=M/\Theta$ and
    $\delta=(\varepsilon\Theta)^2/4$, $\varepsilon=\pi/(2M)$: a matrix of length $\|W^{mm}\|$ that
    is $\varepsilon$ away from $W^{mm}$ has a margin of at most $1-2\delta$.

    Args:
        problem: one sample a trial ($n=1$; for more the lemma is false).
        W_mm: the max-margin direction, ``(..., d, d)``.
        pi: $\pi>0$.

    Returns:
        One radius a trial.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> W = np.diag([1.0, 0.0])
        >>> float(theory.svm.lemma_10_radius(problems.two_token(), W, 1.0).round(4))  # 16 log 4
        22.1807

    Reference: svm, Lemma 10 and equation 32.
    """
    pi = check.number("pi", pi, above=0.0)
    if problem.n != 1:
        raise check.fail("problem", "one sample a trial", f"n = {problem.n}")
    far = reach(problem, W_mm)  # M / Theta
    delta = (pi / (2.0 * far)) ** 2 / 4.0
    size = frobenius(matrices("W_mm", W_mm, problem))
    return np.asarray(size / delta * np.log(np.maximum(2.0 * far * problem.T / pi, 1.0)))


def lemma_12_radius(problem: TokenProblem, W_mm: ArrayLike, mu: ArrayLike) -> Array:
    r"""$R_\mu=\frac1{\mu\Theta}\log\frac{4T\Gamma A}{\mu\gamma_{\min}^{gap}}$.

    $\gamma_{\min}^{gap}$ is the least score gap of all samples (the paper prints ``sup``).

    Args:
        problem: the data.
        W_mm: the max-margin direction of the optimal tokens, ``(..., d, d)``.
        mu: $\mu>0$, of the shape of the trials.

    Returns:
        One radius a trial.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> W = np.diag([1.0, 0.0])
        >>> float(theory.svm.lemma_12_radius(problems.two_token(), W, 0.5).round(4))  # 2 log 16
        5.5452

    Reference: svm, Lemma 12 and equation 59.
    """
    mu = _shares("mu", mu)
    size, far = frobenius(matrices("W_mm", W_mm, problem)), reach(problem, W_mm, differences=True)
    gap = _least_gap(problem)
    return np.asarray(size / mu * np.log(4.0 * problem.T * span(problem) * far / (mu * gap)))


def lemma_12_bounds(
    problem: TokenProblem,
    W_mm: ArrayLike,
    mu: ArrayLike,
    attention: ArrayLike,
    slopes: ArrayLike,
) -> tuple[Array, Array]:
    r"""Between which numbers $-\langle\nabla\mathcal L(W),V\rangle$ lies in the cone.

    $\frac\mu{2n}\sum_i|\ell'_i|q_i\gamma_i^{gap}$ and
    $\frac{2A}n\sum_i|\ell'_i|q_i\bar\gamma_i^{gap}$ with $q_i=1-s_{i\,\mathrm{opt}_i}$. In the
    paper's equation 60 the order is reversed, because $\ell'<0$ was passed by.

    Args:
        problem: the data.
        W_mm: the max-margin direction of the optimal tokens, ``(..., d, d)``.
        mu: $\mu>0$, of the shape of the trials.
        attention: $s$ at $W$, ``(..., n, T)``.
        slopes: $|\ell'_i|$ at $W$, ``(..., n)``.

    Returns:
        The lower and the upper bound, one number a trial each.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> p, W = problems.two_token(), np.diag([1.0, 0.0])
        >>> low, high = theory.svm.lemma_12_bounds(p, W, 1.0, [[0.9, 0.1]], [0.5])
        >>> float(low.round(6)), float(high.round(6))
        (0.025, 0.1)

    Reference: svm, Lemma 12 and equation 60.
    """
    mu = _shares("mu", mu)
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
    r"""A radius from which the gradient points more to $W^{mm}$ than to $W$ within the cone.

    The larger of $\frac1{\mu\Theta}\log\frac{12T\Gamma A}{\pi\gamma_{\min}^{gap}}$ (equation 51)
    and $\frac1{\nu\Theta}\log\frac{8nr\,T\Gamma A}{\pi\gamma_{\min}^{gap}}$ with
    $\nu=\pi^2/(64A^2)$, which the paper leaves open. The factor $2nr$, $r$ the ratio of the largest
    to the least $|\ell'|$, lets the nearest tokens of one sample outweigh all other samples: the
    paper's comparison sample by sample is not true.

    Args:
        problem: the data.
        W_mm: the max-margin direction of the optimal tokens, ``(..., d, d)``.
        mu: $\mu>0$ of the cone, of the shape of the trials.
        pi: $\pi$, above 0 and at most 1.
        slope_ratio: $r\ge1$.

    Returns:
        One radius a trial.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> W = np.diag([1.0, 0.0])
        >>> p = problems.two_token()
        >>> float(theory.svm.lemma_11_radius(p, W, 1.0, 1.0).round(2))  # 64 log 16
        177.45

    Reference: svm, Lemma 11 and equation 51.
    """
    mu, pi = _shares("mu", mu), check.number("pi", pi, above=0.0, most=1.0)
    ratio = check.number("slope_ratio", slope_ratio, least=1.0)
    size, far = frobenius(matrices("W_mm", W_mm, problem)), reach(problem, W_mm, differences=True)
    share = problem.T * span(problem) * far / (pi * _least_gap(problem))
    nu = pi**2 / (64.0 * far**2)
    slow = size / nu * np.log(8.0 * problem.n * ratio * share)
    return np.asarray(np.maximum(size / mu * np.log(12.0 * share), slow))


def equal_scores(problem: TokenProblem) -> TokenProblem:
    r"""The nearby problem of Theorem 5 whose other tokens all score the same.

    $\tilde x_{it}=(v^\top x_{i\sigma}/\|v\|^2)v+P_v^\perp x_{it}$ for $t\ne\mathrm{opt}_i$, with
    $\sigma$ the first token that is not optimal; the optimal token and the query stay.

    Args:
        problem: the data, without a mask, whose queries are not its tokens.

    Returns:
        A `TokenProblem` that satisfies Assumption B.2.

    Examples:
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> p = problems.sphere(n=2, T=4, d=5, rng=0)
        >>> twin = theory.svm.equal_scores(p)
        >>> bool((twin.optimal == p.optimal).all())
        True
        >>> twin.scores.round(3).tolist()
        [[-0.573, -0.573, -0.573, 0.687], [-0.581, -0.581, -0.581, 0.204]]

    Reference: svm, Theorem 5, Appendix B.3.
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
    r"""When two samples of two tokens are drawn to the wrong selection of the second one.

    With $w_i$ the weight of feature $F_i$ in $-\nabla\mathcal L$, the logit of sample 2 runs away
    on the wrong side, faster than that of sample 1 grows, while $w_2/w_1$ stays below
    $(-\langle F_1,F_2\rangle-\|F_1\|^2)/(\|F_2\|^2+\langle F_1,F_2\rangle)$; softmax then keeps
    the ratio falling. A positive threshold, $-\langle F_1,F_2\rangle>\|F_1\|^2$, is what makes the
    direction of the wrong selection attract.

    Args:
        gram: inner products of the two features, shape ``(2, 2)``.

    Returns:
        The threshold, 0 where the direction does not attract.

    Examples:
        >>> from attnbook import theory
        >>> round(theory.svm.opposing_threshold([[4.3264, -23.04], [-23.04, 169.0]]), 4)
        0.1282
        >>> theory.svm.opposing_threshold([[1.0, -0.9], [-0.9, 1.0]])
        0.0

    Reference: svm, Theorem 4; bias, Appendix C.1.
    """
    G = check.frozen("gram", gram, ndim=2)
    check.shape("gram", G, (2, 2), "two features")
    against, rest = -G[0, 1] - G[0, 0], G[1, 1] + G[0, 1]
    return float(against / rest) if against > 0.0 and rest > 0.0 else 0.0


def _least_gap(problem: TokenProblem) -> Array:
    gap = np.asarray(score_gaps(problem)[0].min(axis=-1))
    if not (gap > 0.0).all():
        raise check.fail("problem", "one optimal token in every sample", "a tie of scores")
    return gap


def _shares(name: str, value: ArrayLike) -> Array:
    found = check.frozen(name, value)
    if not (found > 0.0).all():
        raise check.fail(name, "numbers above 0", value)
    return found
