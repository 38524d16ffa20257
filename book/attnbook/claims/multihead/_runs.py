"""Runs that satisfy the theorems' premises, and what is read off them.

From a zero start all heads stay equal, so that H heads are one head with two step sizes
(`theory.multihead.one_head_steps`): the head counts that the theorems ask for are reached
exactly, without their parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, equal
from attnbook.claims.multihead import _instances as instance
from attnlab import models, ntk, optim
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


@dataclass(frozen=True)
class PartSteps:
    """Gradient descent with a step size for each parameter and each trial."""

    U: Array
    W: Array

    def init(self, model: Any, problem: Any, params: Params) -> dict[str, Any]:
        """No memory."""
        return {}

    def step(
        self, params: Params, at: models.Evaluation, state: dict[str, Any]
    ) -> tuple[Params, dict[str, Any]]:
        """One step against the gradient."""
        sizes = {
            "U": self.U[..., None, None, None],
            "W": self.W[..., None, None, None],
        }
        return {name: part - sizes[name] * at.grads[name] for name, part in params.items()}, state


@dataclass(frozen=True)
class Path:
    """Iterates (time first, then trials), their losses, and how to measure them.

    ``heads`` is H where the run is one head that stands for H of them, else 1.
    """

    model: models.MultiHead
    problem: SequenceProblem
    iterates: Params
    losses: Array
    heads: float = 1.0

    def at(self, k: int) -> Params:
        """One iterate."""
        return {name: part[k] for name, part in self.iterates.items()}

    def length(self, params: Params) -> Array:
        """Euclidean length in the network of all heads."""
        return np.asarray(instance.length(self._all(params)))

    def longest(self, params: Params) -> Array:
        r"""$\|\tilde\theta\|_{2,\infty}$ in the network of all heads."""
        full = self._all(params)
        return instance.longest_head({name: part / self.heads**0.5 for name, part in full.items()})

    def distance(self, first: Params, second: Params) -> Array:
        """Euclidean distance in the network of all heads."""
        return self.length(instance.difference(first, second))

    def _all(self, params: Params) -> Params:
        return {"U": params["U"], "W": params["W"] * self.heads**0.5}

    def loss(self, params: Params) -> Array:
        """The training loss anywhere."""
        return self.model.value_and_grad(params, self.problem)[0]

    def highest(self, first: Params, second: Params, points: int = 21) -> Array:
        """The largest loss at equally spaced points of a segment."""
        found = [self.loss(point) for point in instance.segment(first, second, points)]
        return np.asarray(np.max(found, axis=0))


def descend(
    model: models.MultiHead,
    problem: SequenceProblem,
    eta: Array | float,
    K: int,
    *,
    start: Params | None = None,
    heads: float = 1.0,
) -> Path:
    """Gradient descent with one step size a trial; ``heads`` as in `Path`."""
    sizes = np.broadcast_to(eta, problem.trials)
    ratio = theory.multihead.one_head_steps(1.0, round(heads))
    rule = PartSteps(ratio[0] * sizes, ratio[1] * sizes)
    keep = {name: lambda params, _, name=name: params[name] for name in ("U", "W")}
    kept = {f"all_{name}": keep[name] for name in keep}
    run = optim.train(model, problem, rule, K, params=start, record=["loss", kept])
    iterates = {name: run.history[f"all_{name}"] for name in keep}
    return Path(model, problem, iterates, run.history["loss"], heads)


def separable(
    rng: np.random.Generator,
    *,
    trials: int,
    n: int = 3,
    T: int = 2,
    least: float = 0.6,
    R: float = 1.0,
) -> SequenceProblem:
    """Tokens of one feature, ``least * R`` to R long, whose mean has the sign of the label."""
    y = rng.choice((-1.0, 1.0), size=(trials, n))
    X = rng.uniform(least, 1.0, size=(trials, n, T))
    X[..., 0] = 1.0
    return SequenceProblem((R * y[..., None] * X)[..., None], y)


def short_segments(rng: np.random.Generator, purpose: str, away: float) -> Measurement:
    """The head count as the proofs use it, at other sizes: segments so long are just short enough.

    Their ends have heads of at most D = 3 delta + the target's longest head.
    """
    bound, many = theory.multihead, 20
    delta, norm = rng.uniform(0.1, 5.0, (2, many))
    sizes: dict[str, Any] = {"T": rng.integers(1, 9, many), "d": rng.integers(1, 6, many)}
    sizes["R"] = 1.7
    H = bound.H_min(delta, norm, **sizes, purpose=purpose)
    share = bound.short_enough(away * delta, bound.beta3(3.0 * delta + norm, **sizes), H=H)
    what = f"segments of {away:g} distances with H as asked for, share of the admissible length"
    return equal(what, share, 1.0)


@dataclass(frozen=True)
class Premise:
    """An instance on which Theorems 1 to 4 may be applied, with the largest step they allow."""

    path: Path
    target: Params
    distance: float
    norm: Array
    H: int
    eta: Array
    K: int
    target_loss: Array
    rho: Array


def enough_heads(distance: float, *, purpose: str, T: int, d: int, R: float) -> int:
    """Heads asked for by a target that is spread evenly over them, from a zero start."""
    least = theory.multihead.H_min
    fewest = max(1.0, float(least(distance, 0.0, T=T, d=d, R=R, purpose=purpose)))
    asked = least(distance, distance / fewest**0.5, T=T, d=d, R=R, purpose=purpose)
    return math.ceil(max(1.0, float(asked)))


def premise(
    problem: SequenceProblem,
    distance: float,
    *,
    purpose: str = "training",
    most: int = 3000,
    R: float = 1.0,
) -> Premise:
    r"""From a zero start: target along the largest tangent margin, H and $\eta$ as required.

    K is where $\delta^2/(K\hat L(\theta))$ begins to limit the step, or ``most``.
    """
    sizes: dict[str, Any] = {"T": problem.T, "d": problem.d, "R": R}
    bound = theory.multihead
    start = instance.ONE.init(problem)
    target = {
        name: distance * part
        for name, part in ntk.margin(instance.ONE, start, problem).direction.items()
    }
    H = enough_heads(distance, purpose=purpose, **sizes)
    norm = np.full(problem.trials, distance / H**0.5)
    target_loss, start_loss = (instance.ONE.value_and_grad(p, problem)[0] for p in (target, start))
    rho = bound.rho(distance, norm, **sizes, H=H)
    K = int(min(most, max(1.0, float((distance**2 * rho / target_loss).max()))))
    eta = bound.step_size(np.full(problem.trials, distance), target_loss, start_loss, rho, K)
    path = descend(instance.ONE, problem, eta, K, start=start, heads=H)
    return Premise(path, target, distance, norm, H, eta, K, target_loss, np.asarray(rho))


@dataclass(frozen=True)
class Long:
    """The mean and the last loss of a long run, and how far it came: one number a trial."""

    mean: Array
    last: Array
    distance: Array


def long_run(problem: SequenceProblem, eta: Array | float, K: int, *, heads: float) -> Long:
    r"""`descend` from zero for two tokens of one feature, written out: tens of thousands of steps.

    Token $i$ looks at token 1 with weight $s_i=\sigma(Wx_i(x_1-x_0))$, so that
    $o_i=x_0+s_i(x_1-x_0)$, $\Phi=\sum_iU_io_i$ and
    $\partial\Phi/\partial W=\sum_iU_is_i(1-s_i)x_i(x_1-x_0)^2$.
    """
    x, y = problem.X[..., 0], problem.y
    apart = (x[..., 1] - x[..., 0])[..., None]
    turn, bend, first = x * apart, x * apart**2, x[..., :1]
    ratio = theory.multihead.one_head_steps(1.0, round(heads))
    sizes = np.broadcast_to(np.asarray(eta, float), problem.trials)
    step_U, step_W = (part * sizes / problem.n for part in ratio)
    U, W = np.zeros((*problem.trials, 2)), np.zeros(problem.trials)
    total = last = np.zeros(problem.trials)
    for k in range(K + 1):
        s = 1.0 / (1.0 + np.exp(-W[..., None, None] * turn))
        seen = first + s * apart
        signed = y * (seen * U[..., None, :]).sum(axis=-1)
        odds = np.exp(-signed)
        last = np.log1p(odds).mean(axis=-1)
        total = total + last if k else total  # the start is no iterate
        if k < K:
            pull = y * odds / (1.0 + odds)
            W_pull = ((pull[..., None] * s * (1.0 - s) * bend).sum(axis=-2) * U).sum(axis=-1)
            U = U + step_U[..., None] * (pull[..., None] * seen).sum(axis=-2)
            W = W + step_W * W_pull
    far = np.sqrt((U**2).sum(axis=-1) + heads * W**2)
    return Long(total / K, last, far)


@dataclass(frozen=True)
class Realizable:
    """What a run under the premises of Corollaries 3 and 4 is made of."""

    problem: SequenceProblem
    H: int
    reach: Array
    eta: Array
    loss_at_reach: Array


def realizable(
    problem: SequenceProblem, K: int, *, purpose: str = "training", R: float = 1.0
) -> Realizable:
    r"""From a zero start with $g_0(\epsilon)=(1+\log\frac1\epsilon)/\gamma$.

    $\gamma$ is the tangent margin at zero, where the outputs are linear in U; the targets'
    heads are equal, so that $g=g_0/\sqrt H$.
    """
    sizes: dict[str, Any] = {"T": problem.T, "d": problem.d, "R": R}
    bound = theory.multihead
    start = instance.ONE.init(problem)
    best = ntk.margin(instance.ONE, start, problem)
    reach = (1.0 + math.log(K)) / best.margin
    fewest = np.sqrt(bound.H_min(reach, 0.0, **sizes, purpose=purpose))
    H = math.ceil(bound.H_min(reach, reach / fewest, **sizes, purpose=purpose).max())
    rho = bound.rho(reach, reach / fewest, **sizes, H=H)
    start_loss = instance.ONE.value_and_grad(start, problem)[0]
    eta = bound.realizable_step(1.0 / best.margin, start_loss, rho)
    target = {name: reach[:, None, None, None] * part for name, part in best.direction.items()}
    return Realizable(problem, H, reach, eta, instance.ONE.value_and_grad(target, problem)[0])
