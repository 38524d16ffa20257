"""How many heads a distance needs: enough of them (Proposition 8, this book's), and too few."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnbook.claims.multihead._generalization import SAMPLES, coin_gap, sentence
from attnlab import models, ntk
from attnlab.models import Params
from attnlab.problems import SequenceProblem

SIZES: dict[str, Any] = {"T": 2, "d": 1, "R": instance.LONG}
FAR = np.geomspace(100.0, 1e4, 9)  # distances of targets that too few heads miss


def _asked(distance: float, target: float, start: float = 0.0) -> tuple[float, float]:
    """The longest head allowed, and the heads asked for."""
    bound = theory.multihead
    kept = bound.kept_length(target, start, R=instance.LONG)
    return float(kept), float(bound.H_min_kept(distance, kept, **SIZES))


def _conclusions(
    lead: str, model: models.MultiHead, start: Params, drawn: SequenceProblem, distance: float,
    H: int, most: int, one_for: float = 1.0,
) -> Iterator[Measurement]:  # fmt: skip
    """Theorem 3's conclusions with the longest steps that Proposition 8 allows."""
    best = ntk.margin(model, start, drawn).direction
    target = {name: part + distance * best[name] for name, part in start.items()}
    longest = [float(instance.longest_head(p).max()) / one_for**0.5 for p in (target, start)]
    kept, asked = _asked(distance, *longest)
    yield at_most(f"{lead}: H asked for, as a share of H", asked / H, 1.0, role="premise")
    loss, first = (model.value_and_grad(p, drawn)[0] for p in (target, start))
    smooth = float(theory.multihead.beta2(kept, **SIZES, H=H))
    K = int(min(most, max(1.0, float((distance**2 * smooth / loss).max()))))
    eta = np.minimum(1.0 / smooth, distance**2 / np.maximum(K * loss, first))
    path = runs.descend(model, drawn, eta, K, start=start, heads=one_for)
    limit = theory.multihead.training_bound(loss, distance, eta=eta, K=K)
    mean = path.losses[1:].mean(axis=0)
    if one_for > 1.0:
        what = f"{lead}, {K} steps: bound, as a share of the loss at the start"
        yield at_most(what, limit / first, 0.95, role="premise")
    yield at_most(f"{lead}: mean loss, as a share of the bound", mean / limit, 1.0)
    far = np.max([path.distance(path.at(k), start) for k in range(K + 1)], axis=0)
    yield at_most(f"{lead}: distance from the start, in the target's", far / distance, 4.0)
    heads = np.max([path.longest(path.at(k)) for k in range(K + 1)], axis=0)
    yield at_most(f"{lead}: longest head, as a share of M", heads / kept, 1.0)


@measures("multihead.proposition-8", instances=5)
def proposition_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for distance in (1.5, 5.0, 15.0):
        drawn = runs.separable(rng, trials=instances, least=0.9, R=instance.LONG)
        H = math.ceil(_asked(distance, distance / _asked(distance, 0.0)[1] ** 0.5)[1])
        lead, start = f"from zero, distance {distance:g}, H={H:.3g}", instance.ONE.init(drawn)
        yield from _conclusions(lead, instance.ONE, start, drawn, distance, H, 1500, H)
    drawn, distance = runs.separable(rng, trials=2, least=0.9, R=instance.LONG), 0.5
    H = math.ceil(_asked(distance, 0.6)[1])
    model = models.MultiHead(heads=H, start="gaussian", scale=0.05)
    lead, start = f"{H} heads, random start", model.init(drawn, rng)
    yield from _conclusions(lead, model, start, drawn, distance, H, 40)
    yield from _proof(rng, 4 * instances)
    yield from _gaps(rng)
    yield from _too_few()


def _proof(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """What the proof needs of M and of the head counts, at these head counts and random sizes."""
    bound = theory.multihead
    T, delta, R = rng.integers(1, 9, instances), *rng.uniform(1.2, 4.0, (2, instances))
    allowed = []
    for start in (0.0, 0.1, 1.0, 10.0):  # R^2 times the longest head at the start
        kept = bound.kept_length(0.0, start / R**2, R=R)
        H = bound.H_min_kept(delta, kept, T=T, d=1, R=R)
        # heads grow by their own Lipschitz constant while the losses last: |theta_h| + 1/(2R^2)
        # is multiplied by at most the exponential of
        power = 2.0 * np.sqrt(T) * R**3 * 17.0 / 4.0 * delta**2 / np.sqrt(H)
        grown = (start + 0.5) / R**2 * np.expm1(power)
        allowed.append(grown / (kept - start / R**2))
    what = "growth of the longest head in the proof, over what M leaves for it"
    yield at_most(what, allowed, 1.0)
    yield equal(f"{what}, from zero", allowed[0], 1.0, within=0.005)
    d, norm, share = rng.integers(1, 6, instances), rng.uniform(0.1, 3.0, instances), []
    for purpose, away in (("training", 3.0), ("generalization", 8.0)):
        H = bound.H_min_kept(delta, norm, T=T, d=d, R=R, purpose=purpose)
        beta3 = bound.beta3(norm, T=T, d=d, R=R)
        share.append(bound.short_enough(away * delta, beta3, H=H))
    what = "segments of 3 distances, and of 8 for two runs, as a share of the admissible length"
    yield equal(what, share, 1.0)
    losses = 17.0 / 4.0 * delta**2  # eta times the losses of all steps of one run
    rates = bound.quasi_convexity() * beta3 / np.sqrt(H) * 2.0 * losses
    yield at_most("sum of the growth rates of two runs' distance", rates, 0.1)
    eta, loss, n = *rng.uniform(0.1, 2.0, (2, instances)), rng.integers(2, 50, instances)
    steep = np.sqrt(T) * R * (2.0 * R**2 * norm + 1.0)
    losses = 2.0 * 7 * loss + 9.0 / 4.0 * delta**2 / eta  # of 7 steps, the start's among them
    apart = np.exp(0.1) * eta * steep / n * losses
    found = bound.gap_bound_kept(loss, delta, norm, eta=eta, K=7, n=n, T=T, R=R)
    yield equal("bound on the gap, by Lemma 3", found, bound.on_average_bound(apart, steep))


def _gaps(rng: np.random.Generator) -> Iterator[Measurement]:
    """Expected gaps for a fair coin's label; the target is as far as it must be, and no better."""
    bound, R = theory.multihead, instance.LONG
    kept = float(bound.kept_length(0.0, 0.0, R=R))
    for T in (1, 2):
        sizes: dict[str, Any] = {"T": T, "d": 1, "R": R}
        H, lead = 10**8, f"{T} token{'s' if T > 1 else ''}, a fair coin's label"
        eta = 1.0 / float(bound.beta2(kept, **sizes, H=H))
        far = math.sqrt(eta * math.log(2.0))
        asked = bound.H_min_kept(far, kept, **sizes, purpose="generalization") / H
        yield at_most(f"{lead}: H asked for, as a share of H", asked, 1.0, role="premise")
        step: dict[str, Any] = {"eta": eta, "K": 1, "n": SAMPLES}
        limits = bound.gap_bound_kept(math.log(2.0), far, kept, **step, T=T, R=R)
        tokens = R * sentence(rng, T)
        gaps = np.array([coin_gap(tokens, int(n), eta, 1, H) for n in SAMPLES])
        yield at_most(f"{lead}: expected gap, as a share of the bound", gaps / limits, 1.0)


def in_order() -> SequenceProblem:
    """Which of two opposite words comes first; W = 0 sees their mean, which is 0."""
    return SequenceProblem(np.array([[[1.0], [-1.0]], [[-1.0], [1.0]]]), np.array([1.0, -1.0]))


def _too_few() -> Iterator[Measurement]:
    """Heads that are too few at large distances, and a run with half as many as that."""
    margin = -np.log(2.0 ** (4.0 / 13.0) - 1.0)
    share = theory.multihead.too_few_heads(FAR) / (FAR**4 / (2.0 * margin**2))
    what = "two words' order: heads that are too few, over distance^4 / (2 m^2)"
    yield equal(what, share, 1.0, within=2e-3)
    distance, drawn = 10.0, in_order()
    H = int(theory.multihead.too_few_heads(distance)) // 2
    half = distance / 2.0**0.5
    U, W = half * np.array([[[1.0], [-1.0]]]) / 2.0**0.5, np.full((1, 1, 1), half / H**0.5)
    loss = float(instance.ONE.value_and_grad({"U": U, "W": W}, drawn)[0])
    kept = float(theory.multihead.kept_length(distance / H**0.5, 0.0, R=1.0))
    eta = 1.0 / float(theory.multihead.beta2(kept, **SIZES | {"R": 1.0}, H=H))
    K = int(distance**2 / (eta * loss))
    start = {"U": 1e-6 * np.sign(U), "W": np.full_like(W, 1e-6)}
    path = runs.descend(instance.ONE, drawn, eta, K, start=start, heads=H)
    far = path.distance({"U": U, "W": W}, start)
    what = "two words' order: distance of the target, as a share"
    yield at_most(what, far / distance, 1.001, role="premise")
    limit = theory.multihead.training_bound(loss, distance, eta=eta, K=K)
    what = f"two words' order, {H} heads, {K} steps: mean loss, as a share of the bound"
    yield at_most(what, path.losses[1:].mean() / limit, 1.0, role="outside")
