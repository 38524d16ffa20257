"""Section 5.3 and Appendix E: what attention could reach, and why the theorems do not get there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.multihead import _instances as instance
from attnlab import models
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem

ONE = models.MultiHead(heads=1)


def _missed(params: Params, drawn: SequenceProblem) -> Array:
    """Attention of every query on the irrelevant tokens, largest over queries, by sample."""
    maps = ONE.attention(params, drawn)[..., 0, :, :]
    kept = (maps * np.asarray(drawn.relevant)[..., None, :]).sum(axis=-1)
    return np.asarray(1.0 - kept.min(axis=-1))


@measures("multihead.proposition-3")
def proposition_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    missed, slack = [], []
    for zeta, S, M in ((0.1, 2.0, 2), (0.3, 1.0, 1), (0.5, 3.0, 4)):
        Z = S**2 / 8.0
        for level, corners in ((0.0, False), (Z, False), (Z, True)):
            drawn = instance.mixture(
                rng, n=instances, zeta=zeta, S=S, M=M, Z_mu=level, Z_nu=level, corners=corners
            )
            for eps in (0.3, 0.1, 0.01, 0.001):
                scale = float(theory.multihead.Gamma_eps(eps, zeta=zeta, S=S, M=M))
                params = theory.multihead.theta_opt(instance.patterns(drawn), scale)
                missed.append(_missed(params, drawn) / eps)
                gamma = theory.multihead.gamma_attn(10, S, eps, level)
                slack.append(drawn.y * ONE.forward(params, drawn) / gamma)
    yield at_most("attention that is missed, in units of eps", np.concatenate(missed), 1.0)
    yield at_least("attention that is missed", np.concatenate(missed), 0.0)
    yield at_least("margin, in units of gamma_attn(eps)", np.concatenate(slack), 1.0)
    # without noise the needed scale is known exactly
    drawn = instance.mixture(rng, n=instances)
    needed = float(theory.multihead.Gamma_eps(0.01, noise_free=True))
    source = instance.patterns(drawn)
    exact = _missed(theory.multihead.theta_opt(source, needed), drawn)
    yield equal("missed at the least scale without noise", exact, 0.01, role="correction")
    less = _missed(theory.multihead.theta_opt(source, 0.95 * needed), drawn)
    yield at_most("missed at 0.95 of the least scale", less, 0.01, role="outside")
    turned = theory.multihead.theta_opt(source, 11.2)
    turned["W"] = turned["W"].swapaxes(-1, -2)
    yield at_most("missed with W_opt transposed", _missed(turned, drawn), 0.01, role="outside")


@measures("multihead.lemma-18", instances=400)
def lemma_18(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, shares, tight = 10, [], []
    for L in (1, 3, 7):
        for eps in (0.5, 0.01, 1e-6):
            A = rng.uniform(0.1, 5.0, size=instances)
            B = rng.uniform(-1.0, 0.5, size=instances) * A  # so that A > 2B
            high = A[:, None] * (1.0 + rng.exponential(0.3, size=(instances, L)))
            low = B[:, None] - rng.exponential(0.5, size=(instances, T - L))
            shares.append(_left(high, low, theory.multihead.saturation(A, eps, T=T, L=L)) / eps)
            high, low = np.repeat(A[:, None], L, axis=1), np.repeat(A[:, None] / 2.0, T - L, axis=1)
            tight.append(_left(high, low, theory.multihead.saturation(A, eps, T=T, L=L)) / eps)
    left = np.concatenate(shares)
    yield at_most("mass on the others, in units of eps, A > 0", left, 1.0, role="correction")
    edge = np.concatenate(tight)
    yield at_most("the same at the edge, A = 2B", edge, 1.0, role="correction")
    # A = -1, B = -2.5: the condition asks for a scale above a negative number
    high, low = np.full((1, 3), -1.0), np.full((1, 7), -2.5)
    asked = -theory.multihead.saturation(1.0, 0.01, T=10, L=3)
    flat = _left(high, low, np.maximum(asked, np.zeros(1)))
    yield at_most("mass on the others, A=-1 and scale 0", flat, 0.01)


def _left(high: Array, low: Array, scale: Array) -> Array:
    """Softmax mass of the low logits after scaling."""
    logits = scale[:, None] * np.concatenate([high, low], axis=1)
    E = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(E[:, high.shape[1] :].sum(axis=1) / E.sum(axis=1))


@measures("multihead.equation-12", instances=200)
def equation_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    H = np.geomspace(1.0, 1e8, 9)
    S = np.geomspace(1.0, 1e8, 10 * instances)[:, None]  # the best signal for each H
    _, needed = theory.multihead.saturating_target(H, S, n=100, W_norm=1.0 / S**2)
    best = (np.sqrt(H) / needed).max(axis=0)
    yield at_most("largest sqrt(H) / (S^5 |theta|^3)", best, 1.0)
    power = slope(H, best)
    yield at_most("power of H in it", power, -0.4)
    # where the signal is what the first case allows at least: (log n / C) H^(p - 1/2)
    C, p, H = 2.0, float(rng.uniform(0.5, 1.5)), np.array([1e4, 1e6, 1e8])
    S = np.log(100) / C * H ** (p - 0.5)
    _, needed = theory.multihead.saturating_target(H, S, n=100, W_norm=C * H**-p)
    for name, printed, role in (("p-3/4", False, "correction"), ("p-1/4", True, "step")):
        power = 2.0 * theory.multihead.head_exponents(p, printed=printed)[1]
        measured = slope(H, needed / np.sqrt(H))
        yield equal(
            f"power of H in S^5 |theta|^3 / sqrt(H), {name}",
            measured,
            power,
            role=role,
            within=1e-6,
        )
