"""The exercises of the book: where they stand, and the page that lists them.

Directive ``exercises``: every exercise by chapter, with a link. Exercises are what cells show
(``attnbook.widgets.exercise``), so they are known once all pages were read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

LOG = logging.getLogger(__name__)
SCRIPT = re.compile(
    r'<div data-exercise="[^"]+".*?<script type="application/json">(.*?)</script>', re.S
)
LONG = 90  # letters of a question that stand for it in the list


def tasks(doctree: nodes.document) -> Iterator[dict[str, Any]]:
    """What the exercises of a page are made of, in order."""
    for raw in doctree.findall(nodes.raw):
        for found in SCRIPT.findall(raw.astext()):
            yield json.loads(found)


def kept(env: Any) -> dict[str, list[tuple[str, str]]]:
    """Names and words of all exercises, by page."""
    found: dict[str, list[tuple[str, str]]] = env.__dict__.setdefault("attnlab_exercises", {})
    return found


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """A page was read."""
    here, mine = app.env.docname, [(task["id"], title(task)) for task in tasks(doctree)]
    homes = {name: page for page, those in kept(app.env).items() for name, _ in those}
    for name, _ in mine:
        if homes.get(name, here) != here or [other for other, _ in mine].count(name) > 1:
            LOG.warning("exercise %r: its name is taken", name, location=here)
    kept(app.env)[here] = mine
    if mine or next(iter(doctree.findall(Listed)), None):
        formulas(app.env, here)


def formulas(env: Any, page: str) -> None:
    """MathJax is asked for where a page has formulas; what cells show is not looked at."""
    env.get_domain("math").data["has_equations"][page] = True


def title(task: dict[str, Any]) -> str:
    """What it is called, or how its question begins."""
    if task["title"]:
        return str(task["title"])
    first = re.split(r"(?<=[.?!])\s|\n\s*\n", task["question"].strip())[0]
    words, length, out = re.findall(r"\$[^$]+\$\S*|\S+", first), 0, []
    for word in words:
        length += len(word) + 1
        if length > LONG:
            return " ".join(out) + " \N{HORIZONTAL ELLIPSIS}"
        out.append(word)
    return " ".join(out)


class Listed(nodes.General, nodes.Element):
    """Stands for the list until all pages were read."""


class Exercises(SphinxDirective):
    """The list of all exercises."""

    def run(self) -> list[nodes.Node]:
        """A place for it."""
        self.env.note_reread()
        return [Listed()]


def inline(words: str) -> list[nodes.Node]:
    """Words with formulas, code and emphasis."""
    found: list[nodes.Node] = []
    for part in re.split(r"(\$[^$]+\$|`[^`]+`|\*+[^*]+\*+)", words):
        if part.startswith("$"):
            found.append(nodes.math(part[1:-1], part[1:-1]))
        elif part.startswith("`"):
            found.append(nodes.literal("", part[1:-1]))
        elif part.startswith("*"):
            found.append(nodes.emphasis("", part.strip("*")))
        elif part:
            found.append(nodes.Text(part))
    return found


def in_order(env: Any, page: str) -> Iterator[str]:
    """A page and all below it, as the table of contents has them."""
    yield page
    for below in env.toctree_includes.get(page, []):
        yield from in_order(env, below)


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """All pages were read: write the list."""
    for place in list(doctree.findall(Listed)):
        box = nodes.container(classes=["al-progress"])
        chapter, items = "", nodes.bullet_list()
        for page in in_order(app.env, app.config.root_doc):
            mine = kept(app.env).get(page, [])
            own = page.split("/")[1] if page.count("/") > 1 else ""
            for name, words in mine:
                if own != chapter or not items.children:
                    home = f"book/{own}/index" if own else app.config.root_doc
                    heading = app.env.titles.get(home, nodes.title("", own)).astext()
                    items = nodes.bullet_list()
                    box += [nodes.rubric("", heading), items]
                    chapter = own
                line = nodes.paragraph()
                link = make_refnode(app.builder, docname, page, f"exercise-{name}", [])
                link += inline(words)
                line += link
                where = app.env.titles[page].astext()
                line += nodes.inline("", f" {where}", classes=["al-progress-page"])
                items += nodes.list_item("", line, classes=[f"al-solves-{name}"])
        if not box.children:
            box += nodes.paragraph("", "The pages that were built have no such exercise.")
        place.replace_self(box)


def merge(app: Sphinx, env: Any, docnames: set[str], other: Any) -> None:
    """For parallel reading."""
    kept(env).update({page: mine for page, mine in kept(other).items() if page in docnames})


def purge(app: Sphinx, env: Any, docname: str) -> None:
    """A page that is read again says its exercises anew."""
    kept(env).pop(docname, None)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.add_directive("exercises", Exercises)
    app.add_node(Listed)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
