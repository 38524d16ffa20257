r"""Constants of "Transformers as Support Vector Machines".

What comes back is one number a trial unless said.

- ``tokens``: a selection $\alpha$, ``(..., n)``; None for the optimal tokens. ``W_mm``: its
  max-margin direction, ``(..., d, d)``, of length $1/\Theta$.
- ``attention``: $s$ at $W$, ``(..., n, T)``; ``slopes``: $|\ell'_i|$ there, ``(..., n)``.
- ``spread``: $B$, ``gap``: $c_\alpha$, ``margin``: $\Xi$ and ``shortfall``: $\delta$ of the paths.
- ``printed``: where the paper prints what its proof does not give, True is the printed form and
  the default the corrected one.
"""

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
from attnbook.theory.svm._turning import first_step_radius, safe_excess, turning_radius
from attnbook.theory.svm._water_filling import thresholds, water_filling

__all__ = [
    "LocalConstants",
    "cone_distance",
    "cone_margins",
    "cone_radius",
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
    "first_step_radius",
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
    "safe_excess",
    "score_constants",
    "score_gaps",
    "softmax_covariance",
    "span",
    "thresholds",
    "token_margins",
    "turning_radius",
    "water_filling",
]
