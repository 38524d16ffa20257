"""Lemma 14: the network's gradient is Lipschitz between kinks of relu, and nowhere across one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._instances import (
    KINDS,
    Pieces,
    distance,
    length,
    moved,
    pieces,
    scalar_networks,
)
from attnlab import problems
from attnlab.checks import Array

GAPS = np.array([1e-2, 1e-4, 1e-6, 1e-8])  # from just before the kink to just behind it


@measures("encoder.lemma-14", instances=60)
def lemma_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    many = max(instances, 60)
    yield from _across_one_kink(rng, instances)
    yield from _between_kinks(rng, instances)
    yield from _rows_of_the_proof(rng, max(instances, 10))
    yield from _bracket(rng, many)


def stretch(p: Pieces, q: Pieces) -> Array:
    """How far the Jacobian of the outputs moves, for each unit that the weights move."""
    gaps = [q.gradient[name] - p.gradient[name] for name in p.params]
    flat = np.concatenate([gap.reshape(*gap.shape[:2], -1) for gap in gaps], axis=-1)
    change = np.linalg.norm(flat, ord=2, axis=(-2, -1))
    return np.asarray(change / distance(p.params, q.params))


def across_a_kink(p: Pieces, gap: float) -> tuple[Pieces, Pieces]:
    """Two points at distance ``gap``, with the first neuron's kink for the first token between."""
    u, W_V = p.u[:, 0, 0], p.params["W_V"]
    unit = u / np.linalg.norm(u, axis=-1, keepdims=True)
    on_kink = W_V[:, 0] - (W_V[:, 0] * unit).sum(axis=-1, keepdims=True) * unit
    sides = []
    for sign in (-0.5, 0.5):
        there = W_V.copy()
        there[:, 0] = on_kink + sign * gap * unit
        sides.append(Pieces(p.model, p.params | {"W_V": there}, p.problem))
    return sides[0], sides[1]


def _across_one_kink(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p, ratios = pieces(rng, instances, n=3, width=20), []
    for gap in GAPS:
        one, two = across_a_kink(p, float(gap))
        ratios.append(stretch(one, two))
    bound = theory.encoder.c3(one.bars(two), printed=True)
    yield at_most("Lipschitz ratio across one kink at distance 1e-8", ratios[-1], bound)
    grows = np.median([slope(GAPS, column) for column in np.stack(ratios).T])
    what = "exponent of that ratio in the distance"
    yield equal(what, grows, -1.0, within=0.05, role="correction")
    turned, entered = length([two.gate - one.gate]), length([two.pre - one.pre])
    yield at_most("(19): change of relu's derivative", turned, entered, role="step")


def _between_kinks(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, shares, seen = theory.encoder, [], 0
    for init, scaling in KINDS:
        for width in (1, 4):
            p = pieces(rng, instances, width=width, init=init, scaling=scaling, unit=False)
            sizes = 10.0 ** rng.uniform(-4.0, -0.5, instances)
            q = Pieces(p.model, moved(p.params, rng, sizes), p.problem)
            alike = (p.gate == q.gate).all(axis=(1, 2, 3))
            shares.append((stretch(p, q) / e.c3(p.bars(q)))[alike])
            seen += int(alike.sum())
    yield at_least("pairs without a kink between", seen, instances, role="correction")
    what = "Lipschitz ratio between kinks over c_3"
    yield at_most(what, np.concatenate(shares), 1.0, role="correction")
    p = Pieces(*scalar_networks(rng, instances)).scaled(w_O=1e-3)
    q = p.scaled(w_O=1.1, W_V=1.001)
    exact = stretch(p, q) / e.c3(p.bars(q))
    yield at_most("Lipschitz ratio of scalar networks over c_3", exact, 1.0, role="correction")
    yield at_least("Lipschitz ratio of scalar networks over c_3", exact, 0.69, role="correction")


def _rows_of_the_proof(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Equation 21: a row may be as long as sqrt(d_s) C_x, and rows may cancel."""
    T = 40
    p = _one_leader(rng, instances, T)
    gradient, Cx = length([p.gradient["W_Q"]]), p.bars().Cx
    summed, apart = _terms(p)
    yield at_most("(21): |sum U h x'|, one long token", gradient, Cx * summed, role="step")
    yield at_most("(21), norms added up, with C_x", gradient, Cx * apart, role="step")
    bound = np.sqrt(T) * Cx * apart
    yield at_most("(21) with sqrt(d_s) C_x", gradient, bound, role="correction")
    p = pieces(rng, max(instances, 60), n=1, T=2, size=3.0)
    gradient, (summed, _) = length([p.gradient["W_Q"]]), _terms(p)
    yield at_most("(21), rows of length C_x", gradient, 3.0 * summed, role="step")


def _terms(p: Pieces) -> tuple[Array, Array]:
    """tau_0 tau_1 times |sum U_i h_i|, and times the sum of |U_i h_i|, of the one sample."""
    terms = p.turned(p.gate)[:, 0] @ p.params["W_K"].mT
    scale = p.model.tau0 * p.model.tau1
    summed = np.linalg.norm(terms.sum(axis=1), axis=-1)
    return scale * summed, scale * np.linalg.norm(terms, axis=-1).sum(axis=-1)


def _one_leader(rng: np.random.Generator, instances: int, T: int) -> Pieces:
    """One long token among short ones, so long that it gives half of its attention to itself."""
    p = pieces(rng, instances, n=1, T=T)
    x = p.X[:, 0, 0]
    parts = (np.einsum("...ij,...j->...i", p.params[name], x) for name in ("W_Q", "W_K"))
    own = p.model.tau0 * np.prod(list(parts), axis=0).sum(axis=-1)
    sizes = np.full((instances, 1, T, 1), 1e-3)
    sizes[:, 0, 0, 0] = np.sqrt(np.log(T - 1) / np.abs(own))
    sign = np.sign(own)[:, None, None]
    long = problems.SequenceProblem(p.X * sizes, p.problem.y)
    return Pieces(p.model, p.params | {"W_Q": sign * p.params["W_Q"]}, long)


def _bracket(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Equations 22 and 24: a factor was dropped, and W_K's bound needs W_Q."""
    p = pieces(rng, instances, n=1, T=2, size=100.0).scaled(W_Q=0.0002, W_K=2.0)
    found, bars, size, z = _turn(p, "W_Q", "W_K", 1e-6, rng)
    yield at_most("(22): |U' - U| over the step", found, size + 3.0 * bars.K * z, role="step")
    bound = size * (1.0 + 3.0 * bars.K * z)
    yield at_most("(22) with its factor", found, bound, role="correction")
    p = pieces(rng, instances, n=1, T=2).scaled(W_Q=3000.0, W_K=1e-6)
    found, bars, size, z = _turn(p, "W_K", "W_Q", 1e-8, rng)
    for norm, name, role in ((bars.K, "K", "step"), (bars.Q, "Q", "correction")):
        what = f"(24)'s |U' - U| over the step, with 3 lambda_{name} z"
        yield at_most(what, found, size * (1.0 + 3.0 * norm * z), role=role)


def _turn(
    p: Pieces, changed: str, name: str, step: float, rng: np.random.Generator
) -> tuple[Array, theory.encoder.Bars, Array, Array]:
    """|U' - U| over a step, U = W X'(diag(beta) - beta beta')X; the norms, C_x^2 d_s and z."""
    q = p.moved({changed: step * rng.standard_normal(p.params[changed].shape)})
    first, second = (r.params[name] @ r.X[:, 0].mT @ r.spread[:, 0, 0] @ r.X[:, 0] for r in (p, q))
    change = np.linalg.norm(second - first, ord=2, axis=(-2, -1))
    bars = p.bars(q)
    size = bars.Cx**2 * bars.T
    return change / distance(p.params, q.params), bars, size, theory.encoder.lemma_14_z(bars)
