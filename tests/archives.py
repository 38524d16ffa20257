"""Wheels and source archives, for tests of what is in them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any


def build(source: Path, target: Path, kind: str) -> Path:
    """The wheel or the sdist of a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return archive


def unpack(archive: Path, target: Path) -> Path:
    """The folder that a source archive holds."""
    # Python 3.11.2 does not know filters, and Python 3.12 warns where none is given
    how: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as opened:
        (folder,) = {name.partition("/")[0] for name in opened.getnames()}
        opened.extractall(target, **how)
    return target / folder
