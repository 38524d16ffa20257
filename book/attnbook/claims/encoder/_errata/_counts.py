"""One feature a token, and how many neurons the theorems ask for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope, vanishes
from attnbook.claims.encoder._instances import Pieces, pieces
from attnlab import ntk, problems
from attnlab.checks import Array
from attnlab.problems import SequenceProblem

ZERO = 1e-8  # a singular value this small, relative to the largest, is rounding


@measures("encoder.erratum-s15", instances=20)
def s15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, n, many = 20, 8, max(instances, 10)
    for number, least in (("2", 1.0), ("3", 1.0)):
        met = two_samples(rng, many)[number]
        yield at_most(f"condition {number}, two samples with d = 1", met, least, strictly=True)
    drawn = problems.gaussian_regression(n=n, T=1, d=T, unit_tokens=True, trials=many, rng=rng)
    long = problems.SequenceProblem(drawn.X.swapaxes(-1, -2), drawn.y)
    p = pieces(rng, many, width=400, problem=long)  # that the ranks are 2 and 3: Identity 4
    values = np.abs(np.linalg.eigvalsh(ntk.empirical(*p.network)))[..., ::-1]
    for k, role in ((2, "step"), (4, "correction")):
        share = values[..., k - 1] / values[..., 0]
        yield vanishes(f"eigenvalue {k} of K over the first", share, within=ZERO, role=role)
    rank = np.linalg.matrix_rank(long.X).max()
    yield at_least("Assumption 2: rank of a sample, d_s = 20, d = 1", rank, T, role="step")
    q = pieces(rng, many, width=400, scaling="linear", problem=drawn)
    bottom = theory.encoder.alpha(q.model, q.params, drawn)
    yield at_least("alpha with d_s = 1, d = 20", bottom, 0.1, role="correction")


@measures("encoder.erratum-s16", instances=1)
def s16(_rng: np.random.Generator, _instances: int) -> Iterator[Measurement]:
    sizes = np.logspace(2, 6, 5)
    sharp, flat, ntk_width = (
        slope(sizes, [theory.encoder.least_width(float(n), init, scaling) for n in sizes])
        for init, scaling in (("lecun", "sqrt"), ("lecun", "linear"), ("ntk", "linear"))
    )
    yield equal("exponent of the width in N, Theorem 1, against Table 3", sharp, 1.0, within=0.1)
    yield equal("the same, against the introduction", sharp, 2.0, role="step", within=0.1)
    yield equal("the same", sharp, 3.0, role="correction", within=0.05)
    what = "exponent for LeCun with tau_0 = 1/d_m"
    yield equal(f"{what}, against Table 3", flat, 1.0, role="step", within=0.1)
    yield equal(what, flat, 2.0, role="correction", within=0.05)
    what = "exponent for NTK with C = sqrt(d_m)"
    yield equal(f"{what}, against Theorem 2", ntk_width, 1.0, role="step", within=0.1)
    yield equal(what, ntk_width, 3.0, role="correction", within=0.05)


def two_samples(rng: np.random.Generator, trials: int) -> dict[str, Array]:
    """Left over right side of both conditions, d = 1, labels that differ by 1e-10 from outputs.

    One sample has positive tokens and one has negative ones, and neurons keep them apart.
    """
    X = rng.uniform(0.5, 1.0, (trials, 2, 5, 1)) * np.array([1.0, -1.0])[:, None, None]
    start = pieces(
        rng, trials, width=50, scaling="linear", problem=SequenceProblem(X, np.zeros((trials, 2)))
    )
    f = start.model.forward(start.params, start.problem)
    near = SequenceProblem(X, f + 1e-10 * rng.standard_normal(f.shape))
    p, e = Pieces(start.model, start.params, near), theory.encoder
    bars, a = e.bars(p.model, near, p.params, radius=1.0), e.alpha(p.model, p.params, near)
    return {"2": e.condition_2(bars, a, p.loss), "3": e.condition_3(bars, a, p.loss)}
