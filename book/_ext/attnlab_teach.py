"""Proofs that are walked, and words that light what they name.

Directives: ``derivation`` with ``hypothesis`` and ``step`` inside. Role: ``mark``. All of it reads
and prints without a script; ``kit/derive.js`` and ``kit/link.js`` add the rest.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

LOG = logging.getLogger(__name__)
MODULES = Path(__file__).resolve().parents[1] / "attnbook" / "widgets" / "derivations"
KEY = re.compile(r"[a-z][a-z0-9-]*")


class Tag(nodes.General, nodes.Element):
    """An element of HTML with attributes of its own; elsewhere only its content."""


class InlineTag(nodes.Inline, nodes.TextElement):
    """The same within a line."""


def tag(name: str, *children: nodes.Node, inline: bool = False, **attributes: Any) -> nodes.Element:
    """``tag("li", ..., data_key="floor")``."""
    found: nodes.Element = InlineTag() if inline else Tag()
    found["tag"] = name
    found["told"] = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    found += list(children)
    return found


def words(node: nodes.Node) -> str:
    """What a node says, formulas between dollars."""
    if isinstance(node, nodes.math):
        return f"${node.astext()}$"
    if isinstance(node, nodes.Text):
        return str(node.astext())
    return "".join(words(child) for child in node.children)


class Keyed(SphinxDirective):
    """A part of a derivation with a key that its module knows."""

    required_arguments = 1
    has_content = True

    def body(self) -> list[nodes.Node]:
        """What stands inside."""
        key, found = self.arguments[0], nodes.Element()
        if not KEY.fullmatch(key):
            text = f"{self.name}: a key is a-z, 0-9, -; not {key}"
            LOG.warning(text, location=self.get_location())
        self.state.nested_parse(self.content, self.content_offset, found)
        if not found.children:
            LOG.warning(f"{self.name} {key} says nothing", location=self.get_location())
        return list(found.children)


class Hypothesis(Keyed):
    """What is assumed, in words; with a script, a switch."""

    def run(self) -> list[nodes.Node]:
        """A list item."""
        body = self.body()
        told = " ".join(" ".join(words(node) for node in body).split())
        if len(body) == 1 and isinstance(body[0], nodes.paragraph):
            body = body[0].children
        return [tag("li", *body, data_hypothesis=self.arguments[0], data_told=told)]


class Step(Keyed):
    """One line of mathematics, then the reason."""

    def run(self) -> list[nodes.Node]:
        """A list item."""
        line, *reason = self.body() or [nodes.paragraph()]
        if not list(line.findall(lambda node: isinstance(node, nodes.math | nodes.math_block))):
            text = f"step {self.arguments[0]} does not begin with a formula"
            LOG.warning(text, location=self.get_location())
        parts = [tag("div", line, class_="al-line"), tag("div", *reason, class_="al-reason")]
        return [tag("li", *parts, data_key=self.arguments[0])]


class Derivation(SphinxDirective):
    """A proof in steps: a numbered list in the page; ``kit/derive.js`` walks it."""

    required_arguments = 1
    has_content = True
    option_spec = {"title": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Title, hypotheses, steps; keys that the module does not know are a warning."""
        name, found = self.arguments[0], nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, found)
        given = [node for node in found.children if "data-hypothesis" in node.get("told", {})]
        steps = [node for node in found.children if "data-key" in node.get("told", {})]
        rest = [node for node in found.children if node not in given and node not in steps]
        for problem in self.unknown(name, given, steps, rest):
            LOG.warning(f"derivation {name}: {problem}", location=self.get_location())
        box = tag("div", class_="al-derive", id=f"derivation-{name}")
        if "title" in self.options:
            parsed, _ = self.state.inline_text(self.options["title"], self.lineno)
            box += tag("p", *parsed, class_="al-derive-title")
        if given:
            box += tag("p", nodes.Text("Given"), class_="al-given")
            box += tag("ul", *given, class_="al-hypotheses")
        box += tag("ol", *steps, class_="al-derivation", data_derivation=name)
        return [box]

    def unknown(self, name: str, *parts: list[Any]) -> list[str]:
        """What does not fit the module."""
        given, steps, rest = parts
        module = MODULES / f"{name}.js"
        self.env.note_dependency(str(module))
        if not module.is_file():
            return [f"there is no widgets/derivations/{name}.js"]
        text, found = module.read_text("utf-8"), []
        for keys in (
            [node["told"]["data-hypothesis"] for node in given],
            [node["told"]["data-key"] for node in steps],
        ):
            found += [f"{key} stands twice" for key in sorted(set(keys)) if keys.count(key) > 1]
            for key in keys:
                if not re.search(rf'(?m)^\s*("{key}"|{key})\s*[:(,]', text):
                    found.append(f"the module does not know {key}")
        if rest:
            found.append("only hypotheses and steps stand inside")
        return found if steps else [*found, "no step"]


class Mark(SphinxRole):
    """``{mark}`the winner <best>``` lights the marks of its key; a key alone is its own word."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A span."""
        given = re.fullmatch(r"(.*?)\s*<([^<>]+)>", self.text, re.S)
        text, key = (given[1], given[2].strip()) if given else (self.text, self.text)
        if not KEY.fullmatch(key):
            LOG.warning(f"mark: a key is a-z, 0-9, -; not {key}", location=self.get_location())
        parent = nodes.inline()
        parsed, messages = self.inliner.parse(text, self.lineno, self.inliner, parent)
        return [tag("span", *parsed, inline=True, class_="al-term", data_link=key)], messages


def visit(self: Any, node: nodes.Element) -> None:
    """An opening tag."""
    told = "".join(f' {key}="{self.attval(str(value))}"' for key, value in node["told"].items())
    self.body.append(f"<{node['tag']}{told}>")


def depart(self: Any, node: nodes.Element) -> None:
    """A closing tag."""
    self.body.append(f"</{node['tag']}>")
    if isinstance(node, Tag):
        self.body.append("\n")


def nothing(self: Any, node: nodes.Element) -> None:
    """Other builders show the content."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    for node in (Tag, InlineTag):
        others = dict.fromkeys(("latex", "text", "man", "texinfo"), (nothing, nothing))
        app.add_node(node, html=(visit, depart), **others)  # type: ignore[arg-type]
    app.add_directive("derivation", Derivation)
    app.add_directive("hypothesis", Hypothesis)
    app.add_directive("step", Step, override=True)  # sphinx_design has one of this name
    app.add_role("mark", Mark())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
