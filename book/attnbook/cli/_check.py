"""``attnlab check``: the ledger of statements, tested."""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import attnlab
from attnbook import claims
from attnbook.cli._progress import FIRST, Progress
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
    shown = check.add_mutually_exclusive_group()
    shown.add_argument("--list", action="store_true", help="only list; run nothing")
    shown.add_argument("--json", action="store_true", help="every row, with its role and its room")
    shown.add_argument("--slack", action="store_true", help="the loosest bounds, loosest first")
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
    start, found = time.perf_counter(), []
    outcomes = claims.run(chosen, given.seed, instances=given.instances, workers=workers)
    with Progress(chosen, workers) as progress:
        if progress.shown and len(chosen) <= FIRST and (given.instances or 0) >= 100:
            trial = claims.run(chosen, given.seed, instances=given.instances // 10, workers=workers)
            progress.expect(10.0 * sum(outcome.seconds for outcome in trial) / workers)
        if not (given.json or given.slack):
            progress.say(table.head())
        for claim, outcome in zip(chosen, outcomes, strict=True):
            found.append((claim, outcome))
            progress.seen(outcome)
            if not (given.json or given.slack):
                row = table.row(claim.id, claim.words, claim.status, outcome.evidence)
                progress.say(row)
    disagree = [claim.id for claim, outcome in found if not outcome.agrees]
    if given.json or given.slack:
        if given.json:
            print(json.dumps(told(found, given.seed), indent=1, allow_nan=False))
        else:
            print_slack(found)
        return int(bool(disagree))
    print()
    for line in totals(chosen):
        print(line)
    wall, seconds = time.perf_counter() - start, sum(outcome.seconds for _, outcome in found)
    print(f"\n{len(chosen)} claims, seed {given.seed}: {wall:.0f} s ({seconds:.0f} s of work)")
    if disagree:
        print(f"evidence disagrees with the recorded status: {', '.join(disagree)}")
        return 1
    print("all evidence agrees with the recorded status")
    return 0


def told(found: Sequence[tuple[claims.Claim, claims.Outcome]], seed: int) -> dict[str, Any]:
    """All that was measured, for programs; what is infinite is written as a word."""
    entries = []
    for claim, outcome in found:
        rows = [row.told() for row in outcome.rows]
        entry = {"id": claim.id, "status": claim.status, "agrees": outcome.agrees}
        said = {"evidence": outcome.evidence, "seconds": round(outcome.seconds, 3), "rows": rows}
        entries.append(entry | said)
    return {"version": attnlab.__version__, "seed": seed, "claims": entries}


def print_slack(found: Sequence[tuple[claims.Claim, claims.Outcome]]) -> None:
    """Asserted rows by room, and how many there are of which size."""
    rows = [
        (row.room, claim.id, row)
        for claim, outcome in found
        for row in outcome.rows
        if row.role in ("statement", "correction") and row.holds and row.room is not None
    ]
    rows.sort(key=lambda entry: -entry[0])
    wide = sum(row.slack for _, _, row in rows)
    table = Table(("room", "id", "row"), (9, 22, 0))
    print(table.head())
    for room, name, row in rows[: max(20, wide)]:
        print(table.row("vacuous" if math.isinf(room) else f"{room:.3g}", name, str(row)))
    print(f"\n{len(rows)} asserted rows with a bound; room above")
    for size in (10, 100, 1000, 1_000_000):
        print(f"{size:>10,}  {sum(room > size for room, _, _ in rows)}")
    for claim, outcome in found:
        if not outcome.agrees:
            print(f"{claim.id}: {outcome.evidence}")


def totals(chosen: Sequence[claims.Claim]) -> Iterator[str]:
    """How many statements and errata of each paper have which status."""
    short = ["defined", "holds", "mended", "fails", "too far"]
    short += ["unclear", "glyph", "misprint", "total"]
    yield f"{'':29}" + "".join(f"{name:>9}" for name in short)
    for group, found in claims.counts(chosen).items():
        numbers = (*found.values(), sum(found.values()))
        group = group.replace("errata of the preprint", "preprint's errata")
        yield f"{group:29}" + "".join(f"{number:>9}" for number in numbers)
