"""Scores, when the attention SVM has a solution, and what its solutions look like."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.svm import _cases as cases
from attnlab import models, problems, svm

SIZES = ((3, 4), (4, 3), (2, 5))  # (n, T)


@measures("svm.definition-1")
def definition_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention()
    drawn = cases.separated(3, 4, 5, instances, rng)
    alpha = cases.random_selection(drawn, rng)
    there = {"W": 60.0 * svm.attention_svm(drawn, alpha).W}
    score = cases.at(drawn.scores, alpha)
    output = drawn.y * model.forward(there, drawn)
    yield equal("label times output with attention on one token, its score", output, score, size=1)
    best = model.value_and_grad({"W": 60.0 * svm.attention_svm(drawn).W}, drawn)[0]
    yield at_most(
        "loss with attention on opt, on any others", best, model.value_and_grad(there, drawn)[0]
    )
    raw = (drawn.y[..., None] * drawn.scores).argmax(axis=-1)
    there = {"W": 60.0 * svm.attention_svm(drawn, raw).W}
    found = model.value_and_grad(there, drawn)[0]
    yield at_most("loss with attention on the largest output", found, best, role="outside")


@measures("svm.theorem-1")
def theorem_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for first in (False, True):
        for n, T in SIZES:
            d = theory.svm.enough_dimension(n, T)
            drawn = problems.sphere(n=n, T=T, d=d, self_attention=first, trials=instances, rng=rng)
            W = np.nan_to_num(svm.attention_svm(drawn).W)
            query = "the first token" if first else "independent"
            what = f"least margin found, n={n} T={T} d={d}, query {query}"
            yield at_least(what, cases.least_margin(drawn, W), 1.0)
    narrow = problems.sphere(n=3, T=4, d=2, trials=max(instances, 30), rng=rng)
    solved = svm.attention_svm(narrow).status == "optimal"
    yield at_least("feasible with d below the bound", solved, 1.0, role="outside")
    for n, T in SIZES:  # what the proof needs is independence, and that ends with the count
        d = theory.svm.counting_dimension(n, T) - 1
        drawn = problems.sphere(n=n, T=T, d=d, trials=instances, rng=rng)
        features = theory.svm.features(drawn).reshape(instances, n * T, d * d)
        what = f"independent features with d one below the count, n={n} T={T} d={d}"
        yield at_least(what, np.linalg.matrix_rank(features), n * (T - 1), role="outside")


@measures("svm.lemma-1", instances=60)
def lemma_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n, T, d in ((2, 4, 5), (3, 2, 6), (4, 3, 3)):
        drawn = cases.separated(n, T, d, instances, rng)
        bound = theory.svm.rank_bound(n, T, d)
        span = np.linalg.svd(drawn.z, full_matrices=False)[2]
        for norm in ("fro", "nuc"):
            margin = svm.attention_svm(drawn, norm=norm)
            W = margin.W[np.asarray(margin.gap) < 1e-6]
            rows = span[np.asarray(margin.gap) < 1e-6]
            outside = W - W @ rows.swapaxes(-1, -2) @ rows
            share = np.linalg.norm(outside, axis=(-2, -1)) / np.linalg.norm(W, axis=(-2, -1))
            where = f"{norm}, n={n} T={T} d={d}"
            yield at_most(f"share of the solution outside the span of z, {where}", share, 1e-7)
            values = np.linalg.svd(W, compute_uv=False)
            rank = (values > 1e-6 * values[..., :1]).sum(axis=-1)
            yield at_most(f"rank of the solution, {where}", rank, min(n, bound))
    drawn = cases.separated(2, 4, 5, instances, rng)
    W = svm.attention_svm(drawn).W
    span = np.linalg.svd(drawn.z, full_matrices=False)[2]
    G = rng.standard_normal(W.shape)
    more = W + G - G @ span.swapaxes(-1, -2) @ span
    kept = np.abs(theory.svm.token_margins(drawn, more) - theory.svm.token_margins(drawn, W))
    yield at_most("what leaving the span changes of the margins", kept, 1e-9)
    rank = np.linalg.matrix_rank(more, tol=1e-6)
    yield at_most("rank of a feasible W that is not of least norm", rank, 2, role="outside")
