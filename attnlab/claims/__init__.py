"""Every numbered statement of the four papers as a check, corrections included.

A claim's status is asserted: what holds must survive, what fails must show its counterexample.
"""

from attnlab.claims._measure import Measurement
from attnlab.claims._records import Claim, Evidence
from attnlab.claims._registry import all, counts, get, select  # noqa: A004
from attnlab.claims._run import Outcome, run

__all__ = ["Claim", "Evidence", "Measurement", "Outcome", "all", "counts", "get", "run", "select"]
