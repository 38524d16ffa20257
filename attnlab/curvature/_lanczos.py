"""Extreme eigenvalues of a symmetric operator that is only known by its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlab.checks import Array
from attnlab.curvature._network import AnyModel, Problem, order, size
from attnlab.curvature._product import products
from attnlab.models import Params

# ARPACK stops at this error relative to the shifted eigenvalue, which is about 3 |H|_F.
TOLERANCE = 1e-13


def lanczos(apply: Callable[[Array], Array], p: int) -> tuple[float, float]:
    r"""Smallest and largest eigenvalue of a ``p x p`` operator.

    ARPACK measures its error relative to the eigenvalue it finds, which fails for a smallest
    eigenvalue near 0. So it is asked for both ends of $H+\sigma I$, with $\sigma$ a guess of
    $3\|H\|_F$ (the length of $Hv$ for a Gaussian $v$).
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    start = np.random.default_rng(0).standard_normal(p)
    shift = 3.0 * float(np.linalg.norm(apply(start)))
    if shift == 0.0:  # a Gaussian vector is not in the kernel unless everything is
        return 0.0, 0.0
    if p <= 3:  # fewer than ARPACK accepts
        matrix = np.stack([apply(e) for e in np.eye(p)], axis=-1)
        values = np.linalg.eigvalsh(matrix)
        return float(values[0]), float(values[-1])

    def shifted(x: Array) -> Array:
        x = x.ravel()
        return np.asarray(apply(x) + shift * x)

    found = eigsh(
        LinearOperator((p, p), matvec=shifted, dtype=np.float64),
        k=2,
        which="BE",
        v0=start,
        ncv=min(p, 40),
        tol=TOLERANCE,
        maxiter=100 * p,
        return_eigenvectors=False,
    )
    return float(found.min()) - shift, float(found.max()) - shift


def by_lanczos(model: AnyModel, params: Params, problem: Problem, of: str) -> tuple[Array, Array]:
    """Trial by trial."""
    trials, places = problem.trials, order(model, problem)
    found = np.empty((2, *trials))
    for index in np.ndindex(trials):
        one = problem.trial(index) if trials else problem
        here = {name: array[index] for name, array in params.items()}
        found[(slice(None), *index)] = lanczos(_operator(model, here, one, of), size(places))
    return np.asarray(found[0]), np.asarray(found[1])


def _operator(
    model: AnyModel, params: Params, problem: Problem, of: str
) -> Callable[[Array], Array]:
    """The product on flat vectors."""
    places = order(model, problem)

    def apply(x: Array) -> Array:
        along = {name: x[places[name]].reshape(params[name].shape) for name in places}
        moved = products(model, params, problem, along, of)
        return np.concatenate([moved[name].ravel() for name in places])

    return apply
