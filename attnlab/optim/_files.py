"""One ``.npz`` for a whole run: arrays as they are, everything else as JSON, no pickle."""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab import checks as check

FORMAT = 1
CONTENT = {
    "model",
    "problem",
    "rule",
    "params",
    "state",
    "history",
    "steps",
    "status",
    "recorded",
}


def _known() -> dict[str, type]:
    """The records that a file may name; a file can make nothing else."""
    from attnlab import models, optim, problems

    found = [getattr(room, name) for room in (models, optim, problems) for name in room.__all__]
    records = [kind for kind in found if isinstance(kind, type) and is_dataclass(kind)]
    return problems.sources() | {kind.__name__: kind for kind in records}


def write(path: Path, content: dict[str, Any]) -> None:
    """Encode and write; the file appears whole or not at all."""
    arrays: dict[str, Any] = {}
    header = json.dumps({"format": FORMAT, "content": _encode(content, arrays, _known())})
    arrays["header"] = np.array(header)
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """Decode what `write` wrote; anything else is refused by name."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']!r}, this version reads {FORMAT}")
        content: dict[str, Any] = _decode(header["content"], arrays, _known())
        if not isinstance(content, dict) or content.keys() != CONTENT:
            raise ValueError("an incomplete header")
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:
        # whatever a damaged or foreign file does to the decoder, it is the file's fault
        raise check.fail("path", "a file written by Run.save", f"{path}: {error}") from None
    return content


def _encode(value: Any, arrays: dict[str, Any], known: dict[str, type]) -> Any:
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return str(value) if isinstance(value, np.str_) else value
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {"dict": {key: _encode(item, arrays, known) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return {"tuple": [_encode(item, arrays, known) for item in value]}
    kind = type(value).__name__
    if is_dataclass(value) and known.get(kind) is type(value):
        inside = {
            entry.name: _encode(getattr(value, entry.name), arrays, known)
            for entry in fields(value)
        }
        return {"record": kind, "fields": inside}
    raise check.fail("save", "models, rules and problems of attnlab", f"{type(value)}")


def _decode(value: Any, arrays: dict[str, Any], known: dict[str, type]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "dict" in value:
        return {key: _decode(item, arrays, known) for key, item in value["dict"].items()}
    if "tuple" in value:
        return tuple(_decode(item, arrays, known) for item in value["tuple"])
    if value.get("record") not in known:
        raise ValueError(f"a record {value.get('record')!r} that attnlab does not know")
    inside = {key: _decode(item, arrays, known) for key, item in value["fields"].items()}
    return known[value["record"]](**inside)
