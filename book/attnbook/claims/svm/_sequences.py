"""Sequences: Definitions 4 and 5, Lemmas 15 and 16, Assumption E."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, vanishes
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._cones import cone_membership
from attnlab import models, problems, svm
from attnlab.checks import Array, IntArray


def positions(instances: int, rng: np.random.Generator, d: int = 4) -> problems.TokenProblem:
    """One sequence of three tokens and a query for each position, well separated."""
    drawn = problems.sequence(
        n=1, T=3, d=d, min_gap=0.1, self_attention=False, trials=6 * instances + 10, rng=rng
    )
    return cases.short(drawn, instances)


@measures("svm.definition-4")
def definition_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    whole = problems.sequence(n=2, T=3, d=7, min_gap=0.01, trials=instances, rng=rng)
    masked = problems.causal(n=2, T=3, d=7, min_gap=0.01, trials=instances, rng=rng)
    for name, drawn in (("sequence", whole), ("causal", masked)):
        pick = np.ones(drawn.scores.shape) if drawn.mask is None else drawn.mask * 1.0
        alpha = (pick * rng.random(pick.shape)).argmax(axis=-1)
        found = svm.locally_optimal(drawn, alpha)
        margins = theory.svm.token_margins(drawn, np.nan_to_num(found.margin.W), alpha)
        seen = found.neighbours & np.asarray(found.margin.status == "optimal")[:, None, None]
        yield equal(f"{name}: margins of support tokens, 1", margins[seen], 1.0, within=1e-6)
        least = np.where(found.neighbours, cases.lead(drawn, alpha), np.inf).min(axis=(-1, -2))
        holds = np.asarray(found.as_printed)
        words = f"{name}: locally optimal if and only if it outscores its support tokens"
        yield at_least(words, ((least > 0.0) == holds)[seen.any((1, 2))], 1.0)
        best = svm.locally_optimal(drawn)
        yield at_least(f"{name}: the optimal tokens are locally optimal", best.as_printed, 1.0)
        low = np.where(pick > 0.0, drawn.scores, np.inf).argmin(axis=-1)
        worst = svm.locally_optimal(drawn, low).as_printed
        yield at_least(f"{name}: the worst tokens are", worst, 1.0, role="outside")
    rows = whole.X.reshape(instances, 2, 3, 3, 7)
    yield equal("tokens seen by the positions of a sequence", rows[:, :, 1:], rows[:, :, :1])


@measures("svm.lemma-15", instances=8)
def lemma_15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = positions(instances, rng)
    model, plain, R = models.Attention(factors=3), models.Attention(), 20.0
    path = svm.regularization_path(model, drawn, [R])
    K, Q, W = path.params["K"][0], path.params["Q"][0], path.W[0]
    turn = np.linalg.qr(rng.standard_normal((*drawn.trials, 3, 3)))[0]
    turned = {"K": K @ turn, "Q": Q @ turn}
    there = cases.norm(turned["K"] - K) / cases.norm(K)
    yield vanishes("distance of two solutions with one product", there, within=1e-6, role="outside")
    cost = [(A**2 + B**2).sum(axis=(-1, -2)) / 2.0 for A, B in ((K, Q), turned.values())]
    yield equal("half the squares of both, R", np.array(cost), R, within=1e-5)
    yield equal(
        "loss of the factors, of the product",
        model.value_and_grad(turned, drawn)[0],
        plain.value_and_grad({"W": W}, drawn)[0],
    )
    A, B = (rng.standard_normal((200, 4, 3)) for _ in range(2))
    half = (cases.norm(A) ** 2 + cases.norm(B) ** 2) / 2.0
    what = "nuclear norm of a product, half the squares of its factors"
    yield at_most(what, np.linalg.norm(A @ B.swapaxes(1, 2), "nuc", axis=(1, 2)), half)
    U, values, Vt = np.linalg.svd(A @ B.swapaxes(1, 2), full_matrices=False)
    root = np.sqrt(values)[:, None, :]
    half = (cases.norm(U * root) ** 2 + cases.norm(Vt.swapaxes(1, 2) * root) ** 2) / 2.0
    yield equal("the same for balanced factors", half, values.sum(axis=-1))
    size = np.linalg.norm(W, "nuc", axis=(-1, -2))
    yield equal("nuclear norm of the path's product, R", size, R, within=1e-5)
    # the product is stationary for W on the nuclear ball: -grad is in the ball's normal cone
    G, _ = cases.downhill(plain, drawn, W)
    size = np.linalg.norm(G, 2, axis=(-1, -2))
    yield equal("(-grad, W) over R |grad|, 1", cases.inner(G, W) / (R * size), 1.0, within=1e-3)
    noise = cases.unit(rng.standard_normal(W.shape))
    least = np.asarray(plain.evaluate({"W": W}, drawn).log_excess, float)
    for what, start in (
        ("nearby", 0.9 * W + 0.02 * R * noise),
        ("0", 0.0 * W),
        ("afar", R / 4.0 * noise),
    ):
        found = _on_the_nuclear_ball(drawn, start, R, 1000)
        rival = np.asarray(plain.evaluate({"W": found}, drawn).log_excess, float)
        yield at_least(f"log of the excess loss of W from {what}, of the product", rival, least)
        if what == "nearby":  # a worthy rival: some end at another local minimum, or still move
            words = "median of log of the excess loss of W from nearby, less the product's"
            yield at_most(words, np.median(rival - least), 0.05, role="premise")


def _on_the_nuclear_ball(problem: problems.TokenProblem, W: Array, R: float, steps: int) -> Array:
    """Frank and Wolfe's method on W: no factors, no limit on the rank."""
    model = models.Attention()
    for k in range(steps):
        U, _, Vt = np.linalg.svd(cases.downhill(model, problem, W)[0])
        corner = R * U[..., :, :1] @ Vt[..., :1, :]
        W = W + 2.0 / (k + 20.0) * (corner - W)
    return W


@measures("svm.definition-5", instances=200)
def definition_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    instances = max(instances, 60)
    drawn = problems.sequence(n=2, T=3, d=3, trials=instances, rng=rng)
    alpha = cases.random_selection(drawn, rng)
    W = cases.unit(rng.standard_normal((instances, 3, 3)))
    margins = theory.svm.cone_margins(drawn, W, alpha)
    first = margins[..., ::3].min(axis=-1) >= 0.05
    whole = margins.min(axis=-1) >= 0.05
    found = svm.in_cone(drawn, W, alpha, epsilon=0.05)
    what = "a member by the printed formula (k = 1) or not, as the definition says"
    yield at_least(what, first == found, 1.0)
    what = "a member by the minimum over positions or not, as the definition says"
    yield at_least(what, whole == found, 1.0, role="correction")
    low, high = theory.svm.low_high(drawn, alpha)
    yield equal(
        "tokens in low, in high, selected, at every position",
        low.sum(-1) + high.sum(-1) + 1,
        3,
        role="correction",
    )
    yield at_least("all matrices are members", found, 1.0, role="outside")


@measures("svm.lemma-16", instances=60)
def lemma_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sequence(n=1, T=3, d=3, self_attention=False, trials=instances, rng=rng)
    yield from cone_membership(drawn, rng)


@measures("svm.assumption-e", instances=300)
def assumption_e(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sequence(n=2, T=3, d=4, trials=instances, rng=rng)
    alpha = cases.random_selection(drawn, rng)
    B, c = theory.svm.score_constants(drawn, alpha)
    apart = np.abs(drawn.scores[..., :, None] - drawn.scores[..., None, :]).max(axis=(-1, -2, -3))
    yield at_most("linear: largest difference of scores, B", apart, B)
    linear = models.Attention()
    found, share = _mixed(linear, drawn, alpha, rng)
    yield at_most(
        "linear: score of a mixture, score of alpha - c (1 - s)",
        found,
        -np.where(share > 0, c[:, None, None], 0) * share + 1e-12,
    )
    head = models.Attention(head=models.ReLUHead(rng.standard_normal((6, 4))))
    for sign, role in ((1.0, "statement"), (-1.0, "outside")):
        signed = problems.TokenProblem(drawn.X, drawn.z, np.full(drawn.y.shape, sign), drawn.v)
        scores = head.scores(signed)
        own = cases.at(scores, alpha)[..., None]
        lead = np.where(scores < own, own - scores, np.inf).min(axis=(-1, -2))
        found, share = _mixed(head, signed, alpha, rng)
        bound = -np.where(share > 0, lead[:, None, None], 0.0) * share + 1e-12
        yield at_most(
            f"ReLU, labels {sign:+g}: score of a mixture, score of alpha - c (1 - s)",
            found,
            bound,
            role=role,
        )


def _mixed(
    model: models.Attention,
    problem: problems.TokenProblem,
    alpha: IntArray,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """By how much mixtures with lower tokens outscore alpha, and the share of the others."""
    scores = model.scores(problem)
    own = cases.at(scores, alpha)[..., None]
    may = (scores < own) | (np.arange(problem.T) == alpha[..., None])
    rise, share = [], []
    for power in (1.0, 1.0, 8.0, 8.0):  # the latter near corners
        s = np.where(may, rng.random(scores.shape) ** power, 0.0)
        s /= s.sum(axis=-1, keepdims=True)
        value = problem.y * model.head.value((s[..., None, :] @ problem.X)[..., 0, :], problem.v)
        rise.append(value - own[..., 0])
        share.append(np.where(np.arange(problem.T) == alpha[..., None], 0.0, s).sum(axis=-1))
    corner = np.where(may, -scores, np.inf)  # all weight on the best of the low tokens
    corner = np.where(np.arange(problem.T) == alpha[..., None], np.inf, corner)
    at = corner.argmin(axis=-1)
    some = np.isfinite(corner.min(axis=-1))
    rise.append(np.where(some, cases.at(scores, at) - own[..., 0], 0.0))
    share.append(some * 1.0)
    return np.stack(rise, axis=-1), np.stack(share, axis=-1)
