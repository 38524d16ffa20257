r"""Lemmas 5 to 11 and 20: norms of Gaussian matrices, and how the layers move."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.encoder._bars import Bars
from attnbook.theory.encoder._convergence import rho
from attnlab import checks as check
from attnlab.checks import Array


def lemma_5_interval(d1: int, d2: int, zeta: float) -> tuple[float, float]:
    r"""Where singular values of a standard Gaussian matrix lie, $\sqrt{d_1}\pm(\sqrt{d_2}+\zeta)$.

    Lemma 5 (Vershynin, Corollary 5.35), but for a probability `lemma_5_failure`.

    >>> from attnbook import theory
    >>> theory.encoder.lemma_5_interval(100, 25, 2.0)
    (3.0, 17.0)
    """
    rows, columns = check.count("d1", d1), check.count("d2", d2)
    slack = float(np.sqrt(columns)) + check.number("zeta", zeta, least=0.0)
    return float(np.sqrt(rows)) - slack, float(np.sqrt(rows)) + slack


def lemma_5_failure(zeta: float) -> float:
    r"""Probability that Lemma 5 may fail with, $2e^{-\zeta^2/2}$; Lemma 6 has $\zeta=\sqrt{d_m}$.

    >>> from attnbook import theory
    >>> round(theory.encoder.lemma_5_failure(2.0), 4)
    0.2707
    """
    return float(min(1.0, 2.0 * np.exp(-0.5 * check.number("zeta", zeta, least=0.0) ** 2)))


def lemma_6_bound(width: int, radius: float = 0.0) -> float:
    r"""$\|W\|_2\le3\sqrt{d_m}$ at the start, $R+3\sqrt{d_m}$ within ``radius`` $R$ (Lemmas 6, 20).

    For standard Gaussian entries and $d_m>d$, with probability at least $1-2e^{-d_m/2}$. A single
    column (Lemma 20) has length close to $\sqrt{d_m}$, so that 3 is generous there.

    >>> from attnbook import theory
    >>> theory.encoder.lemma_6_bound(100), theory.encoder.lemma_6_bound(100, radius=2.0)
    (30.0, 32.0)
    """
    reach = check.number("radius", radius, least=0.0)
    return reach + 3.0 * float(np.sqrt(check.count("width", width)))


def lemma_7_bound(
    bars: Bars, moved_Q: ArrayLike, moved_K: ArrayLike, *, sharp: bool = False
) -> Array:
    r"""How far one row of attention moves with $W_Q$ and $W_K$ (Lemma 7).

    $\|\beta_i'-\beta_i\|_2\le2\tau_0C_x^2d_s(\bar\lambda_Q\|\Delta W_K\|_2
    +\bar\lambda_K\|\Delta W_Q\|_2)$; softmax is 1-Lipschitz from $\ell_\infty$ to $\ell_1$, so 1
    may stand for 2 (sharp). ``bars`` are those of both points, ``moved_Q`` is $\|\Delta W_Q\|_2$.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=3.0, V=2.0, O=1.0)
    >>> float(theory.encoder.lemma_7_bound(b, 0.1, 0.2).round(6))
    0.28
    """
    dQ, dK = _moves(moved_Q=moved_Q, moved_K=moved_K)
    factor = 1.0 if sharp else 2.0
    inner = bars.Q * dK + bars.K * dQ
    return np.asarray(factor * bars.tau0 * bars.Cx**2 * bars.T * inner)


def lemma_8_interval(T: int) -> tuple[float, float]:
    r"""Lengths of a row of attention: $1/\sqrt{d_s}\le\|\beta\|_2\le1$ (Lemma 8).

    Equality at the uniform row and at one-hot rows.

    >>> from attnbook import theory
    >>> theory.encoder.lemma_8_interval(4)
    (0.5, 1.0)
    """
    return float(check.count("T", T)) ** -0.5, 1.0


def lemma_9_bound(bars: Bars, moved_Q: ArrayLike, moved_K: ArrayLike, moved_V: ArrayLike) -> Array:
    r"""How far the hidden layer moves (Lemma 9).

    $\|\Delta F_{pre}\|_F\le\rho\big(\|\Delta W_V\|_2+2\bar\lambda_V\tau_0C_x^2d_s
    (\bar\lambda_Q\|\Delta W_K\|_2+\bar\lambda_K\|\Delta W_Q\|_2)\big)$.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(1, 1, 1.0, 0.1, 1.0, Q=2.0, K=3.0, V=2.0, O=1.0)
    >>> float(theory.encoder.lemma_9_bound(b, 0.1, 0.2, 0.3).round(6))
    0.58
    """
    (dV,) = _moves(moved_V=moved_V)
    return np.asarray(rho(bars) * (dV + bars.V * lemma_7_bound(bars, moved_Q, moved_K)))


def lemma_10_bound(bars: Bars, moved_O: ArrayLike, moved_F: ArrayLike) -> Array:
    r"""$\|f'-f\|_2\le\rho\bar\lambda_V\|\Delta w_O\|+\bar\lambda_O\|\Delta F_{pre}\|_F$ (Lemma 10).

    Because $\|F_{pre}\|_2\le\rho\|W_V\|_2$.

    >>> from attnbook import theory
    >>> b = theory.encoder.Bars(4, 1, 1.0, 0.1, 1.0, Q=2.0, K=3.0, V=2.0, O=1.0)
    >>> float(theory.encoder.lemma_10_bound(b, 0.1, 0.5).round(6))
    0.9
    """
    dO, dF = _moves(moved_O=moved_O, moved_F=moved_F)
    return np.asarray(rho(bars) * bars.V * dO + bars.O * dF)


def softmax_jacobian(weights: ArrayLike) -> Array:
    r"""$J=\mathrm{diag}(v)-vv^\top$, the derivative of $v=\mathrm{softmax}(u)$ (Lemma 11).

    $J\mathbf1=0$, $x^\top Jx=\mathrm{Var}_v(x)$ and $\|J\|_2\le\frac12$ (the paper uses 2), with
    equality at two tokens of weight one half. ``weights`` $v$ lie on the simplex.

    >>> from attnbook import theory
    >>> theory.encoder.softmax_jacobian([0.5, 0.5]).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    v = check.frozen("weights", weights, ndim=1)
    if (v < 0.0).any() or not np.allclose(v.sum(axis=-1), 1.0, atol=1e-9):
        raise check.fail("weights", "rows of the simplex", weights)
    return np.asarray(v[..., None] * (np.eye(v.shape[-1]) - v[..., None, :]))


def _moves(**moves: ArrayLike) -> list[Array]:
    found = []
    for name, value in moves.items():
        size = check.frozen(name, value)
        if (size < 0.0).any():
            raise check.fail(name, "a norm", size.tolist())
        found.append(size)
    return found
