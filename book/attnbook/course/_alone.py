"""Another user and a filter of system calls, in a container that lives for one submission.

Weaker than a sandbox: what the container lets everybody read can be read. Nothing chooses it but
an autograder that was made for such a container, which says so in the environment.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attnbook.course import gate

SAID = "ATTNLAB_ALONE"  # "1" in a container that is ours alone
NOBODY = "65534"
HOLDER = "/tmp"


def meant() -> bool:
    """Whether the one who started us says that this container is for one submission."""
    return os.environ.get(SAID) == "1"


def command(
    folder: Path, environment: Mapping[str, str], packages: Mapping[str, Path],
    run: list[str] | None, bare: bool,
) -> list[str]:  # fmt: skip
    """What to start: Python as nobody, without rights, with the runner as its program."""
    tool = shutil.which("setpriv")
    if not meant() or tool is None or os.geteuid() != 0 or not gate.known():
        raise LookupError("setpriv")
    told = [tool, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    told += ["--bounding-set=-all", "--inh-caps=-all", "--pdeathsig=KILL", "env", "-i", "-C", "/"]
    place = folder / "tmp"
    told += [f"{name}={value}" for name, value in environment.items()]
    if not bare:
        told += [f"HOME={place}", f"TMPDIR={place}"]
    python = [str(Path(sys.executable).resolve()), "-I", "-S", "-B"]
    if bare:
        root = str(packages["numpy"].parent)
        refusal = f"user {NOBODY} cannot read {root}"
        code = f"import os, sys; os.access({root!r}, os.R_OK) or sys.exit({refusal!r})"
        code += f"; sys.path.insert(0, {root!r}); {(run or [''])[-1]}"
        return [*told, *python, "-c", code]
    return [*told, *python, *(run or [str(folder / "sandbox/runner.py"), str(folder), "guarded"])]


def place() -> Path:
    """A folder that nobody can read, and write in one place of it."""
    return Path(tempfile.mkdtemp(prefix="attnlab-sandbox-", dir=HOLDER))


def open_up(folder: Path, packages: Mapping[str, Path]) -> None:
    """Show nobody the runner, the library and the packages; and a place to write."""
    (folder / "packages").mkdir()
    for name, path in packages.items():
        (folder / "packages" / name).symlink_to(path)
    (folder / "tmp").mkdir()
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "tmp").chmod(0o777)
