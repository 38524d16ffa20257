"""Every public name is in the table of `help(attnlab)` and documented by one template."""

import dataclasses
import importlib
import inspect
import re
import sys
import types
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import attnbook
import attnlab

PAPERS = ["bias", "encoder", "multihead", "svm"]
LIBRARY = [f"attnlab.{room}" for room in attnlab.__all__]
BOOK = [f"attnbook.{room}" for room in attnbook.__all__ if room not in ("theory", "real")]
BOOK += [f"attnbook.theory.{paper}" for paper in PAPERS]
BOOK += ["attnbook.widgets.exercise"]
BOOK += [f"attnbook.real.{part}" for part in attnbook.real.__all__]
ROOMS = LIBRARY + BOOK
NAMES = [(room, name) for room in ROOMS for name in importlib.import_module(room).__all__]
# Shapes of things to be written by the user, and aliases: described, not run.
PROTOCOLS = {"Head", "Model", "Rule", "Source"}
ALIASES = {"Params", "Array", "BoolArray", "IntArray", "Rng"}
# What guards the doors says its line; explorables are seen, courses are
# folders: no example of theirs
PLAIN = {"attnlab.checks"}
SEEN = {"attnbook.widgets", "attnbook.course"}
# A bound is a line, a formula and a number worth knowing
COMPACT = tuple(f"attnbook.theory.{paper}" for paper in PAPERS)


def lookup(room: str, name: str) -> Any:
    return getattr(importlib.import_module(room), name)


def own_members(thing: type) -> dict[str, Any]:
    """Public methods and properties of a class, but for those that another public class has."""
    others = [lookup(*other) for other in NAMES]
    parents = [c for c in thing.__mro__[1:] if any(c is other for other in others)]
    found = {}
    for name, value in inspect.getmembers_static(thing):
        kinds = (property, cached_property, classmethod, staticmethod, types.FunctionType)
        inherited = any(inspect.getattr_static(p, name, None) is value for p in parents)
        foreign = not any(
            name in vars(c) and c.__module__.startswith(("attnlab", "attnbook"))
            for c in thing.__mro__
        )
        if isinstance(value, kinds) and not name.startswith("_") and not inherited and not foreign:
            found[name] = value
    return found


REFERENCE = Path(__file__).resolve().parents[1] / "book" / "_ext"


@pytest.fixture(scope="module")
def reference() -> Any:
    """What writes the reference pages."""
    sys.path.insert(0, str(REFERENCE))
    return importlib.import_module("attnlab_api")


def test_the_reference_shows_every_public_method_and_property(reference: Any) -> None:
    shown = 0
    for full, (room, name) in reference.public().items():
        thing = getattr(reference.module_of(room), name)
        if not isinstance(thing, type):
            continue
        written = {key: reference.member(full, key) for key in reference.members(full)}
        for key, value in own_members(thing).items():
            line, text = written[key]
            assert text.strip(), f"{full}.{key} says nothing"
            called = not isinstance(value, property | cached_property)
            assert line.startswith(f"{key}(") if called else line == key
            assert "self" not in line
            shown += 1
    assert shown > 200
    assert "extend" in reference.members("optim.Run")
    assert reference.member("optim.Run", "save")[0] == "save(path: str | Path) -> None"


def test_the_reference_shows_no_quoted_types_and_no_signature_of_a_protocol(reference: Any) -> None:
    for full in reference.public():
        written = reference.entry(full).split("```")[1]
        assert "*args" not in written, full
        assert not re.search(r": '|-> '", written), f"{full} shows a quoted type"
        assert " at 0x" not in written, f"{full} shows an address in memory"
    assert "dict[str, NDArray[float64]]" in reference.entry("models.Params")
    assert "new empty dictionary" not in reference.entry("models.Params")


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_documented(room: str, name: str) -> None:
    """What helps a reader: a line, arguments, what comes back, an example that shows something."""
    thing = lookup(room, name)
    if name in ALIASES:
        return
    text = inspect.getdoc(thing) or ""
    assert text, f"{room}.{name} has no docstring"
    assert text.split("\n\n")[0].strip().endswith((".", "$", ":")), f"{room}.{name}: first line"
    if name in PROTOCOLS or room in PLAIN:
        return
    if room in COMPACT:
        example = not inspect.isclass(thing)
        assert not example or ">>>" in text, f"{room}.{name} has no example"
        return
    sections = set(re.findall(r"^(Args|Returns|Examples|Reference)\b", text, re.MULTILINE))
    required = {"Returns"} | (set() if room in SEEN else {"Examples"})
    takes = [
        p
        for p in inspect.signature(thing).parameters.values()
        if p.name not in {"self", "args", "kwargs"}
    ]
    if takes:
        required.add("Args")
    assert required <= sections, f"{room}.{name} lacks {sorted(required - sections)}"
    listed = set(re.findall(r"^ +(\w+):", text.split("Args:")[-1].split("Returns:")[0], re.M))
    missing = {p.name for p in takes} - listed
    assert not missing, f"{room}.{name}: arguments {sorted(missing)} are not described"
    assert "Reference: none" not in text
    if "Examples" in sections:
        asked = [line for line in text.splitlines() if ">>>" in line and "import" not in line]
        assert asked, f"{room}.{name}: an example that does nothing"
        only_names = all(re.search(r"\.(name|__name__)$", line) for line in asked)
        assert not only_names, f"{room}.{name}: an example that prints a name"


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_public_methods_are_documented(room: str, name: str) -> None:
    thing = lookup(room, name)
    if not inspect.isclass(thing):
        return
    inherited = (
        {entry.name for entry in dataclasses.fields(thing)}
        if (dataclasses.is_dataclass(thing))
        else set()
    )
    own = [kind for kind in thing.__mro__ if kind.__module__.startswith(("attnlab", "attnbook"))]
    members = {key: member for kind in reversed(own) for key, member in vars(kind).items()}
    for key, member in members.items():
        if key.startswith("_") or key in inherited:
            continue
        if isinstance(member, types.FunctionType | property) or hasattr(member, "func"):
            assert inspect.getdoc(member), f"{room}.{name}.{key} has no docstring"


def test_theory_is_one_module_a_paper() -> None:
    assert attnbook.theory.__all__ == PAPERS


def test_the_table_of_public_names_is_complete() -> None:
    table = attnlab.__doc__ or ""
    listed = set(re.findall(r"`((?:\w+\.)+\w+)`", table))
    own = {f"{room}.{name}" for room, name in NAMES if room in LIBRARY}
    assert listed == {name.removeprefix("attnlab.") for name in own}
    table = attnbook.__doc__ or ""
    listed = set(re.findall(r"`((?:\w+\.)+\w+)`", table))
    own = {f"{room}.{name}" for room, name in NAMES if room in BOOK and "theory" not in room}
    own |= {f"attnbook.theory.{paper}" for paper in PAPERS}
    assert listed == {name.removeprefix("attnbook.") for name in own}


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in PLAIN])
def test_nothing_public_is_left_out_of_all(room: str) -> None:
    module = importlib.import_module(room)
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(module.__all__)
