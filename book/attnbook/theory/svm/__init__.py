"""Constants of "Transformers as Support Vector Machines"."""

from attnbook.theory.svm._descent import (
    descent_step,
    guaranteed_decrease,
    lemma_9_bound,
)
from attnbook.theory.svm._existence import counting_dimension, enough_dimension, rank_bound
from attnbook.theory.svm._global import (
    equal_scores,
    lemma_10_radius,
    lemma_11_radius,
    lemma_12_bounds,
    lemma_12_radius,
    opposing_threshold,
    reach,
)
from attnbook.theory.svm._local import (
    LocalConstants,
    cone_step,
    lemma_13_bounds,
    lemma_14_radius,
    local_constants,
)
from attnbook.theory.svm._paths import (
    cone_distance,
    cone_margins,
    cone_radius,
    crossing_radius,
    equivalent_correlation,
    excess_above,
    excess_below,
    low_high,
    score_constants,
)
from attnbook.theory.svm._softmax import (
    equal_score_form,
    lemma_7_bound,
    lemma_7_residual,
    lemma_7_sum,
    softmax_covariance,
)
from attnbook.theory.svm._tokens import features, score_gaps, span, token_margins
from attnbook.theory.svm._water_filling import sufficient_range, thresholds, water_filling

__all__ = [
    "LocalConstants",
    "cone_distance",
    "cone_margins",
    "cone_radius",
    "cone_step",
    "counting_dimension",
    "crossing_radius",
    "descent_step",
    "enough_dimension",
    "equal_score_form",
    "equal_scores",
    "equivalent_correlation",
    "excess_above",
    "excess_below",
    "features",
    "guaranteed_decrease",
    "lemma_7_bound",
    "lemma_7_residual",
    "lemma_7_sum",
    "lemma_9_bound",
    "lemma_10_radius",
    "lemma_11_radius",
    "lemma_12_bounds",
    "lemma_12_radius",
    "lemma_13_bounds",
    "lemma_14_radius",
    "local_constants",
    "low_high",
    "opposing_threshold",
    "rank_bound",
    "reach",
    "score_constants",
    "score_gaps",
    "softmax_covariance",
    "span",
    "sufficient_range",
    "thresholds",
    "token_margins",
    "water_filling",
]
