"""One step and one norm: the start, attention that does not fall, alignment, growth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, rarely
from attnbook.claims.bias import _instances as data
from attnbook.claims.bias._instances import FIXED, Setting, length, setting
from attnlab import optim, problems, svm
from attnlab.checks import Array


@measures("bias.equation-9", instances=30)
def equation_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n, T in ((2, 2), (3, 3)):
        run = data.descent(data.seed_of(rng), instances, "near", n, T, 1000)
        t, norm = run.times[1:, None], length(run.W[1:])
        low, _ = theory.bias.norm_bounds(t, run.step, run.at.B, run.at.width)
        yield at_least(f"norm, n={n} T={T}", norm, low)
        yield at_most(f"norm from above, n={n} T={T}", norm, 2.0 * run.step * t)
        yield at_least("B^2 Lambda, so that the maximum in Lemma 5 is 1", _size(run.at), 0.5)


def _size(at: Setting) -> Array:
    return np.asarray(at.B**2 * at.width)


@measures("bias.lemma-2", instances=2000)
def lemma_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, instances = 4, max(instances, 50)
    for name, step in (("first", 1e6), ("second", 0.1)):
        at = data.nearly_orthogonal(rng, instances, n=2, T=T)
        d = at.problem.d
        failure = min(1.0, 2.0 * np.exp(-d))
        allowed = failure + 6.0 * np.sqrt(failure / instances)
        drawn = rng.standard_normal((instances, d, d))
        for k in (1.05, 2.0):
            scale = theory.bias.initial_scale(step, at.B, at.width, d=d, T=T, k=k)
            W = scale[:, None, None] * drawn
            missed = (at.attention(W) < 1.0 / (k * T)).any(axis=-1)
            yield rarely(f"share below 1/(kT), {name} term, k={k}", missed, allowed)
            far = length(W) > theory.bias.initial_norm(step, at.B, at.width)
            if name == "second":
                yield rarely(f"share of larger norms, k={k}", far, allowed)
            else:
                wide = (at.attention(30.0 * W) < 1.0 / (k * T)).any(axis=-1)
                yield at_most(
                    f"share below, 30 times the scale, k={k}", wide.mean(), allowed, role="outside"
                )


@measures("bias.lemma-3", instances=50)
def lemma_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at, _, _, lowest = data.lopsided_run()
    factor = theory.bias.orthogonality(at.problem)
    yield at_least("Assumption 1 as printed, four samples", factor, at.needed, role="correction")
    yield at_least("attention on opt, four samples", lowest, 0.5)
    one = data.overshoot()
    W = theory.bias.initial_norm(one.step, one.B, one.width) * 0.9 * np.diag([1.0, 0.0])
    fall = _lowest(one, W, float(one.step), 50)
    yield at_least("attention on opt, one sample", fall, np.minimum(one.attention(W), 1 / 3))
    for n, T in ((2, 2), (3, 3), (2, 5)):
        at = data.nearly_orthogonal(rng, instances, n=n, T=T)
        factor = theory.bias.orthogonality(at.problem, symmetric=True)
        far, wide = theory.bias.optimal_geometry(at.problem)
        mended = (factor >= at.needed) & (far <= 2.0) & (wide >= 0.75)
        yield at_least(f"mended assumption, n={n} T={T}", mended, 1.0, role="correction")
        step = float(at.step.min())
        W = data.small_start(rng, at, np.full(instances, step))
        bound = np.minimum(at.attention(W), 1.0 / T)
        fall = _lowest(at, W, step, 300)
        yield at_least(f"attention on opt, n={n} T={T}", fall, bound, role="correction")


def _lowest(at: Setting, W: Array, step: float, steps: int) -> Array:
    """The lowest attention on each sample's optimal token along normalized descent."""
    record = {"on opt": lambda params, _: at.attention(params["W"])}
    rule = optim.NormalizedGD(step)
    run = optim.train(FIXED, at.problem, rule, steps, params={"W": W}, record=record)
    return np.asarray(run.history["on opt"].min(axis=0))


def _points(rng: np.random.Generator, at: Setting) -> Iterator[tuple[str, Array]]:
    """Directions of all kinds at sizes from 0 to where attention is saturated."""
    trials, d = at.problem.trials, at.problem.d
    away = rng.standard_normal((*trials, d, d))
    away /= length(away)[..., None, None]
    toward = at.margin.W / at.width[..., None, None]
    for size in (0.0, 1.0, 10.0, 100.0):
        yield f"random W of length {size:g}", size * away
    yield "W against W_mm", -20.0 * toward + away
    yield "W along W_mm", 20.0 * toward + away


@measures("bias.lemma-4")
def lemma_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    sets = {
        "nearly orthogonal tokens": data.nearly_orthogonal(rng, instances, n=3, T=3),
        "Example 1": setting(
            problems.orthogonal(n=6, T=4, d=20, rho=0.1, trials=instances, rng=rng)
        ),
        "opposite tokens": data.opposite(rng, instances, n=1),
    }
    pairs = problems.sphere(n=3, T=2, d=6, self_attention=True, trials=instances, rng=rng)
    sets["two random tokens"] = setting(pairs)
    for name, at in sets.items():
        bound = theory.bias.alignment_bound(at.B, at.width)
        for where, W in _points(rng, at):
            cosine = svm.correlation(at.descent(W), at.margin.W)
            yield at_least(f"cosine, {name}, {where}", cosine, bound)
    more = setting(problems.sphere(n=3, T=4, d=6, self_attention=True, trials=200, rng=rng))
    bound = theory.bias.alignment_bound(more.B, more.width)
    W = 10.0 * rng.standard_normal((200, 6, 6))
    cosine = svm.correlation(more.descent(W), more.margin.W)
    yield at_least("cosine without Assumption 2", cosine, bound, role="outside")


@measures("bias.lemma-5", instances=30)
def lemma_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    run = data.descent(data.seed_of(rng), instances, "near", 2, 2, 1000)
    yield from _between("nearly orthogonal tokens", run.at, run.step, run.times, run.W)
    pairs = problems.sphere(n=3, T=2, d=6, self_attention=True, trials=instances, rng=rng)
    at = setting(pairs)
    step = float(at.step.min())
    W = data.small_start(rng, at, np.full(instances, step))
    yield from _between("two random tokens", at, step, *_norms(at, W, step, 300))
    at = data.opposite(rng, instances, n=1)
    step = float(at.step.min())
    start = theory.bias.initial_norm(step, at.B, at.width)
    W = -start[:, None, None] * at.margin.W / at.width[:, None, None]
    times, path = _norms(at, W, step, 30)
    yield from _between("opposite tokens, started the wrong way", at, step, times, path)
    figure = setting(problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=2, rng=rng))
    zero = np.zeros((2, 100, 100))
    yield from _between("data of Figure 2", figure, 0.025, *_norms(figure, zero, 0.025, 300))


def _norms(at: Setting, W: Array, step: float, steps: int) -> tuple[Array, Array]:
    rule, record = optim.NormalizedGD(step), {"W": lambda params, _: params["W"]}
    run = optim.train(FIXED, at.problem, rule, steps, params={"W": W}, record=record, every="log")
    return run.history["step"].astype(float), run.history["W"]


def _between(name: str, at: Setting, step: float, times: Array, W: Array) -> Iterator[Measurement]:
    low, high = theory.bias.norm_bounds(times[1:, None], step, at.B, at.width)
    norm = length(W[1:])
    yield at_least(f"norm, {name}", norm, low)
    yield at_most(f"norm from above, {name}", norm, high)
