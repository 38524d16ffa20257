"""Lemma 14: the network's gradient is Lipschitz between kinks of relu, and nowhere across one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._instances import KINDS, distance, moved, network, scalar_networks
from attnlab import ntk
from attnlab.checks import Array
from attnlab.models import Encoder, Params
from attnlab.problems import SequenceProblem


def jacobian(model: Encoder, params: Params, problem: SequenceProblem) -> Array:
    """All gradients of the outputs side by side, ``(trials, n, p)``."""
    blocks = ntk.jacobian(model, params, problem).values()
    return np.concatenate([block.reshape(*block.shape[:2], -1) for block in blocks], axis=-1)


def gates(model: Encoder, params: Params, problem: SequenceProblem) -> Array:
    """Which neurons are on, for every sample and token."""
    attended = model.attention(params, problem) @ problem.X
    return np.asarray(attended @ params["W_V"].mT[:, None] > 0.0)


def stretch(model: Encoder, one: Params, two: Params, problem: SequenceProblem) -> Array:
    """How far the Jacobian moves, for each unit that the weights move."""
    gap = jacobian(model, two, problem) - jacobian(model, one, problem)
    return np.asarray(np.linalg.norm(gap, ord=2, axis=(-2, -1)) / distance(one, two))


def across_a_kink(
    model: Encoder, params: Params, problem: SequenceProblem, gap: float
) -> tuple[Params, Params]:
    """Two points at distance ``gap``, with the first neuron's kink for the first token between."""
    u = (model.attention(params, problem) @ problem.X)[:, 0, 0]
    unit = u / np.linalg.norm(u, axis=-1, keepdims=True)
    first = params["W_V"][:, 0]
    on_kink = first - (first * unit).sum(axis=-1, keepdims=True) * unit
    sides = []
    for sign in (-0.5, 0.5):
        W = params["W_V"].copy()
        W[:, 0] = on_kink + sign * gap * unit
        sides.append(params | {"W_V": W})
    return sides[0], sides[1]


@measures("encoder.lemma-14", instances=40)
def lemma_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, gaps = theory.encoder, np.array([1e-2, 1e-4, 1e-6])
    model, params, problem = network(rng, instances, n=3, T=3, d=4, width=20)
    ratios, bounds = [], []
    for gap in gaps:
        one, two = across_a_kink(model, params, problem, float(gap))
        ratios.append(stretch(model, one, two, problem))
        bounds.append(e.c3(e.bars(model, problem, one, two), printed=True))
    yield at_most("Lipschitz ratio across one kink at distance 1e-6", ratios[-1], bounds[-1])
    grows = np.median([slope(gaps, column) for column in np.stack(ratios).T])
    yield equal(
        "exponent of that ratio in the distance", grows, -1.0, within=0.05, role="correction"
    )
    shares, seen = [], 0
    for init, scaling in KINDS:
        for width in (1, 4):
            model, params, problem = network(
                rng, instances, n=2, T=3, d=4, width=width, init=init, scaling=scaling, unit=False
            )
            other = moved(params, rng, 10.0 ** rng.uniform(-4.0, -0.5, instances))
            alike = (gates(model, params, problem) == gates(model, other, problem)).all((1, 2, 3))
            bound = e.c3(e.bars(model, problem, params, other))
            shares.append((stretch(model, params, other, problem) / bound)[alike])
            seen += int(alike.sum())
    yield at_least("pairs without a kink between", seen, instances, role="correction")
    yield at_most(
        "Lipschitz ratio between kinks over c_3", np.concatenate(shares), 1.0, role="correction"
    )
    single, start, alone = scalar_networks(rng, instances)
    one = start | {"w_O": 1e-3 * start["w_O"]}
    two = one | {"w_O": 1.1 * one["w_O"], "W_V": 1.001 * one["W_V"]}
    exact = stretch(single, one, two, alone) / e.c3(e.bars(single, alone, one, two))
    yield at_most("Lipschitz ratio of scalar networks over c_3", exact, 1.0, role="correction")
    yield at_least("Lipschitz ratio of scalar networks over c_3", exact, 0.69, role="correction")
