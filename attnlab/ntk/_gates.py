r"""Gates of an encoder's hidden units, which the tokens of one sample mostly share.

Where attention is nearly uniform, as at a linear scaling, all tokens of a sample attend to nearly
the same mean and open nearly the same units. What the others' gates differ by from those of the
first token is then sparse, and products with them cost next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnlab._blas import inner, product
from attnlab.checks import Array, BoolArray
from attnlab.ntk._blocks import Outer, costs, token_sums

MANY = 2**18  # gates from which on it pays to look
FEW = 1 / 32  # of the gates may differ from the first token's
SPARSE = 8.0  # what a flop costs between sparse changes, in flops of a large product (measured)
AT_ONCE = 2**18  # token pairs held at a time: 2 MB


@dataclass(frozen=True)
class Gates:
    r"""Gradients $\sum_tg_{it}r_{it}^\top$ with $g_{it}=w$ where ``opened``, and 0 elsewhere."""

    opened: BoolArray  # (..., n, t, m)
    weights: Array  # w, (..., m)
    right: Array  # (..., n, t, q)
    lead: int

    @cached_property
    def outer(self) -> Outer:
        """The same with all gates as numbers."""
        return Outer(self.opened * self.weights[..., None, None, :], self.right, self.lead)

    @cached_property
    def split(self) -> tuple[Array, Any] | None:
        """Gates of the first tokens ``(n, m)`` and a sparse ``(n * t, m)`` of what the others
        differ by; None where that is not sparse.
        """
        if self.lead or self.opened.size < MANY:
            return None
        differs = self.opened != self.opened[:, :1]
        if np.count_nonzero(differs) > FEW * differs.size:
            return None
        from scipy.sparse import csr_array

        m = differs.shape[-1]
        at = np.flatnonzero(differs)
        unit = at % m
        sign = np.where(self.opened.ravel()[at], 1.0, -1.0)
        starts = np.searchsorted(at, np.arange(0, differs.size + 1, m))
        changes = csr_array((sign * self.weights[unit], unit, starts), shape=(differs.size // m, m))
        return self.opened[:, 0] * self.weights, changes

    def times(self, W: Array) -> Array:
        r"""$\sum_kg_{itk}w_k$ for rows of ``W (..., m, d)``, shape ``(..., n, t, d)``."""
        if self.split is None:
            left = self.outer.left
            flat = left.reshape(*left.shape[: self.lead], -1, left.shape[-1])
            return product(flat, W).reshape(self.right.shape)
        first, changes = self.split
        return np.asarray(product(first, W)[:, None] + (changes @ W).reshape(self.right.shape))

    def gram(self, other: Gates) -> Array:
        """Inner products, shape ``(..., n, n')``."""
        n, t, q = self.right.shape[-3:]
        units, m = self.opened.shape[-1], other.opened.shape[-3]
        dear = SPARSE * costs(n, m, t, 0, q)[0] > costs(n, m, t, units, q)[1]
        if dear or self.split is None or other.split is None:
            return self.outer.gram(other.outer)
        (first, changes), (first_too, changes_too) = self.split, other.split
        right, right_too = self.right.reshape(-1, q), other.right.reshape(-1, q)
        total, total_too = self.right.sum(axis=1), other.right.sum(axis=1)
        K = inner(first, first_too) * inner(total, total_too)
        mixed = (changes @ first_too.T) * inner(right, total_too)
        K += mixed.reshape(n, t, -1).sum(axis=1)
        if other is not self:
            mixed = (changes_too @ first.T) * inner(right_too, total)
        K += mixed.reshape(-1, t, n).sum(axis=1).T
        block = max(1, AT_ONCE // (len(right_too) * t)) * t
        for i in range(0, n * t, block):
            pairs = (changes[i : i + block] @ changes_too.T).toarray()
            pairs *= inner(right[i : i + block], right_too)
            K[i // t : (i + block) // t] += token_sums(pairs, t)
        return 0.5 * (K + K.T) if other is self else K
