"""Lemmas of global convergence: 7, 8, 9, 10, and Claim 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm._landscape import all_support, equal_scores
from attnlab import curvature, models, optim, problems, svm
from attnlab.checks import Array


@measures("svm.lemma-7", instances=2000)
def lemma_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, d = 5, 4
    X, V, W = (rng.standard_normal((instances, *s)) for s in ((T, d), (d, d), (d, d)))
    z, v = rng.standard_normal((instances, d)), rng.standard_normal((instances, d))
    X[: instances // 2] = X[: instances // 2, :1] * np.where(np.arange(T) == 0, 1.0, -1.0)[:, None]
    a, logits, g = (
        (X @ u[..., None])[..., 0]
        for u in ((V @ z[..., None])[..., 0], (W @ z[..., None])[..., 0], v)
    )
    s = np.exp(logits - logits.max(axis=-1, keepdims=True))
    s /= s.sum(axis=-1, keepdims=True)
    direct = (a * s * g).sum(axis=-1) - (a * s).sum(axis=-1) * (s * g).sum(axis=-1)
    size = np.abs(a).max(axis=-1) * np.abs(g).max(axis=-1)
    difference = theory.svm.softmax_covariance(a, s, g) - theory.svm.lemma_7_sum(a, s, g)
    yield equal(
        "covariance form, a'diag(s)g - a'ss'g",
        theory.svm.softmax_covariance(a, s, g),
        direct,
        size=size,
    )
    bound = theory.svm.lemma_7_bound(a, s, g)
    yield at_most("difference, 2 Gamma A (1 - s_1)^2", np.abs(difference), bound + 1e-12 * size)
    yield equal(
        "difference, -(a_1 - mean a)(g_1 - mean g)",
        difference,
        theory.svm.lemma_7_residual(a, s, g),
        size=size,
        role="correction",
    )
    worst = int(np.argmax(np.abs(difference) - bound))
    yield at_least(
        "largest difference over its bound, 1",
        np.abs(difference[worst]) / bound[worst],
        1 - 1e-6,
        role="correction",
    )


@measures("svm.lemma-8", instances=60)
def lemma_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention()
    drawn = problems.sphere(n=3, T=4, d=5, trials=instances, rng=rng)
    L = curvature.smoothness(model, drawn).W
    W = 10.0 ** rng.uniform(-1, 1, (instances, 1, 1)) * rng.standard_normal((instances, 5, 5))
    for name, printed in (("2 / L_W", True), ("1 / L_W", False)):
        eta = theory.svm.descent_step(L, printed=printed)
        fall, gain = cases.gain(model, drawn, W, eta)
        seen = gain > 1e-12  # of saturated attention the loss falls by less than float64 can tell
        what = f"fall of the loss at eta = {name}, eta/2 |grad|^2"
        yield at_least(what, fall[seen], gain[seen])
    near = {"W": rng.standard_normal((instances, 5, 5))}
    low, high = curvature.extremes(model, near, drawn)
    yield at_most(
        "largest curvature found, L_W / 2", np.maximum(np.abs(low), np.abs(high)), L / 2.0
    )
    run = optim.train(
        model,
        drawn,
        optim.GD(float(theory.svm.descent_step(L).min())),
        2000,
        params=near,
        record=("grad_norm", "loss"),
    )
    total = (run.history["grad_norm"][:-1] ** 2).sum(axis=0)
    start = run.history["loss"][0] - model.floor(drawn)
    yield at_most("sum of squared gradients, 2 (L(0) - L_*) / eta", total, 2.0 * start * L.max())
    # two opposite tokens: the loss of one number, whose sharpest curvature is known
    line = cases.problem([[[1.0], [-1.0]]], [[1.0]], [1.0], [1.0])
    sums = models.Attention(loss="correlation")
    at = np.linspace(-2.0, 2.0, 401)
    many = cases.copies(line, 401)
    bend = np.abs(curvature.extremes(sums, {"W": at[:, None, None]}, many)[1])
    sharp = float(bend.max())
    for name, printed, role in (("2 / L", True, "step"), ("1 / L", False, "correction")):
        eta = np.full(401, float(theory.svm.descent_step(sharp, printed=printed)))
        fall, gain = cases.gain(sums, many, at[:, None, None], eta)
        yield at_least(
            f"the same at eta = {name}, L the sharp constant", fall, gain - 1e-12, role=role
        )
        least = theory.svm.guaranteed_decrease(eta, sharp) / eta
        yield at_least(f"guaranteed share of eta |grad|^2 at {name}, 1/2", least, 0.5, role=role)


@measures("svm.lemma-9")
def lemma_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.Attention()
    for name, inside in (
        ("B.1", all_support(instances, rng)),
        ("B.2", equal_scores(instances, 2, rng)),
    ):
        margin = svm.attention_svm(inside)
        far = cases.push(model, inside, 60.0 * margin.W, margin.W)
        yield at_least(f"{name}: what a fixed c could be, from W = 60 W_mm", far, 1e-12)
        size = 10.0 ** rng.uniform(-1.0, 0.9, inside.trials)
        anywhere = cases.scaled(size, rng.standard_normal(margin.W.shape))
        spots = (anywhere, *(R * margin.W for R in (0.0, 1.0, 30.0)))
        found = np.array([cases.push(model, inside, W, margin.W) for W in spots])
        bound = np.array([_bound_of(model, inside, W, margin.W) for W in spots])
        what = f"{name}: -<grad, W_mm>, the bound c(W), random and aligned W"
        near = (1.0 - 1e-6) * bound  # margins of 1 are 1 to the solver's accuracy
        yield at_least(what, found, near, role="correction")
        yield at_least(f"{name}: c(W), 0", bound, 0.0, strictly=True, role="correction")
        seen = model.attention({"W": anywhere}, inside)
        # equation 25, with values and scores in each other's place under B.1
        a = (inside.X @ (inside.z @ margin.W.swapaxes(-1, -2))[..., None])[..., 0]
        pair = (a, inside.scores) if name == "B.2" else (inside.scores, a)
        form = theory.svm.equal_score_form(pair[0], seen, pair[1], inside.optimal)
        size = np.abs(a).max(axis=-1) * np.abs(inside.scores).max(axis=-1)
        yield equal(
            f"{name}: a'S'g, its closed form (25)",
            theory.svm.softmax_covariance(a, seen, inside.scores),
            form,
            size=size,
            role="correction",
        )
    drawn = cases.separated(2, 4, 3, max(instances, 100), rng)
    W = 3.0 * rng.standard_normal((*drawn.trials, 3, 3))
    near = cases.cosine(model, drawn, W, svm.attention_svm(drawn).W)
    yield at_least("cosine of -gradient and W_mm without B", near, 0.0, role="outside")


def _bound_of(
    model: models.Attention, problem: problems.TokenProblem, W: Array, W_mm: Array
) -> Array:
    """Lemma 9's bound with what the model sees at W."""
    seen, slopes = model.attention({"W": W}, problem), cases.steepness(model, problem, W)
    return theory.svm.lemma_9_bound(problem, W_mm, seen, slopes)


def more_than(
    model: models.Attention, problem: problems.TokenProblem, W: Array, W_mm: Array
) -> Array:
    r"""The gradient along $\bar W$ over that along $\bar W^{mm}$, less 1."""
    G, _ = cases.downhill(model, problem, W)
    own, other = (cases.inner(G, cases.unit(V)) for V in (W, W_mm))
    return np.asarray(own / other - 1.0)


@measures("svm.lemma-10", instances=40)
def lemma_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    sums = models.Attention(loss="correlation")
    for cosine, ratio in ((-0.95, 5.110), (-0.8, 2.455)):
        drawn = cases.opposed(cosine)
        wrong, right = svm.attention_svm(drawn, [0, 1]).W, svm.attention_svm(drawn).W
        found = [
            more_than(sums, drawn, R * cases.unit(wrong), right) + 1.0
            for R in (10.0, 30.0, 100.0, 300.0)
        ]
        yield at_most(
            f"two samples, cosine {cosine}: largest ratio of the two, 1 + pi = 1.5", found, 1.5
        )
        yield equal(
            f"its value at every radius from 10 to 300, {ratio}",
            found,
            ratio,
            within=1e-3,
            role="correction",
        )
    single = cases.exactly_level(instances, rng)
    yield at_least("n = 1: B.2 holds", svm.assumption_b2(single).holds, 1.0, role="premise")
    W_mm = svm.attention_svm(single).W
    model = models.Attention()
    for pi in (1.0, 0.3):
        R = theory.svm.lemma_10_radius(single, W_mm, pi)
        found = []
        for opening in (1e-4, 1e-2, 0.1, 0.5, 1.0, 1.5, 2.0):
            W = cases.scaled(R, cases.edge(W_mm, np.full(single.trials, opening), rng))
            found.append(1.0 + more_than(model, single, W, W_mm))
        what = f"n = 1, 1 - correlation from 1e-4 to 2: ratio, 1 + pi = {1 + pi}"
        yield at_most(what, found, 1.0 + pi, role="correction")


@measures("svm.claim-1", instances=10)
def claim_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    fixed, model = problems.bad_direction(), models.Attention()
    margin, wrong = svm.attention_svm(fixed), svm.attention_svm(fixed, [1, 1])
    mu = theory.svm.local_constants(fixed, margin.W).mu
    near = {"near": lambda params, _: svm.correlation(params["W"], margin.W)}
    for rule in (
        optim.GD(1.0 / float(curvature.smoothness(model, fixed).W)),
        optim.NormalizedGD(0.05),
    ):
        run = optim.train(
            model, fixed, rule, 4000, params={"W": wrong.W / wrong.norm}, record=[near], every=20
        )
        yield at_least(
            f"two samples, {type(rule).__name__}: best correlation on the way, 1 - mu",
            run.history["near"].max(),
            1.0 - mu,
        )
    yield from _one_sample(rng, instances)


def _one_sample(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Nearly equal scores: how the run parts from the surrogate's, and where it ends."""
    model, level = models.Attention(), equal_scores(2 * instances, 1, rng)
    wide = theory.svm.local_constants(level, svm.attention_svm(level).W).mu > 1e-6
    level = cases.some(level, wide, instances)
    shift = cases.uneven(level, rng)
    start = {"W": rng.uniform(-1.0, 1.0, (*level.trials, level.d, level.d))}
    rule = optim.GD(float(theory.svm.descent_step(curvature.smoothness(model, level).W).min()))
    twin = optim.train(model, level, rule, 2000, params=start, every=2000).params["W"]
    deltas, gone = (1e-1, 1e-2, 1e-3), []
    for delta in deltas:
        tilted = problems.TokenProblem(level.X + delta * shift, level.z, level.y, level.v)
        own = optim.train(model, tilted, rule, 2000, params=start, every=2000).params["W"]
        gone.append(cases.norm(own - twin).max())
    what = "n = 1: power of delta by which the two runs part"
    yield at_least(what, slope(deltas, gone), 0.8, role="correction")
    margin = svm.attention_svm(tilted)
    constants = theory.svm.local_constants(tilted, margin.W)
    big = cases.in_units(tilted, constants.radius)
    there = {"W": start["W"] / constants.radius[:, None, None]}
    run = optim.train(model, big, optim.NormalizedGD(0.02), 10_000, params=there, every=10_000)
    near = 1.0 - cases.misfit(run.params["W"], margin.W)
    what = "n = 1: correlation with W_mm at the end, 1 - mu"
    yield at_least(what, near, 1.0 - constants.mu, role="correction")
    size = cases.norm(run.params["W"])
    yield at_least("n = 1: norm there, in units of R", size, 1.0, role="correction")
