"""Regularization paths: cones of a selection, and the constants of Theorems 9 and 10."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._tokens import matrices, others
from attnlab import checks as check
from attnlab.checks import Array, BoolArray
from attnlab.problems import TokenProblem, selection


def low_high(problem: TokenProblem, tokens: Any) -> tuple[BoolArray, BoolArray]:
    r"""The tokens that score below the selected one, and the others that do not.

    Args:
        problem: the data; hidden tokens (mask) are in neither set.
        tokens: the selection $\alpha$, ``(..., n)``.

    Returns:
        $\mathrm{low}^\alpha$ and $\mathrm{high}^\alpha$, booleans ``(..., n, T)``.

    Examples:
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> p = problems.TokenProblem(
        ...     X=[[[3.0, 0.0], [2.0, 1.0], [1.0, 1.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0])
        >>> low, high = theory.svm.low_high(p, [1])
        >>> low.tolist(), high.tolist()
        ([[False, False, True]], [[True, False, False]])

    Reference: svm, Definitions 3 and 5.
    """
    alpha = selection(problem, tokens)
    rest = others(problem, alpha)
    below = problem.scores < np.take_along_axis(problem.scores, alpha[..., None], axis=-1)
    return rest & below, rest & ~below


def cone_margins(problem: TokenProblem, W: ArrayLike, tokens: Any) -> Array:
    r"""By how much the best low token outweighs every high one, sample by sample.

    $\max_{t\in\mathrm{low}_i}\min_{\tau\in\mathrm{high}_i}(x_{it}-x_{i\tau})^\top Wz_i$;
    $+\infty$ where no token is high, $-\infty$ where some is and none is low. $W$ lies in
    $\mathrm{cone}_\epsilon(\alpha)$ iff the least of them is at least $\epsilon\|W\|_F$.

    Args:
        problem: the data.
        W: one matrix a trial, ``(..., d, d)``; more leading axes may come first.
        tokens: the selection $\alpha$, ``(..., n)``.

    Returns:
        Numbers ``(..., n)``.

    Examples:
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> p = problems.TokenProblem(
        ...     X=[[[3.0, 0.0], [2.0, 1.0], [1.0, 1.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0])
        >>> theory.svm.cone_margins(p, [[-1.0, 0.0], [0.0, 0.0]], [1]).tolist()
        [2.0]

    Reference: svm, equations 5 and 86 (there the minimum must run over positions k too).
    """
    low, high = low_high(problem, tokens)
    W = matrices("W", W, problem)
    logits = (problem.X @ (problem.z @ W.swapaxes(-1, -2))[..., None])[..., 0]
    best = np.where(low, logits, -np.inf).max(axis=-1)
    rival = np.where(high, logits, -np.inf).max(axis=-1)
    free = ~high.any(axis=-1)
    return np.where(free, np.inf, best - np.where(free, 0.0, rival))


def cone_distance(problem: TokenProblem, W: ArrayLike, tokens: Any) -> Array:
    r"""How far, at least, $W$ is from every cone of the selection (0 where it may lie in one).

    A change of $W$ by $r$ moves a margin of sample $i$ by at most
    $r\max_{t,\tau}\|x_{it}-x_{i\tau}\|\|z_i\|$, so a negative cone margin takes that much.

    Args:
        problem: the data.
        W: one matrix a trial, ``(..., d, d)``.
        tokens: the selection $\alpha$, ``(..., n)``.

    Returns:
        One number a trial; infinite where the cones are empty.

    Examples:
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> p = problems.TokenProblem(
        ...     X=[[[3.0, 0.0], [2.0, 1.0], [1.0, 1.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0])
        >>> float(theory.svm.cone_distance(p, [[1.0, 0.0], [0.0, 0.0]], [1]).round(4))
        0.8944

    Reference: svm, Theorem 9, where a selection has no cone.
    """
    margins = cone_margins(problem, W, tokens)
    apart = np.linalg.norm(problem.X[..., :, None, :] - problem.X[..., None, :, :], axis=-1)
    ok = problem.allowed
    apart = np.where(ok[..., :, None] & ok[..., None, :], apart, 0.0).max(axis=(-1, -2))
    speed = apart * np.linalg.norm(problem.z, axis=-1)
    return np.asarray(np.maximum(-margins / speed, 0.0).max(axis=-1))


def score_constants(problem: TokenProblem, tokens: Any = None) -> tuple[Array, Array]:
    r"""$B$ and $c_\alpha$ of a linear head: the largest and the least difference of scores.

    $B=\|v\|\max\|x_{it}-x_{i\tau}\|$ and
    $c_\alpha=\min_i(\gamma_{i\alpha_i}-\max_{t\in\mathrm{low}_i}\gamma_{it})$, with which a linear
    head satisfies Assumption E (infinite where no token is low).

    Args:
        problem: the data.
        tokens: the selection $\alpha$ ``(..., n)``; None for the optimal tokens.

    Returns:
        $B$ and $c_\alpha$, one number a trial each.

    Examples:
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> B, c = theory.svm.score_constants(problems.two_token())
        >>> float(B), float(c)
        (1.0, 1.0)

    Reference: svm, Assumption E, equations 87 and 90.
    """
    alpha = selection(problem, tokens)
    low, _ = low_high(problem, alpha)
    apart = np.linalg.norm(problem.X[..., :, None, :] - problem.X[..., None, :, :], axis=-1)
    ok = problem.allowed
    apart = np.where(ok[..., :, None] & ok[..., None, :], apart, 0.0).max(axis=(-1, -2, -3))
    own = np.take_along_axis(problem.scores, alpha[..., None], axis=-1)
    c = np.where(low, own - problem.scores, np.inf).min(axis=(-1, -2))
    return np.asarray(apart * np.linalg.norm(problem.v, axis=-1)), np.asarray(c)


def cone_radius(
    epsilon: ArrayLike, T: int, spread: ArrayLike, gap: ArrayLike, share: float = 1.0
) -> Array:
    r"""$R_0=\frac1\epsilon\log\frac{BT}{c_\alpha}$, from which the cone keeps better tokens away.

    There the loss stays above that of the selection. With ``share`` a quarter the gain is at
    least $c_\alpha/4$ a token, which the end of the proof needs.

    Args:
        epsilon: $\epsilon>0$ of the cone, in the norm of the path.
        T: tokens in a sample.
        spread: $B$.
        gap: $c_\alpha>0$.
        share: of $c_\alpha$ that $BTe^{-\epsilon R_0}$ may take.

    Returns:
        The radius, at least 0.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.svm.cone_radius(0.1, T=4, spread=2.0, gap=0.5).round(3))
        27.726

    Reference: svm, Theorems 9 and 10, Appendix D.2, Step 1.
    """
    T, share = check.count("T", T), check.number("share", share, above=0.0)
    eps, B, c = (
        _positive(name, value)
        for name, value in (("epsilon", epsilon), ("spread", spread), ("gap", gap))
    )
    return np.asarray(np.maximum(np.log(B * T / (share * c)), 0.0) / eps)


def excess_above(
    radius: ArrayLike, margin: ArrayLike, T: int, spread: ArrayLike, steepest: float = 1.0
) -> Array:
    r"""The loss of $R\,\bar W^{mm}$ exceeds that of the selection by at most this.

    $c_{up}TBe^{-R\Xi}$ with $\Xi=1/\|W^{mm}_\alpha\|_\diamond$, for the mean over all outputs.

    Args:
        radius: $R$.
        margin: $\Xi$.
        T: tokens in a sample.
        spread: $B$.
        steepest: $c_{up}\ge|\ell'|$.

    Returns:
        The bound.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.svm.excess_above(10.0, 0.5, T=4, spread=2.0).round(6))
        0.053904

    Reference: svm, equation 100.
    """
    T = check.count("T", T)
    R, xi, B = (
        _positive(name, value)
        for name, value in (("radius", radius), ("margin", margin), ("spread", spread))
    )
    return np.asarray(check.number("steepest", steepest, above=0.0) * T * B * np.exp(-R * xi))


def excess_below(
    radius: ArrayLike, margin: ArrayLike, shortfall: float, n: int, gap: ArrayLike, flattest: float
) -> Array:
    r"""A matrix of length $R$ that misses a margin by $\delta$ has at least this much excess.

    $\frac{c_{dn}c_\alpha}{4n}\big/(1+e^{(1-\delta)R\Xi})$.

    Args:
        radius: $R$.
        margin: $\Xi$.
        shortfall: $\delta$, by which some margin of $W/(R\,\Xi)$ stays below 1.
        n: outputs in all.
        gap: $c_\alpha>0$.
        flattest: $c_{dn}\le|\ell'|$.

    Returns:
        The bound.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.svm.excess_below(10.0, 0.5, 0.2, n=2, gap=0.5, flattest=0.3).round(6))
        0.000337

    Reference: svm, equation 99.
    """
    delta = check.number("shortfall", shortfall, least=0.0)
    R, xi, c = (
        _positive(name, value)
        for name, value in (("radius", radius), ("margin", margin), ("gap", gap))
    )
    scale = check.number("flattest", flattest, above=0.0) / (4.0 * check.count("n", n))
    return np.asarray(scale * c / (1.0 + np.exp((1.0 - delta) * R * xi)))


def crossing_radius(
    margin: ArrayLike,
    shortfall: float,
    n: int,
    T: int,
    spread: ArrayLike,
    gap: ArrayLike,
    slope_ratio: float = 1.0,
    *,
    printed: bool = False,
) -> Array:
    r"""From here on missing a margin by $\delta$ costs more than the max-margin direction's excess.

    $\frac1{\delta\Xi}\log\frac{8CTnB}{c_\alpha}$, $C=c_{up}/c_{dn}$: then `excess_above` is below
    `excess_below`. The paper prints 4 in place of 8, where the two have not yet crossed.

    Args:
        margin: $\Xi$.
        shortfall: $\delta$, above 0 and below 1.
        n: outputs in all.
        T: tokens in a sample.
        spread: $B$.
        gap: $c_\alpha>0$.
        slope_ratio: $C\ge1$.
        printed: the paper's radius.

    Returns:
        The radius.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.svm.crossing_radius(0.5, 0.2, n=2, T=4, spread=2.0, gap=0.5).round(3))
        55.452

    Reference: svm, Appendix D.2, end of Step 2.
    """
    delta = check.number("shortfall", shortfall, above=0.0, below=1.0)
    xi, B, c = (
        _positive(name, value)
        for name, value in (("margin", margin), ("spread", spread), ("gap", gap))
    )
    ratio = check.number("slope_ratio", slope_ratio, least=1.0)
    size = (4.0 if printed else 8.0) * ratio * check.count("T", T) * check.count("n", n) * B / c
    return np.asarray(np.log(size) / (delta * xi))


def equivalent_correlation(W: ArrayLike, finite: ArrayLike, direction: ArrayLike) -> Array:
    r"""How well $W^{fin}+\gamma\bar W^{mm}$ can match $W$: $\sqrt{\|W^{fin}\|^2+\gamma^2}/\|W\|$.

    $\gamma=\langle W,\bar W^{mm}\rangle$, $\bar W^{mm}$ of unit length. It holds where $W^{fin}$ is
    the least-norm solution of the softmax equations at $W$'s own shares: the projection of $W$.

    Args:
        W: what training found, ``(..., d, d)``.
        finite: $W^{fin}$, ``(..., d, d)``.
        direction: $W^{mm}$ of Gen-SVM, ``(..., d, d)``, of any length.

    Returns:
        A cosine, one number a trial.

    Examples:
        >>> import numpy as np
        >>> from attnbook import theory
        >>> W = np.diag([3.0, 4.0, 12.0])
        >>> found = theory.svm.equivalent_correlation(W, np.diag([3.0, 0, 0]), np.diag([0, 0, 1.0]))
        >>> float(found.round(6))
        0.951486

    Reference: svm, Section 6, equation 6.
    """
    W, F = check.frozen("W", W, ndim=2), check.frozen("finite", finite, ndim=2)
    D = check.frozen("direction", direction, ndim=2)
    gamma = (W * D).sum(axis=(-1, -2)) / np.linalg.norm(D, axis=(-1, -2))
    length = np.sqrt((F * F).sum(axis=(-1, -2)) + gamma**2)
    return np.asarray(length / np.linalg.norm(W, axis=(-1, -2)))


def _positive(name: str, value: ArrayLike) -> Array:
    found = check.frozen(name, value)
    if not (found > 0.0).all():
        raise check.fail(name, "numbers above 0", value)
    return found
