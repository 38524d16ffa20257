"""Slips in Appendix D: the Hessian for one feature, and the limit of the softmax Jacobian."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims.encoder._errata._one_feature import blocks, one_feature, outer, sums
from attnbook.claims.encoder._errata._pieces import pieces, same
from attnlab import ntk
from attnlab.models import softmax


@measures("encoder.erratum-t8", instances=60)
def t8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = one_feature(rng, instances)
    f = p.model.forward(p.params, p.problem)[:, 0]
    for what, within, before, role in (
        ("f of (71)", p.model.tau1, p.model.tau0, "statement"),
        ("f of (71), scalings exchanged", p.model.tau0, p.model.tau1, "correction"),
    ):
        x, inner = p.X[:, 0, :, 0], (p.params["W_Q"] * p.params["W_K"]).sum(axis=(-2, -1))
        b = softmax(within * inner[:, None, None] * outer(x, x))
        hidden = np.maximum((b @ x[..., None]) * p.params["W_V"][:, None, :, 0], 0.0)
        found = before * (hidden @ p.params["w_O"][..., None])[..., 0].sum(axis=-1)
        yield same(f"{what}, against the model", found[:, None], f[:, None], 1, role=role)


@measures("encoder.erratum-t9", instances=60)
def t9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = one_feature(rng, instances)
    x, b, J = p.X[:, 0, :, 0], p.beta[:, 0], p.spread[:, 0]
    moved = (J @ x[:, None, :, None])[..., 0]
    last = (x[:, None, :] * moved).sum(axis=-1, keepdims=True) * b
    yield equal("entries of the last term", last[0, 0].size, J[0, 0].size)
    two = moved[..., None] * np.eye(x.shape[-1]) - outer(moved, b)
    truth = sums(p)["third"]
    for what, term, role in (
        ("column by column", last[..., None] * np.ones(x.shape[-1]), "step"),
        ("without the x", outer(b, moved), "correction"),
    ):
        form = (x[:, None, None, :] @ (two - term) @ x[:, None, :, None])[..., 0, 0]
        yield same(f"x'Gamma x, {what}, against the third moment", form, truth, 1, role=role)
    H, third = blocks(p)["W_Q", "W_Q"], sums(p)["c3"][:, None, None]
    keys = p.params["W_K"][..., 0]
    yield same("H_QQ from the third moment", third * outer(keys, keys), H, 2, role="correction")


@measures("encoder.erratum-t10", instances=60)
def t10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = one_feature(rng, instances)
    H, s = blocks(p), sums(p)
    queries, keys, W_V = (p.params[name][..., 0] for name in ("W_Q", "W_K", "W_V"))
    written = outer(keys, s["neurons"] * W_V)
    yield same("H_QO as written, against d2f/dQdV", written, H["W_Q", "W_V"], 2)
    yield same("H_QO as written, against d2f/dQdO", written, H["W_Q", "w_O"], 2, role="correction")
    off = ~np.eye(p.model.width, dtype=bool)
    written = (s["c3"][:, None, None] * outer(keys, queries))[:, off]
    for name, role in (("W_Q", "step"), ("W_K", "correction")):
        what = f"H_QK as written, off the diagonal, against d2f/dQd{name[-1]}"
        yield same(what, written, H["W_Q", name][:, off], 1, role=role, within=1e-8)


@measures("encoder.erratum-t11", instances=20)
def t11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 4
    p = pieces(rng, instances, T=T, width=4000, scheme="ntk", scaling="linear")
    eye, ones = np.eye(T), np.ones((T, T))
    what = "limit of diag(beta) - beta beta' at d_m = 4000"
    for limit, role in ((eye - ones, "statement"), (eye / T - ones / T**2, "correction")):
        full = np.broadcast_to(limit, p.spread.shape)
        yield same(what, full, p.spread, 4, role=role, within=0.2)
    rows = np.abs((eye - ones).sum(axis=-1)).max()
    yield at_most("row sums of the printed limit; softmax keeps its sum", rows, 0.0, role="step")
    small = pieces(rng, instances, n=3, T=T, scheme="ntk")
    truth = ntk.empirical(small.model, small.params, small.problem, by_group=True)["W_Q"]
    turned = small.turned(small.gate) @ small.params["W_K"].swapaxes(-1, -2)[..., None, :, :]
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
