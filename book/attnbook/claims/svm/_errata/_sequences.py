"""Several outputs a sample (errata 24 and 25)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.svm._errata._tools import rows, scaled, shares
from attnlab import models, problems, svm
from attnlab.models import losses


@measures("svm.erratum-24")
def erratum_24(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    outputs = 3
    drawn = problems.sequence(n=3, T=outputs, d=9, self_attention=False, trials=instances, rng=rng)
    mm, opt = svm.attention_svm(drawn), drawn.optimal
    W = scaled(mm.W, 60.0 * mm.norm)
    split = shares(drawn, W, opt)
    missed = split.lost * (split.among * (drawn.best[..., None] - drawn.scores)).sum(axis=-1)
    terms = losses()["logistic"].excess(drawn.best, missed)
    whole = outputs * models.Attention().scaled_grad({"W": W}, drawn)[0]
    worst = terms.max(axis=-1)
    what = "L(R W_mm) - L_*, against"
    yield at_most(f"{what} the largest term", whole, worst)
    yield at_most(f"{what} K times the largest term", whole, outputs * worst, role="correction")
    apart = theory.svm.score_constants(drawn)[0]  # B of equation 90; c_up = 1
    at = terms.argmax(axis=-1)[:, None]
    here = np.take_along_axis(split.lost, at, axis=-1)[:, 0]
    what = "largest term, against c_up B (1 - s)"
    yield at_most(f"{what} where it is attained", worst, here * apart, role="correction")


@measures("svm.erratum-25", instances=60)
def erratum_25(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    outputs = 3
    drawn = problems.sequence(
        n=2, T=outputs, d=12, self_attention=False, min_gap=0.02, trials=instances, rng=rng
    )
    tokens = drawn.optimal.copy()
    tokens[:, 1] = drawn.scores[:, 1].argmin(axis=-1)  # the second output picks the worst token
    found = svm.locally_optimal(drawn, tokens)
    stuck = ~found.as_printed & (found.margin.status == "optimal")
    W = np.nan_to_num(found.margin.W)
    first = slice(0, None, outputs)
    one = svm.in_cone(rows(drawn, first), W, tokens[:, first], epsilon=1e-9)[stuck]
    every = svm.in_cone(drawn, W, tokens, epsilon=1e-9)[stuck]
    what = "share of selections that are not locally optimal, with W inside the cone"
    yield at_most(f"{what} of k = 1", one.mean(), 0.0)
    yield at_most(f"{what} of all k", every.mean(), 0.0, role="correction")
    best = svm.in_cone(drawn, W, drawn.optimal, epsilon=1e-9)
    what = "share of matrices inside the cone of the optimal tokens"
    yield at_least(what, best.mean(), 1.0, role="correction")
