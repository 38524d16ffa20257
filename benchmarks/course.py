"""How long a class takes to mark: two hundred submissions of a problem set.

    python -m benchmarks.course [--set 4] [--students 200]

Reference solutions, blanks and wrong answers in turn, with some that loop or leave; the course
stands in a temporary folder, and its marks are checked against what each submission should earn.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from attnbook import course
from attnbook.course import _notebook as notebooks
from attnbook.course._source import SETS


def main() -> int:
    """Write the submissions, mark them, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="4")
    parser.add_argument("--students", type=int, default=200)
    given = parser.parse_args()
    name, seed = SETS[given.set], 2027
    source = course.problem_set(given.set)
    coded = [one for one in source.problems if one.answer]
    full = sum(one.points for one in coded)
    with tempfile.TemporaryDirectory() as place:
        class_ = course.Course(Path(place) / "c", "c", seed, (given.set,))
        class_.create()
        wanted = {}
        for k in range(given.students):
            one = coded[k % len(coded)]
            wrong = one.wrong[k % len(one.wrong)]
            answers = {one.id: wrong.source}
            wanted[f"s{k:03d}"] = full - one.points + wrong.earns
            if k % 4 == 0:
                answers, wanted[f"s{k:03d}"] = {}, full
            elif k % 10 == 9:
                answers = {one.id: "while True: pass" if k % 20 == 9 else "import os; os._exit(0)"}
                wanted[f"s{k:03d}"] = full - one.points
            target = class_.place / "submitted" / f"s{k:03d}" / name
            target.mkdir(parents=True)
            text = notebooks.write(notebooks.submission(source, seed, answers))
            (target / f"{name}.ipynb").write_text(text, "utf-8")
        began = time.perf_counter()
        class_.grade(say=lambda words: print(words, flush=True) if "0/" in words else None)
        seconds = time.perf_counter() - began
        found = {student: verdict.points for (student, _), verdict in class_.verdicts().items()}
    wrong_marks = [
        f"{s}: {found.get(s)} of {wanted[s]}" for s in wanted if found.get(s) != wanted[s]
    ]
    print(
        f"{given.students} submissions of {name}: {seconds:.0f} s, {len(wrong_marks)} wrong marks"
    )
    print(*wrong_marks, sep="\n")
    return 1 if wrong_marks else 0


if __name__ == "__main__":
    sys.exit(main())
