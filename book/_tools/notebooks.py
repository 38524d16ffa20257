"""A page as a clean notebook: plain Markdown and code, no directive or role left over."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Told = Callable[[str], dict[str, str]]  # what the cells of a page tell its words

FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[\w:-]+)\} *(?P<argument>.*)$")
ROLE = re.compile(r"\{(?P<name>[\w:.-]+)\}`(?P<text>[^`]+)`")
INSTALL = (
    "# attnlab and what this page needs; the wheel is offered by the site, in downloads/\n"
    '# %pip install "attnlab[book]"\n'
)
QUIET = {"toctree", "tableofcontents", "ran", "ledger", "ledger-totals", "bibliography"}
QUIET |= {"problem-sets", "api", "exercises"}
TITLES = {"exercise": "Exercise", "solution": "Solution", "hint": "Hint", "dropdown": "More"}


def clean(path: Path, told: Told = lambda _: {}) -> str:
    """The notebook as JSON text; the same page always gives the same bytes."""
    import jupytext
    import nbformat

    notebook: Any = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = plain(numbers(cell.source, path, told)).strip()
            if not cell.source:
                continue
        cell.metadata = {}
        cells.append(cell)
    first = next((k for k, cell in enumerate(cells) if cell.cell_type == "code"), len(cells))
    cells.insert(first, nbformat.v4.new_code_cell(INSTALL.rstrip()))
    for number, cell in enumerate(cells):
        mark = f"{path.stem}{number}{cell.source}"
        cell.id = hashlib.sha256(mark.encode()).hexdigest()[:12]
    notebook.cells = cells
    return str(nbformat.writes(notebook, version=4)) + "\n"


def plain(text: str) -> str:
    """MyST as plain Markdown."""
    lines, out = text.split("\n"), []
    k = 0
    while k < len(lines):
        found = FENCE.match(lines[k])
        if not found:
            if not re.match(r"^\((?:[\w-]+)\)=\s*$|^\+\+\+|^:{3,}\s*$", lines[k]):
                out.append(lines[k])
            k += 1
            continue
        fence, end = found["fence"], k + 1
        while end < len(lines) and lines[end].strip() != fence:
            end += 1
        body = [line for line in lines[k + 1 : end] if not re.match(r"^:[\w-]+:", line)]
        if body[:1] == ["---"]:
            body = body[body.index("---", 1) + 1 :] if "---" in body[1:] else body
        argument = found["argument"].strip()
        if found["name"] == "derivation":  # the name of its module says nothing here
            titles = [line[8:] for line in lines[k + 1 : end] if line.startswith(":title: ")]
            argument = titles[0] if titles else "Proof"
        out += block(found["name"], argument, plain("\n".join(body)).strip())
        k = end + 1
    return unclassed(roles("\n".join(out)))


def unclassed(text: str) -> str:
    """Formulas without the classes that only the site's pages know: the content alone."""
    while found := re.search(r"\\class\{[\w -]+\}\{", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0) * (text[end - 1] != "\\")
            end += 1
        text = f"{text[: found.start()]}{{{text[found.end() : end - 1]}}}{text[end:]}"
    return text


def block(name: str, argument: str, body: str) -> list[str]:
    """What a directive says, in plain words."""
    if name in QUIET or name.startswith("raw"):
        return []
    if name == "statement":
        from attnbook import claims

        claim = claims.get(argument)
        told = [f"> **{claim.number} ({claim.paper}), {claim.status}.**"]
        if claim.hypotheses:
            told += ["> Given", ">", *(f"> - {each}" for each in claim.hypotheses), ">"]
        told += [f"> {claim.statement}"]
        if claim.correction:
            told += [">", f"> **Read instead.** {claim.correction}"]
        return [*told, "", body, ""]
    if name == "hypothesis":
        return [f"- Given: {body}", ""]
    if name == "step":
        return ["**Step #.**", "", body, ""]
    if name == "derivation":
        parts = body.split("**Step #.**")
        steps = [f"**Step {k}.**{part}" for k, part in enumerate(parts[1:], 1)]
        return ["", f"**{argument}.**", "", parts[0] + "".join(steps), ""]
    if name == "math":
        return ["$$", body, "$$"]
    if name in ("figure", "image"):
        return [f"*(figure: {argument})*", body]
    if name.startswith("code") or name == "literalinclude":
        return ["```", body, "```"]
    title = argument or TITLES.get(name, name.replace("-", " ").split(":")[-1].capitalize())
    return ["", f"**{title}.**", "", body, ""]


def numbers(text: str, path: Path, told: Told) -> str:
    """What cells tell the words, as the site shows it."""

    def say(found: re.Match[str]) -> str:
        place, _, rest = found[1].rpartition("::")
        name, _, form = rest.partition(":")
        values = told((path.parent / place).with_suffix("").as_posix() if place else str(path))
        return shown(values[name], form) if name in values else "\N{HORIZONTAL ELLIPSIS}"

    return re.sub(r"\{glue:text\}`([^`]+)`", say, text)


def shown(value: str, form: str) -> str:
    """As ``{glue:text}`` has it."""
    from myst_nb.core.variables import format_plain_text

    return str(format_plain_text(value, form))


def roles(text: str) -> str:
    """Roles as the words they show."""

    def say(found: re.Match[str]) -> str:
        words = re.fullmatch(r"(.*?)\s*<([^>]+)>", found["text"], re.S)
        shown = words[1] if words else found["text"]
        if found["name"] == "claim" and not words:
            from attnbook import claims

            return claims.get(shown).number
        if found["name"] == "math":
            return f"${shown}$"
        return shown.strip("/").split("/")[-1] if found["name"] in ("doc", "ref") else shown

    return ROLE.sub(say, text)
