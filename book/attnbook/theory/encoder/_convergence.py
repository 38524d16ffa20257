r"""Proposition 1: its two conditions, its rate, and the step size that its proof allows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least
from attnbook.theory.encoder._bars import NAMES, Bars, radii
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Encoder, Params
from attnlab.problems import SequenceProblem


def rho(bars: Bars) -> Array:
    r"""$\rho=N^{1/2}d_s^{3/2}\tau_1C_x$, the factor of every bound; $\rho/d_s$ for mean pooling.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> float(theory.encoder.rho(b).round(4))
    5.6569
    """
    return np.asarray(np.sqrt(bars.n) * bars.T**1.5 * bars.pool * bars.Cx)


def z(bars: Bars) -> Array:
    r"""$z=\bar\lambda_O^2(1+4\tau_0^2C_x^4d_s^2\bar\lambda_V^2(\bar\lambda_Q^2+\bar\lambda_K^2))$.

    Proposition 1's; Lemma 14 uses the same letter for something else: `lemma_14_z`.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> float(theory.encoder.z(b).round(4))
    6.12
    """
    inner = 4.0 * bars.tau0**2 * bars.Cx**4 * bars.T**2 * bars.V**2 * (bars.Q**2 + bars.K**2)
    return np.asarray(bars.O**2 * (1.0 + inner))


def gradient_factors(bars: Bars) -> dict[str, Array]:
    r"""$\|\nabla_\bullet\ell\|\le$ factor $\cdot\|f-y\|$, one factor for each parameter (Lemma 12).

    $2\rho\tau_0\bar\lambda_K\bar\lambda_V\bar\lambda_Od_sC_x^2$ for $W_Q$ ($\bar\lambda_Q$ in
    place of $\bar\lambda_K$ for $W_K$), $\rho\bar\lambda_O$ for $W_V$, $\rho\bar\lambda_V$ for
    $w_O$. The first two have a factor 4 to spare: the softmax Jacobian has norm at most $1/2$,
    not 2.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(1, 1, 1.0, 0.1, 1.0, Q=2.0, K=3.0, V=2.0, O=1.0)
    >>> {name: round(float(c), 4) for name, c in theory.encoder.gradient_factors(b).items()}
    {'W_Q': 1.2, 'W_K': 0.8, 'W_V': 1.0, 'w_O': 2.0}
    """
    r = rho(bars)
    inner = 2.0 * r * bars.tau0 * bars.V * bars.O * bars.T * bars.Cx**2
    return {"W_Q": inner * bars.K, "W_K": inner * bars.Q, "W_V": r * bars.O, "w_O": r * bars.V}


def alpha(model: Encoder, params: Params, problem: SequenceProblem) -> Array:
    r"""$\alpha=\sigma_{\min}(F_{pre})$: the smallest of $N$ singular values; 0 where $d_m<N$.

    >>> from attnlab import models, problems
    >>> from attnbook import theory
    >>> p = problems.gaussian_regression(n=4, T=2, d=6, unit_tokens=True, rng=0)
    >>> wide, narrow = models.Encoder(width=100), models.Encoder(width=3)
    >>> float(theory.encoder.alpha(narrow, narrow.init(p, rng=0), p))
    0.0
    >>> bool(theory.encoder.alpha(wide, wide.init(p, rng=0), p) > 0.5)
    True
    """
    F = model.features(params, problem)
    if problem.n > F.shape[-1]:
        return np.zeros(problem.trials)
    return np.asarray(np.linalg.svd(F, compute_uv=False)[..., -1])


def condition_2(
    bars: Bars, alpha: ArrayLike, loss: ArrayLike, radius: float | Mapping[str, float] = 1.0
) -> Array:
    r"""How far condition (2) holds: $\alpha^2$ over its right side; met where it is at least 1.

    $$\alpha^2\ge8\rho\max\Big(\tfrac{\bar\lambda_V}{C_O},\tfrac{\bar\lambda_O}{C_V},
    \tfrac{2\tau_0C_x^2d_s\bar\lambda_K\bar\lambda_V\bar\lambda_O}{C_Q},
    \tfrac{2\tau_0C_x^2d_s\bar\lambda_Q\bar\lambda_V\bar\lambda_O}{C_K}\Big)\sqrt{2\ell(\theta^0)}$$
    (equation 2) with the ``radius`` $C_\bullet$ that ``bars`` was made with.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> float(theory.encoder.condition_2(b, 3.0, 0.005).round(4))
    0.9944
    """
    a, start = _start(alpha, loss)
    each = radii(radius)
    if min(each.values()) <= 0.0:
        raise check.fail("radius", "numbers above 0", radius)
    factors = gradient_factors(bars)
    largest = np.max([factors[name] / each[name] for name in NAMES], axis=0)
    return np.asarray(a**2 / (8.0 * largest * start))


def condition_3(bars: Bars, alpha: ArrayLike, loss: ArrayLike) -> Array:
    r"""How far condition (3) holds: $\alpha^3\bar\lambda_O/(32\rho^2z\sqrt{2\ell(\theta^0)})$.

    Met where it is at least 1.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> float(theory.encoder.condition_3(b, 3.0, 0.005).round(4))
    0.0431
    """
    a, start = _start(alpha, loss)
    return np.asarray(a**3 * bars.O / (32.0 * rho(bars) ** 2 * z(bars) * start))


def _start(alpha: ArrayLike, loss: ArrayLike) -> tuple[Array, Array]:
    a, value = least("alpha", alpha), least("loss", loss)
    if (value == 0.0).any():
        raise check.fail("loss", "a loss above 0: at 0 there is nothing to train", value.tolist())
    return a, np.sqrt(2.0 * value)


def rate(alpha: ArrayLike, step_size: ArrayLike, *, kept: float = 0.5**0.5) -> Array:
    r"""The factor by which (4) shrinks the loss in a step, $1-\gamma\alpha^2/2$.

    For steps $\gamma$ on $\frac12\sum(f-y)^2$. The proof (Appendix C.2) shows $1-\gamma\sigma^2$
    where $\sigma_{\min}(F_{pre})\ge\sigma$ all along; ``kept`` is $\sigma/\alpha$, the statement's
    $2^{-1/2}$ unless told. The induction keeps $\sigma=\alpha/2$, which gives only
    $1-\gamma\alpha^2/4$; condition (3) in fact keeps $\sigma=\frac78\alpha$, hence
    $1-\frac{49}{64}\gamma\alpha^2$.

    >>> from attnbook import theory
    >>> [float(theory.encoder.rate(1.0, 0.1, kept=s).round(6)) for s in (0.5, 0.5**0.5, 7 / 8)]
    [0.975, 0.95, 0.923438]
    """
    a, gamma = check.frozen("alpha", alpha), check.frozen("step_size", step_size)
    share = check.number("kept", kept, above=0.0, most=1.0)
    return np.asarray(1.0 - gamma * (share * a) ** 2)


def movement_bounds(bars: Bars, alpha: ArrayLike, loss: ArrayLike) -> dict[str, Array]:
    r"""How far each parameter travels under (2), $\|W_\bullet^t-W_\bullet^0\|_F$.

    Lemma 12's factor times $4\sqrt{2\ell(\theta^0)}/\alpha^2$, at most half of $C_\bullet$
    (equations 26 to 34).

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(1, 1, 1.0, 0.1, 1.0, Q=2.0, K=3.0, V=2.0, O=1.0)
    >>> found = theory.encoder.movement_bounds(b, 2.0, 0.005)
    >>> {name: round(float(c), 4) for name, c in found.items()}
    {'W_Q': 0.12, 'W_K': 0.08, 'W_V': 0.1, 'w_O': 0.2}
    """
    a, start = _start(alpha, loss)
    above("alpha", alpha)
    return {name: c * 4.0 * start / a**2 for name, c in gradient_factors(bars).items()}


def drift_bound(bars: Bars, alpha: ArrayLike, loss: ArrayLike, *, printed: bool = False) -> Array:
    r"""How far $F_{pre}$ moves under (2), in the Frobenius norm (Appendix C.2).

    $\rho^2\frac z{\bar\lambda_O}\frac4{\alpha^2}\sqrt{2\ell(\theta^0)}$. The paper has 16 for
    4, so that (3) gives $\alpha/2$; the sum over steps gives 4, and (3) then gives $\alpha/8$.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> [float(theory.encoder.drift_bound(b, 3.0, 0.005, printed=p).round(3)) for p in (0, 1)]
    [8.704, 34.816]
    """
    a, start = _start(alpha, loss)
    above("alpha", alpha)
    factor = 16.0 if printed else 4.0
    return np.asarray(rho(bars) ** 2 * z(bars) / bars.O * factor / a**2 * start)
