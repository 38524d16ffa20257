"""Step sizes and descent: Lemmas 8 and 9."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._tokens import matrices, others, positive, score_gaps, token_margins
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def descent_step(smoothness: ArrayLike, *, printed: bool = False) -> Array:
    """$1/L$, the largest step of the descent lemma (svm, Lemma 8).

    The paper prints $2/L$ (``printed``), where the guaranteed decrease is 0. ``smoothness`` is a
    Lipschitz constant $L$ of the gradient.

    >>> from attnbook import theory
    >>> float(theory.svm.descent_step(4.0)), float(theory.svm.descent_step(4.0, printed=True))
    (0.25, 0.5)
    """
    return (2.0 if printed else 1.0) / positive("smoothness", smoothness)


def guaranteed_decrease(step: ArrayLike, smoothness: ArrayLike) -> Array:
    r"""$\eta(1-\eta L/2)$, what a step is sure to gain per squared gradient (svm, Lemma 8).

    At least $\eta/2$, which the lemma states, exactly for $\eta\le1/L$.

    >>> from attnbook import theory
    >>> float(theory.svm.guaranteed_decrease(0.5, 2.0))  # 1 / L: exactly half the step
    0.25
    >>> float(theory.svm.guaranteed_decrease(1.0, 2.0))  # 2 / L: nothing
    0.0
    """
    eta = positive("step", step)
    return np.asarray(eta * (1.0 - eta * positive("smoothness", smoothness) / 2.0))


def lemma_9_bound(
    problem: TokenProblem, W_mm: ArrayLike, attention: ArrayLike, slopes: ArrayLike
) -> Array:
    r"""A lower bound on $-\langle\nabla\mathcal L(W),W^{mm}\rangle$ at this $W$ (svm, Lemma 9).

    $\frac1n\sum_i|\ell'_i|\,\bar h_i^{gap}\,\gamma_i^{gap}\,s_{i\,\mathrm{opt}_i}
    (1-s_{i\,\mathrm{opt}_i})$ with the least margin and the least lead of sample $i$ (equations 26
    to 30). It needs Assumption B, and it vanishes as softmax saturates: no constant can take its
    place.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> W = [[1.0, 0.0], [0.0, 0.0]]
    >>> float(theory.svm.lemma_9_bound(problems.two_token(), W, [[0.5, 0.5]], [0.5]))
    0.125
    """
    W = matrices("W_mm", W_mm, problem)
    s, slope = check.frozen("attention", attention, ndim=2), check.frozen("slopes", slopes, ndim=1)
    rest = others(problem, problem.optimal)
    margin = np.where(rest, token_margins(problem, W), np.inf).min(axis=-1)
    missing = np.where(rest, s, 0.0).sum(axis=-1)
    own = np.where(problem.allowed & ~rest, s, 0.0).sum(axis=-1)
    lead = score_gaps(problem)[0]
    return np.asarray((slope * margin * lead * own * missing).mean(axis=-1))
