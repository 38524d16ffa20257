"""What may cross between the grader and a student's process: plain arrays, numbers, words.

Messages are lines of JSON. No pickle, no objects: what is not plain does not pass. This file is
also mounted into the sandbox, so it imports NumPy and nothing of attnlab.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

KINDS = "biufc"  # booleans, integers, floats, complex numbers
LARGEST = 20_000_000  # bytes of an answer
DEPTH = 8


class NotPlainError(TypeError):
    """Something that may not cross."""


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
            raise NotPlainError(f"an array of dtype {array.dtype}, not of numbers")
        if array.nbytes > LARGEST:
            raise NotPlainError(f"an array of {array.nbytes:,} bytes: too large")
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
            shape = tuple(int(size) for size in told["array"])
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
