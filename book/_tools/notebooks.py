"""A page as a clean notebook: plain Markdown and code, no directive or role left over.

Hints, solutions and whatever a page folds stand in ``<details>``. A cell that asks a checked
exercise holds it packed: no answer stands in a cell (``attnbook.widgets.exercise.unpack``).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from html import escape
from pathlib import PurePosixPath
from typing import Any

from results import runnable
from sources import ROOT

from attnbook.install import requirement

sys.path.insert(0, str(ROOT / "book" / "_ext"))

Executed = Callable[[str], Any]  # a page's name to its notebook with outputs, None without any

FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[\w:-]+)\} *(?P<argument>.*)$")
OPTION = re.compile(r"^:([\w-]+): *(.*)$")
ROLE = re.compile(r"\{(?P<name>[\w:.-]+)\}`(?P<text>[^`]+)`")
LINK = re.compile(r"\[([^\[\]]+)\]\(([\w./-]+)\.md(#[\w-]+)?\)")
TASK = re.compile(
    r'<div data-exercise=.*?<script type="application/json">(.*?)</script>(.*)</div>', re.S
)
INSTALL = (
    "# Install attnlab and what this page needs; the site offers the wheel in downloads/.\n"
    f'# %pip install "{requirement("book", "wheel")}"'
)
REFERENCES = ROOT / "book" / "references.bib"


def clean(page: str, executed: Executed, first: str = INSTALL) -> str:
    """The notebook of a page as JSON text; the same page always gives the same bytes.

    Args:
        page: its name, such as ``"book/svm/margin"``.
        executed: gives the notebook of a page with the outputs of its cells.
        first: the code of a cell before the first one; none where it is empty.
    """
    import jupytext
    import nbformat

    path = ROOT / f"{page}.md"
    notebook: Any = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    ran = executed(page)
    if ran is None:
        raise ValueError(f"page: expected one whose cells ran, got {page}")
    outputs = iter([cell.outputs for cell in ran.cells if cell.cell_type == "code"])
    cells, cited = [], set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = packed(cell.source, next(outputs))
        else:
            cited |= keys_cited(cell.source)
            cell.source = plain(links(numbers(cell.source, page, executed), page)).strip()
        cell.metadata = {}
        if cell.source:
            cells.append(cell)
    if first:
        place = next((k for k, cell in enumerate(cells) if cell.cell_type == "code"), len(cells))
        cells.insert(place, nbformat.v4.new_code_cell(first))
    if cited:
        cells.append(nbformat.v4.new_markdown_cell(references(cited)))
    for number, cell in enumerate(cells):
        mark = f"{path.stem}{number}{cell.source}"
        cell.id = hashlib.sha256(mark.encode()).hexdigest()[:12]
    notebook.cells = cells
    return str(nbformat.writes(notebook, version=4)) + "\n"


# -- code --------------------------------------------------------------------------------------
def packed(code: str, outputs: Iterable[Any]) -> str:
    """The code of a cell; where it asks an exercise, its imports and the exercise in one line.

    Imports stay because later cells may use them.
    """
    shown = [str(output.get("data", {}).get("text/html", "")) for output in outputs]
    found = next(filter(None, (TASK.search(html) for html in shown)), None)
    if not found:
        return code
    from attnlab_ask import title

    from attnbook.widgets.exercise import Exercise

    task = json.loads(found[1])
    nodes = (node for node in ast.parse(code).body if isinstance(node, ast.Import | ast.ImportFrom))
    imports = [ast.unparse(node) for node in nodes]
    needed = "from attnbook.widgets import exercise"
    if needed not in imports:
        imports.append(needed)
    return "\n".join(
        [
            *imports,
            "",
            f'# Exercise "{title(task)}": run this cell to see it. Hint and solution come with it.',
            f'exercise.unpack("{Exercise(task, found[2]).packed()}")',
        ]
    )


# -- blocks ------------------------------------------------------------------------------------
def plain(text: str) -> str:
    """MyST as plain Markdown."""
    lines, out = re.sub(r"<!--.*?-->", "", text, flags=re.S).split("\n"), []
    k = 0
    while k < len(lines):
        found = FENCE.match(lines[k])
        if not found:
            if not re.match(r"^\((?:[\w-]+)\)=\s*$|^\+\+\+|^:{3,}\s*$", lines[k]):
                out.append(lines[k])
            k += 1
            continue
        end = k + 1
        while end < len(lines) and lines[end].strip() != found["fence"]:
            end += 1
        start, options = k + 1, {}
        while start < end and (option := OPTION.match(lines[start])):
            options[option[1]] = option[2]
            start += 1
        body = plain("\n".join(lines[start:end])).strip()
        out += block(found["name"], found["argument"].strip(), options, body)
        k = end + 1
    return re.sub(r"\n{3,}", "\n\n", unclassed(roles("\n".join(out))))


def unclassed(text: str) -> str:
    """Formulas without the classes that only the site's pages know: the content alone."""
    while found := re.search(r"\\class\{[\w -]+\}\{", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0) * (text[end - 1] != "\\")
            end += 1
        text = f"{text[: found.start()]}{{{text[found.end() : end - 1]}}}{text[end:]}"
    return macros(text)


def block(name: str, argument: str, options: dict[str, str], body: str) -> list[str]:
    """What a directive says, in plain words; one that is not known stops the build."""
    if name == "raw" or argument == "al-site":  # what only the site has
        return []
    if name == "container":
        return ["", body, ""]
    if name == "statement":
        return ["", quoted(statement(argument)), "", body, ""]
    if name == "hypothesis":
        return [f"- Given: {body}", ""]
    if name == "step":
        return ["**Step #.**", "", body, ""]
    if name == "derivation":  # the name of its module says nothing here
        count = iter(range(1, 1000))
        steps = re.sub(r"\*\*Step #\.\*\*", lambda _: f"**Step {next(count)}.**", body)
        return ["", head(options.get("title", "Proof")), "", steps, ""]
    if name == "exercise":
        return ["", head(f"Exercise: {argument}" if argument else "Exercise"), "", body, ""]
    if name in ("hint", "solution"):
        return folded(name.capitalize(), body)
    if name == "admonition":
        if "dropdown" in options.get("class", ""):
            return folded(argument, body)
        return ["", head(argument), "", body, ""]
    raise ValueError(f"{{{name}}} {argument}: notebooks.py does not say how a notebook shows it")


def head(words: str) -> str:
    """A bold line."""
    return f"**{words}**" if words.endswith(("?", "!", ".")) else f"**{words}.**"


def folded(title: str, body: str) -> list[str]:
    """What opens on a click; the empty lines make its body Markdown again."""
    return ["", "<details>", f"<summary>{escape(title)}</summary>", "", body, "", "</details>", ""]


def quoted(text: str) -> str:
    """Markdown as a block quote."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def statement(name: str) -> str:
    """A numbered statement with its status, as the page's box has it."""
    from attnlab_book import stated_in

    from attnbook import claims

    claim = claims.get(name)
    judged = claim.status != "definition"  # which is neither true nor false
    marks = [claim.status] * judged + ["the book's own"] * claim.own
    marks += ["superseded preprint"] * claim.preprint
    title = f"**{claim.number} ({claim.paper})**" + "".join(f", *{mark}*" for mark in marks)
    return "\n\n".join([title, *stated_in(claim, reason=judged)])


# -- words -------------------------------------------------------------------------------------
def numbers(text: str, page: str, executed: Executed) -> str:
    """What cells tell the words, as the site shows it."""

    def say(found: re.Match[str]) -> str:
        place, _, rest = found[1].rpartition("::")
        name, _, form = rest.partition(":")
        source = beside(page, place.removesuffix(".md")) if place else page
        values = told(source, executed)
        if name not in values:
            raise ValueError(f"{page}: expected a cell of {source} that tells {name}, got none")
        return shown(values[name], form)

    return re.sub(r"\{glue:text\}`([^`]+)`", say, text)


@functools.lru_cache(maxsize=8)
def told(page: str, executed: Executed) -> dict[str, str]:
    """What the cells of a page tell its words, by name, as Python writes it."""
    notebook, found = executed(page), {}
    for output in (each for cell in notebook.cells for each in cell.get("outputs", [])):
        mark = output.get("metadata", {}).get("scrapbook")
        if mark:
            found[mark["name"]] = output["data"][f"{mark['mime_prefix']}text/plain"]
    return found


def shown(value: str, form: str) -> str:
    """As ``{glue:text}`` has it."""
    from myst_nb.core.variables import format_plain_text

    return str(format_plain_text(value, form))


def beside(page: str, place: str) -> str:
    """The page that a link of another one names, such as ``../notation`` of ``book/svm/margin``."""
    return os.path.normpath(PurePosixPath(page).parent / place)


def links(text: str, page: str) -> str:
    """Links to pages lead to their notebooks; the words alone where a page has none."""

    def say(found: re.Match[str]) -> str:
        words, place, _ = found.groups()
        return f"[{words}]({place}.ipynb)" if beside(page, place) in with_code() else words

    return LINK.sub(say, text)


@functools.cache
def with_code() -> frozenset[str]:
    """The pages that have a notebook."""
    return frozenset(runnable())


def roles(text: str) -> str:
    """Roles as the words they show; one that is not known stops the build."""

    def say(found: re.Match[str]) -> str:
        name = found["name"]
        given = re.fullmatch(r"(.*?)\s*<([^>]+)>", found["text"], re.S)
        words, target = given.groups() if given else (found["text"], found["text"])
        if name == "claim":
            from attnbook import claims

            return words if given else str(claims.get(target).number)
        if name in ("cite", "cite:t"):
            return cited(target, within=name == "cite:t")
        if name == "mark":
            return words
        raise ValueError(f"{found[0]}: notebooks.py does not say how a notebook shows it")

    return ROLE.sub(say, text)


@functools.cache
def renamed() -> dict[str, str]:
    """The site's own commands in formulas, which JupyterLab does not know, and what they mean."""
    import yaml

    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    return dict(config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"])


def macros(text: str) -> str:
    """Formulas without the site's own commands."""
    names = "|".join(map(re.escape, renamed()))
    return re.sub(rf"\\({names})(?![A-Za-z])", lambda found: renamed()[found[1]], text)


# -- citations ---------------------------------------------------------------------------------
@functools.cache
def library() -> Any:
    """All entries of the bibliography."""
    from pybtex.database import parse_file

    return parse_file(str(REFERENCES))


def keys_cited(text: str) -> set[str]:
    """The entries that a text cites."""
    return {key for found in ROLE.finditer(text) if found["name"] in ("cite", "cite:t")
            for key in keys_of(found["text"])}  # fmt: skip


def keys_of(text: str) -> list[str]:
    """The entries of one role."""
    return [key.strip() for key in text.split(",")]


def cited(keys: str, within: bool) -> str:
    """Authors and years as the site has them: ``[Cover, 1965]``, in a sentence ``Cover [1965]``."""
    entries = [library().entries[key] for key in keys_of(keys)]
    names = [(authors(entry), entry.fields["year"]) for entry in entries]
    if within:
        return " and ".join(f"{name} [{year}]" for name, year in names)
    return f"[{'; '.join(f'{name}, {year}' for name, year in names)}]"


def authors(entry: Any) -> str:
    """Last names: one, two, or the first of many."""
    from pybtex.richtext import Text

    people = entry.persons["author"]
    last = [str(Text.from_latex(" ".join(each.prelast_names + each.last_names))) for each in people]
    return last[0] + (" et al." if len(last) > 2 else "".join(f" and {name}" for name in last[1:]))


def references(keys: set[str]) -> str:
    """The entries that a page cites, in full."""
    items = [words for key, words in entries_in_full().items() if key in keys]
    return "\n".join(["## References", "", *(f"- {words}" for words in items)])


@functools.cache
def entries_in_full() -> dict[str, str]:
    """All entries in Markdown, in the order of their authors."""
    from pybtex.plugin import find_plugin

    backend = find_plugin("pybtex.backends", "markdown")()
    style = find_plugin("pybtex.style.formatting", "plain")()
    entries = style.format_bibliography(library())
    return {entry.key: " ".join(entry.text.render(backend).split()) for entry in entries}
