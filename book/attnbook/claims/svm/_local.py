"""Local convergence: Definition 2, Theorem 7, Assumption D, and the conjecture of Section 5.2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._long import LATE, arrives, descent
from attnlab import models, optim, problems, svm
from attnlab.checks import Array, BoolArray, IntArray

EARLY = (10, 20, 40, 80, 160)  # bundles of steps soon after the start


@measures("svm.definition-2", instances=200)
def definition_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    few = cases.separated(2, 4, 5, max(instances // 10, 5), rng)
    drawn, alpha = cases.every(few)
    found = svm.locally_optimal(drawn, alpha)
    margins = theory.svm.token_margins(drawn, found.margin.W, alpha)
    yield equal("margins of support tokens, 1", margins[found.neighbours], 1.0, within=1e-6)
    far = ~found.neighbours & cases.others(drawn, alpha)
    yield at_least("margins of the other tokens, 1", margins[far], 1.0, strictly=True)
    least = np.where(found.neighbours, cases.lead(drawn, alpha), np.inf).min(axis=(-1, -2))
    own = np.asarray(found.as_printed)
    yield at_least(
        "least lead of locally optimal tokens over support tokens", least[own], 0.0, strictly=True
    )
    yield at_most("least lead of the other selections", least[~own], 0.0)
    even, alpha = cases.every(cases.scored_in_steps(few))
    found, ahead = svm.locally_optimal(even, alpha), cases.lead(even, alpha)
    beside = cases.others(even, alpha) & found.neighbours
    tied = (beside & (ahead == 0.0)).any(axis=(-1, -2)) & ~(beside & (ahead < 0.0)).any((-1, -2))
    what = "share that is not locally optimal, of selections that tie with a support token"
    yield at_least(what, ~found.as_printed[tied], 1.0)
    yield at_least(
        "the optimal tokens are locally optimal", svm.locally_optimal(drawn).as_printed, 1.0
    )
    worst = drawn.scores.argmin(axis=-1)
    yield at_least(
        "the worst tokens are locally optimal",
        svm.locally_optimal(drawn, worst).as_printed,
        1.0,
        role="outside",
    )


def local_selections(
    problem: problems.TokenProblem, most: int
) -> tuple[problems.TokenProblem, IntArray, svm.LocalOptimality]:
    """Locally optimal selections, not the optimal one, with support tokens in every sample."""
    many, alpha = cases.every(problem)
    found = svm.locally_optimal(many, alpha)
    supported = found.neighbours.any(axis=-1).all(axis=-1)
    other = (alpha != many.optimal).any(axis=-1)
    clear = np.where(found.neighbours, cases.lead(many, alpha), np.inf).min(axis=(-1, -2)) > 0.02
    picked = np.flatnonzero(
        found.as_printed & supported & other & clear & (found.margin.norm < 8.0)
    )[:most]
    many, alpha = many.trial(picked), alpha[picked]
    return many, alpha, svm.locally_optimal(many, alpha)


def in_the_cone(
    what: str, problem: problems.TokenProblem, W_mm: Array, alpha: IntArray
) -> Iterator[Measurement]:
    """Inequalities 68 at the worst matrices of the cone, for each token its own."""
    constants = theory.svm.local_constants(problem, W_mm, alpha)
    near = svm.locally_optimal(problem, alpha).neighbours
    F = theory.svm.features(problem, alpha)
    along = theory.svm.token_margins(problem, W_mm, alpha)
    length = constants.norm[:, None, None]
    across = np.sqrt(np.maximum((cases.norm(F) * length) ** 2 - along**2, 0.0))
    mu = constants.mu[:, None, None]
    swing = np.sqrt(mu * (2.0 - mu)) * across
    low, high = (1.0 - mu) * along - swing, (1.0 - mu) * along + swing
    yield at_least(f"{what}: least margin of a support token in the cone, 1/2", low[near], 0.5)
    yield at_most(f"{what}: largest margin of one, 3/2", high[near], 1.5)


def from_the_edge(
    what: str,
    problem: problems.TokenProblem,
    W_mm: Array,
    alpha: IntArray,
    rng: np.random.Generator,
    *,
    leaves: bool = False,
) -> Iterator[Measurement]:
    """Gradient descent from the edge of the cone, where it begins: at R of (74)."""
    constants = theory.svm.local_constants(problem, W_mm, alpha)
    start = cases.scaled(constants.radius, cases.edge(W_mm, constants.mu, rng))
    places = descent(problem, start, EARLY + LATE)
    gaps = [cases.misfit(place.W, W_mm) / constants.mu for place in places]
    what = f"{what}, from R of (74)"
    yield at_most(f"{what}: 1 - correlation at the end, mu", gaps[-1], 1.0)
    yield from arrives(what, places[len(EARLY) :], W_mm)
    if leaves:  # to stay inside takes a longer R
        out = np.max(gaps[: len(EARLY)])
        yield at_most(f"{what}: largest 1 - correlation soon after, mu", out, 1.0, role="outside")


@measures("svm.theorem-7", instances=12)
def theorem_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=6, min_gap=0.1, trials=20 * instances, rng=rng)
    many, alpha, found = local_selections(drawn, 10 * instances)
    wide = theory.svm.local_constants(many, found.margin.W, alpha).mu > 2e-4
    index = np.flatnonzero(wide)[:instances]
    many, alpha, W = many.trial(index), alpha[index], found.margin.W[index]
    yield from _no_rest("local", many, W, alpha, rng)
    yield from in_the_cone("local", many, W, alpha)
    yield from in_the_cone("two features nearly opposed", *_wide_apart())
    yield from from_the_edge("local", many, W, alpha, rng, leaves=True)
    bad, wrong = cases.copies(problems.bad_direction(), 1), np.ones((1, 2), int)
    W = svm.attention_svm(bad, wrong).W
    yield from _no_rest("no support in sample 2", bad, W, wrong, rng)
    yield from from_the_edge("no support in sample 2", bad, W, wrong, rng)
    many, alpha = cases.every(drawn)
    found = svm.locally_optimal(many, alpha)
    good = ~found.as_printed & (found.margin.norm < 8.0)
    picked = rng.permutation(np.flatnonzero(good))[:instances]
    start = {"W": 40.0 * found.margin.W[picked]}
    run = optim.train(
        models.Attention(),
        many.trial(picked),
        optim.NormalizedGD(0.5),
        4000,
        params=start,
        every=4000,
    )
    near = svm.correlation(run.params["W"], found.margin.W[picked])
    yield at_least(
        "correlation with W_alpha, alpha not locally optimal", near, 0.99, role="outside"
    )
    model, W = models.Attention(), rng.standard_normal((*drawn.trials, drawn.d, drawn.d))
    steep = [model.value_and_grad({"W": R * W}, drawn)[1]["W"] for R in (0.0, 0.1, 1.0, 10.0)]
    size = np.linalg.norm(drawn.X, 2, axis=(-1, -2)) ** 2 * np.linalg.norm(drawn.z, axis=-1)
    c = size.mean(axis=-1) * np.linalg.norm(drawn.v, axis=-1)
    yield at_most("|grad L| at random W, c of (13)", cases.norm(np.array(steep)), c)


def _no_rest(
    what: str, problem: problems.TokenProblem, W: Array, alpha: IntArray, rng: np.random.Generator
) -> Iterator[Measurement]:
    """No point of the cone is stationary."""
    model, constants = models.Attention(), theory.svm.local_constants(problem, W, alpha)
    cosines = []
    for _ in range(30):
        opening = constants.mu * rng.random(problem.trials)
        size = constants.radius * 10.0 ** rng.uniform(0.0, 1.5, problem.trials)
        there = cases.scaled(size, cases.edge(W, opening, rng))
        cosines.append(cases.cosine(model, problem, there, W))
    what = f"{what}: cosine of -gradient and W_alpha in the cone"
    yield at_least(what, cosines, 0.0, strictly=True)


def _wide_apart() -> tuple[problems.TokenProblem, Array, IntArray]:
    """Two samples whose features are long and nearly opposed: the cone is as narrow as need be."""
    f = np.array([[20.0, 1.0], [-20.0, 1.0]]) / 2.0
    pair = cases.copies(cases.pair(f, [[1.0, 0.0]] * 2, [1.0, 1.0], [0.0, 1.0]), 1)
    alpha = np.zeros((1, 2), int)
    return pair, svm.attention_svm(pair, alpha).W, alpha


@measures("svm.assumption-d", instances=60)
def assumption_d(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=8, min_gap=0.02, trials=instances, rng=rng)
    holds = np.asarray(svm.assumption_d(drawn).holds)
    yield at_least("share of wide instances in which it holds", holds.mean(), 0.25)
    inside = cases.some(drawn, holds)
    many, alpha = cases.every(inside)
    local = svm.locally_optimal(many, alpha).as_printed
    wrong = (alpha != many.optimal).any(axis=-1)
    yield at_least("where it holds, selections but opt are not locally optimal", ~local[wrong], 1)
    yield at_least("opt is locally optimal", local[~wrong], 1)
    margin = svm.attention_svm(many, alpha)
    margins = theory.svm.token_margins(many, margin.W, alpha)
    at_opt = cases.at(margins, many.optimal)
    nearest = np.where(alpha != many.optimal, at_opt, np.inf).min(axis=-1)
    yield equal(
        "least margin of an optimal token not selected, 1", nearest[wrong], 1.0, within=1e-6
    )
    bad = problems.bad_direction()
    margins = theory.svm.token_margins(bad, svm.attention_svm(bad, [1, 1]).W, [1, 1])
    yield equal(
        "its margin in the bias paper's two samples, 1",
        margins[1, 0],
        1.0,
        within=1e-6,
        role="outside",
    )


@measures("svm.conjecture-1", instances=12)
def conjecture_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=10, min_gap=0.05, trials=8 * instances, rng=rng)
    drawn = cases.some(drawn, svm.assumption_b1(drawn).holds)
    drawn = cases.some(drawn, svm.assumption_d(drawn).holds, instances)
    many, alpha = cases.every(drawn)
    direction = svm.attention_svm(many).W
    wrong = svm.attention_svm(many, alpha).W
    model, steps = models.Attention(), (30, 300, 3000)
    for what, start in (
        ("0", np.zeros_like(wrong)),
        ("random", rng.standard_normal(wrong.shape)),
        ("10 W_alpha, every alpha", 10.0 * wrong),
    ):
        misfit = {"misfit": lambda params, _: cases.misfit(params["W"], direction)}
        run = optim.train(
            model,
            many,
            optim.NormalizedGD(0.2),
            steps[-1],
            params={"W": start},
            record=[misfit],
            every=steps,
        )
        gaps = np.maximum(run.history["misfit"][1:], 1e-15)
        powers = [slope(steps, trial) for trial in gaps.T]
        yield at_most(f"from {what}: power of k in 1 - correlation, median", np.median(powers), -1)
        there = _arrived(many, run.params["W"], direction)
        words = f"from {what}: share of runs that arrive in 3,000 steps"
        yield at_least(words, there.mean(), 0.98)
        yield at_least(f"{words[:-11]}300,000", _late(many, run.params["W"], direction), 0.999)


def _arrived(problem: problems.TokenProblem, W: Array, direction: Array) -> BoolArray:
    """Where attention is on the optimal tokens, and W within 1e-3 of the direction."""
    best = cases.at(models.Attention().attention({"W": W}, problem), problem.optimal)
    return (best >= 0.5).all(axis=-1) & (cases.misfit(W, direction) <= 1e-3)


def _late(problem: problems.TokenProblem, W: Array, direction: Array) -> float:
    """Share of runs that have arrived once those that have not took 297,000 steps more.

    How long a run may linger at a wrong token has no bound: of ten times as many runs the slowest
    is slower. So the share is counted, and no run waited for.
    """
    there = _arrived(problem, W, direction)
    if there.all() or there.mean() < 0.9:  # nothing to wait for, or no stragglers but most of them
        return float(there.mean())
    few, to = cases.some(problem, ~there), direction[~there]
    rule, steps = optim.NormalizedGD(0.2), 297_000
    run = optim.train(
        models.Attention(), few, rule, steps, params={"W": W[~there]}, record=(), every=steps
    )
    left = ~_arrived(few, run.params["W"], to)
    return float(1.0 - left.sum() / len(there))
