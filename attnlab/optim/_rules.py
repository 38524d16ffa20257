r"""Step rules: frozen records with a pure ``step(params, at, state)``.

What is known at the point is an `Evaluation`, ``at``: the gradient of parameter ``k`` is
``at.grads[k] * exp(at.log_scale[k])``, because at saturation the plain one under- or overflows. A
normalized rule divides ``at.grads[k]`` by its own length and never forms the small number. With
several parameters each is normalized on its own; the two joint rules say so by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from attnlab.checks import Array
from attnlab.models import Evaluation, Params

State: TypeAlias = dict[str, Any]


class Rule(Protocol):
    """What the training loop asks of a step rule: ``init`` and a pure ``step``.

    The three properties may be missing: such a rule is given plain gradients and the loss, in the
    model's own parameters. A rule of one's own::

        @dataclass(frozen=True)
        class SignDescent:
            size: float

            def init(self, model, problem, params):
                return {}

            def step(self, params, at, state):
                return {k: p - self.size * np.sign(at.grads[k]) for k, p in params.items()}, state
    """

    @property
    def linear(self) -> bool:
        """Whether updates are sums of past gradients with one factor for each trial."""

    @property
    def exact(self) -> bool:
        """Whether it wants gradients that do not cancel, on a scale of their own."""

    @property
    def uses_loss(self) -> bool:
        """Whether a step looks at the loss, not only at the gradient."""

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """The state before the first step."""

    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """The next parameters and state; nothing is changed in place."""


def over(numerator: Array | float, norm: Array) -> Array:
    """Numerator / norm, and 0 where the norm is 0: an exactly zero gradient moves nothing."""
    return np.asarray(numerator / np.where(norm > 0.0, norm, np.inf))


Factor: TypeAlias = Callable[[Evaluation, str], Array]


def by_factor(factor: Callable[[Any], Factor | None]) -> Callable[[Any], Any]:
    """Say of a ``step`` that it is ``p - factor * gradient``, one factor for each trial.

    The training loop may then take many such steps at once where nobody looks. Only the very
    function that says so is leapt over: what takes its place, or wraps it, is asked at each step.
    ``factor(rule)`` is None where the rule's settings make a step more than that.
    """

    def mark(step: Any) -> Any:
        step.by_factor = (step, factor)
        return step

    return mark


def factor_of(rule: Rule, state: State) -> Factor | None:
    """The factor that is the whole of a rule's step; None where a step is more than a factor."""
    step: Any = getattr(type(rule), "step", None)
    if state or "step" in getattr(rule, "__dict__", {}) or not hasattr(step, "by_factor"):
        return None
    original, factor = step.by_factor
    if step is not original:
        return None
    found: Factor | None = factor(rule)
    return found


class Plain:
    """A rule that uses exact gradients, moves linearly in them and carries no state."""

    linear: ClassVar[bool] = True
    exact: ClassVar[bool] = True
    uses_loss: ClassVar[bool] = False

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """The state before the first step."""
        return {}

    def __repr__(self) -> str:
        told = []
        for entry in fields(self):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            if entry.default is MISSING:
                told.append(f"{value!r}")
            elif value != entry.default:
                told.append(f"{entry.name}={value!r}")
        return f"{type(self).__name__}({', '.join(told)})"
