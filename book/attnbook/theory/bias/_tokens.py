"""Nearly orthogonal tokens: Assumption 1 as a number, and what Example 1 asks for."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.bias import _inputs as given
from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.problems import TokenProblem


def orthogonality_needed(n: int, T: int, conditioning: ArrayLike) -> Array:
    r"""$4n\Upsilon T$, the factor that nearly orthogonal tokens need (bias, Assumption 1).

    >>> from attnbook import theory
    >>> round(float(theory.bias.orthogonality_needed(20, 6, 2.718281828)))  # Figure 2
    1305
    """
    n, T = check.count("n", n), check.count("T", T, 2)
    return np.asarray(4.0 * n * T * given.positive("conditioning", conditioning))


def orthogonality(problem: TokenProblem, *, symmetric: bool = False) -> Array:
    r"""The factor that the tokens allow, to compare with $4n\Upsilon T$ (bias, Assumption 1).

    The largest with which the inequalities hold (infinite where all products are 0): the smallest
    of $\|x_{i\tau}\|^2/|\langle x_{i\tau},x_{j\tau'}\rangle|$ over $j\ne i$ and
    $\tau'\ne\mathrm{opt}_j$, and of $\langle x_{i\,\mathrm{opt}_i},x_{j\,\mathrm{opt}_j}\rangle/
    |\langle x_{i\tau},x_{k\tau'}\rangle|$ over $y_i=y_j\ne y_k$. ``symmetric`` has
    $\|x_{i\tau}\|^2\wedge\|x_{j\tau'}\|^2$ in the first one, which is what the proofs of Lemmas 3
    and 6 use.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> wide = problems.orthogonal(n=2, T=2, d=3000, rho=1.0, U=20.0, rng=0)
    >>> bool(theory.bias.orthogonality(wide) > 20)
    True
    """
    problem = given.tokens(problem)
    G, sample, optimal = _gram(problem)
    size = np.diagonal(G, axis1=-2, axis2=-1)
    smaller = np.minimum(size[..., :, None], size[..., None, :]) if symmetric else size[..., None]
    asked = (sample[:, None] != sample) & ~optimal[..., None, :]
    first = _quotient(np.broadcast_to(smaller, G.shape), np.abs(G), asked).min(axis=(-2, -1))
    n, T = problem.n, problem.T
    same = problem.y[..., :, None] == problem.y[..., None, :]
    blocks = np.abs(G).reshape(*problem.trials, n, T, n, T).max(axis=(-3, -1))
    across = np.where(same, 0.0, blocks).max(axis=-1)
    together = np.where(same, _between_optimal(problem), np.inf).min(axis=-1)
    other_class = ~same.all(axis=-1)
    second = _quotient(together, across, other_class).min(axis=-1)
    return np.asarray(np.minimum(first, second))


def optimal_geometry(problem: TokenProblem) -> tuple[Array, Array]:
    r"""Two things that Assumption 1 leaves open (bias, equations 20 and 21, for Lemma 3).

    The largest $|\langle x_{i\,\mathrm{opt}_i},x_{j\,\mathrm{opt}_j}\rangle|/
    (\|x_{i\,\mathrm{opt}_i}\|^2\wedge\|x_{j\,\mathrm{opt}_j}\|^2)$ over $j\ne i$ with $y_i=y_j$
    (at most 2 is enough; 0 without such a pair), and the smallest $\langle x_{i\,\mathrm{opt}_i}-
    x_{i\tau},x_{i\,\mathrm{opt}_i}-x_{i\tau'}\rangle/\|x_{i\,\mathrm{opt}_i}\|^2$ over $\tau,\tau'
    \ne\mathrm{opt}_i$ (at least 3/4 is enough).

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.orthogonal(n=4, T=3, d=9, rho=0.1, rng=0)
    >>> large, small = theory.bias.optimal_geometry(p)
    >>> round(float(large), 12), bool(small > 0.75)
    (1.0, True)
    """
    problem = given.tokens(problem)
    P = _between_optimal(problem)
    size = np.diagonal(P, axis1=-2, axis2=-1)
    if not (size > 0).all():
        raise check.fail("problem", "optimal tokens that are not zero", problem)
    smaller = np.minimum(size[..., :, None], size[..., None, :])
    same = problem.y[..., :, None] == problem.y[..., None, :]
    pairs = same & ~np.eye(problem.n, dtype=bool)
    large = np.where(pairs, np.abs(P) / smaller, 0.0).max(axis=(-2, -1))
    best = np.take_along_axis(problem.X, problem.optimal[..., None, None], axis=-2)
    differences = best - problem.X
    inner = differences @ differences.swapaxes(-1, -2)
    chosen = np.arange(problem.T) == problem.optimal[..., None]
    counted = ~(chosen[..., :, None] | chosen[..., None, :])
    small = np.where(counted, inner / size[..., None, None], np.inf).min(axis=(-3, -2, -1))
    return np.asarray(large), np.asarray(small)


def example_dimension(n: int, T: int, delta: float) -> float:
    r"""$n^2T^2\log(4n/\delta)$, the order of $d$ that is enough (bias, Example 1, Lemma 6).

    A constant stays open in the paper.

    >>> import math
    >>> from attnbook import theory
    >>> order = theory.bias.example_dimension(20, 6, 0.1)  # Figure 2, where d is 100
    >>> round(order / math.log(4 * 20 / 0.1)), round(order)
    (14400, 96258)
    """
    n, T = check.count("n", n), check.count("T", T, 2)
    delta = check.number("delta", delta, above=0.0, below=1.0)
    return float(n**2 * T**2 * np.log(4.0 * n / delta))


def example_signal(n: int, T: int, d: int, rho: float, sigma: float = 0.0) -> float:
    r"""$(\sigma\vee\rho)^2nT\sqrt d$, the order of $U^2$ that is asked for (bias, Example 1).

    $\rho$ and $\sigma$ are the noise in the other and in the optimal token; logarithms and a
    constant stay open in the paper.

    >>> from attnbook import theory
    >>> round(theory.bias.example_signal(20, 6, 100, 0.05), 9)  # Figure 2, where U is 1
    3.0
    """
    n, T, d = check.count("n", n), check.count("T", T, 2), check.count("d", d)
    rho, sigma = check.number("rho", rho, above=0.0), check.number("sigma", sigma, least=0.0)
    return float(max(rho, sigma) ** 2 * n * T * np.sqrt(d))


def _gram(problem: TokenProblem) -> tuple[Array, IntArray, BoolArray]:
    n, T = problem.n, problem.T
    P = problem.X.reshape(*problem.trials, n * T, problem.d)
    sample = np.repeat(np.arange(n), T)
    optimal = (np.arange(T) == problem.optimal[..., None]).reshape(*problem.trials, n * T)
    return P @ P.swapaxes(-1, -2), sample, optimal


def _between_optimal(problem: TokenProblem) -> Array:
    best = np.take_along_axis(problem.X, problem.optimal[..., None, None], axis=-2)[..., 0, :]
    return np.asarray(best @ best.swapaxes(-1, -2))


def _quotient(top: Array, bottom: Array, asked: BoolArray) -> Array:
    """Quotients top / bottom where asked, infinite elsewhere and where 0 asks for nothing."""
    zero = bottom <= 0.0
    found = top / np.where(zero, 1.0, bottom)
    found = np.where(zero, np.where(top >= 0.0, np.inf, -np.inf), found)
    return np.where(asked, found, np.inf)
