"""Rules for training head and attention together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.models import Evaluation, Params
from attnlab.optim._rules import Plain, State, declare, over


@dataclass(frozen=True, repr=False)
class DecayedNormalizedGD(Plain):
    r"""Normalized steps that shrink with time, one power for the head and one for attention.

    $v\leftarrow v-\eta(t+1)^{-p_v}\,\nabla_v/\|\nabla_v\|$ and
    $W\leftarrow W-\eta(t+1)^{-p_W}\,\nabla_W/\|\nabla_W\|$, the update that the joint-training
    theorems analyse. At zero the gradient in $W$ is exactly zero; such a step moves nothing.

    Args:
        step_size: $\eta>0$.
        head_power: $p_v$, in the theorems from $[2/3,1)$.
        attention_power: $p_W$.
        decay: False drops both powers, the variant of Figure 3.

    Returns:
        A step rule.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.gaussian(n=10, T=2, d=100, rho=0.1, alpha=3.0, rng=0)
        >>> joint = models.Attention(loss="exponential", start="zero", train_head=True)
        >>> run = optim.train(joint, p, optim.DecayedNormalizedGD(0.002), steps=100)
        >>> import numpy as np
        >>> bool(np.linalg.norm(run.params["W"]) < 0.002 * np.sum(1 / np.arange(1.0, 101)))
        True

    Reference: bias, equation 10 (Theorems 2 to 4, Figure 3).
    """

    step_size: float
    head_power: float = 2.0 / 3.0
    attention_power: float = 1.0
    decay: bool = True

    def __post_init__(self) -> None:
        self._number("step_size", above=0.0)
        self._number("head_power", least=0.0)
        self._number("attention_power", least=0.0)
        check.flag("decay", self.decay)

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """No steps taken."""
        return {"count": 0}

    @declare(linear=True, scaled=True, uses_loss=False)
    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """One step, shorter than the last."""
        count = state["count"]
        moved = {}
        for name, p in params.items():
            power = self.head_power if name == "v" else self.attention_power
            length = self.step_size * (count + 1.0) ** (-power if self.decay else 0.0)
            moved[name] = p - at.times(name, over(length, at.norm(name)))
        return moved, {"count": count + 1}


@dataclass(frozen=True, repr=False)
class JointNormalizedGD(Plain):
    r"""Every parameter's gradient is divided by the norm of the whole one.

    $\theta\leftarrow\theta-\eta\,\nabla_\theta\mathcal L/\|\nabla_\theta\mathcal L\|$.

    Args:
        step_size: $\eta>0$, the length of a step in all parameters together.

    Returns:
        A step rule.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.gaussian(n=10, T=2, d=100, rho=0.1, alpha=3.0, rng=0)
        >>> joint = models.Attention(loss="exponential", start="zero", train_head=True)
        >>> run = optim.train(joint, p, optim.JointNormalizedGD(0.5), steps=1)
        >>> import numpy as np
        >>> round(float(np.linalg.norm(run.params["v"])), 12)  # W does not move on the first step
        0.5

    Reference: bias, Section 5 (joint NGD of Figure 3).
    """

    step_size: float

    def __post_init__(self) -> None:
        self._number("step_size", above=0.0)

    @declare(linear=True, scaled=True, uses_loss=False)
    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """One step of length ``step_size``."""
        logs = at.log_scales()
        top = np.max(list(logs.values()), axis=0)
        top = np.where(np.isfinite(top), top, 0.0)  # -inf is an exactly zero gradient
        shares = {k: np.exp(log - top) for k, log in logs.items()}
        whole = np.sqrt(sum(np.square(share * at.norm(k)) for k, share in shares.items()))
        factor = over(self.step_size, np.asarray(whole))
        return {k: p - at.times(k, factor * shares[k]) for k, p in params.items()}, state
