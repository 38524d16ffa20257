"""Which public functions the checks of the ledger call: seen while they run, not guessed."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeVar

LIBRARY = ("problems", "models", "optim", "svm", "ntk", "curvature")
BOOK = (
    "theory.multihead", "theory.encoder", "theory.bias", "theory.svm", "claims", "figures",
    "widgets", "widgets.exercise", "course", "real.data", "real.heads", "real.models", "real.probe",
    "real.train",
)  # fmt: skip
Result = TypeVar("Result")


def module_of(room: str) -> ModuleType:
    """A room as a module, of the library or of the book."""
    return importlib.import_module(f"{'attnlab' if room in LIBRARY else 'attnbook'}.{room}")


@functools.cache
def public() -> dict[str, tuple[str, str]]:
    """Public names, with their room and own name."""
    found = {}
    for room in (*LIBRARY, *BOOK):
        for name in module_of(room).__all__:
            found[f"{room}.{name}"] = (room, name)
    return found


@functools.cache
def _codes() -> dict[int, str]:
    """Public functions, and the methods of public classes, by the identity of their code."""
    found: dict[int, str] = {}
    for full, (room, name) in public().items():
        if room == "claims":  # what runs the checks
            continue
        thing: Any = getattr(module_of(room), name)
        parts = list(vars(thing).values()) if inspect.isclass(thing) else [thing]
        for part in parts:
            part = getattr(part, "fget", None) or getattr(part, "func", None) or part
            code = getattr(inspect.unwrap(part), "__code__", None) if callable(part) else None
            if isinstance(code, CodeType):
                found[id(code)] = full
    return found


def watched(work: Callable[[], Result]) -> tuple[Result, dict[str, list[str]]]:
    """What ``work`` gives, and the public names that claims called and that ran inside those."""
    codes = _codes()
    near: set[str] = set()
    far: set[str] = set()

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (full := codes.get(id(frame.f_code))):
            back = frame.f_back
            caller = back.f_globals.get("__name__", "") if back else ""
            (near if caller.startswith("attnbook.claims") else far).add(full)

    sys.setprofile(see)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return result, {"calls": sorted(near), "reaches": sorted(far - near)}
