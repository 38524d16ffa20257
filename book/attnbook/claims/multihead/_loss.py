"""Corollary 1 and its lemmas: a loss that bounds its own gradient and its own concavity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims._registry import claim
from attnbook.claims.multihead import _instances as instance
from attnlab import curvature, models, ntk, problems
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


@claim(
    "multihead.assumption-1",
    "Assumption 1",
    "labels are signs and no token is longer than R, with R at least 1",
    r"Almost surely $y\in\{\pm1\}$ and $\|x_t\|\le R$ for all $t\in[T]$, for some $R\ge1$.",
    status="definition",
    page="multihead/loss",
    instances=100,
    reason="The paper's own experiments draw Gaussian noise, which no R bounds.",
)
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


@claim(
    "multihead.corollary-1",
    "Corollary 1",
    "the loss bounds its gradient and its negative curvature, which falls with 1/sqrt(H)",
    r"Under Assumption 1: $\|\nabla\hat L\|\le\beta_1\hat L$ with "
    r"$\beta_1=\sqrt TR(2R^2\|\tilde\theta\|_{2,\infty}+1)$; $\|\nabla^2\hat L\|\le\beta_2="
    r"\frac{\beta_3}{\sqrt H}+\frac{\beta_1^2}4$; $\lambda_{\min}(\nabla^2\hat L)\ge"
    r"-\frac{\beta_3}{\sqrt H}\hat L$ with "
    r"$\beta_3=2\sqrt{Td}R^3(3\sqrt dR^2\|\tilde\theta\|_{2,\infty}+1)$.",
    page="multihead/loss",
    instances=40,
    correction=r"Sharper, ours: $\beta_3=\sqrt TR^3(2R^2\|\tilde\theta\|_{2,\infty}+1)$, "
    r"without $d$.",
    errata=("multihead.erratum-8", "multihead.erratum-29"),
)
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


@claim(
    "multihead.lemma-6",
    "Lemma 6",
    "Corollary 1 with the largest readout in place of the largest head",
    r"Under Assumption 1 the three properties of Corollary 1 hold with $\max_h\|U_h\|_F$ in "
    r"place of $\|\tilde\theta\|_{2,\infty}$.",
    page="multihead/loss",
    instances=40,
    correction=r"Sharper, ours: $\beta_3=\sqrt TR^3(2R^2\max_h\|U_h\|_F+1)$, without $d$.",
    errata=("multihead.erratum-8",),
)
def lemma_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _properties(rng, instances, readout=True)


@claim(
    "multihead.lemma-5",
    "Lemma 5",
    "H heads: the gradient is no larger than one head's, the Hessian smaller by 1/sqrt(H)",
    r"Under Assumption 1: $\|\nabla\tilde\Phi\|\le\sqrt TR(2R^2\max_h\|U_h\|_F+1)$ and "
    r"$\|\nabla^2\tilde\Phi\|\le\frac{2\sqrt{Td}R^3}{\sqrt H}"
    r"(3\sqrt dR^2\max_h\|U_h\|_F+1)$.",
    page="multihead/loss",
    instances=20,
    correction=r"Sharper, ours: $\|\nabla^2\tilde\Phi\|\le\frac{\sqrt TR^3}{\sqrt H}"
    r"(2R^2\max_h\|U_h\|_F+1)$.",
)
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
