"""Rules without memory, and normalized descent: GD, NormalizedGD, PolyakStep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Evaluation, Params
from attnlab.optim._rules import Factor, Plain, State, declare, over

MACHINE_EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True, repr=False)
class GD(Plain):
    r"""Gradient descent, $\theta\leftarrow\theta-\eta\,\nabla\mathcal L$.

    Args:
        step_size: $\eta>0$.

    Returns:
        A step rule.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.tokenized_mixture(n=100, rng=0)
        >>> run = optim.train(models.MultiHead(heads=4), p, optim.GD(1.0), steps=100)
        >>> bool(run.history["loss"][-1] < 0.02)
        True

    Reference: multihead, Section 3; encoder, Algorithm 1; svm, W-GD and KQ-GD.
    """

    step_size: float

    def __post_init__(self) -> None:
        self._number("step_size", above=0.0)

    @declare(linear=True, scaled=True, uses_loss=False, factor=lambda rule: _times_step_size(rule))
    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """One step against the gradient."""
        factor = _times_step_size(self)
        return {k: p - at.times(k, factor(at, k)) for k, p in params.items()}, state


def _times_step_size(rule: GD) -> Factor:
    """What a step of GD multiplies the carried gradient by, one number per trial."""
    return lambda at, name: np.asarray(rule.step_size * at.scale(name))


@dataclass(frozen=True, repr=False)
class NormalizedGD(Plain):
    r"""Normalized gradient descent: steps of one length, whatever the gradient's.

    $\theta\leftarrow\theta-\eta\,\nabla\mathcal L/\|\nabla\mathcal L\|$, each parameter on its own.
    With momentum $\beta$ the unit gradient $g$ enters $m\leftarrow\beta m+g$ (heavy ball) or
    $m\leftarrow\beta m+(1-\beta)g$ (``averaged``), and the step is $\eta m$. The default stays
    exact when softmax saturates; ``recipe="paper"`` is the authors' update $g/(\|g\|+\epsilon)$
    on plain float64 gradients, which stalls there. For K and Q that recipe also carries their
    penalty $\lambda(\|K\|_F^2+\|Q\|_F^2)$: what freezes the product, and what turns it
    towards the nuclear direction once the gradient itself has drowned.

    Args:
        step_size: $\eta>0$, the length of a step.
        momentum: $\beta\in[0,1)$.
        averaged: use the averaged form of momentum.
        max_step: cap on $\eta/\|\nabla\mathcal L\|$.
        recipe: ``"exact"`` or ``"paper"``.
        eps: $\epsilon$ of the paper's recipe.
        penalty: $\lambda$ of the paper's recipe for K and Q.

    Returns:
        A step rule.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.two_token()
        >>> model = models.Attention(loss="exponential", start="zero")
        >>> run = optim.train(model, p, optim.NormalizedGD(0.1), steps=100)
        >>> round(float(run.params["W"][0, 0]), 12)  # W grows by the step, whatever the loss
        10.0

    Reference: bias, equation 2; svm, Appendix F.
    """

    step_size: float
    momentum: float = 0.0
    averaged: bool = False
    max_step: float | None = None
    recipe: str = "exact"
    eps: float = MACHINE_EPSILON
    penalty: float = MACHINE_EPSILON

    def __post_init__(self) -> None:
        self._number("step_size", above=0.0)
        self._number("momentum", least=0.0, below=1.0)
        check.flag("averaged", self.averaged)
        if self.max_step is not None:
            self._number("max_step", above=0.0)
        check.choice("recipe", self.recipe, ("exact", "paper"))
        self._number("eps", least=0.0)
        self._number("penalty", least=0.0)

    @property
    def exact(self) -> bool:
        """Whether gradients are formed without cancellation."""
        return self.recipe == "exact"

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """Zero momentum."""
        return {name: np.zeros_like(p) for name, p in params.items()} if self.momentum else {}

    @declare(
        linear=True,
        scaled=True,
        uses_loss=False,
        factor=lambda rule: None if rule.momentum else _to_length(rule),
    )
    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """One step of length ``step_size`` (shorter where the cap binds)."""
        moved, kept, factor = {}, {}, _to_length(self)
        if self.recipe == "paper" and self.penalty and {"K", "Q"} <= params.keys():
            factors = {k: at.grads[k] + 2.0 * self.penalty * params[k] for k in ("K", "Q")}
            at = Evaluation(at.loss, at.grads | factors)
        for name, p in params.items():
            push = at.times(name, factor(at, name))
            if not self.momentum:
                moved[name] = np.subtract(p, push, out=push)
                continue
            kept[name] = self.momentum * state[name] + push
            moved[name] = p - kept[name]
        return moved, kept


def _to_length(rule: NormalizedGD) -> Factor:
    """What a normalized step multiplies the carried gradient by, one number per trial."""

    def factor(at: Evaluation, name: str) -> Array:
        norm = at.norm(name)
        length: Array | float = rule.step_size
        if rule.max_step is not None:
            length = np.minimum(length, rule.max_step * norm * at.scale(name))
        if rule.averaged:
            length = (1.0 - rule.momentum) * length
        if rule.recipe == "paper" and rule.eps:
            return np.asarray(length / (norm + rule.eps))  # never by 0
        return over(length, norm)

    return factor


@dataclass(frozen=True, repr=False)
class PolyakStep(Plain):
    r"""Polyak's step, $\eta_t=(\mathcal L-\mathcal L_\star)/(2\|\nabla\mathcal L\|^2)$, capped.

    The floor $\mathcal L_\star$ is given, or derived from the problem (all attention on the
    optimal tokens); then the excess is formed without subtraction, so that the step is right
    where $\mathcal L-\mathcal L_\star$ is far below machine epsilon. The gradient is that of all
    parameters together.

    Args:
        max_step: cap on $\eta_t$; None for no cap.
        floor: $\mathcal L_\star$; None derives it. Where the loss is at or below a floor that
            was given, nothing moves.

    Returns:
        A step rule.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
        >>> model = models.Attention(loss="exponential", start="zero")
        >>> run = optim.train(model, p, optim.PolyakStep(max_step=10.0), steps=200)
        >>> bool(run.history["loss"][-1] - model.floor(p) < 0.1)
        True

    Reference: bias, Section 3.4 and Theorem 7.
    """

    max_step: float | None = None
    floor: float | None = None

    def __post_init__(self) -> None:
        if self.max_step is not None:
            self._number("max_step", above=0.0)
        if self.floor is not None:
            self._number("floor")

    def init(self, model: Any, problem: Any, params: Params) -> State:
        """The floor: given or derived; a model without a known one is refused here."""
        if self.floor is not None:
            return {"floor": np.full(problem.trials, float(self.floor))}
        if not hasattr(model, "floor"):
            kind = type(model).__name__
            raise check.fail("floor", f"a number, because {kind} has no method floor", None)
        return {"floor": np.asarray(model.floor(problem), dtype=np.float64)}

    @declare(linear=True, scaled=True)
    def step(self, params: Params, at: Evaluation, state: State) -> tuple[Params, State]:
        """One step; where the gradient is exactly zero nothing moves."""
        log_scales = at.log_scales()
        log_excess = at.log_excess if self.floor is None else None
        with np.errstate(divide="ignore"):
            if log_excess is None:
                log_excess = np.log(np.maximum(at.loss - state["floor"], 0.0))
            squares = [2.0 * (np.log(at.norm(k)) + log_scales[k]) for k in at.grads]
            log_square = np.logaddexp.reduce(squares, axis=0)
        usable = np.isfinite(log_square) & np.isfinite(log_excess)
        log_step = np.where(usable, log_excess, 0.0) - np.where(usable, log_square, 0.0)
        log_step -= np.log(2.0)
        if self.max_step is not None:
            log_step = np.minimum(log_step, np.log(self.max_step))
        moved = {}
        for name, p in params.items():
            factor = np.where(usable, np.exp(log_step + log_scales[name]), 0.0)
            moved[name] = p - at.times(name, factor)
        return moved, state
