"""Slips about derivatives: those of softmax, of the loss, and the Hessian's quadratic form.

The paper's W has the query on the left; the library's is its transpose.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal, vanishes
from attnbook.claims.multihead import _instances as instance
from attnlab import curvature, models, ntk
from attnlab.checks import Array

STEP = 1e-5  # of central differences


def _softmax(logits: Array) -> Array:
    """Softmax of rows, by SciPy."""
    from scipy import special

    return np.asarray(special.softmax(logits, axis=-1))


def _differences(v: Array) -> Array:
    """The Jacobian of softmax by central differences, ``(..., T, T)``."""
    steps = STEP * np.eye(v.shape[-1])
    ahead, behind = (_softmax(v[..., None, :] + sign * steps) for sign in (1.0, -1.0))
    return (ahead - behind).mT / (2.0 * STEP)


def _less_outer(s: Array, v: Array) -> Array:
    """The diagonal matrix of s less the outer product of v with itself."""
    return s[..., None] * np.eye(s.shape[-1]) - v[..., :, None] * v[..., None, :]


def _norms(A: Array) -> Array:
    """Frobenius norms."""
    return np.asarray(np.linalg.norm(A, axis=(-1, -2)))


@measures("multihead.erratum-1")
def erratum_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    v = rng.standard_normal((instances, 5))
    truth, s = _differences(v), _softmax(v)
    for name, taken, role in (("v v'", v, "statement"), ("phi phi'", s, "correction")):
        error = _norms(_less_outer(s, taken) - truth) / _norms(truth)
        yield vanishes(
            f"diag(phi) - {name}, distance from differences", error, within=1e-7, role=role
        )


@measures("multihead.erratum-2", instances=20)
def erratum_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 5
    centred = np.eye(T) - 1.0 / T
    truth = _differences(np.zeros(T))
    yield equal("norm of the Jacobian at 0, T = 5", _norms(centred), _norms(truth))
    values = np.linalg.eigvalsh(truth)
    yield equal("its eigenvalues", values, [0.0, *[1.0 / T] * 4], size=1.0, role="correction")
    drawn = instance.bounded(rng, trials=instances, n=1, T=T, d=3)
    U = rng.standard_normal((instances, 1, T, 3))
    params = {"U": U, "W": np.zeros((instances, 1, 3, 3))}
    exact = ntk.jacobian(instance.ONE, params, drawn)["W"][:, 0, 0].mT
    X, rows = drawn.X[:, 0], U[:, 0]
    built = X.mT @ rows @ X.mT @ centred @ X
    size = _norms(exact).max()
    what = "sum of x_t u_t' X' phi'(0) X against the gradient at W = 0"
    yield equal(f"{what}, as printed", built, exact, size=size, role="step")
    yield equal(f"{what}, over T", built / T, exact, size=size, role="correction")


@measures("multihead.erratum-8")
def erratum_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = instance.bounded(rng, trials=max(instances, 20), n=3, T=3, d=2)
    params = instance.heads(rng, drawn, 2)
    params["U"] *= 10.0
    model = models.MultiHead(heads=2)
    loss = model.value_and_grad(params, drawn)[0]
    margins = drawn.y * model.forward(params, drawn)
    fall = np.logaddexp(0.0, STEP - margins) - np.logaddexp(0.0, -STEP - margins)
    slopes = (np.abs(fall) / (2.0 * STEP)).mean(axis=-1)
    yield at_most("loss, heads of many sizes", loss, 1.0)
    slack = 1.0 + 1e-6  # of the differences
    yield at_most("mean size of the slope, against the loss", slopes, loss * slack + 1e-9,
                  role="correction")  # fmt: skip
    yield at_most("mean size of the slope", slopes, slack, role="correction")
    wide = 1e-3
    bend = sum(
        weight * np.logaddexp(0.0, -margins + shift)
        for weight, shift in ((1.0, wide), (-2.0, 0.0), (1.0, -wide))
    )
    second = np.abs(np.asarray(bend) / wide**2).mean(axis=-1)
    yield at_most("mean size of the second derivative", second, 0.25 + 1e-6, role="correction")


@measures("multihead.erratum-10", instances=50)
def erratum_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, d = 4, 3
    drawn = instance.bounded(rng, trials=instances, n=1, T=T, d=d)
    X = drawn.X[:, 0]
    W, Q = rng.standard_normal((2, instances, d, d))  # the paper's: query left
    U, p = rng.standard_normal((2, instances, T, d))
    length = np.sqrt((p**2).sum(axis=(-1, -2)) + (Q**2).sum(axis=(-1, -2)))[:, None, None]
    p, Q = p / length, Q / length
    params = {"U": U[:, None], "W": W[:, None].mT.copy()}
    blocks = curvature.hessian(instance.ONE, params, drawn, of="output").blocks
    flat = Q.mT.reshape(instances, -1)
    cross = blocks["U", "W"][:, 0]
    second = 2.0 * np.einsum("ni,nij,nj->n", p.reshape(instances, -1), cross, flat)
    first = np.einsum("ni,nij,nj->n", flat, blocks["W", "W"][:, 0], flat)

    s = _softmax(X @ W @ X.mT)
    moved = _less_outer(s, s)
    A = U @ X.mT  # [t, s]: u_t' x_s
    means = (s * A).sum(axis=-1), s @ X
    inner = (  # d_{tj}: [t, s, j]
        A[..., None] * X[:, None]
        - means[1][:, :, None, :] * A[..., None]
        - means[0][..., None, None] * X[:, None]
    )
    pulled = np.einsum("ntsj,ntsr,nrk->ntjk", inner, moved, X)  # d' phi' X
    held = np.einsum("nsj,ntsr,nrk->ntjk", X, moved, X)  # X_j' phi' X
    # q_j may be the rows or the columns of Q: covariances and third moments are symmetric
    printed = 2.0 * np.einsum("nta,nta,ntjk,njk->n", p, X, held, Q)
    yield equal("Term 2 as printed", printed, second, size=1.0)
    printed = np.einsum("nti,nia,nta,ntjk,njk->n", X, Q, X, pulled, Q)
    yield equal("Term 1 as printed", printed, first, size=1.0, role="step")
    mended = 2.0 * np.einsum("ntj,ntjk,nak,nta->n", p, held, Q, X)
    yield equal("Term 2 mended", mended, second, size=1.0, role="correction")
    mended = np.einsum("nij,nti,ntjk,nak,nta->n", Q, X, pulled, Q, X)
    yield equal("Term 1 mended", mended, first, size=1.0, role="correction")
    total = np.abs(first) + np.abs(second)
    bound = theory.multihead.hessian_bound(X, U)
    yield at_most("both terms, against the bound", total, bound, role="correction")
