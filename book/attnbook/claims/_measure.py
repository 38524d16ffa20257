"""What a check measures: one inequality, at the instance where it is tightest, and its room."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array

ROLES = ("premise", "statement", "correction", "step", "outside", "suggests")
ROUNDING = 1e-9  # two exact forms of one float64 number differ by less, relative to their size
SLACK = 1e3  # more room than this is no evidence for a constant


class Exponent(float):
    """A fitted exponent, or another number, that remembers its interval of 95 percent."""

    interval: tuple[float, float]

    def __new__(cls, value: float, low: float, high: float) -> Exponent:
        """The exponent and the ends of its interval."""
        found = super().__new__(cls, value)
        found.interval = (low, high)
        return found


@dataclass(frozen=True)
class Measurement:
    r"""One inequality or equation, measured where it is tightest.

    Args:
        what: what was measured, in words.
        measured: the left side, at the worst instance.
        relation: ``<=``, ``>=``, ``<``, ``>`` or ``=``.
        bound: the right side, at the same instance.
        role: ``premise`` (the instance is one that the statement speaks of; must hold),
            ``statement`` (as printed), ``correction`` (what should be read instead; must hold),
            ``step`` (a printed step or formula that is wrong; must fail), ``outside`` (a
            hypothesis is dropped; must fail), ``suggests`` (a number with its interval that goes
            beyond the statement; must be the ledger's).
        instances: how many instances were looked at.
        within: what counts as equal, relative to the larger side; rounding unless told.
        exact: whether the right side is no bound but the error of an identity.
        finest: the smallest left side that could be seen, such as one in the number of draws.
        interval: of a fitted exponent, 95 percent.

    Returns:
        A frozen record.

    Examples:
        >>> from attnbook import claims
        >>> found = claims.Measurement("margin", 0.5, ">=", 0.25)
        >>> found.holds, found.room
        (True, 2.0)
    """

    what: str
    measured: float
    relation: str
    bound: float
    role: str = "statement"
    instances: int = 1
    within: float = ROUNDING
    exact: bool = False
    finest: float = 0.0
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check.choice("relation", self.relation, ("<=", ">=", "<", ">", "="))
        check.choice("role", self.role, ROLES)
        for name in ("measured", "bound"):
            value = float(getattr(self, name))
            if math.isnan(value):
                raise check.fail(name, f"a number for {self.what!r}", "NaN")
            object.__setattr__(self, name, value)
        if self.measured == 0.0 == self.bound:
            raise check.fail("measured", f"two numbers to compare for {self.what!r}", "0 and 0")

    @property
    def room(self) -> float | None:
        """How many times the bound could be tighter: bound over measured, of the worst instance.

        Below 1 where the inequality fails, infinite where the bound lies beyond 0 and says
        nothing. None of an identity, of an exponent (which has its interval) and of a sign.
        """
        if self.exact or self.relation == "=" or self.interval is not None or self.bound == 0.0:
            return None
        small, large = self.measured, self.bound
        if self.relation in (">=", ">"):
            small, large = large, small
        elif self.finest:
            small = max(small, self.finest)
        if small < 0.0 and large < 0.0:
            small, large = -large, -small
        if small <= 0.0 or large <= 0.0:
            return math.inf if small <= large else 0.0
        return None if math.isinf(small) and math.isinf(large) else large / small

    @property
    def slack(self) -> bool:
        """Whether the bound has so much room that the row is no evidence for its constant."""
        asserted = self.role in ("statement", "correction") and self.holds
        return asserted and self.room is not None and self.room > SLACK

    def told(self) -> dict[str, Any]:
        """The row for a program: both sides, role, room; what is infinite as a word."""

        def number(value: float | None) -> float | str | None:
            return value if value is None or math.isfinite(value) else str(value)

        sides = {"measured": number(self.measured), "relation": self.relation}
        return {
            "what": self.what,
            "role": self.role,
            **sides,
            "bound": number(self.bound),
            "holds": self.holds,
            "room": number(self.room),
            "slack": self.slack,
            "interval": None if self.interval is None else list(self.interval),
            "instances": self.instances,
        }

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
        fitted = "" if self.interval is None else " [{:.3f}, {:.3f}]".format(*self.interval)
        bound = f" {sign} {self.bound:.6g}"
        if self.role == "suggests" and self.bound == self.measured:
            bound = ""
        return f"{lead}{self.what}: {self.measured:.6g}{fitted}{bound}{many}"


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
    what: str,
    measured: ArrayLike,
    relation: str,
    bound: ArrayLike,
    role: str,
    within: float,
    *,
    exact: bool = False,
    finest: float = 0.0,
) -> Measurement:
    interval = measured.interval if isinstance(measured, Exponent) else None
    left, right = np.broadcast_arrays(np.asarray(measured, float), np.asarray(bound, float))
    if left.size == 0:
        raise check.fail("measured", f"at least one instance of {what!r}", "none")
    for name, side in (("measured", left), ("bound", right)):
        if np.isnan(side).any():
            raise check.fail(name, f"numbers for {what!r}", f"{int(np.isnan(side).sum())} NaN")
    seen = np.maximum(left, finest) if finest else left  # of those never seen, the least room
    nothing = (left == 0.0) & (right == 0.0)
    excess = np.where(nothing, -np.inf, _excess(relation, seen, right, within))
    at = int(np.argmax(excess))
    worst = (float(left.flat[at]), relation, float(right.flat[at]))
    many = int(left.size)
    return Measurement(what, *worst, role, many, within, exact, finest, interval)


def at_most(
    what: str,
    measured: ArrayLike,
    bound: ArrayLike,
    *,
    role: str = "statement",
    strictly: bool = False,
    finest: float = 0.0,
) -> Measurement:
    """``measured <= bound`` at the worst of all instances (arrays broadcast).

    ``finest`` is the smallest left side that could be seen, such as one in the number of draws.
    """
    relation = "<" if strictly else "<="
    return _worst(what, measured, relation, bound, role, ROUNDING, finest=finest)


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
        return _worst(what, measured, "=", bound, role, within, exact=True)
    distance = np.abs(np.asarray(measured, float) - np.asarray(bound, float)) / np.asarray(size)
    return vanishes(f"{what}, distance", distance, within=within, role=role)


def vanishes(
    what: str, measured: ArrayLike, *, within: float = ROUNDING, role: str = "statement"
) -> Measurement:
    """A size that an identity says is 0, here at most ``within``: rounding, unless told."""
    return _worst(what, measured, "<=", within, role, ROUNDING, exact=True)


def rarely(
    what: str, happened: ArrayLike, allowed: ArrayLike, *, role: str = "statement"
) -> Measurement:
    """How often something happened (draws first) is at most what is allowed.

    What never happened may happen once in as many draws: that is the room it is given.
    """
    seen = np.asarray(happened, float)
    return at_most(what, seen.mean(axis=0), allowed, role=role, finest=1.0 / len(seen))


def exponent(
    what: str,
    sizes: ArrayLike,
    values: ArrayLike,
    expected: float,
    *,
    within: float,
    role: str = "statement",
    relation: str = "=",
    decades: float = 2.0,
) -> Measurement:
    """The exponent of ``values`` in ``sizes`` against the expected one, to ``within`` (absolute).

    With ``<=`` or ``>=`` it may be missed on one side only. The row keeps the interval of the fit.
    """
    fitted = slope(sizes, values, decades=decades)
    share = within / max(abs(fitted), abs(expected), 1e-300)
    many = int(np.size(sizes))
    return Measurement(
        what, fitted, relation, expected, role, many, share, interval=fitted.interval
    )


def suggested(what: str, number: Exponent, *, many: int = 1) -> Measurement:
    """A number with its interval that goes beyond the statement; the ledger says the same.

    For an exponent that is expected, ``exponent(..., role="suggests")`` asks for more.
    """
    return Measurement(what, number, "=", number, "suggests", many, interval=number.interval)


def mean(values: ArrayLike) -> Exponent:
    """The mean of one number a trial, with its interval of 95 percent (Student's)."""
    from scipy.special import stdtrit

    found = np.asarray(values, float)
    if found.ndim != 1 or found.size < 3:
        raise check.fail("values", "one number of each of three trials or more", found.shape)
    half = float(stdtrit(found.size - 1, 0.975) * found.std(ddof=1)) / found.size**0.5
    return Exponent(found.mean(), found.mean() - half, found.mean() + half)


def slope(sizes: ArrayLike, values: ArrayLike, *, decades: float = 2.0) -> Exponent:
    """Exponent p of values ~ sizes^p by least squares in logarithms, over two decades or more."""
    from scipy.special import stdtrit

    x, y = np.asarray(sizes, float), np.asarray(values, float)
    if x.ndim != 1 or x.shape != y.shape or x.size < 3:
        raise check.fail("sizes", "at least three sizes, each with a value", (x.shape, y.shape))
    if not ((x > 0).all() and (y > 0).all() and np.isfinite(y).all()):
        raise check.fail("values", "positive finite numbers", values)
    if x.max() / x.min() < 10.0**decades * (1.0 - ROUNDING):
        wanted = "two decades or more" if decades == 2.0 else f"{decades:g} decades or more"
        raise check.fail("sizes", wanted, f"{x.min():g} to {x.max():g}")
    lx: Array = np.log(x) - np.log(x).mean()
    ly = np.log(y) - np.log(y).mean()
    fitted = float(lx @ ly / (lx @ lx))
    spread = float(((ly - fitted * lx) ** 2).sum() / (x.size - 2) / (lx @ lx)) ** 0.5

    half = float(stdtrit(x.size - 2, 0.975)) * spread
    return Exponent(fitted, fitted - half, fitted + half)
