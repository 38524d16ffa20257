"""Small encoders to try a printed formula on, and the pieces the proofs are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from attnbook import theory
from attnbook.claims._measure import Measurement, at_most
from attnlab import models, ntk, problems
from attnlab.checks import Array
from attnlab.models import Params


def flip(matrix: Array) -> Array:
    """The transpose of the last two axes."""
    return matrix.swapaxes(-1, -2)


@dataclass(frozen=True, eq=False)
class Pieces:
    """An encoder with sum pooling (as in the proofs) unless told, its weights and its data.

    Shapes: trials first, then samples ``n``, then tokens ``i``.
    """

    model: models.Encoder
    params: Params
    problem: problems.SequenceProblem

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
        return self.u @ flip(self.params["W_V"])[..., None, :, :]

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
        scores = self.back(slopes) @ flip(self.X)
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
    def loss(self) -> Array:
        """Half the sum of squares, shape of the trials."""
        return self.model.value_and_grad(self.params, self.problem)[0]

    def moved(self, step: Params) -> Pieces:
        """The same encoder with its weights moved."""
        return Pieces(
            self.model, {k: a + step.get(k, 0.0) for k, a in self.params.items()}, self.problem
        )

    def scaled(self, **factors: float) -> Pieces:
        """The same encoder with some weights multiplied, keyed by parameter."""
        return Pieces(
            self.model, {k: a * factors.get(k, 1.0) for k, a in self.params.items()}, self.problem
        )


def pieces(
    rng: np.random.Generator,
    trials: int,
    *,
    n: int = 2,
    T: int = 3,
    d: int = 4,
    width: int = 6,
    scheme: str = "lecun",
    scaling: str | float = "sqrt",
    pooling: str = "sum",
    size: ArrayLike = 1.0,
    unit_tokens: bool = True,
    problem: problems.SequenceProblem | None = None,
) -> Pieces:
    """Random encoders on random tokens; ``size`` multiplies the tokens (it broadcasts)."""
    model = models.Encoder(width, scheme, scaling, pooling, "half_sum")
    if problem is not None:
        return Pieces(model, model.init(problem, rng), problem)
    drawn = problems.gaussian_regression(
        n=n, T=T, d=d, unit_tokens=unit_tokens, trials=trials, rng=rng
    )
    made = problems.SequenceProblem(drawn.X * np.asarray(size), drawn.y)
    return Pieces(model, model.init(made, rng), made)


def nearly_fitted(
    rng: np.random.Generator, trials: int, *, gap: float, size: float = 1.0
) -> Pieces:
    """Starts whose labels are their own outputs but for ``gap``: there (2) and (3) hold."""
    p = pieces(rng, trials, n=4, T=2, d=6, width=200, size=size)
    f = p.model.forward(p.params, p.problem)
    labels = f + gap * rng.standard_normal(f.shape)
    return Pieces(p.model, p.params, problems.SequenceProblem(p.X, labels))


def apart(found: Array, truth: Array, axes: int) -> Array:
    """How far apart over the last axes, as a share of the truth's size.

    Where the truth is next to nothing (all neurons off), a hundredth of its usual size counts.
    """
    over = tuple(range(-axes, 0))
    gap = np.sqrt(((found - truth) ** 2).sum(axis=over))
    size = np.sqrt((truth**2).sum(axis=over))
    return np.asarray(gap / np.maximum(size, 1e-2 * np.sqrt((size**2).mean())))


def same(
    what: str,
    found: Array,
    truth: Array,
    axes: int,
    *,
    role: str = "statement",
    within: float = 1e-9,
) -> Measurement:
    """Both arrays are the same, up to ``within`` of the truth's size, at the worst trial."""
    return at_most(f"{what}, relative distance", apart(found, truth, axes), within, role=role)


def frobenius(arrays: Iterable[Array], trials: int = 1) -> Array:
    """Norm of all arrays of one trial together."""
    total = sum((a**2).sum(axis=tuple(range(trials, a.ndim))) for a in arrays)
    return np.asarray(np.sqrt(total))
