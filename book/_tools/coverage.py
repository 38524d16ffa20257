"""Which statements of the papers the pages teach: each once, where its claim says.

    python book/_tools/coverage.py

Prints a line a chapter; fails where a statement is missing, doubled or in another place.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

BOOK = Path(__file__).resolve().parents[1]
PAPERS = ("multihead", "encoder", "bias", "svm")


def boxes() -> dict[str, list[str]]:
    """Statements by the pages that box them."""
    found: dict[str, list[str]] = {}
    for path in sorted(BOOK.rglob("*.md")):
        page = path.relative_to(BOOK).with_suffix("").as_posix()
        for name in re.findall(r"^`{3,}\{statement\} *(\S+)", path.read_text("utf-8"), re.M):
            found.setdefault(name, []).append(page)
    return found


def named() -> dict[str, set[str]]:
    """Claims by the chapter pages that link to them."""
    found: dict[str, set[str]] = {}
    for path in sorted(BOOK.rglob("*.md")):
        page = path.relative_to(BOOK).with_suffix("").as_posix()
        if "/" not in page:
            continue
        for words in re.findall(r"\{claim\}`([^`]+)`", path.read_text("utf-8")):
            name = re.sub(r".*<([^>]+)>", r"\1", words).strip()
            found.setdefault(name, set()).add(page)
    return found


def main() -> int:
    """Count, and complain."""
    from attnbook import claims

    there, linked, wrong = boxes(), named(), []
    for paper in PAPERS:
        statements = [claim for claim in claims.all(paper=paper) if claim.kind != "erratum"]
        errata = [claim for claim in claims.all(paper=paper) if claim.kind == "erratum"]
        pages = len([p for p in (BOOK / paper).glob("*.md") if p.stem != "index"])
        taught = [claim for claim in statements if claim.id in there]
        told = [claim for claim in errata if claim.id in linked]
        print(
            f"{paper}: {pages} pages, {len(taught)} of {len(statements)} statements taught, "
            f"{len(told)} of {len(errata)} errata named where they matter"
        )
        for claim in statements:
            pages_of = there.get(claim.id, [])
            if pages_of != [claim.page]:
                told = ", ".join(pages_of) or "no page"
                wrong.append(f"{claim.id}: boxed in {told}, said to be {claim.page}")
        wrong += [f"{claim.id}: no page names it" for claim in errata if claim.id not in linked]
    for line in wrong:
        print("-", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
