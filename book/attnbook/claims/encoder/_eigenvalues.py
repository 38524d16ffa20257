"""Lemmas 15 and 16: how small the smallest eigenvalues may be, and how fast attention flattens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, rarely, slope
from attnbook.claims.encoder._instances import Network, frobenius, median_exponent, pieces
from attnlab import models, ntk, problems
from attnlab.checks import Array


def separated(rng: np.random.Generator, trials: int) -> Network:
    """Samples whose tokens are orthonormal but for 0.5 %: as similar as Lemma 15 allows."""
    n, T, d = 4, 3, 14
    basis = np.linalg.qr(rng.standard_normal((trials, d, n * T)))[0].mT
    X = basis.reshape(trials, n, T, d) + 0.005 * rng.standard_normal((trials, n, T, d))
    model = models.Encoder(50, "lecun", "sqrt", "sum")
    problem = problems.SequenceProblem(X, np.zeros((trials, n)))
    return model, model.init(problem, rng), problem


@measures("encoder.lemma-15", instances=60)
def lemma_15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    yield from _more_samples_than_features(rng, instances)
    yield from _separated_samples(rng, instances)
    p = pieces(rng, instances, n=20, T=5, d=60, width=100)
    phi = e.first_token_features(*p.network)
    lambda_0, linear = e.smallest_eigenvalue(ntk.arc_cosine(phi)[0]), e.lambda_0_lower(phi)
    what = "lambda_0 against its linear part, N=20 d=60"
    yield at_least(what, lambda_0, linear, role="correction")
    yield from _no_margin(rng, instances)
    yield from _no_union_bound(rng, instances)
    yield from _allowed_to_fail()


def _more_samples_than_features(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """One-hot samples, which keep Assumption 3 whatever c is, and random ones."""
    e, d = theory.encoder, 5
    drawn = rng.integers(d, size=(instances, d + 1))
    hot = problems.SequenceProblem(np.eye(d)[drawn][:, :, None], np.zeros(drawn.shape))
    for c in (0.1, 2.0):
        what = f"chance that two one-hot samples are alike, c = {c:g}"
        yield at_most(what, 1.0 / d, e.dissimilarity(1.0, c), role="correction")
    phi = e.first_token_features(*pieces(rng, instances, problem=hot).network)
    repeated = np.maximum(e.smallest_eigenvalue(ntk.arc_cosine(phi)[0]), 0.0)
    yield at_least("lambda_0 of d + 1 one-hot samples, in units of eta_V / d_s", repeated, 1e-10)
    p = pieces(rng, instances, n=24, d=12)  # three tokens of twelve features: Assumption 2 holds
    phi = e.first_token_features(*p.network)
    least, what = p.problem.T * e.smallest_eigenvalue(phi @ phi.mT), "N = 2d, random tokens"
    yield at_least(f"lambda_min(Phi Phi') times d_s, {what}", least, 1e-3, role="step")


def _separated_samples(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Both sides of lambda_0, and the steps between, where samples are as the proof wants them."""
    e, (model, params, problem) = theory.encoder, separated(rng, instances)
    phi = e.first_token_features(model, params, problem)
    eta = e.variances("lecun", 50, problem.d)["W_V"]
    C_lambda = np.linalg.eigvalsh(problem.X @ problem.X.mT)[..., 0].min(axis=-1)
    alike = (np.sqrt(e.similarity(problem.X)) * ~np.eye(problem.n, dtype=bool)).max(axis=-1)
    weight = np.linalg.norm(model.attention(params, problem)[:, :, 0], axis=-1)
    allowed = weight * C_lambda[:, None] / (2.0 * (problem.n - 1))
    yield at_most("similarity against what the proof allows", alike, allowed, role="correction")
    lambda_0, linear = (
        eta * e.smallest_eigenvalue(ntk.arc_cosine(phi)[0]),
        e.lambda_0_lower(phi, eta),
    )
    bound, above = e.lemma_15_bound(C_lambda, problem.T, eta), e.lambda_0_upper(phi, eta)
    yield at_least("lambda_0 against its linear part (38)", lambda_0, linear, role="correction")
    what = "against (1/8) eta_V C_lambda / d_s"
    yield at_least(f"lambda_0 {what}", lambda_0, bound, role="correction")
    yield at_least(f"linear part {what}", linear, bound, role="correction")
    least, discs = e.smallest_eigenvalue(phi @ phi.mT), e.gershgorin(phi)
    what = "smallest eigenvalue against Gershgorin's (39)"
    yield at_least(what, least, discs, role="correction")
    yield at_most("lambda_0 against the mean of the trace (42)", lambda_0, above, role="correction")
    w = np.sqrt(eta) * rng.standard_normal((20_000, problem.d))
    trace = (np.maximum(phi[:8] @ w.T, 0.0) ** 2).mean(axis=(-2, -1))
    off = np.abs(trace / above[:8] - 1.0)
    yield at_most("mean of the trace, sampled, over (42)", off, 0.1, role="correction")
    off = np.abs(trace / e.lambda_0_upper(phi, eta, printed=True)[:8] - 1.0)
    yield at_most("the same over (43)", off, 0.1, role="step")
    cap = 0.5 * eta * problem.T * e.input_bound(problem.X) ** 2
    yield at_most("(42) against eta_V d_s C_x^2 / 2", above, cap, role="correction")


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
        floor = 1e-3 if role == "step" else bound / theory.encoder.relu_hermite(1) ** 2
        found = theory.encoder.smallest_eigenvalue(phi @ phi.mT)
        yield at_least(f"their lambda_min(Phi Phi'), t with {name}", found, floor, role=role)
        if role == "correction":
            first = theory.encoder.smallest_eigenvalue(ntk.arc_cosine(phi)[0])
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


def _allowed_to_fail() -> Iterator[Measurement]:
    """The probability of failure that the lemma admits, and the threshold t of its proof."""
    e, exponents = theory.encoder, np.array([1.0, 0.5, 0.1, 0.01, 1e-6])
    for tokens in (1, 10):
        bound = [e.theorem_1_failure(1000, 100, tokens, c)[1] for c in exponents]
        what = f"failure probability allowed at the best c, N = 100, d_s = {tokens}"
        yield at_most(what, min(bound), 0.05, role="step")
        yield at_least("the same, against 1/e", bound, np.exp(-1.0), role="correction")
    t = 1.0 / (10.0 * 99.0**2)  # beta uniform over d_s = 10 tokens, C_lambda = 1, N = 100
    exact = np.log(e.dissimilarity(t, 0.5))
    printed = np.log(e.theorem_1_failure(1000, 100, 10, 0.5)[1])
    what = "exponent of the failure bound, printed against Assumption 3 at the printed t"
    yield equal(what, printed, exact, role="step")
    read = -(99.0**-1.0) * 10.0**-0.5
    yield equal("(N-1)^(-2c) d_s^(-c)", read, exact, role="correction")


def log_failure(widths: Array) -> Array:
    r"""Log of the probability that Lemma 16's gap exceeds $\lambda_*/4$, exactly.

    One sample of two tokens 1 and 0 with one feature, LeCun, $\tau_0=1/d_m$: $\Phi$ is the logistic
    function of $\kappa=\tau_0w_Q^\top w_K$, whose law is known, and $\lambda_*=\frac14$.
    """

    def level(gap: float) -> float:
        phi = np.sqrt(0.25 + gap * 0.25)
        return float(np.log(phi / (1.0 - phi)))

    up, down = level(0.25), -level(-0.25)
    tails = [
        np.logaddexp(*(theory.encoder.product_log_tail(int(m), m * t) for t in (up, down)))
        for m in widths
    ]
    return np.array(tails)


@measures("encoder.lemma-16", instances=20)
def lemma_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, widths = theory.encoder, np.array([100, 300, 1000, 3000, 10000, 30000])
    power = slope(widths, -log_failure(widths))
    yield at_least("exponent of log(1/delta) in d_m", power, 1.9)
    yield at_least("exponent of log(1/delta) in d_m, against 1", power, 0.9, role="correction")
    for delta in (0.1, 1e-3, 1e-9):
        asked = e.lemma_16_width(1, 2, 1, 0.5**0.5, 1.0, 0.25, delta)
        chance = float(log_failure(np.array([np.ceil(asked)]))[0])
        what = f"log chance of failure at the width asked for, delta={delta:g}"
        yield at_most(what, chance, np.log(delta), role="correction")
    n, T, d = 3, 2, 4
    drawn = problems.gaussian_regression(n=n, T=T, d=d, unit_tokens=True, trials=instances, rng=rng)
    limit = e.mean_tokens(drawn)
    star = e.smallest_eigenvalue(limit @ limit.mT)
    gaps, sizes = [], np.array([200, 2000, 20000])
    for width in sizes:
        model = models.Encoder(int(width), "ntk", "linear")
        params = model.init(drawn, rng)
        phi = e.first_token_features(model, params, drawn)
        gaps.append(frobenius(phi @ phi.mT - limit @ limit.mT))
        entry = np.abs(model.tau0 * params["W_Q"].mT @ params["W_K"]).max(axis=(-2, -1))
        bound = e.lemma_16_gap(n, T, d, e.input_bound(drawn.X), entry)
        yield at_most(
            f"gap against its bound by entries, d_m={width}", gaps[-1], bound, role="correction"
        )
        least = e.smallest_eigenvalue(phi @ phi.mT)
        what = f"lambda_min against lambda_* - gap, d_m={width}"
        yield at_least(what, least, star - gaps[-1], role="correction")
    yield at_most(
        "exponent of the gap in d_m", median_exponent(sizes, gaps, slope), -0.35, role="correction"
    )
    yield from _one_long_token(rng, max(2 * instances, 200))
    yield from _root_of_the_logarithm()


def _one_long_token(rng: np.random.Generator, trials: int) -> Iterator[Measurement]:
    """One sample, one feature, all of the length in the first token."""
    T, width, C_x, delta = 1600, 50, 0.03**0.5, 0.1
    x = np.sqrt(T) * C_x  # the first token; the others are 0
    queries, keys = rng.standard_normal((2, trials, width))
    tau0 = width**-0.5
    M = tau0 * (queries * keys).sum(axis=-1)
    phi = x / (1.0 + (T - 1.0) * np.exp(-M * x**2))
    found = np.abs(phi**2 - (x / T) ** 2)
    entry = theory.encoder.logit_entry_bound(tau0, 1.0, width, delta)
    kept = (np.abs(M) <= entry).mean()
    yield at_least("share of trials in which (67) holds", kept, 1.0 - delta, role="correction")
    for printed, role in ((True, "step"), (False, "correction")):
        bound = theory.encoder.lemma_16_gap(1, T, 1, C_x, entry, printed=printed)
        name = "d_s" if printed else "d_s^2"
        what = f"share of trials above the bound with {name}, against delta"
        yield rarely(what, found > bound, delta, role=role)


def _root_of_the_logarithm() -> Iterator[Measurement]:
    """The proof's own bound at the width asked for, with the root and without."""
    N, T, d, eta, star = 3, 1, 4, 1.0, 0.5  # one token: the root alone is at work
    for delta in (1e-2, 1e-8):
        for printed, role in ((True, "step"), (False, "correction")):
            least = theory.encoder.lemma_16_width(N, T, d, 1.0, eta, star, delta, printed=printed)
            width = int(np.ceil(least))
            entry = theory.encoder.logit_entry_bound(1.0 / width, eta, width, delta / (N * d) ** 2)
            gap = theory.encoder.lemma_16_gap(N, T, d, 1.0, entry)
            name = "root of the" if printed else "plain"
            what = f"bound on the gap at the width with the {name} logarithm, delta = {delta:g}"
            yield at_most(what, gap, star / 4.0, role=role)
