"""The cone of separating matrices around the global direction (errata 7 to 10)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.svm._errata._tools import (
    covariance,
    descent,
    inner,
    least_margin,
    logits,
    norm,
    normal,
    pushes,
    scaled,
    seen,
    shares,
)
from attnlab import models, optim, problems, svm
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def _allowance(problem: TokenProblem, mm: Array, mu: Array | float) -> Array:
    """What inequality 58 allows 1 - s to be, sample by sample."""
    most = 4.0 * theory.svm.span(problem) * theory.svm.reach(problem, mm, differences=True)
    return np.asarray((mu / most)[..., None] * theory.svm.score_gaps(problem)[0])


@measures("svm.erratum-7", instances=40)
def erratum_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=3, d=8, trials=4 * instances + 20, rng=rng)
    drawn = drawn.trial(svm.assumption_c(drawn).holds)
    mm, opt = svm.attention_svm(drawn).W, drawn.optimal
    model = models.Attention(start="zero")
    first = -model.value_and_grad({"W": np.zeros_like(mm)}, drawn)[1]["W"]
    mu = np.minimum(least_margin(drawn, scaled(first, 1.0), opt) * norm(mm), 1.0)
    R = theory.svm.lemma_12_radius(drawn, mm, mu)
    allowed = _allowance(drawn, mm, mu)
    for name, step, role in (
        ("1/|W_mm|", 1.0 / norm(mm), "statement"),
        ("R/|grad L(0)|", R / norm(first), "correction"),
    ):
        W = step[:, None, None] * first
        yield at_least(f"|W(1)|, with eta(0) = {name}", norm(W), R, role=role)
        lost = shares(drawn, W, opt).lost
        yield at_most(f"1 - s after it, against (58), eta(0) = {name}", lost, allowed, role=role)
    start = {"W": scaled(first, R)}
    run = optim.train(model, drawn, optim.NormalizedGD(0.1), 200, params=start, record=())
    kept = least_margin(drawn, run.params["W"], opt)
    what = "smallest margin of the optimal tokens 200 steps later"
    yield at_least(what, kept, 0.0, strictly=True, role="correction")


@measures("svm.erratum-8")
def erratum_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=8, trials=instances, rng=rng)
    mm, gaps = svm.attention_svm(drawn).W, theory.svm.score_gaps(drawn)[0]
    R = theory.svm.lemma_12_radius(drawn, mm, 1.0)
    shorter = norm(mm) * np.log(gaps.max(axis=-1) / gaps.min(axis=-1))  # sup in place of min
    for name, size, role in (("sup", R - shorter, "statement"), ("min", R, "correction")):
        lost = shares(drawn, scaled(mm, size), drawn.optimal).lost
        allowed = _allowance(drawn, mm, 1.0)
        yield at_most(f"1 - s at R of the {name} gap, against (58)", lost, allowed, role=role)


@measures("svm.erratum-9", instances=60)
def erratum_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=3, d=16, trials=instances + 10, rng=rng)
    drawn = drawn.trial(svm.assumption_b1(drawn).holds)
    mm = svm.attention_svm(drawn).W
    W, V = _near(rng, drawn, mm, np.full(len(mm), 0.1))
    opt = drawn.optimal
    mu = np.minimum(least_margin(drawn, W, opt), least_margin(drawn, V, opt)) * norm(mm)
    W, V = W[mu > 0.0], scaled(V, norm(mm))[mu > 0.0]
    inside, mm_inside, mu = drawn.trial(mu > 0.0), mm[mu > 0.0], mu[mu > 0.0]
    W = scaled(W, theory.svm.lemma_12_radius(inside, mm_inside, mu))
    bounds = theory.svm.lemma_12_bounds(inside, mm_inside, mu, *seen(inside, W))
    yield from _chain("60", pushes(inside, W, V), *bounds)
    local = theory.svm.local_constants(drawn, mm)
    W, V = _near(rng, drawn, mm, np.sqrt(local.mu))  # a cosine of at least 1 - mu / 2
    W, V = scaled(W, local.radius), scaled(V, local.norm)
    bounds = theory.svm.lemma_13_bounds(drawn, mm, *seen(drawn, W))
    yield from _chain("75", pushes(drawn, W, V), *bounds)


def _near(
    rng: np.random.Generator, problem: TokenProblem, mm: Array, share: Array
) -> tuple[Array, Array]:
    """Two random unit matrices around a direction."""
    noise = [scaled(normal(rng, problem), share) for _ in range(2)]
    return scaled(scaled(mm, 1.0) + noise[0], 1.0), scaled(scaled(mm, 1.0) + noise[1], 1.0)


def _chain(name: str, push: Array, low: Array, high: Array) -> Iterator[Measurement]:
    """Both inequalities of (60) or (75), as printed and reversed."""
    middle = -push  # <grad L(W), V>
    left, right = -high, -low  # the slopes are negative
    yield at_least(f"({name}) as printed: its left side, against <grad L(W), V>", left, middle)
    yield at_least(f"({name}) as printed: <grad L(W), V>, against its right side", middle, right)
    yield at_most(f"({name}) reversed, on the left", left, middle, role="correction")
    yield at_most(f"({name}) reversed, on the right", middle, right, role="correction")


@measures("svm.erratum-10", instances=60)
def erratum_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=10, min_gap=0.05, trials=instances, rng=rng)
    mm, opt, pi = svm.attention_svm(drawn).W, drawn.optimal, 0.1
    first = theory.svm.features(drawn)[:, 0].mean(axis=1)  # raises margins of the first sample
    W = scaled(mm, 1.0) + scaled(first, 1.0) + 0.1 * scaled(normal(rng, drawn), 1.0)
    inside = least_margin(drawn, W, opt) > 0.05 / norm(mm)
    W = scaled(W, 1e5 * norm(mm))
    down = descent(drawn, W)[0]  # its scale cancels on both sides
    reached = inner(down, mm)[inside]
    for name, bar, role in (
        ("|W| W/|W_mm|", scaled(W, norm(W) ** 2 / norm(mm)), "statement"),
        ("|W_mm| W/|W|", scaled(W, norm(mm)), "correction"),
    ):
        yield equal(f"|W_bar| for W_bar = {name}, and |W_mm|", norm(bar), norm(mm), role=role)
        along = inner(down, bar)[inside]
        what = f"<-grad, W_bar> against 1 + pi times <-grad, W_mm>, W_bar = {name}"
        yield at_most(what, along, (1.0 + pi) * reached, role=role)
    split = shares(drawn, W, opt)
    alone = covariance(split, logits(drawn, scaled(W, norm(mm))), drawn.scores, opt)[inside]
    bound = (1.0 + pi) * covariance(split, logits(drawn, mm), drawn.scores, opt)[inside]
    yield at_most("(49) sample by sample", alone, bound, role="step")
