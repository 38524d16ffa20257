"""Slips of the training analysis: equation 67, Lemma 7, the order of rho, Proposition 7."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.multihead import _instances as made
from attnbook.claims.multihead._errata import _parts as parts
from attnlab import curvature, models, ntk, problems
from attnlab.checks import Array
from attnlab.models import Params


@measures("multihead.erratum-11", instances=20)
def erratum_11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    seq = problems.tokenized_mixture(n=6, T=4, zeta=0.25, trials=instances, rng=rng)
    model = models.MultiHead(heads=2, start="gaussian", scale=1.0)
    bent = model.init(seq, rng)
    apart = np.broadcast_to(4.0 * parts.targets(seq).u, bent["U"].shape)
    good = {"U": apart, "W": np.zeros_like(bent["W"])}
    points = parts.between(bent, good, 5)
    lowest = np.min([curvature.hessian(model, p, seq).extremes[0] for p in points], axis=0)
    losses = np.array([model.value_and_grad(p, seq)[0] for p in points])
    size = np.maximum(made.longest_head(bent), made.longest_head(good))
    R = parts.longest_token(seq)
    beta3 = theory.multihead.beta3(size, T=seq.T, d=seq.d, R=R) / np.sqrt(2.0)
    yield at_least("smallest eigenvalue on the segment", lowest, -beta3 * losses[-1])
    largest = losses.max(axis=0)
    yield at_least("the same, by the largest loss", lowest, -beta3 * largest, role="correction")


@measures("multihead.erratum-12", instances=4)
def erratum_12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    seq = problems.tokenized_mixture(n=50, trials=instances, rng=rng)
    model, R = models.MultiHead(heads=4), parts.longest_token(seq)

    def beta2(params: Params) -> Array:
        size = made.longest_head(params)
        return theory.multihead.beta2(size, T=seq.T, d=seq.d, R=R, H=4)

    iterates, _ = parts.path(model, seq, 1.0, 8)
    ends = np.array([beta2(point) for point in iterates])
    inside = [
        np.max([beta2(point) for point in parts.between(*step, 9)], axis=0)
        for step in pairwise(iterates)
    ]
    target = beta2({name: np.zeros_like(array) for name, array in iterates[0].items()})
    yield equal("largest beta_2 of a step, target 0", inside, np.maximum(target, ends[:-1]))
    both = np.maximum(ends[1:], ends[:-1])
    yield equal("by its two ends", inside, both, role="correction")

    rho = theory.multihead.rho(1.0, 1.0, T=seq.T, d=seq.d, R=float(R.max()), H=4)
    for pick, role in ((np.maximum, "statement"), (np.minimum, "correction")):
        eta = float(pick(1.0, 1.0 / rho))
        iterates, losses = parts.path(model, seq, eta, 8)
        slopes = [model.value_and_grad(point, seq)[1] for point in iterates[:-1]]
        bound = -0.5 * np.array([made.length(g) for g in slopes]) ** 2
        change = np.diff(losses, axis=0) / eta
        yield at_most(f"change of the loss / eta, eta={eta:.3g}", change, bound, role=role)


@measures("multihead.erratum-13", instances=2000)
def erratum_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    rho, order = theory.multihead.rho, theory.multihead.rho_order
    T, near = np.logspace(3, 6, 7), np.logspace(-6, -3, 7)
    ratio = rho(1.0, 1.0, T=T, d=4, R=1.0, H=1) / order(1.0, 1.0, T=T, d=4, R=1.0, printed=True)
    yield at_most("growth of rho / printed order with T", slope(T, ratio), 0.0)
    ratio = rho(near, 1.0, T=9, d=4, R=1.0, H=1) / order(near, 1.0, T=9, d=4, R=1.0, printed=True)
    yield at_most("the same as the distance shrinks", slope(1.0 / near, ratio), 0.0)
    for R in (1.0, 10.0, 1000.0):
        H, T, d, far, size = 10.0 ** rng.uniform(0.0, 5.0, size=(5, instances))
        ratio = rho(far, size, T=T, d=d, R=R, H=H) / order(far, size, T=T, d=d, R=R, H=H)
        yield at_most(f"rho / corrected order, R={R:g}", ratio, 450.0, role="correction")
        yield at_least(f"rho / corrected order, R={R:g}", ratio, 20.0, role="correction")


@measures("multihead.erratum-14", instances=20)
def erratum_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _distance_of_the_target(rng, instances)
    yield from _nothing_within_c(rng, instances)
    yield from _second_order_term(rng, instances)
    T, d, B2, bound, gamma = 1.0 + 10.0 ** rng.uniform(-3.0, 3.0, size=(5, 100 * instances))
    sizes = {"T": T, "d": d, "R": 1.0 + float(rng.exponential())}
    given = {"B_Phi": bound, "gamma": gamma - 1.0}
    heads = theory.multihead.H_min_realizable(0.01, B2=B2, **given, **sizes, printed=True)
    far = theory.multihead.g0(0.01, **given)
    left = 0.5 * theory.multihead.beta3(B2 + far, **sizes) / np.sqrt(heads) * far**2
    yield at_most("remainder with the factor 5, bounded at once", left, bound, role="correction")


def _distance_of_the_target(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """On DM1 after the first phase, a good initialization."""
    signs = np.repeat([1.0, -1.0], 4)
    model = models.MultiHead(heads=8)
    start = parts.first_phase(parts.mixture(rng, n=200, Z=0.1, trials=instances), signs)
    fresh = parts.mixture(rng, n=20, Z=0.1, trials=instances)
    aim = theory.multihead.theta_star(made.patterns(fresh), signs)
    slopes = ntk.jacobian(model, start, fresh)
    inner = sum((slopes[name] * aim[name]).sum(axis=(-1, -2, -3)) for name in aim)
    gamma = (fresh.y * np.asarray(inner)).min(axis=-1)
    yield at_least("tangent margin of the start", gamma, 0.1, role="correction")
    bound = np.maximum(1.0, np.abs(model.forward(start, fresh)).max(axis=-1))
    c = (2.0 * bound + np.log(100.0)) / gamma
    reached = {name: start[name] + c[:, None, None, None] * aim[name] for name in aim}
    moved = made.length(made.difference(reached, start))
    for printed, role in ((True, "statement"), (False, "correction")):
        found = theory.multihead.g0(0.01, B_Phi=bound, gamma=gamma, printed=printed)
        yield equal("distance of the target, eps = 0.01", moved, found, role=role)


def _nothing_within_c(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """From zero, one sample, 10^30 heads: the output is linear to 1e-9 in the whole ball."""
    heads, eps = 1e30, float(np.exp(-20.0))
    one = problems.tokenized_mixture(n=1, T=4, zeta=0.25, trials=instances, rng=rng)
    zero = parts.ONE.init(one)
    slope_U = ntk.jacobian(parts.ONE, zero, one)["U"][:, 0]
    norm = np.sqrt((slope_U**2).sum(axis=(-1, -2, -3)))
    given = {"B_Phi": 1.0, "gamma": np.sqrt(2.0) * norm}
    c = theory.multihead.g0(eps, **given, printed=True)
    R = parts.longest_token(one)
    bend = theory.multihead.beta3(c, T=one.T, d=one.d, R=R) / np.sqrt(heads)
    least = np.log1p(np.exp(-(c * norm + 0.5 * bend * c**2))) / eps
    yield at_most("least loss within g_0 of the start / eps", least, 1.0)
    # all heads are equal from zero, so one head of sqrt(H) times the size stands for all
    unit = one.y[..., None, None] * slope_U / norm[:, None, None, None]
    far = theory.multihead.g0(eps, **given)[:, None, None, None]
    loss = parts.ONE.value_and_grad({"U": far * unit, "W": zero["W"]}, one)[0]
    yield at_most("loss of the target / eps", loss / eps, 1.0, role="correction")


def _second_order_term(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Along the direction in which the output bends most."""
    one = problems.planted(n=1, T=3, d=3, trials=instances, rng=rng)
    model = models.MultiHead(heads=1, start="gaussian", scale=1.0)
    base = model.init(one, rng)
    found = curvature.hessian(model, base, one, of="output")
    values, vectors = np.linalg.eigh(found.matrix[:, 0])
    top = np.abs(values).argmax(axis=-1)[:, None]
    norm = np.abs(np.take_along_axis(values, top, axis=-1)[:, 0])
    v = np.sqrt(2.0) * np.take_along_axis(vectors, top[..., None], axis=-1)[..., 0]
    along = {name: v[:, found.order[name]].reshape(base[name].shape) for name in base}
    c = 1e-3
    ends = [{name: base[name] + s * c * along[name] for name in base} for s in (1.0, 0.0, -1.0)]
    plus, zero, minus = (model.forward(point, one)[:, 0] for point in ends)
    bend = np.abs(plus - 2.0 * zero + minus) / 2.0 / (norm * c**2)
    yield at_most("second-order term / (Hessian norm * c^2)", bend, 0.5)
    yield equal("second-order term", bend, 1.0, within=1e-3, role="correction")
