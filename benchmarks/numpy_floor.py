"""What NumPy's own calls cost, with nothing around them and all memory at hand.

A row that is missed is bounded by them where ours takes hardly longer: no Python can mend it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlab import models
from attnlab.problems import SequenceProblem, TokenProblem

Call = Callable[[], object]


def one_head(problem: TokenProblem, start: np.ndarray, steps: int) -> Call:
    """Normalized descent in W by logits beside those of the worst token: 21 calls a step.

    Returns W, which the caller compares.
    """
    B, (n, T) = len(problem.X), problem.scores.shape[1:]
    worst = problem.scores.argmin(axis=-1)[..., None]
    others = np.argsort(np.arange(T) == worst, axis=-1, kind="stable")[..., :-1]
    last = np.take_along_axis(problem.scores, worst, -1)
    D = np.take_along_axis(problem.X, others[..., None], 2)
    D = D - np.take_along_axis(problem.X, worst[..., None], 2)
    features = D.swapaxes(1, 2)  # (B, T - 1, n, d)
    flat, k = features.reshape(B, (T - 1) * n, -1), (T - 1) * n
    queries = (problem.z @ problem.z.swapaxes(1, 2))[:, None, :, None]
    gram = (flat @ flat.swapaxes(1, 2)).reshape(B, T - 1, n, T - 1, n) * queries
    G = np.ascontiguousarray(gram.reshape(B, k, k))
    above = np.ascontiguousarray(
        (np.take_along_axis(problem.scores, others, -1) - last).transpose(2, 1, 0)
    )
    base = np.ascontiguousarray(last[..., 0].T)
    r = problem.z @ start.swapaxes(1, 2)
    begin = np.einsum("btnd,bnd->tnb", features, r)
    e, total, mean, weight = (np.empty(shape) for shape in (begin.shape, *[base.shape] * 3))
    pair, square, length = np.empty((2, k, B)), np.empty((k, B)), np.empty(B)
    c, moved = pair
    coefficients, column, image = c.reshape(above.shape), c.T[..., None], moved.T[..., None]

    def run() -> np.ndarray:
        here = np.zeros((2, k, B))
        here[1] = begin.reshape(k, B)
        logits = here[1].reshape(begin.shape)
        for _ in range(steps):
            np.exp(logits, out=e)
            np.add.reduce(e, axis=0, out=total, initial=1.0)
            np.divide(1.0, total, out=total)
            np.multiply(e, above, out=coefficients)
            np.add.reduce(coefficients, axis=0, out=mean)
            np.multiply(mean, total, out=mean)
            np.subtract(above, mean, out=coefficients)
            np.multiply(coefficients, e, out=coefficients)
            np.add(mean, base, out=weight)
            np.exp(weight, out=weight)
            np.add(weight, 1.0, out=weight)
            np.divide(-1.0 / n, weight, out=weight)
            np.multiply(weight, total, out=weight)
            np.multiply(coefficients, weight, out=coefficients)
            np.matmul(G, column, out=image)
            np.multiply(c, moved, out=square)
            np.add.reduce(square, axis=0, out=length)
            np.sqrt(length, out=length)
            np.divide(0.1, length, out=length)
            np.multiply(pair, length, out=pair)
            np.subtract(here, pair, out=here)
        C = here[0].reshape(T - 1, n, B)
        return start + np.einsum("tnb,btnd,bne->bde", C, features, problem.z, optimize=True)

    return run


def products_of_one_head(problem: SequenceProblem, params: models.Params, times: int) -> Call:
    """The products and the exponentials of so many gradients of one head, and no more."""
    X, U, W = np.array(problem.X), params["U"][0], params["W"][0]
    n, T, d = X.shape
    counted = np.concatenate([X, np.ones((n, T, 1))], axis=-1).swapaxes(-1, -2)
    tokens = np.ascontiguousarray(X.reshape(-1, d).T)
    E, A, sums = np.empty((n, T, T)), np.empty((n, T, T)), np.empty((2, d + 1, n, T))

    def run() -> None:
        for _ in range(times):
            turned = (W @ tokens).reshape(d, n, T).swapaxes(0, 1)
            np.matmul(X, turned, out=E)
            np.exp(E, out=E)
            np.matmul(tokens.T, U.T, out=A.reshape(-1, T))
            np.multiply(A, E, out=A)
            np.matmul(counted, E, out=sums[0].swapaxes(0, 1))
            np.matmul(counted, A, out=sums[1].swapaxes(0, 1))
            np.vecdot(sums[1, :-1].reshape(d, 1, -1), tokens)

    return run
