"""The site from pages and their results: what `jupyter-book build` does; N processes write.

    python book/_tools/sphinx_site.py OUT DOCTREES [--fresh] [--jobs N] [PAGE.md ...]

Strict: a warning is an error, and every one is told before it ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from addresses import addresses

ROOT = Path(__file__).resolve().parents[2]


def make(
    out: Path,
    doctrees: Path,
    *,
    fresh: bool = True,
    strict: bool = True,
    jobs: int = 1,
    files: Sequence[str] = (),
) -> int:
    """Build, or bring up to date (these files, or all that changed); 0 where all is well."""
    from jupyter_book.sphinx import Sphinx, build_sphinx

    # pages are written side by side; they are read in a row, for sphinx_proof cannot merge
    Sphinx.is_parallel_allowed = lambda _, kind: kind == "write"
    done = build_sphinx(
        ROOT,
        out,
        path_config=ROOT / "_config.yml",
        noconfig=True,
        confoverrides={
            "external_toc_path": (ROOT / "_toc.yml").as_posix(),
            "html_baseurl": addresses()["site"],
            "latex_individualpages": False,
            "nitpicky": True,
        },
        doctreedir=doctrees,
        freshenv=fresh,
        warningiserror=strict,
        keep_going=strict,
        jobs=jobs,
        filenames=list(files),
        quiet=True,
    )
    return 1 if isinstance(done, BaseException) else int(done)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line; files may stand behind options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("doctrees", type=Path)
    parser.add_argument("files", nargs="*", help="make these pages anew; all that changed if none")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_intermixed_args(given)


def main() -> int:
    """From the command line."""
    given = arguments()
    os.chdir(ROOT)
    how = {"fresh": given.fresh, "jobs": given.jobs, "files": given.files}
    return make(given.out.resolve(), given.doctrees.resolve(), **how)


if __name__ == "__main__":
    sys.exit(main())
