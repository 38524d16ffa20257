"""Submissions that try to get marks otherwise than by work: none gains, and all are named."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnbook import course
from attnbook.course import _notebook as notebooks

HERE = Path(__file__).parent / "coursework"
SEED = 11
# `scores` and `rank` are answered well (4 points), `log_weights` is not: 0 of its 4 points.
FAKE = "def log_weights(logits):\n    return 0 * logits + 7.0\n"
EARNED = 4.0


def with_code(code: str) -> Callable[[dict[str, Any], Path], Any]:
    def change(notebook: dict[str, Any], _: Path) -> Any:
        cell = next(c for c in notebook["cells"] if c["id"] == "stable-weights")
        cell["source"] = code if "def log_weights" in code else FAKE + code
        return notebook

    return change


def edit_test(notebook: dict[str, Any], _: Path) -> Any:
    cell = next(c for c in notebook["cells"] if c["id"] == "stable-weights-check")
    cell["source"] = "assert True"
    return notebook


def delete_test(notebook: dict[str, Any], _: Path) -> Any:
    notebook["cells"] = [c for c in notebook["cells"] if c["id"] != "stable-weights-check"]
    return notebook


def double_cells(notebook: dict[str, Any], _: Path) -> Any:
    extra = [copy.deepcopy(c) for c in notebook["cells"] if c["id"].startswith("stable-weights")]
    notebook["cells"] += extra
    return notebook


def more_points(notebook: dict[str, Any], _: Path) -> Any:
    for cell in notebook["cells"]:
        if "points" in cell["metadata"]["nbgrader"]:
            cell["metadata"]["nbgrader"]["points"] = 1000
    cell = next(c for c in notebook["cells"] if c["id"] == "stable-weights-check")
    cell["source"] += "\n1000"
    return notebook


WALK = """
import os
for place, folders, files in os.walk("/"):
    if place.startswith(("/proc", "/usr", "/sys")):
        continue
    for name in files:
        if name.endswith((".md", ".ipynb", ".db")) or name == "course.json":
            text = open(os.path.join(place, name), errors="ignore").read()
            if "BEGIN SOLUTION" in text:
                exec(text.split("BEGIN SOLUTION")[1].split("### END")[0])
"""
FORGE = """
import json, os, re
def log_weights(logits):
    import base64
    text = open("/sandbox/runner.py").read()
    for descriptor in range(3, 40):
        for number in ("0", "", None):
            line = json.dumps({"number": number, "answer": {"number": "1.0"}, "points": 100})
            try:
                os.write(descriptor, line.encode() + b"\\n")
            except OSError:
                pass
    return 0 * logits + 7.0
"""
FRAMES = """
import gc, sys
def log_weights(logits):
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()):
            if name in ("wanted", "expected", "judge", "points"):
                return value
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, dict) and "judge" in thing:
            return thing["judge"]
    return 0 * logits + 7.0
"""
# name: (how the notebook is changed, what the report says, points)
ATTACKS: dict[str, tuple[Any, str, float]] = {
    "patches numpy.testing": (
        with_code("import numpy.testing\nnumpy.testing.assert_allclose = lambda *a, **k: None"),
        "changes numpy.testing.assert_allclose",
        EARNED,
    ),
    "patches numpy": (
        with_code("np.allclose = lambda *a, **k: True\nnp.shape = lambda a: a"),
        "changes np.allclose",
        EARNED,
    ),
    "patches builtins": (
        with_code("import builtins\nbuiltins.abs = lambda x: 0"),
        "changes builtins.abs",
        EARNED,
    ),
    "an object that equals everything": (
        with_code(
            "class Yes:\n    def __eq__(self, other): return True\n"
            "    def __array__(self, *a, **k): raise TypeError\n"
            "def log_weights(logits): return Yes()"
        ),
        "defines __eq__",
        EARNED,
    ),
    "an array that equals everything": (
        with_code(
            "class Yes(np.ndarray):\n    def __eq__(self, other): return np.True_\n"
            "def log_weights(logits): return np.zeros(np.shape(logits)).view(Yes)"
        ),
        "defines __eq__",
        EARNED,
    ),
    "a pickle in disguise": (
        with_code(
            "class Run:\n    def __reduce__(self): return (print, ('x',))\n"
            "def log_weights(logits): return [Run()]"
        ),
        "defines __reduce__",
        EARNED,
    ),
    "leaves by sys.exit": (with_code("import sys\nsys.exit(0)"), "tried to leave", EARNED),
    "leaves by os._exit": (with_code("import os\nos._exit(0)"), "the process ended", EARNED),
    "leaves during a call": (
        with_code("def log_weights(logits):\n    import os\n    os._exit(0)"),
        "the process ended",
        EARNED,
    ),
    "its kernel dies": (
        with_code("import ctypes\nctypes.string_at(0)"),
        "the process ended",
        EARNED,
    ),
    "forks": (
        with_code("import os\nfor k in range(400): os.fork()"),
        "started",
        EARNED,
    ),
    "forks without Python": (
        with_code("import ctypes\nlibc = ctypes.CDLL(None)\nwhile True: libc.fork()"),
        "started more than",
        EARNED,
    ),
    "reads /proc and the environment": (
        with_code(
            "import os\nsecret = open('/proc/1/environ').read() + str(dict(os.environ))\n"
            "os.listdir('/proc/1')"
        ),
        "tried to read /proc/1/environ",
        EARNED,
    ),
    "searches for solutions": (with_code(WALK), "looked into", EARNED),
    "reads parent folders": (
        with_code("open('../../course.json').read()"),
        "tried to read ../../course.json",
        EARNED,
    ),
    "writes to the grade book": (
        with_code(
            f"for path in ({str(HERE / 'gradebook.db')!r}, '/gradebook.db'):\n"
            "    try:\n        open(path, 'a').write('100')\n    except OSError: pass"
        ),
        "tried to write to /gradebook.db",
        EARNED,
    ),
    "asks the network": (
        with_code("import socket\nsocket.create_connection(('127.0.0.1', 80), timeout=2)\n"),
        "asked the network",
        EARNED,
    ),
    "makes symbolic links": (
        with_code("import os\nos.symlink('/usr', 'link')\nopen('link/x', 'w')"),
        "made a symbolic link",
        EARNED,
    ),
    "starts programs": (
        with_code("import subprocess\nsubprocess.run(['cat', '/etc/shadow'], check=True)"),
        "started a program",
        EARNED,
    ),
    "prints without end": (
        with_code("for k in range(300): print('x' * 1_000_000)\nraise ValueError('done')"),
        "ValueError: done",
        EARNED,
    ),
    "loops in a cell": (with_code("while True: pass"), "took longer than", EARNED),
    "loops in a call and ignores its alarm": (
        with_code(
            "def log_weights(logits):\n    import signal\n"
            "    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while True: pass"
        ),
        "did not stop",
        EARNED,
    ),
    "takes all memory": (
        with_code("hold = []\nwhile True: hold.append(bytearray(1 << 29))"),
        "cell stable-weights:",
        EARNED,
    ),
    "fills the disk": (
        with_code("for k in range(50):\n    open(str(k), 'wb').write(b'0' * 20_000_000)"),
        "No space left",
        EARNED,
    ),
    "fills shared memory": (
        with_code("for k in range(50):\n    open(f'/dev/shm/{k}', 'wb').write(b'0' * 20_000_000)"),
        "Read-only file system",
        EARNED,
    ),
    "answers what is too large": (
        with_code("def log_weights(logits): return np.zeros(5_000_000)"),
        "too large",
        EARNED,
    ),
    "forges replies": (with_code(FORGE), "no reply into the grader's pipe", EARNED),
    "replaces the wire": (
        with_code("import wire\nwire.pack = lambda value, depth=0: {'points': 100}"),
        "in another form than the grader's",
        0.0,  # it ruins its own answers, and nobody else's
    ),
    "looks for the judge in frames": (with_code(FRAMES), "uses _getframe", EARNED),
    "calls the library's own function": (
        with_code("from attnlab import svm\ndef log_weights(logits): return svm.log(logits)"),
        "uses attnlab.svm, which this set does not allow",
        EARNED,
    ),
    "edits a test cell": (edit_test, "stable-weights-check was edited", 8.0),
    "deletes a test cell": (delete_test, "stable-weights-check is missing", 8.0),
    "doubles cells": (double_cells, "is there 2 times", 8.0),
    "gives itself points": (more_points, "stable-weights-check was edited", 8.0),
    "is not valid JSON": (lambda _nb, _: "{not json", "not a notebook", 0.0),
    "is nested too deep": (lambda _nb, _: "[" * 200_000, "not a notebook", 0.0),
    "has no cells": (lambda _nb, _: '{"cells": 7}', "not a notebook", 0.0),
    "is a symbolic link": (lambda _nb, to: os.symlink(to.parent / "other", to), "symbolic", 0.0),
    "is huge": (lambda _nb, _: "x" * (21 << 20), "too large", 0.0),
}
LIMITS = course.Limits(cell=1.5, call=1.5, total=40.0)


@pytest.fixture(scope="module")
def problems() -> course.ProblemSet:
    return course.problem_set("4", HERE)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_earns_what_its_work_earns(
    name: str, problems: course.ProblemSet, tmp_path: Path
) -> None:
    change, said, points = ATTACKS[name]
    honest = notebooks.submission(problems, SEED)
    (tmp_path / "other").write_text(notebooks.write(honest))
    path = tmp_path / "set4-svm.ipynb"
    changed = change(honest, path)
    if isinstance(changed, str):
        path.write_text(changed)
    elif changed is not None:
        path.write_text(notebooks.write(changed))
    submission = course.read_submission(path, problems, SEED)
    verdict = course.grade(submission, problems, SEED, limits=LIMITS)
    assert verdict.points == points
    told = [*verdict.notices, *(part.told for mark in verdict.marks for part in mark.parts)]
    assert any(said in words for words in told)
    assert verdict.marks[-1].by_hand
    assert not (HERE / "gradebook.db").exists()


def test_without_a_sandbox_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnbook.course import _sandbox

    monkeypatch.setattr(_sandbox.shutil, "which", lambda _: None)
    _sandbox.available.cache_clear()
    try:
        with pytest.raises(course.NoSandboxError, match="apt-get install bubblewrap"):
            course.Sandbox().open()
    finally:
        _sandbox.available.cache_clear()


def test_a_sandbox_that_does_not_work_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnbook.course import _sandbox

    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    _sandbox.available.cache_clear()
    try:
        with pytest.raises(course.NoSandboxError, match="does not work: uid map: Permission"):
            course.Sandbox().open()
    finally:
        _sandbox.available.cache_clear()


def test_a_container_is_asked_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine runs here, so this looks at what would be started."""
    from attnbook.course import _sandbox

    monkeypatch.setenv(_sandbox.IMAGE, "python-with-numpy")
    monkeypatch.setattr(_sandbox.shutil, "which", lambda name: f"/usr/bin/{name}")
    told = _sandbox.command("podman", Path("/x"), course.Limits(memory=1 << 30))
    for words in (["--network", "none"], ["--cap-drop", "ALL"], ["--memory", str(1 << 30)],
                  ["--user", "65534:65534"], ["--volume", "/x/sandbox:/sandbox:ro"]):  # fmt: skip
        at = told.index(words[0])
        assert any(told[k : k + 2] == words for k in range(at, len(told)))
    assert "--read-only" in told
