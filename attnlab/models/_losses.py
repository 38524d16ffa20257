r"""Classification losses $\ell(m)$ of the margin $m=y\,f$, with the forms that do not cancel.

Near its floor a loss is a difference of nearly equal numbers. `excess` gives
$\ell(b-\delta)-\ell(b)$ directly, and `log_slope` gives $\log|\ell'|$ where $\ell'$ underflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array


@dataclass(frozen=True)
class Loss:
    r"""A decreasing loss of the margin.

    Args:
        name: what a model's ``loss`` calls it.
        value: $\ell(m)$.
        slope: $\ell'(m)$, negative.
        bend: $\ell''(m)$.
        log_slope: $\log|\ell'(m)|$, where $\ell'$ underflows.
        excess: $\ell(b-\delta)-\ell(b)$ of $b$ and $\delta$, without cancellation.
        bounded: whether it is bounded below by 0.
        near_slope: $\ell'(m)$ again, of margins that are known to be within 700 of 0.

    Returns:
        A frozen record; its functions take arrays.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models
        >>> loss = models.losses()["exponential"]
        >>> f"{loss.excess(np.array(40.0), np.array(1e-9)):.6e}"  # both losses are about 4e-18
        '4.248354e-27'
    """

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    bend: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]
    excess: Callable[[Array, Array], Array]
    bounded: bool
    near_slope: Callable[[Array], Array]


def softplus(x: Array) -> Array:
    """log(1 + e^x) without overflow."""
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), accurate in both tails; below -700 the value is e^-700."""
    e = np.exp(np.minimum(-x, 700.0))
    e += 1.0
    return np.asarray(1.0 / e)


def _logistic_slope(m: Array) -> Array:
    """-1 / (1 + e^m)."""
    return _logistic_near_slope(np.minimum(m, 700.0))


def _logistic_near_slope(m: Array) -> Array:
    """The same where e^m does not overflow."""
    e = np.exp(m)
    e += 1.0
    return np.asarray(np.divide(-1.0, e, out=e))


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss(
            "logistic",
            value=lambda m: softplus(-m),
            slope=_logistic_slope,
            bend=lambda m: _sigmoid(-m) * _sigmoid(m),
            log_slope=lambda m: -softplus(m),
            # (1 + e^-(b-delta)) / (1 + e^-b) = 1 + (e^delta - 1) sigmoid(-b); for large delta
            # the difference itself is safe
            excess=lambda b, delta: np.where(
                delta < 30.0,
                np.log1p(np.expm1(np.minimum(delta, 30.0)) * _sigmoid(-b)),
                softplus(delta - b) - softplus(-b),
            ),
            bounded=True,
            near_slope=_logistic_near_slope,
        ),
        Loss(
            "exponential",
            value=lambda m: np.exp(-m),
            slope=lambda m: -np.exp(-m),
            bend=lambda m: np.exp(-m),
            log_slope=lambda m: -m,
            excess=lambda b, delta: np.exp(-b) * np.expm1(delta),
            bounded=True,
            near_slope=lambda m: -np.exp(-m),
        ),
        Loss(
            "correlation",
            value=lambda m: -m,
            slope=lambda m: np.full_like(m, -1.0),
            bend=lambda m: np.zeros_like(m),
            log_slope=lambda m: np.zeros_like(m),
            excess=lambda best, delta: np.broadcast_to(delta, best.shape),
            bounded=False,
            near_slope=lambda m: np.full_like(m, -1.0),
        ),
    )
}


def losses() -> dict[str, Loss]:
    r"""The classification losses by name, functions of the margin $m=y\,f$.

    ``"logistic"`` is $\log(1+e^{-m})$, ``"exponential"`` $e^{-m}$, ``"correlation"`` $-m$.

    Returns:
        A dict of `Loss`.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models
        >>> for loss in models.losses().values():
        ...     print(loss.name, loss.slope(np.zeros(1)))
        logistic [-0.5]
        exponential [-1.]
        correlation [-1.]

    Reference: svm, Assumption A; multihead, Section 3; bias, Section 2.
    """
    return _Losses(LOSSES)


class _Losses(dict[str, Loss]):
    """Names that are not there are complained about like any other argument."""

    def __missing__(self, name: object) -> Loss:
        return self[check.choice("loss", name, self)]


def check_labels(problem: Any, loss: str) -> None:
    """Classification losses need labels +1 and -1."""

    def look() -> bool:
        if not (np.abs(problem.y) == 1.0).all():
            odd = problem.y[np.abs(problem.y) != 1.0].ravel()[0]
            raise check.fail("y", f"labels +1 or -1 for the {loss} loss", f"{odd:g}")
        return True

    problem.memo("labels are signs", look)
