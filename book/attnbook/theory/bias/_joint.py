"""Joint training: what Lemmas 10 and 11 and Theorems 2 to 4 (8 to 10) promise of the iterates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.bias import _inputs as given
from attnbook.theory.bias._conditions import power_sum
from attnlab import checks as check
from attnlab.checks import Array


def decoder_norm_bound(t: ArrayLike, step: float) -> Array:
    r"""$3\eta t^{1/3}$: how long the decoder is at most (bias, Lemma 10).

    >>> from attnbook import theory
    >>> theory.bias.decoder_norm_bound([1, 1000], 0.002).round(6).tolist()
    [0.006, 0.06]
    """
    return np.asarray(3.0 * check.number("step", step, above=0.0) * given.times(t) ** (1.0 / 3.0))


def score_gap_bound(t: ArrayLike, step: float, omega_2: float, *, printed: bool = False) -> Array:
    r"""$\eta\omega_2\sum_{t'<t}(t'+1)^{-2/3}$: lead in score at least (bias, Lemma 11).

    ``printed`` is that of `power_sum`.

    >>> from attnbook import theory
    >>> theory.bias.score_gap_bound([1, 1000], 0.002, 0.091).round(6).tolist()
    [0.000182, 0.005015]
    """
    eta = check.number("step", step, above=0.0)
    return np.asarray(
        eta * check.number("omega_2", omega_2, above=0.0) * power_sum(t, printed=printed)
    )


def joint_loss_bound(t: ArrayLike, step: float, omega_1: float) -> Array:
    r"""$\exp(-\frac{\eta\omega_1}2t^{1/3})$: the loss at most (bias, Theorem 8, $t$ for $t+1$).

    >>> from attnbook import theory
    >>> theory.bias.joint_loss_bound([1, 1e6], 0.002, 0.119).round(5).tolist()
    [0.99988, 0.98817]
    """
    eta = check.number("step", step, above=0.0)
    rate = eta * check.number("omega_1", omega_1, above=0.0) / 2.0
    return np.asarray(np.exp(-rate * given.times(t) ** (1.0 / 3.0)))


def joint_exponent(B: float, *, n: int, constant: float) -> float:
    r"""$BC_0/\sqrt n$, the factor before $\eta(t+1)^{1/3}$ (bias, Theorem 2).

    Theorem 8 proves it with $C_0=1/(16\sqrt{1.5})\approx0.051$ (which is $\omega_1/2$). Theorem 2
    writes the $C_0$ of Condition 1, which is above 1 (6 in Condition 2).

    >>> from attnbook import theory
    >>> B = theory.bias.token_bound(3.0, 0.1, 100)
    >>> half = theory.bias.joint_exponent(B, n=10, constant=1 / (16 * 1.5**0.5))
    >>> round(2 * half / theory.bias.omega_1(3.0, 0.1, n=10, d=100), 12)
    1.0
    """
    B, n = check.number("B", B, above=0.0), check.count("n", n)
    return float(B * check.number("constant", constant, above=0.0) / np.sqrt(n))


def joint_norm_threshold(
    eps: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    n: int,
    d: int,
    delta: float,
    constant: float = 24.0,
) -> Array:
    r"""$R_\epsilon$ of joint training (bias, equation 56).

    $2\Lambda\epsilon^{-1}\big(\log(4Cn^2\sqrt{2d}\log(10n^2/\delta)^{-1}\epsilon^{-1})\vee
    5\log(40B^2\Lambda\epsilon^{-1})\big)$ with $C\ge24$, the bound on ratios of losses.

    >>> from attnbook import theory
    >>> R = theory.bias.joint_norm_threshold(0.5, 1.0, 1.0, n=10, d=100, delta=0.1)
    >>> round(float(R), 2)
    87.64
    """
    share, B = given.share("eps", eps), given.positive("B", B)
    width = given.positive("margin_norm", margin_norm)
    spread = _spread(n, d, delta, constant)
    second = 5.0 * np.log(40.0 * B**2 * width / share)
    return np.asarray(2.0 * width / share * np.maximum(np.log(4.0 * spread / share), second))


def joint_log_waiting_time(
    eps: ArrayLike,
    step: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    n: int,
    d: int,
    delta: float,
    constant: float = 24.0,
) -> Array:
    r"""$\log t_\epsilon$ of joint training (bias, Theorem 9); $t_\epsilon$ itself leaves float64.

    $\frac{(10B\Lambda)^2}\eta\big(\frac{Cn^2\sqrt{2d}}{250\log(10n^2/\delta)}\vee
    10B^2\Lambda\big)^{1/3}\epsilon^{-4/3}\vee\frac{B^2\Lambda}\eta$ with $C\ge24$.

    >>> from attnbook import theory
    >>> log_t = theory.bias.joint_log_waiting_time(
    ...     0.5, 0.002, 3.674, 0.5, n=10, d=100, delta=0.1)  # as in Figure 3
    >>> float(f"{float(log_t):.3g}")
    1730000.0
    """
    share = given.share("eps", eps)
    eta, B, width = given.sizes(step, B, margin_norm)
    spread = _spread(n, d, delta, constant)
    inside = np.maximum(spread / 250.0, 10.0 * B**2 * width)
    first = (10.0 * B * width) ** 2 / eta * np.cbrt(inside) * share ** (-4.0 / 3.0)
    return np.asarray(np.maximum(first, B**2 * width / eta))


def decoder_margin_bound(
    log_t: ArrayLike,
    margin: ArrayLike,
    step: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    noise: float | None = None,
    printed: bool = False,
) -> Array:
    r"""$\frac\gamma{12}-\rho\sqrt{1.5d}\,(1+\exp(\eta(8B^2\Lambda^2)^{-1}\log t))^{-1}$
    (bias, Theorems 4, 10).

    The margin of the normalized $\bar u_t$ at least, $\gamma$ the largest of a unit decoder on the
    optimal tokens, ``noise`` $\rho\sqrt{1.5d}$. The statement prints $u_t$, $\frac\gamma4$ and the
    numerator 1 (``printed``); $\gamma/12$ is what the displayed constants of the proof give.

    >>> from attnbook import theory
    >>> bound = theory.bias.decoder_margin_bound
    >>> state = dict(log_t=1e4, margin=0.96, step=0.1, B=1.0, margin_norm=1.0)
    >>> [round(float(b), 6) for b in (bound(**state, printed=True), bound(**state, noise=1.2))]
    [0.24, 0.08]
    """
    time = given.times(log_t, 0.0)
    gamma = given.positive("margin", margin)
    eta, B, width = given.sizes(step, B, margin_norm)
    rest = 1.0 / (1.0 + np.exp(np.minimum(eta * time / (8.0 * B**2 * width**2), 700.0)))
    if printed:
        return np.asarray(gamma / 4.0 - rest)
    if noise is None:
        raise check.fail("noise", "rho sqrt(1.5 d), for the corrected form", noise)
    return np.asarray(gamma / 12.0 - check.number("noise", noise, above=0.0) * rest)


def _spread(n: int, d: int, delta: float, constant: float) -> float:
    r"""$Cn^2\sqrt{2d}/\log(10n^2/\delta)$."""
    n, log = given.log_pairs(n, delta)
    return float(check.number("constant", constant, least=24.0) * n**2 * np.sqrt(2.0 * d) / log)
