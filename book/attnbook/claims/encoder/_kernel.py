"""Lemma 1 and Theorem 2: the limiting kernel, and the width that cancels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, slope
from attnbook.claims.encoder._convergence import WIDTHS, conditions, mean_decay
from attnbook.claims.encoder._instances import frobenius, median_exponent, network
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array

GROWING = np.array([50, 160, 500, 1600, 5000])


def kernels(
    rng: np.random.Generator, drawn: problems.SequenceProblem, pooling: str, scaling: str
) -> list[dict[str, Array]]:
    """Tangent kernels by block at growing widths, NTK start, on the same data."""
    found = []
    for width in GROWING:
        model = models.Encoder(int(width), "ntk", scaling, pooling)
        params = model.init(drawn, rng)
        found.append(ntk.empirical(model, params, drawn, by_group=True))
    return found


@measures("encoder.lemma-1", instances=20)
def lemma_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.gaussian_regression(n=6, T=4, d=5, trials=instances, rng=rng)
    phi = theory.encoder.mean_tokens(drawn)
    relu, step = ntk.arc_cosine(phi)
    products = phi @ phi.mT
    limit = {
        "sum": ntk.limiting_encoder(drawn, pooling="sum"),
        "mean": ntk.limiting_encoder(drawn),
    }
    printed = drawn.T**2 * (relu + step @ products)
    blocks = {"w_O": drawn.T**2 * relu, "W_V": drawn.T**2 * step * products}
    twice = ntk.arc_cosine(drawn.T * phi)  # (63) and (64): both d_s^2 are in there already
    doubled = {"w_O": twice[0], "W_V": twice[1] * drawn.T**2 * products}
    asymmetric = frobenius(printed - printed.mT) / frobenius(printed)
    yield at_most("asymmetry of the printed kernel", asymmetric, 1e-9)
    for pooling in ("sum", "mean"):
        found = kernels(rng, drawn, pooling, "linear")
        totals = [np.asarray(sum(parts.values())) for parts in found]
        far = [frobenius(K - printed) / frobenius(printed) for K in totals]
        exponent = median_exponent(GROWING, far, slope)
        yield at_most(
            f"exponent of the distance to the printed kernel, {pooling} pooling", exponent, -0.35
        )
        near = [frobenius(K - limit[pooling]) / frobenius(limit[pooling]) for K in totals]
        exponent = median_exponent(GROWING, near, slope)
        yield at_most(
            f"exponent of the distance to the corrected kernel, {pooling} pooling",
            exponent,
            -0.35,
            role="correction",
        )
        yield at_most(
            f"median distance at d_m = 5000, {pooling} pooling",
            np.median(near[-1]),
            0.1,
            role="correction",
        )
        if pooling == "sum":
            for name, block in blocks.items():
                apart = [frobenius(parts[name] - block) / frobenius(block) for parts in found]
                yield at_most(
                    f"exponent of the block {name}'s distance",
                    median_exponent(GROWING, apart, slope),
                    -0.35,
                    role="correction",
                )
                large = drawn.T**2 * doubled[name]
                share = frobenius(found[-1][name] - large) / frobenius(large)
                what = f"distance of the block {name} at d_m = 5000 from (63) and (64)"
                yield at_most(what, np.median(share), 0.5, role="step")
            for name in ("W_Q", "W_K"):
                rest = [frobenius(parts[name]) / frobenius(limit["sum"]) for parts in found]
                yield at_most(
                    f"exponent of the block {name}",
                    median_exponent(GROWING, rest, slope),
                    -0.8,
                    role="correction",
                )
    unit = problems.gaussian_regression(n=6, T=4, d=5, unit_tokens=True, trials=instances, rng=rng)
    wide = kernels(rng, unit, "mean", "sqrt")[-1]
    trace = {name: np.trace(K, axis1=-2, axis2=-1) for name, K in wide.items()}
    share = np.median((trace["W_Q"] + trace["W_K"]) / sum(trace.values()))
    yield at_most(
        "share of W_Q and W_K at d_m = 5000, tau_0 = d_m^-1/2", share, 0.02, role="outside"
    )


@measures("encoder.theorem-2", instances=10)
def theorem_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    found = conditions(rng, instances, "ntk", "linear")
    exponent = {key: median_exponent(WIDTHS, found[key], slope) for key in found}
    yield at_least("exponent of alpha^2 in d_m", exponent["alpha^2"], 0.85)
    yield at_least("exponent of (2)'s margin in d_m, constants 1", exponent["(2)"], 0.4)
    yield at_most(
        "size of that exponent between 1e3 and 1e4",
        abs(np.median(np.log(found["(2)"][-1] / found["(2)"][2]) / np.log(10.0))),
        0.3,
        role="correction",
    )
    met = np.median(found["(2)"][-1])
    yield at_most("(2)'s margin at d_m = 1e4, constants 1", met, 1.0, role="correction")
    found = conditions(rng, instances, "ntk", "linear", growing=True)
    for key in ("(2)", "(3)"):
        grows = median_exponent(WIDTHS, found[key], slope)
        yield at_least(
            f"exponent of {key}'s margin, constants sqrt(d_m)", grows, 0.4, role="correction"
        )
    e = theory.encoder
    model, params, drawn = network(
        rng, instances, n=6, T=3, d=24, width=1000, init="ntk", scaling="linear", pooling="mean"
    )
    phi = e.first_token_features(model, params, drawn)
    first = np.maximum(phi @ params["W_V"].mT, 0.0) * model.tau1
    lambda_0 = e.smallest_eigenvalue(ntk.arc_cosine(phi)[0])
    least = np.linalg.svd(first, compute_uv=False)[..., -1] ** 2
    yield at_least(
        "lambda_min of the first token's features", least, lambda_0 / 4.0, role="correction"
    )
    yield at_least("the same with the printed d_m", least, 1000.0 * lambda_0 / 4.0, role="step")
    top = np.linalg.eigvalsh(ntk.empirical(model, params, drawn))[..., -1].max()
    gamma, alpha = 0.5 / float(top), e.alpha(model, params, drawn)
    run = optim.train(model, drawn, optim.GD(gamma), steps=60, params=params, every=20)
    decay = mean_decay(run.history["loss"], np.arange(0, 61, 20))
    promised = 1.0 - e.rate(alpha, gamma)
    yield at_least("decay of the loss a step at width 1000", decay, promised, role="correction")
