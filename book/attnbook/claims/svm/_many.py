"""Several tokens a sample: the decomposition of equations 6 and 7, and Lemma 6."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, vanishes
from attnbook.claims.svm import _cases as cases
from attnlab import models, optim, problems, svm
from attnlab.checks import Array, BoolArray


def _selected(
    instances: int, rng: np.random.Generator
) -> tuple[problems.TokenProblem, BoolArray, Array]:
    """Random problems, several tokens selected in each sample, and shares for them."""
    drawn = problems.sphere(n=2, T=4, d=6, trials=instances, rng=rng)
    order = rng.permuted(np.broadcast_to(np.arange(4), (instances, 2, 4)), axis=-1)
    chosen = order < rng.integers(1, 4, size=(instances, 2, 1))
    weight = np.where(chosen, rng.uniform(0.2, 1.0, chosen.shape), 0.0)
    return drawn, chosen, weight / weight.sum(axis=-1, keepdims=True)


@measures("svm.equation-6", instances=40)
def equation_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, penalty = 6, 0.3
    X = np.linalg.qr(rng.standard_normal((instances, T, T)))[0][:, None]
    z, v = (cases.unit(rng.standard_normal((instances, 1, T))) for _ in range(2))
    drawn = problems.TokenProblem(X, z, np.ones((instances, 1)), v[:, 0])
    ideal = theory.svm.water_filling(drawn.scores, np.full((instances, 1), penalty))
    clear = ((ideal == 0.0) | (ideal > 0.05)).all(axis=(-1, -2)) & (ideal == 0.0).any(axis=(-1, -2))
    clear &= ((ideal > 0.0).sum(axis=-1) > 1).all(axis=-1)
    drawn, ideal = cases.some(drawn, clear), ideal[clear]
    model = models.Attention(head=models.ConcaveHead(penalty), start="zero")
    run = optim.train(model, drawn, optim.NormalizedGD(0.05), 4000, every=4000)
    W, seen = run.params["W"], model.attention(run.params, drawn)
    chosen = ideal > 0.0
    yield at_most(
        "attention after 4,000 steps, closed form: largest difference", np.abs(seen - ideal), 0.05
    )
    general = svm.general_svm(drawn, selected=chosen)
    shares = np.where(chosen, seen, 0.0)
    finite = svm.finite_component(
        drawn, shares / shares.sum(axis=-1, keepdims=True), selected=chosen
    )
    both = svm.svm_equivalent(W, finite, general)
    near = svm.correlation(W, both)
    yield at_least("correlation of W with the two parts together, mean", near.mean(), 0.95)
    alone = svm.correlation(W, general.W)
    yield at_least("correlation with both parts, with the direction alone", near, alone - 1e-9)
    known = theory.svm.equivalent_correlation(W, finite, general.W)
    yield equal("correlation, its closed form", near, known, within=1e-6)
    apart = cases.inner(finite, general.W) / cases.norm(finite) / general.norm
    yield vanishes("cosine of the finite part and the direction", np.abs(apart), within=1e-9)
    one = svm.attention_svm(drawn, seen.argmax(axis=-1))
    single = svm.correlation(W, one.W).mean()
    yield at_least(
        "correlation with the direction of one token a sample", single, near.mean(), role="outside"
    )


@measures("svm.equation-7")
def equation_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn, chosen, shares = _selected(instances, rng)
    finite = svm.finite_component(drawn, shares, selected=chosen)
    general = svm.general_svm(drawn, selected=chosen)
    good = np.asarray(general.status) == "optimal"
    drawn, chosen, shares = cases.some(drawn, good), chosen[good], shares[good]
    finite, direction = finite[good], general.W[good]
    model, lost, radii = models.Attention(), [], (1.0, 100.0, 600.0)
    for R in radii:
        seen = model.attention({"W": finite + R * direction}, drawn)
        kept = np.where(chosen, seen, 0.0)
        kept = kept / kept.sum(axis=-1, keepdims=True)
        yield equal(f"shares of the selected tokens at R = {R:g} W_mm", kept, shares, size=1.0)
        lost.append(np.log(np.where(chosen, 0.0, seen).max(axis=(-1, -2))))
    decay = (lost[2] - lost[1]) / (radii[2] - radii[1])
    yield equal(
        "decay of the largest other share, exponent over the margin", decay, -1, within=0.02
    )
    first = chosen.argmax(axis=-1)
    margins = theory.svm.token_margins(drawn, direction, first)
    yield vanishes(
        "spread of the direction's logits within the selection",
        np.abs(margins[chosen]),
        within=1e-8,
    )
    yield at_least("margins over the others, 1", margins[~chosen], 1.0 - 1e-9)
    lone = theory.svm.token_margins(drawn, svm.attention_svm(drawn, first).W, first)
    several = chosen.sum(axis=-1) > 1
    spread = np.abs(np.where(chosen, lone, 0.0)).max(axis=-1)[several]
    yield vanishes("the same of Att-SVM for one of them", spread, within=1e-8, role="outside")


@measures("svm.lemma-6", instances=400)
def lemma_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 8
    for tau in (2, 4, 7):
        gaps = rng.exponential(0.3, (instances, T - 1))
        gaps[:, tau - 1] = 2.0 / tau * gaps[:, 0] * rng.uniform(1.05, 4.0, instances)
        scores = np.cumsum(
            np.concatenate([rng.standard_normal((instances, 1)), -gaps], axis=1), axis=1
        )
        low, high = theory.svm.thresholds(scores, tau, printed=True)
        curvature = low + (high - low) * rng.uniform(0.001, 0.999, instances)
        s = theory.svm.water_filling(scores, curvature)
        count = (s > 0.0).sum(axis=-1)
        yield at_least(f"tokens selected, 2 (tau = {tau})", count, 2)
        yield at_most(f"tokens selected, tau = {tau}", count, tau)
        force = 2.0 * curvature[:, None] * s - scores  # gradient of the objective at s
        level = (s * force).sum(axis=-1, keepdims=True)
        falls = np.maximum(0.0, level - force)
        yield vanishes(f"fall of the objective off its minimiser, tau = {tau}", falls)
        first, last = theory.svm.thresholds(scores, tau)
        yield at_most("lower sharp threshold, the paper's", first, low, role="correction")
        yield at_least("upper sharp threshold, the paper's", last, high, role="correction")
        for share, more in ((0.999, -1), (1.001, 1)):
            at = theory.svm.water_filling(scores, first * share)
            right = ((at > 0).sum(-1) > 1) == (more > 0)
            words = f"two or more or not, at {share} of the lower threshold: as said"
            yield at_least(words, right, 1.0, role="correction")
            at = theory.svm.water_filling(scores, last * share)
            right = ((at > 0).sum(-1) > tau) == (more > 0)
            words = f"more than tau or not, at {share} of the upper threshold: as said"
            yield at_least(words, right, 1.0, role="correction")
    head = models.ConcaveHead(0.4)
    X = np.linalg.qr(rng.standard_normal((T, T)))[0]
    scores = X @ cases.unit(rng.standard_normal((1, T)))[0]
    s = theory.svm.water_filling(scores, 0.4)
    others = rng.dirichlet(np.ones(T), instances)
    v = X.T @ scores
    best = head.value((s @ X)[None], v)
    yield at_most("head at random mixtures, at the closed form", head.value(others @ X, v), best)
    gaps = np.full((1, T), 0.1)
    flat = theory.svm.water_filling(-np.cumsum(gaps, axis=1), [10.0])
    yield at_most(
        "tokens selected with a curvature above the range, tau = 2",
        (flat > 0).sum(),
        2,
        role="outside",
    )
