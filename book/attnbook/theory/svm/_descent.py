"""Step sizes and descent: Lemmas 8 and 9."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.svm._tokens import matrices, others, score_gaps, token_margins
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def descent_step(smoothness: ArrayLike, *, printed: bool = False) -> Array:
    r"""The largest step of the descent lemma, $1/L$.

    The paper prints $2/L$, where the guaranteed decrease is 0 (`guaranteed_decrease`).

    Args:
        smoothness: a Lipschitz constant $L$ of the gradient, positive.
        printed: the paper's $2/L$.

    Returns:
        Step sizes of the shape of ``smoothness``.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.svm.descent_step(4.0)), float(theory.svm.descent_step(4.0, printed=True))
        (0.25, 0.5)

    Reference: svm, Lemma 8.
    """
    return (2.0 if printed else 1.0) / _positive("smoothness", smoothness)


def guaranteed_decrease(step: ArrayLike, smoothness: ArrayLike) -> Array:
    r"""What a step is sure to gain, per squared gradient: $\eta(1-\eta L/2)$.

    It is at least $\eta/2$, which the lemma states, exactly for $\eta\le1/L$.

    Args:
        step: $\eta$.
        smoothness: a Lipschitz constant $L$ of the gradient.

    Returns:
        The factor of $\|\nabla\mathcal L\|^2$.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.svm.guaranteed_decrease(0.5, 2.0))  # 1 / L: exactly half the step
        0.25
        >>> float(theory.svm.guaranteed_decrease(1.0, 2.0))  # 2 / L: nothing
        0.0

    Reference: svm, Lemma 8.
    """
    eta = _positive("step", step)
    return np.asarray(eta * (1.0 - eta * _positive("smoothness", smoothness) / 2.0))


def lemma_9_bound(
    problem: TokenProblem, W_mm: ArrayLike, attention: ArrayLike, slopes: ArrayLike
) -> Array:
    r"""A lower bound on $-\langle\nabla\mathcal L(W),W^{mm}\rangle$ that depends on $W$.

    $\frac1n\sum_i|\ell'_i|\,\bar h_i^{gap}\,\gamma_i^{gap}\,s_{i\,\mathrm{opt}_i}
    (1-s_{i\,\mathrm{opt}_i})$ with the least margin and the least lead of sample $i$. It needs
    Assumption B, and it vanishes as softmax saturates: no constant can take its place.

    Args:
        problem: the data.
        W_mm: the max-margin direction of the optimal tokens, ``(..., d, d)``.
        attention: $s$ at $W$, ``(..., n, T)``.
        slopes: $|\ell'_i|$ at $W$, ``(..., n)``.

    Returns:
        One number a trial.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> p = problems.two_token()
        >>> W = np.diag([1.0, 0.0])
        >>> float(theory.svm.lemma_9_bound(p, W, [[0.5, 0.5]], [0.5]))
        0.125

    Reference: svm, Lemma 9, equations 26 to 30.
    """
    W = matrices("W_mm", W_mm, problem)
    s, slope = check.frozen("attention", attention, ndim=2), check.frozen("slopes", slopes, ndim=1)
    rest = others(problem, problem.optimal)
    margin = np.where(rest, token_margins(problem, W), np.inf).min(axis=-1)
    missing = np.where(rest, s, 0.0).sum(axis=-1)
    own = np.where(problem.allowed & ~rest, s, 0.0).sum(axis=-1)
    lead = score_gaps(problem)[0]
    return np.asarray((slope * margin * lead * own * missing).mean(axis=-1))


def _positive(name: str, value: ArrayLike) -> Array:
    found = check.frozen(name, value)
    if not (found > 0.0).all():
        raise check.fail(name, "numbers above 0", value)
    return found
