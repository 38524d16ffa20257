"""Model DM at any width, and joint runs of the decayed update on it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attnbook import theory
from attnbook.claims.bias._instances import JOINT
from attnlab import optim, problems, svm
from attnlab.checks import Array
from attnlab.models import Params

DELTA = 0.1
PROOF = (2.0**10 * 24.0) ** 2  # the constant before alpha^4 n^4 log that Lemma 11 collects


@dataclass(frozen=True)
class Sizes:
    """The numbers of a joint run."""

    n: int
    alpha: float
    rho: float
    d: int
    step: float

    @property
    def B(self) -> float:
        """The bound on the tokens."""
        return theory.bias.token_bound(self.alpha, self.rho, self.d)

    @property
    def noise(self) -> float:
        r"""$\rho\sqrt{1.5d}$."""
        return self.B / self.alpha


def conditioned(n: int, constant: float = PROOF, *, alpha: float = 6.0) -> Sizes:
    """Inside Condition 2, at its edge: width, B = 1 and the largest step."""
    d = int(np.ceil(theory.bias.dimension_needed(alpha, n, DELTA, constant=constant)))
    rho = float((1.0 + 1e-12) / (alpha * np.sqrt(1.5 * d)))
    return Sizes(n, alpha, rho, d, theory.bias.joint_step(alpha, rho, n=n, d=d))


LARGE = Sizes(4, 6.0, 0.1, 4000, 0.05)  # narrow, and steps with which the loss falls in sight
FIGURE = Sizes(10, 3.0, 0.1, 100, 0.002)


def wide_gaussian(rng: np.random.Generator, trials: int, at: Sizes) -> problems.TokenProblem:
    """Model DM for T = 2 at any width, in coordinates of the tokens' own span.

    Coordinates along the labelling direction are normal, the rest is the triangular factor of a
    Wishart matrix: the law of all inner products is that of tokens with ``d`` entries.
    """
    k = 2 * at.n
    along = rng.standard_normal((trials, k, 1))
    rest = np.tril(rng.standard_normal((trials, k, k)), -1)
    free = at.d - 1.0 - np.arange(k)
    rest[:, np.arange(k), np.arange(k)] = np.sqrt(rng.chisquare(free, size=(trials, k)))
    X = np.concatenate([along, rest], axis=-1).reshape(trials, at.n, 2, k + 1)
    relevant = np.arange(2) == rng.integers(2, size=(trials, at.n))[..., None]
    X = X * np.where(relevant, at.alpha * at.rho, at.rho)[..., None]
    y = np.where((X[..., 0] * relevant).sum(axis=-1) >= 0.0, 1.0, -1.0)
    v = np.zeros((trials, k + 1))
    v[:, 0] = 1.0
    return problems.TokenProblem(X, X[..., 0, :], y, v, relevant=relevant)


@dataclass(frozen=True, eq=False)
class JointRun:
    """Runs of the decayed update from zero, recorded at log-spaced steps."""

    at: Sizes
    problem: problems.TokenProblem
    margin: svm.Margin
    decoder: svm.Margin
    times: Array
    W: Array
    v: Array

    def points(self) -> Iterator[tuple[float, Params]]:
        """Steps and parameters."""
        for t, W, v in zip(self.times, self.W, self.v, strict=True):
            yield float(t), {"W": W, "v": v}

    def scores(self) -> tuple[Array, Array]:
        """Scores of the deciding and of the other token: time, trials, samples."""
        found = np.stack([JOINT.scores(self.problem, params) for _, params in self.points()])
        marked = np.asarray(self.problem.relevant)
        return (found * marked).sum(axis=-1), (found * ~marked).sum(axis=-1)

    def attention(self) -> Array:
        """Attention on the deciding token: time, trials, samples."""
        maps = np.stack([JOINT.attention(params, self.problem) for _, params in self.points()])
        return np.asarray((maps * np.asarray(self.problem.relevant)).sum(axis=-1))

    def margins(self) -> Array:
        """Labels times outputs: time, trials, samples."""
        outputs = [JOINT.forward(params, self.problem) for _, params in self.points()]
        return np.asarray(self.problem.y * np.stack(outputs))

    def log_loss(self) -> Array:
        """Log of the mean loss without cancellation where it is close to 1: time, trials."""
        return np.asarray(np.log1p(np.expm1(-self.margins()).mean(axis=-1)))

    @property
    def deciding(self) -> Array:
        """The deciding tokens, shape ``(trials, n, d)``."""
        marked = np.asarray(self.problem.relevant)[..., None]
        return np.asarray((self.problem.X * marked).sum(axis=-2))

    def decoder_margins(self) -> tuple[Array, Array]:
        """Smallest margin of the decoder on the deciding tokens, and its length."""
        signed = self.problem.y[..., None] * self.deciding
        smallest = np.einsum("tkd,knd->tkn", self.v, signed).min(axis=-1)
        return smallest, np.asarray(np.linalg.norm(self.v, axis=-1))


@functools.lru_cache(maxsize=8)
def joint_run(seed: int, trials: int, at: Sizes, steps: int = 300) -> JointRun:
    """The update (10) on model DM from zero."""
    problem = wide_gaussian(np.random.default_rng(seed), trials, at)
    run = optim.train(
        JOINT,
        problem,
        optim.DecayedNormalizedGD(at.step),
        steps,
        record={"W": lambda params, _: params["W"], "v": lambda params, _: params["v"]},
        every="log",
    )
    marked = np.asarray(problem.relevant)
    deciding = (problem.X * marked[..., None]).sum(axis=-2)
    return JointRun(
        at,
        problem,
        svm.attention_svm(problem, tokens=marked.argmax(axis=-1)),
        svm.decoder_svm(x=deciding, y=problem.y),
        run.history["step"].astype(float),
        run.history["W"],
        run.history["v"],
    )
