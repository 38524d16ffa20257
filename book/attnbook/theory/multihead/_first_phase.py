"""Section 5.1: one randomized gradient step from zero, and how far it is from its mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least, out, share
from attnlab import checks as check
from attnlab.checks import Array, Rng
from attnlab.models import MultiHead, Params
from attnlab.problems import SequenceProblem


def first_phase(
    model: MultiHead, problem: SequenceProblem, *, rng: Rng, signs: str = "rademacher"
) -> Params:
    r"""One gradient step from zero with a random step for each head (Section 5.1, Lemmas 2 and 16).

    $$\theta_h^{(1)}=-\alpha_h\sqrt H\,\nabla_{\theta_h}\hat L_{n_1}(0).$$
    $W_h$ stays at 0 and all rows of $U_h$ are $\alpha_h(\frac\zeta4u_\star+p)$ (printed:
    $\zeta/2$), $u_\star=\mu_+-\mu_-$: up to the sign $\alpha_h$ the heads are equal. ``signs`` is
    ``"rademacher"`` for $\alpha_h=\pm1$ or ``"uniform"`` for $\alpha_h$ uniform on $[-1,1]$ (the
    paper's $\mathbb E|\alpha|=\frac12$). Parameters for ``model`` come back.

    >>> from attnlab import models, problems
    >>> from attnbook import theory
    >>> seq = problems.tokenized_mixture(n=20000, zeta=0.3, rng=0)
    >>> params = theory.multihead.first_phase(models.MultiHead(heads=4), seq, rng=1)
    >>> abs(params["U"][0, 0])[:2].round(2).tolist()  # zeta / 4 times the patterns' length 2
    [0.15, 0.15]
    """
    if not isinstance(model, MultiHead):
        raise check.fail("model", "a MultiHead", type(model).__name__)
    check.choice("signs", signs, ("rademacher", "uniform"))
    generator = check.generator(rng, "start")
    shapes = model.shapes(problem)
    zero = {name: np.zeros(problem.trials + tail) for name, tail in shapes.items()}
    grads = model.value_and_grad(zero, problem)[1]
    size = (*problem.trials, model.heads)
    if signs == "rademacher":
        alpha = generator.choice((-1.0, 1.0), size=size)
    else:
        alpha = generator.uniform(-1.0, 1.0, size=size)
    step = -(model.heads**0.5) * alpha
    return {
        name: step.reshape(*size, *(1,) * (len(shapes[name]) - 1)) * grad + 0.0
        for name, grad in grads.items()
    }


def first_phase_error(
    n1: ArrayLike, delta: ArrayLike, *, S: ArrayLike, Z: ArrayLike = 0.0, zeta: ArrayLike = 0.1
) -> Array:
    r"""$P$ with explicit constants: $\|p\|\le P$ with probability $1-2\delta$ (Lemmas 2 and 17).

    With $p=p_1+p_2$, $p_1=\frac\zeta2(\frac{n_+}{n_1}-\frac12)(\mu_++\mu_-)$, by Hoeffding and
    McDiarmid
    $$\|p_1\|\le\frac\zeta{\sqrt2}S\sqrt{\frac{\log(2/\delta)}{2n_1}},\qquad
    \|p_2\|\le\frac{1-\zeta}2(S+Z)\frac{1+\sqrt{2\log(1/\delta)}}{\sqrt{n_1}},$$
    each with probability $1-\delta$, without $d$. The paper (equation 6) has
    $C(2S+Z)(\sqrt{d/n_1}+\sqrt{\log(1/\delta)/n_1})$ with an unspecified $C$.

    >>> from attnbook import theory
    >>> round(float(theory.multihead.first_phase_error(10000, 0.01, S=2.0, Z=0.1)), 4)
    0.0404
    """
    samples, failure = least("n1", n1, 1.0), share("delta", delta)
    size, part = above("S", S), share("zeta", zeta)
    labels = part / np.sqrt(2.0) * size * np.sqrt(np.log(2.0 / failure) / (2.0 * samples))
    spread = (1.0 + np.sqrt(-2.0 * np.log(failure))) / np.sqrt(samples)
    return out(labels + (1.0 - part) / 2.0 * (size + least("Z", Z)) * spread)
