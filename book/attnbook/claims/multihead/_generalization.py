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
from attnbook.claims._measure import Measurement, at_least, at_most, equal, exponent
from attnbook.claims.multihead import _instances as instance
from attnbook.claims.multihead import _runs as runs
from attnlab import models
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
    for distance, R in ((0.1, 1.0), (0.4, 1.0), (0.2, instance.LONG)):
        drawn = runs.separable(rng, trials=instances, n=5, R=R)
        found = runs.premise(drawn, distance, purpose="generalization", most=1500, R=R)
        others = _without(found.path, found.eta)
        limit = bound.stability_bound(
            found.target_loss,
            found.distance,
            found.norm,
            eta=found.eta,
            K=found.K,
            n=drawn.n,
            T=drawn.T,
            R=R,
        )
        moved.append(_stability(found.path, others) / limit)
        # inside the proof: the growth factors of all steps together stay below e^(1/10)
        D = 3.0 * distance + found.norm
        rate = 4.0 * found.eta * bound.beta3(D, T=drawn.T, d=drawn.d, R=R) / 3.0
        sums = [(found.path.losses[1:] + 0.8 * other.losses[1:]).sum(axis=0) for other in others]
        spread.append(rate / found.H**0.5 * np.max(sums, axis=0))
        # the head count as the proof uses it: segments of eight distances are short
        beta3 = bound.beta3(D, T=drawn.T, d=drawn.d, R=R)
        short.append(bound.short_enough(8.0 * distance, beta3, H=found.H))
    yield at_most("share of the admissible length", np.array(short), 1.0, role="premise")
    yield at_most("mean distance, as a share of the bound", np.array(moved), 1.0)
    yield at_most("sum of the growth rates alpha_k", np.array(spread), 0.1)


SAMPLES = np.array([2, 6, 20, 60, 200])


def sentence(rng: np.random.Generator, T: int) -> Array:
    """One sentence: tokens of one feature, the first of length 1, none below 0.9."""
    return np.append(1.0, rng.uniform(0.9, 1.0, T - 1))[:, None]


def coin_gap(tokens: Array, n: int, eta: float, K: int, H: int, all_there: bool = False) -> float:
    """Expected gap from zero for one sentence whose label is a fair coin; one head stands for H.

    A training set is how often the coin fell on +1, so that the expectation over all $2^n$ of them
    has $n+1$ terms. The gradients of the samples vary as much as they can.
    """
    from scipy.special import gammaln

    heads = np.arange(n + 1)
    y = np.where(np.arange(n) < heads[:, None], 1.0, -1.0)
    drawn = SequenceProblem(np.broadcast_to(tokens, (n + 1, n, *tokens.shape)), y)
    log_share = gammaln(n + 1.0) - gammaln(heads + 1.0) - gammaln(n - heads + 1.0)
    share = np.exp(log_share - n * np.log(2.0))
    model, one_for = (models.MultiHead(heads=H), 1) if all_there else (instance.ONE, H)
    path = runs.descend(model, drawn, np.full(n + 1, eta), K, heads=one_for)
    both = SequenceProblem(
        np.broadcast_to(tokens, (n + 1, 2, *tokens.shape)), np.array([[1.0, -1.0]] * (n + 1))
    )
    return float(share @ (path.model.value_and_grad(path.at(-1), both)[0] - path.losses[-1]))


def _over_n(rng: np.random.Generator) -> Iterator[Measurement]:
    """The gap and the bound over two decades of n; the target only turns W, and keeps the loss.

    The distances are those at which two limits of the step meet: the bound is tightest there.
    """
    bound, loss = theory.multihead, np.log(2.0)
    for T, R, distance in ((1, 1.0, 0.1609), (2, 1.0, 0.0967), (2, instance.LONG, 0.0435)):
        sizes: dict[str, Any] = {"T": T, "d": 1, "R": R}
        H = max(10**8, runs.enough_heads(distance, purpose="generalization", **sizes))
        norm = distance / H**0.5
        asked = bound.H_min(distance, norm, **sizes, purpose="generalization") / H
        rho = bound.rho(distance, norm, **sizes, H=H)
        eta = float(bound.step_size(distance, loss, loss, rho, 1))
        tokens = R * sentence(rng, T)
        gaps = np.array([coin_gap(tokens, int(n), eta, 1, H) for n in SAMPLES])
        limits = bound.generalization_bound(loss, distance, eta=eta, K=1, n=SAMPLES)
        lead = f"{T} token{'s' if T > 1 else ''}, R = {R:g}, a fair coin's label, n from 2 to 200"
        yield at_most(f"{lead}: H asked for, as a share of H", asked, 1.0, role="premise")
        yield exponent(f"{lead}: expected gap, in n", SAMPLES, gaps, -1.0, within=0.02)
        yield exponent(f"{lead}: its bound, in n", SAMPLES, limits, -1.0, within=0.02)
        yield at_most(f"{lead}: expected gap, as a share of the bound", gaps / limits, 1.0)
        beta1 = bound.beta1(3.0 * distance + norm, T=T, R=R)
        words = f"{lead}: the same before (94) puts 1 for eta beta_1^2"
        yield at_most(words, gaps / limits / (eta * beta1**2), 1.0, role="correction")


@measures("multihead.theorem-4", instances=5)
def theorem_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _over_n(rng)
    yield runs.short_segments(rng, "generalization", 8.0)
    bound, distance, H, loss = theory.multihead, 0.0967, 2000, np.log(2.0)
    sizes: dict[str, Any] = {"T": 2, "d": 1, "R": 1.0}
    norm = distance / H**0.5
    asked = bound.H_min(distance, norm, **sizes, purpose="generalization") / H
    yield at_most(f"{H} heads, all there: H asked for, as a share of H", asked, 1.0, role="premise")
    eta = float(bound.step_size(distance, loss, loss, bound.rho(distance, norm, **sizes, H=H), 1))
    limit = bound.generalization_bound(loss, distance, eta=eta, K=1, n=3)
    gaps = [coin_gap(sentence(rng, 2), 3, eta, 1, H, True) for _ in range(instances)]
    what = f"{H} heads, all there, n=3: expected gap, as a share of the bound"
    yield at_most(what, gaps / limit, 1.0)


@measures("multihead.corollary-4", instances=8)
def corollary_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    atoms = runs.separable(rng, trials=instances, n=3)
    for n, K in ((2, 10), (3, 100)):
        drawn = training_sets(atoms, n)
        found = runs.realizable(drawn, K, purpose="generalization")
        eta = float(found.eta.min())  # one step for all training sets
        path = runs.descend(instance.ONE, drawn, eta, K, heads=found.H)
        bound = theory.multihead.realizable_gap_bound(found.reach.max(), eta=eta, n=n)
        if K == 100:
            speaks, words = n * bound / np.log(2.0), "n from which the bound is below log 2"
            yield equal(words, speaks, 1e7, within=0.3, role="premise")
        yield at_most(f"n={n}: K L(theta_(1/K))", K * found.loss_at_reach, 1.0, role="premise")
        yield at_most(
            f"n={n}: expected gap, as a share of the bound",
            expected_gap(path, atoms, n) / bound,
            1.0,
        )
