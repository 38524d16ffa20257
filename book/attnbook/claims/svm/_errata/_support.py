"""Selections without support tokens (erratum 32)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnlab import models, optim, problems, svm
from attnlab.problems import TokenProblem


@measures("svm.erratum-32")
def erratum_32(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, T, d = 2, 3, 3
    drawn = problems.sphere(n=n, T=T, d=d, trials=4 * instances + 160, rng=rng)
    every = np.stack(np.meshgrid(*[np.arange(T)] * n, indexing="ij"), axis=-1).reshape(-1, n)
    many = len(every)
    X, z, y, v = (np.repeat(a, many, axis=0) for a in (drawn.X, drawn.z, drawn.y, drawn.v))
    whole = TokenProblem(X, z, y, v)
    tokens = np.tile(every, (len(drawn.X), 1))
    found = svm.locally_optimal(whole, tokens)
    solved = np.asarray(found.margin.status == "optimal")
    W = np.nan_to_num(found.margin.W)
    inside = svm.in_cone(whole, W, tokens, epsilon=1e-9)
    what = "share of locally optimal selections with W inside the cone"
    yield at_least(f"{what}, as printed", inside[found.as_printed].mean(), 1.0)
    share = inside[found.corrected].mean()
    yield at_least(f"{what}, with support wherever a rival is", share, 1.0, role="correction")
    share = inside[solved & ~found.as_printed].mean()
    what = "share of the other selections with W inside the cone"
    yield at_most(what, share, 0.0, role="correction")
    outside = found.as_printed & ~inside
    stray, chosen = whole.trial(outside), tokens[outside]
    start = {"W": 300.0 * W[outside]}
    rule = optim.NormalizedGD(0.1)
    run = optim.train(models.Attention(), stray, rule, 1000, params=start, record=())
    ended = run.model.attention(run.params, stray).argmax(axis=-1)
    stays = (ended == chosen).all(axis=-1).mean()
    what = "share of 1000-step runs that stay where they start, outside every cone"
    yield at_least(what, stays, 0.8, role="correction")
