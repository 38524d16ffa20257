r"""The constants of Appendix C.2: how fast outputs and gradients may change, and the step size."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import least
from attnbook.theory.encoder._bars import Bars
from attnbook.theory.encoder._convergence import gradient_factors, rho
from attnlab.checks import Array


def c1(bars: Bars, *, printed: bool = False) -> Array:
    r"""Lipschitz constant of the outputs, $\|f'-f\|\le c_1\|\theta'-\theta\|$ (equation 36).

    $c_1=\rho(\bar\lambda_V+\bar\lambda_O
    +2\tau_0C_x^2d_s\bar\lambda_O\bar\lambda_V(\bar\lambda_Q+\bar\lambda_K))$; in print the last
    term lacks $\bar\lambda_O$.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=3.0)
    >>> [float(theory.encoder.c1(b, printed=p).round(3)) for p in (False, True)]
    [82.59, 46.386]
    """
    inner = 2.0 * bars.tau0 * bars.Cx**2 * bars.T * bars.V * (bars.Q + bars.K)
    factor = 1.0 if printed else bars.O
    return np.asarray(rho(bars) * (bars.V + bars.O + factor * inner))


def c2(bars: Bars) -> Array:
    r"""$\|\nabla_\theta f\|_2\le c_2$, so $\lambda_{\max}(K)\le c_2^2$ (Lemma 13, equation 11).

    The root of the sum of squares of `gradient_factors`.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> float(theory.encoder.c2(b).round(3))
    17.996
    """
    return np.asarray(np.sqrt(sum(c**2 for c in gradient_factors(bars).values())))


def lemma_14_z(bars: Bars) -> Array:
    r"""The $z=2\tau_0C_x^2d_s(\bar\lambda_Q+\bar\lambda_K)$ of Lemma 14 (not Proposition 1's).

    It bounds how fast attention moves: $\|\beta_i'-\beta_i\|\le z\|\theta'-\theta\|$.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> float(theory.encoder.lemma_14_z(b).round(6))
    1.6
    """
    return np.asarray(2.0 * bars.tau0 * bars.Cx**2 * bars.T * (bars.Q + bars.K))


def c3(bars: Bars, *, printed: bool = False) -> Array:
    r"""Lipschitz constant of the Jacobian that Lemma 14 claims, valid between kinks of relu only.

    Equation 14: with $A=\bar\lambda_OC_x\sqrt{d_s}(1+\bar\lambda_Vz)+1$,
    $$\begin{aligned}c_3^2=N(\tau_1C_xd_s^{3/2})^2\big[(1+\bar\lambda_Vz)^2
    +(\bar\lambda_Oz+A)^2\big]
    &+N\big(\tau_0\tau_1C_xd_s^{3/2}\{2\bar\lambda_Kd_sC_x^2[\bar\lambda_VA+\bar\lambda_O]
    +\bar\lambda_V\bar\lambda_OC_x^2d_s(1+3\bar\lambda_Kz)\}\big)^2\\
    &+\text{the same with }\bar\lambda_Q.\end{aligned}$$
    Printed are $d_s$ for $d_s^{3/2}$ in the last two terms (a row may be as long as
    $\sqrt{d_s}C_x$), $C_x^2d_s+3\bar\lambda_Kz$ for $C_x^2d_s(1+3\bar\lambda_Kz)$, and
    $\bar\lambda_K$ with that 3 also in the term of $W_K$.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(1, 1, 2.0, 0.1, 1.0, Q=3.0, K=2.0, V=2.0, O=1.0)
    >>> [float(theory.encoder.c3(b, printed=p).round(3)) for p in (False, True)]
    [300.52, 245.558]
    """
    zeta, size = lemma_14_z(bars), bars.Cx**2 * bars.T
    A = bars.O * bars.Cx * np.sqrt(bars.T) * (1.0 + bars.V * zeta) + 1.0
    head = bars.pool * bars.Cx * bars.T**1.5
    deep = bars.tau0 * bars.pool * bars.Cx * (bars.T if printed else bars.T**1.5)
    total = (head * (1.0 + bars.V * zeta)) ** 2 + (head * (bars.O * zeta + A)) ** 2
    for other, third in ((bars.K, bars.K), (bars.Q, bars.K if printed else bars.Q)):
        turn = size + 3.0 * third * zeta if printed else size * (1.0 + 3.0 * third * zeta)
        inner = 2.0 * other * size * (bars.V * A + bars.O) + bars.V * bars.O * turn
        total = total + (deep * inner) ** 2
    return np.asarray(np.sqrt(bars.n * total))


def smoothness(bars: Bars, loss: ArrayLike, *, printed: bool = False) -> Array:
    r"""$C=c_1c_2+c_3\sqrt{2\ell(\theta^0)}$ behind the step size $\gamma\le1/C$ (equation 37).

    In print it is $c_1c_2+2c_3\ell(\theta^0)$. Every term grows like $N$ at least, so the step size
    is of order $1/N$, not $N^{-1/2}$. Because $c_3$ holds only between kinks, $C$ is not a proven
    smoothness constant.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(1, 1, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> [float(theory.encoder.smoothness(b, 2.0, printed=p).round(2)) for p in (False, True)]
    [27.72, 43.91]
    """
    value = least("loss", loss)
    start = 2.0 * value if printed else np.sqrt(2.0 * value)
    jump = c3(bars, printed=printed) * start
    return np.asarray(c1(bars, printed=printed) * c2(bars) + jump)
