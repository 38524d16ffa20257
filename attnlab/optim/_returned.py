"""Checks of what a rule, a model or a recorder returned: the message names it, and what is missing.

Each is called once, at the first call of a training run, and changes nothing.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Evaluation, Params, fit

REAL = "fiub"  # kinds of NumPy arrays that are real numbers


def start(model: Any, problem: Any, rng: Any) -> Params:
    """What ``model.init`` returns, as float64 arrays of the shapes that the model states."""
    shapes = model.shapes(problem)
    if not isinstance(shapes, dict) or not all(isinstance(s, tuple) for s in shapes.values()):
        expected = "a dict of the shape of each parameter"
        raise check.fail(f"{_kind(model)}.shapes", expected, _described(shapes))
    params = model.init(problem, rng)
    try:
        return fit(model, params, problem, copy=False)
    except ValueError as error:
        told = str(error)
        if not told.startswith("params"):
            raise
        raise ValueError(f"{_kind(model)}.init{told.removeprefix('params')}") from None


def head(model: Any, problem: Any) -> None:
    """What the functions of a head of one's own return for the tokens of a problem."""
    own = getattr(model, "head", None)
    if own is None or not hasattr(problem, "v"):
        return
    lead = (*problem.trials, problem.n)
    tokens = problem.X[..., 0, :]
    for method, shape, meaning in (
        ("value", lead, "one number per token"),
        ("gradient", (*lead, problem.d), "that of the tokens"),
    ):
        _numbers(f"{_kind(own)}.{method}", getattr(own, method)(tokens, problem.v), shape, meaning)


def value_and_grad(model: Any, problem: Any, params: Params, answer: Any) -> None:
    """``(loss, grads)``: one number per trial, and one array per parameter."""
    name = f"{_kind(model)}.value_and_grad"
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise check.fail(name, "a tuple (loss, grads)", _described(answer))
    loss, grads = answer
    _numbers(f"{name}, loss", loss, problem.trials, "one number per trial")
    _like(f"{name}, grads", grads, params)


def evaluation(model: Any, problem: Any, params: Params, at: Any) -> None:
    """An `Evaluation` whose parts have the shapes of trials and parameters."""
    name = f"{_kind(model)}.evaluate"
    if not isinstance(at, Evaluation):
        raise check.fail(name, "a models.Evaluation", _described(at))
    _numbers(f"{name}, loss", at.loss, problem.trials, "one number per trial")
    _like(f"{name}, grads", at.grads, params)
    for part in ("log_scale", "norms"):
        sizes = getattr(at, part)
        if sizes is None:
            continue
        if not isinstance(sizes, dict) or sizes.keys() != params.keys():
            expected = f"None, or a dict with the keys {sorted(params)}"
            raise check.fail(f"{name}, {part}", expected, _described(sizes))
        for key, size in sizes.items():
            _numbers(f"{name}, {part}[{key!r}]", size, problem.trials, "one number per trial")
    if at.log_excess is not None:
        _numbers(f"{name}, log_excess", at.log_excess, problem.trials, "one number per trial")


def outputs(model: Any, params: Params, problem: Any) -> Array:
    """What ``model.forward`` returns: one number per sample."""
    f = model.forward(params, problem)
    shape = (*problem.trials, problem.n)
    _numbers(f"{_kind(model)}.forward", f, shape, "one number per sample")
    return np.asarray(f)


def attention(model: Any, params: Params, problem: Any) -> Array:
    """What ``model.attention`` returns: a map for each sample, tokens last."""
    if not hasattr(model, "attention"):
        raise check.fail("model", "a method attention(params, problem)", f"{_kind(model)} without")
    s = model.attention(params, problem)
    expected = (*problem.trials, problem.n, problem.T)
    given = np.shape(s)
    known = np.asarray(s).dtype.kind in REAL
    if not known or given[: len(expected) - 1] != expected[:-1] or given[-1:] != expected[-1:]:
        axes = ", ".join(map(str, expected[:-1]))
        name = f"{_kind(model)}.attention"
        raise check.fail(name, f"an array of shape ({axes}, ..., {problem.T})", _described(s))
    return np.asarray(s)


def state(rule: Any, made: Any) -> dict[str, Any]:
    """What ``rule.init`` returned: a dict."""
    if not isinstance(made, dict):
        expected = "a dict (empty where nothing is remembered)"
        raise check.fail(f"{_kind(rule)}.init", expected, _described(made))
    return made


class FirstStep:
    """Looks at one call of a rule's ``step``: what it returned, and what it changed in place."""

    def __init__(self, rule: Any, params: Params, at: Evaluation, state: Any) -> None:
        self.name = f"{_kind(rule)}.step"
        self.params = params
        self.given = {"params": params, "at.grads": at.grads, "state": state}
        self.copies = _copied(self.given)

    def check(self, answer: Any) -> None:
        """Complain about a wrong answer, or about one that was written into what was given."""
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise check.fail(self.name, "a tuple (params, state)", _described(answer))
        params, state = answer
        _like(f"{self.name}, params", params, self.params)
        if not isinstance(state, dict):
            raise check.fail(f"{self.name}, state", "a dict", _described(state))
        changed = _changed(self.given, self.copies)
        if changed:
            expected = "new arrays, and what was given left as it is"
            raise check.fail(self.name, expected, f"a change in place of {changed}")


def recorder(name: str, function: Any) -> None:
    """A function that can be called with ``(params, problem)``."""
    expected = "a function of (params, problem)"
    if not callable(function):
        raise check.fail(f"record[{name!r}]", expected, function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin does not say
        return
    try:
        signature.bind({}, None)
    except TypeError:
        given = f"{getattr(function, '__name__', _kind(function))}{signature}"
        raise check.fail(f"record[{name!r}]", expected, given) from None


def row(name: str, value: Any, first: tuple[int, ...] | None) -> Array:
    """What a recorder returned: numbers, of one shape throughout a run."""
    try:
        array = np.array(value)
    except ValueError:
        raise check.fail(f"record[{name!r}]", "numbers in one array", "a ragged list") from None
    if array.dtype.kind not in REAL:
        raise check.fail(f"record[{name!r}]", "real numbers", _described(value))
    if first is not None and array.shape != first:
        expected = f"the shape {first} that it returned at first"
        raise check.fail(f"record[{name!r}]", expected, f"shape {array.shape}")
    return array


def _like(name: str, given: Any, params: Params) -> None:
    """A dict of real arrays with the keys and shapes of ``params``."""
    if not isinstance(given, dict):
        raise check.fail(name, f"a dict with the keys {sorted(params)}", _described(given))
    if given.keys() != params.keys():
        expected = f"a dict with the keys {sorted(params)}"
        raise check.fail(name, expected, f"the keys {sorted(map(str, given))}")
    for key, array in given.items():
        _numbers(f"{name}[{key!r}]", array, params[key].shape, "that of the parameter")


def _numbers(name: str, given: Any, shape: tuple[int, ...], meaning: str) -> None:
    """Real numbers of exactly this shape."""
    array = np.asarray(given)
    if array.dtype.kind not in REAL:
        raise check.fail(name, "real numbers", _described(given))
    check.shape(name, array, shape, meaning)


def _copied(value: Any) -> Any:
    """Arrays copied, wherever they stand in dicts, lists and tuples."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(entry) for entry in value]
    return value


def _changed(given: Any, copies: Any, name: str = "") -> str:
    """The name of the first array or container that is no longer what was copied."""
    if isinstance(given, np.ndarray):
        same = given.shape == copies.shape and np.array_equal(given, copies, equal_nan=True)
        return "" if same else name
    if isinstance(given, dict):
        if given.keys() != copies.keys():
            return name
        at = "{}[{!r}]" if name else "{}{}"
        found = (_changed(given[key], copies[key], at.format(name, key)) for key in given)
        return next(filter(None, found), "")
    if isinstance(given, list | tuple):
        if len(given) != len(copies):
            return name
        pairs = enumerate(zip(given, copies, strict=True))
        found = (_changed(now, then, f"{name}[{k}]") for k, (now, then) in pairs)
        return next(filter(None, found), "")
    return "" if given is copies else name


def _kind(value: Any) -> str:
    return type(value).__name__


def _described(value: Any) -> str:
    """What came, in a few words."""
    if value is None or isinstance(value, str | bool | int | float | complex):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}, shape {value.shape}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a {_kind(value)}"
