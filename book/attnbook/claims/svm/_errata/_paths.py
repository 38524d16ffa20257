"""Regularization paths and their solution sets (errata 19 to 23)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims._registry import erratum
from attnbook.claims.svm._errata._tools import least_margin, norm, normal, rows
from attnlab import models, problems, svm
from attnlab.checks import Array
from attnlab.models import Params

RADII = (10.0, 100.0, 1000.0)


@erratum(
    "svm.erratum-19",
    "Appendix D, (SERM-KQ)",
    "the risk in K and Q lacks the sum over outputs",
    printed=r"$\mathcal L(K,Q)=\frac1n\sum_i\ell(Y_{ik}\,h_k(X_i^\top\mathbb S(X_iKQ^\top "
    r"z_{ik})))$.",
    correct=r"$\mathcal L(K,Q)=\frac1n\sum_i\sum_{k=1}^K\ell(\dots)$, so that $\mathcal L(K,Q)="
    r"\mathcal L(KQ^\top)$.",
    page="svm/sequences",
    about=("svm.lemma-15", "svm.corollary-2", "svm.definition-4", "svm.theorem-10"),
    instances=40,
)
def erratum_19(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    outputs = 3
    drawn = problems.sequence(n=2, T=outputs, d=4, trials=instances, rng=rng)
    params = {name: rng.standard_normal((instances, 4, 2)) for name in ("K", "Q")}
    W = params["K"] @ params["Q"].swapaxes(-1, -2)
    whole = outputs * models.Attention().value_and_grad({"W": W}, drawn)[0]  # (SERM-W)
    model = models.Attention(factors=2)
    parts = np.array(
        [
            model.value_and_grad(params, rows(drawn, slice(k, None, outputs)))[0]
            for k in range(outputs)
        ]
    )
    yield equal("L(K, Q) with one k, and L(K Q^T)", parts, whole)
    yield equal("L(K, Q) summed over k, and L(K Q^T)", parts.sum(axis=0), whole, role="correction")


@erratum(
    "svm.erratum-20",
    "Appendix D, definition of R_m",
    "the set holds the matrices of rank at most m; rank exactly m excludes the solutions",
    printed=r"$\mathcal R_m$: the matrices of rank $m$ in $\mathbb R^{d\times d}$.",
    correct=r"$\mathcal R_m$: the matrices of rank at most $m$, a closed set. Over rank exactly "
    r"$m$ the infimum need not be attained: by Lemma 1 solutions have rank at most $n$.",
    page="svm/norms",
    about=(
        "svm.theorem-10",
        "svm.lemma-16",
        "svm.lemma-3",
        "svm.lemma-15",
        "svm.definition-4",
        "svm.definition-5",
    ),
    instances=60,
)
def erratum_20(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, d = 2, 5
    m = d
    drawn = problems.sphere(n=n, T=4, d=d, trials=instances, rng=rng)
    found = svm.attention_svm(drawn)
    yield equal(f"rank of the solution, and m = {m}", found.rank, float(m))
    yield at_most(f"rank of the solution, against m = {m}", found.rank, m, role="correction")
    U, values, Vt = np.linalg.svd(found.W)
    values = np.maximum(values, 1e-3 * values[:, :1])  # full rank, and hardly another matrix
    near = (U * values[:, None, :]) @ Vt
    near = near / least_margin(drawn, near, drawn.optimal)[:, None, None]
    rank = np.linalg.matrix_rank(near)
    yield equal("rank of feasible matrices close by", rank, float(m), role="correction")
    excess = norm(near) / found.norm
    yield at_least("their norm over the least", excess, 1.0, strictly=True, role="correction")
    yield at_most("their norm over the least", excess, 1.01, role="correction")


@erratum(
    "svm.erratum-21",
    "Lemma 15",
    "many factor pairs share one product: the map of solutions is onto, not one-to-one",
    printed=r"There is a one-to-one map between the solutions $\bar W_R$ and "
    r"$(\bar K_R,\bar Q_R)$.",
    correct=r"The optimal values agree, and $(\bar K_R,\bar Q_R)\mapsto\bar K_R\bar Q_R^\top$ maps "
    r"the one set of solutions onto the other; $(\bar K_RO,\bar Q_RO)$ with $O$ orthogonal has the "
    r"same image.",
    page="svm/norms",
    about=("svm.lemma-15",),
    instances=20,
)
def erratum_21(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    m, R = 4, 10.0
    drawn = problems.sphere(n=2, T=3, d=m, trials=instances, rng=rng)
    model = models.Attention(factors=m)
    path = svm.regularization_path(model, drawn, [R], rng=rng)
    first = {name: factor[0] for name, factor in path.params.items()}
    turn = np.linalg.qr(rng.standard_normal((instances, m, m)))[0]
    second = {name: factor @ turn for name, factor in first.items()}
    apart = norm(_product(first) - _product(second)) / (
        norm(first["K"] - second["K"]) + norm(first["Q"] - second["Q"])
    )
    yield at_least("distance of products over distance of factors", apart, 1e-6)
    losses = [model.value_and_grad(params, drawn)[0] for params in (first, second)]
    yield equal("loss of both pairs", losses[1], losses[0], role="correction")
    size = np.linalg.svd(path.W[0])[1].sum(axis=-1)
    for name, params in (("the pair", first), ("the turned pair", second)):
        cost = (norm(params["K"]) ** 2 + norm(params["Q"]) ** 2) / 2.0
        what = f"cost of {name}, and the nuclear norm of its product"
        yield equal(what, cost, size, within=1e-4, role="correction")
    other = normal(rng, drawn, 20)
    other *= R / np.linalg.svd(other)[1].sum(axis=-1)[..., None, None]
    rival = [models.Attention().value_and_grad({"W": W}, drawn)[0] for W in other]
    what = "loss of 20 matrices W of nuclear norm R, against the least over (K, Q)"
    yield at_least(what, np.array(rival), losses[0], role="correction")


def _product(params: Params) -> Array:
    return params["K"] @ params["Q"].swapaxes(-1, -2)


@erratum(
    "svm.erratum-22",
    "Corollaries 1 and 2",
    "the limit of the distance is 0, and the product is K Q^T",
    printed=r"Corollary 1: $\lim_{R\to\infty}\mathrm{dist}(\bar W_{\diamond,R}/R,"
    r"\mathcal W^{mm}_\diamond)$, without a value. Corollary 2: $\mathrm{dist}(\bar Q_R"
    r"\bar K_R^\top/R,\mathcal W^{mm}_\star/\|W^{mm}_\star\|_\star)\to0$.",
    correct=r"$\lim\mathrm{dist}(\bar W_{\diamond,R}/R,\mathcal W^{mm}_\diamond)=0$, and "
    r"$\bar K_R\bar Q_R^\top$ in Corollary 2.",
    page="svm/norms",
    about=("svm.corollary-1", "svm.corollary-2"),
    instances=20,
)
def erratum_22(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.1, trials=instances, rng=rng)
    path = svm.regularization_path(models.Attention(factors=4), drawn, RADII, rng=rng)
    nuclear = svm.attention_svm(drawn, norm="nuc")
    goal = nuclear.W / nuclear.norm[:, None, None]
    K, Q, R = path.params["K"], path.params["Q"], np.array(RADII)[:, None, None, None]
    turned = norm(Q @ K.swapaxes(-1, -2) / R - goal)
    straight = norm(K @ Q.swapaxes(-1, -2) / R - goal)
    yield at_most("distance of Q K^T / R at R = 1000", turned[-1], 0.05)
    yield at_most("distance of K Q^T / R at R = 1000", straight[-1], 0.05, role="correction")
    power = slope(RADII, straight.mean(axis=1))
    yield at_most("power of R in its mean", power, -0.5, role="correction")


@erratum(
    "svm.erratum-23",
    "Theorems 9 and 10",
    "the regularization path consists of minimisers, not of minima",
    printed=r"$\bar W_R=\min_{C,\ \|W\|_\diamond\le R}\mathcal L(W)$.",
    correct=r"$\bar W_R\in\arg\min_{C,\ \|W\|_\diamond\le R}\mathcal L(W)$.",
    page="svm/margin",
    about=("svm.theorem-9", "svm.theorem-10", "svm.corollary-1"),
    instances=20,
)
def erratum_23(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.1, trials=instances, rng=rng)
    path = svm.regularization_path(models.Attention(), drawn, RADII, tokens=drawn.optimal)
    mm = svm.attention_svm(drawn)
    far = RADII[-1] / mm.norm[:, None, None]  # R Xi
    minimum = np.broadcast_to(path.loss[-1][:, None, None], mm.W.shape)
    for name, found, role in (
        ("the minimum (a number, repeated in a matrix)", minimum, "statement"),
        ("the minimiser", path.W[-1], "correction"),
    ):
        distance = norm(found / far - mm.W) / mm.norm
        what = f"distance of {name} over R Xi from W_mm, at R = 1000"
        yield at_most(what, distance, 0.05, role=role)
