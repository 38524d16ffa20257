"""Every public name is in the table of `help(attnlab)` and documented by one template."""

import dataclasses
import importlib
import inspect
import re
import types
from typing import Any

import pytest

import attnlab

PAPERS = ["bias", "encoder", "multihead", "svm"]
ROOMS = [name for name in attnlab.__all__ if name not in ("__version__", "theory")]
ROOMS += [f"theory.{paper}" for paper in PAPERS]
ROOMS += ["course", "widgets"]  # which attnlab does not import by itself
NAMES = [
    (room, name) for room in ROOMS for name in importlib.import_module(f"attnlab.{room}").__all__
]
# Shapes of things to be written by the user, and aliases: described, not run.
PROTOCOLS = {"Head", "Model", "Rule", "Source"}
ALIASES = {"Params"}


def lookup(room: str, name: str) -> Any:
    return getattr(importlib.import_module(f"attnlab.{room}"), name)


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_documented(room: str, name: str) -> None:
    thing = lookup(room, name)
    if name in ALIASES:
        return
    text = inspect.getdoc(thing) or ""
    assert text, f"{room}.{name} has no docstring"
    assert text.splitlines()[0].strip().endswith((".", "$", ":")), f"{room}.{name}: first line"
    if name in PROTOCOLS:
        return
    sections = set(re.findall(r"^(Args|Returns|Examples|Reference)\b", text, re.MULTILINE))
    required = {"Returns", "Examples", "Reference"}
    takes = [
        p
        for p in inspect.signature(thing).parameters.values()
        if p.name not in {"self", "args", "kwargs"}
    ]
    if takes:
        required.add("Args")
    assert required <= sections, f"{room}.{name} lacks {sorted(required - sections)}"
    assert ">>>" in text
    listed = set(re.findall(r"^ +(\w+):", text.split("Args:")[-1].split("Returns:")[0], re.M))
    missing = {p.name for p in takes} - listed
    assert not missing, f"{room}.{name}: arguments {sorted(missing)} are not described"


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
    own = [kind for kind in thing.__mro__ if kind.__module__.startswith("attnlab")]
    members = {key: member for kind in reversed(own) for key, member in vars(kind).items()}
    for key, member in members.items():
        if key.startswith("_") or key in inherited:
            continue
        if isinstance(member, types.FunctionType | property) or hasattr(member, "func"):
            assert inspect.getdoc(member), f"{room}.{name}.{key} has no docstring"


def test_theory_is_one_module_a_paper() -> None:
    assert attnlab.theory.__all__ == PAPERS


def test_the_table_of_public_names_is_complete() -> None:
    table = attnlab.__doc__ or ""
    listed = set(re.findall(r"`((?:\w+\.)+\w+)`", table))
    assert listed == {f"{room}.{name}" for room, name in NAMES}


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_public_is_left_out_of_all(room: str) -> None:
    module = importlib.import_module(f"attnlab.{room}")
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(module.__all__)
