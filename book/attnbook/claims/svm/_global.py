"""Global convergence of gradient descent: Theorems 4 to 6, Assumption C."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._landscape import equal_scores
from attnlab import curvature, models, optim, problems, svm
from attnlab.checks import Array

STEPS = (100, 300, 1000, 3000, 10_000)


def trapped() -> Iterator[Measurement]:
    """Gradient descent from two starts that never reach W_mm, although B.2 holds (T = 2)."""
    model = models.Attention(start="zero")
    fixed = problems.bad_direction()
    wrong = svm.attention_svm(fixed, [1, 1])
    trap = cases.detour()
    first = model.value_and_grad(model.init(trap), trap)[1]["W"]
    small = -first / float(svm.attention_svm(trap).norm)
    for what, problem, start in (
        ("2 samples, from W_alpha / |W_alpha|", fixed, wrong.W / wrong.norm),
        ("3 samples, from 0", trap, small),
    ):
        yield at_least(f"{what}: B.2 holds", svm.assumption_b2(problem).holds, 1.0)
        eta = float(theory.svm.descent_step(curvature.smoothness(model, problem).W))
        if problem is fixed:
            yield equal(f"{what}: step 1 / L_W", eta, 1.67e-3, within=2e-3, role="correction")
        run = optim.train(model, problem, optim.GD(eta), 8000, params={"W": start}, every=8000)
        seen = model.attention(run.params, problem)
        best = np.take_along_axis(seen, problem.optimal[:, None], axis=-1)
        yield at_least(
            f"{what}: least attention on an optimal token after descent", best.min(), 0.5
        )
        on = optim.train(
            model, problem, optim.NormalizedGD(0.02), 4000, params=run.params, every=4000
        )
        near = svm.correlation(on.params["W"], svm.attention_svm(problem).W)
        yield at_least(
            f"{what}: correlation with W_mm, descent carried on along the gradient", near, 0.99
        )


def settles(
    problem: problems.TokenProblem,
    start: Array,
    what: str,
    role: str,
    steps: tuple[int, ...] = STEPS,
    step_size: float = 0.1,
) -> Iterator[Measurement]:
    """Normalized descent, which follows the same curve: 1 - cosine falls like k^-2."""
    model, margin = models.Attention(), svm.attention_svm(problem)
    gap = {"gap": lambda params, _: cases.misfit(params["W"], margin.W)}
    run = optim.train(
        model,
        problem,
        optim.NormalizedGD(step_size),
        steps[-1],
        params={"W": start},
        record=[gap],
        every=steps,
    )
    gaps = run.history["gap"][1:]
    yield at_most(
        f"{what}: 1 - correlation with W_mm after {steps[-1]:,} steps", gaps[-1], 1e-3, role=role
    )
    powers = [slope(steps, trial) for trial in np.maximum(gaps, 1e-15).T]
    yield at_most(
        f"{what}: its power of k (-2 is expected), median", np.median(powers), -1.5, role=role
    )


@measures("svm.theorem-4", instances=20)
def theorem_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from trapped()
    single = equal_scores(instances, 1, rng)
    start = rng.uniform(-1.0, 1.0, (*single.trials, single.d, single.d))
    yield from settles(single, start, "n = 1", "correction")
    model = models.Attention()
    eta = float(theory.svm.descent_step(curvature.smoothness(model, single).W).min())
    near = {"near": lambda params, _: svm.correlation(params["W"], svm.attention_svm(single).W)}
    run = optim.train(
        model,
        single,
        optim.GD(eta),
        10_000,
        params={"W": start},
        record=[near],
        every=[1000, 10_000],
    )
    seen = run.history["near"]
    yield at_least(
        "n = 1, gradient descent: gain in correlation, steps 1,000 to 10,000",
        seen[2] - seen[1],
        0.0,
        strictly=True,
        role="correction",
    )
    yield from _opposing(rng, 4 * instances)


def _opposing(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Two samples of two tokens: does the wrong selection of the second one attract?"""
    first = rng.uniform(0.5, 2.0, instances)
    against = np.where(
        rng.random(instances) < 0.5,
        rng.uniform(0.3, 0.85, instances),
        rng.uniform(1.2, 2.0, instances),
    )
    f = np.zeros((instances, 2, 3))
    f[:, 0, 0] = first / 2.0
    f[:, 1, 0] = -against * first / 2.0
    f[:, 1, 1] = first * (1.5 + against) / 2.0
    z = np.zeros((instances, 2, 3))
    z[..., 0] = 1.0
    drawn = cases.pair(f, z, np.ones((instances, 2)), np.tile([1.0, 2.0, 0.0], (instances, 1)))
    right = np.all(drawn.optimal == 0)
    assert right
    F = theory.svm.features(drawn)[:, [0, 1], [1, 1]].reshape(instances, 2, -1)
    gram = F @ F.swapaxes(-1, -2)
    attracts = np.array([theory.svm.opposing_threshold(g) > 0.0 for g in gram])
    wrong = np.tile([0, 1], (instances, 1))
    start = 40.0 * cases.unit(svm.attention_svm(drawn, wrong).W) / first[:, None, None]
    run = optim.train(
        models.Attention(), drawn, optim.NormalizedGD(0.1), 6000, params={"W": start}, every=6000
    )
    stayed = models.Attention().attention(run.params, drawn)[:, 1, 1] > 0.5
    yield equal(
        "n = T = 2: the wrong selection keeps descent, as the threshold says",
        stayed,
        attracts,
        role="correction",
    )


@measures("svm.theorem-5", instances=12)
def theorem_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from trapped()
    level = equal_scores(instances, 1, rng)
    along = rng.uniform(-1.0, 1.0, (*level.trials, 1, level.T, 1)) * level.v[..., None, None, :]
    others = (np.arange(level.T) != level.optimal[..., None])[..., None]
    start = rng.uniform(-1.0, 1.0, (*level.trials, level.d, level.d))
    for size in (1e-2, 1e-3):
        X = level.X + size * np.where(others, along, 0.0)
        near = problems.TokenProblem(X, level.z, level.y, level.v)
        yield from settles(near, start, f"n = 1, scores within {2 * size:g}", "correction")
    far = problems.sphere(n=1, T=4, d=5, min_gap=0.2, trials=max(20 * instances, 200), rng=rng)
    second = np.argsort(far.scores, axis=-1)[..., -2]
    margin = svm.attention_svm(far, second)
    stays = svm.locally_optimal(far, second).corrected & (margin.norm < 8.0)
    far, W = cases.some(far, stays), margin.W[stays]
    model = models.Attention()
    run = optim.train(model, far, optim.NormalizedGD(0.1), 2000, params={"W": 40.0 * W}, every=2000)
    best = np.take_along_axis(model.attention(run.params, far), far.optimal[..., None], axis=-1)
    yield at_least(
        "n = 1, unequal scores, start at a local optimum: attention on opt",
        best,
        0.5,
        role="outside",
    )


@measures("svm.assumption-c", instances=300)
def assumption_c(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=4, T=4, d=8, trials=instances, rng=rng)
    model = models.Attention(start="zero")
    zero = model.init(drawn)
    mean = drawn.scores.mean(axis=-1, keepdims=True)
    weight = -cases.steepness(model, drawn, zero["W"])[..., None] * (drawn.scores - mean) / 16.0
    G = np.einsum("bnt,bntd,bne->bde", weight, drawn.X, drawn.z)
    own = model.value_and_grad(zero, drawn)[1]["W"]
    yield equal("gradient at 0, its closed form", own, G, size=np.abs(own).max())
    found = svm.assumption_c(drawn)
    others = np.arange(4) != drawn.optimal[..., None]
    least = np.where(others, theory.svm.token_margins(drawn, -G), np.inf).min(axis=(-1, -2))
    holds = np.asarray(found.holds)
    yield at_least(
        "least margin of -gradient(0), instances inside", least[holds], 0.0, strictly=True
    )
    logits = {"W": -own[holds]}
    seen = model.attention(logits, cases.some(drawn, holds))
    inside = cases.some(drawn, holds)
    best = np.take_along_axis(seen, inside.optimal[..., None], axis=-1)[..., 0]
    yield at_least("attention on opt after a step of size 1, 1/T", best, 0.25, strictly=True)
    yield at_least("least margin of -gradient(0), all instances", least, 0.0, role="outside")


@measures("svm.theorem-6", instances=60)
def theorem_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention(start="zero")
    trap = cases.detour()
    yield at_least("3 samples: Assumption C holds", svm.assumption_c(trap).holds, 1.0)
    first = model.value_and_grad(model.init(trap), trap)[1]["W"]
    margin = svm.attention_svm(trap)
    L = curvature.smoothness(model, trap).W
    mu = _opening(trap, -first)
    for what, W, role in (
        ("first step 1 / |W_mm|", -first / margin.norm, "statement"),
        (
            "first step to the radius of Lemma 12",
            -cases.unit(first) * theory.svm.lemma_12_radius(trap, margin.W, mu),
            "correction",
        ),
    ):
        run = optim.train(
            model,
            trap,
            optim.GD(float(theory.svm.descent_step(L))),
            8000,
            params={"W": W},
            every=8000,
        )
        seen = np.take_along_axis(model.attention(run.params, trap), trap.optimal[:, None], axis=-1)
        yield at_least(
            f"{what}: least attention on an optimal token after 8,000 steps",
            seen.min(),
            0.5,
            role=role,
        )
    yield from _single_margins()
    drawn = problems.sphere(n=4, T=4, d=8, min_gap=0.05, trials=6 * instances, rng=rng)
    good = np.asarray(svm.assumption_c(drawn).holds) & (svm.attention_svm(drawn).norm < 8.0)
    drawn = cases.some(drawn, good)
    first = model.value_and_grad(model.init(drawn), drawn)[1]["W"]
    mu = _opening(drawn, -first)
    drawn, first, mu = cases.some(drawn, mu > 0.02), first[mu > 0.02], mu[mu > 0.02]
    margin = svm.attention_svm(drawn)
    R = theory.svm.lemma_12_radius(drawn, margin.W, mu)
    W = -cases.scaled(R, cases.unit(first))
    others = np.arange(4) != drawn.optimal[..., None]
    least = np.where(others, theory.svm.token_margins(drawn, W), np.inf).min(axis=(-1, -2))
    yield at_least(
        "least margin of W(1), mu Theta R",
        least,
        mu / margin.norm * R * (1 - 1e-9),
        role="correction",
    )
    # from R on lengths are measured in R: so is the step
    big = problems.TokenProblem(
        drawn.X * R[:, None, None, None], drawn.z, drawn.y, drawn.v / R[:, None]
    )
    yield from settles(big, W / R[:, None, None], "large first step", "correction", step_size=0.02)


def _single_margins() -> Iterator[Measurement]:
    """Equation 63a: inside the cone the gradient raises every single margin."""
    opposed, model = cases.opposed(-0.95), models.Attention(start="zero")
    F = theory.svm.features(opposed)[[0, 1], 1 - opposed.optimal].reshape(2, -1)
    W = (np.linalg.pinv(F) @ np.array([0.5, 1.5])).reshape(3, 3)  # margins of that ratio
    mu = _opening(opposed, W)
    W_mm = svm.attention_svm(opposed).W
    W = cases.unit(W) * theory.svm.lemma_12_radius(opposed, W_mm, mu)
    G, _ = cases.downhill(model, opposed, W)
    rise = theory.svm.token_margins(opposed, cases.unit(G))[[0, 1], 1 - opposed.optimal]
    yield at_least("least margin of -gradient in the cone (63a)", rise, 0.0, role="step")


def _opening(problem: problems.TokenProblem, W: Array) -> Array:
    r"""The largest $\mu$ with $W\in S_\mu$: the least margin of $\|W^{mm}\|W/\|W\|$."""
    size = svm.attention_svm(problem).norm
    others = np.arange(problem.T) != problem.optimal[..., None]
    margins = theory.svm.token_margins(problem, cases.unit(W))
    return np.asarray(size * np.where(others, margins, np.inf).min(axis=(-1, -2)))
