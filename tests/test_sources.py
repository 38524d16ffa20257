"""A page or a check runs again when what it depends on changes; a stale result is impossible."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attnbook
import attnlab

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_tools"))
import results  # noqa: E402
import sources  # noqa: E402

HOMES = {name: Path(each.__file__).parent for name, each in
         {"attnlab": attnlab, "attnbook": attnbook}.items()}  # fmt: skip
NOW = sources.Sources(HOMES)
BOARD = ["from attnbook import widgets", "board = widgets.TokenBoard()"]


@pytest.fixture
def homes(tmp_path: Path) -> dict[str, Path]:
    """The two packages, to be changed."""
    skip = shutil.ignore_patterns("__pycache__")
    return {
        name: Path(shutil.copytree(home, tmp_path / name, ignore=skip))
        for name, home in HOMES.items()
    }


def changed(homes: dict[str, Path], file: str, *cells: str) -> bool:
    """Whether the key of a page with these cells is another once a file has one more byte."""

    def key() -> str:
        found = sources.Sources(homes)
        return found.digest(found.of_page(list(cells)), *cells)

    before, (top, _, inside) = key(), file.partition("/")
    path = homes[top] / inside
    old = path.read_bytes()
    assert key() == before
    path.write_bytes(old + b"\n")
    try:
        return key() != before
    finally:
        path.write_bytes(old)


BIAS = "from attnbook import theory\ntheory.bias.t_zero"
SVM = "from attnlab import svm\nsvm.correlation"
LATE = "def f():\n    from attnbook import theory as t\n    return t.svm"


@pytest.mark.parametrize(
    ("file", "cells", "again"),
    [
        # a helper of a room: pages that import the room, and no others
        ("attnlab/svm/_margin.py", [SVM], True),
        ("attnlab/ntk/_margin.py", [SVM], False),
        ("attnlab/problems/_records.py", [SVM], True),
        ("attnlab/checks.py", [SVM], True),
        ("attnlab/checks.py", ["print(1)"], False),
        # one paper of a hub; all of it where a page does not say which
        ("attnbook/theory/bias/__init__.py", [BIAS], True),
        ("attnbook/theory/svm/__init__.py", [BIAS], False),
        ("attnbook/theory/svm/__init__.py", ["from attnbook import theory\nf(theory)"], True),
        ("attnbook/theory/svm/__init__.py", ["import attnbook\nattnbook.theory.svm.f"], True),
        ("attnbook/theory/svm/__init__.py", [LATE], True),
        ("attnbook/theory/svm/__init__.py", ["%time theory()"], True),
        ("attnbook/theory/svm/__init__.py", ["from attnbook import *"], True),
        ("attnlab/__init__.py", ["from attnlab import __version__"], True),
        ("attnlab/svm/__init__.py", ["from attnlab import __version__"], False),
        # an explorable: its class, its module, what that imports, what all share
        ("attnbook/widgets/token_board.py", BOARD, True),
        ("attnbook/widgets/token_board.js", BOARD, True),
        ("attnbook/widgets/kit/kit.css", BOARD, True),
        ("attnbook/widgets/_base.py", BOARD, True),
        ("attnbook/widgets/mixtures.py", BOARD, False),
        ("attnbook/widgets/margin_race.js", BOARD, False),
        ("attnbook/widgets/margin_race.js", [BOARD[0], "widgets.MarginRace()"], True),
        ("attnbook/widgets/margin_race.js", [BOARD[0], "show(widgets)"], True),
        # data, by who reads it
        ("attnbook/widgets/data/how_often.npz", [BOARD[0], "widgets.HowOften()"], True),
        ("attnbook/widgets/data/how_often.npz", [BOARD[0], "widgets.MarginRace()"], False),
        ("attnbook/figures/costs.json", ["from attnbook import figures\nfigures.all()"], False),
        ("attnbook/figures/costs.json", ["from attnbook.cli import main"], True),
        # rooms that are imported when they are asked for
        ("attnbook/figures/svm/__init__.py",
         ["from attnbook import figures\nfigures.get('svm.7').run()"], True),
        ("attnbook/figures/svm/__init__.py",
         ["from attnbook import figures\nfigures.get('bias.2').run()"], False),
        ("attnbook/figures/svm/__init__.py",
         ["from attnbook import figures\nfigures.get(name).run()"], True),
        ("attnbook/figures/svm/__init__.py",
         ["from attnbook import figures\nfigures.kept('bias.6')"], False),
        ("attnbook/figures/bias/__init__.py",
         ["from attnbook import figures\nfigures.kept('bias.6')"], True),
        ("attnbook/figures/svm/__init__.py", ["from attnbook.figures import get"], True),
        # real data: its libraries are imported by name, and it asks for nothing above it
        ("attnbook/real/_datasets.py",
         ["from attnbook import figures\nfigures.get('svm.7')"], True),
        ("attnbook/widgets/token_board.py", ["from attnbook import real\nreal.models"], False),
        ("attnbook/claims/svm/__init__.py", ["from attnbook import claims"], True),
        ("attnbook/claims/svm/__init__.py", ["import importlib\nimportlib.import_module(x)"], True),
        ("attnbook/claims/svm/__init__.py", ["import subprocess"], True),
    ],
)  # fmt: skip
def test_what_a_page_depends_on(file: str, cells: list[str], again: bool) -> None:
    top, _, inside = file.partition("/")
    path = HOMES[top] / inside
    assert path.is_file()
    assert (path in NOW.of_page(cells)) is again


@pytest.mark.parametrize(
    ("file", "cells"),
    [
        ("attnlab/svm/_margin.py", [SVM]),
        ("attnbook/widgets/token_board.js", BOARD),
        ("attnbook/widgets/data/how_often.npz", [BOARD[0], "widgets.HowOften()"]),
    ],
)
def test_a_saved_file_is_another_key(homes: dict[str, Path], file: str, cells: list[str]) -> None:
    assert changed(homes, file, *cells)
    assert not changed(homes, file, "print(1)")


def test_what_an_explorable_imports_in_javascript(homes: dict[str, Path]) -> None:
    found = sources.Sources(homes)
    mine = {path.name for path in found.of_page(BOARD)}
    text = (homes["attnbook"] / "widgets" / "token_board.js").read_text("utf-8")
    needs = {Path(name).name for name in sources.JS_IMPORT.findall(text)}
    assert needs
    assert needs <= mine


def test_a_new_file_is_seen(homes: dict[str, Path]) -> None:
    """A module of one's own, imported inside a function of another."""
    helper = homes["attnbook"] / "theory" / "bias" / "_brand_new.py"
    helper.write_text("VALUE = 1\n")
    package = homes["attnbook"] / "theory" / "bias" / "__init__.py"
    late = "\n\ndef late():\n    from attnbook.theory.bias import _brand_new\n"
    package.write_text(package.read_text("utf-8") + late)
    assert changed(homes, "attnbook/theory/bias/_brand_new.py", BIAS)
    assert not changed(homes, "attnbook/theory/bias/_brand_new.py", SVM)


def test_checks_of_a_paper(homes: dict[str, Path]) -> None:
    keys = {paper: results.Evidence(sources.Sources(homes)).key(paper) for paper in sources.PAPERS}
    path = homes["attnbook"] / "theory" / "bias" / "__init__.py"
    path.write_text(path.read_text("utf-8") + "\n")
    again = results.Evidence(sources.Sources(homes))
    assert {paper for paper in keys if again.key(paper) != keys[paper]} == {"bias"}
    path = homes["attnbook"] / "claims" / "_measure.py"
    path.write_text(path.read_text("utf-8") + "\n")
    again = results.Evidence(sources.Sources(homes))
    assert all(again.key(paper) != keys[paper] for paper in keys)


def test_stale_evidence_is_not_read(homes: dict[str, Path], tmp_path: Path) -> None:
    ledger = results.Evidence(sources.Sources(homes), tmp_path)
    ledger.keep("svm", ledger.key("svm"), {"svm.lemma-1": {"agrees": True}})
    assert ledger.of("svm")
    assert not ledger.of("bias")
    path = homes["attnlab"] / "svm" / "__init__.py"
    path.write_text(path.read_text("utf-8") + "\n")
    assert not results.Evidence(sources.Sources(homes), tmp_path).of("svm")


def test_a_stale_page_is_not_current(homes: dict[str, Path], tmp_path: Path) -> None:
    """What is kept is today's until a file that the page imports changes; others may."""
    page = "book/bias/gd"
    store = results.Pages(sources.Sources(homes), tmp_path)
    assert not store.current(page)
    store.keep(page, store.key(page), results.read_page(page), 1.0)
    assert store.current(page)
    for file, still in (("ntk/__init__.py", True), ("optim/__init__.py", False)):
        path = homes["attnlab"] / file
        path.write_text(path.read_text("utf-8") + "\n")
        assert results.Pages(sources.Sources(homes), tmp_path).current(page) is still


def test_what_computes_counts(homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of NumPy, or other kernels of BLAS."""
    found = sources.Sources(homes)
    before = found.digest([])
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    sources.surroundings.cache_clear()
    assert found.digest([]) != before
    monkeypatch.undo()
    sources.surroundings.cache_clear()
    assert found.digest([]) == before
    true = sources.metadata.version
    monkeypatch.setattr(sources.metadata, "version", lambda name: f"{true(name)}x")
    sources.surroundings.cache_clear()
    assert found.digest([]) != before
    monkeypatch.undo()
    sources.surroundings.cache_clear()


# -- what the walk relies on -------------------------------------------------------------------
def in_hub(module: str) -> bool:
    return any(module.startswith(f"{hub}.") or module == hub for hub in sources.HUBS - {"attnbook"})


def test_modules_of_hubs_only_define() -> None:
    """Importing one changes nothing for its neighbours: no statement at the top that acts."""
    quiet = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    found, seen = NOW, 0
    for module, path in found.modules.items():
        registry = any(module.startswith(name) for name in sources.REGISTRIES)
        if registry or not in_hub(module):
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            seen += 1
            words = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            main = isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
            typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            acts = not (words or main or typing or isinstance(node, quiet))
            own = acts and acts_on_its_room(node, module, found)
            assert not acts or own, f"{path}:{node.lineno} acts when imported"
    assert seen > 1000


def acts_on_its_room(node: ast.stmt, module: str, found: sources.Sources) -> bool:
    """Inside one room, which counts as a whole, a module may register itself."""
    return module.startswith("attnlab.") and isinstance(node, ast.Expr | ast.For)


def test_papers_do_not_ask_the_registry() -> None:
    """Else the checks of one paper could depend on another without importing it."""
    found = NOW
    asks = {"get", "all", "select", "run", "counts"}
    for module, path in found.modules.items():
        for registry in sources.REGISTRIES:
            if not any(module.startswith(f"{registry}.{paper}") for paper in sources.PAPERS):
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith(registry):
                    names = {alias.name for alias in node.names}
                    hub = {"_registry", "_ledger", "_run"} & names
                    own = str(node.module) in (registry, f"{registry}._registry")
                    assert not hub, f"{path} imports the registry"
                    assert not (own and names & asks), f"{path} asks the registry"
                if isinstance(node, ast.ImportFrom) and node.module == "attnbook":
                    mine = registry.rpartition(".")[2]
                    assert mine not in {alias.name for alias in node.names}, f"{path}"


RAN = """
import json, sys
files, importing = set(), 0
def see(frame, event, _):
    global importing
    module = frame.f_code.co_name == "<module>" and frame.f_code.co_filename != "cell"
    if event in ("call", "return") and module:
        importing += 1 if event == "call" else -1
    elif event == "call" and not importing:
        files.add(frame.f_code.co_filename)
code = json.loads(sys.stdin.read())
sys.setprofile(see)
for cell in code:
    exec(compile(cell, "cell", "exec"), globals())
sys.setprofile(None)
print("\\n" + json.dumps(sorted(files)))
"""
SHORT = ["book/index", "book/svm/tokens"]
CHAPTERS = ["book/multihead/statistics", "book/encoder/assumptions", "book/bias/growth",
            "book/encoder/kernel", "book/svm/sequences", "book/bias/index"]  # fmt: skip


@pytest.mark.parametrize(
    "page", [*SHORT, *(pytest.param(page, marks=pytest.mark.long) for page in CHAPTERS)]
)
def test_all_that_ran_was_foreseen(page: str) -> None:
    """Every function that a page ran stands in a file that its key holds; seen, not read."""
    cells = [cell.source for cell in results.read_page(page).cells if cell.cell_type == "code"]
    homes = os.pathsep.join(str(home.parent) for home in HOMES.values())
    environment = {**os.environ, **results.ENVIRONMENT, "MPLBACKEND": "Agg", "PYTHONPATH": homes}
    command = [sys.executable, "-c", RAN]
    done = subprocess.run(
        command, input=json.dumps(cells), text=True, capture_output=True, check=False,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    ran = {Path(name) for name in json.loads(done.stdout.splitlines()[-1])}
    ours = {path for path in ran if any(path.is_relative_to(home) for home in HOMES.values())}
    assert ours
    lazy = HOMES["attnbook"] / "__init__.py"  # its __getattr__, which every page may ask
    assert ours - {lazy} <= NOW.of_page(cells)


def test_pages_to_be_made_anew_may_stand_behind_options() -> None:
    import sphinx_site

    given = sphinx_site.arguments(["html", "doctrees", "--jobs", "2", "a.md", "b.md"])
    assert (given.jobs, given.files) == (2, ["a.md", "b.md"])


def test_a_kernel_that_does_not_start_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: its port was free when it was asked for. A kernel that never starts is an error."""
    from nbclient import NotebookClient

    asked: list[object] = []

    def execute(self: NotebookClient) -> None:
        asked.append(self)
        if len(asked) != 2:
            raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(NotebookClient, "execute", execute)
    assert results.run_page("book/index")[3] == ""
    assert len(asked) == 2
    assert "died" in results.run_page("book/index")[3]
    assert len(asked) == 4


def test_real_imports_only_libraries_by_name() -> None:
    """`sources.LIBRARIES` says so: what its modules import at run time is no room of ours."""
    asked = set()
    for path in sorted((HOMES["attnbook"] / "real").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "needed":
                first = node.args[0]
                assert isinstance(first, ast.Constant), f"{path}: a name that is made up"
                asked.add(first.value.split(".")[0])
    assert "sklearn" in asked
    assert not asked & set(HOMES)
