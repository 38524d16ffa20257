"""Slips in the theorems on Polyak's step and on gradient descent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.bias._errata._tools import at_optimal, copies, leads
from attnlab import models, optim, problems, svm

MODEL = models.Attention(loss="exponential", start="zero")


@measures("bias.erratum-12", instances=20)
def erratum_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    instances = max(instances, 2)  # one on each side of phi = 1 - beta
    drawn = problems.orthogonal(n=6, T=3, d=30, rho=0.2, trials=instances, rng=rng)
    B = np.linalg.norm(drawn.X, axis=-1).max(axis=(-1, -2))
    margin, beta = svm.attention_svm(drawn), 0.9
    top, low, _ = theory.bias.split_scores(drawn)
    first, second = theory.bias.gradient_bounds(top, low, B, margin.norm, beta=beta)
    run = optim.train(
        MODEL, drawn, optim.PolyakStep(), steps=8, record=["loss", "excess", "grad_norm"]
    )
    loss, excess, slopes = (run.history[name] for name in ("loss", "excess", "grad_norm"))
    upsilon = (loss / excess).max(axis=0)
    ratio, nu = excess / slopes, 0.1 / 0.9  # epsilon = 0.1
    what = "(loss - floor)/|gradient| along a Polyak run, against 1/(omega_2 upsilon)"
    yield at_least(f"{what}, nu of Lemma 7", ratio, 1.0 / (second * nu))
    yield at_least(what, ratio, 1.0 / (second * upsilon), role="correction")

    tilted = margin.W + 0.1 * rng.standard_normal(margin.W.shape)
    size = np.concatenate([[-8.0, 0.0], rng.uniform(-2.0, 3.0, instances)])[:instances]
    params = {"W": size[:, None, None] * tilted}
    chosen = at_optimal(MODEL.attention(params, drawn), drawn)
    value, grads = MODEL.value_and_grad(params, drawn)
    share = np.linalg.norm(grads["W"], axis=(-2, -1)) / value
    below = chosen.max(axis=-1) <= beta
    within = below & (chosen.min(axis=-1) >= 1.0 - beta)
    what = "|gradient| over the loss, against omega_1, where phi <= 0.9"
    yield at_least(what, share[below], first[below], role="step")
    what = "|gradient| over the loss, against omega_1, where 0.1 <= phi <= 0.9"
    yield at_least(what, share[within], first[within], role="correction")
    yield at_least("omega_2 on the data of Figure 2's kind", second, 1.0, role="step")
    t = np.ceil(second * upsilon) * np.arange(1, 20)[:, None]
    left = t / (2.0 * B**2 * margin.norm * second * upsilon) - 1.0 / (4.0 * B**2 * margin.norm)
    right = t / (4.0 * B**2 * margin.norm * second * upsilon)
    yield at_least(
        "growth of the norm over eta, for t >= omega_2 upsilon", left, right, role="correction"
    )


@measures("bias.erratum-13")
def erratum_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, instances = 4, max(instances, 10)
    drawn = problems.orthogonal(n=4, T=T, d=20, rho=0.3, trials=instances, rng=rng)
    margin = svm.attention_svm(drawn)
    size = rng.uniform(0.0, 10.0, instances)[:, None, None]
    W = size * (margin.W + 0.3 * rng.standard_normal(margin.W.shape))
    chosen = at_optimal(MODEL.attention({"W": W}, drawn), drawn)
    lead = leads(W, drawn).min(axis=-1)
    case, bound = chosen > 1.0 - 1.0 / (2.0 * T), -np.log(2.0 * T - 1.0)
    what = "where attention on opt is above 1 - 1/(2T)"
    yield at_most(f"attention weight, {what}", chosen[case], bound)
    yield at_most(f"logit difference, {what}", -lead[case], bound, role="correction")


@measures("bias.erratum-14", instances=5)
def erratum_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    data, start = problems.two_token(), np.array([[0.1, 0.3], [-0.2, 0.4]])
    kept = {"W": lambda params, _: params["W"]}
    run = optim.train(
        MODEL, data, optim.GD(1.0), steps=200, params={"W": start}, record=["grad_norm", kept]
    )
    W = run.history["W"]
    truth = svm.correlation(W, svm.attention_svm(data).W)
    pushed = np.cumsum(run.history["grad_norm"])  # G_t
    rest = np.square(start).sum() - start[0, 0] ** 2
    late = start[0, 0] + pushed[1:]
    shifted = start[0, 0] + pushed[:-1]
    what = "correlation of GD on the example, t = 1..200, against (3)"
    for name, along, role in (("G_t", late, "statement"), ("G_(t-1)", shifted, "correction")):
        miss = theory.bias.two_token_miss(along, rest)
        yield equal(f"{what} with {name}", truth[1:], 1.0 - miss, role=role)

    first = optim.train(MODEL, data, optim.NormalizedGD(0.1), steps=7, params={"W": start})
    grad = MODEL.value_and_grad({"W": start}, data)[1]["W"]
    unit = 7.0 * grad / np.linalg.norm(grad)  # on the example all gradients point one way
    for sign, role in ((1.0, "step"), (-1.0, "correction")):
        moved = start + 0.1 * sign * unit
        name = "W_7 of NGD from the sum of unit gradients, sign " + "-+"[sign > 0]
        yield equal(name, moved, first.params["W"], size=1.0, role=role)

    # along the example only the corner moves, so other starts are other corners
    corners = np.concatenate([[0.1], rng.uniform(-0.5, 0.5, instances - 1)])
    many = copies(data, instances)
    starts = np.array(np.broadcast_to(start, (instances, 2, 2)))
    starts[:, 0, 0] = corners
    long = optim.train(
        MODEL,
        many,
        optim.GD(1.0),
        steps=10_000,
        params={"W": starts},
        record=[{"corner": lambda params, _: params["W"][..., 0, 0]}],
        every=(100, 1000, 3000, 10_000),
    )
    t, corner = long.history["step"][1:, None], long.history["corner"][1:]
    found = np.stack([theory.bias.two_token_gd(t[:, 0], w, 1.0) for w in corners], axis=-1)
    quoted = np.array([3.542, 5.896, 7.002, 8.2087])
    what = "corner of W under GD"
    yield equal(
        f"{what}, t = 100 to 10000, quoted", corner[:, 0], quoted, within=2e-4, role="correction"
    )
    yield equal(
        f"{what} against log(e^w + t/e), t >= 1000",
        corner[1:],
        found[1:],
        within=5e-3,
        role="correction",
    )
    miss = theory.bias.two_token_miss(corner[1:], rest) * np.log(t[1:]) ** 2
    what = "(1 - correlation)(log t)^2 under GD"
    yield at_least(what, miss, rest / 4.0, role="correction")
    yield at_most(what, miss, rest, role="correction")
