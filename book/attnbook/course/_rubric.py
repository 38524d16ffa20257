"""Marking schemes: a model answer, and what each step of an answer is worth."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from attnlab import checks as check

HEAD = "**Marks.**"
ITEM = re.compile(r"( *)- \((\d+(?:\.\d+)?)\) (.+)")
MOST = 9  # items: one key each


@dataclass
class Item:
    """A step that earns points, and what lesser levels of it look like."""

    points: float
    words: str
    told: dict[float, str] = field(default_factory=dict)

    @property
    def levels(self) -> list[float]:
        """What it may earn: nothing, whole points, all of it, and levels that are described."""
        return sorted({0.0, *map(float, range(1, int(self.points) + 1)), self.points, *self.told})


@dataclass
class Rubric:
    """A marking scheme."""

    answer: str
    note: str
    items: list[Item]

    @property
    def shape(self) -> list[float]:
        """Points by item: marks of another shape are of another scheme."""
        return [item.points for item in self.items]


def rubric(scheme: str, most: float, where: str) -> Rubric:
    """What a scheme says: items are lines ``- (2) words``, lesser levels are indented below them.

    A scheme without items is one item.
    """
    answer, _, rest = scheme.partition(HEAD)
    items: list[Item] = []
    note: list[str] = []
    for line in rest.strip().split("\n"):
        found = ITEM.fullmatch(line.rstrip())
        if found is None:
            note.append(line)
        elif not found[1]:
            items.append(Item(float(found[2]), found[3]))
        elif items:
            items[-1].told[float(found[2])] = found[3]
    if not items:
        items = [Item(float(most), "the whole answer")]
    if len(items) > MOST or abs(sum(item.points for item in items) - most) > 1e-9:
        told = [item.points for item in items]
        raise check.fail(where, f"at most {MOST} marks that add up to {most:g}", told)
    for item in items:
        if any(level >= item.points for level in item.told):
            raise check.fail(where, f"lesser levels below {item.points:g}", sorted(item.told))
    return Rubric(answer.strip(), "\n".join(note).strip(), items)
