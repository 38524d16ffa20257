"""Where a step is computed: in the parameters, or in the space of logits.

An engine turns parameters into what the loop moves, evaluates loss and gradient there, and turns
back. Rules see arrays with trials first and never know which engine they drive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np

from attnlab.checks import Array
from attnlab.models import Attention, Evaluation, Model, Params
from attnlab.optim import _returned as returned
from attnlab.optim._logits import Logits
from attnlab.optim._rules import Factor, Rule, State


class Engine(Protocol):
    """Loss and gradient at a point, in coordinates of the engine's choice."""

    @property
    def model(self) -> Model:
        """What is trained."""

    @property
    def problem(self) -> Any:
        """What it is trained on."""

    def enter(self, params: Params) -> Params:
        """From the model's parameters."""

    def leave(self, point: Params) -> Params:
        """Back to the model's parameters."""

    def leave_state(self, state: State) -> State:
        """The rule's memory, back in the model's parameters."""

    def evaluate(self, point: Params, with_loss: bool) -> Evaluation:
        """Loss and gradient."""

    def norms(self, point: Params) -> Params:
        """Norm of each parameter, one number a trial."""

    def attention(self, point: Params, found: Evaluation) -> Array:
        """Attention maps at a point, from what was found there where that helps."""

    def leap(self, point: Params, factor: Factor, steps: int) -> Params | None:
        """Many steps by a factor at once, with the bits of single ones; None: it cannot."""


class Direct:
    """Steps in the parameters themselves; fits every model and rule."""

    def __init__(self, model: Model, problem: Any, rule: Rule) -> None:
        self.model, self.problem = model, problem
        self.exact = getattr(rule, "exact", True)
        self.checked = False  # whether an answer of the model has been looked at

    def enter(self, params: Params) -> Params:
        """The parameters."""
        return params

    def leave(self, point: Params) -> Params:
        """The parameters."""
        return point

    def leave_state(self, state: State) -> State:
        """The state."""
        return state

    def evaluate(self, point: Params, with_loss: bool) -> Evaluation:
        """Loss and gradient, without cancellation unless the rule declines or the model cannot."""
        model: Any = self.model
        if self.exact and has_own_evaluate(model):
            found: Evaluation = model.evaluate(point, self.problem)
            if not self.checked:
                returned.evaluation(model, self.problem, point, found)
        else:
            answer = model.value_and_grad(point, self.problem)
            if not self.checked:
                returned.value_and_grad(model, self.problem, point, answer)
            found = Evaluation(*answer)
        self.checked = True
        return replace(found, norms={name: found.norm(name) for name in found.grads})

    def norms(self, point: Params) -> Params:
        """Norm of each parameter, measured like a gradient."""
        measured = Evaluation(np.empty(self.problem.trials), point)
        return {name: measured.norm(name) for name in point}

    def attention(self, point: Params, found: Evaluation) -> Array:
        """Attention maps."""
        if found.attention is not None:
            return found.attention
        return returned.attention(self.model, point, self.problem)

    def leap(self, point: Params, factor: Factor, steps: int) -> Params | None:
        """Nothing would be gained."""
        return None


def has_own_evaluate(model: Any) -> bool:
    """Whether ``evaluate`` is about this model's ``value_and_grad``.

    A subclass of `Attention` with a ``value_and_grad`` of its own (a penalty, say) inherits an
    ``evaluate`` that knows nothing of it, and so does a wrapper that passes on attributes.
    """
    for names in (getattr(model, "__dict__", {}), *(vars(kind) for kind in type(model).__mro__)):
        if "evaluate" in names:
            return True
        if "value_and_grad" in names:
            return False
    return False


def engine_for(model: Model, problem: Any, rule: Rule, state: State | None) -> Engine:
    """The cheaper engine that fits."""
    if Logits.fits(model, problem, rule, state):
        return Logits(cast(Attention, model), problem, rule)
    return Direct(model, problem, rule)
