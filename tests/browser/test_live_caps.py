"""Nothing that a cell shows stops its page: what one run may show is capped in the page itself."""

from __future__ import annotations

from typing import Any

import pytest
from live_pages import Visit, alive, edit, run, settled

MORE = "more than a page can"
SAY = "import json, kernel\nsay = lambda **what: kernel.say(json.dumps(what))\n"
HTML = "from IPython.display import HTML\n"
MARKS = "\\N{COMBINING ACUTE ACCENT}"
USE = """lines = [f'<g id="a{k + 1}"><use href="#a{k}"/><use href="#a{k}"/></g>' for k in range(30)]
text = ('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><defs><g id="a0"><rect '
        'width="9" height="9"/></g>' + "".join(lines) + '</defs><use href="#a30"/></svg>')
"""
# What each of them took before, on a quiet machine: from seconds to never. A run that is not over
# within a minute fails, which is a hundred times what any of them takes now.
FLOODS = {
    "400 texts past Python's caps": (
        SAY + "for _ in range(400): say(kind='display', data={'text/plain': 'x' * 300_000})", MORE
    ),
    "400 prints past Python's caps": (
        SAY + "for _ in range(400): say(kind='stream', name='stdout', text='x' * 300_000)", MORE
    ),
    "150,000 small messages": (
        SAY + "for _ in range(150_000): say(kind='stream', name='stdout', text='a')", MORE
    ),
    "30 MB of HTML": (
        SAY + "say(kind='display', data={'text/html': '<p>a</p>' * 4_000_000})", MORE
    ),
    "50,000 nested elements": (HTML + "HTML('<div>' * 50_000)", MORE),
    "elements that are opened again": (
        HTML + "HTML(''.join(f'<b id={k}>' for k in range(200)) + '<p>x' * 200_000)", MORE
    ),
    "elements that a table throws out": (HTML + "HTML('<table>' + '<div>' * 300_000)", MORE),
    "300,000 attributes": (
        HTML + "HTML('<p ' + ' '.join(f'a{k}=1' for k in range(300_000)) + '>x</p>')", MORE
    ),
    "cells that span a million places": (
        HTML + "HTML('<table><tr>' + '<td colspan=1000 rowspan=65000>x' * 9000)", MORE
    ),
    "a drawing of a drawing of a drawing": (HTML + USE + "HTML(text)", ""),
    "the same as a picture": ("from IPython.display import SVG\n" + USE + "SVG(text)", ""),
    "one letter with 190,000 marks": (f"print('a' + '{MARKS}' * 190_000)", "a"),
    "a long line after a carriage return": ("print('\\r\\n' + 'x' * 190_000)", "xxx"),
    "signs that turn the order around": ("print('\\u202e\\u2067a' * 60_000)", "aaa"),
    "messages that are none": (
        "import kernel\nfor text in ['no json', 'null', '[]', '7', '{}'] * 200: kernel.say(text)",
        "",
    ),
    "60 experiments": (
        ("from IPython.display import display\nfrom attnbook import widgets\n"
        "for _ in range(60): display(widgets.PhasePlane())"), MORE,
    ),
    "30 MB of tables": (
        HTML + "from IPython.display import display\n"
        "for _ in range(30): display(HTML('<p>a</p>' * 125_000))", MORE,
    ),
    "a name of 50 million letters": (
        "class R:\n    def __repr__(self): return 'x' * 50_000_000\nR()", MORE
    ),
    "an error of 50 million letters": ("raise ValueError('y' * 50_000_000)", "more characters"),
}  # fmt: skip
SIZE = """() => {
  const out = document.querySelector(".al-scratch .cell_output");
  return { nodes: out.querySelectorAll("*").length, letters: out.textContent.length,
    boxes: out.children.length };
}"""


def test_what_a_run_shows_is_capped_in_the_page(visit: Visit) -> None:
    page = visit("book/scratch.html")
    alive(page)
    for name, (code, words) in FLOODS.items():
        found = run(page, code, 0, 60)
        assert words in found["text"], (name, found["text"][-300:])
        size = page.evaluate(SIZE)
        assert size["nodes"] <= 40_000, (name, size)
        assert size["letters"] <= 1_500_000, (name, size)
        assert size["boxes"] <= 402, (name, size)
        assert run(page, "print(6 * 7)")["text"].strip() == "42", f"{name}: Python is still there"


def test_a_worker_that_floods_the_page_is_ended(visit: Visit) -> None:
    """Messages that worker.js did not count, as from code that took its place."""
    page = visit("book/scratch.html")
    alive(page)
    page.evaluate("""async () => {
      const { Python } = await import(new URL("../live/python.js", location.href));
      const python = new Python({ folder: "x/", files: {} }, {}, { flood: () => { ended += 1; } });
      let ended = 0;
      window.flooded = (count) => {
        for (let k = 0; k < count; k++) python.hear({ type: "out", id: "s1", what: "x" });
        return ended;
      };
    }""")
    assert page.evaluate("window.flooded(20000)") == 0
    assert page.evaluate("window.flooded(1)") == 1


def test_numpy_and_python_fail_as_elsewhere(visit: Visit) -> None:
    page = visit("book/scratch.html")
    alive(page)
    fails: dict[str, Any] = {
        "np.linalg.solve(np.ones((2, 2)), [1.0, 2.0])": "LinAlgError: Singular matrix",
        "np.linalg.inv(np.zeros((2, 2)))": "LinAlgError: Singular matrix",
        "np.linalg.matrix_power(np.ones((2, 2)), -1)": "LinAlgError: Singular matrix",
        "np.linalg.cholesky(-np.eye(2))": "LinAlgError: Matrix is not positive definite",
        "input('name: ')": "no keyboard input",
    }
    for code, words in fails.items():
        found = run(page, f"import numpy as np\n{code}")
        assert found["ran"] == "error", (code, found["text"])
        assert words in found["text"], (code, found["text"])
    deep = "import sys\nsys.setrecursionlimit(10**6)\ndef f(x):\n    return f(x)\nf(0)"
    found = run(page, deep, 0, 60)
    assert "RecursionError" in found["text"], found["text"][-500:]
    assert len(found["text"]) < 4000
    found = run(page, "x = (\n")
    assert found["text"].split("\n")[0].strip() == 'File "<cell 101>", line 1'
    assert run(page, "print(6 * 7)")["text"].strip() == "42"


FORMULAS = {
    "2,000 sums": "x^2+" * 500 + "x",
    "fractions in fractions": r"\frac{1}{" * 270 + "x" + "}" * 270,
    "brackets in brackets": r"\left(" * 300 + "x" + r"\right)" * 300,
    "macros in macros": r"\def\a{xx}\def\b{\a\a\a\a}\def\c{\b\b\b\b}" + r"\c" * 200,
}


@pytest.mark.long
def test_formulas_of_an_output_are_set_and_cannot_stop_a_page(visit: Visit) -> None:
    """Fractions in fractions ended the page's whole process before."""
    page = visit("book/bias/setting.html")
    alive(page)
    lines = ["from IPython.display import Latex, display", "display(Latex('$x^2$'))"]
    lines += [f"display(Latex({text!r}))" for text in (f"${one}$" for one in FORMULAS.values())]
    edit(page, 0, "\n".join(lines))
    page.keyboard.press("Control+Enter")
    settled(page)
    page.wait_for_function("() => document.querySelectorAll('.live-latex mjx-container').length")
    assert page.locator(".live-latex").count() == 1 + len(FORMULAS)
    assert page.evaluate("document.querySelectorAll('.live-latex mjx-container *').length") < 40_000
