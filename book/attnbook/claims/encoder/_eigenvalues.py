"""Lemmas 15 and 16: how small the smallest eigenvalues may be, and how fast attention flattens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, slope
from attnbook.claims.encoder._instances import Network, frobenius, median_exponent, network
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
    e, d = theory.encoder, 5
    drawn = rng.integers(d, size=(instances, d + 1))
    hot = problems.SequenceProblem(np.eye(d)[drawn][:, :, None], np.zeros(drawn.shape))
    model = models.Encoder(10)
    params = model.init(hot, rng)
    phi = e.first_token_features(model, params, hot)
    for c in (0.1, 2.0):
        tail = e.dissimilarity(1.0, c)
        yield at_most(
            f"chance that two one-hot samples are alike, c = {c:g}",
            1.0 / d,
            tail,
            role="correction",
        )
    repeated = np.maximum(e.smallest_eigenvalue(ntk.arc_cosine(phi)[0]), 0.0)
    yield at_least("lambda_0 of d + 1 one-hot samples, in units of eta_V / d_s", repeated, 1e-10)
    model, params, problem = separated(rng, instances)
    phi = e.first_token_features(model, params, problem)
    eta = e.variances("lecun", 50, problem.d)["W_V"]
    least = np.linalg.eigvalsh(problem.X @ problem.X.mT)[..., 0].min(axis=-1)
    alike = np.sqrt(e.similarity(problem.X)) * ~np.eye(problem.n, dtype=bool)
    weight = np.linalg.norm(model.attention(params, problem)[:, :, 0], axis=-1)
    allowed = weight * least[:, None] / (2.0 * (problem.n - 1))
    yield at_most(
        "similarity against what the proof allows", alike.max(axis=-1), allowed, role="correction"
    )
    lambda_0 = eta * e.smallest_eigenvalue(ntk.arc_cosine(phi)[0])
    gram = phi @ phi.mT
    linear = e.lambda_0_lower(phi, eta)
    yield at_least("lambda_0 against its linear part (38)", lambda_0, linear, role="correction")
    yield at_least(
        "lambda_0 against (1/8) eta_V C_lambda / d_s",
        lambda_0,
        e.lemma_15_bound(least, problem.T, eta),
        role="correction",
    )
    yield at_least(
        "linear part against (1/8) eta_V C_lambda / d_s",
        linear,
        e.lemma_15_bound(least, problem.T, eta),
        role="correction",
    )
    yield at_least(
        "smallest eigenvalue against Gershgorin's (39)",
        e.smallest_eigenvalue(gram),
        e.gershgorin(phi),
        role="correction",
    )
    above = e.lambda_0_upper(phi, eta)
    yield at_most("lambda_0 against the mean of the trace (42)", lambda_0, above, role="correction")
    w = np.sqrt(eta) * rng.standard_normal((20_000, problem.d))
    trace = (np.maximum(phi[:8] @ w.T, 0.0) ** 2).mean(axis=(-2, -1))
    yield at_most(
        "mean of the trace, sampled, over (42)",
        np.abs(trace / above[:8] - 1.0),
        0.1,
        role="correction",
    )
    printed = e.lambda_0_upper(phi, eta, printed=True)
    yield at_most("the same over (43)", np.abs(trace / printed[:8] - 1.0), 0.1, role="step")
    model, params, wide = network(rng, instances, n=20, T=5, d=60, width=100)
    phi = e.first_token_features(model, params, wide)
    yield at_least(
        "lambda_0 against its linear part, N=20 d=60",
        e.smallest_eigenvalue(ntk.arc_cosine(phi)[0]),
        e.lambda_0_lower(phi),
        role="correction",
    )


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
        yield at_most(
            f"log chance of failure at the width asked for, delta={delta:g}",
            chance,
            np.log(delta),
            role="correction",
        )
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
        yield at_least(
            f"lambda_min against lambda_* - gap, d_m={width}",
            least,
            star - gaps[-1],
            role="correction",
        )
    yield at_most(
        "exponent of the gap in d_m", median_exponent(sizes, gaps, slope), -0.35, role="correction"
    )
