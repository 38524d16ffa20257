"""Theorems 1 to 4: head counts, step sizes, and what they guarantee."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.multihead._arguments import above, least, many, out
from attnbook.theory.multihead._bounds import beta1
from attnlab import checks as check
from attnlab.checks import Array

PURPOSES = {"training": 36.0, "generalization": 256.0}


def alpha(distance: ArrayLike, norm: ArrayLike, *, T: ArrayLike, d: ArrayLike, R: float) -> Array:
    r"""$\alpha(\theta)=3\sqrt dR^2[3\sqrt TR^3D+2\sqrt TR]$ with $D=3\delta+\|\theta\|_{2,\infty}$.

    Args:
        distance: $\delta=\|\theta-\theta_0\|$ of the target; $g_0(1/K)$ in the corollaries.
        norm: $\|\theta\|_{2,\infty}$ of the target; $g(1/K)$ in the corollaries.
        T: tokens in a sample.
        d: features in a token.
        R: length of the longest token, at least 1.

    Returns:
        $\alpha$, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> round(float(theory.multihead.alpha(1.0, 1.0, T=10, d=4, R=4.35**0.5)))
        9330

    Reference: multihead, Theorems 3 and 4, Corollaries 3 and 5.
    """
    D = 3.0 * least("distance", distance) + least("norm", norm)
    tokens, width = least("T", T, 1.0), least("d", d, 1.0)
    longest = check.number("R", R, least=1.0)
    inner = 3.0 * np.sqrt(tokens) * longest**3 * D + 2.0 * np.sqrt(tokens) * longest
    return out(3.0 * np.sqrt(width) * longest**2 * inner)


def rho(
    distance: ArrayLike,
    norm: ArrayLike,
    *,
    T: ArrayLike,
    d: ArrayLike,
    R: float,
    H: ArrayLike,
) -> Array:
    r"""The smoothness that limits the step, $\eta\le1/\rho(\theta)$.

    $$\rho=\Big(\frac{2\sqrt{Td}R^3}{\sqrt H}+\frac{TR^2}4\Big)\alpha^2.$$

    Args:
        distance: $\delta=\|\theta-\theta_0\|$ of the target; $g_0(1/K)$ in the corollaries.
        norm: $\|\theta\|_{2,\infty}$ of the target; $g(1/K)$ in the corollaries.
        T: tokens in a sample.
        d: features in a token.
        R: length of the longest token, at least 1.
        H: heads, ``inf`` for the limit.

    Returns:
        $\rho$, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> sizes = dict(T=10, d=4, R=4.35**0.5, H=4.7e10)
        >>> print(f"{1 / theory.multihead.rho(1.0, 1.0, **sizes):.1e}")
        1.1e-09

    Reference: multihead, Theorems 3 and 4.
    """
    tokens, width = least("T", T, 1.0), least("d", d, 1.0)
    longest = check.number("R", R, least=1.0)
    curved = 2.0 * np.sqrt(tokens * width) * longest**3 / np.sqrt(many("H", H))
    return out(
        (curved + tokens * longest**2 / 4.0) * alpha(distance, norm, T=tokens, d=width, R=R) ** 2
    )


def rho_order(
    distance: ArrayLike,
    norm: ArrayLike,
    *,
    T: ArrayLike,
    d: ArrayLike,
    R: float,
    H: ArrayLike = math.inf,
    printed: bool = False,
) -> Array:
    r"""The order of $\rho$, without constants.

    $$\rho\lesssim\Big(\frac{d^{3/2}T^{3/2}R^{13}}{\sqrt H}+dT^2R^{12}\Big)D^2,\qquad
    D=3\delta+\|\theta\|_{2,\infty}.$$
    The main text prints $d^{3/2}T^{3/2}R^{13}\|\theta\|_{2,\infty}^2\delta^2$: without
    $\sqrt H$, and without the term that is left when $H$ grows.

    Args:
        distance: $\delta=\|\theta-\theta_0\|$ of the target; $g_0(1/K)$ in Corollary 2.
        norm: $\|\theta\|_{2,\infty}$ of the target; $g_0(1/K)$ in Corollary 2.
        T: tokens in a sample.
        d: features in a token.
        R: length of the longest token, at least 1.
        H: heads, ``inf`` for the limit; the printed order has none.
        printed: the order of the main text.

    Returns:
        The order, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> sizes = dict(distance=1.0, norm=1.0, T=100, d=1, R=1.0)
        >>> [float(theory.multihead.rho_order(**sizes, printed=p)) for p in (True, False)]
        [1000.0, 160000.0]

    Reference: multihead, Theorem 1 and Corollary 2.
    """
    away, size = least("distance", distance), least("norm", norm)
    tokens, width = least("T", T, 1.0), least("d", d, 1.0)
    longest = check.number("R", R, least=1.0)
    mixed = width**1.5 * tokens**1.5 * longest**13
    if printed:
        return out(mixed * size**2 * away**2)
    square = (3.0 * away + size) ** 2
    return out((mixed / np.sqrt(many("H", H)) + width * tokens**2 * longest**12) * square)


def H_min(
    distance: ArrayLike,
    norm: ArrayLike,
    *,
    T: ArrayLike,
    d: ArrayLike,
    R: float,
    purpose: str = "training",
    sharp: bool = False,
) -> Array:
    r"""How many heads the theorems ask for.

    $$\sqrt H\ge c\sqrt{Td}R^3\big(3\sqrt dR^2D+1\big)\delta^2=\tfrac c2\,\beta_3(D)\,\delta^2,
    \qquad D=3\delta+\|\theta\|_{2,\infty},$$
    with $c=36$ for training and $256$ for generalization.

    Args:
        distance: $\delta=\|\theta-\theta_0\|$ of the target; $g_0(1/K)$ in the corollaries.
        norm: $\|\theta\|_{2,\infty}$ of the target; $g(1/K)$ in the corollaries.
        T: tokens in a sample.
        d: features in a token.
        R: length of the longest token, at least 1.
        purpose: ``"training"`` or ``"generalization"``.
        sharp: $\beta_3$ in the form without $d$, with which the proofs go through as they stand.

    Returns:
        The least $H$ (not rounded), a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> sizes = dict(T=10, d=4, R=4.35**0.5)
        >>> print(f"{theory.multihead.H_min(1.0, 1.0, **sizes):.1e}")
        4.7e+10
        >>> print(f"{theory.multihead.H_min(1.0, 1.0, **sizes, sharp=True):.1e}")
        3.4e+08
        >>> print(f"{theory.multihead.H_min(5.0, 1.0, **sizes):.1e}")
        4.7e+14
        >>> few = theory.multihead.H_min(0.1, 0.1, T=2, d=1, R=1.0)  # within reach
        >>> many = theory.multihead.H_min(0.1, 0.1, T=2, d=1, R=1.0, purpose="generalization")
        >>> round(float(few), 2), round(float(many / few), 3)
        (1.25, 50.568)

    Reference: multihead, Theorems 3 and 4, Corollaries 3 and 4.
    """
    constant = PURPOSES[check.choice("purpose", purpose, PURPOSES)]
    away = least("distance", distance)
    D = 3.0 * away + least("norm", norm)
    tokens, width = least("T", T, 1.0), least("d", d, 1.0)
    longest = check.number("R", R, least=1.0)
    if sharp:
        root = 0.5 * np.sqrt(tokens) * longest**3 * (2.0 * longest**2 * D + 1.0)
    else:
        root = np.sqrt(tokens * width) * longest**3 * (3.0 * np.sqrt(width) * longest**2 * D + 1.0)
    return out((constant * root * away**2) ** 2)


def step_size(
    distance: ArrayLike, target_loss: ArrayLike, start_loss: ArrayLike, rho: ArrayLike, K: int
) -> Array:
    r"""The largest step of Theorems 1 to 4.

    $$\eta=1\wedge\frac1\rho\wedge\frac{\delta^2}{K\hat L(\theta)}\wedge
    \frac{\delta^2}{\hat L(\theta_0)}.$$

    Args:
        distance: $\delta=\|\theta-\theta_0\|$ of the target.
        target_loss: $\hat L(\theta)$.
        start_loss: $\hat L(\theta_0)$.
        rho: $\rho(\theta)$.
        K: steps.

    Returns:
        $\eta$, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.step_size(1.0, 0.5, 0.7, 4.0, K=4))
        0.25

    Reference: multihead, Theorems 1 and 3.
    """
    square, steps = above("distance", distance) ** 2, check.count("K", K)
    first, last = above("start_loss", start_loss), above("target_loss", target_loss)
    limit = np.minimum(1.0, 1.0 / above("rho", rho))
    return out(np.minimum(limit, np.minimum(square / (steps * last), square / first)))


def training_bound(
    target_loss: ArrayLike, distance: ArrayLike, *, eta: ArrayLike, K: ArrayLike
) -> Array:
    r"""Mean loss of the iterates: at most $2\hat L(\theta)+\frac{5\delta^2}{4\eta K}$.

    Args:
        target_loss: $\hat L(\theta)$.
        distance: $\delta=\|\theta-\theta_0\|$ of the target.
        eta: step size.
        K: steps.

    Returns:
        The bound, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.training_bound(0.1, 1.0, eta=0.5, K=10))
        0.45

    Reference: multihead, Theorems 1 and 3, equation 4.
    """
    loss, square = least("target_loss", target_loss), least("distance", distance) ** 2
    return out(2.0 * loss + 5.0 * square / (4.0 * above("eta", eta) * above("K", K)))


def generalization_bound(
    target_loss: ArrayLike, distance: ArrayLike, *, eta: ArrayLike, K: ArrayLike, n: ArrayLike
) -> Array:
    r"""Expected gap: at most $\frac4n\big(2K\hat L(\theta)+\frac{9\delta^2}{4\eta}\big)$.

    Args:
        target_loss: $\hat L(\theta)$ (its mean over training sets).
        distance: $\delta=\|\theta-\theta_0\|$ of the target.
        eta: step size.
        K: steps.
        n: samples.

    Returns:
        The bound, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> float(theory.multihead.generalization_bound(0.1, 1.0, eta=0.5, K=10, n=100))
        0.26

    Reference: multihead, Theorems 2 and 4, equation 5.
    """
    return out(4.0 * _budget(target_loss, distance, eta, K) / above("n", n))


def stability_bound(
    target_loss: ArrayLike,
    distance: ArrayLike,
    norm: ArrayLike,
    *,
    eta: ArrayLike,
    K: ArrayLike,
    n: ArrayLike,
    T: ArrayLike,
    R: ArrayLike,
) -> Array:
    r"""How far leaving one sample out moves the last iterate, on average.

    $$\frac1n\sum_i\|\theta_K-\theta_K^{\neg i}\|\le\frac{2\eta}n\sqrt TR(2R^2D+1)
    \Big(2K\hat L(\theta)+\frac{9\delta^2}{4\eta}\Big),\qquad D=3\delta+\|\theta\|_{2,\infty}.$$

    Args:
        target_loss: $\hat L(\theta)$.
        distance: $\delta=\|\theta-\theta_0\|$ of the target.
        norm: $\|\theta\|_{2,\infty}$ of the target.
        eta: step size.
        K: steps.
        n: samples.
        T: tokens in a sample.
        R: length of the longest token.

    Returns:
        The bound, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> round(float(theory.multihead.stability_bound(
        ...     0.1, 1.0, 1.0, eta=0.5, K=10, n=100, T=4, R=1.0)), 4)
        1.17

    Reference: multihead, Lemma 11.
    """
    D = 3.0 * least("distance", distance) + least("norm", norm)
    lipschitz = beta1(D, T=T, R=R)
    budget = _budget(target_loss, distance, eta, K)
    return out(2.0 * above("eta", eta) * lipschitz * budget / above("n", n))


def _budget(loss: ArrayLike, distance: ArrayLike, eta: ArrayLike, K: ArrayLike) -> Array:
    r"""$2K\hat L(\theta)+9\delta^2/(4\eta)$, twice the sum of the losses along the run."""
    square = least("distance", distance) ** 2
    return out(
        2.0 * above("K", K) * least("target_loss", loss) + 9.0 * square / (4.0 * above("eta", eta))
    )
