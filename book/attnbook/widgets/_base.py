"""An explorable: one ES module and its state, in a notebook and on a page without a kernel."""

from __future__ import annotations

import base64
import json
import os
import re
from functools import cache
from importlib import resources
from typing import Any

import anywidget
import numpy as np
import traitlets

from attnlab import checks as check

STATIC = "ATTNLAB_STATIC"  # set while the static site is built
IMPORT = re.compile(r"^import (\{.*?\}) from \"\./(.*?)\";\n", re.M | re.S)
EXPORT = re.compile(r"^export (?:async )?(?:const|function|class) (\w+)", re.M)


def source(name: str) -> str:
    """The text of a file of this room."""
    return resources.files("attnbook.widgets").joinpath(name).read_text(encoding="utf-8")


def needed(name: str) -> list[str]:
    """A module after all that it imports, each once."""
    found: list[str] = []

    def walk(file: str) -> None:
        folder = file.rpartition("/")[0]
        for _, other in IMPORT.findall(source(file)):
            walk(f"{folder}/{other}" if folder else other)
        if file not in found:
            found.append(file)

    walk(f"{name}.js")
    return found


@cache
def bundle(name: str) -> str:
    """One module out of an explorable and what it imports: anywidget loads single modules.

    Each file keeps a scope of its own, so that two of them may use the same names. On the static
    page the same files are served apart and import each other.
    """
    *needs, own = needed(name)
    parts = []
    for file in needs:
        names = ", ".join(EXPORT.findall(source(file)))
        text = re.sub(r"^export (?=const|function|class|async)", "", scoped(file), flags=re.M)
        parts.append(f"const {scope(file)} = (() => {{\n{text}\nreturn {{ {names} }};\n}})();")
    text = re.sub(r"^export (?=const|function|class|async)", "", scoped(own), flags=re.M)
    return "\n".join([*parts, text])


def scope(file: str) -> str:
    """What a file's exports are called in a bundle."""
    return "of_" + re.sub(r"\W", "_", file.removesuffix(".js"))


def scoped(file: str) -> str:
    """A file that takes what it imports from the scopes of a bundle."""
    folder = file.rpartition("/")[0]

    def take(found: re.Match[str]) -> str:
        other = f"{folder}/{found[2]}" if folder else found[2]
        return f"const {found[1].replace(' as ', ': ')} = {scope(other)};\n"

    return IMPORT.sub(take, source(file))


class Explorable(anywidget.AnyWidget):
    """What all explorables share: their module, state, data, and how they show themselves.

    ``state`` is what the reader changed and what the address carries; ``initial`` is where Reset
    goes; ``data`` holds arrays that attnlab computed.

    Args:
        initial: the state to start from and to return to; the module's own where it is silent.
        arrays: what the module draws, by name.

    Returns:
        A widget, in a notebook; on the static page, a placeholder that its host brings to life.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.PhasePlane().now("k") is None  # the module's own default
        True
    """

    name = ""  # of the module
    state = traitlets.Dict().tag(sync=True)
    initial = traitlets.Dict().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    def __init__(
        self, initial: dict[str, Any] | None = None, arrays: dict[str, Any] | None = None
    ) -> None:
        packed = {name: pack(name, array) for name, array in (arrays or {}).items()}
        super().__init__(initial=plain(initial or {}), state=plain(initial or {}), data=packed)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # not the classes that anywidget derives for itself; a static page serves the files apart
        if cls.__dict__.get("name") and not os.environ.get(STATIC):
            cls._esm = bundle(cls.name)
            cls._css = source("kit/kit.css")
        super().__init_subclass__(**kwargs)

    def now(self, key: str) -> Any:
        """A value of the state as the reader left it."""
        return self.state.get(key, self.initial.get(key))

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(STATIC):
            return {"text/html": self.html(), "text/plain": repr(self)}
        return super()._repr_mimebundle_(**kwargs)

    def html(self) -> str:
        """A placeholder that the site's host brings to life."""
        data = {
            name: {**entry, "bytes": base64.b64encode(entry["bytes"]).decode()}
            for name, entry in self.data.items()
        }
        traits = {"state": self.state, "initial": self.initial, "data": data}
        text = json.dumps(traits, separators=(",", ":")).replace("</", "<\\/")
        return (
            f'<div data-explorable="{self.name}" id="explorable-{self.name}">'
            f'<script type="application/json">{text}</script>'
            "<noscript>This experiment needs JavaScript.</noscript></div>"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def pack(name: str, array: Any) -> dict[str, Any]:
    """An array as bytes, in a form that JavaScript knows."""
    given = np.ascontiguousarray(array)
    kinds = {"f": "<f4", "i": "<i4", "u": "<i4", "b": "|b1"}
    if given.dtype.kind not in kinds:
        raise check.fail(name, "numbers or booleans", f"dtype {given.dtype}")
    exact = given.dtype == np.int8
    cast = given.astype("|i1" if exact else kinds[given.dtype.kind])
    return {"shape": list(cast.shape), "dtype": cast.dtype.str, "bytes": cast.tobytes()}


def plain(value: Any) -> Any:
    """State as JSON knows it."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return value
