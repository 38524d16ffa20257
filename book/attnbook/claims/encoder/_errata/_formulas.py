"""Formulas of the model and of its derivatives, as they are written and as they come out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims.encoder._instances import Pieces, pieces, same
from attnlab import curvature, models, ntk
from attnlab.checks import Array


@measures("encoder.erratum-s1", instances=60)
def s1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 5
    p = pieces(rng, instances, n=4, T=T, width=12, pooling="mean")
    summed = models.Encoder(12, pooling="sum", loss="half_sum")
    f = p.model.forward(p.params, p.problem)
    written = (np.maximum(p.pre, 0.0) @ p.params["w_O"][:, None, :, None])[..., 0].sum(axis=-1)
    yield same("f of Appendix C.2, against Eq. 1.2", written, f, 1)
    yield same("f of Appendix C.2 over d_s", written / T, f, 1, role="correction")
    other = summed.forward(p.params, p.problem)
    yield same("f of Appendix C.2, against sum pooling", written, other, 1, role="correction")
    a, b = (theory.encoder.alpha(m, p.params, p.problem) for m in (p.model, summed))
    size = b.max()  # alpha may be 0, where all neurons are off at a sample
    yield equal("alpha, average against sum", a, b, role="step", size=size)
    yield equal("alpha, average times d_s against sum", T * a, b, role="correction", size=size)
    K, L = (ntk.empirical(m, p.params, p.problem) for m in (p.model, summed))
    yield same("kernel of the average, times d_s^2", T * T * K, L, 2, role="correction")
    F = np.linalg.norm(p.model.features(p.params, p.problem), axis=(-2, -1))
    bars = p.bars()
    bound = theory.encoder.rho(bars) * bars.V
    yield at_most("|F_pre| against rho/d_s |W_V|", F, bound, role="correction")


@measures("encoder.erratum-s8", instances=20)
def s8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(
        rng, instances, n=1, T=4, d=1, width=5, init="ntk", scaling="linear", unit=False
    )  # the setting of Appendix D.3
    blocks = curvature.hessian(*p.network, of="output").blocks
    queries, keys, W_V = (p.params[name][..., 0] for name in ("W_Q", "W_K", "W_V"))
    b, a, neurons = _sums_of_D3(p)
    printed = b[:, None, None] * outer(keys, queries)
    yield same("H_QK as printed", printed, blocks["W_Q", "W_K"][:, 0], 2)
    for what, found, pair in (
        ("H_QK with a I", printed + a[:, None, None] * np.eye(5), ("W_Q", "W_K")),
        ("H_QQ", b[:, None, None] * outer(keys, keys), ("W_Q", "W_Q")),
        ("H_QO", outer(keys, neurons * W_V), ("W_Q", "w_O")),
    ):
        yield same(what, found, blocks[pair][:, 0], 2, role="correction")
    gradient = p.gradient["W_Q"][:, 0, :, 0]
    yield same("gradient in w_Q, a w_K", a[:, None] * keys, gradient, 1, role="correction")


def outer(left: Array, right: Array) -> Array:
    """The matrices left right'."""
    return left[..., :, None] * right[..., None, :]


def _sums_of_D3(p: Pieces) -> tuple[Array, Array, Array]:
    """Sums over tokens: of third moments (b), of variances (a), and of these for each neuron."""
    x, beta, gate = p.X[:, 0, :, 0], p.beta[:, 0], p.gate[:, 0]
    off = x[:, None, :] - beta @ x[..., None]
    variance, third = (beta * off**2).sum(axis=-1), (beta * off**3).sum(axis=-1)
    inner = (gate * (p.params["W_V"][..., 0] * p.params["w_O"])[:, None, :]).sum(axis=-1)
    scale = p.model.tau0 * p.model.tau1
    b = scale * p.model.tau0 * (x**2 * inner * third).sum(axis=-1)
    a = scale * (x * inner * variance).sum(axis=-1)
    return b, a, scale * ((x * variance)[..., None] * gate).sum(axis=-2)


def value_gradient(p: Pieces, slopes: Array) -> Array:
    """Equation 7's gradient in W_V of each output: sum over i of (w_O * slopes) u_i'."""
    weighted = slopes * p.params["w_O"][..., None, None, :]
    return np.asarray(p.model.tau1 * (weighted.mT @ p.u))


def query_gradient(p: Pieces, slopes: Array, keys: Array) -> Array:
    """Equation 9's gradient in W_Q of each output, with ``keys`` in the place of W_K."""
    each = p.turned(slopes).mT @ p.X
    return np.asarray(p.model.tau0 * p.model.tau1 * (keys[..., None, :, :] @ each))


@measures("encoder.erratum-t1", instances=60)
def t1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, instances)
    q = pieces(rng, instances, T=4, d=1, unit=False)
    for dot, with_dot in ((False, ""), (True, " with the dot")):
        role = "correction" if dot else "step"
        at_p, at_q = (r.gate if dot else np.maximum(r.pre, 0.0) for r in (p, q))
        found = value_gradient(p, at_p)
        first = role if dot else "statement"
        yield same(f"(7), gradient in W_V{with_dot}", found, p.gradient["W_V"], 3, role=first)
        found = query_gradient(p, at_p, p.params["W_K"])
        yield same(f"(9), gradient in W_Q{with_dot}", found, p.gradient["W_Q"], 3, role=role)
        found = _one_feature(q, at_q)
        yield same(f"(73), d = 1{with_dot}", found, q.gradient["W_Q"][..., 0], 2, role=role)


def _one_feature(p: Pieces, slopes: Array) -> Array:
    """Equation 73 for tokens of one feature."""
    x = p.X[..., 0]
    inner = (slopes * (p.params["W_V"][..., 0] * p.params["w_O"])[..., None, None, :]).sum(axis=-1)
    spread = (x[..., None, None, :] @ p.spread @ x[..., None, :, None])[..., 0, 0]
    total = (x * inner * spread).sum(axis=-1)[..., None] * p.params["W_K"][..., None, :, 0]
    return np.asarray(p.model.tau0 * p.model.tau1 * total)


@measures("encoder.erratum-t4")
def t4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 4
    u = rng.standard_normal((instances, T))
    off, e = ~np.eye(T, dtype=bool), np.exp(u)
    total = e.sum(axis=-1, keepdims=True)
    truth = theory.encoder.softmax_jacobian(e / total)[:, off]  # of Lemma 11
    total = total[..., None] ** 2
    summed = (-e[:, :, None] - e[:, None, :]) / total
    yield same("off-diagonal entries, as a sum", summed[:, off], truth, 1)
    product = -outer(e, e) / total
    yield same("off-diagonal entries, as a product", product[:, off], truth, 1, role="correction")


@measures("encoder.erratum-t11", instances=20)
def t11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 4
    p = pieces(rng, instances, T=T, width=4000, init="ntk", scaling="linear")
    eye, ones = np.eye(T), np.ones((T, T))
    what = "limit of diag(beta) - beta beta' at d_m = 4000"
    for limit, role in ((eye - ones, "statement"), (eye / T - ones / T**2, "correction")):
        full = np.broadcast_to(limit, p.spread.shape)
        yield same(what, full, p.spread, 4, role=role, within=0.2)
    small = pieces(rng, instances, n=3, T=T, init="ntk")
    truth = ntk.empirical(*small.network, by_group=True)["W_Q"]
    turned = small.turned(small.gate) @ small.params["W_K"].mT[..., None, :, :]
    pairs = np.einsum("...nik,...mjk->...nmij", turned, turned)
    scale = (small.model.tau0 * small.model.tau1) ** 2
    X = small.X
    plain = np.einsum("...nia,...nja->...nij", X, X)[..., :, None, :, :]
    primed = np.einsum("...nia,...mja->...nmij", X, X)
    for what, products, role in (
        ("W_Q's kernel without the prime", plain, "step"),
        ("W_Q's kernel with the prime", primed, "correction"),
    ):
        yield same(what, scale * (products * pairs).sum(axis=(-2, -1)), truth, 2, role=role)
