"""The proof of local convergence (errata 11 and 12)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.svm._errata._tools import (
    descent,
    inner,
    logits,
    norm,
    normal,
    others,
    scaled,
    seen,
    shares,
)
from attnlab import models, problems, svm
from attnlab.problems import TokenProblem


def _all_support(n: int, instances: int, rng: np.random.Generator) -> TokenProblem:
    """Instances whose tokens are all support tokens, so that T_i is everything but opt_i."""
    drawn = problems.sphere(n=n, T=4, d=20, min_gap=0.02, trials=instances + 20, rng=rng)
    return drawn.trial(svm.assumption_b1(drawn).holds)


@measures("svm.erratum-11", instances=80)
def erratum_11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = _all_support(1, instances, rng)
    mm, opt = svm.attention_svm(drawn).W, drawn.optimal
    local = theory.svm.local_constants(drawn, mm)
    bar = scaled(mm, 1.0) + scaled(normal(rng, drawn), np.sqrt(local.mu))
    bar = scaled(bar, norm(mm))  # inside the cone, off its axis: scenario 2
    rest = others(drawn, opt)
    lead = np.where(rest, theory.svm.token_margins(drawn, bar), np.inf)
    nearest = lead.min(axis=-1, keepdims=True)  # 1 - 2 nu
    nu = (1.0 - nearest) / 2.0
    stretch = (np.log(drawn.T) + 3.0) / nu  # R bar: large enough for a bound below 1
    W = bar * stretch
    among = shares(drawn, W, opt).among  # of s_t over the sum of s over the support tokens
    bound = (drawn.T * np.exp(-stretch * nu))[..., 0]
    printed = np.broadcast_to(stretch * nearest <= 1.0 - nu, rest.shape)
    correct = lead <= 1.0 - nu
    for name, near, role in (("printed", printed, "statement"), ("correct", correct, "correction")):
        beyond = np.where(rest & ~near, among, 0.0).sum(axis=-1)
        yield at_most(f"share of attention beyond N, {name}", beyond, bound, role=role)
    h, h_bar = logits(drawn, bar), logits(drawn, mm)
    moved = np.abs(h - h_bar).max(axis=(-1, -2))
    allowed = local.reach / norm(mm) * norm(bar - mm)
    yield at_most("|h_t - h_bar_t| against A Theta eps", moved, allowed, role="correction")


@measures("svm.erratum-12", instances=60)
def erratum_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = _all_support(3, instances, rng)
    mm = svm.attention_svm(drawn).W
    local = theory.svm.local_constants(drawn, mm)
    W = scaled(mm, 1.0) + scaled(normal(rng, drawn), np.sqrt(local.mu))
    W = scaled(W, 1e6 * norm(mm))
    # with every 1 - s_i taken equal; whatever they are, the promise is at most 1/16
    even = np.full((*drawn.trials, drawn.n, drawn.T), 1.0 / drawn.T)
    low, high = theory.svm.lemma_13_bounds(drawn, mm, even, seen(drawn, W)[1])
    needed = 1.0 - local.mu / 2.0
    what = "<-grad, W_mm> over <-grad, W_bar>"
    yield at_least(f"{what} that Lemma 13 promises", low / high, needed)
    down = descent(drawn, W)[0]
    ratio = inner(down, mm) / inner(down, scaled(W, norm(mm)))
    yield at_least(f"{what} at R = 1e6 |W_mm|", ratio, needed, role="correction")
    steep = np.array(
        [
            norm(models.Attention().value_and_grad({"W": R * normal(rng, drawn)}, drawn)[1]["W"])
            for R in (0.0, 0.1, 1.0, 10.0)
        ]
    )
    size = np.linalg.norm(drawn.X, ord=2, axis=(-2, -1)) ** 2 * np.linalg.norm(drawn.z, axis=-1)
    c = size.mean(axis=-1) * np.linalg.norm(drawn.v, axis=-1)
    yield at_most("|grad L| at random W against c of (13)", steep, c, role="correction")
