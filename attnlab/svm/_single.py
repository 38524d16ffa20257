r"""One small instance at a time, Frobenius norm: the batched method without its bookkeeping.

At twenty constraints every call of NumPy costs as much as its arithmetic. This path makes as few
of them as it can, and what is one number is a Python float. The method (block principal pivoting)
and the certificate are those of ``_pivot`` and ``_least_norm``. Whatever is not certified at once
is left to them: a singular Gram matrix, features of very different lengths, a contradiction.
One large instance has a way of its own in ``_large``.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.problems import TokenProblem
from attnlab.svm._large import large
from attnlab.svm._least_norm import One, certify_one
from attnlab.svm._margin import Margin
from attnlab.svm._pivot import MANY, exchange

SMALL = 64  # most constraints, and most features; above, arithmetic is what costs
ALIKE = 1e4  # largest ratio of squared lengths
ZERO = np.array(0.0)  # an array: a number is made one at every call


def single(problem: TokenProblem, alpha: IntArray) -> Margin | None:
    """The certified answer of one instance without a mask, or None: the general way is asked."""
    n, T, d = problem.X.shape
    m = n * (T - 1)
    small = 0 < m <= SMALL and d <= SMALL
    if not small and m < MANY:
        return None
    first, every_token, plan = _constants(n, T)
    own = first + alpha
    keep = every_token.copy()
    keep[own] = False
    others = keep.nonzero()[0]
    tokens = problem.X.reshape(n * T, d)
    left = tokens.take(others, 0)
    if small:
        left = tokens.take(own.take(plan.owner), 0) - left
        found = _small(left, problem.z, plan)
    else:
        left = left.reshape(n, T - 1, d)
        np.subtract(tokens.take(own, 0)[:, None], left, out=left)
        found = large(left, problem.z)
    return None if found is None else _margin(found, others, (n, T))


class Plan(NamedTuple):
    """What is the same for all instances of ``n`` samples with ``m`` rows in all."""

    owner: IntArray  # the sample of each row, (m,)
    pairs: IntArray  # where the samples of two rows meet in an (n, n), (m, m)
    own: IntArray  # where each row meets its own sample in an (n, m) ...
    turned: IntArray  # ... and in an (m, n)
    every: BoolArray  # all rows
    one: Array


def _small(left: Array, z: Array, plan: Plan) -> One | None:
    n, m = len(z), len(left)
    K = left.dot(left.T)
    K *= z.dot(z.T).reshape(-1)[plan.pairs]  # here quicker than take
    squares = K.diagonal().tolist()
    squares.sort()
    least, most = squares[0], squares[-1]
    if not 1e-140 < least <= most < min(1e140, ALIKE * least):  # or NaN
        return None
    solved = exchange(K, plan.one, plan.every)
    if solved is None:
        return None
    found, inside, _, _ = solved
    lam, weights = np.zeros(m), np.zeros((n, m))
    lam[inside] = np.maximum(found, ZERO)
    weights.put(plan.own, lam)
    W = weights.dot(left).T.dot(z)
    margins = left.dot(W.dot(z.T)).reshape(-1)[plan.turned]
    ends = min(margins.tolist()), float(lam.dot(plan.one))
    return certify_one(W, margins, lam, ends, sqrt(most))


@lru_cache(maxsize=64)
def _constants(n: int, T: int) -> tuple[IntArray, BoolArray, Plan]:
    """Where each sample's tokens begin; all tokens; and the plan of small instances."""
    m = n * (T - 1)
    owner, row = np.arange(n).repeat(T - 1), np.arange(m)
    pairs = n * owner[:, None] + owner if m <= SMALL else owner[:0]
    places = owner, pairs, m * owner + row, n * row + owner, np.ones(m, bool), np.ones(m)
    plan = Plan(*(check.seal(each) for each in places))
    return check.seal(np.arange(0, n * T, T)), check.seal(np.ones(n * T, bool)), plan


def _margin(found: One, others: IntArray, shape: tuple[int, int]) -> Margin:
    W, margins, multipliers, norm, gap = found
    size = shape[0] * shape[1]
    by_token, weights = np.zeros(size), np.zeros(size)
    by_token[others] = margins
    weights[others] = multipliers
    return Margin(  # by place, which is quicker than by name
        W,
        by_token.reshape(shape),
        weights.reshape(shape),
        np.array(norm),
        np.array(gap),
        np.array(0.0),
        "optimal",
    )
