"""Global convergence of gradient descent: Theorems 4 and 5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, equal
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._landscape import equal_scores
from attnbook.claims.svm._long import arrives, descent
from attnlab import curvature, models, optim, problems, svm
from attnlab.checks import Array


def trapped() -> Iterator[Measurement]:
    """Gradient descent from two starts that never reach W_mm, although B.2 holds (T = 2)."""
    model = models.Attention(start="zero")
    fixed = problems.bad_direction()
    wrong = svm.attention_svm(fixed, [1, 1])
    trap = cases.detour()
    first = model.value_and_grad(model.init(trap), trap)[1]["W"]
    small = -first / float(svm.attention_svm(trap).norm)
    eta = float(theory.svm.descent_step(curvature.smoothness(model, fixed).W))
    yield equal("2 samples: step 1 / L_W", eta, 1.67e-3, within=2e-3, role="correction")
    for what, problem, start in (
        ("2 samples, from W_alpha / |W_alpha|", fixed, wrong.W / wrong.norm),
        ("3 samples, from 0", trap, small),
    ):
        yield at_least(f"{what}: B.2 holds", svm.assumption_b2(problem).holds, 1.0, role="premise")
        yield from goes_astray(what, problem, start)


def goes_astray(what: str, problem: problems.TokenProblem, start: Array) -> Iterator[Measurement]:
    """Descent ends on other tokens than the optimal ones, in their max-margin direction."""
    one = cases.copies(problem, 1)
    places = descent(one, start[None], (200, 400, 800, 1600))
    seen = models.Attention().attention({"W": places[-1].W}, one)
    best = cases.at(seen, one.optimal)
    yield at_least(f"{what}: least attention on an optimal token at the end", best, 0.5)
    near = svm.correlation(places[-1].W, svm.attention_svm(one).W)
    yield at_least(f"{what}: correlation with W_mm at the end", near, 0.99)
    there = svm.attention_svm(one, seen.argmax(axis=-1)).W
    yield from arrives(f"{what}, to W_alpha", places, there, "correction")


@measures("svm.theorem-4", instances=12)
def theorem_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from trapped()
    single = equal_scores(instances, 1, rng)
    start = rng.uniform(-1.0, 1.0, (*single.trials, single.d, single.d))
    places = descent(single, start)
    yield from arrives("n = 1", places, svm.attention_svm(single).W, "correction")
    yield from _opposing(rng, 5 * instances)
    yield from _two_ways()


def _two_ways() -> Iterator[Measurement]:
    """The bias paper's two samples, from short and long matrices of the wrong direction."""
    model, drawn = models.Attention(), problems.bad_direction()
    best, bad = svm.attention_svm(drawn), svm.attention_svm(drawn, [1, 1])
    F = theory.svm.features(drawn)[[0, 1], 1 - drawn.optimal].reshape(2, -1)
    odds = model.attention({"W": bad.W}, drawn).prod(axis=-1)
    weights = cases.steepness(model, drawn, bad.W) * theory.svm.score_gaps(drawn)[0] * odds
    what = "threshold of w_2 / w_1 for running away, its value at W_alpha"
    low = theory.svm.opposing_threshold(F @ F.T)
    yield at_least(what, low, weights[1] / weights[0], role="correction")
    along = bad.W / bad.norm
    both, start = cases.copies(drawn, 2), {"W": np.stack([along, 2.0 * along])}
    rule = optim.GD(float(theory.svm.descent_step(curvature.smoothness(model, drawn).W)))
    run = optim.train(model, both, rule, 5000, params=start, record="norm", every=2500)
    near, size = svm.correlation(run.params["W"], bad.W), run.history["norm_W"]
    what = "correlation with W_alpha after descent from |W(0)| = 1 and 2"
    yield at_least(what, near, 0.9999, role="correction")
    grown = size[1:] / size[:-1]
    yield at_least("growth of |W| there", grown, 1.0, strictly=True, role="correction")
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
        models.Attention(), drawn, optim.NormalizedGD(0.2), 3000, params={"W": start}, every=3000
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
        places = descent(near, start)
        what = f"n = 1, scores within {2 * size:g}"
        yield from arrives(what, places, svm.attention_svm(near).W, "correction")
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
