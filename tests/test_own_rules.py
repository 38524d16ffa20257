"""A user's own step rules, models and recorders: `train` takes no fast path that is not theirs, and
what they return is checked at the first call by a message that names them."""
# ruff: noqa: ARG005  (functions that stand in for a user's own take what they are given)

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from attnlab import curvature, models, ntk, optim, problems
from attnlab.models import Evaluation
from attnlab.optim._engines import Direct, engine_for
from attnlab.optim._logits import Logits
from attnlab.optim._rules import declared

ATTENTION = models.Attention()
P = problems.sphere(n=5, T=5, d=8, trials=3, min_gap=0.1, rng=0)
STEPS = 60

# --- a hundred random rules ----------------------------------------------------------------------


@dataclass(frozen=True)
class OwnGD:
    """Gradient descent as somebody writes it who has not heard of scales."""

    size: float

    def init(self, model: Any, problem: Any, params: Any) -> dict[str, Any]:
        return {}

    def step(self, params: Any, at: Any, state: Any) -> Any:
        return {k: p - self.size * at.grads[k] for k, p in params.items()}, state


@dataclass(frozen=True)
class OwnSign(OwnGD):
    """Sign descent, likewise."""

    def step(self, params: Any, at: Any, state: Any) -> Any:
        return {k: p - self.size * np.sign(at.grads[k]) for k, p in params.items()}, state


@dataclass(frozen=True)
class OwnMomentum(OwnGD):
    """Momentum under a name that attnlab does not know."""

    def init(self, model: Any, problem: Any, params: Any) -> dict[str, Any]:
        return {"velocity": {k: np.zeros_like(p) for k, p in params.items()}}

    def step(self, params: Any, at: Any, state: Any) -> Any:
        v = {k: 0.8 * m + at.gradient(k) for k, m in state["velocity"].items()}
        return {k: p - self.size * v[k] for k, p in params.items()}, {"velocity": v}


@dataclass(frozen=True)
class DeclaredMomentum(OwnMomentum):
    """The same, declared: trains in logits, and its memory has to come back as matrices."""

    step = optim.declare(linear=True, scaled=True, uses_loss=False)(
        lambda self, params, at, state: OwnMomentum.step(self, params, at, state)
    )


@dataclass(frozen=True)
class LossScaled(OwnGD):
    """Steps that grow with the loss."""

    def step(self, params: Any, at: Any, state: Any) -> Any:
        return {
            k: p - at.times(k, self.size * at.loss * at.scale(k)) for k, p in params.items()
        }, state


BASES: list[Any] = [
    optim.GD,
    optim.NormalizedGD,
    functools.partial(optim.NormalizedGD, momentum=0.7),
    functools.partial(optim.NormalizedGD, momentum=0.7, averaged=True),
    functools.partial(optim.NormalizedGD, max_step=0.4),
    optim.Momentum,
    optim.Adam,
    optim.DecayedNormalizedGD,
    optim.JointNormalizedGD,
    functools.partial(optim.PolyakStep, floor=0.1),
    OwnGD,
    OwnSign,
    OwnMomentum,
    DeclaredMomentum,
    LossScaled,
]


def clip_entries(old: Any, new: Any) -> Any:
    return {k: p + np.clip(new[k] - p, -0.003, 0.003) for k, p in old.items()}


def clip_length(old: Any, new: Any) -> Any:
    moved = {k: new[k] - p for k, p in old.items()}
    length = {k: np.sqrt(np.square(m).sum(axis=(-2, -1), keepdims=True)) for k, m in moved.items()}
    return {k: p + moved[k] * np.minimum(1.0, 0.02 / (length[k] + 1e-300)) for k, p in old.items()}


def decay(old: Any, new: Any) -> Any:
    return {k: 0.97 * p for k, p in new.items()}


def upper_triangle(old: Any, new: Any) -> Any:
    return {k: p + np.triu(new[k] - p) for k, p in old.items()}


def uphill(old: Any, new: Any) -> Any:
    return {k: p - 0.5 * (new[k] - p) for k, p in old.items()}


AFTER = [clip_entries, clip_length, decay, upper_triangle, uphill]


def subclassed(rule: Any, after: Any) -> Any:
    """The same settings in a subclass whose step changes what its parent's returns."""

    def step(self: Any, params: Any, at: Any, state: Any) -> Any:
        new, state = super(kind, self).step(params, at, state)
        return after(params, new), state

    kind = type(f"Sub{type(rule).__name__}", (type(rule),), {"step": step})
    return kind(**vars(rule))


def scheduled(rule: Any, after: Any) -> Any:
    """A subclass with a count in its state: every third step is changed."""

    def init(self: Any, model: Any, problem: Any, params: Any) -> Any:
        return {"inner": super(kind, self).init(model, problem, params), "taken": 0}

    def step(self: Any, params: Any, at: Any, state: Any) -> Any:
        new, inner = super(kind, self).step(params, at, state["inner"])
        new = after(params, new) if state["taken"] % 3 == 2 else new
        return new, {"inner": inner, "taken": state["taken"] + 1}

    kind = type(f"Scheduled{type(rule).__name__}", (type(rule),), {"init": init, "step": step})
    return kind(**vars(rule))


def marked_by_wraps(rule: Any, after: Any) -> Any:
    """A step that copies all marks of the step that it wraps, as decorators do."""
    inner = type(rule).step

    @functools.wraps(inner)
    def step(self: Any, params: Any, at: Any, state: Any) -> Any:
        new, state = inner(self, params, at, state)
        return after(params, new), state

    return type(f"Wrapped{type(rule).__name__}", (type(rule),), {"step": step})(**vars(rule))


class Passing:
    """A wrapper around a rule that passes on every attribute of it."""

    def __init__(self, rule: Any, after: Any) -> None:
        self.rule, self.after = rule, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rule, name)

    def step(self, params: Any, at: Any, state: Any) -> Any:
        new, state = self.rule.step(params, at, state)
        return self.after(params, new), state


def on_the_instance(rule: Any, after: Any) -> Any:
    """A step put on one instance."""
    inner = rule.step

    def step(params: Any, at: Any, state: Any) -> Any:
        new, state = inner(params, at, state)
        return after(params, new), state

    changed = type(rule)(**vars(rule))
    object.__setattr__(changed, "step", step)
    return changed


def clipped_gradient(rule: Any, after: Any) -> Any:
    """A subclass that clips the gradient before its parent's step sees it."""

    def step(self: Any, params: Any, at: Any, state: Any) -> Any:
        grads = {k: np.clip(at.grads[k], -0.01, 0.01) for k in at.grads}
        new, state = super(kind, self).step(params, replace(at, grads=grads, norms=None), state)
        return after(params, new), state

    kind = type(f"Clipping{type(rule).__name__}", (type(rule),), {"step": step})
    return kind(**vars(rule))


CHANGES = [subclassed, scheduled, marked_by_wraps, Passing, on_the_instance, clipped_gradient]


def random_rule(seed: int) -> tuple[str, Any]:
    """A base, and up to three changes around it."""
    rng = np.random.default_rng(seed)
    base = BASES[rng.integers(len(BASES))]
    kind = getattr(base, "func", base)
    size = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
    rule = base(max_step=size) if kind is optim.PolyakStep else base(size)
    told = [type(rule).__name__]
    for change in rng.choice(len(CHANGES), size=rng.integers(4)):
        if isinstance(rule, Passing) and CHANGES[change] is not Passing:
            break  # a wrapper has no settings to hand to a subclass
        after = AFTER[rng.integers(len(AFTER))]
        rule = CHANGES[change](rule, after)
        told += [CHANGES[change].__name__, after.__name__]
        if change == CHANGES.index(on_the_instance):
            break
    return " ".join(told), rule


def by_hand(model: Any, problem: Any, rule: Any) -> Any:
    """The definition: the gradient itself, then the rule's own step."""
    params = model.init(problem, rng=1)
    state = rule.init(model, problem, params)
    for _ in range(STEPS):
        if type(model) is models.Attention:
            scaled = model.evaluate(params, problem)
            at = Evaluation(scaled.loss, {k: scaled.gradient(k) for k in params})
        else:
            at = Evaluation(*model.value_and_grad(params, problem))
        params, state = rule.step(params, at, state)
    return params


SETTINGS: dict[str, Any] = {
    "W": ATTENTION,
    "K and Q": models.Attention(factors=3),
    "v and W": models.Attention(loss="exponential", start="uniform", train_head=True),
}
GROUPS = 5


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_hundred_random_rules_train_to_one_place_fast_slow_and_by_hand(group: int) -> None:
    for seed in range(group, 100, GROUPS):
        name, rule = random_rule(seed)
        parameters = ("W", "W", "W", "K and Q", "v and W")[seed // GROUPS % 5]
        if parameters == "v and W" and any(f in name for f in ("clip_length", "upper")):
            parameters = "K and Q"  # these changes are made for matrices
        model = SETTINGS[parameters]
        asked: dict[str, Any] = {"rng": 1, "every": STEPS}
        fast = optim.train(model, P, rule, STEPS, **asked)
        slow = optim.train(model, P, rule, STEPS, fast=False, **asked)
        expected = by_hand(model, P, rule)
        for k, p in expected.items():
            about = f"seed {seed}, {name}, {parameters}"
            scale = np.abs(p).max()
            np.testing.assert_allclose(slow.params[k], p, rtol=0, atol=1e-7 * scale, err_msg=about)
            np.testing.assert_allclose(fast.params[k], p, rtol=0, atol=1e-7 * scale, err_msg=about)


def test_some_of_the_hundred_take_the_fast_path() -> None:
    rules = [random_rule(seed)[1] for seed in range(100)]
    fast = [isinstance(engine_for(ATTENTION, P, rule, None), Logits) for rule in rules]
    assert 10 <= sum(fast) <= 40


def test_the_fast_path_is_taken_by_the_step_that_was_declared_and_by_no_other() -> None:
    for rule in (optim.GD(0.1), DeclaredMomentum(0.1), type("Renamed", (optim.GD,), {})(0.1)):
        assert isinstance(engine_for(ATTENTION, P, rule, None), Logits)
    for change in CHANGES:
        for rule in (optim.GD(0.1), optim.NormalizedGD(0.1), DeclaredMomentum(0.1)):
            changed = change(rule, decay)
            assert isinstance(engine_for(ATTENTION, P, changed, None), Direct)
            assert declared(changed) == declared(OwnGD(0.1)), "nothing is declared"


def test_a_step_put_in_the_place_of_gd_is_not_gd(monkeypatch: pytest.MonkeyPatch) -> None:
    true = optim.GD.step
    monkeypatch.setattr(
        optim.GD, "step", functools.wraps(true)(lambda *given: OwnSign.step(*given))
    )
    monkeypatch.setattr(optim.GD, "size", 0.1, raising=False)
    got = optim.train(ATTENTION, P, optim.GD(0.1), STEPS, rng=1)
    np.testing.assert_array_equal(
        got.params["W"], optim.train(ATTENTION, P, OwnSign(0.1), STEPS, rng=1).params["W"]
    )


def test_declared_memory_of_any_name_comes_back_as_matrices_and_goes_on() -> None:
    fast = optim.train(ATTENTION, P, DeclaredMomentum(0.2), 30, rng=1)
    slow = optim.train(ATTENTION, P, OwnMomentum(0.2), 30, rng=1, fast=False)
    np.testing.assert_allclose(
        fast.state["velocity"]["W"], slow.state["velocity"]["W"], rtol=1e-9, atol=1e-13
    )
    more, whole = fast.extend(30), optim.train(ATTENTION, P, OwnMomentum(0.2), 60, rng=1)
    np.testing.assert_allclose(more.params["W"], whole.params["W"], rtol=1e-9, atol=1e-12)


# --- gradients of one's own rule -----------------------------------------------------------------


def test_an_own_rule_gets_the_gradient_itself_at_any_saturation() -> None:
    saturated = {"W": 40.0 * ATTENTION.init(P, rng=1)["W"]}
    scale = ATTENTION.evaluate(saturated, P).log_scale
    assert scale is not None
    assert (scale["W"] < -1.0).any(), "a rule that forgot the scale would go elsewhere"
    own = optim.train(ATTENTION, P, OwnGD(0.5), 20, params=saturated)
    gd = optim.train(ATTENTION, P, optim.GD(0.5), 20, params=saturated, fast=False)
    np.testing.assert_allclose(own.params["W"], gd.params["W"], rtol=1e-12)
    forgot = optim.declare(scaled=True)(lambda *given: OwnGD.step(*given))
    wrong = type("Forgetful", (OwnGD,), {"step": forgot})(0.5)
    far = optim.train(ATTENTION, P, wrong, 20, params=saturated).params["W"] - gd.params["W"]
    assert np.abs(far).max() > 1.0


def entrywise_margin(W: Any, p: problems.TokenProblem) -> float:
    """Smallest margin of W over its largest entry."""
    logits = np.einsum("ntd,de,ne->nt", p.X, W, p.z)
    best = np.take_along_axis(logits, p.optimal[:, None], axis=1)
    others = np.where(np.arange(p.T) == p.optimal[:, None], np.inf, best - logits)
    return float(others.min() / np.abs(W).max())


def test_an_own_rule_gets_gradients_that_do_not_cancel() -> None:
    p = problems.sphere(n=5, T=5, d=10, min_gap=0.1, rng=0)
    asked: dict[str, Any] = {"rng": 1, "every": 5000}
    own = optim.train(ATTENTION, p, OwnSign(0.01), 5000, **asked).params["W"]
    textbook = type("Textbook", (OwnSign,), {"exact": False})(0.01)
    cancelling = optim.train(ATTENTION, p, textbook, 5000, **asked).params["W"]
    assert entrywise_margin(own, p) > 1.5 * entrywise_margin(cancelling, p)


# --- models of one's own -------------------------------------------------------------------------


class Penalized(models.Attention):
    """Attention with a penalty on W: every closed form of its parent is wrong for it."""

    def value_and_grad(self, params: Any, problem: Any) -> Any:
        loss, grads = super().value_and_grad(params, problem)
        size = np.square(params["W"]).sum(axis=(-1, -2))
        return loss + 0.5 * size, {"W": grads["W"] + params["W"]}


class PassingModel:
    """A wrapper that passes on everything but the gradient."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def value_and_grad(self, params: Any, problem: Any) -> Any:
        return Penalized.value_and_grad(self.model, params, problem)


@pytest.mark.parametrize("rule", [optim.GD(0.3), optim.NormalizedGD(0.05), OwnGD(0.3)], ids=str)
def test_a_subclass_of_a_model_is_trained_on_its_own_loss(rule: Any) -> None:
    run = optim.train(Penalized(), P, rule, STEPS, rng=1)
    expected = by_hand(Penalized(), P, rule)["W"]
    np.testing.assert_allclose(run.params["W"], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.history["loss"][-1], run.loss(), rtol=1e-12)


def test_a_wrapped_model_is_trained_on_its_own_loss() -> None:
    class Wrapped(PassingModel):
        def value_and_grad(self, params: Any, problem: Any) -> Any:
            return Penalized().value_and_grad(params, problem)

    run = optim.train(Wrapped(ATTENTION), P, optim.GD(0.3), STEPS, rng=1)  # type: ignore[arg-type]
    expected = by_hand(Penalized(), P, optim.GD(0.3))["W"]
    np.testing.assert_allclose(run.params["W"], expected, rtol=1e-9, atol=1e-12)


class Shifted(models.LinearHead):
    """A linear head of a larger v."""

    def value(self, o: Any, v: Any) -> Any:
        return 3.0 * super().value(o, v)

    def gradient(self, o: Any, v: Any) -> Any:
        return 3.0 * super().gradient(o, v)


def test_a_subclass_of_the_linear_head_is_not_taken_for_it() -> None:
    model = models.Attention(head=Shifted())
    larger = replace(P, v=3.0 * P.v)
    ours = optim.train(model, P, optim.GD(0.1), STEPS, rng=1)
    theirs = optim.train(ATTENTION, larger, optim.GD(0.1), STEPS, rng=1)
    np.testing.assert_allclose(ours.params["W"], theirs.params["W"], rtol=1e-9, atol=1e-12)


def test_closed_forms_refuse_a_subclass_that_may_compute_otherwise() -> None:
    params = Penalized().init(P, rng=1)
    for call in (
        lambda: ntk.jacobian(Penalized(), params, P),
        lambda: curvature.hessian(Penalized(), params, P),
        lambda: curvature.smoothness(Penalized(), P),
        lambda: curvature.smoothness(models.Attention(head=Shifted()), P),
    ):
        with pytest.raises(ValueError, match=r"^model: expected .*got"):
            call()


# --- what is returned ----------------------------------------------------------------------------


def rule_with(**methods: Any) -> Any:
    """A rule of one's own with other methods."""
    return type("Mine", (OwnGD,), methods)(0.1)


def model_with(**methods: Any) -> Any:
    return type("MyModel", (models.Attention,), methods)()


def train(**given: Any) -> Any:
    asked = {"model": ATTENTION, "problem": P, "rule": OwnGD(0.1), "steps": 3, "rng": 1} | given
    return optim.train(**asked)


def in_place(self: Any, params: Any, at: Any, state: Any) -> Any:
    for k in params:
        params[k] -= 0.1 * at.grads[k]
    return params, state


def clips_in_place(self: Any, params: Any, at: Any, state: Any) -> Any:
    np.clip(at.grads["W"], -1e-9, 1e-9, out=at.grads["W"])
    return OwnGD.step(self, params, at, state)


def counts_in_place(self: Any, params: Any, at: Any, state: Any) -> Any:
    state["taken"] = 1
    return OwnGD.step(self, params, at, state)


def remembers_in_place(self: Any, params: Any, at: Any, state: Any) -> Any:
    state["m"]["W"] += 1.0
    return dict(params), state


class Bare:
    """No rule and no model: one method is missing."""

    def step(self, params: Any, at: Any, state: Any) -> Any:
        return params, state

    def shapes(self, problem: Any) -> Any:
        return {}


LOSS = np.ones(3)
BAD: dict[str, tuple[Any, str, str, str]] = {
    "rule without init": (
        lambda: train(rule=Bare()),
        "rule",
        "with the methods init, step",
        "Bare has no init",
    ),
    "a class": (lambda: train(rule=OwnGD), "rule", r"such as GD\(1.0\)", "the class OwnGD itself"),
    "init returns None": (
        lambda: train(rule=rule_with(init=lambda *_: None)),
        "Mine.init",
        "a dict",
        "None",
    ),
    "step without state": (
        lambda: train(rule=rule_with(step=lambda self, params, at, state: params)),
        "Mine.step",
        r"a tuple \(params, state\)",
        "a dict",
    ),
    "step returns nothing": (
        lambda: train(rule=rule_with(step=lambda *_: None)),
        "Mine.step",
        r"a tuple \(params, state\)",
        "None",
    ),
    "step returns an array": (
        lambda: train(rule=rule_with(step=lambda self, p, at, s: (p["W"], s))),
        "Mine.step, params",
        r"a dict with the keys \['W'\]",
        "an array of float64",
    ),
    "step loses a key": (
        lambda: train(rule=rule_with(step=lambda self, p, at, s: ({}, s))),
        "Mine.step, params",
        r"a dict with the keys \['W'\]",
        r"the keys \[\]",
    ),
    "step sums the trials": (
        lambda: train(rule=rule_with(step=lambda self, p, at, s: ({"W": p["W"].sum(0)}, s))),
        "Mine.step, params['W']",
        r"shape \(3, 8, 8\)",
        r"shape \(8, 8\)",
    ),
    "step goes complex": (
        lambda: train(rule=rule_with(step=lambda self, p, at, s: ({"W": 1j * p["W"]}, s))),
        "Mine.step, params['W']",
        "real numbers",
        "complex128",
    ),
    "state becomes None": (
        lambda: train(rule=rule_with(step=lambda self, p, at, s: (dict(p), None))),
        "Mine.step, state",
        "a dict",
        "None",
    ),
    "step in place": (
        lambda: train(rule=rule_with(step=in_place)),
        "Mine.step",
        "what was given left as it is",
        r"in place of params\['W'\]",
    ),
    "gradient in place": (
        lambda: train(rule=rule_with(step=clips_in_place)),
        "Mine.step",
        "new arrays",
        r"in place of at.grads\['W'\]",
    ),
    "state in place": (
        lambda: train(rule=rule_with(step=counts_in_place)),
        "Mine.step",
        "new arrays",
        "in place of state",
    ),
    "memory in place": (
        lambda: train(
            rule=rule_with(
                init=lambda self, m, q, p: {"m": {"W": np.zeros_like(p["W"])}},
                step=remembers_in_place,
            )
        ),
        "Mine.step",
        "new arrays",
        r"in place of state\['m'\]\['W'\]",
    ),
    "model without value_and_grad": (
        lambda: train(model=Bare()),
        "model",
        "with the methods init, shapes, value_and_grad",
        "Bare has no init, no value_and_grad",
    ),
    "shapes returns a list": (
        lambda: train(model=model_with(shapes=lambda *_: [(8, 8)])),
        "MyModel.shapes",
        "a dict of the shape",
        "a list",
    ),
    "model starts wrong": (
        lambda: train(model=model_with(init=lambda *_, **__: {"W": np.ones((3, 8, 7))})),
        "MyModel.init['W']",
        r"shape \(3, 8, 8\)",
        r"shape \(3, 8, 7\)",
    ),
    "model loses a parameter": (
        lambda: train(model=model_with(init=lambda *_, **__: {})),
        "MyModel.init",
        r"the keys \['W'\]",
        r"\[\]",
    ),
    "a loss for all trials": (
        lambda: train(model=model_with(value_and_grad=lambda self, p, q: (0.5, dict(p)))),
        "MyModel.value_and_grad, loss",
        r"shape \(3,\) \(one number per trial\)",
        r"shape \(\)",
    ),
    "no gradients": (
        lambda: train(model=model_with(value_and_grad=lambda self, p, q: LOSS)),
        "MyModel.value_and_grad",
        r"a tuple \(loss, grads\)",
        "an array of float64",
    ),
    "a gradient is missing": (
        lambda: train(model=model_with(value_and_grad=lambda self, p, q: (LOSS, {}))),
        "MyModel.value_and_grad, grads",
        r"the keys \['W'\]",
        r"the keys \[\]",
    ),
    "a gradient of another shape": (
        lambda: train(
            model=model_with(value_and_grad=lambda self, p, q: (LOSS, {"W": np.ones((8, 8))}))
        ),
        "MyModel.value_and_grad, grads['W']",
        r"shape \(3, 8, 8\)",
        r"shape \(8, 8\)",
    ),
    "evaluate returns a tuple": (
        lambda: train(model=model_with(evaluate=lambda self, p, q: (LOSS, p))),
        "MyModel.evaluate",
        "a models.Evaluation",
        "a tuple of 2",
    ),
    "a scale is missing": (
        lambda: train(model=model_with(evaluate=lambda self, p, q: Evaluation(LOSS, p, {}))),
        "MyModel.evaluate, log_scale",
        r"a dict with the keys \['W'\]",
        "a dict",
    ),
    "forward returns one number": (
        lambda: train(model=model_with(forward=lambda self, p, q: LOSS), record="accuracy"),
        "MyModel.forward",
        r"shape \(3, 5\) \(one number per sample\)",
        r"shape \(3,\)",
    ),
    "attention of other tokens": (
        lambda: train(
            model=model_with(
                attention=lambda self, p, q: np.ones((3, 5, 4)),
                value_and_grad=lambda self, p, q: (LOSS, dict(p)),
            ),
            record="attention",
        ),
        "MyModel.attention",
        r"shape \(3, 5, ..., 5\)",
        r"shape \(3, 5, 4\)",
    ),
    "a head of all tokens": (
        lambda: train(
            model=models.Attention(
                head=type("Mean", (models.LinearHead,), {"value": lambda self, o, v: 1.0})()
            )
        ),
        "Mean.value",
        r"shape \(3, 5\)",
        r"shape \(\)",
    ),
    "recorder of one argument": (
        lambda: train(record={"top": lambda params: 0.0}),
        "record['top']",
        r"a function of \(params, problem\)",
        r"<lambda>\(params\)",
    ),
    "recorder of three": (
        lambda: train(record={"top": lambda model, params, problem: 0.0}),
        "record['top']",
        r"a function of \(params, problem\)",
        r"<lambda>\(model, params, problem\)",
    ),
    "recorder returns words": (
        lambda: train(record={"top": lambda params, problem: "high"}),
        "record['top']",
        "real numbers",
        "'high'",
    ),
    "recorder returns ragged rows": (
        lambda: train(record={"top": lambda params, problem: [[1.0], [1.0, 2.0]]}),
        "record['top']",
        "numbers in one array",
        "a ragged list",
    ),
    "recorder of many shapes": (
        lambda: train(
            record={
                "top": (lambda seen: lambda params, problem: seen.append(0.0) or list(seen))([])
            }
        ),
        "record['top']",
        r"the shape \(1,\) that it returned at first",
        r"shape \(2,\)",
    ),
    "no floor to step to": (
        lambda: train(model=PassingModel(Bare()), rule=optim.PolyakStep()),
        "model",
        "with the methods",
        "no init",
    ),
    "ragged tokens": (
        lambda: problems.TokenProblem([[[1.0, 2.0], [3.0]]], P.z, P.y, P.v),
        "X",
        "an array of real numbers",
        "a list whose entries have different lengths",
    ),
    "a number without bounds": (
        lambda: optim.PolyakStep(floor=np.nan),
        "floor",
        "a finite number",
        "nan",
    ),
}


@pytest.mark.parametrize(("call", "name", "expected", "given"), BAD.values(), ids=BAD.keys())
def test_a_message_names_the_users_object(call: Any, name: str, expected: str, given: str) -> None:
    with pytest.raises(ValueError, match=rf"expected .*{expected}.*, got .*{given}") as caught:
        call()
    told = str(caught.value)
    assert told.startswith(f"{name}: "), told
    assert len(told) < 400
    assert " ," not in told, "no gap where nothing stands"


def test_what_is_right_is_left_alone() -> None:
    run = train(record=["loss", {"n": lambda params, problem: problem.n, "W": lambda p, q: p["W"]}])
    assert run.history["n"].tolist() == [5, 5, 5, 5]
    assert run.history["W"].shape == (4, 3, 8, 8)
