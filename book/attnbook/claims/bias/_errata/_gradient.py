"""Slips in the proof of Lemma 7, where the gradient is compared with the direction of W_t."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.bias._instances import copies, leads
from attnlab import models, problems, svm


@measures("bias.erratum-6")
def erratum_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    nu = np.exp(rng.uniform(np.log(0.02), np.log(0.2), instances))
    nu[0] = 0.02
    eps = nu / (1.0 + nu)
    X = np.zeros((2, 2, 2))
    X[:, 0] = np.eye(2)  # sample i: tokens e_i, which is optimal and the query, and 0
    one = problems.TokenProblem(X, X[:, 0], np.ones(2), np.ones(2))
    size = float(svm.attention_svm(one).norm)
    angle = rng.uniform(np.pi / 3, np.pi / 2, instances)  # keeps sample 1 in I_1, sample 2 in I_3
    tilted = size * np.stack([np.cos(angle), np.sin(angle)], axis=-1)[..., None] * np.eye(2)
    first, third = leads(tilted, one)[..., 1].T
    assert (first <= 1.0 + 0.3 * nu).all()
    assert (third >= 1.0 + 0.8 * nu).all()
    radius = np.geomspace(1e-3, 1e4, 200)[:, None]
    data = copies(one, 200, instances)
    model, W = models.Attention(loss="exponential"), radius[..., None, None] * tilted
    found = model.evaluate({"W": W}, data)
    parts = -np.diagonal(found.grads["W"], axis1=-2, axis2=-1)  # the samples' terms, on one scale
    assert found.attention is not None
    s = found.attention[..., 0]
    ratio = np.exp(s[..., 0] - s[..., 1])  # of the losses e^{-phi}; both score gaps are 1
    over = (third - 1.0 - nu) * parts[..., 1] / np.maximum(parts[..., 0], 1e-300)
    factor, others = 0.5 * nu / (2.0 * size), 64.0 * ratio  # B = 1, n = T = 2
    for name, asked, role in (
        ("printed", factor * others, "statement"),
        ("corrected", others / factor, "correction"),
    ):
        allowed = 0.5 * nu * radius >= np.log(asked)
        what = f"(33) where (36) as {name} holds: left side over I_1's sum, against 0.5 nu"
        yield at_most(
            what, over[allowed], np.broadcast_to(0.5 * nu, over.shape)[allowed], role=role
        )
    vast = 10**40  # so many samples that the first logarithm of R_eps leads
    asked = np.log((vast - 1.0) * 64.0 * np.exp(1.0) / factor)
    for name, printed, role in (("printed", True, "step"), ("corrected", False, "correction")):
        R = theory.bias.norm_threshold(
            eps, 1.0, size, n=vast, T=2, conditioning=np.exp(1.0), printed=printed
        )
        what = f"0.5 nu R_eps/Lambda as {name} against what (36) needs, n = 1e40"
        yield at_least(what, 0.5 * nu * R / size, asked, role=role)


@measures("bias.erratum-8")
def erratum_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    from scipy.special import softmax

    nu, radius, T = 0.3, 400.0, 4
    many = max(instances, 10)
    drawn = problems.sphere(n=4, T=T, d=6, trials=many, self_attention=True, rng=rng)
    margin = svm.attention_svm(drawn)
    drawn, W = drawn.trial(margin.status == "optimal"), margin.W[margin.status == "optimal"]
    size = np.linalg.norm(W, axis=(-2, -1))[:, None, None]
    tilted = W + 0.3 * size / 6.0 * rng.standard_normal(W.shape)
    tilted *= size / np.linalg.norm(tilted, axis=(-2, -1))[:, None, None]
    gaps = leads(tilted, drawn)
    largest = np.where(np.isinf(gaps), -np.inf, gaps).max(axis=-1)
    case = (gaps.min(axis=-1) <= 1.0 + 0.3 * nu) & (largest >= 1.0 + 0.5 * nu)
    gaps = gaps[case]
    share = softmax(-radius * gaps, axis=-1)  # of the tokens that are not optimal
    for name, cut, role in (
        ("the logits of W_t", radius * gaps, "statement"),
        ("the rescaled logits", gaps, "correction"),
    ):
        outside = np.where(cut > 1.0 + 0.4 * nu, share, 0.0).sum(axis=-1)
        what = f"share of the other tokens' attention outside N, N cut by {name}"
        yield at_most(what, outside, T * np.exp(-0.1 * radius * nu), role=role)
