"""A good initialization, what it implies, and Corollaries 2 and 5."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnbook.claims.multihead._generalization import expected_gap, training_sets
from attnbook.claims.multihead._margin import tangent
from attnbook.claims.multihead._training import (
    corrected_order_is_right,
    printed_order_is_too_small,
)
from attnlab import curvature, models, ntk, problems
from attnlab.checks import Array
from attnlab.problems import SequenceProblem

ROOT2 = math.sqrt(2.0)


@measures("multihead.definition-1", instances=10)
def definition_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    size: dict[str, Any] = {"T": 10, "S": 2.0}
    drawn = instance.mixture(rng, n=20, Z_mu=0.02, Z_nu=0.02, trials=instances)
    model = models.MultiHead(heads=9)
    first = instance.mixture(rng, n=100_000, Z_mu=0.02, Z_nu=0.02)
    start = theory.multihead.first_phase(model, first, rng=rng)
    row = np.abs(start["U"][0, 0])  # the signs of u_star fall away; what is left is p
    p = float(np.linalg.norm(row - 0.1 / 4.0 * np.array([2.0, 2.0, 0.0, 0.0])))
    B2, R = theory.multihead.B2(**size, P=p), theory.multihead.token_bound(2.0, Z=0.03, Z_nu=0.02)
    yield at_most("P1 after the first phase: longest head", instance.longest_head(start), B2)
    B_Phi = theory.multihead.B_Phi(**size, P=p, R=R, delta=1e-8, n=20 * instances)
    yield at_most("P2: largest output", np.abs(model.forward(start, drawn)), B_Phi)
    gamma = theory.multihead.gamma_star(**size, P=p, Z=0.03, Z_mu=0.02, Z_nu=0.02, sharp=True)
    best = ROOT2 * ntk.margin(model, start, drawn).margin
    yield at_least("P3: largest tangent margin, norm sqrt 2", best, gamma)
    yield at_least("gamma", gamma, 0.0, strictly=True)
    # zero is good as well, with the linear margin: there W does not move at first
    zero = ntk.margin(model, model.init(drawn), drawn)
    lin = theory.multihead.gamma_lin(**size, Z_mu=0.02)
    yield at_least("P3 at zero: largest tangent margin, norm 1", zero.margin, lin)
    yield equal("weight of W in it", np.abs(zero.direction["W"]), 0.0, size=1.0)
    twice = SequenceProblem(np.repeat(drawn.X[0, :1], 2, axis=0), np.array([1.0, -1.0]))
    lost = ntk.margin(model, start, twice).margin
    yield at_least("P3 on contradictory labels", lost, 1e-3, role="outside")


@measures("multihead.remark-1", instances=20)
def remark_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = instance.mixture(rng, n=20, Z_mu=0.1, Z_nu=0.1, trials=instances)
    model = models.MultiHead(heads=4)
    for name, start in (
        ("zero", model.init(drawn)),
        ("Gaussian", models.MultiHead(heads=4, start="gaussian").init(drawn, rng)),
    ):
        found = ntk.margin(model, start, drawn).margin
        yield at_least(f"largest tangent margin at a {name} start", found, 0.0, strictly=True)
    # curvature against the size of a readout that is trained: linear, without limit
    sizes, bent = np.array([1e2, 1e3, 1e4]), []
    few = instance.bounded(rng, trials=instances, n=1, T=3, d=2)
    heads = instance.heads(rng, few, 1)
    for scale in sizes:
        low, high = curvature.hessian(
            instance.ONE, {**heads, "U": scale * heads["U"]}, few, of="output"
        ).extremes
        bent.append(np.maximum(np.abs(low), np.abs(high)).mean())
    power = slope(sizes, bent)
    yield equal("power of |U| in the largest curvature", power, 1.0, within=0.05)


def _one_token() -> tuple[SequenceProblem, Array]:
    """One sample of one token of length 1: the output is linear, its margin 1 for every H."""
    return SequenceProblem(np.ones((1, 1, 1)), np.ones(1)), np.array([1, 64])


def _lowest(reach: float) -> float:
    """The lowest loss at distance ``reach`` of zero on `_one_token`, along the best direction."""
    problem, _ = _one_token()
    best = ntk.margin(instance.ONE, instance.ONE.init(problem), problem).direction
    point = {name: reach * part for name, part in best.items()}
    return float(instance.ONE.value_and_grad(point, problem)[0])


def _realized(role: str = "statement") -> Iterator[Measurement]:
    """Is a loss of eps found within g_0(eps)? As printed, then with the square root of 2."""
    problem, counts = _one_token()
    margins = []
    for H in counts:
        model = models.MultiHead(heads=int(H))
        margins.append(ntk.margin(model, model.init(problem), problem).margin)
    yield equal("tangent margin at zero for 1 and 64 heads", margins, 1.0, role="correction")
    eps = math.exp(-5.0)
    for name, printed, which in (("printed", True, role), ("corrected", False, "correction")):
        reach = theory.multihead.g0(eps, B_Phi=1.0, gamma=ROOT2, printed=printed)
        words = f"lowest loss within the {name} g_0(eps), in units of eps"
        yield at_most(words, _lowest(float(reach)) / eps, 1.0, role=which)


@measures("multihead.proposition-7", instances=20)
def proposition_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _realized()
    yield from _on_the_mixture(rng, instances)
    yield from _remainder(rng, instances)
    # with attention: a random start, all heads there, gamma = 1.4, eps = 1/2
    drawn = runs.separable(rng, trials=min(max(1, instances // 10), 20))  # 160,000 heads each
    sizes: dict[str, Any] = {"B_Phi": 1.0, "gamma": 1.4}
    asked = theory.multihead.H_min_realizable(0.5, B2=1.0, T=2, d=1, R=1.0, **sizes)
    model = models.MultiHead(heads=math.ceil(asked), start="gaussian")
    start = model.init(drawn, rng)
    reach = theory.multihead.g0(0.5, **sizes)
    best = ntk.margin(model, start, drawn)
    target = {name: part + reach * best.direction[name] for name, part in start.items()}
    H = model.heads
    heads = instance.longest_head(start)
    outputs = np.abs(model.forward(start, drawn))
    yield at_most(f"P1 with {H} heads: longest head", heads, 1.0, role="correction")
    yield at_most("P2: largest output", outputs, 1.0, role="correction")
    yield at_least("P3: margin at norm sqrt 2", ROOT2 * best.margin, 1.4, role="correction")
    loss = model.value_and_grad(target, drawn)[0]
    yield at_most("loss at the target, eps = 1/2", loss, 0.5, role="correction")
    far = instance.length(instance.difference(target, start))
    yield at_most("distance, in units of g_0", far / reach, 1.0, role="correction")
    longest = instance.longest_head(target)
    yield at_most("longest head", longest, 1.0 + reach, role="correction")


def _on_the_mixture(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """How far the target of loss 1/100 lies from the first phase's end, a good start."""
    model = models.MultiHead(heads=8)
    first, fresh = (
        instance.mixture(rng, n=n, Z_mu=0.1, Z_nu=0.1, trials=instances) for n in (200, 20)
    )
    start = theory.multihead.first_phase(model, first, rng=rng)
    signs = np.sign(start["U"][..., 0, 0])
    aim = theory.multihead.theta_star(instance.patterns(fresh), signs)
    gamma = tangent(fresh, start, aim).min(axis=-1)
    yield at_least("tangent margin of the first phase", gamma, 0.1, role="correction")
    bound = np.maximum(1.0, np.abs(model.forward(start, fresh)).max(axis=-1))
    c = (2.0 * bound + np.log(100.0)) / gamma
    moved = instance.length({name: c[:, None, None, None] * part for name, part in aim.items()})
    for name, printed, role in (("printed", True, "statement"), ("corrected", False, "correction")):
        found = theory.multihead.g0(0.01, B_Phi=bound, gamma=gamma, printed=printed)
        yield equal(f"distance of the target against the {name} g_0", moved, found, role=role)


def _remainder(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    r"""The proof's second-order term: half of $\|\theta_\star\|^2=2$ is 1, and where 5 suffices."""
    one = problems.planted(n=1, T=3, d=3, trials=instances, rng=rng)
    model = models.MultiHead(heads=1, start="gaussian", scale=1.0)
    base = model.init(one, rng)
    found = curvature.hessian(model, base, one, of="output")
    values, vectors = np.linalg.eigh(found.matrix[:, 0])
    top = np.abs(values).argmax(axis=-1)[:, None]  # the direction that bends most
    norm = np.abs(np.take_along_axis(values, top, axis=-1)[:, 0])
    v = ROOT2 * np.take_along_axis(vectors, top[..., None], axis=-1)[..., 0]
    along = {name: v[:, found.order[name]].reshape(base[name].shape) for name in base}
    c = 1e-3
    ends = [{name: base[name] + s * c * along[name] for name in base} for s in (1.0, 0.0, -1.0)]
    plus, zero, minus = (model.forward(point, one)[:, 0] for point in ends)
    bend = np.abs(plus - 2.0 * zero + minus) / 2.0 / (norm * c**2)
    what = "second-order term / (Hessian norm * c^2)"
    yield at_most(what, bend, 0.5, role="step")
    yield equal(what, bend, 1.0, within=1e-3, role="correction")
    T, d, B2, bound, gamma = 1.0 + 10.0 ** rng.uniform(-3.0, 3.0, size=(5, 100 * instances))
    sizes: dict[str, Any] = {"T": T, "d": d, "R": 1.0 + float(rng.exponential())}
    given = {"B_Phi": bound, "gamma": gamma - 1.0}
    H = theory.multihead.H_min_realizable(0.01, B2=B2, **given, **sizes, printed=True)
    far = theory.multihead.g0(0.01, **given)
    left = 0.5 * theory.multihead.beta3(B2 + far, **sizes) / np.sqrt(H) * far**2
    yield at_most("remainder with the factor 5, bounded at once", left, bound, role="correction")


def _good_run(problem: SequenceProblem, K: int, *, printed: bool) -> tuple[int, float, float]:
    """What Corollary 5 asks of a run from zero (B_2 = B_Phi = 1): H, g_0(1/K), step."""
    bound, start = theory.multihead, instance.ONE.init(problem)
    gamma = ROOT2 * ntk.margin(instance.ONE, start, problem).margin.min()
    reach, first = (
        float(bound.g0(eps, B_Phi=1.0, gamma=gamma, printed=printed)) for eps in (1.0 / K, 1.0)
    )
    sizes: dict[str, Any] = {"T": problem.T, "d": problem.d, "R": 1.0}
    H = math.ceil(bound.H_min_good(reach, B2=1.0, **sizes))
    rho = bound.rho(reach, reach + 1.0, **sizes, H=H)
    eta = bound.realizable_step(first, math.log1p(math.e), rho)
    return H, reach, float(eta)


def _good(
    rng: np.random.Generator, instances: int, first: str = "statement"
) -> Iterator[Measurement]:
    for name, printed, role in (("printed", True, first), ("corrected", False, "correction")):
        K, drawn = 10_000 if printed else 40_000, runs.separable(rng, trials=3)
        H, reach, eta = _good_run(drawn, K, printed=printed)
        bound = theory.multihead.training_bound(1 / K, reach, eta=eta, K=K)
        share = runs.long_run(drawn, eta, K, heads=H).last / bound
        yield at_most(f"last loss at K={K}, share of the {name} bound", share, 1.0, role=role)
        atoms = runs.separable(rng, trials=max(1, instances // 2), n=3)
        drawn = training_sets(atoms, 3)
        H, reach, eta = _good_run(drawn, 100, printed=printed)
        path = runs.descend(instance.ONE, drawn, eta, 100, heads=H)
        bound = theory.multihead.realizable_gap_bound(reach, eta=eta, n=3)
        share = expected_gap(path, atoms, 3) / bound
        yield at_most(f"expected gap, share of the {name} bound", share, 1.0, role=role)
        speaks = 3.0 * bound / math.log(2.0)
        words = f"n from which the {name} bound on the gap is below log 2"
        yield equal(words, speaks, 1e7 if printed else 4e7, within=0.3, role="premise")


@measures("multihead.corollary-2", instances=10)
def corollary_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from printed_order_is_too_small(4.0, 4.0)
    yield from corrected_order_is_right(rng, 200 * instances)
    yield from _good(rng, instances, "correction")


@measures("multihead.corollary-5", instances=10)
def corollary_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _good(rng, instances)
    yield from _realized(role="step")
