"""Joint training: model DM, Conditions 1 and 2, and the bounds of Lemmas 9 and 13 on the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.bias import _inputs as given
from attnlab import checks as check
from attnlab.checks import Array


def _sizes(alpha: object, rho: object) -> tuple[float, float]:
    return check.number("alpha", alpha, above=1.0), check.number("rho", rho, above=0.0)


def token_bound(alpha: float, rho: float, d: int) -> float:
    r"""$B=\alpha\rho\sqrt{1.5d}$, which bounds all tokens of model DM (bias, Condition 1).

    With high probability. Condition 1 wants it to be at least 1.

    >>> from attnbook import theory
    >>> round(theory.bias.token_bound(3.0, 0.1, 100), 3)  # Figure 3
    3.674
    """
    alpha, rho = _sizes(alpha, rho)
    return float(alpha * rho * np.sqrt(1.5 * check.count("d", d)))


def dimension_needed(alpha: float, n: int, delta: float, *, constant: float = 1.0) -> float:
    r"""$C\alpha^4n^4\log(10n^2/\delta)$, the least width (bias, Conditions 1 and 2).

    $C$ is open in the paper; what the proof of Lemma 11 collects is $(2^{10}\cdot24)^2\approx
    6\cdot10^8$.

    >>> from attnbook import theory
    >>> round(theory.bias.dimension_needed(3.0, 10, 0.1))  # Figure 3 has d = 100
    7460376
    """
    alpha, (n, log) = check.number("alpha", alpha, above=1.0), given.log_pairs(n, delta)
    return check.number("constant", constant, above=0.0) * alpha**4 * n**4 * log


def joint_step(alpha: float, rho: float, *, n: int, d: int) -> float:
    r"""The largest step of joint training (bias, Condition 2).

    $\frac1{18\alpha^2\rho^2d}\wedge\frac{\alpha\rho}{160n}\wedge\frac{\log2}{3B}\wedge
    \frac B{128\omega_0\sqrt{1.5n}}$ with $\omega_0=13(B\vee1)^5(B\vee d)$.

    >>> from attnbook import theory
    >>> float(f"{theory.bias.joint_step(3.0, 0.1, n=10, d=100):.2g}")  # Figure 3 takes 0.002
    8.5e-09
    >>> 0.3 / (160 * 10)  # the second of the four there
    0.0001875
    """
    B, n = token_bound(alpha, rho, d), check.count("n", n)
    return float(
        min(
            1.0 / (18.0 * alpha**2 * rho**2 * d),
            alpha * rho / (160.0 * n),
            np.log(2.0) / (3.0 * B),
            B / (128.0 * float(curvature_bound(0.0, B, d)) * np.sqrt(1.5 * n)),
        )
    )


def joint_step_simple(B: float, *, n: int, d: int, constant: float) -> float:
    r"""$(C_2\sqrt nB^4(B\vee d))^{-1}$, the largest step of joint training (bias, Condition 1).

    With $C_2=128\cdot13\sqrt{1.5}$ and $B\ge1$ it is the last of the four bounds of Condition 2.

    >>> from attnbook import theory
    >>> step = theory.bias.joint_step_simple(1.0, n=2, d=100, constant=1664 * 1.5**0.5)
    >>> float(f"{step:.3g}")
    3.47e-06
    """
    B, n, d = check.number("B", B, least=1.0), check.count("n", n), check.count("d", d)
    constant = check.number("constant", constant, above=0.0)
    return float(1.0 / (constant * n**0.5 * B**4 * max(B, d)))


def product_bounds(
    alpha: float, rho: float, *, n: int, d: int, delta: float
) -> tuple[float, float, float]:
    r"""How large inner products of different samples' tokens get (bias, Lemma 9, $E_3$ to $E_5$).

    $2\alpha^2\rho^2L$ between optimal tokens, $2\rho^2L$ between others and $2\alpha\rho^2L$
    between one of each, $L=\sqrt{d\log(10n^2/\delta)}$, all at once with probability $1-\delta$.

    >>> from attnbook import theory
    >>> bounds = theory.bias.product_bounds(3.0, 0.1, n=10, d=100, delta=0.1)
    >>> [round(bound, 3) for bound in bounds]
    [5.463, 0.607, 1.821]
    """
    alpha, rho = _sizes(alpha, rho)
    n, log = given.log_pairs(n, delta)
    size = 2.0 * rho**2 * float(np.sqrt(check.count("d", d) * log))
    return alpha**2 * size, size, alpha * size


def omega_1(alpha: float, rho: float, *, n: int, d: int) -> float:
    r"""$\omega_1=\frac{\alpha\rho}8\sqrt{d/n}=B/(8\sqrt{1.5n})$ (bias, Lemma 13 and Theorem 8).

    The decoder's gradient is at least so many times the loss.

    >>> from attnbook import theory
    >>> round(theory.bias.omega_1(3.0, 0.1, n=10, d=100), 3)  # measured there: .47 to .61
    0.119
    """
    return token_bound(alpha, rho, d) / float(8.0 * np.sqrt(1.5 * check.count("n", n)))


def omega_2(alpha: float, rho: float, *, n: int, delta: float) -> float:
    r"""$\omega_2=\frac{\alpha\rho}n\sqrt{\log(10n^2/\delta)}$, the score gap's rate
    (bias, Lemma 11).

    >>> from attnbook import theory
    >>> round(theory.bias.omega_2(3.0, 0.1, n=10, delta=0.1), 4)
    0.091
    """
    alpha, rho = _sizes(alpha, rho)
    n, log = given.log_pairs(n, delta)
    return alpha * rho / n * float(np.sqrt(log))


def common_margin(alpha: float, rho: float, *, n: int, d: int) -> float:
    r"""$\frac{\alpha\rho}4\sqrt{d/n}$: margin of $\tilde u=\sum_iy_ix_{i\,\mathrm{opt}_i}$
    (bias, Lemma 12).

    A lower bound on $\langle y_j(x_{j\,\mathrm{opt}_j}+x_{j\tau}),\tilde u/\|\tilde u\|\rangle$.

    >>> from attnbook import theory
    >>> margin = theory.bias.common_margin
    >>> round(margin(3.0, 0.1, n=10, d=100), 3), round(margin(6.0, 0.1, n=4, d=4000), 2)
    (0.237, 4.74)
    """
    alpha, rho = _sizes(alpha, rho)
    return alpha * rho / 4.0 * float(np.sqrt(check.count("d", d) / check.count("n", n)))


def curvature_bound(norm: ArrayLike, B: float, d: int) -> Array:
    r"""$\omega(\theta)=13(B\vee1)^5(B\vee d)(\|u\|\vee1)^2$ (bias, Lemma 13).

    8 times it bounds the Hessian's norm over the loss between two steps; ``norm`` is $\|u\|$, and
    at most 1 it gives $\omega_0$ of Condition 2.

    >>> from attnbook import theory
    >>> theory.bias.curvature_bound([0.5, 2.0], 1.0, 100).tolist()
    [1300.0, 5200.0]
    """
    length = check.frozen("norm", norm)
    if not (length >= 0).all():
        raise check.fail("norm", "numbers of at least 0", norm)
    B, d = check.number("B", B, above=0.0), check.count("d", d)
    return np.asarray(13.0 * max(B, 1.0) ** 5 * max(B, d) * np.maximum(length, 1.0) ** 2)


def power_sum(t: ArrayLike, *, printed: bool = False) -> Array:
    r"""$\sum_{t'=0}^{t-1}(t'+1)^{-2/3}$: the decoder's steps over $\eta$ (bias, Lemmas 10 and 11).

    Lemma 11 prints $(t+1)^{-2/3}$ inside the sum, which makes it $t(t+1)^{-2/3}$ (``printed``):
    smaller, so that what is printed is true where what is meant is. ``t`` are whole numbers.

    >>> from attnbook import theory
    >>> theory.bias.power_sum([1, 8, 1000]).round(3).tolist()
    [1.0, 3.676, 27.557]
    >>> theory.bias.power_sum([1, 8, 1000], printed=True).round(3).tolist()
    [0.63, 1.849, 9.993]
    """
    steps = given.times(t)
    if not (steps == np.round(steps)).all():
        raise check.fail("t", "whole numbers", t)
    if printed:
        return np.asarray(steps * (steps + 1.0) ** (-2.0 / 3.0))
    sums = np.cumsum(np.arange(1.0, steps.max() + 1.0) ** (-2.0 / 3.0))
    return np.asarray(sums[steps.astype(np.int64) - 1])
