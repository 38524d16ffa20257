"""Why one token wins, and in which norm: Assumption A, Lemmas 2 and 3, Theorem 2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, exponent, vanishes
from attnbook.claims.svm import _cases as cases
from attnlab import curvature, models, problems, svm
from attnlab.checks import Array
from attnlab.models import losses

RADII = (100.0, 310.0, 1000.0, 3100.0, 10_000.0)
LARGE = (1000.0, 5000.0, 20_000.0, 100_000.0)


@measures("svm.assumption-a", instances=2000)
def assumption_a(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    low, high, h = -2.0, 3.0, 1e-4
    u = np.sort(np.concatenate([[low, 0.0, high], rng.uniform(low, high, instances)]))
    for name, loss in losses().items():
        constants = curvature.loss_constants(name, low, high)
        fall = loss.value(u[:-1]) - loss.value(u[1:])
        yield at_least(
            f"{name}: fall of the loss, least slope times length",
            fall,
            constants.flattest * np.diff(u) * (1 - 1e-6),
        )
        slopes = (loss.value(u + h) - loss.value(u - h)) / (2.0 * h)
        yield at_most(
            f"{name}: size of the slope, M_1", np.abs(slopes), constants.steepest * (1.0 + 1e-6)
        )
        bend = (loss.value(u + h) - 2.0 * loss.value(u) + loss.value(u - h)) / h**2
        yield at_most(f"{name}: change of the slope, M_0", np.abs(bend), constants.lipschitz + 1e-5)
    narrow = curvature.loss_constants("exponential", 0.0, high)
    beyond = np.abs(losses()["exponential"].slope(u))
    yield at_most(
        "exponential: slope left of 0, M_1 of [0, 3]", beyond, narrow.steepest, role="outside"
    )


@measures("svm.lemma-2", instances=200)
def lemma_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for loss in losses():
        model = models.Attention(loss=loss)
        drawn = cases.separated(3, 4, 5, instances, rng)
        size = 10.0 ** rng.uniform(-2.0, 1.3, drawn.trials)
        W = cases.scaled(size, rng.standard_normal((*drawn.trials, 5, 5)))
        above = model.evaluate({"W": W}, drawn).log_excess
        assert above is not None
        yield at_least(f"{loss}: log of the loss above its floor, any W", above, -700.0)
        value = model.value_and_grad({"W": W}, drawn)[0]
        yield at_least(
            f"{loss}: loss, its floor", value, losses()[loss].value(drawn.best).mean(axis=-1)
        )
        margin = svm.attention_svm(drawn)
        B, _ = theory.svm.score_constants(drawn)
        lowest = drawn.scores.min(axis=(-1, -2))
        for R in (10.0, 100.0):
            log_excess = model.evaluate({"W": R * margin.W}, drawn).log_excess
            assert log_excess is not None
            found = np.exp(log_excess)
            steep = curvature.loss_constants(loss, float(lowest.min())).steepest
            bound = theory.svm.excess_above(R * margin.norm, 1.0 / margin.norm, 4, B, steep)
            yield at_most(f"{loss}: loss above the floor at {R:g} W_mm, M_1 T B e^-R", found, bound)
    same = cases.problem(np.ones((1, 2, 3)), np.ones((1, 3)), [1.0], np.ones(3))
    level = models.Attention().value_and_grad({"W": rng.standard_normal((3, 3))}, same)[0]
    floor = models.Attention().floor(same)
    yield at_least(
        "loss where all tokens are optimal, above its floor",
        level,
        floor,
        strictly=True,
        role="outside",
    )


def gone_from(path: svm.Path, direction: Array) -> Array:
    """Distances of the scaled path from a direction, in the trials certified at every radius."""
    gone = path.W / path.radii[:, None, None, None] - direction
    kept = (np.asarray(path.status) == "optimal").all(axis=0)
    return cases.norm(gone)[:, kept]


def distances(
    problem: problems.TokenProblem, factors: int | None, radii: tuple[float, ...] = RADII
) -> Array:
    """How far the scaled path is from the max-margin direction of its norm: radii, then trials."""
    margin = svm.attention_svm(problem, norm="fro" if factors is None else "nuc")
    path = svm.regularization_path(models.Attention(factors=factors), problem, radii)
    return gone_from(path, cases.scaled(1.0 / margin.norm, margin.W))


def path_limit(
    what: str, gone: Array, role: str = "statement", radii: tuple[float, ...] = RADII
) -> Iterator[Measurement]:
    """A distance that vanishes like 1/R over two decades, or faster."""
    first, last = radii[0], radii[-1]
    # how late a problem settles has no bound: of ten times as many the slowest is slower
    most = np.quantile(gone[-1], 0.9)
    yield at_most(f"distance from {what}, R = {last:,.0f}, nine in ten", most, 0.01, role=role)
    before = np.median(gone[0]) / 5.0 + 1e-5  # the nuclear solver's accuracy
    fifth = f"median distance from {what}, a fifth of that at R = {first:,.0f}"
    yield at_most(fifth, np.median(gone[-1]), before, role=role)
    seen = gone[:, gone[-1] > 1e-5]
    if seen.size:
        typical = np.exp(np.log(seen).mean(axis=-1))
        power = f"distance from {what}: its power of R"
        yield exponent(power, radii, typical, -1.0, within=0.15, relation="<=", role=role)


def of_size(
    n: int, T: int, d: int, factors: int | None, trials: int, rng: np.random.Generator
) -> Iterator[Measurement]:
    """The limit for larger problems, whose directions are longer: and so are the radii."""
    drawn = problems.sphere(n=n, T=T, d=d, min_gap=0.05, trials=trials, rng=rng)
    direction = "W_mm / |W_mm|" if factors is None else "the nuclear direction"
    gone = distances(drawn, factors, LARGE)
    yield from path_limit(f"{direction}, n={n} T={T} d={d}", gone, radii=LARGE)


@measures("svm.theorem-2", instances=6)
def theorem_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.2, trials=3 * instances + 4, rng=rng)
    drawn = cases.short(drawn, instances)
    yield from path_limit("W_mm / |W_mm|", distances(drawn, None))
    yield from path_limit("the nuclear direction, 4 columns", distances(drawn, 4))
    gone = distances(drawn, 2, RADII[-1:])  # n columns, which Lemma 1 says will do
    yield at_most("distance from it with 2 columns, R = 10,000", gone, 0.01)
    yield from of_size(10, 10, 10, None, 1, rng)
    nuclear = svm.attention_svm(drawn, norm="nuc")
    yield vanishes("duality gap of the nuclear problem with m = d", nuclear.gap, within=1e-8)
    margin = svm.attention_svm(drawn)
    away = cases.norm(cases.unit(nuclear.W) - cases.unit(margin.W)).max(keepdims=True)
    yield at_most("largest distance between the two directions", away, 0.02, role="outside")


def length_with_columns(problem: problems.TokenProblem, m: int) -> Array:
    """Nuclear norm of the path's W of m columns, scaled to margin 1: C_*."""
    W = svm.regularization_path(models.Attention(factors=m), problem, [1000.0]).W[0]
    least = np.maximum(cases.least_margin(problem, W), 1e-12)
    return np.asarray(np.linalg.norm(W, "nuc", axis=(-1, -2)) / least)


@measures("svm.lemma-3", instances=6)
def lemma_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=3, d=4, min_gap=0.2, trials=instances, rng=rng)
    convex = svm.attention_svm(drawn, norm="nuc")
    for m in (1, 2, 3):
        fits = convex.rank <= m
        if fits.any():
            yield equal(
                f"C_* with {m} columns, C_cvx of rank <= {m}",
                length_with_columns(cases.some(drawn, fits), m),
                convex.norm[fits],
                within=0.02,
            )
        # random problems of higher rank are rare, and may be longer by next to nothing
        full = cases.every_direction(m + 1)
        least = svm.attention_svm(full, norm="nuc")
        yield at_least(
            f"rank of the convex answer to every direction of R^{m + 1}",
            least.rank,
            m + 1.0,
            role="premise",
        )
        yield at_most(
            f"C_*/C_cvx of every direction of R^{m + 1}, {m} columns",
            length_with_columns(full, m) / least.norm,
            1.02,
            role="outside",
        )
    # W_11 >= 1 and W_22 >= 1: every [[1, c], [c, 1]] with |c| <= 1 is a convex solution
    twin = cases.corners()
    value = svm.attention_svm(twin, norm="nuc").norm
    yield equal("C_cvx of the problem with many solutions, 2", value, 2.0)
    one = svm.rank_limited_svm(twin, 1)
    yield equal("C_* of rank 1, C_cvx", one.norm, value, within=1e-6)
    yield equal("distance of its corner from 1", np.abs(one.W[0, 1]), 1.0, within=1e-5)
    c = rng.uniform(-1.0, 1.0, instances)
    solutions = np.array([[np.ones_like(c), c], [c, np.ones_like(c)]]).transpose(2, 0, 1)
    yield equal(
        "nuclear norms of other convex solutions, 2",
        np.linalg.norm(solutions, "nuc", axis=(1, 2)),
        2.0,
    )
