"""Grading 200 honest submissions, and 200 of which one in ten is hostile: the ratio of their times.

    PYTHONPATH=.:book python -m benchmarks.course              40 and 40, some minutes
    PYTHONPATH=.:book python -m benchmarks.course --count 200  what the claim is about

The hostile ones are those of ``tests/test_course_attacks.py``, in turn, against a grader's own
limits: they hang, take all memory, print without end, cannot be parsed, and so on. Both runs are
side by side on one machine; the ratio is to be at most 2, and the honest ones' marks are the same
in both, which is checked.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from attnbook import course
from attnbook.course import _notebook as notebooks

HERE = Path(__file__).resolve().parents[1]
SHEETS = HERE / "tests" / "coursework"
SEED = 11
MOST = 2.0  # hostile over honest


def attacks() -> Any:
    """The tests' submissions that try to get marks, or to hurt."""
    spec = importlib.util.spec_from_file_location("att", HERE / "tests/test_course_attacks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ATTACKS


def made(place: Path, count: int, hostile: dict[str, Any]) -> course.Course:
    """A course with that many submissions; every tenth is one of the hostile ones, where given."""
    found = course.Course(place, "bench", SEED, ("4",), SHEETS)
    found.create()
    problems = course.problem_set("4", SHEETS)
    names = list(hostile)
    (place.parent / "other").write_text("{}")
    for k in range(count):
        built = notebooks.submission(problems, SEED)
        path = place / "submitted" / f"s{k:03d}" / "set4-svm" / "set4-svm.ipynb"
        path.parent.mkdir(parents=True)
        if names and k % 10 == 3:
            changed = hostile[names[(k // 10) * 7 % len(names)]][0](built, path)
            if changed is not None:
                written = changed if isinstance(changed, str) else notebooks.write(changed)
                path.write_text(written, "utf-8")
        else:
            path.write_text(notebooks.write(built), "utf-8")
    return found


def main() -> int:
    """Both runs, and their ratio; 1 where it is too large."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=40)
    count = parser.parse_args().count
    before = os.getloadavg()
    took, marks = {}, {}
    for name, hostile in (("honest", {}), ("one in ten hostile", attacks())):
        with tempfile.TemporaryDirectory() as place:
            one = made(Path(place) / "c", count, hostile)
            began = time.perf_counter()
            said: list[str] = []
            one.grade(say=said.append)
            took[name] = time.perf_counter() - began
            paths = sorted((one.place / "verdicts").glob("*/*.json"))
            told = {path.parent.name: json.loads(path.read_text("utf-8")) for path in paths}
            marks[name] = {who: (t["marks"], t["notices"]) for who, t in told.items()}
            unmarked = [words for words in said if "could not be marked" in words]
            print(f"{name}: {count} in {took[name]:.0f} s, {len(unmarked)} unmarked", unmarked)
    honest = {who: told for who, told in marks["honest"].items() if int(who[1:]) % 10 != 3}
    assert honest == {who: marks["one in ten hostile"][who] for who in honest}
    ratio = took["one in ten hostile"] / took["honest"]
    load = " then ".join(f"{told[0]:.1f}" for told in (before, os.getloadavg()))
    print(f"ratio {ratio:.2f}, at most {MOST:g}; honest marks are the same; load {load}")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
