"""The command line: tables, exit codes, and what bad input gets."""

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios

import pytest

from attnbook import claims
from attnbook.claims import _ledger
from attnbook.cli import main
from attnbook.cli._progress import in_words, seconds_left

Capture = pytest.CaptureFixture[str]


def test_check_prints_a_table(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert (
        main(["check", "svm.theorem-1", "svm.lemma-1", "--instances", "7", "--workers", "1"]) == 0
    )
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["id", "statement", "status", "evidence"]
    assert re.search(r"^svm\.theorem-1 .* holds +least margin.*\(7 instances\)", out, re.M)
    assert re.search(r"^svm, statements +0 +2 +0 +0 +0 +0 +0 +0 +2$", out, re.M)
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


def test_no_progress_where_the_error_stream_is_no_terminal(capsys: Capture) -> None:
    assert main(["check", "svm.theorem-1", "--instances", "3"]) == 0
    assert capsys.readouterr().err == ""


def on_a_terminal(*arguments: str) -> tuple[str, list[str]]:
    """Standard output through a pipe, and what a terminal of 100 columns saw of the other."""
    reader, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-m", "attnbook", "check", *arguments]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    seen = b""
    try:
        while piece := os.read(reader, 4096):
            seen += piece
    except OSError:  # how a terminal says that nobody writes any more
        pass
    os.close(reader)
    out = running.communicate(timeout=60)[0].decode()
    assert running.returncode == 0
    return out, seen.decode().replace("\r", "\n").split("\n")


def test_progress_is_on_the_error_stream() -> None:
    names = ["svm.theorem-1", "svm.lemma-1", "svm.erratum-2", "svm.claim-e2", "--instances", "3"]
    out, seen = on_a_terminal(*names, "--json", "--workers", "1")
    assert [claim["agrees"] for claim in json.loads(out)["claims"]] == [True] * 4
    assert any(line.startswith("0 of 4 claims checked, 00:00 so far") for line in seen)
    assert any(re.fullmatch(r"3 of 4 .*, about \d+ s left", line) for line in seen)
    assert not seen[-1].strip(), "the line is wiped"


def test_a_few_claims_with_many_instances_are_tried_with_fewer_first() -> None:
    out, seen = on_a_terminal("svm.claim-e2", "--instances", "200", "--workers", "1")
    assert "all evidence agrees" in out
    assert "so far" not in out
    assert any(re.search(r"0 of 1 .*, at most about \d+ s in all", line) for line in seen)


def test_time_left_is_that_of_the_same_kind() -> None:
    one, two = claims.select("svm.theorem"), claims.select("svm.erratum")
    order = [one[0], two[0], one[1], two[1], two[2], claims.get("svm.lemma-1")]
    assert seconds_left(order, [10.0, 1.0, 20.0], 1) == pytest.approx(1.0 + 1.0 + 31.0 / 3.0)
    assert seconds_left(order, [10.0, 1.0, 20.0], 2) == pytest.approx((2.0 + 31.0 / 3.0) / 2.0)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "5 s"), (12.0, "10 s"), (89.0, "90 s"), (100.0, "2 min")]
)
def test_times_are_rounded(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


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
