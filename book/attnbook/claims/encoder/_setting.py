"""Assumptions 1 to 3: bounded, of full row rank, dissimilar."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnlab import problems
from attnlab.checks import Array

FALSE_ALARM = 1e-8


@measures("encoder.assumption-1")
def assumption_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.gaussian_regression(n=5, T=4, d=6, trials=instances, rng=rng)
    Cx = theory.encoder.input_bound(drawn.X)
    rows = np.linalg.norm(drawn.X, axis=-1).max(axis=(-2, -1))
    largest = np.linalg.norm(drawn.X, axis=(-2, -1)).max(axis=-1)
    yield equal("largest Frobenius norm over sqrt(d_s) C_x", largest, np.sqrt(drawn.T) * Cx)
    spectral = np.linalg.norm(drawn.X, ord=2, axis=(-2, -1)).max(axis=-1)
    yield at_most("spectral norm", spectral, np.sqrt(drawn.T) * Cx)
    yield at_most("longest row", rows, np.sqrt(drawn.T) * Cx)
    unit = problems.gaussian_regression(n=5, T=4, d=6, unit_tokens=True, trials=instances, rng=rng)
    yield equal("C_x of unit tokens", theory.encoder.input_bound(unit.X), 1.0)
    yield at_most("longest row against C_x itself", rows, Cx, role="step")
    double = theory.encoder.input_bound(2.0 * unit.X)
    yield at_most("C_x of tokens of length 2, against 1", double, 1.0, role="outside")


def sentences(rng: np.random.Generator, many: int, T: int, d: int) -> Array:
    """Gaussian tokens, ``(many, T, d)``."""
    return rng.standard_normal((many, T, d))


@measures("encoder.assumption-2")
def assumption_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for T, d in ((4, 4), (4, 10)):
        X = sentences(rng, instances, T, d)
        smallest = np.linalg.svd(X, compute_uv=False)[:, -1] / np.linalg.norm(X, axis=(-2, -1))
        yield at_least(f"smallest singular value, d_s={T} d={d}", smallest, 0.0, strictly=True)
        rank = np.linalg.matrix_rank(X)
        yield equal(f"rank, d_s={T} d={d}", rank, T)
    X = rng.standard_normal((instances, 100, 1))
    rank = np.linalg.matrix_rank(X)
    yield at_least("rank with d_s=100 and d=1, against d_s", rank, 100, role="outside")


@measures("encoder.assumption-3", instances=200)
def assumption_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    many = 100 * instances
    pairs = rng.standard_normal((many, 2, 1, 1))
    found = theory.encoder.similarity(pairs)[:, 0, 1]
    levels = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
    frequency = (found[:, None] >= levels).mean(axis=0)
    margin = np.sqrt(np.log(2.0 / FALSE_ALARM) / (2.0 * many))  # Dvoretzky-Kiefer-Wolfowitz
    tail = theory.encoder.dissimilarity(levels, 0.5)
    yield at_most("frequency for one Gaussian number, c = 1/2", frequency, tail + margin)
    yield at_least("smallest similarity: never negative", found, 0.0)
    hot = problems.SequenceProblem(np.eye(5)[:, None, :], np.zeros(5))
    same = theory.encoder.similarity(hot.X).mean()  # two uniform draws from the five coincide
    for c in (0.01, 1.0, 5.0):
        tail = theory.encoder.dissimilarity(1.0, c)
        yield at_most(f"one-hot tokens, P(similarity >= 1), c = {c:g}", same, tail)
    for unit, scale in ((False, 1.0e4), (True, 1.0)):
        own = problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=unit, rng=rng)
        s = theory.encoder.similarity(own.X)[~np.eye(100, dtype=bool)]
        tokens = "unit" if unit else "raw"
        yield equal(f"mean similarity of the paper's data, {tokens}", s.mean(), scale, within=0.1)
        often = (s >= 1.0).mean()
        tail = theory.encoder.dissimilarity(1.0, 7.0)  # 1/e at t = 1, whatever c
        yield at_most(f"P(similarity >= 1), {tokens}, any c", often, tail, role="outside")
    own = problems.gaussian_regression(n=200, T=10, d=100, unit_tokens=True, trials=20, rng=rng)
    pairs = theory.encoder.similarity(0.5 * own.X)[:, *np.triu_indices(200, 1)]
    kept = 1.0 - float(theory.encoder.dissimilarity(0.03, 3.0))
    what = "P(similarity < 0.03), tokens of length 1/2, against c = 3"
    yield at_least(what, (pairs < 0.03).mean(), kept, role="outside")
    two = problems.gaussian_regression(n=2, T=2, d=30, unit_tokens=True, trials=100_000, rng=rng)
    pairs = theory.encoder.similarity(two.X)[:, 0, 1]
    power = float(np.log10((pairs < 1.0 / 30).sum() / max(int((pairs < 0.1 / 30).sum()), 1)))
    yield equal("exponent of P(similarity < t), two tokens", power, 2.0, within=0.2)


@measures("encoder.erratum-s14", instances=40)
def too_often_similar(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Assumption 3 at t = 1, where its tail is 1/e whatever the exponent."""
    e, exponents, pairs = theory.encoder, (0.01, 0.1, 1.0, 10.0), np.triu_indices(20, 1)
    made = problems.gaussian_regression(n=20, T=10, d=100, trials=max(instances // 4, 10), rng=rng)
    found = e.similarity(made.X)[:, *pairs]
    bound = [float(e.dissimilarity(1.0, c)) for c in exponents]
    yield at_most("P(similarity >= 1), raw tokens, any c", (found >= 1.0).mean(), bound)
    squares = ((made.X[:, :, None] @ made.X.mT[:, None]) ** 2).sum(axis=(-2, -1))[:, *pairs]
    yield equal("similarity as a squared norm", found, squares, role="correction")
    twice = e.similarity(2.0 * made.X)[:, *pairs]
    yield equal("similarity of doubled data", twice, 16.0 * found, role="correction")
    below, above = (np.diff([float(e.dissimilarity(t, c)) for c in exponents]) for t in (0.5, 2.0))
    yield at_least("growth of the tail with c at t = 2", above, 0.0, role="step")
    yield at_least("growth of the tail with c at t = 1/2", below, 0.0, role="correction")
