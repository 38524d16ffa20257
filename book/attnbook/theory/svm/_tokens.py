"""Margins, scores and features of a selection: what the other constants are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.problems import TokenProblem, selection


def others(problem: TokenProblem, alpha: IntArray) -> BoolArray:
    """Tokens that may be attended to and are not selected, ``(..., n, T)``."""
    return np.asarray(problem.allowed & (np.arange(problem.T) != alpha[..., None]))


def matrices(name: str, W: Any, problem: TokenProblem) -> Array:
    """One or more ``d`` by ``d`` matrices for each trial."""
    found = check.frozen(name, W, ndim=2)
    tail = (*problem.trials, problem.d, problem.d)
    check.shape(name, found[(0,) * max(found.ndim - len(tail), 0)], tail, "one W a trial")
    return found


def frobenius(W: Array) -> Array:
    """Frobenius norms of the last two axes."""
    return np.asarray(np.sqrt((W * W).sum(axis=(-1, -2))))


def positive(name: str, value: ArrayLike) -> Array:
    """Finite numbers above 0."""
    found = check.frozen(name, value)
    if not (found > 0.0).all():
        raise check.fail(name, "numbers above 0", value)
    return found


def widths(problem: TokenProblem) -> Array:
    r"""$\max_{t,\tau}\|x_{it}-x_{i\tau}\|$ over the tokens of each sample, ``(..., n)``."""
    apart = np.linalg.norm(problem.X[..., :, None, :] - problem.X[..., None, :, :], axis=-1)
    ok = problem.allowed
    return np.asarray(np.where(ok[..., :, None] & ok[..., None, :], apart, 0.0).max(axis=(-1, -2)))


def leads(problem: TokenProblem, over: BoolArray, alpha: IntArray) -> tuple[Array, Array]:
    """Least and largest lead in score over these tokens, ``(..., n)``; infinite where none."""
    lead = np.take_along_axis(problem.scores, alpha[..., None], axis=-1) - problem.scores
    least = np.where(over, lead, np.inf).min(axis=-1)
    return np.asarray(least), np.where(over, lead, -np.inf).max(axis=-1)


def token_margins(problem: TokenProblem, W: ArrayLike, tokens: Any = None) -> Array:
    r"""$(x_{i\alpha_i}-x_{it})^\top Wz_i$, ``(..., n, T)``: the margins (svm, Att-SVM).

    0 at the selected token, and at tokens that a mask hides. More leading axes of $W$ may come
    first.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.bad_direction()
    >>> F = theory.svm.features(p, tokens=[1, 0])  # the optimal tokens
    >>> W = F[0, 0] / 4.3264  # separates the first sample and gets the second one wrong
    >>> theory.svm.token_margins(p, W, [1, 0]).round(3).tolist()
    [[1.0, 0.0], [0.0, -5.325]]
    """
    alpha = selection(problem, tokens)
    W = matrices("W", W, problem)
    logits = (problem.X @ (problem.z @ W.swapaxes(-1, -2))[..., None])[..., 0]
    index = np.broadcast_to(alpha, logits.shape[:-1])[..., None]
    best = np.take_along_axis(logits, index, axis=-1)
    return np.where(others(problem, alpha), best - logits, 0.0)


def features(problem: TokenProblem, tokens: Any = None) -> Array:
    r"""$F_{it}=(x_{i\alpha_i}-x_{it})z_i^\top$, ``(..., n, T, d, d)``
    (svm, Section 2.1 and Appendix E).

    The margin is $\langle F_{it},W\rangle$; zero at the selected token.

    >>> import numpy as np
    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> F = theory.svm.features(problems.bad_direction())
    >>> F = np.array([F[0, 0], F[1, 1]]).reshape(2, 4)
    >>> (F @ F.T).round(4).tolist()
    [[4.3264, -23.04], [-23.04, 169.0]]
    >>> weights = np.linalg.solve(F @ F.T, np.ones(2))  # of the max-margin direction
    >>> weights.round(4).tolist(), float(np.sqrt(weights.sum()).round(4))
    ([0.9587, 0.1366], 1.0466)
    """
    alpha = selection(problem, tokens)
    best = np.take_along_axis(problem.X, alpha[..., None, None], axis=-2)
    left = np.where(others(problem, alpha)[..., None], best - problem.X, 0.0)
    return np.asarray(left[..., :, None] * problem.z[..., None, None, :])


def score_gaps(problem: TokenProblem, tokens: Any = None) -> tuple[Array, Array]:
    r"""The selected token's least and largest lead in score, ``(..., n)`` (svm, Appendix B.4).

    $\gamma_{i\alpha_i}-\max_{t\ne\alpha_i}\gamma_{it}$ and
    $\gamma_{i\alpha_i}-\min_{t\ne\alpha_i}\gamma_{it}$ (negative where a token scores higher).

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> least, most = theory.svm.score_gaps(problems.bad_direction())
    >>> least.round(6).tolist(), most.round(6).tolist()
    ([0.4, 1.0], [0.4, 1.0])
    """
    alpha = selection(problem, tokens)
    rest = others(problem, alpha)
    if not rest.any(axis=-1).all():
        raise check.fail("problem", "a second token in every sample", "a sample that shows one")
    return leads(problem, rest, alpha)


def span(problem: TokenProblem) -> Array:
    r"""$\Gamma=\max_{i,t,\tau}|\gamma_{it}-\gamma_{i\tau}|$ (svm, Lemma 7, Appendix B.4).

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> float(theory.svm.span(problems.bad_direction()))
    1.0
    """
    ok, scores = problem.allowed, problem.scores
    high = np.where(ok, scores, -np.inf).max(axis=-1)
    return np.asarray((high - np.where(ok, scores, np.inf).min(axis=-1)).max(axis=-1))
