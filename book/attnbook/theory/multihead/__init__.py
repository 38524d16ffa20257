r"""Constants of "On the Optimization and Generalization of Multi-head Attention".

Throughout: ``n`` samples of ``T`` tokens with ``d`` features, none longer than ``R``; ``H`` heads
(infinity allowed where a bound has a limit); ``K`` steps of size ``eta``. A target $\theta$ has
``distance`` $\delta=\|\theta-\theta_0\|$ from the start, ``norm`` $\|\theta\|_{2,\infty}$ (its
longest head) and ``target_loss`` $\hat L(\theta)$; $D=3\delta+\|\theta\|_{2,\infty}$. In the
corollaries for good starts these are $g_0(1/K)$, $g(1/K)$ and $1/K$.

The mixture has ``M`` irrelevant patterns, patterns of length ``S``, a share ``zeta`` of relevant
tokens, and noise with $\|z_t\|\le Z$, $|\langle z_t,\mu_\pm\rangle|\le Z_\mu$,
$|\langle z_t,\nu_\ell\rangle|\le Z_\nu/M$; ``source`` is ``problem.source`` of
`problems.tokenized_mixture`. ``P`` bounds the error of the first phase, ``B2`` and ``B_Phi`` are
those of P1 and P2, ``gamma`` the margin of P3, ``delta`` a probability of failure.

``X`` is ``(..., T, d)``, ``U`` alike, ``W`` ``(..., d, d)`` with the key left and the query right.
``printed`` is what the paper prints where it is wrong, ``sharp`` a smaller constant of this book
that holds too. What comes back is a number, or an array where an argument is one.
"""

from attnbook.theory.multihead._bounds import (
    beta1,
    beta2,
    beta3,
    gradient_bound,
    gradient_U_bound,
    gradient_W_bound,
    hessian_bound,
)
from attnbook.theory.multihead._chance import hoeffding, saturation, subgaussian_norm
from attnbook.theory.multihead._descent import (
    expansiveness,
    iterate_radius,
    local_regret_bound,
    on_average_bound,
    one_head_steps,
    quasi_convexity,
    regret_bound,
    short_enough,
)
from attnbook.theory.multihead._first_phase import first_phase, first_phase_error
from attnbook.theory.multihead._formulas import mixed_derivative, model_gradient, second_derivative
from attnbook.theory.multihead._good import B2, B_Phi, H_min_p3, head_margin_bound
from attnbook.theory.multihead._kept import H_min_kept, gap_bound_kept, kept_length, too_few_heads
from attnbook.theory.multihead._mixture import (
    Gamma_eps,
    crossing,
    gamma_attn,
    gamma_lin,
    gamma_star,
    token_bound,
)
from attnbook.theory.multihead._realizability import (
    H_min_good,
    H_min_realizable,
    g0,
    head_exponents,
    realizable_gap_bound,
    realizable_step,
    saturating_target,
)
from attnbook.theory.multihead._targets import U_star, W_star, theta_opt, theta_star
from attnbook.theory.multihead._training import (
    H_min,
    generalization_bound,
    rho,
    rho_order,
    stability_bound,
    step_size,
    training_bound,
)

__all__ = [
    "B2",
    "B_Phi",
    "Gamma_eps",
    "H_min",
    "H_min_good",
    "H_min_kept",
    "H_min_p3",
    "H_min_realizable",
    "U_star",
    "W_star",
    "beta1",
    "beta2",
    "beta3",
    "crossing",
    "expansiveness",
    "first_phase",
    "first_phase_error",
    "g0",
    "gamma_attn",
    "gamma_lin",
    "gamma_star",
    "gap_bound_kept",
    "generalization_bound",
    "gradient_U_bound",
    "gradient_W_bound",
    "gradient_bound",
    "head_exponents",
    "head_margin_bound",
    "hessian_bound",
    "hoeffding",
    "iterate_radius",
    "kept_length",
    "local_regret_bound",
    "mixed_derivative",
    "model_gradient",
    "on_average_bound",
    "one_head_steps",
    "quasi_convexity",
    "realizable_gap_bound",
    "realizable_step",
    "regret_bound",
    "rho",
    "rho_order",
    "saturating_target",
    "saturation",
    "second_derivative",
    "short_enough",
    "stability_bound",
    "step_size",
    "subgaussian_norm",
    "theta_opt",
    "theta_star",
    "token_bound",
    "too_few_heads",
    "training_bound",
]
