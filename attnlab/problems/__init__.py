"""Datasets of the four papers, as small frozen records.

Constructors are pure: whatever is drawn comes from the ``rng`` they are given. Leading axes are
trials, so ``trials=500`` gives five hundred independent instances in one array.
"""

from attnlab.problems._records import (
    SequenceProblem,
    Source,
    TokenProblem,
    selection,
    source,
    sources,
)
from attnlab.problems._sequences import (
    Mixture,
    Teacher,
    gaussian_regression,
    planted,
    tokenized_mixture,
)
from attnlab.problems._sphere import causal, sequence, sphere
from attnlab.problems._tokens import bad_direction, gaussian, orthogonal, two_token

__all__ = [
    "Mixture",
    "SequenceProblem",
    "Source",
    "Teacher",
    "TokenProblem",
    "bad_direction",
    "causal",
    "gaussian",
    "gaussian_regression",
    "orthogonal",
    "planted",
    "selection",
    "sequence",
    "source",
    "sources",
    "sphere",
    "tokenized_mixture",
    "two_token",
]
