"""Ranks, and gradients and smoothness in the factors (errata 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.svm._errata._tools import norm
from attnlab import curvature, models, problems, svm
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import TokenProblem


@measures("svm.erratum-1", instances=60)
def erratum_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n, T, d in ((2, 5, 8), (6, 2, 4)):
        drawn = problems.sphere(n=n, T=T, d=d, trials=instances, rng=rng)
        limit = theory.svm.rank_bound(n, T, d)  # min(n, d): here n (T - 1) is larger
        arbitrary = np.linalg.matrix_rank(rng.standard_normal((instances, d, d)))
        if n < d:
            excluded = float((arbitrary > max(n, d)).mean())
            yield at_least(
                f"share of arbitrary matrices that max(n, d) excludes, n={n} d={d}",
                excluded,
                0.0,
                strictly=True,
            )
            excluded = float((arbitrary > limit).mean())
            what = f"share of arbitrary matrices that min(n, d) excludes, n={n} d={d}"
            yield at_least(what, excluded, 1.0, role="correction")
        for name in ("fro", "nuc"):
            found = svm.attention_svm(drawn, norm=name)
            rank = found.rank[found.status == "optimal"]
            what = f"rank of the {name} solution, n={n} T={T} d={d}"
            yield at_most(what, rank, limit, role="correction")
            if name == "fro":
                yield at_least(f"largest {what}", rank.max(), limit, role="correction")


def _differences(problem: TokenProblem, params: Params, name: str) -> Array:
    """The gradient in one factor by central differences of the loss, entry by entry."""
    model, step = models.Attention(factors=params["K"].shape[-1]), 1e-5
    found = np.zeros_like(params[name])
    for row, column in np.ndindex(*found.shape[-2:]):
        sides = []
        for sign in (1.0, -1.0):
            moved = {key: value.copy() for key, value in params.items()}
            moved[name][..., row, column] += sign * step
            sides.append(model.value_and_grad(moved, problem)[0])
        found[..., row, column] = (sides[0] - sides[1]) / (2.0 * step)
    return found


@measures("svm.erratum-2", instances=40)
def erratum_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=4, trials=instances, rng=rng)
    params = {name: rng.standard_normal((instances, 4, 3)) for name in ("K", "Q")}
    K, Q = params["K"], params["Q"]
    G = models.Attention().value_and_grad({"W": K @ Q.swapaxes(-1, -2)}, drawn)[1]["W"]
    Gt = G.swapaxes(-1, -2)
    for name, printed, correct in (("K", Gt @ Q, G @ Q), ("Q", G @ K, Gt @ K)):
        truth = _differences(drawn, params, name)
        size = norm(truth)
        what = f"gradient in {name} against finite differences"
        yield equal(what, norm(printed - truth), 0.0, size=size, within=1e-6)
        yield equal(what, norm(correct - truth), 0.0, size=size, within=1e-6, role="correction")


@measures("svm.erratum-3", instances=40)
def erratum_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=4, trials=instances, rng=rng)
    model = models.Attention(factors=3)
    K, Q = rng.standard_normal((2, instances, 4, 3))
    sizes = np.array([1.0, 1e2, 1e4, 1e6])
    bends: dict[str, list[Array]] = {"K": [], "Q": []}
    bounds: dict[str, list[Array]] = {"K": [], "Q": [], "K_printed": [], "Q_printed": []}
    for c in sizes:  # the product KQ^T, and with it the loss, stays as it is
        for name, factors in (("K", (K / c, Q * c)), ("Q", (K * c, Q / c))):
            params = dict(zip(("K", "Q"), factors, strict=True))
            block = curvature.hessian(model, params, drawn).blocks[name, name]
            bends[name].append(np.linalg.norm(block, ord=2, axis=(-2, -1)))
            found = curvature.smoothness(model, drawn, params)
            for key in (name, f"{name}_printed"):
                bounds[key].append(getattr(found, key))
    for name, other in (("K", "Q"), ("Q", "K")):
        bend = np.array(bends[name])
        what = f"curvature in {name} while |{other}| grows up to 1e6-fold"
        yield at_most(what, bend, np.array(bounds[f"{name}_printed"]))
        yield at_most(what, bend, np.array(bounds[name]), role="correction")
        power = slope(sizes, bend.mean(axis=1))
        what = f"power of |{other}| in the curvature in {name}"
        yield equal(what, power, 1.0)
        yield equal(what, power, 2.0, within=1e-6, role="correction")
