"""An autograder for Gradescope: a set, its judge and this package in a zip."""

from __future__ import annotations

import json
import zipfile
from importlib.metadata import version
from pathlib import Path

import attnlab
from attnbook.course._course import Course
from attnbook.course._which import set_named
from attnlab import checks as check

BOOK = Path(__file__).parents[1]
PARTS = {
    "attnlab": Path(attnlab.__file__).parent,
    "attnbook/course": BOOK / "course",
    "attnbook/theory": BOOK / "theory",
}
NEEDS = ("numpy", "scipy", "jupytext")
SETUP = """#!/usr/bin/env bash
# Once, when the image is made: a Python from 3.11 on, what marking needs, and bubblewrap.
set -e
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv bubblewrap util-linux
python=python3
if ! $python -c "import sys; sys.exit(sys.version_info < (3, 11))"; then
    apt-get install -y --no-install-recommends python3.11 python3.11-venv
    python=python3.11
fi
$python -m venv /opt/attnlab
/opt/attnlab/bin/pip install NEEDS
"""
RUN = """#!/usr/bin/env bash
# For each submission, as root: nobody else may read the judge or write the results.
set -e
root="${AUTOGRADER_ROOT:-/autograder}"
chmod 700 "$root/source" "$root/results"
export ATTNLAB_ALONE=1 PYTHONPATH="$root/source/lib" OPENBLAS_NUM_THREADS=1
cd "$root/source"
exec "${AUTOGRADER_PYTHON:-/opt/attnlab/bin/python}" -B -m attnbook.course._autograder "$root"
"""


def autograder(course: Course, name: str, out: str | Path) -> Path:
    r"""Write the zip that Gradescope asks for: it marks one submission, in a container there.

    Args:
        course: a course.
        name: of one of its sets.
        out: a file that ends in ``.zip``; it holds solutions.

    Returns:
        The file.

    Examples:
        >>> from pathlib import Path
        >>> from attnbook import course
        >>> course.autograder(course.Course(Path("c"), "c", 1, ("4",)), "1", "set1.zip")
        Traceback (most recent call last):
            ...
        ValueError: set: expected one of 4, got 1
    """
    name, out = set_named(course, name), Path(out)
    if out.suffix.lower() != ".zip":
        raise check.fail("out", "a file that ends in .zip", str(out))
    if course.each:
        expected = (
            "a course whose students have the same numbers (Gradescope does not know our ids)"
        )
        raise check.fail("course", expected, "one made with --each")
    course.source(name)  # an error before anything is written
    about = {"name": name, "seed": course.seed, "problems": list(course.ids(name))}
    needs = " ".join(f"{one}=={version(one)}" for one in NEEDS)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        add(archive, "setup.sh", SETUP.replace("NEEDS", needs), 0o755)
        add(archive, "run_autograder", RUN, 0o755)
        add(archive, "about.json", json.dumps(about, indent=1) + "\n")
        add(archive, f"{name}.md", course.sheet(name).read_text("utf-8"))
        for module in ("__init__.py", "files.py", "install.py"):
            add(archive, f"lib/attnbook/{module}", (BOOK / module).read_text("utf-8"))
        for package, folder in PARTS.items():
            for path in sorted(folder.rglob("*")):
                if path.suffix in (".py", ".txt") and "__pycache__" not in path.parts:
                    inside = f"lib/{package}/{path.relative_to(folder).as_posix()}"
                    add(archive, inside, path.read_text("utf-8"))
    return out


def add(archive: zipfile.ZipFile, name: str, text: str, mode: int = 0o644) -> None:
    """A file; the same contents give the same bytes."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    archive.writestr(entry, text)
