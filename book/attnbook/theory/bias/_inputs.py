"""What the constants of the bias paper ask of their arguments."""

from __future__ import annotations

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def positive(name: str, value: object) -> Array:
    """Finite numbers above 0."""
    found = check.frozen(name, value)
    if not (found > 0).all():
        raise check.fail(name, "numbers above 0", value)
    return found


def sizes(step: object, B: object, margin_norm: object) -> tuple[Array, Array, Array]:
    r"""$\eta$, $B$ and $\Lambda$."""
    return positive("step", step), positive("B", B), positive("margin_norm", margin_norm)


def times(value: object, least: float = 1.0) -> Array:
    """Numbers of steps: finite and at least ``least``."""
    found = check.frozen("t", value)
    if not (found >= least).all():
        raise check.fail("t", f"times of at least {least:g}", value)
    return found


def share(name: str, value: object) -> Array:
    """Numbers strictly between 0 and 1."""
    found = check.frozen(name, value)
    if not ((found > 0) & (found < 1)).all():
        raise check.fail(name, "numbers strictly between 0 and 1", value)
    return found


def log_pairs(n: object, delta: object) -> tuple[int, float]:
    r"""$n$ and $\log(10n^2/\delta)$."""
    n = check.count("n", n)
    return n, float(np.log(10.0 * n**2 / check.number("delta", delta, above=0.0, below=1.0)))


def gaps(best: object, others: object) -> tuple[Array, Array]:
    """Scores of the optimal and of the other tokens, the first above the second."""
    top, rest = check.frozen("best", best, ndim=1), check.frozen("others", others, ndim=1)
    check.shape("others", rest, top.shape, "one for each score in best")
    if not (top > rest).all():
        raise check.fail("best", "scores above those of the other tokens", (best, others))
    return top, rest


def tokens(problem: object) -> TokenProblem:
    """A problem whose tokens may all be attended to."""
    if not isinstance(problem, TokenProblem):
        raise check.fail("problem", "a TokenProblem", problem)
    if problem.mask is not None:
        raise check.fail("problem", "a problem without mask", problem)
    return problem
