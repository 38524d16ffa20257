"""The bias paper's checks notice what is broken; its constants refuse what makes no sense."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnbook import theory
from attnbook.claims.bias._instances import FIXED
from attnlab import optim, problems, svm

BIAS = "attnbook.theory.bias."


def times(factor: float) -> Callable[..., Any]:
    return lambda true: lambda *a, **k: factor * true(*a, **k)


def each(*factors: float) -> Callable[..., Any]:
    """A pair of bounds, each times its factor."""
    return lambda true: (
        lambda *a, **k: tuple(f * x for f, x in zip(factors, true(*a, **k), strict=True))
    )


def printed_always(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a, **k: true(*a, **{**k, "printed": True})


def swapped(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a, **k: (lambda out: (out[1], out[0], *out[2:]))(true(*a, **k))


def transposed(true: Callable[..., Any]) -> Callable[..., Any]:
    def broken(*a: Any, **k: Any) -> Any:
        found = true(*a, **k)
        return replace(found, W=found.W.swapaxes(-1, -2))

    return broken


def minus_W(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda W, problem: true(-W, problem)


def minus_loss(true: Callable[..., Any]) -> Callable[..., Any]:
    """Theorem 6 with the paper's sign before the loss."""

    def broken(eps: Any, step: Any, **k: Any) -> Any:
        return true(eps, step, **k) - 4.0 * (1.0 - np.asarray(eps)) * step * k["loss"]

    return broken


def cubed_twice(true: Callable[..., Any]) -> Callable[..., Any]:
    """The loss at most exp(-c t^(2/3))."""
    return lambda t, step, omega: true(np.asarray(t) ** 2, step, omega)


def never_printed(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a, **k: true(*a, **{**k, "printed": False})


def turned(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a: np.swapaxes(true(*a), -1, -2)


FLOW = "attnbook.claims.bias._joint_limit.turning"
MUTANTS = [
    ("lemma-4", BIAS + "alignment_bound", times(2.0), "opposite tokens reach equality"),
    ("lemma-4", "attnlab.svm.attention_svm", transposed, "W for its transpose"),
    ("lemma-5", BIAS + "norm_bounds", each(2.0, 1.0), "the first step reaches the lower bound"),
    ("lemma-5", BIAS + "norm_bounds", each(1.0, 0.25), "the upper bound is within a factor 2"),
    ("equation-9", BIAS + "norm_bounds", each(5.0, 1.0), "the norm is four times the lower bound"),
    ("lemma-10", BIAS + "decoder_norm_bound", times(0.5), "one sample keeps its direction"),
    ("theorem-10", BIAS + "decoder_norm_bound", times(0.5), "the same in the theorem's proof"),
    ("equation-5", BIAS + "gradient_along", times(2.0), "an identity"),
    (
        "equation-5",
        BIAS + "gradient_along",
        lambda true: lambda s, g, a: true(s, g, np.roll(a, 1, axis=-1)),
        "the logits of the wrong token",
    ),
    (
        "equation-3",
        BIAS + "two_token_miss",
        lambda true: lambda w, c: true(w, np.sqrt(c)),
        "a missing square",
    ),
    (
        "section-a4",
        BIAS + "two_token_miss",
        lambda true: lambda w, c: true(np.sqrt(w), c),
        "1/w for 1/w^2",
    ),
    (
        "equation-3",
        BIAS + "two_token_gd",
        lambda true: lambda t, start, step: true(t, start, np.exp(1.0) * step),
        "the factor 1/e is dropped",
    ),
    ("theorem-5", BIAS + "waiting_time", printed_always, "t_0 with a logarithm"),
    ("theorem-5", BIAS + "rate_constant", times(1e-3), "C / 1000"),
    (
        "theorem-5",
        BIAS + "rate_bound",
        lambda true: lambda t, C: 1.0 - (1.0 - true(t, C)) / np.asarray(t) ** 0.9,
        "(log t)^2 / t^1.9",
    ),
    ("lemma-8", BIAS + "saturation_time", printed_always, "exponent 2 for 4"),
    ("lemma-8", BIAS + "saturation_exponent", times(4.0), "1/2 for 1/8"),
    ("lemma-7", BIAS + "gap_set", lambda true: lambda *a: true(*a) + 1, "I_1 is never empty"),
    ("assumption-1", BIAS + "orthogonality", times(0.5), "instances lie near the edge"),
    ("lemma-6", BIAS + "conditioning", times(2.0), "Upsilon is e"),
    ("lemma-6", BIAS + "orthogonality", times(100.0), "short means would do as well"),
    ("lemma-6", BIAS + "orthogonality", times(0.1), "tokens ten times less orthogonal"),
    ("definition-1", BIAS + "split_scores", swapped, "best and others exchanged"),
    ("lemma-2", BIAS + "initial_scale", times(40.0), "loose: the spectral norm, all directions"),
    ("lemma-3", BIAS + "optimal_geometry", swapped, "two conditions of the amendment exchanged"),
    ("theorem-6", BIAS + "gd_constant", minus_loss, "the printed sign"),
    ("theorem-7", BIAS + "gradient_bounds", each(3.0, 1.0), "the lower bound on the gradient"),
    ("theorem-7", BIAS + "gradient_bounds", each(1.0, 0.25), "the upper one"),
    ("lemma-9", BIAS + "product_bounds", each(1 / 3, 1 / 3, 1 / 3), "the events' size"),
    ("lemma-12", BIAS + "common_margin", times(5.0), "a typical margin is four times the bound"),
    ("lemma-13", BIAS + "omega_1", times(5.0), "the gradient is four times the bound"),
    ("theorem-8", BIAS + "omega_1", times(10.0), "the loss falls eight times as fast"),
    ("theorem-8", BIAS + "joint_loss_bound", cubed_twice, "t^(2/3) for t^(1/3)"),
    ("theorem-2", BIAS + "joint_loss_bound", cubed_twice, "t^(2/3) for t^(1/3)"),
    ("theorem-2", BIAS + "joint_exponent", times(0.01), "the printed exponent must fail"),
    ("theorem-3", FLOW, turned, "W for its transpose"),
    (
        "theorem-3",
        BIAS + "two_token_miss",
        lambda true: lambda w, c: true(np.sqrt(w), c),
        "1/w for 1/w^2",
    ),
    ("theorem-9", FLOW, turned, "W for its transpose"),
    ("theorem-9", BIAS + "gd_constant", never_printed, "nothing wrong in print"),
    ("theorem-10", BIAS + "decoder_margin_bound", times(13.0), "more than the largest margin"),
    (
        "condition-1",
        BIAS + "joint_step_simple",
        lambda true: lambda B, n, d, constant: true(B, n=n**2, d=d, constant=constant),
        "n for its root",
    ),
    ("condition-1", BIAS + "dimension_needed", times(0.1), "a tenth of the width"),
    ("condition-1", BIAS + "omega_1", times(0.5), "half of the gain"),
    ("assumption-2", BIAS + "split_scores", swapped, "best and others exchanged"),
    ("theorem-9", BIAS + "joint_norm_threshold", times(100.0), "R_eps out of reach at t_eps"),
    # what errata had measured, by the statements that show it now
    ("theorem-5", BIAS + "norm_threshold", times(2.0), "R_eps doubled"),
    ("lemma-8", BIAS + "saturation_time", times(0.5), "half of the waiting time"),
    ("lemma-8", "attnbook.claims.bias._rate.leads", minus_W, "logits of the wrong sign"),
    ("section-a4", BIAS + "two_token_miss", lambda true: lambda w, c: true(w, c) * w, "w for w^2"),
    ("lemma-7", BIAS + "norm_threshold", times(0.01), "R_eps a hundredth"),
    ("theorem-7", BIAS + "gradient_bounds", each(4.0, 1.0), "omega_1 times 4"),
    ("theorem-7", BIAS + "polyak_constant", times(1e-3), "C / 1000"),
]


@pytest.mark.parametrize(
    ("name", "target", "mutant"),
    [row[:3] for row in MUTANTS],
    ids=[f"{row[0]}: {row[3]}" for row in MUTANTS],
)
def test_a_broken_theorem_is_noticed(
    verdict: Callable[..., bool], name: str, target: str, mutant: Callable[..., Any]
) -> None:
    assert not verdict(f"bias.{name}", target, mutant)


def test_the_three_forms_of_upsilon_agree_where_scores_do() -> None:
    best, others = np.full(5, 0.7), np.full(5, -0.4)
    forms = [theory.bias.conditioning(best, others, form=f) for f in ("proof", "main", "table")]
    assert np.allclose(forms, np.exp(1.1))


def test_proof_form_is_the_largest(rng: np.random.Generator) -> None:
    others = rng.uniform(-1.0, 0.0, (200, 6))
    best = others + rng.uniform(0.1, 2.0, (200, 6))
    proof, main, table = (
        theory.bias.conditioning(best, others, form=f) for f in ("proof", "main", "table")
    )
    assert (proof >= main * (1 - 1e-12)).all()
    assert (proof >= table * (1 - 1e-12)).all()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_orthogonal_tokens_satisfy_assumption_1_without_bound() -> None:
    X = np.eye(4).reshape(2, 2, 4)
    v = np.array([1.0, 0.0, 1.0, 0.0])
    p = problems.TokenProblem(X, X[:, 0], np.ones(2), v)
    assert np.isinf(theory.bias.orthogonality(p))
    assert np.isinf(theory.bias.orthogonality(p, symmetric=True))


def test_assumption_1_by_hand() -> None:
    """Sample 1: opt e1 (length 2), other e2; sample 2: opt e3, other (e1 + e4) / 10."""
    X = np.array([[[2.0, 0, 0, 0], [0, 1.0, 0, 0]], [[0.1, 0, 0, 0.1], [0, 0, 1.0, 0]]])
    v = np.array([1.0, 0.0, 1.0, -1.0])
    p = problems.TokenProblem(X, X[:, 0], np.ones(2), v)
    assert p.optimal.tolist() == [0, 1]
    assert theory.bias.orthogonality(p) == pytest.approx(4.0 / 0.2)
    assert theory.bias.orthogonality(p, symmetric=True) == pytest.approx(0.02 / 0.2)


def test_saturation_time_solves_its_equation() -> None:
    C, B, width = 320.0, 1.0, 1.5
    t = float(theory.bias.saturation_time(C, B, width))
    assert t / np.log(t) ** 2 == pytest.approx(2.0**11 * width**4 * C, rel=1e-9)


def test_on_the_data_of_figure_2_the_miss_falls_like_the_square_in_the_end() -> None:
    """Steps grow where the run turns slowly; t counts them as steps of 0.025."""
    problem = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
    goal = svm.attention_svm(problem)
    toward, W, way = goal.W / goal.norm, np.zeros((100, 100)), 0.0
    t, off, along = [], [], []
    for step, steps in ((0.025, 2000), (0.1, 2000), (0.5, 2000), (2.0, 4000), (2.0, 8000)):
        rule, start = optim.NormalizedGD(step), {"W": W}
        W = optim.train(FIXED, problem, rule, steps, params=start, every=steps).params["W"]
        way += step * steps
        t.append(way / 0.025)
        along.append((W * toward).sum())
        off.append(np.linalg.norm(W - along[-1] * toward))
    miss = theory.bias.two_token_miss(along, np.square(off))
    exponents = np.diff(np.log(miss)) / np.diff(np.log(t))
    assert t == pytest.approx([2e3, 1e4, 5e4, 3.7e5, 1.01e6])
    assert exponents == pytest.approx([-1.3, -1.5, -1.93, -2.0], abs=0.1)
    assert exponents[-1] == pytest.approx(-2.0, abs=0.005)


def test_no_cancellation_far_out() -> None:
    assert theory.bias.two_token_miss(1e12, 0.5) == pytest.approx(0.25e-24, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: theory.bias.conditioning([0.0], [1.0]), "best"),
        (lambda: theory.bias.conditioning([1.0], [0.0], form="text"), "form"),
        (lambda: theory.bias.conditioning([1.0, 2.0], [0.0]), "others"),
        (lambda: theory.bias.alignment_bound(-1.0, 1.0), "B"),
        (lambda: theory.bias.alignment_bound(1.0, np.nan), "margin_norm"),
        (lambda: theory.bias.largest_step(1.0, 1), "T"),
        (lambda: theory.bias.norm_bounds(0, 0.1, 1.0, 1.0), "t"),
        (
            lambda: theory.bias.norm_threshold(1.5, 1.0, 1.0, n=1, T=2, conditioning=3.0),
            "eps",
        ),
        (lambda: theory.bias.rate_constant(0.1, 1.0, 1.0, norm=1.0, along=2.0), "along"),
        (
            lambda: theory.bias.gd_constant(0.5, 0.1, norm=1, correlation=1, loss=1, printed=True),
            "B",
        ),
        (lambda: theory.bias.decoder_margin_bound(1.0, 1.0, 0.1, 1.0, 1.0), "noise"),
        (lambda: theory.bias.initial_scale(0.1, 1.0, 1.0, d=3, T=2, k=1.0), "k"),
        (lambda: theory.bias.token_bound(0.5, 0.1, 10), "alpha"),
        (lambda: theory.bias.power_sum([1.5]), "t"),
        (lambda: theory.bias.orthogonality(np.zeros((2, 2))), "problem"),  # type: ignore[arg-type]
        (
            lambda: theory.bias.polyak_constant(
                0.1, 1.0, 1.0, omegas=(0.1, 1.0), excess=0.5, norm=1.0, along=1.0
            ),
            "excess",
        ),
        (
            lambda: theory.bias.joint_norm_threshold(
                0.5, 1.0, 1.0, n=2, d=10, delta=0.1, constant=2.0
            ),
            "constant",
        ),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], named: str) -> None:
    with pytest.raises(ValueError, match=rf"^{named}.*expected .*got"):
        call()
