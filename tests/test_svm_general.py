"""Several tokens a sample: Gen-SVM, the finite component, and the two together (Section 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnlab import models, optim, problems, svm

Case = tuple[problems.TokenProblem, np.ndarray]


def chosen(p: problems.TokenProblem, sizes: Any, rng: int) -> np.ndarray:
    """A mask with the given number of allowed tokens selected in each sample."""
    order = np.random.default_rng(rng).random((*p.trials, p.n, p.T))
    if p.mask is not None:
        order = np.where(p.mask, order, 2.0)
    ranks = order.argsort(axis=-1).argsort(axis=-1)
    mask = ranks < np.asarray(sizes)[..., None]
    return mask if p.mask is None else mask & p.mask


def case(kind: str) -> Case:
    if kind == "pairs":
        p = problems.sphere(n=2, T=4, d=6, trials=40, rng=0)
        return p, chosen(p, [2, 2], 0)
    if kind == "one, two and three":
        p = problems.sphere(n=3, T=5, d=8, trials=40, rng=1)
        return p, chosen(p, [1, 2, 3], 1)
    if kind == "all tokens of one sample":
        p = problems.sphere(n=2, T=3, d=7, trials=40, rng=2)
        return p, chosen(p, [3, 1], 2)
    if kind == "a masked problem":
        q = problems.sphere(n=3, T=5, d=8, trials=40, rng=3)
        mask = np.random.default_rng(3).random((40, 3, 5)) < 0.7
        mask[..., :2] = True
        p = problems.TokenProblem(q.X, q.z, q.y, q.v, mask=mask)
        selected = chosen(p, [1, 2, 1], 3)
        selected[..., 0] |= ~selected.any(axis=-1)
        return p, selected
    q = problems.sphere(n=2, T=4, d=6, trials=40, rng=4)  # ties: two selected tokens are the same
    X = q.X.copy()
    X[:, 0, 1] = X[:, 0, 0]
    selected = np.zeros((40, 2, 4), bool)
    selected[:, 0, :2] = selected[:, 1, 2:] = True
    return problems.TokenProblem(X, q.z, q.y, q.v), selected


CASES = ["pairs", "one, two and three", "all tokens of one sample", "a masked problem", "ties"]


def allowed(p: problems.TokenProblem) -> np.ndarray:
    return np.ones((*p.trials, p.n, p.T), bool) if p.mask is None else p.mask


def logits_of(p: problems.TokenProblem, W: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...ntd,...de,...ne->...nt", p.X, W, p.z))


def spread(logits: np.ndarray, selected: np.ndarray) -> np.ndarray:
    """Largest minus smallest logit among the selected tokens."""
    high = np.where(selected, logits, -np.inf).max(axis=-1)
    return np.asarray(high - np.where(selected, logits, np.inf).min(axis=-1))


def by_cvxpy(p: problems.TokenProblem, O: np.ndarray) -> np.ndarray:  # noqa: E741
    """The definition for one instance: every pair of selected tokens, every pair across."""
    import cvxpy

    cp: Any = cvxpy
    W = cp.Variable((p.d, p.d))
    constraints = []
    for i in range(p.n):
        inside, outside = np.flatnonzero(O[i]), np.flatnonzero(~O[i] & allowed(p)[i])
        for t in inside:
            constraints += [(p.X[i, t] - p.X[i, s]) @ W @ p.z[i] >= 1 for s in outside]
        for t in inside[1:]:
            constraints.append((p.X[i, inside[0]] - p.X[i, t]) @ W @ p.z[i] == 0)
    program = cp.Problem(cp.Minimize(cp.sum_squares(W)), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert program.status == "optimal"
    return np.asarray(W.value)


@pytest.mark.parametrize("kind", CASES)
def test_the_answer_is_that_of_cvxpy(kind: str) -> None:
    """40 instances of each of 5 kinds, 200 in all."""
    p, selected = case(kind)
    m = svm.general_svm(p, selected=selected)
    assert (m.status == "optimal").all()
    assert m.gap.max() <= 1e-9
    for b in range(40):
        W = by_cvxpy(p.trial(b), selected[b])
        np.testing.assert_allclose(m.norm[b], np.linalg.norm(W), rtol=1e-7)
        assert np.linalg.norm(W - m.W[b]) < 1e-6 * m.norm[b]
        one = svm.general_svm(p.trial(b), selected=selected[b])
        np.testing.assert_allclose(one.W, m.W[b], atol=1e-11 * m.norm[b])
        assert one.status == "optimal"


@pytest.mark.parametrize("kind", CASES)
def test_equalities_and_margins_hold(kind: str) -> None:
    p, selected = case(kind)
    m = svm.general_svm(p, selected=selected)
    logits, others = logits_of(p, m.W), allowed(p) & ~selected
    assert spread(logits, selected).max() < 1e-9
    lowest = np.where(selected, logits, np.inf).min(axis=-1, keepdims=True)
    margins = (lowest - logits)[others]
    assert (margins >= 1.0 - 1e-9).all()
    np.testing.assert_allclose(m.margins[others], margins, atol=1e-9)
    assert (m.margins[~others] == 0.0).all()
    assert (m.multipliers[~others] == 0.0).all()
    assert (m.multipliers >= 0.0).all()
    assert not m.support[~others].any()
    np.testing.assert_allclose(m.norm, np.linalg.norm(m.W, axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(m.norm**2, m.multipliers.sum(axis=(1, 2)), rtol=1e-9)


def test_one_token_a_sample_is_the_plain_problem() -> None:
    p = problems.sphere(n=4, T=4, d=5, trials=20, rng=5)
    gen = svm.general_svm(p, selected=np.arange(4) == p.optimal[..., None])
    mm = svm.attention_svm(p)
    np.testing.assert_allclose(gen.W, mm.W, atol=1e-10 * mm.norm.max())
    np.testing.assert_allclose(gen.multipliers, mm.multipliers, atol=1e-8 * mm.multipliers.max())
    assert (gen.support == mm.support).all()


def test_selecting_more_costs_more() -> None:
    """Equalities only shrink the feasible set of the same margins."""
    p, selected = case("pairs")
    gen = svm.general_svm(p, selected=selected)
    reference = selected.argmax(axis=-1)
    mask = ~selected | (np.arange(4) == reference[..., None])
    plain = problems.TokenProblem(p.X, p.z, p.y, p.v, mask=mask)
    assert (gen.norm >= svm.attention_svm(plain, tokens=reference).norm * (1 - 1e-12)).all()


def test_a_masked_copy_of_a_selected_token_is_infeasible() -> None:
    p, selected = case("pairs")
    X = p.X.copy()
    i = 0
    t, s = np.flatnonzero(selected[0, i])[0], np.flatnonzero(~selected[0, i])[0]
    X[0, i, s] = X[0, i, t]
    q = problems.TokenProblem(X, p.z, p.y, p.v)
    m = svm.general_svm(q, selected=selected)
    assert m.status.tolist() == ["infeasible", *["optimal"] * 39]
    assert np.isnan(m.W[0]).all()
    np.testing.assert_allclose(m.W[1:], svm.general_svm(p, selected=selected).W[1:], atol=1e-10)
    with pytest.raises(svm.InfeasibleMargin, match=f"sample {i}: token {s}") as caught:
        svm.general_svm(q.trial(0), selected=selected[0])
    assert caught.value.margin.status == "infeasible"


def test_a_token_between_two_selected_ones_cannot_fall_below() -> None:
    """The midpoint of the selected tokens has their logit: zero after elimination."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((1, 3, 5)), rng.standard_normal((1, 5))
    X[0, 2] = 0.25 * X[0, 0] + 0.75 * X[0, 1]
    p = problems.TokenProblem(X, z, [1.0], rng.standard_normal(5))
    with pytest.raises(svm.InfeasibleMargin):
        svm.general_svm(p, selected=[[True, True, False]])


# --- the finite component


def shares(p: problems.TokenProblem, selected: np.ndarray, rng: int) -> np.ndarray:
    """A distribution that lives on the selected tokens."""
    s = np.where(selected, np.random.default_rng(rng).uniform(0.1, 1.0, selected.shape), 0.0)
    return np.asarray(s / s.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("kind", CASES[:4])
def test_the_shares_survive_every_radius(kind: str) -> None:
    """catalogue 6.4: the softmax of W_fin + R W_bar is s on O_i for every R."""
    p, selected = case(kind)
    s = shares(p, selected, 0)
    fin, gen = svm.finite_component(p, s, selected=selected), svm.general_svm(p, selected=selected)
    masked = []
    for R in (0.0, 1.0, 10.0, 100.0):
        logits = logits_of(p, fin + R * gen.W / gen.norm[:, None, None])
        e = np.exp(np.where(selected, logits, -np.inf))
        np.testing.assert_allclose(e / e.sum(axis=-1, keepdims=True), s, atol=1e-10)
        full = np.exp(np.where(allowed(p), logits, -np.inf))
        full = full / full.sum(axis=-1, keepdims=True)
        masked.append(np.where(selected, 0.0, full).max())
    assert masked[-1] < masked[-2] < masked[0]  # the masked tokens die like exp(-R / |W|)
    assert masked[-1] < 1e-3


@pytest.mark.parametrize("kind", CASES[:4])
def test_the_finite_component_is_orthogonal_and_of_minimum_norm(kind: str) -> None:
    p, selected = case(kind)
    s = shares(p, selected, 1)
    fin, gen = svm.finite_component(p, s, selected=selected), svm.general_svm(p, selected=selected)
    inner = (fin * gen.W).sum(axis=(1, 2)) / gen.norm
    np.testing.assert_allclose(inner, 0.0, atol=1e-13 * max(1.0, np.linalg.norm(fin)))
    for b in range(6):
        rows, logs = [], []
        for i in range(p.n):
            inside = np.flatnonzero(selected[b, i])
            for t in inside:
                for r in inside:
                    rows.append(np.outer(p.X[b, i, t] - p.X[b, i, r], p.z[b, i]).ravel())
                    logs.append(np.log(s[b, i, t] / s[b, i, r]))
        W = (np.linalg.pinv(np.array(rows), 1e-11) @ np.array(logs)).reshape(p.d, p.d)
        np.testing.assert_allclose(fin[b], W, atol=1e-10 * max(1.0, np.linalg.norm(W)))


def test_the_finite_component_where_nothing_is_shared() -> None:
    p = problems.sphere(n=3, T=4, d=5, trials=4, rng=0)
    one = np.arange(4) == p.optimal[..., None]
    assert (svm.finite_component(p, one * 1.0, selected=one) == 0.0).all()
    uniform = np.full((4, 3, 4), 0.25)  # equal shares need nothing either, and may be everything
    every = np.ones((4, 3, 4), bool)
    np.testing.assert_allclose(svm.finite_component(p, uniform, selected=every), 0.0, atol=1e-12)


def test_equal_tokens_of_unequal_shares_are_solved_by_least_squares() -> None:
    X = np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    p = problems.TokenProblem(X, [[1.0, 0.0]], [1.0], [1.0, 0.0])
    every = np.ones((1, 3), bool)
    W = svm.finite_component(p, [[0.5, 0.3, 0.2]], selected=every)
    assert W.shape == (2, 2)
    assert np.isfinite(W).all()
    # tokens 1 and 2 cannot differ; token 3 does as it should relative to the reference, the first
    logits = logits_of(p, W)[0]
    assert logits[0] == pytest.approx(logits[1])
    assert logits[0] - logits[2] == pytest.approx(np.log(0.5 / 0.2))


# --- the equivalent matrix


def trained(trials: int = 30) -> tuple[optim.Run, problems.TokenProblem, np.ndarray, np.ndarray]:
    """A head that keeps several tokens, trained; its attention and the tokens it keeps."""
    p = problems.sphere(n=2, T=4, d=8, trials=trials, rng=7)
    model = models.Attention(head=models.ConcaveHead(1.0), loss="correlation")
    run = optim.train(model, p, optim.NormalizedGD(0.1), 500, rng=1)
    s = run.attention()
    return run, p, s, s > 1e-2


def test_gamma_is_the_one_that_correlates_best() -> None:
    rng = np.random.default_rng(0)
    p, selected = case("one, two and three")
    fin = svm.finite_component(p, shares(p, selected, 2), selected=selected)
    gen = svm.general_svm(p, selected=selected)
    unit = gen.W / gen.norm[:, None, None]
    W = fin + 5.0 * unit + 0.3 * rng.standard_normal(fin.shape)
    eq = svm.svm_equivalent(W, fin, gen)
    gamma = ((eq - fin) * unit).sum(axis=(1, 2))
    np.testing.assert_allclose(eq, fin + gamma[:, None, None] * unit, atol=1e-12)
    best = svm.correlation(W, eq)
    exists = (W * fin).sum(axis=(1, 2)) > 0.0  # else the correlation rises towards W_bar itself
    assert exists.mean() > 0.8
    for step in np.linspace(-20.0, 20.0, 4_001):
        other = svm.correlation(W, fin + (gamma + step)[:, None, None] * unit)
        assert (other <= best + 1e-12)[exists].all()
    near = [svm.correlation(W, fin + (gamma + h)[:, None, None] * unit) for h in (-1e-2, 1e-2)]
    assert (np.array(near) < best)[:, exists].all()


def test_with_the_shares_of_w_itself_gamma_is_an_inner_product() -> None:
    """catalogue 6.3: W_fin is the projection of W, corr^2 = (|W_fin|^2 + gamma^2) / |W|^2."""
    run, p, s, selected = trained()
    some = (~selected).any(axis=(1, 2))
    p, s, selected, W = p.trial(some), s[some], selected[some], run.params["W"][some]
    assert (selected.sum(axis=-1) > 1).any(axis=-1).mean() > 0.5
    gen = svm.general_svm(p, selected=selected)
    good = gen.status == "optimal"
    assert good.sum() >= 15
    on = np.where(selected, s, 0.0)
    fin = svm.finite_component(p, on / on.sum(axis=-1, keepdims=True), selected=selected)
    eq = svm.svm_equivalent(W, fin, gen)[good]
    W, fin, unit = W[good], fin[good], gen.W[good] / gen.norm[good][:, None, None]
    gamma = (W * unit).sum(axis=(1, 2))
    np.testing.assert_allclose(eq, fin + gamma[:, None, None] * unit, atol=1e-8)
    np.testing.assert_allclose((W * fin).sum(axis=(1, 2)), (fin**2).sum(axis=(1, 2)), rtol=1e-8)
    squared = ((fin**2).sum(axis=(1, 2)) + gamma**2) / (W**2).sum(axis=(1, 2))
    np.testing.assert_allclose(svm.correlation(W, eq) ** 2, squared, rtol=1e-8)


def test_the_equivalent_of_an_infeasible_trial_is_nan() -> None:
    p, selected = case("pairs")
    X = p.X.copy()
    X[0, 0] = X[0, 0, 0]
    q = problems.TokenProblem(X, p.z, p.y, p.v)
    gen = svm.general_svm(q, selected=selected)
    eq = svm.svm_equivalent(np.ones((40, 6, 6)), np.zeros((40, 6, 6)), gen)
    assert np.isnan(eq[0]).all()
    assert np.isfinite(eq[1:]).all()
    assert np.isnan(svm.correlation(eq, gen.W)[0])
    np.testing.assert_allclose(np.abs(svm.correlation(eq, gen.W)[1:]), 1.0)


def test_the_lines_of_the_issue() -> None:
    p = problems.sphere(n=5, T=5, d=8, trials=20, min_gap=0.1, rng=0)
    model = models.Attention()
    run = optim.train(model, p, optim.NormalizedGD(0.1), steps=500, rng=1)
    s = model.attention(run.params, p)
    mask = s > 1e-3
    gen = svm.general_svm(p, selected=mask)
    on = np.where(mask, s, 0.0)
    fin = svm.finite_component(p, s, selected=mask)
    again = svm.finite_component(p, on / on.sum(axis=-1, keepdims=True), selected=mask)
    np.testing.assert_allclose(fin, again, atol=1e-10)  # only the shares count
    eq = svm.svm_equivalent(run.params["W"], fin, gen)
    good = gen.status == "optimal"
    assert good.mean() > 0.8
    assert eq.shape == (20, 8, 8)
    best = svm.correlation(run.params["W"], eq)[good]
    assert (best >= svm.correlation(run.params["W"], gen.W)[good] - 1e-12).all()


# --- correlation


def test_correlation_is_a_cosine() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 5, 3, 4))
    values = [
        float(a.ravel() @ b.ravel() / np.linalg.norm(a) / np.linalg.norm(b))
        for a, b in zip(A, B, strict=True)
    ]
    np.testing.assert_allclose(svm.correlation(A, B), values, rtol=1e-12)
    np.testing.assert_allclose(svm.correlation(A, A), 1.0)
    np.testing.assert_allclose(svm.correlation(A, -3.0 * A), -1.0)
    np.testing.assert_allclose(svm.correlation(A, B[0]), svm.correlation(A, B[:1]))
    assert svm.correlation(A[0], B[0]).shape == ()


def test_correlation_of_nothing_is_zero_and_of_nan_is_nan() -> None:
    A = np.ones((3, 2, 2))
    A[1] = 0.0
    A[2] = np.nan
    found = svm.correlation(A, np.ones((2, 2)))
    assert found[:2].tolist() == [1.0, 0.0]
    assert np.isnan(found[2])


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_correlation_does_not_depend_on_the_scale(scale: float) -> None:
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(svm.correlation(scale * A, np.eye(2)), 5.0 / np.sqrt(60.0))
    np.testing.assert_allclose(svm.correlation(scale * A, scale * np.eye(2)), 5.0 / np.sqrt(60.0))


# --- Figure 8 in small


def test_figure_8_in_small() -> None:
    """svm, Figure 8: corr(W, W_SVMeq) >= corr(W, W_mm) > corr(W, W_1token) on average, d = 6."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((6, 6))
    p = problems.sphere(n=3, T=4, d=6, trials=400, rng=rng)
    p = p.trial((p.y == -1.0).any(axis=-1))
    model = models.Attention(head=models.ReLUHead(V / np.linalg.norm(V)))
    run = optim.train(model, p, optim.NormalizedGD(0.1, recipe="paper"), 2_000, rng=1)
    s = run.attention()
    selected = s > 1e-3
    # the paper's filter: nothing between selected and masked, and something masked
    kept = ~((s > 1e-6) & (s <= 1e-3)).any(axis=(1, 2)) & (~selected).any(axis=(1, 2))
    p, s, selected, W = p.trial(kept), s[kept], selected[kept], run.params["W"][kept]
    gen = svm.general_svm(p, selected=selected)
    one = svm.attention_svm(p, tokens=s.argmax(axis=-1))
    good = (gen.status == "optimal") & (one.status == "optimal")
    assert good.sum() >= 25
    eq = svm.svm_equivalent(W, svm.finite_component(p, s, selected=selected), gen)
    found = [svm.correlation(W, other)[good] for other in (eq, gen.W, one.W)]
    assert (found[0] >= found[1] - 1e-9).all()
    equivalent, margin, token = (values.mean() for values in found)
    assert equivalent >= 0.95
    assert equivalent >= margin > token
    assert equivalent - token >= 0.05
    assert np.median(found[0]) > 0.99


def test_equalities_of_small_tokens_are_not_forgotten() -> None:
    """A sample with features a million times smaller still shares its selected tokens' logit."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 6))
    X[1] *= 1e-3
    z[1] *= 1e-3
    p = problems.TokenProblem(X, z, np.ones(2), rng.standard_normal(6))
    m = svm.general_svm(p, selected=np.tile([True, True, False], (2, 1)))
    logits = logits_of(p, m.W)
    assert m.status == "optimal"
    np.testing.assert_allclose(logits[:, 0], logits[:, 1], atol=1e-6)
    assert (logits[:, 0] - logits[:, 2]).min() > 1.0 - 1e-6
    s = np.tile([0.7, 0.3, 0.0], (2, 1))
    fin = logits_of(p, svm.finite_component(p, s, selected=s > 0.0))
    np.testing.assert_allclose(np.exp(fin[:, 0] - fin[:, 1]), 7.0 / 3.0, rtol=1e-5)


def test_equalities_that_rounding_breaks_are_not_called_optimal() -> None:
    """Features 1e-12 of the others make |W| so large that float64 cannot hold the equalities."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 6))
    X[1] *= 1e-6
    z[1] *= 1e-6
    p = problems.TokenProblem(X, z, np.ones(2), rng.standard_normal(6))
    m = svm.general_svm(p, selected=np.tile([True, True, False], (2, 1)))
    logits = logits_of(p, m.W)
    held = np.abs(logits[:, 0] - logits[:, 1]).max() <= 1e-6
    assert held == (m.status == "optimal")


def test_contradictions_at_mixed_scales_are_never_called_optimal() -> None:
    """A masked token equal to a selected one cannot stay a margin below it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 2, 3, 5)) * 10.0 ** rng.uniform(-4, 4, size=(200, 2, 1, 1))
    z = rng.standard_normal((200, 2, 5)) * 10.0 ** rng.uniform(-4, 4, size=(200, 2, 1))
    X[:, 1, 2] = X[:, 1, 1]
    p = problems.TokenProblem(X, z, np.ones((200, 2)), rng.standard_normal((200, 5)))
    m = svm.general_svm(p, selected=np.tile([True, True, False], (200, 2, 1)))
    assert (m.status != "optimal").all()
