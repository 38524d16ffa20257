"""Large products where NumPy has no BLAS: in the browser SciPy's take half as long."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

BLAS = sys.platform != "emscripten"  # NumPy in the browser has none, SciPy has one
LONG = 64  # sums along rows from which on they are faster there by einsum, in many products
LARGE = 2**19  # multiplications from which on it pays there, for a call of SciPy's takes longer


def product(A: Array, B: Array) -> Array:
    """``A @ B`` of a matrix B; A may have any number of leading axes."""
    if BLAS or B.ndim != 2 or A.size * B.shape[1] < LARGE or not A.dtype == B.dtype == np.float64:
        return np.asarray(A @ B)
    flat = A.reshape(-1, A.shape[-1])
    # BLAS wants columns: C' = B' A'
    (right, turn_right), (left, turn_left) = _by_columns(B), _by_columns(flat)
    found = _blas().dgemm(1.0, right, left, trans_a=turn_right, trans_b=turn_left)
    return np.asarray(found.T.reshape(*A.shape[:-1], B.shape[1]))


def squares(A: Array) -> Array:
    """``A @ A.T``."""
    if BLAS or A.ndim != 2 or len(A) * A.size < LARGE or A.dtype != np.float64:
        return np.asarray(A @ A.swapaxes(-1, -2))
    columns, turned = _by_columns(A)
    half = _blas().dsyrk(1.0, columns, trans=1 - turned)  # the other triangle is 0
    found = half + half.T
    found.reshape(-1)[:: len(A) + 1] *= 0.5
    return np.asarray(found)


def inner(A: Array, B: Array) -> Array:
    r"""$AB^\top$ over the last axes."""
    if A is B and A.ndim == 2:
        return squares(A)
    if A.ndim == B.ndim == 2:
        return product(A, B.T)
    if BLAS or A.shape[-1] < LONG:
        return np.asarray(A @ B.swapaxes(-1, -2))
    return np.asarray(np.einsum("...ik,...jk->...ij", A, B))


def _by_columns(A: Array) -> tuple[Array, int]:
    """The matrix or its transpose, whichever lies column by column, and whether to turn it.

    Said of A': that is what a product by columns takes.
    """
    return (A.T, 0) if A.flags.c_contiguous else (A, 1)


@cache
def _blas() -> Any:
    from scipy.linalg import blas

    return blas
