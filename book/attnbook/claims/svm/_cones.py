"""Every selection can be separated, and which ones have a cone: Theorems 8 and 9, Lemma 5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, vanishes
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._existence import wide
from attnbook.claims.svm._paths import RADII, gone_from, path_limit
from attnlab import models, optim, problems, svm
from attnlab.checks import Array, IntArray


@measures("svm.theorem-8", instances=20)
def theorem_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for drawn, which in wide(instances, rng):
        share = svm.feasibility(drawn, tokens="all").measured["share"]
        yield at_least(f"share of selections that are feasible, {which}", share, 1.0)
        rank = np.linalg.matrix_rank(_rows(drawn), tol=1e-10)
        yield equal(f"rank of the features, {which}", rank, drawn.n * (drawn.T - 1))
    drawn = problems.sphere(n=3, T=3, d=3, trials=instances, rng=rng)
    alpha = cases.random_selection(drawn, rng)
    found = svm.attention_svm(drawn, alpha, norm="nuc")
    good = np.isfinite(found.gap)
    least = cases.least_margin(drawn, np.nan_to_num(found.W), alpha)
    yield at_least("nuclear norm: least margin found", np.where(good, least, -np.inf), 1.0 - 1e-9)
    narrow = problems.sphere(n=3, T=4, d=2, trials=max(instances, 20), rng=rng)
    share = svm.feasibility(narrow, tokens="all").measured["share"]
    yield at_least("share of selections feasible, n=3 T=4 d=2", share, 1.0, role="outside")


def _rows(problem: problems.TokenProblem, tokens: IntArray | None = None) -> Array:
    """Features of the tokens that are not selected, as rows."""
    F = theory.svm.features(problem, tokens)
    return F.reshape(*problem.trials, problem.n * problem.T, problem.d**2)


@measures("svm.definition-3", instances=300)
def definition_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    instances = max(instances, 60)
    drawn = problems.sphere(n=2, T=4, d=3, trials=instances, rng=rng)
    X = np.array(drawn.X)
    X[:, :, 1, 0] = X[:, :, 0, 0]  # two tokens of each sample score the same
    drawn = cases.problem(X, drawn.z, drawn.y, np.tile([1.0, 0.0, 0.0], (instances, 1)))
    alpha = cases.random_selection(drawn, rng)
    W = cases.unit(rng.standard_normal((instances, 3, 3)))
    for epsilon in (0.0, 0.1):
        expected = [
            _inside(drawn.trial(k), alpha[k], W[k], epsilon) for k in range(min(instances, 100))
        ]
        least = theory.svm.cone_margins(drawn, W, alpha).min(axis=-1) >= epsilon
        found = svm.in_cone(drawn, W, alpha, epsilon)
        yield equal(
            f"membership by its margin, token by token, epsilon {epsilon}", least[:100], expected
        )
        yield equal(
            f"membership by the library, token by token, epsilon {epsilon}", found[:100], expected
        )
    low, high = theory.svm.low_high(drawn, alpha)
    yield equal("tokens in low, in high, selected", low.sum(-1) + high.sum(-1) + 1, 4)
    inside = least & np.isfinite(theory.svm.cone_margins(drawn, W, alpha).min(axis=-1))
    yield at_least("members are members", svm.in_cone(drawn, W, alpha, 0.1)[inside], 1.0)
    flipped = svm.in_cone(drawn, -W, alpha, 0.1)[inside]
    yield at_least("their negatives are members", flipped, 1.0, role="outside")


def _inside(problem: problems.TokenProblem, alpha: IntArray, W: Array, epsilon: float) -> bool:
    """The definition in words: for every sample, one low token beats every high one."""
    for i in range(problem.n):
        logits = problem.X[i] @ W @ problem.z[i]
        g = problem.scores[i]
        high = [t for t in range(problem.T) if t != alpha[i] and g[t] >= g[alpha[i]]]
        low = [t for t in range(problem.T) if g[t] < g[alpha[i]]]
        if high and not any(all(logits[t] - logits[u] >= epsilon for u in high) for t in low):
            return False
    return True


def cone_membership(
    problem: problems.TokenProblem, rng: np.random.Generator
) -> Iterator[Measurement]:
    """Lemmas 5 and 16: which max-margin directions lie in a cone of their selection."""
    many, alpha = cases.every(problem)
    found = svm.locally_optimal(many, alpha)
    solved = np.asarray(found.margin.status == "optimal")
    many, alpha = cases.some(many, solved), alpha[solved]
    printed, corrected = found.as_printed[solved], found.corrected[solved]
    W = cases.unit(found.margin.W[solved])
    least = theory.svm.cone_margins(many, W, alpha).min(axis=-1)
    bare = cases.unsupported()
    W_bare = svm.attention_svm(bare, [0, 0]).W
    fit = svm.locally_optimal(bare, [0, 0]).as_printed
    yield at_least("two samples made for it: locally optimal", fit, 1.0, role="premise")
    yield at_least(
        "their cone margin", theory.svm.cone_margins(bare, W_bare, [0, 0]).min(), 0.0, strictly=True
    )
    finite = np.clip(least, -1e6, 1e6)
    if printed.any():
        lost = float((least[printed] <= 0.0).sum())
        if lost:  # few instances may show none
            yield at_most("random data: locally optimal selections in no cone", lost, 0.0)
        yield at_least(
            "cone margin, locally optimal with support where it matters",
            finite[corrected],
            0.0,
            strictly=True,
            role="correction",
        )
    unfit = ~printed
    beyond = np.maximum(0.0, finite[unfit])
    words = "cone margin above 0 of selections that are not locally optimal"
    yield vanishes(words, beyond, within=1e-6, role="correction")
    G = rng.standard_normal((*problem.trials, problem.d, problem.d))
    every = svm.in_cone(problem, G, problem.optimal, 1.0)
    yield at_least("any matrix lies in the cone of opt", every, 1.0, role="correction")


@measures("svm.lemma-5", instances=150)
def lemma_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=3, trials=instances, rng=rng)
    yield from cone_membership(drawn, rng)
    yield from _far_out(problems.sphere(n=2, T=3, d=3, trials=instances + 160, rng=rng))


def _far_out(problem: problems.TokenProblem) -> Iterator[Measurement]:
    """Where descent ends that starts far out along a direction that the lemma gets wrong."""
    many, alpha = cases.every(problem)
    found = svm.locally_optimal(many, alpha)
    W = np.nan_to_num(found.margin.W)
    stray = found.as_printed & ~svm.in_cone(many, W, alpha, epsilon=1e-9)
    many, model = cases.some(many, stray), models.Attention()
    start = {"W": 300.0 * W[stray]}
    run = optim.train(model, many, optim.NormalizedGD(0.1), 1000, params=start, record=())
    stays = (model.attention(run.params, many).argmax(axis=-1) == alpha[stray]).all(axis=-1)
    what = "locally optimal selections in no cone: share of 1,000-step runs that stay"
    yield at_least(what, stays.mean(), 0.8, role="correction")


def cornered(
    problem: problems.TokenProblem, most: int, norm: str = "fro"
) -> tuple[problems.TokenProblem, IntArray]:
    """Selections other than opt, locally optimal as corrected in that norm, and clearly so."""
    many, alpha = cases.every(problem)
    margin = svm.attention_svm(many, alpha, norm=norm)
    solved = np.asarray(margin.gap < 1e-6)
    many, alpha, W = cases.some(many, solved), alpha[solved], margin.W[solved]
    margins = theory.svm.token_margins(many, W, alpha)
    others = cases.others(many, alpha)
    near = others & (margins < 1.0 + 1e-6)
    clear = np.where(near, cases.lead(many, alpha), np.inf).min(axis=(-1, -2)) > 0.05
    # tokens beyond the support that come close make the path slow to settle
    beyond = np.where(others & ~near, margins, np.inf).min(axis=(-1, -2)) > 1.2
    other = (alpha != many.optimal).any(axis=-1) & near.any(axis=-1).all(axis=-1)
    index = np.flatnonzero(clear & beyond & other & (margin.norm[solved] < 6.0))
    many, alpha, W = many.trial(index), alpha[index], W[index]
    # the radius R_0 from which the cone protects alpha lies below the first radius of the path
    barrier = 0.5 * theory.svm.cone_margins(many, cases.unit(W), alpha).min(axis=-1)
    B, c = theory.svm.score_constants(many, alpha)
    R0 = theory.svm.cone_radius(np.minimum(barrier, 1.0), many.T, B, c, share=0.25)
    index = np.flatnonzero(RADII[0] / 2.0 > R0)[:most]
    return many.trial(index), alpha[index]


def local_path(
    problem: problems.TokenProblem, alpha: IntArray, factors: int | None, what: str
) -> Iterator[Measurement]:
    """The path within the cone goes to the max-margin direction of its selection."""
    norm = "fro" if factors is None else "nuc"
    margin = svm.attention_svm(problem, alpha, norm=norm)
    direction = cases.scaled(1.0 / margin.norm, margin.W)
    barrier = theory.svm.cone_margins(problem, cases.unit(margin.W), alpha).min()
    epsilon = 0.5 * float(barrier) if np.isfinite(barrier) else 0.0  # opt: no cone
    path = svm.regularization_path(
        models.Attention(factors=factors), problem, RADII, tokens=alpha, epsilon=epsilon
    )
    certified = np.asarray(path.status) == "optimal"
    share = f"{what}: share of minimisers certified in the cone"
    yield at_least(share, certified.mean(), 0.75, role="correction")
    gone = gone_from(path, direction)
    yield from path_limit(f"the direction of alpha, {what}", gone, "correction")


def beyond_the_radius(
    problem: problems.TokenProblem, alpha: IntArray, rng: np.random.Generator, what: str
) -> Iterator[Measurement]:
    """Beyond R_0 every bit of attention that alpha lacks costs score."""
    model = models.Attention()
    W = cases.unit(svm.attention_svm(problem, alpha).W)
    epsilon = 0.5 * theory.svm.cone_margins(problem, W, alpha).min(axis=-1)
    B, c = theory.svm.score_constants(problem, alpha)
    R0 = theory.svm.cone_radius(epsilon, problem.T, B, c, share=0.25)
    lead, others = cases.lead(problem, alpha), cases.others(problem, alpha)
    found = []
    for opening in (0.0, 0.01, 0.1, 0.5):
        V = cases.edge(W, np.full(problem.trials, opening), rng)
        inside = theory.svm.cone_margins(problem, V, alpha).min(axis=-1) >= epsilon
        rest = np.where(others, model.attention({"W": cases.scaled(R0, V)}, problem), 0.0)
        cost = (rest * lead).sum(axis=-1) / rest.sum(axis=-1)
        found.append(np.where(inside, (cost / c[:, None]).min(axis=-1), np.inf))
    least = np.asarray(found).min(axis=0)
    what = f"{what}: score lost for missing attention at R_0 in the cone, in units of c_alpha, 1/4"
    yield at_least(what, least, 0.25, role="correction")


def without_a_cone() -> Iterator[Measurement]:
    """A selection that is locally optimal as printed, and that no cone comes near."""
    bare = cases.unsupported()
    W = cases.unit(svm.attention_svm(bare, [0, 0]).W)
    fit = svm.locally_optimal(bare, [0, 0]).as_printed
    yield at_least("alpha is locally optimal as printed", fit, 1.0, role="premise")
    yield at_most(
        "limit of the local path: least distance of the cone from W_alpha / |W_alpha|",
        theory.svm.cone_distance(bare, W, [0, 0]),
        0.02,
    )


@measures("svm.theorem-9", instances=5)
def theorem_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from without_a_cone()
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.1, trials=20 * instances, rng=rng)
    many, alpha = cornered(drawn, instances)
    yield from beyond_the_radius(many, alpha, rng, "alpha")
    yield from local_path(many, alpha, None, "Frobenius")
    yield from local_path(*cornered(drawn, instances, "nuc"), 4, "nuclear")
