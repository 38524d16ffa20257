"""Section 3 and Appendix A: derivatives of one head, and how large they can be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, vanishes
from attnbook.claims.multihead import _instances as instance
from attnlab import curvature, ntk
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem

STEP = 1e-5  # of central differences: their error is about STEP^2


def _sizes(array: Array, axes: int) -> Array:
    return np.asarray(np.sqrt((array**2).sum(axis=tuple(range(-axes, 0)))))


def _away(found: Array, truth: Array, axes: int) -> Array:
    """Distance relative to the size of the truth, with a floor where that is tiny."""
    size = _sizes(truth, axes)
    return np.asarray(_sizes(found - truth, axes) / np.maximum(size, 1e-3 * size.max()))


def _moved(params: Params, direction: Params, step: float) -> Params:
    return {name: part + step * direction[name] for name, part in params.items()}


@measures("multihead.lemma-1")
def lemma_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = instance.bounded(rng, trials=instances, n=1, T=4, d=3, R=1.5)
    params = instance.heads(rng, drawn, 1)
    X, U, W = drawn.X[:, 0], params["U"][:, 0], params["W"][:, 0]
    a, b, c = (rng.standard_normal((instances, size)) for size in (4, 3, 3))
    gU, gW = theory.multihead.model_gradient(X, W, U)

    # central differences of the output along random directions
    along = {name: rng.standard_normal(part.shape) for name, part in params.items()}
    ahead, behind = (
        instance.ONE.forward(_moved(params, along, s), drawn)[:, 0] for s in (STEP, -STEP)
    )
    slope = (gU * along["U"][:, 0]).sum(axis=(-1, -2)) + (gW * along["W"][:, 0]).sum(axis=(-1, -2))
    size = np.hypot(_sizes(gU, 2), _sizes(gW, 2))
    error = np.abs(slope - (ahead - behind) / (2.0 * STEP)) / size
    yield vanishes("(1), (2): relative distance from central differences", error, within=1e-6)
    exact = ntk.jacobian(instance.ONE, params, drawn)
    yield vanishes(
        "(1): distance from the library's", _away(gU, exact["U"][:, 0, 0], 2), within=1e-9
    )
    yield vanishes(
        "(2): distance from the library's", _away(gW, exact["W"][:, 0, 0], 2), within=1e-9
    )
    transposed = theory.multihead.model_gradient(X, W.swapaxes(-1, -2), U)[1]
    yield vanishes(
        "(2) with W transposed", _away(transposed, gW, 2).max(), within=1e-6, role="outside"
    )

    # the formulas for second derivatives, contracted as the lemma has it
    hessian = curvature.hessian(instance.ONE, params, drawn, of="output").blocks
    mixed = hessian["U", "W"].reshape(instances, 4, 3, 3, 3)
    third = theory.multihead.mixed_derivative(X, W, a, b)
    truth = np.einsum("ntpij,nt,np->nij", mixed, a, b)
    yield vanishes("(3): distance from the library's Hessian", _away(third, truth, 2), within=1e-9)
    square = hessian["W", "W"].reshape(instances, 3, 3, 3, 3)
    fourth = theory.multihead.second_derivative(X, W, U, b, c)
    truth = np.einsum("npqij,np,nq->nij", square, b, c)
    yield vanishes("(4): distance from the library's Hessian", _away(fourth, truth, 2), within=1e-9)

    # ... and against central differences of the gradients
    turn = rng.standard_normal(W.shape)
    ahead_U, ahead_W = theory.multihead.model_gradient(X, W + STEP * turn, U)
    behind_U, behind_W = theory.multihead.model_gradient(X, W - STEP * turn, U)
    means = np.einsum("nt,ntp,np->n", a, ahead_U - behind_U, b) / (2.0 * STEP)
    error = np.abs((third * turn).sum(axis=(-1, -2)) - means) / (_sizes(third, 2) + 1e-3)
    yield vanishes("(3): relative distance from central differences", error, within=1e-6)
    moved = np.einsum("np,npq,nq->n", b, ahead_W - behind_W, c) / (2.0 * STEP)
    error = np.abs((fourth * turn).sum(axis=(-1, -2)) - moved) / (_sizes(fourth, 2) + 1e-3)
    yield vanishes("(4): relative distance from central differences", error, within=1e-6)


def _largest(problem: SequenceProblem, params: Params) -> Array:
    """Spectral norm of the output's Hessian, one a trial."""
    low, high = curvature.hessian(instance.ONE, params, problem, of="output").extremes
    return np.maximum(np.abs(low), np.abs(high))[..., 0]


def _single(
    rng: np.random.Generator, instances: int
) -> Iterator[tuple[SequenceProblem, Params, float]]:
    """Random tokens, and tokens on a line, where bounds are nearly attained."""
    for T, d, R in ((4, 3, 1.0), (3, 2, 2.0), (6, 1, 1.0), (2, 4, 1.5)):
        for family in (instance.bounded, instance.on_a_line):
            drawn = family(rng, trials=instances, n=1, T=T, d=d, R=R)
            params = instance.heads(rng, drawn, 1)
            yield drawn, params, R
    drawn = instance.on_a_line(rng, trials=instances, n=1, T=6, d=1, R=1.0)
    aligned = {"U": drawn.X.copy(), "W": np.zeros((instances, 1, 1, 1))}
    yield drawn, aligned, 1.0  # u_t along x_t: all covariances have one sign


def _shares(rng: np.random.Generator, instances: int) -> dict[str, Array]:
    """Each left side as a share of its bound, over all instances."""
    found: dict[str, list[Array]] = {}
    bound = theory.multihead
    for drawn, params, R in _single(rng, instances):
        X, U = drawn.X[:, 0], params["U"][:, 0]
        exact = ntk.jacobian(instance.ONE, params, drawn)
        gU, gW = _sizes(exact["U"][:, 0, 0], 2), _sizes(exact["W"][:, 0, 0], 2)
        both, bent = np.hypot(gU, gW), _largest(drawn, params)
        size = instance.longest_readout(params)
        for name, share in {
            "(1)": gU / bound.gradient_U_bound(X),
            "(2)": gW / bound.gradient_W_bound(X, U),
            "(2) sharp": gW / bound.gradient_W_bound(X, U, sharp=True),
            "(3)": both / bound.gradient_bound(X, U),
            "(3) sharp": both / bound.gradient_bound(X, U, sharp=True),
            "(4)": bent / bound.hessian_bound(X, U),
            "(4) sharp": bent / bound.hessian_bound(X, U, sharp=True),
            "(A1)": both / bound.beta1(size, T=drawn.T, R=R),
            "(A2)": bent / bound.beta3(size, T=drawn.T, d=drawn.d, R=R),
            "(A2) sharp": bent / bound.beta3(size, T=drawn.T, d=drawn.d, R=R, sharp=True),
        }.items():
            found.setdefault(name, []).append(np.asarray(share))
    return {name: np.concatenate(parts) for name, parts in found.items()}


@measures("multihead.proposition-5", instances=60)
def proposition_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    shares = _shares(rng, instances)
    for name in ("(1)", "(2)", "(3)", "(4)", "(A1)", "(A2)"):
        yield at_most(f"{name}, as a share of its bound", shares[name], 1.0)
    for name in ("(2)", "(3)", "(4)", "(A2)"):
        share = shares[f"{name} sharp"]
        yield at_most(f"{name}, as a share of its sharp bound", share, 1.0, role="correction")
