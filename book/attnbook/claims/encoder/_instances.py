"""Random encoders on random data, and the pieces that the proofs cut them into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, vanishes
from attnlab import models, ntk, problems
from attnlab.checks import Array
from attnlab.models import Encoder, Params
from attnlab.problems import SequenceProblem

Network = tuple[Encoder, Params, SequenceProblem]
KINDS = (("lecun", "sqrt"), ("he", "linear"), ("ntk", "sqrt"), ("ntk", "linear"))


def network(
    rng: np.random.Generator,
    trials: int,
    *,
    n: int,
    T: int,
    d: int,
    width: int,
    init: str = "lecun",
    scaling: str | float = "sqrt",
    pooling: str = "sum",
    unit: bool = True,
) -> Network:
    """Encoders at their start, with the loss of the proofs, half the sum of squares."""
    drawn = problems.gaussian_regression(n=n, T=T, d=d, unit_tokens=unit, trials=trials, rng=rng)
    model = models.Encoder(width, init, scaling, pooling, "half_sum")
    return model, model.init(drawn, rng), drawn


def half_sum(model: Encoder, params: Params, problem: SequenceProblem) -> Array:
    """The loss of the proofs."""
    return np.asarray(0.5 * ((model.forward(params, problem) - problem.y) ** 2).sum(axis=-1))


def moved(params: Params, rng: np.random.Generator, sizes: Array) -> Params:
    """Parameters with Gaussian noise of relative size ``sizes``, one for each trial."""
    return {
        name: array
        + sizes.reshape(-1, *(1,) * (array.ndim - 1))
        * array.std(axis=tuple(range(1, array.ndim)), keepdims=True)
        * rng.standard_normal(array.shape)
        for name, array in params.items()
    }


def moves(one: Params, two: Params) -> dict[str, Array]:
    """Norms of the differences."""
    return theory.encoder.norms({name: two[name] - one[name] for name in one})


def distance(one: Params, two: Params) -> Array:
    """Euclidean distance of all parameters together."""
    return length(two[k] - one[k] for k in one)


def length(arrays: Iterable[Array], trials: int = 1) -> Array:
    """Norm of all arrays of one trial together; ``trials`` says how many axes come before."""
    total = sum((a**2).sum(axis=tuple(range(trials, a.ndim))) for a in arrays)
    return np.asarray(np.sqrt(total))


def scalar_networks(rng: np.random.Generator, trials: int) -> Network:
    """One sample of one token of one feature, one positive neuron: bounds are met with equality.

    Queries and keys are zero, so that nothing else adds to the bounds.
    """
    model = models.Encoder(1, "lecun", "sqrt", "sum", "half_sum")
    size = rng.uniform(0.5, 2.0, (3, trials))
    problem = SequenceProblem(size[0][:, None, None, None], rng.standard_normal((trials, 1)))
    zero = np.zeros((trials, 1, 1))
    V, O = size[1][:, None, None], size[2][:, None]  # noqa: E741
    return model, {"W_Q": zero, "W_K": zero, "W_V": V, "w_O": O}, problem


def frobenius(array: Array) -> Array:
    """Frobenius norm of the last two axes."""
    return np.asarray(np.linalg.norm(array, axis=(-2, -1)))


def median_exponent(sizes: Array, values: list[Array], slope: Callable[..., float]) -> float:
    """The middle one of the trials' exponents; ``values`` has one array of trials a size."""
    return float(np.median([slope(sizes, column) for column in np.stack(values).T]))


def relabelled(problem: SequenceProblem, y: Array) -> SequenceProblem:
    """The same tokens with other targets."""
    return replace(problem, y=y, source=None)


@dataclass(frozen=True, eq=False)
class Pieces:
    """A `Network`, and what the proofs cut it into: trials first, then samples, then tokens."""

    model: Encoder
    params: Params
    problem: SequenceProblem

    @property
    def network(self) -> Network:
        """All three, in the order that functions take them."""
        return self.model, self.params, self.problem

    @property
    def X(self) -> Array:
        """Tokens, ``(..., n, T, d)``."""
        return self.problem.X

    @cached_property
    def beta(self) -> Array:
        """Attention of token i, ``(..., n, T, T)``."""
        return self.model.attention(self.params, self.problem)

    @cached_property
    def u(self) -> Array:
        """Attended tokens, ``(..., n, T, d)``."""
        return self.beta @ self.X

    @cached_property
    def pre(self) -> Array:
        """What enters relu, ``(..., n, T, width)``."""
        return self.u @ self.params["W_V"].mT[..., None, :, :]

    @cached_property
    def gate(self) -> Array:
        """The derivative of relu there, 0 or 1."""
        return (self.pre > 0.0).astype(float)

    @cached_property
    def spread(self) -> Array:
        """Jacobian of softmax, diag(beta) - beta beta', ``(..., n, T, T, T)``."""
        b = self.beta
        return b[..., None] * np.eye(b.shape[-1]) - b[..., None] * b[..., None, :]

    def back(self, slopes: Array) -> Array:
        """The vectors h = W_V'(w_O * slopes), ``(..., n, T, d)``; `gate` are the right slopes."""
        weighted = slopes * self.params["w_O"][..., None, None, :]
        return np.asarray(weighted @ self.params["W_V"][..., None, :, :])

    def turned(self, slopes: Array) -> Array:
        """The vectors v = X'(diag(beta) - beta beta')X h, ``(..., n, T, d)``."""
        scores = self.back(slopes) @ self.X.mT
        moved = (self.spread @ scores[..., None])[..., 0]
        return np.asarray(moved @ self.X)

    @cached_property
    def gradient(self) -> Params:
        """The true gradient of each output, ``(..., n, *shape)`` for each parameter."""
        return ntk.jacobian(self.model, self.params, self.problem)

    def bars(self, *others: Pieces) -> theory.encoder.Bars:
        """The sizes that the paper's bounds are written in, over this point and others."""
        points = (self.params, *(other.params for other in others))
        return theory.encoder.bars(self.model, self.problem, *points)

    @property
    def residual(self) -> Array:
        """Outputs less labels, ``(..., n)``."""
        return self.model.forward(self.params, self.problem) - self.problem.y

    @property
    def loss(self) -> Array:
        """Half the sum of squares, shape of the trials."""
        return self.model.value_and_grad(self.params, self.problem)[0]

    def moved(self, step: Params) -> Pieces:
        """The same encoder with its weights moved."""
        there = {k: a + step.get(k, 0.0) for k, a in self.params.items()}
        return Pieces(self.model, there, self.problem)

    def scaled(self, **factors: float) -> Pieces:
        """The same encoder with some weights multiplied, keyed by parameter."""
        there = {k: a * factors.get(k, 1.0) for k, a in self.params.items()}
        return Pieces(self.model, there, self.problem)


def pieces(
    rng: np.random.Generator,
    trials: int,
    *,
    n: int = 2,
    T: int = 3,
    d: int = 4,
    width: int = 6,
    init: str = "lecun",
    scaling: str | float = "sqrt",
    pooling: str = "sum",
    size: float = 1.0,
    unit: bool = True,
    problem: SequenceProblem | None = None,
) -> Pieces:
    """Small encoders at their start, on random tokens of length ``size`` or a given problem."""
    model = models.Encoder(width, init, scaling, pooling, "half_sum")
    if problem is None:
        drawn = problems.gaussian_regression(
            n=n, T=T, d=d, unit_tokens=unit, trials=trials, rng=rng
        )
        problem = SequenceProblem(size * drawn.X, drawn.y)
    return Pieces(model, model.init(problem, rng), problem)


def nearly_fitted(
    rng: np.random.Generator,
    trials: int,
    gap: float = 3e-9,
    *,
    size: float = 1.0,
    pooling: str = "sum",
) -> Pieces:
    """Starts whose labels are their outputs but for ``gap``: where it is small (2) and (3) hold."""
    p = pieces(rng, trials, n=4, T=2, d=6, width=200, size=size, pooling=pooling)
    f = p.model.forward(p.params, p.problem)
    labels = f + gap * rng.standard_normal(f.shape)
    return Pieces(p.model, p.params, relabelled(p.problem, labels))


def same(
    what: str,
    found: Array,
    truth: Array,
    axes: int,
    *,
    role: str = "statement",
    within: float = 1e-9,
) -> Measurement:
    """Both arrays are the same over the last axes, up to ``within`` of the truth's size.

    Where the truth is next to nothing (all neurons off), a hundredth of its usual size counts.
    """
    over = tuple(range(-axes, 0))
    gap = np.sqrt(((found - truth) ** 2).sum(axis=over))
    size = np.sqrt((truth**2).sum(axis=over))
    apart = gap / np.maximum(size, 1e-2 * np.sqrt((size**2).mean()))
    return vanishes(f"{what}, relative distance", apart, within=within, role=role)
