"""Comparisons that numbers reverse: scalings, initialisations, and the assumption on the data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._errata._pieces import Pieces, flip, pieces
from attnlab import models, problems
from attnlab.checks import Array


def alpha_squared(p: Pieces) -> Array:
    """The smallest eigenvalue of F_pre F_pre', for each trial."""
    return np.asarray(theory.encoder.alpha(p.model, p.params, p.problem) ** 2)


@measures("encoder.erratum-s12", instances=3)
def s12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    found = np.array([_paper_data(rng) for _ in range(instances)])  # one at a time: 8 MB each
    sharp_alpha, flat_alpha, sharp_beta, flat_beta = found.T
    yield at_least("alpha^2 with d_m^(-1/2), against d_m^(-1)", sharp_alpha, flat_alpha)
    yield at_least("alpha^2 with d_m^(-1)", flat_alpha, sharp_alpha, role="correction")
    yield at_least("mean |beta|^2 with d_m^(-1/2)", sharp_beta, 1.5 * flat_beta, role="correction")
    yield equal("mean |beta|^2 with d_m^(-1)", flat_beta, 0.1, role="correction", within=0.02)


def _paper_data(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Alpha squared and mean |beta|^2 under both scalings, same weights, width 1000."""
    data = problems.gaussian_regression(n=100, T=10, d=100, rng=rng)
    sharp = pieces(rng, 1, width=1000, pooling="mean", problem=data)
    flat = Pieces(models.Encoder(1000, scaling="linear"), sharp.params, data)
    alphas = (float(alpha_squared(p)) for p in (sharp, flat))
    betas = (float((p.beta**2).sum(axis=-1).mean()) for p in (sharp, flat))
    return (*alphas, *betas)  # type: ignore[return-value]


@measures("encoder.erratum-s13", instances=20)
def s13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    width, d, n = 60, 12, 6
    p = pieces(rng, instances, n=n, T=4, d=d, width=width, scheme="ntk")
    for scheme, gain in (("lecun", 1.0), ("he", 2.0)):
        root = np.sqrt(gain / d)
        factors = {"W_Q": root, "W_K": root, "W_V": root, "w_O": np.sqrt(gain / width)}
        same_attention = models.Encoder(width, scheme, p.model.tau0 * d / gain, "sum")
        q = Pieces(same_attention, p.scaled(**factors).params, p.problem)
        ratio = alpha_squared(q) / alpha_squared(p)
        expected = theory.encoder.alpha_ratio(width, d, scheme)
        yield equal(f"change of attention, {scheme}", q.beta, p.beta, size=1.0, role="correction")
        if scheme == "lecun":
            yield equal("alpha^2 of LeCun over that of NTK, against d_m", ratio, width)
        yield equal(f"alpha^2 of {scheme} over that of NTK", ratio, expected, role="correction")
        tops = [
            np.linalg.eigvalsh(F @ flip(F))[..., -1]
            for F in (r.model.features(r.params, r.problem) for r in (q, p))
        ]
        what = f"lambda_max of the w_O block, {scheme} over NTK"
        yield equal(what, tops[0] / tops[1], ratio, role="correction")
    sizes, values = (4, 40, 400), []
    for samples in sizes:
        q = pieces(rng, min(instances, 4), n=samples, T=2, d=12, width=500)
        values.append(float(np.median(alpha_squared(q))))
    yield at_least("exponent of alpha^2 in N", slope(sizes, values), 0.5, role="step")
    yield at_most(
        "exponent of alpha^2 in N, is below 0", slope(sizes, values), 0.0, role="correction"
    )


@measures("encoder.erratum-s14", instances=40)
def s14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, d, n = 10, 100, 20
    exponents = (0.01, 0.1, 1.0, 10.0)
    pairs = np.triu_indices(n, 1)
    for name, unit, mean in (("raw", False, T**2 * d), ("unit", True, T**2 / d)):
        made = problems.gaussian_regression(
            n=n, T=T, d=d, unit_tokens=unit, trials=max(instances // 4, 10), rng=rng
        )
        found = theory.encoder.similarity(made.X)[:, pairs[0], pairs[1]]
        often = (found >= 1.0).mean()
        bound = [float(theory.encoder.dissimilarity(1.0, c)) for c in exponents]
        role = "statement" if unit is False else "step"
        yield at_most(f"P(similarity >= 1), {name} tokens, any c", often, bound, role=role)
        what = f"mean similarity, {name} tokens"
        yield equal(what, found.mean(), mean, role="correction", within=0.1)
        products = made.X[:, :, None] @ flip(made.X)[:, None]
        squares = (products**2).sum(axis=(-2, -1))[:, pairs[0], pairs[1]]
        yield equal("similarity as a squared norm", found, squares, role="correction")
        twice = theory.encoder.similarity(2.0 * made.X)[:, pairs[0], pairs[1]]
        yield equal("similarity of doubled data", twice, found, role="step")
    below, above = (
        np.diff([float(theory.encoder.dissimilarity(t, c)) for c in exponents]) for t in (0.5, 2.0)
    )
    yield at_least("growth of the tail with c at t = 2", above, 0.0, role="step")
    yield at_least("growth of the tail with c at t = 1/2", below, 0.0, role="correction")
