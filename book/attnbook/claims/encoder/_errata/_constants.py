"""Constants that are too small: Lemma 16 and the bracket of Lemma 14."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.encoder._errata._pieces import Pieces, flip, frobenius, pieces
from attnlab import problems
from attnlab.checks import Array
from attnlab.models import softmax

DELTA = 0.1


@measures("encoder.erratum-s17")
def s17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _one_long_token(rng, max(2 * instances, 200))
    N, T, d, eta, star = 3, 1, 4, 1.0, 0.5  # one token: the root alone is at work
    for delta in (1e-2, 1e-8):
        for printed, role in ((True, "step"), (False, "correction")):
            least = theory.encoder.lemma_16_width(N, T, d, 1.0, eta, star, delta, printed=printed)
            width = int(np.ceil(least))
            entry = theory.encoder.logit_entry_bound(1.0 / width, eta, width, delta / (N * d) ** 2)
            gap = theory.encoder.lemma_16_gap(N, T, d, 1.0, entry)
            name = "root of the" if printed else "plain"
            what = f"bound on the gap at the width with the {name} logarithm, delta = {delta:g}"
            yield at_most(what, gap, star / 4.0, role=role)


def _one_long_token(rng: np.random.Generator, trials: int) -> Iterator[Measurement]:
    """One sample, one feature, all of the length in the first token."""
    T, width, C_x = 1600, 50, 0.03**0.5
    x = np.zeros(T)
    x[0] = np.sqrt(T) * C_x
    queries, keys = rng.standard_normal((2, trials, width))
    tau0 = width**-0.5
    M = tau0 * (queries * keys).sum(axis=-1)
    phi = softmax(M[:, None] * x[0] * x) @ x
    found = np.abs(phi**2 - x.mean() ** 2)
    entry = theory.encoder.logit_entry_bound(tau0, 1.0, width, DELTA)
    yield at_least(
        "share of trials in which (67) holds",
        (np.abs(M) <= entry).mean(),
        1.0 - DELTA,
        role="correction",
    )
    for printed, role in ((True, "statement"), (False, "correction")):
        bound = theory.encoder.lemma_16_gap(1, T, 1, C_x, entry, printed=printed)
        name = "d_s" if printed else "d_s^2"
        what = f"share of trials above the bound with {name}, against delta"
        yield at_most(what, (found > bound).mean(), DELTA, role=role)


@measures("encoder.erratum-s18", instances=60)
def s18(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 40
    p = _one_leader(rng, max(instances, 10), T)
    gradient, bars = frobenius([p.gradient["W_Q"]]), p.bars()
    summed, apart = _terms(p)
    yield at_most("(21): |sum U h x'|, one long token", gradient, bars.Cx * summed)
    yield at_most("(21), norms added up, with C_x", gradient, bars.Cx * apart, role="step")
    bound = np.sqrt(T) * bars.Cx * apart
    yield at_most("(21) with sqrt(d_s) C_x", gradient, bound, role="correction")
    many = max(instances, 60)
    p = pieces(rng, many, n=1, T=2, size=3.0)  # rows of length C_x may cancel
    summed, _ = _terms(p)
    gradient = frobenius([p.gradient["W_Q"]])
    yield at_most("(21), rows of length C_x", gradient, 3.0 * summed, role="step")
    p = pieces(rng, many, n=1, T=2, size=100.0).scaled(W_Q=0.0002, W_K=2.0)
    q = p.moved({"W_Q": 1e-6 * rng.standard_normal(p.params["W_Q"].shape)})
    found, bars = _turn(p, q, "W_K"), p.bars(q)
    size, z = bars.Cx**2 * bars.T, theory.encoder.lemma_14_z(bars)
    yield at_most("(22): |U' - U| over the step", found, size + 3.0 * bars.K * z, role="step")
    bound = size * (1.0 + 3.0 * bars.K * z)
    yield at_most("(22) with its factor", found, bound, role="correction")
    p = pieces(rng, many, n=1, T=2).scaled(W_Q=3000.0, W_K=1e-6)
    q = p.moved({"W_K": 1e-8 * rng.standard_normal(p.params["W_K"].shape)})
    found, bars = _turn(p, q, "W_Q"), p.bars(q)
    size, z = bars.Cx**2 * bars.T, theory.encoder.lemma_14_z(bars)
    for norm, name, role in ((bars.K, "K", "step"), (bars.Q, "Q", "correction")):
        bound = size * (1.0 + 3.0 * norm * z)
        yield at_most(
            f"(24)'s |U' - U| over the step, with 3 lambda_{name} z", found, bound, role=role
        )


def _terms(p: Pieces) -> tuple[Array, Array]:
    """tau_0 tau_1 times |sum U_i h_i|, and times the sum of |U_i h_i|, of the one sample."""
    terms = p.turned(p.gate)[:, 0] @ flip(p.params["W_K"])
    scale = p.model.tau0 * p.model.tau1
    summed = np.linalg.norm(terms.sum(axis=1), axis=-1)
    return scale * summed, scale * np.linalg.norm(terms, axis=-1).sum(axis=-1)


def _one_leader(rng: np.random.Generator, instances: int, T: int) -> Pieces:
    """One long token among short ones, so long that it gives half of its attention to itself."""
    p = pieces(rng, instances, n=1, T=T)
    x = p.X[:, 0, 0]
    parts = (np.einsum("...ij,...j->...i", p.params[name], x) for name in ("W_Q", "W_K"))
    own = p.model.tau0 * np.prod(list(parts), axis=0).sum(axis=-1)
    sizes = np.full((instances, 1, T, 1), 1e-3)
    sizes[:, 0, 0, 0] = np.sqrt(np.log(T - 1) / np.abs(own))
    sign = np.sign(own)[:, None, None]
    long = problems.SequenceProblem(p.X * sizes, p.problem.y)
    return Pieces(p.model, {**p.params, "W_Q": sign * p.params["W_Q"]}, long)


def _turn(p: Pieces, q: Pieces, name: str) -> Array:
    """|U' - U| over the length of the step, U = W X'(diag(beta) - beta beta')X, first token."""
    first, second = (
        r.params[name] @ flip(r.X[:, 0]) @ r.spread[:, 0, 0] @ r.X[:, 0] for r in (p, q)
    )
    change = np.linalg.norm(second - first, ord=2, axis=(-2, -1))
    return np.asarray(change / frobenius(q.params[k] - a for k, a in p.params.items()))
