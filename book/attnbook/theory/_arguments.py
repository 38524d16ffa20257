"""Arguments at the door of the papers' formulas: numbers, or arrays of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array


def least(name: str, value: object, bound: float = 0.0) -> Array:
    """Finite numbers of at least ``bound``."""
    found = check.frozen(name, value)
    if not (found >= bound).all():
        raise check.fail(name, f"numbers of at least {bound:g}", value)
    return found


def above(name: str, value: object, bound: float = 0.0) -> Array:
    """Finite numbers above ``bound``."""
    found = check.frozen(name, value)
    if not (found > bound).all():
        raise check.fail(name, f"numbers above {bound:g}", value)
    return found


def share(name: str, value: object) -> Array:
    """Numbers strictly between 0 and 1."""
    found = above(name, value)
    if not (found < 1.0).all():
        raise check.fail(name, "numbers below 1", value)
    return found


def many(name: str, value: object) -> Array:
    """Heads: numbers of at least 1, infinity allowed, where bounds have a limit."""
    found = np.asarray(value, dtype=np.float64)
    if np.isnan(found).any() or not (found >= 1.0).all():
        raise check.fail(name, "numbers of at least 1 (inf for the limit)", value)
    return found


def sizes(T: object, d: object, R: object) -> tuple[Array, Array, float]:
    """Tokens, features and the longest token: at least 1."""
    return least("T", T, 1.0), least("d", d, 1.0), check.number("R", R, least=1.0)


def out(value: Any) -> Array:
    """A plain number where all arguments are numbers, an array where one of them is."""
    found: Array = np.asarray(value, dtype=np.float64)[()]
    return found
