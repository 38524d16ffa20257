"""Section 5.1 and Appendix D.3: the data, the first gradient step, and what it concentrates on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, exponent, rarely, slope
from attnbook.claims.multihead import _instances as instance
from attnlab import models, problems
from attnlab.checks import Array, BoolArray
from attnlab.problems import SequenceProblem

SURE = 1e-9  # probability of failure where a bound must hold in every trial
ZETA, S, M, T = 0.3, 2.0, 2, 10


@measures("multihead.assumption-3", instances=200)
def assumption_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    Z_mu, Z_nu, across = 0.3, 0.5, 0.4
    drawn = instance.mixture(rng, n=instances, Z_mu=Z_mu, Z_nu=Z_nu, across=across, corners=True)
    source = instance.patterns(drawn)
    patterns = np.concatenate([source.mu, source.nu])
    gram = patterns @ patterns.T
    yield equal("inner products of the patterns, in units of S^2", gram / 4.0, np.eye(4), size=1.0)
    yield equal("relevant tokens", instance.carrying(drawn).sum(axis=-1), 1.0)
    odds, most = abs((drawn.y > 0).mean() - 0.5), instance.allowance(instances)
    finest = 0.5 / instances  # half of them may be positive to the last
    yield at_most("share of positive labels, away from 1/2", odds, most, finest=finest)
    # recover the noise: what is left of a token beyond the nearest pattern
    near = np.abs(drawn.X @ patterns.T).argmax(axis=-1)
    z = drawn.X - patterns[near]
    Z = np.linalg.norm([Z_mu / 2.0] * 2 + [Z_nu / 4.0] * 2 + [across])
    yield at_most("noise on mu", np.abs(z @ source.mu.T), Z_mu)
    yield at_most("noise on nu", np.abs(z @ source.nu.T), Z_nu / M)
    yield at_most("length of the noise", np.linalg.norm(z, axis=-1), Z)
    lengths = np.linalg.norm(drawn.X, axis=-1)
    R = theory.multihead.token_bound(2.0, Z=float(Z), Z_nu=Z_nu, M=2)
    yield at_most("longest token", lengths.max(), R)
    yield at_least("longest token: R is attained at the corners", lengths.max(), R)
    gaussian = problems.tokenized_mixture(n=instances, sigma=0.2, rng=rng)
    far = np.linalg.norm(gaussian.X, axis=-1)
    yield at_most("longest token with Gaussian noise", far, R, role="outside")
    yield at_least("R for S=1/2", theory.multihead.token_bound(0.5), 1.0, role="outside")


def _blocks(instances: int, most: int = 20) -> list[int]:
    """Numbers of trials that fit into memory together; a rate needs ten in all."""
    trials = max(10, instances)
    return [min(most, trials - first) for first in range(0, trials, most)]


def _first_steps(
    rng: np.random.Generator, trials: int, n1: int
) -> tuple[SequenceProblem, Array, Array, Array]:
    """Data, signs of the heads, rows of U and W after the first phase, by trial and head."""
    drawn = instance.mixture(rng, n=n1, T=T, zeta=ZETA, S=S, M=M, Z_mu=0.2, Z_nu=0.2, trials=trials)
    model = models.MultiHead(heads=3)
    params = theory.multihead.first_phase(model, drawn, rng=rng)
    signs = np.sign(params["U"][..., 0, 0])  # u_star's first entry is positive
    return drawn, signs, params["U"], params["W"]


def _error(drawn: SequenceProblem, signs: Array, U: Array, coefficient: float) -> Array:
    r"""$p$ with the rows $\alpha_h(c\,u_\star+p)$, one vector a trial."""
    row = instance.oracle(drawn)
    return np.asarray(signs[..., :1] * U[..., 0, 0, :] - coefficient * row)


Z_LENGTH = float(np.linalg.norm([0.1, 0.1, 0.05, 0.05]))


@measures("multihead.lemma-2", instances=20)
def lemma_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    counts = np.array([100, 1000, 10_000])
    halves, quarters = [], []  # |p| for the coefficients zeta / 2 and zeta / 4
    rows, still, shares, often, turned = [], [], [], [], []
    bound = theory.multihead.first_phase_error
    for n1 in counts:
        half, quarter = [], []
        for trials in _blocks(instances):
            drawn, signs, U, W = _first_steps(rng, trials, int(n1))
            size = np.linalg.norm(U[..., 0, :], axis=-1)
            rows.append((np.abs(U - U[..., :1, :]).max(axis=(-1, -2)) / size).max())
            still.append(np.abs(W).max())
            half.append(np.linalg.norm(_error(drawn, signs, U, ZETA / 2.0), axis=-1))
            quarter.append(np.linalg.norm(_error(drawn, signs, U, ZETA / 4.0), axis=-1))
            star = instance.oracle(drawn)
            if n1 == counts[-1]:
                turned.append(((signs * (U[..., 0, :] @ star)) / (star @ star)).ravel())
        p = np.concatenate(quarter)
        shares.append(p / bound(n1, SURE, S=S, Z=Z_LENGTH, zeta=ZETA))
        often.append(p > bound(n1, 0.05, S=S, Z=Z_LENGTH, zeta=ZETA))
        halves.append(np.concatenate(half).mean())
        quarters.append(p.mean())
    yield equal("rows of U, spread", rows, 0.0, size=1.0, role="correction")
    yield equal("W after the step", still, 0.0, size=1.0, role="correction")
    mean = np.concatenate(turned).mean()
    for name, coefficient, sizes, role in (
        ("zeta/2", ZETA / 2.0, halves, "statement"),
        ("zeta/4", ZETA / 4.0, quarters, "correction"),
    ):
        power = slope(counts, sizes)
        yield at_most(f"power of n_1 in |p|, coefficient {name}", power, -0.35, role=role)
        yield equal(f"mean coefficient, {name}", mean, coefficient, role=role, within=0.05)
    yield at_most("|p| as a share of its bound", np.concatenate(shares), 1.0, role="correction")
    beyond = np.concatenate(often)
    most = 0.1 + instance.allowance(beyond.size)
    words = "how often |p| passes the bound for delta = 0.05"
    yield rarely(words, beyond, most, role="correction")


@measures("multihead.lemma-16", instances=50)
def lemma_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n1 = 200
    drawn, signs, U, W = _first_steps(rng, instances, n1)
    source = instance.patterns(drawn)
    row = theory.multihead.U_star(source)[0]
    y = drawn.y[..., None]
    patterns = (y * np.where(y > 0, source.mu[0], source.mu[1])).mean(axis=-2)
    others = np.where(instance.carrying(drawn)[..., None], 0.0, drawn.X).sum(axis=-2)
    rest = (y * others).mean(axis=-2) / ((1.0 - ZETA) * T)
    p1 = ZETA / 2.0 * (patterns - row)
    formula = ZETA / 2.0 * row + p1 + (1.0 - ZETA) / 2.0 * rest
    expected = signs[..., None, None] * formula[:, None, None, :]
    size = np.linalg.norm(formula, axis=-1)[:, None, None, None]
    yield equal("rows of U against the formula", U, expected, size=size)
    yield equal("W after the step", W, 0.0, size=1.0)
    # p_1 as printed is not centred
    mean = np.linalg.norm(p1.mean(axis=0)) / np.linalg.norm(row)
    yield at_most("mean of p_1, in units of u_star", mean, 0.2 * ZETA, role="step")


@measures("multihead.lemma-17", instances=30)
def lemma_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    counts, parts = np.array([50, 500, 5000]), ("printed p_1", "p_1", "p_2")
    sizes: dict[str, list[Array]] = {name: [] for name in parts}
    shares = []
    for n1 in counts:
        found: dict[str, list[Array]] = {name: [] for name in parts}
        for trials in _blocks(instances):
            drawn, signs, U, _ = _first_steps(rng, trials, int(n1))
            row = instance.oracle(drawn)
            plus, minus = instance.patterns(drawn).mu
            positive = (drawn.y > 0).mean(axis=-1)[:, None]
            mean = positive * plus - (1.0 - positive) * minus  # of y mu_y
            for name, part in (
                ("printed p_1", ZETA / 2.0 * (mean - row)),
                ("p_1", ZETA / 2.0 * (mean - row / 2.0)),
                ("p_2", _error(drawn, signs, U, 0.0) - ZETA / 2.0 * mean),
            ):
                found[name].append(np.linalg.norm(part, axis=-1))
        for name in parts:
            sizes[name].append(np.concatenate(found[name]))
        both = sizes["p_1"][-1] + sizes["p_2"][-1]
        limit = theory.multihead.first_phase_error(n1, SURE, S=S, Z=Z_LENGTH, zeta=ZETA)
        shares.append(both / limit)
    for name, role in zip(parts, ("statement", "correction", "correction"), strict=True):
        power = slope(counts, [part.mean() for part in sizes[name]])
        yield at_most(f"power of n_1 in |{name}|", power, -0.35, role=role)
    share = np.concatenate(shares)
    yield at_most("|p_1| + |p_2| as a share of their bounds", share, 1.0, role="correction")


@measures("multihead.fact-1", instances=4000)
def fact_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    deltas = np.array([0.5, 0.1, 0.01])
    most = deltas + instance.allowance(instances)
    for d in (1, 4, 30):
        sphere = rng.standard_normal((instances, d))
        sphere *= np.sqrt(d) / np.linalg.norm(sphere, axis=-1, keepdims=True)
        normal = rng.standard_normal((instances, d))
        signs = rng.choice((-1.0, 1.0), size=(instances, d))
        lengths = np.linalg.norm([normal, signs, sphere], axis=-1)
        bound = theory.multihead.subgaussian_norm(d, 1.0, deltas)
        words = f"Gaussian, signs, uniform on the sphere, d={d}: how often longer"
        yield rarely(words, lengths.T[..., None] > bound, most)
    sizes = np.array([4, 40, 400])
    means = [np.linalg.norm(rng.standard_normal((400, d)), axis=-1).mean() for d in sizes]
    yield exponent("power of d in the length", sizes, means, 0.5, within=0.05)
    heavy = np.linalg.norm(rng.standard_t(1.0, size=(instances, 30)), axis=-1)
    bound = theory.multihead.subgaussian_norm(30, 1.0, 0.01)
    often = (heavy > bound).mean()
    yield at_most("Cauchy entries: how often longer", often, 0.5, role="outside")


@measures("multihead.fact-2", instances=4000)
def fact_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    # two signs: the law of their mean is known, -1, 0, 0, 1
    means = np.array([-1.0, 0.0, 0.0, 1.0])
    bounds = {s: theory.multihead.hoeffding(1.0, 0.45, H=2, two_sided=s) for s in (False, True)}
    for two_sided, role in ((False, "statement"), (True, "correction")):
        beyond = np.abs(means) > bounds[two_sided]
        name = "log(2/delta)" if two_sided else "log(1/delta)"
        yield rarely(f"two signs, {name}: how often beyond", beyond, 0.45, role=role)
    yield at_most("to one side", (means > bounds[False]).mean(), 0.45, role="correction")
    # all patterns of up to eight signs, at levels that are exact
    levels = np.linspace(0.02, 0.98, 400)
    for two_sided, role in ((False, "statement"), (True, "correction")):
        often = []
        for H in range(1, 9):
            mean = np.abs(np.array(list(product([-1.0, 1.0], repeat=H))).mean(axis=1))
            bound = theory.multihead.hoeffding(1.0, levels, H=H, two_sided=two_sided)
            often.append((mean[:, None] > bound * (1.0 + 1e-12)).mean(axis=0))
        name = "log(2/delta)" if two_sided else "log(1/delta)"
        words = f"share of sign patterns beyond, {name}"
        yield at_most(words, np.array(often), levels, role=role)
    deltas = np.array([0.9, 0.3, 0.05])
    most = deltas + instance.allowance(instances)
    seen: list[BoolArray] = []
    for H in (1, 5, 40):
        signs = rng.choice((-1.0, 1.0), size=(instances, H))
        wide = rng.uniform(-1.0, 1.0, size=(instances, H)) ** 3
        bound = theory.multihead.hoeffding(1.0, deltas, H=H, two_sided=True)
        seen += [np.abs(draws.mean(axis=-1))[:, None] > bound for draws in (signs, wide)]
    words = "signs and uniform cubed, H = 1, 5, 40: how often beyond"
    yield rarely(words, np.stack(seen, axis=1), most, role="correction")
