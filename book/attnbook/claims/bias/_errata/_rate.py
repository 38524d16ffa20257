"""Slips in the rates: where Theorem 1 and Lemma 1 begin to speak, and which side they bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims._registry import erratum
from attnbook.claims.bias._errata._tools import copies
from attnlab import models, optim, problems, svm
from attnlab.checks import Array


def _two_sided(T: int) -> problems.TokenProblem:
    """One sample of T tokens on a line: the first is optimal and the query, the others opposite."""
    X = np.full((1, T, 2), [-1.0, 0.0])
    X[:, 0] = 1.0, 0.0
    return problems.TokenProblem(X, X[:, 0], np.array([1.0]), np.array([1.0, 0.0]))


@erratum(
    "bias.erratum-3",
    "Theorem 5",
    "t_0 must be at least c, not log c, for the norm to have reached R_eps",
    printed=r"$t_0=(10B\Lambda/\sqrt\eta)^3\vee\log c$ with "
    r"$c=\eta T(n\Upsilon(B^2\Lambda)^{-2}T^2\vee5)/(20\Lambda)$; from there on "
    r"$\|W_t\|\ge\eta t/(4B^2\Lambda)\ge R_{\epsilon_t}$, "
    r"$\epsilon_t=80B^2\Lambda^2\log t/(\eta t)$.",
    correct=r"$t_0=(10B\Lambda/\sqrt\eta)^3\vee c$: the proof needs $\log t\ge\log c$. (With (36) "
    r"mended too, $c=\eta T(16n\Upsilon T^2\vee5)/(20\Lambda)$.)",
    page="bias/rate",
    about=("bias.theorem-1", "bias.theorem-5"),
)
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


@erratum(
    "bias.erratum-4",
    "Lemma 8, equation (38)",
    "the attention rate begins at (B^2 Lambda)^4 C, not squared, and a factor log t is dropped",
    printed=r"For $t\ge2^{11}(B^2\Lambda)^2C$: $4\eta B^2\sqrt{2C}\sqrt t-\eta t/(4B^2\Lambda^2)"
    r"\le-\eta t/(8B^2\Lambda^2)$, where $\sqrt{2C/t}$ stands for the distance "
    r"$\sqrt{2C}\log t/\sqrt t$ of Theorem 5.",
    correct=r"$t/(\log t)^2\ge2^{11}(B^2\Lambda)^4C$, with $\log t$ kept in (38).",
    page="bias/growth",
    instances=30,
    about=("bias.lemma-1", "bias.lemma-8"),
)
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


@erratum(
    "bias.erratum-5",
    "Appendix A.4",
    "Theorem 1 bounds the correlation from below; it is A.4 that bounds it from above",
    printed=r'"In Th. 1, we showed an upper bound on the correlation $\langle\bar W_t,\bar W_{mm}'
    r'\rangle\le1-\tilde\Omega(t^{-1})$"; the example is to "derive a lower bound on the '
    r'correlation".',
    correct=r"Theorem 1 is the lower bound $\ge1-C(\log t)^2/t$, and A.4 the upper bound: on its "
    r"example $1-\langle\bar W_t,\bar W_{mm}\rangle\approx(\|W_0\|^2-(W_0^{11})^2)/(2\|W_t\|^2)"
    r"=\Theta(t^{-2})$.",
    page="bias/rate",
    instances=10,
    about=("bias.theorem-1", "bias.theorem-5", "bias.section-a4"),
)
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
