"""Submissions that try to get marks otherwise than by work: none gains, and all are named."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from attnbook import course
from attnbook.course import _notebook as notebooks
from attnbook.course._grade import Judge
from attnbook.course._marker import Marker

HERE = Path(__file__).parent / "coursework"
SEED = 11
# `scores` and `rank` are answered well (4 points), `log_weights` is not: 0 of its 4 points.
IN_CALL = "def log_weights(logits):\n"
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
        "took longer than",
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
    "goes to /proc and reads from there": (
        with_code("import os\nos.chdir('/proc/1')\nopen('environ').read()"),
        "looked into /proc/1",
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
    "a shape of -1": (
        with_code(
            "import wire\nreal = wire.pack\ndef packed(value, depth=0):\n"
            "    told = real(value, depth)\n"
            "    return {**told, 'array': [-1]} if 'array' in (told or {}) else told\n"
            "wire.pack = packed"
        ),
        "in another form than the grader's",
        1.0,  # of its arrays; it ruins its own answers
    ),
    "numbers as words": (
        with_code(IN_CALL + "    return np.asarray(logits, dtype=float).astype(str).tolist()"),
        "a number as a word",
        EARNED,
    ),
    "an imaginary part": (
        with_code(IN_CALL + "    return logits + 1e9j"),
        "complex numbers, where real numbers are asked for",
        EARNED,
    ),
    "many errors before a look at /proc": (
        with_code(
            "for k in range(90):\n    try:\n        open(f'/none/{k}')\n"
            "    except OSError: pass\n"
            "open('/proc/self/environ').read()\nraise ValueError('harmless')"
        ),
        "tried to read /proc/self/environ",
        EARNED,
    ),
    "an error in the grader's words": (
        with_code("raise ValueError('s07 wrote what is no reply into the grader')"),
        "its code says “ValueError: s07 wrote",
        EARNED,
    ),
    "writes a notice about another": (
        with_code(
            "import json\nreal = json.dumps\njson.dumps = lambda told, **k: real("
            "{**told, 'seen': ['s07 asked the network']} if 'seen' in told else told)"
        ),
        "wrote what is no reply into the grader's pipe",
        EARNED,
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
LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
DEAF = """
import os, json
for descriptor in range(3, 20):
    try:
        os.write(descriptor, json.dumps({"number": "0", "answer": None}).encode() + b"\\n")
    except OSError:
        pass
while True: pass
"""


# What needs more than one cell, or a file that no notebook program writes.
def deaf_before_a_large_cell(notebook: dict[str, Any], path: Path) -> Any:
    with_code(DEAF)(notebook, path)
    notebook["cells"].append(notebooks.code_cell("large", "x = '" + "y" * 400_000 + "'"))
    return notebook


def in_prose(text: str) -> Callable[[dict[str, Any], Path], Any]:
    def change(notebook: dict[str, Any], path: Path) -> Any:
        next(c for c in notebook["cells"] if c["id"] == "no-floor")["source"] = text
        return with_code("")(notebook, path)

    return change


def raw(notebook: dict[str, Any], path: Path) -> Any:
    """JSON with half a character in it, which Python's own writer would refuse in UTF-8."""
    changed = in_prose("\ud800 " + "\u202e" + "x" * 900 + "\x1b[2J")(notebook, path)
    return json.dumps(changed)


def odd_ids(notebook: dict[str, Any], path: Path) -> Any:
    for k in range(1500):
        cell = notebooks.code_cell(f"{k}" + "\u0301" * 3000, "x = 1")
        notebook["cells"].append(cell)
    return with_code("")(notebook, path)


def wide_metadata(notebook: dict[str, Any], path: Path) -> Any:
    """Lists within lists in a cell's metadata, where nobody looks."""
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with_code("")(notebook, path)["cells"][0]["metadata"]["x"] = deep
    return json.dumps(notebook)


NO_NEW = "Operation not permitted"
MORE: dict[str, tuple[Any, str, float]] = {
    # numbers
    "numbers that overflow": (
        with_code(IN_CALL + "    return np.full(np.shape(logits), 1e200)"), "beyond 1e+60", EARNED,
    ),
    "numbers that are not finite": (
        with_code(IN_CALL + "    return np.full(np.shape(logits), np.inf)"), "not finite", EARNED,
    ),
    "an integer of 1,000 digits": (
        with_code(IN_CALL + "    return 10**1000"), "beyond 1e+60", EARNED,
    ),
    # processes: parsing, reading, judging
    "an f-string that takes an hour to parse": (
        with_code("def g():\n    return f'" + "{1}" * 200_000 + "'\n"), "not parsed", EARNED,
    ),
    "a list of 19 MB": (
        with_code("x = [" + "[],[],{},(),0,1," * 1_100_000 + "]"), "not parsed", EARNED,
    ),
    "calls of calls": (with_code("f" + "()" * 600), "cell stable-weights", EARNED),
    "brackets 90 deep, 800 times": (
        with_code(("(" * 90 + "1" + ")" * 90 + "\n") * 800), "values differ", EARNED,
    ),
    "half a character in an error": (
        with_code("raise ValueError('\\ud800\\x1b[2J')"), "ValueError: \ufffd", EARNED,
    ),
    "half a character in a proof": (raw, "values differ", EARNED),
    "a proof of 15 MB": (in_prose("x" * 15_000_000), "cut at", EARNED),
    "ids of cells that cover the page": (odd_ids, "values differ", EARNED),
    "metadata 900 deep": (wide_metadata, "values differ", EARNED),
    "a shape without numbers": (
        with_code(IN_CALL + "    return np.zeros((3, 10**8, 0))"), "too large", EARNED,
    ),
    "an answer of 150,000 lists": (
        with_code(IN_CALL + "    return [[]] * 150_000"), "more than 100,000 things", EARNED,
    ),
    "an answer of 110,000 keys": (
        with_code(IN_CALL + "    return {str(k): 0 for k in range(110_000)}"), "more than 100,000",
        EARNED,
    ),
    # the pipe
    "a reply whose parts are of another kind": (
        with_code(
            "import json, sys, os\nreal = json.dumps\n"
            "json.dumps = lambda told, **k: real({**told, 'seen': 5})"
        ),
        "no reply into the grader's pipe", 0.0,  # it ruins all of its own answers
    ),
    "an error that is a list": (
        with_code(
            "import json\nreal = json.dumps\n"
            "json.dumps = lambda told, **k: real({**told, 'error': [[1]] * 9})"
        ),
        "no reply into the grader's pipe", 0.0,
    ),
    "writes without pause": (
        with_code(
            "import os\nwhile True:\n    for n in range(3, 20):\n"
            "        try: os.write(n, b'x' * 65536)\n        except OSError: pass"
        ),
        "cell stable-weights:", EARNED,
    ),
    "a flood of empty lines": (
        with_code(
            "import os\nwhile True:\n    for n in range(3, 20):\n"
            "        try: os.write(n, b'\\n' * 65536)\n        except OSError: pass"
        ),
        "without end", EARNED,
    ),
    "deaf before a large cell": (deaf_before_a_large_cell, "no reply into", EARNED),
    # memory and disk that no process seems to hold
    "memory in memfds": (
        with_code("import os\nfor k in range(150): os.memfd_create(str(k))"), NO_NEW, EARNED,
    ),
    "memory in System V segments": (
        with_code(LIBC + "n = libc.shmget(0, 1 << 28, 0o1600)\nassert n >= 0, 'none: ' + str(n)"),
        "none: -1", EARNED,
    ),
    "memory in sockets": (
        with_code("import socket\nheld = [socket.socketpair() for _ in range(100)]"), NO_NEW,
        EARNED,
    ),
    "memory that is shared and then hidden": (
        with_code(
            "import mmap\nheld = []\nwhile True:\n    m = mmap.mmap(-1, 1 << 26)\n"
            "    for at in range(0, 1 << 26, 4096): m[at] = 1\n"
            "    m.madvise(mmap.MADV_DONTNEED)\n    held.append(m)"
        ),
        "cell stable-weights:", EARNED,
    ),
    "large pipes": (
        with_code("import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(w, 1031, 1 << 20)"), NO_NEW,
        EARNED,
    ),
    "a million empty files": (
        with_code("for k in range(1_000_000): open(str(k), 'w').close()"),
        "made more than", EARNED,
    ),
    "a name space of its own": (
        with_code(LIBC + "assert libc.unshare(0x10020000) == 0, ctypes.get_errno()"),
        "AssertionError: 1", EARNED,
    ),
    "a name space by clone": (
        with_code(
            LIBC + "n = libc.syscall(56, 0x10000011, 0, 0, 0, 0)\nassert n >= 0, ctypes.get_errno()"
        ),
        "AssertionError: 1", EARNED,
    ),
    "mounts": (
        with_code(LIBC + "assert libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0, 'no'"),
        "AssertionError: no", EARNED,
    ),
    "the kernel's keys": (
        with_code(LIBC + "assert libc.syscall(248, b'user', b'a', b'b', 1, -3) >= 0, 'no'"),
        "AssertionError: no", EARNED,
    ),
    "asks for io_uring": (
        with_code(LIBC + "assert libc.syscall(425, 8, 0) >= 0, ctypes.get_errno()"),
        "AssertionError: 38", EARNED,
    ),
    "the same calls by 32-bit numbers": (
        with_code(LIBC + "assert libc.syscall(0x40000000 + 41, 2, 1, 0) >= 0, 'no'"),
        "AssertionError: no", EARNED,
    ),
    "becomes another program": (
        with_code("import os\nos.execv('/bin/sh', ['sh', '-c', 'exit'])"),
        "tried to become another program", EARNED,
    ),
    "takes every processor": (
        with_code("import os\nos.sched_setaffinity(0, {0, 1})"), NO_NEW, EARNED,
    ),
    "threads without end": (
        with_code(
            "import threading, time\nfor k in range(500):\n"
            "    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
        ),
        "cell stable-weights:", EARNED,
    ),
    "kills all that it can reach": (
        with_code("import os\nos.kill(-1, 9)"), "cell stable-weights:", EARNED,
    ),
    "sleeps instead of an answer": (
        with_code(IN_CALL + "    import time\n    time.sleep(100)"), "took longer than", EARNED,
    ),
    "answers late, always": (
        with_code(IN_CALL + "    import time\n    time.sleep(1.2)\n    return 0 * logits"),
        "values differ", EARNED,
    ),
}  # fmt: skip
KINDS = {  # one of each kind in `make test`, the others in `make test-all`
    "patches numpy.testing", "an object that equals everything", "leaves by sys.exit",
    "reads /proc and the environment", "asks the network", "forges replies", "edits a test cell",
    "is nested too deep", "numbers that overflow", "half a character in an error",
    "a reply whose parts are of another kind", "memory in memfds", "a name space of its own",
    "an f-string that takes an hour to parse", "loops in a cell", "a proof of 15 MB",
    "a shape of -1", "numbers as words", "an imaginary part", "an error in the grader's words",
    "many errors before a look at /proc", "writes a notice about another",
}  # fmt: skip
ATTACKS |= MORE
LIMITS = course.Limits(cell=1.5, call=1.5, total=40.0, files=1000)  # soon reached, under load too


@pytest.fixture(scope="module")
def problems() -> course.ProblemSet:
    return course.problem_set("4", HERE)


@pytest.fixture(scope="module")
def marker(sandbox: None) -> Iterator[Marker]:
    found = Marker()
    yield found
    found.close()


EACH = [pytest.param(n, marks=[] if n in KINDS else pytest.mark.long) for n in ATTACKS]


@pytest.mark.parametrize("name", EACH)
def test_an_attack_earns_what_its_work_earns(
    name: str, problems: course.ProblemSet, marker: Marker, tmp_path: Path
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
    verdict, prose = marker.mark(path, HERE / "set4-svm.md", SEED, LIMITS)
    assert verdict.points == points
    told = [*verdict.notices, *(part.told for mark in verdict.marks for part in mark.parts)]
    assert any(said in words for words in told)
    assert verdict.marks[-1].by_hand
    kept = json.dumps(dataclasses.asdict(verdict) | {"prose": prose}, ensure_ascii=False)
    assert len(kept.encode()) < 500_000
    assert not set(kept) & set("\x1b\u202e\x00")
    assert not (HERE / "gradebook.db").exists()


HARMLESS = "raise ValueError('harmless')"


def test_grave_notices_are_never_crowded_out(
    problems: course.ProblemSet, marker: Marker, tmp_path: Path
) -> None:
    """Attack 8: sixty errors filled the list, and the look at the environment fell out of it."""
    honest = notebooks.submission(problems, SEED)
    more = [notebooks.code_cell(f"x{k}", HARMLESS + f"\nx.y = {k}") for k in range(200)]
    more.append(notebooks.code_cell("last", "open('/proc/self/environ').read()"))
    honest["cells"] += more
    path = tmp_path / "set4-svm.ipynb"
    path.write_text(notebooks.write(honest))
    verdict, _ = marker.mark(path, HERE / "set4-svm.md", SEED, LIMITS)
    assert verdict.notices[0] == "cell last: tried to read /proc/self/environ"
    assert "and 195 more: errors" in verdict.notices
    assert len(verdict.notices) < 20
    assert verdict.points == 8.0


QUOTES = {  # how a function can say its input, exactly
    "as the words of an error": "raise ValueError(logits.tobytes().hex())",
    "as the name of an error": "raise type('x' + logits.tobytes().hex(), (Exception,), {})",
    "as the name of a cell": "exec(compile('raise ValueError', 'cell ' + logits.tobytes().hex() "
    "+ ', line 3', 'exec'))",
    "as the name of a type": "return type('x' + logits.tobytes().hex(), (), {})()",
    "as a shape": "return np.zeros((*(int(x) % 2**60 for x in logits.view('u8').flat[:7]), 0))",
    "as a dtype": "return np.zeros(3, [('x' + logits.tobytes().hex()[:90], float)])",
    "as a word": "return logits.tobytes().hex()",
    "as the name of what is missing": "raise NameError(logits.tobytes().hex())",
    "as a room": "raise ImportError('attnlab.' + logits.tobytes().hex() "
    "+ ' may not be used in this problem set')",
}


@pytest.mark.parametrize("how", QUOTES)
def test_feedback_never_quotes_a_hidden_input(
    how: str, problems: course.ProblemSet, marker: Marker, tmp_path: Path
) -> None:
    """Attack 23: the words of an error were the input in hex. The instructor still sees them."""
    answer = {"stable-weights": f"{IN_CALL}    {QUOTES[how]}"}
    path = tmp_path / "set4-svm.ipynb"
    path.write_text(notebooks.write(notebooks.submission(problems, SEED, answer)))
    verdict, _ = marker.mark(path, HERE / "set4-svm.md", SEED, LIMITS)
    source = problems.problems[0]
    judge = Judge(problems, source, SEED)
    given = [case[1][0] for case in judge.cases()]
    (mark,) = [one for one in verdict.marks if one.id == "stable-weights"]
    assert all(part.told for part in mark.parts)
    told = " ".join([mark.told, *(part.told for part in mark.parts)])
    for logits in given:
        data = logits.tobytes().hex()
        assert not [data[k : k + 8] for k in range(0, len(data) - 8, 8) if data[k : k + 8] in told]
        assert not [x for x in logits.view("u8").flat if x > 999 and str(x % 2**60) in told]
    if "error" in how and "name" not in how:
        assert any(given[0].tobytes().hex()[:40] in part.raised for part in mark.parts)


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
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    _sandbox.available.cache_clear()
    try:
        with pytest.raises(course.NoSandboxError, match=r"does not work: .*Permission denied"):
            course.Sandbox().open()
    finally:
        _sandbox.available.cache_clear()
