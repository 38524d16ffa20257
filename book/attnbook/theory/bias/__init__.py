r"""Constants of "Implicit Bias and Fast Convergence Rates for Self-attention".

What comes back is one number a trial, or one a time ``t`` (steps taken, at least 1), unless said.

- ``B``: the largest token norm; ``step``: $\eta$; ``margin_norm``: $\Lambda=\|W_{mm}\|$;
  ``conditioning``: $\Upsilon$; ``eps``: $\epsilon\in(0,1)$; ``constant``: a $C$.
- ``best`` and ``others``: the scores $\gamma_{i\,\mathrm{opt}_i}$ and $\gamma_i$, ``(..., n)``.
- In model DM, ``rho`` is the size of the tokens, ``alpha`` ($>1$) how much larger the optimal one
  is, and ``delta``, in $(0,1)$, the chance of failure.
- ``printed``: where the paper prints what its proof does not give, True is the printed form and
  the default the corrected one.
"""

from attnbook.theory.bias._conditions import (
    common_margin,
    curvature_bound,
    dimension_needed,
    joint_step,
    joint_step_simple,
    omega_1,
    omega_2,
    power_sum,
    product_bounds,
    token_bound,
)
from attnbook.theory.bias._descent import (
    gd_bound,
    gd_constant,
    gd_step,
    gradient_bounds,
    polyak_constant,
    polyak_step,
    two_token_gd,
    two_token_miss,
)
from attnbook.theory.bias._growth import (
    alignment_bound,
    initial_norm,
    initial_scale,
    largest_step,
    norm_bounds,
)
from attnbook.theory.bias._joint import (
    decoder_margin_bound,
    decoder_norm_bound,
    joint_exponent,
    joint_log_waiting_time,
    joint_loss_bound,
    joint_norm_threshold,
    score_gap_bound,
)
from attnbook.theory.bias._rate import (
    epsilon_schedule,
    gap_set,
    norm_threshold,
    rate_bound,
    rate_constant,
    saturation_bound,
    saturation_exponent,
    saturation_time,
    waiting_constant,
    waiting_time,
)
from attnbook.theory.bias._scores import conditioning, gradient_along, loss_scale, split_scores
from attnbook.theory.bias._tokens import (
    example_dimension,
    example_signal,
    optimal_geometry,
    orthogonality,
    orthogonality_needed,
)

__all__ = [
    "alignment_bound",
    "common_margin",
    "conditioning",
    "curvature_bound",
    "decoder_margin_bound",
    "decoder_norm_bound",
    "dimension_needed",
    "epsilon_schedule",
    "example_dimension",
    "example_signal",
    "gap_set",
    "gd_bound",
    "gd_constant",
    "gd_step",
    "gradient_along",
    "gradient_bounds",
    "initial_norm",
    "initial_scale",
    "joint_exponent",
    "joint_log_waiting_time",
    "joint_loss_bound",
    "joint_norm_threshold",
    "joint_step",
    "joint_step_simple",
    "largest_step",
    "loss_scale",
    "norm_bounds",
    "norm_threshold",
    "omega_1",
    "omega_2",
    "optimal_geometry",
    "orthogonality",
    "orthogonality_needed",
    "polyak_constant",
    "polyak_step",
    "power_sum",
    "product_bounds",
    "rate_bound",
    "rate_constant",
    "saturation_bound",
    "saturation_exponent",
    "saturation_time",
    "score_gap_bound",
    "split_scores",
    "token_bound",
    "two_token_gd",
    "two_token_miss",
    "waiting_constant",
    "waiting_time",
]
