"""Factors lost in print: a norm, a square, a variance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.encoder._errata._pieces import frobenius, nearly_fitted, pieces
from attnlab import ntk, optim


@measures("encoder.erratum-t5", instances=60)
def t5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, max(instances, 10), n=1, T=2).scaled(W_Q=1e-6, W_K=100.0, W_V=100.0, w_O=1000.0)
    slope = p.gradient["W_Q"]
    step = 1e-9 * slope[:, 0] / np.maximum(frobenius([slope]), 1e-300)[:, None, None]
    q = p.moved({"W_Q": step})
    f, g = (r.model.forward(r.params, r.problem)[:, 0] for r in (p, q))
    ratio = np.abs(g - f) / np.maximum(frobenius([step]), 1e-300)
    bars = p.bars(q)
    what = "|f' - f| over the step"
    yield at_most(f"{what}, c_1 as printed", ratio, theory.encoder.c1(bars, printed=True))
    yield at_most(f"{what}, c_1", ratio, theory.encoder.c1(bars), role="correction")


@measures("encoder.erratum-t6", instances=6)
def t6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = nearly_fitted(rng, max(instances, 6), gap=1e-10, size=0.01)
    e, steps = theory.encoder, 50
    bars = e.bars(p.model, p.problem, p.params, radius=1.0)
    a = e.alpha(p.model, p.params, p.problem)
    met = np.minimum(e.condition_2(bars, a, p.loss), e.condition_3(bars, a, p.loss))
    yield at_least("conditions (2) and (3)", met, 1.0, role="correction")
    gamma = 1.0 / float(e.smoothness(bars, p.loss).max())
    run = optim.train(p.model, p.problem, optim.GD(gamma), steps, params=p.params, every=steps)
    taken = -np.expm1(np.log(run.history["loss"][-1] / p.loss) / steps)
    what = "share of the loss taken off a step"
    yield at_least(f"{what}, against gamma alpha/2", taken, gamma * a / 2.0)
    stated = 1.0 - e.rate(a, gamma)
    yield at_least(f"{what}, against gamma alpha^2/2", taken, stated, role="correction")


@measures("encoder.erratum-t7", instances=20)
def t7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    d, draws = 12, max(4000, 40000 // instances)
    p = pieces(rng, instances, n=5, T=3, d=d)
    phi = theory.encoder.first_token_features(p.model, p.params, p.problem)
    w = np.sqrt(1.0 / d) * rng.standard_normal((instances, d, draws))  # LeCun
    squares = (np.maximum(phi @ w, 0.0) ** 2).mean(axis=-1)
    sizes = (phi**2).sum(axis=-1)
    found = (squares / sizes).mean()
    yield equal("E relu^2 over |Phi|^2, simulated", found, 0.5, within=0.1)
    yield equal("the same, times d", d * found, 0.5, role="correction", within=0.1)
    exact = np.diagonal(ntk.arc_cosine(phi)[0], axis1=-2, axis2=-1) / d
    yield equal("the arc-cosine kernel", exact, sizes / (2.0 * d), role="correction")
    bottom = theory.encoder.smallest_eigenvalue(ntk.arc_cosine(phi)[0] / d)
    upper = theory.encoder.lambda_0_upper(phi, 1.0 / d)
    yield at_most("lambda_0 against (42)", bottom, upper, role="correction")
    limit = 0.5 / d * p.problem.T * theory.encoder.input_bound(p.problem.X) ** 2
    yield at_most("(42) against eta d_s C_x^2 / 2", upper, limit, role="correction")
