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
    r"""Weights with which every token looks at the label's pattern, in our convention.

    $$W_\star=\mu_+\mu_+^\top+\mu_-\mu_-^\top+(\mu_++\mu_-)\sum_\ell\nu_\ell^\top,\qquad
    \|W_\star\|_F=S^2\sqrt{2(M+1)}.$$
    The key stands left, the query right: the transpose of what the paper prints. Without noise
    the logits are $S^4$ on relevant tokens and 0 on the others, whatever the query.

    Args:
        source: the mixture, ``problem.source`` of `problems.tokenized_mixture`.

    Returns:
        $W_\star$, shape ``(d, d)``.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> seq = problems.tokenized_mixture(n=3, sigma=0.0, rng=0)
        >>> W = theory.multihead.W_star(seq.source)
        >>> round(float(np.linalg.norm(W) / 4), 4), round(6**0.5, 4)
        (2.4495, 2.4495)
        >>> logits = seq.X @ W.T @ seq.X.mT  # [query, key]
        >>> bool((logits == 16.0 * seq.relevant[:, None, :]).all())
        True

    Reference: multihead, Section 5.2, equations 8 and 104.
    """
    mixture = _mixture(source)
    plus, minus = mixture.mu
    both = np.outer(plus + minus, mixture.nu.sum(axis=0))
    return np.asarray(np.outer(plus, plus) + np.outer(minus, minus) + both)


def U_star(source: Mixture) -> Array:
    r"""$U_\star=\mathbf 1_T(\mu_+-\mu_-)^\top$, of norm $S\sqrt{2T}$.

    Args:
        source: the mixture, ``problem.source`` of `problems.tokenized_mixture`.

    Returns:
        $U_\star$, shape ``(T, d)``.

    Examples:
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> seq = problems.tokenized_mixture(n=3, rng=0)
        >>> theory.multihead.U_star(seq.source)[0].tolist()
        [2.0, -2.0, 0.0, 0.0]

    Reference: multihead, Section 5.2, equation 105.
    """
    mixture = _mixture(source)
    return np.tile(mixture.mu[0] - mixture.mu[1], (mixture.T, 1))


def theta_opt(source: Mixture, scale: float = 1.0) -> Params:
    r"""One head: $U_{\mathrm{opt}}=U_\star/\|U_\star\|$, $\Gamma W_{\mathrm{opt}}$ likewise.

    Args:
        source: the mixture, ``problem.source`` of `problems.tokenized_mixture`.
        scale: $\Gamma$, such as `Gamma_eps` gives.

    Returns:
        Parameters for ``models.MultiHead(heads=1)``.

    Examples:
        >>> from attnlab import models, problems
        >>> from attnbook import theory
        >>> seq = problems.tokenized_mixture(n=50, sigma=0.0, rng=0)
        >>> params = theory.multihead.theta_opt(seq.source, theory.multihead.Gamma_eps(0.01))
        >>> reached = seq.y * models.MultiHead(heads=1).forward(params, seq)
        >>> bool((reached > theory.multihead.gamma_attn(eps=0.01)).all())
        True

    Reference: multihead, equation 9.
    """
    U, W = U_star(source), W_star(source)
    size = check.number("scale", float(scale), least=0.0)
    return {
        "U": (U / np.linalg.norm(U))[None],
        "W": (size / np.linalg.norm(W) * W)[None],
    }


def theta_star(source: Mixture, alpha: ArrayLike) -> Params:
    r"""The stated target in tangent space, of norm $\sqrt2$.

    $$\tilde\theta_\star=\tfrac1{\sqrt H}\mathrm{concat}_h\big(\bar U_\star,
    \mathrm{sign}(\alpha_h)\bar W_\star\big),$$
    bars for normalised. It is not the best direction: without noise its margin over the unit
    ball is 0.420151 where the largest is 0.503452 (`ntk.margin`; $T=10$, $\zeta=0.1$, $S=2$,
    $M=2$, one head).

    Args:
        source: the mixture, ``problem.source`` of `problems.tokenized_mixture`.
        alpha: the steps $\alpha_h$ of the first phase, shape ``(..., H)``; only signs matter.

    Returns:
        A direction with the keys and shapes of the parameters of ``models.MultiHead(heads=H)``.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> from attnbook import theory
        >>> seq = problems.tokenized_mixture(n=3, rng=0)
        >>> target = theory.multihead.theta_star(seq.source, [1.0, -1.0])
        >>> round(float(sum((part**2).sum() for part in target.values())), 6)
        2.0

    Reference: multihead, Section 5.2, Lemmas 13 and 14.
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
