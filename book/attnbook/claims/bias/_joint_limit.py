r"""The update (10) inside Condition 2, where steps are too small to be taken: two flows instead.

Steps there are $\eta<10^{-9}$. The decoder's way to time $t$ is $s=3\eta t^{1/3}$, that of $W$ is
$\tau=\eta\log t$. While $s$ is of order 1 nothing has happened to $W$, and the decoder follows its
unit gradient at attention 1/2. Once $\tau$ is of order 1, $s$ is $\eta e^{\tau/3\eta}$: the decoder
has the largest margin on the attended tokens, losses are in the ratios of its multipliers, and $W$
follows its unit gradient. Both are exact up to shares of order $\eta$.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnbook.claims.bias._joint_instances import Sizes, wide_gaussian
from attnlab import problems, svm
from attnlab.checks import Array

Push = Callable[[Array], Array]
WAYS = np.arange(1, 1001) / 10.0  # of the decoder, where the loss falls: nine decades of t
TURNS = (12.5, 25.0, 50.0, 100.0, 200.0, 350.0, 400.0)  # ways of W until it is a straight line
STEP = 0.5  # of that flow, over B^2: logits move by less


@dataclass(frozen=True, eq=False)
class Limit:
    """Trials of model DM, their tokens times the label, and both max-margin directions."""

    at: Sizes
    problem: problems.TokenProblem
    best: Array
    rest: Array
    margin: svm.Margin
    decoder: svm.Margin

    @property
    def lead(self) -> Array:
        """Logits of the deciding tokens minus those of the others, for each unit of ``weights``."""
        apart, query = self.best - self.rest, self._query
        return np.asarray((apart @ apart.mT) * (query @ query.mT))

    @property
    def _query(self) -> Array:
        return np.asarray(self.problem.y[..., None] * self.problem.z)

    def matrix(self, weights: Array) -> Array:
        """W whose gradients were taken with these weights, one a sample."""
        apart = (self.best - self.rest) * weights[..., None]
        return np.asarray(apart.mT @ self._query)

    def attended(self, weights: Array) -> Array:
        """What attention makes of each sample's tokens."""
        from scipy.special import expit

        gap = _times(self.lead, weights)[..., None]
        return np.asarray(expit(gap) * self.best + expit(-gap) * self.rest)


def _times(K: Array, a: Array) -> Array:
    return np.asarray((K @ a[..., None])[..., 0])


def _multipliers(seen: Array) -> Array:
    """Of the largest margin, where every sample is at it."""
    found = np.linalg.solve(seen @ seen.mT, np.ones((*seen.shape[:-1], 1)))[..., 0]
    if not (found > 0.0).all():
        raise ArithmeticError("a sample beyond the largest margin")
    return np.asarray(found)


def _unit(K: Array, push: Array) -> Array:
    """Weights whose direction has length 1, K being the inner products of the directions."""
    return np.asarray(push / np.sqrt((push * _times(K, push)).sum(axis=-1))[..., None])


def _onward(push: Push, a: Array, h: float) -> Array:
    """One step of Runge and Kutta."""
    k1 = push(a)
    k2 = push(a + h / 2.0 * k1)
    k3 = push(a + h / 2.0 * k2)
    return np.asarray(a + h / 6.0 * (k1 + 2.0 * (k2 + k3) + push(a + h * k3)))


@functools.lru_cache(maxsize=8)
def limit(seed: int, trials: int, at: Sizes) -> Limit:
    """Model DM and its margins."""
    problem = wide_gaussian(np.random.default_rng(seed), trials, at)
    marked = np.asarray(problem.relevant)
    tokens = problem.y[..., None, None] * problem.X
    best, rest = ((tokens * m[..., None]).sum(axis=-2) for m in (marked, ~marked))
    decoder = svm.decoder_svm(x=best, y=np.ones_like(problem.y))
    margin = svm.attention_svm(problem, tokens=marked.argmax(axis=-1))
    return Limit(at, problem, best, rest, margin, decoder)


@functools.lru_cache(maxsize=8)
def losses(run: Limit) -> tuple[Array, Array]:
    """Minus the log of the loss after each of `WAYS`, and the decoder's margin over the largest.

    Ways first, then trials; the margin, on what is attended, after the last of them.
    """
    seen = (run.best + run.rest) / 2.0
    K, found = seen @ seen.mT, []

    def push(a: Array) -> Array:
        m = _times(K, a)
        return _unit(K, np.exp(m.min(axis=-1, keepdims=True) - m))

    a = np.zeros(seen.shape[:-1])
    for _ in WAYS:
        a = _onward(push, a, float(WAYS[0]))
        m = _times(K, a)
        least = m.min(axis=-1)
        found.append(least - np.log(np.exp(least[..., None] - m).mean(axis=-1)))
    largest = 1.0 / np.sqrt(_multipliers(seen).sum(axis=-1))
    return np.array(found), least / np.sqrt((a * m).sum(axis=-1)) / largest


@functools.lru_cache(maxsize=8)
def turning(run: Limit, ways: tuple[float, ...] = TURNS) -> Array:
    """W after these ways: ways first, then trials."""
    K, apart = run.lead, run.best - run.rest

    def push(a: Array) -> Array:
        seen = run.attended(a)
        lam = _multipliers(seen)
        gaps = (apart @ (seen.mT @ lam[..., None]))[..., 0]
        size = np.abs(_times(K, a))  # of attention times its rest, up to a common factor
        log = -size - 2.0 * np.log1p(np.exp(-size))
        return _unit(K, lam * gaps * np.exp(log - log.max(axis=-1, keepdims=True)))

    a, found = np.zeros(apart.shape[:-1]), []
    for way in np.diff((0.0, *ways)):
        many = int(np.ceil(way * run.at.B**2 / STEP))
        for _ in range(many):
            a = _onward(push, a, way / many)
        found.append(run.matrix(a))
    return np.array(found)
