"""Exercises from Python, and what pages may not do: an answer is computed, never typed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import widgets
from attnbook.widgets import exercise, prose

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path for path in (ROOT / "book").rglob("*.md") if "coursework" not in path.parts)
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", re.M | re.S)


def code(text: str) -> ast.Module:
    """All cells of a page."""
    cells = (re.sub(r"^([:%!].*\n)+", "", cell) for cell in CELL.findall(text))
    return ast.parse("\n".join(cells))


def typed(text: str) -> Iterator[str]:
    """Numbers among a page's exercises that nobody computed."""
    tree = code(text)
    plain = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and literal(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name.removeprefix("widgets.") not in ("exercise.number", "exercise.power"):
            continue
        named = {each.arg: each.value for each in node.keywords}
        answer = node.args[2] if len(node.args) > 2 else named["answer"]
        if literal(answer) or (isinstance(answer, ast.Name) and answer.id in plain):
            yield f"answer {ast.unparse(answer)}"
        wrong = named.get("wrong")
        for key in wrong.keys if isinstance(wrong, ast.Dict) else []:
            if key is not None and literal(key) and not simple(key):
                yield f"wrong {ast.unparse(key)}"


def literal(node: ast.expr) -> bool:
    """Whether nothing but digits stands there."""
    return not any(isinstance(each, ast.Name | ast.Call) for each in ast.walk(node))


def simple(node: ast.expr) -> bool:
    """A number that one guesses without any work: 0, -1, 1/2, 100."""
    digits = re.sub(r"[^\d]", "", ast.unparse(node)).strip("0")
    return len(digits) <= 2


@pytest.mark.parametrize(
    "page", [path for path in PAGES if "exercise." in path.read_text("utf-8")], ids=str
)
def test_answers_are_computed(page: Path) -> None:
    assert not list(typed(page.read_text("utf-8")))


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ('exercise.number("a", "q", 5.2)', ["answer 5.2"]),
        ('exercise.number("a", "q", -2 * 3)', ["answer -2 * 3"]),
        ('x = 5.2\nexercise.number("a", "q", answer=x)', ["answer x"]),
        ('x = f(1)\nexercise.number("a", "q", x)', []),
        ('exercise.power("a", "q", fit(x), wrong={-1: "", 1 / 2: "", 4.61: ""})', ["wrong 4.61"]),
        ('widgets.exercise.number("a", "q", x, wrong={np.log(2): ""})', []),
    ],
)
def test_typed_answers_are_seen(cell: str, found: list[str]) -> None:
    text = f"Words.\n\n```{{code-cell}} ipython3\n:tags: [remove-input]\n{cell}\n```\n"
    assert list(typed(text)) == found


WORDS = {"a": "one", "b": "two"}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: exercise.number("No", "q", 1.0), "name: expected lower-case words"),
        (lambda: exercise.number("n", " ", 1.0), "question: expected words"),
        (lambda: exercise.number("n", "a $b", 1.0), "question: expected dollars in pairs"),
        (lambda: exercise.number("n", "q", float("nan")), "answer: expected a finite number"),
        (lambda: exercise.number("n", "q", 1.0, tolerance=0.0), "tolerance: expected"),
        (lambda: exercise.number("n", "q", 1.0, wrong={1.01: "x"}), "wrong: expected values apart"),
        (lambda: exercise.number("n", "q", 1.0, wrong={2.0: ""}), r"wrong\[2\]: expected words"),
        (lambda: exercise.choice("n", "q", WORDS, right="c", say=WORDS), "right: expected one of"),
        (lambda: exercise.choice("n", "q", WORDS, right="a", say={"a": "x"}), "none to b"),
        (lambda: exercise.choice("n", "q", {"a": "x"}, right="a", say={"a": "x"}), "2 options"),
        (lambda: exercise.false_line("n", "q", ["a", "b"], 2), "wrong: expected a place"),
        (lambda: exercise.false_line("n", "q", ["a", "b"], 1, say={1: "x"}), "say: expected words"),
        (lambda: exercise.false_line("n", "q", ["a", "b"], 1, say={5: "x"}), "say: expected place"),
        (
            lambda: exercise.reach("n", "q", explorable="e", goal={"a": {"so": 1}}, reached={1: 1}),
            "goal.*one of",
        ),
        (
            lambda: exercise.reach("n", "q", explorable="e", goal={"a": 1}, reached={}),
            "reached: expected a state",
        ),
        (
            lambda: exercise.reach(
                "n", "q", explorable="e", goal={"a": 1}, reached={"b": 1}, say={"c": "x"}
            ),
            "say: expected one of 'a'",
        ),
        (lambda: widgets.tell("A", 1), "name: expected lower-case words"),
        (lambda: widgets.tell("a", np.nan), "value: expected a finite number"),
        (lambda: widgets.tell("a", 1.0, "q"), "form: expected how a number is written"),
    ],
)
def test_bad_input_is_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_the_page_has_words_and_task() -> None:
    made = exercise.number("n", "Is $a < b$?", np.float64(2.0), hint="`code`", solution="*So* $b$.")
    text = made.html()
    assert r"\(a &lt; b\)" in text
    assert "<code>code</code>" in text
    assert "<em>So</em>" in text
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.S)
    assert found is not None
    assert json.loads(found[1])["answer"] == 2.0


def test_a_script_cannot_be_closed_by_words() -> None:
    text = exercise.number("n", "What is </script>?", 2.0).html()
    assert text.count("</script>") == 1


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        (3.2e-7, ".1e", "3.2 · 10⁻⁷"),
        (2.0e12, ".0e", "2 · 10¹²"),
        (0.123, ".1%", "12.3 %"),
        (-1.5, ".2f", "−1.50"),
    ],
)
def test_numbers_as_people_write_them(value: float, form: str, words: str) -> None:
    assert prose.written(value, form) == words


@pytest.mark.parametrize(
    ("value", "shown"), [(np.float64(1.25), "1.25"), (np.array(3), "3"), ("far", "'far'")]
)
def test_what_is_told_reads_as_python(
    monkeypatch: pytest.MonkeyPatch, value: Any, shown: str
) -> None:
    sent: list[dict[str, str]] = []
    monkeypatch.setattr(prose, "publish", lambda data, _: sent.append(data))
    widgets.tell("a", value)
    assert list(sent[0].values()) == [shown]
