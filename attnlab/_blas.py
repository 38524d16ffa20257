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
# Multiplications from which on SciPy's pay there, for a call of them takes longer than one of
# NumPy's; and from which on it pays to load SciPy for a few of them, which takes a second.
SOME, LARGE = 2**19, 2**22


def product(A: Array, B: Array) -> Array:
    """``A @ B`` of a matrix B; A may have any number of leading axes."""
    double = A.dtype == B.dtype == np.float64
    if BLAS or not double or B.ndim != 2 or not _pays(A.size * B.shape[1]):
        return np.asarray(A @ B)
    flat = A.reshape(-1, A.shape[-1])
    # BLAS wants columns: C' = B' A'
    (right, turn_right), (left, turn_left) = _by_columns(B), _by_columns(flat)
    found = blas().dgemm(1.0, right, left, trans_a=turn_right, trans_b=turn_left)
    return np.asarray(found.T.reshape(*A.shape[:-1], B.shape[1]))


def squares(A: Array) -> Array:
    """``A @ A.T`` of a matrix, half of it by SciPy."""
    columns, turned = _by_columns(A)
    half = blas().dsyrk(1.0, columns, trans=1 - turned)  # the other triangle is 0
    found = half + half.T
    found.reshape(-1)[:: len(A) + 1] *= 0.5
    return np.asarray(found)


def inner(A: Array, B: Array) -> Array:
    r"""$AB^\top$ over the last axes."""
    if BLAS:
        return np.asarray(A @ B.swapaxes(-1, -2))
    if A.ndim == B.ndim == 2 and _pays(A.size * len(B)):
        return squares(A) if A is B else product(A, B.T)
    if A.shape[-1] < LONG:
        return np.asarray(A @ B.swapaxes(-1, -2))
    return np.asarray(np.einsum("...ik,...jk->...ij", A, B))


def _pays(work: int) -> bool:
    return work >= (SOME if "scipy.linalg" in sys.modules else LARGE)


def _by_columns(A: Array) -> tuple[Array, int]:
    """The matrix or its transpose, whichever lies column by column, and whether to turn it.

    Said of A': that is what a product by columns takes.
    """
    return (A.T, 0) if A.flags.c_contiguous else (A, 1)


@cache
def blas() -> Any:
    """SciPy's, loaded when it is first asked for."""
    from scipy.linalg import blas

    return blas
