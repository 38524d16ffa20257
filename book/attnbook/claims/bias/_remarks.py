"""How the paper relates to the svm paper: what held for one sample only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least
from attnbook.claims._registry import claim
from attnbook.claims.bias import _instances as data
from attnbook.claims.bias._instances import FIXED, Setting, inner, length, setting
from attnlab import optim, problems, svm
from attnlab.checks import Array

WRONG = np.array([1, 1])  # on the data of Figure 8: sample 2 on its worse token


def _advantage(at: Setting, W: Array, eps: float) -> Array:
    """By how much the gradient is better aligned with W_mm than with (1 - eps) W."""
    G = at.descent(W)
    return inner(G, at.margin.W) / at.width - (1.0 - eps) * inner(G, W) / length(W)


@claim(
    "bias.remark-1",
    "Remark 1",
    "Lemma 7 is for n samples; the svm paper's Lemma 10, without conditions on W, is for one",
    r"Lemma 10 of Tarzanagh et al. (beyond some norm every $W$ has $\langle-\nabla\mathcal "
    r"L(W),\bar "
    r"W_{mm}\rangle\ge(1-\epsilon)\langle-\nabla\mathcal L(W),\bar W\rangle$) holds for $n=1$ "
    r"only; "
    r"Lemma 7 extends it to $n\ge1$ along the iterates.",
    page="bias/directions",
    instances=200,
    reason="For one sample every W of norm R_eps will do. For two the data of Figure 8 refute it "
    "at any norm. That Lemma 7 extends it needs Assumption 1 as amended there.",
)
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
                yield at_least(f"lead of W_mm, {where}", ahead, 0.0)
    run = data.descent(data.seed_of(rng), min(instances, 20), "near", 3, 3, 1000)
    R = theory.bias.norm_threshold(
        0.8, run.at.B, run.at.width, n=3, T=3, conditioning=run.at.conditioning
    )
    late = np.flatnonzero((length(run.W) >= R).all(axis=-1))
    for place in (late[0], late[-1]):
        ahead = _advantage(run.at, run.W[place], 0.8)
        yield at_least(f"lead of W_mm, n=3, iterate {run.times[place]:.0f}", ahead, 0.0)
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


@claim(
    "bias.remark-2",
    "Remark 2",
    "unlike the svm paper's Theorem 4 (true for n = 1), Theorem 1 is global for n samples",
    r"Theorem 1 establishes convergence to $W_{mm}$ from any initialization direction (of the size "
    r"of Lemma 2) for all $n$, with rates; what was known needs $n=1$ or a suitable direction.",
    page="bias/directions",
    instances=50,
    reason="Any direction, at the small scale that the paper asks for: from a start of length 1 in "
    "a bad direction the data of Figure 8, which do not satisfy Assumption 1, never recover. "
    "Assumption 1 as amended in Lemma 3.",
)
def remark_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n in (2, 4):
        at = data.nearly_orthogonal(rng, instances, n=n, T=3)
        step, d = float(at.step.min()), at.problem.d
        size = theory.bias.initial_norm(step, at.B, at.width)[:, None, None]
        away = rng.standard_normal((instances, d, d))
        away /= length(away)[:, None, None]
        for name, W in (("random", away), ("against W_mm", -at.margin.W / at.width[:, None, None])):
            yield at_least(f"cosine, n={n}, start {name}", _cosine(at, size * W, step, 1000), 0.99)
    one = data.nearly_orthogonal(rng, instances, n=1, T=2)
    W = 5.0 * rng.standard_normal((instances, 2, 2))
    far = _cosine(one, W, float(one.step.min()), 3000)
    yield at_least("cosine, one sample, any start", far, 0.99)
    figure = setting(problems.bad_direction())
    bad = -np.eye(2) / np.sqrt(2.0)
    small = _cosine(figure, 0.1 * bad, 0.025, 2000)
    yield at_least("cosine, Figure 8, bad direction of length 0.1", small, 0.99)
    large = _cosine(figure, bad, 0.025, 5000)
    yield at_least("cosine, Figure 8, the same of length 1", large, 0.99, role="outside")
    wrong = svm.attention_svm(figure.problem, tokens=WRONG)
    gone = _cosine(figure, 2.0 * wrong.W / wrong.norm, 0.025, 5000)
    yield at_least("cosine, Figure 8, along W_alpha", gone, 0.99, role="outside")
