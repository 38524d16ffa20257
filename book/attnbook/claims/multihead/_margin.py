"""Proposition 2 and its lemmas: the first phase ends in a good initialization."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, rarely
from attnbook.claims.multihead import _instances as instance
from attnlab import models, ntk
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem

# (T, zeta, S, M) of mixtures; zeta T is whole
MIXTURES = ((10, 0.1, 2.0, 2), (4, 0.25, 1.0, 1), (10, 0.4, 3.0, 3), (20, 0.2, 1.5, 2))


def _start(drawn: SequenceProblem, zeta: float, alpha: Array, p: Array | float = 0.0) -> Params:
    r"""$U_h=\alpha_h(\frac\zeta4U_\star+\mathbf 1p^\top)$, $W_h=0$: the first phase, p given."""
    U = zeta / 4.0 * theory.multihead.U_star(instance.patterns(drawn)) + p
    shape = (*alpha.shape, drawn.d, drawn.d)
    return {"U": alpha[..., None, None] * U, "W": np.zeros(shape)}


def tangent(drawn: SequenceProblem, start: Params, direction: Params) -> Array:
    r"""$y_i\langle\nabla\tilde\Phi(X_i),\cdot\rangle$, shape ``(..., n)``."""
    model = models.MultiHead(heads=start["U"].shape[-3])
    found = ntk.jacobian(model, start, drawn)
    each = {name: direction[name][..., None, :, :, :] for name in found}
    inner = sum((found[name] * each[name]).sum(axis=(-1, -2, -3)) for name in found)
    return np.asarray(drawn.y * inner)


def _margins(drawn: SequenceProblem, zeta: float, alpha: Array, p: Array | float = 0.0) -> Array:
    """Margins of the stated target after a first phase with error p."""
    target = theory.multihead.theta_star(instance.patterns(drawn), alpha)
    return tangent(drawn, _start(drawn, zeta, alpha, p), target)


def _error(rng: np.random.Generator, d: int, P: float) -> Array:
    """An error of the first phase of length P, in any direction."""
    p = rng.standard_normal(d)
    return np.asarray(P * p / np.linalg.norm(p))


def _noisy(rng: np.random.Generator, n: int, heads: int) -> Iterator[tuple[Array, float, float]]:
    """Margins with noise and error next to gamma_star, as printed and sharper."""
    for T, zeta, S, M in MIXTURES:
        for level in (0.0, 0.02, 0.1):
            for corners in (False, True):
                for P in (0.0, 1e-4, 0.02):
                    Z_mu = Z_nu = level * S**2
                    drawn = instance.mixture(
                        rng, n=n, T=T, zeta=zeta, S=S, M=M, Z_mu=Z_mu, Z_nu=Z_nu, corners=corners
                    )
                    alpha = rng.choice((-1.0, 1.0), size=heads)
                    found = _margins(drawn, zeta, alpha, _error(rng, M + 2, P))
                    Z = float(np.linalg.norm([Z_mu / S] * 2 + [Z_nu / (M * S)] * M))
                    size: dict[str, Any] = {"T": T, "zeta": zeta, "S": S, "M": M, "Z": Z, "P": P}
                    gammas = [
                        float(theory.multihead.gamma_star(**size, Z_mu=Z_mu, Z_nu=Z_nu, sharp=s))
                        for s in (False, True)
                    ]
                    yield found, gammas[0], gammas[1]


def _exact(rng: np.random.Generator, n: int, role: str = "statement") -> Iterator[Measurement]:
    """Without noise and error the stated target's margin is gamma_star itself."""
    found, expected, wrong = [], [], []
    for T, zeta, S, M in MIXTURES:
        drawn = instance.mixture(rng, n=n, T=T, zeta=zeta, S=S, M=M)
        alpha = rng.choice((-1.0, 1.0), size=3)
        found.append(_margins(drawn, zeta, alpha))
        expected.append(np.full(n, theory.multihead.gamma_star(T, zeta, S, M)))
        target = theory.multihead.theta_star(instance.patterns(drawn), alpha)
        target["W"] = target["W"].swapaxes(-1, -2)
        wrong.append(tangent(drawn, _start(drawn, zeta, alpha), target))
    gamma = np.concatenate(expected)
    yield equal("margin without noise against gamma_star", np.concatenate(found), gamma, role=role)
    turned = np.concatenate(wrong)
    yield at_least("margin with W_star transposed", turned, gamma, role="outside")


def exactly_beyond(single: float, size: dict[str, Any], H: int) -> Measurement:
    """The chance that H heads with signs, each with the output ``single``, pass the bound."""
    from scipy.special import gammaln

    deltas = np.array([0.9, 0.5, 0.1, 0.05, 0.01, 1e-3])
    bounds = np.array([theory.multihead.B_Phi(**size, delta=float(delta)) for delta in deltas])
    k = np.arange(H + 1.0)
    log_share = gammaln(H + 1.0) - gammaln(k + 1.0) - gammaln(H - k + 1.0) - H * np.log(2.0)
    reach = np.abs(2.0 * k - H) / H**0.5 * single
    chance = (np.exp(log_share) * (reach > bounds[:, None])).sum(axis=-1)
    words = f"exact chance to be beyond, {H} heads, delta from 0.9 to 0.001"
    return at_most(words, chance, deltas, role="correction")


def _beyond(rng: np.random.Generator, draws: int) -> Iterator[Measurement]:
    """How often outputs after the first phase pass their bound, over the heads' signs."""
    zeta, T, S = 0.9, 10, 2.0
    drawn = instance.mixture(rng, n=1, T=T, zeta=zeta, S=S, trials=2)
    both = np.array([[-1.0], [1.0]])  # one head: all its signs
    size: dict[str, Any] = {"T": T, "S": S, "P": 0.0, "R": S}
    outputs = np.abs(models.MultiHead(heads=1).forward(_start(drawn, zeta, both), drawn))
    for name, printed, role in (
        ("log(1/delta)", True, "statement"),
        ("log(2/delta)", False, "correction"),
    ):
        bound = theory.multihead.B_Phi(**size, delta=0.99, printed=printed)
        beyond = (outputs > bound).ravel()
        yield rarely(f"one head, delta=0.99, {name}: how often beyond", beyond, 0.99, role=role)
    # error along the tokens' mean, where outputs are as large as can be
    for H, T, P in ((2, 10, 0.5), (16, 10, 20.0)):
        one = instance.mixture(rng, n=1, T=T, zeta=0.1, S=1.0, M=1)
        p = P * one.X[0].mean(axis=0) / np.linalg.norm(one.X[0].mean(axis=0))
        alpha = rng.choice((-1.0, 1.0), size=(draws, H))
        parts = np.array_split(alpha, max(1, draws // 2000))  # what fits into memory
        outputs = np.concatenate([_outputs(one, part, p) for part in parts])
        size = {"T": T, "S": 1.0, "P": P, "R": 1.0}
        deltas = np.array([0.5, 0.05])
        bounds = [theory.multihead.B_Phi(**size, delta=float(delta)) for delta in deltas]
        beyond = outputs.reshape(draws, -1).max(axis=-1)[:, None] > np.array(bounds)
        most = deltas + instance.allowance(draws)
        words = f"H={H}, delta = 0.5, 0.05: how often beyond"
        yield rarely(words, beyond, most, role="correction")
        single = models.MultiHead(heads=1).forward(_start(one, 0.1, np.ones(1), p), one)
        if H > 2:  # outputs near the longest that are possible
            for more in (H, 400):
                yield exactly_beyond(float(np.abs(single).max()), size, more)
        limit = T * 1.0 * (1.0 + P)
        share = np.abs(single) / limit
        yield at_most("output of one head, share of TR(S+P)", share, 1.0, role="correction")


def _outputs(one: SequenceProblem, alpha: Array, p: Array) -> Array:
    """Sizes of the outputs on one sample after a first phase with these heads' signs."""
    many = SequenceProblem(
        np.repeat(one.X[None], len(alpha), axis=0),
        np.repeat(one.y[None], len(alpha), axis=0),
        source=one.source,
    )
    model = models.MultiHead(heads=alpha.shape[-1])
    return np.abs(model.forward(_start(many, 0.1, alpha, p), many))


@measures("multihead.lemma-12", instances=2000)
def lemma_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _beyond(rng, instances)


@measures("multihead.lemma-13", instances=40)
def lemma_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _exact(rng, instances)
    rows = [(found.min(), gamma, sharp) for found, gamma, sharp in _noisy(rng, instances, 1)]
    lowest, gammas, sharper = np.array(rows).T
    yield at_least("margin with noise and error against gamma_star", lowest, gammas)
    yield at_least("margin against the sharper gamma_star", lowest, sharper, role="correction")
    # heads with either sign have one margin: the expectation is over nothing
    drawn = instance.mixture(rng, n=instances, Z_mu=0.2, Z_nu=0.2)
    spread = [_margins(drawn, 0.1, np.array([alpha]), 0.01) for alpha in (-1.0, 1.0)]
    yield equal("margin of a head with alpha=-1 and with alpha=1", *spread)
    # alpha uniform on [-1, 1] with the true coefficient: half of the attention's part
    drawn = instance.mixture(rng, n=1)
    alpha = rng.uniform(-1.0, 1.0, size=2000)
    mean = _margins(drawn, 0.1, alpha)
    gamma = theory.multihead.gamma_star()
    yield at_least("mean margin for uniform alpha", mean, gamma, role="step")


@measures("multihead.lemma-14", instances=200)
def lemma_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, zeta, S, M, P = 4, 0.25, 1.0, 1, 0.001
    gamma = theory.multihead.gamma_star(T, zeta, S, M, P=P)
    size = theory.multihead.head_margin_bound(T, S, P, R=S)
    drawn = instance.mixture(rng, n=1, T=T, zeta=zeta, S=S, M=M, trials=instances)
    p = _error(rng, M + 2, P)
    signs = rng.choice((-1.0, 1.0), size=(instances, 8))
    uniform = rng.uniform(-1.0, 1.0, size=(instances, 8))
    found = {
        "signs": _margins(drawn, zeta, signs, p),
        "uniform": _margins(drawn, 2.0 * zeta, uniform, p),
    }
    for name, margins in found.items():
        for delta in (0.5, 0.05):
            bound = gamma - theory.multihead.hoeffding(size, delta, H=8)
            below = (margins < bound).ravel()
            most = delta + instance.allowance(instances)
            yield rarely(f"{name}, delta={delta}: how often below", below, most)
    heads = [_margins(drawn, zeta, signs[:, :1], p), _margins(drawn, 2.0 * zeta, uniform[:, :1], p)]
    yield at_most("margin of one head, share of its bound", np.abs(heads) / size, 1.0)
    yield at_least("margin for signs, always", found["signs"], gamma)


def _many(
    rng: np.random.Generator, instances: int, role: str = "statement"
) -> Iterator[Measurement]:
    """P3 with the heads that are asked for, for signs and for uniform alpha."""
    T, zeta, S, M, P, n, delta = 2, 0.5, 1.0, 1, 0.005, 3, 0.5
    gamma = float(theory.multihead.gamma_star(T, zeta, S, M, P=P))
    asked = theory.multihead.H_min_p3(gamma, T=T, S=S, P=P, R=S, delta=delta, n=n)
    H = math.ceil(asked)
    drawn = instance.mixture(rng, n=n, T=T, zeta=zeta, S=S, M=M)
    for name, coefficient in (("signs", zeta), ("uniform", 2.0 * zeta)):
        lowest = []
        for _ in range(instances):
            p = _error(rng, M + 2, P)
            if name == "signs":
                alpha = rng.choice((-1.0, 1.0), size=H)
            else:
                alpha = rng.uniform(-1.0, 1.0, size=H)
            lowest.append(_margins(drawn, coefficient, alpha, p).min())
        below = np.array(lowest) < gamma / 2.0
        words = f"{H} heads, {name}: how often a margin is below gamma_star/2"
        yield rarely(words, below, delta, role=role)


@measures("multihead.lemma-15", instances=10)
def lemma_15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _many(rng, instances)


@measures("multihead.proposition-2", instances=40)
def proposition_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    # P1: the longest readout, with the error along u_star
    for P in (0.01, 1.0, 100.0):
        drawn = instance.mixture(rng, n=1, zeta=0.9, S=1.0)
        row = instance.oracle(drawn)
        start = _start(drawn, 0.9, np.array([1.0, -1.0]), P * row / np.linalg.norm(row))
        longest = instance.longest_head(start)
        share = longest / theory.multihead.B2(10, 1.0, P)
        yield at_most(f"P1, P={P}: share of B_2", share, 1.0, role="correction")
        share = longest / theory.multihead.B2(10, 1.0, P, zeta=0.9)
        yield at_most(f"P1, P={P}: share of the sharper B_2", share, 1.0, role="correction")
    yield from _beyond(rng, 20 * instances)
    yield from _exact(rng, instances, "correction")
    rows = [(found.min(), gamma) for found, gamma, _ in _noisy(rng, instances, 4)]
    lowest, gammas = np.array(rows).T
    words = "P3: margin with noise and error against gamma_star"
    yield at_least(words, lowest, gammas, role="correction")
    yield from _many(rng, 2, "correction")
    # the stated target is not the best direction in tangent space
    drawn = instance.mixture(rng, n=instances)
    start = _start(drawn, 0.1, np.ones(1))
    best = ntk.margin(models.MultiHead(heads=1), start, drawn).margin
    gamma = theory.multihead.gamma_star()
    yield at_least("largest margin, norm sqrt 2", math.sqrt(2.0) * best, gamma, role="correction")
