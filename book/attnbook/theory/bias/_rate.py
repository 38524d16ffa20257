r"""The rate of normalized descent: Lemma 7, Theorem 5 and Lemma 8, printed and corrected."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.bias import _inputs as given
from attnlab import checks as check
from attnlab.checks import Array, IntArray


def norm_threshold(
    eps: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    n: int,
    T: int,
    conditioning: ArrayLike,
    printed: bool = False,
) -> Array:
    r"""$R_\epsilon$, the norm from which gradients prefer $W_{mm}$ (bias, Lemma 7, equation 36).

    $2\Lambda\epsilon^{-1}\big(\log(64nB^2\Lambda\Upsilon T^3\epsilon^{-1})\vee
    5\log(20TB^2\Lambda\epsilon^{-1})\big)$. Equation 36 inverts a factor, so that the paper has
    $4n(B^2\Lambda)^{-1}$ in place of $64nB^2\Lambda$ (``printed``); the second logarithm hides it
    nearly always.

    >>> from attnbook import theory
    >>> R = theory.bias.norm_threshold
    >>> round(float(R(0.5, 1.0, 8.0, n=20, T=6, conditioning=2.718281828)), 1)  # Figure 2
    1209.6
    >>> many = dict(n=10**9, T=2, conditioning=2.718281828)  # where the factor shows
    >>> [round(float(R(0.5, 1.0, 1.0, printed=p, **many)), 1) for p in (True, False)]
    [103.5, 114.6]
    """
    share, B = given.share("eps", eps), given.positive("B", B)
    width = given.positive("margin_norm", margin_norm)
    n, T = check.count("n", n), check.count("T", T, 2)
    size = B**2 * width
    samples = n * given.positive("conditioning", conditioning) * T**3 / share
    first = np.log(samples * (4.0 / size if printed else 64.0 * size))
    second = 5.0 * np.log(20.0 * T * size / share)
    return np.asarray(2.0 * width / share * np.maximum(first, second))


def gap_set(gap: ArrayLike, eps: float) -> IntArray:
    r"""Which of the three sets of Lemma 7 a sample is in: 1, 2 or 3 (bias, proof of Lemma 7).

    With $\nu=\epsilon/(1-\epsilon)$ and $\delta_i=\min_\tau\tilde a_{i\,\mathrm{opt}_i}-\tilde
    a_{i\tau}-1$ (``gap``) at $\tilde W=\|W_{mm}\|\bar W$: constraints violated or barely kept
    ($\delta_i\le0.3\nu$), kept with a small gap, or well kept ($\delta_i>0.8\nu$).

    >>> from attnbook import theory
    >>> theory.bias.gap_set([-0.2, 0.5, 0.9], eps=0.5).tolist()
    [1, 2, 3]
    """
    nu = float(given.share("eps", eps)) / (1.0 - float(eps))
    found = check.frozen("gap", gap)
    return np.asarray(1 + (found > 0.3 * nu) + (found > 0.8 * nu), dtype=np.int64)


def waiting_constant(
    step: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    n: int,
    T: int,
    conditioning: ArrayLike,
    printed: bool = False,
) -> Array:
    r"""$c=\eta T(16n\Upsilon T^2\vee5)/(20\Lambda)$, from where $\log t$ dominates
    (bias, Theorem 5).

    The paper has $n\Upsilon(B^2\Lambda)^{-2}T^2$ in the maximum (``printed``), which inherits the
    factor of equation 36.

    >>> from attnbook import theory
    >>> c = theory.bias.waiting_constant(0.5, 1.0, 1.0, n=1, T=2, conditioning=2.718281828)
    >>> round(float(c), 3)
    8.699
    """
    eta, B, width = given.sizes(step, B, margin_norm)
    n, T = check.count("n", n), check.count("T", T, 2)
    samples = n * given.positive("conditioning", conditioning) * T**2
    samples = samples / (B**2 * width) ** 2 if printed else 16.0 * samples
    return np.asarray(eta * T * np.maximum(samples, 5.0) / (20.0 * width))


def waiting_time(
    step: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    n: int,
    T: int,
    conditioning: ArrayLike,
    printed: bool = False,
) -> Array:
    r"""$t_0=(10B\Lambda/\sqrt\eta)^3\vee c$: from when on the rate holds (bias, Theorem 5).

    The paper prints $\log c$ (``printed``, with $c$ as printed); its proof needs
    $\log t\ge\log c$, so that $t\ge c$.

    >>> from attnbook import theory
    >>> fast = dict(step=1.47, B=1.0, margin_norm=0.5, n=100, T=10, conditioning=2.718281828)
    >>> [round(float(theory.bias.waiting_time(**fast, printed=p))) for p in (True, False)]
    [70, 639340]
    """
    eta, B, width = given.sizes(step, B, margin_norm)
    c = waiting_constant(eta, B, width, n=n, T=T, conditioning=conditioning, printed=printed)
    return np.asarray(
        np.maximum((10.0 * B * width / np.sqrt(eta)) ** 3, np.log(c) if printed else c)
    )


def epsilon_schedule(t: ArrayLike, step: ArrayLike, B: ArrayLike, margin_norm: ArrayLike) -> Array:
    r"""$\epsilon_t=80B^2\Lambda^2\log t/(\eta t)$ (bias, proof of Theorem 5, for Lemma 7).

    At most 1 from $t=(10B\Lambda/\sqrt\eta)^3$ on.

    >>> from attnbook import theory
    >>> round(float(theory.bias.epsilon_schedule(2456, 0.5493, 1.0, 1.0)), 4)
    0.4629
    """
    steps = given.times(t, 2.0)
    eta, B, width = given.sizes(step, B, margin_norm)
    return np.asarray(80.0 * B**2 * width**2 * np.log(steps) / (eta * steps))


def rate_constant(
    step: ArrayLike, B: ArrayLike, margin_norm: ArrayLike, *, norm: ArrayLike, along: ArrayLike
) -> Array:
    r"""$C$ of normalized descent's rate, from the state at $t_0$ (bias, Theorem 5).

    $4B^2\Lambda(\|W_{t_0}\|-\langle W_{t_0},\bar W_{mm}\rangle+2B^2\Lambda(40\Lambda+\eta))/\eta$;
    ``norm`` is $\|W_{t_0}\|$ and ``along`` the inner product.

    >>> from attnbook import theory
    >>> C = theory.bias.rate_constant(0.5, 1.0, 0.5, norm=1.0, along=1.0)
    >>> float(C)  # never below 320 (B^2 Lambda)^3 / (eta B^2), here 80
    82.0
    """
    eta, B, width = given.sizes(step, B, margin_norm)
    missing = check.frozen("norm", norm) - check.frozen("along", along)
    if not (missing >= -1e-9 * (1.0 + np.abs(norm))).all():
        raise check.fail("along", "a component of at most the norm", along)
    size = B**2 * width
    return np.asarray(4.0 * size / eta * (missing + 2.0 * size * (40.0 * width + eta)))


def rate_bound(t: ArrayLike, constant: ArrayLike) -> Array:
    r"""$1-C(\log t)^2/t$: the cosine of $W_t$ and $W_{mm}$ at least (bias, Theorems 1 and 5).

    >>> from attnbook import theory
    >>> round(float(theory.bias.rate_bound(1e5, 82.0)), 4)
    0.8913
    """
    steps = given.times(t)
    return np.asarray(1.0 - given.positive("constant", constant) * np.log(steps) ** 2 / steps)


def saturation_exponent(
    t: ArrayLike, step: ArrayLike, B: ArrayLike, margin_norm: ArrayLike
) -> Array:
    r"""$\eta t/(8B^2\Lambda^2)$: the optimal logit's lead at least (bias, Lemma 8 and equation 38).

    >>> from attnbook import theory
    >>> round(float(theory.bias.saturation_exponent(2000, 0.025, 1.0, 8.0)), 4)
    0.0977
    """
    steps = given.times(t)
    eta, B, width = given.sizes(step, B, margin_norm)
    return np.asarray(eta * steps / (8.0 * B**2 * width**2))


def saturation_bound(
    t: ArrayLike, step: ArrayLike, B: ArrayLike, margin_norm: ArrayLike, *, T: int
) -> Array:
    r"""$(1+(T-1)e^{-\eta t/(8B^2\Lambda^2)})^{-1}$: attention on the optimal token at least
    (bias, Lemmas 1 and 8).

    >>> from attnbook import theory
    >>> bound = theory.bias.saturation_bound(2000, 0.025, 1.0, 8.0, T=6)
    >>> round(float(bound), 3)  # close to 1/6, where Figure 2 has reached .98
    0.181
    """
    T = check.count("T", T, 2)
    lead = saturation_exponent(t, step, B, margin_norm)
    return np.asarray(1.0 / (1.0 + (T - 1.0) * np.exp(-lead)))


def saturation_time(
    constant: ArrayLike, B: ArrayLike, margin_norm: ArrayLike, *, printed: bool = False
) -> Array:
    r"""From when on attention saturates, where this exceeds $t_0$ (bias, Lemma 8 and equation 38).

    The proof needs $t\ge2^{11}(B^2\Lambda)^4C(\log t)^2$; the paper prints
    $2^{11}(B^2\Lambda)^2C$ (``printed``), with exponent 2 and without the logarithm.

    >>> from attnbook import theory
    >>> time = theory.bias.saturation_time
    >>> [float(f"{float(time(320.0, 1.0, 1.0, printed=p)):.3g}") for p in (True, False)]
    [655000.0, 244000000.0]
    """
    C, B = given.positive("constant", constant), given.positive("B", B)
    size = B**2 * given.positive("margin_norm", margin_norm)
    if printed:
        return np.asarray(2.0**11 * size**2 * C)
    factor = np.maximum(2.0**11 * size**4 * C, np.exp(1.0) ** 2)  # t / (log t)^2 grows from e^2
    t = factor * np.log(factor) ** 2
    for _ in range(100):
        t = factor * np.log(t) ** 2
    return np.asarray(t)
