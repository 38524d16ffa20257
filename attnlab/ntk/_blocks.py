r"""Gradients of one parameter, sample by sample, and their inner products.

In every model the gradient of the output in a matrix is a short sum of outer products,
$\nabla f_i=\sum_t\ell_{it}r_{it}^\top$ over tokens. Such a block is never multiplied out unless
that is the cheaper way.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from attnlab._blas import inner
from attnlab.checks import Array

PAIRS = 2**20  # token pairs worked on at a time: 8 MB
ENTRIES = 2**20  # entries of explicit gradients worked on at a time
THIN = (
    4.0  # what a flop of many products of thin matrices costs, in flops of a large one (measured)
)
SWEEPS = 20.0  # what multiplying and summing over token pairs costs, in flops a pair (measured)


@dataclass(frozen=True)
class Plain:
    """Gradients as they are: ``values (..., n, *shape)`` with ``lead`` trial axes."""

    values: Array
    lead: int

    @property
    def size(self) -> int:
        """Entries, all samples and trials together."""
        return int(self.values.size)

    def dense(self) -> Array:
        """The gradients, ``(..., n, *shape)``."""
        return self.values

    def combine(self, weights: Array) -> Array:
        r"""$\sum_iw_i\nabla f_i$, shape ``(..., *shape)``."""
        total = weights[..., None, :] @ _flat(self.values, self.lead)
        return total.reshape(*weights.shape[:-1], *self.values.shape[self.lead + 1 :])

    def apply(self, direction: Array) -> Array:
        r"""$\langle\nabla f_i,D\rangle$, shape ``(..., n)``."""
        column = direction.reshape(*direction.shape[: self.lead], -1, 1)
        return np.asarray((_flat(self.values, self.lead) @ column)[..., 0])

    def gram(self, other: Plain) -> Array:
        """Inner products, shape ``(..., n, n')``."""
        mine = _flat(self.values, self.lead)
        theirs = mine if other is self else _flat(other.values, other.lead)
        return inner(mine, theirs)


@dataclass(frozen=True)
class Outer:
    r"""Gradients $\sum_t\ell_{it}r_{it}^\top$: ``left (..., n, t, p)``, ``right (..., n, t, q)``.

    Axes between the ``lead`` trial axes and ``n`` are heads: each has a matrix of its own.
    """

    left: Array
    right: Array
    lead: int

    @property
    def size(self) -> int:
        """Entries of all gradients together, if they were formed."""
        return int(prod(self.left.shape[:-2])) * int(self.left.shape[-1] * self.right.shape[-1])

    def dense(self) -> Array:
        """The gradients, ``(..., n, p, q)`` (``(..., n, H, p, q)`` with heads)."""
        return np.moveaxis(self.left.swapaxes(-1, -2) @ self.right, -3, self.lead)

    def combine(self, weights: Array) -> Array:
        r"""$\sum_iw_i\nabla f_i$, shape ``(..., p, q)``."""
        heads = self.left.ndim - 3 - self.lead
        shape = (*weights.shape[:-1], *(1,) * heads, weights.shape[-1], 1, 1)
        weighted = self.left * weights.reshape(shape)
        return np.asarray(_tokens(weighted).swapaxes(-1, -2) @ _tokens(self.right))

    def apply(self, direction: Array) -> Array:
        r"""$\langle\nabla f_i,D\rangle=\sum_t\ell_{it}^\top Dr_{it}$, shape ``(..., n)``."""
        moved = _tokens(self.left) @ direction
        moved *= _tokens(self.right)
        each = moved.sum(axis=-1).reshape(self.left.shape[:-1]).sum(axis=-1)
        return np.asarray(each.sum(axis=tuple(range(self.lead, each.ndim - 1))))

    def gram(self, other: Outer) -> Array:
        r"""Inner products, shape ``(..., n, n')``, by the cheaper of two exact forms.

        Over pairs of tokens,
        $\sum_{ts}\langle\ell_{it},\ell'_{js}\rangle\langle r_{it},r'_{js}\rangle$, or between the
        matrices themselves.
        """
        n, t, p = self.left.shape[-3:]
        over_pairs, formed = costs(n, other.left.shape[-3], t, p, self.right.shape[-1])
        each = self._pairs(other) if over_pairs < formed else self._formed(other)
        return np.asarray(each.sum(axis=tuple(range(self.lead, each.ndim - 2))))

    def _pairs(self, other: Outer) -> Array:
        n, t = self.left.shape[-3:-1]
        m, same = other.left.shape[-3], other is self
        heads = self.left.shape[:-3]
        block = max(1, int((PAIRS / max(1, prod(heads))) ** 0.5) // t)
        K = np.empty((*heads, n, m))
        for i in range(0, n, block):
            mine = (..., slice(i, i + block), slice(None), slice(None))
            left, right = _tokens(self.left[mine]), _tokens(self.right[mine])
            for j in range(0, i + 1 if same else m, block):
                if same and j == i:
                    left_too, right_too = left, right
                else:
                    theirs = (..., slice(j, j + block), slice(None), slice(None))
                    left_too, right_too = _tokens(other.left[theirs]), _tokens(other.right[theirs])
                products = inner(left, left_too)
                products *= inner(right, right_too)
                found = token_sums(products, t)
                if same and j == i:  # sums over rows and columns round differently
                    found = 0.5 * (found + found.swapaxes(-1, -2))
                K[..., i : i + block, j : j + block] = found
                if same and j < i:
                    K[..., j : j + block, i : i + block] = found.swapaxes(-1, -2)
        return K

    def _formed(self, other: Outer) -> Array:
        n, m, same = self.left.shape[-3], other.left.shape[-3], other is self
        heads, (p, q) = self.left.shape[:-3], (self.left.shape[-1], self.right.shape[-1])
        block = max(1, ENTRIES // (prod(heads) * max(n, m) * q))
        K = np.zeros((*heads, n, m))
        for k in range(0, p, block):
            mine = self._rows(slice(k, k + block))
            K += inner(mine, mine if same else other._rows(slice(k, k + block)))
        return K

    def _rows(self, part: slice) -> Array:
        formed = self.left[..., part].swapaxes(-1, -2) @ self.right
        return np.asarray(formed.reshape(*formed.shape[:-2], -1))


Block = Plain | Outer


def costs(n: int, m: int, t: int, p: int, q: int) -> tuple[float, float]:
    """Flops of inner products of n and m samples: over pairs of tokens, between matrices."""
    return n * m * t * t * (p + q + SWEEPS), p * q * (n * m + THIN * t * (n + m))


def _flat(values: Array, lead: int) -> Array:
    return values.reshape(*values.shape[: lead + 1], -1)


def _tokens(side: Array) -> Array:
    """Samples and tokens as one axis."""
    return side.reshape(*side.shape[:-3], -1, side.shape[-1])


def token_sums(products: Array, t: int) -> Array:
    """Sums over ``t x t`` blocks of the last two axes."""
    rows, columns = products.shape[-2] // t, products.shape[-1] // t
    if t == 1:
        return products
    over_rows = products.reshape(*products.shape[:-2], rows, t, columns * t).sum(axis=-2)
    return np.asarray(over_rows.reshape(*over_rows.shape[:-1], columns, t).sum(axis=-1))
