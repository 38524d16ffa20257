"""The radii of Proposition 1 and of Lemmas 11 and 12 where their proofs' estimates are equalities.

A radius solves the last inequality of its proof with equality, and a check that only asks whether a
radius is long enough never sees one that is too long, or one that other estimates leave room for.
So these instances attain the estimates: attention and gradients are measured at the radius, and
compared with what the proof needs there, from both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, equal
from attnbook.claims.svm import _cases as cases
from attnlab import models, problems
from attnlab.checks import Array

UNIT_SLOPE = models.Attention(loss="correlation")


class Alike(NamedTuple):
    r"""Samples in each of which all tokens but the optimal one coincide.

    Keys differ along $e_0$ only and queries are orthogonal, so that $W^{mm}$ is known and all
    margins of `spread` are the same. ``gaps`` are the score gaps, one a sample.
    """

    problem: problems.TokenProblem
    W_mm: Array
    gaps: Array
    reach: float  # A of (53)

    @property
    def ratio(self) -> float:
        r"""$\Gamma/\gamma^{gap}_{\min}$."""
        return float(self.gaps.max() / self.gaps.min())

    def spread(self, mu: float, length: float) -> Array:
        r"""A matrix of this length whose margins are all $\mu\Theta$ times its length."""
        beside = np.zeros_like(self.W_mm)
        beside[1, 0] = 1.0  # no key has this feature
        return np.asarray(length * (mu * cases.unit(self.W_mm) + np.sqrt(1.0 - mu**2) * beside))

    def rest(self, W: Array) -> float:
        r"""$Te^{-\text{margin}}$, with which the proofs bound $1-s$; measured by the attention."""
        s = UNIT_SLOPE.attention({"W": W}, self.problem)[:, 0]
        return float(((1.0 - s) / s).max() * self.problem.T / (self.problem.T - 1.0))


def alike(rng: np.random.Generator, n: int, T: int) -> Alike:
    """Samples as in `Alike`, with features, queries and gaps of random lengths."""
    longest, queries = rng.uniform(0.4, 3.0, n), rng.uniform(0.5, 2.0, n)
    X = np.zeros((n, T, n + 1))
    X[:, 0, 0], X[:, 1:, 0] = longest / 2.0, -longest[:, None] / 2.0
    z = np.zeros((n, n + 1))
    z[np.arange(n), 1 + np.arange(n)] = queries
    v = np.zeros(n + 1)
    v[0] = rng.uniform(0.5, 2.0)
    W_mm = np.zeros((n + 1, n + 1))
    W_mm[0, 1:] = 1.0 / (longest * queries)
    drawn = cases.problem(X, z, np.ones(n), v)
    reach = float((longest * queries).max() * np.linalg.norm(W_mm))
    return Alike(drawn, W_mm, v[0] * longest, reach)


def proposition_1(rng: np.random.Generator) -> Iterator[Measurement]:
    """N of the turning radius, and the length of the first step of Theorem 6."""
    shares, lost = [], []
    for n, T in ((2, 3), (3, 6)):
        found = alike(rng, n, T)
        p, r = found.problem, float(rng.uniform(1.5, 4.0))
        size = float(np.linalg.norm(found.W_mm))
        pi, mu = rng.uniform(0.2, 0.8, 2)
        late = float(theory.svm.turning_radius(p, found.W_mm, pi, r))
        shares.append(np.exp(pi * late / size) / (r * _terms(found)))
        first = float(theory.svm.first_step_radius(p, found.W_mm, mu, r))
        # all attention but the optimal token's, (T - 1) e^(-margin), times M Gamma
        most = found.rest(found.spread(mu, first)) * (T - 1.0) / T * found.gaps.max()
        lost.append(most / theory.svm.safe_excess(p, 1.0 / r))
    what = "N of the turning radius, over (M/m) n(T-1) max c / min c where c takes both its bounds"
    yield equal(what, shares, 1.0)
    what = "score lost after the least first step as the proof bounds it, over the safe excess"
    yield equal(what, lost, 1.0)


def _terms(found: Alike) -> float:
    r"""$n(T-1)\max c/\min c$ of the proof of Proposition 1, from a gradient at its level.

    The sample with the least gap gives half of its attention to its optimal token and all others
    nearly all, so that $c$ takes both of its bounds; the loss has one slope.
    """
    p, least = found.problem, int(found.gaps.argmin())
    F = theory.svm.features(p)[:, 1]  # of a sample all are the same
    leads = np.where(np.arange(p.n) == least, np.log(p.T - 1.0), 30.0)
    W = (leads[:, None, None] * F / cases.inner(F, F)[:, None, None]).sum(axis=0)
    down, _ = cases.downhill(UNIT_SLOPE, p, W)
    pushes = cases.inner(down, F) / cases.inner(F, F)  # of T - 1 tokens together
    c = pushes * np.exp(leads) / (p.T - 1.0)
    return float(c.size * (p.T - 1.0) * c.max() / c.min())


def lemma_11(rng: np.random.Generator) -> Iterator[Measurement]:
    """Both radii, each where it is the larger one."""
    near, far = [], []
    for n, T in ((2, 3), (3, 6)):
        found = alike(rng, n, T)
        p, pi, r = found.problem, float(rng.uniform(0.3, 0.9)), float(rng.uniform(1.5, 4.0))
        A, nu = found.reach, pi**2 / (64.0 * found.reach**2)
        for mu, margin in ((nu / 4.0, nu / 4.0), (0.9, nu)):
            R = float(theory.svm.lemma_11_radius(p, found.W_mm, mu, pi, r))
            rest = found.rest(found.spread(margin, R))
            if mu < nu:  # 6 Gamma A (1 - s)^2 against (pi/2) (1 - s) gap
                near.append(6.0 * A * found.ratio * rest / (0.5 * pi))
            else:  # 2 Gamma A of the far tokens, 2 n r times, against (pi/2) gap
                far.append(2.0 * n * r * 2.0 * A * found.ratio * rest / (0.5 * pi))
    yield equal("radius (51): 6 Gamma A (1-s)^2 over half of pi times the gap", near, 1.0)
    yield equal("the second radius: all tokens that are not nearest, over the same", far, 1.0)


def lemma_12(rng: np.random.Generator) -> Iterator[Measurement]:
    """The radius of (59)."""
    shares = []
    for n, T in ((2, 3), (3, 6)):
        found, mu = alike(rng, n, T), float(rng.uniform(0.2, 0.8))
        R = float(theory.svm.lemma_12_radius(found.problem, found.W_mm, mu))
        rest = found.rest(found.spread(mu, R))
        shares.append(2.0 * found.reach * found.ratio * rest / (0.5 * mu))
    yield equal("radius (59): 2 Gamma A (1-s)^2 over half of mu times the gap", shares, 1.0)
