r"""The Hessian as a matrix: attention is a distribution, its curvature are central moments.

With $\delta_s=x_s-o$ and $A_s=\langle h,\delta_s\rangle$, $h=\nabla_of$, each query gives
$M=\sum_ss_s\delta_s\delta_s^\top$ (covariance) and $\kappa=\sum_ss_sA_s\delta_s\delta_s^\top$
(third central moment). Gradients are $L^\top Mh\otimes r$ and
$\partial^2f/\partial S_{ji}\partial S'_{lk}=(L^\top\kappa L')_{jl}\,r_ir'_k$, plus $M\nabla^2h\,M$
for a curved head. Two factors also meet in the logits: $x_s^\top dK\,dQ^\top z$ adds
$(\nabla_Wf)_{ak}\,\delta_{rs}$ to the block of $K_{ar}$ and $Q_{ks}$.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.checks import Array
from attnlab.curvature._network import (
    AnyModel,
    Network,
    Problem,
    Slot,
    order,
    parts,
    read,
    size,
    weights,
)
from attnlab.curvature._readouts import outer
from attnlab.models import Params


def dense(model: AnyModel, params: Params, problem: Problem, of: str) -> Array:
    """The Hessian of the loss, or of the sum of the outputs, shape ``(..., p, p)``."""
    places = order(model, problem)
    p, names = size(places), list(places)
    pairs = [(x, y) for k, x in enumerate(names) for y in names[k:]]
    b, a = weights(model, params, problem, of)
    matrix = np.zeros((*problem.trials, p, p))
    H = int(params["W"].shape[-3]) if "U" in params else 1
    for part in parts(problem, _work(params, problem, H)):
        net = read(model, params, problem, part)
        delta = net.X[..., None, :, :] - net.o[..., None, :]
        A = (delta @ net.readout.h[..., None])[..., 0]
        B = b[..., None, part, None, None]
        for (first, second), block in _second(net, delta, A, B):
            _add(matrix, places[first], places[second], block)
        if (a != 0.0).any():
            J = _jacobian(net, delta, A, places, p)
            scaled = J * a[..., part, None]
            for x, y in pairs:
                rows = scaled[..., places[x]].swapaxes(-1, -2)
                matrix[..., places[x], places[y]] += rows @ J[..., places[y]]
    for x, y in pairs:  # so far only blocks on or above the diagonal were filled
        block = matrix[..., places[x], places[y]]
        if x == y:
            block[...] = 0.5 * (block + block.swapaxes(-1, -2))
        else:
            matrix[..., places[y], places[x]] = block.swapaxes(-1, -2)
    return matrix


def _work(params: Params, problem: Problem, H: int) -> int:
    """Size of the working arrays of one sample."""
    d, widest = problem.d, max(params[name].shape[-2] for name in params if params[name].ndim > 1)
    m = max([widest, d, *(params[name].shape[-1] for name in params)])
    return int(H * problem.T * (problem.T * d + d * d) + problem.T * m * m)


def _second(
    net: Network, delta: Array, A: Array, b: Array
) -> Iterator[tuple[tuple[str, str], Array]]:
    """Blocks of the outputs' Hessian summed with weights ``b``, by head ``(..., H, size, size)``.

    Of each pair of parameters one order is given: the one in which the model names them, which
    `_add` restores.
    """
    M = delta.swapaxes(-1, -2) @ (delta * net.s[..., None])
    kappa = delta.swapaxes(-1, -2) @ (delta * (net.s * A)[..., None])
    if net.readout.bend:
        kappa = kappa + net.readout.bend * (M @ M)
    M, kappa = b[..., None] * M, b[..., None] * kappa
    for k, slot in enumerate(net.slots):
        rows = _left(slot, M)
        for name, block in net.readout.cross(rows, slot.right).items():
            if slot.flipped:
                block = block.swapaxes(-3, -2)
            yield (slot.name, name), block.reshape(*block.shape[:-3], -1, block.shape[-1])
        for other in net.slots[k:]:
            inner = _left(other, _left(slot, kappa).swapaxes(-1, -2)).swapaxes(-1, -2)
            block = _pair(inner, slot.right, other.right)
            if other is not slot:  # d2W = 2 dK dQ': the term +aI
                g = (M @ net.readout.h[..., None])[..., 0]
                G, i = outer(g, other.right), np.arange(slot.right.shape[-1])
                block[..., :, i, i, :] += G[..., :, None, :]
            yield (slot.name, other.name), _stored(block, slot.flipped, other.flipped)
    yield from net.readout.own(b, net.o).items()


def _left(slot: Slot, rows: Array) -> Array:
    """The key side of ``(..., H, n, Q, d, x)`` in the slot's coordinates."""
    return rows if slot.left is None else slot.left.swapaxes(-1, -2)[..., None, None, :, :] @ rows


def _pair(inner: Array, first: Array, second: Array) -> Array:
    """Sum of ``inner[j, l] first[i] second[k]`` over samples and queries, as (j, i, l, k)."""
    *lead, _, _, j, ell = inner.shape
    both = first[..., :, None] * second[..., None, :]
    i, k = both.shape[-2:]
    flat = both.reshape(*both.shape[:-2], i * k)
    found = outer(inner.reshape(*inner.shape[:-2], j * ell), flat)
    return found.reshape(*lead, j, ell, i, k).swapaxes(-3, -2)


def _stored(block: Array, first: bool, second: bool) -> Array:
    """From natural (j, i, l, k) to the matrix of the parameters as the model keeps them."""
    if first:
        block = block.swapaxes(-4, -3)
    if second:
        block = block.swapaxes(-2, -1)
    rows, columns = block.shape[-4] * block.shape[-3], block.shape[-2] * block.shape[-1]
    return block.reshape(*block.shape[:-4], rows, columns)


def _add(matrix: Array, first: slice, second: slice, block: Array) -> None:
    """Add blocks by head on or above the diagonal of parameters; heads do not meet."""
    if first.start > second.start:
        first, second, block = second, first, block.swapaxes(-1, -2)
    *_, H, rows, columns = block.shape
    for h in range(H):
        i, j = first.start + h * rows, second.start + h * columns
        matrix[..., i : i + rows, j : j + columns] += block[..., h, :, :]


def _jacobian(net: Network, delta: Array, A: Array, places: dict[str, slice], p: int) -> Array:
    """Gradient of each output in all parameters, ``(..., n, p)``."""
    g = ((net.s * A)[..., None, :] @ delta)[..., 0, :]
    found = net.readout.jacobian(net.o)
    for slot in net.slots:
        each = slot.onto(g).swapaxes(-1, -2) @ slot.right
        each = each.swapaxes(-1, -2) if slot.flipped else each
        found[slot.name] = each.reshape(*each.shape[:-2], -1)
    J = np.empty((*g.shape[:-4], g.shape[-3], p))
    for name, rows in found.items():
        by_sample = rows.swapaxes(-3, -2)  # (..., n, H, size)
        J[..., places[name]] = by_sample.reshape(*by_sample.shape[:-2], -1)
    return J
