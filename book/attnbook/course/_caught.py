"""How many planted mistakes the visible tests catch: for authors.

Run as ``python -m attnbook.course._caught 1 4 [--seed 0] [--only id] [--words]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from attnbook.course._notebook import shown_test
from attnbook.course._sandbox import Limits, Sandbox
from attnbook.course._source import Problem, ProblemSet, Wrong, fill, problem_set, variant


def caught(
    source: ProblemSet, seed: int, only: str = ""
) -> Iterator[tuple[Problem, list[tuple[Wrong, str]]]]:
    """Each problem's mistakes, with what its visible test says to them; empty where it passes."""
    with Sandbox(source.rooms, Limits(total=1800.0)).open() as session:
        for one in source.problems:
            if not one.answer or only not in ("", one.id):
                continue
            values, told = variant(one, source.name, seed), []
            for wrong in one.wrong:
                if not session.alive:
                    session.start()
                session.reset()
                session.cell(source.setup)
                session.cell(fill(wrong.source, values), "cell")
                told.append((wrong, session.cell(shown_test(one, values), "check").error))
            yield one, told


def main(arguments: list[str] | None = None) -> int:
    """A line a problem, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--words", action="store_true", help="what is said to each mistake")
    given = parser.parse_args(arguments)
    hits = planted = 0
    for name in given.sets:
        for one, told in caught(problem_set(name), given.seed, given.only):
            seen = sum(bool(words) for _, words in told)
            hits, planted = hits + seen, planted + len(told)
            print(f"{name} {one.id}: {seen} of {len(told)}", flush=True)
            for wrong, words in told:
                if given.words or not words:
                    print(f"    {wrong.about} [{wrong.earns:g}]: {words or 'passes'}")
    print(f"{hits} of {planted}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
