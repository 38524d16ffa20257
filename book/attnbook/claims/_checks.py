"""Which function checks which claim. A check says its family of instances and two sides."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from attnbook.claims._measure import Measurement
from attnlab import checks

Measure = Callable[[np.random.Generator, int], Iterable[Measurement]]


@dataclass(frozen=True)
class Check:
    """A function that draws instances and measures both sides, and how many it draws."""

    measure: Measure
    instances: int


_CHECKS: dict[str, Check] = {}


def measures(claim: str, instances: int = 100) -> Callable[[Measure], Measure]:
    """Say that a function checks the claim of this id; it takes a generator and a number."""

    def enter(measure: Measure) -> Measure:
        if claim in _CHECKS:
            raise checks.fail("claim", "one without a check yet", claim)
        _CHECKS[claim] = Check(measure, instances)
        return measure

    return enter


def check_of(claim: str) -> Check:
    """A claim's check; the checks of a paper are imported when one is first asked for."""
    importlib.import_module(f"attnbook.claims.{claim.split('.')[0]}")
    if claim not in _CHECKS:
        raise checks.fail("claim", "one that has a check", claim)
    return _CHECKS[claim]


def checked(paper: str) -> set[str]:
    """Claims of a paper that have a check of their own."""
    importlib.import_module(f"attnbook.claims.{paper}")
    return {claim for claim in _CHECKS if claim.startswith(f"{paper}.")}
