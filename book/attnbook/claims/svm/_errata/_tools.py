"""Array bookkeeping that several errata share; no mathematics of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnbook import theory
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.models import Attention, losses
from attnlab.problems import TokenProblem


def norm(W: Array) -> Array:
    """Frobenius norms of matrices."""
    return np.asarray(np.linalg.norm(W, axis=(-2, -1)))


def inner(A: Array, B: Array) -> Array:
    """Inner products of matrices."""
    return np.asarray((A * B).sum(axis=(-2, -1)))


def scaled(W: Array, size: Array | float) -> Array:
    """Matrices brought to a given Frobenius norm."""
    return np.asarray(W * (size / norm(W))[..., None, None])


def logits(problem: TokenProblem, W: Array) -> Array:
    """Logits x_it' W z_i, shape ``(..., n, T)``."""
    r = problem.z @ W.swapaxes(-1, -2)
    return np.asarray((problem.X @ r[..., None])[..., 0])


def at(values: Array, tokens: IntArray) -> Array:
    """The entry of each row that belongs to the selected token, ``(..., n, 1)``."""
    return np.asarray(np.take_along_axis(values, tokens[..., None], axis=-1))


def others(problem: TokenProblem, tokens: IntArray) -> BoolArray:
    """True at the tokens that are not selected."""
    return np.asarray(np.arange(problem.T) != tokens[..., None])


def least_margin(problem: TokenProblem, W: Array, tokens: IntArray) -> Array:
    """The smallest margin over samples and tokens, one number a trial."""
    margins = theory.svm.token_margins(problem, W, tokens)
    return np.asarray(np.where(others(problem, tokens), margins, np.inf).min(axis=(-1, -2)))


class Shares(NamedTuple):
    """How attention is spread over the tokens that are not selected."""

    among: Array  # shares among the others, sum 1, 0 at the selected token, (..., n, T)
    lost: Array  # 1 - s_selected without cancellation, (..., n)
    kept: Array  # s_selected likewise


def shares(problem: TokenProblem, W: Array, tokens: IntArray) -> Shares:
    """Attention of W relative to the selected token, accurate where softmax saturates."""
    margins = theory.svm.token_margins(problem, W, tokens)
    gaps = np.where(others(problem, tokens), -margins, -np.inf)
    top = gaps.max(axis=-1, keepdims=True)
    among = np.exp(gaps - top)
    log_odds = top[..., 0] + np.log(among.sum(axis=-1))
    return Shares(
        np.asarray(among / among.sum(axis=-1, keepdims=True)),
        np.exp(-np.logaddexp(0.0, -log_odds)),
        np.exp(-np.logaddexp(0.0, log_odds)),
    )


def covariance(found: Shares, a: Array, b: Array, tokens: IntArray) -> Array:
    """The softmax covariance a' S'(h) b over 1 - s_selected, without cancellation, ``(..., n)``."""
    da, db = at(a, tokens) - a, at(b, tokens) - b
    first = (found.among * da * db).sum(axis=-1)
    return np.asarray(
        first - found.lost * (found.among * da).sum(axis=-1) * (found.among * db).sum(axis=-1)
    )


def seen(problem: TokenProblem, W: Array) -> tuple[Array, Array]:
    """Attention s and the size |l'| of the logistic slope at W."""
    s = Attention().attention({"W": W}, problem)
    return s, -losses()["logistic"].slope((s * problem.scores).sum(axis=-1))


def descent(problem: TokenProblem, W: Array, loss: str = "logistic") -> tuple[Array, Array]:
    """Minus the gradient, up to its scale, and the log of that scale."""
    _, direction, log_scale = Attention(loss=loss).scaled_grad({"W": W}, problem)
    return -direction["W"], log_scale


def pushes(problem: TokenProblem, W: Array, V: Array, loss: str = "logistic") -> Array:
    """-<grad L(W), V>, formed without cancellation."""
    direction, log_scale = descent(problem, W, loss)
    return np.asarray(inner(direction, V) * np.exp(log_scale))


def repeated(problem: TokenProblem, times: int) -> TokenProblem:
    """One instance as many equal trials."""
    X, z, y, v = (
        np.broadcast_to(a, (times, *a.shape)) for a in (problem.X, problem.z, problem.y, problem.v)
    )
    return TokenProblem(X, z, y, v)


def normal(rng: np.random.Generator, problem: TokenProblem, *lead: int) -> Array:
    """Matrices with standard normal entries, one a trial (and for each of the leading axes)."""
    return np.asarray(rng.standard_normal((*lead, *problem.trials, problem.d, problem.d)))


def rows(problem: TokenProblem, which: slice) -> TokenProblem:
    """Some of the samples of every trial."""
    X, z, y = problem.X[..., which, :, :], problem.z[..., which, :], problem.y[..., which]
    return TokenProblem(X, z, y, problem.v)
