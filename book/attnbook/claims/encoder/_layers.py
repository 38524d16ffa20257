"""Lemmas 7 to 13: how far attention, layers and outputs move, and how large gradients are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.encoder._instances import (
    KINDS,
    Network,
    frobenius,
    moved,
    moves,
    network,
    scalar_networks,
)
from attnlab import models, ntk
from attnlab.checks import Array
from attnlab.models import Params, softmax
from attnlab.problems import SequenceProblem

SHAPES = ((1, 1, 3, 2), (3, 2, 2, 5), (4, 5, 3, 8))  # (n, T, d, width)
Move = tuple[models.Encoder, Params, Params, SequenceProblem]
Pair = tuple[str, models.Encoder, Params, Params, SequenceProblem]


def networks(rng: np.random.Generator, trials: int) -> Iterator[tuple[str, Network]]:
    """Starts of all kinds and shapes, by name."""
    for init, scaling in KINDS:
        for n, T, d, width in SHAPES:
            made = network(
                rng, trials, n=n, T=T, d=d, width=width, init=init, scaling=scaling, unit=False
            )
            yield f"{init} {scaling} n={n} d_s={T}", made


def pairs(rng: np.random.Generator, trials: int) -> Iterator[Pair]:
    """Two points of weight space, from very close to far apart."""
    for name, (model, params, problem) in networks(rng, trials):
        sizes = 10.0 ** rng.uniform(-3.0, 0.5, trials)
        yield name, model, params, moved(params, rng, sizes), problem


@measures("encoder.lemma-7", instances=60)
def lemma_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, most, sharp = theory.encoder, [], []
    for _, model, one, two, problem in pairs(rng, instances):
        gap = model.attention(two, problem) - model.attention(one, problem)
        row = np.linalg.norm(gap, axis=-1).max(axis=(-2, -1))
        b, by = e.bars(model, problem, one, two), moves(one, two)
        most.append(row / e.lemma_7_bound(b, by["W_Q"], by["W_K"]))
        sharp.append(row / e.lemma_7_bound(b, by["W_Q"], by["W_K"], sharp=True))
    yield at_most("move of a row of attention over its bound", np.stack(most), 1.0)
    yield at_most("the same with 1 for 2", np.stack(sharp), 1.0, role="correction")
    model, one, two, problem = opposite_tokens(instances)
    gap = model.attention(two, problem) - model.attention(one, problem)
    row = np.linalg.norm(gap, axis=-1).max(axis=(-2, -1))
    b, by = e.bars(model, problem, one, two), moves(one, two)
    bound = e.lemma_7_bound(b, by["W_Q"], by["W_K"], sharp=True)
    yield at_most("two opposite tokens, against the bound with 1", row, bound, role="correction")
    yield at_least("two opposite tokens, against a third of that", row, bound / 3.0)


def opposite_tokens(trials: int) -> Move:
    """Attention at one half each, about to move: the bound with 1 is met to a factor 2 sqrt 2."""
    model = models.Encoder(1, "lecun", 1.0, "sum", "half_sum")
    X = np.broadcast_to(np.array([[[1.0], [-1.0]]]), (trials, 1, 2, 1))
    one, zero = np.ones((trials, 1, 1)), np.zeros((trials, 1, 1))
    small = np.geomspace(1e-3, 1e-1, trials)[:, None, None]
    start = {"W_Q": one, "W_K": zero, "W_V": one, "w_O": one[:, 0]}
    return model, start, start | {"W_K": small}, SequenceProblem(X, np.zeros((trials, 1)))


@measures("encoder.lemma-8")
def lemma_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for T in (1, 2, 7):
        low, high = theory.encoder.lemma_8_interval(T)
        sizes = rng.uniform(0.0, 30.0, (instances, 1))
        v = softmax(sizes * rng.standard_normal((instances, T)))
        length = np.linalg.norm(v, axis=-1)
        yield at_most(f"length, d_s={T}", length, high)
        yield at_least(f"length, d_s={T}", length, low)
        yield equal(f"uniform row, d_s={T}", np.linalg.norm(np.full(T, 1.0 / T)), low)
    hot = np.linalg.norm(np.eye(T)[0])
    yield equal("one-hot row", hot, high)


def layer_moves(rng: np.random.Generator, trials: int) -> Iterator[Pair]:
    """Pairs, and scalar networks in which one weight alone moves: there bounds are equalities."""
    yield from pairs(rng, trials)
    model, params, problem = scalar_networks(rng, trials)
    for name in ("W_V", "w_O"):
        yield f"scalar, {name}", model, params, params | {name: 1.5 * params[name]}, problem


@measures("encoder.lemma-9", instances=60)
def lemma_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, most, looks = theory.encoder, [], []
    for name, model, one, two, problem in layer_moves(rng, instances):
        gap = frobenius(model.features(two, problem) - model.features(one, problem))
        b, by = e.bars(model, problem, one, two), moves(one, two)
        bound = e.lemma_9_bound(b, by["W_Q"], by["W_K"], by["W_V"])
        if name == "scalar, W_V":
            yield equal("move of F_pre where W_V alone moves, scalar", gap, bound)
        elif bound.all():
            most.append(gap / bound)
            mean = models.Encoder(model.width, model.init, model.scaling, "mean")
            less = frobenius(mean.features(two, problem) - mean.features(one, problem))
            same = e.bars(mean, problem, one, two)
            most.append(less / e.lemma_9_bound(same, by["W_Q"], by["W_K"], by["W_V"]))
            turned = two | {name: one[name] for name in ("W_V", "w_O")}
            gone = frobenius(model.features(turned, problem) - model.features(one, problem))
            still = e.bars(model, problem, one, turned)
            half = e.lemma_9_bound(still, by["W_Q"], by["W_K"], 0.0)
            looks.append((gone, half))
    yield at_most("move of F_pre over its bound", np.stack(most), 1.0)
    gone, half = np.array(looks).swapaxes(0, 1)
    yield at_most("move of F_pre where queries and keys alone move", gone, half)


@measures("encoder.lemma-10", instances=60)
def lemma_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, gaps, bounds, norms = theory.encoder, [], [], []
    for name, model, one, two, problem in layer_moves(rng, instances):
        gap = np.linalg.norm(model.forward(two, problem) - model.forward(one, problem), axis=-1)
        F = model.features(one, problem)
        hidden = frobenius(model.features(two, problem) - F)
        b = e.bars(model, problem, one, two)
        bound = e.lemma_10_bound(b, moves(one, two)["w_O"], hidden)
        if name == "scalar, w_O":
            yield equal("move of f where w_O alone moves, scalar", gap, bound)
        gaps.append(gap)
        bounds.append(bound)
        own = e.rho(b) * e.norms(one)["W_V"]
        norms.append(np.linalg.norm(F, ord=2, axis=(-2, -1)) / own)
    yield at_most("move of the outputs against its bound", np.stack(gaps), np.stack(bounds))
    yield at_most("norm of F_pre over rho times the norm of W_V", np.stack(norms), 1.0)


@measures("encoder.lemma-11")
def lemma_11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    h, T = 1e-5, 5
    u = 2.0 * rng.standard_normal((instances, T))
    J = theory.encoder.softmax_jacobian(softmax(u))
    step = h * np.eye(T)
    differences = softmax(u[:, None] + step) - softmax(u[:, None] - step)
    yield equal(
        "Jacobian against central differences", J, differences.mT / (2.0 * h), within=1e-8, size=1.0
    )
    size = np.linalg.norm(J, ord=2, axis=(-2, -1))
    yield at_most("norm of the Jacobian", size, 0.5)
    what = "norm at two equal weights"
    yield equal(what, np.linalg.norm(theory.encoder.softmax_jacobian([0.5, 0.5]), ord=2), 0.5)


@measures("encoder.lemma-12", instances=60)
def lemma_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    worst: dict[str, list[Array]] = {}
    long: dict[str, list[Array]] = {"W_Q": [], "W_K": []}
    for _, (model, params, problem) in networks(rng, instances):
        found = gradient_shares(model, params, problem)
        for key, share in found.items():
            if problem.T > 1 or key in ("W_V", "w_O"):
                worst.setdefault(key, []).append(share)
        slanted = params | {"W_Q": 100.0 * params["W_Q"], "W_K": params["W_K"] / 100.0}
        found = gradient_shares(model, slanted, problem)
        for key in long:
            if problem.T > 1:
                long[key].append(found[key])
    for key, shares in long.items():
        words = f"gradient in {key} over its bound, queries 10,000 times longer than keys"
        yield at_most(words, np.stack(shares), 1.0)
    for key, shares in worst.items():
        yield at_most(f"gradient in {key} over its bound", np.stack(shares), 1.0)
        if key in ("W_Q", "W_K"):
            yield at_most(
                f"gradient in {key}, 1/2 for 2", np.stack(shares), 0.25, role="correction"
            )
    model, params, problem = scalar_networks(rng, instances)
    residual = np.linalg.norm(model.forward(params, problem) - problem.y, axis=-1)
    grads, factors = (
        model.value_and_grad(params, problem)[1],
        e.gradient_factors(e.bars(model, problem, params)),
    )
    for key in ("W_V", "w_O"):
        size = np.abs(grads[key]).reshape(instances)
        yield equal(f"gradient in {key}, scalar network", size, factors[key] * residual)


def gradient_shares(
    model: models.Encoder, params: Params, problem: SequenceProblem
) -> dict[str, Array]:
    """Norm of each gradient over its bound."""
    _, grads = model.value_and_grad(params, problem)
    residual = np.linalg.norm(model.forward(params, problem) - problem.y, axis=-1)
    factors = theory.encoder.gradient_factors(theory.encoder.bars(model, problem, params))
    return {
        key: np.linalg.norm(grads[key].reshape(len(residual), -1), axis=-1)
        / (factors[key] * residual)
        for key in grads
    }


@measures("encoder.lemma-13", instances=60)
def lemma_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, most, traces = theory.encoder, [], []
    for _, (model, params, problem) in networks(rng, instances):
        K = ntk.empirical(model, params, problem)
        bound = e.c2(e.bars(model, problem, params))
        most.append(np.sqrt(np.linalg.eigvalsh(K)[..., -1]) / bound)
        traces.append(np.sqrt(np.trace(K, axis1=-2, axis2=-1)) / bound)
    yield at_most("norm of the Jacobian over c_2", np.stack(most), 1.0)
    yield at_most("root of the kernel's trace over c_2", np.stack(traces), 1.0)
    model, params, problem = scalar_networks(rng, instances)
    K = ntk.empirical(model, params, problem)[:, 0, 0]
    yield equal(
        "norm of the Jacobian, scalar network", np.sqrt(K), e.c2(e.bars(model, problem, params))
    )
