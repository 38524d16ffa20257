"""Lemma 1 and Theorem 2: the limiting kernel, and the width that cancels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, slope, vanishes
from attnbook.claims.encoder._convergence import WIDTHS, conditions, mean_decay, over_samples
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
    printed = drawn.T**2 * (relu + step @ (phi @ phi.mT))
    asymmetric = frobenius(printed - printed.mT) / frobenius(printed)
    yield vanishes("asymmetry of the printed kernel", asymmetric, within=1e-9)
    for pooling, limit in (
        ("sum", ntk.limiting_encoder(drawn, pooling="sum")),
        ("mean", ntk.limiting_encoder(drawn)),
    ):
        found = kernels(rng, drawn, pooling, "linear")
        totals = [np.asarray(sum(parts.values())) for parts in found]
        what = "exponent of the distance to the"
        power = approach(totals, printed)[0]
        yield at_most(f"{what} printed kernel, {pooling} pooling", power, -0.35)
        power, last = approach(totals, limit)
        name = f"{what} corrected kernel, {pooling} pooling"
        yield at_most(name, power, -0.35, role="correction")
        what = f"median distance at d_m = 5000, {pooling} pooling"
        yield at_most(what, last, 0.1, role="correction")
        if pooling == "sum":
            yield from _blocks(drawn, found, limit)
    unit = problems.gaussian_regression(n=6, T=4, d=5, unit_tokens=True, trials=instances, rng=rng)
    wide = kernels(rng, unit, "mean", "sqrt")[-1]
    trace = {name: np.trace(K, axis1=-2, axis2=-1) for name, K in wide.items()}
    share = np.median((trace["W_Q"] + trace["W_K"]) / sum(trace.values()))
    what = "share of W_Q and W_K at d_m = 5000, tau_0 = d_m^-1/2"
    yield at_most(what, share, 0.02, role="outside")


def approach(kernels: list[Array], limit: Array) -> tuple[float, float]:
    """Exponent in the width of the relative distance to a limit; median distance at the end."""
    far = [frobenius(K - limit) / frobenius(limit) for K in kernels]
    return median_exponent(GROWING, far, slope), float(np.median(far[-1]))


def _blocks(
    drawn: problems.SequenceProblem, found: list[dict[str, Array]], limit: Array
) -> Iterator[Measurement]:
    """Sum pooling, block by block; in (63) and (64) the arguments carry d_s^2 once more."""
    phi = theory.encoder.mean_tokens(drawn)
    (relu, step), (large, same) = ntk.arc_cosine(phi), ntk.arc_cosine(drawn.T * phi)
    products = phi @ phi.mT
    for name, block, printed in (
        ("w_O", relu, large),
        ("W_V", step * products, same * drawn.T**2 * products),
    ):
        parts = [kernel[name] for kernel in found]
        power = approach(parts, drawn.T**2 * block)[0]
        yield at_most(f"exponent of the block {name}'s distance", power, -0.35, role="correction")
        far = approach(parts, drawn.T**2 * printed)[1]
        what = f"distance of the block {name} at d_m = 5000 from (63) and (64)"
        yield at_most(what, far, 0.5, role="step")
    for name in ("W_Q", "W_K"):
        rest = [frobenius(kernel[name]) / frobenius(limit) for kernel in found]
        power = median_exponent(GROWING, rest, slope)
        yield at_most(f"exponent of the block {name}", power, -0.8, role="correction")


@measures("encoder.theorem-2", instances=10)
def theorem_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    found = conditions(rng, max(instances, 80), "ntk", "linear")  # starts differ: a median of many
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
    yield at_least("(2)'s margin at d_m = 1e4, constants 1", met, 1.0, role="step")
    found = conditions(rng, instances, "ntk", "linear", growing=True)
    for key in ("(2)", "(3)"):
        grows = median_exponent(WIDTHS, found[key], slope)
        yield at_least(
            f"exponent of {key}'s margin, constants sqrt(d_m)", grows, 0.4, role="correction"
        )
    yield from over_samples(rng, "ntk", "linear", "correction", growing=True)
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
