"""The library's reference, from its docstrings, and the links between it and the pages.

Directive ``api`` (a room's public names). Words such as ``svm.attention_svm`` in the text of any
page become links; each name says which pages use it and which claims test with it.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from functools import cache, cached_property
from pathlib import Path
from types import GenericAlias
from typing import Any

from attnlab_book import evidence
from attnlab_calls import module_of, public
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from attnbook import claims

BOOK = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^(Args|Returns|Raises|Examples|Reference|Attributes):[ ]*(.*)$")
CALL = re.compile(r"\b((?:theory\.)?\w+\.\w+)\b")


def anchor(full: str) -> str:
    """Where a name stands."""
    return "api-" + full.replace(".", "-").replace("_", "-").lower()


def page_of(room: str) -> str:
    """The page of a room."""
    return f"book/api/{room.replace('.', '-')}"


@cache
def used() -> dict[str, list[str]]:
    """Names by the pages whose code or words use them."""
    found: dict[str, list[str]] = {}
    for path in sorted(BOOK.rglob("*.md")):
        page = "book/" + path.relative_to(BOOK).with_suffix("").as_posix()
        if page.startswith(("book/api/", "book/_", "book/coursework/")):
            continue
        for full in sorted(set(CALL.findall(path.read_text("utf-8"))) & set(public())):
            found.setdefault(full, []).append(page)
    return found


@cache
def tested() -> dict[str, list[str]]:
    """Names by the claims whose checks ran them in this build, those that call them first."""
    found: dict[str, list[str]] = {}
    for near in ("calls", "reaches"):
        for claim, entry in evidence().items():
            for full in entry[near]:
                found.setdefault(full, []).append(claim)
    return found


def parts(text: str) -> list[tuple[str, str]]:
    """A docstring by its sections; the first has no title."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        head = SECTION.match(line)
        if head:
            found.append((head[1], [head[2]] if head[2] else []))
        else:
            found[-1][1].append(line)
    return [(title, "\n".join(lines)) for title, lines in found]


def prose(text: str) -> list[str]:
    """Paragraphs as lines of MyST; a paragraph of doctests is a block of Python."""
    out = []
    for paragraph in re.split(r"\n(?:[ ]*\n)+", text.strip("\n")):
        if paragraph.lstrip().startswith(">>>"):
            out += ["```pycon", textwrap.dedent(paragraph).strip(), "```", ""]
        else:
            shown = re.sub(r"``([^`]+)``", r"`\1`", paragraph)
            out += [re.sub(r"::$", ":", shown), ""]  # what follows is indented: code
    return out


class Bare(str):
    """An annotation that is shown without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(thing: Any) -> str:
    """A signature as people write it; nothing for what is never called (a protocol)."""
    if getattr(thing, "_is_protocol", False):
        return ""
    try:
        given = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    if inspect.isclass(thing) and inspect.isfunction(thing.__init__):
        # some releases of Python prefer a __new__ of a base class, which takes anything
        _, *own = inspect.signature(thing.__init__).parameters.values()
        given = inspect.Signature(own)

    def bare(annotation: Any) -> Any:
        return Bare(annotation) if isinstance(annotation, str) else annotation

    parameters = [
        # a function that stands in where none is given would show its address in memory
        p.replace(
            annotation=bare(p.annotation),
            default=Bare("...") if inspect.isfunction(p.default) else p.default,
        )
        for p in given.parameters.values()
    ]
    returned = inspect.Signature.empty if inspect.isclass(thing) else given.return_annotation
    text = str(inspect.Signature(parameters, return_annotation=bare(returned)))
    return re.sub(
        r"attn(?:lab|book)\.(?:\w+\.)*(?=\w)|numpy\.|typing\.|(?:\w+\.)+(?=NDArray)", "", text
    )


@cache
def members(full: str) -> dict[str, Any]:
    """Public methods and properties of a public class, but for those of another public class."""
    room, name = public()[full]
    thing: Any = getattr(module_of(room), name)
    if not inspect.isclass(thing):
        return {}
    others = {getattr(module_of(r), n) for r, n in public().values() if _is_class(r, n)} - {thing}
    found: dict[str, Any] = {}
    for owner in thing.__mro__:
        if owner in others or not owner.__module__.startswith(("attnlab", "attnbook")):
            continue
        for key, value in vars(owner).items():
            described = isinstance(value, property | cached_property | classmethod | staticmethod)
            own = type(value).__module__.startswith("attnlab") and hasattr(value, "__get__")
            called = inspect.isfunction(value) or own
            if not key.startswith("_") and (described or called):
                found.setdefault(key, value)
    return found


def _is_class(room: str, name: str) -> bool:
    return inspect.isclass(getattr(module_of(room), name))


def member(full: str, name: str) -> tuple[str, str]:
    """A method or a property: how it is written, and its reference as MyST."""
    value = members(full)[name]
    function = getattr(value, "__func__", value)
    if not inspect.isfunction(function):
        return name, described(inspect.getdoc(value) or "")
    text = signature(function)
    if not isinstance(value, staticmethod):
        text = re.sub(r"^\((?:self|cls)(?:, )?", "(", text)
    return f"{name}{text}", described(inspect.getdoc(value) or "")


def entry(full: str) -> str:
    """A name's reference as MyST."""
    room, name = public()[full]
    thing: Any = getattr(module_of(room), name)
    if isinstance(thing, GenericAlias):  # its own documentation would be that of dict
        given, text = f" = {signature_of_alias(thing)}", ""
    else:
        given, text = signature(thing), inspect.getdoc(thing) or ""
    out = ["```python", *textwrap.wrap(f"{full}{given}", 84, subsequent_indent="    "), "```", ""]
    return "\n".join([*out, described(text)])


def signature_of_alias(alias: GenericAlias) -> str:
    """An alias as it is written."""
    text = re.sub(r"(?:\w+\.)+(?=\w)", "", str(alias))
    return text.replace("ndarray[tuple[Any, ...], dtype[float64]]", "NDArray[float64]")


def described(text: str) -> str:
    """A docstring as MyST."""
    out: list[str] = []
    for title, body in parts(text):
        if title == "Examples":
            out += ["```pycon", textwrap.dedent(body).strip(), "```", ""]
        elif title in ("Args", "Attributes"):
            items = re.split(r"^    (?=\w+:)", body, flags=re.M)
            for item in filter(str.strip, items):
                key, _, words = item.strip().partition(":")
                out.append(f"- `{key}`: {' '.join(words.split())}")
            out.append("")
        elif title:
            out += [f"*{title}.* {' '.join(body.split())}", ""]
        else:
            out += prose(body)
    return "\n".join(out)


class Api(SphinxDirective):
    """The public names of a room."""

    required_arguments = 1

    def parsed(self, text: str) -> list[nodes.Node]:
        """MyST as nodes."""
        box = nodes.Element()
        lines = StringList(text.split("\n"), source=self.env.docname)
        self.state.nested_parse(lines, 0, box)
        return list(box.children)

    def notation(self, room: str) -> list[nodes.Node]:
        """What a paper's room says once for all its functions."""
        words = (inspect.getdoc(module_of(room)) or "").partition("\n\n")[2]
        if not room.startswith("theory.") or not words:
            return []
        return self.parsed("\n".join(prose(words)))

    def members(self, full: str) -> nodes.definition_list:
        """Methods and properties, each with an anchor of its own."""
        listed = nodes.definition_list(classes=["al-members"])
        for name in members(full):
            written, text = member(full, name)
            term = nodes.term("", "", nodes.literal("", written), ids=[anchor(f"{full}.{name}")])
            definition = nodes.definition("", *self.parsed(text))
            listed += nodes.definition_list_item("", term, definition)
        return listed

    def run(self) -> list[nodes.Node]:
        """One section a name."""
        room = self.arguments[0]
        found = self.notation(room)
        for full, (home, name) in public().items():
            if home != room:
                continue
            section = nodes.section(ids=[anchor(full)], names=[full])
            section += nodes.title("", name)
            section += self.parsed(entry(full))
            if members(full):
                section += self.members(full)
            line = nodes.paragraph(classes=["al-links"])
            builder, here = self.env.app.builder, self.env.docname
            for words, targets in (("Used in", used()), ("Tests", tested())):
                links = []
                for target in targets.get(full, [])[:12]:
                    if words == "Used in":
                        page, mark = target, ""
                    else:
                        claim = claims.get(target)
                        page = "book/errata" if claim.kind == "erratum" else "book/ledger"
                        mark = target.replace(".", "-")
                    if page not in self.env.found_docs:
                        continue
                    shown = target.removeprefix("book/")
                    links += [make_refnode(builder, here, page, mark, nodes.Text(shown)),
                              nodes.Text(", ")]  # fmt: skip
                if links:
                    line += [nodes.Text(f"{words}: "), *links[:-1], nodes.Text(". ")]
            if line.children:
                section += line
            found.append(section)
        return found


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Words that are public names lead to their reference."""
    for literal in list(doctree.findall(nodes.literal)):
        full = (
            literal.astext().removeprefix("attnlab.").removeprefix("attnbook.").removesuffix("()")
        )
        if full not in public() or isinstance(literal.parent, nodes.reference):
            continue
        room, _ = public()[full]
        if docname == page_of(room) or page_of(room) not in app.env.found_docs:
            continue
        inside: Any = literal.parent
        while inside is not None and not isinstance(inside, nodes.title):
            inside = inside.parent
        if inside is not None:
            continue
        link = make_refnode(app.builder, docname, page_of(room), anchor(full), literal.deepcopy())
        literal.replace_self(link)


def context(
    app: Sphinx, pagename: str, templatename: str, given: dict[str, Any], doctree: Any
) -> None:
    """At the end of a page: the library functions that it uses."""
    if doctree is None or not pagename.startswith("book/") or pagename.startswith("book/api/"):
        return
    mine = [full for full, pages in used().items() if pagename in pages]
    if not mine or "/" not in pagename.removeprefix("book/"):
        return
    links = []
    for full in mine:
        page = page_of(public()[full][0])
        if page in app.env.found_docs:
            links.append(
                f'<a href="{given["pathto"](page)}#{anchor(full)}"><code>{full}</code></a>'
            )
    given["body"] = (
        given.get("body", "") + '<details class="al-cite"><summary>From the library, on this page'
        f"</summary><p>{', '.join(links)}</p></details>"
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.add_directive("api", Api)
    app.connect("doctree-resolved", link_names)
    app.connect("html-page-context", context, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
