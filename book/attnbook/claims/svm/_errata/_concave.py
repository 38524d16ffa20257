"""The concave head that selects several tokens (errata 17 and 18)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnlab import models, optim
from attnlab.checks import Array
from attnlab.problems import TokenProblem


@measures("svm.erratum-17", instances=40)
def erratum_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, curvature = 5, 0.3
    head = models.ConcaveHead(curvature)
    X = np.linalg.qr(rng.standard_normal((instances, T, T)))[0]
    v = rng.standard_normal((instances, T))
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    weight = np.full(instances, curvature)

    def least(tokens: Array) -> Array:
        """Smallest loss -h of mixtures of the rows of orthonormal tokens."""
        s = theory.svm.water_filling((tokens @ v[..., None])[..., 0], weight)
        return -head.value(s[:, None] @ tokens, v)[:, 0]

    transposed = X.swapaxes(-1, -2)
    right = least(X)
    yield equal("left side of (9), with X s, and its right side", least(transposed), right)
    drawn = TokenProblem(X[:, None], v[:, None], np.ones((instances, 1)), v)
    model = models.Attention(head=head, loss="correlation", start="zero")
    run = optim.train(model, drawn, optim.GD(10.0), 2000, record="loss", every=2000)
    trained = run.history["loss"][-1]
    what = "loss that trained attention reaches, and the right side"
    yield equal(what, trained, right, size=1.0, within=1e-3, role="correction")
    yield at_least(what, trained, right - 1e-12, role="correction")


@measures("svm.erratum-18", instances=1000)
def erratum_18(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, tau = 8, 3
    spread = -np.sort(-rng.uniform(size=(instances, T)), axis=-1)
    s = -np.sort(-rng.dirichlet(np.ones(T), size=instances), axis=-1)
    # scores nearly flat above a gap of one, and mass nearly all on the best token
    flat = np.where(np.arange(T) < tau, 1.0, 0.0) + 1e-3 * spread
    rest = rng.uniform(0.005, 0.02, (instances, 1))
    peaked = np.where(np.arange(T) == 0, 1.0 - (T - 1) * rest, rest)
    below = _edge(flat, tau) * rng.uniform(0.8, 0.99, instances)
    lost = _gain(flat, peaked, below, tau, even=False) <= 0.0
    what = "share with L(s_bar) >= L(s) although lambda < tau gap_tau / 2"
    yield at_most(f"{what}, printed baseline", lost.mean(), 0.0)
    top = s[:, :tau]
    what = "sum of squares of the top tau, against S_1^2 / tau"
    yield at_most(what, (top**2).sum(axis=-1), top.sum(axis=-1) ** 2 / tau)
    for name, scores, weights in (("spread", spread, s), ("flat", flat, peaked)):
        below = _edge(scores, tau) * rng.uniform(0.0, 1.0, instances)
        gain = _gain(scores, weights, below, tau, even=True)
        what = f"L(s) - L(s_bar), even baseline, {name} scores"
        yield at_least(what, gain, 0.0, strictly=True, role="correction")


def _edge(scores: Array, tau: int) -> Array:
    """Half of tau times the gap below the top tau scores."""
    return np.asarray(tau * (scores[:, tau - 1] - scores[:, tau]) / 2.0)


def _gain(scores: Array, s: Array, curvature: Array, tau: int, *, even: bool) -> Array:
    """L(s) - L(s_bar) for sorted scores, with the mass beyond tau given to the top tau."""
    top = s[:, :tau]
    total = top.sum(axis=-1, keepdims=True)
    moved = np.zeros_like(s)
    moved[:, :tau] = top + (1.0 - total) / tau if even else top / total

    def value(weights: Array) -> Array:
        found = curvature * (weights**2).sum(axis=-1) - (scores * weights).sum(axis=-1)
        return np.asarray(found)

    return value(s) - value(moved)
