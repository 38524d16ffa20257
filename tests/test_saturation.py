"""Normalized steps stay exact when softmax saturates; the papers' recipe does not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from attnlab import models, optim, problems

MaxMargin = Callable[..., np.ndarray | None]

P = problems.sphere(n=5, T=5, d=8, trials=60, min_gap=0.1, rng=0)
STEPS = 20_000


def long_run(recipe: str) -> optim.Run:
    return optim.train(
        models.Attention(),
        P,
        optim.NormalizedGD(0.1, recipe=recipe),
        STEPS,
        rng=1,
        record=["loss", "norm", "log_grad_norm", {"W": lambda params, _: params["W"].copy()}],
        every=[2_000, 10_000, 19_000],
    )


@pytest.fixture(scope="module")
def exact() -> optim.Run:
    return long_run("exact")


@pytest.fixture(scope="module")
def paper() -> optim.Run:
    return long_run("paper")


def misalignment(run: optim.Run, max_margin: MaxMargin) -> dict[int, np.ndarray]:
    """1 - cos to the max-margin direction of the tokens selected at the end, at each step."""
    tokens = run.attention().argmax(axis=-1)
    found: dict[int, list[float]] = {int(step): [] for step in run.history["step"]}
    for i in range(P.trials[0]):
        S = max_margin(P.X[i], P.z[i], tokens[i])
        if S is None:
            continue
        for step, W in zip(found, run.history["W"][:, i], strict=True):
            cosine = (W * S).sum() / np.linalg.norm(W) / np.linalg.norm(S)
            found[step].append(1.0 - cosine)
    assert len(found[0]) >= 50  # d >= max(T - 1, n): almost every selection is feasible
    return {step: np.array(values) for step, values in found.items()}


def test_the_exact_recipe_goes_on_for_twenty_thousand_steps(exact: optim.Run) -> None:
    for rows in (*exact.history.values(), *exact.params.values()):
        assert np.isfinite(rows).all()
    assert (exact.status == "completed").all()
    norm = dict(zip(exact.history["step"].tolist(), exact.history["norm_W"], strict=True))
    np.testing.assert_allclose((norm[20_000] - norm[19_000]) / 1_000, 0.1, rtol=1e-3)
    np.testing.assert_allclose((norm[20_000] - norm[10_000]) / 10_000, 0.1, rtol=1e-3)
    # gradients are far below anything that float64 can hold, and still have a size
    assert (exact.history["log_grad_norm"][-1] < -20.0).all()
    assert np.median(exact.history["log_grad_norm"][-1]) < -300.0


def test_the_exact_recipe_converges_to_the_max_margin_direction(
    exact: optim.Run, max_margin: MaxMargin
) -> None:
    """svm, Theorem 7 and Figure 7: 1 - cos falls like 1/|W|^2, below 2e-5 in the median."""
    off = misalignment(exact, max_margin)
    median = {step: float(np.median(values)) for step, values in off.items()}
    assert median[20_000] < 2e-5
    slope = np.log(median[20_000] / median[2_000]) / np.log(10.0)
    assert -2.3 < slope < -1.7
    assert (off[20_000] < off[2_000]).all()


def test_the_papers_recipe_stalls(paper: optim.Run, max_margin: MaxMargin) -> None:
    """svm, Appendix F: with eps in the norm the iterate freezes and the direction worsens."""
    for rows in (*paper.history.values(), *paper.params.values()):
        assert not np.isnan(np.where(np.isneginf(rows), 0.0, rows)).any()
    norm = dict(zip(paper.history["step"].tolist(), paper.history["norm_W"], strict=True))
    assert 85.0 < np.median(norm[20_000]) < 125.0
    late = (norm[20_000] - norm[19_000]) / 1_000
    assert np.median(late) < 0.01 * 0.1
    off = misalignment(paper, max_margin)
    assert np.median(off[20_000]) > 1e-3
    assert np.median(off[20_000]) > 2.0 * np.median(off[2_000])


def test_both_recipes_are_the_same_before_softmax_saturates() -> None:
    runs = [
        optim.train(models.Attention(), P, optim.NormalizedGD(0.1, recipe=recipe), 100, rng=1)
        for recipe in ("exact", "paper")
    ]
    np.testing.assert_allclose(runs[0].params["W"], runs[1].params["W"], rtol=1e-9, atol=1e-10)


def test_both_engines_agree_for_two_thousand_steps() -> None:
    runs = [
        optim.train(
            models.Attention(),
            P,
            optim.NormalizedGD(0.1),
            2_000,
            rng=1,
            record=["loss", "excess", "norm", "log_grad_norm", "attention"],
            every=50,
            fast=fast,
        )
        for fast in (True, False)
    ]
    np.testing.assert_allclose(runs[0].params["W"], runs[1].params["W"], rtol=0, atol=1e-9)
    for name, rows in runs[0].history.items():
        np.testing.assert_allclose(rows, runs[1].history[name], rtol=1e-9, atol=1e-9)


RELU = np.random.default_rng(0).standard_normal((8, 8)) / 8.0


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        (models.Attention(factors=8), optim.NormalizedGD(0.1)),
        (models.Attention(factors=2), optim.NormalizedGD(0.1)),
        (models.Attention(head=models.ReLUHead(RELU)), optim.NormalizedGD(0.1)),
        (models.Attention(head=models.ReLUHead(np.eye(8))), optim.NormalizedGD(0.1)),
        (models.Attention(head=models.ConcaveHead(0.01)), optim.NormalizedGD(0.1)),
        (models.Attention(head=models.ConcaveHead(1.0)), optim.NormalizedGD(0.1)),
        (models.Attention(train_head=True), optim.NormalizedGD(0.1)),
        (models.Attention(train_head=True), optim.JointNormalizedGD(0.1)),
        (models.Attention(train_head=True), optim.DecayedNormalizedGD(0.1, decay=False)),
        (models.Attention(loss="correlation"), optim.NormalizedGD(0.1, momentum=0.9)),
    ],
    ids=str,
)
def test_other_models_and_rules_stay_finite_for_three_thousand_steps(model: Any, rule: Any) -> None:
    p = P.trial(slice(0, 20))
    run = optim.train(model, p, rule, 3_000, rng=1, record=["loss", "norm"], every=500)
    for rows in (*run.history.values(), *run.params.values()):
        assert np.isfinite(rows).all()
    more = run.extend(1)
    assert all(np.isfinite(p).all() for p in more.params.values())
    if isinstance(rule, optim.NormalizedGD) and not rule.momentum:
        for name, before in run.params.items():
            step = np.sqrt(((more.params[name] - before) ** 2).reshape(20, -1).sum(axis=1))
            # a hidden layer that is off at every attended token has no gradient at all
            moving = step > 0 if isinstance(model.head, models.ReLUHead) else np.full(20, True)
            assert moving.mean() > 0.8
            np.testing.assert_allclose(step[moving], 0.1, rtol=1e-9)


def test_keys_and_queries_saturate_far_beyond_float64() -> None:
    """|K Q'| grows like k^2: after 3000 steps the gradient is e^-1000 or less, and exact."""
    run = optim.train(
        models.Attention(factors=8),
        P.trial(slice(0, 20)),
        optim.NormalizedGD(0.1),
        3_000,
        rng=1,
        record=["norm", "log_grad_norm"],
        every=[2_000],
    )
    assert np.median(run.history["log_grad_norm"][-1]) < -1_000.0
    assert (run.history["norm_K"][-1] > run.history["norm_K"][-2] + 30.0).all()


@pytest.mark.parametrize("fast", [True, False])
def test_polyak_without_a_cap_moves_on_where_the_excess_underflows(fast: bool) -> None:
    """bias, Section 3.4: near the floor each step adds the same length to |W|, for ever."""
    model = models.Attention(loss="exponential", start="zero")
    p = problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=3, rng=0)
    run = optim.train(
        model,
        p,
        optim.PolyakStep(),
        2_000,
        record=["loss", "excess", "norm", "log_grad_norm"],
        every=[100, 1_000, 1_800, 1_900],
        fast=fast,
    )
    h = {k: dict(zip(run.history["step"].tolist(), v, strict=True)) for k, v in run.history.items()}
    np.testing.assert_allclose(h["loss"][2_000], np.exp(-1.0), rtol=1e-12)  # L - L* is 0 here
    assert (h["excess"][100] > 0.0).all()
    assert (h["excess"][100] < 1e-15).all()
    assert (h["excess"][2_000] == 0.0).all()  # below 1e-308
    assert (h["log_grad_norm"][2_000] < -900.0).all()
    growth = (h["norm_W"][2_000] - h["norm_W"][1_900]) / 100
    np.testing.assert_allclose(growth, (h["norm_W"][1_900] - h["norm_W"][1_800]) / 100, rtol=1e-6)
    assert (growth > 1.0).all()


def two_samples() -> tuple[problems.TokenProblem, list[np.ndarray]]:
    """Orthogonal features F_1, F_2 of unit size: along F_1 + F_2 both gaps are equal."""
    e = np.eye(4)
    X = np.stack([[e[0], 0 * e[0]], [0 * e[1], e[1]]])
    p = problems.TokenProblem(X=X, z=e[2:], y=[1.0, 1.0], v=[2.0, 1.0, 0.0, 0.0])
    return p, [np.outer(e[0], e[2]), np.outer(e[1], e[3])]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("size", [800.0, 5_000.0, 1e6])
def test_gaps_beyond_the_reach_of_exp_still_give_a_unit_step(size: float, fast: bool) -> None:
    """exp(-745) is the last number above 0; here both gaps are larger."""
    p, (F1, F2) = two_samples()
    start = {"W": size * (F1 + F2)}
    run = optim.train(
        models.Attention(), p, optim.NormalizedGD(0.1), 1, params=start, fast=fast, record="loss"
    )
    step = run.params["W"] - start["W"]
    # dl/dW = -(w_1 F_1 + w_2 F_2) / n up to e^-gap, w_i = sigmoid(-best_i) (best_i - 0)
    w1, w2 = 2.0 / (1.0 + np.exp(2.0)), 1.0 / (1.0 + np.exp(1.0))
    expected = 0.1 * (w1 * F1 + w2 * F2) / np.hypot(w1, w2)
    np.testing.assert_allclose(step, expected, rtol=0, atol=4e-16 * size + 1e-12)
    np.testing.assert_allclose(np.linalg.norm(step), 0.1, rtol=1e-8)


@pytest.mark.parametrize("fast", [True, False])
def test_one_trial_beyond_the_reach_of_exp_leaves_the_others_alone(fast: bool) -> None:
    p, (F1, F2) = two_samples()
    both = problems.TokenProblem(*(np.stack([a, a]) for a in (p.X, p.z, p.y, p.v)))
    small = np.random.default_rng(0).standard_normal((4, 4))
    rule = optim.NormalizedGD(0.1)
    alone = optim.train(models.Attention(), p, rule, 50, params={"W": small}, fast=fast)
    run = optim.train(
        models.Attention(),
        both,
        rule,
        50,
        params={"W": np.stack([5_000 * (F1 + F2), small])},
        fast=fast,
    )
    np.testing.assert_allclose(run.params["W"][1], alone.params["W"], rtol=0, atol=1e-12)
    moved = np.linalg.norm(run.params["W"][0]) - 5_000 * np.sqrt(2.0)
    np.testing.assert_allclose(moved, 50 * 0.1, rtol=2e-2)  # the two gaps stay nearly equal


@pytest.mark.parametrize("fast", [True, False])
def test_a_causal_mask_saturates_as_exactly(fast: bool, max_margin: MaxMargin) -> None:
    """svm, Section 7: the constraints are those of the visible tokens."""
    p = problems.causal(n=2, T=4, d=8, trials=10, min_gap=0.1, rng=0)
    run = optim.train(
        models.Attention(), p, optim.NormalizedGD(0.1), 4_000, rng=1, record="norm", fast=fast
    )
    assert np.isfinite(run.params["W"]).all()
    np.testing.assert_allclose(np.diff(run.history["norm_W"][-100:], axis=0), 0.1, rtol=1e-2)
    s, off = run.attention(), []
    assert p.mask is not None
    assert (s[~p.mask] == 0.0).all()
    for i, tokens in enumerate(s.argmax(axis=-1)):
        S = max_margin(p.X[i], p.z[i], tokens, p.mask[i])
        if S is not None:
            W = run.params["W"][i]
            off.append(1.0 - (W * S).sum() / np.linalg.norm(W) / np.linalg.norm(S))
    assert len(off) >= 8
    assert np.median(off) < 1e-3


def test_equal_tokens_at_the_top_do_not_hide_the_others() -> None:
    """The two best tokens are one and the same: only the third one moves anything."""
    e = np.eye(3)
    X = np.array([[e[0], e[0], e[1]]])
    p = problems.TokenProblem(X=X, z=[e[2]], y=[1.0], v=[1.0, 0.0, 0.0])
    F = np.outer(e[0] - e[1], e[2])
    for size in (0.0, 10.0, 5_000.0):
        for fast in (True, False):
            start = {"W": size * F}
            run = optim.train(
                models.Attention(), p, optim.NormalizedGD(0.1), 1, params=start, fast=fast
            )
            step = run.params["W"] - start["W"]
            np.testing.assert_allclose(step, 0.1 * F / np.sqrt(2.0), rtol=0, atol=1e-11)


# --- an oracle with as many digits as it takes


def oracle(p: problems.TokenProblem, W: np.ndarray, loss: str, digits: int = 60) -> dict[str, Any]:
    """Excess loss and gradient of one instance, in decimal arithmetic, by pairwise differences.

    c_t = l'(u) s_t sum_tau s_tau (gamma_t - gamma_tau): no small number is a difference. Only
    the excess loss is one, and wants more digits.
    """
    with localcontext(Context(prec=digits, Emin=-(10**9), Emax=10**9)):
        exact = np.vectorize(lambda x: Decimal(float(x)), otypes=[object])
        X, z, y, v, W = (exact(a) for a in (p.X, p.z, p.y, p.v, W))
        one, n = Decimal(1), Decimal(p.n)
        G = np.zeros((p.d, p.d), dtype=object) * one
        value = floor = 0 * one
        for i in range(p.n):
            logits = X[i] @ (W @ z[i])
            gamma = (X[i] @ v) * y[i]
            top = max(logits)
            e = [(a - top).exp() for a in logits]
            s = [x / sum(e) for x in e]
            u, best = sum(a * b for a, b in zip(s, gamma, strict=True)), max(gamma)
            if loss == "logistic":
                slope = -one / (one + u.exp())
                value += (one + (-u).exp()).ln() / n
                floor += (one + (-best).exp()).ln() / n
            else:
                slope = -(-u).exp()
                value += (-u).exp() / n
                floor += (-best).exp() / n
            for t in range(p.T):
                pull = sum(s[k] * (gamma[t] - gamma[k]) for k in range(p.T))
                G += np.outer(X[i, t], z[i]) * (slope * s[t] * pull / n)
        norm = sum(g * g for g in G.ravel()).sqrt()
        plain = np.vectorize(float, otypes=[float])
        polyak = (value - floor) / (2 * norm * norm) * G
        return {
            "direction": plain(G / norm),
            "log_norm": float(norm.ln()),
            "log_excess": float((value - floor).ln()) if value > floor else -np.inf,
            "polyak": plain(polyak),
        }


SMALL = problems.sphere(n=3, T=4, d=4, trials=2, min_gap=0.1, rng=4)


def starts(max_margin: MaxMargin, kind: str) -> np.ndarray:
    """Somewhere, or where every constraint of the optimal tokens has margin at least 1."""
    if kind == "anywhere":
        return np.random.default_rng(2).standard_normal((2, 4, 4))
    found = [max_margin(SMALL.X[i], SMALL.z[i], SMALL.optimal[i]) for i in range(2)]
    return np.stack([W for W in found if W is not None])


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("kind", ["anywhere", "max-margin"])
@pytest.mark.parametrize("c", [1.0, 100.0, 1e4])
def test_an_exact_step_equals_an_oracle_in_decimal_arithmetic(
    c: float, kind: str, loss: str, fast: bool, max_margin: MaxMargin
) -> None:
    model, W = models.Attention(loss=loss), c * starts(max_margin, kind)
    assert W.shape == (2, 4, 4)
    run = optim.train(
        model,
        SMALL,
        optim.NormalizedGD(1.0),
        1,
        params={"W": W},
        record=["log_grad_norm"],
        fast=fast,
    )
    for i in range(2):
        expected = oracle(SMALL.trial(i), W[i], loss)
        # logits of size c carry errors of c * 1e-16, and so do the weights and W itself
        step = W[i] - run.params["W"][i]
        np.testing.assert_allclose(step, expected["direction"], rtol=0, atol=1e-14 * c + 1e-12)
        np.testing.assert_allclose(
            run.history["log_grad_norm"][0, i], expected["log_norm"], rtol=1e-12, atol=1e-12
        )
    direct = model.evaluate({"W": W}, SMALL).grads["W"]
    direct = direct / np.linalg.norm(direct, axis=(1, 2), keepdims=True)
    for i in range(2):
        expected = oracle(SMALL.trial(i), W[i], loss)["direction"]
        np.testing.assert_allclose(direct[i], expected, rtol=0, atol=1e-14 * c + 1e-12)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("c", [1.0, 30.0, 400.0, 640.0, 650.0, 742.0, 1_000.0])
def test_excess_and_polyak_step_equal_the_oracle(
    c: float, loss: str, fast: bool, max_margin: MaxMargin
) -> None:
    """At c = 1000 the excess is e^-1000, and the step is of order 1."""
    model, W = models.Attention(loss=loss), c * starts(max_margin, "max-margin")
    run = optim.train(
        model, SMALL, optim.PolyakStep(), 1, params={"W": W}, record="excess", fast=fast
    )
    found = model.evaluate({"W": W}, SMALL)
    assert found.log_excess is not None
    for i in range(2):
        expected = oracle(SMALL.trial(i), W[i], loss, digits=60 + int(c / 2))
        np.testing.assert_allclose(
            W[i] - run.params["W"][i], expected["polyak"], rtol=1e-9, atol=1e-12 * c + 1e-12
        )
        np.testing.assert_allclose(found.log_excess[i], expected["log_excess"], rtol=1e-11)
        np.testing.assert_allclose(
            run.history["excess"][0, i], np.exp(expected["log_excess"]), rtol=1e-9
        )


def test_the_papers_recipe_loses_what_the_oracle_keeps(max_margin: MaxMargin) -> None:
    """At c = 100 the textbook gradient has no correct digit, or is exactly 0."""
    W = 100.0 * starts(max_margin, "max-margin")
    run = optim.train(
        models.Attention(), SMALL, optim.NormalizedGD(1.0, recipe="paper"), 1, params={"W": W}
    )
    for i in range(2):
        expected = oracle(SMALL.trial(i), W[i], "logistic")["direction"]
        assert np.abs(W[i] - run.params["W"][i] - expected).max() > 0.1
