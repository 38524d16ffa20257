"""Assumption 4 and Lemmas 17 to 19: more samples than features, and a matrix of rank d."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, slope, vanishes
from attnbook.claims.encoder._instances import network
from attnlab import models, ntk, problems
from attnlab.checks import Array
from attnlab.problems import SequenceProblem

SAMPLES = np.array([81, 810, 8100])  # from d^4 on, for d = 3


def tokens(rng: np.random.Generator, n: int, d: int, T: int = 1) -> SequenceProblem:
    """Standard Gaussian tokens: for one token, Assumption 4 with the identity."""
    return problems.gaussian_regression(n=n, T=T, d=d, rng=rng)


@measures("encoder.assumption-4")
def assumption_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    many, T, d = 100 * instances, 4, 3
    X = rng.standard_normal((many, T, d))

    def second(x: Array) -> Array:
        return np.asarray(x.T @ x / many)

    sum_, single = second(X.sum(axis=1)), second(X[:, 0])
    margin = 8.0 * np.sqrt(d / many)  # Davidson and Szarek, with a false alarm below 1e-9
    least = float(theory.encoder.smallest_eigenvalue(sum_))
    yield at_least("lambda_min of the sampled second moment", least, T * (1.0 - margin))
    one = float(theory.encoder.smallest_eigenvalue(single))
    yield at_least("the same for a single token", one, least / 2.0, role="step")
    twice = np.concatenate([X, X[..., :1]], axis=-1).sum(axis=1)
    flat = float(theory.encoder.smallest_eigenvalue(second(twice)))
    yield at_least("lambda_min with a repeated feature", flat, 1e-6, role="outside")


@measures("encoder.lemma-17", instances=5)
def lemma_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    for n, d in ((200, 3), (800, 1)):
        found = []
        for _ in range(instances):
            phi = e.mean_tokens(tokens(rng, n, d))
            found.append(np.abs(e.smallest_eigenvalue(phi @ phi.T)))
        claimed = e.lemma_17_printed(n, d) if d == 1 else 1e-6 * n / d
        name = "the printed constants" if d == 1 else "1e-6 N/d"
        yield at_least(
            f"lambda_min of the N x N matrix against {name}, N={n} d={d}", np.array(found), claimed
        )
    smallest, all_ = [], []
    for n in SAMPLES:
        drawn = [e.mean_tokens(tokens(rng, int(n), 3, T=2)) for _ in range(instances)]
        least = np.array([e.smallest_eigenvalue(phi.T @ phi) for phi in drawn])
        smallest.append(float(np.median(least)))
        all_.append(least / n)
    what = "exponent of the d x d matrix's lambda_min in N"
    yield at_least(what, slope(SAMPLES, smallest), 0.9, role="correction")
    # Mean tokens of two Gaussian ones: Sigma = I/2; from N = 810 on it is close.
    what = "lambda_min of the d x d matrix over N, against Sigma/2"
    yield at_least(what, np.stack(all_[1:]), 0.25, role="correction")


@measures("encoder.lemma-18", instances=20)
def lemma_18(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, caps = theory.encoder, []
    for n in SAMPLES:
        drawn = tokens(rng, int(n), 3, T=2)
        model = models.Encoder(50, "lecun", "linear")
        phi = e.first_token_features(model, model.init(drawn, rng), drawn)
        caps.append(float(e.lambda_0_upper(phi, 1.0 / 3.0)))
    yield at_least("exponent in N of a bound above lambda_0", slope(SAMPLES, caps), 0.9)
    drawn = tokens(rng, 200, 3)
    phi = e.mean_tokens(drawn)  # one token: attention is 1
    lambda_0 = e.smallest_eigenvalue(ntk.arc_cosine(phi)[0])
    yield at_least("lambda_0 / eta_V at N=200 d=3, against 0.01 N/d", lambda_0, 0.01 * 200 / 3)
    cap = e.lambda_0_upper(phi)
    yield at_most("the same against the mean of the trace (42)", lambda_0, cap, role="correction")
    for n, d in ((8, 8), (20, 60)):
        model, params, few = network(rng, instances, n=n, T=2, d=d, width=50, scaling="linear")
        phi = e.first_token_features(model, params, few)
        eta = e.variances("lecun", 50, d)["W_V"]
        found = eta * e.smallest_eigenvalue(ntk.arc_cosine(phi)[0])
        what = f"lambda_0 against its linear part, N={n} d={d}"
        yield at_least(what, found, e.lambda_0_lower(phi, eta), role="correction")
        cap = 0.5 * eta * few.T * e.input_bound(few.X) ** 2
        yield at_most(
            f"lambda_0 against eta_V d_s C_x^2 / 2, N={n} d={d}", found, cap, role="correction"
        )


@measures("encoder.lemma-19", instances=20)
def lemma_19(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    share = e.relu_hermite(1) ** 2
    line = tokens(rng, 1000, 1)
    K = ntk.limiting_encoder(line)
    claimed = share * e.lemma_17_printed(1000, 1)
    what = "lambda_min at N=1000 d=1 against the printed constants"
    yield at_least(what, np.abs(e.smallest_eigenvalue(K)), claimed)
    many = e.mean_tokens(tokens(rng, 20_000, 2, T=2))
    trace, claimed = (many**2).sum() / 20_000, share * e.lemma_17_printed(20_000, 2)
    yield at_least("tr K / N at N=20000 d=2 against the same", trace, claimed, role="step")
    K = ntk.limiting_encoder(tokens(rng, 200, 3))
    yield at_least(
        "lambda_min at N=200 d=3 against 0.01 N/d", e.smallest_eigenvalue(K), 0.01 * 200 / 3
    )
    means = []
    for n in SAMPLES:  # the diagonal of the kernel is the squared length of the mean token
        phi = e.mean_tokens(tokens(rng, int(n), 3, T=2))
        means.append(float((phi**2).sum() / n))
    yield at_least("exponent of tr K / N in N", slope(SAMPLES, means), 0.9)
    few = problems.gaussian_regression(n=8, T=3, d=10, trials=instances, rng=rng)
    phi = e.mean_tokens(few)
    for pooling, factor in (("mean", 1.0), ("sum", 9.0)):
        K = ntk.limiting_encoder(few, pooling=pooling)
        least = e.smallest_eigenvalue(K)
        linear = factor * e.lambda_0_lower(phi)
        what = f"lambda_min against its linear part, {pooling} pooling"
        yield at_least(what, least, linear, role="correction")
        trace = np.trace(K, axis1=-2, axis2=-1) / few.n
        yield at_most(
            f"lambda_min against tr K / N, {pooling} pooling", least, trace, role="correction"
        )
        exact = factor * (phi**2).sum(axis=-1).mean(axis=-1)
        what = "distance of tr K / N from the mean squared length"
        yield vanishes(what, np.abs(trace / exact - 1.0), role="correction")
