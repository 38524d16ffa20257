"""Theorems 1 to 4: head counts, step sizes, and what they guarantee."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import above, least, many, out, sizes
from attnbook.theory.multihead._bounds import beta1
from attnlab import checks as check
from attnlab.checks import Array

PURPOSES = {"training": 36.0, "generalization": 256.0}


def rho(
    distance: ArrayLike, norm: ArrayLike, *, T: ArrayLike, d: ArrayLike, R: float, H: ArrayLike
) -> Array:
    r"""The smoothness that limits the step, $\eta\le1/\rho(\theta)$ (Theorems 3 and 4).

    $$\rho=\Big(\frac{2\sqrt{Td}R^3}{\sqrt H}+\frac{TR^2}4\Big)\alpha^2,\qquad
    \alpha=3\sqrt dR^2[3\sqrt TR^3D+2\sqrt TR].$$

    >>> from attnbook import theory
    >>> sizes = dict(T=10, d=4, R=4.35**0.5, H=4.7e10)
    >>> print(f"{1 / theory.multihead.rho(1.0, 1.0, **sizes):.1e}")
    1.1e-09
    """
    tokens, width, longest = sizes(T, d, R)
    curved = 2.0 * np.sqrt(tokens * width) * longest**3 / np.sqrt(many("H", H))
    D = 3.0 * least("distance", distance) + least("norm", norm)
    inner = 3.0 * np.sqrt(tokens) * longest**3 * D + 2.0 * np.sqrt(tokens) * longest
    alpha = out(3.0 * np.sqrt(width) * longest**2 * inner)
    return out((curved + tokens * longest**2 / 4.0) * alpha**2)


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
    r"""The order of $\rho$, without constants (Theorem 1 and Corollary 2).

    $$\rho\lesssim\Big(\frac{d^{3/2}T^{3/2}R^{13}}{\sqrt H}+dT^2R^{12}\Big)D^2.$$
    The main text prints $d^{3/2}T^{3/2}R^{13}\|\theta\|_{2,\infty}^2\delta^2$: without
    $\sqrt H$, and without the term that is left when $H$ grows.

    >>> from attnbook import theory
    >>> sizes = dict(distance=1.0, norm=1.0, T=100, d=1, R=1.0)
    >>> [float(theory.multihead.rho_order(**sizes, printed=p)) for p in (True, False)]
    [1000.0, 160000.0]
    """
    away, size = least("distance", distance), least("norm", norm)
    tokens, width, longest = sizes(T, d, R)
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
    r"""How many heads the theorems ask for, not rounded (Theorems 3 and 4, Corollaries 3 and 4).

    $$\sqrt H\ge c\sqrt{Td}R^3\big(3\sqrt dR^2D+1\big)\delta^2=\tfrac c2\,\beta_3(D)\,\delta^2,$$
    with $c=36$ for ``"training"`` and $256$ for ``"generalization"``. Sharp has $\beta_3$ in the
    form without $d$, with which the proofs go through as they stand.

    >>> from attnbook import theory
    >>> f, sizes = theory.multihead.H_min, dict(T=10, d=4, R=4.35**0.5)
    >>> print(f"{f(1, 1, **sizes):.1e} {f(1, 1, **sizes, sharp=True):.1e} {f(5, 1, **sizes):.1e}")
    4.7e+10 3.4e+08 4.7e+14
    >>> few = f(0.1, 0.1, T=2, d=1, R=1.0)  # within reach
    >>> many = f(0.1, 0.1, T=2, d=1, R=1.0, purpose="generalization")
    >>> round(float(few), 2), round(float(many / few), 3)
    (1.25, 50.568)
    """
    constant = PURPOSES[check.choice("purpose", purpose, PURPOSES)]
    away = least("distance", distance)
    D = 3.0 * away + least("norm", norm)
    tokens, width, longest = sizes(T, d, R)
    if sharp:
        root = 0.5 * np.sqrt(tokens) * longest**3 * (2.0 * longest**2 * D + 1.0)
    else:
        root = np.sqrt(tokens * width) * longest**3 * (3.0 * np.sqrt(width) * longest**2 * D + 1.0)
    return out((constant * root * away**2) ** 2)


def step_size(
    distance: ArrayLike, target_loss: ArrayLike, start_loss: ArrayLike, rho: ArrayLike, K: int
) -> Array:
    r"""$\eta=1\wedge\frac1\rho\wedge\frac{\delta^2}{K\hat L(\theta)}\wedge
    \frac{\delta^2}{\hat L(\theta_0)}$, the largest step of Theorems 1 to 4.

    >>> from attnbook import theory
    >>> float(theory.multihead.step_size(1.0, 0.5, 0.7, 4.0, K=4))
    0.25
    """
    square, steps = above("distance", distance) ** 2, check.count("K", K)
    first, last = above("start_loss", start_loss), above("target_loss", target_loss)
    limit = np.minimum(1.0, 1.0 / above("rho", rho))
    return out(np.minimum(limit, np.minimum(square / (steps * last), square / first)))


def training_bound(
    target_loss: ArrayLike, distance: ArrayLike, *, eta: ArrayLike, K: ArrayLike
) -> Array:
    r"""Mean loss of the iterates: at most $2\hat L(\theta)+\frac{5\delta^2}{4\eta K}$ (equation 4).

    Theorems 1 and 3. Realizable data (Corollaries 2, 3 and 5) have a target of loss $1/K$ at
    distance $g_0(1/K)$. With $g_0=\sqrt2(2B_\Phi+\log K)/\gamma$ that is Corollary 5 with
    $5(\cdot)^2/(2\gamma^2\eta K)$, where 5/4 is printed.

    >>> from attnbook import theory
    >>> float(theory.multihead.training_bound(0.1, 1.0, eta=0.5, K=10))
    0.45
    >>> float(theory.multihead.training_bound(1 / 10, 2.0, eta=0.5, K=10))  # g_0(1/K) = 2
    1.2
    """
    loss, square = least("target_loss", target_loss), least("distance", distance) ** 2
    return out(2.0 * loss + 5.0 * square / (4.0 * above("eta", eta) * above("K", K)))


def generalization_bound(
    target_loss: ArrayLike, distance: ArrayLike, *, eta: ArrayLike, K: ArrayLike, n: ArrayLike
) -> Array:
    r"""Expected gap: $\frac4n\big(2K\hat L(\theta)+\frac{9\delta^2}{4\eta}\big)$ (equation 5).

    Theorems 2 and 4; ``target_loss`` is the mean over training sets.

    >>> from attnbook import theory
    >>> float(theory.multihead.generalization_bound(0.1, 1.0, eta=0.5, K=10, n=100))
    0.26
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
    r"""How far leaving one sample out moves the last iterate, on average (Lemma 11).

    $$\frac1n\sum_i\|\theta_K-\theta_K^{\neg i}\|\le\frac{2\eta}n\sqrt TR(2R^2D+1)
    \Big(2K\hat L(\theta)+\frac{9\delta^2}{4\eta}\Big).$$

    >>> from attnbook import theory
    >>> round(float(theory.multihead.stability_bound(
    ...     0.1, 1.0, 1.0, eta=0.5, K=10, n=100, T=4, R=1.0)), 4)
    1.17
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
