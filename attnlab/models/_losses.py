r"""Classification losses $\ell(m)$ of the margin $m=y\,f$, with the forms that do not cancel.

Near its floor a loss is a difference of nearly equal numbers. `excess` gives
$\ell(b-\delta)-\ell(b)$ directly, and `log_slope` gives $\log|\ell'|$ where $\ell'$ underflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array


class Constants(NamedTuple):
    """What Assumption A of the svm paper asks of a loss on an interval."""

    lipschitz: Array  # M_0, the Lipschitz constant of l'
    steepest: Array  # M_1 = max |l'|
    flattest: Array  # min |l'|, above 0 where the loss is strictly decreasing


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

    def constants(self, low: ArrayLike = -np.inf, high: ArrayLike = np.inf) -> Constants:
        r"""$M_0$, $M_1$ and the least slope on an interval of margins: svm, Assumption A.

        On the whole line the logistic loss has $M_0=1/4$ and $M_1=1$, the correlation loss $0$ and
        $1$; the exponential loss has constants only where margins are bounded below.
        """
        low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        if not (low <= high).all():
            raise check.fail("low", "at most high", f"{low} with high = {high}")
        if self.name == "correlation":
            one = np.ones(low.shape)
            return Constants(0.0 * one, one, one)
        if self.name == "exponential":
            if (low == -np.inf).any():
                text = "a finite number: e^-u has no constants on the whole line"
                raise check.fail("low", text, f"{low}")
            steep = np.asarray(np.exp(-low))
            return Constants(steep, steep, np.asarray(np.exp(-high)))
        steep, flat = (np.asarray(0.5 * (1.0 - np.tanh(end / 2.0))) for end in (low, high))
        inner = np.clip(0.0, low, high)  # l'' is largest where |u| is least
        top = np.asarray(0.25 * (1.0 - np.tanh(inner / 2.0) ** 2))
        return Constants(top, steep, flat)


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
        ),
        Loss(
            "exponential",
            value=lambda m: np.exp(-m),
            slope=lambda m: -np.exp(-m),
            bend=lambda m: np.exp(-m),
            log_slope=lambda m: -m,
            excess=lambda b, delta: np.exp(-b) * np.expm1(delta),
            bounded=True,
        ),
        Loss(
            "correlation",
            value=lambda m: -m,
            slope=lambda m: np.full_like(m, -1.0),
            bend=lambda m: np.zeros_like(m),
            log_slope=lambda m: np.zeros_like(m),
            excess=lambda best, delta: np.broadcast_to(delta, best.shape),
            bounded=False,
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
        >>> models.losses()["logistic"].constants()  # the svm paper's M_0 and M_1
        Constants(lipschitz=array(0.25), steepest=array(1.), flattest=array(0.))

    Reference: svm, Assumption A; multihead, Section 3; bias, Section 2.
    """
    return dict(LOSSES)


def check_labels(problem: Any, loss: str) -> None:
    """Classification losses need labels +1 and -1."""

    def look() -> bool:
        if not (np.abs(problem.y) == 1.0).all():
            odd = problem.y[np.abs(problem.y) != 1.0].ravel()[0]
            raise check.fail("y", f"labels +1 or -1 for the {loss} loss", f"{odd:g}")
        return True

    problem.memo("labels are signs", look)
