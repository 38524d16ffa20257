"""Theorem 3 and Lemma 20: the Hessian shrinks with the width, for one of the initialisations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, exponent, slope
from attnbook.claims.encoder._instances import (
    distance,
    frobenius,
    median_exponent,
    moves,
    relabelled,
)
from attnlab import curvature, models, optim, problems
from attnlab.checks import Array
from attnlab.models import Encoder, Params

WIDTHS = np.array([10, 30, 100, 300, 1000])
SMALL = np.array([3, 10, 30, 100, 300])
TRAINED = np.array([60, 190, 600, 1900, 6000])
BYTES = 4e8
RADIUS = 1.0
Pair = tuple[str, str]


def nearby(params: Params, rng: np.random.Generator) -> Params:
    """A point at distance ``RADIUS``, in a random direction."""
    noise = {name: rng.standard_normal(array.shape) for name, array in params.items()}
    zero = {name: np.zeros_like(array) for name, array in noise.items()}
    size = distance(zero, noise)
    return {
        name: array + RADIUS * noise[name] / size.reshape(-1, *(1,) * (array.ndim - 1))
        for name, array in params.items()
    }


def hessians(
    model: Encoder, params: Params, problem: problems.SequenceProblem
) -> Iterator[curvature.Hessian]:
    """Hessians of the output, some trials at a time."""
    p = sum(array[0].size for array in params.values())
    many = max(1, int(BYTES / (8.0 * p * p)))
    for k in range(0, len(problem.X), many):
        part = slice(k, k + many)
        some = problems.SequenceProblem(problem.X[part], problem.y[part])
        at = {name: array[part] for name, array in params.items()}
        yield curvature.hessian(model, at, some, of="output")


def spectral(model: Encoder, params: Params, problem: problems.SequenceProblem) -> Array:
    """Spectral norm of the Hessian of the output, for each trial."""
    ends = [found.extremes for found in hessians(model, params, problem)]
    return np.concatenate([np.maximum(-low, high)[:, 0] for low, high in ends])


def block_norms(
    model: Encoder, params: Params, problem: problems.SequenceProblem, pairs: Iterable[Pair]
) -> dict[Pair, Array]:
    """Spectral norms of blocks of that Hessian; all but two have rank one for d = 1."""
    norms: dict[Pair, list[Array]] = {pair: [] for pair in pairs}
    for found in hessians(model, params, problem):
        for pair, values in norms.items():
            block = found.blocks[pair][:, 0]
            full = pair in (("W_Q", "W_K"), ("W_V", "w_O"))
            norm = np.linalg.norm(block, ord=2, axis=(-2, -1)) if full else frobenius(block)
            values.append(norm)
    return {pair: np.concatenate(values) for pair, values in norms.items()}


def curved(rng: np.random.Generator, trials: int, init: str, d: int) -> float:
    """Exponent of the Hessian's norm in the width, at a point near the start."""
    drawn = problems.gaussian_regression(n=1, T=6, d=d, trials=trials, rng=rng)
    norms = []
    widths = WIDTHS if d == 1 else WIDTHS // 2
    for width in widths:
        model = models.Encoder(int(width), init, "linear", "sum")
        norms.append(spectral(model, nearby(model.init(drawn, rng), rng), drawn))
    # one narrow network in a thousand has all its neurons off, and no curvature
    bent = (np.array(norms) > 0.0).all(axis=0)
    return median_exponent(widths, [norm[bent] for norm in norms], slope)


def movement(rng: np.random.Generator, trials: int) -> tuple[list[float], list[float]]:
    """Medians of how far training goes, and of how far queries and keys alone go, by width.

    The labels are the outputs at the start, give or take 1: every width has the same to learn.
    """
    drawn = problems.gaussian_regression(n=4, T=4, d=6, unit_tokens=True, trials=trials, rng=rng)
    off, far, looks = rng.choice((-1.0, 1.0), size=drawn.y.shape), [], []
    for width in TRAINED:
        model = models.Encoder(int(width), "ntk", "linear", "sum", "half_sum")
        start = model.init(drawn, rng)
        data = relabelled(drawn, model.forward(start, drawn) + off)
        end = optim.train(model, data, optim.GD(0.02), 8, params=start, every=8).params
        by = moves(start, end)
        far.append(float(np.median(distance(start, end))))
        looks.append(float(np.median(np.hypot(by["W_Q"], by["W_K"]))))
    return far, looks


@measures("encoder.remark-3", instances=48)
def remark_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    far, looks = movement(rng, instances)
    what = "exponent of the distance that training goes"
    yield exponent(what, TRAINED, far, 0.0, within=0.05)
    what = "exponent of the distance that queries and keys go"
    yield exponent(what, TRAINED, looks, -0.5, within=0.08)


@measures("encoder.theorem-3", instances=16)
def theorem_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    power = curved(rng, instances, "lecun", 1)
    yield at_most("exponent of the norm, LeCun, d=1", power, -0.35, role="outside")
    for d in (1, 3):
        power = curved(rng, instances, "ntk", d)
        what = f"exponent of the norm, NTK, d={d}, -1/2"
        yield at_most(what, power, -0.44)
        # of narrow networks the blocks that fall like 1/d_m may be the largest
        yield at_least(f"{what}, from below", power, -0.8)
    e = theory.encoder
    drawn = problems.gaussian_regression(n=1, T=6, d=1, trials=2 * instances, rng=rng)
    found: dict[Pair, list[Array]] = {}
    for width in SMALL:
        model = models.Encoder(int(width), "ntk", "linear", "sum")
        params = nearby(model.init(drawn, rng), rng)
        bounds = e.hessian_block_bounds(drawn.X[:, 0, :, 0], e.bars(model, drawn, params))
        blocks = block_norms(model, params, drawn, bounds)
        for pair in bounds:
            block = blocks[pair]
            found.setdefault(pair, []).append(block)
            if width == SMALL[-1]:
                name = " ".join(pair)
                yield at_most(f"block {name} at d_m = 300", block, bounds[pair], role="correction")
    yield from _half_of_the_bounds(rng)
    for pair, values in found.items():
        power = slope(SMALL, [np.median(block) for block in values])
        name = f"exponent of the block {' '.join(pair)}"
        if "W_V" not in pair and "w_O" not in pair:
            yield at_most(name, power, -0.35, role="correction")
        if pair in (("W_Q", "W_V"), ("W_Q", "w_O"), ("W_V", "w_O")):
            yield at_most(f"{name}, claimed 1/d_m", power, -0.8, role="step")
            yield equal(name, power, -0.5, within=0.6, role="correction")
    wide = np.array([1e4, 1e6, 1e8])
    total = []
    for width in wide:
        bar, one = np.array(e.lemma_6_bound(int(width), RADIUS)), np.array(1.0)
        b = e.Bars(1, 6, one, 1.0 / width, width**-0.5, Q=bar, K=bar, V=bar, O=bar)
        total.append(float(sum(e.hessian_block_bounds(np.full(6, 6**-0.5), b).values())))
    yield at_most(
        "exponent of the blocks' bounds with Lemma 20", slope(wide, total), -0.45, role="correction"
    )


def _half_of_the_bounds(rng: np.random.Generator) -> Iterator[Measurement]:
    r"""Tokens (a, 0) and no queries, or no keys: attention is even, its variance $a^2/4$.

    The bounds have $|x|^2/2$ for it, and all else in them is attained: so five blocks are half of
    their bounds, for tokens of any length.
    """
    lengths, ones = 10.0 ** rng.uniform(-1.0, 1.0, 12), np.ones((12, 1))
    X = np.zeros((12, 1, 2, 1))
    X[:, 0, 0, 0] = lengths
    drawn = problems.SequenceProblem(X, ones)
    model = models.Encoder(4, "ntk", 0.3, "sum")
    for looking, pairs in (
        ("W_K", (("W_Q", "W_K"), ("W_Q", "W_V"), ("W_Q", "w_O"))),
        ("W_Q", (("W_K", "W_V"), ("W_K", "w_O"))),
    ):
        params = {name: np.zeros((12, 4, 1)) for name in ("W_Q", "W_K")}
        params[looking] = rng.standard_normal((12, 4, 1))
        params["W_V"] = rng.uniform(0.5, 2.0, (12, 4, 1))  # no neuron is off
        params["w_O"] = 1.7 * params["W_V"][..., 0]
        bounds = theory.encoder.hessian_block_bounds(
            X[:, 0, :, 0], theory.encoder.bars(model, drawn, params)
        )
        for pair, block in block_norms(model, params, drawn, pairs).items():
            what = f"block {' '.join(pair)} for tokens (a, 0), a from 0.1 to 10, over its bound"
            yield equal(what, block / bounds[pair], 0.5, role="correction", within=1e-6)


@measures("encoder.lemma-20", instances=200)
def lemma_20(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for width in (40, 400):
        for radius in (0.5, 5.0):
            w = rng.standard_normal((instances, width))
            worst = w * (1.0 + radius / np.linalg.norm(w, axis=-1, keepdims=True))
            bound = theory.encoder.lemma_6_bound(width, radius)
            length = np.linalg.norm(worst, axis=-1)
            yield at_most(f"length at distance R={radius:g}, d_m={width}", length, bound)
    loose = np.median(np.linalg.norm(w, axis=-1)) / np.sqrt(width)
    yield at_least("typical length over sqrt(d_m)", loose, 0.9)
    large = np.linalg.norm(4.0 * rng.standard_normal((instances, 400)), axis=-1)
    what = "length with entries of variance 16"
    yield at_most(what, large, theory.encoder.lemma_6_bound(400), role="outside")
