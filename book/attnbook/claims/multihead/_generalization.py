"""Generalization by stability: Lemmas 3 and 11, Theorems 2 and 4, Corollary 4.

Samples are drawn from a few equally likely atoms, so that expectations over training sets are
sums over all of them, and test losses are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnlab import models, optim, problems
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


def training_sets(atoms: SequenceProblem, n: int) -> SequenceProblem:
    """All ordered samples of size n from each trial's atoms: trials ``(trials * m ** n,)``."""
    picks = np.array(list(product(range(atoms.n), repeat=n)))
    X, y = atoms.X[:, picks], atoms.y[:, picks]
    return SequenceProblem(X.reshape(-1, *X.shape[2:]), y.reshape(-1, n))


def _population(atoms: SequenceProblem, n: int) -> SequenceProblem:
    """The atoms of each training set's own trial."""
    sets = atoms.n**n
    return SequenceProblem(np.repeat(atoms.X, sets, axis=0), np.repeat(atoms.y, sets, axis=0))


def expected_gap(path: runs.Path, atoms: SequenceProblem, n: int) -> Array:
    """Expected gap of the last iterate, one number for each set of atoms."""
    last = path.at(-1)
    tested = path.model.value_and_grad(last, _population(atoms, n))[0]
    return np.asarray((tested - path.losses[-1]).reshape(len(atoms.X), -1).mean(axis=1))


def _left_out(problem: SequenceProblem, i: int) -> SequenceProblem:
    keep = np.arange(problem.n) != i
    return SequenceProblem(problem.X[:, keep], problem.y[:, keep])


def _without(path: runs.Path, eta: Array, start: Params | None = None) -> list[runs.Path]:
    r"""Runs on $\hat L^{\neg i}$, which keeps $1/n$: the step is $(n-1)/n$ of the whole one's."""
    n, K = path.problem.n, len(path.losses) - 1
    step = eta * (n - 1) / n
    return [
        runs.descend(path.model, _left_out(path.problem, i), step, K, start=start, heads=path.heads)
        for i in range(n)
    ]


def _stability(path: runs.Path, others: list[runs.Path]) -> Array:
    r"""$\frac1n\sum_i\|\theta_K-\theta_K^{\neg i}\|$, one number a trial."""
    return np.asarray(np.mean([path.distance(path.at(-1), o.at(-1)) for o in others], axis=0))


@measures("multihead.lemma-3", instances=20)
def lemma_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    shares, gaps = [], []
    for n, H, eta in ((2, 1, 0.5), (3, 2, 0.2)):
        atoms = instance.bounded(rng, trials=instances, n=3, T=2, d=2)
        drawn, model = training_sets(atoms, n), models.MultiHead(heads=H)
        one = instance.heads(rng, instance.bounded(rng, trials=1, n=1, T=2, d=2), H)
        start = {name: np.repeat(part, len(drawn.X), axis=0) for name, part in one.items()}
        sizes = np.full(len(drawn.X), eta)
        path = runs.descend(model, drawn, sizes, 20, start=start)
        others = _without(path, sizes, start)
        ends = [instance.longest_readout(run.at(-1)) for run in (path, *others)]
        G = theory.multihead.beta1(np.max(ends), T=2, R=1.0)
        mean = _stability(path, others).reshape(instances, -1).mean(axis=1)
        gap = expected_gap(path, atoms, n)
        gaps.append(gap)
        shares.append(gap / theory.multihead.on_average_bound(mean, G))
    yield at_most("expected gap, as a share of the bound", np.concatenate(shares), 1.0)
    yield at_least("largest expected gap", np.max(gaps), 0.0, strictly=True)


@measures("multihead.lemma-11", instances=8)
def lemma_11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    bound, moved, spread, short = theory.multihead, [], [], []
    for distance in (0.1, 0.4):
        drawn = runs.separable(rng, trials=instances, n=5)
        found = runs.premise(drawn, distance, purpose="generalization", most=1500)
        others = _without(found.path, found.eta)
        limit = bound.stability_bound(
            found.target_loss,
            found.distance,
            found.norm,
            eta=found.eta,
            K=found.K,
            n=drawn.n,
            T=drawn.T,
            R=1.0,
        )
        moved.append(_stability(found.path, others) / limit)
        # inside the proof: the growth factors of all steps together stay below e^(1/10)
        D = 3.0 * distance + found.norm
        rate = 4.0 * found.eta * bound.beta3(D, T=drawn.T, d=drawn.d, R=1.0) / 3.0
        sums = [(found.path.losses[1:] + 0.8 * other.losses[1:]).sum(axis=0) for other in others]
        spread.append(rate / found.H**0.5 * np.max(sums, axis=0))
        # the head count as the proof uses it: segments of eight distances are short
        beta3 = bound.beta3(D, T=drawn.T, d=drawn.d, R=1.0)
        short.append(bound.short_enough(8.0 * distance, beta3, H=found.H))
    yield at_most("share of the admissible length (the premise)", np.array(short), 1.0)
    yield at_most("mean distance, as a share of the bound", np.array(moved), 1.0)
    yield at_most("sum of the growth rates alpha_k", np.array(spread), 0.1)


def _expected(
    rng: np.random.Generator, instances: int, distance: float, n: int, *, heads: bool
) -> tuple[Array, Array, float]:
    """Expected gaps and bounds for all sets of atoms, and the share of H that is asked for."""
    sizes: dict[str, Any] = {"T": 2, "d": 1, "R": 1.0}
    bound = theory.multihead
    atoms = instance.bounded(rng, trials=instances, n=3, **sizes)  # labels of no pattern
    drawn = training_sets(atoms, n)
    H = runs.enough_heads(distance, purpose="generalization", **sizes)
    norm = distance / H**0.5
    rho = float(bound.rho(distance, norm, **sizes, H=H))
    # one target, one number of steps and one step size for all training sets
    start = instance.ONE.init(drawn)
    target = {"U": start["U"] + distance / 2**0.5, "W": start["W"]}
    loss, first = (instance.ONE.value_and_grad(point, drawn)[0] for point in (target, start))
    K = int(min(400, max(1.0, distance**2 * rho / loss.max())))
    eta = bound.step_size(distance, loss.max(), first.max(), rho, K)
    each = np.full(len(drawn.X), eta)
    if heads:
        path = runs.descend(models.MultiHead(heads=H), drawn, each, K)
    else:
        path = runs.descend(instance.ONE, drawn, each, K, heads=H)
    mean = loss.reshape(instances, -1).mean(axis=1)
    limit = bound.generalization_bound(mean, distance, eta=eta, K=K, n=n)
    least = bound.H_min(distance, norm, **sizes, purpose="generalization")
    return expected_gap(path, atoms, n), limit, float(least) / H


@measures("multihead.theorem-4", instances=8)
def theorem_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for distance, n, heads in ((0.1, 2, True), (0.1, 3, True), (0.1, 3, False), (0.4, 3, False)):
        gap, bound, asked = _expected(rng, instances, distance, n, heads=heads)
        lead = f"distance {distance}, n={n}, {'all heads there' if heads else 'one head for all'}"
        yield at_most(f"{lead}: H asked for, as a share of H (the premise)", asked, 1.0)
        yield at_most(f"{lead}: expected gap, as a share of the bound", gap / bound, 1.0)
    # the experiments' mixture: the target is the last iterate
    drawn = problems.tokenized_mixture(n=100, trials=min(instances, 8), rng=rng)
    model = models.MultiHead(heads=16)
    run = optim.train(model, drawn, optim.GD(1.0), 300, record=["loss"], every=300)
    bound = theory.multihead.generalization_bound(
        run.history["loss"][-1], instance.length(run.params), eta=1.0, K=300, n=100
    )
    gap = run.loss(drawn.fresh(500, rng=rng)) - run.history["loss"][-1]
    yield at_most("DM1, 16 heads: mean gap, as a share of the bound", (gap / bound).mean(), 1.0)


@measures("multihead.corollary-4", instances=8)
def corollary_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    atoms = runs.separable(rng, trials=instances, n=3)
    for n, K in ((2, 10), (3, 100)):
        drawn = training_sets(atoms, n)
        found = runs.realizable(drawn, K, purpose="generalization")
        eta = float(found.eta.min())  # one step for all training sets
        path = runs.descend(instance.ONE, drawn, np.full(len(drawn.X), eta), K, heads=found.H)
        bound = theory.multihead.realizable_gap_bound(found.reach.max(), eta=eta, n=n)
        yield at_most(f"n={n}: K L(theta_(1/K)) (the premise)", K * found.loss_at_reach, 1.0)
        yield at_most(
            f"n={n}: expected gap, as a share of the bound",
            expected_gap(path, atoms, n) / bound,
            1.0,
        )
