"""Regularization paths: cones of a selection, and the constants of Theorems 9 and 10."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._tokens import matrices, others, positive, widths
from attnlab import checks as check
from attnlab.checks import Array, BoolArray
from attnlab.problems import TokenProblem, selection


def low_high(problem: TokenProblem, tokens: Any) -> tuple[BoolArray, BoolArray]:
    r"""$\mathrm{low}^\alpha$ and $\mathrm{high}^\alpha$, ``(..., n, T)`` (svm, Definitions 3, 5).

    The tokens that score below the selected one, and the others that do not; hidden tokens (mask)
    are in neither set.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.TokenProblem([[[3, 0], [2, 1], [1, 1]]], z=[[1, 0]], y=[1], v=[1, 0])
    >>> low, high = theory.svm.low_high(p, [1])
    >>> low.tolist(), high.tolist()
    ([[False, False, True]], [[True, False, False]])
    """
    alpha = selection(problem, tokens)
    rest = others(problem, alpha)
    below = problem.scores < np.take_along_axis(problem.scores, alpha[..., None], axis=-1)
    return rest & below, rest & ~below


def cone_margins(problem: TokenProblem, W: ArrayLike, tokens: Any) -> Array:
    r"""By how much the best low token outweighs every high one (svm, equations 5 and 86).

    $\max_{t\in\mathrm{low}_i}\min_{\tau\in\mathrm{high}_i}(x_{it}-x_{i\tau})^\top Wz_i$, one number
    a sample; $+\infty$ where no token is high, $-\infty$ where some is and none is low. $W$ lies in
    $\mathrm{cone}_\epsilon(\alpha)$ iff the least of them is at least $\epsilon\|W\|_F$. (In
    equation 86 the minimum must run over positions k too.)

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.TokenProblem([[[3, 0], [2, 1], [1, 1]]], z=[[1, 0]], y=[1], v=[1, 0])
    >>> theory.svm.cone_margins(p, [[-1, 0], [0, 0]], [1]).tolist()
    [2.0]
    """
    low, high = low_high(problem, tokens)
    W = matrices("W", W, problem)
    logits = (problem.X @ (problem.z @ W.swapaxes(-1, -2))[..., None])[..., 0]
    best = np.where(low, logits, -np.inf).max(axis=-1)
    rival = np.where(high, logits, -np.inf).max(axis=-1)
    free = ~high.any(axis=-1)
    return np.where(free, np.inf, best - np.where(free, 0.0, rival))


def cone_distance(problem: TokenProblem, W: ArrayLike, tokens: Any) -> Array:
    r"""How far, at least, $W$ is from every cone of the selection (svm, Theorem 9).

    A change of $W$ by $r$ moves a margin of sample $i$ by at most
    $r\max_{t,\tau}\|x_{it}-x_{i\tau}\|\|z_i\|$, so a negative cone margin takes that much: 0 where
    $W$ may lie in a cone, infinite where the cones are empty.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.TokenProblem([[[3, 0], [2, 1], [1, 1]]], z=[[1, 0]], y=[1], v=[1, 0])
    >>> float(theory.svm.cone_distance(p, [[1, 0], [0, 0]], [1]).round(4))
    0.8944
    """
    margins = cone_margins(problem, W, tokens)
    speed = widths(problem) * np.linalg.norm(problem.z, axis=-1)
    return np.asarray(np.maximum(-margins / speed, 0.0).max(axis=-1))


def score_constants(problem: TokenProblem, tokens: Any = None) -> tuple[Array, Array]:
    r"""$B$ and $c_\alpha$ of a linear head (svm, Assumption E, equations 87 and 90).

    $B=\|v\|\max\|x_{it}-x_{i\tau}\|$ and
    $c_\alpha=\min_i(\gamma_{i\alpha_i}-\max_{t\in\mathrm{low}_i}\gamma_{it})$ (infinite where no
    token is low), with which a linear head satisfies the assumption.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> B, c = theory.svm.score_constants(problems.two_token())
    >>> float(B), float(c)
    (1.0, 1.0)
    """
    alpha = selection(problem, tokens)
    low, _ = low_high(problem, alpha)
    own = np.take_along_axis(problem.scores, alpha[..., None], axis=-1)
    c = np.where(low, own - problem.scores, np.inf).min(axis=(-1, -2))
    widest = widths(problem).max(axis=-1)
    return np.asarray(widest * np.linalg.norm(problem.v, axis=-1)), np.asarray(c)


def cone_radius(
    epsilon: ArrayLike, T: int, spread: ArrayLike, gap: ArrayLike, share: float = 1.0
) -> Array:
    r"""$R_0=\frac1\epsilon\log\frac{BT}{c_\alpha}$ (svm, Theorems 9 and 10, Appendix D.2, Step 1).

    From here on the cone keeps better tokens away: the loss stays above that of the selection.
    With ``share`` a quarter (the part of $c_\alpha$ that $BTe^{-\epsilon R_0}$ may take) the gain
    is at least $c_\alpha/4$ a token, which the end of the proof needs. ``spread`` is $B$, ``gap``
    $c_\alpha$.

    >>> from attnbook import theory
    >>> float(theory.svm.cone_radius(0.1, T=4, spread=2.0, gap=0.5).round(3))
    27.726
    """
    T, share = check.count("T", T), check.number("share", share, above=0.0)
    eps, B = positive("epsilon", epsilon), positive("spread", spread)
    c = positive("gap", gap)
    return np.asarray(np.maximum(np.log(B * T / (share * c)), 0.0) / eps)


def excess_above(
    radius: ArrayLike, margin: ArrayLike, T: int, spread: ArrayLike, steepest: float = 1.0
) -> Array:
    r"""$c_{up}TBe^{-R\Xi}$: what $R\,\bar W^{mm}$ costs at most (svm, equation 100).

    Its loss minus that of the selection, for the mean over all outputs; ``margin`` is
    $\Xi=1/\|W^{mm}_\alpha\|_\diamond$, ``steepest`` $c_{up}\ge|\ell'|$.

    >>> from attnbook import theory
    >>> float(theory.svm.excess_above(10.0, 0.5, T=4, spread=2.0).round(6))
    0.053904
    """
    T = check.count("T", T)
    R, xi = positive("radius", radius), positive("margin", margin)
    B = positive("spread", spread)
    return np.asarray(check.number("steepest", steepest, above=0.0) * T * B * np.exp(-R * xi))


def excess_below(
    radius: ArrayLike, margin: ArrayLike, shortfall: float, n: int, gap: ArrayLike, flattest: float
) -> Array:
    r"""$\frac{c_{dn}c_\alpha}{4n}\big/(1+e^{(1-\delta)R\Xi})$: what missing a margin costs
    (svm, equation 99).

    The least excess of a matrix of length $R$ of which some margin of $W/(R\,\Xi)$ stays $\delta$
    (``shortfall``) below 1; $n$ outputs in all, ``gap`` $c_\alpha$, ``flattest``
    $c_{dn}\le|\ell'|$.

    >>> from attnbook import theory
    >>> float(theory.svm.excess_below(10.0, 0.5, 0.2, n=2, gap=0.5, flattest=0.3).round(6))
    0.000337
    """
    delta = check.number("shortfall", shortfall, least=0.0)
    R, xi = positive("radius", radius), positive("margin", margin)
    c = positive("gap", gap)
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
    r"""$\frac1{\delta\Xi}\log\frac{8CTnB}{c_\alpha}$, $C=c_{up}/c_{dn}$ (svm, Appendix D.2).

    From here on `excess_above` is below `excess_below`. The paper prints 4 in place of 8
    (``printed``), where the two have not yet crossed.

    >>> from attnbook import theory
    >>> float(theory.svm.crossing_radius(0.5, 0.2, n=2, T=4, spread=2.0, gap=0.5).round(3))
    55.452
    """
    delta = check.number("shortfall", shortfall, above=0.0, below=1.0)
    xi, B = positive("margin", margin), positive("spread", spread)
    c = positive("gap", gap)
    ratio = check.number("slope_ratio", slope_ratio, least=1.0)
    size = (4.0 if printed else 8.0) * ratio * check.count("T", T) * check.count("n", n) * B / c
    return np.asarray(np.log(size) / (delta * xi))


def equivalent_correlation(W: ArrayLike, finite: ArrayLike, direction: ArrayLike) -> Array:
    r"""$\sqrt{\|W^{fin}\|^2+\gamma^2}/\|W\|$, how well both parts fit (svm, equation 6).

    The cosine of $W$ and $W^{fin}+\gamma\bar W^{mm}$, $\gamma=\langle W,\bar W^{mm}\rangle$, where
    $W^{fin}$ is the least-norm solution of the softmax equations at $W$'s own shares: the
    projection of $W$. ``direction`` is of any length.

    >>> import numpy as np
    >>> from attnbook import theory
    >>> W = np.diag([3.0, 4.0, 12.0])
    >>> found = theory.svm.equivalent_correlation(W, np.diag([3, 0, 0]), np.diag([0, 0, 1]))
    >>> float(found.round(6))
    0.951486
    """
    W, F = check.frozen("W", W, ndim=2), check.frozen("finite", finite, ndim=2)
    D = check.frozen("direction", direction, ndim=2)
    gamma = (W * D).sum(axis=(-1, -2)) / np.linalg.norm(D, axis=(-1, -2))
    length = np.sqrt((F * F).sum(axis=(-1, -2)) + gamma**2)
    return np.asarray(length / np.linalg.norm(W, axis=(-1, -2)))
