"""Section 6 and Appendix B: descent, segments, regret, and how far the iterates go."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnlab import models, ntk, problems
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


def _beta3(problem: SequenceProblem, params: Params, R: float) -> Array:
    size = instance.longest_head(params)
    return theory.multihead.beta3(size, T=problem.T, d=problem.d, R=R)


def _rise(model: models.MultiHead, problem: SequenceProblem, ends: tuple[Params, Params]) -> Array:
    """The highest loss of a segment in units of the higher end."""
    path = runs.Path(model, problem, {}, np.zeros(0))
    higher = np.maximum(*(path.loss(end) for end in ends))
    return np.asarray(path.highest(*ends) / higher)


def _used(problem: SequenceProblem, params: Params, scale: float) -> float:
    """How much of the admissible length lies between a point and its mirror image."""
    point = {name: scale * part for name, part in params.items()}
    length = 2.0 * instance.length(point)
    H = point["U"].shape[-3]
    return float(theory.multihead.short_enough(length, _beta3(problem, point, 1.0), H=H)[0])


@measures("multihead.proposition-4", instances=60)
def proposition_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    used, rises = [], []
    for H, T, d in ((1, 3, 2), (4, 2, 1), (16, 2, 2)):
        model = models.MultiHead(heads=H)
        drawn = instance.bounded(rng, trials=instances, n=3, T=T, d=d)
        first = instance.heads(rng, drawn, H)
        along = {name: rng.standard_normal(part.shape) for name, part in first.items()}
        span = np.sqrt(H**0.5 / (2.0 * _beta3(drawn, first, 1.0)))
        for _ in range(60):  # the far end may be larger: shrink until the premise holds
            scale = (span / instance.length(along))[:, None, None, None]
            second = {name: first[name] + scale * along[name] for name in first}
            beta3 = np.maximum(_beta3(drawn, first, 1.0), _beta3(drawn, second, 1.0))
            share = theory.multihead.short_enough(span, beta3, H=H)
            span = np.where(share > 1.0, 0.99 * span, span)
        used.append(share)
        rises.append(_rise(model, drawn, (first, second)))
    # mirror images of one good solution, as far apart as they may be: zero lies between them
    pair = SequenceProblem(np.array([[[[1.0], [-1.0]]]]), np.ones((1, 1)))
    good = {"U": np.array([[[[1.0], [-1.0]]]]), "W": np.full((1, 1, 1, 1), 2.0**0.5)}
    model = models.MultiHead(heads=64)
    scale, many = 1.0, {name: np.repeat(part, 64, axis=1) for name, part in good.items()}
    while _used(pair, many, scale) > 1.0:
        scale *= 0.97
    used.append(np.array([_used(pair, many, scale)]))
    ends = tuple({name: s * scale * part for name, part in many.items()} for s in (1.0, -1.0))
    rises.append(_rise(model, pair, (ends[0], ends[1])))
    yield at_most("share of the admissible length", np.concatenate(used), 1.0)
    limit = theory.multihead.quasi_convexity
    rise = np.concatenate(rises)
    yield at_most("highest loss, in units of the higher end", rise, limit())
    yield at_most(
        "highest loss, in units of the higher end", rise, limit(sharp=True), role="correction"
    )
    ends = tuple({name: s * part for name, part in good.items()} for s in (2.0, -2.0))
    far = _rise(models.MultiHead(heads=1), pair, (ends[0], ends[1]))
    yield at_most("highest loss on a long segment", far, limit(), role="outside")


def _drop(model: models.MultiHead, problem: SequenceProblem, params: Params, eta: Array) -> Array:
    r"""One step: how much the loss falls, in units of $\frac\eta2\|\nabla\hat L\|^2$."""
    loss, grads = model.value_and_grad(params, problem)
    after = _stepped(params, grads, eta)
    fallen = loss - model.value_and_grad(after, problem)[0]
    return np.asarray(fallen / (0.5 * eta * instance.length(grads) ** 2))


def _stepped(params: Params, grads: Params, eta: Array) -> Params:
    return {name: part - eta[:, None, None, None] * grads[name] for name, part in params.items()}


@measures("multihead.lemma-7", instances=80)
def lemma_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drops, used = [], []
    for H, T, d, R in ((1, 3, 2, 1.0), (4, 2, 1, 1.5), (8, 3, 2, 1.0)):
        model = models.MultiHead(heads=H)
        drawn = instance.bounded(rng, trials=instances, n=3, T=T, d=d, R=R)
        params = instance.heads(rng, drawn, H)
        grads = model.value_and_grad(params, drawn)[1]
        eta = 1.0 / _beta2(drawn, params, H, R)
        for _ in range(30):
            after = _stepped(params, grads, eta)
            rho = np.maximum(_beta2(drawn, params, H, R), _beta2(drawn, after, H, R))
            eta = np.where(eta * rho > 1.0, 0.8 * eta, eta)
        used.append(eta * rho)
        drops.append(_drop(model, drawn, params, eta))
    yield at_most("step times smoothness", np.concatenate(used), 1.0)
    many = "the loss falls by this many eta/2 |gradient|^2"
    yield at_least(many, np.concatenate(drops), 1.0)
    # many heads and equal tokens at zero: the bound on the smoothness is nearly attained
    model = models.MultiHead(heads=1000)
    y = np.ones((1, 1))
    equal_tokens = SequenceProblem(np.ones((1, 1, 64, 1)), y)
    start = model.init(equal_tokens)
    eta = 1.0 / _beta2(equal_tokens, start, 1000, 1.0)
    after = _stepped(start, model.value_and_grad(start, equal_tokens)[1], eta)
    eta = 1.0 / _beta2(equal_tokens, after, 1000, 1.0)
    yield at_least(f"{many}, at zero", _drop(model, equal_tokens, start, eta), 1.0)
    twice = _drop(model, equal_tokens, start, 2.0 * eta)
    yield at_least(f"{many}, with twice the step", twice, 1.0, role="outside")


def _beta2(problem: SequenceProblem, params: Params, H: int, R: float) -> Array:
    size = instance.longest_head(params)
    return theory.multihead.beta2(size, T=problem.T, d=problem.d, R=R, H=H)


def _falls(path: runs.Path, eta: Array) -> Array:
    r"""The loss's fall in units of $\frac\eta2\|\nabla\hat L\|^2$, over all steps."""
    found = [_drop(path.model, path.problem, path.at(k), eta) for k in range(len(path.losses) - 1)]
    return np.asarray(found)


def _short_run(rng: np.random.Generator, instances: int, H: int, K: int) -> tuple[runs.Path, Array]:
    model = models.MultiHead(heads=H)
    drawn = instance.bounded(rng, trials=instances, n=3, T=2, d=2)
    start = instance.heads(rng, drawn, H)
    eta = 0.5 / _beta2(drawn, start, H, 1.0)
    return runs.descend(model, drawn, eta, K, start=start), eta


def _targets(rng: np.random.Generator, path: runs.Path, K: int) -> Iterator[Params]:
    """The last iterate, a point well beyond it, and one off the path."""
    first, last = path.at(0), path.at(K)
    yield last
    yield instance.between(first, last, 2.0)
    size = (path.distance(first, last))[:, None, None, None]
    along = {name: rng.standard_normal(part.shape) for name, part in last.items()}
    unit = instance.length(along)[:, None, None, None]
    yield {name: last[name] + size * along[name] / unit for name in last}


@measures("multihead.lemma-8", instances=40)
def lemma_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    shares, falls = [], []
    for H, K in ((1, 8), (4, 6)):
        path, eta = _short_run(rng, instances, H, K)
        falls.append(_falls(path, eta).ravel())
        for target in _targets(rng, path, K):
            bent = []
            for k in range(K):
                point = path.at(k)
                beta3 = np.maximum(*(_beta3(path.problem, p, 1.0) for p in (target, point)))
                tau = beta3 / H**0.5 * path.highest(target, point)
                bent.append(tau * path.distance(target, point) ** 2)
            bound = theory.multihead.regret_bound(
                path.loss(target),
                path.distance(target, path.at(0)),
                np.stack(bent, axis=-1),
                eta=eta,
                K=K,
            )
            shares.append(path.losses[1:].mean(axis=0) / bound)
    yield at_least(
        "falls in units of eta/2 |gradient|^2", np.concatenate(falls), 1.0, role="premise"
    )
    what = "mean loss, as a share of the bound"
    yield at_most(what, np.concatenate(shares), 1.0, role="correction")
    start, after = _too_long_a_step(rng, instances)
    bound = theory.multihead.regret_bound(start, 0.0, np.zeros((instances, 1)), eta=100.0, K=1)
    yield at_most(
        "K = 1, a step of 100: loss after it, as a share of the bound", after / bound, 1.0
    )


@measures("multihead.lemma-9", instances=40)
def lemma_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    shares, falls, used = [], [], []
    for H, K in ((4, 8), (64, 20)):
        path, eta = _short_run(rng, 2 * instances, H, K)
        drop = _falls(path, eta)
        for target in _targets(rng, path, K):
            share = []
            for k in range(K + 1):
                point = path.at(k)
                beta3 = np.maximum(*(_beta3(path.problem, p, 1.0) for p in (target, point)))
                gap = path.distance(target, point)
                share.append(theory.multihead.short_enough(gap, beta3, H=H))
            kept = np.max(share, axis=0) <= 1.0  # the trials that meet the premise
            bound = theory.multihead.local_regret_bound(
                path.loss(target),
                path.distance(target, path.at(0)),
                path.losses[0],
                eta=eta,
                K=K,
            )
            used.append(np.max(share, axis=0)[kept])
            falls.append(drop[:, kept].ravel())
            shares.append((path.losses[1:].mean(axis=0) / bound)[kept])
    yield at_least(
        "falls in units of eta/2 |gradient|^2", np.concatenate(falls), 1.0, role="premise"
    )
    yield at_most("share of the admissible distance", np.concatenate(used), 1.0, role="premise")
    what = "mean loss, as a share of the bound"
    yield at_most(what, np.concatenate(shares), 1.0, role="correction")
    start, after = _too_long_a_step(rng, instances)
    bound = theory.multihead.local_regret_bound(start, 0.0, start, eta=100.0, K=1)
    yield at_most(
        "K = 1, a step of 100: loss after it, as a share of the bound", after / bound, 1.0
    )


def _too_long_a_step(rng: np.random.Generator, instances: int) -> tuple[Array, Array]:
    """Losses at a random start and after one step of 100.

    With K = 1 the printed range of k is empty, so nothing is asked of this step.
    """
    drawn = problems.gaussian_regression(n=60, T=3, d=3, trials=instances, rng=rng)
    seq = SequenceProblem(drawn.X, rng.choice((-1.0, 1.0), size=drawn.y.shape))
    model = models.MultiHead(heads=2, start="gaussian", scale=0.3)
    start = model.init(seq, rng)
    loss, grads = model.value_and_grad(start, seq)
    after = {name: start[name] - 100.0 * grads[name] for name in start}
    return loss, model.value_and_grad(after, seq)[0]


@measures("multihead.lemma-10", instances=20)
def lemma_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    radius = theory.multihead.iterate_radius
    ratios, budgets, rises = [], [], []
    for distance in (0.1, 0.3, 1.0):
        drawn = runs.separable(rng, trials=instances, R=instance.LONG)
        found = runs.premise(drawn, distance, most=1000, R=instance.LONG)
        budget = found.eta * np.maximum(found.K * found.target_loss, found.path.losses[0])
        budgets.append(budget / distance**2)
        ratios.append(_farthest(found.path, found.target) / distance)
        rises.append(np.diff(found.path.losses, axis=0).max(axis=0))
    yield at_most(
        "eta max(K L(target), L(start)) / distance^2", np.array(budgets), 1.0, role="premise"
    )
    yield at_most("largest rise of the loss", np.array(rises), 0.0, role="premise")
    ratio = np.concatenate(ratios)
    what = "farthest iterate, in distances of the start"
    yield at_most(what, ratio, radius(), role="correction")
    yield from _away_from_the_target(rng, instances)
    yield at_most("farthest iterate", ratio, radius(sharp=True), role="correction")
    # a target at a tenth of the way is left behind once eta K L(target) exceeds its distance
    drawn = runs.separable(rng, trials=instances)
    path = runs.descend(instance.ONE, drawn, np.ones(instances), 100)
    near = instance.between(path.at(0), path.at(100), 0.1)
    ratio = _farthest(path, near) / path.distance(near, path.at(0))
    yield at_most("farthest iterate, target too near for K", ratio, radius(), role="outside")


def _away_from_the_target(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """One step from zero that is too long, and a target at the least distance allowed."""
    drawn = runs.separable(rng, trials=instances)
    start = instance.ONE.init(drawn)
    loss, grads = instance.ONE.value_and_grad(start, drawn)
    eta = 40.0 * float((loss / instance.length(grads) ** 2).max())
    away = np.sqrt(eta * loss)
    best = ntk.margin(instance.ONE, start, drawn).direction
    target = {name: away[:, None, None, None] * part for name, part in best.items()}
    H = runs.enough_heads(float(away.max()), purpose="training", T=2, d=1, R=1.0)
    path = runs.descend(instance.ONE, drawn, eta, 1, start=start, heads=H)
    lead, budget = "K = 1, a step that is too long", eta * np.maximum(path.loss(target), loss)
    yield at_most(f"{lead}: eta max(L(target), L(start))", budget, away**2, role="premise")
    apart = path.distance(path.at(1), target) / away
    what = f"{lead}: distance of the target after it, in that of the start"
    yield at_most(what, apart, theory.multihead.iterate_radius())


def _farthest(path: runs.Path, target: Params) -> Array:
    steps = range(len(path.losses))
    return np.asarray(np.max([path.distance(path.at(k), target) for k in steps], axis=0))
