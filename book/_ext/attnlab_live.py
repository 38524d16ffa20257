"""What a live page must know of its cells: where each stands, and its code, hidden or not.

Every cell's container gets the class ``al-cell-N``, N its place in the notebook; beside the pages
stands ``live/pages/<page>.json`` with the cells and with the places of numbers that cells tell. It
is loaded when a reader makes the page live (``book/_web/live``).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

TOLD = re.compile(r"\{glue:text\}`([^`]+)`")


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Say which cell each container shows."""
    for node in doctree.findall(nodes.container):
        if node.get("nb_element") == "cell_code":
            node["classes"].append(f"al-cell-{node['cell_index']}")


def cells(path: Path) -> dict[str, Any]:
    """Code cells in order, and name and form of each number that words take from them."""
    from myst_nb.core.read import read_myst_markdown_notebook
    from myst_parser.config.main import MdParserConfig

    notebook = read_myst_markdown_notebook(path.read_text("utf-8"), MdParserConfig(), path=path)
    found: dict[str, Any] = {"cells": [], "told": []}
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            tags = cell.metadata.get("tags", [])
            found["cells"].append({"index": index, "code": cell.source, "tags": tags})
        else:
            for words in TOLD.findall(cell.source):
                other, _, rest = words.rpartition("::")  # of another page: it does not change here
                name, _, form = rest.partition(":")
                found["told"].append(None if other else [name, form])
    return found


def elsewhere(page: str, colab: str, binder: str) -> list[str]:
    """Links to a page's notebook where the site names places that run it; else none.

    ``colab``: where the notebooks of ``downloads/`` lie, ``OWNER/REPOSITORY/blob/BRANCH/FOLDER``;
    ``binder``: a hub with a repository, as ``https://HUB/v2/gh/OWNER/REPOSITORY/BRANCH``, whose
    folder ``downloads`` holds them.
    """
    from html import escape
    from urllib.parse import quote

    name, found = quote(f"{page.removeprefix('book/')}.ipynb"), []
    if colab:
        address = f"https://colab.research.google.com/github/{colab.strip('/')}/{name}"
        found.append(f'<a href="{escape(address)}">open in Colab</a>')
    if binder:
        address = f"{binder.rstrip('/')}?urlpath=lab/tree/downloads/{name}"
        found.append(f'<a href="{escape(address)}">open in Binder</a>')
    return found


def write(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Beside a page with code, its cells."""
    if doctree is None:
        return
    path = Path(app.env.doc2path(pagename))
    if path.suffix != ".md" or "{code-cell}" not in path.read_text("utf-8"):
        return
    config = app.config
    context["attnlab_elsewhere"] = elsewhere(pagename, config.attnlab_colab, config.attnlab_binder)
    place = Path(app.outdir) / "live" / "pages" / f"{pagename}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(cells(path), separators=(",", ":")), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.add_config_value("attnlab_colab", "", "html")
    app.add_config_value("attnlab_binder", "", "html")
    app.connect("doctree-read", mark)
    app.connect("html-page-context", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
