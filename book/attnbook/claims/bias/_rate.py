"""The rate of normalized descent: Theorems 1 and 5, Lemmas 1 and 8, Lemma 7."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import (
    Measurement,
    at_least,
    at_most,
    equal,
    exponent,
    slope,
    vanishes,
)
from attnbook.claims.bias import _instances as data
from attnbook.claims.bias._instances import Descent, Setting, inner, leads, length, setting
from attnlab import problems, svm
from attnlab.checks import Array

STEPS, FAR = 600, 1e9
LATE = np.array([1e3, 1e6, FAR])


def _numbers(at: Setting) -> dict[str, Any]:
    return {"B": at.B, "margin_norm": at.width}


def _samples(at: Setting) -> dict[str, Any]:
    return {"n": at.problem.n, "T": at.problem.T, "conditioning": at.conditioning}


def _inside(
    rng: np.random.Generator, instances: int, *families: tuple[str, int, int]
) -> Iterator[tuple[str, Descent]]:
    for kind, n, T in families:
        run = data.descent(data.seed_of(rng), instances, kind, n, T, STEPS)
        yield f"{'opposite' if kind == 'opposite' else 'unequal'} tokens, n={n} T={T}", run


def _premises(name: str, run: Descent) -> Iterator[Measurement]:
    """The mended Assumption 1, and that the run is a straight line from its end on."""
    found = theory.bias.orthogonality(run.at.problem, symmetric=True)
    yield at_least(f"mended Assumption 1, {name}", found, run.at.needed, role="premise")
    toward = run.at.margin.W / run.at.width[:, None, None]
    off = [length(run.at.descent(W) - toward) for W in (run.W[-1], *run.onward(LATE))]
    what = f"unit gradient off the direction of W_mm at t = {run.times[-1]:g} to {FAR:g}, {name}"
    yield vanishes(what, off, within=1e-5, role="premise")


def _begin(run: Descent) -> Array:
    """Steps from $t_0$ on; the first of them at the run's end at the earliest."""
    begin = theory.bias.waiting_time(run.step, **_numbers(run.at), **_samples(run.at)).max()
    return np.geomspace(max(float(begin), run.times[-1]), FAR, 100)


def _lost() -> Iterator[Measurement]:
    """Where normalized descent goes on data that satisfy the assumptions as printed."""
    at, W, local, _ = data.lopsided_run()
    numbers = _numbers(at)
    yield from _as_printed(at)
    settled = svm.correlation(W, local.W)
    yield at_least("the run: cosine with a local direction", settled, 0.95, role="premise")
    begin = theory.bias.waiting_time(at.step, **numbers, **_samples(at), printed=True)
    C = theory.bias.rate_constant(at.step, **numbers, norm=0.0, along=0.0)
    late = 1e3 * np.maximum(begin, C)
    limit = svm.correlation(local.W, at.margin.W)
    bound = theory.bias.rate_bound(late, C)
    yield at_least("the run: cosine of that direction with W_mm", limit, bound)


def _as_printed(at: Setting) -> Iterator[Measurement]:
    factor, spread = theory.bias.orthogonality(at.problem), theory.bias.split_scores(at.problem)[2]
    yield at_least("four samples: Assumption 1 as printed", factor, at.needed, role="premise")
    yield equal("four samples: Assumption 2, spread", spread, 0.0, size=1.0, role="premise")


def _rate(name: str, run: Descent) -> Generator[Measurement, None, tuple[Array, Array]]:
    """The bound, what it is made of, and the slowest fall of 1 - cosine with its times."""
    at, eta, t = run.at, run.step, _begin(run)
    W, toward = run.onward(t), at.margin.W / at.width[:, None, None]
    along = inner(W, toward)
    off = length(W[0] - along[0, :, None, None] * toward)
    C = theory.bias.rate_constant(eta, **_numbers(at), norm=length(W[0]), along=along[0])
    allowed = 1.0 - theory.bias.rate_bound(t[:, None], C)
    where = f"{name}, t from {t[0]:.0f} to {FAR:g}"
    passes = t[np.argmax(allowed <= 0.5, axis=0)]
    yield at_most(f"step at which the bound passes 1/2, {name}", passes, FAR / 1e2, role="premise")
    miss = theory.bias.two_token_miss(along, off**2)
    yield at_most(f"1 - cosine, {where}", miss, allowed, role="correction")
    taken = run.times >= 6.0
    times = np.concatenate([run.times[taken], t])
    early = 1.0 - svm.correlation(run.W[taken], at.margin.W)
    slowest = max(np.concatenate([early, miss]).T, key=lambda column: slope(times, column))
    words = f"exponent of 1 - cosine, {name}, t from 6 to {FAR:g}"
    yield exponent(words, times, slowest, -1.0, within=0.05, relation="<=", role="correction")
    # the proof: the gradient may fall behind by eps_t, a step adds eta^2 / (2 |W|) to the norm
    least = theory.bias.norm_bounds(t[:, None], eta, **_numbers(at))[0]
    behind = eta * theory.bias.epsilon_schedule(t[:, None], eta, **_numbers(at)) * t[:, None]
    behind = behind + eta**2 * t[:, None] / (2.0 * least)  # of one step, times t: for d log t
    spent = np.cumsum((behind[1:] + behind[:-1]) / 2.0 * np.diff(np.log(t))[:, None], axis=0)
    what = f"what the proof spends up to t, over the least norm, {where}"
    yield at_most(what, spent / least[1:], allowed[1:], role="correction")
    return times, slowest


def _saturation(name: str, run: Descent) -> Iterator[Measurement]:
    at, t = run.at, _begin(run)
    goal = theory.bias.saturation_exponent(t[:, None], run.step, **_numbers(at))
    # attention is at least 1/(1 + (T-1) e^-x) where its log odds and log(T-1) are at least x
    gaps = leads(run.onward(t), at.problem)
    nearest = gaps.min(axis=-1)
    rest = np.log(np.exp(nearest[..., None] - gaps).sum(axis=-1) / (at.problem.T - 1.0))
    odds = (nearest - rest).min(axis=-1)
    where = f"log odds of opt, {name}, t from {t[0]:.0f} to {FAR:g}"
    yield at_least(where, odds, goal, role="correction")
    slowest = np.abs(odds).min(axis=-1)
    yield exponent(f"exponent of {where}", t, slowest, 1.0, within=0.01, role="correction")


def _lead(at: Setting, W: Array) -> Array:
    """By how much the optimal logit leads, worst sample; time first, then trials."""
    return np.asarray(leads(W, at.problem).min(axis=(-2, -1)))


@measures("bias.theorem-5", instances=10)
def theorem_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    families = ("opposite", 2, 2), ("near", 2, 2), ("near", 3, 3)
    fits = []
    for name, run in _inside(rng, instances, *families):
        yield from _premises(name, run)
        fits.append((yield from _rate(name, run)))
    times, slowest = max(fits, key=lambda fit: slope(*fit))
    words = "exponent of 1 - cosine where it falls most slowly"
    yield exponent(words, times, slowest, -2.0, within=0.02, role="correction")
    yield from _lost()
    yield from _waiting()
    # Theorem 1 adds that Lambda = O(1) for B, T and Upsilon of order 1
    sizes = np.array([2, 8, 32, 128, 256])
    found = [float(data.opposite(rng, 1, n=int(n)).width[0]) for n in sizes]
    words = "exponent of Lambda in n for B = 1, T = 2"
    yield exponent(words, sizes, found, 0.0, within=0.05, role="step")
    yield exponent(words, sizes, found, 0.5, within=1e-3, role="correction")


def _waiting() -> Iterator[Measurement]:
    """Is the norm R_eps from t_0 on? One sample, tokens e and T - 1 times -e: Lambda = 1/2."""
    numbers: dict[str, Any] = {"B": 1.0, "margin_norm": 0.5}
    for printed, role in ((True, "step"), (False, "correction")):
        shares, found = [], []
        for T in (200, 500, 1000):
            samples: dict[str, Any] = {"n": 1, "T": T, "conditioning": np.exp(1.0)}
            step = theory.bias.largest_step(1.0, T)
            begin = theory.bias.waiting_time(step, **numbers, **samples, printed=printed)
            t = begin * np.geomspace(1.0, 1e6, 100)
            eps = theory.bias.epsilon_schedule(t, step, **numbers)
            R = theory.bias.norm_threshold(eps, **numbers, **samples, printed=printed)
            shares.append(theory.bias.norm_bounds(t, step, **numbers)[0] / R)
            found.append(eps)
        which = "printed" if printed else "corrected"
        yield at_least(f"norm from the {which} t_0 on, over R_eps", shares, 1.0, role=role)
        yield at_most(f"eps_t from the {which} t_0 on", found, 1.0, role="correction")


@measures("bias.lemma-8", instances=10)
def lemma_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at, _, local, lowest = data.lopsided_run()
    yield from _as_printed(at)
    end = theory.bias.saturation_bound(25_000, float(at.step), at.B, at.width, T=2)
    yield at_least("attention on opt at the end, Assumption 1 as printed", lowest, end)
    size, numbers = float(at.step), _numbers(at)
    C = theory.bias.rate_constant(size, **numbers, norm=0.0, along=0.0)
    begin = theory.bias.waiting_time(size, **numbers, **_samples(at), printed=True)
    late = 10.0 * np.maximum(begin, theory.bias.saturation_time(C, **numbers))
    far = size * late * local.W / local.norm
    bound = theory.bias.saturation_bound(late, size, **numbers, T=2)
    yield at_least("the same, where the run goes", at.attention(far), bound)
    families = ("opposite", 1, 2), ("opposite", 2, 2), ("near", 2, 2), ("near", 3, 3)
    for name, run in _inside(rng, instances, *families):
        yield from _premises(name, run)
        yield from _saturation(name, run)
    at = data.opposite(rng, 1, n=2)
    C = theory.bias.rate_constant(at.step, **_numbers(at), norm=0.0, along=0.0)
    begin = theory.bias.saturation_time(C, **_numbers(at))
    what = "time from when on (38) gives it, opposite tokens"
    yield at_most(what, begin, FAR, role="premise")
    B, width, step = 1.0, 2.0, 0.5
    C = theory.bias.rate_constant(step, B, width, norm=0.0, along=0.0)
    times = {
        "printed": theory.bias.saturation_time(C, B, width, printed=True),
        "fourth power's, without log t,": 2.0**11 * (B**2 * width) ** 4 * C,
        "corrected": theory.bias.saturation_time(C, B, width),
    }
    for which, begin in times.items():
        t, role = begin * (1.0 + 1e-9), "correction" if which == "corrected" else "step"
        least = theory.bias.norm_bounds(t, step, B, width)[0] / width
        off = np.sqrt(2.0 * (1.0 - theory.bias.rate_bound(t, C)))
        lead = least - 2.0 * B**2 * 2.0 * step * t * off
        goal = theory.bias.saturation_exponent(t, step, B, width)
        yield at_least(f"(38) at the {which} time, lead over t", lead / t, goal / t, role=role)


@measures("bias.lemma-7", instances=20)
def lemma_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at, _, local, _ = data.lopsided_run()
    eps = np.array([0.3, 0.5, 0.8])
    R = theory.bias.norm_threshold(eps, **_numbers(at), **_samples(at), printed=True)
    for share, size in zip(eps, 2.0 * R, strict=True):
        W = size * local.W / local.norm
        yield _better_aligned(at, W, share, f"where the run goes, eps={share:g}", "statement")
    for n, T in ((2, 2), (3, 3)):
        run = data.descent(data.seed_of(rng), instances, "near", n, T, 3000)
        for share in eps:
            R = theory.bias.norm_threshold(share, **_numbers(run.at), **_samples(run.at))
            late = np.flatnonzero((length(run.W) >= R).all(axis=-1))
            for place in (late[0], late[-1]):
                where = f"n={n} T={T}, eps={share:g}, t={run.times[place]:.0f}"
                yield _better_aligned(run.at, run.W[place], share, where, "correction")
    yield _asked_by_the_cases(rng, instances)
    run = data.descent(data.seed_of(rng), instances, "near", 3, 3, 3000)
    W = run.W[20]
    scaled = W * (run.at.width / length(W))[:, None, None]
    sets = theory.bias.gap_set(_lead(run.at, scaled) - 1.0, 0.5)
    yield at_most("set of the worst sample: I_1 is not empty", sets, 1.0, role="correction")


def _asked_by_the_cases(rng: np.random.Generator, instances: int) -> Measurement:
    r"""$R_\epsilon=\Lambda R'$ with the $R'$ that cases 1 and 2 of the proof ask for."""
    n, T, eps = 4, 3, rng.uniform(0.05, 0.9, instances)
    at = setting(problems.orthogonal(n=n, T=T, d=30, rho=0.2, trials=instances, rng=rng))
    R = theory.bias.norm_threshold(eps, **_numbers(at), n=n, T=T, conditioning=np.exp(1.0))
    size = at.width[:, None, None]
    tilted = at.margin.W + 0.5 * size * rng.standard_normal(at.margin.W.shape) / 30.0
    gaps = leads(tilted * size / length(tilted)[:, None, None], at.problem)
    largest = np.where(np.isinf(gaps), -np.inf, gaps).max(axis=(-1, -2)) - 1.0
    asked = 10.0 / eps * np.log(10.0 * T * np.maximum(largest, 0.1) / eps)
    words = "R_eps over Lambda, against what cases 1 and 2 ask for"
    return at_least(words, R / at.width, asked, role="correction")


def _better_aligned(at: Setting, W: Array, eps: float, where: str, role: str) -> Measurement:
    G = at.descent(W)
    left = inner(G, at.margin.W) / at.width
    right = (1.0 - eps) * inner(G, W) / length(W)
    return at_least(f"gradient along W_mm, {where}", left, right, role=role)
