"""Slips about heads after the first phase and about margins: Sections 5.3 and 7, Appendices D, E.

The paper's W has the query on the left; here, as in the library, the key stands left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead._expressivity import left_over
from attnlab import models, ntk
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


def _mixture(rng: np.random.Generator, *, Z: float = 0.0, **given: Any) -> SequenceProblem:
    """DM1 as Assumption 3 has it, with the same bound Z for both kinds of noise."""
    return instance.mixture(rng, Z_mu=Z, Z_nu=Z, **given)


def _W_star(problem: SequenceProblem) -> Array:
    return theory.multihead.W_star(instance.patterns(problem))


def _head_gradients(problem: SequenceProblem, U: Array) -> tuple[Array, Array]:
    r"""$\nabla_U\Phi$ and $\nabla_W\Phi$ of single heads ``U (H, T, d)`` at W = 0.

    Shapes ``(..., n, H, T, d)`` and ``(..., n, H, d, d)``.
    """
    H, _, d = U.shape
    params = {"U": U, "W": np.zeros((H, d, d))}
    found = ntk.jacobian(models.MultiHead(heads=H), params, problem)
    return found["U"] * np.sqrt(H), found["W"] * np.sqrt(H)


def _weights_margin(problem: SequenceProblem, U: Array) -> Array:
    r"""$y\langle\nabla_W\Phi,W_\star/\|W_\star\|\rangle$ of every sample and head."""
    W = _W_star(problem)
    _, grads = _head_gradients(problem, U)
    inner: Array = (grads * (W / np.linalg.norm(W))).sum(axis=(-1, -2))
    return problem.y[..., None] * inner


def _saturated(problem: SequenceProblem, Gamma: ArrayLike = 1.0) -> Params:
    """One head with U_opt and Gamma W_opt."""
    return theory.multihead.theta_opt(instance.patterns(problem), float(np.asarray(Gamma)))


def _saturated_margin(problem: SequenceProblem, Gamma: ArrayLike = 1.0) -> Array:
    r"""$y\Phi$ of that head, for each sample."""
    return np.asarray(problem.y * instance.ONE.forward(_saturated(problem, Gamma), problem))


@measures("multihead.erratum-16", instances=200)
def erratum_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    seq, zeta = _mixture(rng, n=instances), 0.1
    oracle = theory.multihead.U_star(instance.patterns(seq))
    whole, flat = theory.multihead.gamma_star(zeta=zeta), theory.multihead.gamma_lin(zeta=zeta)

    def margin(draws: Array, share: float) -> Array:
        """Mean over the draws of sign(alpha) times the margin of a head alpha * share * U_star."""
        heads = draws[:, None, None] * share * oracle
        return np.asarray((_weights_margin(seq, heads) * np.sign(draws)).mean(axis=-1))

    signs, even = np.array([1.0, -1.0]), np.linspace(-0.95, 0.95, 20)
    yield equal("weights' part, zeta/2, signs", margin(signs, zeta / 2.0), whole - flat)
    for draws, part in ((signs, 4.0), (even, 2.0)):
        what = f"weights' part, zeta/{part:g}, {len(draws)} values of alpha"
        yield equal(what, margin(draws, zeta / part), whole - flat, role="correction")
    yield equal("gamma_star at S=2", whole, 0.594183, within=1e-6, role="correction")


@measures("multihead.erratum-17", instances=20)
def erratum_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    seq = _mixture(rng, n=30, T=10, Z=0.2, trials=instances)
    model = models.MultiHead(heads=3)
    grads = model.value_and_grad(model.init(seq), seq)[1]["U"]
    slopes, _ = _head_gradients(seq, np.zeros((3, 10, 4)))
    mean = (seq.y[..., None, None, None] * slopes).mean(axis=1) / (2.0 * np.sqrt(3.0))
    ratio = (grads * mean).sum(axis=(-1, -2)) / (mean * mean).sum(axis=(-1, -2))
    yield equal("gradient / printed gradient", ratio, 1.0)
    yield equal("gradient / printed gradient", ratio, -1.0, role="correction")


@measures("multihead.erratum-21", instances=50)
def erratum_21(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    zeta, crossing = 0.1, float(theory.multihead.crossing())
    signs = np.array([1.0, -1.0])
    for S, role in ((10.0, "statement"), (crossing, "correction"), (5.0, "correction")):
        seq = _mixture(rng, n=instances, S=S)
        oracle = theory.multihead.U_star(instance.patterns(seq))
        U = signs[:, None, None] * zeta / 4.0 * oracle
        flat = (_head_gradients(seq, U)[0] * oracle).sum(axis=(-1, -2))
        flat = seq.y[:, None] * flat / np.linalg.norm(oracle)
        tangent = (flat + signs * _weights_margin(seq, U)).mean(axis=-1)
        reached = _saturated_margin(seq, theory.multihead.Gamma_eps(1e-12, S=S))
        what = f"saturated margin against the tangent margin, S={S:.3g}"
        yield at_least(what, reached, tangent, role=role)
        star = theory.multihead.gamma_star(S=S)
        yield equal("tangent margin is gamma_star", tangent, star, role="correction")
    yield equal("crossing", crossing, 6.028, within=1e-4, role="correction")
    noisy = theory.multihead.gamma_star(Z_mu=0.8, Z_nu=1.6)
    what = "gamma_star in Figure 2's setting, scores of the noise within 0.8"
    yield at_least(what, noisy, theory.multihead.gamma_lin(Z_mu=0.8))
    size, share = rng.uniform(1.0, 20.0, size=1000), rng.uniform(0.02, 0.98, size=1000)
    r = rng.uniform(0.0, 1.0 / 8.0, size=1000)
    star = theory.multihead.gamma_star(zeta=share, S=size, Z=r * size**2)
    lin = theory.multihead.gamma_lin(zeta=share, S=size, Z_mu=r * size**2)
    sign = np.sign(share - 7 * r - 12 * r**2 - 16 * r**3)
    what = "(gamma_star - gamma_lin) * sign of the condition"
    yield at_least(what, (star - lin) * sign, 0.0, role="correction")
    yield at_least("gamma_attn", theory.multihead.gamma_attn(S=size), lin, role="correction")


@measures("multihead.erratum-24", instances=1000)
def erratum_24(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    S = rng.uniform(0.5, 10.0, size=instances)
    Z = S**2 / 8.0 * np.append(1.0, rng.uniform(0.0, 1.0, size=instances - 1))
    A, B = S**4 - 2.0 * S**2 * Z, 2.0 * (2.0 * Z**2 + S**2 * Z)
    yield at_most("2B / S^4", 2.0 * B / S**4, 1.25 / 4.0)
    yield at_most("2B / S^4", 2.0 * B / S**4, 2.5 / 4.0, role="correction")
    yield at_least("A / S^4", A / S**4, 0.75, role="correction")
    seq = _mixture(rng, n=200, S=2.0, zeta=0.3, Z=0.5, corners=True)
    W = _W_star(seq)
    scores = (seq.X @ W @ seq.X.swapaxes(-1, -2)).swapaxes(-1, -2)
    apart = np.where(instance.carrying(seq)[:, None, :], -np.inf, scores).max()
    yield at_most("largest irrelevant score against B, S=2, Z=S^2/8", apart, 5.0, role="correction")


@measures("multihead.erratum-25", instances=200)
def erratum_25(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    S, Z, eps = 2.0, 0.5, 0.1
    # enough samples for both labels to occur, a million times to one
    seq = _mixture(rng, n=max(21, instances), S=S, Z=Z, corners=True)
    opt = _saturated(seq, theory.multihead.Gamma_eps(eps, S=S))
    psi = (instance.ONE.attention(opt, seq)[:, 0] @ seq.X) @ instance.oracle(seq)
    y = seq.y[:, None]
    yield at_least("psi_t", psi, y * S**2 * (1.0 - eps) - 2.0 * eps * Z)
    yield at_least("y psi_t", y * psi, S**2 * (1.0 - eps) - 2.0 * eps * Z, role="correction")


@measures("multihead.erratum-26")
def erratum_26(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    eps = 0.1
    for S in (0.5, 2.0):
        Z = S**2 / 8.0
        seq = _mixture(rng, n=instances, S=S, Z=Z, corners=True)
        reached = _saturated_margin(seq, theory.multihead.Gamma_eps(eps, S=S))
        printed = S * np.sqrt(seq.T / 2.0) * (1.0 - eps - 2.0 * eps * Z / S)
        yield equal(f"margin, S={S:g}", reached, printed)
        least = theory.multihead.gamma_attn(S=S, eps=eps, Z_mu=Z)
        yield at_least(f"margin, S={S:g}", reached, least, role="correction")
    # the smallest Gamma that leaves no more than eps on irrelevant tokens, by bisection
    sizes, needed = np.logspace(-1.0, 1.0, 5), []
    for S in sizes:
        seq = _mixture(rng, n=1, S=float(S))
        unit = _saturated(seq)
        low, high = 0.0, 1e5
        for _ in range(60):
            middle = (low + high) / 2.0
            enough = left_over({**unit, "W": middle * unit["W"]}, seq).max() <= eps
            low, high = (low, middle) if enough else (middle, high)
        needed.append(high)
    grown = slope(sizes, needed)
    yield equal("growth of Gamma with S", grown, -1.0, within=0.01)
    yield equal("growth of Gamma with S", grown, -2.0, within=1e-6, role="correction")
    exact = theory.multihead.Gamma_eps(eps, S=sizes, noise_free=True)
    yield equal("Gamma that is needed", needed, exact, role="correction")


@measures("multihead.erratum-27", instances=2000)
def erratum_27(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    heads, C, log_n = np.array([1.0, 8.0, 64.0, 512.0]), 3.0, 5.0
    unit = _saturated(_mixture(rng, n=1))["W"]
    powers, grown = (0.5, 0.75, 1.0, 1.5), []
    for p in powers:
        norms = [np.linalg.norm(C * H**-p * np.repeat(unit, int(H), axis=0)) for H in heads]
        S = log_n / C * heads ** (p - 0.5)
        # the two sides of equation 12, and the square root of their ratio as the text takes it
        grown.append(slope(heads, np.sqrt(S**5 * np.array(norms) ** 3 / np.sqrt(heads))))
    for printed, role in ((True, "statement"), (False, "correction")):
        named = [theory.multihead.head_exponents(p, printed=printed)[1] for p in powers]
        yield equal("exponent of H, p from 0.5 to 1.5", grown, named, size=1.0, role=role)
    # C is at most H^low by one condition, and at least (log n)^2.5 H^high by the other
    H = np.exp(rng.uniform(0.0, 20.0, size=instances))
    drawn = [theory.multihead.head_exponents(float(p)) for p in rng.uniform(0.0, 10.0, size=20)]
    low, high = np.array(drawn).T[..., None]
    least = 1.01**2.5 * H ** (high - low)
    what = "least C over the largest, log n = 1.01"
    yield at_least(what, least, 1.0, role="correction", strictly=True)


@measures("multihead.erratum-28", instances=1000)
def erratum_28(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    zeta, S = rng.uniform(0.02, 0.98, size=instances), rng.uniform(0.5, 5.0, size=instances)
    Zm, Zn = S**2 * rng.uniform(0.0, 0.5, size=(2, instances))
    together, printed = _equations_112_113(zeta, S, Zm, Zn), 4.0 - zeta**2
    collected = _equation_115(zeta, S, Zm, Zn, printed)
    mended = _equation_115(zeta, S, Zm, Zn, printed - 2.0 * zeta)
    for terms, role in ((collected, "statement"), (mended, "correction")):
        yield equal("collected terms / S^6", terms / S**6, together / S**6, size=1.0, role=role)
    yield at_least("both parts against the printed sum", together, collected, role="correction")
    # samples at the corners of Assumption 3's noise: the exact term
    part, strength, Z = np.array(0.3), np.array(2.0), np.array(0.1)
    seq = _mixture(rng, n=max(20, instances // 10), zeta=0.3, Z=0.1, corners=True)
    heads = np.broadcast_to(instance.oracle(seq), (1, seq.T, seq.d))
    exact = _weights_margin(seq, heads) * np.linalg.norm(_W_star(seq))
    bracket = _equation_115(part, strength, Z, Z, 4.0 - 2.0 * part - part**2)
    yield at_least("term I of samples", exact, seq.T * (1.0 - part) * bracket, role="correction")


def _equations_112_113(zeta: Array, S: Array, Zm: Array, Zn: Array) -> Array:
    """Their sum over T and 1 - zeta, before terms are collected."""
    c = 1.0 - zeta
    first = zeta * S**6 - zeta * c * (Zm + Zn) * S**4 - 2 * c * (zeta + 2 * c) * Zm**2 * S**2
    second = zeta**2 * S**6 + zeta * c * (4 * Zm + zeta * Zn) * S**4
    second = second + 2 * c**2 * ((2 + zeta) * Zm + 2 * zeta * Zn) * Zm * S**2
    last = (4 * c**2 + 4 * c**3) * Zm**2 * (Zm + Zn)
    return np.asarray((first - second - last) / c)


def _equation_115(zeta: Array, S: Array, Zm: Array, Zn: Array, coefficient: Array) -> Array:
    """The bracket of equation 115, with the coefficient in question."""
    found = zeta * S**6 - zeta * (5 * Zm + (1 + zeta) * Zn) * S**4
    found = found - 2 * (coefficient * Zm + 2 * zeta * (1 - zeta) * Zn) * Zm * S**2
    return np.asarray(found - 4 * (1 - zeta) * (2 - zeta) * (Zm + Zn) * Zm**2)
