r"""Constants of "On the Convergence of Encoder-only Shallow Transformers".

Throughout: $N$ samples (``N``) of $d_s$ tokens (``T``) with ``d`` features, ``Cx`` is $C_x$ of
Assumption 1 and ``width`` $d_m$; ``eta`` is the variance $\eta$ of the weights, ``init`` is
``"lecun"``, ``"he"`` or ``"ntk"`` (Table 1), ``delta`` a probability. Most bounds are written in
`Bars`, with the constants $C_\bullet$ included or not as in the paper. ``alpha`` is
$\alpha=\sigma_{\min}(F_{pre})$ and ``loss`` $\ell(\theta^0)=\frac12\sum_n(f_n-y_n)^2$, both at the
start; ``features`` are $\Phi$, shape ``(..., n, d)``, and ``moved_Q`` and so on are norms of
differences of parameters.

``printed`` is what the paper prints where it is wrong, ``sharp`` a smaller constant of this book
that holds too. What comes back has the shape of the trials.
"""

from attnbook.theory.encoder._bars import Bars, bars, input_bound, norms
from attnbook.theory.encoder._convergence import (
    alpha,
    condition_2,
    condition_3,
    drift_bound,
    gradient_factors,
    movement_bounds,
    rate,
    rho,
    z,
)
from attnbook.theory.encoder._eigenvalues import (
    first_token_features,
    gershgorin,
    lambda_0_lower,
    lambda_0_upper,
    lemma_15_bound,
    lemma_16_gap,
    lemma_16_width,
    lemma_17_printed,
    mean_tokens,
    relu_hermite,
    smallest_eigenvalue,
)
from attnbook.theory.encoder._lemmas import (
    lemma_5_failure,
    lemma_5_interval,
    lemma_6_bound,
    lemma_7_bound,
    lemma_8_interval,
    lemma_9_bound,
    lemma_10_bound,
    softmax_jacobian,
)
from attnbook.theory.encoder._scaling import (
    alpha_ratio,
    logit_variance,
    mean_field_kernel,
    output_deviation,
    stability_limit,
    top_eigenvalue,
    variances,
)
from attnbook.theory.encoder._smoothness import c1, c2, c3, lemma_14_z, smoothness
from attnbook.theory.encoder._tails import (
    dissimilarity,
    logit_entry_bound,
    product_log_mgf,
    product_log_tail,
    scaled_sub_exponential,
    similarity,
    sub_exponential_log_mgf,
    sub_exponential_tail,
    summed_sub_exponential,
    theorem_1_failure,
)
from attnbook.theory.encoder._vector_input import (
    effective_features,
    effective_floor,
    effective_scalars,
    hessian_block_bounds,
)
from attnbook.theory.encoder._widths import least_width

__all__ = [
    "Bars",
    "alpha",
    "alpha_ratio",
    "bars",
    "c1",
    "c2",
    "c3",
    "condition_2",
    "condition_3",
    "dissimilarity",
    "drift_bound",
    "effective_features",
    "effective_floor",
    "effective_scalars",
    "first_token_features",
    "gershgorin",
    "gradient_factors",
    "hessian_block_bounds",
    "input_bound",
    "lambda_0_lower",
    "lambda_0_upper",
    "least_width",
    "lemma_5_failure",
    "lemma_5_interval",
    "lemma_6_bound",
    "lemma_7_bound",
    "lemma_8_interval",
    "lemma_9_bound",
    "lemma_10_bound",
    "lemma_14_z",
    "lemma_15_bound",
    "lemma_16_gap",
    "lemma_16_width",
    "lemma_17_printed",
    "logit_entry_bound",
    "logit_variance",
    "mean_field_kernel",
    "mean_tokens",
    "movement_bounds",
    "norms",
    "output_deviation",
    "product_log_mgf",
    "product_log_tail",
    "rate",
    "relu_hermite",
    "rho",
    "scaled_sub_exponential",
    "similarity",
    "smallest_eigenvalue",
    "smoothness",
    "softmax_jacobian",
    "stability_limit",
    "sub_exponential_log_mgf",
    "sub_exponential_tail",
    "summed_sub_exponential",
    "theorem_1_failure",
    "top_eigenvalue",
    "variances",
    "z",
]
