"""Write what follows from the project's settings into the documents that state it.

python book/_tools/addresses.py            names the documents that are out of date
python book/_tools/addresses.py --write    brings them up to date

The settings are ``site`` and ``repository`` in pyproject.toml, ``RELEASED`` in
attnbook/install.py, the version in attnlab/__init__.py, and its date in CHANGELOG.md. Each
generated part stands between the comments ``generated: NAME`` and ``end of NAME``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import attnlab
from attnbook.install import RELEASED, install_line

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "CITATION.cff", "book/how-to.md")
PART = re.compile(
    r"(?P<start>^(?:<!--|#) generated: (?P<name>[\w-]+)[^\n]*\n).*?(?P<end>^(?:<!--|#) end of )",
    re.M | re.S,
)


def addresses() -> dict[str, str]:
    """``site`` and ``repository``, each empty where it is not set."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = settings["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    return {name: str(found.get(name, "")) for name in ("site", "repository")}


def release_date() -> str:
    """The date of this version in CHANGELOG.md; empty while it is not released."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(attnlab.__version__)}, (\d{{4}}-\d\d-\d\d)$", text, re.M)
    return found[1] if found else ""


def shell(*lines: str) -> str:
    """A block of commands."""
    return "\n".join(("```bash", *lines, "```\n"))


def parts(site: str, repository: str, date: str = "") -> dict[str, str]:
    """Each generated part by its name."""
    source = repository or "ADDRESS"
    hint = "" if repository else "    # ADDRESS: of the repository that this file is from"
    extra = "figures" if RELEASED else "book"
    wheel = install_line(extra, "wheel")
    citation = [f"version: {attnlab.__version__}"]
    citation += [f"date-released: {date}"] if date else []
    citation += [f"url: {site}"] if site else []
    citation += [f"repository-code: {repository}"] if repository else []
    return {
        "site": f"**Read it online: <{site}>**\n" if site else "",
        "clone": shell(f"git clone {source} attnlab{hint}", "cd attnlab"),
        "install": shell(install_line("figures")),
        "install-real": shell(install_line("real"), install_line("real-train")),
        "install-wheel": shell(wheel),
        "citation": "".join(f"{line}\n" for line in citation),
    }


def renewed(text: str, found: Mapping[str, str]) -> str:
    """A document with its generated parts replaced."""
    return PART.sub(lambda part: part["start"] + found[part["name"]] + part["end"], text)


def main() -> int:
    """Write, or name what is out of date."""
    found, late = parts(**addresses(), date=release_date()), []
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if renewed(text, found) != text:
            late.append(name)
            if "--write" in sys.argv:
                path.write_text(renewed(text, found), encoding="utf-8")
    print("\n".join(late) or "up to date")
    return 1 if late and "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
