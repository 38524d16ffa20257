"""Slips about signs, factors of n, and how wide tokens must be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.bias._instances import FIXED, length, setting
from attnlab import models, optim, problems
from attnlab.checks import Array


@measures("bias.erratum-12")
def erratum_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    X = np.zeros((1, 10, 1)) - 1.0
    X[:, 0] = 1.0  # ten tokens, e once and -e nine times, from a start at zero
    ten = setting(problems.TokenProblem(X, X[:, 0], np.ones(1), np.array([0.5])))
    loss, grads = FIXED.value_and_grad({"W": np.zeros((1, 1))}, ten.problem)
    low, _ = theory.bias.gradient_bounds(ten.best, ten.others, ten.B, ten.width, beta=0.6)
    share = ten.attention(np.zeros((1, 1)))
    yield at_most("attention at the start, ten tokens", share, 0.6, role="premise")
    yield at_least("gradient over loss there", length(grads["W"]) / loss, low)
    # what is said of nu, which stands for upsilon, and of omega_2, along a short run
    at = setting(problems.orthogonal(n=6, T=3, d=30, rho=0.2, trials=instances, rng=rng))
    _, high = theory.bias.gradient_bounds(at.best, at.others, at.B, at.width, beta=0.9)
    record = ["loss", "excess", "grad_norm"]
    run = optim.train(FIXED, at.problem, optim.PolyakStep(), steps=8, record=record)
    losses, excess, slopes = (run.history[name] for name in record)
    what = "(loss - floor)/|gradient| along a Polyak run, against 1/(omega_2 upsilon)"
    yield at_least(f"{what}, nu of Lemma 7", excess / slopes, 9.0 / high)  # eps = 0.1
    least = 1.0 / (high * (losses / excess).max(axis=0))
    yield at_least(what, excess / slopes, least, role="correction")
    yield at_least("omega_2 there", high, 1.0)


@measures("bias.erratum-15")
def erratum_15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, d = 4, 5
    drawn = problems.sphere(n=n, T=2, d=d, trials=instances, self_attention=True, rng=rng)
    joint = models.Attention(loss="exponential", train_head=True)
    W, u = rng.standard_normal((instances, d, d)), rng.standard_normal((instances, d))
    params = {"W": W, "v": u}
    grad = joint.value_and_grad(params, drawn)[1]["W"]
    away = drawn.X[:, :, 0] - drawn.X[:, :, 1]  # which of two tokens is opt does not matter
    moved = (away * ((-grad)[:, None] @ drawn.z[..., None])[..., 0]).sum(axis=-1)
    scores, s = joint.scores(drawn, params), joint.attention(params, drawn)
    loss = np.exp(-(s * scores).sum(axis=-1))
    weight = loss * (scores[..., 0] - scores[..., 1]) * s[..., 0] * s[..., 1]
    terms = weight[:, None] * (drawn.z @ drawn.z.mT) * (away @ away.mT) / n  # (trial, i, j)
    own = np.diagonal(terms, axis1=-2, axis2=-1)
    others = terms.sum(axis=-1) - own
    size = np.abs(terms).max()
    what = "left side of (12) against its expansion, "
    yield equal(f"{what}minus the other samples", moved, own - others, size=size)
    yield equal(f"{what}plus the other samples", moved, own + others, size=size, role="correction")


def _adverse(n: int, d: float, alpha: float, logs: float) -> Array:
    """Tokens with the least norms and the worst inner products that Lemma 9 allows, rho = 1.

    Labels are all +1; first the n tokens that decide, then the n others.
    """
    gram = np.zeros((2 * n, 2 * n))
    gram[:n, :n] = -2.0 * alpha**2 * np.sqrt(d * logs)
    gram[:n, n:] = gram[n:, :n] = -2.0 * alpha * np.sqrt(d * logs)
    np.fill_diagonal(gram, [0.5 * alpha**2 * d] * n + [0.5 * d] * n)
    return np.asarray(np.linalg.cholesky(gram))


@measures("bias.erratum-17", instances=30)
def erratum_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    alpha, delta = 6.0, 0.1
    rows = []
    for n in rng.integers(3, 20, size=instances).tolist():
        logs = np.log(10.0 * n**2 / delta)
        for factor in (12.0, 24.0):
            d = (factor * n) ** 2 * logs
            tokens = _adverse(n, d, alpha, logs)
            best, other = tokens[:n], tokens[n:]
            along = best.sum(axis=0)
            inner = ((best + other) @ along).min()
            root, whole = alpha**2 * np.sqrt(d * logs), alpha**2 * d
            unit = inner / np.linalg.norm(along) / (alpha / 4.0 * np.sqrt(d / n))
            shares = 0.5 - 4.0 * root / whole, 0.5 - 4.0 * n * root / whole
            rows.append((factor, inner / whole, *shares, unit))
    factor, inner, printed, corrected, unit = np.array(rows).T
    what = "inner product with the sum, adverse tokens, over alpha^2 rho^2 d"
    yield at_least(f"{what}: 0.5 - 4 sqrt(.)", inner, printed)
    yield at_least(f"{what}: 0.5 - 4n sqrt(.)", inner, corrected, role="correction")
    for least, role in ((12.0, "step"), (24.0, "correction")):
        name = f"{what}: 1/3 with d = ({least:g}n)^2 log"
        yield at_least(name, inner[factor == least], 1.0 / 3.0, role=role)
    yield at_least(
        "Lemma 12 itself there, over its bound", unit[factor == 24.0], 1.0, role="correction"
    )
    drawn = problems.gaussian(n=4, T=2, d=4000, rho=1.0, alpha=alpha, rng=rng)
    assert drawn.relevant is not None
    best, other = drawn.X[drawn.relevant], drawn.X[~drawn.relevant]
    along = (drawn.y[:, None] * best).sum(axis=0)
    reached = drawn.y * ((best + other) @ along) / np.linalg.norm(along)
    bound = theory.bias.common_margin(alpha, 1.0, n=4, d=4000)
    yield at_least("Lemma 12 on data, n = 4, d = 4000", reached, bound, role="correction")
