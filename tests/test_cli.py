"""The command line: tables, exit codes, and what bad input gets."""

import json
import re
import subprocess
import sys

import pytest

from attnbook import claims
from attnbook.claims import _ledger
from attnbook.cli import main

Capture = pytest.CaptureFixture[str]


def test_check_prints_a_table(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert (
        main(["check", "svm.theorem-1", "svm.lemma-1", "--instances", "7", "--workers", "1"]) == 0
    )
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["id", "statement", "status", "evidence"]
    assert re.search(r"^svm\.theorem-1 .* holds +least margin.*\(7 instances\)", out, re.M)
    assert re.search(r"^svm, statements +0 +2 +0 +0 +0 +0 +0 +2$", out, re.M)
    assert "all evidence agrees with the recorded status" in out
    assert max(map(len, out.splitlines())) <= 150


def test_the_table_fits_a_narrow_terminal(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["check", "svm.theorem-1", "--instances", "3"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 110


def test_evidence_that_disagrees_exits_with_1(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = claims.get("svm.theorem-1")
    ledger = dict(_ledger.ledger("svm"))
    fields = {name: getattr(true, name) for name in true.__dataclass_fields__}
    ledger[true.id] = claims.Claim(**{**fields, "status": "fails as stated"})
    monkeypatch.setattr(_ledger, "ledger", {"svm": ledger}.get)
    monkeypatch.setattr(_ledger, "PAPERS", ("svm",))
    assert main(["check", "svm.theorem-1", "--instances", "3"]) == 1
    out = capsys.readouterr().out
    assert "DISAGREES" in out
    assert "disagrees with the recorded status: svm.theorem-1" in out


def test_rows_for_programs(capsys: Capture) -> None:
    names = ["multihead.corollary-3", "svm.lemma-3"]
    assert main(["check", *names, "--json", "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seed"] == 0
    loose, exact = found["claims"]
    assert loose["status"] == "holds"
    assert loose["agrees"]
    assert loose["seconds"] > 0.0
    assert {row["role"] for row in loose["rows"]} == {"premise", "statement"}
    for row in loose["rows"]:
        assert row["holds"]
        assert row["room"] == pytest.approx(row["bound"] / row["measured"])
        assert row["slack"] == (row["role"] == "statement" and row["room"] > 1000.0)
    assert all(row["room"] is None for row in exact["rows"] if row["relation"] == "=")


def test_the_loosest_bounds_come_first(capsys: Capture) -> None:
    assert main(["check", "multihead.corollary-3", "bias.erratum-9", "--slack"]) == 0
    out = capsys.readouterr().out
    head, _, first, *rest = out.splitlines()
    assert head.split() == ["room", "id", "row"]
    assert first.startswith("vacuous")
    rooms = [float(line.split()[0]) for line in rest if re.match(r"[\d.e+]+ +\w+\.", line)]
    assert rooms == sorted(rooms, reverse=True)
    assert rooms
    assert "asserted rows with a bound" in out


def test_list_runs_nothing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.svm.attention_svm", None)
    assert main(["check", "svm", "--list"]) == 0
    assert "svm.theorem-1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "svm.teorem-1"], r"name: expected a claim of the ledger, such as 'svm.theorem-"),
        (["check", "svm.theorem-1", "--instances", "0"], "instances: expected a whole number"),
        (["check", "svm.theorem-1", "--seed", "-1"], "rng: expected a whole number"),
        (["check", "svm.theorem-1", "--workers", "0"], "workers: expected a whole number"),
    ],
)
def test_bad_input_exits_with_2(capsys: Capture, arguments: list[str], says: str) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert re.search(says, captured.err)
    assert captured.out == ""


@pytest.mark.parametrize("arguments", [[], ["chekc"], ["check", "--instances", "many"]])
def test_usage_errors_say_how(capsys: Capture, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: attnlab" in capsys.readouterr().err


def test_python_m_attnlab() -> None:
    command = [sys.executable, "-m", "attnbook", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"attnlab \d+\.\d+\.\d+\n", done.stdout)
