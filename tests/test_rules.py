"""Every step rule against the update as its paper writes it, in plain NumPy."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from attnlab import models, optim, problems
from attnlab.models import Evaluation

Arrays: TypeAlias = dict[str, np.ndarray]
Update: TypeAlias = Callable[[Arrays, Arrays, np.ndarray, np.ndarray, dict[str, Any]], Arrays]

D, COLUMNS = 4, 2
EPS = 2.0**-52
# With these parameters a step sees two matrices and a vector; the names matter to equation 10.
JOINT = models.Attention(factors=COLUMNS, train_head=True, loss="logistic")
FACTORED = models.Attention(factors=COLUMNS, loss="logistic")


def size(g: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """Norm of one parameter's gradient, with axes to divide that gradient by it."""
    flat = np.sqrt((g.reshape(*lead, -1) ** 2).sum(axis=-1))
    return flat.reshape(lead + (1,) * (g.ndim - len(lead)))


def spread(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape + (1,) * (g.ndim - x.ndim))


# The references: (params, grads, loss, floor, memory) -> params. ``memory`` starts empty.


def ref_gd(eta: float) -> Update:
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        return {k: p[k] - eta * g[k] for k in p}

    return update


def ref_ngd(eta: float, eps: float = 0.0, cap: float = np.inf) -> Update:  # bias, equation 2
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        lead = loss.shape
        return {k: p[k] - np.minimum(eta / (size(g[k], lead) + eps), cap) * g[k] for k in p}

    return update


def ref_ngd_momentum(eta: float, beta: float, gain: float, cap: float = np.inf) -> Update:
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        for k in p:
            unit = np.minimum(1.0 / size(g[k], loss.shape), cap / eta) * g[k]
            m[k] = beta * m.get(k, 0.0) + gain * unit
        return {k: p[k] - eta * m[k] for k in p}

    return update


def ref_polyak(cap: float = np.inf, given: float | None = None) -> Update:  # bias, Section 3.4
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        best = floor if given is None else given
        square = sum(size(g[k], loss.shape).reshape(loss.shape) ** 2 for k in g)
        eta = np.minimum((loss - best) / (2.0 * square), cap)
        return {k: p[k] - spread(eta, p[k]) * g[k] for k in p}

    return update


def ref_heavy_ball(eta: float, beta: float) -> Update:
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        for k in p:
            m[k] = beta * m.get(k, 0.0) + g[k]
        return {k: p[k] - eta * m[k] for k in p}

    return update


def ref_adam(alpha: float, b1: float, b2: float, eps: float) -> Update:  # Kingma, Ba: Algorithm 1
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        t = m["t"] = m.get("t", 0) + 1
        new = {}
        for k in p:
            first = m["m" + k] = b1 * m.get("m" + k, 0.0) + (1 - b1) * g[k]
            second = m["v" + k] = b2 * m.get("v" + k, 0.0) + (1 - b2) * g[k] ** 2
            new[k] = p[k] - alpha * (first / (1 - b1**t)) / (np.sqrt(second / (1 - b2**t)) + eps)
        return new

    return update


def ref_equation_10(eta: float, head: float, attention: float) -> Update:  # bias, equation 10
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        t = m["t"] = m.get("t", -1) + 1
        power = {k: head if k == "v" else attention for k in p}
        return {k: p[k] - eta * (t + 1) ** -power[k] * g[k] / size(g[k], loss.shape) for k in p}

    return update


def ref_joint(eta: float) -> Update:
    def update(p: Arrays, g: Arrays, loss: np.ndarray, floor: np.ndarray, m: Any) -> Arrays:
        whole = np.sqrt(sum(size(g[k], loss.shape).reshape(loss.shape) ** 2 for k in g))
        return {k: p[k] - eta * g[k] / spread(whole, g[k]) for k in p}

    return update


RULES: dict[str, tuple[Any, Update]] = {
    "gd": (optim.GD(0.3), ref_gd(0.3)),
    "ngd": (optim.NormalizedGD(0.3), ref_ngd(0.3)),
    "ngd-cap": (optim.NormalizedGD(0.3, max_step=0.1), ref_ngd(0.3, cap=0.1)),
    "ngd-loose-cap": (optim.NormalizedGD(0.3, max_step=100.0), ref_ngd(0.3)),
    "ngd-heavy-ball": (
        optim.NormalizedGD(0.3, momentum=0.9),
        ref_ngd_momentum(0.3, 0.9, 1.0),
    ),
    "ngd-averaged": (
        optim.NormalizedGD(0.3, momentum=0.9, averaged=True),
        ref_ngd_momentum(0.3, 0.9, 0.1),
    ),
    "ngd-heavy-ball-cap": (
        optim.NormalizedGD(0.3, momentum=0.5, max_step=0.1),
        ref_ngd_momentum(0.3, 0.5, 1.0, cap=0.1),
    ),
    "ngd-paper": (optim.NormalizedGD(0.3, recipe="paper", penalty=0.0), ref_ngd(0.3, eps=EPS)),
    "ngd-paper-eps": (
        optim.NormalizedGD(0.3, recipe="paper", eps=0.5, penalty=0.0),
        ref_ngd(0.3, eps=0.5),
    ),
    "polyak": (optim.PolyakStep(), ref_polyak()),
    "polyak-cap": (optim.PolyakStep(max_step=0.05), ref_polyak(cap=0.05)),
    "polyak-loose-cap": (optim.PolyakStep(max_step=1e6), ref_polyak()),
    "polyak-floor": (optim.PolyakStep(floor=0.25), ref_polyak(given=0.25)),
    "polyak-floor-cap": (
        optim.PolyakStep(max_step=0.05, floor=-1.0),
        ref_polyak(cap=0.05, given=-1.0),
    ),
    "momentum": (optim.Momentum(0.3, 0.8), ref_heavy_ball(0.3, 0.8)),
    "momentum-default": (optim.Momentum(0.3), ref_heavy_ball(0.3, 0.9)),
    "adam": (optim.Adam(0.02), ref_adam(0.02, 0.9, 0.999, 1e-8)),
    "adam-own": (optim.Adam(0.02, 0.5, 0.7, 0.1), ref_adam(0.02, 0.5, 0.7, 0.1)),
    "decayed": (optim.DecayedNormalizedGD(0.3), ref_equation_10(0.3, 2 / 3, 1.0)),
    "decayed-own": (
        optim.DecayedNormalizedGD(0.3, head_power=0.75, attention_power=0.5),
        ref_equation_10(0.3, 0.75, 0.5),
    ),
    "decayed-not": (
        optim.DecayedNormalizedGD(0.3, decay=False),
        ref_equation_10(0.3, 0.0, 0.0),
    ),
    "joint": (optim.JointNormalizedGD(0.3), ref_joint(0.3)),
}
EXACT = [name for name, (rule, _) in RULES.items() if getattr(rule, "exact", True)]
NORMALIZED = [
    name
    for name, (rule, _) in RULES.items()
    if isinstance(rule, optim.NormalizedGD | optim.DecayedNormalizedGD | optim.JointNormalizedGD)
    and getattr(rule, "exact", True)
    and getattr(rule, "max_step", None) is None
]
LEADS: list[tuple[int, ...]] = [(), (3,), (2, 2)]


def model_for(rule: Any) -> models.Attention:
    """A derived floor other than 0 is that of a fixed head."""
    return FACTORED if isinstance(rule, optim.PolyakStep) else JOINT


def problem_for(lead: tuple[int, ...]) -> problems.TokenProblem:
    return problems.sphere(n=3, T=3, d=D, trials=lead or None, rng=5)


def points(rule: Any, lead: tuple[int, ...], steps: int = 6) -> tuple[Arrays, list[Any]]:
    """A start, and (gradient, loss) pairs that differ in size by orders of magnitude."""
    rng = np.random.default_rng(11)
    shapes = model_for(rule).shapes(problem_for(lead))
    params = {k: rng.standard_normal(lead + tail) for k, tail in shapes.items()}
    seen = []
    for step in range(steps):
        grads = {
            k: 10.0 ** rng.uniform(-2, 1) * rng.standard_normal(lead + tail)
            for k, tail in shapes.items()
        }
        seen.append((grads, np.asarray(3.0 + rng.random(lead) + step)))
    return params, seen


def derived_floor(problem: problems.TokenProblem) -> np.ndarray:
    """All attention on the best token of every sample, logistic loss."""
    scores = problem.y[..., None] * np.einsum("...ntd,...d->...nt", problem.X, problem.v)
    return np.log1p(np.exp(-scores.max(axis=-1))).mean(axis=-1)


@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("name", RULES)
def test_six_steps_by_the_papers_formula(name: str, lead: tuple[int, ...]) -> None:
    rule, update = RULES[name]
    problem = problem_for(lead)
    params, seen = points(rule, lead)
    floor, memory, expected = derived_floor(problem), {}, params
    state = rule.init(model_for(rule), problem, params)
    for grads, loss in seen:
        params, state = rule.step(params, Evaluation(loss, grads), state)
        expected = update(expected, grads, loss, floor, memory)
        for k in expected:
            assert params[k].shape == expected[k].shape
            np.testing.assert_allclose(params[k], expected[k], rtol=1e-13, atol=1e-13)


def test_the_first_heavy_ball_steps_by_hand() -> None:
    """Constant gradient: 1, 1.9, 2.71, ... unit steps; the averaged form never exceeds one."""
    problem, g = problem_for(()), {"W": np.array([[3.0, 0.0], [0.0, 4.0]])}
    unit = g["W"] / 5.0
    for averaged, expected in ((False, (1.0, 1.9, 2.71)), (True, (0.1, 0.19, 0.271))):
        rule = optim.NormalizedGD(0.5, momentum=0.9, averaged=averaged)
        params = {"W": np.zeros((2, 2))}
        state = rule.init(None, problem, params)
        for length in expected:
            before = params["W"]
            params, state = rule.step(params, Evaluation(np.array(1.0), g), state)
            np.testing.assert_allclose(before - params["W"], 0.5 * length * unit, rtol=1e-14)


def test_adam_moves_every_entry_by_its_step_at_first() -> None:
    """Kingma and Ba, Section 2.1: at t = 1 the step is alpha times the sign of the gradient."""
    g = {"W": np.array([[1e-3, -20.0], [5.0, -1e-2]])}
    rule = optim.Adam(0.06)
    start = {"W": np.zeros((2, 2))}
    state = rule.init(None, None, start)
    params, state = rule.step(start, Evaluation(np.array(1.0), g), state)
    np.testing.assert_allclose(params["W"], -0.06 * np.sign(g["W"]), rtol=2e-5)
    assert state["count"] == 1


def freeze(tree: Any) -> None:
    """Writing into any of these arrays is an error from now on."""
    if isinstance(tree, dict):
        for item in tree.values():
            freeze(item)
    elif isinstance(tree, np.ndarray):
        tree.flags.writeable = False


def same(a: Any, b: Any) -> None:
    """Two nested states are equal to the last bit."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for k in a:
            same(a[k], b[k])
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


@pytest.mark.parametrize("name", RULES)
def test_a_step_is_pure(name: str) -> None:
    rule = RULES[name][0]
    problem = problem_for((3,))
    params, seen = points(rule, (3,), steps=2)
    state = rule.init(model_for(rule), problem, params)
    for grads, loss in seen:
        for tree in (params, grads, loss, state):
            freeze(tree)
        before = copy.deepcopy((params, grads, loss, state))
        once = rule.step(params, Evaluation(loss, grads), state)
        again = rule.step(params, Evaluation(loss, grads), state)
        same(before[0], params)
        same(before[1], grads)
        same(before[2], loss)
        same(before[3], state)
        same(once[0], again[0])
        same(once[1], again[1])
        for k in params:
            assert not np.shares_memory(once[0][k], params[k])
        params, state = once


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("name", RULES)
def test_a_zero_gradient_moves_nothing(name: str, lead: tuple[int, ...], scaled: bool) -> None:
    rule = RULES[name][0]
    problem = problem_for(lead)
    params, [(grads, loss)] = points(rule, lead, steps=1)
    grads = {k: np.zeros_like(g) for k, g in grads.items()}
    state = rule.init(model_for(rule), problem, params)
    at = Evaluation(loss, grads, dict.fromkeys(grads, np.zeros(lead)) if scaled else None)
    for _ in range(2):
        moved, state = rule.step(params, at, state)
        for k in params:
            np.testing.assert_array_equal(moved[k], params[k])
    for leaf in leaves(state):
        assert np.isfinite(leaf).all()


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in leaves(item)]
    return [tree]


@pytest.mark.parametrize("name", RULES)
def test_a_zero_gradient_in_one_trial_leaves_the_others_alone(name: str) -> None:
    rule = RULES[name][0]
    problem = problem_for((3,))
    params, [(grads, loss)] = points(rule, (3,), steps=1)
    full, _ = rule.step(
        params, Evaluation(loss, grads), rule.init(model_for(rule), problem, params)
    )
    for g in grads.values():
        g[1] = 0.0
    part, _ = rule.step(
        params, Evaluation(loss, grads), rule.init(model_for(rule), problem, params)
    )
    for k in params:
        np.testing.assert_array_equal(part[k][1], params[k][1])
        np.testing.assert_array_equal(part[k][[0, 2]], full[k][[0, 2]])
        assert (part[k][[0, 2]] != params[k][[0, 2]]).any()


@pytest.mark.parametrize("name", RULES)
def test_a_zero_gradient_in_one_parameter_moves_only_the_others(name: str) -> None:
    """At zero, attention has no gradient and the head has one (bias, Section 4)."""
    rule = RULES[name][0]
    problem = problem_for(())
    params, [(grads, loss)] = points(rule, (), steps=1)
    grads["K"] = np.zeros_like(grads["K"])
    moved, _ = rule.step(
        params, Evaluation(loss, grads), rule.init(model_for(rule), problem, params)
    )
    np.testing.assert_array_equal(moved["K"], params["K"])
    assert np.isfinite(moved["Q"]).all()
    assert (moved["Q"] != params["Q"]).any()


@pytest.mark.parametrize("norms", [False, True], ids=["norms-made", "norms-given"])
@pytest.mark.parametrize("name", EXACT)
def test_a_step_does_not_depend_on_how_the_gradient_is_scaled(name: str, norms: bool) -> None:
    """grads * exp(log_scale) is all that counts, a scale for each parameter and trial."""
    rule = RULES[name][0]
    lead, rng = (3,), np.random.default_rng(0)
    problem = problem_for(lead)
    params, seen = points(rule, lead)
    state = other = rule.init(model_for(rule), problem, params)
    plain = scaled = params
    for grads, loss in seen:
        log_scale = {k: rng.uniform(-30, 30, lead) for k in grads}
        small = {k: g * spread(np.exp(-log_scale[k]), g) for k, g in grads.items()}
        given = {k: size(g, lead).reshape(lead) for k, g in small.items()} if norms else None
        at = Evaluation(loss, small, log_scale, norms=given)
        plain, state = rule.step(plain, Evaluation(loss, grads), state)
        scaled, other = rule.step(scaled, at, other)
        for k in params:
            np.testing.assert_allclose(scaled[k], plain[k], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NORMALIZED)
def test_normalized_steps_survive_where_the_gradient_underflows(name: str) -> None:
    """e^-2000 is 0 in float64; the direction is not."""
    rule = RULES[name][0]
    lead = (2,)
    params, [(grads, loss)] = points(rule, lead, steps=1)
    state = rule.init(model_for(rule), problem_for(lead), params)
    plain, _ = rule.step(params, Evaluation(loss, grads), state)
    at = Evaluation(loss, grads, dict.fromkeys(grads, np.full(lead, -2000.0)))
    tiny, _ = rule.step(params, at, state)
    for k in params:
        np.testing.assert_allclose(tiny[k], plain[k], rtol=1e-13)


def test_joint_normalization_weighs_parameters_by_their_true_size() -> None:
    """A parameter whose gradient is e^-2000 of the other's does not move."""
    rule = optim.JointNormalizedGD(0.3)
    params, [(grads, loss)] = points(rule, (), steps=1)
    log_scale = {"K": np.array(-2000.0), "Q": np.array(-2000.0), "v": np.array(-4000.0)}
    moved, _ = rule.step(params, Evaluation(loss, grads, log_scale), {})
    np.testing.assert_array_equal(moved["v"], params["v"])
    whole = np.sqrt(sum((grads[k] ** 2).sum() for k in "KQ"))
    for k in "KQ":
        np.testing.assert_allclose(moved[k], params[k] - 0.3 * grads[k] / whole, rtol=1e-13)


@pytest.mark.parametrize("rule", [optim.GD(0.3), optim.Momentum(0.3), optim.Adam(0.02)], ids=str)
def test_plain_steps_stand_still_where_the_gradient_underflows(rule: Any) -> None:
    params, [(grads, loss)] = points(rule, (2,), steps=1)
    state = rule.init(JOINT, problem_for((2,)), params)
    at = Evaluation(loss, grads, dict.fromkeys(grads, np.full(2, -2000.0)))
    moved, _ = rule.step(params, at, state)
    same(moved, params)


def test_polyak_steps_are_right_where_excess_and_gradient_underflow() -> None:
    """(L - L*) / (2 |g|^2) g with L - L* = e^-2000 and |g| of order e^-2000 is of order 1."""
    lead = (2,)
    rule = optim.PolyakStep()
    params, [(grads, loss)] = points(rule, lead, steps=1)
    state = rule.init(FACTORED, problem_for(lead), params)
    at = Evaluation(
        loss,
        grads,
        dict.fromkeys(grads, np.full(lead, -2000.0)),
        log_excess=np.array([-2000.0, -2001.0]),
    )
    moved, _ = rule.step(params, at, state)
    square = sum((grads[k] ** 2).sum(axis=(1, 2)) for k in grads)
    eta = np.array([1.0, np.exp(-1.0)]) / (2.0 * square)
    for k in params:
        np.testing.assert_allclose(moved[k], params[k] - eta[:, None, None] * grads[k], rtol=1e-11)
    capped, _ = optim.PolyakStep(max_step=10.0).step(params, at, state)
    same(capped, params)  # 10 e^-2000 is nothing


def test_a_given_floor_overrules_the_models_excess() -> None:
    rule = optim.PolyakStep(floor=0.5)
    params, [(grads, loss)] = points(rule, (2,), steps=1)
    state = rule.init(FACTORED, problem_for((2,)), params)
    at = Evaluation(loss, grads, dict.fromkeys(grads, np.zeros(2)), log_excess=np.full(2, -9.0))
    expected, _ = rule.step(params, Evaluation(loss, grads), state)
    moved, _ = rule.step(params, at, state)
    for k in params:
        np.testing.assert_allclose(moved[k], expected[k], rtol=1e-13)


def test_polyak_at_or_below_the_floor_moves_nothing() -> None:
    rule = optim.PolyakStep(floor=5.0)
    params, [(grads, _)] = points(rule, (2,), steps=1)
    state = rule.init(FACTORED, problem_for((2,)), params)
    moved, _ = rule.step(params, Evaluation(np.array([5.0, 4.0]), grads), state)
    same(moved, params)


def moved_by(rule: Any, grads: Arrays, lead: tuple[int, ...]) -> Arrays:
    params = {k: np.zeros_like(g) for k, g in grads.items()}
    state = rule.init(JOINT, problem_for(lead), params)
    return rule.step(params, Evaluation(np.ones(lead), grads), state)[0]


def test_each_parameter_is_normalized_on_its_own_unless_the_rule_is_joint() -> None:
    """svm, Appendix F: K and Q separately; bias, Section 5: the joint rule takes both."""
    lead = (3,)
    _, [(grads, _)] = points(optim.GD(1.0), lead, steps=1)
    separate = moved_by(optim.NormalizedGD(0.3), grads, lead)
    tenth = moved_by(optim.DecayedNormalizedGD(0.3), grads, lead)
    joint = moved_by(optim.JointNormalizedGD(0.3), grads, lead)
    for k, g in grads.items():
        np.testing.assert_allclose(size(separate[k], lead), 0.3, rtol=1e-14)
        np.testing.assert_allclose(size(tenth[k], lead), 0.3, rtol=1e-14)
        ratio = size(joint[k], lead) / size(g, lead)
        other = size(joint["v"], lead) / size(grads["v"], lead)
        np.testing.assert_allclose(ratio.ravel(), other.ravel(), rtol=1e-13)
    whole = sum(size(m, lead).ravel() ** 2 for m in joint.values())
    np.testing.assert_allclose(np.sqrt(whole), 0.3, rtol=1e-14)


def test_with_one_parameter_the_joint_rule_is_the_separate_one() -> None:
    _, [(grads, _)] = points(optim.GD(1.0), (3,), steps=1)
    one = {"W": grads["K"]}
    same(
        moved_by(optim.JointNormalizedGD(0.3), one, (3,)),
        moved_by(optim.NormalizedGD(0.3), one, (3,)),
    )


def test_the_cap_bounds_step_over_gradient_norm() -> None:
    """bias, Section 3.4: the step is min(eta / |g|, eta_max)."""
    g = np.zeros((4, 2, 2))
    g[:, 0, 0] = [10.0, 1.0, 0.5, 1e-3]
    moved = moved_by(optim.NormalizedGD(0.1, max_step=0.2), {"W": g}, (4,))["W"]
    np.testing.assert_allclose(moved[:, 0, 0], [-0.1, -0.1, -0.1, -2e-4], rtol=1e-14)
    paper = moved_by(optim.NormalizedGD(0.1, max_step=0.2, recipe="paper"), {"W": g}, (4,))["W"]
    np.testing.assert_allclose(paper, moved, rtol=1e-12)
    polyak = optim.PolyakStep(max_step=0.2, floor=0.0)
    moved = polyak.step({"W": 0 * g}, Evaluation(np.ones(4), {"W": g}), {"floor": np.zeros(4)})[0][
        "W"
    ]
    np.testing.assert_allclose(moved[:, 0, 0], [-0.05, -0.2, -0.1, -2e-4], rtol=1e-13)


@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("name", RULES)
def test_the_state_has_an_entry_for_each_trial(name: str, lead: tuple[int, ...]) -> None:
    rule = RULES[name][0]
    problem = problem_for(lead)
    params, [(grads, loss)] = points(rule, lead, steps=1)
    state = rule.init(model_for(rule), problem, params)
    after = rule.step(params, Evaluation(loss, grads), state)[1]
    assert state.keys() == after.keys()
    for k in state:
        if k == "count":
            assert (state[k], after[k]) == (0, 1)
        elif k == "floor":
            assert state[k].shape == after[k].shape == lead
        elif k in params:
            assert state[k].shape == after[k].shape == params[k].shape
            assert not state[k].any()
            assert after[k].any()
        else:
            assert k in ("mean", "square")
            for name_, p in params.items():
                assert state[k][name_].shape == after[k][name_].shape == p.shape
                assert not state[k][name_].any()
                assert after[k][name_].any()


@pytest.mark.parametrize("name", RULES)
def test_a_batch_is_a_loop_over_trials(name: str) -> None:
    rule = RULES[name][0]
    problem = problem_for((3,))
    params, seen = points(rule, (3,))
    alone = []
    for i in range(3):
        p = {k: a[i] for k, a in params.items()}
        single = problem.trial(i)
        state = rule.init(model_for(rule), single, p)
        for grads, loss in seen:
            p, state = rule.step(p, Evaluation(loss[i], {k: g[i] for k, g in grads.items()}), state)
        alone.append(p)
    state = rule.init(model_for(rule), problem, params)
    for grads, loss in seen:
        params, state = rule.step(params, Evaluation(loss, grads), state)
    for i, p in enumerate(alone):
        for k in p:
            np.testing.assert_allclose(params[k][i], p[k], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: optim.GD(0.0), "step_size"),
        (lambda: optim.GD(-1.0), "step_size"),
        (lambda: optim.GD(float("nan")), "step_size"),
        (lambda: optim.GD("1"), "step_size"),
        (lambda: optim.NormalizedGD(0.0), "step_size"),
        (lambda: optim.NormalizedGD(0.1, momentum=1.0), "momentum"),
        (lambda: optim.NormalizedGD(0.1, momentum=-0.1), "momentum"),
        (lambda: optim.NormalizedGD(0.1, max_step=0.0), "max_step"),
        (lambda: optim.NormalizedGD(0.1, recipe="papers"), "recipe"),
        (lambda: optim.NormalizedGD(0.1, eps=-1.0), "eps"),
        (lambda: optim.PolyakStep(max_step=-1.0), "max_step"),
        (lambda: optim.PolyakStep(floor=float("inf")), "floor"),
        (lambda: optim.Momentum(0.0), "step_size"),
        (lambda: optim.Momentum(1.0, 1.0), "momentum"),
        (lambda: optim.Adam(0.0), "step_size"),
        (lambda: optim.Adam(0.1, beta1=1.0), "beta1"),
        (lambda: optim.Adam(0.1, beta2=-0.1), "beta2"),
        (lambda: optim.DecayedNormalizedGD(0.0), "step_size"),
        (lambda: optim.DecayedNormalizedGD(0.1, head_power=-1.0), "head_power"),
        (lambda: optim.JointNormalizedGD(-0.1), "step_size"),
    ],
)
def test_a_bad_argument_is_named(make: Callable[[], Any], argument: str) -> None:
    with pytest.raises(ValueError, match=rf"^{argument}: expected .*, got "):
        make()


@pytest.mark.parametrize(
    "model",
    [
        models.Attention(head=models.ReLUHead(np.eye(D))),
        models.Attention(head=models.ConcaveHead(0.3)),
        models.Attention(train_head=True, loss="correlation"),
    ],
    ids=["relu", "concave", "unbounded"],
)
def test_polyak_says_when_no_floor_is_known(model: models.Attention) -> None:
    problem = problem_for(())
    with pytest.raises(ValueError, match="floor"):
        optim.PolyakStep().init(model, problem, model.init(problem, rng=0))
    optim.PolyakStep(floor=0.0).init(model, problem, model.init(problem, rng=0))


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_a_frozen_record(name: str) -> None:
    rule = RULES[name][0]
    assert dataclasses.is_dataclass(rule)
    assert dataclasses.replace(rule) == rule
    assert hash(dataclasses.replace(rule)) == hash(rule)
    field = dataclasses.fields(rule)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(rule, field, 1.0)


def test_the_papers_recipe_penalizes_k_and_q_and_nothing_else() -> None:
    """svm, Appendix F: the loss plus lambda (|K|^2 + |Q|^2), each normalized with its own eps."""
    rng = np.random.default_rng(3)
    params = {"K": rng.normal(size=(2, 3, 4)), "Q": rng.normal(size=(2, 3, 4))}
    grads = {name: rng.normal(size=p.shape) for name, p in params.items()}
    loss = np.ones(2)
    rule = optim.NormalizedGD(0.1, recipe="paper", eps=0.2, penalty=0.3)
    moved = rule.step(params, Evaluation(loss, grads), {})[0]
    for name, p in params.items():
        g = grads[name] + 0.6 * p
        size = np.sqrt((g**2).sum(axis=(1, 2), keepdims=True))
        np.testing.assert_allclose(moved[name], p - 0.1 * g / (size + 0.2), rtol=1e-12)
    alone = rule.step({"W": params["K"]}, Evaluation(loss, {"W": grads["K"]}), {})[0]["W"]
    size = np.sqrt((grads["K"] ** 2).sum(axis=(1, 2), keepdims=True))
    np.testing.assert_allclose(alone, params["K"] - 0.1 * grads["K"] / (size + 0.2), rtol=1e-12)
