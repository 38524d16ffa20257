"""Other steps with a fixed decoder: GD (Theorem 6, Section 3.3) and Polyak (Theorem 7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.bias import _inputs as given
from attnlab import checks as check
from attnlab.checks import Array


def gd_step(B: ArrayLike, loss_scale: ArrayLike, *, T: int) -> Array:
    r"""$\log(2T-1)/(B^4\zeta)$, the largest step of gradient descent (bias, Theorem 6).

    ``loss_scale`` is $\zeta$.

    >>> from attnbook import theory
    >>> round(float(theory.bias.gd_step(1.0, 1.0, T=6)), 4)  # Figure 2 takes 0.25
    2.3979
    """
    T, B = check.count("T", T, 2), given.positive("B", B)
    return np.asarray(np.log(2.0 * T - 1.0) / (B**4 * given.positive("loss_scale", loss_scale)))


def gd_constant(
    eps: ArrayLike,
    step: ArrayLike,
    *,
    norm: ArrayLike,
    correlation: ArrayLike,
    loss: ArrayLike,
    B: ArrayLike | None = None,
    margin_norm: ArrayLike | None = None,
    printed: bool = False,
) -> Array:
    r"""$C$ of gradient descent's rate, from a state where Lemma 7 applies (bias, Theorem 6).

    $(1-\epsilon)\|W_{t_\epsilon}\|\big(1-(1-\epsilon)^{-1}\langle\bar W_{t_\epsilon},\bar
    W_{mm}\rangle+2\eta\|W_{t_\epsilon}\|^{-1}\mathcal L\big)$. The paper prints a minus before
    the loss and a factor $2B^2\Lambda/\eta$ in front (``printed``, which needs ``B`` and
    ``margin_norm``), which belongs to Theorem 9; with them the statement asks for more than it can
    at $t=t_\epsilon$ already.

    >>> from attnbook import theory
    >>> state = dict(norm=10.0, correlation=0.9, loss=0.4)
    >>> round(float(theory.bias.gd_constant(0.5, 0.5, **state)), 6)
    -3.8
    >>> wide = dict(B=1.0, margin_norm=1.0, printed=True)
    >>> round(float(theory.bias.gd_constant(0.5, 0.5, **state, **wide)), 6)
    -16.8
    """
    share, eta = given.share("eps", eps), given.positive("step", step)
    size, corr = given.positive("norm", norm), check.frozen("correlation", correlation)
    value = given.positive("loss", loss)
    sign = -1.0 if printed else 1.0
    inside = 1.0 - corr / (1.0 - share) + sign * 2.0 * eta * value / size
    front = np.asarray(1.0)
    if printed:
        if B is None or margin_norm is None:
            raise check.fail("B, margin_norm", "both, for the printed form", (B, margin_norm))
        front = 2.0 * given.positive("B", B) ** 2 * given.positive("margin_norm", margin_norm) / eta
    return np.asarray(front * (1.0 - share) * size * inside)


def gd_bound(eps: ArrayLike, norm: ArrayLike, constant: ArrayLike) -> Array:
    r"""$1-\epsilon-C/\|W_t\|$: the cosine of $W_t$ and $W_{mm}$ at least (bias, Theorem 6).

    >>> from attnbook import theory
    >>> float(theory.bias.gd_bound(0.25, 20.0, 5.0))
    0.5
    """
    share, size = given.share("eps", eps), given.positive("norm", norm)
    return np.asarray(1.0 - share - check.frozen("constant", constant) / size)


def gradient_bounds(
    best: ArrayLike, others: ArrayLike, B: ArrayLike, margin_norm: ArrayLike, *, beta: float
) -> tuple[Array, Array]:
    r"""$(\omega_1,\omega_2)$, between which gradient over loss lies (bias, Theorem 7).

    $\omega_1=\beta(1-\beta)\Lambda^{-1}\min_i(\gamma_{i\,\mathrm{opt}_i}-\gamma_i)$ and
    $\omega_2=\frac12B^2\max_i(\gamma_{i\,\mathrm{opt}_i}-\gamma_i)$. The lower bound needs
    $1-\beta\le\varphi_{i\,\mathrm{opt}_i}\le\beta$; the paper asks for the second half only.

    >>> from attnbook import theory
    >>> low, high = theory.bias.gradient_bounds([1.0], [0.0], 1.0, 1.0, beta=0.9)
    >>> round(float(low), 6), float(high)
    (0.09, 0.5)
    """
    top, rest = given.gaps(best, others)
    beta = check.number("beta", beta, above=0.0, below=1.0)
    width, gap = given.positive("margin_norm", margin_norm), top - rest
    low = beta * (1.0 - beta) / width * gap.min(axis=-1)
    return np.asarray(low), np.asarray(0.5 * given.positive("B", B) ** 2 * gap.max(axis=-1))


def polyak_step(B: ArrayLike, omega_1: ArrayLike, *, T: int) -> Array:
    r"""$(2B^2)^{-1}\omega_1\log(2T-1)$, the largest factor before Polyak's step (bias, Theorem 7).

    >>> from attnbook import theory
    >>> round(float(theory.bias.polyak_step(1.0, 0.09, T=2)), 5)  # experiments take 1/2
    0.04944
    """
    T, B = check.count("T", T, 2), given.positive("B", B)
    return np.asarray(given.positive("omega_1", omega_1) * np.log(2.0 * T - 1.0) / (2.0 * B**2))


def polyak_constant(
    step: ArrayLike,
    B: ArrayLike,
    margin_norm: ArrayLike,
    *,
    omegas: tuple[ArrayLike, ArrayLike],
    excess: ArrayLike,
    norm: ArrayLike,
    along: ArrayLike,
) -> Array:
    r"""$C$ of Polyak's rate (bias, Theorem 7).

    $4\eta^{-1}B^2\Lambda\omega_2\upsilon\big(\|W_{t_0}\|-\langle W_{t_0},\bar W_{mm}\rangle+
    2B^2\Lambda\omega_1^{-1}(40\Lambda+\eta\upsilon\omega_2\omega_1^{-1})\big)$ with ``excess``
    $\upsilon=\sup_{t\le T_0}\mathcal L_t/(\mathcal L_t-\mathcal L_*)$, which the paper does not
    define (and sets as $\nu$ in places): its proof uses this supremum. ``step`` is the factor
    before Polyak's step; ``norm`` and ``along`` are as in `rate_constant`.

    >>> from attnbook import theory
    >>> C = theory.bias.polyak_constant(
    ...     0.04, 1.0, 0.5, omegas=(0.2, 0.5), excess=2.0, norm=1.0, along=1.0)
    >>> round(float(C))
    5050
    """
    eta, B, width = given.sizes(step, B, margin_norm)
    low, high = given.positive("omega_1", omegas[0]), given.positive("omega_2", omegas[1])
    upsilon = given.positive("excess", excess)
    if not (upsilon >= 1.0).all():
        raise check.fail("excess", "numbers of at least 1", excess)
    missing = check.frozen("norm", norm) - check.frozen("along", along)
    size = B**2 * width
    inside = missing + 2.0 * size / low * (40.0 * width + eta * upsilon * high / low)
    return np.asarray(4.0 * size * high * upsilon / eta * inside)


def two_token_gd(t: ArrayLike, start: float, step: float) -> Array:
    r"""$\log(e^{W^{11}_0}+\eta t/e)$, gradient descent on two tokens (bias, Section 3.3).

    For $x_1=e_1$, $x_2=0$ only $W^{11}$ moves (from ``start``), and once attention is saturated
    $\dot w=\eta e^{-1-w}$.

    >>> from attnbook import theory
    >>> theory.bias.two_token_gd([1e2, 1e3, 3e3, 1e4, 1e5], start=0.1, step=1.0).round(4).tolist()
    [3.6348, 5.9108, 7.0074, 8.2106, 10.513]
    """
    steps = given.times(t, 0.0)
    start, step = check.number("start", start), check.number("step", step, above=0.0)
    return np.asarray(np.logaddexp(start, np.log(np.maximum(steps, 1e-300) * step) - 1.0))


def two_token_miss(along: ArrayLike, off: ArrayLike) -> Array:
    r"""$1-w/\sqrt{w^2+c}$: how far off $W_{mm}=e_1e_1^\top$ (bias, equation 3, Appendix A.4).

    ``along`` is $w=W^{11}>0$ and ``off`` $c=\|W_0\|^2-(W_0^{11})^2$, which does not change; about
    $c/(2w^2)$ for large $w$. Formed without cancellation.

    >>> from attnbook import theory
    >>> w = [0.1 + 0.1 * t for t in (100, 1000, 3000)]  # normalized steps of 0.1
    >>> [float(f"{x:.3e}") for x in theory.bias.two_token_miss(w, 0.29)]
    [0.001418, 1.447e-05, 1.61e-06]
    >>> float(f"{float(theory.bias.two_token_miss(10.5127, 0.29)):.2e}")  # GD after 1e5
    0.00131
    """
    w, c = given.positive("along", along), check.frozen("off", off)
    if not (c >= 0).all():
        raise check.fail("off", "numbers of at least 0", off)
    length = np.sqrt(w**2 + c)
    return np.asarray(c / (length * (length + w)))
