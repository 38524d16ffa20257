"""Random encoders on random data, shared by the checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attnbook import theory
from attnlab import models, problems
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
    """Euclidean distance of all parameters together, for one trial axis."""
    parts = [((two[k] - one[k]) ** 2).reshape(len(two[k]), -1).sum(axis=-1) for k in one]
    return np.asarray(np.sqrt(sum(parts)))


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
