"""What Theorem 2's width is worth, and a sum whose cross terms were overlooked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, slope
from attnbook.claims.encoder._errata._pieces import Pieces, flip, pieces, same
from attnlab import models, ntk, problems
from attnlab.checks import Array

WIDTHS = (50, 500, 5000)


def ratios(p: Pieces, radius: float) -> tuple[float, float]:
    """How far conditions (2) and (3) hold at this start; medians over the trials."""
    loss = p.model.value_and_grad(p.params, p.problem)[0]
    a = theory.encoder.alpha(p.model, p.params, p.problem)
    bars = theory.encoder.bars(p.model, p.problem, p.params, radius=radius)
    second = theory.encoder.condition_2(bars, a, loss, radius)
    return float(np.median(second)), float(np.median(theory.encoder.condition_3(bars, a, loss)))


@measures("encoder.erratum-s6", instances=10)
def s6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    plain, mended = [], []
    data = problems.gaussian_regression(n=4, T=2, d=6, unit_tokens=True, trials=instances, rng=rng)
    for width in WIDTHS:
        p = pieces(rng, instances, width=width, scheme="ntk", scaling="linear", problem=data)
        plain.append(ratios(p, 1.0))
        mended.append(ratios(p, float(np.sqrt(width))))
    phi = theory.encoder.first_token_features(p.model, p.params, p.problem)
    hidden = p.model.tau1 * np.maximum(phi @ flip(p.params["W_V"]), 0.0)
    found = theory.encoder.smallest_eigenvalue(hidden @ flip(hidden))
    share = theory.encoder.smallest_eigenvalue(ntk.arc_cosine(phi)[0]) / 4.0
    width = p.model.width
    yield at_least("lambda_min of the first token's features, d_m = 5000", found, width * share)
    yield at_least("the same against lambda_0 / 4", found, share, role="correction")
    seconds, thirds = zip(*mended, strict=True)
    growth = slope(WIDTHS, [second for second, _ in plain])
    what = "exponent in d_m of alpha^2 over the right side of (2), C = 1"
    yield at_least(what, growth, 0.5, role="step")
    yield at_most("that ratio at d_m = 5000", plain[-1][0], 1.0, role="correction")
    what = "the exponent with C = sqrt(d_m)"
    yield at_least(what, slope(WIDTHS, seconds), 0.35, role="correction")
    yield at_least(f"{what}, condition (3)", slope(WIDTHS, thirds), 0.35, role="correction")


@measures("encoder.erratum-s7", instances=40)
def s7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    tokens = _turned(rng, instances)
    swapped = problems.SequenceProblem(
        np.stack([tokens, tokens[:, ::-1]], axis=1), rng.standard_normal((instances, 2))
    )
    model = models.Encoder(2, scaling=40.0, pooling="sum")  # so sharp that tokens see themselves
    weights: dict[str, Array] = {"W_Q": np.eye(2), "W_K": np.eye(2), "w_O": np.ones(2)}
    spread = {k: np.broadcast_to(a, (instances, *a.shape)) for k, a in weights.items()}
    special = Pieces(model, {**spread, "W_V": tokens}, swapped)
    for what, p, role in (
        ("the same two tokens in both orders", special, "statement"),
        ("random encoders", pieces(rng, instances, n=8, T=5, d=20, width=100), "correction"),
    ):
        each = np.moveaxis(p.model.tau1 * np.maximum(p.pre, 0.0), -2, 1)  # tokens before samples
        F = p.model.features(p.params, p.problem)
        total = theory.encoder.smallest_eigenvalue(F @ flip(F))
        grams = each @ flip(each)
        first = theory.encoder.smallest_eigenvalue(grams[:, 0])
        yield at_least(f"lambda_min(F F'), {what}", total, first, role=role)
        if p is special:
            bottom = theory.encoder.smallest_eigenvalue(F @ flip(F) - grams.sum(axis=1))
            yield at_least("lambda_min of their cross terms", bottom, 0.0, role="step")
        squares = theory.encoder.smallest_eigenvalue(grams.sum(axis=1))
        yield at_least(f"lambda_min of the squares, {what}", squares, first, role="correction")
        yield same(f"F as the sum over tokens, {what}", each.sum(axis=1), F, 2, role="correction")


def _turned(rng: np.random.Generator, instances: int) -> Array:
    """Two orthonormal tokens in the plane."""
    return np.asarray(np.linalg.qr(rng.standard_normal((instances, 2, 2)))[0])
