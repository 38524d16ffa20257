r"""Constraints $\langle F_k,W\rangle\ge1$ as rows: Gram matrix, combinations, margins.

The solvers know rows only. For attention a feature $F=(x_\alpha-x_t)z^\top$ has rank one and is
never formed; for a decoder or a generalized SVM it is a plain vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from attnlab._blas import BLAS, squares
from attnlab.checks import Array, BoolArray, IntArray

Found = TypeVar("Found")
FEW = 24  # entries of a row up to which the browser takes them faster one by one
MANY = 64  # rows from which SciPy multiplies faster there (three times)


class kept(Generic[Found]):  # noqa: N801 (used as a decorator, like functools.cached_property)
    """`functools.cached_property` without the lock that it takes in Python 3.11."""

    def __init__(self, compute: Callable[[Any], Found]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, rows: Any, owner: type | None = None) -> Found:
        found = rows.__dict__[self.compute.__name__] = self.compute(rows)
        return found


class Rows(Protocol):
    """``B`` systems of ``m`` constraints; rows that are not valid are padding."""

    @property
    def valid(self) -> BoolArray:
        """Which rows count, ``(B, m)``."""

    @property
    def full(self) -> bool:
        """Whether all rows count."""

    @property
    def lengths(self) -> Array:
        """Norms of the features, ``(B, m)``."""

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest length."""

    @property
    def gram(self) -> Array:
        """Inner products of the features, ``(B, m, m)``."""

    def combine(self, weights: Array) -> Array:
        r"""$W=\sum_k\lambda_kF_k$, ``(B, ...)``."""

    def apply(self, W: Array) -> Array:
        r"""$\langle F_k,W\rangle$, ``(B, m)``."""

    def dense(self, index: int) -> tuple[Array, Callable[[Array], Array]]:
        """The valid features of one system in coordinates of their span, and the way back."""

    def take(self, index: IntArray | slice, dtype: Any = np.float64) -> Rows:
        """Some of the systems, in another precision if need be."""


class _Shared:
    """What both kinds of rows know of themselves."""

    valid: BoolArray
    lengths: Any

    @kept
    def full(self) -> bool:
        """Whether all rows count."""
        return bool(self.valid.all())

    @kept
    def span(self) -> tuple[float, float]:
        """The least and the largest length."""
        flat = self.lengths.reshape(-1)
        if not flat.size:
            return 1.0, 1.0
        return float(np.minimum.reduce(flat)), float(np.maximum.reduce(flat))


@dataclass(frozen=True)
class RankOne(_Shared):
    r"""Features $d_{it}z_i^\top$ of attention: ``left (B, n, t, d)``, ``right (B, n, e)``."""

    left: Array
    right: Array
    valid: BoolArray

    @kept
    def lengths(self) -> Array:
        """Norms of the features."""
        return np.asarray(np.sqrt(self.gram.diagonal(axis1=1, axis2=2)))

    @kept
    def gram(self) -> Array:
        r"""$(DD^\top)\circ(ZZ^\top)$."""
        B, n, t, d = self.left.shape
        left = self.left.reshape(B, n * t, d)
        K = _squares(left)
        queries = (self.right @ self.right.swapaxes(1, 2)).repeat(t, axis=2)
        by_sample = K.reshape(B, n, t, n * t)  # a view
        by_sample *= queries[:, :, None, :]
        return K

    def combine(self, weights: Array) -> Array:
        """Weighted sum of the features."""
        B, n, t, _ = self.left.shape
        P = (weights.reshape(B, n, 1, t) @ self.left)[:, :, 0]
        return np.asarray(P.swapaxes(1, 2) @ self.right)

    def apply(self, W: Array) -> Array:
        """Inner products with W."""
        B, n, t, _ = self.left.shape
        r = self.right @ W.swapaxes(1, 2)
        return np.asarray((self.left @ r[..., None]).reshape(B, n * t))

    def dense(self, index: int) -> tuple[Array, Callable[[Array], Array]]:
        """Products of the coordinates in the spans of the two sides."""
        n, t, d = self.left[index].shape
        keep = self.valid[index]
        left, U = _coordinates(self.left[index].reshape(n * t, d)[keep])
        right, V = _coordinates(self.right[index])
        owner = np.repeat(np.arange(n), t)[keep]
        outer: Array = left[:, :, None] * right[owner][:, None, :]
        shape = outer.shape[1:]
        return outer.reshape(len(left), -1), lambda w: np.asarray(U @ w.reshape(shape) @ V.T)

    def take(self, index: IntArray | slice, dtype: Any = np.float64) -> RankOne:
        """Some of the systems."""
        left, right = (side[index].astype(dtype, copy=False) for side in (self.left, self.right))
        return RankOne(left, right, self.valid[index])

    def tamed(self) -> tuple[RankOne, Array]:
        """The same with sizes near 1, by powers of two, and the factor that undoes it on W."""
        sides = (self.left, self.right)
        sizes = [np.abs(side).reshape(len(side), -1).max(axis=1) for side in sides]
        powers = [np.exp2(-np.round(np.log2(np.where(size > 0.0, size, 1.0)))) for size in sizes]
        left = self.left * powers[0][:, None, None, None]
        right = self.right * powers[1][:, None, None]
        return RankOne(left, right, self.valid), powers[0] * powers[1]


@dataclass(frozen=True)
class Dense(_Shared):
    """Features as they are, ``(B, m, D)``."""

    features: Array
    valid: BoolArray

    @kept
    def lengths(self) -> Array:
        """Norms of the features."""
        return np.asarray(np.linalg.norm(self.features, axis=2))

    @kept
    def gram(self) -> Array:
        """Inner products."""
        return _squares(self.features)

    def combine(self, weights: Array) -> Array:
        """Weighted sum of the features."""
        return np.asarray((weights[:, None, :] @ self.features)[:, 0])

    def apply(self, W: Array) -> Array:
        """Inner products with W."""
        return np.asarray((self.features @ W[..., None])[..., 0])

    def tamed(self) -> tuple[Dense, Array]:
        """The same with sizes near 1, by powers of two, and the factor that undoes it on W."""
        size = np.abs(self.features).reshape(len(self.features), -1).max(axis=1)
        power = np.exp2(-np.round(np.log2(np.where(size > 0.0, size, 1.0))))
        return Dense(self.features * power[:, None, None], self.valid), power

    def dense(self, index: int) -> tuple[Array, Callable[[Array], Array]]:
        """The features in coordinates of their span."""
        coordinates, U = _coordinates(self.features[index][self.valid[index]])
        return coordinates, lambda w: np.asarray(U @ w)

    def take(self, index: IntArray | slice, dtype: Any = np.float64) -> Dense:
        """Some of the systems."""
        return Dense(self.features[index].astype(dtype, copy=False), self.valid[index])


def among(K: Array, inside: IntArray, rows: Array | None = None) -> Array:
    """Rows and columns of a matrix that belong to some of its indices; ``rows`` if at hand."""
    if not BLAS and len(inside) > FEW:
        return np.asarray(K[inside[:, None], inside])
    # "wrap" because it is quicker than a check of every index
    return (K.take(inside, 0) if rows is None else rows).take(inside, 1, mode="wrap")


def _squares(rows: Array) -> Array:
    """Inner products of the rows of each system, ``(B, m, m)``."""
    B, m, _ = rows.shape
    if BLAS or m < MANY or rows.dtype != np.float64:
        return np.asarray(rows @ rows.swapaxes(1, 2))
    found = np.empty((B, m, m))
    for each, K in zip(rows, found, strict=True):
        K[...] = squares(each)
    return found


def _coordinates(vectors: Array) -> tuple[Array, Array]:
    """The vectors in an orthonormal basis of a space that holds them, and that basis."""
    count, size = vectors.shape
    if count >= size:
        return vectors, np.eye(size)
    basis, triangle = np.linalg.qr(vectors.T)
    return np.asarray(triangle.T), np.asarray(basis)
