"""Where relu switches, the gradient jumps: Lemma 14."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal, slope
from attnbook.claims.encoder._errata._pieces import Pieces, frobenius, pieces
from attnlab.checks import Array

GAPS = (1e-2, 1e-4, 1e-6, 1e-8)  # from just before the kink to just behind it


def jump(p: Pieces, q: Pieces) -> tuple[Array, Array]:
    """How much the outputs' gradients differ at two points, and how far apart the points are."""
    change = frobenius(q.gradient[name] - p.gradient[name] for name in p.params)
    return change, frobenius(q.params[name] - p.params[name] for name in p.params)


def beside(p: Pieces, gap: float) -> tuple[Pieces, Pieces]:
    """The same weights but for one neuron's, which stand just before and just behind its kink."""
    u, W_V = p.u[:, 0, 0], p.params["W_V"]
    unit = u / np.linalg.norm(u, axis=-1, keepdims=True)
    level = W_V[:, 0] - (W_V[:, 0] * unit).sum(axis=-1, keepdims=True) * unit
    found = []
    for sign in (1.0, -1.0):
        moved = W_V.copy()
        moved[:, 0] = level + sign * gap / 2.0 * unit
        found.append(Pieces(p.model, {**p.params, "W_V": moved}, p.problem))
    return found[0], found[1]


@measures("encoder.erratum-s3", instances=60)
def s3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, max(instances, 20), n=1, T=2, d=3)
    ratios = []
    for gap in GAPS:
        ahead, behind = beside(p, gap)
        change, moved = jump(ahead, behind)
        ratios.append(float(np.median(change / moved)))
    bound = theory.encoder.c3(ahead.bars(behind))
    yield at_most("change of the gradient over that of the weights", change / moved, bound)
    what = "exponent of that ratio in the distance"
    yield equal(what, slope(GAPS, ratios), -1.0, role="correction", within=0.1)
    turned = frobenius([ahead.gate - behind.gate])
    entered = frobenius([ahead.pre - behind.pre])
    yield at_most("(19): change of relu's derivative", turned, entered, role="step")
    step = {name: 0.05 * rng.standard_normal(array.shape) for name, array in p.params.items()}
    near = p.moved(step)
    kept = (near.gate == p.gate).all(axis=(-3, -2, -1))
    change, moved = jump(p, near)
    bound = theory.encoder.c3(p.bars(near))
    what = "the same ratio where no neuron switches"
    yield at_most(what, (change / moved)[kept], bound[kept], role="correction")
