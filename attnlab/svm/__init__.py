"""Max-margin problems: where training goes, every answer with its own certificate."""

from attnlab.svm._attention import attention_svm, decoder_svm
from attnlab.svm._classify import Classification, classify
from attnlab.svm._general import correlation, finite_component, general_svm, svm_equivalent
from attnlab.svm._least_norm import least_norm
from attnlab.svm._local import (
    Finding,
    LocalOptimality,
    assumption_b1,
    assumption_b2,
    assumption_c,
    assumption_d,
    feasibility,
    locally_optimal,
)
from attnlab.svm._margin import InfeasibleMargin, Margin
from attnlab.svm._path import Path, in_cone, regularization_path
from attnlab.svm._rank import rank_limited_svm

__all__ = [
    "Classification",
    "Finding",
    "InfeasibleMargin",
    "LocalOptimality",
    "Margin",
    "Path",
    "assumption_b1",
    "assumption_b2",
    "assumption_c",
    "assumption_d",
    "attention_svm",
    "classify",
    "correlation",
    "decoder_svm",
    "feasibility",
    "finite_component",
    "general_svm",
    "in_cone",
    "least_norm",
    "locally_optimal",
    "rank_limited_svm",
    "regularization_path",
    "svm_equivalent",
]
