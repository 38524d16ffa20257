r"""Step rules: frozen records with a pure ``step(params, grads, loss, state)``.

At saturation the plain gradient under- or overflows. What a rule is handed there is an
`Evaluation`: the gradient of parameter ``k`` is ``grads[k] * exp(at.log_scale[k])``. A normalized
rule then divides ``grads[k]`` by its own length and never forms the small number. With several
parameters each is normalized on its own; the two joint rules say so by name.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from attnlab.checks import Array, BoolArray
from attnlab.models import Evaluation, Params

State: TypeAlias = dict[str, Any]


class Rule(Protocol):
    """What the training loop asks of a step rule."""

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

    def step(
        self, params: Params, grads: Params, loss: Array, state: State, at: Evaluation | None = None
    ) -> tuple[Params, State]:
        """The next parameters and state; nothing is changed in place."""


def expand(scale: Array | BoolArray | float, array: Array) -> Array:
    """A factor for each trial, shaped to multiply that trial's entries."""
    factor: Array = np.asarray(scale)
    return factor.reshape(factor.shape + (1,) * (array.ndim - factor.ndim))


def lengths(grads: Params, loss: Array, at: Evaluation | None = None) -> dict[str, Array]:
    """Norm of each gradient as given (without its scale), one number a trial."""
    if at is not None and at.norms is not None:
        return at.norms
    flat = {name: g.reshape(*np.shape(loss), 1, -1) for name, g in grads.items()}
    return {name: np.sqrt((g @ g.swapaxes(-1, -2))[..., 0, 0]) for name, g in flat.items()}


def over(numerator: Array | float, norm: Array) -> Array:
    """Numerator / norm, and 0 where the norm is 0: an exactly zero gradient moves nothing."""
    return np.asarray(numerator / np.where(norm > 0.0, norm, np.inf))


def scale(at: Evaluation | None, name: str, like: Array) -> Array:
    """exp(log_scale) of one parameter; 1 for plain gradients."""
    if at is None or at.log_scale is None:
        return np.ones_like(like)
    return np.asarray(np.exp(at.log_scale[name]))


def true_gradients(grads: Params, loss: Array, at: Evaluation | None) -> Params:
    """The gradients themselves; what underflows to zero here is negligible."""
    if at is None or at.log_scale is None:
        return grads
    return {name: g * expand(scale(at, name, loss), g) for name, g in grads.items()}


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
