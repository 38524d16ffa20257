"""Regularization paths and their solution sets (errata 19, 20, 22 and 23).

Number 21 was withdrawn: Lemma 15 maps to products, and is true as printed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.svm._errata._tools import least_margin, norm, rows
from attnlab import models, problems, svm
from attnlab.checks import Array

RADII = (10.0, 100.0, 1000.0)


@measures("svm.erratum-19", instances=40)
def erratum_19(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    outputs = 3
    drawn = problems.sequence(n=2, T=outputs, d=4, trials=instances, rng=rng)
    params = {name: rng.standard_normal((instances, 4, 2)) for name in ("K", "Q")}
    W = params["K"] @ params["Q"].swapaxes(-1, -2)
    whole = outputs * models.Attention().value_and_grad({"W": W}, drawn)[0]  # (SERM-W)
    model = models.Attention(factors=2)
    parts = np.array(
        [
            model.value_and_grad(params, rows(drawn, slice(k, None, outputs)))[0]
            for k in range(outputs)
        ]
    )
    yield equal("L(K, Q) with one k, and L(K Q^T)", parts, whole)
    yield equal("L(K, Q) summed over k, and L(K Q^T)", parts.sum(axis=0), whole, role="correction")


@measures("svm.erratum-20", instances=60)
def erratum_20(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, d = 2, 5
    m = d
    drawn = problems.sphere(n=n, T=4, d=d, trials=instances, rng=rng)
    found = svm.attention_svm(drawn)
    yield equal(f"rank of the solution, and m = {m}", found.rank, float(m))
    yield at_most(f"rank of the solution, against m = {m}", found.rank, m, role="correction")
    U, values, Vt = np.linalg.svd(found.W)
    values = np.maximum(values, 1e-3 * values[:, :1])  # full rank, and hardly another matrix
    near = (U * values[:, None, :]) @ Vt
    near = near / least_margin(drawn, near, drawn.optimal)[:, None, None]
    rank = np.linalg.matrix_rank(near)
    yield equal("rank of feasible matrices close by", rank, float(m), role="correction")
    excess = norm(near) / found.norm
    yield at_least("their norm over the least", excess, 1.0, strictly=True, role="correction")
    yield at_most("their norm over the least", excess, 1.01, role="correction")


@measures("svm.erratum-22", instances=20)
def erratum_22(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.1, trials=2 * instances + 10, rng=rng)
    drawn = drawn.trial(svm.attention_svm(drawn).norm < 6.0)
    nuclear = svm.attention_svm(drawn, norm="nuc")
    goal = nuclear.W / nuclear.norm[:, None, None]
    R = np.array(RADII)[:, None, None, None]

    def distance(factors: int | None) -> Array:
        """Of a path from the nuclear direction; W's own path goes to another one."""
        path = svm.regularization_path(models.Attention(factors=factors), drawn, RADII, rng=rng)
        size = np.linalg.norm(path.W, "nuc", axis=(-2, -1))[..., None, None] if not factors else R
        return norm(path.W / size - goal)

    wrong, right = distance(None), distance(4)
    wrong = wrong[:, wrong[-1] > 0.1]
    settled = np.abs(wrong[-1] - wrong[-2]) < 0.05
    what = "share of paths to another direction that"
    yield at_least(f"{what} a limit without a value excludes", 1.0 - settled.mean(), 1.0)
    excluded = (wrong[-1] > 0.05).mean()
    yield at_least(f"{what} the value 0 excludes", excluded, 1.0, role="correction")
    yield at_most("distance of K Q^T / R at R = 1000", right[-1], 0.05, role="correction")
    power = slope(RADII, right.mean(axis=1))
    yield at_most("power of R in its mean", power, -0.5, role="correction")


@measures("svm.erratum-23", instances=20)
def erratum_23(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.1, trials=instances, rng=rng)
    path = svm.regularization_path(models.Attention(), drawn, RADII, tokens=drawn.optimal)
    mm = svm.attention_svm(drawn)
    far = RADII[-1] / mm.norm[:, None, None]  # R Xi
    minimum = np.broadcast_to(path.loss[-1][:, None, None], mm.W.shape)
    for name, found, role in (
        ("the minimum (a number, repeated in a matrix)", minimum, "statement"),
        ("the minimiser", path.W[-1], "correction"),
    ):
        distance = norm(found / far - mm.W) / mm.norm
        what = f"distance of {name} over R Xi from W_mm, at R = 1000"
        yield at_most(what, distance, 0.05, role=role)
