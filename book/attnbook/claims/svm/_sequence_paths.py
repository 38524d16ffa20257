"""Regularization paths of sequences: Theorem 10 and both corollaries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._cones import beyond_the_radius, cornered, local_path, without_a_cone
from attnbook.claims.svm._paths import RADII, distances, path_limit
from attnbook.claims.svm._sequences import positions
from attnlab import curvature, models, problems, svm
from attnlab.checks import IntArray


@measures("svm.theorem-10", instances=4)
def theorem_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from without_a_cone()
    drawn = problems.sequence(
        n=1, T=3, d=4, min_gap=0.1, self_attention=False, trials=20 * instances + 60, rng=rng
    )
    many, alpha = cornered(drawn, instances)
    yield from beyond_the_radius(many, alpha, rng, "alpha")
    yield from local_path(many, alpha, None, "Frobenius")
    yield from local_path(*cornered(drawn, instances, "nuc"), 4, "nuclear")
    yield from local_path(
        drawn.trial(np.arange(instances)), drawn.optimal[:instances], 3, "opt, nuclear, m = 3"
    )
    yield from _two_bounds(many, alpha, rng)


def _two_bounds(
    problem: problems.TokenProblem, alpha: IntArray, rng: np.random.Generator
) -> Iterator[Measurement]:
    """Equations 99 and 100, and the radius from which the second is the smaller."""
    margin = svm.attention_svm(problem, alpha)
    xi, n, T = 1.0 / margin.norm, problem.n, problem.T
    B, c = theory.svm.score_constants(problem, alpha)
    scores = problem.scores
    slopes = curvature.loss_constants("logistic", float(scores.min()), float(scores.max()))
    W = cases.unit(margin.W)
    for R in (10.0, 60.0):
        excess = cases.loss_above(problem, R * W, alpha)
        bound = theory.svm.excess_above(R, xi, T, B, slopes.steepest)
        yield at_most(
            f"loss of R W_mm above that of alpha, (100), R = {R:g}",
            excess,
            bound,
            role="correction",
        )
    epsilon = 0.5 * theory.svm.cone_margins(problem, W, alpha).min(axis=-1)
    R0 = theory.svm.cone_radius(epsilon, T, B, c, share=0.25)
    ratios = []
    for opening in (0.002, 0.02, 0.1):
        V = cases.edge(W, np.full(problem.trials, opening), rng)
        inside = theory.svm.cone_margins(problem, V, alpha).min(axis=-1) >= epsilon
        short = 1.0 - cases.least_margin(problem, V, alpha) / xi
        excess = cases.loss_above(problem, cases.scaled(R0, V), alpha)
        least = [
            float(theory.svm.excess_below(R, x, max(s, 0.0), n, gap, slopes.flattest))
            for R, x, s, gap in zip(R0, xi, short, c, strict=True)
        ]
        ratios.append(np.where(inside, excess / np.array(least), np.inf))
    yield at_least(
        "loss with a margin missed over its lower bound (99)", ratios, 1.0, role="correction"
    )
    ratio = slopes.steepest / slopes.flattest
    for printed, role in ((True, "step"), (False, "correction")):
        late = theory.svm.crossing_radius(xi, 0.5, n, T, B, c, ratio, printed=printed)
        high = theory.svm.excess_above(late, xi, T, B, slopes.steepest)
        low = theory.svm.excess_below(late, xi, 0.5, n, c, slopes.flattest)
        which = "printed" if printed else "corrected"
        yield at_most(f"(100) against (99) at the {which} radius", high, low, role=role)


@measures("svm.corollary-1", instances=6)
def corollary_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = positions(instances, rng)
    margin = svm.attention_svm(drawn)
    path = svm.regularization_path(models.Attention(), drawn, RADII)
    literal = path.loss[-1] / RADII[-1]
    gone = cases.norm(literal[:, None, None] - cases.unit(margin.W))
    yield at_most("literally: distance of min L / R from the direction, R = 10,000", gone, 0.02)
    yield from path_limit("the Frobenius direction", distances(drawn, None), "correction")
    yield from path_limit("the nuclear direction, m = 4", distances(drawn, 4), "correction")
    yield from path_limit("the nuclear direction, m = 3", distances(drawn, 3), "correction")


@measures("svm.corollary-2", instances=6)
def corollary_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = positions(instances, rng)
    path = svm.regularization_path(models.Attention(factors=4), drawn, [RADII[-1]])
    product = path.params["Q"][0] @ path.params["K"][0].swapaxes(-1, -2) / RADII[-1]
    nuclear = svm.attention_svm(drawn, norm="nuc")
    direction = cases.scaled(1.0 / nuclear.norm, nuclear.W)
    gone = cases.norm(product - direction)
    yield at_most("distance of Q K' / R from the nuclear direction, R = 10,000", gone, 0.02)
    yield from path_limit("the nuclear direction, K Q'", distances(drawn, 4), "correction")
    causal = problems.causal(n=1, T=3, d=4, min_gap=0.1, trials=3 * instances + 5, rng=rng)
    causal = cases.short(causal, instances)
    for name, problem in (("sequence", drawn), ("causal", causal)):
        yield from path_limit(f"W_mm / |W_mm|, {name}", distances(problem, None), "correction")
    twin = cases.corners()
    pair = np.array([[[1.0, s], [s, 1.0]] for s in (1.0, -1.0)])
    margins = theory.svm.token_margins(twin, pair)
    margins = margins[:, cases.others(twin, twin.optimal)]
    yield at_least("two solutions of rank 1: margins, 1", margins, 1.0, role="correction")
    size = cases.norm(pair)
    yield equal("their norms", size[0], size[1], role="correction")
    yield at_most(
        "their distance, with m = 1", np.linalg.norm(pair[0] - pair[1]), 0.0, role="outside"
    )
