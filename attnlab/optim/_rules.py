r"""Step rules: frozen records with a pure ``step(params, at, state)``.

What is known at the point is an `Evaluation`, ``at``: the gradient of parameter ``k`` is
``at.grads[k] * exp(at.log_scale[k])``, because at saturation the plain one under- or overflows. A
normalized rule divides ``at.grads[k]`` by its own length and never forms the small number. With
several parameters each is normalized on its own; the two joint rules say so by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Evaluation, Params

State: TypeAlias = dict[str, Any]


class Rule(Protocol):
    """What the training loop asks of a step rule: ``init`` and a pure ``step``.

    A rule of your own needs these two methods, and nothing else::

        @dataclass(frozen=True)
        class SignDescent:
            size: float

            def init(self, model, problem, params):
                return {}

            def step(self, params, at, state):
                return {k: p - self.size * np.sign(at.grads[k]) for k, p in params.items()}, state

    ``at.grads[k]`` is the gradient of parameter ``k``, formed without cancellation where the model
    can do so, and ``at.loss`` is the loss. A rule with the attribute ``exact = False`` is given
    gradients by the textbook formula, which cancel at saturation. What else is true of a step, and
    lets `train` go faster or further, is declared on the function itself: see `declare`.
    """

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """The state before the first step."""

    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """The next parameters and state; nothing is changed in place."""


Factor: TypeAlias = Callable[[Evaluation, str], Array]


class Declaration(NamedTuple):
    """What is true of one step function."""

    linear: bool = False
    scaled: bool = False
    uses_loss: bool = True
    factor: Callable[[Any], Factor | None] | None = None


def declare(
    *,
    linear: bool = False,
    scaled: bool = False,
    uses_loss: bool = True,
    factor: Callable[[Any], Factor | None] | None = None,
) -> Callable[[Any], Any]:
    r"""Declare what is true of a ``step``, so that `train` may go faster or further.

    A declaration belongs to the very function that it decorates. A subclass with another ``step``,
    a wrapper, or a function put in its place does not inherit it, and trains by the plain loop.

    Args:
        linear: every update is a sum of past gradients, each times one number per trial. `train`
            may then work with logits in the place of W.
        scaled: the step takes the scale of a gradient into account: ``at.grads[k]`` comes without
            it, and the gradient is ``at.gradient(k)``, or ``at.grads[k]`` times ``at.scale(k)``.
            Nothing underflows then, however far attention has saturated.
        uses_loss: False says that the step does not read ``at.loss``, which is then not computed.
        factor: a function of the rule; it returns the function ``(at, name) -> factor`` of a step
            that is ``p - factor * at.grads[name]`` without state, or None where the rule's settings
            make the step more than that. `train` may then take many such steps at once.

    Returns:
        A decorator for ``step``.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models, optim, problems
        >>> class UnitSteps:
        ...     def init(self, model, problem, params):
        ...         return {}
        ...
        ...     @optim.declare(linear=True, scaled=True, uses_loss=False)
        ...     def step(self, params, at, state):
        ...         return {k: p - at.times(k, 0.1 / at.norm(k)) for k, p in params.items()}, state
        >>> p = problems.two_token()
        >>> run = optim.train(models.Attention(start="zero"), p, UnitSteps(), steps=8_000)
        >>> round(float(run.params["W"][0, 0]), 6)  # the gradient is about e^-800 by then
        800.0
    """

    def mark(step: Any) -> Any:
        step.declaration = (step, Declaration(linear, scaled, uses_loss, factor))
        return step

    return mark


def declared(rule: Rule) -> Declaration:
    """What was declared of the very function that is the rule's step; else nothing is.

    Attributes of a class are inherited and ``functools.wraps`` copies those of a function, so the
    declaration names the function that it is about.
    """
    own = getattr(rule, "__dict__", {})
    step: Any = own["step"] if "step" in own else getattr(type(rule), "step", None)
    about, declaration = getattr(step, "declaration", (None, None))
    return declaration if about is step and declaration is not None else Declaration()


def factor_of(rule: Rule, state: State) -> Factor | None:
    """The factor that is the whole of a rule's step; None where a step is more than a factor."""
    factor = declared(rule).factor
    return None if state or factor is None else factor(rule)


def without_scale(at: Evaluation) -> Evaluation:
    """The same evaluation with the gradient itself in ``grads``, for steps that know no scale."""
    if at.log_scale is None:
        return at
    return replace(at, grads={k: at.gradient(k) for k in at.grads}, log_scale=None, norms=None)


def over(numerator: Array | float, norm: Array) -> Array:
    """Numerator / norm, and 0 where the norm is 0: an exactly zero gradient moves nothing."""
    return np.asarray(numerator / np.where(norm > 0.0, norm, np.inf))


class Plain:
    """Base of attnlab's rules: no state, and a ``repr`` that shows what differs from defaults."""

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """The state before the first step."""
        return {}

    def _number(self, name: str, **bounds: float) -> None:
        """Check a setting and keep it as a float: logarithms of small integers have few digits."""
        object.__setattr__(self, name, check.number(name, getattr(self, name), **bounds))

    def __repr__(self) -> str:
        told = []
        for entry in fields(self):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            if entry.default is MISSING:
                told.append(f"{value!r}")
            elif value != entry.default:
                told.append(f"{entry.name}={value!r}")
        return f"{type(self).__name__}({', '.join(told)})"
