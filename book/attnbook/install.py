"""How attnlab is installed: every install line of the project is generated here.

README, how-to, error messages, and the first cell of notebooks all take their line from this
module, so that they change together when the first release is on a package index.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import attnlab
from attnlab import checks as check

RELEASED = False  # whether a package index carries attnlab: the one setting of all install lines
SOURCES = ("checkout", "wheel")
# modules that are not called what people call the package
PACKAGES = {
    "sklearn": "scikit-learn",
    "huggingface_hub": "huggingface-hub",
    "PIL": "Pillow",
    "torch": "PyTorch",
    "distributed": "Dask",
}


class MissingExtraError(ValueError):
    """Optional packages are missing; the message says which, what for, and how to get them."""


def requirement(extra: str = "", source: str = "checkout") -> str:
    r"""Say what pip is given to install attnlab with an extra.

    Args:
        extra: such as ``figures`` or ``book``; none is the library and the commands alone.
        source: until the first release, ``checkout`` for a line that is run in the folder of the
            project, or ``wheel`` for one that is run beside the downloaded wheel.

    Returns:
        A requirement, not quoted.

    Examples:
        >>> from attnbook import install
        >>> install.requirement("figures")
        '.[figures]'
    """
    check.choice("source", source, SOURCES)
    if RELEASED:
        place = "attnlab"
    elif source == "checkout":
        place = "."
    else:
        place = f"attnlab-{attnlab.__version__}-py3-none-any.whl"
    return f"{place}[{extra}]" if extra else place


def install_line(extra: str = "", source: str = "checkout") -> str:
    r"""Return the command that installs attnlab with an extra, as documents print it.

    Args:
        extra: such as ``figures`` or ``book``; none is the library and the commands alone.
        source: ``checkout`` or ``wheel``, as for `requirement`.

    Returns:
        One line for a shell.

    Examples:
        >>> from attnbook import install
        >>> install.install_line("figures")
        'pip install ".[figures]"'
    """
    return f'pip install "{requirement(extra, source)}"'


def require(purpose: str, modules: Mapping[str, Sequence[str]]) -> None:
    """Raise unless optional modules are installed; nothing is imported.

    Args:
        purpose: what they are needed for, as the subject of a sentence: ``Drawing svm.5``.
        modules: for each extra, those of its modules that are needed.

    Examples:
        >>> from attnbook import install
        >>> install.require("Drawing", {"figures": ["matplotlib"]})
        >>> install.require("Drawing", {"figures": ["matplotlib", "plotter"]})
        Traceback (most recent call last):
        ...
        attnbook.install.MissingExtraError: Drawing needs plotter, which is not installed: ...
    """
    missing = {
        PACKAGES.get(name, name): extra
        for extra, names in modules.items()
        for name in names
        if not is_installed(name)
    }
    if not missing:
        return
    *others, last = missing
    packages = f"{', '.join(others)} and {last}" if others else last
    line = local_install_line(",".join(dict.fromkeys(missing.values())))
    verb = "are" if others else "is"
    raise MissingExtraError(f"{purpose} needs {packages}, which {verb} not installed: {line}")


def is_installed(module: str) -> bool:
    """Whether a top-level module could be imported."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None


def local_install_line(extra: str) -> str:
    """The command that installs an extra for this Python, from where attnlab was installed."""
    found = shutil.which("pip")
    own = found is not None and Path(found).parent == Path(sys.executable).parent
    pip = "pip" if own else f"{shlex.quote(sys.executable)} -m pip"
    return f"{pip} install {local_requirement(extra)}"


def local_requirement(extra: str) -> str:
    """What pip is given here: the very checkout or wheel, if it is still where it was."""
    about = installed_from()
    url = str(about.get("url", ""))
    if RELEASED or not url:
        return f'"{requirement(extra, "wheel")}"'
    if not url.startswith("file:"):
        return f'"attnlab[{extra}] @ {url}"'
    place = Path(url2pathname(urlsplit(url).path))
    if place.is_dir():
        editable = "--editable " if about.get("dir_info", {}).get("editable") else ""
        return f'{editable}"{"." if place == Path.cwd() else place}[{extra}]"'
    return f'"{place if place.is_file() else place.name}[{extra}]"'


def installed_from() -> dict[str, Any]:
    """What pip wrote down about where attnlab came from; empty if it came from an index."""
    try:
        found = metadata.distribution("attnlab").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    about: dict[str, Any] = json.loads(found) if found else {}
    return about
