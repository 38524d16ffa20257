"""Where a program is missing `make test` says which, runs the rest, and is no success."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import programs
import pytest

ROOT = Path(__file__).resolve().parents[1]
ATOMIC = "node: error while loading shared libraries: libatomic.so.1: cannot open shared object"


def test_tests_of_a_missing_program_are_left_out_and_counted(tmp_path: Path) -> None:
    """And the run is no success, although all that was run passes."""
    students = "tests/test_course_students.py::test_what_"
    some = [
        "tests/browser/test_opening.py",
        f"{students}jupyter_runs_is_run",
        f"{students}is_as_good_as_plain_is_plain",
        "tests/test_colours.py",
    ]
    file = tmp_path / "missing.json"
    file.write_text('{"chromium": ["chromium", "libatomic1"], "sandbox": ["bubblewrap"]}')
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider"]
    command += ["-m", "not long", "--missing-programs", str(file), *some]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.search(r"^\d+ passed in", done.stdout, re.M), done.stdout + done.stderr
    assert done.returncode == 1
    told = re.search(
        r"NOT COMPLETE: (\d+) tests were left out: (\d+) need Chromium and (\d+) need a working "
        r"bubblewrap\. Install as root: apt-get install chromium libatomic1 bubblewrap",
        done.stdout,
    )
    assert told, done.stdout
    total, browser, sandbox = map(int, told.groups())
    assert (total, sandbox) == (browser + sandbox, 10)
    assert browser >= 2


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`.ci/programs` on a machine that has none of them, for somebody without root's rights."""
    loader = importlib.machinery.SourceFileLoader("ci_programs", str(ROOT / ".ci" / "programs"))
    spec = importlib.util.spec_from_loader("ci_programs", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "MISSING", tmp_path / "missing.json")
    monkeypatch.setattr(module, "LOG", tmp_path / "log")
    monkeypatch.setattr(module, "administrator", lambda: None)
    monkeypatch.setattr(programs, "why_no_driver", lambda: ATOMIC)
    monkeypatch.delenv("ATTNLAB_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return module


def test_without_root_it_says_what_is_wrong_and_what_to_install(
    tool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(["chromium", "sandbox"]) == 1
    said = capsys.readouterr().out
    assert "libatomic.so.1: cannot open shared object" in said, "the driver's own words"
    assert "no bwrap on the PATH" in said
    assert (
        "Install as root: apt-get install chromium-headless-shell libatomic1 bubblewrap\n" in said
    )
    assert "installing" not in said
    kept = json.loads((tmp_path / "missing.json").read_text())
    assert kept == {
        "chromium": ["chromium-headless-shell", "libatomic1"],
        "sandbox": ["bubblewrap"],
    }


@pytest.mark.parametrize("works", [True, False])
def test_as_root_it_says_what_it_installs_before_it_does(
    tool: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    works: bool,
) -> None:
    def apt_get(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        said.append((command, capsys.readouterr().out))
        if works:
            monkeypatch.setattr(programs, "why_no_sandbox", lambda: "")
        return subprocess.CompletedProcess(command, 0 if works else 100)

    said: list[tuple[list[str], str]] = []
    monkeypatch.setattr(tool, "administrator", list)
    monkeypatch.setattr(tool.subprocess, "run", apt_get)
    assert tool.main(["sandbox"]) == (0 if works else 1)
    assert said[0][0] == ["apt-get", "-q", "install", "-y", "bubblewrap"]
    assert said[0][1] == "installing system packages (once): apt-get install bubblewrap\n"
    assert ("apt-get failed:" in capsys.readouterr().out) is not works
    assert (json.loads((tmp_path / "missing.json").read_text()) == {}) is works


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str], None]:
    """``put("bwrap", "exit 1")``: a program on the PATH."""

    def write(name: str, body: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)

    return write


def test_what_is_installed_and_does_not_work_says_why_itself(
    tool: Any, put: Callable[[str, str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no package to install then."""
    put("bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    put("firefox-esr", "echo 'libgtk-3.so.0: cannot open' >&2; exit 127")
    assert tool.main(["sandbox", "firefox"]) == 1
    said = capsys.readouterr().out
    assert "does not work: bwrap: setting up uid map: Permission denied" in said
    assert "libgtk-3.so.0: cannot open" in said
    assert "apt-get install" not in said
    assert json.loads((tmp_path / "missing.json").read_text()) == {"sandbox": [], "firefox": []}


def test_a_driver_that_does_not_start_is_said_with_its_own_words(
    monkeypatch: pytest.MonkeyPatch, put: Callable[[str, str], None], tmp_path: Path
) -> None:
    put("node", f"echo '{ATOMIC}' >&2; exit 127")
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(tmp_path / "node"))
    assert programs.why_no_driver() == ATOMIC
