"""The first step from zero: Assumption C and Theorem 6."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._global import goes_astray
from attnbook.claims.svm._long import SLOW, arrives, descent
from attnbook.claims.svm._turning import slopes
from attnlab import models, problems, svm
from attnlab.checks import Array


@measures("svm.assumption-c", instances=300)
def assumption_c(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=4, T=4, d=8, trials=instances, rng=rng)
    model = models.Attention(start="zero")
    zero = model.init(drawn)
    mean = drawn.scores.mean(axis=-1, keepdims=True)
    weight = -cases.steepness(model, drawn, zero["W"])[..., None] * (drawn.scores - mean) / 16.0
    G = np.einsum("bnt,bntd,bne->bde", weight, drawn.X, drawn.z)
    own = model.value_and_grad(zero, drawn)[1]["W"]
    yield equal("gradient at 0, its closed form", own, G, size=np.abs(own).max())
    found = svm.assumption_c(drawn)
    least = cases.least_margin(drawn, -G)
    holds = np.asarray(found.holds)
    yield at_least(
        "least margin of -gradient(0), instances inside", least[holds], 0.0, strictly=True
    )
    logits = {"W": -own[holds]}
    seen = model.attention(logits, cases.some(drawn, holds))
    inside = cases.some(drawn, holds)
    best = cases.at(seen, inside.optimal)
    yield at_least("attention on opt after a step of size 1, 1/T", best, 0.25, strictly=True)
    yield at_least("least margin of -gradient(0), all instances", least, 0.0, role="outside")


@measures("svm.theorem-6", instances=20)
def theorem_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention(start="zero")
    trap = cases.detour()
    yield at_least("3 samples: C holds", svm.assumption_c(trap).holds, 1.0, role="premise")
    first = model.value_and_grad(model.init(trap), trap)[1]["W"]
    short = -first / svm.attention_svm(trap).norm
    yield from goes_astray("3 samples, first step 1 / |W_mm|", trap, short)
    one = cases.copies(trap, 1)
    yield from _long_first_step("3 samples", one, -first[None])
    yield from _single_margins()
    drawn = problems.sphere(n=4, T=4, d=8, min_gap=0.05, trials=20 * instances, rng=rng)
    good = np.asarray(svm.assumption_c(drawn).holds) & (svm.attention_svm(drawn).norm < 8.0)
    drawn = cases.some(drawn, good)
    first = model.value_and_grad(model.init(drawn), drawn)[1]["W"]
    wide = np.flatnonzero(_opening(drawn, -first) > 0.1)[:instances]
    drawn, first = drawn.trial(wide), first[wide]
    yield from _equation_58(drawn, -first)
    yield from _long_first_step("random problems", drawn, -first)


def _equation_58(problem: problems.TokenProblem, first: Array) -> Iterator[Measurement]:
    """What softmax lacks after the first step, as long as is printed and as the proof needs."""
    margin, mu = svm.attention_svm(problem), _opening(problem, first)
    R = theory.svm.lemma_12_radius(problem, margin.W, mu)
    short, allowed = cases.norm(first) / margin.norm, cases.allowance(problem, margin.W, mu)
    yield at_least("|W(1)| with eta(0) = 1 / |W_mm|, R of (59)", short, R, role="step")
    for name, size, role in (("1 / |W_mm|", short, "step"), ("R / |grad L(0)|", R, "correction")):
        lost = cases.unselected(problem, cases.scaled(size, cases.unit(first)), problem.optimal)[1]
        yield at_most(f"1 - s with eta(0) = {name}, (58)", lost, allowed, role=role)


def _long_first_step(
    what: str, problem: problems.TokenProblem, first: Array
) -> Iterator[Measurement]:
    """As long as Proposition 1 asks for: the loss is near its floor, and descent arrives."""
    margin, (flattest, ratio) = svm.attention_svm(problem), slopes(problem)
    R = theory.svm.first_step_radius(problem, margin.W, _opening(problem, first), ratio)
    W = cases.scaled(R, cases.unit(first))
    what = f"{what}, long first step"
    above = cases.loss_above(problem, W, problem.optimal)
    safe = theory.svm.safe_excess(problem, flattest)
    yield at_most(f"{what}: loss above its floor, safe excess", above, safe, role="correction")
    yield from arrives(what, descent(problem, W, SLOW), margin.W, "correction")


def _single_margins() -> Iterator[Measurement]:
    """Equation 63a: inside the cone the gradient raises every single margin."""
    opposed, model = cases.opposed(-0.95), models.Attention(start="zero")
    F = theory.svm.features(opposed)[[0, 1], 1 - opposed.optimal].reshape(2, -1)
    W = (np.linalg.pinv(F) @ np.array([0.5, 1.5])).reshape(3, 3)  # margins of that ratio
    mu = _opening(opposed, W)
    W_mm = svm.attention_svm(opposed).W
    W = cases.unit(W) * theory.svm.lemma_12_radius(opposed, W_mm, mu)
    G, _ = cases.downhill(model, opposed, W)
    rise = theory.svm.token_margins(opposed, cases.unit(G))[[0, 1], 1 - opposed.optimal]
    yield at_least("least margin of -gradient in the cone (63a)", rise, 0.0, role="step")


def _opening(problem: problems.TokenProblem, W: Array) -> Array:
    r"""The largest $\mu$ with $W\in S_\mu$: the least margin of $\|W^{mm}\|W/\|W\|$."""
    size = svm.attention_svm(problem).norm
    return np.asarray(size * cases.least_margin(problem, cases.unit(W)))
