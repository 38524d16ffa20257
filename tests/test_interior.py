"""The interior point of the nuclear-norm SVM: oracle, certificate, closed forms, bad instances."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab import problems

interior = importlib.import_module("attnlab.svm._interior")
nuclear = interior.nuclear

Rows = tuple[np.ndarray, np.ndarray]


def reduced(rows: np.ndarray) -> np.ndarray:
    """Coordinates of the rows in their own span, one trial."""
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    return rows @ vt[: np.sum(s > 1e-9 * s[0])].T


def sphere_rows(n: int, T: int, d: int, trials: int, rng: int) -> Rows:
    """Differences to the optimal token and queries of random instances, in reduced coordinates."""
    p = problems.sphere(n=n, T=T, d=d, trials=trials, rng=rng)
    lefts, rights = [], []
    for X, z, optimal in zip(p.X, p.z, p.optimal, strict=True):
        pairs = [(i, t) for i in range(n) for t in range(T) if t != optimal[i]]
        lefts.append(reduced(np.array([X[i, optimal[i]] - X[i, t] for i, t in pairs])))
        rights.append(reduced(np.array([z[i] for i, _ in pairs])))
    return np.array(lefts), np.array(rights)


def planted(m: int, p: int, q: int, trials: int, seed: int) -> Rows:
    """Gaussian rows, each turned so that one planted matrix satisfies them all."""
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((trials, m, p)), rng.standard_normal((trials, m, q))
    A = rng.standard_normal((trials, p, q))
    return left * np.sign((left @ A * right).sum(axis=-1))[..., None], right


def flat(margin: float, trials: int, seed: int) -> Rows:
    """Planted rows moved until the planted matrix gives all of them the same small margin."""
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((trials, 14, 3)), rng.standard_normal((trials, 14, 3))
    seen = right @ rng.standard_normal((trials, 3, 3))
    left *= np.sign((left * seen).sum(axis=-1))[..., None]
    short = margin - (left * seen).sum(axis=-1)
    return left + (short / (seen**2).sum(axis=-1))[..., None] * seen, right


def solve(left: np.ndarray, right: np.ndarray, valid: np.ndarray | None = None, **options: float):
    """Solve, and recompute the certificate trial by trial."""
    valid = np.ones(left.shape[:2], bool) if valid is None else valid
    found = nuclear(left, right, valid, **options)
    for field in found:
        assert not np.isnan(field).any()
    for b in range(len(left)):
        k = valid[b]
        margins = np.einsum("kp,pq,kq->k", left[b, k], found.A[b], right[b, k])
        M = np.einsum("k,kp,kq->pq", found.multipliers[b, k], left[b, k], right[b, k])
        assert (found.multipliers[b] >= 0.0).all()
        assert (found.multipliers[b, ~k] == 0.0).all()
        if not k.any():
            assert found.primal[b] == found.dual[b] == found.gap[b] == 0.0
            continue
        if not np.isfinite(found.primal[b]):
            assert found.gap[b] == 1.0
            continue
        noise = 1e-12 + 1e-14 * np.abs(left[b]).max() * found.primal[b] * np.abs(right[b]).max()
        assert margins.min() == pytest.approx(1.0, abs=noise)
        assert np.linalg.svd(M)[1][0] == pytest.approx(1.0, abs=1e-12 + noise)
        primal = np.linalg.svd(found.A[b])[1].sum()
        assert found.primal[b] == pytest.approx(primal, rel=1e-12)
        assert found.dual[b] == pytest.approx(found.multipliers[b].sum(), rel=1e-12)
        gap = (primal - found.multipliers[b].sum()) / primal
        assert found.gap[b] == pytest.approx(gap, abs=1e-12)
    return found


SHAPES = [(2, 3, 4), (3, 4, 6), (5, 5, 10), (4, 6, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_agrees_with_cvxpy(shape: tuple[int, int, int]) -> None:
    import cvxpy

    left, right = sphere_rows(*shape, trials=4, rng=sum(shape))
    found = solve(left, right)
    for b in range(len(left)):
        A = cvxpy.Variable(found.A.shape[1:])
        margins = cvxpy.sum(cvxpy.multiply(left[b] @ A, right[b]), axis=1)
        program = cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(A)), [margins >= 1])
        assert found.primal[b] == pytest.approx(program.solve(solver="CLARABEL"), rel=1e-6)


@pytest.mark.parametrize(
    "rows",
    [sphere_rows(5, 5, 10, 30, 0), sphere_rows(15, 5, 20, 5, 0), sphere_rows(8, 6, 6, 20, 0)],
    ids=["5x5x10", "15x5x20", "8x6x6"],
)
def test_certified_in_few_iterations(rows: Rows) -> None:
    found = solve(*rows)
    assert found.gap.max() <= 2e-10
    assert found.iterations.mean() <= 15
    assert found.iterations.max() <= 20


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 3, 4), (5, 1, 1), (6, 1, 4), (6, 5, 1)], ids=str)
def test_thin_shapes(shape: tuple[int, int, int]) -> None:
    assert solve(*planted(*shape, trials=20, seed=1)).gap.max() <= 1e-9


@pytest.mark.parametrize("shape", [(30, 3, 3), (60, 2, 2), (100, 3, 2)], ids=str)
def test_more_constraints_than_entries(shape: tuple[int, int, int]) -> None:
    assert solve(*planted(*shape, trials=20, seed=2)).gap.max() <= 1e-9


def test_batch_is_one_by_one() -> None:
    left, right = sphere_rows(4, 4, 8, 12, 3)
    together = solve(left, right)
    for b in range(len(left)):
        alone = solve(left[b : b + 1], right[b : b + 1])
        assert abs(alone.iterations[0] - together.iterations[b]) <= 1
        assert alone.primal[0] == pytest.approx(together.primal[b], rel=3e-10)
        assert alone.A[0] == pytest.approx(together.A[b], abs=1e-6)


def test_padding_changes_nothing() -> None:
    left, right = sphere_rows(4, 4, 8, 6, 4)
    plain, m = solve(left, right), left.shape[1]
    valid = np.zeros((6, m + 5), bool)
    valid[:, 2 : m + 2] = True
    rng = np.random.default_rng(0)
    for filling in (0.0, 1e3):
        wide = [filling * rng.standard_normal((6, m + 5, a.shape[2])) for a in (left, right)]
        wide[0][:, 2 : m + 2], wide[1][:, 2 : m + 2] = left, right
        assert solve(*wide, valid).primal == pytest.approx(plain.primal, rel=3e-10)


def test_no_constraint_at_all() -> None:
    left, right = sphere_rows(2, 3, 4, 2, 0)
    valid = np.ones(left.shape[:2], bool)
    valid[0] = False
    found = solve(left, right, valid)
    assert (found.A[0] == 0.0).all()
    assert found.gap[1] <= 1e-9


def test_lemma_2_one_sample_two_tokens() -> None:
    """n = 1, T = 2: W = d z' / (|d|^2 |z|^2)."""
    rng = np.random.default_rng(5)
    d, z = rng.standard_normal((7, 1, 4)), rng.standard_normal((7, 1, 3))
    expected = np.einsum("bkp,bkq->bpq", d, z) / ((d**2).sum(2) * (z**2).sum(2))[..., None]
    np.testing.assert_allclose(solve(d, z).A, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_orthonormal_atoms(n: int) -> None:
    """F_i = e_i e_i': the sum of them is optimal, of norm n."""
    e = np.eye(n)[None]
    found = solve(e, e)
    assert found.A[0] == pytest.approx(np.eye(n), abs=1e-8)
    assert found.primal[0] == pytest.approx(n, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_equivariance(scale: float) -> None:
    left, right = sphere_rows(4, 5, 8, 10, 6)
    plain = solve(left, right).primal
    for a, b in ((scale, 1.0), (1.0, scale), (scale, scale), (scale, 1.0 / scale)):
        found = solve(a * left, b * right)
        assert found.gap.max() <= 1e-9
        assert found.primal * a * b == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("decades", [2, 4, 8])
def test_rows_of_very_different_lengths(decades: int) -> None:
    left, right = sphere_rows(5, 5, 10, 20, 7)
    rng = np.random.default_rng(7)
    lengths = 10.0 ** (decades * (rng.random((2, *left.shape[:2], 1)) - 0.5))
    assert solve(left * lengths[0], right * lengths[1]).gap.max() <= 1e-9


@pytest.mark.parametrize("copies", [2, 5])
def test_duplicates(copies: int) -> None:
    left, right = sphere_rows(5, 4, 8, 10, 8)
    found = solve(np.repeat(left, copies, axis=1), np.repeat(right, copies, axis=1))
    assert found.gap.max() <= 1e-9
    assert found.primal == pytest.approx(solve(left, right).primal, rel=1e-9)


@pytest.mark.parametrize("error", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
def test_near_duplicates(error: float) -> None:
    """In between duplicate and distinct the gap is worse (1e-7), and says so."""
    left, right = sphere_rows(5, 5, 10, 20, 8)
    moved = left + error * np.random.default_rng(8).standard_normal(left.shape)
    found = solve(np.concatenate([left, moved], axis=1), np.concatenate([right, right], axis=1))
    assert found.gap.max() <= 3e-7


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_nearly_opposite_differences(angle: float) -> None:
    """Differences (+-cos, sin) with one query: |W| = 1 / sin."""
    left = np.array([[[np.cos(angle), np.sin(angle)], [-np.cos(angle), np.sin(angle)]]])
    found = solve(left, np.ones((1, 2, 1)))
    assert found.gap[0] <= 1e-9
    assert found.primal[0] == pytest.approx(1.0 / np.sin(angle), rel=1e-8)


@pytest.mark.parametrize(
    ("margin", "gap"), [(1e-2, 1e-9), (1e-3, 1e-9), (1e-4, 1e-9), (1e-5, 1e-8), (1e-6, 1e-6)]
)
def test_nearly_infeasible(margin: float, gap: float) -> None:
    found = solve(*flat(margin, 20, 9))
    assert found.gap.max() <= gap
    assert found.primal.max() > 0.3 / margin


def test_infeasible_trials_disturb_nobody() -> None:
    left, right = planted(12, 2, 2, 3, 10)
    plain = solve(left, right).primal
    left[1], left[1, ::2] = left[1, :1], -left[1, 0]
    right[1] = right[1, :1]
    found = solve(left, right)
    assert not np.isfinite(found.primal[1])
    assert found.gap[1] == 1.0
    assert found.primal[[0, 2]] == pytest.approx(plain[[0, 2]], rel=3e-10)
    zero = solve(np.zeros((1, 2, 2)), np.ones((1, 2, 1)))
    assert zero.gap[0] == 1.0


def test_one_failing_matrix_is_nan() -> None:
    good = np.eye(3)
    stack = np.stack([good, -good, good])
    lower = interior._guarded(np.linalg.cholesky, stack)
    assert np.isnan(lower[1]).all()
    assert (lower[[0, 2]] == good).all()
    found = interior._guarded(np.linalg.solve, np.stack([good, 0 * good]), np.ones((2, 3, 1)))
    assert np.isnan(found[1]).all()
    assert (found[0] == 1.0).all()


def test_stops_where_told() -> None:
    rows = sphere_rows(5, 5, 10, 5, 11)
    assert (solve(*rows, limit=4).iterations <= 4).all()
    loose = solve(*rows, tol=1e-3)
    assert 1e-9 < loose.gap.max() <= 1e-3


def test_rank_is_far_below_frobenius() -> None:
    """svm, Figure 4: at optimal tokens the nuclear rank is about 3.2, the Frobenius rank 6."""
    found = solve(*sphere_rows(6, 8, 10, 50, 12))
    values = np.linalg.svd(found.A)[1]
    ranks = (values > 1e-6 * values[:, :1]).sum(axis=1)
    assert abs(ranks.mean() - 3.2) <= 0.5


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 16),
    p=st.integers(1, 5),
    q=st.integers(1, 5),
    trials=st.integers(1, 3),
    lengths=st.floats(0.0, 3.0),
    repeats=st.integers(0, 4),
)
def test_gap_or_nearly_infeasible(
    seed: int, m: int, p: int, q: int, trials: int, lengths: float, repeats: int
) -> None:
    left, right = planted(m, p, q, trials, seed)
    rng = np.random.default_rng(seed)
    left = left * 10.0 ** (lengths * (rng.random((trials, m, 1)) - 0.5))
    again = rng.integers(0, m, repeats)
    left = np.concatenate([left, left[:, again]], axis=1)
    right = np.concatenate([right, right[:, again]], axis=1)
    found = solve(left, right)
    size = np.linalg.norm(left, axis=2) * np.linalg.norm(right, axis=2)
    relative_margin = 1.0 / (found.primal * size.max(axis=1))
    assert ((found.gap <= 1e-9) | (relative_margin < 1e-6)).all()
