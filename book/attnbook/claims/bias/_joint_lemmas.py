"""Joint training: the three facts behind Theorem 8, Lemmas 11 to 13."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.bias import _joint_instances as joint
from attnbook.claims.bias._instances import JOINT, length, seed_of
from attnbook.claims.bias._joint_instances import DELTA, LARGE, JointRun, Sizes
from attnlab import curvature
from attnlab.checks import Array
from attnlab.models import Params

RATIO = 24.0  # the smallest C that the paper allows
AGAIN = "Tested in the two regimes of Lemma 11."


def _settings() -> Iterator[tuple[str, Sizes]]:
    yield "inside Condition 2, n=2", joint.conditioned(2)
    yield "inside Condition 2 with C_0 = 1, n=4", joint.conditioned(4, 1.0)
    yield "larger steps", LARGE


@measures("bias.lemma-11", instances=20)
def lemma_11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, at in _settings():
        run = joint.joint_run(seed_of(rng), instances, at)
        best, rest = run.scores()
        speed = theory.bias.omega_2(at.alpha, at.rho, n=at.n, delta=DELTA)
        t = run.times[1:, None, None]
        for printed, which in ((True, "as printed"), (False, "as meant")):
            bound = theory.bias.score_gap_bound(t, at.step, speed, printed=printed)
            yield at_least(f"score gap, {which}, {name}", (best - rest)[1:], bound)
        yield at_least(f"attention on opt, {name}", run.attention(), 0.5)
        losses = np.exp(-run.margins())
        ratio = losses.max(axis=-1) / losses.min(axis=-1)
        yield at_most(f"ratio of losses, {name}", ratio, RATIO)
    narrow = Sizes(10, 2.0, 0.1, 60, 0.002)
    run = joint.joint_run(seed_of(rng), max(instances, 20), narrow)
    best, rest = run.scores()
    speed = theory.bias.omega_2(2.0, 0.1, n=10, delta=DELTA)
    bound = theory.bias.score_gap_bound(run.times[1:, None, None], narrow.step, speed)
    yield at_least("score gap, n=10 and d=60", (best - rest)[1:], bound, role="outside")


@measures("bias.lemma-12", instances=300)
def lemma_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, at in (
        *_settings(),
        ("inside Condition 2 with C_0 = 1, n=10", joint.conditioned(10, 1.0)),
    ):
        found = _sum_margins(rng, instances, at)
        bound = theory.bias.common_margin(at.alpha, at.rho, n=at.n, d=at.d)
        yield at_least(f"smallest margin, {name}", found, bound)
    narrow = Sizes(20, 1.5, 0.1, 50, 1.0)
    found = _sum_margins(rng, max(instances, 20), narrow)
    bound = theory.bias.common_margin(narrow.alpha, narrow.rho, n=20, d=50)
    yield at_least("smallest margin, n=20 and d=50", found, bound, role="outside")


def _sum_margins(rng: np.random.Generator, instances: int, at: Sizes) -> Array:
    drawn = joint.wide_gaussian(rng, instances, at)
    marked = np.asarray(drawn.relevant)[..., None]
    total = (drawn.y[..., None] * (drawn.X * marked).sum(axis=-2)).sum(axis=-2)
    total /= np.linalg.norm(total, axis=-1)[..., None]
    both = drawn.y[..., None] * drawn.X.sum(axis=-2)
    return np.asarray((both @ total[..., None])[..., 0].min(axis=-1))


@measures("bias.lemma-13", instances=10)
def lemma_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, at in _settings():
        run = joint.joint_run(seed_of(rng), instances, at)
        loss, head, whole = _gradients(run)
        bound = theory.bias.omega_1(at.alpha, at.rho, n=at.n, d=at.d) * loss
        yield at_least(f"gradient of the decoder, {name}", head, bound)
        yield at_least(f"whole gradient, {name}", whole, head)
        yield from _segments(run, name)


def _gradients(run: JointRun) -> tuple[Array, Array, Array]:
    losses, heads, wholes = [], [], []
    for _, params in run.points():
        loss, grads = JOINT.value_and_grad(params, run.problem)
        losses.append(loss)
        heads.append(np.linalg.norm(grads["v"], axis=-1))
        wholes.append(np.hypot(heads[-1], length(grads["W"])))
    return np.array(losses), np.array(heads), np.array(wholes)


def _segments(run: JointRun, name: str) -> Iterator[Measurement]:
    """Loss and curvature at four points between consecutive iterates."""
    consecutive = np.flatnonzero(np.diff(run.times) == 1.0)
    picked = consecutive[np.unique(np.linspace(0, consecutive.size - 1, 5).astype(int))]
    losses, curvatures = [], []
    for k in picked:
        ends = [{"W": run.W[j], "v": run.v[j]} for j in (k, k + 1)]
        start = JOINT.value_and_grad(ends[0], run.problem)[0]
        norms = np.linalg.norm(run.v[k : k + 2], axis=-1).max(axis=0)
        bound = 8.0 * theory.bias.curvature_bound(norms, run.at.B, run.at.d) * start
        for share in (0.0, 1 / 3, 2 / 3, 1.0):
            params = _between(ends[0], ends[1], share)
            losses.append(JOINT.value_and_grad(params, run.problem)[0] / start)
            low, high = curvature.hessian(JOINT, params, run.problem).extremes
            curvatures.append(np.maximum(np.abs(low), np.abs(high)) / bound)
    yield at_most(f"loss between two steps over the first, {name}", losses, 8.0)
    yield at_most(f"curvature over its bound, {name}", curvatures, 1.0)


def _between(first: Params, last: Params, share: float) -> Params:
    return {key: (1.0 - share) * first[key] + share * last[key] for key in first}
