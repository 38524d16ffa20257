"""Slips in the proof of Proposition 1: the rate, the residual, the step size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._errata._pieces import frobenius, nearly_fitted, pieces
from attnlab import ntk, optim

STEPS = 200


@measures("encoder.erratum-s9", instances=6)
def s9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = nearly_fitted(rng, instances, gap=3e-8)
    e = theory.encoder
    bars = e.bars(p.model, p.problem, p.params, radius=1.0)
    a = e.alpha(p.model, p.params, p.problem)
    yield at_least("condition (2)", e.condition_2(bars, a, p.loss), 1.0, role="correction")
    third = e.condition_3(bars, a, p.loss)
    yield at_least("condition (3)", third, 1.0, role="correction")
    gamma = 1.0 / float(e.smoothness(bars, p.loss).max())
    stated = 1.0 - e.rate(a, gamma)
    half = 1.0 - e.rate(a, gamma, kept=0.5)
    yield at_least("share of the loss that alpha/2 takes off a step", half, stated)
    eighths = 1.0 - e.rate(a, gamma, kept=7 / 8)
    what = "share of the loss that 7 alpha/8 takes off a step"
    yield at_least(what, eighths, stated, role="correction")
    drift = e.drift_bound(bars, a, p.loss)
    at_equality = "bound on the drift over alpha, where (3) is an equality"
    yield equal(at_equality, drift * third / a, 1 / 8, role="correction")
    run = optim.train(
        p.model, p.problem, optim.GD(gamma), steps=STEPS, params=p.params, every=STEPS
    )
    F, start = (p.model.features(w, p.problem) for w in (run.params, p.params))
    yield at_most("drift on a run", frobenius([F - start]), drift, role="correction")
    bottom = e.alpha(p.model, run.params, p.problem) / a
    yield at_least("sigma_min over alpha at its end", bottom, 7 / 8, role="correction")
    taken = -np.expm1(np.log(run.history["loss"][-1] / p.loss) / STEPS)
    yield at_least("share of the loss taken off on a run", taken, stated, role="correction")


@measures("encoder.erratum-s10", instances=60)
def s10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    for gap, role in ((0.1, "statement"), (0.1, "correction"), (10.0, "correction")):
        p = nearly_fitted(rng, instances, gap=gap)
        residual = np.linalg.norm(p.model.forward(p.params, p.problem) - p.problem.y, axis=-1)
        bound = 2.0 * p.loss if role == "statement" else np.sqrt(2.0 * p.loss)
        yield at_most(f"residual, labels {gap:g} away", residual, bound, role=role)
    p = nearly_fitted(rng, instances, gap=0.01)
    bars = p.bars()
    base = e.c1(bars) * e.c2(bars)
    share = (e.smoothness(bars, p.loss) - base) / e.c3(bars)
    residual = np.linalg.norm(p.model.forward(p.params, p.problem) - p.problem.y, axis=-1)
    yield at_least("C - c1 c2 over c3, against the residual", share, residual, role="correction")
    what = "2 l, which stands there in print"
    yield at_least(what, 2.0 * p.loss, residual, role="step")


@measures("encoder.erratum-s11", instances=6)
def s11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    sizes, allowed, limits = (4, 40, 400), [], []
    for n in sizes:
        p = pieces(rng, max(instances, 6), n=n, T=2, d=6, width=30)
        bars = theory.encoder.bars(p.model, p.problem, p.params, radius=1.0)
        allowed.append(float(np.median(1.0 / theory.encoder.smoothness(bars, p.loss))))
        top = np.linalg.eigvalsh(ntk.empirical(p.model, p.params, p.problem))[..., -1]
        limits.append(float(np.median(theory.encoder.stability_limit(top, n, "half_sum"))))
    found = slope(sizes, allowed)
    yield at_least("exponent of 1/C in N", found, -0.75)
    yield equal("exponent of 1/C in N", found, -1.0, role="correction", within=0.15)
    what = "exponent of 2/lambda_max(K) in N"
    yield equal(what, slope(sizes, limits), -1.0, role="correction", within=0.2)
