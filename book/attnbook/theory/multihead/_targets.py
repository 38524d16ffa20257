"""Section 5.2: the parameters that the paper aims for on the tokenized mixture."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import Mixture


def _mixture(source: object) -> Mixture:
    if not isinstance(source, Mixture):
        raise check.fail(
            "source", "a Mixture, such as the source of tokenized_mixture", type(source).__name__
        )
    return source


def W_star(source: Mixture) -> Array:
    r"""Weights with which every token looks at the label's pattern (equations 8 and 104).

    $$W_\star=\mu_+\mu_+^\top+\mu_-\mu_-^\top+(\mu_++\mu_-)\sum_\ell\nu_\ell^\top,\qquad
    \|W_\star\|_F=S^2\sqrt{2(M+1)}.$$
    In our convention, the key left and the query right: the transpose of what the paper prints.
    Without noise the logits are $S^4$ on relevant tokens and 0 on the others, whatever the query.

    >>> from attnlab import problems
    >>> from attnbook import theory
    >>> seq = problems.tokenized_mixture(n=3, sigma=0.0, rng=0)
    >>> logits = seq.X @ theory.multihead.W_star(seq.source).T @ seq.X.mT  # [query, key]
    >>> bool((logits == 16.0 * seq.relevant[:, None, :]).all())
    True
    """
    mixture = _mixture(source)
    plus, minus = mixture.mu
    both = np.outer(plus + minus, mixture.nu.sum(axis=0))
    return np.asarray(np.outer(plus, plus) + np.outer(minus, minus) + both)


def U_star(source: Mixture) -> Array:
    r"""$U_\star=\mathbf 1_T(\mu_+-\mu_-)^\top$, of norm $S\sqrt{2T}$ (Section 5.2, equation 105).

    >>> from attnlab import problems
    >>> from attnbook import theory
    >>> theory.multihead.U_star(problems.tokenized_mixture(n=3, rng=0).source)[0].tolist()
    [2.0, -2.0, 0.0, 0.0]
    """
    mixture = _mixture(source)
    return np.tile(mixture.mu[0] - mixture.mu[1], (mixture.T, 1))


def theta_opt(source: Mixture, scale: float = 1.0) -> Params:
    r"""One head: $U_\star/\|U_\star\|$ and $\Gamma W_\star/\|W_\star\|$ (equation 9).

    Parameters for ``models.MultiHead(heads=1)``; ``scale`` is $\Gamma$, such as `Gamma_eps` gives.

    >>> from attnlab import models, problems
    >>> from attnbook import theory
    >>> seq = problems.tokenized_mixture(n=50, sigma=0.0, rng=0)
    >>> params = theory.multihead.theta_opt(seq.source, theory.multihead.Gamma_eps(0.01))
    >>> reached = seq.y * models.MultiHead(heads=1).forward(params, seq)
    >>> bool((reached > theory.multihead.gamma_attn(eps=0.01)).all())
    True
    """
    U, W = U_star(source), W_star(source)
    size = check.number("scale", float(scale), least=0.0)
    return {"U": (U / np.linalg.norm(U))[None], "W": (size / np.linalg.norm(W) * W)[None]}


def theta_star(source: Mixture, alpha: ArrayLike) -> Params:
    r"""The stated target in tangent space, of norm $\sqrt2$ (Section 5.2, Lemmas 13 and 14).

    $$\tilde\theta_\star=\tfrac1{\sqrt H}\mathrm{concat}_h\big(\bar U_\star,
    \mathrm{sign}(\alpha_h)\bar W_\star\big),$$
    bars for normalised, with the keys and shapes of parameters; ``alpha`` has shape ``(..., H)``.
    It is not the best direction: without noise its margin over the unit ball is 0.420151 where the
    largest is 0.503452 (`ntk.margin`; $T=10$, $\zeta=0.1$, $S=2$, $M=2$, one head).

    >>> from attnlab import problems
    >>> from attnbook import theory
    >>> seq = problems.tokenized_mixture(n=3, rng=0)
    >>> target = theory.multihead.theta_star(seq.source, [1.0, -1.0])
    >>> round(float(sum((part**2).sum() for part in target.values())), 6)
    2.0
    """
    steps = check.frozen("alpha", alpha, ndim=1)
    if (steps == 0.0).any():
        raise check.fail("alpha", "steps other than 0, which have a sign", alpha)
    U, W = U_star(source), W_star(source)
    share = steps.shape[-1] ** -0.5
    ones, signs = np.ones(steps.shape)[..., None, None], np.sign(steps)[..., None, None]
    return {
        "U": share * ones * (U / np.linalg.norm(U)),
        "W": share * signs * (W / np.linalg.norm(W)),
    }
