"""Slips in the first derivatives: a lost dot, a sign, a letter, a product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims._registry import erratum
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


@erratum(
    "encoder.erratum-t1",
    "Equations 7, 9, 17, 73, Appendix D.1",
    "relu where its derivative belongs, in five formulas of the gradients",
    printed=r"$\nabla_{W_V}f=\tau_1\sum_i(w_O\circ\sigma_r(W_VX^\top\beta_i))\beta_i^\top X$, and "
    r"$\sigma_r$ likewise in (9), (17), (73) and in the entries of $\partial f/\partial W_Q$.",
    correct=r"$\dot\sigma_r$ in place of $\sigma_r$: "
    r"$\nabla_{W_V}f=\tau_1\sum_i(w_O\circ\dot\sigma_r(W_VX^\top\beta_i))\beta_i^\top X$.",
    page="encoder/model",
    instances=60,
    reason="The dot may have been lost in the text that we read; (19) and (64) have it.",
    about=("encoder.lemma-12", "encoder.lemma-14", "encoder.lemma-1", "encoder.theorem-3"),
)
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


@erratum(
    "encoder.erratum-t2",
    "Equations 7 to 9",
    "a minus sign before the gradient of the loss; harmless inside a norm",
    printed=r"$\nabla\ell=-\sum_n(f(X_n)-y_n)\,\partial f(X_n)/\partial\theta$.",
    correct=r"$\nabla\ell=+\sum_n(f(X_n)-y_n)\,\partial f(X_n)/\partial\theta$.",
    page="encoder/model",
    instances=60,
    about=("encoder.lemma-12",),
)
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


@erratum(
    "encoder.erratum-t3",
    "Equation 9, Appendix D.1, equation 67",
    "W_k where W_K is meant: k counts neurons in the same proofs",
    printed=r"$\nabla_{W_Q}f=\tau_0\tau_1\sum_iW_kX^\top(\mathrm{diag}\beta_i-\beta_i\beta_i^\top)"
    r"XW_V^\top(w_O\circ\dot\sigma_r)X^{(i,:)}$; also $W_k^{(q,j)}$ in (67).",
    correct=r"$W_K$, the key matrix.",
    page="encoder/model",
    instances=60,
    reason="Read as (64) reads its indices, W_k is the k-th row of W: the formula then has one "
    "entry in place of d_m. Of the three matrices only W_K gives the gradient.",
    about=("encoder.lemma-12", "encoder.lemma-1", "encoder.lemma-16"),
)
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


@erratum(
    "encoder.erratum-t4",
    "Lemma 11, proof",
    "the softmax derivative's numerator is a product, printed as a sum",
    printed=r"$\partial v_j/\partial u_k=(-e^{u_j}-e^{u_k})/(\sum_ie^{u_i})^2$ for $j\ne k$.",
    correct=r"$\partial v_j/\partial u_k=-e^{u_j}e^{u_k}/(\sum_ie^{u_i})^2=-v_jv_k$.",
    page="encoder/model",
    instances=100,
    about=("encoder.lemma-11",),
)
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
