"""``attnlab figures`` lists them, ``attnlab figure`` computes and draws."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from attnbook import figures, install
from attnbook.cli._table import Table
from attnbook.figures import costs
from attnbook.files import cores, folder
from attnlab import checks


def add(commands: Any) -> None:
    """Tell the parser about both commands."""
    listing = commands.add_parser(
        "figures",
        help="list the figures",
        description="List every figure: how long it takes with the presets quick and paper, how "
        "far it is reproduced, and what it shows.",
    )
    listing.set_defaults(run=run_list)
    one = commands.add_parser(
        "figure",
        help="compute and draw a figure",
        description="Compute figures and write <id>.svg, .png, .npz (the numbers) and .json (how "
        "they came about). If it is interrupted, the same command goes on from the finished "
        "pieces, which are kept in <out>/.pieces.",
    )
    one.add_argument(
        "names",
        nargs="+",
        metavar="id",
        help="figures, such as svm.5 or bias.2 (`attnlab figures` lists them); a paper, such as "
        "svm, for all of its figures; all; or real, for all that need real data",
    )
    one.add_argument("--out", default="out", help="folder for the results (default: out)")
    one.add_argument(
        "--preset", default="quick", help="quick (default: seconds), or paper: the paper's sizes"
    )
    one.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    one.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="name=value",
        help="change a setting of the preset, such as d=4,8; may be given several times",
    )
    one.add_argument("--workers", type=int, default=None, help="processes (default: all cores)")
    one.add_argument(
        "--backend",
        default="processes",
        help="processes on this machine (default), or dask for a cluster, with --scheduler",
    )
    one.add_argument("--scheduler", default=None, help="address of the Dask scheduler")
    one.add_argument(
        "--store",
        action="store_true",
        help="for developers: keep a run on real data in the package, for the book's pages",
    )
    one.add_argument("--quiet", action="store_true", help="print no estimate and no progress")
    one.set_defaults(run=run)


def run_list(_: argparse.Namespace) -> int:
    """List every figure: what it shows, what it costs, and how far it is reproduced."""
    came = {name: verdict.word for name, verdict in figures.verdicts().items()}
    table = Table(("id", "quick", "paper", "status", "shows"), (12, 7, 8, 14, 0))
    print(table.head())
    for figure in figures.all():
        quick, paper = (costs.told(figure.id, preset) for preset in ("quick", "paper"))
        status = came.get(figure.id, figure.status)
        print(table.row(figure.id, quick, paper, status, figure.words))
    return 0


def run(given: argparse.Namespace) -> int:
    """Compute, draw and write; bad input is refused before any work."""
    chosen = _chosen(given.names)
    changes = _settings(given.set)
    checks.count("seed", given.seed, least=0)
    install.require(_purpose(chosen), _modules(chosen, given.backend))
    for figure in chosen:
        figure.settings(given.preset, **changes)
        if given.store and not figure.stored:
            raise checks.fail("store", "figures whose run the book keeps", figure.id)
    if given.store and (changes or given.seed or given.preset != "quick"):
        raise checks.fail("store", "the quick preset as it is, with seed 0", "another run")
    workers = cores() if given.workers is None else given.workers
    where = {"workers": workers, "backend": given.backend, "scheduler": given.scheduler}
    figures.mapper(**where)  # refuses bad ones
    out = folder(given.out)
    if not given.quiet:
        told = costs.estimate([figure.id for figure in chosen], given.preset)
        own = " with the preset's own settings" if changes else ""
        print(told + own, file=sys.stderr, flush=True)
    for figure in chosen:
        start, pieces = time.perf_counter(), Path(out) / ".pieces" / figure.id
        fresh = not pieces.exists()
        with _Progress(figure.id, given.quiet) as progress:
            each = figures.mapper(**where, store=pieces, say=progress.say, seen=progress.seen)
            data = figure.run(given.preset, given.seed, each=each, **changes)
        seconds = time.perf_counter() - start
        paths = figures.write(data, out, seconds=seconds)
        print(f"{figure.id} ({figure.status}): {', '.join(map(str, paths))} in {seconds:.1f} s")
        if figure.reading:
            print(f"  {figure.reading}")
        if figure.stand_in:
            print(f"  reduced stand-in: {figure.stand_in}")
        if figure.verdict is not None:
            print(f"  {figure.verdict(data)}")
        if given.store:
            print(f"  kept in {figures.store(data, seconds=seconds if fresh else None)}")
    return 0


def _purpose(chosen: list[figures.Figure]) -> str:
    what = chosen[0].id if len(chosen) == 1 else f"{len(chosen)} figures"
    return f"Computing and drawing {what}"


def _modules(chosen: list[figures.Figure], backend: str) -> dict[str, tuple[str, ...]]:
    """All that these figures need beyond the library, by extra."""
    found: dict[str, tuple[str, ...]] = {"figures": ("matplotlib", "joblib", "threadpoolctl")}
    if backend == "dask":
        found["dask"] = ("distributed",)
    for figure in chosen:
        found |= figure.optional_modules
    return found


def _chosen(names: list[str]) -> list[figures.Figure]:
    found: dict[str, figures.Figure] = {}
    for name in names:
        if name == "all":
            some = figures.all()
        elif name == "real":
            some = [figure for figure in figures.all(own=True) if figure.needs]
        elif name in {figure.id.split(".")[0] for figure in figures.all()}:
            some = figures.all(paper=name)
        else:
            some = [figures.get(name)]
        found.update({figure.id: figure for figure in some})
    return list(found.values())


def _settings(texts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise checks.fail("set", "name=value, such as d=4,8", repr(text))
        parts = [_value(part) for part in value.split(",")]
        found[name] = parts[0] if len(parts) == 1 else tuple(parts)
    return found


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class _Progress:
    """A bar with rate and time left, on the error stream."""

    def __init__(self, name: str, quiet: bool) -> None:
        from tqdm import tqdm

        self.bar = tqdm(
            desc=name, unit=" pieces", delay=0.1, disable=quiet, file=sys.stderr, leave=False
        )

    def seen(self, done: int, of: int) -> None:
        self.bar.total = of
        if done == 0:
            self.bar.reset(of)
        self.bar.update(done - self.bar.n)

    def say(self, text: str) -> None:
        self.bar.write(text, file=sys.stderr)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()
