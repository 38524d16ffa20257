"""How the paper relates to the svm paper: what held for one sample only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least
from attnbook.claims.bias import _instances as data
from attnbook.claims.bias._instances import FIXED, Setting, inner, length, setting
from attnlab import optim, problems, svm
from attnlab.checks import Array

WRONG = np.array([1, 1])  # on the data of Figure 8: sample 2 on its worse token


def _advantage(at: Setting, W: Array, eps: float) -> Array:
    """By how much the gradient is better aligned with W_mm than with (1 - eps) W."""
    G = at.descent(W)
    return inner(G, at.margin.W) / at.width - (1.0 - eps) * inner(G, W) / length(W)


@measures("bias.remark-1", instances=200)
def remark_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for T in (2, 4):
        drawn = problems.orthogonal(n=1, T=T, d=6, rho=0.4, trials=instances, rng=rng)
        at, d = setting(drawn), 6  # scores equal to the last bit: W may lie anywhere
        for eps in (0.2, 0.6):
            R = theory.bias.norm_threshold(
                eps, at.B, at.width, n=1, T=T, conditioning=at.conditioning
            )
            for factor in (1.01, 10.0):
                W = rng.standard_normal((instances, d, d))
                W *= (factor * R / length(W))[:, None, None]
                ahead = _advantage(at, W, eps)
                where = f"one sample, any W, T={T} eps={eps} |W|={factor:g} R"
                yield at_least(f"lead of W_mm, {where}", ahead, 0.0, role="correction")
    run = data.descent(data.seed_of(rng), min(instances, 20), "near", 3, 3, 1000)
    R = theory.bias.norm_threshold(
        0.8, run.at.B, run.at.width, n=3, T=3, conditioning=run.at.conditioning
    )
    late = np.flatnonzero((length(run.W) >= R).all(axis=-1))
    for place in (late[0], late[-1]):
        ahead = _advantage(run.at, run.W[place], 0.8)
        where = f"n=3, iterate {run.times[place]:.0f}"
        yield at_least(f"lead of W_mm, {where}", ahead, 0.0, role="correction")
    lost, _, local, _ = data.lopsided_run()
    R = theory.bias.norm_threshold(
        0.5, lost.B, lost.width, n=lost.problem.n, T=lost.problem.T, conditioning=lost.conditioning
    )
    ahead = _advantage(lost, 2.0 * R * local.W / local.norm, 0.5)
    what = "lead of W_mm, four samples, where the run from zero goes under Assumption 1 as printed"
    yield at_least(what, ahead, 0.0)
    two = setting(problems.bad_direction())
    wrong = svm.attention_svm(two.problem, tokens=WRONG)
    for size in (100.0, 1e4, 1e6):
        ahead = _advantage(two, size * wrong.W / wrong.norm, 0.2)
        where = f"two samples, wrong direction, |W|={size:g}"
        yield at_least(f"lead of W_mm, {where}", ahead, 0.0, role="outside")


def _cosine(at: Setting, W: Array, step: float, steps: int) -> Array:
    rule = optim.NormalizedGD(step)
    run = optim.train(FIXED, at.problem, rule, steps, params={"W": W}, every=steps)
    return svm.correlation(run.params["W"], at.margin.W)


@measures("bias.remark-2", instances=50)
def remark_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n in (2, 4):
        at = data.nearly_orthogonal(rng, instances, n=n, T=3)
        step, d = float(at.step.min()), at.problem.d
        size = theory.bias.initial_norm(step, at.B, at.width)[:, None, None]
        away = rng.standard_normal((instances, d, d))
        away /= length(away)[:, None, None]
        for name, W in (("random", away), ("against W_mm", -at.margin.W / at.width[:, None, None])):
            cosine = _cosine(at, size * W, step, 1000)
            yield at_least(f"cosine, n={n}, start {name}", cosine, 0.99, role="correction")
    lost, end, _, _ = data.lopsided_run()
    reached = svm.correlation(end, lost.margin.W)
    what = "cosine, four samples inside Assumption 1 as printed, from zero"
    yield at_least(what, reached, 0.99)
    one = data.nearly_orthogonal(rng, instances, n=1, T=2)
    W = 5.0 * rng.standard_normal((instances, 2, 2))
    far = _cosine(one, W, float(one.step.min()), 3000)
    yield at_least("cosine, one sample, any start", far, 0.99, role="correction")
    figure = setting(problems.bad_direction())
    bad = -np.eye(2) / np.sqrt(2.0)
    small = _cosine(figure, 0.1 * bad, 0.025, 2000)
    what = "cosine, Figure 8, bad direction of length 0.1"
    yield at_least(what, small, 0.99, role="correction")
    large = _cosine(figure, bad, 0.025, 5000)
    yield at_least("cosine, Figure 8, the same of length 1", large, 0.99, role="outside")
    wrong = svm.attention_svm(figure.problem, tokens=WRONG)
    gone = _cosine(figure, 2.0 * wrong.W / wrong.norm, 0.025, 5000)
    yield at_least("cosine, Figure 8, along W_alpha", gone, 0.99, role="outside")
