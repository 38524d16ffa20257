"""Whether a problem set keeps its word: solutions earn all, blanks nothing, mistakes what they say.

Run by ``make course`` for five seeds and every problem, by ``make test`` for fewer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from attnbook.course import _notebook as notebooks
from attnbook.course._grade import Run, mark_problem
from attnbook.course._rubric import rubric
from attnbook.course._sandbox import Limits, Sandbox
from attnbook.course._source import Problem, ProblemSet, fill, variant

SHORT = 12  # characters below which a line says nothing


def reference(source: ProblemSet, seed: int) -> Iterator[str]:
    """Problems whose own solution does not get full marks, or whose blank gets any."""
    solved = {one.id: fill(one.solution, variant(one, source.name, seed)) for one in coded(source)}
    for name, full in (("its solution", True), ("its blank version", False)):
        answers = {key: text if full else notebooks.without(text) for key, text in solved.items()}
        cells = [("setup", source.setup), *answers.items()]
        run = Run(Sandbox(source.rooms, Limits()), cells)
        try:
            for one in coded(source):
                mark = mark_problem(run, source, one, seed)
                if mark.points != (one.points if full else 0.0):
                    told = [f"{part.name}: {part.told}" for part in mark.parts if part.told]
                    yield (
                        f"{source.name} {one.id}, seed {seed}: {name} earns {mark.points:g} of "
                        f"{one.points:g} {told}"
                    )
        finally:
            run.session.close()


def mistakes(source: ProblemSet, seed: int, only: str = "") -> Iterator[str]:
    """Wrong submissions that earn other points than they should."""
    for one in coded(source):
        if only not in ("", one.id):
            continue
        if len(one.wrong) < 3:
            yield f"{source.name} {one.id}: {len(one.wrong)} wrong submissions, not three"
        for wrong in one.wrong:
            text = fill(wrong.source, variant(one, source.name, seed))
            run = Run(Sandbox(source.rooms, Limits()), [("setup", source.setup), (one.id, text)])
            try:
                mark = mark_problem(run, source, one, seed)
            finally:
                run.session.close()
            if abs(mark.points - wrong.earns) > 1e-9:
                told = [f"{part.name}: {part.told}" for part in mark.parts]
                yield (
                    f"{source.name} {one.id}, seed {seed}: '{wrong.about}' earns {mark.points:g}, "
                    f"not {wrong.earns:g} {told}"
                )


def leaks(source: ProblemSet, seed: int) -> Iterator[str]:
    """Lines of a solution, a hidden test, a wrong answer or a scheme in what students get."""
    shown = notebooks.write(notebooks.build(source, seed))
    text = "\n".join(cell["source"] for cell in json.loads(shown)["cells"])
    lines = {line.strip() for line in text.split("\n")}
    setup = {line.strip() for line in source.setup.split("\n")}
    for one in source.problems:
        values = variant(one, source.name, seed)
        open_text = fill(one.visible, values) + "\n" + fill(one.text, values)
        given = {line.strip() for line in open_text.split("\n")} | setup
        if one.answer:
            blank = notebooks.without(fill(one.solution, values))
            given |= {line.strip() for line in blank.split("\n")}
        secret = [solved(fill(one.solution, values)), one.judge, one.scheme, one.variant]
        secret += [wrong.source for wrong in one.wrong]
        for line in "\n".join(secret).split("\n"):
            line = line.strip()
            if len(line) >= SHORT and line in lines and line not in given:
                yield f"{source.name} {one.id}: students see the line {line!r}"
        hidden = solved(fill(one.solution, values)).split("\n") + one.judge.split("\n")
        secret_lines = {line.strip() for line in hidden if len(line.strip()) >= SHORT}
        for line in map(str.strip, fill(one.visible, values).split("\n")):
            if line in secret_lines and not line.startswith(("import ", "from ")):
                yield f"{source.name} {one.id}: the visible test shows {line!r}"


def solved(source: str) -> str:
    """The lines between the marks."""
    found = re.findall(
        rf"^[ ]*{re.escape(notebooks.BEGIN)}\n(.*?)^[ ]*{re.escape(notebooks.END)}",
        source + "\n",
        re.M | re.S,
    )
    return "\n".join(found)


def shown_tests(source: ProblemSet, seed: int) -> Iterator[str]:
    """Visible tests that the reference solution does not pass, or that a blank one does."""
    for one in coded(source):
        values = variant(one, source.name, seed)
        for text, passes in ((one.solution, True), (notebooks.without(one.solution), False)):
            cells = [("setup", source.setup), (one.id, fill(text, values))]
            run = Run(Sandbox(source.rooms, Limits()), cells)
            try:
                reply: Any = run.session.cell(notebooks.shown_test(one, values), "visible")
            finally:
                run.session.close()
            if bool(reply.error) is passes:
                what = f"fails on the solution: {reply.error}" if passes else "passes on a blank"
                yield f"{source.name} {one.id}, seed {seed}: its visible test {what}"


def scheme(one: Problem) -> str:
    """What is wrong with the marking scheme of a problem that a person marks."""
    try:
        found = rubric(one.scheme, one.points, "its scheme")
    except ValueError as error:
        return str(error)
    return "" if len(found.items) > 1 else "write its marks as lines like '- (1) words'"


def schemes(source: ProblemSet) -> Iterator[str]:
    """Marking schemes whose items do not add up, or that have none."""
    for one in source.problems:
        if not one.answer and (told := scheme(one)):
            yield f"{source.name} {one.id}: {told}"


def coded(source: ProblemSet) -> list[Problem]:
    """The problems that a machine marks."""
    return [one for one in source.problems if one.answer]


def variants_differ(source: ProblemSet, seeds: list[int]) -> Iterator[str]:
    """Problems whose numbers no seed changes, though they have a variant."""
    for one in coded(source):
        found = {repr(variant(one, source.name, seed)) for seed in seeds}
        if one.variant and len(seeds) > 2 and len(found) == 1:
            yield f"{source.name} {one.id}: all seeds give the same variant"


def verify(source: ProblemSet, seeds: list[int], *, wrong: bool = True) -> list[str]:
    """Everything that is not as it should be; empty where the set keeps its word."""
    found = [*variants_differ(source, seeds), *schemes(source)]
    for seed in seeds:
        found += [*leaks(source, seed), *reference(source, seed), *shown_tests(source, seed)]
        if wrong:
            found += mistakes(source, seed)
    return found


def main(arguments: list[str]) -> int:
    """``python -m attnbook.course._verify 4 --seeds 2 [--only id]``: for authors."""
    import argparse
    import time

    from attnbook.course._source import problem_set

    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args(arguments)
    found: list[str] = []
    for name in given.sets:
        source, began = problem_set(name), time.perf_counter()
        if given.only:
            for seed in range(given.seeds):
                found += mistakes(source, seed, given.only)
        else:
            found += verify(source, list(range(given.seeds)))
        print(f"{source!r} in {time.perf_counter() - began:.1f} s")
    for line in found:
        print("-", line)
    return 1 if found else 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
