"""The answer of a max-margin problem: directions, multipliers and their certificate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray

STATUSES = ("optimal", "infeasible", "unresolved", "iteration_limit")
RANK_TOLERANCE = 1e-6  # relative to the largest singular value, on answers certified to 1e-9
SUPPORT_TOLERANCE = 1e-6  # a margin of 1 up to this much


@dataclass(frozen=True, eq=False, repr=False)
class Margin:
    r"""A max-margin direction with its certificate; one entry a trial.

    Where ``status`` is ``optimal``, $W$ has smallest margin exactly 1, and the multipliers
    $\lambda\ge0$ bound every other feasible $W$ from below; ``gap`` is the relative difference of
    the two norms. Where the gap is finite but above 1e-9 (a solver's ``iteration_limit``, or
    ``unresolved`` from `rank_limited_svm`, whose problem is not convex) ``W`` is feasible and the
    gap says how far from optimal it may be. Elsewhere ``W`` is NaN by declaration, ``gap``
    infinite, and the multipliers
    (summing to 1) are Farkas weights: ``residual`` is the norm of
    $\sum\lambda_kF_k/\|F_k\|$, an upper bound on the margin that a unit $W$ can reach over the
    normalized features. It is 0 (to rounding) where the problem is infeasible.

    Args:
        W: directions, shape ``(..., d, d)`` (``(..., d)`` for a decoder).
        margins: margins of the tokens that are not selected, shape ``(..., n, T)``; 0 at selected
            and masked tokens. ``(..., n)`` for a decoder.
        multipliers: dual variables, same shape.
        norm: norm of ``W`` in the problem's own norm, shape ``(...)``.
        gap: relative duality gap, shape ``(...)``.
        residual: bound on the largest relative margin where nothing was found, else 0.
        status: ``optimal``, ``infeasible``, ``unresolved`` (largest relative margin below 1e-6)
            or ``iteration_limit``; a string, or an array of strings for trials.
        norm_name: ``"fro"`` or ``"nuc"``.

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import problems, svm
        >>> mm = svm.attention_svm(problems.bad_direction())
        >>> round(float(mm.norm), 4), mm.margins.round(6).tolist(), mm.status
        (1.0466, [[1.0, 0.0], [0.0, 1.0]], 'optimal')

    Reference: svm, (Att-SVM) and Definition 2; bias, (W-SVM).
    """

    W: Array
    margins: Array
    multipliers: Array
    norm: Array
    gap: Array
    residual: Array
    status: Any
    norm_name: str = "fro"

    @cached_property
    def support(self) -> BoolArray:
        """Tokens with margin 1 (to 1e-6), boolean, shape of the margins."""
        return np.asarray(np.abs(self.margins - 1.0) <= SUPPORT_TOLERANCE)

    @cached_property
    def rank(self) -> IntArray:
        """Singular values above 1e-6 of the largest, one number a trial; 0 where W is NaN."""
        values = np.linalg.svd(np.nan_to_num(self.W))[1]
        return np.asarray((values > RANK_TOLERANCE * values[..., :1]).sum(axis=-1))

    def factors(self, m: int | None = None) -> tuple[Array, Array]:
        r"""Balanced factors $W=KQ^\top$ with $\frac12(\|K\|^2+\|Q\|^2)=\|W\|_\star$.

        ``m`` columns (default $d$); fewer than the rank is refused.
        """
        if self.W.ndim != self.norm.ndim + 2:
            raise check.fail("factors", "a matrix W in every trial", f"shape {self.W.shape}")
        m = self.W.shape[-1] if m is None else check.count("m", m)
        U, values, Vt = np.linalg.svd(self.W)
        if m < int(self.rank.max(initial=0)):
            raise check.fail("m", f"at least the rank, {int(self.rank.max())}", m)
        root = np.sqrt(values[..., None, :m])
        K, Q = U[..., :, :m] * root, Vt.swapaxes(-1, -2)[..., :, :m] * root
        pad = [(0, 0)] * (K.ndim - 1) + [(0, max(0, m - K.shape[-1]))]
        return np.pad(K, pad), np.pad(Q, pad)

    def __repr__(self) -> str:
        trials = self.norm.shape
        if not trials:
            size = f"norm={float(self.norm):.6g}{_within(self.gap)}"
            return f"Margin({self.norm_name}, {size}, status={self.status!r})"
        names, counts = np.unique(self.status, return_counts=True)
        ended = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        return f"Margin({self.norm_name}, trials={trials} ({ended}){_within(self.gap)})"


class InfeasibleMargin(ValueError):
    """One instance, asked for on its own, whose constraints contradict each other.

    Args:
        margin: the `Margin`, with Farkas weights as multipliers.
        what: the tokens in words.

    Returns:
        An error whose ``margin`` carries the certificate.

    Examples:
        >>> from attnlab import problems, svm
        >>> twice = problems.TokenProblem(X=[[[1.0], [1.0]]], z=[[1.0]], y=[1.0], v=[1.0])
        >>> try:
        ...     svm.attention_svm(twice)
        ... except svm.InfeasibleMargin as error:
        ...     print(error)
        no W separates sample 0: token 1 from token 0

    Reference: svm, Section 2 (feasibility of Att-SVM).
    """

    def __init__(self, margin: Margin, what: str) -> None:
        super().__init__(f"no W separates {what}")
        self.margin = margin


def _within(gap: Array) -> str:
    """The largest gap as a power of ten, so that rounding stays out."""
    fine = gap[np.isfinite(gap)]
    if not fine.size:
        return ""
    worst = float(fine.max(initial=1e-15))
    power = np.ceil(np.log10(worst))
    return f", gap<=1e{power:.0f}" if power < -3 else f", gap<={worst:.2g}"
