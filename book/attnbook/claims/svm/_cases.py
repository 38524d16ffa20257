"""Instances that several checks share, and what they ask of them."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from attnbook import theory
from attnlab import models, problems, svm
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.models import losses


def reseeded(rng: np.random.Generator) -> int:
    """A seed for what takes one of its own."""
    return int(rng.integers(2**32))


def problem(X: ArrayLike, z: ArrayLike, y: ArrayLike, v: ArrayLike) -> problems.TokenProblem:
    """A problem from plain numbers."""
    return problems.TokenProblem(*(np.array(a, float) for a in (X, z, y, v)))  # type: ignore[arg-type]


def copies(one: problems.TokenProblem, count: int) -> problems.TokenProblem:
    """The same instance several times."""
    return problem(*(np.stack([a] * count) for a in (one.X, one.z, one.y, one.v)))


def scored_in_steps(problem: problems.TokenProblem) -> problems.TokenProblem:
    """The same tokens with their first feature rounded to 0 or 1, which is the score: many ties."""
    X, v = np.array(problem.X), np.zeros_like(problem.v)
    X[..., 0], v[..., 0] = X[..., 0] > 0.0, 1.0
    return problems.TokenProblem(X, problem.z, np.ones_like(problem.y), v)


def some(
    problem: problems.TokenProblem, wanted: BoolArray, most: int | None = None
) -> problems.TokenProblem:
    """The trials in which something holds; at most so many."""
    return problem.trial(np.flatnonzero(wanted)[:most])


def short(problem: problems.TokenProblem, most: int, length: float = 6.0) -> problems.TokenProblem:
    """At most so many of the trials whose max-margin direction is not too long."""
    return some(problem, svm.attention_svm(problem).norm < length, most)


def every(problem: problems.TokenProblem) -> tuple[problems.TokenProblem, IntArray]:
    """Each trial once for each of its selections, in one axis of trials."""
    digits = np.array(list(product(range(problem.T), repeat=problem.n)))
    (trials,) = problem.trials
    repeated = problem.trial(np.tile(np.arange(trials), len(digits)))
    return repeated, np.repeat(digits, trials, axis=0)


def in_units(problem: problems.TokenProblem, length: Array) -> problems.TokenProblem:
    """The same problem for matrices measured in a length of each trial's own."""
    X, v = problem.X * length[:, None, None, None], problem.v / length[:, None]
    return problems.TokenProblem(X, problem.z, problem.y, v)


def uneven(problem: problems.TokenProblem, rng: np.random.Generator) -> Array:
    """What to add to the tokens so that the scores of those that are not optimal differ."""
    rise = rng.uniform(-1.0, 1.0, (*problem.trials, 1, problem.T, 1))
    wanted = others(problem, problem.optimal)[..., None]
    return np.where(wanted, rise * problem.v[..., None, None, :], 0.0)


def random_selection(problem: problems.TokenProblem, rng: np.random.Generator) -> IntArray:
    """One token a sample, uniformly."""
    return rng.integers(problem.T, size=(*problem.trials, problem.n))


def at(values: Array, tokens: IntArray) -> Array:
    """The entry of each row that belongs to the selected token, ``(..., n)``."""
    return np.asarray(np.take_along_axis(values, tokens[..., None], axis=-1)[..., 0])


def lead(problem: problems.TokenProblem, tokens: IntArray) -> Array:
    """By how much the selected token outscores each token, ``(..., n, T)``."""
    return np.asarray(at(problem.scores, tokens)[..., None] - problem.scores)


def others(problem: problems.TokenProblem, tokens: IntArray) -> BoolArray:
    """True at the tokens that are not selected, ``(..., n, T)``."""
    return np.asarray(np.arange(problem.T) != tokens[..., None])


def least_margin(problem: problems.TokenProblem, W: Array, tokens: IntArray | None = None) -> Array:
    """The smallest margin over samples and tokens, one number a trial."""
    alpha = problem.optimal if tokens is None else tokens
    margins = theory.svm.token_margins(problem, W, alpha)
    return np.asarray(np.where(others(problem, alpha), margins, np.inf).min(axis=(-1, -2)))


def norm(W: Array) -> Array:
    """Frobenius norms of matrices."""
    return np.asarray(np.linalg.norm(W, axis=(-1, -2)))


def unit(W: Array) -> Array:
    """Matrices scaled to Frobenius norm 1."""
    return np.asarray(W / np.linalg.norm(W, axis=(-1, -2), keepdims=True))


def inner(A: Array, B: Array) -> Array:
    """Frobenius inner products."""
    return np.asarray((A * B).sum(axis=(-1, -2)))


def scaled(size: Array, W: Array) -> Array:
    """A factor for each trial."""
    return np.asarray(size)[..., None, None] * W


def misfit(W: Array, direction: Array) -> Array:
    """1 - cosine, from the difference of the unit matrices: no cancellation."""
    apart = unit(W) - unit(direction)
    return inner(apart, apart) / 2.0


def downhill(
    model: models.Attention, problem: problems.TokenProblem, W: Array
) -> tuple[Array, Array]:
    r"""$-\nabla\mathcal L(W)$ free of cancellation: a matrix, and the log of its scale."""
    _, direction, log_scale = model.scaled_grad({"W": W}, problem)
    return -direction["W"], log_scale


def cosine(model: models.Attention, problem: problems.TokenProblem, W: Array, V: Array) -> Array:
    r"""The cosine of $-\nabla\mathcal L(W)$ and $V$."""
    return inner(unit(downhill(model, problem, W)[0]), unit(V))


def push(model: models.Attention, problem: problems.TokenProblem, W: Array, V: Array) -> Array:
    r"""$-\langle\nabla\mathcal L(W),V\rangle$, one number a trial."""
    G, log_scale = downhill(model, problem, W)
    return np.asarray(inner(G, V) * np.exp(log_scale))


def unselected(problem: problems.TokenProblem, W: Array, tokens: IntArray) -> tuple[Array, Array]:
    """Shares of the other tokens among themselves, and $1-s$ of the selected: no cancellation."""
    margins = theory.svm.token_margins(problem, W, tokens)
    gaps = np.where(others(problem, tokens), -margins, -np.inf)
    top = gaps.max(axis=-1, keepdims=True)
    among = np.exp(gaps - top)
    total = among.sum(axis=-1, keepdims=True)
    log_odds = (top + np.log(total))[..., 0]
    return among / total, np.exp(-np.logaddexp(0.0, -log_odds))


def allowance(problem: problems.TokenProblem, W_mm: Array, mu: Array | float) -> Array:
    """What inequality 58 allows $1-s$ to be, sample by sample."""
    most = 4.0 * theory.svm.span(problem) * theory.svm.reach(problem, W_mm, differences=True)
    return np.asarray((mu / most)[..., None] * theory.svm.score_gaps(problem)[0])


def gain(
    model: models.Attention, problem: problems.TokenProblem, W: Array, eta: Array
) -> tuple[Array, Array]:
    """How far a step lowers the loss, and half the step times the squared gradient."""
    loss, grads = model.value_and_grad({"W": W}, problem)
    after = model.value_and_grad({"W": W - scaled(eta, grads["W"])}, problem)[0]
    return loss - after, 0.5 * eta * inner(grads["W"], grads["W"])


def steepness(model: models.Attention, problem: problems.TokenProblem, W: Array) -> Array:
    r"""$|\ell'_i|$ at $W$."""
    return -losses()[model.loss].slope(problem.y * model.forward({"W": W}, problem))


def loss_above(problem: problems.TokenProblem, W: Array, alpha: IntArray) -> Array:
    """Logistic loss above that of a selection, without cancellation."""
    seen = models.Attention().attention({"W": W}, problem)
    lost = (seen * lead(problem, alpha)).sum(axis=-1)
    return np.asarray(losses()["logistic"].excess(at(problem.scores, alpha), lost).mean(axis=-1))


def edge(W: Array, opening: Array, rng: np.random.Generator) -> Array:
    r"""Unit matrices whose correlation with $W$ is exactly $1-\mu$."""
    axis, noise = unit(W), rng.standard_normal(W.shape)
    across = unit(noise - scaled(inner(noise, axis), axis))
    return scaled(1.0 - opening, axis) + scaled(np.sqrt(opening * (2.0 - opening)), across)


def separated(
    n: int, T: int, d: int, instances: int, rng: np.random.Generator, gap: float = 0.1
) -> problems.TokenProblem:
    """Random problems whose optimal tokens can be separated."""
    drawn = problems.sphere(n=n, T=T, d=d, min_gap=gap, trials=instances, rng=rng)
    found = some(drawn, np.asarray(svm.attention_svm(drawn).status == "optimal"))
    return found if found.trials[0] else separated(n, T, d, instances, rng, gap)


def pair(f: ArrayLike, z: ArrayLike, y: ArrayLike, v: ArrayLike) -> problems.TokenProblem:
    """Samples of two tokens, plus and minus ``f``."""
    f = np.asarray(f, float)
    return problem(np.stack([f, -f], axis=-2), z, y, v)


def exactly_level(instances: int, rng: np.random.Generator) -> problems.TokenProblem:
    """One sample whose first token scores exactly 1 and the others exactly 0 (B.2)."""
    drawn = problems.sphere(n=1, T=4, d=5, trials=instances, rng=rng)
    X = np.array(drawn.X)
    X[..., 0] = np.arange(4) == 0
    v = np.tile([1.0, 0.0, 0.0, 0.0, 0.0], (instances, 1))
    return problem(X, drawn.z, np.ones((instances, 1)), v)


def corners() -> problems.TokenProblem:
    """Asks for W_11 >= 1 and W_22 >= 1."""
    X = np.zeros((2, 2, 2))
    X[0, 0, 0] = X[1, 0, 1] = 1.0
    return problem(X, np.eye(2), [1.0, 1.0], [1.0, 1.0])


def every_direction(d: int) -> problems.TokenProblem:
    """Asks for f' W f >= 1 along the axes of R^d and the diagonals of their planes: of d^2 f.

    The f f' add up to a multiple of the identity, which is the dual certificate: no W with these
    margins has a nuclear norm below d, that of the identity.
    """
    axes = np.eye(d)
    planes = [(axes[i] + s * axes[j]) for i in range(d) for j in range(i) for s in (1.0, -1.0)]
    f = np.array([*axes, *(diagonal / np.sqrt(2.0) for diagonal in planes)])
    v = np.pi ** np.arange(d)  # across no f
    toward = np.sign(f @ v)
    return copies(pair(f / 2.0, f * toward[:, None], np.ones(len(f)), v), 1)


def opposed(cosine: float) -> problems.TokenProblem:
    """Two samples of two tokens whose features meet at that angle; score gaps 1 and 0.1."""
    f = np.array([[1.0, 0.0, 0.0], [cosine, np.sqrt(1.0 - cosine**2), 0.0]])
    v = np.linalg.pinv(f) @ np.array([1.0, 0.1])
    return pair(f / 2.0, np.tile([1.0, 0.0, 0.0], (2, 1)), np.ones(2), v)


def detour() -> problems.TokenProblem:
    """Three samples of two tokens that a small first step from zero leads astray."""
    return pair(
        np.array([[-2.3, 0.7], [-0.7, -0.1], [0.7, 1.4]]),
        np.array([[0.0, 0.3], [0.2, 2.0], [-2.1, -0.8]]),
        np.array([1.0, -1.0, -1.0]),
        np.array([0.2, -0.4]),
    )


def unsupported() -> problems.TokenProblem:
    """The first tokens are locally optimal as printed, and lie in no cone.

    In the second sample both margins exceed 1 (they are 2 and 4), and the nearer token scores
    higher.
    """
    X = np.array([[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-2.0, -1.0], [-4.0, 1.0]]])
    return problem(X, [[1.0, 0.0]] * 2, [1.0, 1.0], [1.0, -3.0])


def overtaken() -> problems.TokenProblem:
    """The first tokens are locally optimal as printed; the second margin, 1.02, is no support.

    Inside the printed cone it can fall below the first sample's, and the gradient turns away.
    """
    f = np.array([[0.5, 0.0], [0.51, 0.5]])
    return pair(f, [[1.0, 0.0]] * 2, [1.0, -1.0], [1.0, 0.0])
