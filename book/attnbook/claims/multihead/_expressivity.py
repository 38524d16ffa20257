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


def left_over(params: Params, drawn: SequenceProblem) -> Array:
    """Attention of every query on the irrelevant tokens, largest over queries, by sample."""
    maps = instance.ONE.attention(params, drawn)[..., 0, :, :]
    kept = (maps * instance.carrying(drawn)[..., None, :]).sum(axis=-1)
    return np.asarray(1.0 - kept.min(axis=-1))


def _adverse(drawn: SequenceProblem, *, scale: float, S: float, Z: float) -> Array:
    """Margin over (11), all noise pointing against the label, with the mass that is missed."""
    source = instance.patterns(drawn)
    params = theory.multihead.theta_opt(source, scale)
    row = np.asarray(theory.multihead.U_star(source)[0])
    against = -Z / S * row / np.linalg.norm(row) * 2.0**0.5
    quiet = ~instance.carrying(drawn)[..., None]
    X = np.where(quiet, drawn.y[:, None, None] * against, drawn.X)
    worst = SequenceProblem(X, drawn.y, relevant=drawn.relevant, source=drawn.source)
    maps = instance.ONE.attention(params, worst)[..., 0, :, :]
    gone = (maps * quiet[..., 0][..., None, :]).sum(axis=-1).mean(axis=-1)
    gamma = theory.multihead.gamma_attn(10, S, gone, Z)
    return np.asarray(worst.y * instance.ONE.forward(params, worst) / gamma)


@measures("multihead.proposition-3")
def proposition_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    missed, slack, adverse = [], [], []
    for zeta, S, M in ((0.1, 2.0, 2), (0.3, 1.0, 1), (0.5, 3.0, 4)):
        Z = S**2 / 8.0
        for level, corners in ((0.0, False), (Z, False), (Z, True)):
            drawn = instance.mixture(
                rng, n=instances, zeta=zeta, S=S, M=M, Z_mu=level, Z_nu=level, corners=corners
            )
            for eps in (0.3, 0.1, 0.01, 0.001):
                scale = float(theory.multihead.Gamma_eps(eps, zeta=zeta, S=S, M=M))
                params = theory.multihead.theta_opt(instance.patterns(drawn), scale)
                missed.append(left_over(params, drawn) / eps)
                gamma = theory.multihead.gamma_attn(10, S, eps, level)
                slack.append(drawn.y * instance.ONE.forward(params, drawn) / gamma)
            if corners:
                adverse.append(_adverse(drawn, scale=0.3 * scale, S=S, Z=level))
    yield at_most("attention that is missed, in units of eps", np.concatenate(missed), 1.0)
    yield at_least("attention that is missed", np.concatenate(missed), 0.0)
    yield at_least("margin, in units of gamma_attn(eps)", np.concatenate(slack), 1.0)
    whole = theory.multihead.theta_opt(instance.patterns(drawn))
    words = "margin over (11) with the mass that is really missed, noise against the label"
    yield at_least(words, np.concatenate(adverse), 1.0)
    yield equal("length of U_opt and W_opt together", instance.length(whole), np.sqrt(2.0))
    # without noise the needed scale is known exactly
    drawn = instance.mixture(rng, n=instances)
    needed = float(theory.multihead.Gamma_eps(0.01, noise_free=True))
    source = instance.patterns(drawn)
    exact = left_over(theory.multihead.theta_opt(source, needed), drawn)
    yield equal("missed at the least scale without noise", exact, 0.01, role="correction")
    less = left_over(theory.multihead.theta_opt(source, 0.95 * needed), drawn)
    yield at_most("missed at 0.95 of the least scale", less, 0.01, role="outside")
    turned = theory.multihead.theta_opt(source, 11.2)
    turned["W"] = turned["W"].swapaxes(-1, -2)
    yield at_most("missed with W_opt transposed", left_over(turned, drawn), 0.01, role="outside")


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
    # where eps > T/L - 1 the condition is met by a scale below 0, which turns the order around
    A, large = rng.uniform(0.1, 3.0, size=instances), rng.uniform(0.5, 0.9, size=instances)
    high = A[:, None] * (1.0 + rng.exponential(size=(instances, 7)))
    low = A[:, None] / 2.0 - rng.exponential(size=(instances, 3))
    below = 2.0 / A * np.log((T / 7 - 1.0) / large)
    words = "mass on three others, in units of eps > T/L - 1"
    yield at_most(f"{words}, scale below 0", _left(high, low, below) / large, 1.0)
    enough = theory.multihead.saturation(A, large, T=T, L=7)
    share = _left(high, low, enough) / large
    yield at_most(f"{words}, scale at least 0", share, 1.0, role="correction")


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
    # the target itself: its loss is below 1/n
    drawn = instance.mixture(rng, n=100, Z_mu=0.2, Z_nu=0.2)
    scale = float(theory.multihead.Gamma_eps(0.01))
    one = theory.multihead.theta_opt(instance.patterns(drawn), scale)
    gamma = float(theory.multihead.gamma_attn(eps=0.01, Z_mu=0.2))
    U = np.log(100) / gamma / np.sqrt(4) * np.repeat(one["U"], 4, axis=0)
    target = {"U": U, "W": np.repeat(one["W"], 4, axis=0)}
    loss = models.MultiHead(heads=4).value_and_grad(target, drawn)[0]
    yield at_most("n times the loss of the target, n = 100", 100 * loss, 1.0)
