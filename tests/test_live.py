"""Live pages without a browser: what runs the cells, what is fetched, what pages say of cells."""

from __future__ import annotations

import functools
import gzip
import http.server
import importlib.util
import json
import lzma
import subprocess
import sys
import threading
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ROOT / "book" / "_web" / "live" / "kernel.py"
# A page in a process of its own: the kernel puts stand-ins where this one has real packages.
PAGE = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
kernel = importlib.util.module_from_spec(spec)
sys.modules["kernel"] = kernel
spec.loader.exec_module(kernel)
out, real = [], sys.stdout
kernel.say = lambda text: out.append(json.loads(text))
kernel.begin({"absent": "absent-package"}, lambda name: None, False)
kernel.expect(sys.argv[3])
found = []
for number, code in enumerate(json.loads(sys.argv[2]), 1):
    out.clear()
    end = kernel.run(code, number)
    found.append({"end": end, "out": list(out)})
real.write(json.dumps(found))
"""


def page(*cells: str, forms: dict[str, list[str]] | None = None) -> list[dict[str, Any]]:
    """Run cells of one page, natively."""
    command = [sys.executable, "-c", PAGE, str(KERNEL), json.dumps(cells), json.dumps(forms or {})]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return list(json.loads(done.stdout))


def printed(cell: dict[str, Any]) -> str:
    return "".join(what.get("text", "") for what in cell["out"] if what["kind"] == "stream")


def test_cells_share_names_and_show_their_last_value() -> None:
    first, second, third = page("x = [1, 2]\nprint('a'); x", "x.append(3); x;", "x")
    assert [first["end"], second["end"], third["end"]] == ["ok"] * 3
    assert printed(first) == "a\n"
    assert first["out"][-1]["data"]["text/plain"] == "[1, 2]"
    assert second["out"] == []
    assert third["out"][0]["data"]["text/plain"] == "[1, 2, 3]"


def test_errors_name_the_reader_s_line() -> None:
    wrong, syntax, after = page("import json\njson.loads('{')", "a = (\n", "print(1)")
    assert wrong["end"] == "error"
    error = wrong["out"][-1]
    assert error["line"] == 2
    assert '"<cell 1>", line 2' in error["text"]
    assert "inside libraries" in error["text"]
    assert syntax["out"][-1]["line"] == 1
    assert after["end"] == "ok"


def test_an_error_of_the_text_shows_the_reader_s_line_and_no_other() -> None:
    cells = ["a = (\n", "x = 1\nfor k in range(3):\n  print(k\n", "x = '\0'", "(" * 500, "return 1"]
    for number, (cell, line) in enumerate(zip(page(*cells), (1, 3, 0, 1, 1), strict=True), 1):
        (error,) = cell["out"]
        assert cell["end"] == "error"
        assert error["line"] == line
        assert ".py" not in error["text"]
        assert not line or error["text"].startswith(f'  File "<cell {number}>", line {line}\n')


RECURSION = {
    "itself": "def f(x):\n    return f(x + 1)\nf(0)",
    "by turns": "def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\nf(0)",
    "without a limit": "import sys\nsys.setrecursionlimit(10**6)\ndef f(x):\n    return f(x)\nf(0)",
}


@pytest.mark.parametrize("code", RECURSION.values(), ids=RECURSION)
def test_a_recursion_ends_and_its_traceback_is_short(code: str) -> None:
    found, after = page(code, "print(1)")
    error = found["out"][-1]
    assert "RecursionError" in error["text"]
    assert "more calls" in error["text"]
    assert len(error["text"]) < 3000
    assert error["text"].startswith('  File "<cell 1>"')
    assert printed(after) == "1\n"
    if "limit" in code:
        assert "3,000 calls within calls, not 1,000,000" in printed(found)


def test_a_long_message_is_shortened() -> None:
    (found,) = page("raise ValueError('x' * 10**7 + 'the end')")
    assert len(found["out"][-1]["text"]) < 21_000
    assert "more characters" in found["out"][-1]["text"]
    assert "the end" in found["out"][-1]["text"]


@pytest.mark.parametrize(
    "code", ["input('name: ')", "import sys\nsys.stdin.readline()", "import sys\nlist(sys.stdin)"]
)
def test_there_is_no_keyboard_input_and_a_sentence_says_so(code: str) -> None:
    (found,) = page(code)
    assert found["end"] == "error"
    assert "no keyboard input: write the value into the cell" in found["out"][-1]["text"]


FAILING = """
import kernel
import numpy as np

def fails(a, b=None, **how):  # as NumPy's own do under WebAssembly
    return np.full(np.shape(a)[:-1] if b is None else np.shape(b), np.nan)

solve = kernel.raises_where_nan(fails, "Singular matrix")
found = []
for given in [(np.ones((2, 2)), np.ones(2)), ([[1, 1], [1, 1]], [1, 2]), (np.ones((3, 2, 2)),)]:
    try:
        solve(*given)
    except np.linalg.LinAlgError as error:
        found.append(str(error))
print(found)
print(np.isnan(solve(np.full((2, 2), np.nan), np.ones(2))).all())  # NaN in, NaN out: no error
print(np.linalg.solve(np.eye(2), [1.0, 2.0]), np.linalg.inv(2 * np.eye(2))[0, 0])
"""


def test_a_failed_decomposition_is_an_error_where_numpy_cannot_see_it() -> None:
    found, raised = page(FAILING, "np.linalg.cholesky(-np.eye(2))")
    assert printed(found).splitlines() == [
        "['Singular matrix', 'Singular matrix', 'Singular matrix']", "True", "[1. 2.] 0.5",
    ], found  # fmt: skip
    assert "LinAlgError: Matrix is not positive definite" in raised["out"][-1]["text"]


def test_what_is_printed_is_capped_and_comes_before_an_error() -> None:
    much, order = page("for k in range(60_000): print('x' * 40)", "print('first'); 1 / 0")
    assert 200_000 <= len(printed(much)) < 200_200
    assert "more was printed" in printed(much)
    assert len(much["out"]) < 2000
    assert printed(order) == "first\n"
    assert order["out"][-1]["kind"] == "error"


DESK = """
import cvxpy as cp
import numpy as np
x = cp.Variable(2)
size = 3
answer = size + x
canvas = []
canvas.append(x)
print('never shown')
"""


def test_a_cell_that_needs_a_desk_leaves_its_other_names() -> None:
    desk, after, uses, again, canvas = page(
        DESK,
        "print(size, np.ones(2).sum())",
        "print(answer)",
        "answer = 1\nprint(answer)",
        "canvas",
    )
    assert desk["end"] == "skipped: cvxpy with a compiled solver"
    assert desk["out"] == []
    assert printed(after) == "3 2.0\n"
    assert uses["end"] == "skipped: what a desk computed"
    assert again["end"] == "ok"
    assert printed(again) == "1\n"
    assert canvas["end"].startswith("skipped"), "a statement that did not run would have filled it"


def test_a_library_that_misses_a_desk_s_module_is_no_error() -> None:
    code = "y = 2\nraise ModuleNotFoundError(\"method='cvxpy' needs cvxpy\")"
    missing, after, typo = page(code, "print(y)", "import cvxpi")
    assert missing["end"] == "skipped: cvxpy with a compiled solver"
    assert printed(after) == "2\n"
    assert typo["end"] == "error"
    assert "cvxpi" in typo["out"][-1]["text"]


def test_a_package_that_the_site_has_is_asked_for() -> None:
    (late,) = page("import absent")
    assert late["end"] == "late: absent-package"


def test_told_numbers_reach_the_words() -> None:
    code = "from attnbook.widgets import tell\ntell('norm', 1.23456)\ntell('words', 'so')"
    (told,) = page(code, forms={"norm": [".2f", ""], "words": [""]})
    assert told["end"] == "ok", told
    assert told["out"] == [
        {"kind": "told", "name": "norm", "texts": {".2f": "1.23", "": "1.23456"}},
        {"kind": "told", "name": "words", "texts": {"": "so"}},
    ]


def test_exercises_and_explorables_show_themselves() -> None:
    ask, board = page(
        "from attnbook.widgets import exercise\nexercise.power('demo-rate', 'How fast?', -2.0)",
        "from attnbook import widgets\nwidgets.PhasePlane()",
    )
    assert 'data-exercise="demo-rate"' in ask["out"][0]["data"]["text/html"]
    assert 'data-explorable="phase_plane"' in board["out"][0]["data"]["text/html"]
    assert board["out"][0]["data"]["key"] == "live-0"


def test_a_figure_of_pyplot_is_a_picture_of_the_page() -> None:
    (drawn,) = page("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone;")
    assert 'class="al-figure"' in drawn["out"][-1]["data"]["text/html"]


def test_the_slice_for_the_browser_holds_here() -> None:
    code = (ROOT / "tests" / "webassembly" / "slice.py").read_text("utf-8")
    (found,) = page(code)
    assert "6 of 6 parts hold" in printed(found), found


# -- what is fetched -------------------------------------------------------------------------------
@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A runtime of a few bytes, at a place of its own, and a site with a wheel."""
    import runtime

    source = tmp_path / "source"
    source.mkdir()
    (source / "pyodide.mjs").write_bytes(b"export const loadPyodide = 1;")
    pinned = runtime.pins()
    name = "pyodide.mjs"
    pinned["pyodide"]["files"] = {name: runtime.sha256((source / name).read_bytes())}
    pinned["pyodide"]["packages"] = {}
    pinned["pure"] = {}
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "cm6-python.min.js").write_bytes(b"editor")
    pinned["editor"]["sha256"] = runtime.sha256(b"editor")
    monkeypatch.setattr(runtime, "pins", lambda: pinned)
    monkeypatch.setattr(runtime, "CACHE", cache)
    monkeypatch.setenv("ATTNLAB_PYODIDE", str(source))
    site = tmp_path / "site"
    (site / "downloads").mkdir(parents=True)
    with zipfile.ZipFile(site / "downloads" / "attnlab-9.9-py3-none-any.whl", "w") as wheel:
        for inside in ("attnlab/__init__.py", "attnbook/cli/_check.py", "attnbook/widgets/a.js",
                       "attnbook/widgets/data/a.npz", "attnlab-9.9.dist-info/RECORD",
                       "attnlab-9.9.dist-info/METADATA"):  # fmt: skip
            wheel.writestr(inside, inside)
    return {"source": source, "cache": cache, "pinned": pinned, "site": site, "runtime": runtime}


def test_files_have_their_hashes_wherever_they_come_from(small: dict[str, Any]) -> None:
    runtime, cache, name = small["runtime"], small["cache"], "pyodide.mjs"
    runtime.fetch(cache)
    assert runtime.good(cache / name, small["pinned"]["pyodide"]["files"][name])
    (cache / name).write_bytes(b"changed on the disk")
    runtime.fetch(cache)
    assert runtime.good(cache / name, small["pinned"]["pyodide"]["files"][name])
    (cache / name).unlink()
    (small["source"] / name).write_bytes(b"somebody else's")
    with pytest.raises(runtime.NoRuntimeError, match=r"pyodide\.mjs: expected sha256 .*, it has"):
        runtime.fetch(cache)
    assert not (cache / name).exists()


def test_files_come_from_an_address(small: dict[str, Any], monkeypatch: Any) -> None:
    runtime, cache = small["runtime"], small["cache"]
    kind = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(small["source"]))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("ATTNLAB_PYODIDE", f"http://127.0.0.1:{server.server_port}/")
    runtime.fetch(cache)
    assert (cache / "pyodide.mjs").is_file()
    server.shutdown()
    server.server_close()


def test_a_site_without_python_is_a_site(small: dict[str, Any], monkeypatch: Any) -> None:
    runtime, said = small["runtime"], []
    monkeypatch.setenv("ATTNLAB_PYODIDE", str(small["site"] / "nowhere"))
    runtime.host(small["site"])
    assert not runtime.bring([small["site"]], said.append)
    assert "without the button" in said[-1]
    assert "nowhere" in said[-1]
    assert "export default null" in (small["site"] / "live" / "here.js").read_text("utf-8")


def test_what_stands_beside_the_site(small: dict[str, Any], monkeypatch: Any) -> None:
    runtime, site = small["runtime"], small["site"]
    monkeypatch.setattr(runtime, "FIRST", ("attnlab",))
    monkeypatch.setattr(runtime, "CORE", ("pyodide-lock.json", "pyodide.mjs"))
    said: list[str] = []
    assert runtime.bring([site], said.append), said
    text = (site / "live" / "here.js").read_text("utf-8")
    here = json.loads(text.partition("export default ")[2].rstrip(";\n"))
    folder = site / "live" / here["folder"]
    for name, (size, told) in here["files"].items():
        data = (folder / name).read_bytes()
        assert (len(data), runtime.sha256(data)) == (size, told)
    lock = json.loads((folder / "pyodide-lock.json").read_text("utf-8"))
    assert lock["packages"]["attnlab"]["imports"] == ["attnlab"]
    packed = (folder / "attnlab-9.9-py3-none-any.whl.xz").read_bytes()
    with zipfile.ZipFile(BytesIO(lzma.decompress(packed))) as wheel:
        assert sorted(wheel.namelist()) == [
            "attnbook/widgets/data/a.npz", "attnlab-9.9.dist-info/METADATA",
            "attnlab-9.9.dist-info/RECORD", "attnlab/__init__.py",
        ]  # fmt: skip
    assert {"live.js", "worker.js", "kernel.py", "safe.js"} <= {
        p.name for p in folder.parent.iterdir()
    }
    again = runtime.trimmed(runtime.library(site))
    assert again == runtime.trimmed(runtime.library(site)), "the same wheel, the same bytes"
    (small["source"] / "extra").touch()
    assert runtime.assemble(site, runtime.library(site), small["cache"])["folder"] == here["folder"]
    assert len(list((site / "live").glob("py-*"))) == 1


def test_what_is_packed_is_what_was_compared(small: dict[str, Any]) -> None:
    runtime, cache = small["runtime"], small["cache"]
    fonts = "matplotlib/mpl-data/fonts"
    given = {"a/b.py": b"x = 1\n" * 999, "a/c.pyi": b"x: int", "a/d.so": bytes(range(256)),
             f"{fonts}/afm/e.afm": b"e", f"{fonts}/ttf/e.ttf": b"t"}  # fmt: skip
    wheel = BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in given.items():
            out.writestr(name, data)
    name, made = runtime.packed("a.whl", wheel.getvalue(), cache)
    assert name == "a.whl.xz"
    with zipfile.ZipFile(BytesIO(lzma.decompress(made))) as found:
        assert {one: found.read(one) for one in found.namelist()} == {
            one: data for one, data in given.items() if not one.endswith((".pyi", ".afm"))
        }
    (kept,) = (cache / "packed").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")  # somebody's disk
    assert runtime.packed("a.whl", wheel.getvalue(), cache) == (name, made)
    changed = kept.read_bytes()
    kept.write_bytes(runtime.sha256(b"as it was").encode() + b"\nas it was")
    assert runtime.packed("a.whl", wheel.getvalue(), cache)[1] == b"as it was", "made once"
    kept.write_bytes(changed)

    name, made = runtime.packed("pyodide.asm.wasm", b"w" * 999, cache)
    assert (name, gzip.decompress(made)) == ("pyodide.asm.wasm.gzip", b"w" * 999)
    assert runtime.packed("pyodide.mjs", b"as it is") == ("pyodide.mjs", b"as it is")


def test_the_kernel_unpacks_in_parts() -> None:
    code = """
import lzma, random, kernel
class Packed:
    def to_bytes(self):
        return lzma.compress(plain)
for size in (0, 10, 3_000_000):
    plain, parts = random.Random(size).randbytes(size), []
    kernel.unpack(Packed(), parts.append)
    print(b"".join(parts) == plain, max(map(len, parts)) <= 1 << 20)
"""
    (found,) = page(code)
    assert printed(found).split() == ["True"] * 6, found


def test_pins_are_whole() -> None:
    import runtime

    pinned = runtime.pins()
    files = runtime.wanted(pinned)
    assert all(len(told) == 64 for told in files.values())
    packages = pinned["pyodide"]["packages"]
    pure = set(pinned["pure"])
    for one in packages.values():
        assert set(one["depends"]) <= set(packages) | pure
    assert {"numpy", "scipy", "matplotlib"} <= set(packages)
    tracked = subprocess.run(["git", "ls-files", "*.min.js", "*.wasm", "*.whl"], cwd=ROOT,
                             capture_output=True, text=True, check=True)  # fmt: skip
    assert tracked.stdout == "", "no third-party script is committed"


# -- what pages say of their cells -----------------------------------------------------------------
@pytest.fixture(scope="module")
def extension() -> Any:
    """What Sphinx loads."""
    path = ROOT / "book" / "_ext" / "attnlab_live.py"
    spec = importlib.util.spec_from_file_location("attnlab_live", path)
    assert spec is not None
    assert spec.loader is not None
    live = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(live)
    return live


def test_a_notebook_runs_elsewhere_only_where_the_site_says_where(extension: Any) -> None:
    assert extension.elsewhere("book/svm/margin", "", "") == []
    colab, binder = extension.elsewhere("book/svm/margin", "a/b/blob/c/d", "https://h/v2/gh/a/b/c/")
    assert 'href="https://colab.research.google.com/github/a/b/blob/c/d/svm/margin.ipynb"' in colab
    assert 'href="https://h/v2/gh/a/b/c?urlpath=lab/tree/downloads/svm/margin.ipynb"' in binder


def test_cells_of_a_page(extension: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "---\njupytext:\n  text_representation:\n    format_name: myst\nkernelspec:\n"
        "  name: python3\n  display_name: Python 3\n---\n\n# Title {glue:text}`norm:.2f`\n\n"
        "```{code-cell} python\n:tags: [remove-input]\nx = 1\n```\n\n"
        "Words {glue:text}`../a::b:.1f` and {glue:text}`norm`.\n\n```{code-cell} python\nx\n```\n"
    )
    assert extension.cells(path) == {
        "cells": [
            {"index": 1, "code": "x = 1", "tags": ["remove-input"]},
            {"index": 3, "code": "x", "tags": []},
        ],
        "told": [["norm", ".2f"], None, ["norm", ""]],
    }
