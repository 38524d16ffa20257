"""The setting: scores, Assumptions 1 and 2, Example 1, and the gradient along a direction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, rarely, slope
from attnbook.claims.bias._instances import FIXED, at_optimal, inner, nearly_orthogonal
from attnlab import problems
from attnlab.checks import Array

WIDE = 500  # the constant before n^2 T^2 log(4n / delta) that is ample for Assumption 1
DELTA = 0.1


def _with_ties(drawn: problems.TokenProblem) -> problems.TokenProblem:
    """Every sample with its optimal token written over another one."""
    X = np.array(drawn.X)
    best = np.take_along_axis(X, drawn.optimal[..., None, None], axis=-2)[..., 0, :]
    other = (drawn.optimal + 1) % drawn.T
    np.put_along_axis(X, other[..., None, None], best[..., None, :], axis=-2)
    return problems.TokenProblem(X, drawn.z, drawn.y, drawn.v)


@measures("bias.definition-1", instances=200)
def definition_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=3, T=5, d=4, self_attention=True, trials=instances, rng=rng)
    plain = drawn.y[..., None] * np.einsum("...ntd,...d->...nt", drawn.X, drawn.v)
    yield equal("scores y X u", drawn.scores, plain, size=1.0)
    best, others, spread = theory.bias.split_scores(drawn)
    yield at_least("lead of the optimal token", best - (others + spread), 0.0, strictly=True)
    W = 10.0 * rng.standard_normal((instances, 4, 4))
    loss = FIXED.value_and_grad({"W": W}, drawn)[0]
    alone = np.exp(-best).mean(axis=-1)
    yield at_least("loss at random W against attention on opt alone", loss, alone)
    tied, low, width = theory.bias.split_scores(_with_ties(drawn))
    lead = tied - (low + width)
    yield at_least("lead, a tie", lead, 1e-9, role="outside")


@measures("bias.assumption-1", instances=50)
def assumption_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n, T in ((2, 2), (3, 3), (4, 4)):
        at = nearly_orthogonal(rng, instances, n=n, T=T)
        found = theory.bias.orthogonality(at.problem)
        yield at_least(f"nearly orthogonal tokens, n={n} T={T}", found, at.needed)
        found = theory.bias.orthogonality(at.problem, symmetric=True)
        yield at_least(f"the same, symmetric form, n={n} T={T}", found, at.needed)
    figure = problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=3, rng=rng)
    needed = theory.bias.orthogonality_needed(20, 6, np.exp(1.0))
    found = theory.bias.orthogonality(figure)
    yield at_least("the data of Figure 2", found, needed, role="outside")
    found = theory.bias.orthogonality(problems.bad_direction())
    yield at_least("the data of Figure 8", found, 4.0 * 2 * 2, role="outside")


@measures("bias.example-1", instances=60)
def example_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _lemma_6(rng, instances, sigma=0.5)
    squares, marks = [], []
    for trials in _blocks(instances):
        drawn = problems.orthogonal(
            n=400, T=4, d=50, U=2.0, rho=0.3, sigma=0.2, trials=trials, rng=rng
        )
        marks.append(np.asarray(drawn.relevant))
        squares.append((drawn.X[marks[-1]] ** 2).sum(axis=-1))
    expected = 2.0**2 + 0.2**2 * 48
    mean = np.concatenate(squares).mean()
    spread = np.sqrt(2 * 48) * 0.2**2 / np.sqrt(400 * instances)
    yield at_most(
        "mean squared norm of opt off U^2 + sigma^2 (d-2)", abs(mean - expected), 6 * spread
    )
    share = np.concatenate(marks).mean(axis=(0, 1))
    deviation = 6.0 * np.sqrt(0.25 * 0.75 / (400 * instances))
    yield at_most("positions of opt off uniform", np.abs(share - 0.25), deviation)
    figure = problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=3, rng=rng)
    needed = theory.bias.orthogonality_needed(20, 6, np.exp(1.0))
    narrow = theory.bias.orthogonality(figure)
    yield at_least("Assumption 1 where d = 100 (Figure 2)", narrow, needed, role="outside")


def _blocks(instances: int, most: int = 500) -> list[int]:
    """Numbers of trials that fit into memory together."""
    return [min(most, instances - done) for done in range(0, instances, most)]


def _lemma_6(
    rng: np.random.Generator, instances: int, *, sigma: float, role: str = "statement"
) -> Iterator[Measurement]:
    n = T = 2
    d = int(np.ceil(WIDE * theory.bias.example_dimension(n, T, DELTA)))
    signal = theory.bias.example_signal(n, T, d, 1.0, sigma)
    U = float(np.sqrt(8.0 * np.exp(1.0) * np.log(4 * n / DELTA) * signal))
    needed = theory.bias.orthogonality_needed(n, T, np.exp(1.0))
    scores, missed = [], []
    for trials in _blocks(instances):
        drawn = problems.orthogonal(
            n=n, T=T, d=d, U=U, rho=1.0, sigma=sigma, trials=trials, rng=rng
        )
        scores.append(theory.bias.split_scores(drawn))
        missed.append(theory.bias.orthogonality(drawn, symmetric=True) < needed)
    best, others, spread = (np.concatenate(part) for part in zip(*scores, strict=True))
    yield equal("scores of optimal tokens", best, 1.0, role=role)
    yield equal("scores of the others", others, 0.0, size=1.0, role=role)
    yield equal("spread of the others' scores (Assumption 2)", spread, 0.0, size=1.0, role=role)
    yield equal("Upsilon", theory.bias.conditioning(best, others), np.exp(1.0), role=role)
    allowed = DELTA + 6.0 * np.sqrt(DELTA * (1 - DELTA) / instances)
    what = "share of draws outside of Assumption 1"
    yield rarely(what, np.concatenate(missed), allowed, role=role)


@measures("bias.lemma-6", instances=20)
def lemma_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _lemma_6(rng, instances, sigma=0.0)
    widths = np.array([100, 300, 1000, 3000, 10_000])
    found = []
    for d in widths:
        drawn = problems.orthogonal(
            n=2, T=2, d=int(d), U=float(d), rho=1.0, trials=max(instances, 100), rng=rng
        )
        found.append(np.median(theory.bias.orthogonality(drawn)))
    yield at_least("exponent of Assumption 1's factor in d", slope(widths, found), 0.3)
    yield at_most("the same from above", slope(widths, found), 0.7)
    weak = problems.orthogonal(n=8, T=2, d=20_000, U=0.1, rho=1.0, trials=3, rng=rng)
    factor = theory.bias.orthogonality(weak)
    needed = theory.bias.orthogonality_needed(8, 2, np.exp(1.0))
    yield at_least("Assumption 1 with means of length 0.1", factor, needed, role="outside")
    yield from _by_the_proof(rng, instances)


def _by_the_proof(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """The width and the means that the proof asks for, and the same width with means of 1."""
    n, T, rho, delta = 2, 2, 0.05, 1e-7
    needed, logs = theory.bias.orthogonality_needed(n, T, np.exp(1.0)), np.log(4 * n / delta)
    twice = 8.0 * n * np.exp(1.0) * T
    d = int(np.ceil(twice**2 * logs))
    least = float(np.sqrt(twice * rho**2 * np.sqrt(d * logs)))  # about 18.6
    many = max(instances, 20)  # both sides need draws in which both classes occur
    for U, role in ((least, "statement"), (1.0, "outside")):
        drawn = [problems.orthogonal(n=n, T=T, d=d, U=U, rho=rho, rng=rng) for _ in range(many)]
        both = [p for p in drawn if np.ptp(p.y) > 0]
        wide = [theory.bias.orthogonality(p) for p in (both if role == "outside" else drawn)]
        what = f"squared norm over inner products, n = T = 2, d = {d}, U = {U:.3g}"
        yield at_least(what, wide, needed, role=role)


@measures("bias.assumption-2")
def assumption_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Where it holds the output is a function of the attention on the optimal token alone."""
    sets = {
        "Example 1": problems.orthogonal(n=5, T=6, d=20, rho=0.1, trials=instances, rng=rng),
        "two random tokens": problems.sphere(n=4, T=2, d=5, trials=instances, rng=rng),
        "unequal scores, T=4": nearly_orthogonal(rng, instances, n=3, T=4).problem,
        "four random tokens": problems.sphere(n=4, T=4, d=5, trials=instances, rng=rng),
    }
    for name, drawn in sets.items():
        role = "outside" if name == "four random tokens" else "statement"
        best, others, spread = theory.bias.split_scores(drawn)
        yield equal(f"spread of the other scores, {name}", spread, 0.0, size=1.0, role=role)
        W = 3.0 * rng.standard_normal((instances, drawn.d, drawn.d))
        margins = drawn.y * FIXED.forward({"W": W}, drawn)
        share = at_optimal(FIXED.attention({"W": W}, drawn), drawn)
        alone = others + (best - others) * share
        yield equal(
            f"output at random W, from phi_opt, {name}", margins, alone, size=1.0, role=role
        )


def _sides(drawn: problems.TokenProblem, rng: np.random.Generator) -> tuple[Array, Array]:
    """Equation 5's two sides for random W and W'."""
    d = drawn.d
    W, direction = rng.standard_normal((2, *drawn.trials, d, d))
    G = FIXED.value_and_grad({"W": W}, drawn)[1]["W"]
    logits = (drawn.X @ (direction[..., None, :, :] @ drawn.z[..., None]))[..., 0]
    attention = FIXED.attention({"W": W}, drawn)
    return -inner(G, direction), theory.bias.gradient_along(attention, drawn.scores, logits)


@measures("bias.equation-5", instances=300)
def equation_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n, T in ((1, 2), (3, 4), (4, 6)):
        at = nearly_orthogonal(rng, instances, n=n, T=T)
        left, right = _sides(at.problem, rng)
        yield equal(f"both sides, n={n} T={T}", left, right, within=1e-9, size=np.abs(right).max())
    pairs = problems.sphere(n=4, T=2, d=5, self_attention=True, trials=instances, rng=rng)
    left, right = _sides(pairs, rng)
    yield equal("both sides, two random tokens", left, right, size=np.abs(right).max())
    more = problems.sphere(n=4, T=4, d=5, self_attention=True, trials=instances, rng=rng)
    left, right = _sides(more, rng)
    yield equal("both sides without Assumption 2", left, right, size=1.0, role="outside")
