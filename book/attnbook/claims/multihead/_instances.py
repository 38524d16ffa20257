"""What the checks are run on: bounded tokens, heads of many sizes, mixtures with bounded noise."""

from __future__ import annotations

import numpy as np

from attnbook import theory
from attnlab import models, problems
from attnlab.checks import Array, BoolArray
from attnlab.models import Params
from attnlab.problems import Mixture, SequenceProblem

ONE = models.MultiHead(heads=1)
LONG = 1.25  # R of the descents: a power of R that is wrong must show


def bounded(
    rng: np.random.Generator, *, trials: int, n: int, T: int, d: int, R: float = 1.0
) -> SequenceProblem:
    """Tokens no longer than R: all of them just as long in every other trial, else shorter."""
    X = rng.standard_normal((trials, n, T, d))
    X *= R / np.linalg.norm(X, axis=-1, keepdims=True)
    shrink = rng.random((trials, n, T, 1))
    shrink[::2] = 1.0
    return SequenceProblem(X * shrink, rng.choice((-1.0, 1.0), size=(trials, n)))


def on_a_line(
    rng: np.random.Generator, *, trials: int, n: int, T: int, d: int, R: float = 1.0
) -> SequenceProblem:
    """Tokens +R and -R along one direction, in every other trial all of one sign a sample.

    Here covariances and means are as large as bounds allow.
    """
    axis = rng.standard_normal((trials, 1, 1, d))
    axis *= R / np.linalg.norm(axis, axis=-1, keepdims=True)
    sign = rng.choice((-1.0, 1.0), size=(trials, n, T, 1))
    sign[::2] = sign[::2, :, :1]
    return SequenceProblem(sign * axis, rng.choice((-1.0, 1.0), size=(trials, n)))


def heads(rng: np.random.Generator, problem: SequenceProblem, H: int) -> Params:
    """Gaussian heads; each trial has sizes of its own for U and W, over two decades."""
    trials = problem.trials
    sizes = 10.0 ** rng.uniform(-1.5, 0.5, size=(2, *trials, 1, 1, 1))
    return {
        "U": sizes[0] * rng.standard_normal((*trials, H, problem.T, problem.d)),
        "W": sizes[1] * rng.standard_normal((*trials, H, problem.d, problem.d)),
    }


def length(params: Params) -> Array:
    """Euclidean length of all parameters together, one number a trial."""
    squares = sum((part**2).sum(axis=(-1, -2, -3)) for part in params.values())
    return np.asarray(np.sqrt(squares))


def longest_head(params: Params) -> Array:
    r"""$\|\tilde\theta\|_{2,\infty}=\max_h\|\theta_h\|$."""
    squares = sum((part**2).sum(axis=(-1, -2)) for part in params.values())
    return np.asarray(np.sqrt(squares).max(axis=-1))


def longest_readout(params: Params) -> Array:
    r"""$\max_h\|U_h\|_F$."""
    return np.asarray(np.sqrt((params["U"] ** 2).sum(axis=(-1, -2))).max(axis=-1))


def difference(first: Params, second: Params) -> Params:
    """One point minus another."""
    return {name: first[name] - second[name] for name in first}


def between(first: Params, second: Params, share: float) -> Params:
    """The point of the segment that is ``share`` of the way from the first to the second."""
    return {name: (1.0 - share) * first[name] + share * second[name] for name in first}


def segment(first: Params, second: Params, points: int) -> list[Params]:
    """Equally spaced points from the first to the second, both included."""
    return [between(first, second, share) for share in np.linspace(0.0, 1.0, points)]


def longest_token(problem: SequenceProblem) -> Array:
    """R of each trial, at least 1 as Assumption 1 wants it."""
    return np.asarray(np.maximum(1.0, np.linalg.norm(problem.X, axis=-1).max(axis=(-1, -2))))


def mixture(
    rng: np.random.Generator,
    *,
    n: int,
    T: int = 10,
    zeta: float = 0.1,
    S: float = 2.0,
    M: int = 2,
    Z_mu: float = 0.0,
    Z_nu: float = 0.0,
    across: float = 0.0,
    corners: bool = False,
    trials: int | None = None,
) -> SequenceProblem:
    """DM1 with noise as Assumption 3 has it: scores within Z_mu and Z_nu / M.

    Noise is uniform in that box or at its corners, plus a part of length ``across`` that is
    orthogonal to all patterns. The library's own mixture has Gaussian noise, which is unbounded.
    """
    d = M + 2 + (across > 0.0)
    clean = problems.tokenized_mixture(
        n=n, T=T, d=d, M=M, S=S, zeta=zeta, sigma=0.0, trials=trials, rng=rng
    )
    box = np.zeros(d)
    box[:2], box[2 : M + 2] = Z_mu / S, Z_nu / (M * S)
    z = rng.choice((-1.0, 1.0), clean.X.shape) if corners else rng.uniform(-1, 1, clean.X.shape)
    z = z * box
    if across:
        z[..., -1] = across
    X = np.where(np.asarray(clean.relevant)[..., None], clean.X, clean.X + z)
    return SequenceProblem(X, clean.y, relevant=clean.relevant, source=clean.source)


def patterns(problem: SequenceProblem) -> Mixture:
    """The mixture that a problem was drawn from."""
    source = problem.source
    assert isinstance(source, Mixture)
    return source


def oracle(problem: SequenceProblem) -> Array:
    r"""$u_\star$, a row of the stated readout $U_\star$."""
    return np.asarray(theory.multihead.U_star(patterns(problem))[0])


def carrying(problem: SequenceProblem) -> BoolArray:
    """Which tokens carry the label."""
    assert problem.relevant is not None
    return problem.relevant


def allowance(draws: int) -> float:
    """What a frequency may exceed its probability by; false alarms below 1e-7 (Hoeffding)."""
    return float(np.sqrt(np.log(1e7) / (2.0 * draws)))
