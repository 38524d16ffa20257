"""Rules that remember past gradients: Momentum, Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.models import Evaluation, Params
from attnlab.optim._rules import Plain, State, declare


@dataclass(frozen=True, repr=False)
class Momentum(Plain):
    r"""Heavy ball, $m\leftarrow\beta m+\nabla\mathcal L$, $\theta\leftarrow\theta-\eta m$.

    Args:
        step_size: $\eta>0$.
        momentum: $\beta\in[0,1)$.

    Returns:
        A step rule.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.planted(n=200, rng=0)
        >>> run = optim.train(models.MultiHead(heads=4), p, optim.Momentum(2.0, 0.9), steps=50)
        >>> bool(run.history["loss"][-1] < run.history["loss"][0])
        True

    Reference: multihead, Appendix G (Figure 5, left).
    """

    step_size: float
    momentum: float = 0.9

    def __post_init__(self) -> None:
        self._number("step_size", above=0.0)
        self._number("momentum", least=0.0, below=1.0)

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """Zero momentum."""
        return {name: np.zeros_like(p) for name, p in params.items()}

    @declare(linear=True, scaled=True, uses_loss=False)
    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """One step along the accumulated gradient."""
        kept = {name: self.momentum * state[name] + at.gradient(name) for name in params}
        return {name: p - self.step_size * kept[name] for name, p in params.items()}, kept


@dataclass(frozen=True, repr=False)
class Adam(Plain):
    r"""Adam with bias correction.

    Args:
        step_size: $\eta>0$.
        beta1: decay of the mean, in $[0,1)$.
        beta2: decay of the mean square, in $[0,1)$.
        eps: added to the root of the mean square.

    Returns:
        A step rule.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.tokenized_mixture(n=100, rng=0)
        >>> run = optim.train(models.MultiHead(heads=4), p, optim.Adam(0.02), steps=100)
        >>> bool(run.history["loss"][-1] < 0.01)
        True

    Reference: Kingma and Ba (2015); multihead, Appendix G (Figures 3 and 5, right).
    """

    step_size: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        self._number("step_size", above=0.0)
        self._number("beta1", least=0.0, below=1.0)
        self._number("beta2", least=0.0, below=1.0)
        self._number("eps", above=0.0)

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """Zero moments and no steps taken."""
        zero = {name: np.zeros_like(p) for name, p in params.items()}
        return {"mean": zero, "square": dict(zero), "count": 0}

    @declare(scaled=True, uses_loss=False)
    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """One step of about ``step_size`` in every entry."""
        true, count = {k: at.gradient(k) for k in params}, state["count"] + 1
        b1, b2 = self.beta1, self.beta2
        mean = {k: b1 * state["mean"][k] + (1.0 - b1) * g for k, g in true.items()}
        square = {k: b2 * state["square"][k] + (1.0 - b2) * g * g for k, g in true.items()}
        moved = {}
        for name, p in params.items():
            unbiased = mean[name] / (1.0 - b1**count)
            root = np.sqrt(square[name] / (1.0 - b2**count))
            moved[name] = p - self.step_size * unbiased / (root + self.eps)
        return moved, {"mean": mean, "square": square, "count": count}
