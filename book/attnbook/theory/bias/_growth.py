"""Fixed decoder, one step and one norm: Lemmas 2, 4 and 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.bias import _inputs as given
from attnlab import checks as check
from attnlab.checks import Array

# |W_0| <= sigma_0 (2 + sqrt 2) sqrt d with probability 1 - delta once d >= log(2 / delta), and
# logits differ by at most 2 B^2 times that.
GAUSSIAN_NORM = 2.0 * (2.0 + np.sqrt(2.0))


def largest_step(B: ArrayLike, T: int) -> Array:
    r"""$(2B^2)^{-1}\log(2T-1)$, normalized descent's largest step (bias, Lemma 3 and Theorem 5).

    One such step changes a difference of logits by at most $\log(2T-1)$.

    >>> from attnbook import theory
    >>> round(float(theory.bias.largest_step(1.0, 6)), 4)  # Figure 2 takes 0.025
    1.1989
    """
    T = check.count("T", T, 2)
    return np.asarray(np.log(2.0 * T - 1.0) / (2.0 * given.positive("B", B) ** 2))


def initial_norm(step: ArrayLike, B: ArrayLike, margin_norm: ArrayLike) -> Array:
    r"""$\eta/(4B^2\Lambda)$, how far from zero a run may start (bias, Lemma 2).

    >>> from attnbook import theory
    >>> float(theory.bias.initial_norm(0.5, 1.0, 1.0))
    0.125
    """
    eta, B = given.positive("step", step), given.positive("B", B)
    return np.asarray(eta / (4.0 * B**2 * given.positive("margin_norm", margin_norm)))


def initial_scale(
    step: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    d: int,
    T: int,
    k: float = 2.0,
    constant: float = GAUSSIAN_NORM,
) -> Array:
    r"""$\sigma_0$, the largest scale of a Gaussian start (bias, Lemma 2).

    $B^{-2}d^{-1/2}\big(C'^{-1}\log\frac{kT-1}{T-1}\wedge\eta d^{-1/2}/(8\Lambda)\big)$; then
    $\varphi^0_{i\,\mathrm{opt}_i}\ge1/(kT)$ and $\|W_0\|\le\eta/(4B^2\Lambda)$ with probability
    $1-\delta$ where $d\ge\log(2/\delta)$. The paper leaves $C'$ (``constant``) open;
    $2(2+\sqrt2)$ is enough. Lemma 3 needs $k\le2$.

    >>> from attnbook import theory
    >>> scale = theory.bias.initial_scale(0.025, 1.0, 8.0, d=100, T=6)  # Figure 2
    >>> round(float(scale), 8)
    3.91e-06
    """
    eta, B, width = given.sizes(step, B, margin_norm)
    d, T = check.count("d", d), check.count("T", T, 2)
    k = check.number("k", k, above=1.0)
    spread = np.log((k * T - 1.0) / (T - 1.0)) / check.number("constant", constant, above=0.0)
    return np.asarray(np.minimum(spread, eta / (8.0 * width * np.sqrt(d))) / (B**2 * np.sqrt(d)))


def alignment_bound(B: ArrayLike, margin_norm: ArrayLike) -> Array:
    r"""$(2B^2\Lambda)^{-1}$: least cosine of a negative gradient and $W_{mm}$ (bias, Lemma 4).

    Never above 1, which one sample with two opposite tokens reaches.

    >>> from attnbook import theory
    >>> float(theory.bias.alignment_bound(1.0, 0.5)), float(theory.bias.alignment_bound(1, 8))
    (1.0, 0.0625)
    """
    B, width = given.positive("B", B), given.positive("margin_norm", margin_norm)
    return np.asarray(1.0 / (2.0 * B**2 * width))


def norm_bounds(
    t: ArrayLike, step: ArrayLike, B: ArrayLike, margin_norm: ArrayLike
) -> tuple[Array, Array]:
    r"""$\eta(4B^2\Lambda)^{-1}t\le\|W_t\|\le2\eta((4B^2\Lambda)^{-1}\vee1)t$ (bias, Lemma 5).

    Both ends. As $B^2\Lambda\ge\frac12$ always, the maximum is 1, and equation 9 is the same
    statement.

    >>> from attnbook import theory
    >>> low, high = theory.bias.norm_bounds(1000, 0.025, 1.0, 8.0)
    >>> float(low), float(high)  # measured on the data of Figure 2: .944 * 25 = 23.6
    (0.78125, 50.0)
    """
    steps, eta = given.times(t), given.positive("step", step)
    inverse = alignment_bound(B, margin_norm) / 2.0
    return np.asarray(eta * inverse * steps), np.asarray(
        2.0 * eta * np.maximum(inverse, 1.0) * steps
    )
