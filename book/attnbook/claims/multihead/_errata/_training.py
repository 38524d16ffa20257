"""Slips of the training analysis: equations 14, 21, 67 and 89, Lemmas 7 to 10."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnlab import curvature, models, problems
from attnlab.checks import Array
from attnlab.models import Params


@measures("multihead.erratum-5", instances=20)
def erratum_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.MultiHead(heads=2)
    drawn = instance.bounded(rng, trials=instances, n=3, T=3, d=2)
    near, turn = instance.heads(rng, drawn, 2), instance.heads(rng, drawn, 2)
    away = {name: 0.3 * part for name, part in turn.items()}
    far = {name: near[name] + away[name] for name in near}
    value, grads = model.value_and_grad(near, drawn)
    inner = sum((grads[name] * away[name]).sum(axis=(-1, -2, -3)) for name in away)
    rest = model.value_and_grad(far, drawn)[0] - value - inner
    half = instance.length(away) ** 2 / 2.0
    lowest = np.min(
        [curvature.hessian(model, p, drawn).extremes[0] for p in instance.segment(near, far, 21)],
        axis=0,
    )
    what = "loss less its linear part, over |theta - theta_k|^2/2, against lambda_min"
    yield at_most(f"{what}, at most", rest / half, lowest)
    yield at_least(f"{what}, at least", rest / half, lowest, role="correction")


@measures("multihead.erratum-7", instances=10)
def erratum_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    H = 4
    drawn = problems.tokenized_mixture(n=10, trials=instances, rng=rng)
    model, R = models.MultiHead(heads=H), instance.longest_token(drawn)
    apart = np.broadcast_to(0.5 * instance.oracle(drawn), (instances, H, drawn.T, drawn.d))
    near = {"U": np.array(apart), "W": np.zeros((instances, H, drawn.d, drawn.d))}
    turn = {name: rng.standard_normal(array.shape) for name, array in near.items()}
    far = {name: near[name] + 1e-5 * turn[name] for name in near}
    points = instance.segment(near, far, 9)
    losses = np.array([model.value_and_grad(p, drawn)[0] for p in points])
    sizes = np.max([instance.longest_head(p) for p in points], axis=0)
    beta2 = theory.multihead.beta2(sizes, T=drawn.T, d=drawn.d, R=R, H=H)
    beta3 = theory.multihead.beta3(sizes, T=drawn.T, d=drawn.d, R=R)
    short = theory.multihead.short_enough(
        instance.length(instance.difference(far, near)), beta3, H=H
    )
    assert (short <= 1.0).all()
    eta = 1.0 / beta2
    after = []
    for point in (near, far):
        grads = model.value_and_grad(point, drawn)[1]
        step = eta[:, None, None, None]
        after.append({name: point[name] - step * grads[name] for name in point})
    ratio = instance.length(instance.difference(*after)) / instance.length(
        instance.difference(near, far)
    )
    small, top = eta * beta3 / np.sqrt(H), losses.max(axis=0)
    ends = losses[0] + losses[-1]
    what = "distance after a step over that before"
    yield at_most(f"{what}, against (21) as printed", ratio, (1.0 + small) * top)
    spread = theory.multihead.expansiveness(top, beta2, beta3, eta=eta, H=H)
    yield at_most(f"{what}, against (21) mended", ratio, spread, role="correction")
    shifted = (1.0 + 4.0 * small / 3.0) * ends
    yield at_most(f"{what}, against (89) as printed", ratio, shifted, role="step")
    shifted = 1.0 + 4.0 * small / 3.0 * ends
    yield at_most(f"{what}, against (89) mended", ratio, shifted, role="correction")


@measures("multihead.erratum-12", instances=4)
def erratum_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    seq = problems.tokenized_mixture(n=50, trials=instances, rng=rng)
    model, R = models.MultiHead(heads=4), instance.longest_token(seq)

    def beta2(params: Params) -> Array:
        size = instance.longest_head(params)
        return theory.multihead.beta2(size, T=seq.T, d=seq.d, R=R, H=4)

    run = runs.descend(model, seq, 1.0, 8)
    iterates = [run.at(k) for k in range(9)]
    ends = np.array([beta2(point) for point in iterates])
    inside = [
        np.max([beta2(point) for point in instance.segment(*step, 9)], axis=0)
        for step in pairwise(iterates)
    ]
    target = beta2({name: np.zeros_like(array) for name, array in iterates[0].items()})
    yield equal("largest beta_2 of a step, target 0", inside, np.maximum(target, ends[:-1]))
    both = np.maximum(ends[1:], ends[:-1])
    yield equal("by its two ends", inside, both, role="correction")

    rho = theory.multihead.rho(1.0, 1.0, T=seq.T, d=seq.d, R=float(R.max()), H=4)
    for pick, role in ((np.maximum, "statement"), (np.minimum, "correction")):
        eta = float(pick(1.0, 1.0 / rho))
        run = runs.descend(model, seq, eta, 8)
        slopes = [model.value_and_grad(run.at(k), seq)[1] for k in range(8)]
        bound = -0.5 * np.array([instance.length(g) for g in slopes]) ** 2
        change = np.diff(run.losses, axis=0) / eta
        yield at_most(f"change of the loss / eta, eta={eta:.3g}", change, bound, role=role)
