"""Slips of notation: squares, transposes, letters used twice; each with what it would mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims.encoder._errata._pieces import Pieces, flip, frobenius, pieces, same
from attnlab.checks import Array


@measures("encoder.erratum-t12", instances=60)
def t12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(
        rng, max(instances, 10), n=3, size=0.01
    )  # short tokens: a number below 1 and its square
    factors = theory.encoder.gradient_factors(p.bars())
    for name, role in (("w_O", "statement"), ("W_Q", "step"), ("W_K", "step")):
        each = frobenius([p.gradient[name]], trials=2)
        bound = factors[name] ** 2
        yield at_most(f"sum of the norms, {name}", each.sum(axis=-1), bound, role=role)
        what = f"sum of their squares, {name}"
        yield at_most(what, (each**2).sum(axis=-1), bound, role="correction")


@measures("encoder.erratum-t13", instances=60)
def t13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    many = max(instances, 10)
    p = pieces(rng, many, n=1, T=4, d=4)
    q = p.moved({name: rng.standard_normal(p.params[name].shape) for name in ("W_Q", "W_K")})
    turn = (q.beta - p.beta)[:, 0]  # rows i
    X, W_V = p.X[:, 0], p.params["W_V"]
    before = np.linalg.norm(q.pre - p.pre, axis=-1)[:, 0]
    for what, mixed, role in (
        ("(6) with X", turn @ flip(X), "statement"),
        ("(6) with its transpose", turn @ X, "correction"),
    ):
        bound = np.linalg.norm(mixed @ flip(W_V), axis=-1)
        yield at_most(f"|W_V X' beta| changed, {what}", before, bound, role=role)
    r = pieces(rng, many, n=3)
    F = r.model.features(r.params, r.problem)
    stacked = F.reshape(many, -1, 1)
    spectral, of_stack = (np.linalg.norm(a, ord=2, axis=(-2, -1)) for a in (F, stacked))
    yield equal("columns of Lemma 10's matrix", stacked.shape[-1], r.model.width, role="step")
    yield equal("its spectral norm, against F_pre", of_stack, spectral, role="step")
    yield equal("its Frobenius norm, against F_pre", of_stack, frobenius([F]), role="correction")


@measures("encoder.erratum-t14", instances=60)
def t14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    d = 6
    p = pieces(rng, instances, n=3, d=d, width=d).scaled(W_V=1e-3, w_O=1e-1)
    with_tokens, without = (
        p.model.tau1 * np.maximum(p.pre + extra, 0.0).sum(axis=-2) for extra in (p.X, 0.0)
    )
    w_O = p.params["w_O"]
    scalar = (with_tokens @ w_O[..., None])[..., 0]
    yield equal("entries of f_pre as printed", scalar[0, 0].size, d, role="step")
    outputs = frobenius([((with_tokens - without) @ w_O[..., None])])
    bars, n, T = p.bars(), p.problem.n, p.problem.T
    printed = np.sqrt(n) * p.model.tau1 * T * bars.O * bars.V * bars.Cx
    change = with_tokens - without
    yield at_most("(62) as printed, |w_O'(f - f*)|", outputs, printed)
    yield at_most("(62) as printed, |F - F*|", frobenius([change]), printed, role="step")
    rows = np.linalg.norm(p.X, axis=-1).max(axis=(-2, -1))
    mended = np.sqrt(n) * p.model.tau1 * T * rows
    yield at_most("(62) with the longest row", frobenius([change]), mended, role="correction")


@measures("encoder.erratum-t15", instances=60)
def t15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, instances, n=1).scaled(w_O=1e-3)
    q = p.moved({name: 1e-3 * rng.standard_normal(p.params[name].shape) for name in p.params})
    bars = p.bars(q)
    first, second = theory.encoder.z(bars), theory.encoder.lemma_14_z(bars)
    yield equal("z of Proposition 1, against that of Lemma 14", first, second, role="step")
    turned = np.linalg.norm(q.beta - p.beta, axis=-1).max(axis=(-2, -1))
    ratio = turned / frobenius(q.params[name] - array for name, array in p.params.items())
    yield at_most("(18) with the z of Proposition 1", ratio, first)
    yield at_most("(18) with the z of Lemma 14", ratio, second, role="correction")


@measures("encoder.erratum-t16", instances=40)
def t16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    d = 5
    p = pieces(rng, instances, d=d, width=d)
    down = p.moved(
        {k: -0.05 * g for k, g in p.model.value_and_grad(p.params, p.problem)[1].items()}
    )
    turned = {k: flip(a) if a.ndim == 3 else a for k, a in down.params.items()}
    wide = pieces(rng, 1, d=d, width=d + 1)
    rows = flip(wide.params["W_V"]).shape[-2]
    yield equal("rows of the transpose of W_V, d_m = 6", rows, d + 1, role="step")
    told = half_sum(down)
    read = Pieces(p.model, turned, p.problem).loss
    yield same("loss at step 1, the weights transposed", read, told, 1)
    yield same("loss at step 1", down.loss, told, 1, role="correction")


def half_sum(p: Pieces) -> Array:
    """The loss of Appendix B.1, written out."""
    f = (np.maximum(p.pre, 0.0) @ p.params["w_O"][:, None, :, None])[..., 0].sum(axis=-1)
    return np.asarray(0.5 * ((p.model.tau1 * f - p.problem.y) ** 2).sum(axis=-1))
