"""What a check measures: one inequality, at the instance where it is tightest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array

ROLES = ("statement", "correction", "step", "outside")
ROUNDING = 1e-9  # two exact forms of one float64 number differ by less, relative to their size


@dataclass(frozen=True)
class Measurement:
    r"""One inequality or equation, measured where it is tightest.

    Args:
        what: what was measured, in words.
        measured: the left side, at the worst instance.
        relation: ``<=``, ``>=``, ``<``, ``>`` or ``=``.
        bound: the right side, at the same instance.
        role: ``statement`` (as printed), ``correction`` (what should be read instead; must hold),
            ``step`` (a printed step or formula that is wrong; must fail), ``outside`` (a
            hypothesis is dropped; must fail).
        instances: how many instances were looked at.
        within: what counts as equal, relative to the larger side; rounding unless told.

    Returns:
        A frozen record.

    Examples:
        >>> from attnbook import claims
        >>> claims.Measurement("margin", 0.5, ">=", 0.25).holds
        True
    """

    what: str
    measured: float
    relation: str
    bound: float
    role: str = "statement"
    instances: int = 1
    within: float = ROUNDING

    def __post_init__(self) -> None:
        check.choice("relation", self.relation, ("<=", ">=", "<", ">", "="))
        check.choice("role", self.role, ROLES)
        for name in ("measured", "bound"):
            value = float(getattr(self, name))
            if math.isnan(value):
                raise check.fail(name, f"a number for {self.what!r}", "NaN")
            object.__setattr__(self, name, value)

    @property
    def excess(self) -> float:
        """How far the inequality is missed (positive) or kept (negative), as a share of its size.

        Rounding is forgiven: a strict inequality must be kept by more, the others missed by more.
        """
        return float(_excess(self.relation, self.measured, self.bound, self.within))

    @property
    def holds(self) -> bool:
        """Whether the inequality is kept."""
        return self.excess <= 0.0

    @property
    def as_expected(self) -> bool:
        """Whether the outcome is the one its role asks for; a statement's is up to its status."""
        return self.holds == (self.role not in ("step", "outside"))

    def __str__(self) -> str:
        sign = self.relation if self.holds else f"not {self.relation}"
        many = f" ({self.instances} instances)" if self.instances > 1 else ""
        lead = "" if self.role == "statement" else f"{self.role}: "
        return f"{lead}{self.what}: {self.measured:.6g} {sign} {self.bound:.6g}{many}"


def _excess(relation: str, measured: Any, bound: Any, within: float) -> Any:
    with np.errstate(invalid="ignore"):
        gap = np.asarray(measured) - np.asarray(bound)
    gap = np.where(np.asarray(measured) == np.asarray(bound), 0.0, gap)  # infinite on both sides
    size = np.maximum(np.maximum(np.abs(measured), np.abs(bound)), 1e-300)
    with np.errstate(invalid="ignore"):
        share = np.where(np.isinf(gap), np.sign(gap), gap / size)
    if relation == "=":
        return np.abs(share) - within
    if relation in (">=", ">"):
        share = -share
    return share - within if relation in ("<=", ">=") else share + within


def _worst(
    what: str, measured: ArrayLike, relation: str, bound: ArrayLike, role: str, within: float
) -> Measurement:
    left, right = np.broadcast_arrays(np.asarray(measured, float), np.asarray(bound, float))
    if left.size == 0:
        raise check.fail("measured", f"at least one instance of {what!r}", "none")
    for name, side in (("measured", left), ("bound", right)):
        if np.isnan(side).any():
            raise check.fail(name, f"numbers for {what!r}", f"{int(np.isnan(side).sum())} NaN")
    at = int(np.argmax(_excess(relation, left, right, within)))
    worst = (float(left.flat[at]), relation, float(right.flat[at]))
    return Measurement(what, *worst, role, int(left.size), within)


def at_most(
    what: str,
    measured: ArrayLike,
    bound: ArrayLike,
    *,
    role: str = "statement",
    strictly: bool = False,
) -> Measurement:
    """``measured <= bound`` at the worst of all instances (arrays broadcast)."""
    return _worst(what, measured, "<" if strictly else "<=", bound, role, ROUNDING)


def at_least(
    what: str,
    measured: ArrayLike,
    bound: ArrayLike,
    *,
    role: str = "statement",
    strictly: bool = False,
) -> Measurement:
    """``measured >= bound`` at the worst of all instances."""
    return _worst(what, measured, ">" if strictly else ">=", bound, role, ROUNDING)


def equal(
    what: str,
    measured: ArrayLike,
    bound: ArrayLike,
    *,
    role: str = "statement",
    within: float = ROUNDING,
    size: ArrayLike | None = None,
) -> Measurement:
    """Both sides equal to ``within`` times the larger one, or times ``size`` where that is given.

    Where the numbers compared may be zero, give the ``size`` that rounding is relative to: the
    distance is then measured, and compared with 0.
    """
    if size is None:
        return _worst(what, measured, "=", bound, role, within)
    distance = np.abs(np.asarray(measured, float) - np.asarray(bound, float)) / np.asarray(size)
    return _worst(f"{what}, distance", distance, "<=", within, role, ROUNDING)


def slope(sizes: ArrayLike, values: ArrayLike) -> float:
    """Exponent p of values ~ sizes^p by least squares in logarithms, over two decades or more."""
    x, y = np.asarray(sizes, float), np.asarray(values, float)
    if x.ndim != 1 or x.shape != y.shape or x.size < 3:
        raise check.fail("sizes", "at least three sizes, each with a value", (x.shape, y.shape))
    if not ((x > 0).all() and (y > 0).all() and np.isfinite(y).all()):
        raise check.fail("values", "positive finite numbers", values)
    if x.max() / x.min() < 100.0:
        raise check.fail("sizes", "two decades or more", f"{x.min():g} to {x.max():g}")
    lx: Array = np.log(x) - np.log(x).mean()
    return float(lx @ np.log(y) / (lx @ lx))
