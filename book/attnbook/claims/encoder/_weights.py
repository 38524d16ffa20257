"""Lemmas 5 and 6: spectral norms of the weights at the start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most

FALSE_ALARM = 1e-8


@measures("encoder.lemma-5", instances=400)
def lemma_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    margin = np.sqrt(np.log(1.0 / FALSE_ALARM) / (2.0 * instances))
    for d1, d2 in ((40, 10), (20, 20)):
        values = np.linalg.svd(rng.standard_normal((instances, d1, d2)), compute_uv=False)
        for zeta in (1.5, 2.5):
            low, high = theory.encoder.lemma_5_interval(d1, d2, zeta)
            out = ((values[:, 0] > high) | (values[:, -1] < low)).mean()
            chance = theory.encoder.lemma_5_failure(zeta)
            yield at_most(f"frequency outside, {d1} x {d2}, zeta={zeta}", out, chance + margin)
        low, high = theory.encoder.lemma_5_interval(d1, d2, 0.0)
        mean = values.mean(axis=0)
        # Gordon: the expectations themselves lie inside with zeta = 0; the tails follow.
        slack = 6.0 / np.sqrt(instances)
        yield at_most(f"mean of the largest, {d1} x {d2}", mean[0], high + slack)
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
    yield at_most(
        "failure probability at d_m = 40", theory.encoder.lemma_5_failure(np.sqrt(40.0)), 1e-8
    )
    flat = rng.standard_normal((min(instances, 20), 10, 160))
    norm = np.linalg.norm(flat, ord=2, axis=(-2, -1))
    yield at_most("norm, 10 x 160", norm, theory.encoder.lemma_6_bound(10), role="outside")
