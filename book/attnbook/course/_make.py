"""``make course``: student versions, solutions, a guide and an archive for instructors.

    python -m attnbook.course._make [--seeds 5] [--seed 2027] [--out _build/course]

Everything is verified first: every problem, five seeds, every mistake. Nothing is written where
something is not as it should be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from attnbook.course import _notebook as notebooks
from attnbook.course._desk import FONTS, SCRIPT, mathjax
from attnbook.course._sandbox import NoSandboxError, describe
from attnbook.course._source import SETS, ProblemSet, folder, problem_set
from attnbook.course._verify import verify
from attnbook.files import end_with_parent

ABOUT = """# attnlab for instructors

This archive holds the sources of the problem sets *with their solutions*: keep it to yourself.

    python -m venv .venv && . .venv/bin/activate
    pip install "attnlab-VERSION-py3-none-any.whl[instructor]"
    attnlab course new fall27 --seed 2027 --sets 1,3 --out fall27

Run the commands in this folder: the problem sets are found in coursework/. Marking needs
bubblewrap (apt-get install bubblewrap). guide.md lists the problems; the chapter for instructors
on the book's site says the rest. mathjax/, if it is here, is MathJax (mathjax.org, Apache License
2.0), for the formulas on the page of `attnlab course mark`.
"""


def check_one(name: str, sources: str, seed: int) -> list[str]:
    """One set for one seed, in a process of its own."""
    return verify(problem_set(name, sources), [seed])


def guide(sets: list[ProblemSet]) -> str:
    """Problems with goals, points, levels, times, parts and schemes."""
    lines = [
        "# Guide for instructors",
        "",
        "For your eyes: it tells what hidden tests look at.",
        "",
    ]
    for found in sets:
        lines += [f"## {found.title}", ""]
        lines += [f"{found.points:g} points, about {found.minutes / 60:.1f} hours.", ""]
        lines.append(f"Rooms of attnlab that answers may use: {', '.join(found.rooms)}.")
        for one in found.problems:
            lines += ["", f"### {one.title} (`{one.id}`)", ""]
            lines.append(f"{one.points:g} points, {one.difficulty}, about {one.minutes} minutes.")
            lines += ["", f"Students learn {one.goal}", ""]
            if one.answer:
                told = ", ".join(f"{name} ({most:g})" for name, most in one.parts.items())
                lines.append(f"Asked for: `{one.answer}`. Hidden tests: {told}.")
                lines += ["", "Common mistakes, and what they keep:", ""]
                lines += [f"- {w.about}: {w.earns:g} of {one.points:g}" for w in one.wrong]
            else:
                lines.append(one.scheme)
        lines.append("")
    return "\n".join(lines)


def archive(target: Path, sources: Path, draft: Path, wheel: Path | None, version: str) -> None:
    """Sources, guide and wheel as one file; the same contents give the same bytes but for times."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "attnlab-instructor"
        shutil.copytree(sources, root / "coursework")
        for name in ("guide.md", "solutions", "student"):
            source = draft / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, root / name)
        if wheel:
            shutil.copy(wheel, root)
        if found := mathjax(sources):  # for the marking page
            (root / "mathjax").mkdir()
            shutil.copy(found / SCRIPT, root / "mathjax")
            shutil.copytree(found / FONTS, root / "mathjax" / FONTS)
        (root / "README.md").write_text(ABOUT.replace("VERSION", version), "utf-8")
        with tarfile.open(target, "w:gz") as out:
            out.add(root, root.name)


def main(arguments: list[str] | None = None) -> int:
    """Verify, then write."""
    import attnlab

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many are tried")
    parser.add_argument("--seed", type=int, default=2027, help="of the versions that are written")
    parser.add_argument("--out", default="_build/course")
    parser.add_argument("--wheel", default="", help="to put into the archive")
    given = parser.parse_args(arguments)
    sources = folder()
    began = time.perf_counter()
    try:
        print(f"course: sandbox: {describe()}", flush=True)
    except NoSandboxError as error:
        print(f"course: {error}", file=sys.stderr)
        return 3
    wrong: list[str] = []
    work = [(name, str(sources), seed) for seed in range(given.seeds) for name in SETS]
    with ProcessPoolExecutor(initializer=end_with_parent, initargs=(os.getpid(),)) as pool:
        results = pool.map(check_one, *zip(*work, strict=True))
        for count, (told, (name, _, seed)) in enumerate(zip(results, work, strict=True), 1):
            wrong += told
            words = f"[{count}/{len(work)}] set {name}, seed {seed}: {len(told) or 'nothing'} wrong"
            print(f"course: {words}", flush=True)
    for line in wrong:
        print(f"course: {line}", file=sys.stderr)
    if wrong:
        return 1
    out = Path(given.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as place:
        draft = Path(place) / "course"
        sets = [problem_set(name, sources) for name in SETS]
        for kind, solutions in (("student", False), ("solutions", True)):
            (draft / kind).mkdir(parents=True)
            for found in sets:
                built = notebooks.build(found, given.seed, solutions=solutions)
                (draft / kind / f"{found.name}.ipynb").write_text(notebooks.write(built), "utf-8")
        (draft / "guide.md").write_text(guide(sets), "utf-8")
        wheel = Path(given.wheel) if given.wheel else None
        archive(draft / "attnlab-instructor.tar.gz", sources, draft, wheel, attnlab.__version__)
        shutil.rmtree(out, ignore_errors=True)
        draft.rename(out)
    for found in sets:
        hand = sum(not one.answer for one in found.problems)
        print(f"course: {found.name}: {len(found.problems)} problems ({hand} by hand), "
              f"{found.points:g} points, {found.minutes / 60:.1f} hours")  # fmt: skip
    print(f"course: {out} in {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
