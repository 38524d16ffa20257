"""Slips of the first phase and of what is said of its heads: Lemmas 2, 12, 13, 16 and 17."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal, slope
from attnbook.claims.multihead import _instances as made
from attnbook.claims.multihead._errata import _parts as parts
from attnlab import models, problems
from attnlab.checks import Array


@measures("multihead.erratum-15", instances=20)
def erratum_15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.MultiHead(heads=2)
    for sigma, within in ((0.0, 1e-9), (0.1, 0.02)):
        many = problems.tokenized_mixture(n=2000, zeta=0.3, sigma=sigma, trials=instances, rng=rng)
        rows = theory.multihead.first_phase(model, many, rng=rng)["U"]
        u = parts.targets(many).u
        share = np.abs(rows @ u) / (u @ u)
        what = f"coefficient of u_star, zeta=0.3, sigma={sigma:g}"
        yield equal(what, share, 0.3 / 2.0, within=within)
        yield equal(what, share, 0.3 / 4.0, within=within, role="correction")
    sizes = [100, 1000, 10_000]
    left: dict[float, list[float]] = {2.0: [], 4.0: []}
    for n in sizes:
        few = problems.tokenized_mixture(n=n, T=4, zeta=0.5, trials=10, rng=rng)
        row = parts.first_phase(few, np.ones(1))["U"][:, 0]
        for part, found in left.items():
            rest = row - 0.5 / part * parts.targets(few).u
            found.append(float(np.sqrt((rest**2).mean())))
    yield at_most("growth of p with n_1", slope(sizes, left[2.0]), -0.25)
    yield at_most("growth of p with n_1", slope(sizes, left[4.0]), -0.25, role="correction")


@measures("multihead.erratum-16", instances=200)
def erratum_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    seq, zeta = parts.mixture(rng, n=instances), 0.1
    oracle = theory.multihead.U_star(made.patterns(seq))
    whole, flat = theory.multihead.gamma_star(zeta=zeta), theory.multihead.gamma_lin(zeta=zeta)

    def margin(draws: Array, share: float) -> Array:
        """Mean over the draws of sign(alpha) times the margin of a head alpha * share * U_star."""
        heads = draws[:, None, None] * share * oracle
        return np.asarray((parts.weights_margin(seq, heads) * np.sign(draws)).mean(axis=-1))

    signs, even = np.array([1.0, -1.0]), np.linspace(-0.95, 0.95, 20)
    yield equal("mean |alpha| of signs", np.abs(signs).mean(), 0.5)
    yield equal("weights' part, zeta/2, signs", margin(signs, zeta / 2.0), whole - flat)
    for draws, part in ((signs, 4.0), (even, 2.0)):
        what = f"weights' part, zeta/{part:g}, {len(draws)} values of alpha"
        yield equal(what, margin(draws, zeta / part), whole - flat, role="correction")
    yield equal("gamma_star at S=2", whole, 0.594183, within=1e-6, role="correction")


@measures("multihead.erratum-17", instances=20)
def erratum_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    seq = parts.mixture(rng, n=30, T=10, Z=0.2, trials=instances)
    model = models.MultiHead(heads=3)
    grads = model.value_and_grad(model.init(seq), seq)[1]["U"]
    slopes, _ = parts.head_gradients(seq, np.zeros((3, 10, 4)))
    mean = (seq.y[..., None, None, None] * slopes).mean(axis=1) / (2.0 * np.sqrt(3.0))
    ratio = (grads * mean).sum(axis=(-1, -2)) / (mean * mean).sum(axis=(-1, -2))
    yield equal("gradient / printed gradient", ratio, 1.0)
    yield equal("gradient / printed gradient", ratio, -1.0, role="correction")
    U = parts.first_phase(seq, np.ones(1))["U"][:, 0]
    yield at_most("spread over the columns", np.ptp(U, axis=-1), 1e-12)
    yield at_most("spread over the rows", np.ptp(U, axis=-2), 1e-12, role="correction")
    tokens = 0.5 * (seq.y[..., None] * seq.X.mean(axis=-2)).mean(axis=-2)[:, None, :]
    far = np.linalg.norm(U - tokens, axis=-1)
    yield at_most("rows from the mean labelled token / 2", far, 1e-12, role="correction")


@measures("multihead.erratum-19", instances=40)
def erratum_19(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    levels = np.linspace(0.02, 0.98, 10 * instances)
    patterns = [np.array(list(product([-1.0, 1.0], repeat=H))) for H in range(1, 9)]
    for two, role in ((False, "statement"), (True, "correction")):
        shares = []
        for signs in patterns:
            level = theory.multihead.hoeffding(1.0, levels, H=signs.shape[1], two_sided=two)
            beyond = np.abs(signs.mean(axis=1))[:, None] > level * (1.0 + 1e-12)
            shares.append(beyond.mean(axis=0))
        yield at_most("share of sign patterns beyond Fact 2's level", shares, levels, role=role)

    T, S, P = 20, 1.0, 20.0
    one = parts.mixture(rng, n=1, T=T, M=1, S=S, zeta=1.0 / T)
    found = parts.targets(one)
    row = found.u / (4.0 * T) + P * found.nu[0] / S

    def output(signs: Array) -> Array:
        """Size of the output for each pattern of signs of the heads."""
        model = models.MultiHead(heads=signs.shape[1])
        zero = model.init(one)
        starts = [{"U": zero["U"] + a[:, None, None] * row, "W": zero["W"]} for a in signs]
        return np.abs([model.forward(start, one) for start in starts])

    outputs = [output(signs) for signs in patterns[:4]]
    for printed, role in ((True, "statement"), (False, "correction")):
        level = theory.multihead.B_Phi(T, S, P, R=S, delta=levels, printed=printed)
        shares = [(found > level).mean(axis=0) for found in outputs]
        yield at_most("share of starts beyond P2's level", shares, levels, role=role)
