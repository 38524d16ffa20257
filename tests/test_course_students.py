"""What students get: a check before they hand in, honest code that counts, feedback that helps."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import course
from attnbook.cli import main
from attnbook.course import _handin, wire
from attnbook.course import _notebook as notebooks
from attnbook.course._caught import caught
from attnbook.course._feedback import typeset
from attnbook.course._here import Here
from attnbook.course._source import HELP, fill, variant

HERE = Path(__file__).parent / "coursework"
BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
SEED = 5
FIRST, LAST = "stable-weights", "log_weights"
CELL = "def log_weights(logits):\n    return {}\n"
RIGHT = "logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)"


@pytest.fixture
def solved() -> dict[str, Any]:
    """The small set, answered."""
    return notebooks.submission(course.problem_set("4", HERE), SEED)


def cell(notebook: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in notebook["cells"] if one["id"] == name)


def checked(notebook: dict[str, Any], place: Path) -> dict[str, course.Finding]:
    path = place / "mine.ipynb"
    path.write_text(notebooks.write(notebook), "utf-8")
    return {one.problem: one for one in course.preflight(path)[0]}


def without(notebook: dict[str, Any], name: str) -> None:
    notebook["cells"] = [one for one in notebook["cells"] if one["id"] != name]


def metadata_of_a_liar(notebook: dict[str, Any]) -> None:
    notebook["metadata"]["attnlab"]["rooms"] += ["../../etc", "cli"]


CHANGES: dict[str, tuple[Any, str]] = {
    "nothing": (lambda _: None, "accepted"),
    "a set": (CELL.format("{1, 2}"), "not plain: a set, which has no order"),
    "an object": (CELL.format("object()"), "not plain: an object of type object"),
    "another name": ("def weights(logits):\n    return logits", "renamed: log_weights is asked"),
    "no function": ("log_wights = 3", "missing: its cell does not define log_weights"),
    "an error": ("1 / 0", "raises: ZeroDivisionError: division by zero (cell stable-weights"),
    "an error when asked": (CELL.format("1 / 0"), "raises: ZeroDivisionError"),
    "half a line": ("def log_weights(:", "raises: SyntaxError"),
    "a wrong value": (CELL.format("0 * logits"), "check fails"),
    "left early": (CELL.replace("return {}", "raise SystemExit"), "raises: tried to leave"),
    "killed": ("import os\nos._exit(3)", "raises: the process ended"),
    "no cell": (lambda n: without(n, FIRST), "missing: the cell of log_weights is not there"),
    "no check": (lambda n: without(n, f"{FIRST}-check"), "missing: its check cell"),
    "its own check": (
        lambda n: cell(n, f"{FIRST}-check").update(source="assert True"),
        "edited: its check cell",
    ),
    "blank": (
        CELL.replace("return {}", 'raise NotImplementedError("yours to write")'),
        "blank",
    ),
    "a liar": (metadata_of_a_liar, "accepted"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_notebook_is_looked_over(kind: str, solved: dict[str, Any], tmp_path: Path) -> None:
    change, told = CHANGES[kind]
    if callable(change):
        change(solved)
    else:
        cell(solved, FIRST)["source"] = change
    found = checked(solved, tmp_path)
    assert str(found[FIRST]).startswith(f"{FIRST}: {told}"), found[FIRST]
    others = [str(one) for name, one in found.items() if name != FIRST]
    assert all(re.search("accepted|in words", one) for one in others), others


def test_the_command_says_it_and_ends_with_one(
    solved: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # no checkout, no course folder
    path = tmp_path / "mine.ipynb"
    path.write_text(notebooks.write(solved), "utf-8")
    assert main(["course", "check", str(path)]) == 0
    assert f"{FIRST}: accepted\n" in capsys.readouterr().out
    cell(solved, FIRST)["source"] = CELL.format("{3}")
    path.write_text(notebooks.write(solved), "utf-8")
    assert main(["course", "check", str(path)]) == 1
    del solved["metadata"]["attnlab"]
    path.write_text(notebooks.write(solved), "utf-8")
    assert main(["course", "check", str(path)]) == 2
    path.write_text("{", "utf-8")
    assert main(["course", "check", str(path)]) == 2


def test_without_a_sandbox_a_process_does(
    solved: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> str:
        raise course.NoSandboxError

    monkeypatch.setattr(_handin, "available", nothing)
    code = "import matplotlib.pyplot as plt\nplt.plot([1])\n" + CELL.format(RIGHT)
    cell(solved, FIRST)["source"] = code
    path = tmp_path / "mine.ipynb"
    path.write_text(notebooks.write(solved), "utf-8")
    found, remark = course.preflight(path)
    assert all(one.good for one in found), found
    assert "No sandbox" in remark
    with Here(("problems",)).open() as session:
        assert session.cell("from attnlab import problems").error == ""
        assert "may not be used" in session.cell("from attnlab import svm").error
        assert "not there when this is marked" in session.cell("import pytest").error
        assert session.cell("import os\nos._exit(1)").died
        session.start()
        assert session.cell("x = 4").error == ""
        assert session.value("x").answer == 4


def test_nothing_of_linux_is_needed_to_import_it() -> None:
    code = """
import os, signal, sys
for name in ("resource", "fcntl", "pwd", "termios", "ssl", "sqlite3", "lzma", "jupytext"):
    sys.modules[name] = None
for place, names in ((os, "sysconf set_blocking fork killpg"), (signal, "SIGALRM setitimer")):
    for name in names.split():
        delattr(place, name)
from attnbook import course
course.look_over({"a": 1, "check_a": int}, "a b")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "a: accepted\nb: missing: run its cell first\n", done.stderr


def test_the_last_cell_looks_at_the_running_notebook(
    solved: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> dict[str, str]:
        space: dict[str, Any] = {}
        for one in solved["cells"]:
            if one["cell_type"] == "code" and one["id"] != "install":
                exec(one["source"], space)
        told = capsys.readouterr().out
        assert space[LAST].__name__ == LAST
        assert not hasattr(space[LAST], "__wrapped__"), "the student's own function is back"
        return dict(line.split(": ", 1) for line in told.splitlines())

    assert set(run().values()) == {"accepted"}
    cell(solved, FIRST)["source"] = CELL.format(f"{RIGHT} + 0j")
    assert run()[LAST] == "accepted"
    cell(solved, FIRST)["source"] = CELL.format(f"[{RIGHT}, len]")
    cell(solved, f"{FIRST}-check")["source"] = (
        "def check_log_weights():\n    log_weights(np.ones(2))"
    )
    assert run()[LAST].startswith("not plain: builtin_function_or_method len")


def test_parts_stand_below_the_title_and_names_in_the_metadata(solved: dict[str, Any]) -> None:
    assert "*Parts: values 2, extreme 1, batch 1*" in cell(solved, f"{FIRST}-text")["source"]
    told = solved["metadata"]["attnlab"]
    assert set(told) == {"set", "title", "rooms", "problems"}
    assert all(set(one) == {"id", "answer", "check"} for one in told["problems"])


# -- honest code -----------------------------------------------------------------------------------
PICTURES = """
import matplotlib.pyplot as plt
fig, (a, b) = plt.subplots(1, 2)
a.plot([1])
n, bins, patches = plt.hist([1])
for line in a.lines:
    pass
"""
MORE = """
import seaborn as sns
from mpl_toolkits.mplot3d import Axes3D
import matplotlib as m
with m.style.context('x'):
    m.rcParams['a'] = 3
"""


@pytest.mark.parametrize(
    "lines",
    [
        "np.linalg.norm?\n?len\nx = 3",
        "files = !ls *.txt\nx = 3",
        "%%timeit\nx = 3",
        "took = %timeit -o 3\nif took:\n    all?\nx = 3",
        "display(3)\nget_ipython().run_line_magic('matplotlib', 'inline')\nx = 3",
        PICTURES + "x = 3",
        MORE + "def f():\n    m.f().g(3)\n    return 3\nx = f()",
        "from tqdm import trange\nx = sum(trange(3))",
        'word = """\nis it?\n"""\nx = len(word) - 5\nlen?',
    ],
)
@pytest.mark.usefixtures("sandbox")
def test_what_jupyter_runs_is_run(lines: str) -> None:
    with course.Sandbox().open() as session:
        assert session.cell(lines).error == ""
        assert session.value("x").answer == 3
        assert "SyntaxError" in session.cell("x = 3 +").error
        assert session.cell("%%bash\nls -l\nfi fi").error == ""


ANSWERS: list[tuple[str, Any]] = [
    ("namedtuple('P', 'a b')(1, np.float32(2))", [1, 2.0]),
    ("tuple(np.linalg.eigh(np.eye(1)))", [np.ones(1), np.eye(1)]),
    ("np.linalg.eigh(np.eye(1))", [np.ones(1), np.eye(1)]),
    ("np.eye(2) + 0j", np.eye(2)),
    ("complex(2, 0)", 2.0),
    ("np.array(3.0)", 3.0),
    ("np.bool_(True)", True),
    ("np.uint8(7)", 7),
    ("np.array(['a', 'b'])", ["a", "b"]),
    ("range(3)", [0, 1, 2]),
    ("Fraction(1, 2)", 0.5),
    ("OrderedDict(a=np.int64(1))", {"a": 1}),
    ("np.asfortranarray(np.arange(4.0).reshape(2, 2))", np.array([[0.0, 1.0], [2.0, 3.0]])),
    ("np.broadcast_to(1.0, (2,))", np.ones(2)),
]
REFUSED = {
    "{1: 2}": "keys are not all words",
    "{1, 2}": "return sorted",
    "(k for k in [1])": "return list",
    "len": "return what it gives",
    "np.array([1, None])": "give it dtype=float",
    "np.ma.masked_array([1.0], [True])": "return its .filled",
    "b'word'": "return a word",
    "minimize(lambda x: x @ x, np.ones(2))": "return its .x",
    "np": "return its numbers",
}
TOOLS = (
    "import numpy as np\nfrom collections import *\nfrom fractions import *\n"
    "from scipy.optimize import minimize\n"
)


@pytest.mark.usefixtures("sandbox")
def test_what_is_as_good_as_plain_is_plain() -> None:
    with course.Sandbox().open() as session:
        session.cell(TOOLS)
        for code, wanted in ANSWERS:
            assert session.cell(f"x = {code}").error == ""
            found = session.value("x")
            assert found.error == "", code
            assert type(found.answer) is type(wanted), code
            assert str(found.answer) == str(wanted), code


@pytest.mark.usefixtures("sandbox")
def test_what_is_not_plain_is_told_what_to_do() -> None:
    with course.Sandbox().open() as session:
        session.cell(TOOLS)
        for code, told in REFUSED.items():
            session.cell(f"x = {code}")
            assert told in session.value("x").error, code


def test_the_grader_itself_sends_plain_things_only() -> None:
    with pytest.raises(wire.NotPlainError):
        wire.pack(wire.simple(lambda: 0))
    assert np.array_equal(wire.unpack(wire.pack(np.eye(2) + 0j)), np.eye(2) + 0j)


# -- feedback --------------------------------------------------------------------------------------
@pytest.mark.usefixtures("sandbox")
def test_feedback_says_what_parts_are_about_and_shows_the_answer(tmp_path: Path) -> None:
    there = tmp_path / "fall27"
    one = course.Course(there, "fall27", SEED, ("4",), HERE)
    one.create()
    problems = course.problem_set("4", HERE)
    bad = "def log_weights(logits):\n    return '<b>' + 3\n"
    handed = notebooks.submission(problems, SEED, {FIRST: bad})
    cell(handed, "no-floor")["source"] = "All scores are below the best one."
    target = there / "submitted" / "s01" / "set4-svm"
    target.mkdir(parents=True)
    (target / "set4-svm.ipynb").write_text(notebooks.write(handed), "utf-8")
    one = course.Course.open(there, HERE)
    one.grade(say=lambda _: None, workers=1)
    one.report()
    page = (there / "feedback" / "s01" / "set4-svm" / "set4-svm.html").read_text()
    assert "What the points are for" not in page, "not before it is marked"
    hand = (there / "by-hand.csv").read_text()
    (there / "by-hand.csv").write_text(hand.replace(",6,,", ",6,3,well begun"))
    one.report()
    page = (there / "feedback" / "s01" / "set4-svm" / "set4-svm.html").read_text()
    assert "return &#x27;&lt;b&gt;&#x27; + 3" in page, "their own code, escaped"
    assert "logits of ordinary size" in page
    assert "<code>svm/numbers</code> in the book" in page
    assert "BEGIN SOLUTION" not in page.split("</details>")[0]
    assert "What the points are for" in page
    assert "<li>strictness from positive weights: 2</li>" in page
    assert "well begun" in page
    assert "convex combination" not in page, "the model answer stays with the instructor"
    about = json.loads((there / "course.json").read_text())
    (there / "course.json").write_text(json.dumps(about | {"book": "https://example.org/b/"}))
    one.report()
    page = (there / "feedback" / "s01" / "set4-svm" / "set4-svm.html").read_text()
    assert 'href="https://example.org/b/svm/numbers.html"' in page


def test_formulas_of_feedback_need_neither_script_nor_host() -> None:
    set_words = typeset("the norm $\\|W\\|_F \\le 1$ by `norm(W)`, <b> & co")
    assert set_words.count("<math") == 1, set_words
    assert "<msub>" in set_words
    assert "<code>norm(W)</code>, &lt;b&gt; &amp; co" in set_words
    assert typeset("a <$\\nosuch{x$") == "a &lt;$\\nosuch{x$", "what nobody knows stays as it is"
    for name in ("1", "2", "3", "4", "project"):
        for one in course.problem_set(name, BOOK).problems:
            for words in (one.goal, one.title, *one.about.values()):
                assert "$" not in typeset(words), f"{name}, {one.id}: {words}"


@pytest.mark.parametrize("name", ["1", "2", "3", "4", "project"])
def test_every_part_says_what_it_is_about(name: str) -> None:
    found = course.problem_set(name, BOOK)
    answers = [one.answer for one in found.problems if one.answer]
    assert len(set(answers)) == len(answers), "the last cell asks for each by name"
    for one in found.problems:
        assert list(one.about) == list(one.parts), one.id
        assert (BOOK.parent / f"{one.read}.md").is_file(), one.id


@pytest.mark.parametrize("name", ["1", "2", "3", "4", "project"])
def test_visible_tests_say_what_they_miss(name: str) -> None:
    found = course.problem_set(name, BOOK)
    for one in found.problems:
        text = fill(one.visible, variant(one, found.name, SEED)) if one.answer else ""
        nodes = list(ast.walk(ast.parse(text)))
        bare = [node.lineno for node in nodes if isinstance(node, ast.Assert) and not node.msg]
        assert not bare, f"{one.id}: lines {bare} of its visible test"
        says = [node for node in nodes if isinstance(node, ast.Assert) or named(node) == "expect"]
        assert says or not one.answer, one.id


def named(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def test_a_visible_test_names_the_mistake() -> None:
    space: dict[str, Any] = {"np": np}
    exec(HELP, space)
    expect = space["expect"]
    expect(2.0, 2, "two")
    expect(np.inf, np.inf, "much")
    expect([[1, 2]], np.array([[1.0, 2.0]]), "a row")
    for found, wanted, told in (
        (3.0, 2.0, "x: expected 2.0, got 3.0 (that is what you get if it is turned)"),
        (4.0, 2.0, "x: expected 2.0, got 4.0"),
        (np.ones(2), 2.0, "x: expected 2.0, got [1. 1.]"),
        ("word", 2.0, "x: expected 2.0, got word"),
        ([[1], [1, 2]], 2.0, "x: expected 2.0, got [[1], [1, 2]]"),
        (np.nan, 2.0, "x: expected 2.0, got nan"),
    ):
        with pytest.raises(AssertionError) as error:
            expect(found, wanted, "x", {"it is turned": 3.0})
        assert str(error.value) == told
    with pytest.raises(AssertionError, match=r"x, entry \(1, 2\): expected 0.0, got 7"):
        expect(7 * (np.arange(12).reshape(3, 4) == 6), np.zeros((3, 4)), "x")


@pytest.mark.usefixtures("sandbox")
def test_visible_tests_catch_mistakes() -> None:
    found = course.problem_set("4", BOOK)
    told = [words for _, seen in caught(found, SEED, "uneven-steps") for _, words in seen]
    assert len(told) == 4
    assert all("expected" in words for words in told)
