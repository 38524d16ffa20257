"""Tails: sub-exponential variables (Lemmas 2 to 4), spectral norms at the start (5 and 6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, rarely, vanishes
from attnlab.checks import Array

ROOT2 = float(np.sqrt(2.0))
FALSE_ALARM = 1e-8


def inside(alpha: float, many: int) -> Array:
    """Exponents with |lambda| < 1/alpha, up to rounding."""
    positive = np.linspace(0.0, 1.0 - 1e-12, many + 1)[1:] / alpha
    return np.concatenate([-positive, positive])


@measures("encoder.definition-1")
def definition_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    lam = inside(ROOT2, 20)
    exact = np.log(np.exp(0.5 * (lam[:, None] * nodes) ** 2) @ weights)
    yield equal(
        "log mgf of a product of two normals", e.product_log_mgf(lam), exact, within=1e-8, size=1.0
    )
    for eta in rng.uniform(0.2, 5.0, 3):
        lam = inside(ROOT2 * eta, instances)
        bound = e.sub_exponential_log_mgf(lam, ROOT2 * eta)
        yield at_most(
            "log mgf with nu = alpha = sqrt(2) eta", e.product_log_mgf(lam, scale=eta), bound
        )
    lam = inside(ROOT2, instances)
    what = "log mgf with nu = 1"
    yield at_most(what, e.product_log_mgf(lam), e.sub_exponential_log_mgf(lam, 1.0), role="outside")
    lam = inside(1.0, instances)
    yield at_most(
        "log mgf with alpha = 1",
        e.product_log_mgf(lam),
        e.sub_exponential_log_mgf(lam, ROOT2),
        role="outside",
    )


@measures("encoder.lemma-2")
def lemma_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    for s in (0.1, float(rng.uniform(1.0, 3.0)), 20.0):
        nu, alpha = e.scaled_sub_exponential(s, ROOT2, ROOT2)
        lam = inside(alpha, instances)
        exact = e.product_log_mgf(s * lam)  # of s X at lambda, which is that of X at s lambda
        yield at_most(f"log mgf of {s:.3g} X", exact, e.sub_exponential_log_mgf(lam, nu))
        edge = np.array([1.0 / ROOT2]) / s
        yield equal("end of the range of exponents", 1.0 / alpha, edge[0])
    yield at_most(
        "log mgf of 20 X against nu itself",
        e.product_log_mgf(20.0 * lam),
        e.sub_exponential_log_mgf(lam, ROOT2),
        role="outside",
    )


@measures("encoder.lemma-3")
def lemma_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    for terms in (2, 10, 400):
        eta = rng.uniform(0.3, 2.0, terms)
        nu, alpha = e.summed_sub_exponential(ROOT2 * eta, ROOT2 * eta)
        lam = inside(alpha, instances)
        exact = np.sum([e.product_log_mgf(lam, scale=float(k)) for k in eta], axis=0)
        yield at_most(
            f"log mgf of a sum of {terms} products", exact, e.sub_exponential_log_mgf(lam, nu)
        )
    nu, alpha = e.summed_sub_exponential([ROOT2] * 10, [ROOT2] * 10)
    lam = inside(alpha, instances)
    lam = lam[np.abs(lam) < 0.1]
    yield equal(
        "variance of the sum of ten, from the log mgf",
        2.0 * float(e.product_log_mgf(1e-3, terms=10)) / 1e-6,
        nu**2 / 2.0,
        within=1e-4,
    )
    yield at_most(
        "log mgf of ten equal terms",
        e.product_log_mgf(10.0 * lam),
        e.sub_exponential_log_mgf(lam, nu),
        role="outside",
    )


def _log_tail(terms: int, thresholds: Array) -> Array:
    """Log tails of sums of products, some thresholds at a time: each takes 23,000 nodes."""
    parts = np.array_split(thresholds, max(1, len(thresholds) // 500))
    return np.concatenate([theory.encoder.product_log_tail(terms, part) for part in parts])


@measures("encoder.lemma-4")
def lemma_4(_: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    delta = np.geomspace(1e-12, 0.9, instances)
    for terms in (1, 2, 40, 400):
        nu, alpha = e.summed_sub_exponential([ROOT2] * terms, [ROOT2] * terms)
        t = np.array([e.sub_exponential_tail(nu, alpha, float(chance)) for chance in delta])
        exceeded = np.log(2.0) + _log_tail(terms, t)
        yield at_most(f"log P(|X| >= threshold), {terms} products", exceeded, np.log(delta))
    usable = delta[2.0 * np.log(2.0 / delta) <= 400]
    m = np.array([e.logit_entry_bound(1.0, 1.0, 400, float(chance)) for chance in usable])
    exceeded = np.log(2.0) + _log_tail(400, m)
    yield at_most("log P(|entry| >= (67))", exceeded, np.log(usable))
    half = np.log(2.0) + _log_tail(400, 0.5 * m)
    yield at_most("the same at half of (67)", half, np.log(usable), role="outside")
    t = np.array([e.sub_exponential_tail(1.0, 1.0, float(chance)) for chance in delta])
    cauchy = 2.0 / np.pi * np.arctan(1.0 / t)  # not sub-exponential for any parameters
    yield at_most("P(|X| >= threshold) of a Cauchy variable", cauchy, delta, role="outside")


@measures("encoder.lemma-5", instances=400)
def lemma_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    margin = np.sqrt(np.log(1.0 / FALSE_ALARM) / (2.0 * instances))
    for d1, d2 in ((40, 10), (20, 20)):
        values = np.linalg.svd(rng.standard_normal((instances, d1, d2)), compute_uv=False)
        for zeta in (1.5, 2.5):
            low, high = theory.encoder.lemma_5_interval(d1, d2, zeta)
            out = (values[:, 0] > high) | (values[:, -1] < low)
            chance = theory.encoder.lemma_5_failure(zeta)
            yield rarely(f"frequency outside, {d1} x {d2}, zeta={zeta}", out, chance + margin)
        low, high = theory.encoder.lemma_5_interval(d1, d2, 0.0)
        mean = values.mean(axis=0)
        # Gordon: the expectations themselves lie inside with zeta = 0; the tails follow.
        slack = 6.0 / np.sqrt(instances)
        yield at_most(f"mean of the largest, {d1} x {d2}", mean[0], high + slack)
        if d1 > d2:  # else the bound is 0
            yield at_least(f"mean of the smallest, {d1} x {d2}", mean[-1], low - slack)
    tall = np.linalg.svd(rng.standard_normal((instances, 40, 10)), compute_uv=False)
    short = theory.encoder.lemma_5_interval(40, 10, 0.0)[1] - np.sqrt(10.0)
    yield at_most(
        "largest, without sqrt(d2), zeta=0, median", np.median(tall[:, 0]), short, role="outside"
    )


@measures("encoder.lemma-6", instances=200)
def lemma_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for width, d in ((40, 39), (80, 10)):
        W = rng.standard_normal((instances, width, d))
        norm = np.linalg.norm(W, ord=2, axis=(-2, -1))
        yield at_most(f"norm, {width} x {d}", norm, theory.encoder.lemma_6_bound(width))
    yield vanishes(
        "failure probability at d_m = 40",
        theory.encoder.lemma_5_failure(np.sqrt(40.0)),
        within=1e-8,
    )
    flat = rng.standard_normal((min(instances, 20), 10, 160))
    norm = np.linalg.norm(flat, ord=2, axis=(-2, -1))
    yield at_most("norm, 10 x 160", norm, theory.encoder.lemma_6_bound(10), role="outside")
