"""The engine behind the figures: same bits from everybody, and nothing lost when it is killed."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import figures, install
from attnbook.cli import _figures, main
from attnbook.figures import Data, Figure, _kept, _output, _store, costs
from attnbook.figures._plan import plan
from attnbook.figures._store import Store
from attnbook.files import atomically

FAST = {"d": (2, 4), "trials": 7, "steps": 30}
COMMAND = [sys.executable, "-m", "attnbook", "figure", "svm.5", "--workers", "1", "--quiet"]


def toy(**changes: object) -> Figure:
    """A figure of four numbers a trial, in pieces of three trials."""
    entries: dict = {
        "id": "svm.5",
        "number": "Figure 5",
        "words": "made for this test",
        "status": "reproduced",
        "reading": "",
        "quick": {"d": (2, 3), "trials": 8, "scale": 1.0, "word": "a", "flag": False},
        "paper": {"d": (2, 3), "trials": 80, "scale": 1.0, "word": "a", "flag": False},
        "arrays": {"x": "(dims, trials, 4) draws", "d": "(dims,)"},
        "compute": lambda cell, trials, rng: {"x": cell["d"] + rng.normal(size=(trials, 4))},
        "grid": ("d",),
        "cells": None,
        "finish": None,
        "paint": lambda data, canvas: canvas.add_subplot().plot(data["x"][0, 0]),
        "alt": lambda _: "four numbers",
        "chunk": 3,
    }
    return Figure(**{**entries, **changes})


def measured(**changes: object) -> Figure:
    """The same of real data: with a verdict, and a run that is kept."""
    return toy(
        status="measured",
        stand_in="four numbers instead of a Transformer",
        verdict=lambda data: figures.Verdict("weaker", f"mean {data['x'].mean():.3f}"),
        stored=True,
        **changes,
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where kept runs lie in this test."""
    place = tmp_path / "kept"
    monkeypatch.setattr(_kept, "_home", lambda: place)
    monkeypatch.setattr(_kept, "get", lambda _: measured())
    return place


def same(one: Data, two: Data) -> bool:
    return set(one.arrays) == set(two.arrays) and all(
        one[name].tobytes() == two[name].tobytes() for name in one.arrays
    )


def test_shapes_and_coordinates() -> None:
    data = toy().run(seed=1)
    assert data["x"].shape == (2, 8, 4)
    assert data["d"].tolist() == [2, 3]
    assert not same(data, toy().run(seed=2))
    assert same(data, toy().run(seed=1))


def test_pieces_keep_their_draws_when_others_join() -> None:
    small, large = toy().run(seed=1), toy().run(seed=1, trials=12, d=(3, 5))
    # cell d = 3, the two full pieces of three trials
    assert np.array_equal(small["x"][1, :6], large["x"][0, :6])
    assert not np.array_equal(small["x"][0, :6], large["x"][1, :6])


def test_every_piece_has_its_own_seed() -> None:
    tasks = plan("svm.5", [{"d": 2}, {"d": 3}], 8, 3, 0)
    assert [(task.start, task.trials) for task in tasks] == [(0, 3), (3, 3), (6, 2)] * 2
    assert len({task.key for task in tasks}) == 6


def another(value: Any) -> Any:
    """Another value of the kind that a setting has."""
    if isinstance(value, tuple):
        return tuple(another(entry) for entry in value)
    if isinstance(value, bool):
        return not value
    return value + "-" if isinstance(value, str) else 2 * value + 1


@pytest.mark.parametrize("preset", ["quick", "paper"])
@pytest.mark.parametrize("figure", figures.all(own=True), ids=lambda figure: figure.id)
def test_what_decides_no_draws_leaves_them_in_place(figure: Figure, preset: str) -> None:
    if figure.id in ("bias.1", "bias.4"):
        assert not figure.no_draws, "their seeds are those of the trials alone"
        return
    settings = figure.settings(preset)
    before = figure.tasks(settings, 0, preset)
    plain = plan(figure.id, figure._cells(settings), int(settings["trials"]), figure.chunk, 0)
    assert [task.draws for task in before] == [task.key for task in plain], "the preset's own draws"
    for name in set(settings) - {"trials"} - set(figure.grid):
        if figure.cells is not None and all(name not in task.cell for task in before):
            continue  # it decides which cells there are
        if figure.cells is not None and name not in figure.no_draws:
            continue
        changed = settings | {name: another(settings[name])}
        after = figure.tasks(changed, 0, preset)
        assert all(a.key != b.key for a, b in zip(after, before, strict=True)), name
        kept = [a.draws == b.draws for a, b in zip(after, before, strict=True)]
        assert all(kept) if name in figure.no_draws else not any(kept), name


@pytest.mark.parametrize(
    ("name", "setting", "value", "curve", "moves"),
    [
        ("bias.2", "gd_step", 1.0, "alignment", 0),
        ("bias.5", "polyak_cap", 1.0, "excess", 3),
        ("bias.3", "gd_step", 0.05, "loss", 0),
    ],
)
def test_a_rules_step_moves_its_own_curve_only(
    name: str, setting: str, value: float, curve: str, moves: int
) -> None:
    figure = figures.get(name)
    asked = {"trials": 2, "steps": 60}
    before, after = (figure.run(**asked, **more)[curve] for more in ({}, {setting: value}))
    same = [np.array_equal(before[:, k], after[:, k]) for k in range(before.shape[1])]
    assert same == [k != moves for k in range(len(same))]


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_change_no_bit(workers: int) -> None:
    alone = figures.get("svm.5").run(seed=3, **FAST)
    each = figures.mapper(workers=workers)
    assert same(alone, figures.get("svm.5").run(seed=3, each=each, **FAST))


def test_order_of_the_pieces_changes_no_bit() -> None:
    def shuffled(figure: Figure, tasks: list) -> list:
        mixed = random.Random(0).sample(tasks, len(tasks))
        return [(task.index, figure.work(task)) for task in mixed]

    assert same(toy().run(seed=1), toy().run(seed=1, each=shuffled))


def test_a_store_is_resumed_from(tmp_path: Path) -> None:
    worked: list[int] = []

    def counting(cell: dict, trials: int, rng: np.random.Generator) -> dict:
        worked.append(trials)
        return {"x": cell["d"] + rng.normal(size=(trials, 4))}

    figure = toy(compute=counting)
    first = figure.run(each=figures.mapper(store=tmp_path))
    assert len(worked) == 6
    again = figure.run(each=figures.mapper(store=tmp_path))
    assert len(worked) == 6, "nothing is computed twice"
    assert same(first, again)
    figure.run(each=figures.mapper(store=tmp_path), trials=12)
    assert len(worked) == 6 + 4, "two pieces a cell were there"
    figure.run(each=figures.mapper(store=tmp_path), seed=1)
    assert len(worked) == 16, "another seed is another result"


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign", "numbers", "other"])
def test_damaged_pieces_are_set_aside(tmp_path: Path, damage: str) -> None:
    figure, said = toy(), []
    first = figure.run(each=figures.mapper(store=tmp_path))
    victim, other = sorted(tmp_path.glob("*.npz"))[:2]
    content = victim.read_bytes()
    if damage == "cut":
        victim.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        victim.write_bytes(b"")
    elif damage == "foreign":
        np.savez(victim, x=np.zeros(3))
    elif damage == "numbers":
        arrays = dict(np.load(victim))
        arrays["x"] = arrays["x"] + 1e-12
        np.savez(victim, **arrays)
    else:
        victim.write_bytes(other.read_bytes())
    again = figure.run(each=figures.mapper(store=tmp_path, say=said.append))
    assert same(first, again)
    assert len(said) == 1
    assert victim.name in said[0]
    assert "set aside as" in said[0]
    assert (tmp_path / f"{victim.name}.aside-1").exists()
    assert victim.read_bytes() == content


def test_results_of_other_code_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure, seen = toy(), []
    figure.run(each=figures.mapper(store=tmp_path))
    monkeypatch.setattr(_store, "code", lambda: "other code")
    figure.run(each=figures.mapper(store=tmp_path, seen=lambda *done: seen.append(done[0])))
    assert seen == [0, 1, 2, 3, 4, 5, 6]
    assert len(list(tmp_path.glob("*.npz"))) == 12


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path, sizes, stop = tmp_path / "file", set(), threading.Event()
    atomically(path, b"0" * 1000)

    def read() -> None:
        while not stop.is_set():
            sizes.add(len(path.read_bytes()))

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(200):
        atomically(path, bytes([48 + k % 10]) * (1000 if k % 2 else 200_000))
    stop.set()
    reader.join()
    assert sizes <= {1000, 200_000}
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def _environment() -> dict[str, str]:
    home = str(Path(figures.__file__).parents[2])
    return {**os.environ, "PYTHONPATH": home}


def _command(out: Path, trials: int = 1000) -> list[str]:
    sets = ["--set", "d=2,4", "--set", f"trials={trials}", "--set", "steps=150"]
    return [*COMMAND, "--out", str(out), *sets]


def test_killed_and_resumed(tmp_path: Path) -> None:
    """kill -9 at random moments: finished pieces stay, and the end is the same to the bit."""
    draw, pieces = random.Random(0), tmp_path / "killed" / ".pieces" / "svm.5"
    kills, before = 0, set()
    for _ in range(6):
        run = subprocess.Popen(_command(tmp_path / "killed"), env=_environment())
        time.sleep(0.4 + draw.random())
        if run.poll() is None:
            run.send_signal(signal.SIGKILL)
            kills += 1
        run.wait()
        now = {path.name for path in pieces.glob("*.npz")} if pieces.exists() else set()
        assert before <= now, "a finished piece was lost"
        before = now
    assert kills >= 1
    for name in ("killed", "whole"):
        subprocess.run(_command(tmp_path / name), env=_environment(), check=True)
    kept, whole = (dict(np.load(tmp_path / name / "svm.5.npz")) for name in ("killed", "whole"))
    assert all(kept[name].tobytes() == whole[name].tobytes() for name in whole)


def descendants(root: int) -> set[int]:
    """Processes below a process, from the process table."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {root}
    for _ in parents:
        more = {child for child, parent in parents.items() if parent in found}
        if more <= found:
            break
        found |= more
    return found - {root}


def is_alive(process: int) -> bool:
    """Whether it runs; a zombie has ended, and waits for whoever started it to notice."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_killed_command_leaves_no_process(tmp_path: Path) -> None:
    command = _command(tmp_path, trials=20_000)
    command[command.index("--workers") + 1] = "2"
    run = subprocess.Popen(command, env=_environment(), stderr=subprocess.DEVNULL)
    pieces = tmp_path / ".pieces" / "svm.5"
    try:
        wait(lambda: any(pieces.glob("*.npz")), 120.0)
        left = descendants(run.pid)
    finally:
        run.kill()
        run.wait()
    assert len(left) >= 3, "two workers, and what counts their resources"
    try:
        wait(lambda: not any(map(is_alive, left)), 30.0)
    finally:
        for process in filter(is_alive, left):
            os.kill(process, signal.SIGKILL)


def wait(until: Callable[[], bool], seconds: float) -> None:
    """Wait until something is true; fail where it does not become so."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_two_processes_at_one_output(tmp_path: Path) -> None:
    command = _command(tmp_path, trials=200)
    runs = [subprocess.Popen(command, env=_environment()) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".pieces", *(f"svm.5.{kind}" for kind in ("svg", "png", "npz", "json"))}
    assert not list((tmp_path / ".pieces" / "svm.5").glob("*aside*"))


def test_dask_gives_the_same_bits() -> None:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        each = figures.mapper(backend="dask", scheduler=cluster.scheduler_address)
        there = figures.get("svm.5").run(seed=3, each=each, **FAST)
    assert same(figures.get("svm.5").run(seed=3, **FAST), there)


def test_an_unreachable_scheduler_is_said_within_seconds() -> None:
    start = time.perf_counter()
    each = figures.mapper(backend="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"scheduler: expected one that answers, got tcp://127"):
        toy().run(each=each)
    assert time.perf_counter() - start < 20.0


def test_files_tell_how_they_came_about(tmp_path: Path) -> None:
    data = figures.get("svm.5").run(seed=3, **FAST)
    paths = figures.write(data, tmp_path / "new", seconds=1.25)
    record = json.loads(paths[3].read_text())
    assert record["seed"] == 3
    assert record["settings"]["d"] == [2, 4]
    assert record["versions"]["numpy"] == np.__version__
    assert record["seconds"] == 1.25
    assert record["arrays"]["kind"]["shape"] == [2, 7, 2]
    stored = dict(np.load(paths[2]))
    assert set(stored) == set(record["arrays"]) == set(data.arrays)
    picture = paths[0].read_text()
    assert "<title>svm.5: " in picture
    assert "<desc>Stacked bars" in picture
    assert 'role="img"' in picture
    assert "Stacked bars" in paths[1].read_bytes()[:3000].decode("latin1")
    again = figures.write(data, tmp_path / "again", seconds=1.25)
    for one, two in zip(paths, again, strict=True):
        assert one.read_bytes() == two.read_bytes(), f"{one.suffix} differs between builds"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"e": 3}, "setting: expected one of .*'d'.*, got 'e'"),
        ({"d": (2, "x")}, "d: expected a whole number"),
        ({"trials": 0}, "trials: expected a whole number of at least 1"),
        ({"scale": "wide"}, "scale: expected a finite number"),
        ({"word": 3}, "word: expected a word"),
        ({"flag": 1}, "flag: expected True or False"),
        ({"d": ()}, "d: expected at least one value"),
    ],
)
def test_bad_settings(changes: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        toy().run(**changes)


def test_bad_names_and_places(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"id: expected a figure, such as 'svm\.5'"):
        figures.get("svm.55")
    with pytest.raises(ValueError, match=r"preset: expected one of 'quick', 'paper'"):
        toy().run("papre")
    with pytest.raises(ValueError, match=r"seed: expected a whole number"):
        toy().run(seed=-1)
    with pytest.raises(ValueError, match=r"workers: expected"):
        figures.mapper(workers=0)
    with pytest.raises(ValueError, match=r"scheduler: expected the address of a Dask"):
        figures.mapper(backend="dask")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"out: expected a folder that can be written"):
        figures.write(toy().run(), tmp_path / "file")
    with pytest.raises(ValueError, match=r"x: expected 3 trials first"):
        toy(compute=lambda *_: {"x": np.zeros(4)}).run()
    with pytest.raises(ValueError, match=r"arrays: expected those described"):
        toy(arrays={"x": "only"}).run()
    with pytest.raises(ValueError, match=r"data: expected what run of svm\.5 gave"):
        toy().draw({"x": 1})
    with pytest.raises(ValueError, match=r"theme: expected one of"):
        toy().draw(toy().run(), theme="grey")
    with pytest.raises(ValueError, match=r"name: expected one of 'x', 'd'"):
        toy().run()["y"]


def test_a_store_of_its_own_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "down")
    task = plan("svm.5", [{"d": 2}], 3, 3, 0)[0]
    assert store.load(task) is None
    store.save(task, {"x": np.arange(3.0)})
    assert np.array_equal(store.load(task)["x"], np.arange(3.0))


# -- real data: what is kept, what it came to, what it needs ---------------------------------------
def test_a_kept_run_is_read_back(home: Path) -> None:
    data = measured().run()
    path = figures.store(data, seconds=1.25)
    assert path == home / "svm.5.npz"
    again = figures.kept("svm.5")
    assert (again.preset, again.seed, again.settings) == (data.preset, data.seed, data.settings)
    assert again["x"].dtype == np.float64
    np.testing.assert_allclose(again["x"], data["x"], rtol=1e-6)
    assert np.array_equal(again["d"], data["d"])
    assert _kept.seconds("svm.5") == 1.2
    assert measured().verdict(again).numbers == measured().verdict(data).numbers
    first = path.read_bytes()
    assert figures.store(data, seconds=1.25).read_bytes() == first, "the same bytes each time"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("none", r"id: expected a kept run of svm\.5 \(attnlab figure svm\.5 --store\), got none"),
        ("cut", r"svm\.5\.npz: expected a whole kept run"),
        ("empty", r"svm\.5\.npz: expected a whole kept run"),
        ("foreign", r"svm\.5\.npz: expected a whole kept run .* got a foreign file"),
        ("numbers", r"svm\.5\.npz: expected a whole kept run .* got its numbers were changed"),
        ("other", r"svm\.5\.npz: expected a run of svm\.5, got one of svm\.6"),
        ("settings", r"svm\.5\.npz: expected a run of today's quick preset"),
        ("arrays", r"svm\.5\.npz: expected the arrays \['d', 'more', 'x'\]"),
    ],
)
def test_a_kept_run_that_is_not_its_own(
    home: Path, monkeypatch: pytest.MonkeyPatch, damage: str, says: str
) -> None:
    path = figures.store(measured().run())
    content = path.read_bytes()
    changed: dict = {}
    if damage == "none":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "foreign":
        np.savez(path, x=np.zeros(3))
    elif damage == "numbers":
        arrays = dict(np.load(path))
        arrays["x"] = arrays["x"] + np.float32(1e-3)
        np.savez(path, **arrays)
    elif damage == "other":
        monkeypatch.setattr(_kept, "get", lambda _: measured(id="svm.6"))
        figures.store(measured(id="svm.6").run()).rename(path)
    elif damage == "settings":
        changed["quick"] = {**measured().quick, "scale": 2.0}
    else:
        changed["arrays"] = {**measured().arrays, "more": "(1,) that the run does not have"}
    monkeypatch.setattr(_kept, "get", lambda _: measured(**changed))
    with pytest.raises(ValueError, match=says) as error:
        figures.kept("svm.5")
    assert "\n" not in str(error.value)


def test_only_the_quick_preset_is_kept(home: Path) -> None:
    for run in (measured().run(seed=1), measured().run(scale=2.0), measured().run("paper")):
        with pytest.raises(ValueError, match=r"data: expected the quick preset as it is"):
            figures.store(run)
    assert not home.exists()


def test_other_figures_are_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", "svm.3", "--store"]) == 2
    assert "store: expected figures whose run the book keeps, got svm.3" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"id: expected a figure whose run is kept, got svm\.3"):
        figures.kept("svm.3")


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "sklearn"):
        monkeypatch.setitem(sys.modules, name, None)
    line = install.local_install_line("real-train")
    says = f"Computing svm.5 needs PyTorch, which is not installed: {line}"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        measured(needs="real-train").run()
    with pytest.raises(ValueError, match=re.escape(install.local_install_line("real"))):
        measured(needs="real").run()
    assert measured().run()["x"].shape == (2, 8, 4)


def test_a_verdict_is_a_word_of_four_and_numbers() -> None:
    with pytest.raises(ValueError, match=r"word: expected one of 'as the paper says'"):
        figures.Verdict("fine", "1 of 2")
    with pytest.raises(ValueError, match=r"numbers: expected a sentence"):
        figures.Verdict("weaker", " ")
    with pytest.raises(ValueError, match=r"status: expected 'measured' with a verdict"):
        toy(verdict=lambda _: figures.Verdict("weaker", "1"))
    with pytest.raises(ValueError, match=r"status: expected 'measured' with a verdict"):
        toy(status="measured")
    with pytest.raises(ValueError, match=r"needs: expected one of 'real', 'real-train'"):
        measured(needs="reel")


def test_the_command_keeps_a_run_and_says_what_it_came_to(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = measured()
    monkeypatch.setattr(_figures, "_chosen", lambda _: [one])
    monkeypatch.setattr(_output, "get", lambda _: one)
    out = str(tmp_path / "out")
    asked = ["figure", "svm.5", "--store", "--quiet", "--workers", "1", "--out", out]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "reduced stand-in: four numbers instead of a Transformer" in said
    assert f"weaker: {one.verdict(figures.kept('svm.5')).numbers}" in said
    assert "kept in" in said
    assert _kept.seconds("svm.5") is not None
    record = json.loads((tmp_path / "out" / "svm.5.json").read_text())
    assert record["verdict"]["word"] == "weaker"
    assert record["reduced stand-in"] == one.stand_in
    assert main(asked) == 0, "what was finished is found again"
    assert _kept.seconds("svm.5") is None, "so what it took is not known"
    assert main([*asked, "--seed", "1"]) == 2
    assert "store: expected the quick preset as it is" in capsys.readouterr().err


def test_real_data_changes_no_other_figure() -> None:
    for figure in figures.all(own=True):
        assert bool(figure.needs) == (figure.verdict is not None), figure.id
        assert figure.stored or not figure.needs, figure.id
    assert set(figures.verdicts()) == {f.id for f in figures.all(own=True) if f.needs}


def test_every_figure_of_the_papers_that_shows_data_has_a_command() -> None:
    """As the catalogue counts them; the svm paper shows no real data."""
    real = {
        "multihead": {6},
        "encoder": {1, 4, 6, 7, 8},
        "bias": {1, 4, 6, 7, 9, 10},
    }
    found = figures.all()
    assert len(found) == 36
    needs = {one.id for one in found if one.needs}
    assert needs == {f"{paper}.{number}" for paper, numbers in real.items() for number in numbers}


def test_the_time_is_estimated_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"a": {"quick": 0.4, "paper": 40.0}, "b": {"quick": 3.0, "paper": 800.0}, "c": {}}
    monkeypatch.setattr(costs, "measured", lambda: {"seconds": seconds})
    monkeypatch.setattr(_kept, "seconds", {"c": 60.0}.get)
    for names, preset, says in (
        ("ab", "quick", "2 figures, preset quick: a few seconds"),
        ("ac", "quick", "2 figures, preset quick: about 60 seconds"),
        ("ab", "paper", "2 figures, preset paper: about 14 minutes"),
        ("ac", "paper", "2 figures, preset paper: about 40 seconds, and 1 that were never timed"),
        ("c", "paper", "c, preset paper: how long this takes has not been measured"),
    ):
        assert costs.estimate(list(names), preset) == says


def test_the_command_says_first_how_long_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["figure", "svm.3", "--workers", "1", "--out", str(tmp_path)]
    assert main(command) == 0
    assert capsys.readouterr().err.startswith("svm.3, preset quick: a few seconds\n")
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--workers", "0"], "workers: expected a whole number of at least 1, got 0"),
        (["--backend", "ray"], "backend: expected one of 'processes', 'dask', got 'ray'"),
        (["--backend", "dask"], "scheduler: expected the address of a Dask scheduler, got none"),
        (["--scheduler", "tcp://x:1"], "backend: expected 'dask' where a scheduler is given, got"),
        (["--preset", "big"], "preset: expected one of 'quick', 'paper', got 'big'"),
        (["--set", "q=3"], "setting: expected one of "),
        (["--set", "steps"], "set: expected name=value, such as d=4,8, got 'steps'"),
    ],
)
def test_bad_input_of_the_command_is_one_line_and_begins_nothing(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", "svm.5", "--out", str(tmp_path / "out"), *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"attnlab figure: {says}")
    assert said.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
