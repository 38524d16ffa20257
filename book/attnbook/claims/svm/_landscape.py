"""The landscape of the loss: Lemma 4, Assumption B, Theorem 3."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import (
    Measurement,
    at_least,
    at_most,
    equal,
    exponent,
    mean,
    slope,
    suggested,
    vanishes,
)
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._long import descent
from attnlab import curvature, models, optim, problems, svm
from attnlab.checks import Array

Params = dict[str, Array]


def _change(
    model: models.Attention, problem: problems.TokenProblem, one: Params, two: Params, name: str
) -> tuple[Array, Array]:
    """How far the gradient and the parameter ``name`` are apart."""
    grads = [model.value_and_grad(params, problem)[1][name] for params in (one, two)]
    pairs = ((grads[0], grads[1]), (one[name], two[name]))
    gone, moved = (cases.norm(a - b) for a, b in pairs)
    return gone, moved


@measures("svm.lemma-4")
def lemma_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=4, d=5, trials=instances, rng=rng)
    for loss in ("logistic", "correlation"):
        model = models.Attention(loss=loss)
        L = curvature.smoothness(model, drawn).W
        one, two = (rng.standard_normal((instances, 5, 5)) for _ in range(2))
        for step in (1e-3, 1.0):
            gone, moved = _change(model, drawn, {"W": one}, {"W": one + step * two}, "W")
            what = f"{loss}: change of the gradient in W, L_W |dW|, step {step:g}"
            yield at_most(what, gone, L * moved, role="correction")
    x = rng.uniform(0.5, 2.0, instances)[:, None, None, None] * np.array([[1.0, 0.0], [-1.0, 0.0]])
    line = problems.TokenProblem(
        x, np.ones((instances, 1, 2)), np.ones((instances, 1)), np.ones((instances, 2))
    )
    spot = {"W": np.array([[-0.4, 0.0], [0.0, 0.0]]) / x[:, 0, :1, :1]}
    low, high = curvature.extremes(models.Attention(), spot, line)
    sharpest = np.maximum(np.abs(low), np.abs(high))
    yield at_most(
        "largest curvature of two opposite tokens, L_W",
        sharpest,
        curvature.smoothness(models.Attention(), line).W,
        role="correction",
    )
    model = models.Attention(factors=5)
    K, Q, dK, dQ = (rng.standard_normal((instances, 5, 5)) for _ in range(4))
    sizes = (1.0, 1e2, 1e5)  # the product K Q' stays as it is
    bends: dict[str, list[float]] = {"K": [], "Q": []}
    for c in sizes:
        start = {"K": K / c, "Q": c * Q}
        ends = {
            "K": {"K": K / c + 1e-3 * dK / c, "Q": c * Q},
            "Q": {"K": c * K, "Q": Q / c + 1e-3 * dQ / c},
        }
        for name, end in ends.items():
            begin = start if name == "K" else {"K": c * K, "Q": Q / c}
            bound = curvature.smoothness(model, drawn, begin)
            L_printed, L_right = (
                (bound.K_printed, bound.K) if name == "K" else (bound.Q_printed, bound.Q)
            )
            gone, moved = _change(model, drawn, begin, end, name)
            assert L_printed is not None
            assert L_right is not None
            what = f"change of the gradient in {name}, other factor scaled by {c:g}"
            if c == max(sizes):  # the missing square shows where it is large
                yield at_most(f"{what}, L printed", gone, L_printed * moved)
            yield at_most(f"{what}, L corrected", gone, L_right * moved, role="correction")
            bends[name].append((gone / moved).mean())
    for name, found in bends.items():
        what, power = f"power of the other factor in the curvature in {name}", slope(sizes, found)
        yield equal(f"{what}, printed", power, 1.0)
        yield equal(f"{what}, corrected", power, 2.0, within=1e-6, role="correction")


def all_support(instances: int, rng: np.random.Generator) -> problems.TokenProblem:
    """Problems that satisfy B.1: wide tokens, filtered."""
    drawn = problems.sphere(n=2, T=3, d=12, min_gap=0.05, trials=2 * instances + 4, rng=rng)
    return cases.some(drawn, svm.assumption_b1(drawn).holds, instances)


def equal_scores(instances: int, n: int, rng: np.random.Generator) -> problems.TokenProblem:
    """Problems that satisfy B.2: the surrogates of random ones."""
    drawn = problems.sphere(n=n, T=4, d=5, min_gap=0.2, trials=2 * instances + 4, rng=rng)
    twin = theory.svm.equal_scores(drawn)
    good = svm.assumption_b2(twin).holds & (twin.optimal == drawn.optimal).all(axis=-1)
    margin = svm.attention_svm(twin)
    good = good & (np.asarray(margin.status) == "optimal")
    return cases.some(twin, good & (margin.norm < 8.0), instances)


@measures("svm.assumption-b")
def assumption_b(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    inside = all_support(instances, rng)
    margin = svm.attention_svm(inside)
    lead = theory.svm.token_margins(inside, margin.W)
    margins = np.where(cases.others(inside, inside.optimal), lead, 1.0)
    yield equal("B.1: margins of all tokens that are not selected, 1", margins, 1.0, within=1e-6)
    apart = cases.norm(_interpolator(inside) - margin.W) / margin.norm
    what = "distance of W_mm from the least-norm interpolator of margins 1"
    yield vanishes(f"B.1: {what}", apart, within=1e-6)
    edge = cases.problem([[[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]], [[1.0, 0.0]], [1.0], [1.0, 0.1])
    found = svm.attention_svm(edge)
    yield equal(
        "B.1 with a multiplier of 0: largest margin, 1",
        svm.assumption_b1(edge).measured["largest_margin"],
        1.0,
    )
    yield vanishes("its least multiplier, 0", found.multipliers[0, 1:].min(), within=1e-9)
    narrow = problems.sphere(n=5, T=5, d=4, min_gap=0.05, trials=instances, rng=rng)
    yield at_most(
        "B.1 in d = 4, n = T = 5: largest margin, 1",
        svm.assumption_b1(narrow).measured["largest_margin"],
        1.0 + 1e-6,
        role="outside",
    )
    level = equal_scores(instances, 2, rng)
    spread, lead = (theory.svm.score_gaps(level)[k] for k in (1, 0))
    yield equal("B.2: largest lead of opt, least lead", spread, lead)
    two = problems.sphere(n=4, T=2, d=3, trials=instances, rng=rng)
    yield at_least("B.2 with two tokens: holds", svm.assumption_b2(two).holds, 1.0)
    yield vanishes(
        "B.2 on random scores: their spread, 0",
        svm.assumption_b2(narrow).measured["spread"],
        within=1e-9,
        role="outside",
    )
    d = math.ceil(10 * math.log(10))  # (T + n) log(T + n)
    many = 16_000  # of which one in thirty has it
    posited = problems.sphere(n=5, T=5, d=d, trials=many, min_gap=0.1, rng=rng)
    share = mean(svm.assumption_b1(posited).holds)
    yield suggested(f"n = T = 5, d = {d}: share with B.1", share, many=many)
    few = problems.sphere(n=2, T=3, d=4, trials=instances + 20, rng=rng)
    found = svm.attention_svm(few)
    clear = found.margins.max(axis=(-1, -2)) > 1.01
    apart = (cases.norm(_interpolator(few) - found.W) / found.norm)[clear]
    yield vanishes(f"without B.1: least {what}", apart.min(), within=1e-6, role="outside")


def _interpolator(problem: problems.TokenProblem) -> Array:
    """The least-norm W whose margins are all 1."""
    (B,), wanted = problem.trials, cases.others(problem, problem.optimal)
    F = theory.svm.features(problem).reshape(B, -1, problem.d**2)
    found = np.linalg.pinv(F) @ wanted.reshape(B, -1, 1).astype(float)
    return np.asarray(found.reshape(B, problem.d, problem.d))


@measures("svm.theorem-3", instances=8)
def theorem_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention()
    for name, inside in (
        ("B.1", all_support(instances, rng)),
        ("B.2", equal_scores(instances, 2, rng)),
    ):
        margin = svm.attention_svm(inside)
        cosines, logs = [], []
        for size in 10.0 ** rng.uniform(-2.0, 3.0, (60, *inside.trials)):
            W = cases.scaled(size, cases.unit(rng.standard_normal(margin.W.shape)))
            G, log_scale = cases.downhill(model, inside, W)
            near = cases.inner(cases.unit(G), cases.unit(margin.W))
            cosines.append(np.where(size < 10.0, near, 1.0))  # beyond, rounding hides it
            logs.append(log_scale)
        what = f"{name}: cosine of -gradient and W_mm, random W up to norm 10"
        yield at_least(what, cosines, 0.0, strictly=True)
        yield at_least(f"{name}: log of the gradient, random W up to norm 1,000", logs, -1e4)
        # lengths scaled until L_W = 1: every trial takes its own step 1 / L_W
        inside = cases.in_units(inside, curvature.smoothness(model, inside).W ** -0.5)
        eta = float(theory.svm.descent_step(1.0))
        run = optim.train(
            model,
            inside,
            optim.GD(eta),
            10_000,
            rng=cases.reseeded(rng),
            record=("excess", "grad_norm"),
            every=10,
        )
        steps, grad = (run.history[key] for key in ("step", "grad_norm"))
        left = run.history["excess"][-1] / run.history["excess"][0]
        yield at_most(f"{name}: excess loss at the end over that at the start", left, 1.0)
        total = eta * (grad[1:] ** 2 * np.diff(steps)[:, None]).sum(axis=0)
        what = f"{name}: eta times the sum of squared gradients, 2 (L(0) - L_*)"
        yield at_most(what, total, 2.0 * run.history["excess"][0])
        largest = grad.max(axis=0)
        what = f"{name}: gradient after 10,000 steps over the largest on the way"
        yield at_most(what, grad[-1] / largest, 0.9)
        yield at_most(f"{what}, median", np.median(grad[-1] / largest), 0.2)
        yield from _for_ever(name, inside, run.params["W"])
    same = np.array([[1.0, 0.0], [-1.0, 0.0]])
    torn = cases.problem(np.stack([same, same]), np.ones((2, 2)), [1.0, -1.0], [1.0, 0.0])
    grad = model.value_and_grad({"W": np.zeros((2, 2))}, torn)[1]["W"]
    yield at_least(
        "gradient at 0 where the SVM has no answer", np.linalg.norm(grad), 1e-12, role="outside"
    )


def _for_ever(what: str, problem: problems.TokenProblem, W: Array) -> Iterator[Measurement]:
    """Gradient descent carried on: the gradient falls like 1 / k, the norm grows like log k."""
    places = descent(problem, W, (20, 60, 180, 500))
    log_k = np.array([place.log_steps for place in places]).mean(axis=-1)
    sizes = []
    for place in places:
        G, log_scale = cases.downhill(models.Attention(), problem, place.W)
        sizes.append((np.log(cases.norm(G)) + log_scale).mean())
    what = f"{what}, up to e^{log_k[-1]:.0f} steps"
    least = f"{what}: power of their number in the gradient"
    yield exponent(least, np.exp(log_k), np.exp(sizes), -1.0, within=0.05)
    gained = cases.norm(places[-1].W) - cases.norm(places[-2].W)
    share = gained / (places[-1].log_steps - places[-2].log_steps)
    share = share / svm.attention_svm(problem).norm
    yield equal(f"{what}: growth of |W| with their log over |W_mm|", share, 1.0, within=0.1)
