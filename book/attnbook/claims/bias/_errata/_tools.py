"""What several checks of the bias paper's errata share."""

from __future__ import annotations

import numpy as np

from attnlab.checks import Array
from attnlab.problems import TokenProblem


def copies(problem: TokenProblem, *trials: int) -> TokenProblem:
    """One problem as many trials, to train from many starts side by side."""

    def spread(array: Array) -> Array:
        return np.broadcast_to(array, (*trials, *array.shape))

    return TokenProblem(spread(problem.X), spread(problem.z), spread(problem.y), spread(problem.v))


def at_optimal(array: Array, problem: TokenProblem) -> Array:
    """The entry of ``(..., n, T)`` at each sample's optimal token."""
    place = np.broadcast_to(problem.optimal[..., None], (*array.shape[:-1], 1))
    return np.asarray(np.take_along_axis(array, place, axis=-1)[..., 0])


def leads(W: Array, problem: TokenProblem) -> Array:
    """Lead of the optimal logit over each token's, inf at the optimal token itself."""
    logits = (problem.X @ (W[..., None, :, :] @ problem.z[..., None]))[..., 0]
    gaps = at_optimal(logits, problem)[..., None] - logits
    own = np.arange(problem.T) == problem.optimal[..., None]
    return np.where(own, np.inf, gaps)
