"""Words from outside, made fit to be printed, kept and opened in a spreadsheet."""

from __future__ import annotations

import hashlib
import re
import unicodedata

LINE = 400  # characters without a space or an end of line
# where a spreadsheet may see a formula: at the start of a cell, and wherever it may cut a line into
# cells, which with some settings is at every semicolon; marks of ours before it are counted
FORMULA = re.compile(r"(^|[;\t\r\n])( *)('*)(?=[=+\-@＝＋－＠])")
OURS = re.compile(r"(^|[;\t\r\n])( *)'('*)(?=[=+\-@＝＋－＠])")
ODD = frozenset(("Cc", "Cs", "Cf", "Co", "Cn", "Zl", "Zp"))  # Cf turns the direction of writing
LONG = re.compile(rf"\S{{{LINE}}}(?=\S)")
MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff"  # signs above and below others
STACK = re.compile(rf"([{MARKS}]{{4}})[{MARKS}]+")
KEPT = "\u200c\u200d"  # joiners, which some scripts need


def clean(text: object, most: int = 300, *, lines: bool = False) -> str:
    """As one line (or as lines), without control signs and surrogates, and no longer than said."""
    whole = str(text)[: 4 * most]
    kept = "".join(map(sign, whole)) if lines else "".join(map(sign, re.sub(r"\s+", " ", whole)))
    kept = LONG.sub(r"\g<0> ", STACK.sub(r"\1", kept))
    return kept if len(kept) <= most else kept[: most - 1] + "…"


def sign(one: str) -> str:
    """A character, or what stands for one that may not be shown."""
    if one == "\n" or one in KEPT or unicodedata.category(one) not in ODD:
        return one
    return " " if one in "\t\r" else "\ufffd"


def cell(text: str) -> str:
    """For a table: what a spreadsheet would take for a formula gets a mark before it."""
    return FORMULA.sub(r"\1\2'\3", clean(text, 4000, lines=True))


def uncell(text: str) -> str:
    """What `cell` was given."""
    return OURS.sub(r"\1\2\3", text)


def digest(text: str) -> str:
    """Of a cell's source, whatever stands between its words."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()[:16]
