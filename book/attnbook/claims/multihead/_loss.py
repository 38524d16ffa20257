"""Corollary 1 and its lemmas: a loss that bounds its own gradient and its own concavity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.multihead import _instances as instance
from attnlab import curvature, models, ntk, problems
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


@measures("multihead.assumption-1")
def assumption_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    size: dict[str, Any] = {"S": 2.0, "Z_nu": 0.4, "M": 2}
    drawn = instance.mixture(rng, n=instances, Z_mu=0.4, Z_nu=0.4, corners=True)
    noise = np.linalg.norm([0.2, 0.2, 0.1, 0.1])
    R = theory.multihead.token_bound(**size, Z=float(noise))
    lengths = np.linalg.norm(drawn.X, axis=-1)
    yield at_most("longest token of a mixture with bounded noise", lengths, R)
    yield equal("labels in size", np.abs(drawn.y), 1.0)
    yield at_least("R", R, 1.0)
    # Gaussian noise of the same typical size passes every R sooner or later
    gaussian = problems.tokenized_mixture(n=20 * instances, sigma=float(noise) / 2.0, rng=rng)
    lengths = np.linalg.norm(gaussian.X, axis=-1)
    yield at_most("longest token with Gaussian noise", lengths, R, role="outside")


def _networks(
    rng: np.random.Generator, instances: int
) -> Iterator[tuple[models.MultiHead, SequenceProblem, Params, float]]:
    """Networks of 1 to 8 heads on bounded tokens, and instances where bounds are nearly met."""
    for H, T, d, R in ((1, 4, 2, 1.0), (2, 3, 3, 1.5), (4, 4, 1, 1.0), (8, 3, 2, 2.0)):
        for family in (instance.bounded, instance.on_a_line):
            drawn = family(rng, trials=instances, n=3, T=T, d=d, R=R)
            yield models.MultiHead(heads=H), drawn, instance.heads(rng, drawn, H), R
    # equal tokens and small aligned readouts: confident outputs, all gradients along each other
    lined = instance.on_a_line(rng, trials=1, n=3, T=64, d=1)
    lined = SequenceProblem(lined.y[..., None, None] * np.ones((1, 3, 64, 1)), lined.y)
    yield (
        models.MultiHead(heads=1),
        lined,
        {"U": np.full((1, 1, 64, 1), 0.025), "W": np.zeros((1, 1, 1, 1))},
        1.0,
    )
    # a zero start: only the mixed derivative in U and W is left
    plain = instance.on_a_line(rng, trials=instances, n=1, T=2, d=1)
    yield models.MultiHead(heads=4), plain, models.MultiHead(heads=4).init(plain), 1.0


def _measured(rng: np.random.Generator, instances: int, *, readout: bool) -> dict[str, Array]:
    """Sides of the three properties as shares of their bounds."""
    found: dict[str, list[Array]] = {}
    bound, length = theory.multihead, instance.longest_head
    if readout:
        length = instance.longest_readout
    for model, drawn, params, R in _networks(rng, instances):
        size, sizes = length(params), {"T": drawn.T, "R": R}
        loss, grads = model.value_and_grad(params, drawn)
        low, high = curvature.hessian(model, params, drawn).extremes
        norm, root = np.maximum(np.abs(low), np.abs(high)), np.sqrt(model.heads)
        curved = {s: bound.beta3(size, d=drawn.d, **sizes, sharp=s) for s in (False, True)}
        beta2 = {
            s: bound.beta2(size, d=drawn.d, H=model.heads, **sizes, sharp=s) for s in (False, True)
        }
        for name, share in {
            "(1)": instance.length(grads) / (bound.beta1(size, **sizes) * loss),
            "(2)": norm / beta2[False],
            "(2) sharp": norm / beta2[True],
            "(3)": -low * root / (curved[False] * loss),
            "(3) sharp": -low * root / (curved[True] * loss),
        }.items():
            found.setdefault(name, []).append(np.asarray(share))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _properties(
    rng: np.random.Generator, instances: int, *, readout: bool
) -> Iterator[Measurement]:
    shares = _measured(rng, instances, readout=readout)
    names = {"(1)": "gradient", "(2)": "Hessian", "(3)": "negative curvature"}
    for name, words in names.items():
        yield at_most(f"{name} {words}, as a share of its bound", shares[name], 1.0)
    for name in ("(2)", "(3)"):
        share = shares[f"{name} sharp"]
        words = f"{name} {names[name]}, as a share of its bound without d"
        yield at_most(words, share, 1.0, role="correction")
    yield at_least("share of instances that are not convex", (shares["(3)"] > 0.0).mean(), 0.5)


@measures("multihead.corollary-1", instances=40)
def corollary_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _properties(rng, instances, readout=False)
    # the power of H is attained at zero, by tokens that differ
    few = -(-instances // 40)
    drawn = instance.bounded(rng, trials=2 * few, n=1, T=2, d=1).trial(slice(1, None, 2))
    counts, bent = np.array([2, 8, 32, 200]), []
    for H in counts:
        model = models.MultiHead(heads=int(H))
        bent.append(curvature.weak_convexity(model, model.init(drawn), drawn).mean())
    yield equal("power of H in -lambda_min / L, zero start", slope(counts, bent), -0.5)


@measures("multihead.lemma-6", instances=40)
def lemma_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _properties(rng, instances, readout=True)


@measures("multihead.lemma-5", instances=20)
def lemma_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    shares: dict[str, list[Array]] = {"gradient": [], "Hessian": [], "sharp": []}
    moved, crossing = [], []
    for model, drawn, params, R in _networks(rng, instances):
        size = instance.longest_readout(params)[:, None]
        exact = ntk.jacobian(model, params, drawn)
        squares = sum((part**2).sum(axis=(-1, -2, -3)) for part in exact.values())
        gradient = np.sqrt(np.asarray(squares))
        shares["gradient"].append(gradient / theory.multihead.beta1(size, T=drawn.T, R=R))
        bent = curvature.hessian(model, params, drawn, of="output")
        low, high = bent.extremes
        norm = np.maximum(np.abs(low), np.abs(high)) * np.sqrt(model.heads)
        for name, sharp in (("Hessian", False), ("sharp", True)):
            beta3 = theory.multihead.beta3(size, T=drawn.T, d=drawn.d, R=R, sharp=sharp)
            shares[name].append(norm / beta3)
        if model.heads > 1:  # move the other heads: the first one's gradient stays
            shift = (np.arange(model.heads) > 0)[:, None, None]
            other = {name: part + shift for name, part in params.items()}
            again = ntk.jacobian(model, other, drawn)
            moved += [np.abs(again[name] - part)[:, :, 0].max() for name, part in exact.items()]
            mixed, square = bent.blocks["U", "W"], bent.blocks["W", "W"]
            first, d2 = drawn.T * drawn.d, drawn.d**2
            crossing += [np.abs(mixed[..., :first, d2:]).max(), np.abs(square[..., :d2, d2:]).max()]
    found = {
        name: np.concatenate([part.ravel() for part in parts]) for name, parts in shares.items()
    }
    yield at_most("gradient, as a share of its bound", found["gradient"], 1.0)
    yield at_most("Hessian, as a share of its bound", found["Hessian"], 1.0)
    yield equal("blocks of the Hessian where heads meet", crossing, 0.0, size=1.0)
    yield equal("gradient of a head when others move", moved, 0.0, size=1.0)
    yield at_most(
        "Hessian, as a share of its bound without d", found["sharp"], 1.0, role="correction"
    )
