"""What the book's pages can say about the ledger, and what every page carries.

Directives: ``statement`` (a claim where it is taught), ``ledger`` and ``errata`` (tables with the
evidence of this build), ``coverage``, ``ran``. Role: ``claim`` (a link to the ledger).
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from math import floor, isinf, log10
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.nodes import make_refnode

from attnbook import claims

LOG = logging.getLogger(__name__)
BUILD = Path(os.environ.get("ATTNLAB_BUILD", "_build"))
WORDS_A_MINUTE = 180
LOOKED_UP = re.compile(r"book/(api/.*|ledger|errata|glossary|bibliography|notation|ran|progress)")
LEDGER, ERRATA = "book/ledger", "book/errata"
MARKS = {
    "definition": "definition",
    "holds": "holds",
    "holds with correction": "corrected",
    "fails as stated": "fails",
    "out of reach": "unreached",
    "ambiguous": "ambiguous",
    "may be the extraction's": "extraction",
    "misprint": "misprint",
}
SPARE = {  # what is said of a bound that has much room, by the claim's status
    "holds": "It holds",
    "out of reach": "Nothing that could be measured contradicts it",
    "definition": "The data that are to satisfy it do",
}


def anchor(claim: claims.Claim) -> str:
    """Where a claim stands in the ledger or on the errata page."""
    return claim.id.replace(".", "-")


def evidence() -> dict[str, Any]:
    """What the checks of this build found, by claim."""
    path = BUILD / "evidence.json"
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def written(self: SphinxDirective, text: str) -> list[nodes.Node]:
    """MyST text as nodes; a stop after a long formula stays on its line, also where it scrolls."""
    text = re.sub(r"\$([^$]{40,})\$([.,;:])(?=\s|$)", r"$\1\\text{\2}$", text)
    node = nodes.Element()
    self.state.nested_parse(StringList(text.splitlines(), source=self.env.docname), 0, node)
    return node.children


GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "eta", "lambda", "mu", "rho", "tau"}
PLAIN = {"star": r"\star", "eps": r"\epsilon"}


def formulas(text: str) -> str:
    """Plain text of a note, such as gamma_star or 10^5, with its symbols as formulas."""

    def symbol(found: re.Match[str]) -> str:
        name, sign, index = found.groups()
        name = f"\\{name}" if name in GREEK else name
        index = PLAIN.get(
            index, index if len(index) == 1 or index.isdigit() else f"\\text{{{index}}}"
        )
        return f"${name}{sign}{{{index}}}$"

    parts = re.split(r"(\$[^$]*\$|`[^`]*`)", text)
    word = r"\b([A-Za-z]+|\d+)([_^])([A-Za-z]+|\d+)\b"
    return "".join(p if k % 2 else re.sub(word, symbol, p) for k, p in enumerate(parts))


def badge(claim: claims.Claim) -> list[nodes.Node]:
    """The status as a word in a frame, never by colour alone; whose statement it is."""
    found = [nodes.inline("", claim.status, classes=["al-status", f"al-{MARKS[claim.status]}"])]
    if claim.own:
        found.append(nodes.inline("", "the book's own", classes=["al-status", "al-own"]))
    if claim.preprint:
        found.append(nodes.inline("", "superseded preprint", classes=["al-status", "al-own"]))
    return [part for mark in found for part in (nodes.Text(" "), mark)]


def stated(self: SphinxDirective, claim: claims.Claim, reason: bool = True) -> list[nodes.Node]:
    """What ``stated_in`` says, as nodes."""
    return [node for text in stated_in(claim, reason) for node in written(self, text)]


def stated_in(claim: claims.Claim, reason: bool = True) -> list[str]:
    """What is given, what follows, what to read instead, what the check cannot see: in MyST."""
    given = "\n".join(f"- {hypothesis}" for hypothesis in claim.hypotheses)
    found = [f"Given\n\n{given}\n"] if given else []
    found += [claim.statement]
    if claim.correction:
        found += [f"**Read instead.** {claim.correction}"]
    shown = claims.get(claim.same_as) if claim.same_as else claim
    if shown.slack and shown.asserts == claim.asserts:
        found += [spare(shown)]
    if shown.suggests:
        found += [suggested(shown)]
    if claim.reason and reason:
        found += [f"*{formulas(claim.reason)}*"]
    return found


def spare(claim: claims.Claim) -> str:
    """What the evidence does not say: the constant of a bound that is far away."""
    what = SPARE.get(claim.status, "What is read instead holds")
    if isinf(claim.slack):
        return f"**Slack.** {what}; here the bound lies beyond 0 and says nothing."
    power = floor(log10(claim.slack))
    lead = claim.slack / 10.0**power
    times = f"10^{{{power}}}" if f"{lead:.0f}" == "1" else rf"{lead:.0f}\cdot10^{{{power}}}"
    return f"**Slack.** {what}; here the loosest bound has ${times}$ to spare."


def suggested(claim: claims.Claim) -> str:
    """The law beyond the statement, its number, and what measures it again."""
    said = claim.suggests
    if said is None:
        return ""
    low, high = said.interval
    number = rf"${said.fitted:g}$ ($[{low:g},\,{high:g}]$)"
    return f"**What the numbers suggest.** {said.law}: {number}; `attnlab check {claim.id}`."


class Statement(SphinxDirective):
    """A numbered statement, its status, what to read instead, and the way to its evidence."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Build the box; the place is remembered for the ledger's links."""
        try:
            claim = claims.get(self.arguments[0])
        except ValueError as error:
            LOG.warning(str(error), location=self.get_location())
            return []
        places = self.env.__dict__.setdefault("attnlab_places", {})
        name = f"statement-{anchor(claim)}"
        if claim.id not in places:
            places[claim.id] = (self.env.docname, name)
        box = nodes.container(classes=["al-statement"], ids=[name])
        head = nodes.paragraph(classes=["al-statement-head"])
        head += nodes.strong("", f"{claim.number} ({claim.paper})")
        if claim.status != "definition":  # neither true nor false
            head += badge(claim)
        head += nodes.Text(" ")
        head += link(self, claim, "evidence")
        box += head
        box += stated(self, claim, reason=claim.status != "definition")  # the ledger has it
        if self.content:
            self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


def link(self: Any, claim: claims.Claim, words: str) -> nodes.reference:
    """A link to the claim's row."""
    page = ERRATA if claim.kind == "erratum" else LEDGER
    builder, here = self.env.app.builder, self.env.docname
    return make_refnode(builder, here, page, anchor(claim), nodes.Text(words), claim.words)


class ClaimRole(SphinxRole):
    """``{claim}`svm.theorem-1``` is a link to the ledger; ``{claim}`words <id>``` has own words."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Build the link."""
        given = re.fullmatch(r"(.*?)\s*<([^>]+)>", self.text, re.S)
        words, name = (given[1], given[2]) if given else (None, self.text)
        try:
            claim = claims.get(name)
        except ValueError as error:
            LOG.warning(str(error), location=self.get_location())
            return [nodes.Text(self.text)], []
        return [link(self, claim, words or claim.number)], []


class Ledger(SphinxDirective):
    """One paper's statements (or errata) as rows, with the evidence of this build."""

    required_arguments = 1
    option_spec = {"errata": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """One block a claim: a table would not fit a phone."""
        found = evidence()
        wanted = [
            claim
            for claim in claims.all(paper=self.arguments[0])
            if (claim.kind == "erratum") == ("errata" in self.options)
        ]
        rows: list[nodes.Node] = []
        for claim in wanted:
            row = nodes.container(classes=["al-entry"], ids=[anchor(claim)])
            head = nodes.paragraph()
            head += nodes.strong("", claim.number)
            head += [*badge(claim), nodes.Text(f" {claim.words}. ")]
            head += nodes.literal("", claim.id)
            row += head
            row += stated(self, claim)
            line = nodes.paragraph("", "Evidence: ", classes=["al-evidence"])
            if claim.same_as:
                other = claims.get(claim.same_as)
                line += [nodes.Text("that of "), link(self, other, other.number)]
            elif claim.has_check:
                told = found.get(claim.id, {})
                line += nodes.Text(told.get("evidence", "not run yet in this build"))
                row += line
                line = loose(told.get("slack", []))
            else:
                misprint = claim.status == "misprint"
                told = "a slip of the pen, nothing to measure" if misprint else "read, not measured"
                line += nodes.Text(told)
            row += line
            if claim.turned_by:
                words = f"Turned by: {'; '.join(claim.turned_by)}"
                row += nodes.paragraph("", words, classes=["al-evidence"])
            row += Place(claim.id, claim.errata)
            rows.append(row)
        return rows


def loose(rows: list[dict[str, Any]]) -> nodes.paragraph:
    """The rows whose bounds are far from what was measured, widest first."""
    line = nodes.paragraph(classes=["al-evidence"])
    for k, row in enumerate(rows[:3]):
        size = row["room"] if isinstance(row["room"], str) else f"{row['room']:.1e}"
        room = "the bound says nothing" if size == "inf" else f"room {size}"
        line += nodes.Text(f"{'Slack: ' if k == 0 else '; '}{row['what']}, {room}")
    if len(rows) > 3:
        line += nodes.Text(f"; and {len(rows) - 3} more")
    return line


class Place(nodes.General, nodes.Element):
    """Stands for links that are known only once every page was read."""

    def __init__(self, name: str = "", others: tuple[str, ...] = ()) -> None:
        super().__init__()
        self["name"], self["others"] = name, list(others)


class Totals(SphinxDirective):
    """How many statements and errata of each paper have which status."""

    def run(self) -> list[nodes.Node]:
        """A small table."""
        lines = ["| | " + " | ".join(MARKS) + " | in all |", "|" + " --- |" * (len(MARKS) + 2)]
        for group, found in claims.counts(claims.all()).items():
            numbers = [found[status] for status in MARKS]
            lines.append(f"| {group} | " + " | ".join(map(str, [*numbers, sum(numbers)])) + " |")
        return written(self, "\n".join(lines))


ABSENT_SETS = """The problem sets are not listed here. This book was built from the source
archive, which leaves them out because their files contain the solutions. A book that is built in a
clone of the repository lists them."""


class ProblemSets(SphinxDirective):
    """What there is to assign: sets, and the problems of each, without a word of their answers."""

    def run(self) -> list[nodes.Node]:
        """A table of sets; behind it, folded, the problems of each with what they teach."""
        from attnbook.course import problem_set
        from attnbook.course._source import SETS

        sources = Path(__file__).resolve().parents[1] / "coursework"
        if not sources.is_dir():  # the source archive holds no solutions
            return written(self, ABSENT_SETS)
        lines = ["| set | problems | marked by a person | points | time |", "|" + " --- |" * 5]
        more = []
        for short in SETS:
            found = problem_set(short, sources)
            hand = sum(not one.answer for one in found.problems)
            hours = f"{found.minutes / 60:.1f} hours"
            lines.append(
                f"| {found.title} (`{short}`) | {len(found.problems)} | {hand} "
                f"| {found.points:g} | {hours} |"
            )
            more += ["", f":::{{admonition}} {found.title}", ":class: dropdown", ""]
            more += ["| problem | points | level | minutes |", "| --- | --- | --- | --- |"]
            for one in found.problems:
                person = "" if one.answer else " *(marked by a person)*"
                more.append(
                    f"| **{one.title}**: {one.goal.rstrip('.')}{person} "
                    f"| {one.points:g} | {one.difficulty} | {one.minutes} |"
                )
            for title, ids in found.halves.items():
                half = [one for one in found.problems if one.id in ids]
                points = f"{sum(one.points for one in half):g} points"
                hours = f"{sum(one.minutes for one in half) / 60:.1f} hours"
                more += ["", f"*{title}* ({points}, {hours}): `--problems {short}:{','.join(ids)}`"]
            more += [":::"]
        return written(self, "\n".join([*lines, *more]))


class Ran(SphinxDirective):
    """Which page ran, how long it took, and with which versions."""

    def run(self) -> list[nodes.Node]:
        """A table of times and a line of versions."""
        path = BUILD / "ran.json"
        if not path.is_file():
            return [nodes.paragraph("", "The pages were executed by the build itself.")]
        found = json.loads(path.read_text())
        lines = ["| page | seconds | cells |", "| --- | ---: | ---: |"]
        for page, entry in sorted(found["pages"].items()):
            lines.append(f"| {{doc}}`/{page}` | {entry['seconds']:.1f} | {entry['cells']} |")
        versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
        lines += ["", f"Versions: {versions}.", "", found["machine"]]
        return written(self, "\n".join(lines))


def resolve_places(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Once all pages are read: where a claim is taught, and which claims belong together."""
    places = getattr(app.env, "attnlab_places", {})
    for node in list(doctree.findall(Place)):
        line = nodes.paragraph(classes=["al-links"])
        if node["name"] in places:
            page, target = places[node["name"]]
            title = app.env.titles[page].astext()
            line += nodes.Text("Taught in ")
            line += make_refnode(app.builder, docname, page, target, nodes.Text(title))
            line += nodes.Text(", with ")
            for mark, words in company(page):
                line += make_refnode(app.builder, docname, page, mark, nodes.Text(words))
                line += nodes.Text(", ")
            line.pop()
            line += nodes.Text(". ")
        told = [page for page in named().get(node["name"], []) if page in app.env.found_docs]
        for k, page in enumerate(told[:4]):
            line += nodes.Text("Named in " if k == 0 else ", ")
            line += make_refnode(
                app.builder, docname, page, "", nodes.Text(app.env.titles[page].astext())
            )
        if told:
            line += nodes.Text(". ")
        for name in node["others"]:
            try:
                other = claims.get(name)
            except ValueError as error:
                LOG.warning(str(error), location=docname)
                continue
            page = ERRATA if other.kind == "erratum" else LEDGER
            words = nodes.Text(f"{other.number}" if other.kind != "erratum" else name)
            line += make_refnode(app.builder, docname, page, anchor(other), words)
            line += nodes.Text(" ")
        node.replace_self(line if line.children else [])


@cache
def named() -> dict[str, list[str]]:
    """Claims by the chapter pages whose words link to them."""
    book = Path(__file__).resolve().parents[1]
    found: dict[str, list[str]] = {}
    for path in sorted(book.glob("*/*.md")):
        if path.parent.name in ("multihead", "encoder", "bias", "svm"):
            page = f"book/{path.relative_to(book).with_suffix('').as_posix()}"
            for words in re.findall(r"\{claim\}`([^`]+)`", path.read_text("utf-8")):
                name = re.sub(r".*<([^>]+)>", r"\1", words).strip()
                if page not in found.setdefault(name, []):
                    found[name].append(page)
    return found


@cache
def company(page: str) -> list[tuple[str, str]]:
    """Explorables and exercises of a page, with their anchors."""
    from attnbook import widgets

    text = (Path(__file__).resolve().parents[2] / f"{page}.md").read_text("utf-8")
    found = []
    cells = "\n".join(re.findall(r"^```\{code-cell\}.*?^```$", text, re.M | re.S))
    for name in dict.fromkeys(re.findall(r"^(?:\w+ = )?widgets\.(\w+)\((?!.*\)\.)", cells, re.M)):
        own = getattr(getattr(widgets, name, None), "name", "")
        if own:
            found.append(
                (f"explorable-{own}", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower())
            )
    labels = re.findall(r"^:label: (ex-\S+)$", text, re.M)
    return found + [(label, f"exercise {k}") for k, label in enumerate(labels, 1)]


def merge(app: Sphinx, env: Any, docnames: set[str], other: Any) -> None:
    """For parallel reading."""
    env.__dict__.setdefault("attnlab_places", {}).update(getattr(other, "attnlab_places", {}))


def purge(app: Sphinx, env: Any, docname: str) -> None:
    """A page that is read again says its places anew."""
    places = env.__dict__.setdefault("attnlab_places", {})
    for name in [name for name, (page, _) in places.items() if page == docname]:
        del places[name]


def page_context(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Reading time, download, citation; and no script twice."""
    seen: set[str] = set()
    scripts = []
    for script in context.get("script_files", []):
        name = str(getattr(script, "filename", script))
        body = str(getattr(script, "attributes", {}).get("body", ""))
        if "thebe" in name.lower() or "thebe" in body.lower():
            continue  # live code cells are not offered; its script is added twice and clashes
        if name and name in seen:
            continue
        seen.add(name)
        scripts.append(script)
    context["script_files"] = scripts
    if doctree is None or not pagename.startswith("book/"):
        return
    words = sum(len(each.astext().split()) for each in doctree.findall(nodes.paragraph))
    minutes = max(1, round(words / WORDS_A_MINUTE))
    root = context["pathto"]("", 1)
    meta = []
    if not LOOKED_UP.fullmatch(pagename):
        meta.append(f"about {minutes} minute{'s' if minutes > 1 else ''} to read")
    download = f"downloads/{pagename.removeprefix('book/')}.ipynb"
    if (BUILD / "web" / download).is_file():
        meta.append(f'<a href="{root}{download}" download>download as notebook</a>')
    meta += context.get("attnlab_elsewhere", [])
    meta.append('<a href="#cite-this-page">cite</a>')
    title = re.sub(r"<[^>]+>", "", context.get("title", pagename))
    year = os.environ.get("ATTNLAB_YEAR", "2026")
    head = f'<p class="al-meta">{" · ".join(meta)}</p>'
    key = "attnlab_" + re.sub(r"\W+", "_", pagename.removeprefix("book/"))
    foot = (
        f'<details class="al-cite" id="cite-this-page"><summary>Cite this page</summary>'
        f"<p>attnlab {claims_version()}: “{title}”, {year}.</p>"
        f"<pre>@misc{{{key},\n  title = {{{title}}},\n  howpublished = {{attnlab "
        f"{claims_version()}}},\n  year = {{{year}}}\n}}</pre></details>"
    )
    body = context.get("body", "")
    context["body"] = body.replace("</h1>", f"</h1>\n{head}", 1) + foot


def claims_version() -> str:
    """Of the library that this book was built with."""
    import attnlab

    return attnlab.__version__


def configure(app: Sphinx, config: Any) -> None:
    """Results that ``book/_tools`` found to be today's."""
    place = os.environ.get("ATTNLAB_CACHE")
    if place:
        config.nb_execution_cache_path = place
    if os.environ.get("ATTNLAB_COURSE"):
        config.hide_solutions = True


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    app.add_directive("statement", Statement)
    app.add_directive("ledger", Ledger)
    app.add_directive("ledger-totals", Totals)
    app.add_directive("problem-sets", ProblemSets)
    app.add_directive("ran", Ran)
    app.add_role("claim", ClaimRole())
    app.add_node(Place)
    app.connect("config-inited", configure, priority=100)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("doctree-resolved", resolve_places)
    app.connect("html-page-context", page_context, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
