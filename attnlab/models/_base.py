"""What every model offers the training loop: parameters, values, gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, Rng

Params: TypeAlias = dict[str, Array]


@dataclass(frozen=True)
class Evaluation:
    r"""Loss and gradient at one point, in a form that survives saturation.

    The true gradient of parameter ``k`` is ``grads[k] * exp(log_scale[k])``: a normalized step
    needs only ``grads[k]``, and nothing is lost where the gradient itself underflows.

    Args:
        loss: mean loss, shape of the trials.
        grads: gradients, up to their scale.
        log_scale: log of the scale of each gradient, shape of the trials; None where it is 1.
        log_excess: log of the loss above its floor; None where no floor is known.
        norms: norms of ``grads``, where they are known more cheaply than from the arrays.
        attention: attention maps, where they come along.

    Returns:
        A frozen record.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models, problems
        >>> p, model = problems.two_token(), models.Attention()
        >>> found = model.evaluate({"W": np.diag([1000.0, 0.0])}, p)
        >>> round(float(found.log_scale["W"])), float(found.grads["W"][0, 0])
        (-1001, -1.0)

    Reference: CONTRIBUTING, contracts; svm, Appendix F.
    """

    loss: Array
    grads: Params
    log_scale: dict[str, Array] | None = None
    log_excess: Array | None = None
    norms: dict[str, Array] | None = None  # of grads, where they are known more cheaply
    attention: Any = None  # whatever the model can reuse for recording


class Model(Protocol):
    """A frozen record of hyper-parameters; parameters are a plain dict of arrays."""

    def shapes(self, problem: Any) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter of one trial."""

    def init(self, problem: Any, rng: Rng | None = None) -> Params:
        """Parameters to start from."""

    def forward(self, params: Params, problem: Any) -> Array:
        """Outputs, shape ``(..., n)``."""

    def attention(self, params: Params, problem: Any) -> Array:
        """Attention maps."""

    def value_and_grad(self, params: Params, problem: Any) -> tuple[Array, Params]:
        """Loss, one number a trial, and its gradient."""


def fit(model: Model, params: Any, problem: Any) -> Params:
    """Parameters as float64 arrays of the right shapes; missing leading axes are repeated."""
    expected = model.shapes(problem)
    if not isinstance(params, dict):
        raise check.fail("params", "a dict of arrays", type(params).__name__)
    if set(params) != set(expected):
        raise check.fail("params", f"the keys {sorted(expected)}", sorted(map(str, params)))
    fitted: Params = {}
    for name, tail in expected.items():
        array = check.frozen(f"params[{name!r}]", params[name])
        full = problem.trials + tail
        if array.shape not in (tail, full):
            raise check.fail(f"params[{name!r}]", f"shape {full}", f"shape {array.shape}")
        fitted[name] = np.array(np.broadcast_to(array, full), order="C")
    return fitted


def fitted(model: Model, params: Any, problem: Any) -> Params:
    """The parameters themselves where they fit as they are, and `fit` where they do not."""
    expected = model.shapes(problem)
    ready = (
        isinstance(params, dict)
        and params.keys() == expected.keys()
        and all(
            isinstance(params[name], np.ndarray)
            and params[name].dtype == np.float64
            and params[name].shape == problem.trials + tail
            for name, tail in expected.items()
        )
    )
    return params if ready else fit(model, params, problem)


def draws(start: str, rng: Rng | None) -> np.random.Generator:
    """The generator for a random start; a missing one is named."""
    if rng is None:
        raise check.fail("rng", f"a seed or generator, because the start {start!r} draws", None)
    return check.generator(rng, "start")


def kind(problem: Any, wanted: type, model: str) -> None:
    """Complain where a model is given the other kind of problem."""
    if not isinstance(problem, wanted):
        raise check.fail("problem", f"a {wanted.__name__} for {model}", type(problem).__name__)
