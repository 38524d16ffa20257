"""``attnlab check``: the ledger of statements, tested."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from attnbook import claims
from attnbook.cli._table import Table


def add(commands: Any) -> None:
    """Tell the parser about the command."""
    check = commands.add_parser(
        "check",
        help="test the papers' statements",
        description="Test statements of the papers; exit 1 if evidence disagrees with a status.",
    )
    check.add_argument(
        "names", nargs="*", metavar="name", help="svm, svm.lemma, bias.lemma-4, ...; all if none"
    )
    check.add_argument("--instances", type=int, help="how many instances each check draws")
    check.add_argument("--seed", type=int, default=0, help="of every check (default 0)")
    check.add_argument("--workers", type=int, default=None, help="processes (default: all cores)")
    check.add_argument("--list", action="store_true", help="only list; run nothing")
    check.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the table; 1 where evidence disagrees with a status."""
    chosen = claims.select(*given.names)
    table = Table(("id", "statement", "status", "evidence"), (22, 36, 12, 0))
    if given.list:
        print(table.head())
        for claim in chosen:
            print(table.row(claim.id, claim.words, claim.status, ""))
        return 0
    workers = given.workers if given.workers is not None else min(len(chosen), os.cpu_count() or 1)
    start, disagree, seconds = time.perf_counter(), [], 0.0
    outcomes = claims.run(chosen, given.seed, instances=given.instances, workers=workers)
    print(table.head())
    for claim, outcome in zip(chosen, outcomes, strict=True):
        print(table.row(claim.id, claim.words, claim.status, outcome.evidence), flush=True)
        seconds += outcome.seconds
        if not outcome.agrees:
            disagree.append(claim.id)
    print()
    for line in totals(chosen):
        print(line)
    wall = time.perf_counter() - start
    print(f"\n{len(chosen)} claims, seed {given.seed}: {wall:.0f} s ({seconds:.0f} s of work)")
    if disagree:
        print(f"evidence disagrees with the recorded status: {', '.join(disagree)}")
        return 1
    print("all evidence agrees with the recorded status")
    return 0


def totals(chosen: Sequence[claims.Claim]) -> Iterator[str]:
    """How many statements and errata of each paper have which status."""
    short = ["defined", "holds", "corrected", "fails", "unreached", "glyph", "misprint", "total"]
    yield f"{'':29}" + "".join(f"{name:>10}" for name in short)
    for group, found in claims.counts(chosen).items():
        numbers = (*found.values(), sum(found.values()))
        group = group.replace("errata of the preprint", "preprint's errata")
        yield f"{group:29}" + "".join(f"{number:>10}" for number in numbers)
