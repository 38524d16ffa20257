"""Why wide tokens can be separated: the two claims of Appendix E and Lemma 17."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims._registry import claim
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._existence import SIZES
from attnlab import problems
from attnlab.checks import Array, IntArray

RANK = 1e-10  # singular values below this are 0


def _last(problem: problems.TokenProblem) -> tuple[Array, Array]:
    r"""Projection on the complement of the earlier queries, and $\bar z_n$, for each trial."""
    earlier = problem.z[..., :-1, :]
    off = np.eye(problem.d) - np.linalg.pinv(earlier) @ earlier
    return off, (off @ problem.z[..., -1, :, None])[..., 0]


@claim(
    "svm.claim-e1",
    "Claim 1, Appendix E",
    "the new sample's features are independent even off the span of the earlier queries",
    r"With $\bar z_n$ the projection of $z'_n$ on the complement of $z_1,\dots,z_{n-1}$, the rows "
    r"$(x'_{n\alpha_n}-x'_{nt})\otimes\bar z_n$, $t\ne\alpha_n$, have rank $T-1$ almost surely if "
    r"$d\ge\max(T-1,n)$.",
    page="svm/margin",
    instances=100,
    errata=("svm.erratum-26",),
)
def claim_e1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for first in (False, True):
        for n, T in SIZES:
            d = theory.svm.enough_dimension(n, T)
            drawn = problems.sphere(n=n, T=T, d=d, self_attention=first, trials=instances, rng=rng)
            rank = _rank(drawn, cases.random_selection(drawn, rng))
            query = "the first token" if first else "independent"
            yield equal(
                f"rank of the projected features, n={n} T={T} d={d}, query {query}", rank, T - 1
            )
    for n, T, d in ((4, 3, 3), (2, 5, 3)):  # d < n, d < T - 1
        narrow = problems.sphere(n=n, T=T, d=d, trials=instances, rng=rng)
        rank = _rank(narrow, cases.random_selection(narrow, rng))
        yield equal(f"the same with n={n} T={T} d={d}", rank, T - 1, role="outside")


def _rank(problem: problems.TokenProblem, alpha: IntArray) -> Array:
    last = np.take_along_axis(problem.X[:, -1], alpha[:, -1, None, None], axis=-2)
    rows = (last - problem.X[:, -1])[..., :, None] * _last(problem)[1][:, None, None, :]
    return np.asarray(np.linalg.matrix_rank(rows.reshape(*rows.shape[:2], -1), tol=RANK))


@claim(
    "svm.claim-e2",
    "Claim 2, Appendix E",
    "those rows are projections of the new features on a space the earlier ones do not see",
    r"There is a subspace $P$ of the null space of $M_{n-1}$ such that $\bar "
    r"f_{nt}=\Pi_P(f'_{nt})$ "
    r"with $f'_{nt}=x'_{nt}\otimes z'_n$. (The proof takes the matrices whose column space lies in "
    r"$Z_{n-1}=\{z_1,\dots,z_{n-1}\}^\perp$.)",
    page="svm/margin",
    status="holds with correction",
    correction=r"$P$ holds the matrices whose row space lies in $Z_{n-1}$ (then $Az_i=0$), and "
    r"$f'_{nt}=(x'_{n\alpha_n}-x'_{nt})\otimes z'_n$.",
    instances=100,
    errata=("svm.erratum-26",),
)
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
        yield at_most(
            f"{what} space in Z: inner product with an earlier feature", seen, 1e-9, role=role
        )
    others = np.arange(T) != alpha[:, -1, None]
    wanted = F[:, -1] @ off[:, None]
    left = np.take_along_axis(drawn.X[:, -1], alpha[:, -1, None, None], axis=-2) - drawn.X[:, -1]
    rows = left[..., :, None] * bar[:, None, None, :]
    gone = np.linalg.norm(wanted - rows, axis=(-1, -2))[others]
    yield at_most(
        "projected features, (x_alpha - x_t) times z-bar: distance", gone, 1e-9, role="correction"
    )
    single = drawn.X[:, -1][..., :, None] * drawn.z[:, -1][:, None, None, :]
    gone = np.linalg.norm(single @ off[:, None] - rows, axis=(-1, -2))[others]
    yield at_most("projected x_t times z, the same: distance", gone, 1e-9)


@claim(
    "svm.lemma-17",
    "Lemma 17",
    "rows that stay independent on a space the first rows do not see add to their rank",
    r"Let $A\in\mathbb R^{n\times p}$ have full row rank, $P\subseteq\mathrm{null}(A)$, "
    r"$B\in\mathbb R^{m\times p}$, $n+m\le p$. If the rows of $B$ projected on $P$ have full rank, "
    r"then $[A;B]$ has full row rank.",
    page="svm/margin",
    instances=200,
    errata=("svm.erratum-26",),
    reason="Inside: rows of B that are mostly combinations of those of A, with a small part in P. "
    "Outside: P not in the null space.",
)
def lemma_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, m, p, q = 4, 3, 12, 5
    A = rng.standard_normal((instances, n, p))
    null = np.linalg.svd(A)[2][:, n:]  # rows: a basis of the null space
    mix = np.linalg.qr(rng.standard_normal((instances, p - n, q)))[0]
    P = mix.swapaxes(1, 2) @ null  # an orthonormal basis of a subspace
    for size in (1.0, 1e-4):
        inside = rng.standard_normal((instances, m, q)) @ P
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
