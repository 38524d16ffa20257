"""Means with 95 % intervals over seeds, and how they are told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab import checks as check

# Student's t at .975 by degrees of freedom, from 1; beyond the table its expansion in 1/freedom
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_NORMAL = 1.95996


class Interval(NamedTuple):
    """A mean and its 95 % interval; as text ``+.324 [.235, .413]``."""

    mean: float
    low: float
    high: float

    @property
    def above(self) -> bool:
        """All of it lies above zero."""
        return self.low > 0.0

    @property
    def below(self) -> bool:
        """All of it lies below zero."""
        return self.high < 0.0

    def told(self, digits: int = 3, *, sign: bool = True) -> str:
        """The mean and, in brackets, where the interval ends."""
        mean = short(self.mean, digits)
        plus = "+" if sign and not mean.startswith("-") else ""
        return f"{plus}{mean} [{short(self.low, digits)}, {short(self.high, digits)}]"


def interval(values: ArrayLike) -> Interval:
    """The mean of independent values and its 95 % interval by Student's t."""
    found = np.asarray(values, float).ravel()
    if len(found) < 2 or not np.isfinite(found).all():
        raise check.fail("values", "at least two finite numbers", found)
    free = len(found) - 1
    wide = _T[free - 1] if free <= len(_T) else _NORMAL + 2.37 / free + 2.82 / free**2
    half = wide * float(found.std(ddof=1)) / np.sqrt(len(found))
    mean = float(found.mean())
    return Interval(mean, mean - half, mean + half)


def chosen_by_others(ends: ArrayLike) -> NDArray[np.float64]:
    """Of each trial the end with the choice that is best for all *other* trials.

    ``ends`` is ``(..., choices, trials)``, smaller is better; what comes back is ``(..., trials)``.
    A choice made on the trials that are reported would flatter whoever has more choices.
    """
    found = np.asarray(ends, float)
    trials = found.shape[-1]
    if trials < 2:
        raise check.fail("ends", "at least two trials, last", f"shape {found.shape}")
    rest = (found.sum(axis=-1, keepdims=True) - found) / (trials - 1)
    if not np.isfinite(found).all():  # a run that diverged: infinity less infinity is no number
        each = [np.delete(found, t, axis=-1).mean(axis=-1) for t in range(trials)]
        rest = np.stack(each, axis=-1)
    place = np.expand_dims(rest.argmin(axis=-2), -2)
    return np.asarray(np.take_along_axis(found, place, axis=-2)[..., 0, :])


def short(value: float, digits: int = 3) -> str:
    """A number without the zero before its point: ``.324``, ``-.077``, ``1.243``."""
    words = f"{value:.{digits}f}"
    if float(words) == 0.0:
        words = words.lstrip("-")
    return words.replace("0.", ".", 1) if abs(float(words)) < 1.0 and digits else words
