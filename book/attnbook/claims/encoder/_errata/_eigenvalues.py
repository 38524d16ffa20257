"""Smallest eigenvalues that cannot be what Lemmas 15 to 19 say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._errata._pieces import flip, pieces
from attnlab import models, ntk, problems
from attnlab.checks import Array

SOME = 1e-3  # "at least Theta(...)" asks for some constant: not even this one will do


def smallest(kernel: Array) -> Array:
    """The smallest eigenvalue, through the room below."""
    return theory.encoder.smallest_eigenvalue(kernel)


@measures("encoder.erratum-s4", instances=10)
def s4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    N, d, T = 200, 3, 2  # N >= d^4 = 81
    drawn = problems.gaussian_regression(n=N, T=T, d=d, trials=instances, rng=rng)
    phi = theory.encoder.mean_tokens(drawn)
    gram, share = phi @ flip(phi), N / d
    yield at_least("Lemma 17: lambda_min of Phi Phi' over N/d", smallest(gram) / share, SOME)
    other = smallest(flip(phi) @ phi) / share
    yield at_least("the same of Phi' Phi", other, 0.25, role="correction")
    first = smallest(ntk.arc_cosine(phi)[0])
    yield at_least("Lemma 18: lambda_0 over N/d", first / share, SOME, role="step")
    kernel = smallest(ntk.limiting_encoder(drawn))
    yield at_least("Lemma 19: lambda_min(K) over N/d", kernel / share, SOME, role="step")
    upper = theory.encoder.lambda_0_upper(phi)
    yield at_most("lambda_0 against tr/N", first, upper, role="correction")
    sizes = (100, 1000, 10000)
    means = [_mean_diagonal(rng, many, d) for many in sizes]
    what = "exponent of tr(K)/N, which bounds lambda_min(K), in N"
    yield at_least(what, slope(sizes, means), 0.5, role="step")
    many, two = 20000, 2  # from N > 729 d^4 on the printed constants are positive
    printed = theory.encoder.relu_hermite(1) ** 2 * theory.encoder.lemma_17_printed(many, two)
    what = "tr(K)/N against Lemma 19 with its constants, N = 20000, d = 2"
    yield at_least(what, _mean_diagonal(rng, many, two), printed, role="step")
    few = problems.gaussian_regression(n=8, T=T, d=24, trials=instances, rng=rng)
    mean = theory.encoder.mean_tokens(few)
    lower = theory.encoder.lambda_0_lower(mean)
    yield at_least("for N <= d: lambda_min(Phi Phi')", lower, 0.01, role="correction")
    kernel = smallest(ntk.limiting_encoder(few))
    yield at_least("for N <= d: lambda_min(K)", kernel, lower, role="correction")


def _mean_diagonal(rng: np.random.Generator, N: int, d: int) -> float:
    """tr(K)/N of the limiting kernel, sample by sample."""
    alone = problems.gaussian_regression(n=1, T=2, d=d, trials=N, rng=rng)
    return float(ntk.limiting_encoder(alone).mean())


@measures("encoder.erratum-s5", instances=40)
def s5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, d = 3, 12
    for N, role in ((2 * d, "statement"), (d // 2, "correction")):
        p = pieces(rng, instances, n=N, T=T, d=d)
        phi = theory.encoder.first_token_features(p.model, p.params, p.problem)
        scaled = T * smallest(phi @ flip(phi))
        what = f"lambda_min(Phi Phi') times d_s, N = {N}, d = {d}"
        yield at_least(what, scaled, SOME, role=role)
    lower = theory.encoder.lambda_0_lower(phi)
    first = smallest(ntk.arc_cosine(phi)[0])
    yield at_least(f"lambda_0 at N = {N}", first, lower, role="correction")
    yield from _no_margin(rng, instances)
    yield from _no_union_bound(rng, instances)
    exponents = np.array([1.0, 0.5, 0.1, 0.01, 1e-6])
    for tokens in (1, 10):
        bound = [theory.encoder.theorem_1_failure(1000, 100, tokens, c)[1] for c in exponents]
        what = f"failure probability allowed at the best c, N = 100, d_s = {tokens}"
        yield at_most(what, min(bound), 0.05, role="step")
        yield at_least("the same, against 1/e", bound, np.exp(-1.0), role="correction")
    t = 1.0 / (10.0 * 99.0**2)  # beta uniform over d_s = 10 tokens, C_lambda = 1, N = 100
    exact = theory.encoder.dissimilarity(t, 0.5)
    printed = theory.encoder.theorem_1_failure(1000, 100, 10, 0.5)[1]
    what = "exponent of the failure bound, printed against Assumption 3 at the printed t"
    yield equal(what, np.log(printed), np.log(exact), role="step")
    read = -(99.0**-1.0) * 10.0**-0.5
    yield equal("(N-1)^(-2c) d_s^(-c)", read, np.log(exact), role="correction")


def _no_margin(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """One token a sample, placed as a regular simplex: all that the proof asks for, no margin."""
    N = 5
    turn = np.linalg.qr(rng.standard_normal((instances, N, N)))[0]
    for share, name, role in ((1.0, "C_lambda", "step"), (0.5, "C_lambda / 2", "correction")):
        corner = share / (N - 1)
        values, vectors = np.linalg.eigh((1.0 + corner) * np.eye(N) - corner)
        rows = (vectors * np.sqrt(np.maximum(values, 0.0))) @ turn
        made = problems.SequenceProblem(rows[:, :, None, :], np.zeros((instances, N)))
        model = models.Encoder(6)
        phi = theory.encoder.first_token_features(model, model.init(made, rng), made)
        likeness = theory.encoder.similarity(made.X)[:, ~np.eye(N, dtype=bool)]
        asked = (share / (N - 1)) ** 2  # beta = 1 and C_lambda = 1
        what = f"similarity of the samples against t with {name}"
        yield at_most(what, likeness, asked, role="correction")
        bound = theory.encoder.lemma_15_bound(1.0, 1)
        floor = SOME if role == "step" else bound / theory.encoder.relu_hermite(1) ** 2
        found = smallest(phi @ flip(phi))
        yield at_least(f"their lambda_min(Phi Phi'), t with {name}", found, floor, role=role)
        if role == "correction":
            first = smallest(ntk.arc_cosine(phi)[0])
            yield at_least("their lambda_0", first, bound, role=role)


def _no_union_bound(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """How often one pair, and how often some pair, is more similar than a threshold."""
    N, trials = 8, max(50 * instances, 2000)
    drawn = problems.gaussian_regression(n=N, T=1, d=6, unit_tokens=True, trials=trials, rng=rng)
    likeness = theory.encoder.similarity(drawn.X)
    level = np.quantile(likeness[:, 0, 1], 0.95)
    others = likeness[:, 0, 1:] >= level
    one, some = others.mean(), others.any(axis=-1).mean()
    yield at_most("P(some j is too similar to k) against P(one j)", some, one, role="step")
    what = "the same against N - 1 times P(one j)"
    yield at_most(what, some, (N - 1) * one, role="correction")
