"""The rate of normalized descent: Theorems 1 and 5, Lemmas 1 and 8, Lemma 7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.bias import _instances as data
from attnbook.claims.bias._instances import Descent, Setting, inner, leads, length, setting
from attnlab import problems, svm
from attnlab.checks import Array

STEPS = 12_000


def _numbers(at: Setting) -> dict[str, Any]:
    return {"B": at.B, "margin_norm": at.width}


def _samples(at: Setting) -> dict[str, Any]:
    return {"n": at.problem.n, "T": at.problem.T, "conditioning": at.conditioning}


def _long(rng: np.random.Generator, instances: int) -> tuple[Descent, Array, Array]:
    """A long run inside the mended assumptions, from when on the rate holds, and its constant."""
    run = data.descent(data.seed_of(rng), instances, "opposite", 2, 2, STEPS)
    at = run.at
    begin = theory.bias.waiting_time(run.step, **_numbers(at), **_samples(at))
    first = int(np.searchsorted(run.times, begin.max()))
    W, toward = run.W[first], at.margin.W
    along = inner(W, toward) / at.width
    C = theory.bias.rate_constant(run.step, **_numbers(at), norm=length(W), along=along)
    return run, run.times[first:], C


def _lost() -> Iterator[Measurement]:
    """Where normalized descent goes on data that satisfy the assumptions as printed."""
    at, W, local, _ = data.lopsided_run()
    numbers = _numbers(at)
    factor, spread = theory.bias.orthogonality(at.problem), theory.bias.split_scores(at.problem)[2]
    # what makes it a counterexample must hold, and so has the role of a correction
    yield at_least("the data: Assumption 1 as printed", factor, at.needed, role="correction")
    yield equal("the data: Assumption 2, spread", spread, 0.0, size=1.0, role="correction")
    settled = svm.correlation(W, local.W)
    yield at_least("the run: cosine with a local direction", settled, 0.95, role="correction")
    begin = theory.bias.waiting_time(at.step, **numbers, **_samples(at), printed=True)
    C = theory.bias.rate_constant(at.step, **numbers, norm=0.0, along=0.0)
    late = 1e3 * np.maximum(begin, C)
    limit = svm.correlation(local.W, at.margin.W)
    yield at_least(
        "the run: cosine of that direction with W_mm", limit, theory.bias.rate_bound(late, C)
    )


def _rate(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    run, late, C = _long(rng, instances)
    mended = theory.bias.orthogonality(run.at.problem, symmetric=True) >= run.at.needed
    yield at_least("mended Assumption 1", mended, 1.0, role="correction")
    cosine = svm.correlation(run.W, run.at.margin.W)[-late.size :]
    bound = theory.bias.rate_bound(late[:, None], C)
    yield at_least(f"cosine, t from {late[0]:.0f}", cosine, bound, role="correction")
    yield at_least("its bound at the end, above -1", bound[-1], -0.9, role="correction")
    for kind, n, T in (("opposite", 2, 2), ("near", 3, 3)):
        steps = STEPS if kind == "opposite" else 3000
        run = data.descent(data.seed_of(rng), instances, kind, n, T, steps)
        t = run.times
        window = (t >= t[-1] / 128.0) & (t > 1)
        miss = 1.0 - svm.correlation(run.W, run.at.margin.W)[window]
        allowed = slope(t[window], np.log(t[window]) ** 2 / t[window])
        worst = max(slope(t[window], column) for column in miss.T)
        where = f"n={n} T={T}, t from {t[window][0]:.0f} to {t[-1]:.0f}"
        yield at_most(f"exponent of 1 - cosine, {where}", worst, allowed, role="correction")


def _saturation(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at, _, local, lowest = data.lopsided_run()
    end = theory.bias.saturation_bound(25_000, float(at.step), at.B, at.width, T=2)
    yield at_least("attention on opt at the end, Assumption 1 as printed", lowest, end)
    size, numbers = float(at.step), _numbers(at)
    C = theory.bias.rate_constant(size, **numbers, norm=0.0, along=0.0)
    begin = theory.bias.waiting_time(size, **numbers, **_samples(at), printed=True)
    late = 10.0 * np.maximum(begin, theory.bias.saturation_time(C, **numbers))
    far = size * late * local.W / local.norm
    bound = theory.bias.saturation_bound(late, size, **numbers, T=2)
    yield at_least("the same, where the run goes", at.attention(far), bound)
    run, late, _ = _long(rng, instances)
    least = theory.bias.saturation_exponent(late[:, None], run.step, run.at.B, run.at.width)
    leads = _lead(run.at, run.W[-late.size :])
    yield at_least("lead of the optimal logit", leads, least, role="correction")
    for n, T in ((2, 2), (3, 3)):
        run = data.descent(data.seed_of(rng), instances, "near", n, T, 3000)
        begin = theory.bias.waiting_time(run.step, **_numbers(run.at), **_samples(run.at))
        first = int(np.searchsorted(run.times, min(begin.max(), 1000.0)))
        t = run.times[first:, None]
        least = theory.bias.saturation_exponent(t, run.step, **_numbers(run.at))
        leads = _lead(run.at, run.W[first:])
        yield at_least(f"lead, n={n} T={T}", leads, least, role="correction")
        share = run.at.attention(run.W[-1])
        bound = theory.bias.saturation_bound(run.times[-1], run.step, **_numbers(run.at), T=T)
        where = f"attention on opt, n={n} T={T}"
        yield at_least(where, share, bound[:, None], role="correction")


def _lead(at: Setting, W: Array) -> Array:
    """By how much the optimal logit leads, worst sample; time first, then trials."""
    return np.asarray(leads(W, at.problem).min(axis=(-2, -1)))


@measures("bias.theorem-5", instances=10)
def theorem_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _rate(rng, instances)
    yield from _lost()
    yield from _waiting()
    # Theorem 1 adds that Lambda = O(1) for B, T and Upsilon of order 1
    sizes = np.array([2, 8, 32, 128, 256])
    found = [float(data.opposite(rng, 1, n=int(n)).width[0]) for n in sizes]
    words = "exponent of Lambda in n for B = 1, T = 2"
    yield at_most(words, slope(sizes, found), 0.05, role="step")
    yield equal(words, slope(sizes, found), 0.5, within=1e-3, role="correction")


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
    yield from _saturation(rng, instances)
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
