"""What the experiments are said to be and to show (errata 27 to 31)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, equal
from attnbook.claims.svm._errata._tools import inner, norm, others
from attnlab import models, optim, problems, svm
from attnlab.checks import Array
from attnlab.problems import TokenProblem


@measures("svm.erratum-27", instances=1)
def erratum_27(
    rng: np.random.Generator,  # noqa: ARG001  # nothing to draw: float64 is what it is
    instances: int,  # noqa: ARG001
) -> Iterator[Measurement]:
    found = optim.NormalizedGD(0.1, recipe="paper").penalty
    yield equal("((1 + lambda) - 1) / lambda", ((1.0 + found) - 1.0) / found, 0.0, size=1.0)
    smallest = float(np.nextafter(0.0, 1.0))
    yield equal("lambda, and the smallest number above 0", found, smallest)
    after = float(np.nextafter(1.0, 2.0)) - 1.0
    yield equal("lambda, and the gap after 1", found, after, role="correction")
    half = found / 2.0
    yield equal("(1 + lambda / 2) - 1", (1.0 + half) - 1.0, 0.0, size=half, role="correction")
    yield at_least("(1 + lambda) - 1", (1.0 + found) - 1.0, found, role="correction")


@measures("svm.erratum-28", instances=12)
def erratum_28(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=4, T=4, d=12, min_gap=0.1, trials=instances, rng=rng)
    rule = optim.NormalizedGD(0.1, recipe="paper")
    run = optim.train(models.Attention(factors=8), drawn, rule, 1500, rng=rng, record=())
    product = run.params["K"] @ run.params["Q"].swapaxes(-1, -2)
    found = svm.classify(run)
    frobenius = svm.attention_svm(drawn, found.tokens).W
    what = "median cosine of the trained K Q^T"
    typical = np.median(svm.correlation(product, frobenius))
    yield at_least(f"{what} with the Frobenius solution", typical, 0.99)
    yield at_least(
        f"{what} with the nuclear solution", np.median(found.correlation), 0.99, role="correction"
    )
    few = drawn.trial(slice(0, 1 + instances // 6))
    path = svm.regularization_path(models.Attention(factors=8), few, [300.0], rng=rng)
    cosine = svm.correlation(path.W[0], svm.attention_svm(few, norm="nuc").W)
    what = "cosine of the path's K Q^T at R = 300 with the nuclear solution"
    yield at_least(what, cosine, 0.99, role="correction")


@measures("svm.erratum-29", instances=40)
def erratum_29(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=4, trials=instances, rng=rng)
    mm = svm.attention_svm(drawn).W
    mm = mm[np.isfinite(mm).all(axis=(-1, -2))]
    moved = mm + 0.3 * norm(mm)[:, None, None]  # another direction, with the same centred entries
    distance = norm(moved / norm(moved)[:, None, None] - mm / norm(mm)[:, None, None])
    true = 1.0 - distance**2 / 2.0  # cosine of the angle between the two
    yield equal("Pearson's coefficient, and the cosine of the angle", _pearson(moved, mm), true)
    cosine = svm.correlation(moved, mm)
    yield equal("corr_coef, and the cosine of the angle", cosine, true, role="correction")


def _pearson(A: Array, B: Array) -> Array:
    a, b = (M - M.mean(axis=(-2, -1), keepdims=True) for M in (A, B))
    return inner(a, b) / (norm(a) * norm(b))


@measures("svm.erratum-30", instances=60)
def erratum_30(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=5, T=5, d=8, min_gap=0.1, trials=instances, rng=rng)
    opt = drawn.optimal
    found = theory.svm.token_margins(drawn, svm.attention_svm(drawn).W)
    printed = found[:, np.arange(5), np.arange(5)]
    yield at_least("margins of x_ii", printed, 1.0 - 1e-6)
    correct = found[others(drawn, opt)]
    yield at_least("margins of x_it, t not optimal", correct, 1.0 - 1e-6, role="correction")


@measures("svm.erratum-31", instances=40)
def erratum_31(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    d = 6
    drawn = problems.sphere(n=3, T=4, d=d, trials=instances, rng=rng)
    W = {"W": rng.standard_normal((instances, d, d))}

    def loss(problem: TokenProblem, V: Array) -> Array:
        return models.Attention(head=models.ReLUHead(V)).value_and_grad(W, problem)[0]

    again = TokenProblem(drawn.X, drawn.z, drawn.y, rng.permuted(drawn.v, axis=-1))
    change = np.abs(loss(again, np.eye(d)) - loss(drawn, np.eye(d)))
    yield at_least("change of the loss with v", change.max(), 0.0, strictly=True)
    V = rng.standard_normal((2, d, d))
    V /= norm(V)[:, None, None]
    change = np.abs(loss(drawn, V[1]) - loss(drawn, V[0]))
    yield at_least("change of the loss with V", change.max(), 0.0, strictly=True, role="correction")
