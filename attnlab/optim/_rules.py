r"""Step rules: frozen records with a pure ``step(params, at, state)``.

What is known at the point is an `Evaluation`, ``at``: the gradient of parameter ``k`` is
``at.grads[k] * exp(at.log_scale[k])``, because at saturation the plain one under- or overflows. A
normalized rule divides ``at.grads[k]`` by its own length and never forms the small number. With
several parameters each is normalized on its own; the two joint rules say so by name.
"""

from __future__ import annotations

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
