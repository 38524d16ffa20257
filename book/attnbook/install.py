"""How attnlab is installed: every install line of the project is generated here.

README, how-to, error messages, and the first cell of notebooks all take their line from this
module, so that they change together when the first release is on a package index.
"""

from __future__ import annotations

import attnlab
from attnlab import checks as check

RELEASED = False  # whether a package index carries attnlab: the one setting of all install lines
SOURCES = ("checkout", "wheel")


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
