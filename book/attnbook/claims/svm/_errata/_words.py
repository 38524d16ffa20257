"""Sentences of the main text that name the wrong thing (errata 13 to 16)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims._registry import erratum
from attnbook.claims.svm._errata._tools import least_margin, norm, others, scaled
from attnlab import models, optim, problems, svm
from attnlab.checks import Array
from attnlab.problems import TokenProblem


@erratum(
    "svm.erratum-13",
    "Section 2.1, before Lemma 1",
    "a convex solution of rank at most m solves the nuclear problem, not Att-SVM",
    printed=r"If the convex nuclear problem has solutions of rank at most $m$, it recovers those "
    r"of (Att-SVM) although $m<d$.",
    correct=r"It recovers those of (Att-SVM$_\star$).",
    page="svm/norms",
    about=("svm.lemma-1", "svm.lemma-3"),
    instances=40,
)
def erratum_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n = m = 3
    drawn = problems.sphere(n=n, T=4, d=8, trials=instances, rng=rng)
    convex, frobenius = svm.attention_svm(drawn, norm="nuc"), svm.attention_svm(drawn)
    apart = norm(convex.W - frobenius.W) / norm(frobenius.W)
    yield at_most("distance of the convex nuclear solution from that of Att-SVM", apart, 1e-6)
    K, Q = convex.factors(m)  # m columns, fewer than d
    cost = (norm(K) ** 2 + norm(Q) ** 2) / 2.0
    what = "cost of m columns, against the convex optimum"
    yield equal(what, cost, convex.norm, within=1e-6, role="correction")
    least = least_margin(drawn, K @ Q.swapaxes(-1, -2), drawn.optimal)
    yield at_least("their smallest margin", least, 1.0 - 1e-6, role="correction")


@erratum(
    "svm.erratum-14",
    "Section 3, text on Figure 1",
    "solid lines are the Frobenius directions; the nuclear ones are dashed",
    printed=r"The solid lines, along which $Wz_i$ grows, are $W^{mm}_\star z_i$.",
    correct=r"The solid lines are $W^{mm}z_i$; $KQ^\top z_i$ grows along the dashed ones, "
    r"$W^{mm}_\star z_i$ (as the caption says).",
    page="svm/norms",
    about=("svm.theorem-2",),
    instances=40,
)
def erratum_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    many = 4 * instances + 40
    X = 0.3 * rng.standard_normal((many, 2, 3, 2)) + np.array([[-1.0, 0.0], [1.0, 0.0]])[:, None]
    z, v = rng.standard_normal((many, 2, 2)), rng.standard_normal((many, 2))
    drawn = TokenProblem(X, z, np.ones((many, 2)), v)
    rule = optim.NormalizedGD(0.1)
    run = optim.train(models.Attention(start="zero"), drawn, rule, 2000, record=())
    W, tokens = run.params["W"], svm.classify(run).tokens
    solid, dashed = (svm.attention_svm(drawn, tokens, norm=name) for name in ("fro", "nuc"))
    solved = (solid.status == "optimal") & (dashed.status == "optimal")
    shown = solved & ~(svm.correlation(solid.W, dashed.W) > 0.95)  # the lines differ
    for name, line, role in (
        ("W_*^mm z_i", dashed.W, "statement"),
        ("W^mm z_i", solid.W, "correction"),
    ):
        cosine = _cosine(drawn.z @ W.swapaxes(-1, -2), drawn.z @ line.swapaxes(-1, -2))
        typical = np.median(cosine[shown].min(axis=-1))
        yield at_least(
            f"median over runs of the cosine of W z_i with {name}", typical, 0.99, role=role
        )


def _cosine(a: Array, b: Array) -> Array:
    return np.asarray(
        (a * b).sum(axis=-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
    )


@erratum(
    "svm.erratum-15",
    "Section 5.1, after Definition 2",
    "another local direction stops some starts, not all of them",
    printed=r"If a locally optimal direction other than $W^{mm}$ exists, gradient descent from any "
    r"starting point fails to converge to $W^{mm}$.",
    correct=r"... gradient descent does not converge to $W^{mm}$ from every starting point.",
    page="svm/descent",
    about=("svm.definition-2", "svm.theorem-7"),
    instances=40,
)
def erratum_15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    # on a line: the optimal token lies behind a worse one, as seen from the selected one
    place = np.array([0.0, -1.0, -3.0]) - rng.uniform(0.0, 0.5, (instances, 3))
    score = np.array([1.0, 0.0, 2.0]) + rng.uniform(-0.2, 0.2, (instances, 3))
    X = np.stack([place, 0.01 * score], axis=-1)[:, None]
    z, v = np.tile([1.0, 0.0], (instances, 1, 1)), np.tile([0.0, 100.0], (instances, 1))
    drawn = TokenProblem(X, z, np.ones((instances, 1)), v)
    other = np.zeros((instances, 1), np.int64)
    local = svm.locally_optimal(drawn, other)
    away = (local.corrected & (drawn.optimal != other).all(axis=-1)).mean()
    yield at_least("share with a local direction beside W_mm", away, 1.0, role="correction")
    rule, model = optim.NormalizedGD(0.1), models.Attention(start="zero")
    found = svm.classify(optim.train(model, drawn, rule, 500, record=()))
    yield at_most("share of runs from 0 that end at W_mm", found.share("global"), 0.0)
    yield at_least(
        "share of runs from 0 that end at W_mm", found.share("global"), 1.0, role="correction"
    )
    start = {"W": scaled(local.margin.W, 30.0)}
    found = svm.classify(optim.train(model, drawn, rule, 500, params=start, record=()))
    yield at_least(
        "share that stays at the local direction, started there",
        found.share("local"),
        1.0,
        role="correction",
    )


@erratum(
    "svm.erratum-16",
    "Section 4.1, on Assumption B.1",
    "with all tokens in the support, W_mm is the least-norm interpolator of the margins",
    printed=r"Then $W^{mm}$ coincides with (Att-SVM).",
    correct=r"Then $W^{mm}$ coincides with $\arg\min\|W\|_F$ s.t. $(x_{i\,\mathrm{opt}_i}-x_{it})"
    r"^\top Wz_i=1$ for all $t\ne\mathrm{opt}_i$. (It solves Att-SVM by definition, with B.1 or "
    r"without.)",
    page="svm/global",
    about=("svm.assumption-b",),
    instances=60,
)
def erratum_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, d in (("where B.1 holds", 16), ("where B.1 fails", 4)):
        drawn = problems.sphere(n=2, T=3, d=d, trials=instances + 20, rng=rng)
        holds = svm.assumption_b1(drawn).holds
        drawn = drawn.trial(holds if d == 16 else ~holds)
        mm = svm.attention_svm(drawn)
        again = svm.attention_svm(drawn, method="nnls").W
        apart = norm(mm.W - _interpolator(drawn)) / mm.norm
        if d == 16:
            yield at_most(f"distance from the interpolator {name}", apart, 1e-6, role="correction")
            continue
        same = norm(mm.W - again) / mm.norm
        yield at_least(f"distance from Att-SVM {name}", same, 1e-6, strictly=True)
        clear = apart[mm.margins.max(axis=(-1, -2)) > 1.01]
        what = f"distance from the interpolator {name}"
        yield at_least(what, clear, 1e-4, role="correction")


def _interpolator(problem: TokenProblem) -> Array:
    """The least-norm W whose margins are all 1."""
    rest = others(problem, problem.optimal)
    flat = theory.svm.features(problem)[rest].reshape(*problem.trials, -1, problem.d**2)
    found = np.linalg.pinv(flat) @ np.ones((flat.shape[-2], 1))
    return np.asarray(found.reshape(*problem.trials, problem.d, problem.d))
