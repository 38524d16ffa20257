"""What a figure of real data came to, and what it needs to be computed."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab import checks as check

WORDS = ("as the paper says", "weaker", "undecided", "otherwise")
# by extra, the modules that show whether it is installed
EXTRAS = {"real": ("sklearn",), "real-train": ("torch",)}


@dataclass(frozen=True)
class Verdict:
    r"""Whether a run shows what the paper says, computed from its arrays.

    Args:
        word: ``as the paper says``; ``weaker``, where part of it is seen; ``undecided``, where the
            intervals leave it open; or ``otherwise``.
        numbers: a sentence with seeds and intervals that bears it out.

    Returns:
        A frozen record; as text, both.

    Examples:
        >>> from attnbook import figures
        >>> str(figures.Verdict("weaker", "Ahead by .01 [-.00, .02], five seeds."))
        'weaker: Ahead by .01 [-.00, .02], five seeds.'
    """

    word: str
    numbers: str

    def __post_init__(self) -> None:
        check.choice("word", self.word, WORDS)
        if not self.numbers.strip():
            raise check.fail("numbers", "a sentence with the numbers", repr(self.numbers))

    def __str__(self) -> str:
        return f"{self.word}: {self.numbers}"
