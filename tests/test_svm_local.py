"""Local optimality, the assumptions of the svm paper, and where training goes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from attnlab import models, optim, problems, svm

MaxMargin = Callable[..., np.ndarray | None]

BAD = problems.bad_direction()
SMALL = problems.sphere(n=2, T=3, d=3, trials=400, rng=0)


def every(p: problems.TokenProblem) -> list[tuple[int, ...]]:
    return list(product(range(p.T), repeat=p.n))


# --- Definition 2


def test_another_direction_is_locally_optimal_on_the_2x2_data() -> None:
    """catalogue 3.1: margins 1 and 5.325, so the second sample has no neighbour at all."""
    found = svm.locally_optimal(BAD, tokens=[1, 1])
    np.testing.assert_allclose(found.margin.margins, [[1.0, 0.0], [23.04 / 4.3264, 0.0]])
    assert found.neighbours.tolist() == [[True, False], [False, False]]
    assert bool(found.as_printed)
    assert not bool(found.corrected)
    assert repr(found) == "LocalOptimality(as_printed=1.00, corrected=0.00, trials=())"
    np.testing.assert_allclose(
        svm.correlation(found.margin.W, svm.attention_svm(BAD).W), 0.4594, atol=1e-4
    )


def test_empty_support_sets_occur_and_the_corrected_notion_rejects_some() -> None:
    """catalogue 3.2: of 573 locally optimal selections, 64 have an empty T_i, 32 are in no cone."""
    local = empty = rejected = 0
    for alpha in every(SMALL):
        found = svm.locally_optimal(SMALL, tokens=np.tile(alpha, (400, 1)))
        bare = ~found.neighbours.any(axis=-1)
        beaten = SMALL.scores >= np.take_along_axis(
            SMALL.scores, np.tile(alpha, (400, 1))[..., None], axis=-1
        )
        rivals = (beaten & (np.arange(3) != np.array(alpha)[:, None])).any(axis=-1)
        kept = found.as_printed & ~(bare & rivals).any(axis=-1)
        assert (found.corrected == kept).all()
        local += int(found.as_printed.sum())
        empty += int((found.as_printed & bare.any(axis=-1)).sum())
        rejected += int((found.as_printed & ~found.corrected).sum())
    assert 500 <= local <= 650
    assert 40 <= empty <= 90
    assert 20 <= rejected <= 50
    optimal = svm.locally_optimal(SMALL)
    assert optimal.as_printed.sum() == (optimal.margin.status == "optimal").sum()
    assert (optimal.corrected == optimal.as_printed).all()  # nothing outscores the optimal tokens


def test_definition_2_read_directly(max_margin: MaxMargin) -> None:
    """T_i = {t: margin 1}; alpha is locally optimal where it outscores all of T_i, all i."""
    checked = 0
    for trial, alpha in product(range(40), every(SMALL)):
        p = SMALL.trial(trial)
        W = max_margin(p.X, p.z, np.array(alpha))
        if W is None:
            continue
        logits = p.X @ W @ p.z[..., None]
        gamma, good = p.scores, True
        for i in range(p.n):
            support = [t for t in range(p.T) if abs(logits[i, alpha[i]] - logits[i, t] - 1) < 1e-6]
            good &= all(gamma[i, alpha[i]] > gamma[i, t] for t in support)
        assert bool(svm.locally_optimal(p, tokens=list(alpha)).as_printed) == good
        checked += 1
    assert checked > 300


def test_an_infeasible_selection_is_not_locally_optimal() -> None:
    X = np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    p = problems.TokenProblem(X, [[1.0, 1.0]], [1.0], [1.0, 0.0])
    found = svm.locally_optimal(p, tokens=[0])
    assert found.margin.status == "infeasible"
    assert not found.as_printed
    assert not found.corrected
    many = problems.TokenProblem(*(np.stack([a, a]) for a in (p.X, p.z, p.y, p.v)))
    found = svm.locally_optimal(many, tokens=[[0], [2]])
    assert found.as_printed.tolist() == [False, False]  # token 2 has margins, and worse scores
    assert found.margin.status.tolist() == ["infeasible", "optimal"]


def test_hidden_tokens_are_nobodys_neighbours() -> None:
    p = problems.causal(n=2, T=4, d=8, trials=20, rng=0)
    found = svm.locally_optimal(p)
    assert p.mask is not None
    assert not (found.neighbours & ~p.mask).any()
    assert found.corrected.all()


# --- training goes there


@pytest.mark.parametrize(
    ("rule", "steps"), [(optim.NormalizedGD(0.025), 2_000), (optim.GD(0.1), 3_000)], ids=str
)
def test_the_fate_of_a_start_in_the_bad_direction(rule: Any, steps: int) -> None:
    """catalogue 3.1 (ii): from .3 training recovers, from 1 it never does; Theorem 4 is false."""
    bad, mm = svm.attention_svm(BAD, tokens=[1, 1]), svm.attention_svm(BAD)
    ends = {}
    for c in (0.3, 1.0):
        start = {"W": c * bad.W / bad.norm}
        run = optim.train(models.Attention(), BAD, rule, steps, params=start)
        W = run.params["W"]
        ends[c] = [float(svm.correlation(W, to.W)) for to in (mm, bad)]
        kind = str(svm.classify(run).kind)
        assert kind == {0.3: "global", 1.0: "local"}[c]
    assert ends[0.3][0] > 0.99
    assert ends[1.0][1] > 0.999
    np.testing.assert_allclose(ends[1.0][0], 0.4594, atol=1e-3)


def test_theorem_7_training_stays_at_a_locally_optimal_selection() -> None:
    """From 30 W_alpha / |W_alpha|, where that is far enough out.

    The radius of the theorem grows like |W_alpha| / delta, delta being how far the margins of
    other tokens are above 1; nearer than that some selections are left.
    """
    p = problems.sphere(n=3, T=3, d=4, trials=300, min_gap=0.1, rng=3)
    alpha, found = p.optimal.copy(), np.zeros(300, bool)
    for choice in every(p):
        tokens = np.tile(choice, (300, 1))
        good = svm.locally_optimal(p, tokens=tokens).corrected & (tokens != p.optimal).any(axis=-1)
        alpha[good & ~found] = choice
        found |= good
    kept = np.flatnonzero(found)
    p, alpha = p.trial(kept), alpha[kept]
    margin = svm.attention_svm(p, tokens=alpha)
    others = (np.arange(3) != alpha[..., None]) & ~margin.support
    delta = np.where(others, margin.margins - 1.0, 2.0).min(axis=(1, 2))
    start = {"W": 30.0 * margin.W / margin.norm[:, None, None]}
    run = optim.train(models.Attention(), p, optim.NormalizedGD(0.1), 2_000, params=start)
    stays = (run.attention().argmax(axis=-1) == alpha).all(axis=-1)
    reach = 30.0 * delta / margin.norm
    far = reach > 5.0
    assert far.sum() >= 30
    assert stays[far].all()
    assert (svm.correlation(run.params["W"], margin.W)[far] > 0.999).all()
    assert (np.linalg.norm(run.params["W"], axis=(1, 2))[far] > 200.0).all()
    assert stays[reach < 0.5].mean() < 0.6


def test_theorem_6_the_first_step_decides() -> None:
    """catalogue: where C holds and W(0) = 0, training ended at opt in 96 of 96 trials."""
    p = problems.sphere(n=4, T=4, d=8, trials=300, rng=1)
    found = svm.assumption_c(p)
    rule = optim.NormalizedGD(0.1)
    run = optim.train(models.Attention(start="zero"), p, rule, 1_000)
    at_opt = (run.attention().argmax(axis=-1) == p.optimal).all(axis=-1)
    assert 60 < found.holds.sum() < 140
    assert at_opt[found.holds].all()
    assert not at_opt[~found.holds].all()
    assert (svm.correlation(run.params["W"], svm.attention_svm(p).W)[found.holds] > 0.9).all()


# --- assumptions


def test_assumption_b1_asks_that_every_token_be_a_support_token(max_margin: MaxMargin) -> None:
    p = problems.sphere(n=3, T=3, d=5, trials=60, rng=2)
    found = svm.assumption_b1(p)
    for trial in range(60):
        W = max_margin(p.X[trial], p.z[trial], p.optimal[trial])
        assert W is not None
        logits = (p.X[trial] @ W @ p.z[trial][..., None])[..., 0]
        best = np.take_along_axis(logits, p.optimal[trial][:, None], axis=-1)
        margins = (best - logits)[np.arange(3) != p.optimal[trial][:, None]]
        assert bool(found.holds[trial]) == bool(margins.max() < 1.0 + 1e-6)
        np.testing.assert_allclose(found.measured["mean_margin"][trial], margins.mean(), rtol=1e-6)
        np.testing.assert_allclose(found.measured["largest_margin"][trial], margins.max(), 1e-6)
    assert 0.05 < found.holds.mean() < 0.95
    ordered = np.sort(p.scores, axis=-1)
    np.testing.assert_allclose(
        found.measured["lead"], (ordered[..., -1] - ordered[..., -2]).min(axis=-1)
    )
    tied = problems.TokenProblem(np.eye(3)[None], [[1.0, 0.0, 0.0]], [1.0], [1.0, 1.0, 0.0])
    assert not svm.assumption_b1(tied).holds  # two optimal tokens
    assert repr(svm.assumption_b1(BAD)).startswith("Finding(holds=1.00 of trials; medians: ")


def test_assumption_b2_is_automatic_for_two_tokens() -> None:
    assert svm.assumption_b2(problems.sphere(n=4, T=2, d=5, trials=50, rng=0)).holds.all()
    found = svm.assumption_b2(problems.sphere(n=4, T=3, d=5, trials=50, rng=0))
    assert not found.holds.any()
    assert (found.measured["spread"] > 0.0).all()
    X = np.array([[[2.0, 0.0], [1.0, 1.0], [1.0, -1.0]], [[3.0, 5.0], [0.0, 1.0], [0.0, 2.0]]])
    p = problems.TokenProblem(X, np.ones((2, 2)), [1.0, 1.0], [1.0, 0.0])
    assert bool(svm.assumption_b2(p).holds)
    np.testing.assert_allclose(svm.assumption_b2(p).measured["lead"], 1.0)
    worst = problems.TokenProblem(X, np.ones((2, 2)), [-1.0, -1.0], [1.0, 0.0])
    assert not svm.assumption_b2(worst).holds  # now the two equal tokens are the best ones


@pytest.mark.parametrize("loss", ["logistic", "exponential", "correlation"])
def test_assumption_c_by_its_formula(loss: str) -> None:
    """At W = 0 attention is uniform: q_it = l'(mean) (gamma_it - mean) / (n T)."""
    p = problems.sphere(n=3, T=4, d=5, trials=40, rng=4)
    slope = {
        "logistic": lambda u: -1.0 / (1.0 + np.exp(u)),
        "exponential": lambda u: -np.exp(-u),
        "correlation": lambda u: -np.ones_like(u),
    }[loss]
    found = svm.assumption_c(p, loss)
    for trial in range(40):
        X, z, gamma = p.X[trial], p.z[trial], p.scores[trial]
        mean = gamma.mean(axis=-1, keepdims=True)
        q = slope(mean) * (gamma - mean) / 12
        grad = np.einsum("it,itd,ie->de", q, X, z)
        numbers = [
            (X[i, t] - X[i, p.optimal[trial, i]]) @ grad @ z[i]
            for i in range(3)
            for t in range(4)
            if t != p.optimal[trial, i]
        ]
        np.testing.assert_allclose(found.measured["least"][trial], min(numbers), rtol=1e-9)
        assert bool(found.holds[trial]) == (min(numbers) > 0.0)


def test_assumption_d_by_enumeration(max_margin: MaxMargin) -> None:
    p = SMALL.trial(slice(0, 25))
    found = svm.assumption_d(p)
    for trial in range(25):
        opt, feasible, against = p.optimal[trial], 0, 0
        for alpha in every(p):
            W = max_margin(p.X[trial], p.z[trial], np.array(alpha))
            if W is None or tuple(opt) == alpha:
                continue
            logits = (p.X[trial] @ W @ p.z[trial][..., None])[..., 0]
            feasible += 1
            against += not any(
                alpha[i] != opt[i] and abs(logits[i, alpha[i]] - logits[i, opt[i]] - 1) < 1e-6
                for i in range(2)
            )
        assert found.measured["selections"][trial] == feasible
        assert found.measured["counterexamples"][trial] == against
        assert bool(found.holds[trial]) == (against == 0)
    assert 0.0 < found.holds.mean() < 1.0


def test_assumption_d_leaves_no_other_selection_locally_optimal() -> None:
    holds = svm.assumption_d(SMALL).holds
    for alpha in every(SMALL):
        tokens = np.tile(alpha, (400, 1))
        local = svm.locally_optimal(SMALL, tokens=tokens).as_printed
        assert not (holds & local & (tokens != SMALL.optimal).any(axis=-1)).any()


def test_theorems_1_and_8_every_selection_is_feasible() -> None:
    """catalogue: (n, T, d) = (3, 4, 3) always, (3, 4, 2) for 84 % of the selections."""
    enough = svm.feasibility(problems.sphere(n=3, T=4, d=3, trials=40, rng=0), tokens="all")
    assert enough.holds.all()
    assert (enough.measured["promised"] == 1.0).all()
    short = svm.feasibility(problems.sphere(n=3, T=4, d=2, trials=40, rng=0), tokens="all")
    assert (short.measured["promised"] == 0.0).all()
    assert 0.75 < short.measured["share"].mean() < 0.92
    assert not short.holds.any()
    # sufficient, not necessary
    beyond = svm.feasibility(problems.sphere(n=4, T=3, d=3, trials=10, rng=0), tokens="all")
    assert beyond.holds.all()
    assert (beyond.measured["promised"] == 0.0).all()
    one = svm.feasibility(SMALL)
    assert (one.holds == (svm.attention_svm(SMALL).status == "optimal")).all()
    single = svm.feasibility(SMALL.trial(0), tokens=[0, 0])
    assert single.holds.shape == ()
    assert bool(single.holds)


# --- classify


def settled(d: int, trials: int = 100) -> tuple[optim.Run, problems.TokenProblem]:
    p = problems.sphere(n=5, T=5, d=d, trials=trials, min_gap=0.1, rng=1)
    rule = optim.NormalizedGD(0.1, recipe="paper")
    return optim.train(models.Attention(), p, rule, 2_000, rng=1), p


@pytest.mark.parametrize(("d", "share", "tolerance"), [(4, 0.655, 0.12), (10, 0.94, 0.08)])
def test_figure_2_shares_and_the_threshold(d: int, share: float, tolerance: float) -> None:
    run, p = settled(d)
    found = svm.classify(run, p)
    assert abs(found.share("global") - share) <= tolerance
    assert found.share("global") + found.share("local") >= 0.95
    assert found.share("none") + found.share("local") + found.share("global") == pytest.approx(1.0)
    for threshold in (0.9, 0.95):
        other = svm.classify(run, p, threshold=threshold)
        assert abs(other.share("global") - found.share("global")) <= 0.05
    # meaningless with the papers' update, which stalls at .998
    strict = svm.classify(run, p, threshold=0.999)
    assert strict.share("none") > 0.5
    # what a kind means
    mm, alpha = svm.attention_svm(p), run.attention().argmax(axis=-1)
    at_opt = (alpha == p.optimal).all(axis=-1)
    assert (found.tokens == alpha).all()
    toward = at_opt & (svm.correlation(run.params["W"], mm.W) > 0.99)
    assert ((found.kind == "global") == toward).all()
    assert repr(found) == (
        f"Classification(global={found.share('global'):.2f}, local={found.share('local'):.2f}, "
        f"none={found.share('none'):.2f}, threshold=0.99)"
    )


def test_infeasible_selections_are_classified_as_none() -> None:
    run, p = settled(2, 60)
    found = svm.classify(run, p)
    failed = found.margin.status != "optimal"
    assert (found.kind[failed] == "none").all()
    assert (found.correlation[failed] == 0.0).all()
    assert np.isfinite(found.correlation).all()


def test_keys_and_queries_go_to_the_nuclear_direction() -> None:
    """svm, Section 2.1: the default norm is that of the parameterisation."""
    p = problems.sphere(n=3, T=4, d=5, trials=20, min_gap=0.1, rng=0)
    rule, model = optim.NormalizedGD(0.1), models.Attention(factors=5)
    run = optim.train(model, p, rule, 4_000, rng=1)
    found, other = svm.classify(run, p, threshold=0.97), svm.classify(run, p, norm="fro")
    assert found.margin.norm_name == "nuc"
    assert other.margin.norm_name == "fro"
    assert found.share("none") <= 0.15
    assert np.median(found.correlation) > 0.995
    assert other.share("none") >= 0.8
    # K, Q and W = K Q' are classified alike when the norm is the same
    W = run.params["K"] @ run.params["Q"].swapaxes(-1, -2)
    as_w = dataclasses.replace(run, model=models.Attention(), params={"W": W})
    again = svm.classify(as_w, p, norm="nuc", threshold=0.97)
    assert (again.kind == found.kind).all()
    np.testing.assert_allclose(again.correlation, found.correlation, rtol=1e-9)


def test_the_scores_of_a_nonlinear_head_decide_what_is_global() -> None:
    p = problems.sphere(n=2, T=3, d=6, trials=20, rng=0)
    model = models.Attention(head=models.ReLUHead(np.eye(6)))
    best = model.scores(p).argmax(axis=-1)
    margin = svm.attention_svm(p, tokens=best)
    run = optim.train(model, p, optim.NormalizedGD(0.1), 0, params={"W": 50.0 * margin.W})
    assert (svm.classify(run, p).kind == "global").all()
    assert (best != p.optimal).any()


# --- rank


def test_rank_limited_answers_are_feasible_and_never_better_than_convex_ones() -> None:
    p = problems.sphere(n=4, T=4, d=6, trials=12, rng=0)
    full = svm.attention_svm(p, norm="nuc")
    others = np.arange(4) != p.optimal[..., None]
    norms = []
    for m in (1, 2, 3, 6):
        found = svm.rank_limited_svm(p, m)
        done = np.isfinite(found.norm)
        assert done.all() or m == 1  # one column may not suffice for any W
        assert (found.norm >= full.norm * (1.0 - 1e-8)).all()
        assert (found.rank[done] <= m).all()
        equal = full.rank <= m
        np.testing.assert_allclose(found.norm[equal], full.norm[equal], rtol=1e-12)
        assert (found.status[equal] == "optimal").all()
        W = found.W[done]
        logits = (p.X[done] @ W[:, None] @ p.z[done][..., None])[..., 0]
        best = np.take_along_axis(logits, p.optimal[done][..., None], axis=-1)
        assert ((best - logits)[others[done]] >= 1.0 - 1e-7).all()
        nuclear = np.linalg.svd(W)[1].sum(axis=-1)
        np.testing.assert_allclose(found.norm[done], nuclear, rtol=1e-9)
        low = found.status == "unresolved"
        gap = 1.0 - full.norm[low] / found.norm[low]
        np.testing.assert_allclose(found.gap[low], gap, atol=1e-8)
        norms.append(found.norm)
    assert (np.diff(norms, axis=0) <= 1e-3 * norms[-1]).all()  # more columns, less norm


def test_rank_one_by_hand() -> None:
    """F_i = e_i e_i': the convex answer is I; of rank 1, W = a b' with a_i b_i >= 1: norm 2."""
    X = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    p = problems.TokenProblem(X, np.eye(2), [1.0, 1.0], [1.0, 1.0])
    full, one = svm.attention_svm(p, norm="nuc"), svm.rank_limited_svm(p, 1)
    np.testing.assert_allclose(full.norm, 2.0, rtol=1e-8)
    np.testing.assert_allclose(one.norm, 2.0, rtol=1e-6)
    assert int(one.rank) == 1


def test_figure_7_each_parameterisation_goes_to_its_own_norm() -> None:
    """n=6, T=8, d=10, the published update: W to the Frobenius direction, (K, Q) to the nuclear."""
    p = problems.sphere(n=6, T=8, d=10, trials=60, rng=0)
    rule, mean = optim.NormalizedGD(0.1, recipe="paper"), {}
    for model in (models.Attention(), models.Attention(factors=10)):
        run = optim.train(model, p, rule, 1000, rng=1, every=1000)
        found = run.params
        W = found["W"] if "W" in found else found["K"] @ found["Q"].swapaxes(-1, -2)
        tokens = run.attention().argmax(axis=-1)
        for norm in ("fro", "nuc"):
            mm = svm.attention_svm(p, tokens=tokens, norm=norm)
            kind = "W" if model.factors is None else "KQ"
            mean[kind, norm] = float(np.mean(svm.correlation(W, mm.W)[mm.status == "optimal"]))
    assert mean["W", "fro"] >= 0.985
    assert mean["KQ", "nuc"] >= 0.985
    assert abs(mean["W", "nuc"] - 0.86) < 0.03
    assert abs(mean["KQ", "fro"] - 0.86) < 0.03
