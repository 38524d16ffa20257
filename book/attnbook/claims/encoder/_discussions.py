"""What the paper says beside its theorems: where attention flattens, which start is faster."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._instances import frobenius, median_exponent
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array

WIDE = np.array([30, 300, 3000])


@measures("encoder.remark-1", instances=20)
def remark_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.gaussian_regression(
        n=20, T=6, d=30, unit_tokens=True, trials=instances, rng=rng
    )
    others = ~np.eye(6, dtype=bool)
    for init, scaling in (("ntk", "sqrt"), ("ntk", "linear"), ("lecun", "sqrt")):
        far, spread = [], []
        for width in WIDE:
            model = models.Encoder(int(width), init, scaling)
            params = model.init(drawn, rng)
            M = model.tau0 * params["W_Q"].mT @ params["W_K"]
            logits = (drawn.X @ M[:, None] @ drawn.X.mT)[..., others]
            expected = float(theory.encoder.logit_variance(model, 30, 1.0, 1.0))
            spread.append(float((logits**2).mean()) / expected)
            far.append(np.abs(model.attention(params, drawn) - 1.0 / 6.0).max(axis=(-3, -2, -1)))
        name = f"{init}, tau_0 {scaling}"
        yield at_most(
            f"relative error of the logits' variance, {name}", np.abs(np.array(spread) - 1.0), 0.2
        )
        if (init, scaling) == ("ntk", "linear"):
            what = f"exponent of the distance from the mean, {name}"
            yield at_most(what, median_exponent(WIDE, far, slope), -0.4)
        elif init == "ntk":
            yield at_least(f"distance from the mean at d_m = 3000, {name}", far[-1], 0.2)
        else:
            yield at_least(
                f"distance from the mean at d_m = 3000, {name}", far[-1], 0.2, role="outside"
            )


def first_layer(
    init: str, normals: dict[str, Array], width: int, d: int, tau0: float
) -> tuple[models.Encoder, dict[str, Array]]:
    """An encoder whose weights are the same normals under every initialisation."""
    size = theory.encoder.variances(init, width, d)
    model = models.Encoder(width, init, tau0)
    return model, {name: np.sqrt(size[name]) * array for name, array in normals.items()}


@measures("encoder.section-c5", instances=10)
def section_c5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, width, d = theory.encoder, 400, 20
    drawn = problems.gaussian_regression(n=10, T=4, d=d, trials=instances, rng=rng)
    shapes = models.Encoder(width).shapes(drawn)
    normals = {k: rng.standard_normal((instances, *tail)) for k, tail in shapes.items()}
    squared, shape, outputs = {}, {}, {}
    for init in ("lecun", "he", "ntk"):
        tau0 = 0.1 / e.variances(init, width, d)["W_Q"] / width  # the same logits for all three
        model, params = first_layer(init, normals, width, d, tau0)
        values = np.linalg.svd(model.features(params, drawn), compute_uv=False) ** 2
        squared[init], shape[init] = values[:, -1], values[:, -1] / values[:, 0]
        outputs[init] = model.forward(params, drawn)
    ratio = squared["lecun"] / squared["ntk"]
    yield equal("alpha^2 of LeCun over NTK, against d_m", ratio, float(width))
    yield equal("alpha^2 of LeCun over NTK", ratio, e.alpha_ratio(width, d), role="correction")
    yield equal(
        "alpha^2 of He over LeCun",
        squared["he"] / squared["lecun"],
        e.alpha_ratio(width, d, "he", "lecun"),
        role="correction",
    )
    for init in ("he", "ntk"):
        what = f"alpha^2 over the largest eigenvalue, {init} against LeCun"
        yield equal(what, shape[init], shape["lecun"], role="correction")
    what = "outputs of NTK over sqrt(d) against LeCun's"
    yield equal(what, outputs["ntk"] / np.sqrt(d), outputs["lecun"], size=1.0, role="correction")
    samples, falls = np.array([3, 30, 300]), []
    for n in samples:
        some = problems.gaussian_regression(n=int(n), T=2, d=d, unit_tokens=True, rng=rng)
        model = models.Encoder(1000)
        falls.append(float(e.alpha(model, model.init(some, rng), some)) ** 2)
    power = slope(samples, falls)
    yield at_least("exponent of alpha^2 in N, LeCun", power, 0.9)
    yield at_most("exponent of alpha^2 in N, LeCun: it falls", power, 0.0, role="correction")


@measures("encoder.section-c6", instances=3)
def section_c6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    squared: dict[str, list[float]] = {"sqrt": [], "linear": []}
    length: dict[str, list[float]] = {"sqrt": [], "linear": []}
    for _ in range(instances):  # one at a time: each has a million hidden values
        drawn = problems.gaussian_regression(n=100, T=10, d=100, rng=rng)
        for scaling in squared:
            model = models.Encoder(1000, "lecun", scaling)
            params = model.init(drawn, rng)
            squared[scaling].append(float(theory.encoder.alpha(model, params, drawn)) ** 2)
            weights = model.attention(params, drawn)[:, 0]
            length[scaling].append(float((weights**2).sum(axis=-1).mean()))
    yield at_least("alpha^2 for d_m^-1/2 against 1/d_m", squared["sqrt"], squared["linear"])
    yield at_most("the same", squared["sqrt"], squared["linear"], role="correction")
    yield equal(
        "mean squared length of attention, tau_0 = 1/d_m",
        length["linear"],
        0.1,
        within=0.01,
        role="correction",
    )
    yield at_least(
        "mean squared length of attention, tau_0 = d_m^-1/2",
        length["sqrt"],
        0.15,
        role="correction",
    )
    sharp, flat = np.array([_race(_marked_token(rng), rng) for _ in range(3 * instances)]).T
    what = "median loss for d_m^-1/2 over 1/d_m, equal shares, one marked token"
    yield at_most(what, np.median(sharp / flat), 1.0, role="correction")


def _marked_token(rng: np.random.Generator) -> problems.SequenceProblem:
    """A label that is a linear function of one token, which carries a mark in its first feature."""
    n, T, d = 100, 5, 20
    X = rng.standard_normal((n, T, d))
    chosen = np.arange(n), rng.integers(T, size=n)
    X[:, :, 0] = 0.0
    X[*chosen, 0] = 5.0
    return problems.SequenceProblem(X, X[*chosen][:, 1:].sum(axis=-1) / np.sqrt(d - 1.0))


def _race(data: problems.SequenceProblem, rng: np.random.Generator) -> tuple[float, float]:
    """Loss of d_m^-1/2 and of 1/d_m after 300 steps, each at half of its own stable step."""
    start = models.Encoder(240).init(data, rng)
    ends = []
    for scaling in ("sqrt", "linear"):
        model = models.Encoder(240, scaling=scaling)
        top = float(np.linalg.eigvalsh(ntk.empirical(model, start, data))[-1])
        step = 0.5 * float(theory.encoder.stability_limit(top, data.n))
        run = optim.train(model, data, optim.GD(step), 300, params=start, every=300)
        ends.append(float(run.history["loss"][-1]))
    return ends[0], ends[1]


@measures("encoder.remark-2", instances=2)
def remark_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, N, T, d, width = theory.encoder, 100, 10, 100, 1000
    apart: dict[str, list[float]] = {"lecun": [], "he": []}
    tops: dict[str, list[list[float]]] = {"lecun": [], "he": []}
    for _ in range(instances):  # one at a time: each has a million hidden values
        drawn = problems.gaussian_regression(n=N, T=T, d=d, unit_tokens=True, rng=rng)
        phi = e.mean_tokens(drawn)
        relu, step = ntk.arc_cosine(phi)
        for init in tops:
            model = models.Encoder(width, init)
            K = ntk.empirical(model, model.init(drawn, rng), drawn)
            limit = e.mean_field_kernel(relu, step, phi @ phi.mT, init, width, d)
            apart[init].append(float(frobenius(K - limit) / frobenius(K)))
            tops[init].append([float(np.linalg.eigvalsh(M)[-1]) for M in (K, limit)])
    for init, expected in (("lecun", 6.0), ("he", 3.0)):
        top, field = np.array(tops[init]).T
        closed = e.top_eigenvalue(init, N, T, d, width)
        yield at_most(f"relative distance of the mean-field kernel, {init}", apart[init], 0.15)
        yield equal(f"lambda_max against the mean-field kernel's, {init}", top, field, within=0.1)
        yield equal(f"lambda_max against its closed form, {init}", top, closed, within=0.1)
        limits = e.stability_limit(top, N)
        yield equal(f"N / lambda_max at width 1000, {init}", limits, expected, within=0.1)
    yield from _both_sides_of_the_limit(rng)
    raw = problems.gaussian_regression(n=N, T=T, d=d, rng=rng)
    model = models.Encoder(width, loss="half_sum")
    start = model.init(raw, rng)
    top = float(np.linalg.eigvalsh(ntk.empirical(model, start, raw))[-1])
    times = 1.0 / float(e.stability_limit(top, N, "half_sum"))
    yield equal("step 1 in limits, raw tokens and half the sum", times, 1600.0, within=0.15)
    few = problems.gaussian_regression(n=5, T=T, d=d, unit_tokens=True, trials=400, rng=rng)
    for init in ("lecun", "he", "ntk"):
        model = models.Encoder(50, init, "linear")
        f = model.forward(model.init(few, rng), few)
        found = np.sqrt(np.mean(f**2))
        expected = e.output_deviation(init, T, d)
        yield equal(f"deviation of an output, {init}", found, expected, within=0.25)


def _both_sides_of_the_limit(rng: np.random.Generator) -> Iterator[Measurement]:
    """Labels off by a millionth of the top eigenvector: a step of r limits times (1 - 2r)^2."""
    drawn = problems.gaussian_regression(n=8, T=3, d=6, unit_tokens=True, rng=rng)
    model = models.Encoder(64)
    start = model.init(drawn, rng)
    values, vectors = np.linalg.eigh(ntk.empirical(model, start, drawn))
    off = model.forward(start, drawn) + 1e-6 * vectors[:, -1]
    close = problems.SequenceProblem(drawn.X, off)
    limit = float(theory.encoder.stability_limit(values[-1], drawn.n))
    for share, compared in ((0.98, at_most), (1.02, at_least)):
        run = optim.train(model, close, optim.GD(share * limit), steps=1, params=start)
        grown = run.history["loss"][1] / run.history["loss"][0]
        what = f"factor of the loss in a step of {share:g} limits"
        yield compared(what, grown, 1.0, strictly=True)
        yield equal(what, grown, (1.0 - 2.0 * share) ** 2, within=1e-3)
    # as many steps as even a share of 1e-9 of the top eigenvector needs to lead
    off = model.forward(start, drawn) + 1e-9 * rng.standard_normal(drawn.n)
    close, steps = problems.SequenceProblem(drawn.X, off), 300
    for share, compared in ((0.98, at_most), (1.02, at_least)):
        run = optim.train(model, close, optim.GD(share * limit), steps, params=start)
        grown = (run.history["loss"][-1] / run.history["loss"][0]) ** (1.0 / steps)
        what = f"factor of the loss a step, {steps} steps of {share:g} limits, labels off at random"
        yield compared(what, grown, 1.0, strictly=True)
