"""What was measured is never typed: the words of rebuilt pages take numbers from their cells.

A constant that is *given* (a step size, a number of tokens) may stand in the words with a mark
behind it: ``with step $0.05$<!-- given -->``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Pages that were rebuilt; whoever rebuilds one adds it: "svm/tokens", ...
REBUILT: list[str] = [
    "svm/index",
    "svm/tokens",
    "svm/descent",
    "svm/local",
    "svm/margin",
    "svm/norms",
    "svm/global",
    "svm/many",
    "svm/sequences",
    "svm/numbers",
    "svm/real",
    "open",
    "encoder/real",
]
MOST_GIVEN = 12  # marks on one page: more are a table, or come from the cell that sets them

FENCE = re.compile(r"^ *(?P<fence>`{3,}|:{3,}|~{3,})(?P<kind>\{[\w:-]+\}|\S*).*$")
SILENT = ("{code", "{raw", "{literalinclude", "{figure", "{image", "{bibliography", "{toctree")
GIVEN = re.compile(r"(?:\$[^$]+\$|\S+(?: %)?) ?<!-- given -->")
NAMES = (
    r"(?:Theorem|Lemma|Proposition|Corollary|Assumption|Definition|Remark|Figure|Fig\.|Table"
    r"|Section|Sec\.|Chapter|Appendix|Equation|Eq\.|Eqs\.|Python|NumPy|version|page|pages|p\.|pp\.)"
)
QUIET = (
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"(?<!`)(`{1,2})(?!`).+?(?<!`)\1(?!`)", re.S),  # code, and what roles are given
    re.compile(r"(?<=\])\([^)\s]*\)|https?://\S+|<[^<>\s]+>"),  # addresses
    re.compile(r"^ *:[\w-]+:.*$|^ *\([\w-]+\)= *$", re.M),  # options and anchors
    re.compile(rf"{NAMES}s?[ ~]+\(?\d[\d.]*\)?(?:(?:,| and| to|-|–)? ?\(?\d[\d.]*\)?)*"),
    re.compile(r"\(\d+(?:\.\d+)?[a-z]?\)"),  # numbers of equations
    re.compile(r"\b(?:19|20)\d\d\b(?!\.\d|[ ]?%)"),  # years
)
NUMBER = re.compile(
    r"(?<![\w.])(?:10(?:\^\{?[-−+]?\d+\}?|⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
    r"|(?:(?:\d{1,3}(?:(?:,|\{,\})\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?"
    r"(?:\s?\\?%| percent\b)?)"
)


def words(text: str) -> Iterator[tuple[int, str]]:
    """Lines that readers read, without code, with the words that exercises say."""
    lines = text.split("\n")
    open_: list[tuple[str, bool]] = []
    start = lines.index("---", 1) + 1 if lines[0] == "---" else 0
    for k, line in enumerate(lines[start:], start + 1):
        found = FENCE.match(line)
        if open_ and line.strip() == open_[-1][0]:
            open_.pop()
        elif open_ and open_[-1][1]:
            continue
        elif found:
            silent = not found["kind"].startswith("{") or found["kind"].startswith(SILENT)
            open_.append((found["fence"], silent))
        else:
            yield k, line
    for cell in re.finditer(r"^```\{code-cell\}.*?\n(.*?)^```$", text, re.M | re.S):
        at = text.count("\n", 0, cell.start()) + 1
        for said in asked(re.sub(r"^(:[\w-]+:.*\n)+", "", cell[1])):
            yield at, said


def asked(code: str) -> Iterator[str]:
    """What an exercise says: its words, without what is computed inside them."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and "exercise." in ast.unparse(call.func):
            forms = {id(part) for node in ast.walk(call) if isinstance(node, ast.FormattedValue)
                     and node.format_spec for part in ast.walk(node.format_spec)}  # fmt: skip
            for node in ast.walk(call):
                if isinstance(node, ast.Constant) and id(node) not in forms:
                    yield node.value if isinstance(node.value, str) else ""


def typed(text: str) -> Iterator[tuple[int, str]]:
    """Numbers that look measured, with their lines."""
    for at, line in words(text):
        shown = GIVEN.sub(" ", line)
        for quiet in QUIET:
            shown = quiet.sub(" ", shown)
        for found in NUMBER.finditer(shown):
            if measured(found[0]):
                yield at, found[0]


def measured(number: str) -> bool:
    """Decimals, percentages, powers of ten, three significant digits or more."""
    if re.match(r"10[\^⁻⁰¹²³⁴⁵⁶⁷⁸⁹]", number) or "e" in number.removesuffix(" percent"):
        return True
    if re.search(r"%|percent", number):
        return not re.match(r"(?:0|50|100)\b(?!\.)", number)
    if "." in number.rstrip("."):
        return True
    return len(re.sub(r"\D", "", number).strip("0")) >= 3


def test_no_measured_number_is_typed() -> None:
    """Take them from a cell (`widgets.tell`), or mark what is given."""
    texts = {page: (ROOT / "book" / f"{page}.md").read_text("utf-8") for page in REBUILT}
    found = [f"{page}.md:{at}: {number}" for page, text in texts.items()
             for at, number in typed(text)]  # fmt: skip
    assert not found
    assert all(text.count("<!-- given -->") <= MOST_GIVEN for text in texts.values())


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("It falls to 0.7 % of the attention.", ["0.7 %"]),
        ("A norm of 1.13, after 137 steps.", ["1.13", "137"]),
        ("Its norm is $\\|W\\| = 5.2$.", ["5.2"]),
        ("Below $10^{-7}$, or 10⁻⁷, or 3e-7.", ["10^{-7}", "10⁻⁷", "3e-7"]),
        ("In 1,024 runs.", ["1,024"]),
        ("In 83 percent of runs, 100 % of the others.", ["83 percent"]),
        ("Two heads, 100 steps, half of 20, $1/2$, $2^{d}$, 1000 runs.", []),
        ("By Theorem 4.12 and Lemmas 3.1 and 3.2, see (4.5), 2023, Figure 2.", []),
        ("[there](https://a.b/1.25) and `x = 1.25` and {glue:text}`norm:.25f`", []),
        ("with step $\\eta = 0.05$<!-- given --> and 0.25 <!-- given --> too", []),
        ("with 0.05, not <!-- given --> there", ["0.05"]),
        ("The share $.25$ of them.", [".25"]),
        ("Chapter 2, step 3. Then 4.", []),
    ],
)
def test_what_counts_as_measured(line: str, found: list[str]) -> None:
    assert [number for _, number in typed(line)] == found


def test_code_is_not_prose_and_exercises_are() -> None:
    page = """---
kernel: 3.14
---
# Title
```{code-cell} ipython3
:tags: [remove-input]
x = 1.234
exercise.number("a", f"Why {x:.3f}, why 2.75?", x, wrong={f(1.25): "No."})
```
````{step} floor
$$ x = 3.25 $$
````
```
1.25
```
Words 7.5.
"""
    assert [(at, number) for at, number in typed(page)] == [(11, "3.25"), (16, "7.5"), (5, "2.75")]


def test_downloads_have_the_numbers() -> None:
    """As the site shows them; of another page too."""
    import nbformat
    import notebooks

    from attnbook.widgets.prose import PREFIX

    def ran(**values: str) -> nbformat.NotebookNode:
        outputs = [
            nbformat.v4.new_output(
                "display_data",
                {f"{PREFIX}text/plain": value},
                metadata={"scrapbook": {"name": name, "mime_prefix": PREFIX}},
            )
            for name, value in values.items()
        ]
        cell = nbformat.v4.new_code_cell("", outputs=outputs)
        return nbformat.v4.new_notebook(cells=[cell])

    pages = {
        "book/svm/here": ran(norm="1.2345", floor="'3.2 · 10⁻⁷'"),
        "book/bias/there": ran(steps="20"),
    }
    text = "{glue:text}`norm:.2f`, {glue:text}`floor`, {glue:text}`../bias/there.md::steps:d`"
    assert notebooks.numbers(text, "book/svm/here", pages.get) == "1.23, 3.2 · 10⁻⁷, 20"
    with pytest.raises(ValueError, match="a cell of book/svm/here that tells none, got none"):
        notebooks.numbers("{glue:text}`none:.1f`", "book/svm/here", pages.get)
