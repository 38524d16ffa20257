"""Training: Theorems 1 and 3, realizability, Corollary 3."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, slope
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnlab import models, ntk, optim, problems
from attnlab.problems import SequenceProblem


def _conclusions(found: runs.Premise, lead: str, role: str = "statement") -> Iterator[Measurement]:
    """What Theorem 3 says, on a run that meets its premises."""
    path, start = found.path, found.path.at(0)
    R = float(instance.longest_token(path.problem).max())
    sizes: dict[str, Any] = {"T": path.problem.T, "d": path.problem.d, "R": R}
    least = theory.multihead.H_min(found.distance, found.norm, **sizes)
    words = f"{lead}: H asked for, as a share of H"
    yield at_most(words, least / found.H, 1.0, role="premise")
    # the same, as the proof uses it: segments of three distances are short
    beta3 = theory.multihead.beta3(3.0 * found.distance + found.norm, **sizes)
    short = theory.multihead.short_enough(3.0 * found.distance, beta3, H=found.H)
    yield at_most(f"{lead}: share of the admissible length", short, 1.0, role="premise")
    losses = np.maximum(found.K * found.target_loss, path.losses[0])
    limits = np.maximum(1.0, np.maximum(found.rho, losses / found.distance**2))
    yield at_most(f"{lead}: step, as a share of its limit", found.eta * limits, 1.0, role="premise")
    mean = path.losses[1:].mean(axis=0)
    bound = theory.multihead.training_bound(
        found.target_loss, found.distance, eta=found.eta, K=found.K
    )
    yield at_most(
        f"{lead}: last loss, as a share of the mean", path.losses[-1] / mean, 1.0, role=role
    )
    yield at_most(f"{lead}: mean loss, as a share of the bound", mean / bound, 1.0, role=role)
    far = np.max([path.distance(path.at(k), start) for k in range(found.K + 1)], axis=0)
    words = f"{lead}: distance from the start, in the target's"
    yield at_most(words, far / found.distance, 4.0, role=role)


def _many_heads(rng: np.random.Generator, instances: int) -> runs.Premise:
    """Theorem 3's premises with all heads there, from a random start, at distance 0.2."""
    sizes: dict[str, Any] = {"T": 2, "d": 1, "R": instance.LONG}
    distance, bound = 0.1, theory.multihead
    drawn = runs.separable(rng, trials=instances, R=instance.LONG)
    H = math.ceil(float(bound.H_min(distance, 0.4, **sizes)))
    model = models.MultiHead(heads=H, start="gaussian", scale=0.05)
    start = model.init(drawn, rng)
    best = ntk.margin(model, start, drawn).direction
    target = {name: part + distance * best[name] for name, part in start.items()}
    norm = instance.longest_head(target)
    loss, first = (model.value_and_grad(p, drawn)[0] for p in (target, start))
    rho = bound.rho(distance, norm, **sizes, H=H)
    K = max(1, int((distance**2 * rho / loss).max()))
    eta = bound.step_size(np.full(instances, distance), loss, first, rho, K)
    path = runs.descend(model, drawn, eta, K, start=start)
    return runs.Premise(path, target, distance, norm, H, eta, K, loss, np.asarray(rho))


def _informative(
    rng: np.random.Generator, instances: int, role: str = "statement"
) -> Iterator[Measurement]:
    """Runs so long that the bound lies below the loss at the start: to stand still is no way."""
    distance, K = 1.5, 25_000
    sizes: dict[str, Any] = {"T": 2, "d": 1, "R": 1.0}
    bound = theory.multihead
    drawn = runs.separable(rng, trials=min(instances, 5), least=0.9)
    start = instance.ONE.init(drawn)
    best = ntk.margin(instance.ONE, start, drawn).direction
    target = {name: distance * part for name, part in best.items()}
    H = runs.enough_heads(distance, purpose="training", **sizes)
    rho = bound.rho(distance, distance / H**0.5, **sizes, H=H)
    loss, first = (instance.ONE.value_and_grad(p, drawn)[0] for p in (target, start))
    eta = bound.step_size(np.full(drawn.trials, distance), loss, first, rho, K)
    lead, limit = f"distance {distance}, K={K}", bound.training_bound(loss, distance, eta=eta, K=K)
    asked = bound.H_min(distance, distance / H**0.5, **sizes) / H
    yield at_most(f"{lead}: H asked for, as a share of H", asked, 1.0, role="premise")
    yield at_most(
        f"{lead}: bound, as a share of the loss at the start", limit / first, 0.9, role="premise"
    )
    found = runs.long_run(drawn, eta, K, heads=H)
    yield at_most(f"{lead}: mean loss, as a share of the bound", found.mean / limit, 1.0, role=role)
    yield at_most(
        f"{lead}: last loss, as a share of the mean", found.last / found.mean, 1.0, role=role
    )
    words = f"{lead}: distance from the start, in the target's"
    yield at_most(words, found.distance / distance, 4.0, role=role)


def printed_order_is_too_small(distance: float, norm: float) -> Iterator[Measurement]:
    """Powers of T in rho over its printed and its corrected order, with H growing like T^4."""
    T = np.array([10.0, 100.0, 1000.0, 1e4])
    sizes: dict[str, Any] = {"T": T, "d": 4.0, "R": 1.0, "H": T**4}
    rho = theory.multihead.rho(distance, norm, **sizes)
    for name, printed, role in (("printed", True, "statement"), ("corrected", False, "correction")):
        order = theory.multihead.rho_order(distance, norm, **sizes, printed=printed)
        power = slope(T, rho / order)
        yield at_most(f"power of T in rho over its {name} order", power, 0.01, role=role)


def corrected_order_is_right(rng: np.random.Generator, draws: int) -> Iterator[Measurement]:
    """Rho over its corrected order stays between two numbers, over five decades of every size."""
    for R in (1.0, 10.0, 1000.0):
        H, T, d, far, norm = 10.0 ** rng.uniform(0.0, 5.0, size=(5, draws))
        sizes: dict[str, Any] = {"T": T, "d": d, "R": R, "H": H}
        order = theory.multihead.rho_order(far, norm, **sizes)
        ratio = theory.multihead.rho(far, norm, **sizes) / order
        yield at_most(f"rho / corrected order, R={R:g}", ratio, 450.0, role="correction")
        yield at_least(f"rho / corrected order, R={R:g}", ratio, 20.0, role="correction")


@measures("multihead.theorem-1", instances=20)
def theorem_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    found = _many_heads(rng, instances)
    yield from _conclusions(found, f"{found.H:.0f} heads, random start", "correction")
    yield from _informative(rng, instances, "correction")
    # DM1 as in the experiments: the target is a later iterate, the premises are far away
    drawn = problems.tokenized_mixture(n=100, rng=rng)
    model = models.MultiHead(heads=4)
    keep = {"all": lambda params, _: np.concatenate([params[k].ravel() for k in ("U", "W")])}
    run = optim.train(model, drawn, optim.GD(0.1), 1000, record=["loss", keep])
    points, losses = run.history["all"], run.history["loss"]
    far = np.linalg.norm(points - points[-1], axis=-1)
    for K in (30, 300):
        mean = losses[1 : K + 1].mean()
        bound = theory.multihead.training_bound(losses[-1], far[0], eta=0.1, K=K)
        words = f"DM1, 4 heads, K={K}: mean loss, as a share of the bound"
        yield at_most(words, mean / bound, 1.0, role="correction")
    yield from printed_order_is_too_small(2.0, 1.0)
    yield from corrected_order_is_right(rng, 100 * instances)
    # a product of sizes vanishes with the distance, rho does not
    near, sizes = np.logspace(-6.0, -3.0, 7), {"T": 9, "d": 4, "R": 1.0, "H": 1}
    rho = theory.multihead.rho(near, 1.0, **sizes)
    power = slope(1.0 / near, rho / theory.multihead.rho_order(near, 1.0, **sizes, printed=True))
    yield at_most("power of 1/distance in rho over its printed order", power, 0.01)


@measures("multihead.theorem-3", instances=10)
def theorem_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    found = _many_heads(rng, instances)
    yield from _conclusions(found, f"{found.H:.0f} heads, random start")
    yield from _informative(rng, instances)
    yield runs.short_segments(rng, "training", 3.0)
    for distance in (0.3, 1.0):
        drawn = runs.separable(rng, trials=instances, R=instance.LONG)
        found = runs.premise(drawn, distance, most=5000, R=instance.LONG)
        yield from _conclusions(found, f"distance {distance}, H={found.H:.3g}")
        smooth = [
            theory.multihead.beta2(
                found.path.longest(found.path.at(k)), T=2, d=1, R=instance.LONG, H=found.H
            )
            for k in (0, found.K)
        ]
        yield at_most(
            f"distance {distance}: beta_2 along the run, as a share of rho",
            smooth / found.rho,
            1.0,
            role="premise",
        )


@measures("multihead.assumption-2", instances=20)
def assumption_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    # zero start, W = 0: g_0 = log(1/eps) / margin, and g = g_0 / sqrt(H)
    drawn = instance.mixture(rng, n=20, Z_mu=0.1, Z_nu=0.1, trials=instances)
    model = models.MultiHead(heads=4)
    best = ntk.margin(model, model.init(drawn), drawn)
    levels = np.array([1.0, 0.1, 1e-2, 1e-4, 1e-8])
    reach = np.log(1.0 / levels)[:, None] / best.margin
    yield at_least("fall of g_0 from one epsilon to the next", np.diff(reach, axis=0), 0.0)
    for eps, g0 in zip(levels, reach, strict=True):
        target = {name: g0[:, None, None, None] * part for name, part in best.direction.items()}
        loss = model.value_and_grad(target, drawn)[0]
        yield at_most(f"loss in units of eps={eps:g}", loss / eps, 1.0)
        if eps < 1.0:
            yield at_most("distance, in units of g_0", instance.length(target) / g0, 1.0)
            heads = instance.longest_head(target)
            yield at_most("longest head, in units of g_0 / sqrt(H)", 2.0 * heads / g0, 1.0)
    # the same sample with both labels: no parameters reach a loss below log 2
    twice = SequenceProblem(np.repeat(drawn.X[0, :1], 2, axis=0), np.array([1.0, -1.0]))
    lowest = optim.train(model, twice, optim.GD(1.0), 200).history["loss"].min()
    yield at_most("loss reached on contradictory labels", lowest, 0.1, role="outside")


@measures("multihead.corollary-3", instances=10)
def corollary_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    shares, far, used = [], [], []
    for K in (3000, 20_000):
        found = runs.realizable(runs.separable(rng, trials=min(instances, 5)), K)
        bound = theory.multihead.training_bound(1 / K, found.reach, eta=found.eta, K=K)
        run = runs.long_run(found.problem, found.eta, K, heads=found.H)
        shares.append(run.last / bound)
        far.append(run.distance / found.reach)
        used.append(found.loss_at_reach * K)
    yield at_most("K L(theta_(1/K))", np.array(used), 1.0, role="premise")
    yield at_most("last loss, as a share of the bound", np.array(shares), 1.0)
    yield at_most("distance from the start, in units of g_0(1/K)", np.array(far), 4.0)
