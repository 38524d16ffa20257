"""Slips in the rates: where Theorem 1 and Lemma 1 begin to speak, and which side they bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.bias._errata._tools import copies
from attnlab import models, optim, problems, svm
from attnlab.checks import Array


def _two_sided(T: int) -> problems.TokenProblem:
    """One sample of T tokens on a line: the first is optimal and the query, the others opposite."""
    X = np.full((1, T, 2), [-1.0, 0.0])
    X[:, 0] = 1.0, 0.0
    return problems.TokenProblem(X, X[:, 0], np.array([1.0]), np.array([1.0, 0.0]))


@measures("bias.erratum-3")
def erratum_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    shares: dict[bool, list[float]] = {True: [], False: []}
    logs, B = [], 1.0
    for T in rng.integers(200, 1000, size=3).tolist():
        data = _two_sided(T)
        size = svm.attention_svm(data).norm
        top, low, _ = theory.bias.split_scores(data)
        upsilon, eta = theory.bias.conditioning(top, low), theory.bias.largest_step(B, T)
        for printed, found in shares.items():
            first = theory.bias.waiting_time(
                eta, B, size, n=1, T=T, conditioning=upsilon, printed=printed
            )
            t = first * np.geomspace(1.0, 1e4, instances)
            eps = theory.bias.epsilon_schedule(t, eta, B, size)
            radius = theory.bias.norm_threshold(
                eps, B, size, n=1, T=T, conditioning=upsilon, printed=printed
            )
            found.append(float((theory.bias.norm_bounds(t, eta, B, size)[0] / radius).min()))
            if printed:
                c = theory.bias.waiting_constant(
                    eta, B, size, n=1, T=T, conditioning=upsilon, printed=True
                )
                logs.append((np.log(first), np.log(c)))
    what = "Lemma 5's norm over R_eps, at its smallest for t >= t_0"
    yield at_least(f"{what} with log c", shares[True], 1.0)
    yield at_least(f"{what} with c", shares[False], 1.0, role="correction")
    reached, asked = np.array(logs).T
    yield at_least("log t_0 against log c, as used", reached, asked, role="step")


@measures("bias.erratum-4", instances=30)
def erratum_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.orthogonal(n=4, T=3, d=30, rho=0.2, trials=instances, rng=rng)
    size = svm.attention_svm(drawn).norm
    B = np.linalg.norm(drawn.X, axis=-1).max(axis=(-1, -2))
    reach, eta = B**2 * size, 0.1
    C = theory.bias.rate_constant(eta, B, size, norm=1.0, along=1.0)

    def excess(t: Array, factor: Array | float) -> Array:
        """Left side of (38) over the size of its right side; at most -1 is asked for."""
        push = 4.0 * eta * B**2 * np.sqrt(2.0 * C * t) * factor - eta * t / (4.0 * B**2 * size**2)
        return np.asarray(push / (eta * t / (8.0 * B**2 * size**2)))

    second = theory.bias.saturation_time(C, B, size, printed=True)
    fourth = 2.0**11 * reach**4 * C
    far = theory.bias.saturation_time(C, B, size) * np.geomspace(1.0, 1e6, 40)[:, None]
    what = "left side of (38), in units of the bound it is to reach"
    yield at_most(f"{what}, printed exponent and start", excess(second, 1.0), -1.0)
    yield at_most(
        f"{what}, fourth power without log t", excess(fourth, 1.0), -1.0, role="correction"
    )
    yield at_most(
        f"{what}, fourth power, log t kept", excess(fourth, np.log(fourth)), -1.0, role="step"
    )
    yield at_most(
        f"{what}, t/log^2 t from there", excess(far, np.log(far)), -1.0, role="correction"
    )


@measures("bias.erratum-5", instances=10)
def erratum_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    eta = 0.5
    first = theory.bias.waiting_time(eta, 1.0, 1.0, n=1, T=2, conditioning=np.exp(1.0))
    data = copies(problems.two_token(), instances)
    start = rng.standard_normal((instances, 2, 2))
    size = theory.bias.initial_norm(eta, 1.0, 1.0)
    start *= (size / np.linalg.norm(start, axis=(-2, -1)))[:, None, None]
    run = optim.train(
        models.Attention(loss="exponential"),
        data,
        optim.NormalizedGD(eta),
        steps=10_000,
        params={"W": start},
        record=[{"W": lambda params, _: params["W"]}],
        every="log",
    )
    t, W = run.history["step"], run.history["W"]
    along, rest = W[..., 0, 0], np.square(W).sum(axis=(-2, -1)) - W[..., 0, 0] ** 2
    norm = np.linalg.norm(W, axis=(-2, -1))
    short = theory.bias.two_token_miss(np.maximum(along, 1e-9), rest)  # grows by eta a step
    late = t >= 90
    decay = slope(t[late], np.exp(np.log(short[late]).mean(axis=-1)))
    yield at_least("exponent of 1 - correlation, NGD on the example, t up to 10000", decay, -1.0)
    yield equal("exponent of 1 - correlation", decay, -2.0, within=0.02, role="correction")
    share = short[late] * 2.0 * norm[late] ** 2 / (size**2 - start[:, 0, 0] ** 2)
    yield equal("1 - correlation against A.4", share, 1.0, within=0.01, role="correction")
    at = int(np.searchsorted(t, first))
    C = theory.bias.rate_constant(eta, 1.0, 1.0, norm=norm[at], along=along[at])
    bound = theory.bias.rate_bound(t[at:, None], C)
    yield at_least("correlation against Theorem 1", 1.0 - short[at:], bound, role="correction")
