"""Checks at the door: every public function turns its arguments into clean arrays here.

A message names the argument, says what was expected and what came.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]
Rng: TypeAlias = int | np.random.Generator


__all__ = [
    "GAP",
    "UNRESOLVED",
    "Array",
    "BoolArray",
    "IntArray",
    "Rng",
    "choice",
    "count",
    "expand",
    "fail",
    "flag",
    "frozen",
    "generator",
    "number",
    "seal",
    "shape",
    "trials_shape",
]
# what every certificate of a margin is judged by, on tokens and in tangent features
GAP = 1e-9  # relative, between the two sides: what counts as certified
UNRESOLVED = 1e-6  # relative margin below which float64 may fail to decide
PURPOSES = ("problem", "start", "fresh", "path")


def fail(name: str, expected: str, given: object) -> ValueError:
    """The one form of complaint."""
    text = given if isinstance(given, str) else repr(given)
    if len(text) > 120:
        text = text[:117] + "..."
    return ValueError(f"{name}: expected {expected}, got {text}")


def generator(rng: object, purpose: str = "problem") -> np.random.Generator:
    """A NumPy generator from an int seed or a generator; nothing else counts as randomness.

    The same int means different draws for different purposes: ``rng=0`` for the data and ``rng=0``
    for the start of a network must not make its weights the data's own tokens.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        stream = PURPOSES.index(purpose)
        key = (stream,) if stream else ()
        return np.random.default_rng(np.random.SeedSequence(int(rng), spawn_key=key))
    raise fail("rng", "a non-negative int or a numpy.random.Generator", repr(rng))


def frozen(name: str, value: object, ndim: int | None = None) -> Array:
    """A read-only float64 copy of ``value`` with finite entries and at least ``ndim`` axes."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and _sealed(value):
        array = value
    else:
        try:
            kind = np.asarray(value).dtype.kind
            if kind not in "fiub":
                raise fail(name, "real numbers", f"dtype {np.asarray(value).dtype}")
            array = np.array(value, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            if str(error).startswith(name):
                raise
            ragged = "inhomogeneous" in str(error)
            lengths = "a list whose entries have different lengths"
            given = lengths if ragged else type(value).__name__
            raise fail(name, "an array of real numbers", given) from None
        array.flags.writeable = False
    if ndim is not None and array.ndim < ndim:
        raise fail(name, f"at least {ndim} axes", f"shape {array.shape}")
    if not np.isfinite(array).all():
        bad = int(array.size - np.isfinite(array).sum())
        raise fail(name, "finite numbers", f"{bad} NaN or infinite entries in shape {array.shape}")
    return array


def _sealed(array: NDArray[Any]) -> bool:
    """Whether nobody can write to the memory behind ``array``."""
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner.base is None and not (owner.flags.writeable or array.flags.writeable)


def seal(array: NDArray[Any]) -> NDArray[Any]:
    """Mark a freshly made array read-only, so that a record can keep it without a copy."""
    array.flags.writeable = False
    return array


def shape(name: str, array: NDArray[Any], expected: tuple[int, ...], meaning: str = "") -> None:
    """Complain unless ``array`` has exactly the ``expected`` shape."""
    if array.shape != expected:
        why = f" ({meaning})" if meaning else ""
        raise fail(name, f"shape {expected}{why}", f"shape {array.shape}")


def count(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least ``least``."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]
        raise fail(name, f"a whole number of at least {least}", repr(value))
    return int(value)  # type: ignore[call-overload, no-any-return]


def number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
) -> float:
    """A finite real number inside the given bounds."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        found = float(value) if real else math.nan  # type: ignore[arg-type]
    except OverflowError:  # a whole number of more than 308 digits
        found = math.inf
    inside = above < found < below and least <= found <= most
    if not inside or not math.isfinite(found):
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (
                ("above", above),
                ("at least", least),
                ("below", below),
                ("at most", most),
            )
            if math.isfinite(bound)
        ]
        expected = f"a finite number {' and '.join(bounds)}".rstrip()
        raise fail(name, expected, repr(value))
    return found


def flag(name: str, value: object) -> bool:
    """True or False, and nothing that merely counts as one."""
    if not isinstance(value, bool | np.bool_):
        raise fail(name, "True or False", repr(value))
    return bool(value)


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """One of ``options``; the nearest one is suggested where the name is unknown."""
    known = list(options)
    if isinstance(value, str) and value in known:
        return value
    near = difflib.get_close_matches(str(value), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise fail(name, "one of " + ", ".join(map(repr, known)), repr(value) + hint)


def expand(factor: Array | BoolArray | float, array: Array) -> Array:
    """A factor for each trial, shaped to multiply that trial's entries of ``array``."""
    found: Array = np.asarray(factor)
    return found.reshape(found.shape + (1,) * (array.ndim - found.ndim))


def trials_shape(trials: object) -> tuple[int, ...]:
    """The leading axes asked for by ``trials``: none, one, or several."""
    if trials is None:
        return ()
    if isinstance(trials, Sequence) and not isinstance(trials, str | bytes):
        return tuple(count("trials", size) for size in trials)
    return (count("trials", trials),)
