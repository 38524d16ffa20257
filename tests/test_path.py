"""Regularization paths: svm, Theorem 2 (global), Theorems 9 and 10 (local), Lemma 15 (factors)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from attnlab import models, problems, svm
from attnlab.svm._path import Path, in_cone, regularization_path

RADII = [1.0, 3.0, 10.0, 30.0, 100.0, 1000.0]
P = problems.sphere(n=5, T=5, d=8, trials=12, min_gap=0.1, rng=0)
SMALL = problems.sphere(n=3, T=4, d=5, trials=40, min_gap=0.2, rng=1)


def cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(A, axis=(-1, -2)) * np.linalg.norm(B, axis=(-1, -2))
    return np.asarray((A * B).sum(axis=(-1, -2)) / size)


def again(*values: Any) -> Any:
    """The same once more with another value: left to `make test-all`."""
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.fixture(scope="module")
def path() -> Path:
    return regularization_path(models.Attention(), P, RADII)


@pytest.fixture(scope="module")
def factored() -> Path:
    return regularization_path(models.Attention(factors=8), P, RADII)


# -- Theorem 2: where the path goes ---------------------------------------------------------------


def test_shapes_and_constraint(path: Path, factored: Path) -> None:
    assert path.W.shape == factored.W.shape == (6, 12, 8, 8)
    assert factored.params["K"].shape == factored.params["Q"].shape == (6, 12, 8, 8)
    assert path.loss.shape == path.excess.shape == path.stationarity.shape == (6, 12)
    assert path.status.shape == (6, 12)
    assert (path.status == "optimal").all()
    assert (factored.status == "optimal").all()
    R = np.array(RADII)[:, None]
    np.testing.assert_allclose(np.linalg.norm(path.W, axis=(-1, -2)) / R, 1.0, rtol=1e-13)
    halves = [(factored.params[k] ** 2).sum(axis=(-1, -2)) / 2.0 for k in ("K", "Q")]
    np.testing.assert_allclose((halves[0] + halves[1]) / R, 1.0, rtol=1e-13)
    nuclear = np.linalg.norm(factored.W, "nuc", axis=(-2, -1))
    np.testing.assert_allclose(nuclear / R, 1.0, rtol=1e-9)  # balanced, as a minimiser must be
    assert "Path(radii=[1.0, 3.0," in repr(path)
    assert "72 optimal" in repr(path)


@pytest.mark.parametrize("loss", ["logistic", again("exponential"), "correlation"])
def test_loss_falls_with_the_radius(loss: str) -> None:
    model = models.Attention(loss=loss)
    found = regularization_path(model, P, RADII)
    assert (np.diff(found.excess, axis=0) < 0.0).all()
    assert (found.status == "optimal").all()
    at = model.evaluate({"W": found.W[2]}, P)
    np.testing.assert_allclose(found.loss[2], at.loss, rtol=1e-14)
    floor = model.floor(P)
    np.testing.assert_allclose(np.exp(found.excess[:3]), found.loss[:3] - floor, rtol=1e-9)


def test_theorem_2_for_w(path: Path) -> None:
    off = 1.0 - cosine(path.W, svm.attention_svm(P).W)
    at = dict(zip(RADII, off, strict=True))
    assert at[100.0].max() < 0.01
    assert at[1000.0].max() < 1e-4
    # W_R = R W_mm / |W_mm| + a bounded part, so the angle falls like 1/R and 1 - cos like 1/R^2
    rate = np.log10(at[1000.0] / at[100.0])
    assert -2.1 < np.median(rate) < -1.8
    assert (rate < -1.5).all()


def test_theorem_2_correlation_increases_to_one() -> None:
    """The catalogue saw .674, .798, .981, .9968, .9988 at R = 1, 3, 10, 30, 60 on one instance."""
    radii = [1.0, 3.0, 10.0, 30.0, 60.0, 100.0, 300.0]
    found = regularization_path(models.Attention(), SMALL, radii)
    correlation = cosine(found.W, svm.attention_svm(SMALL).W)
    assert (np.diff(correlation[2:], axis=0) > 0.0).all()  # once the optimal tokens lead
    assert (np.diff(correlation, axis=0) > 0.0).all(axis=0).mean() > 0.8
    assert correlation[-2].min() > 0.99
    assert (1.0 - correlation[-1]).max() < 2e-3
    median = np.median(correlation, axis=1)
    assert (np.abs(median[:5] - [0.674, 0.798, 0.981, 0.9968, 0.9988]) < 0.1).all()


def test_theorem_2_for_k_and_q(factored: Path) -> None:
    nuclear = svm.attention_svm(P, norm="nuc").W
    correlation = cosine(factored.W, nuclear)
    assert correlation[4].min() > 0.98
    assert np.median(correlation[4]) > 0.99
    assert correlation[5].min() > 0.9995
    assert (correlation[5] > cosine(factored.W[5], svm.attention_svm(P).W)).all()


def test_k_and_q_reach_the_nuclear_direction_of_cvxpy() -> None:
    import cvxpy as cp

    p = problems.sphere(n=3, T=3, d=4, min_gap=0.2, rng=5)
    W, best = cp.Variable((4, 4)), p.optimal
    constraints = [
        (p.X[i, best[i]] - p.X[i, t]) @ W @ p.z[i] >= 1
        for i, t in itertools.product(range(3), range(3))
        if t != best[i]
    ]
    cp.Problem(cp.Minimize(cp.normNuc(W)), constraints).solve(solver="CLARABEL")
    found = regularization_path(models.Attention(factors=4), p, [100.0, 1000.0])
    correlation = cosine(found.W, np.asarray(W.value))
    assert correlation[0] > 0.99
    assert correlation[1] > 0.9999


def test_the_max_margin_start_is_what_theorem_2_needs() -> None:
    """In few dimensions the continuation from zero often ends at another selection of tokens."""
    p = problems.sphere(n=5, T=5, d=4, trials=40, min_gap=0.1, rng=1)
    feasible = svm.attention_svm(p).status == "optimal"
    model = models.Attention()
    G = model.evaluate({"W": np.zeros((40, 4, 4))}, p).grads["W"]
    followed = regularization_path(model, p, [300.0], start={"W": -G})
    best = regularization_path(model, p, [300.0])
    assert (best.excess <= followed.excess + 1e-9 * (1.0 + np.abs(followed.excess))).all()
    mm = svm.attention_svm(p).W
    assert (cosine(followed.W[0], mm)[feasible] < 0.9).any()
    selected = model.attention({"W": best.W[0]}, p).argmax(axis=-1)
    near = (svm.attention_svm(p).norm < 30.0) & feasible  # margins of at least 10 at R = 300
    assert near.sum() > 10
    assert (selected == p.optimal)[near].all()


# -- certificates, by independent means -----------------------------------------------------------


def exact_gradient(p: problems.TokenProblem, W: np.ndarray) -> np.ndarray:
    """Gradient of the logistic loss of one instance in extended precision, token by token."""
    X, z, y, v = (np.asarray(a, dtype=np.longdouble) for a in (p.X, p.z, p.y, p.v))
    G = np.zeros(W.shape, dtype=np.longdouble)
    for i in range(p.n):
        h = X[i] @ W.astype(np.longdouble) @ z[i]
        e = np.exp(h - h.max())
        s, score = e / e.sum(), y[i] * (X[i] @ v)
        slope = -1.0 / (1.0 + np.exp(s @ score))
        r = int(h.argmax())
        D = score - score[r]
        G += slope * np.outer((s * (D - s @ D)) @ X[i], z[i]) / p.n
    return G


def test_stationarity_in_extended_precision(path: Path) -> None:
    assert np.finfo(np.longdouble).eps < 1e-18
    for j, b in itertools.product(range(len(RADII)), range(3)):
        W = path.W[j, b].astype(np.longdouble)
        G = exact_gradient(P.trial(b), path.W[j, b])
        normal = W / np.sqrt((W**2).sum())
        tangent = G - (G * normal).sum() * normal
        sine = np.sqrt((tangent**2).sum() / (G**2).sum())
        assert (G * normal).sum() < 0.0
        assert sine < 1e-8
        assert abs(float(sine) - path.stationarity[j, b]) < 1e-9


def test_stationarity_of_k_and_q_in_extended_precision(factored: Path) -> None:
    for j, b in itertools.product(range(len(RADII)), range(3)):
        G = exact_gradient(P.trial(b), factored.W[j, b])
        K, Q = factored.params["K"][j, b], factored.params["Q"][j, b]
        grad, theta = np.concatenate([G @ Q, G.T @ K]), np.concatenate([K, Q])
        normal = theta / np.sqrt((theta**2).sum())
        tangent = grad - (grad * normal).sum() * normal
        assert np.sqrt((tangent**2).sum() / (grad**2).sum()) < 1e-8
        # and over the nuclear ball: |G|_2 |W|_* = -<G, W>, no new column would help
        G = (G / np.abs(G).max()).astype(float)
        dual = np.linalg.norm(G, 2) * np.linalg.norm(factored.W[j, b], "nuc")
        assert abs(-(G * factored.W[j, b]).sum() / dual - 1.0) < 1e-6


@pytest.mark.parametrize("seed", [0, again(1)])
def test_w_path_against_brute_force(seed: int) -> None:
    p = problems.sphere(n=2, T=3, d=3, min_gap=0.1, rng=seed)
    model = models.Attention()
    found = regularization_path(model, p, [1.0, 3.0])

    def flat(w: np.ndarray) -> tuple[float, np.ndarray]:
        loss, grads = model.value_and_grad({"W": w.reshape(3, 3)}, p)
        return float(loss), grads["W"].ravel()

    rng = np.random.default_rng(seed)
    for j, R in enumerate([1.0, 3.0]):
        ball: Any = {"type": "ineq", "fun": lambda w, R=R: R**2 - w @ w, "jac": lambda w: -2.0 * w}
        losses = [
            minimize(
                flat,
                rng.standard_normal(9),
                jac=True,
                method="SLSQP",
                constraints=[ball],
                options={"ftol": 1e-14, "maxiter": 500},
            ).fun
            for _ in range(12)
        ]
        assert abs(min(losses) - found.loss[j]) < 1e-9


def onto_nuclear_ball(W: np.ndarray, R: float) -> np.ndarray:
    U, values, Vt = np.linalg.svd(W)
    if values.sum() > R:
        means = (np.cumsum(values) - R) / np.arange(1, len(values) + 1)
        values = np.maximum(values - means[np.flatnonzero(values > means)[-1]], 0.0)
    return np.asarray((U * values) @ Vt)


@pytest.mark.parametrize("seed", [0, again(1)])
def test_lemma_15_against_the_nuclear_ball(seed: int) -> None:
    """KQ-RP is the minimum over the nuclear ball, here by projected gradient in W."""
    p = problems.sphere(n=2, T=3, d=3, min_gap=0.2, rng=seed)
    plain, radii = models.Attention(), [1.0, 3.0, 10.0]
    found = regularization_path(models.Attention(factors=3), p, radii)
    rng = np.random.default_rng(seed)
    for j, R in enumerate(radii):
        losses = []
        for start in [np.zeros((3, 3)), *rng.standard_normal((3, 3, 3))]:
            W, step = onto_nuclear_ball(start, R), 1.0
            loss, grads = plain.value_and_grad({"W": W}, p)
            for _ in range(3000):
                new = onto_nuclear_ball(W - step * grads["W"], R)
                moved = new - W
                value, slope = plain.value_and_grad({"W": new}, p)
                bound = (grads["W"] * moved).sum() + (moved**2).sum() / (2.0 * step)
                if value > loss + bound + 1e-15:
                    step /= 2.0
                    continue
                W, loss, grads, step = new, value, slope, 1.5 * step
                if np.linalg.norm(moved) < 1e-11 * R:
                    break
            losses.append(float(loss))
        assert abs(min(losses) - found.loss[j]) < 1e-8
        assert abs(np.linalg.norm(found.W[j], "nuc") / R - 1.0) < 1e-9


def test_few_columns_lose_nothing_once_the_rank_fits() -> None:
    full = regularization_path(models.Attention(factors=5), SMALL, [100.0])
    more = regularization_path(models.Attention(factors=7), SMALL, [100.0])
    fewer = regularization_path(models.Attention(factors=1), SMALL, [100.0])
    np.testing.assert_allclose(more.excess, full.excess, rtol=1e-6)
    assert (full.status == "optimal").all()
    assert (fewer.excess >= full.excess - 1e-6).all()
    assert (np.linalg.matrix_rank(fewer.W[0]) == 1).all()


def test_a_rank_one_saddle_of_k_and_q_is_left() -> None:
    """Columns that are zero have no gradient: without seeds the rank could never grow."""
    model, zeros = models.Attention(factors=5), np.zeros((40, 5, 4))
    u, values, vt = np.linalg.svd(svm.attention_svm(SMALL, norm="nuc").W)
    assert (values[:, 1] > 1e-3 * values[:, 0]).sum() > 10
    start = {
        "K": np.concatenate([u[:, :, :1], zeros], axis=-1),
        "Q": np.concatenate([vt[:, :1].swapaxes(1, 2), zeros], axis=-1),
    }
    found = regularization_path(model, SMALL, [100.0], start=start)
    assert (found.status == "optimal").all()
    best = regularization_path(model, SMALL, [100.0])
    same = np.abs(found.excess - best.excess) < 1e-6 * np.abs(best.excess)
    assert same[0, values[:, 1] > 1e-3 * values[:, 0]].mean() > 0.7


def test_the_closed_form_of_two_tokens() -> None:
    """n = 1, T = 2: the path is R (x_1 - x_2) z' / (|x_1 - x_2| |z|) at every radius."""
    p = problems.sphere(n=1, T=2, d=3, trials=6, min_gap=0.1, rng=2)
    best, i = p.optimal[:, 0], np.arange(6)
    f = p.X[i, 0, best] - p.X[i, 0, 1 - best]
    direction = f[:, :, None] * p.z[:, 0][:, None, :]
    direction /= np.linalg.norm(direction, axis=(1, 2), keepdims=True)
    for factors in (None, 1, 3):
        found = regularization_path(models.Attention(factors=factors), p, RADII)
        for R, W in zip(RADII, found.W, strict=True):
            np.testing.assert_allclose(W / R, direction, atol=1e-8)


# -- large radii, scales, batches -----------------------------------------------------------------


@pytest.mark.parametrize("factors", [None, 3])
def test_radius_1000_where_a_cold_start_has_no_gradient(factors: int | None) -> None:
    drawn = problems.sphere(n=2, T=3, d=3, trials=20, min_gap=0.2, rng=3)
    p = problems.TokenProblem(X=6.0 * drawn.X, z=6.0 * drawn.z, y=drawn.y, v=drawn.v)
    W = np.random.default_rng(0).standard_normal((20, 3, 3))
    W *= 1000.0 / np.linalg.norm(W, axis=(1, 2), keepdims=True)
    gradient = models.Attention().value_and_grad({"W": W}, p)[1]["W"]
    assert (gradient == 0.0).all(axis=(1, 2)).mean() > 0.7
    found = regularization_path(models.Attention(factors=factors), p, [1000.0])
    assert (found.status == "optimal").all()
    feasible = svm.attention_svm(p).status == "optimal"
    mm = svm.attention_svm(p, norm="fro" if factors is None else "nuc").W[feasible]
    assert cosine(found.W[0][feasible], mm).min() > 0.999
    assert (found.excess < -100.0)[0][feasible].any()


def test_a_plateau_is_left_by_its_slope() -> None:
    """All attention on a worse token: the loss is level to rounding, the exact slope is not."""
    p = problems.TokenProblem(
        X=[[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.5]
    )
    W = np.array([[-0.1, 0.0], [1.0, 0.0]])  # logits -10, 100 and 10 at R = 100
    cold = regularization_path(models.Attention(), p, [100.0], start={"W": W})
    assert abs(models.Attention().value_and_grad({"W": 100.0 * W}, p)[1]["W"]).max() < 1e-39
    assert cold.status.tolist() == ["optimal"]
    np.testing.assert_allclose(cold.W, regularization_path(models.Attention(), p, [100.0]).W)


def test_other_radii_do_not_matter(path: Path) -> None:
    alone = regularization_path(models.Attention(), P, [100.0])
    np.testing.assert_array_equal(alone.W[0], path.W[4])
    backwards = regularization_path(models.Attention(), P, RADII[::-1])
    np.testing.assert_array_equal(backwards.W[::-1], path.W)
    np.testing.assert_array_equal(backwards.radii[::-1], RADII)


@pytest.mark.parametrize("factors", [None, again(8)])
def test_a_batch_is_its_trials(factors: int | None, path: Path, factored: Path) -> None:
    whole = path if factors is None else factored
    for b in range(6):
        one = regularization_path(models.Attention(factors=factors), P.trial(b), RADII)
        assert one.W.shape == (6, 8, 8)
        assert one.status.shape == (6,)
        scale = np.array(RADII)[:, None, None]
        np.testing.assert_allclose(one.W / scale, whole.W[:, b] / scale, atol=1e-7)
        np.testing.assert_allclose(one.excess, whole.excess[:, b], rtol=1e-10)


def test_two_leading_axes_and_masks() -> None:
    p = problems.causal(n=2, T=3, d=4, trials=(2, 3), min_gap=0.1, rng=0)
    found = regularization_path(models.Attention(), p, [1.0, 300.0])
    assert found.W.shape == (2, 2, 3, 4, 4)
    assert (found.status == "optimal").all()
    mm = svm.attention_svm(p)
    sure = (mm.status == "optimal") & (mm.norm < 30.0)
    assert sure.any()
    assert cosine(found.W[1], mm.W)[sure].min() > 0.95


@pytest.mark.parametrize("scale", [1e-4, again(1e4)])
def test_scale_of_the_features(scale: float, path: Path) -> None:
    p = problems.TokenProblem(X=scale * P.X, z=P.z, y=P.y, v=P.v / scale)
    found = regularization_path(models.Attention(), p, np.array(RADII) / scale)
    np.testing.assert_allclose(found.W * scale, path.W, rtol=0.0, atol=1e-4)
    np.testing.assert_allclose(found.excess, path.excess, rtol=1e-6)
    assert (found.status == "optimal").all()


def test_an_inner_minimum_is_called_inactive() -> None:
    """One feature and two samples that pull apart: the loss is least at sigmoid(W) = 0.7."""
    p = problems.TokenProblem(
        X=[[[1.0], [0.0]], [[-0.4], [-1.4]]], z=[[1.0], [1.0]], y=[1.0, -1.0], v=[1.0]
    )
    found = regularization_path(models.Attention(), p, [0.5, 3.0])
    assert found.status.tolist() == ["optimal", "inactive"]
    assert found.stationarity[1] == 1.0
    np.testing.assert_allclose(found.W.ravel(), [0.5, 3.0])


def test_nothing_to_choose() -> None:
    """All tokens score the same: every W is a minimiser, and without a seed there is no first."""
    p = problems.TokenProblem(X=np.ones((1, 2, 2)), z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0])
    with pytest.raises(ValueError, match="rng: expected a seed"):
        regularization_path(models.Attention(), p, [1.0])
    found = regularization_path(models.Attention(), p, [1.0, 10.0], rng=0)
    assert (found.status == "optimal").all()
    assert np.isneginf(found.excess).all()


# -- Theorems 9 and 10: local paths ---------------------------------------------------------------


def elsewhere(p: problems.TokenProblem, norm: str) -> tuple[problems.TokenProblem, np.ndarray]:
    """Trials with a selection that is not the optimal one but locally so, by a clear distance.

    Definition 2 in the norm at hand: support tokens score less. Tokens that score more keep a
    margin of 1.2, so that R_0 of Theorem 9, where the local path begins, is below 100.
    """
    trials, tokens = [], []
    for b, alpha in itertools.product(range(p.trials[0]), itertools.product(range(p.T), repeat=2)):
        one, picked = p.trial(b), np.array(alpha)
        try:
            mm = svm.attention_svm(one, tokens=picked, norm=norm)
        except svm.InfeasibleMargin:
            continue
        own = np.take_along_axis(one.scores, picked[:, None], axis=-1)
        high = (one.scores >= own) & (np.arange(p.T) != picked[:, None])
        held = (mm.support & ~high).any(axis=-1)[high.any(axis=-1)].all()
        clear = high.any() and (mm.margins[high] > 1.2).all() and mm.norm < 5.0
        if held and clear and b not in trials:
            trials.append(b)
            tokens.append(picked)
    return p.trial(trials), np.array(tokens)


Local = dict[str, tuple[problems.TokenProblem, np.ndarray]]


@pytest.fixture(scope="module")
def local() -> Local:
    p = problems.sphere(n=2, T=3, d=3, trials=40, min_gap=0.1, rng=4)
    found = {norm: elsewhere(p, norm) for norm in ("fro", "nuc")}
    assert min(len(tokens) for _, tokens in found.values()) >= 3
    return found


@pytest.mark.parametrize(
    ("factors", "loss"),
    [
        (None, "logistic"),
        (3, "exponential"),
        *(again(*rest) for rest in itertools.product([None, 3], ["correlation"])),
        again(None, "exponential"),
        again(3, "logistic"),
    ],
)
def test_local_path(local: Local, factors: int | None, loss: str) -> None:
    """Theorems 9 and 10: local minimisers in the cone, in the limit the margin direction."""
    norm = "fro" if factors is None else "nuc"
    p, tokens = local[norm]
    model = models.Attention(factors=factors, loss=loss)
    found = regularization_path(model, p, [100.0, 300.0, 1000.0], tokens=tokens)
    assert (found.status == "optimal").all()
    assert in_cone(p, found.W, tokens).all()
    off = 1.0 - cosine(found.W, svm.attention_svm(p, tokens, norm=norm).W)
    assert off[0].max() < 0.01
    assert (off[1:] < off[:-1] / 3.0 + 1e-11).all()
    assert off[2].max() < 1e-4
    last = {name: array[-1] for name, array in found.params.items()}
    assert (model.attention(last, p).argmax(axis=-1) == tokens).all()
    best = regularization_path(model, p, [100.0])
    assert (best.loss[0] < found.loss[0] - 1e-6).all()


def test_local_path_of_the_optimal_tokens_is_the_path(path: Path) -> None:
    found = regularization_path(models.Attention(), P, [100.0], tokens=P.optimal)
    assert in_cone(P, found.W, P.optimal, epsilon=0.9).all()  # no token scores higher
    np.testing.assert_allclose(found.W[0], path.W[4], atol=1e-5)


def test_local_path_that_leaves_the_cone(local: Local) -> None:
    p, tokens = local["fro"]
    worst = p.scores.argmin(axis=-1)  # nothing below it: the cone is empty
    found = regularization_path(models.Attention(), p, [10.0], tokens=worst)
    assert set(found.status.ravel()) <= {"left_the_cone", "infeasible"}
    assert (found.status == "left_the_cone").any()
    wide = regularization_path(models.Attention(), p, [100.0], tokens=tokens, epsilon=10.0)
    assert (wide.status == "left_the_cone").all()
    # below some radius there is no local minimiser: the loss leads out, the answer stays inside
    short = regularization_path(models.Attention(), p, [0.1], tokens=tokens)
    assert (short.status[0] == "left_the_cone").any()
    inside = in_cone(p, svm.attention_svm(p, tokens).W, tokens)
    assert in_cone(p, short.W[0], tokens)[inside].all()


def test_infeasible_selections() -> None:
    twice = problems.TokenProblem(
        X=[[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0]
    )
    with pytest.raises(svm.InfeasibleMargin):
        regularization_path(models.Attention(), twice, [1.0], tokens=[0])
    X = np.array([twice.X, [[[1.0, 0.0], [0.5, 0.2], [0.0, 1.0]]]])
    pair = problems.TokenProblem(X=X, z=[twice.z] * 2, y=[twice.y] * 2, v=[twice.v] * 2)
    for factors in (None, 2):
        model = models.Attention(factors=factors)
        found = regularization_path(model, pair, [10.0], tokens=[[0], [0]])
        assert found.status.tolist() == [["infeasible", "optimal"]]
        assert np.isnan(found.W[0, 0]).all()
        assert np.isfinite(found.W[0, 1]).all()
        assert np.isnan(found.loss[0, 0])


@pytest.mark.parametrize("masked", [False, True])
def test_definition_3_by_the_book(masked: bool) -> None:
    make = problems.causal if masked else problems.sequence
    p = make(n=2, T=4, d=3, trials=30, rng=7)
    rng = np.random.default_rng(0)
    W = rng.standard_normal((5, 30, 3, 3))
    mask = np.ones(p.scores.shape, bool) if p.mask is None else p.mask
    chances = np.where(mask, p.scores + 0.3 * rng.standard_normal(p.scores.shape), -np.inf)
    tokens = chances.argmax(axis=-1)
    for epsilon in (0.0, 0.05):
        found = in_cone(p, W, tokens, epsilon)
        assert found.shape == (5, 30)
        for r, b in itertools.product(range(5), range(30)):
            least = np.inf
            for i in range(p.n):
                own, h = p.scores[b, i, tokens[b, i]], p.X[b, i] @ W[r, b] @ p.z[b, i]
                seen = [t for t in range(4) if mask[b, i, t] and t != tokens[b, i]]
                low = [t for t in seen if p.scores[b, i, t] < own]
                high = [t for t in seen if p.scores[b, i, t] >= own]
                if high:
                    lead = [min(h[t] - h[tau] for tau in high) for t in low]
                    least = min(least, max(lead, default=-np.inf))
            assert found[r, b] == (least >= epsilon * np.linalg.norm(W[r, b]))
        if epsilon == 0.0:
            assert 0 < found.sum() < found.size


def test_definition_3_counts_a_draw_as_high() -> None:
    p = problems.TokenProblem(
        X=[[[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0]
    )
    W = np.array(
        [[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [-1.0, 0.0]]]
    )  # logits (0, 1, 0), (0, -1, 0)
    assert in_cone(p, W, tokens=[0]).tolist() == [False, True]
    assert in_cone(p, W, tokens=[0], epsilon=1.0).tolist() == [False, True]
    assert in_cone(p, W, tokens=[0], epsilon=1.01).tolist() == [False, False]


# -- bad input ------------------------------------------------------------------------------------

ONE = problems.sphere(n=2, T=3, d=3, rng=0)


@pytest.mark.parametrize("radii", [[], [0.0], [1.0, -2.0], [np.inf], [np.nan], 3.0, [[1.0]], "a"])
def test_bad_radii(radii: Any) -> None:
    with pytest.raises(ValueError, match=r"^radii: expected"):
        regularization_path(models.Attention(), ONE, radii)


@pytest.mark.parametrize(
    "model",
    [
        models.MultiHead(heads=2),
        models.Attention(train_head=True),
        models.Attention(head=models.ReLUHead(np.ones((3, 3)))),
        "W",
    ],
)
def test_bad_model(model: Any) -> None:
    with pytest.raises(ValueError, match=r"^model: expected an Attention with a linear head"):
        regularization_path(model, ONE, [1.0])


@pytest.mark.parametrize("tokens", [[0], [0, 3], [-1, 0], [0.5, 1.0], [[0, 1]]])
def test_bad_tokens(tokens: Any) -> None:
    with pytest.raises(ValueError, match=r"^tokens: expected"):
        regularization_path(models.Attention(), ONE, [1.0], tokens=tokens)
    with pytest.raises(ValueError, match=r"^tokens: expected"):
        in_cone(ONE, np.eye(3), tokens)


def test_other_bad_input() -> None:
    model = models.Attention()
    for epsilon in (-1.0, np.nan, "wide"):
        with pytest.raises(ValueError, match=r"^epsilon: expected"):
            regularization_path(model, ONE, [1.0], tokens=[0, 0], epsilon=epsilon)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^problem: expected"):
        regularization_path(model, problems.tokenized_mixture(n=5, rng=0), [1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^params\['W'\]: expected"):
        regularization_path(model, ONE, [1.0], start={"W": np.zeros((2, 2))})
    with pytest.raises(ValueError, match=r"^start: expected"):
        regularization_path(model, ONE, [1.0], start={"W": np.zeros((3, 3))})
    with pytest.raises(ValueError, match=r"^W: expected"):
        in_cone(ONE, np.eye(2), [0, 0])
