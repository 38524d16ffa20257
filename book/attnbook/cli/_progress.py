"""How far a check has come and about how long it still takes, in one line on the error stream."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence

from attnbook.claims import Claim, Outcome

FIRST = 3  # claims that must be done before the time of the others is estimated


class Progress:
    """A line that ticks while claims are checked; nothing where the stream is no terminal.

    Standard output is left to the table: `say` writes there, above the line.
    """

    def __init__(self, chosen: Sequence[Claim], workers: int) -> None:
        from tqdm import tqdm

        self.chosen, self.workers, self.seconds = chosen, workers, list[float]()
        self.bar = tqdm(
            total=len(chosen),
            file=sys.stderr,
            disable=None,  # where it is no terminal
            leave=False,
            bar_format="{n_fmt} of {total_fmt} claims checked, {elapsed} so far{postfix}",
        )
        self.ended = threading.Event()
        self.clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Progress:
        if self.shown:
            self.clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.bar.close()

    @property
    def shown(self) -> bool:
        """Whether anybody sees the line."""
        return not self.bar.disable

    def expect(self, seconds: float) -> None:
        """Say how long it takes at most, where too few claims are asked for to learn from."""
        self.bar.set_postfix_str(f"at most about {in_words(seconds)} in all")

    def seen(self, outcome: Outcome) -> None:
        """Count one claim, and say anew how long the others take."""
        self.seconds.append(outcome.seconds)
        if FIRST <= len(self.seconds) < len(self.chosen):
            left = seconds_left(self.chosen, self.seconds, self.workers)
            self.bar.set_postfix_str(f"about {in_words(left)} left", refresh=False)
        self.bar.update()
        self.bar.refresh()

    def say(self, text: str) -> None:
        """Print on standard output."""
        if not self.shown:
            print(text, flush=True)
            return
        with self.bar.external_write_mode(file=sys.stdout):
            print(text, flush=True)

    def _tick(self) -> None:
        """A claim may take minutes: the seconds go on."""
        while not self.ended.wait(1.0):
            self.bar.refresh()


def seconds_left(chosen: Sequence[Claim], seconds: Sequence[float], workers: int) -> float:
    """Seconds for the claims that are not done, by those that are: the mean of their own kind.

    Theorems take ten times as long as errata. A kind of which none is done takes what the others
    take on average.
    """
    done, left = chosen[: len(seconds)], chosen[len(seconds) :]
    kinds: dict[str, list[float]] = {}
    for claim, spent in zip(done, seconds, strict=True):
        kinds.setdefault(claim.kind, []).append(spent)
    means = {kind: sum(spent) / len(spent) for kind, spent in kinds.items()}
    average = sum(seconds) / len(seconds)
    return sum(means.get(claim.kind, average) for claim in left) / workers


def in_words(seconds: float) -> str:
    """A rounded time: ``5 s``, ``40 s``, ``3 min``."""
    if seconds < 90.0:
        return f"{max(5, 5 * round(seconds / 5.0))} s"
    return f"{round(seconds / 60.0)} min"
