"""Att-SVM in both norms against cvxpy, its symmetries, its closed forms, and the decoder's SVM."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnlab import problems, svm

MaxMargin = Callable[..., np.ndarray | None]

METHODS = {"fro": ["auto", "pivot", "nnls", "cvxpy"], "nuc": ["auto", "interior", "cvxpy"]}
P = problems.sphere(n=5, T=5, d=8, trials=40, min_gap=0.1, rng=0)


def by_cvxpy(p: problems.TokenProblem, tokens: np.ndarray, norm: str) -> np.ndarray:
    """The definition, for one instance."""
    import cvxpy

    cp: Any = cvxpy
    W = cp.Variable((p.d, p.d))
    margins = [
        (p.X[i, tokens[i]] - p.X[i, t]) @ W @ p.z[i]
        for i in range(p.n)
        for t in range(p.T)
        if t != tokens[i] and (p.mask is None or p.mask[i, t])
    ]
    least = cp.sum_squares(W) if norm == "fro" else cp.normNuc(W)
    program = cp.Problem(cp.Minimize(least), [m >= 1 for m in margins])
    tight = 1e-11
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "inaccurate" means short of 1e-11
        program.solve(solver=cp.CLARABEL, tol_gap_abs=tight, tol_gap_rel=tight, tol_feas=tight)
    assert program.status.startswith("optimal")
    return np.asarray(W.value)


def selections(kind: str, trials: int) -> tuple[problems.TokenProblem, np.ndarray]:
    if kind == "optimal tokens":
        p = problems.sphere(n=4, T=4, d=6, trials=trials, rng=1)
    elif kind == "any tokens":
        p = problems.sphere(n=4, T=5, d=5, trials=trials, rng=2)
        return p, np.random.default_rng(0).integers(5, size=(trials, 4))
    elif kind == "any mask":
        q = problems.sphere(n=4, T=5, d=5, trials=trials, rng=3)
        mask = np.random.default_rng(1).random((trials, 4, 5)) < 0.6
        mask[..., 0] |= ~mask.any(axis=-1)
        p = problems.TokenProblem(q.X, q.z, q.y, q.v, mask=mask)
    elif kind == "causal":
        p = problems.causal(n=2, T=4, d=6, trials=trials, rng=4)
    else:
        p = problems.sequence(n=2, T=3, d=5, trials=trials, rng=5)
    return p, p.optimal


SELECTIONS = ["optimal tokens", "any tokens", "any mask", "causal", "sequence"]


@pytest.mark.parametrize("kind", SELECTIONS)
def test_the_frobenius_answer_is_that_of_cvxpy(kind: str) -> None:
    """40 instances each, 200 in all: 1e-7 in norm, 1e-6 in direction."""
    p, tokens = selections(kind, 40)
    m = svm.attention_svm(p, tokens=tokens)
    assert (m.status == "optimal").all()
    for b in range(40):
        W = by_cvxpy(p.trial(b), tokens[b], "fro")
        np.testing.assert_allclose(m.norm[b], np.linalg.norm(W), rtol=1e-7)
        away = W / np.linalg.norm(W) - m.W[b] / m.norm[b]
        assert np.linalg.norm(away) < 1e-6


@pytest.mark.parametrize("kind", SELECTIONS)
def test_the_nuclear_answer_is_that_of_cvxpy(kind: str) -> None:
    """40 instances each, 200 in all; the direction up to what the oracle itself reaches."""
    p, tokens = selections(kind, 40)
    m = svm.attention_svm(p, tokens=tokens, norm="nuc")
    assert (m.status == "optimal").all()
    assert m.gap.max() <= 1e-9
    np.testing.assert_allclose(m.norm, np.linalg.svd(m.W)[1].sum(axis=-1), rtol=1e-9)
    frobenius = svm.attention_svm(p, tokens).W
    for b in range(40):
        W = by_cvxpy(p.trial(b), tokens[b], "nuc")
        np.testing.assert_allclose(m.norm[b], np.linalg.norm(W, "nuc"), rtol=1e-7)
        assert 1.0 - svm.correlation(W, m.W[b]) < 1e-6
        assert m.norm[b] <= np.linalg.norm(frobenius[b], "nuc") * (1 + 1e-9)


@pytest.mark.parametrize("kind", SELECTIONS)
def test_the_methods_agree(kind: str) -> None:
    p, tokens = selections(kind, 5)
    m = svm.attention_svm(p, tokens=tokens)
    for method, tolerance in (("pivot", 1e-12), ("nnls", 1e-10), ("cvxpy", 1e-5)):
        other = svm.attention_svm(p, tokens=tokens, method=method)
        np.testing.assert_allclose(other.W, m.W, atol=tolerance * m.norm.max())
        np.testing.assert_allclose(other.norm, m.norm, rtol=max(1e-9, tolerance / 10))
        if method != "cvxpy":
            assert (other.status == "optimal").all()
            assert (other.support == m.support).all()
            np.testing.assert_allclose(
                other.multipliers, m.multipliers, atol=1e-8 * m.multipliers.max()
            )


def test_the_nuclear_methods_agree() -> None:
    p, tokens = selections("optimal tokens", 4)
    m = svm.attention_svm(p, tokens=tokens, norm="nuc")
    same = svm.attention_svm(p, tokens=tokens, norm="nuc", method="interior")
    np.testing.assert_allclose(same.norm, m.norm, rtol=2e-9)
    np.testing.assert_allclose(same.W, m.W, atol=1e-6 * m.norm.max())
    assert (same.rank == m.rank).all()
    other = svm.attention_svm(p, tokens=tokens, norm="nuc", method="cvxpy")
    np.testing.assert_allclose(other.norm, m.norm, rtol=1e-4)


def test_the_textbook_formulation_tells_its_own_gap() -> None:
    """What cvxpy answers is reported with the certificate that it has, not with the one it says."""
    p, tokens = selections("optimal tokens", 5)
    for norm in ("fro", "nuc"):
        m, exact = (svm.attention_svm(p, tokens, norm, how) for how in ("cvxpy", "auto"))
        assert ((m.status == "optimal") == (m.gap <= 1e-9)).all()
        assert (m.gap >= -1e-15).all()
        feasible = m.norm / np.where(m.margins == 0.0, np.inf, m.margins).min(axis=(1, 2))
        assert (feasible * (1.0 - m.gap) <= exact.norm * (1.0 + 1e-9)).all()


# --- shapes


def test_shapes_of_the_issue() -> None:
    p = problems.sphere(n=5, T=5, d=8, trials=100, min_gap=0.1, rng=0)
    for norm in ("fro", "nuc"):
        m = svm.attention_svm(p, norm=norm)
        assert m.W.shape == (100, 8, 8)
        assert m.support.shape == m.multipliers.shape == m.margins.shape == (100, 5, 5)
        assert m.support.dtype == bool
        assert m.norm.shape == m.gap.shape == m.residual.shape == m.rank.shape == (100,)
        assert (m.status == "optimal").all()
        assert m.gap.max() <= 1e-9
        at = np.arange(5) == p.optimal[..., None]
        assert (m.margins[at] == 0.0).all()
        assert (m.multipliers[at] == 0.0).all()
        assert not m.support[at].any()
        assert (m.margins[~at] >= 1.0 - 1e-9).all()


@pytest.mark.parametrize("norm", ["fro", "nuc"])
def test_a_batch_is_its_trials_one_by_one(norm: str) -> None:
    p = P.trial(slice(0, 8))
    m = svm.attention_svm(p, norm=norm)
    for b in range(8):
        one = svm.attention_svm(p.trial(b), norm=norm)
        assert one.status == "optimal"
        assert isinstance(one.status, str)
        assert one.W.shape == (8, 8)
        assert one.norm.shape == one.gap.shape == ()
        np.testing.assert_allclose(one.norm, m.norm[b], rtol=1e-9)
        np.testing.assert_allclose(one.W, m.W[b], atol=1e-5 if norm == "nuc" else 1e-12)
        if norm == "fro":
            np.testing.assert_allclose(one.multipliers, m.multipliers[b], atol=1e-10)
            np.testing.assert_allclose(one.margins, m.margins[b], atol=1e-11)


@pytest.mark.parametrize("norm", ["fro", "nuc"])
def test_two_leading_axes(norm: str) -> None:
    flat = problems.sphere(n=3, T=4, d=5, trials=6, rng=0)
    X, z, y, v = (a.reshape(2, 3, *a.shape[1:]) for a in (flat.X, flat.z, flat.y, flat.v))
    p = problems.TokenProblem(X, z, y, v)
    m, m_flat = svm.attention_svm(p, norm=norm), svm.attention_svm(flat, norm=norm)
    assert m.W.shape == (2, 3, 5, 5)
    assert m.support.shape == (2, 3, 3, 4)
    assert m.status.shape == m.norm.shape == m.rank.shape == (2, 3)
    np.testing.assert_array_equal(m.W.reshape(6, 5, 5), m_flat.W)
    K, Q = m.factors()
    assert K.shape == Q.shape == (2, 3, 5, 5)
    tokens = np.ones((2, 3, 3), int)
    assert svm.attention_svm(p, tokens=tokens, norm=norm).W.shape == (2, 3, 5, 5)


def test_one_trial_cannot_disturb_the_others() -> None:
    X, z = P.X[:5].copy(), P.z[:5].copy()
    X[2, 0, 1:] = X[2, 0, :1]  # all tokens of a sample are the same
    p = problems.TokenProblem(X, z, P.y[:5], P.v[:5])
    for norm in ("fro", "nuc"):
        m = svm.attention_svm(p, tokens=P.optimal[:5], norm=norm)
        assert (m.status == "infeasible").tolist() == [False, False, True, False, False]
        assert np.isnan(m.W[2]).all()
        assert np.isinf(m.gap[2])
        kept = [0, 1, 3, 4]
        alone = svm.attention_svm(P.trial(kept), norm=norm)
        np.testing.assert_allclose(m.W[kept], alone.W, atol=1e-5 if norm == "nuc" else 1e-12)
        assert (m.status[kept] == "optimal").all()
        assert m.rank[2] == 0


# --- symmetries


@pytest.mark.parametrize("norm", ["fro", "nuc"])
@pytest.mark.parametrize("c", [1e-6, 0.25, 3.0, 1e5])
def test_scaling_tokens_or_queries_scales_the_answer_down(norm: str, c: float) -> None:
    p = P.trial(slice(0, 6))
    m = svm.attention_svm(p, norm=norm)
    for scaled in (
        problems.TokenProblem(c * p.X, p.z, p.y, p.v),
        problems.TokenProblem(p.X, c * p.z, p.y, p.v),
    ):
        other = svm.attention_svm(scaled, norm=norm)
        assert (other.status == "optimal").all()
        np.testing.assert_allclose(other.norm * c, m.norm, rtol=1e-8)
        tolerance = 1e-5 if norm == "nuc" else 1e-10
        np.testing.assert_allclose(other.W * c, m.W, atol=tolerance * m.norm.max())


@pytest.mark.parametrize("norm", ["fro", "nuc"])
@pytest.mark.parametrize(
    ("a", "b"), [(1e-60, 1e-60), (1e-90, 1e-60), (1e-160, 1.0), (1e-170, 1e60), (1e80, 1e80)]
)
def test_sizes_whose_squares_leave_float64(norm: str, a: float, b: float) -> None:
    """A Gram matrix that underflows to zero must not be taken for a contradiction."""
    p = P.trial(slice(0, 3))
    m = svm.attention_svm(p, norm=norm)
    scaled = problems.TokenProblem(a * p.X, b * p.z, p.y, p.v)
    other = svm.attention_svm(scaled, tokens=p.optimal, norm=norm)
    assert (other.status == "optimal").all()
    np.testing.assert_allclose(other.norm * a * b, m.norm, rtol=1e-8)


def test_one_feature_whose_square_leaves_float64() -> None:
    """Sizes 180 powers of ten apart do not fit one float64: said, not called infeasible."""
    p = P.trial(slice(0, 3))
    X, z = p.X.copy(), p.z.copy()
    X[:, 0] *= 1e-90
    z[:, 0] *= 1e-90
    with pytest.raises(ValueError, match=r"^X: expected .*70 powers of ten, got .*e-18"):
        svm.attention_svm(problems.TokenProblem(X, z, p.y, p.v), tokens=p.optimal)


@pytest.mark.parametrize("norm", ["fro", "nuc"])
def test_rotating_tokens_and_queries_rotates_the_answer(norm: str) -> None:
    p = P.trial(slice(0, 6))
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((8, 8)))[0] for _ in range(2))
    turned = problems.TokenProblem(p.X @ U.T, p.z @ V.T, p.y, p.v @ U.T)
    m, other = svm.attention_svm(p, norm=norm), svm.attention_svm(turned, norm=norm)
    np.testing.assert_allclose(other.norm, m.norm, rtol=1e-8)
    tolerance = 1e-5 if norm == "nuc" else 1e-11
    np.testing.assert_allclose(other.W, U @ m.W @ V.T, atol=tolerance * m.norm.max())


def test_moving_all_tokens_of_a_sample_changes_nothing() -> None:
    p = P.trial(slice(0, 6))
    shift = np.random.default_rng(0).standard_normal((6, 5, 1, 8))
    moved = problems.TokenProblem(p.X + shift, p.z, p.y, p.v)
    other = svm.attention_svm(moved, tokens=p.optimal)
    np.testing.assert_allclose(other.W, svm.attention_svm(p).W, atol=1e-10)


def test_kkt_conditions() -> None:
    m = svm.attention_svm(P)
    differences = np.take_along_axis(P.X, P.optimal[..., None, None], axis=2) - P.X
    W = np.einsum("bnt,bntd,bne->bde", m.multipliers, differences, P.z)
    np.testing.assert_allclose(m.W, W, atol=1e-12)
    np.testing.assert_allclose(m.norm**2, m.multipliers.sum(axis=(1, 2)), rtol=1e-12)
    assert (m.multipliers >= 0.0).all()
    assert (m.multipliers[~m.support] < 1e-9).all()
    seen = np.einsum("bntd,bde,bne->bnt", differences, m.W, P.z)
    np.testing.assert_allclose(m.margins, seen, atol=1e-12)


# --- facts of the paper


def test_lemma_1_rank_and_spans() -> None:
    """Rank at most min(n, d, n (T - 1)), row space in span z, column space in span differences."""
    for n, T, d in ((3, 4, 8), (5, 2, 12), (6, 4, 4), (5, 5, 10)):
        p = problems.sphere(n=n, T=T, d=d, trials=25, rng=n * T)
        differences = np.take_along_axis(p.X, p.optimal[..., None, None], axis=2) - p.X
        fro, nuc = svm.attention_svm(p), svm.attention_svm(p, norm="nuc")
        for m, tolerance in ((fro, 1e-12), (nuc, 1e-10)):
            W = m.W / m.norm[:, None, None]
            for b in range(25):
                rows = p.z[b]
                columns = differences[b].reshape(-1, d)
                off_rows = np.eye(d) - np.linalg.pinv(rows) @ rows
                off_columns = np.eye(d) - np.linalg.pinv(columns, 1e-10) @ columns
                assert np.linalg.norm(W[b] @ off_rows) < tolerance
                assert np.linalg.norm(off_columns @ W[b]) < tolerance
        assert (fro.rank <= min(n, d, n * (T - 1))).all()
        assert np.mean(fro.rank == min(n, d)) > 0.9
        assert (nuc.rank <= fro.rank.max()).all()
        assert (nuc.norm <= np.linalg.svd(fro.W)[1].sum(axis=-1) * (1 + 1e-9)).all()
        assert (np.linalg.norm(nuc.W, axis=(1, 2)) >= fro.norm * (1 - 1e-9)).all()


def test_figure_4_the_nuclear_rank_is_far_below() -> None:
    p = problems.sphere(n=10, T=5, d=15, trials=8, rng=0)
    fro, nuc = svm.attention_svm(p), svm.attention_svm(p, norm="nuc")
    assert (fro.rank == 10).all()
    assert nuc.rank.mean() < 6.0


def test_assumption_b1_is_a_nonnegative_solve_of_the_gram_matrix() -> None:
    """All margins are 1 exactly when K^{-1} 1 >= 0, for a nonsingular Gram matrix K."""
    seen = []
    for d in (4, 6, 8, 12):
        p = problems.sphere(n=3, T=3, d=d, trials=100, rng=d)
        m = svm.attention_svm(p)
        others = np.arange(3) != p.optimal[..., None]
        for b in range(100):
            F = [
                np.outer(p.X[b, i, p.optimal[b, i]] - p.X[b, i, t], p.z[b, i]).ravel()
                for i, t in np.argwhere(others[b])
            ]
            gram = np.array(F) @ np.array(F).T
            assert np.linalg.cond(gram) < 1e10
            weights = np.linalg.solve(gram, np.ones(6))
            all_one = bool(m.support[b][others[b]].all())
            if np.abs(weights).min() > 1e-6 * weights.max():  # a tie decides nothing
                assert all_one == bool((weights >= 0.0).all())
                seen.append(all_one)
    assert len(seen) > 390
    assert 0.2 < np.mean(seen) < 0.95


def test_all_margins_one_does_not_need_positive_multipliers() -> None:
    """catalogue 5: n = 1, differences (1, 0) and (1, 1), z = e_1: margins 1, lambda = (1, 0)."""
    p = problems.TokenProblem(
        [[[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]], [[1.0, 0.0]], [1.0], [1.0, 1.0]
    )
    m = svm.attention_svm(p)
    np.testing.assert_allclose(m.margins, [[0.0, 1.0, 1.0]], atol=1e-12)
    np.testing.assert_allclose(m.multipliers, [[0.0, 1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(m.W, [[1.0, 0.0], [0.0, 0.0]], atol=1e-12)
    assert m.support.tolist() == [[False, True, True]]
    assert bool(svm.assumption_b1(p).holds)


@pytest.mark.parametrize("norm", ["fro", "nuc"])
def test_one_sample_of_two_tokens_in_closed_form(norm: str) -> None:
    """W = (x_1 - x_2) z' / (|x_1 - x_2|^2 |z|^2)."""
    rng = np.random.default_rng(0)
    p = problems.TokenProblem(
        rng.standard_normal((7, 1, 2, 4)), rng.standard_normal((7, 1, 4)), np.ones((7, 1)),
        rng.standard_normal((7, 4)),
    )  # fmt: skip
    m = svm.attention_svm(p, tokens=np.zeros((7, 1), int), norm=norm)
    f = p.X[:, 0, 0] - p.X[:, 0, 1]
    size = (f**2).sum(axis=-1) * (p.z**2).sum(axis=(1, 2))
    W = f[:, :, None] * p.z / size[:, None, None]
    np.testing.assert_allclose(m.W, W, atol=1e-9 * np.abs(W).max())
    np.testing.assert_allclose(m.norm, size**-0.5, rtol=1e-9)
    assert (m.rank == 1).all()


def test_the_2x2_data() -> None:
    """catalogue 3.1 and 11; bias, Appendix C.1."""
    p = problems.bad_direction()
    F = (np.take_along_axis(p.X, p.optimal[:, None, None], axis=1) - p.X).sum(axis=1)
    gram = (F @ F.T) * (p.z @ p.z.T)
    np.testing.assert_allclose(gram, [[4.3264, -23.04], [-23.04, 169.0]])
    m = svm.attention_svm(p)
    np.testing.assert_allclose(m.norm, 1.0466, atol=5e-5)
    np.testing.assert_allclose(m.multipliers.sum(axis=1), np.linalg.solve(gram, [1.0, 1.0]))
    np.testing.assert_allclose(m.multipliers.sum(axis=1), [0.9587, 0.1366], atol=5e-5)
    np.testing.assert_allclose(m.W, [[-0.2097, -0.725], [-0.725, -0.0084]], atol=5e-5)
    assert int(m.rank) == 2
    assert m.support.sum() == 2


@pytest.mark.parametrize("n", [1, 3, 5])
def test_orthonormal_features_in_both_norms(n: int) -> None:
    """F_i = e_i e_i': W = sum of them; |W|_F = sqrt n, nuclear norm n."""
    X = np.zeros((n, 2, 5))
    X[:, 0] = np.eye(5)[:n]
    p = problems.TokenProblem(X, np.eye(5)[:n], np.ones(n), np.ones(5))
    W = np.diag((np.arange(5) < n) * 1.0)
    for norm, size in (("fro", n**0.5), ("nuc", float(n))):
        m = svm.attention_svm(p, norm=norm)
        np.testing.assert_allclose(m.W, W, atol=1e-8)
        np.testing.assert_allclose(m.norm, size, rtol=1e-9)
        assert int(m.rank) == n


# --- masks


def test_a_mask_drops_the_constraints_of_hidden_tokens(max_margin: MaxMargin) -> None:
    p, tokens = selections("any mask", 30)
    m = svm.attention_svm(p, tokens=tokens)
    assert p.mask is not None
    assert (m.margins[~p.mask] == 0.0).all()
    assert (m.multipliers[~p.mask] == 0.0).all()
    assert not m.support[~p.mask].any()
    for b in range(30):
        W = max_margin(p.X[b], p.z[b], tokens[b], p.mask[b])
        np.testing.assert_allclose(m.W[b], W, atol=1e-8)
    far = np.where(p.mask[..., None], p.X, 1e6)  # what hidden tokens are does not matter
    other = svm.attention_svm(problems.TokenProblem(far, p.z, p.y, p.v, mask=p.mask), tokens)
    np.testing.assert_allclose(other.W, m.W, atol=1e-12)


@pytest.mark.parametrize("norm", ["fro", "nuc"])
def test_a_row_that_sees_one_token_has_no_constraint(norm: str) -> None:
    p = problems.causal(n=2, T=3, d=6, trials=5, rng=0)
    m = svm.attention_svm(p, norm=norm)
    assert (m.margins[:, [0, 3]] == 0.0).all()  # first positions see themselves only
    assert not m.support[:, [0, 3]].any()
    keep = [1, 2, 4, 5]
    assert p.mask is not None
    rest = problems.TokenProblem(
        p.X[:, keep], p.z[:, keep], p.y[:, keep], p.v, mask=p.mask[:, keep]
    )
    without = svm.attention_svm(rest, norm=norm)
    np.testing.assert_allclose(m.norm, without.norm, rtol=1e-9)
    np.testing.assert_allclose(m.W, without.W, atol=1e-5 if norm == "nuc" else 1e-12)


@pytest.mark.parametrize(
    ("norm", "method"),
    [(norm, method) for norm, methods in METHODS.items() for method in methods],
)
def test_where_nothing_is_asked_w_is_zero(norm: str, method: str) -> None:
    q = problems.sphere(n=2, T=3, d=4, trials=3, rng=0)
    mask = np.arange(3) == q.optimal[..., None]
    mask[1] = True  # only the trial in the middle has something to separate
    p = problems.TokenProblem(q.X, q.z, q.y, q.v, mask=mask)
    m = svm.attention_svm(p, norm=norm, method=method)
    for b in (0, 2):
        assert (m.W[b] == 0.0).all()
        assert m.norm[b] == 0.0
        assert m.gap[b] == 0.0
        assert m.status[b] == "optimal"
        assert not m.support[b].any()
    assert m.norm[1] > 0.0
    alone = svm.attention_svm(p.trial(0), norm=norm, method=method)
    assert alone.status == "optimal"
    assert (alone.W == 0.0).all()


def test_a_sequence_is_its_rows_stacked() -> None:
    """svm, equation 11: a constraint for every query position."""
    p = problems.sequence(n=2, T=3, d=5, trials=10, rng=0)
    assert p.n == 6
    rows = problems.TokenProblem(p.X, p.z, p.y, p.v)
    np.testing.assert_array_equal(svm.attention_svm(p).W, svm.attention_svm(rows).W)
    order = np.random.default_rng(0).permutation(6)
    mixed = problems.TokenProblem(p.X[:, order], p.z[:, order], p.y[:, order], p.v)
    m, other = svm.attention_svm(p), svm.attention_svm(mixed)
    np.testing.assert_allclose(other.W, m.W, atol=1e-11 * m.norm.max())
    np.testing.assert_allclose(other.margins, m.margins[:, order], atol=1e-10)


# --- what a margin can do


def test_factors_are_balanced() -> None:
    """(|K|^2 + |Q|^2) / 2 = nuclear norm, K Q' = W, K'K = Q'Q (Lemma 15)."""
    for norm in ("fro", "nuc"):
        m = svm.attention_svm(P, norm=norm)
        nuclear = np.linalg.svd(m.W)[1].sum(axis=-1)
        for columns in (None, int(m.rank.max()), 11):
            K, Q = m.factors() if columns is None else m.factors(columns)
            assert K.shape == Q.shape == (40, 8, columns or 8)
            # the nuclear W has singular values below 1e-6 of the largest, which fewer columns drop
            tolerance = 1e-12 if columns in (None, 11) else 1e-5
            np.testing.assert_allclose(
                K @ Q.swapaxes(1, 2), m.W, atol=max(tolerance, 1e-14) * m.norm.max()
            )
            size = ((K**2).sum(axis=(1, 2)) + (Q**2).sum(axis=(1, 2))) / 2.0
            np.testing.assert_allclose(size, nuclear, rtol=tolerance)
            np.testing.assert_allclose(
                K.swapaxes(1, 2) @ K, Q.swapaxes(1, 2) @ Q, atol=1e-12 * m.norm.max()
            )


def test_repr_tells_shapes_and_the_numbers_that_matter() -> None:
    m = svm.attention_svm(problems.bad_direction())
    assert repr(m).startswith("Margin(fro, norm=1.04656, gap<=1e-1")
    assert repr(m).endswith("status='optimal')")
    assert repr(svm.attention_svm(P, norm="nuc")).startswith(
        "Margin(nuc, trials=(40,) (40 optimal), gap<="
    )
    X = np.concatenate([P.X[:2], P.X[:1]])
    X[2, :, 1:] = X[2, :, :1]
    p = problems.TokenProblem(X, P.z[:3], P.y[:3], P.v[:3])
    assert "(1 infeasible, 2 optimal)" in repr(svm.attention_svm(p))
    nothing = problems.TokenProblem(X[2:], P.z[:1], P.y[:1], P.v[:1])
    assert repr(svm.attention_svm(nothing)) == "Margin(fro, trials=(1,) (1 infeasible))"


def test_an_infeasible_instance_on_its_own_names_its_tokens() -> None:
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 6))
    X[1, 3] = X[1, 2]
    p = problems.TokenProblem(X, z, np.ones(3), rng.standard_normal(6))
    for norm in ("fro", "nuc"):
        with pytest.raises(svm.InfeasibleMargin) as caught:
            svm.attention_svm(p, tokens=[0, 2, 0], norm=norm)
        assert str(caught.value) == "no W separates sample 1: token 3 from token 2"
        margin = caught.value.margin
        assert isinstance(caught.value, ValueError)
        assert margin.status == "infeasible"
        assert margin.residual == 0.0
        assert np.isnan(margin.W).all()
        assert np.isinf(margin.gap)
        assert margin.multipliers[1, 3] == pytest.approx(1.0)
        assert margin.multipliers.sum() == pytest.approx(1.0)
        assert "infeasible" in repr(margin)


def test_tokens_that_contradict_each_other_together() -> None:
    """Opposite queries on the same tokens: both samples are in the certificate."""
    X = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 3)
    z = np.array([[1.0, 2.0], [0.5, -3.0], [-2.0, -4.0]])
    p = problems.TokenProblem(X, z, np.ones(3), [1.0, 0.0])
    with pytest.raises(svm.InfeasibleMargin) as caught:
        svm.attention_svm(p)
    assert str(caught.value) == (
        "no W separates together sample 0: token 1 from token 0; sample 2: token 1 from token 0"
    )
    lam = caught.value.margin.multipliers
    lengths = np.linalg.norm(X[:, 0] - X[:, 1], axis=1) * np.linalg.norm(z, axis=1)
    F = np.einsum("nd,ne->nde", X[:, 0] - X[:, 1], z) / lengths[:, None, None]
    assert np.linalg.norm((lam.sum(axis=1)[:, None, None] * F).sum(axis=0)) < 1e-12


def test_an_infeasible_instance_by_every_method() -> None:
    X = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    p = problems.TokenProblem(X, [[1.0, 2.0], [-1.0, -2.0]], np.ones(2), [1.0, 0.0])
    for norm, methods in METHODS.items():
        for method in methods:
            with pytest.raises(svm.InfeasibleMargin) as caught:
                svm.attention_svm(p, norm=norm, method=method)
            assert caught.value.margin.residual <= 1e-12
            assert caught.value.margin.multipliers.sum() == pytest.approx(1.0)
            assert np.isnan(caught.value.margin.W).all()


# --- the decoder


def test_the_decoder_is_that_of_cvxpy() -> None:
    """bias, (u-SVM): 200 instances."""
    import cvxpy

    cp: Any = cvxpy
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 6, 8)), rng.choice([-1.0, 1.0], size=(200, 6))
    m = svm.decoder_svm(x=x, y=y)
    assert m.W.shape == (200, 8)
    assert m.margins.shape == m.multipliers.shape == m.support.shape == (200, 6)
    assert (m.status == "optimal").all()
    assert m.gap.max() <= 1e-9
    np.testing.assert_allclose(m.margins, y * (x @ m.W[..., None])[..., 0], atol=1e-10)
    np.testing.assert_allclose(m.W, ((m.multipliers * y)[:, None] @ x)[:, 0], atol=1e-10)
    for b in range(200):
        u = cp.Variable(8)
        program = cp.Problem(cp.Minimize(cp.sum_squares(u)), [cp.multiply(y[b], x[b] @ u) >= 1])
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
        program.solve(solver=cp.CLARABEL, **tight)
        np.testing.assert_allclose(m.norm[b], np.linalg.norm(u.value), rtol=1e-7)
        np.testing.assert_allclose(m.W[b], u.value, atol=1e-6 * m.norm[b])


def test_the_decoder_in_closed_form() -> None:
    one = svm.decoder_svm(x=[[3.0, 4.0]], y=[-1.0])  # u = y x / |x|^2
    np.testing.assert_allclose(one.W, [-0.12, -0.16], rtol=1e-12)
    np.testing.assert_allclose(one.norm, 0.2, rtol=1e-12)
    assert one.status == "optimal"
    two = svm.decoder_svm(x=np.diag([2.0, -0.5, 1.0]), y=[1.0, 1.0, -1.0])
    np.testing.assert_allclose(two.W, [0.5, -2.0, -1.0], rtol=1e-12)
    far = svm.decoder_svm(x=[[1.0, 0.0], [5.0, 1.0]], y=[1.0, 1.0])  # the second is no support
    np.testing.assert_allclose(far.W, [1.0, 0.0], atol=1e-12)
    assert far.support.tolist() == [True, False]
    np.testing.assert_allclose(far.multipliers, [1.0, 0.0], atol=1e-12)
    assert svm.decoder_svm(x=P.X[:, :, 0], y=P.y).W.shape == (40, 8)


def test_an_infeasible_decoder_names_its_samples() -> None:
    x = [[1.0, 2.0], [0.0, 1.0], [2.0, 4.0]]
    with pytest.raises(svm.InfeasibleMargin, match="the samples 0, 2 by a linear decoder") as found:
        svm.decoder_svm(x=x, y=[1.0, 1.0, -1.0])
    margin = found.value.margin
    assert margin.residual <= 1e-12
    np.testing.assert_allclose(margin.multipliers, [0.5, 0.0, 0.5], atol=1e-9)
    batch = svm.decoder_svm(x=[x, x], y=[[1.0, 1.0, -1.0], [1.0, 1.0, 1.0]])
    assert batch.status.tolist() == ["infeasible", "optimal"]
    assert np.isnan(batch.W[0]).all()
    assert np.isfinite(batch.W[1]).all()


@pytest.mark.parametrize("c", [1e-200, 1e-160, 1e160])
def test_the_decoder_of_samples_of_any_size(c: float) -> None:
    u = svm.decoder_svm(x=c * np.array([[2.0, 0.0], [0.0, 4.0]]), y=[1.0, -1.0])
    assert u.status == "optimal"
    np.testing.assert_allclose(u.W * c, [0.5, -0.25], rtol=1e-9)
