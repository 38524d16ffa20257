"""Fingerprints of code, taken in a process of its own with limits on time and memory.

    python -m attnbook.course._prints      waits for one job on its standard input

Code is cut into tokens and never parsed, so that it need not be Python. Comments, white space and
docstrings go; names that a student chose, words in quotes and long numbers become one sign each.
Of the hashes of all runs of `RUN` tokens the least of every `WINDOW` is kept (winnowing: Schleimer,
Wilkerson and Aiken, SIGMOD 2003): what two have alike for RUN + WINDOW - 1 tokens leaves a trace.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import keyword
import re
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbook.course._submission import Submission, grade_id, joined, load
from attnbook.course._words import clean

RUN, WINDOW = 7, 4  # tokens of a hash, hashes of a window
CODE = 20_000  # characters of an answer
MEMORY = 2 << 30
OWN = ""  # stands for cells that a student added
KEPT = frozenset((*keyword.kwlist, *dir(builtins), "np", "numpy", "scipy", "self"))
QUOTED = "|".join(rf"{q * 3}(?:[^{q}\\]|\\.|{q}(?!{q}{q}))*+(?:{q * 3}|\Z)?" for q in "\"'")
SHORT = "|".join(rf"{q}(?:[^{q}\\\n]|\\.)*+{q}?" for q in "\"'")
ALONE = re.compile(r"[ \t;]*+(?:[\n#]|\Z)")
TOKEN = re.compile(
    rf"""(?P<space>[ \t\f\r\\]+) | (?P<end>\n) | (?P<comment>\#[^\n]*+)
    | (?P<string>[rbfuRBFU]{{0,2}}(?:{QUOTED}|{SHORT}))
    | (?P<number>\.?\d(?:[eE][+-]|[\w.])*+) | (?P<name>\w++)
    | (?P<sign>\*\*=?|//=?|<<=?|>>=?|->|[-+*/%@&|^=<>!:]=|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Print:
    """A hash, and the lines that it was taken from."""

    mark: int
    first: int
    last: int


def tokens(code: str, known: frozenset[str] = frozenset()) -> Iterator[tuple[str, int, int]]:
    """What matters of a text, with its lines; ``known`` are names that everybody was given."""
    line, depth, fresh, before = 0, 0, True, ""
    for found in TOKEN.finditer(code):
        kind, text, at = str(found.lastgroup), found[0], line
        line += text.count("\n")
        if kind == "end":
            fresh = fresh or not depth
        if kind in ("space", "end", "comment"):
            continue
        first, fresh = fresh, False
        if kind == "string":
            if first and ALONE.match(code, found.end()):  # a docstring, or thrown away
                fresh = True
                continue
            text = "S"
        elif kind == "number":
            text = text if len(text) < 3 else "#"
        elif kind == "name":
            text = text if text in KEPT or text in known or before == "." else "V"
        else:
            depth = max(0, depth + (text in "([{") - (text in ")]}"))
        before = text
        yield text, at, line


def prints(code: str, known: frozenset[str] = frozenset()) -> list[Print]:
    """The fingerprints of a text; none of one that is too short to tell."""
    some = list(tokens(code, known))
    runs = [some[k : k + RUN] for k in range(len(some) - RUN + 1)]
    marks = []
    for run in runs:
        words = "\0".join(text for text, _, _ in run).encode("utf-8", "replace")
        marks.append(int.from_bytes(hashlib.blake2b(words, digest_size=6).digest(), "big"))
    chosen = {
        min(range(k, min(k + WINDOW, len(marks))), key=lambda one: (marks[one], -one))
        for k in range(max(1, len(marks) - WINDOW + 1) if marks else 0)
    }
    return [Print(marks[k], runs[k][0][1], runs[k][-1][2]) for k in sorted(chosen)]


def names(code: str) -> frozenset[str]:
    """All names in a text that everybody was given."""
    return frozenset(found[0] for found in TOKEN.finditer(code) if found.lastgroup == "name")


# -- inside ------------------------------------------------------------------------------------
def answers(path: Path, given: dict[str, Any]) -> dict[str, str]:
    """Code by problem; what stands in cells of a student's own comes together."""
    found: dict[str, str] = {}
    for cell in load(path, Submission()) or []:
        if cell.get("cell_type") != "code":
            continue
        name = grade_id(cell)
        if name in given["others"]:
            continue
        key = name if name in given["problems"] else OWN
        text = clean(joined(cell), CODE, lines=True)
        found[key] = f"{found[key]}\n{text}"[:CODE] if key in found else text
    return found


def main() -> None:
    """One job: files, in order, each a line for every answer."""
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))

    def say(**told: Any) -> None:
        print(json.dumps(told), flush=True)

    for number, (path, name) in enumerate(job["files"]):
        if number in job["skip"]:
            continue
        say(at=number)
        for key, code in answers(Path(path), job["given"][name]).items():
            known = frozenset(job["given"][name]["problems"][key])
            some = [(one.mark, one.first, one.last) for one in prints(code, known)]
            say(file=number, problem=key, code=code, prints=some)
    say(end=True)


if __name__ == "__main__":
    main()
