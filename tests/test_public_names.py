"""Every public name is in the table of `help(attnlab)` and documented by one template."""

import dataclasses
import importlib
import inspect
import re
import types
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
