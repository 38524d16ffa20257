"""What one step and many steps of gradient descent achieve (errata 4 to 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.svm._errata._tools import (
    descent,
    inner,
    norm,
    normal,
    pushes,
    repeated,
    scaled,
    seen,
)
from attnlab import curvature, models, optim, problems, svm
from attnlab.checks import Array
from attnlab.problems import TokenProblem


def _decrease(problem: TokenProblem, W: Array, step: Array) -> tuple[Array, Array]:
    """What a step of length ``step`` gains, and the half step times squared gradient to beat."""
    model = models.Attention(loss="correlation")
    loss, grads = model.value_and_grad({"W": W}, problem)
    after = model.value_and_grad({"W": W - step[..., None, None] * grads["W"]}, problem)[0]
    return loss - after, step / 2.0 * norm(grads["W"]) ** 2


@measures("svm.erratum-4")
def erratum_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=1, T=2, d=3, trials=instances, rng=rng)
    model = models.Attention(loss="correlation")
    best = np.take_along_axis(drawn.X[:, 0], drawn.optimal[..., None], axis=1)
    difference = 2.0 * best - drawn.X[:, 0].sum(axis=1, keepdims=True)
    # up to a constant the loss is -gap times the logistic function of <feature, W>
    feature = difference.swapaxes(1, 2) * drawn.z
    gap = (drawn.best - drawn.scores.min(axis=-1))[:, 0]
    sharp = gap * norm(feature) ** 2 / (6.0 * math.sqrt(3.0))
    steepest = math.log(2.0 + math.sqrt(3.0))  # where the loss bends up the most

    def there(u: float) -> Array:
        return np.asarray(feature * (u / norm(feature) ** 2)[:, None, None])

    bends = np.array(
        [
            np.abs(curvature.hessian(model, {"W": there(u)}, drawn).extremes).max(axis=0)
            for u in (*np.linspace(-6.0, 6.0, 25), steepest)
        ]
    )
    yield equal("largest curvature, and L", bends.max(axis=0), sharp, role="correction")
    for name, printed, role in (("2/L", True, "statement"), ("1/L", False, "correction")):
        step = theory.svm.descent_step(sharp, printed=printed)
        gained, wanted = _decrease(drawn, there(steepest), step)
        yield at_least(f"decrease at step {name}, L sharp", gained, wanted, role=role)
    anywhere = np.concatenate([there(u) for u in np.linspace(-6.0, 6.0, 25)])
    X, z, y, v = (np.concatenate([a] * 25) for a in (drawn.X, drawn.z, drawn.y, drawn.v))
    many = TokenProblem(X, z, y, v)
    gained, wanted = _decrease(many, anywhere, np.tile(theory.svm.descent_step(sharp), 25))
    yield at_least("decrease at step 1/L from 25 points", gained, wanted, role="correction")
    loose = curvature.smoothness(model, drawn).W
    yield at_least("L_W of Lemma 4 over the sharp constant", loose / sharp, 4.0, role="correction")
    step = theory.svm.descent_step(loose, printed=True)
    gained, wanted = _decrease(drawn, there(steepest), step)
    yield at_least("decrease at 2/L_W with that L_W", gained, wanted, role="correction")


@measures("svm.erratum-5", instances=60)
def erratum_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    equal_scores = problems.orthogonal(n=3, T=4, d=12, rho=0.5, trials=instances, rng=rng)
    wide = problems.sphere(n=2, T=3, d=16, trials=instances + 10, rng=rng)
    wide = wide.trial(svm.assumption_b1(wide).holds)
    for name, drawn in (("B.2", equal_scores), ("B.1", wide)):
        mm = svm.attention_svm(drawn).W
        at_zero = theory.svm.lemma_9_bound(drawn, mm, *seen(drawn, np.zeros_like(mm)))
        far = pushes(drawn, 30.0 * mm, mm)
        yield at_least(f"-<grad, W_mm> at 30 W_mm, under {name}, against c of W = 0", far, at_zero)
        starts = [mm * R for R in (0.0, 1.0, 30.0)]
        starts += [R * normal(rng, drawn) for R in (0.1, 1.0, 10.0)]
        found = np.array([pushes(drawn, W, mm) for W in starts])
        bound = np.array([theory.svm.lemma_9_bound(drawn, mm, *seen(drawn, W)) for W in starts])
        what = f"-<grad, W_mm> at random and aligned W, under {name}, against c(W)"
        near = (1.0 - 1e-6) * bound  # margins of 1 are 1 to the solver's accuracy
        yield at_least(what, found, near, role="correction")
        yield at_least(f"c(W) itself, under {name}", bound, 0.0, strictly=True, role="correction")


@measures("svm.erratum-6", instances=60)
def erratum_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _lemma_10(rng, instances)
    data = problems.bad_direction()
    best, bad = svm.attention_svm(data), svm.attention_svm(data, np.array([1, 1]))
    F = theory.svm.features(data)
    F = np.stack([F[0, 0], F[1, 1]])  # of the tokens that are not optimal
    low = theory.svm.opposing_threshold(np.einsum("ade,bde->ab", F, F))
    what = "threshold of w_2 / w_1 for running away, against softmax at the bad direction"
    s, slope = seen(data, 3.0 * bad.W)
    weights = slope * theory.svm.score_gaps(data)[0] * s.prod(axis=-1)
    yield at_least(what, low, weights[1] / weights[0], role="correction")
    model, sizes = models.Attention(), np.array([0.3, 1.0, 2.0])
    both = repeated(data, len(sizes))
    start = {"W": scaled(np.stack([bad.W] * len(sizes)), sizes)}
    rule = optim.GD(float(1.0 / curvature.smoothness(model, data).W))
    run = optim.train(model, both, rule, 5000, params=start, record="norm", every=2500)
    W, grown = run.params["W"], run.history["norm_W"]
    yield at_least("cosine with W_mm from |W(0)| = 1 and 2", svm.correlation(W, best.W)[1:], 0.99)
    there = svm.correlation(W, bad.W)[1:]
    yield at_least("cosine with the bad direction instead", there, 0.9999, role="correction")
    yield at_least("growth of |W|", grown[1:] - grown[:-1], 0.0, strictly=True, role="correction")
    left = model.attention({"W": W}, both)[:, 1, 0]
    yield at_most("attention of sample 2 on its optimum", left[1:], 1e-3, role="correction")
    near = optim.train(model, both.trial([0]), optim.NormalizedGD(0.1), 500, record=(),
                       params={"W": start["W"][:1]})  # fmt: skip
    cosine = svm.correlation(near.params["W"], best.W)
    yield at_least("cosine with W_mm from |W(0)| = 0.3", cosine, 0.999, role="correction")
    alone = problems.orthogonal(n=1, T=4, d=8, rho=0.5, trials=instances, rng=rng)
    begin = {"W": scaled(normal(rng, alone), 3.0)}
    run = optim.train(model, alone, optim.NormalizedGD(0.1), 3000, params=begin, record=())
    cosine = svm.correlation(run.params["W"], svm.attention_svm(alone).W)
    yield at_least("cosine with W_mm, one sample, any start", cosine, 0.98, role="correction")


def _lemma_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    tokens = np.array([[[1.0, 0.0, 0.0], [0.0] * 3], [[-0.95, 0.312, 0.0], [0.0] * 3]])
    head = np.array([1.0, (0.1 + 0.95) / 0.312, 0.0])  # score gaps 1 and 0.1
    data = TokenProblem(tokens, np.eye(3)[[0, 0]], np.ones(2), head)
    mm, bad = svm.attention_svm(data).W, svm.attention_svm(data, np.array([0, 1])).W
    radii = np.array([10.0, 30.0, 100.0, 300.0])
    W = scaled(np.stack([bad] * len(radii)), radii)
    ratio = _ratio(repeated(data, len(radii)), W, mm, "correlation")
    yield at_most("Lemma 10's ratio at R = 10 to 300, two samples, pi = 1", ratio, 2.0)
    pi = 0.1
    alone = problems.orthogonal(n=1, T=4, d=8, rho=0.5, trials=instances, rng=rng)
    mm = svm.attention_svm(alone).W
    enough = theory.svm.lemma_10_radius(alone, mm, pi)
    found = []
    for spread in (0.0, 0.03, 0.1, 0.3, 1.0, 1e6):
        W = scaled(scaled(mm, 1.0) + spread * scaled(normal(rng, alone), 1.0), enough)
        found.append(_ratio(alone, W, mm, "logistic"))
    what = f"Lemma 10's ratio, one sample, pi = {pi:g}"
    yield at_most(what, np.array(found), 1.0 + pi, role="correction")


def _ratio(problem: TokenProblem, W: Array, mm: Array, loss: str) -> Array:
    """<-grad, W/|W|> over <-grad, W_mm/|W_mm|>."""
    down = descent(problem, W, loss)[0]  # its tiny scale is on both sides
    return np.asarray(inner(down, scaled(W, 1.0)) / inner(down, scaled(mm, 1.0)))
