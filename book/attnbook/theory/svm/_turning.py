"""A loss from which gradient descent cannot miss: this book's Proposition 1, for Theorem 6."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._global import least_gap
from attnbook.theory.svm._tokens import frobenius, matrices, positive, span
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def safe_excess(problem: TokenProblem, flattest: float) -> Array:
    r"""$E=\frac{m\gamma_{\min}^{gap}}{2n}$, with $m$ (``flattest``) the least $|\ell'|$
    (Proposition 1, this book's).

    Where the loss is less than $E$ above its floor, every sample attends to its optimal token, and
    $-\nabla\mathcal L$ is a sum of features with positive weights.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> float(theory.svm.safe_excess(problems.two_token(), 0.5))
    0.25
    """
    least = check.number("flattest", flattest, above=0.0)
    return np.asarray(least * least_gap(problem) / (2.0 * problem.n))


def turning_radius(
    problem: TokenProblem, W_mm: ArrayLike, pi: float, slope_ratio: float = 1.0
) -> Array:
    r"""$\frac1{\pi\Theta}\log\frac{4n(T-1)r\Gamma}{\gamma_{\min}^{gap}}$ (Proposition 1).

    From here on, where the loss is below `safe_excess`, the push along $W$ is at most $1+\pi$ times
    that along $W^{mm}$: what Lemma 11 says in its cone. $r$ (``slope_ratio``) is the largest
    $|\ell'|$ over the least.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> R = theory.svm.turning_radius(problems.two_token(), [[1, 0], [0, 0]], 0.5)
    >>> float(R.round(4))  # 2 log 4
    2.7726
    """
    pi = check.number("pi", pi, above=0.0)
    ratio = check.number("slope_ratio", slope_ratio, least=1.0)
    many = 4.0 * problem.n * (problem.T - 1) * ratio
    size = frobenius(matrices("W_mm", W_mm, problem))
    return np.asarray(size / pi * np.log(many * span(problem) / least_gap(problem)))


def first_step_radius(
    problem: TokenProblem, W_mm: ArrayLike, mu: ArrayLike, slope_ratio: float = 1.0
) -> Array:
    r"""$\frac1{\mu\Theta}\log\frac{2n(T-1)r\Gamma}{\gamma_{\min}^{gap}}$ (Proposition 1).

    A matrix of this length whose margins are $\mu\Theta\|W\|_F$ and more has a loss below
    `safe_excess`: so long must the first step of Theorem 6 be.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> R = theory.svm.first_step_radius(problems.two_token(), [[1, 0], [0, 0]], 0.5)
    >>> float(R.round(4))  # 2 log 2
    1.3863
    """
    mu = positive("mu", mu)
    ratio = check.number("slope_ratio", slope_ratio, least=1.0)
    many = 2.0 * problem.n * (problem.T - 1) * ratio
    size = frobenius(matrices("W_mm", W_mm, problem))
    return np.asarray(size / mu * np.log(many * span(problem) / least_gap(problem)))
