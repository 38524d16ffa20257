"""What several errata are measured on: mixtures with bounded noise, the first phase, iterates.

The paper's W has the query on the left; here, as in the library, the key stands left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attnbook import theory
from attnbook.claims.multihead import _instances as made
from attnlab import models, ntk, optim
from attnlab.checks import Array, BoolArray
from attnlab.models import Params
from attnlab.problems import SequenceProblem

ONE = models.MultiHead(heads=1)


def mixture(rng: np.random.Generator, *, Z: float = 0.0, **given: Any) -> SequenceProblem:
    """DM1 as Assumption 3 has it, with the same bound Z for both kinds of noise."""
    return made.mixture(rng, Z_mu=Z, Z_nu=Z, **given)


def carrying(problem: SequenceProblem) -> BoolArray:
    """Which tokens carry the label."""
    assert problem.relevant is not None
    return problem.relevant


class Targets(NamedTuple):
    """W_star (key left), u_star, and the patterns they are made of."""

    W: Array
    u: Array
    mu: Array
    nu: Array


def targets(problem: SequenceProblem) -> Targets:
    """The paper's target parameters for a mixture."""
    found = made.patterns(problem)
    U = theory.multihead.U_star(found)
    return Targets(theory.multihead.W_star(found), U[0], found.mu, found.nu)


def first_phase(problem: SequenceProblem, signs: Array) -> Params:
    """Heads after one step from zero with the step -sign * sqrt(H): the paper's first phase."""
    model = models.MultiHead(heads=signs.size)
    _, grads = model.value_and_grad(model.init(problem), problem)
    step = signs[:, None, None] * np.sqrt(signs.size)
    return {name: -step * grads[name] for name in ("U", "W")}


def head_gradients(problem: SequenceProblem, U: Array) -> tuple[Array, Array]:
    r"""$\nabla_U\Phi$ and $\nabla_W\Phi$ of single heads ``U (H, T, d)`` at W = 0.

    Shapes ``(..., n, H, T, d)`` and ``(..., n, H, d, d)``.
    """
    H, _, d = U.shape
    params = {"U": U, "W": np.zeros((H, d, d))}
    found = ntk.jacobian(models.MultiHead(heads=H), params, problem)
    return found["U"] * np.sqrt(H), found["W"] * np.sqrt(H)


def weights_margin(problem: SequenceProblem, U: Array) -> Array:
    r"""$y\langle\nabla_W\Phi,W_\star/\|W_\star\|\rangle$ of every sample and head."""
    W = targets(problem).W
    _, grads = head_gradients(problem, U)
    inner: Array = (grads * (W / np.linalg.norm(W))).sum(axis=(-1, -2))
    return problem.y[..., None] * inner


def saturated(problem: SequenceProblem, Gamma: ArrayLike = 1.0) -> Params:
    """One head with U_opt and Gamma W_opt."""
    return theory.multihead.theta_opt(made.patterns(problem), float(np.asarray(Gamma)))


def saturated_margin(problem: SequenceProblem, Gamma: ArrayLike = 1.0) -> Array:
    r"""$y\Phi$ of that head, for each sample."""
    return np.asarray(problem.y * ONE.forward(saturated(problem, Gamma), problem))


def missed(problem: SequenceProblem, W: Array) -> Array:
    """Softmax mass on irrelevant tokens under W, for each sample and query."""
    head = {"U": np.zeros((1, problem.T, problem.d)), "W": W[None]}
    P = ONE.attention(head, problem)[:, 0]
    return np.asarray((P * ~carrying(problem)[:, None, :]).sum(axis=-1))


def path(
    model: models.MultiHead, problem: SequenceProblem, eta: float, steps: int
) -> tuple[list[Params], Array]:
    """Iterates of gradient descent from the model's start, and their losses."""
    keep = {"U": lambda params, _: params["U"], "W": lambda params, _: params["W"]}
    run = optim.train(model, problem, optim.GD(eta), steps, record=["loss", keep], every=1)
    found = [{name: run.history[name][k] for name in keep} for k in range(steps + 1)]
    return found, run.history["loss"]


def longest_token(problem: SequenceProblem) -> Array:
    """R of each trial, at least 1 as Assumption 1 wants it."""
    return np.asarray(np.maximum(1.0, np.linalg.norm(problem.X, axis=-1).max(axis=(-1, -2))))


def between(first: Params, second: Params, points: int) -> list[Params]:
    """Equally spaced points from the first to the second, both included."""
    return [made.between(first, second, share) for share in np.linspace(0.0, 1.0, points)]
