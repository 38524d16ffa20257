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
    """A decreasing loss of the margin."""

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]  # l'(m), negative
    log_slope: Callable[[Array], Array]  # log |l'(m)|
    excess: Callable[[Array, Array], Array]  # l(b - delta) - l(b), from b and delta
    bounded: bool  # bounded below by 0


def softplus(x: Array) -> Array:
    """log(1 + e^x) without overflow."""
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), accurate in both tails; below -700 the value is e^-700."""
    e = np.exp(np.minimum(-x, 700.0))
    e += 1.0
    return np.asarray(1.0 / e)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss(
            "logistic",
            value=lambda m: softplus(-m),
            slope=lambda m: -_sigmoid(-m),
            log_slope=lambda m: -softplus(m),
            # (1 + e^-(b-delta)) / (1 + e^-b) = 1 + (e^delta - 1) sigmoid(-b); for large delta
            # the difference itself is safe
            excess=lambda b, delta: np.where(
                delta < 30.0,
                np.log1p(np.expm1(np.minimum(delta, 30.0)) * _sigmoid(-b)),
                softplus(delta - b) - softplus(-b),
            ),
            bounded=True,
        ),
        Loss(
            "exponential",
            value=lambda m: np.exp(-m),
            slope=lambda m: -np.exp(-m),
            log_slope=lambda m: -m,
            excess=lambda b, delta: np.exp(-b) * np.expm1(delta),
            bounded=True,
        ),
        Loss(
            "correlation",
            value=lambda m: -m,
            slope=lambda m: np.full_like(m, -1.0),
            log_slope=lambda m: np.zeros_like(m),
            excess=lambda best, delta: np.broadcast_to(delta, best.shape),
            bounded=False,
        ),
    )
}


def check_labels(problem: Any, loss: str) -> None:
    """Classification losses need labels +1 and -1."""

    def look() -> bool:
        if not (np.abs(problem.y) == 1.0).all():
            odd = problem.y[np.abs(problem.y) != 1.0].ravel()[0]
            raise check.fail("y", f"labels +1 or -1 for the {loss} loss", f"{odd:g}")
        return True

    problem.memo("labels are signs", look)
