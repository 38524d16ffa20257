"""A loss from which descent cannot miss: Proposition 1, which is this book's own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, exponent
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm import _tight as tight
from attnbook.claims.svm._long import SLOW, arrives, descent, shrinking
from attnlab import curvature, models, problems, svm
from attnlab.checks import Array


def slopes(problem: problems.TokenProblem) -> tuple[float, float]:
    r"""The least $|\ell'|$ of the logistic loss at margins that can occur, and the ratio."""
    scores = problem.scores
    found = curvature.loss_constants("logistic", float(scores.min()), float(scores.max()))
    return found.flattest, found.steepest / found.flattest


@measures("svm.proposition-1", instances=40)
def proposition_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=6, min_gap=0.1, trials=2 * instances, rng=rng)
    drawn = cases.short(drawn, instances)
    W_mm, (flattest, ratio) = svm.attention_svm(drawn).W, slopes(drawn)
    safe = theory.svm.safe_excess(drawn, flattest)
    late = theory.svm.turning_radius(drawn, W_mm, 1.0, ratio)
    model, above, lost, pull, starts = models.Attention(), [], [], [], []
    for spread in (0.1, 0.4, 0.7):
        margins = 10.0 ** rng.uniform(-spread, spread, drawn.scores.shape)
        starts.append(_on_the_level(drawn, _of_margins(drawn, margins), safe))
        for further in (1.0, 1.5, 4.0, 20.0):
            W = further * starts[-1]
            above.append(cases.loss_above(drawn, W, drawn.optimal) / safe)
            lost.append(_lost(drawn, W))
            pull.append(_pull(model, drawn, W, W_mm) / (1.0 + late / cases.norm(W)))
    what = "loss above its floor over the safe excess"
    yield at_most(what, above, 1.0, role="premise")
    yield at_most("score lost at the level and beyond, in gaps", lost, 0.5)
    what = "(-grad, W / |W|) over (-grad, W_mm / |W_mm|), over its bound"
    yield at_most(what, pull, 1.0)
    more = []
    for _ in range(8):
        W = 60.0 * W_mm + _of_margins(drawn, rng.uniform(size=drawn.scores.shape))
        more.append((_pull(model, drawn, W, W_mm) - 1.0) * cases.norm(W) / late)
    yield at_most("beside W_mm: by how much that ratio exceeds 1, over its bound", more, 1.0)
    yield from tight.proposition_1(rng)
    yield from _sharp()
    few = drawn.trial(np.arange(min(len(W_mm), 40)))
    direction = W_mm[: few.trials[0]]
    for spread, W in zip((0.1, 0.4), starts, strict=False):
        what = f"descent from the level, margins spread over {2 * spread:g} decades"
        places = descent(few, W[: few.trials[0]], SLOW)
        yield from arrives(what, places, direction)
        if spread == 0.1:
            grown, left = shrinking(places, direction)
            power = "power of |W| in 1 - correlation"
            yield exponent(power, grown, left, -2.0, within=0.1, decades=0.4)


def _pull(model: models.Attention, problem: problems.TokenProblem, W: Array, W_mm: Array) -> Array:
    """The push along W over the push along W_mm."""
    G, _ = cases.downhill(model, problem, W)
    own, other = (cases.inner(G, cases.unit(V)) for V in (W, W_mm))
    return np.asarray(own / other)


def _of_margins(problem: problems.TokenProblem, margins: Array) -> Array:
    """The shortest matrices with these margins."""
    (B,), rest = problem.trials, cases.others(problem, problem.optimal)
    rows = theory.svm.features(problem).reshape(B, -1, problem.d**2)
    wanted = np.where(rest, margins, 0.0).reshape(B, -1, 1)
    return np.asarray((np.linalg.pinv(rows) @ wanted).reshape(B, problem.d, problem.d))


def _on_the_level(problem: problems.TokenProblem, W: Array, level: Array) -> Array:
    """Each matrix times the number with which the loss is so much above its floor."""
    low, high = np.zeros(problem.trials), np.full(problem.trials, 1e3)
    for _ in range(60):
        middle = (low + high) / 2.0
        above = cases.loss_above(problem, cases.scaled(middle, W), problem.optimal) > level
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return cases.scaled(high, W)


def _lost(problem: problems.TokenProblem, W: Array) -> Array:
    """What the scores lack of the best ones, in units of the sample's gap."""
    seen = models.Attention().attention({"W": W}, problem)
    lost = (seen * cases.lead(problem, problem.optimal)).sum(axis=-1)
    return np.asarray(lost / theory.svm.score_gaps(problem)[0])


def _sharp() -> Iterator[Measurement]:
    """One of two samples pays for all, at a loss with one slope; and a start above the level."""
    pair, W = cases.copies(cases.corners(), 1), np.diag([0.0, 60.0])[None]
    model = models.Attention(loss="correlation")
    above = model.value_and_grad({"W": W}, pair)[0] - model.floor(pair)
    safe = theory.svm.safe_excess(pair, 1.0)
    yield equal(
        "two samples, one undecided: loss above its floor, safe excess", above, safe, role="premise"
    )
    what = "the same: score lost, half a gap"
    yield at_most(what, _lost(pair, W), above / safe / 2.0)
    trap = cases.detour()
    model = models.Attention(start="zero")
    first = model.value_and_grad(model.init(trap), trap)[1]["W"]
    trap, W = cases.copies(trap, 1), -first[None] / svm.attention_svm(trap).norm
    seen = models.Attention().attention({"W": descent(trap, W, (3000,))[-1].W}, trap)
    best = cases.at(seen, trap.optimal)
    above = cases.loss_above(trap, W, trap.optimal)
    safe = theory.svm.safe_excess(trap, slopes(trap)[0])
    yield at_least(
        "a start that goes astray: loss above its floor, safe excess", above, safe, role="premise"
    )
    yield at_least("its least attention on an optimal token at the end", best, 0.5, role="outside")
