"""How many heads a distance needs: enough of them (Proposition 8, this book's), and too few."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, exponent
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnbook.claims.multihead._generalization import SAMPLES, coin_gap, sentence
from attnlab import models, ntk
from attnlab.models import Params
from attnlab.problems import SequenceProblem

SIZES: dict[str, Any] = {"T": 2, "d": 1, "R": 1.0}
FAR = np.geomspace(5.0, 500.0, 9)  # distances of targets that too few heads miss


def _asked(distance: float, target: float, start: float = 0.0) -> tuple[float, float]:
    """The longest head allowed, and the heads asked for."""
    bound = theory.multihead
    kept = bound.kept_length(target, start, R=1.0)
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
        drawn = runs.separable(rng, trials=instances, least=0.9)
        H = math.ceil(_asked(distance, distance / _asked(distance, 0.0)[1] ** 0.5)[1])
        lead, start = f"from zero, distance {distance:g}, H={H:.3g}", instance.ONE.init(drawn)
        yield from _conclusions(lead, instance.ONE, start, drawn, distance, H, 1500, H)
    drawn, distance = runs.separable(rng, trials=2, least=0.9), 0.7
    H = math.ceil(_asked(distance, 0.6)[1])
    model = models.MultiHead(heads=H, start="gaussian", scale=0.05)
    lead, start = f"{H} heads, random start", model.init(drawn, rng)
    yield from _conclusions(lead, model, start, drawn, distance, H, 40)
    yield from _gaps(rng)
    yield from _too_few()


def _gaps(rng: np.random.Generator) -> Iterator[Measurement]:
    """Expected gaps for a fair coin's label; the target is as far as it must be, and no better."""
    bound, kept = theory.multihead, float(theory.multihead.kept_length(0.0, 0.0, R=1.0))
    for T in (1, 2):
        sizes: dict[str, Any] = {"T": T, "d": 1, "R": 1.0}
        H, lead = 10**8, f"{T} token{'s' if T > 1 else ''}, a fair coin's label"
        eta = 1.0 / float(bound.beta2(kept, **sizes, H=H))
        far = math.sqrt(eta * math.log(2.0))
        asked = bound.H_min_kept(far, kept, **sizes, purpose="generalization") / H
        yield at_most(f"{lead}: H asked for, as a share of H", asked, 1.0, role="premise")
        step: dict[str, Any] = {"eta": eta, "K": 1, "n": SAMPLES}
        limits = bound.gap_bound_kept(math.log(2.0), far, kept, **step, T=T, R=1.0)
        tokens = sentence(rng, T)
        gaps = np.array([coin_gap(tokens, int(n), eta, 1, H) for n in SAMPLES])
        yield at_most(f"{lead}: expected gap, as a share of the bound", gaps / limits, 1.0)


def in_order() -> SequenceProblem:
    """Which of two opposite words comes first; W = 0 sees their mean, which is 0."""
    return SequenceProblem(np.array([[[1.0], [-1.0]], [[-1.0], [1.0]]]), np.array([1.0, -1.0]))


def needed_heads() -> Measurement:
    """The exponent of the heads that are needed, in the distance of the target."""
    what = "heads below which Theorem 3's conclusion fails, in the distance"
    heads = theory.multihead.too_few_heads(FAR)
    return exponent(what, FAR, heads, 4.0, within=0.05, role="suggests")


def _too_few() -> Iterator[Measurement]:
    """A run with half of the heads that are too few, from a start next to zero."""
    distance, drawn = 10.0, in_order()
    H = int(theory.multihead.too_few_heads(distance)) // 2
    half = distance / 2.0**0.5
    U, W = half * np.array([[[1.0], [-1.0]]]) / 2.0**0.5, np.full((1, 1, 1), half / H**0.5)
    loss = float(instance.ONE.value_and_grad({"U": U, "W": W}, drawn)[0])
    kept = float(theory.multihead.kept_length(distance / H**0.5, 0.0, R=1.0))
    eta = 1.0 / float(theory.multihead.beta2(kept, **SIZES, H=H))
    K = int(distance**2 / (eta * loss))
    start = {"U": 1e-6 * np.sign(U), "W": np.full_like(W, 1e-6)}
    path = runs.descend(instance.ONE, drawn, eta, K, start=start, heads=H)
    far = path.distance({"U": U, "W": W}, start)
    what = "two words' order: distance of the target, as a share"
    yield at_most(what, far / distance, 1.001, role="premise")
    limit = theory.multihead.training_bound(loss, distance, eta=eta, K=K)
    what = f"two words' order, {H} heads, {K} steps: mean loss, as a share of the bound"
    yield at_most(what, path.losses[1:].mean() / limit, 1.0, role="outside")
