"""Notebooks made from pages: readable words, no answer in the open, and no edit lost."""

from __future__ import annotations

import ast
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import notebooks
import pytest
import results
from open_lab import WRITTEN, renew

from attnbook.widgets import exercise

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
PAGES = results.runnable()
ASKS = re.compile(r"\bexercise\.(?:number|power|choice|false_line|reach)\(")
UNPACKS = re.compile(r'^exercise\.unpack\("([\w+/=]+)"\)$', re.M)


def download(page: str) -> Any:
    """The notebook of a page that the site offers."""
    path = HTML / "downloads" / f"{page.removeprefix('book/')}.ipynb"
    if not path.is_file():
        pytest.fail("the book is not built: make book")
    return nbformat.read(path, as_version=4)


def sources(page: str, kind: str) -> list[str]:
    return [cell.source for cell in download(page).cells if cell.cell_type == kind]


# -- words ---------------------------------------------------------------------------------------
LEFT_OVER = re.compile(
    r"^ *(?:`{3,}|:{3,}).*|^:\w+:.*|\{[\w:.-]+\}`|\]\([^)]*\.md|<!--|\\class\b|\\softmax\b|\\R\b",
    re.M,
)


@pytest.mark.parametrize("page", PAGES)
def test_words_are_plain_markdown(page: str) -> None:
    notebook = download(page)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    for text in sources(page, "markdown"):
        assert not LEFT_OVER.findall(text)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    assert LEFT_OVER.search((ROOT / f"{page}.md").read_text("utf-8")), "pages are not plain"


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("See {cite}`cover1965geometrical`.", "See [Cover, 1965]."),
        (
            "{cite}`cortes1995support, tarzanagh2023transformers`",
            "[Cortes and Vapnik, 1995; Tarzanagh et al., 2023]",
        ),
        ("{cite:t}`cortes1995support` say", "Cortes and Vapnik [1995] say"),
        ("{claim}`svm.theorem-1` and {claim}`it <svm.theorem-1>`", "Theorem 1 and it"),
        ("The {mark}`best $x_b$ <best>`, {mark}`rival`", "The best $x_b$, rival"),
        (r"$\class{al-new}{\softmax(x)}$", r"${\operatorname{softmax}(x)}$"),
        (":::{container} al-aside\nA word.\n:::", "A word."),
        (":::{container} al-site\nPress the button.\n:::", ""),
        (
            "```{solution} label\n:label: sol\n:class: dropdown\n\nIt is $2$.\n```",
            "<details>\n<summary>Solution</summary>\n\nIt is $2$.\n\n</details>",
        ),
        (
            ":::{admonition} Is $a<b$?\n:class: dropdown\nYes.\n:::",
            "<details>\n<summary>Is $a&lt;b$?</summary>\n\nYes.\n\n</details>",
        ),
        (":::{admonition} Now you can\n:class: note\n- do it\n:::", "**Now you can.**\n\n- do it"),
        (
            "```{exercise} Three names\n:label: ex\n\nWhich?\n```",
            "**Exercise: Three names.**\n\nWhich?",
        ),
    ],
)
def test_myst_as_markdown(myst: str, markdown: str) -> None:
    assert notebooks.plain(myst).strip() == markdown


def test_a_statement_has_its_words_and_its_status() -> None:
    text = notebooks.plain("```{statement} svm.theorem-1\n```")
    assert "> **Theorem 1 (svm)**, *holds*" in text
    assert r"> - $d\ge\max(T-1,n)$" in text
    assert all(line.startswith(">") for line in text.strip().splitlines())


@pytest.mark.parametrize(
    ("myst", "says"),
    [("```{figure} a.png\n```", r"\{figure\} a.png: notebooks.py"), ("{ref}`a`", r"\{ref\}`a`: ")],
)
def test_what_no_notebook_can_show_stops_the_build(myst: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        notebooks.plain(myst)


def test_links_lead_to_notebooks() -> None:
    text = "[next](norms.md), [signs](../notation.md), [start](../scratch.md#a-dataset)"
    told = notebooks.links(text, "book/svm/margin")
    assert told == "[next](norms.ipynb), signs, [start](../scratch.ipynb)"


# -- answers -------------------------------------------------------------------------------------
def tasks(page: str) -> list[dict[str, Any]]:
    """The checked exercises of a page of the site, as its script has them."""
    html = (HTML / f"{page}.html").read_text("utf-8")
    found = re.findall(r'data-exercise=.*?<script type="application/json">(.*?)</script>', html)
    return [json.loads(task) for task in found]


def answers(value: object) -> list[str]:
    """Words of a checked exercise that tell what is right or wrong."""
    if isinstance(value, dict):
        return [words for each in value.values() for words in answers(each)]
    if isinstance(value, list):
        return [words for each in value for words in answers(each)]
    return [value] if isinstance(value, str) and " " in value else []


def folded_on(page: str) -> list[str]:
    """Lines of the hints and solutions of a page's words, those that read the same as Markdown."""
    text = (ROOT / f"{page}.md").read_text("utf-8")
    bodies = re.findall(r"^(`{3,})\{(?:solution|hint)\}.*?\n(.*?)^\1$", text, re.M | re.S)
    lines = [line.strip() for _, body in bodies for line in body.splitlines()]
    return [
        line for line in lines if len(line) > 20 and not re.search(r"^:|\{[\w:]+\}`|\.md|\\R", line)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_no_answer_is_in_the_open(page: str) -> None:
    words = "\n".join(sources(page, "markdown"))
    seen = re.sub(r"<details>.*?</details>", "", words, flags=re.S)
    for line in folded_on(page):
        assert line in words
        assert line not in seen
    code = "\n".join(sources(page, "code"))
    assert not ASKS.search(code)
    assert not re.search(r"\b(?:solution|hint)=", code)
    for task in tasks(page):
        kept = {key: value for key, value in task.items() if key not in ("question", "title")}
        for words in answers(kept):
            assert words not in code


def test_every_exercise_is_asked_as_on_the_site() -> None:
    count = 0
    for page in PAGES:
        lines = [line for code in sources(page, "code") for line in UNPACKS.findall(code)]
        assert [exercise.unpack(line).task for line in lines] == tasks(page)
        count += len(lines)
    assert count > 40


@pytest.mark.parametrize("page", PAGES)
def test_no_cell_needs_what_an_exercise_computes(page: str) -> None:
    """A notebook keeps the imports of such a cell, and nothing else."""
    text = (ROOT / f"{page}.md").read_text("utf-8")
    cells = re.findall(r"^```\{code-cell\}.*?\n((?:[:%!].*\n)*)(.*?)^```$", text, re.M | re.S)
    computed: set[str] = set()
    for _, code in cells:
        nodes = list(ast.walk(ast.parse(code)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        stored = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        stored |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        if ASKS.search(code):
            computed |= stored
        else:
            assert not computed & {node.id for node in names if isinstance(node.ctx, ast.Load)}
            computed -= stored


def test_a_cell_that_asks_keeps_its_imports() -> None:
    made = exercise.number("demo", "How *long*?", 2.0, title="Length", solution="Two.")
    code = 'import math\nlong = math.sqrt(4)\nexercise.number("demo", "How *long*?", long)'
    outputs = [{"output_type": "display_data", "data": {"text/html": made.html()}}]
    told = notebooks.packed(code, outputs)
    assert told.splitlines()[:2] == ["import math", "from attnbook.widgets import exercise"]
    assert '# Exercise "Length": run this cell' in told
    assert "sqrt" not in told
    (line,) = UNPACKS.findall(told)
    assert exercise.unpack(line).task == made.task
    assert unescape(exercise.unpack(line).markup) == unescape(made.markup)
    assert notebooks.packed("x = 1", []) == "x = 1"


# -- the folder of `make lab` --------------------------------------------------------------------
def made(*cells: str) -> str:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(each, id=f"c{k}") for k, each in enumerate(cells)]
    return nbformat.writes(notebook) + "\n"


def codes(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def change(path: Path, code: str) -> None:
    """What JupyterLab saves after somebody typed."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = code
    nbformat.write(notebook, path)


def test_what_nobody_changed_is_renewed(tmp_path: Path) -> None:
    page = tmp_path / "svm" / "margin.ipynb"
    assert renew(tmp_path, {"svm/margin.ipynb": made("one")}) == []
    notebook = nbformat.read(page, as_version=4)
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text="1")]
    notebook.cells[0].execution_count = 1
    nbformat.write(notebook, page)
    renew(tmp_path, {"svm/margin.ipynb": made("one")})
    assert nbformat.read(page, as_version=4).cells[0].outputs, "the page is the same: outputs stay"
    renew(tmp_path, {"svm/margin.ipynb": made("two")})
    assert codes(page) == ["two"]
    assert [each.name for each in page.parent.iterdir()] == ["margin.ipynb"]


def test_what_somebody_changed_is_kept(tmp_path: Path) -> None:
    page, second = tmp_path / "margin.ipynb", tmp_path / "margin (2).ipynb"
    renew(tmp_path, {"margin.ipynb": made("one")})
    change(page, "mine")
    for _ in range(2):  # the page is the same
        assert renew(tmp_path, {"margin.ipynb": made("one")}) == []
    assert not second.exists()
    assert renew(tmp_path, {"margin.ipynb": made("two")}) == [second]
    assert renew(tmp_path, {"margin.ipynb": made("two")}) == []
    assert renew(tmp_path, {"margin.ipynb": made("three")}) == [second], "nobody changed it"
    change(second, "mine too")
    assert renew(tmp_path, {"margin.ipynb": made("four")}) == [tmp_path / "margin (3).ipynb"]
    assert [codes(path) for path in sorted(tmp_path.glob("*.ipynb"))] == [
        ["mine too"],
        ["four"],
        ["mine"],
    ]


def test_files_that_nobody_can_account_for_are_kept(tmp_path: Path) -> None:
    (tmp_path / "margin.ipynb").write_text("half of a noteb")
    renew(tmp_path, {"margin.ipynb": made("one")})
    assert (tmp_path / "margin.ipynb").read_text() == "half of a noteb"
    assert codes(tmp_path / "margin (2).ipynb") == ["one"]
    (tmp_path / WRITTEN).unlink()
    renew(tmp_path, {"margin.ipynb": made("two")})
    assert codes(tmp_path / "margin (2).ipynb") == ["one"]
    assert codes(tmp_path / "margin (3).ipynb") == ["two"]


def test_a_deleted_notebook_comes_back_fresh(tmp_path: Path) -> None:
    page = tmp_path / "margin.ipynb"
    renew(tmp_path, {"margin.ipynb": made("one")})
    change(page, "mine")
    page.unlink()
    renew(tmp_path, {"margin.ipynb": made("one")})
    assert codes(page) == ["one"]
