"""Errata of the svm paper that a number of their own refutes; the others are in the ledger.

Numbers 15 and 21 were withdrawn: the sentence after Definition 2 can be read as it should be, and
Lemma 15 maps to products, and is true as printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, vanishes
from attnbook.claims.svm import _cases as cases
from attnlab import curvature, models, optim, problems, svm
from attnlab.checks import Array
from attnlab.models import Params, losses
from attnlab.problems import TokenProblem


@measures("svm.erratum-2", instances=40)
def erratum_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=4, trials=instances, rng=rng)
    params = {name: rng.standard_normal((instances, 4, 3)) for name in ("K", "Q")}
    K, Q = params["K"], params["Q"]
    G = models.Attention().value_and_grad({"W": K @ Q.swapaxes(-1, -2)}, drawn)[1]["W"]
    Gt = G.swapaxes(-1, -2)
    for name, printed, correct in (("K", Gt @ Q, G @ Q), ("Q", G @ K, Gt @ K)):
        truth = _differences(drawn, params, name)
        size = cases.norm(truth)
        what = f"gradient in {name} against finite differences"
        for found, role in ((printed, "statement"), (correct, "correction")):
            gone = cases.norm(found - truth)
            yield equal(what, gone, 0.0, size=size, within=1e-6, role=role)


def _differences(problem: TokenProblem, params: Params, name: str) -> Array:
    """The gradient in one factor by central differences of the loss, entry by entry."""
    model, step = models.Attention(factors=params["K"].shape[-1]), 1e-5
    found = np.zeros_like(params[name])
    for row, column in np.ndindex(*found.shape[-2:]):
        move = np.zeros(found.shape[-2:])
        move[row, column] = step
        above, below = (
            model.value_and_grad({**params, name: params[name] + sign * move}, problem)[0]
            for sign in (1.0, -1.0)
        )
        found[..., row, column] = (above - below) / (2.0 * step)
    return found


@measures("svm.erratum-4")
def erratum_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=1, T=2, d=3, trials=instances, rng=rng)
    model = models.Attention(loss="correlation")
    # up to a constant the loss is -gap times the logistic function of <feature, W>
    feature = theory.svm.features(drawn).sum(axis=(1, 2))
    size, gap = cases.norm(feature), theory.svm.score_gaps(drawn)[0][:, 0]
    sharp = gap * size**2 / (6.0 * math.sqrt(3.0))
    steepest = math.log(2.0 + math.sqrt(3.0))  # where the loss bends up the most
    grid = [cases.scaled(u / size**2, feature) for u in (*np.linspace(-6.0, 6.0, 25), steepest)]
    there = grid[-1]
    bends = [np.abs(curvature.hessian(model, {"W": W}, drawn).extremes).max(axis=0) for W in grid]
    yield equal("largest curvature, and L", np.max(bends, axis=0), sharp, role="correction")
    for name, printed, role in (("2/L", True, "statement"), ("1/L", False, "correction")):
        step = theory.svm.descent_step(sharp, printed=printed)
        gained, wanted = cases.gain(model, drawn, there, step)
        yield at_least(f"decrease at step {name}, L sharp", gained, wanted, role=role)
    step = theory.svm.descent_step(sharp)
    gained, wanted = np.stack([cases.gain(model, drawn, W, step) for W in grid[:-1]], axis=1)
    yield at_least("decrease at step 1/L from 25 points", gained, wanted, role="correction")
    loose = curvature.smoothness(model, drawn).W
    yield at_least("L_W of Lemma 4 over the sharp constant", loose / sharp, 4.0, role="correction")
    step = theory.svm.descent_step(loose, printed=True)
    gained, wanted = cases.gain(model, drawn, there, step)
    yield at_least("decrease at 2/L_W with that L_W", gained, wanted, role="correction")


@measures("svm.erratum-8")
def erratum_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=8, trials=instances, rng=rng)
    margin, gaps = svm.attention_svm(drawn), theory.svm.score_gaps(drawn)[0]
    R = theory.svm.lemma_12_radius(drawn, margin.W, 1.0)
    shorter = margin.norm * np.log(gaps.max(axis=-1) / gaps.min(axis=-1))  # sup in place of min
    allowed = cases.allowance(drawn, margin.W, 1.0)
    for name, size, role in (("sup", R - shorter, "statement"), ("min", R, "correction")):
        W = cases.scaled(size, cases.unit(margin.W))
        lost = cases.unselected(drawn, W, drawn.optimal)[1]
        yield at_most(f"1 - s at R of the {name} gap, against (58)", lost, allowed, role=role)


@measures("svm.erratum-13", instances=40)
def erratum_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n = m = 3
    drawn = problems.sphere(n=n, T=4, d=8, trials=instances, rng=rng)
    convex, frobenius = svm.attention_svm(drawn, norm="nuc"), svm.attention_svm(drawn)
    apart = cases.norm(convex.W - frobenius.W) / frobenius.norm
    yield vanishes(
        "distance of the convex nuclear solution from that of Att-SVM", apart, within=1e-6
    )
    K, Q = convex.factors(m)  # m columns, fewer than d
    cost = (cases.norm(K) ** 2 + cases.norm(Q) ** 2) / 2.0
    what = "cost of m columns, against the convex optimum"
    yield equal(what, cost, convex.norm, within=1e-6, role="correction")
    least = cases.least_margin(drawn, K @ Q.swapaxes(-1, -2))
    yield at_least("their smallest margin", least, 1.0 - 1e-6, role="correction")


@measures("svm.erratum-18", instances=1000)
def erratum_18(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, tau = 8, 3
    spread = -np.sort(-rng.uniform(size=(instances, T)), axis=-1)
    s = -np.sort(-rng.dirichlet(np.ones(T), size=instances), axis=-1)
    # scores nearly flat above a gap of one, and mass nearly all on the best token
    flat = np.where(np.arange(T) < tau, 1.0, 0.0) + 1e-3 * spread
    rest = rng.uniform(0.005, 0.02, (instances, 1))
    peaked = np.where(np.arange(T) == 0, 1.0 - (T - 1) * rest, rest)
    below = _edge(flat, tau) * rng.uniform(0.8, 0.99, instances)
    lost = _gain(flat, peaked, below, tau, even=False) <= 0.0
    what = "share with L(s_bar) >= L(s) although lambda < tau gap_tau / 2"
    yield at_most(f"{what}, printed baseline", lost.mean(), 0.0)
    top = s[:, :tau]
    what = "sum of squares of the top tau, against S_1^2 / tau"
    yield at_most(what, (top**2).sum(axis=-1), top.sum(axis=-1) ** 2 / tau)
    for name, scores, weights in (("spread", spread, s), ("flat", flat, peaked)):
        below = _edge(scores, tau) * rng.uniform(0.0, 1.0, instances)
        gain = _gain(scores, weights, below, tau, even=True)
        what = f"L(s) - L(s_bar), even baseline, {name} scores"
        yield at_least(what, gain, 0.0, strictly=True, role="correction")


def _edge(scores: Array, tau: int) -> Array:
    """Half of tau times the gap below the top tau scores."""
    return np.asarray(tau * (scores[:, tau - 1] - scores[:, tau]) / 2.0)


def _gain(scores: Array, s: Array, curvature: Array, tau: int, *, even: bool) -> Array:
    """L(s) - L(s_bar) for sorted scores, with the mass beyond tau given to the top tau."""
    top = s[:, :tau]
    total = top.sum(axis=-1, keepdims=True)
    moved = np.zeros_like(s)
    moved[:, :tau] = top + (1.0 - total) / tau if even else top / total

    def value(weights: Array) -> Array:
        found = curvature * (weights**2).sum(axis=-1) - (scores * weights).sum(axis=-1)
        return np.asarray(found)

    return value(s) - value(moved)


@measures("svm.erratum-24")
def erratum_24(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    outputs = 3
    drawn = problems.sequence(n=3, T=outputs, d=9, self_attention=False, trials=instances, rng=rng)
    W = 60.0 * svm.attention_svm(drawn).W
    among, lost = cases.unselected(drawn, W, drawn.optimal)
    missed = lost * (among * cases.lead(drawn, drawn.optimal)).sum(axis=-1)
    terms = losses()["logistic"].excess(drawn.best, missed)
    whole = outputs * models.Attention().scaled_grad({"W": W}, drawn)[0]
    worst = terms.max(axis=-1)
    what = "L(R W_mm) - L_*, against"
    yield at_most(f"{what} the largest term", whole, worst)
    yield at_most(f"{what} K times the largest term", whole, outputs * worst, role="correction")
    apart = theory.svm.score_constants(drawn)[0]  # B of equation 90; c_up = 1
    here = cases.at(lost, terms.argmax(axis=-1))
    what = "largest term, against c_up B (1 - s)"
    yield at_most(f"{what} where it is attained", worst, here * apart, role="correction")


@measures("svm.erratum-28", instances=12)
def erratum_28(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=4, T=4, d=12, min_gap=0.1, trials=instances, rng=rng)
    rule = optim.NormalizedGD(0.1, recipe="paper")
    run = optim.train(models.Attention(factors=8), drawn, rule, 1500, rng=rng, record=())
    product = run.params["K"] @ run.params["Q"].swapaxes(-1, -2)
    found = svm.classify(run)
    frobenius = svm.attention_svm(drawn, found.tokens).W
    what = "median cosine of the trained K Q^T"
    typical = np.median(svm.correlation(product, frobenius))
    yield at_least(f"{what} with the Frobenius solution", typical, 0.99)
    typical = np.median(found.correlation)
    yield at_least(f"{what} with the nuclear solution", typical, 0.99, role="correction")
    few = drawn.trial(slice(0, 1 + instances // 6))
    path = svm.regularization_path(models.Attention(factors=8), few, [300.0], rng=rng)
    cosine = svm.correlation(path.W[0], svm.attention_svm(few, norm="nuc").W)
    what = "cosine of the path's K Q^T at R = 300 with the nuclear solution"
    yield at_least(what, cosine, 0.99, role="correction")
