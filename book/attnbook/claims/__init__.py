"""Every numbered statement of the four papers as a check, corrections included.

A claim's status is asserted: what holds must survive, what fails must show its counterexample.
"""

from attnbook.claims._ledger import all, counts, get, select  # noqa: A004
from attnbook.claims._measure import Measurement
from attnbook.claims._records import Claim, Evidence, Suggestion
from attnbook.claims._run import Outcome, run

__all__ = [
    "Claim",
    "Evidence",
    "Measurement",
    "Outcome",
    "Suggestion",
    "all",
    "counts",
    "get",
    "run",
    "select",
]
