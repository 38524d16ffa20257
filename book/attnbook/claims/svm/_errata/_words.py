"""Sentences of the main text that name the wrong thing (errata 13, 14 and 16).

Number 15 was withdrawn: the sentence after Definition 2 can be read as it should be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.svm._errata._tools import least_margin, norm, others
from attnlab import problems, svm
from attnlab.checks import Array
from attnlab.problems import TokenProblem


@measures("svm.erratum-13", instances=40)
def erratum_13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n = m = 3
    drawn = problems.sphere(n=n, T=4, d=8, trials=instances, rng=rng)
    convex, frobenius = svm.attention_svm(drawn, norm="nuc"), svm.attention_svm(drawn)
    apart = norm(convex.W - frobenius.W) / norm(frobenius.W)
    yield at_most("distance of the convex nuclear solution from that of Att-SVM", apart, 1e-6)
    K, Q = convex.factors(m)  # m columns, fewer than d
    cost = (norm(K) ** 2 + norm(Q) ** 2) / 2.0
    what = "cost of m columns, against the convex optimum"
    yield equal(what, cost, convex.norm, within=1e-6, role="correction")
    least = least_margin(drawn, K @ Q.swapaxes(-1, -2), drawn.optimal)
    yield at_least("their smallest margin", least, 1.0 - 1e-6, role="correction")


@measures("svm.erratum-14", instances=40)
def erratum_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    many = 2 * instances + 20
    X = 0.3 * rng.standard_normal((many, 2, 3, 2)) + np.array([[-1.0, 0.0], [1.0, 0.0]])[:, None]
    z, v = rng.standard_normal((many, 2, 2)), rng.standard_normal((many, 2))
    drawn = TokenProblem(X, z, np.ones((many, 2)), v)
    caption, text = (svm.attention_svm(drawn, norm=name) for name in ("fro", "nuc"))
    solved = (caption.status == "optimal") & (text.status == "optimal")
    lines = [(drawn.z @ found.W.swapaxes(-1, -2))[solved] for found in (caption, text)]
    cosine = (lines[0] * lines[1]).sum(axis=-1) / np.prod(np.linalg.norm(lines, axis=-1), axis=0)
    what = "median cosine of the lines W^mm z_i (caption) and W_*^mm z_i (text)"
    yield at_least(what, np.median(cosine.min(axis=-1)), 0.999)
    # which of them is the Frobenius one: the shorter in its norm
    size = norm(text.W[solved]) / caption.norm[solved]
    what = "Frobenius norm of what the text names over that of what the caption names"
    yield at_least(what, size, 1.0 - 1e-9, role="correction")


@measures("svm.erratum-16", instances=60)
def erratum_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, d in (("where B.1 holds", 16), ("where B.1 fails", 4)):
        drawn = problems.sphere(n=2, T=3, d=d, trials=instances + 20, rng=rng)
        holds = svm.assumption_b1(drawn).holds
        drawn = drawn.trial(holds if d == 16 else ~holds)
        mm = svm.attention_svm(drawn)
        again = svm.attention_svm(drawn, method="nnls").W
        apart = norm(mm.W - _interpolator(drawn)) / mm.norm
        if d == 16:
            yield at_most(f"distance from the interpolator {name}", apart, 1e-6, role="correction")
            continue
        same = norm(mm.W - again) / mm.norm
        yield at_least(f"distance from Att-SVM {name}", same, 1e-6, strictly=True)
        clear = apart[mm.margins.max(axis=(-1, -2)) > 1.01]
        what = f"distance from the interpolator {name}"
        yield at_least(what, clear, 1e-4, role="correction")


def _interpolator(problem: TokenProblem) -> Array:
    """The least-norm W whose margins are all 1."""
    rest = others(problem, problem.optimal)
    flat = theory.svm.features(problem)[rest].reshape(*problem.trials, -1, problem.d**2)
    found = np.linalg.pinv(flat) @ np.ones((flat.shape[-2], 1))
    return np.asarray(found.reshape(*problem.trials, problem.d, problem.d))
