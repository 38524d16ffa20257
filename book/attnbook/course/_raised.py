"""What a student is told of an error in a call with hidden inputs: nothing that could quote them.

A function is free to raise an error whose words, or whose name, are its input. So feedback repeats
names of Python's own errors, places in the student's own cells, and sentences that are ours. The
words as they came are kept beside the verdict, for the instructor.
"""

from __future__ import annotations

import builtins
import re

from attnbook.course import wire
from attnbook.course._library import LOWER

LEFT_OUT = "its words are left out, for they could quote hidden inputs"
OWN = frozenset(
    name for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
) | {"LinAlgError"}  # fmt: skip
ROOM = re.compile(r"ImportError: (\w+)\.(\w+) may not be used in this problem set")
PLACE = re.compile(r" \(cell (.*), line (\d{1,6})\)$", re.S)


def without_words(error: str, answer: str, cells: list[tuple[str, str]]) -> str:
    """A sentence about an error that ``answer``, defined in ``cells``, raised in a hidden call."""
    kind, _, words = error.partition(": ")
    if kind == "NotPlainError":
        return instead(words)
    room = ROOM.match(error)
    if room and room[1] in ("attnlab", "attnbook") and room[2] in LOWER:
        return room[0]
    for sentence in (f"NameError: {answer} is not defined", "NotImplementedError: yours to write"):
        if error.startswith(sentence):
            return sentence
    place = PLACE.search(error)
    lines = {name: text.count("\n") + 1 for name, text in cells}
    at = ""
    if place and int(place[2]) <= lines.get(place[1], 0):
        at = f" in cell {place[1]}, line {int(place[2])}"
    return f"its code raised {kind if kind in OWN else 'an error'}{at} ({LEFT_OUT})"


def instead(words: str) -> str:
    """The sentence of ours about what may not be handed over; none of the student's words."""
    known = next((sentence for sentence in wire.SENTENCES if words.startswith(sentence)), "")
    return known or "what cannot be handed over: return numbers, words, arrays, or lists of these"
