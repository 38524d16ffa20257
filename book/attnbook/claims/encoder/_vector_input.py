"""Corollary 1: a vector as one token of many features, or as many tokens of one feature."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.encoder._instances import half_sum, network
from attnlab import ntk, optim

ROUNDING = 1e-12


@measures("encoder.corollary-1", instances=4)
def corollary_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    model, params, drawn = network(
        rng, instances, n=20, T=1, d=60, width=200, scaling="linear", pooling="mean"
    )
    top = np.linalg.eigvalsh(ntk.empirical(model, params, drawn))[..., -1]
    gamma = 0.5 * float(e.stability_limit(top, drawn.n, "half_sum").min())
    run = optim.train(model, drawn, optim.GD(gamma), steps=500, params=params, every=500)
    share = run.history["loss"][-1] / run.history["loss"][0]
    yield at_most("one token: loss over its start after 500 steps", share, 1e-6)
    yield at_least("one token: alpha", e.alpha(model, params, drawn), 0.1)
    fcnn = np.maximum(drawn.X[:, :, 0] @ params["W_V"].mT, 0.0) @ params["w_O"][..., None]
    yield equal(
        "one token: output of the two-layer network",
        model.forward(params, drawn),
        fcnn[..., 0],
        size=1.0,
    )
    for scaling in ("linear", "sqrt"):
        for width in (20, 200):
            model, params, drawn = network(
                rng, instances, n=10, T=15, d=1, width=width, scaling=scaling, pooling="mean"
            )
            F = np.linalg.svd(model.features(params, drawn), compute_uv=False)
            name = f"d=1, tau_0 {scaling}, d_m={width}"
            alpha, loss = e.alpha(model, params, drawn), half_sum(model, params, drawn)
            b = e.bars(model, drawn, params, radius=1.0)
            yield at_most(
                f"{name}: alpha over the largest singular value", alpha / F[:, 0], ROUNDING
            )
            for key, value in (
                ("2", e.condition_2(b, alpha, loss)),
                ("3", e.condition_3(b, alpha, loss)),
            ):
                yield at_most(f"{name}: condition {key}", value, 1.0, strictly=True)
            K = np.linalg.eigvalsh(ntk.empirical(model, params, drawn))
            yield at_most(
                f"{name}: fourth eigenvalue of the kernel over the first",
                np.abs(K[:, -4] / K[:, -1]),
                ROUNDING,
            )
    gamma = 0.25 * float(e.stability_limit(K[:, -1], drawn.n, "half_sum").min())
    run = optim.train(model, drawn, optim.GD(gamma), steps=300, params=params, every=300)
    kappa, p, q = e.effective_scalars(model, run.params)
    pair = e.effective_features(kappa, drawn)
    three = (pair[..., 0] * p[:, None] + pair[..., 1] * q[:, None]) / drawn.T
    reached = 2.0 * run.history["loss"][-1] / drawn.n
    yield equal("d=1: output from three numbers", model.forward(run.params, drawn), three, size=1.0)
    floor = e.effective_floor(kappa, drawn)
    yield at_least("d=1: loss after training against the floor at its attention", reached, floor)
    lowest = e.effective_floor(np.linspace(-5.0, 5.0, 41)[:, None], drawn).min(axis=0)
    share = lowest / (drawn.y**2).mean(axis=-1)
    yield at_least("d=1: lowest floor over the labels' mean square", share, 0.02)
    two, start, few = network(rng, 50, n=2, T=5, d=1, width=50, scaling="linear")
    yield at_most("two samples, d=1: alpha", e.alpha(two, start, few), ROUNDING, role="outside")
