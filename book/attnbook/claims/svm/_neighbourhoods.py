"""Lemmas 11 to 14: the gradient within the cones of the global and of local directions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm import _tight as tight
from attnbook.claims.svm._local import local_selections
from attnlab import curvature, models, problems, svm
from attnlab.checks import Array, IntArray

PI = 0.5  # of Lemmas 11 and 14


def separated(instances: int, rng: np.random.Generator) -> tuple[problems.TokenProblem, Array]:
    """Random problems with a max-margin direction that is not too long, and that direction."""
    drawn = problems.sphere(n=2, T=4, d=6, min_gap=0.1, trials=2 * instances + 4, rng=rng)
    drawn = cases.short(drawn, instances)
    return drawn, svm.attention_svm(drawn).W


def inside(
    problem: problems.TokenProblem, W_mm: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    r"""Unit matrices near the direction, and the largest $\mu$ with which they lie in $S_\mu$."""
    opening = 10.0 ** rng.uniform(-5.0, -2.0, problem.trials)
    V = cases.edge(W_mm, opening, rng)
    return V, cases.least_margin(problem, V) * cases.norm(W_mm)


def slope_ratio(problem: problems.TokenProblem) -> float:
    r"""The largest $|\ell'|$ over the least, for margins that can occur."""
    scores = problem.scores
    found = curvature.loss_constants("logistic", float(scores.min()), float(scores.max()))
    return float(found.steepest / found.flattest)


def advantage(problem: problems.TokenProblem, W: Array, W_mm: Array, pi: float) -> Array:
    r"""$\langle-\nabla\mathcal L,\bar W\rangle-(1+\pi)\langle-\nabla\mathcal L,\bar W^{mm}\rangle$.

    As a share of the gradient's length; Lemmas 10, 11 and 14 say that it is not positive.
    """
    G, _ = cases.downhill(models.Attention(), problem, W)
    own, other = (cases.inner(cases.unit(G), cases.unit(V)) for V in (W, W_mm))
    return own - (1.0 + pi) * other


@measures("svm.lemma-11", instances=60)
def lemma_11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn, W_mm = separated(instances, rng)
    found = []
    for _ in range(8):
        V, mu = inside(drawn, W_mm, rng)
        good = mu > 0.02
        part, W = cases.some(drawn, good), V[good]
        ratio = slope_ratio(part)
        R = theory.svm.lemma_11_radius(part, W_mm[good], mu[good], PI, ratio)
        found.append(advantage(part, cases.scaled(R, W), W_mm[good], PI))
    what = f"(-grad, W) minus (1 + pi)(-grad, W_mm), as a share, pi = {PI}"
    yield at_most(what, np.concatenate(found), 0.0)
    f = np.array([[0.5, 0.0], [0.0, 0.5]])
    crossed = cases.pair(f, [[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], [1.0, 1.0])
    square = svm.attention_svm(crossed)
    angle = np.array([0.3, 0.5, 0.7])[:, None, None]
    W = square.norm * (np.cos(angle) * np.diag([1.0, 0.0]) + np.sin(angle) * np.diag([0.0, 1.0]))
    margins = theory.svm.token_margins(crossed, W)
    own = theory.svm.token_margins(crossed, square.W)
    others = cases.others(crossed, crossed.optimal)
    each = (margins / np.where(others, own, 1.0))[..., others]
    what = "sample by sample (49): margin of W over that of W_mm at equal length, 1 + pi = 1.1"
    yield at_most(what, each, 1.1, role="step")
    R = theory.svm.lemma_11_radius(crossed, square.W, float(each.min()), 0.1, slope_ratio(crossed))
    together = [advantage(crossed, R * cases.unit(V), square.W, 0.1) for V in W]
    yield at_most("both samples together, pi = 0.1", together, 0.0)
    opposed = cases.opposed(-0.95)
    wrong, right = svm.attention_svm(opposed, [0, 1]).W, svm.attention_svm(opposed).W
    found = [advantage(opposed, k * cases.unit(wrong), right, PI) for k in (10.0, 100.0)]
    yield at_most("the same for a W with a negative margin", found, 0.0, role="outside")
    yield from tight.lemma_11(rng)


@measures("svm.lemma-12", instances=60)
def lemma_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention()
    drawn, W_mm = separated(instances, rng)
    length = cases.norm(W_mm)
    least, most = [], []
    for _ in range(8):
        (V, mu), (W, nu) = (inside(drawn, W_mm, rng) for _ in range(2))
        mu = np.minimum(mu, nu)
        good = mu > 0.05
        part, mu = cases.some(drawn, good), mu[good]
        R = theory.svm.lemma_12_radius(part, W_mm[good], mu)
        W, V = cases.scaled(R, W[good]), cases.scaled(length[good], V[good])
        found = cases.push(model, part, W, V)
        seen, slopes = model.attention({"W": W}, part), cases.steepness(model, part, W)
        low, high = theory.svm.lemma_12_bounds(part, W_mm[good], mu, seen, slopes)
        least.append(found / low)
        most.append(found / high)
    yield at_least("-(grad, V) over its lower bound of (60)", np.concatenate(least), 1.0)
    yield at_most("-(grad, V) over its upper bound of (60)", np.concatenate(most), 1.0)
    what = "-(grad, V) over the upper bound, in the printed order"
    yield at_least(what, np.concatenate(most), 1.0, role="step")
    what = "-(grad, V) over the lower bound, in the printed order"
    yield at_most(what, np.concatenate(least), 1.0, role="step")
    cosines = []
    for _ in range(40):
        V = cases.edge(W_mm, np.full(drawn.trials, 1e-4), rng)
        W = 3.0 * rng.standard_normal(V.shape)
        cosines.append(cases.cosine(model, drawn, W, V).min())
    yield at_least("cosine of -gradient and V for W outside the cone", cosines, 0.0, role="outside")
    yield from tight.lemma_12(rng)


def supported(
    instances: int, rng: np.random.Generator
) -> tuple[problems.TokenProblem, IntArray, Array]:
    """Locally optimal selections with support tokens in every sample, and their directions."""
    drawn = problems.sphere(n=2, T=4, d=6, min_gap=0.1, trials=6 * instances, rng=rng)
    many, alpha, found = local_selections(drawn, 4 * instances)
    constants = theory.svm.local_constants(many, found.margin.W, alpha)
    seen = constants.radius < 150.0 * constants.norm  # beyond, attention leaves float64
    index = np.flatnonzero(seen)[:instances]
    return many.trial(index), alpha[index], found.margin.W[index]


def crossing() -> tuple[problems.TokenProblem, Array, Array, theory.svm.LocalConstants]:
    """The pair whose second margin, 1.02, the printed constants do not see; W inside their cone."""
    pair = cases.overtaken()
    W_mm = svm.attention_svm(pair, [0, 0]).W
    constants = theory.svm.local_constants(pair, W_mm, [0, 0], printed=True)
    slanted = np.array([[1.0, 0.0], [-0.3, 0.0]])
    return pair, W_mm, cases.unit(slanted), constants


@measures("svm.lemma-13", instances=60)
def lemma_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention()
    pair, W_mm, W, constants = crossing()
    yield at_most(
        "two samples made for it: 1 - correlation of W, mu",
        cases.misfit(W, W_mm),
        constants.mu,
        role="correction",
    )
    found = [cases.cosine(model, pair, k * constants.radius * W, W_mm) for k in (1.0, 3.0, 10.0)]
    yield at_least("cosine of -grad and W_alpha there, from R of (74) on", found, 0.0)
    many, alpha, W_mm = supported(instances, rng)
    least = cases.cosine(model, many, 1e-3 * cases.unit(W_mm), W_mm)
    yield at_least("the same in cone_mu at |W| = 0.001, selections with support", least, 0.0)
    yield from _equation_75(many, alpha, W_mm, rng)
    pair, W_mm, _, _ = crossing()
    mended = theory.svm.local_constants(pair, W_mm, [0, 0])
    near = [mended.radius * cases.edge(W_mm, mended.mu * rng.random(), rng) for _ in range(20)]
    found = [cases.cosine(model, pair, W, W_mm) for W in near]
    what = "two samples, with the margin 1.02 in delta: cosine of -grad and W_alpha"
    yield at_least(what, found, 0.0, strictly=True, role="correction")


def _equation_75(
    many: problems.TokenProblem, alpha: IntArray, W_mm: Array, rng: np.random.Generator
) -> Iterator[Measurement]:
    """Both bounds of (75), corrected and in the printed order."""
    model, constants = models.Attention(), theory.svm.local_constants(many, W_mm, alpha)
    least, most = [], []
    for _ in range(8):
        opening = constants.mu * rng.random((2, *many.trials))
        V = cases.scaled(constants.norm, cases.edge(W_mm, opening[0], rng))
        size = constants.radius * 10.0 ** rng.uniform(0.0, 0.3, many.trials)
        W = cases.scaled(size, cases.edge(W_mm, opening[1], rng))
        G, log_scale = cases.downhill(model, many, W)
        seen, slopes = model.attention({"W": W}, many), cases.steepness(model, many, W)
        low, high = theory.svm.lemma_13_bounds(many, W_mm, seen, slopes, alpha)
        with np.errstate(divide="ignore"):
            log_found = np.log(cases.inner(G, V)) + log_scale
            least.append(log_found - np.log(low))
            most.append(log_found - np.log(high))
    what = "|W| >= R: log of -(grad, V) over its"
    yield at_least(f"{what} lower bound of (75)", least, 0.0, role="correction")
    yield at_most(f"{what} upper bound of (75)", most, 0.0, role="correction")
    yield at_least("the same in the printed order, upper bound", most, 0.0, role="step")
    yield at_most("the same in the printed order, lower bound", least, 0.0, role="step")


@measures("svm.lemma-14", instances=60)
def lemma_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    pair, W_mm, W, constants = crossing()
    R = theory.svm.lemma_14_radius(pair, constants, PI, slope_ratio(pair))
    found = [advantage(pair, k * R * W, W_mm, PI) for k in (1.0, 3.0, 10.0)]
    yield at_most(
        f"two samples made for it: (-grad, W) - (1 + pi)(-grad, W_alpha), pi = {PI}", found, 0.0
    )
    many, alpha, W_mm = supported(instances, rng)
    constants = theory.svm.local_constants(many, W_mm, alpha)
    R = theory.svm.lemma_14_radius(many, constants, PI, slope_ratio(many))
    found = []
    for power in (0.0, -1.0, -2.0, -4.0):
        W = cases.scaled(R, cases.edge(W_mm, constants.mu * 10.0**power, rng))
        found.append(advantage(many, W, W_mm, PI))
    yield at_most(
        f"support tokens in every sample: the same, pi = {PI}", found, 0.0, role="correction"
    )
    strict = theory.svm.lemma_14_radius(many, constants, 1e-3, slope_ratio(many))
    W = cases.scaled(strict, cases.edge(W_mm, constants.mu, rng))
    yield at_most(
        "the same at the edge of the cone, pi = 0.001",
        advantage(many, W, W_mm, 1e-3),
        0.0,
        role="correction",
    )
    pair, W_mm, _, _ = crossing()
    mended = theory.svm.local_constants(pair, W_mm, [0, 0])
    R = theory.svm.lemma_14_radius(pair, mended, PI, slope_ratio(pair))
    found = [
        advantage(pair, R * cases.edge(W_mm, mended.mu * rng.random(), rng), W_mm, PI)
        for _ in range(20)
    ]
    yield at_most(
        "two samples, with the margin 1.02 in delta: the same", found, 0.0, role="correction"
    )
