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
    r"""What is known at one point: loss and gradient, in a form that survives saturation.

    The true gradient of parameter ``k`` is ``grads[k] * exp(log_scale[k])``: a normalized step
    needs only ``grads[k]``, and nothing is lost where the gradient itself underflows. It is what a
    step rule is given as ``at``.

    Args:
        loss: mean loss, shape of the trials.
        grads: gradients, up to their scale.
        log_scale: log of the scale of each gradient, shape of the trials; None where it is 1.
        log_excess: log of the loss above its floor; None where no floor is known.
        norms: norms of ``grads``, where they are known more cheaply than from the arrays.
        attention: attention maps, where the model has them at hand.

    Returns:
        A frozen record.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models, problems
        >>> p, model = problems.two_token(), models.Attention()
        >>> found = model.evaluate({"W": np.diag([1000.0, 0.0])}, p)
        >>> round(float(found.log_scale["W"])), float(found.grads["W"][0, 0])
        (-1001, -1.0)
        >>> float(found.norm("W")), float(found.gradient("W")[0, 0])  # e^-1001 is 0 in float64
        (1.0, -0.0)

    Reference: CONTRIBUTING, contracts; svm, Appendix F.
    """

    loss: Array
    grads: Params
    log_scale: dict[str, Array] | None = None
    log_excess: Array | None = None
    norms: dict[str, Array] | None = None
    attention: Array | None = None

    def norm(self, name: str) -> Array:
        """Norm of one gradient as carried, without its scale, one number a trial."""
        if self.norms is not None:
            return self.norms[name]
        flat = self.grads[name].reshape(*np.shape(self.loss), 1, -1)
        return np.asarray(np.sqrt((flat @ flat.swapaxes(-1, -2))[..., 0, 0]))

    def scale(self, name: str) -> Array:
        """What the carried gradient is to be multiplied by, one number a trial."""
        if self.log_scale is None:
            return np.ones_like(self.loss)
        return np.asarray(np.exp(self.log_scale[name]))

    def log_scales(self) -> dict[str, Array]:
        """Log of the scale of each gradient; 0 for plain ones."""
        if self.log_scale is not None:
            return self.log_scale
        return {name: np.zeros_like(self.loss) for name in self.grads}

    def times(self, name: str, factor: Array | float) -> Array:
        """The carried gradient times a factor for each trial."""
        return np.asarray(check.expand(factor, self.grads[name]) * self.grads[name])

    def gradient(self, name: str) -> Array:
        """The gradient itself; what underflows to zero here is negligible."""
        return self.grads[name] if self.log_scale is None else self.times(name, self.scale(name))


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


def fit(model: Model, params: Any, problem: Any, *, copy: bool = True) -> Params:
    """Parameters as float64 arrays of the shapes that the model has on the problem.

    Args:
        model: any model.
        params: a dict of arrays; missing leading axes are repeated.
        problem: the data, whose trials are the leading axes.
        copy: False gives back the very dict where it fits as it is, unread.

    Returns:
        A dict of finite arrays, each of shape ``(..., *shape)``; what does not fit is named.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models, problems
        >>> p = problems.sphere(n=5, T=5, d=8, trials=100, rng=0)
        >>> models.fit(models.Attention(), {"W": np.eye(8)}, p)["W"].shape
        (100, 8, 8)
        >>> models.fit(models.Attention(), {"W": np.eye(9)}, p)
        Traceback (most recent call last):
        ValueError: params['W']: expected shape (100, 8, 8), got shape (9, 9)
    """
    expected = model.shapes(problem)
    if not copy and _ready(params, expected, problem.trials):
        return params  # type: ignore[no-any-return]
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


def _ready(params: Any, expected: dict[str, tuple[int, ...]], trials: tuple[int, ...]) -> bool:
    """Whether the parameters are arrays of the full shapes already."""
    return (
        isinstance(params, dict)
        and params.keys() == expected.keys()
        and all(
            isinstance(params[name], np.ndarray)
            and params[name].dtype == np.float64
            and params[name].shape == trials + tail
            for name, tail in expected.items()
        )
    )


def draws(start: str, rng: Rng | None) -> np.random.Generator:
    """The generator for a random start; a missing one is named."""
    if rng is None:
        raise check.fail("rng", f"a seed or generator, because the start {start!r} draws", None)
    return check.generator(rng, "start")


def kind(problem: Any, wanted: type, model: str) -> None:
    """Complain where a model is given the other kind of problem."""
    if not isinstance(problem, wanted):
        raise check.fail("problem", f"a {wanted.__name__} for {model}", type(problem).__name__)
