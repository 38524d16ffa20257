"""Steps of proofs that do not follow as they are printed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._instances import Pieces, length, pieces, same
from attnlab import models, ntk, problems
from attnlab.checks import Array


@measures("encoder.erratum-s7", instances=40)
def s7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for what, p, role in (
        ("the same two tokens in both orders", _both_orders(rng, instances), "statement"),
        ("random encoders", pieces(rng, instances, n=8, T=5, d=20, width=100), "correction"),
    ):
        each = np.moveaxis(p.model.tau1 * np.maximum(p.pre, 0.0), -2, 1)  # tokens before samples
        F = p.model.features(p.params, p.problem)
        total = theory.encoder.smallest_eigenvalue(F @ F.mT)
        grams = each @ each.mT
        first = theory.encoder.smallest_eigenvalue(grams[:, 0])
        yield at_least(f"lambda_min(F F'), {what}", total, first, role=role)
        if role == "statement":
            bottom = theory.encoder.smallest_eigenvalue(F @ F.mT - grams.sum(axis=1))
            yield at_least("lambda_min of their cross terms", bottom, 0.0, role="step")
        squares = theory.encoder.smallest_eigenvalue(grams.sum(axis=1))
        yield at_least(f"lambda_min of the squares, {what}", squares, first, role="correction")
        yield same(f"F as the sum over tokens, {what}", each.sum(axis=1), F, 2, role="correction")


def _both_orders(rng: np.random.Generator, instances: int) -> Pieces:
    """Two orthonormal tokens in the plane, in both orders, attended to so sharply that each token
    sees itself.
    """
    tokens = np.linalg.qr(rng.standard_normal((instances, 2, 2)))[0]
    orders = np.stack([tokens, tokens[:, ::-1]], axis=1)
    swapped = problems.SequenceProblem(orders, rng.standard_normal((instances, 2)))
    eye: Array = np.broadcast_to(np.eye(2), (instances, 2, 2))
    params = {"W_Q": eye, "W_K": eye, "W_V": tokens, "w_O": np.ones((instances, 2))}
    return Pieces(models.Encoder(2, scaling=40.0, pooling="sum"), params, swapped)


@measures("encoder.erratum-s11", instances=6)
def s11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    sizes, allowed, limits = (4, 40, 400), [], []
    for n in sizes:
        p = pieces(rng, max(instances, 6), n=n, T=2, d=6, width=30)
        bars = theory.encoder.bars(p.model, p.problem, p.params, radius=1.0)
        allowed.append(float(np.median(1.0 / theory.encoder.smoothness(bars, p.loss))))
        top = np.linalg.eigvalsh(ntk.empirical(*p.network))[..., -1]
        limits.append(float(np.median(theory.encoder.stability_limit(top, n, "half_sum"))))
    found = slope(sizes, allowed)
    yield at_least("exponent of 1/C in N", found, -0.75)
    yield equal("exponent of 1/C in N", found, -1.0, role="correction", within=0.15)
    what = "exponent of 2/lambda_max(K) in N"
    yield equal(what, slope(sizes, limits), -1.0, role="correction", within=0.2)


@measures("encoder.erratum-t12", instances=60)
def t12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, max(instances, 10), n=3, size=0.01)  # a number below 1 and its square
    factors = theory.encoder.gradient_factors(p.bars())
    for name, role in (("w_O", "statement"), ("W_Q", "step"), ("W_K", "step")):
        each = length([p.gradient[name]], trials=2)
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
        ("(6) with X", turn @ X.mT, "statement"),
        ("(6) with its transpose", turn @ X, "correction"),
    ):
        bound = np.linalg.norm(mixed @ W_V.mT, axis=-1)
        yield at_most(f"|W_V X' beta| changed, {what}", before, bound, role=role)
    F = pieces(rng, many, n=3)
    rows = F.model.features(F.params, F.problem)
    stacked, spectral = length([rows]), np.linalg.norm(rows, ord=2, axis=(-2, -1))
    yield equal("norm of Lemma 10's column, against F_pre's", stacked, spectral, role="step")


@measures("encoder.erratum-t14", instances=60)
def t14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, instances, n=3, d=6, width=6).scaled(W_V=1e-3, w_O=1e-1)
    with_tokens, without = (
        p.model.tau1 * np.maximum(p.pre + extra, 0.0).sum(axis=-2) for extra in (p.X, 0.0)
    )
    change = with_tokens - without
    outputs = length([change @ p.params["w_O"][..., None]])
    bars = p.bars()
    each = np.sqrt(bars.n) * p.model.tau1 * bars.T
    printed = each * bars.O * bars.V * bars.Cx
    yield at_most("(62) as printed, |w_O'(f - f*)|", outputs, printed)
    yield at_most("(62) as printed, |F - F*|", length([change]), printed, role="step")
    mended = each * np.linalg.norm(p.X, axis=-1).max(axis=(-2, -1))
    yield at_most("(62) with the longest row", length([change]), mended, role="correction")
