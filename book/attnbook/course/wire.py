"""What may cross between the grader and a student's process: plain arrays, numbers, words.

Messages are lines of JSON. No pickle, no objects: what is not plain does not pass. This file is
also mounted into the sandbox, so it imports NumPy and nothing of attnlab.
"""

from __future__ import annotations

import base64
import json
import numbers
from typing import Any

import numpy as np

KINDS = "biufc"  # booleans, integers, floats, complex numbers
LARGEST = 20_000_000  # bytes of an answer
DEPTH = 8
AXES = 16


SENTENCES = (
    "lists within lists within lists: too deep",
    "all that an optimiser found: return its .x, or its .fun",
    "a dict whose keys are not all words",
    "a masked array: return its .filled(...)",
    "a set, which has no order: return sorted(...) of it",
    "bytes: return a word, or an array of numbers",
    "a sparse matrix: return its .toarray()",
    "an array that is too large",
    "an array that is not of numbers: give it dtype=float, or return a list",
)  # about what may not cross, without a name or a number of the student's


class NotPlainError(TypeError):
    """Something that may not cross."""


def simple(value: Any, depth: int = 0) -> Any:
    """A student's answer with what is as good as plain made plain; else what to do instead."""
    if depth > DEPTH:
        raise NotPlainError("lists within lists within lists: too deep")
    if isinstance(value, np.ndarray | np.generic):
        return simple_array(value)
    if value is None or type(value) in (bool, str, int, float):
        return value
    if type(value) is complex:
        return simple_array(np.asarray(value))
    for kind in (str, int):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, list | tuple | range):
        return [simple(entry, depth + 1) for entry in value]
    if type(value).__name__ == "OptimizeResult":
        raise NotPlainError("all that an optimiser found: return its .x, or its .fun")
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise NotPlainError("a dict whose keys are not all words: return a list, or use str")
        return {str(key): simple(entry, depth + 1) for key, entry in value.items()}
    raise NotPlainError(instead(value))


def simple_array(value: Any) -> Any:
    """An array, or a number where it has no axes; real where its imaginary part is 0."""
    if isinstance(value, np.ma.MaskedArray):
        raise NotPlainError("a masked array: return its .filled(...)")
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind == "U":
        return array.tolist()
    if kind not in KINDS:
        raise NotPlainError(f"{SENTENCES[-1]} (its dtype is {array.dtype})")
    if kind == "c" and not array.imag.any():
        array, kind = array.real, "f"
    if array.ndim or kind == "c":
        return array
    return float(array) if kind == "f" else array.item()


def instead(value: Any) -> str:
    """One sentence about what may not cross, and what could."""
    name = type(value).__name__
    if isinstance(value, set | frozenset):
        return "a set, which has no order: return sorted(...) of it"
    if isinstance(value, bytes):
        return "bytes: return a word, or an array of numbers"
    if hasattr(value, "toarray"):
        return "a sparse matrix: return its .toarray()"
    if callable(value):
        return f"{name} {getattr(value, '__name__', '')}: return what it gives, not itself"
    if hasattr(value, "__iter__"):
        return f"an object of type {name}: return list(...) of it"
    return f"an object of type {name}: return its numbers, as a tuple or a dict"


def pack(value: Any, depth: int = 0) -> Any:
    """A plain value as JSON knows it."""
    if depth > DEPTH:
        raise NotPlainError("lists within lists within lists: too deep")
    if value is None or type(value) in (bool, str):
        return value
    if type(value) in (int, float):
        return {"number": repr(value)}
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind not in KINDS:
            raise NotPlainError(f"{SENTENCES[-1]} (its dtype is {array.dtype})")
        if array.nbytes > LARGEST:
            raise NotPlainError(f"{SENTENCES[-2]} ({array.nbytes:,} bytes)")
        wide = {"b": "|b1", "i": "<i8", "u": "<i8", "f": "<f8", "c": "<c16"}[array.dtype.kind]
        data = base64.b64encode(np.ascontiguousarray(array).astype(wide).tobytes()).decode()
        return {"array": list(array.shape), "dtype": wide, "data": data}
    if type(value) in (list, tuple):
        return {"list": [pack(entry, depth + 1) for entry in value]}
    if type(value) is dict:
        if not all(type(key) is str for key in value):
            raise NotPlainError("a dict whose keys are not all words")
        return {"dict": [[key, pack(entry, depth + 1)] for key, entry in value.items()]}
    raise NotPlainError(f"an object of type {type(value).__name__}: return arrays and numbers")


def unpack(told: Any, depth: int = 0) -> Any:
    """The value again; a message that is not what `pack` writes raises `NotPlainError`."""
    if depth > DEPTH:
        raise NotPlainError("too deep")
    if told is None or isinstance(told, bool | str):
        return told
    if not isinstance(told, dict):
        raise NotPlainError("not a message of this protocol")
    try:
        if "number" in told:
            text = str(told["number"])[:400]
            return int(text) if text.lstrip("-").isdigit() else float(text)
        if "array" in told:
            kind = str(told["dtype"])
            if kind not in ("|b1", "<i8", "<f8", "<c16"):
                raise NotPlainError("not a dtype of this protocol")
            if len(told["array"]) > AXES:
                raise NotPlainError("an array of too many axes")
            shape = tuple(told["array"])
            if not all(type(size) is int and size >= 0 for size in shape):  # -1 would be inferred
                raise NotPlainError("not a shape of this protocol")
            raw = base64.b64decode(told["data"], validate=True)
            return np.frombuffer(raw, dtype=kind).reshape(shape).copy()
        if "list" in told:
            return [unpack(entry, depth + 1) for entry in told["list"]]
        return {str(key): unpack(entry, depth + 1) for key, entry in told["dict"]}
    except NotPlainError:
        raise
    except Exception as error:
        raise NotPlainError(f"not a message of this protocol ({type(error).__name__})") from None


def line(message: dict[str, Any]) -> bytes:
    """A message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
