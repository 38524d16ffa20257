"""What a judge may be given: finite, plain numbers of a size that the problem declares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SIZES = (1e-60, 1e60)  # of every number that is not 0, unless a problem declares others
ENTRIES = 2_500_000  # of an array, and what it would have if its empty axes had length 1
AXES = 8
ITEMS = 100_000  # of lists and dicts, all together
WORD = 20_000  # characters


class RangeError(ValueError):
    """A number, or a size, that no answer has a reason for."""


def within(
    value: Any, sizes: tuple[float, float] = SIZES, *, infinite: bool = False, budget: Any = None
) -> Any:
    """The answer, with what is nearer to 0 than the range as 0; `RangeError` for all beyond it."""
    budget = [ITEMS] if budget is None else budget
    budget[0] -= 1
    if budget[0] < 0:
        raise RangeError(f"more than {ITEMS:,} things in one answer")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if len(value) > WORD:
            raise RangeError("a text that is too long")
        if is_number(value):
            raise RangeError("a number as a word: return the number itself")
        return value
    if isinstance(value, int):
        if value.bit_length() > 400 or abs(value) > sizes[1]:
            raise RangeError(f"a number beyond {sizes[1]:.0e}")
        return value
    if isinstance(value, float):
        return number(value, sizes, infinite)
    if isinstance(value, np.ndarray):
        return array(value, sizes, infinite)
    if isinstance(value, list):
        return [within(entry, sizes, infinite=infinite, budget=budget) for entry in value]
    if isinstance(value, dict):
        return {
            str(key)[:200]: within(entry, sizes, infinite=infinite, budget=budget)
            for key, entry in value.items()
        }
    raise RangeError(f"an object of type {type(value).__name__}")


def number(value: float, sizes: tuple[float, float], infinite: bool) -> float:
    """A float; 0 where it is smaller than the range."""
    if not math.isfinite(value):
        if infinite:
            return value
        raise RangeError("a number that is not finite")
    if abs(value) > sizes[1]:
        raise RangeError(f"a number beyond {sizes[1]:.0e}")
    return 0.0 if abs(value) < sizes[0] else value


def array(value: np.ndarray, sizes: tuple[float, float], infinite: bool) -> np.ndarray:
    """An array of a size that can be judged; entries smaller than the range become 0."""
    if value.ndim > AXES or math.prod(max(1, size) for size in value.shape) > ENTRIES:
        raise RangeError("an array that is too large")
    if value.dtype.kind == "b":
        return value
    if value.dtype.kind not in "iuf":  # NumPy would drop an imaginary part, and read words
        what = "complex numbers" if value.dtype.kind == "c" else f"an array of {value.dtype.kind!r}"
        raise RangeError(f"{what}, where real numbers are asked for")
    real = value.astype(float)
    finite = np.isfinite(real)
    if not infinite and not finite.all():
        raise RangeError("a number that is not finite")
    if (np.abs(real[finite]) > sizes[1]).any():
        raise RangeError(f"a number beyond {sizes[1]:.0e}")
    return flushed(value, sizes[0]) if value.dtype.kind == "f" else value


def is_number(word: str) -> bool:
    """Whether NumPy, which drops zeros at a word's end, would take it for a number."""
    for read in (float, complex):
        try:
            read(word.rstrip("\0"))
        except ValueError:
            continue
        return True
    return False


def flushed(part: np.ndarray, least: float) -> np.ndarray:
    """What is smaller than the range is 0."""
    return np.where(np.abs(part) < least, 0.0, part)
