"""Gradient descent for more steps than can be taken one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, equal, exponent
from attnbook.claims.svm import _cases as cases
from attnlab import curvature, models, optim, problems
from attnlab.checks import Array
from attnlab.models import Params

CLOSE = 0.3  # no margin moves by more while steps are taken together
LATE = (600, 1000, 1700, 3000)  # bundles of steps after which one looks
SLOW = (1200, 2000, 3500, 6000)  # for starts far from the direction


@dataclass(frozen=True)
class Together:
    r"""Steps of gradient descent, as many at a time as move W by at most ``CLOSE``.

    $N$ steps are one along the gradient in the middle of them,
    $W-N\eta\nabla\mathcal L(W-\frac{N-1}2\eta\nabla\mathcal L(W))$: for $N=1$ the step itself. The
    rule needs two of its own steps, to the middle and to the end.
    """

    step_size: Array

    def init(self, model: Any, problem: Any, params: Params) -> dict[str, Any]:
        """No step taken."""
        none = np.full(problem.trials, -np.inf)
        return {"log_steps": none, "log_many": none, "from": None}

    @optim.declare(linear=True, scaled=True, uses_loss=False)
    def step(
        self, params: Params, at: models.Evaluation, state: dict[str, Any]
    ) -> tuple[Params, dict[str, Any]]:
        """To the middle, or from the beginning to the end."""
        log_eta = np.log(self.step_size) + at.log_scales()["W"]
        if state["from"] is None:
            wanted = np.log(CLOSE) - log_eta - np.log(at.norm("W"))
            few = np.log(np.floor(np.exp(np.clip(wanted, 0.0, 30.0))))
            log_many = np.where(wanted < 30.0, few, wanted)
            half = np.expm1(np.minimum(log_many, 30.0)) / 2.0
            factor = np.where(wanted < 30.0, half * np.exp(log_eta), np.exp(log_many + log_eta) / 2)
            there = {"W": params["W"] - at.times("W", factor)}
            return there, state | {"log_many": log_many, "from": params["W"]}
        log_many = state["log_many"]
        there = {"W": state["from"] - at.times("W", np.exp(log_many + log_eta))}
        return there, {
            "log_steps": np.logaddexp(state["log_steps"], log_many),
            "log_many": log_many,
            "from": None,
        }


class Place(NamedTuple):
    """Where gradient descent is: W, and the log of the number of steps, one a trial."""

    W: Array
    log_steps: Array


def descent(
    problem: problems.TokenProblem, W: Array, bundles: tuple[int, ...] = LATE
) -> list[Place]:
    """Gradient descent by steps of 1 / L_W, after so many bundles of them."""
    model = models.Attention()
    length = 1.0 / cases.norm(theory.svm.features(problem)).max(axis=(-1, -2))
    scaled = cases.in_units(problem, length)  # the longest feature is 1
    rule = Together(theory.svm.descent_step(curvature.smoothness(model, scaled).W))
    here, log_steps = {"W": W / length[:, None, None]}, np.full(problem.trials, -np.inf)
    places = []
    for many in np.diff((0, *bundles)):
        run = optim.train(model, scaled, rule, 2 * int(many), params=here, record=())
        here, log_steps = run.params, np.logaddexp(log_steps, run.state["log_steps"])
        places.append(Place(cases.scaled(length, here["W"]), log_steps))
    return places


def shrinking(places: list[Place], W_mm: Array) -> tuple[Array, Array]:
    """Geometric means, over trials, of the norms and of 1 - cosine, for each place."""
    size = np.array([cases.norm(place.W) for place in places])
    gaps = np.array([cases.misfit(place.W, W_mm) for place in places])
    return np.exp(np.log(size).mean(axis=-1)), np.exp(np.log(gaps).mean(axis=-1))


def arrives(
    what: str, places: list[Place], W_mm: Array, role: str = "statement"
) -> Iterator[Measurement]:
    """Descent turns to a max-margin direction as it does where the loss falls like e^-margin.

    The norm is about the direction's times the log of the number of steps, and 1 - cosine falls
    at least like one over it.
    """
    size = np.array([cases.norm(place.W) for place in places])
    k, near = float(places[-1].log_steps.min()), 1.0 - cases.misfit(places[-1].W, W_mm)
    yield at_least(f"{what}: correlation with it after e^{k:.0f} steps", near, 0.98, role=role)
    grown, left = shrinking(places, W_mm)
    yield exponent(
        f"{what}: power of |W| in 1 - correlation",
        grown,
        left,
        -1.0,
        within=0.1,
        role=role,
        relation="<=",
        decades=0.4,
    )
    gained = (size[-1] - size[-2]) / (places[-1].log_steps - places[-2].log_steps)
    yield equal(
        f"{what}: growth of |W| with log k over |W_mm|",
        gained / cases.norm(W_mm),
        1.0,
        within=0.1,
        role=role,
    )
