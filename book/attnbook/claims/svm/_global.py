"""Global convergence of gradient descent: Theorems 4 and 5."""

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
        best = cases.at(model.attention(run.params, problem), problem.optimal)
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
    yield from _two_ways()


def _two_ways() -> Iterator[Measurement]:
    """The bias paper's two samples, from short and long matrices of the wrong direction."""
    model, drawn = models.Attention(), problems.bad_direction()
    best, bad = svm.attention_svm(drawn), svm.attention_svm(drawn, [1, 1])
    F = theory.svm.features(drawn)[[0, 1], 1 - drawn.optimal].reshape(2, -1)
    W = 3.0 * bad.W
    odds = model.attention({"W": W}, drawn).prod(axis=-1)
    weights = cases.steepness(model, drawn, W) * theory.svm.score_gaps(drawn)[0] * odds
    what = "threshold of w_2 / w_1 for running away, its value at 3 W_alpha"
    low = theory.svm.opposing_threshold(F @ F.T)
    yield at_least(what, low, weights[1] / weights[0], role="correction")
    along = bad.W / bad.norm
    both, start = cases.copies(drawn, 2), {"W": np.stack([along, 2.0 * along])}
    rule = optim.GD(float(theory.svm.descent_step(curvature.smoothness(model, drawn).W)))
    run = optim.train(model, both, rule, 5000, params=start, record="norm", every=2500)
    near, size = svm.correlation(run.params["W"], bad.W), run.history["norm_W"]
    what = "correlation with W_alpha after descent from |W(0)| = 1 and 2"
    yield at_least(what, near, 0.9999, role="correction")
    yield at_least(
        "growth of |W| there", np.diff(size, axis=0), 0.0, strictly=True, role="correction"
    )
    short = {"W": 0.3 * along}
    run = optim.train(model, drawn, optim.NormalizedGD(0.1), 500, params=short, record=())
    near = svm.correlation(run.params["W"], best.W)
    yield at_least("correlation with W_mm from |W(0)| = 0.3", near, 0.999, role="correction")


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
    shift = cases.uneven(level, rng)
    start = rng.uniform(-1.0, 1.0, (*level.trials, level.d, level.d))
    for size in (1e-2, 1e-3):
        near = problems.TokenProblem(level.X + size * shift, level.z, level.y, level.v)
        yield from settles(near, start, f"n = 1, scores within {2 * size:g}", "correction")
    far = problems.sphere(n=1, T=4, d=5, min_gap=0.2, trials=max(20 * instances, 200), rng=rng)
    second = np.argsort(far.scores, axis=-1)[..., -2]
    margin = svm.attention_svm(far, second)
    stays = svm.locally_optimal(far, second).corrected & (margin.norm < 8.0)
    far, W = cases.some(far, stays), margin.W[stays]
    model = models.Attention()
    run = optim.train(model, far, optim.NormalizedGD(0.1), 2000, params={"W": 40.0 * W}, every=2000)
    best = cases.at(model.attention(run.params, far), far.optimal)
    yield at_least(
        "n = 1, unequal scores, start at a local optimum: attention on opt",
        best,
        0.5,
        role="outside",
    )
