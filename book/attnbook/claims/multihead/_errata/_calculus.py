"""Slips in Appendix A: the proof of the derivatives, and the quadratic form of the Hessian.

The paper's W has the query on the left; the library's is its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal, slope
from attnbook.claims.multihead import _instances as made
from attnbook.claims.multihead._errata import _parts as parts
from attnbook.claims.multihead._errata._model import diagonal, differences, norms, outer, softmax
from attnlab import curvature
from attnlab.checks import Array


def _rests(value: Callable[[float], Array], linear: Array, sizes: Array) -> Array:
    """What a first-order expansion leaves, at steps of the given sizes."""
    start = value(0.0)
    return np.array([np.abs(value(h) - start - h * linear).max() for h in sizes])


@measures("multihead.erratum-9", instances=20)
def erratum_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, d = 4, 3
    drawn = made.bounded(rng, trials=instances, n=1, T=T, d=d)
    X, W = drawn.X[:, 0], rng.standard_normal((instances, d, d))
    g = X @ W @ X.mT  # rows g_t, in the paper's convention
    s = softmax(g)
    moved = diagonal(s) - outer(s)
    number = differences(np.full((instances, 1), float(d)))  # softmax of one number is 1
    yield equal("norm of phi'(d), d the dimension", norms(number), norms(moved[:, 0]))
    shown = norms(differences(g) - moved)
    yield at_most("distance of phi'(v) from differences", shown, 1e-8, role="correction")

    sizes = np.geomspace(1e-5, 1e-2, 7)
    delta = rng.standard_normal(g.shape)
    turn = rng.standard_normal(W.shape)
    b, u = rng.standard_normal((2, instances, d, 1))
    p, q = X @ u, X @ b  # p_t and q_t of one token, up to its factor
    through = X @ turn @ X.mT
    flat = (moved @ through[..., None])[..., 0]  # of phi(g_t) along the turn

    def softened(h: float) -> Array:
        return softmax(g + h * delta)

    def term_1(h: float) -> Array:
        return np.asarray(softmax(X @ (W + h * turn) @ X.mT) @ (p * q))

    def term_2(h: float) -> Array:
        rows = softmax(X @ (W + h * turn) @ X.mT)
        return np.asarray((rows @ p) * (rows @ q))

    for name, value, linear in (
        ("(26)", softened, (moved @ delta[..., None])[..., 0]),
        ("(32)", term_1, flat @ (p * q)),
        ("(34)", term_2, (flat @ p) * (s @ q) + (s @ p) * (flat @ q)),
    ):
        rests = _rests(value, linear, sizes)
        vanishing = rests[0] / sizes[0] ** 2 / (rests[-1] / sizes[-1] ** 2)
        what = f"remainder of {name} over the square, step 1e-5 against 1e-2"
        yield at_most(what, vanishing, 0.1, role="step")
        power = slope(sizes, rests)
        yield equal(f"exponent of {name}'s remainder", power, 2.0, within=0.05, role="correction")

    a = rng.standard_normal((instances, T))
    params = {"U": a[:, None, :, None] * b[:, None, :, :].mT, "W": W[:, None].mT.copy()}
    truth = parts.ONE.forward(params, drawn)[:, 0]  # <a, grad_U Phi b> is linear in U = a b'
    entry = np.diagonal(s, axis1=-2, axis2=-1)  # the t-th entry of phi(g_t), a number
    spread = (a * entry * q[..., 0].sum(axis=-1, keepdims=True)).sum(axis=-1)
    whole = (a * (s @ q)[..., 0]).sum(axis=-1)
    what = "sum of a_t b' X' phi against <a, grad_U b>"
    yield equal(f"{what}, phi_t(g)", spread, truth, size=1.0, role="step")
    yield equal(f"{what}, phi(g_t)", whole, truth, size=1.0, role="correction")


@measures("multihead.erratum-10", instances=50)
def erratum_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, d = 4, 3
    drawn = made.bounded(rng, trials=instances, n=1, T=T, d=d)
    X = drawn.X[:, 0]
    W, Q = rng.standard_normal((2, instances, d, d))  # the paper's: query left
    U, p = rng.standard_normal((2, instances, T, d))
    length = np.sqrt((p**2).sum(axis=(-1, -2)) + (Q**2).sum(axis=(-1, -2)))[:, None, None]
    p, Q = p / length, Q / length
    params = {"U": U[:, None], "W": W[:, None].mT.copy()}
    blocks = curvature.hessian(parts.ONE, params, drawn, of="output").blocks
    flat = Q.mT.reshape(instances, -1)
    cross = blocks["U", "W"][:, 0]
    second = 2.0 * np.einsum("ni,nij,nj->n", p.reshape(instances, -1), cross, flat)
    first = np.einsum("ni,nij,nj->n", flat, blocks["W", "W"][:, 0], flat)

    s = softmax(X @ W @ X.mT)
    moved = diagonal(s) - outer(s)
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
