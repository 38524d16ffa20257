"""Notices for the instructor, by kind: no number of one kind crowds out another."""

from __future__ import annotations

from attnbook.course._words import clean
from attnbook.course.runner import WATCHED

EACH = 5  # notices of a kind that are kept whole
GRAVE = (
    "wrote what is no reply into the grader's pipe",
    "sent an answer in another form than the grader's",
    "tried to leave",
    "the process ended",
    "started a process",
    "started a program",
    "tried to become another program",
    "asked the network",
    "opened a network port",
    "loaded machine code",
    "made a symbolic link",
    "sent a signal",
    "tried to write to",
    "tried to read",
    "looked into",
)  # what a program has no reason to do when it answers a question; the only ones it can be told of


def grave(words: str) -> str:
    """Which of the grave kinds a notice of the sandbox is; empty where it is none of them."""
    return next((kind for kind in GRAVE if words.startswith(kind)), "")


class Notices:
    """What marking saw, with the first few of each kind and a count of the others."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[bool, str], list[str]] = {}
        self.more: dict[tuple[bool, str], int] = {}
        self.seen: set[str] = set()

    def add(self, kind: str, words: str, *, is_grave: bool = False) -> None:
        """Keep a notice, once."""
        words = clean(words)
        if words in self.seen:
            return
        kept = self.kinds.setdefault((not is_grave, kind), [])
        if len(kept) < EACH:
            self.seen.add(words)
            kept.append(words)
        else:
            key = (not is_grave, kind)
            self.more[key] = self.more.get(key, 0) + 1

    def hear(self, where: str, words: str) -> None:
        """Keep what the sandbox saw. Places that nobody hands in are kinds of their own."""
        kind = grave(words)
        place = words[len(kind) :].strip()
        if kind in ("tried to read", "looked into", "tried to write to"):
            top = ".." if ".." in place else "/".join(place.split("/")[:2])
            kind += f" {top}" if top in WATCHED else " other places"
        self.add(kind, f"{where}: {words}", is_grave=True)

    def lines(self) -> list[str]:
        """All of them, grave ones first."""
        found: list[str] = []
        for key in sorted(self.kinds, key=lambda key: key[0]):
            found += self.kinds[key]
            if count := self.more.get(key):
                found.append(f"and {count:,} more: {key[1]}")
        return found
