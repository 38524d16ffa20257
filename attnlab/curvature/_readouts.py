r"""What is done with attended tokens: a linear readout (or a fixed head), or a relu layer.

A readout answers three questions: the gradient $h=\nabla_of$, the derivatives in its own
parameters, and how both turn when the attended tokens and the parameters move. The kinks of
relu are ignored: all second derivatives are those that hold almost everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from attnlab.checks import Array
from attnlab.models import Params


class Turn(NamedTuple):
    """What moves when attended tokens move by ``do`` and parameters along a direction."""

    df: Array  # output at fixed attended tokens, (..., n)
    dh: Array  # gradient in the attended tokens, (..., H, n, Q, d)
    grads: Callable[[Array, Array], Params]  # from b, db: the readout's part of the product


def outer(A: Array, R: Array) -> Array:
    r"""$\sum_NA_{Nx}R_{Ny}$ over samples and queries: ``(..., n, Q, x), (..., n, Q, y)``."""
    A = A.reshape(*A.shape[:-3], -1, A.shape[-1])
    R = R.reshape(*R.shape[:-3], -1, R.shape[-1])
    return np.asarray(A.swapaxes(-1, -2) @ R)


@dataclass(frozen=True)
class Projection:
    r"""$f=\omega\sum_{hq}\langle u_{hq},o_{hq}\rangle$, or a fixed head of one attended token."""

    name: str | None  # None: not trained
    h: Array  # gradient in the attended tokens, (..., H, n or 1, Q, d)
    weight: float = 1.0  # omega
    bend: float = 0.0  # the head's own Hessian, a multiple of the identity
    shared: bool = True  # one vector for all queries

    def jacobian(self, o: Array) -> Params:
        """Derivative of each output in the readout's parameters, ``(..., H, n, size)``."""
        if self.name is None:
            return {}
        rows = o.sum(axis=-2) if self.shared else o.reshape(*o.shape[:-2], -1)
        return {self.name: self.weight * rows}

    def cross(self, M: Array, right: Array) -> Params:
        r"""$\sum_{nq}\partial(M_{nq}h_{nq})\otimes r_{nq}$, natural ``(..., H, l, r, size)``."""
        if self.name is None:
            return {}
        *lead, n, Q, ell, d = M.shape
        rows = self.weight * M.reshape(*lead, n, Q, ell * d)
        if self.shared:
            found = outer(rows, right).reshape(*lead, ell, d, -1)
            return {self.name: found.swapaxes(-1, -2)}
        each = rows.swapaxes(-3, -2).swapaxes(-1, -2) @ right.swapaxes(-3, -2)  # (Q, l d, r)
        each = np.moveaxis(each.reshape(*lead, Q, ell, d, -1), (-4, -3, -2, -1), (-2, -4, -1, -3))
        return {self.name: each.reshape(*each.shape[:-2], Q * d)}

    def own(self, b: Array, o: Array) -> dict[tuple[str, str], Array]:
        """Second derivatives among the readout's parameters: none."""
        return {}

    def turn(self, o: Array, do: Array, direction: Params) -> Turn:
        """How output and gradients turn; ``b, db`` have the axes ``(..., 1, n, 1, 1)``."""
        dh = self.bend * do
        df = np.zeros((*o.shape[:-4], o.shape[-3]))
        name = self.name
        if name is None:
            return Turn(df, dh, lambda *_: {})
        dU = direction[name]
        if name == "v":
            dU = dU[..., None, None, None, :]
        else:
            dU = dU[..., None, None, :] if self.shared else dU[..., None, :, :]
        df = self.weight * (dU * o).sum(axis=(-1, -2, -4))

        def grads(b: Array, db: Array) -> Params:
            found = self.weight * (db * o + b * do).sum(axis=-3)
            found = found.sum(axis=-2) if self.shared else found
            return {name: found[..., 0, :] if name == "v" else found}

        return Turn(df, dh + self.weight * dU, grads)


@dataclass(frozen=True)
class Layer:
    r"""$f=c\sum_qw_O^\top\mathrm{relu}(W_Vo_q)$; arrays have one head."""

    V: Array  # (..., 1, 1, m, d)
    w: Array  # (..., 1, 1, 1, m)
    c: float
    z: Array  # pre-activations, (..., 1, n, Q, m)
    gate: Array  # 1 where they are positive
    h: Array

    @staticmethod
    def at(o: Array, W_V: Array, w_O: Array, c: float) -> Layer:
        """The layer at attended tokens ``o``."""
        V, w = W_V[..., None, None, :, :], w_O[..., None, None, None, :]
        z = o @ V.swapaxes(-1, -2)
        gate = (z > 0.0).astype(float)
        return Layer(V, w, c, z, gate, c * ((gate * w) @ V))

    @property
    def bend(self) -> float:
        """Relu is piecewise linear."""
        return 0.0

    def jacobian(self, o: Array) -> Params:
        """Derivative of each output in the readout's parameters, ``(..., 1, n, size)``."""
        inner = (self.gate * self.w).swapaxes(-1, -2) @ o
        hidden = np.maximum(self.z, 0.0).sum(axis=-2)
        return {"W_V": self.c * inner.reshape(*inner.shape[:-2], -1), "w_O": self.c * hidden}

    def cross(self, M: Array, right: Array) -> Params:
        r"""$\sum_{nq}\partial(M_{nq}h_{nq})\otimes r_{nq}$, natural ``(..., 1, l, r, size)``."""
        *lead, n, Q, ell, d = M.shape
        r, m = right.shape[-1], self.gate.shape[-1]
        both = (right[..., :, None] * self.gate[..., None, :]).reshape(*lead, n, Q, r * m)
        E = outer(self.c * M.reshape(*lead, n, Q, ell * d), both)
        E = np.moveaxis(E.reshape(*lead, ell, d, r, m), -3, -1)  # (l, r, m, d)
        V, w = self.V[..., None, :, :], self.w[..., 0, :, None]
        return {
            "W_V": (E * w[..., None, :, :]).reshape(*lead, ell, r, m * d),
            "w_O": (E * V).sum(axis=-1),
        }

    def own(self, b: Array, o: Array) -> dict[tuple[str, str], Array]:
        r"""$\partial^2f/\partial W_V\partial w_O$: neuron k meets only itself; the rest is 0."""
        each = self.c * outer(b * self.gate, o)  # (..., 1, m, d)
        *lead, m, d = each.shape
        block = np.zeros((*lead, m, d, m))
        k = np.arange(m)
        block[..., k, :, k] = np.moveaxis(each, -2, 0)
        return {("W_V", "w_O"): block.reshape(*lead, m * d, m)}

    def turn(self, o: Array, do: Array, direction: Params) -> Turn:
        """How output and gradients turn; ``b, db`` have the axes ``(..., 1, n, 1, 1)``."""
        dV, dw = direction["W_V"][..., None, None, :, :], direction["w_O"][..., None, None, None, :]
        gate, w, c, V = self.gate, self.w, self.c, self.V
        hidden, moved = np.maximum(self.z, 0.0), o @ dV.swapaxes(-1, -2)
        df = c * (dw * hidden + gate * w * moved).sum(axis=(-1, -2, -4))
        dh = c * ((gate * dw) @ V + (gate * w) @ dV)
        dz = gate * (do @ V.swapaxes(-1, -2) + moved)

        def grads(b: Array, db: Array) -> Params:
            inner = outer(gate * (db * w + b * dw), o) + outer(gate * (b * w), do)
            top = (db * hidden + b * dz).sum(axis=(-3, -2))
            return {"W_V": c * inner[..., 0, :, :], "w_O": c * top[..., 0, :]}

        return Turn(df, dh, grads)


Readout: TypeAlias = Projection | Layer
