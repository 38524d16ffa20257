"""Slips in the first derivatives: a lost dot, a sign, a letter, a product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims.encoder._errata._pieces import Pieces, flip, pieces, same
from attnlab.checks import Array
from attnlab.models import softmax

SLOPE = 1e-6  # step of central differences


def value_gradient(p: Pieces, slopes: Array) -> Array:
    """Equation 7's gradient in W_V of each output: sum over i of (w_O * slopes) u_i'."""
    weighted = slopes * p.params["w_O"][..., None, None, :]
    return np.asarray(p.model.tau1 * (flip(weighted) @ p.u))


def query_gradient(p: Pieces, slopes: Array, keys: Array) -> Array:
    """Equation 9's gradient in W_Q of each output, with ``keys`` in the place of W_K."""
    each = flip(p.turned(slopes)) @ p.X
    return np.asarray(p.model.tau0 * p.model.tau1 * (keys[..., None, :, :] @ each))


def _relu(p: Pieces) -> Array:
    return np.maximum(p.pre, 0.0)


def _difference(p: Pieces, rng: np.random.Generator) -> tuple[Array, Array]:
    """Central differences of the outputs along a random direction, and what the gradient says.

    Trials in which relu switches on the way are left out: there the difference is no derivative.
    """
    step = {name: rng.standard_normal(array.shape) for name, array in p.params.items()}
    ahead, behind = (p.moved({k: s * SLOPE * a for k, a in step.items()}) for s in (1, -1))
    kept = (ahead.gate == behind.gate).all(axis=(-3, -2, -1))
    outputs = [q.model.forward(q.params, q.problem) for q in (ahead, behind)]
    found = (outputs[0] - outputs[1]) / (2.0 * SLOPE)
    told = sum(
        (p.gradient[name] * step[name][:, None]).sum(axis=tuple(range(2, step[name].ndim + 1)))
        for name in step
    )
    return found[kept], np.asarray(told)[kept]


@measures("encoder.erratum-t1", instances=60)
def t1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, instances)
    found, told = _difference(p, rng)
    yield same("central differences, the gradient", told, found, 1, role="correction", within=1e-6)
    truth, W_K = p.gradient, p.params["W_K"]
    yield same("(7), gradient in W_V", value_gradient(p, _relu(p)), truth["W_V"], 3)
    yield same("(7) with the dot", value_gradient(p, p.gate), truth["W_V"], 3, role="correction")
    yield same(
        "(9), gradient in W_Q", query_gradient(p, _relu(p), W_K), truth["W_Q"], 3, role="step"
    )
    yield same(
        "(9) with the dot", query_gradient(p, p.gate, W_K), truth["W_Q"], 3, role="correction"
    )
    other = Pieces(p.model, p.model.init(p.problem, rng), p.problem)
    change = other.gradient["W_V"] - truth["W_V"]
    printed = value_gradient(other, _relu(other)) - value_gradient(p, _relu(p))
    mended = value_gradient(other, other.gate) - value_gradient(p, p.gate)
    yield same("(17), change of the gradient in W_V", printed, change, 3, role="step")
    yield same("(17) with the dot", mended, change, 3, role="correction")
    entries, mended = (_entries(p, slopes) for slopes in (_relu(p), p.gate))
    yield same("D.1, entries of df/dW_Q", entries, truth["W_Q"], 3, role="step")
    yield same("D.1 with the dot", mended, truth["W_Q"], 3, role="correction")
    q = pieces(rng, instances, T=4, d=1, unit_tokens=False)
    scalar, mended = (_one_feature(q, slopes) for slopes in (_relu(q), q.gate))
    yield same("(73), d = 1", scalar, q.gradient["W_Q"][..., 0], 2, role="step")
    yield same("(73) with the dot", mended, q.gradient["W_Q"][..., 0], 2, role="correction")


def _entries(p: Pieces, slopes: Array) -> Array:
    """D.1 entry by entry: sum over i of (w_O * slopes)' W_V X'J_i X W_K'e_p e_q'x_i."""
    keys = p.X @ flip(p.params["W_K"])[..., None, :, :]
    scores = p.back(slopes) @ flip(p.X)
    row = (scores[..., None, :] @ p.spread) @ keys[..., None, :, :]
    total = np.einsum("...ip,...iq->...pq", row[..., 0, :], p.X)
    return np.asarray(p.model.tau0 * p.model.tau1 * total)


def _one_feature(p: Pieces, slopes: Array) -> Array:
    """Equation 73 for tokens of one feature."""
    x = p.X[..., 0]
    inner = (slopes * (p.params["W_V"][..., 0] * p.params["w_O"])[..., None, None, :]).sum(axis=-1)
    spread = (x[..., None, None, :] @ p.spread @ x[..., None, :, None])[..., 0, 0]
    total = (x * inner * spread).sum(axis=-1)[..., None] * p.params["W_K"][..., None, :, 0]
    return np.asarray(p.model.tau0 * p.model.tau1 * total)


@measures("encoder.erratum-t2", instances=60)
def t2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, instances)
    truth = p.model.value_and_grad(p.params, p.problem)[1]
    residual = p.model.forward(p.params, p.problem) - p.problem.y
    for equation, name, role in (
        ("7", "W_V", "statement"),
        ("8", "w_O", "step"),
        ("9", "W_Q", "step"),
    ):
        axes = truth[name].ndim - 1
        weights = residual.reshape(*residual.shape, *(1,) * axes)
        chained = (weights * p.gradient[name]).sum(axis=1)
        yield same(f"({equation}) with its minus, {name}", -chained, truth[name], axes, role=role)
        yield same(f"({equation}) with plus", chained, truth[name], axes, role="correction")
    down = {name: -1e-4 * array for name, array in truth.items()}
    before, after = (q.model.value_and_grad(q.params, q.problem)[0] for q in (p, p.moved(down)))
    yield at_most("loss after a small step against it", after, before, role="correction")


@measures("encoder.erratum-t3", instances=60)
def t3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, instances)
    truth, width = p.gradient["W_Q"], p.model.width
    row = query_gradient(p, p.gate, p.params["W_K"][..., :1, :])
    yield equal("rows of (9), W_k read as a row", row.shape[-2], width)
    for name in ("W_Q", "W_V"):
        read = query_gradient(p, p.gate, p.params[name])
        yield same(f"(9) with {name} for W_k", read, truth, 3, role="step")
    keys = p.params["W_K"]
    yield same("(9) with W_K", query_gradient(p, p.gate, keys), truth, 3, role="correction")
    logits = np.log(p.beta) - np.log(p.beta).mean(axis=-1, keepdims=True)
    queries = p.params["W_Q"]
    for name, matrix, role in (("W_V", p.params["W_V"], "step"), ("W_K", keys, "correction")):
        M = np.einsum("...qi,...qj->...ij", queries, matrix)
        raw = p.model.tau0 * (p.X @ M[..., None, :, :] @ flip(p.X))
        centred = raw - raw.mean(axis=-1, keepdims=True)
        yield same(f"(67)'s entries with {name}, as logits", centred, logits, 3, role=role)


@measures("encoder.erratum-t4")
def t4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 4
    u = rng.standard_normal((instances, T))
    ahead, behind = (softmax(u[:, None, :] + s * 1e-5 * np.eye(T)) for s in (1, -1))
    truth = flip((ahead - behind) / 2e-5)  # [j, k]
    e = np.exp(u)
    total = e.sum(axis=-1)[:, None, None] ** 2
    off = ~np.eye(T, dtype=bool)
    summed = ((-e[:, :, None] - e[:, None, :]) / total)[:, off]
    product = (-e[:, :, None] * e[:, None, :] / total)[:, off]
    what = "off-diagonal entries, against central differences"
    yield same(what, summed, truth[:, off], 1)
    yield same(f"{what}, product", product, truth[:, off], 1, role="correction", within=1e-8)
    v = softmax(u)
    rows = (v[:, :, None] * np.eye(T) - v[:, :, None] * v[:, None, :]).sum(axis=-1)
    yield equal("row sums of diag(v) - vv'", rows, 0.0, size=1.0, role="correction")
