"""Data that the bias paper's checks share: inside Assumption 1, at its edge, and joint training."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from attnbook import theory
from attnlab import models, optim, problems, svm
from attnlab.checks import Array

FIXED = models.Attention(loss="exponential", start="zero")
JOINT = models.Attention(loss="exponential", start="zero", train_head=True)


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem, its max-margin direction and the numbers every bound asks for."""

    problem: problems.TokenProblem
    margin: svm.Margin
    best: Array
    others: Array

    @property
    def B(self) -> Array:
        """The largest token norm, shape of the trials."""
        return np.asarray(np.linalg.norm(self.problem.X, axis=-1).max(axis=(-2, -1)))

    @property
    def width(self) -> Array:
        r"""$\Lambda$."""
        return np.asarray(self.margin.norm)

    @property
    def conditioning(self) -> Array:
        r"""$\Upsilon$ of the proof."""
        return theory.bias.conditioning(self.best, self.others)

    @property
    def needed(self) -> Array:
        r"""$4n\Upsilon T$."""
        return theory.bias.orthogonality_needed(self.problem.n, self.problem.T, self.conditioning)

    @property
    def step(self) -> Array:
        """The largest step of normalized descent."""
        return theory.bias.largest_step(self.B, self.problem.T)

    def attention(self, W: Array) -> Array:
        r"""$\varphi_{i\,\mathrm{opt}_i}$ at ``W``."""
        return at_optimal(FIXED.attention({"W": W}, self.problem), self.problem)

    def descent(self, W: Array) -> Array:
        """The unit vector against the gradient, free of cancellation."""
        G = -FIXED.scaled_grad({"W": W}, self.problem)[1]["W"]
        return np.asarray(G / length(G)[..., None, None])


def length(W: Array) -> Array:
    """Frobenius norms."""
    return np.asarray(np.linalg.norm(W, axis=(-2, -1)))


def inner(A: Array, B: Array) -> Array:
    """Frobenius inner products."""
    return np.asarray((A * B).sum(axis=(-2, -1)))


def copies(problem: problems.TokenProblem, *trials: int) -> problems.TokenProblem:
    """One problem as many trials, to train from many starts side by side."""

    def spread(array: Array) -> Array:
        return np.broadcast_to(array, (*trials, *array.shape))

    return problems.TokenProblem(
        spread(problem.X), spread(problem.z), spread(problem.y), spread(problem.v)
    )


def at_optimal(array: Array, problem: problems.TokenProblem) -> Array:
    """The entry of ``(..., n, T)`` at each sample's optimal token."""
    place = np.broadcast_to(problem.optimal[..., None], (*array.shape[:-1], 1))
    return np.asarray(np.take_along_axis(array, place, axis=-1)[..., 0])


def leads(W: Array, problem: problems.TokenProblem) -> Array:
    """Lead of the optimal logit over each token's, inf at the optimal token itself."""
    logits = (problem.X @ (W[..., None, :, :] @ problem.z[..., None]))[..., 0]
    gaps = at_optimal(logits, problem)[..., None] - logits
    own = np.arange(problem.T) == problem.optimal[..., None]
    return np.where(own, np.inf, gaps)


def setting(problem: problems.TokenProblem) -> Setting:
    """The problem with its max-margin direction."""
    best, others, _ = theory.bias.split_scores(problem)
    return Setting(problem, svm.attention_svm(problem), best, others)


def nearly_orthogonal(
    rng: np.random.Generator,
    trials: int,
    *,
    n: int,
    T: int,
    edge: float = 0.95,
    flat: bool = False,
) -> Setting:
    """Random tokens that keep Assumption 1 in its symmetric form, with unequal scores.

    Their Gram matrix is drawn with products up to ``edge`` of what the assumption allows; tokens
    are its Cholesky factor, and the head solves for the scores. ``flat`` makes all norms 1.
    """
    lead, count = (trials,), n * T
    y = rng.choice((-1.0, 1.0), size=(*lead, n))
    where = rng.integers(T, size=(*lead, n))
    optimal = (np.arange(T) == where[..., None]).reshape(*lead, count)
    gamma = rng.uniform(0.8, 1.2, (*lead, n)), rng.uniform(-0.2, 0.2, (*lead, n))
    needed = theory.bias.orthogonality_needed(n, T, theory.bias.conditioning(*gamma))
    size = np.ones((*lead, count)) if flat else rng.uniform(0.6, 1.0, (*lead, count))
    pair = np.minimum(size[..., :, None], size[..., None, :])
    label = np.repeat(y, T, axis=-1)
    both = optimal[..., :, None] & optimal[..., None, :]
    same = label[..., :, None] == label[..., None, :]
    near = rng.uniform(0.4, 0.9, lead)[..., None, None]
    bound = edge * near * 0.6 / needed[..., None, None]
    G = np.triu(bound * rng.uniform(-1.0, 1.0, (*lead, count, count)), 1)
    G = np.where(np.triu(both & same, 1), near, G) * pair
    G = G + G.swapaxes(-1, -2) + size[..., None] * np.eye(count)
    tokens = np.asarray(np.linalg.cholesky(G), dtype=np.float64)
    scores = np.where(optimal, np.repeat(gamma[0], T, axis=-1), np.repeat(gamma[1], T, axis=-1))
    v = np.linalg.solve(tokens, (label * scores)[..., None])[..., 0]
    X = tokens.reshape(*lead, n, T, count)
    return setting(problems.TokenProblem(X, X[..., 0, :], y, v))


def small_start(rng: np.random.Generator, at: Setting, step: Array) -> Array:
    """A Gaussian start on the scale of Lemma 2."""
    d, T = at.problem.d, at.problem.T
    scale = theory.bias.initial_scale(step, at.B, at.width, d=d, T=T)
    return np.asarray(scale[..., None, None] * rng.standard_normal((*at.problem.trials, d, d)))


def opposite(rng: np.random.Generator, trials: int, *, n: int) -> Setting:
    """Samples in planes of their own with tokens e and -e: for n = 1 Lemma 4 is an equality."""
    X = np.zeros((trials, n, 2, n))
    X[:, np.arange(n), 0, np.arange(n)] = 1.0
    X[:, np.arange(n), 1, np.arange(n)] = -1.0
    v = rng.uniform(0.4, 0.5, (trials, n))
    return setting(problems.TokenProblem(X, X[..., 0, :], np.ones((trials, n)), v))


def lopsided() -> Setting:
    """Assumptions 1 and 2 hold as printed, and yet the third sample is lost.

    Its optimal token is 55 times longer than those of its class, and its query, short as it is,
    leans against theirs: Assumption 1 compares their product with the longer token only.
    """
    slope, lead = 1.0 / 37.0, 1.5 * 37.0
    X = np.zeros((4, 2, 8))
    X[0, 0, 0] = X[1, 0, 0] = X[3, 0, 3] = 1.0
    X[0, 1, 4] = X[1, 1, 5] = X[3, 1, 6] = 0.2
    X[2, 0, :2] = -slope, 0.1 * slope
    X[2, 1, [0, 2]] = lead, 1.0
    v = np.zeros(8)
    v[[0, 2, 3]] = 0.1, 0.1 - 0.1 * lead, -0.1
    return setting(problems.TokenProblem(X, X[:, 0], np.array([1.0, 1.0, 1.0, -1.0]), v))


@functools.cache
def lopsided_run() -> tuple[Setting, Array, svm.Margin, Array]:
    """Normalized descent from zero on `lopsided` with the largest step that is allowed.

    Its end, the max-margin problem of the tokens it settles on, and the lowest attention on each
    sample's optimal token on the way.
    """
    at = lopsided()
    run = optim.train(
        FIXED,
        at.problem,
        optim.NormalizedGD(float(at.step)),
        25_000,
        record={"attention to": lambda params, _: at.attention(params["W"])},
        every=100,
    )
    found = svm.classify(run)
    return at, run.params["W"], found.margin, run.history["attention to"].min(axis=0)


def overshoot() -> Setting:
    """One sample, so that Assumption 1 asks for nothing: the other tokens are nearly opposite.

    The optimal token is close to the segment between the others.
    """
    X = np.array([[[1.0, -0.03], [-1.0, -0.03], [0.0, 0.0]]])
    return setting(problems.TokenProblem(X, X[:, 0], np.ones(1), np.array([0.0, 1.0 / 0.03])))


@dataclass(frozen=True, eq=False)
class Descent:
    """A batch of runs of normalized descent, recorded at log-spaced steps."""

    at: Setting
    step: float
    times: Array
    W: Array

    def onward(self, t: Array) -> Array:
        """Later iterates, on the line along W_mm that the run has become: times first.

        Once the unit gradient is W_mm's direction it stays so: steps need not be taken one by one.
        """
        more = self.step * (t - self.times[-1]) / self.at.width[:, None]
        return np.asarray(self.W[-1] + more.T[..., None, None] * self.at.margin.W)


@functools.lru_cache(maxsize=8)
def descent(
    seed: int, trials: int, kind: str, n: int, T: int, steps: int, from_zero: bool = False
) -> Descent:
    """Normalized descent from a small random start, on `nearly_orthogonal` or `opposite` data."""
    rng = np.random.default_rng(seed)
    if kind == "opposite":
        at = opposite(rng, trials, n=n)
    else:
        at = nearly_orthogonal(rng, trials, n=n, T=T)
    step = float(at.step.min())
    start = 0.0 if from_zero else 1.0
    W = start * small_start(rng, at, np.full(trials, step))
    run = optim.train(
        FIXED,
        at.problem,
        optim.NormalizedGD(step),
        steps,
        params={"W": W},
        record={"W": lambda params, _: params["W"]},
        every="log",
    )
    return Descent(at, step, run.history["step"].astype(float), run.history["W"])


def seed_of(rng: np.random.Generator) -> int:
    """A seed for the runs that several checks share."""
    return int(rng.integers(2**32))
