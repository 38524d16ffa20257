"""Scores, when the attention SVM has a solution and why, and what its solutions look like."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, vanishes
from attnbook.claims.svm import _cases as cases
from attnlab import models, problems, svm
from attnlab.checks import Array, IntArray

SIZES = ((3, 4), (4, 3), (2, 5))  # (n, T)
RANK = 1e-10  # singular values below this are 0


def wide(instances: int, rng: np.random.Generator) -> Iterator[tuple[problems.TokenProblem, str]]:
    """Data of the least dimension that Theorem 1 asks for, and what they are."""
    for first in (False, True):
        for n, T in SIZES:
            d = theory.svm.enough_dimension(n, T)
            drawn = problems.sphere(n=n, T=T, d=d, self_attention=first, trials=instances, rng=rng)
            yield drawn, f"n={n} T={T} d={d}, query {'the first token' if first else 'independent'}"


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
    for drawn, which in wide(instances, rng):
        W = np.nan_to_num(svm.attention_svm(drawn).W)
        yield at_least(f"least margin found, {which}", cases.least_margin(drawn, W), 1.0)
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
            yield vanishes(
                f"share of the solution outside the span of z, {where}", share, within=1e-7
            )
            values = np.linalg.svd(W, compute_uv=False)
            rank = (values > 1e-6 * values[..., :1]).sum(axis=-1)
            yield at_most(f"rank of the solution, {where}", rank, min(n, bound))
    drawn = cases.separated(2, 4, 5, instances, rng)
    W = svm.attention_svm(drawn).W
    span = np.linalg.svd(drawn.z, full_matrices=False)[2]
    G = rng.standard_normal(W.shape)
    more = W + G - G @ span.swapaxes(-1, -2) @ span
    kept = np.abs(theory.svm.token_margins(drawn, more) - theory.svm.token_margins(drawn, W))
    yield vanishes("what leaving the span changes of the margins", kept, within=1e-9)
    rank = np.linalg.matrix_rank(more, tol=1e-6)
    yield at_most("rank of a feasible W that is not of least norm", rank, 2, role="outside")


def _last(problem: problems.TokenProblem) -> tuple[Array, Array]:
    r"""Projection on the complement of the earlier queries, and $\bar z_n$, for each trial."""
    earlier = problem.z[..., :-1, :]
    off = np.eye(problem.d) - np.linalg.pinv(earlier) @ earlier
    return off, (off @ problem.z[..., -1, :, None])[..., 0]


@measures("svm.claim-e1")
def claim_e1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for drawn, which in wide(instances, rng):
        rank = _rank(drawn, cases.random_selection(drawn, rng))
        yield equal(f"rank of the projected features, {which}", rank, drawn.T - 1)
    for n, T, d in ((4, 3, 3), (2, 5, 3)):  # d < n, d < T - 1
        narrow = problems.sphere(n=n, T=T, d=d, trials=instances, rng=rng)
        rank = _rank(narrow, cases.random_selection(narrow, rng))
        yield equal(f"the same with n={n} T={T} d={d}", rank, T - 1, role="outside")


def _rank(problem: problems.TokenProblem, alpha: IntArray) -> Array:
    last = np.take_along_axis(problem.X[:, -1], alpha[:, -1, None, None], axis=-2)
    rows = (last - problem.X[:, -1])[..., :, None] * _last(problem)[1][:, None, None, :]
    return np.asarray(np.linalg.matrix_rank(rows.reshape(*rows.shape[:2], -1), tol=RANK))


@measures("svm.claim-e2")
def claim_e2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, T, d = 3, 4, 5
    drawn = problems.sphere(n=n, T=T, d=d, trials=instances, rng=rng)
    alpha = cases.random_selection(drawn, rng)
    F = theory.svm.features(drawn, alpha)
    off, bar = _last(drawn)
    A = rng.standard_normal((instances, d, d))
    earlier = F[:, :-1].reshape(instances, -1, d, d)
    for what, inside, role in (
        ("column", off @ A, "step"),
        ("row", A @ off, "correction"),
    ):
        seen = np.abs(cases.inner(earlier, inside[:, None])).max(axis=-1)
        yield vanishes(
            f"{what} space in Z: inner product with an earlier feature",
            seen,
            within=1e-9,
            role=role,
        )
    others = np.arange(T) != alpha[:, -1, None]
    wanted = F[:, -1] @ off[:, None]
    left = np.take_along_axis(drawn.X[:, -1], alpha[:, -1, None, None], axis=-2) - drawn.X[:, -1]
    rows = left[..., :, None] * bar[:, None, None, :]
    gone = cases.norm(wanted - rows)[others]
    yield vanishes(
        "projected features, (x_alpha - x_t) times z-bar: distance",
        gone,
        within=1e-9,
        role="correction",
    )
    single = drawn.X[:, -1][..., :, None] * drawn.z[:, -1][:, None, None, :]
    gone = cases.norm(single @ off[:, None] - rows)[others]
    yield vanishes("projected x_t times z, the same: distance", gone, within=1e-9)


def beside(rng: np.random.Generator, A: Array, q: int) -> Array:
    """Rows: an orthonormal basis of a random subspace, of q dimensions, of the null space of A."""
    many, n, p = A.shape
    null = np.linalg.svd(A)[2][:, n:]
    mix = np.linalg.qr(rng.standard_normal((many, p - n, q)))[0]
    return np.asarray(mix.swapaxes(1, 2) @ null)


@measures("svm.lemma-17", instances=200)
def lemma_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, m, p, q = 4, 3, 12, 5
    A = rng.standard_normal((instances, n, p))
    P = beside(rng, A, q)
    for size in (1.0, 1e-4):
        inside = rng.standard_normal((instances, m, P.shape[1])) @ P
        B = rng.standard_normal((instances, m, n)) @ A + size * inside
        seen = np.linalg.matrix_rank(B @ P.swapaxes(1, 2), tol=1e-9)
        yield equal(f"rank of the rows of B on P, part {size:g}", seen, m)
        joined = np.concatenate([A, B], axis=1)
        yield equal(
            f"rank of [A; B], part {size:g}", np.linalg.matrix_rank(joined, tol=1e-9), n + m
        )
        least = np.linalg.svd(joined, compute_uv=False)[:, -1]
        yield at_least(f"its least singular value, part {size:g}", least, 0.0, strictly=True)
    B = rng.standard_normal((instances, m, n)) @ A
    joined = np.concatenate([A, B], axis=1)
    rank = np.linalg.matrix_rank(joined, tol=1e-9)
    yield equal("rank of [A; B] with P the row space of A", rank, n + m, role="outside")
