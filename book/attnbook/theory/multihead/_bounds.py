"""Section 3: how large gradients and Hessians of the model and of the loss can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import least, many, out
from attnlab import checks as check
from attnlab.checks import Array


def _longest(X: Array) -> Array:
    return np.asarray(np.sqrt((X * X).sum(axis=-1).max(axis=-1)))


def _logits(X: Array, U: ArrayLike) -> Array:
    r"""$\sum_t\|Xu_t\|_\infty$."""
    rows = check.frozen("U", U, ndim=2)
    if rows.shape[-2:] != X.shape[-2:]:
        raise check.fail("U", f"the shape (..., {X.shape[-2]}, {X.shape[-1]}) of X", rows.shape)
    return np.asarray(np.abs(rows @ X.swapaxes(-1, -2)).max(axis=-1).sum(axis=-1))


def gradient_U_bound(X: ArrayLike) -> Array:
    r"""$\|\nabla_U\Phi\|\le\sqrt T\|X\|_{2,\infty}$, the longest token (Proposition 5 (1)).

    Collinear tokens attain it.

    >>> from attnbook import theory
    >>> float(theory.multihead.gradient_U_bound([[3.0, 4.0]] * 4))
    10.0
    """
    tokens = check.frozen("X", X, ndim=2)
    return out(np.sqrt(tokens.shape[-2]) * _longest(tokens))


def gradient_W_bound(X: ArrayLike, U: ArrayLike, *, sharp: bool = False) -> Array:
    r"""$\|\nabla_W\Phi\|\le2\|X\|_{2,\infty}^2\sum_t\|Xu_t\|_\infty$ (Proposition 5 (2)).

    Sharp without the 2, which is attained: the gradient is a sum of covariances, and
    $|\mathrm{Cov}(A,B)|\le\|A\|_\infty\|B\|_\infty$.

    >>> from attnbook import theory
    >>> X, U = [[1.0], [-1.0]], [[1.0], [-1.0]]
    >>> [float(theory.multihead.gradient_W_bound(X, U, sharp=sharp)) for sharp in (0, 1)]
    [4.0, 2.0]
    >>> float(theory.multihead.model_gradient(X, [[0.0]], U)[1][0, 0])
    2.0
    """
    tokens = check.frozen("X", X, ndim=2)
    constant = 1.0 if sharp else 2.0
    return out(constant * _longest(tokens) ** 2 * _logits(tokens, U))


def gradient_bound(X: ArrayLike, U: ArrayLike, *, sharp: bool = False) -> Array:
    r"""$\|\nabla_\theta\Phi\|$: the sum of both bounds (Propositions 1 (1) and 5 (3)).

    Sharp: the root of the sum of squares of the sharp bounds.

    >>> from attnbook import theory
    >>> X, U = [[1.0], [-1.0]], [[1.0], [-1.0]]
    >>> round(float(theory.multihead.gradient_bound(X, U)), 4)
    5.4142
    """
    first, second = gradient_U_bound(X), gradient_W_bound(X, U, sharp=sharp)
    return out(np.hypot(first, second) if sharp else first + second)


def hessian_bound(X: ArrayLike, U: ArrayLike, *, sharp: bool = False) -> Array:
    r"""Spectral norm of the Hessian of one head (Propositions 1 (2) and 5 (4)).

    $$\|\nabla^2_\theta\Phi\|\le6d\|X\|_{2,\infty}^2\|X\|_{1,\infty}^2\sum_t\|Xu_t\|_\infty
    +2\sqrt{Td}\|X\|_{2,\infty}^2\|X\|_{1,\infty},$$
    with $\|X\|_{1,\infty}$ the largest entry. The Hessian is a third central moment,
    $|\kappa_3(A,B,B)|\le2\|A\|_\infty\|B\|_\infty^2$, so that (``sharp``)
    $2\|X\|_{2,\infty}^4\sum_t\|Xu_t\|_\infty+\sqrt T\|X\|_{2,\infty}^3$ suffices, without $d$.

    >>> from attnbook import theory
    >>> X, U = [[1.0], [-1.0]], [[1.0], [-1.0]]
    >>> [round(float(theory.multihead.hessian_bound(X, U, sharp=s)), 4) for s in (0, 1)]
    [14.8284, 5.4142]
    """
    tokens = check.frozen("X", X, ndim=2)
    T, d = tokens.shape[-2:]
    longest, logits = _longest(tokens), _logits(tokens, U)
    if sharp:
        return out(2.0 * longest**4 * logits + np.sqrt(T) * longest**3)
    entry = np.abs(tokens).max(axis=(-1, -2))
    return out(6.0 * d * longest**2 * entry**2 * logits + 2.0 * np.sqrt(T * d) * longest**2 * entry)


def beta1(norm: ArrayLike, *, T: ArrayLike, R: ArrayLike) -> Array:
    r"""$\beta_1=\sqrt TR(2R^2\|\tilde\theta\|_{2,\infty}+1)$: $\|\nabla\hat L\|\le\beta_1\hat L$.

    (Corollary 1 (1), Lemmas 5 and 6.) Here and below $\max_h\|U_h\|_F$ may stand for ``norm``.

    >>> from attnbook import theory
    >>> float(theory.multihead.beta1(1.0, T=4, R=1.0))
    6.0
    """
    size, tokens, longest = least("norm", norm), least("T", T, 1.0), least("R", R)
    return out(np.sqrt(tokens) * longest * (2.0 * longest**2 * size + 1.0))


def beta3(
    norm: ArrayLike, *, T: ArrayLike, d: ArrayLike, R: ArrayLike, sharp: bool = False
) -> Array:
    r"""$\beta_3$ with $\lambda_{\min}(\nabla^2\hat L)\ge-\beta_3\hat L/\sqrt H$.

    $$\beta_3=2\sqrt{Td}R^3(3\sqrt dR^2\|\tilde\theta\|_{2,\infty}+1);\qquad
    \sqrt TR^3(2R^2\|\tilde\theta\|_{2,\infty}+1)\ \text{suffices, without }d.$$

    Args:
        norm: $\|\tilde\theta\|_{2,\infty}$, the longest head; or $\max_h\|U_h\|_F$ (Lemma 6).
        T: tokens in a sample.
        d: features in a token.
        R: length of the longest token.
        sharp: the form without $d$.

    Returns:
        $\beta_3$, a number or an array.

    Examples:
        >>> from attnbook import theory
        >>> sizes = dict(T=10, d=4, R=4.35**0.5)
        >>> [round(float(theory.multihead.beta3(1.0, **sizes, sharp=s))) for s in (False, True)]
        [3110, 278]

    Reference: multihead, Corollary 1 (3), Lemmas 5 and 6; the sharp form is this book's.
    """
    size, tokens = least("norm", norm), least("T", T, 1.0)
    width, longest = least("d", d, 1.0), least("R", R)
    if sharp:
        return out(np.sqrt(tokens) * longest**3 * (2.0 * longest**2 * size + 1.0))
    inner = 3.0 * np.sqrt(width) * longest**2 * size + 1.0
    return out(2.0 * np.sqrt(tokens * width) * longest**3 * inner)


def beta2(
    norm: ArrayLike, *, T: ArrayLike, d: ArrayLike, R: ArrayLike, H: ArrayLike, sharp: bool = False
) -> Array:
    r"""$\beta_2=\beta_3/\sqrt H+\beta_1^2/4$: $\|\nabla^2\hat L\|\le\beta_2$ (Corollary 1 (2)).

    >>> from attnbook import theory
    >>> theory.multihead.beta2(1.0, T=4, d=1, R=1.0, H=[1, 16, float("inf")]).tolist()
    [25.0, 13.0, 9.0]
    """
    curved = beta3(norm, T=T, d=d, R=R, sharp=sharp) / np.sqrt(many("H", H))
    return out(curved + beta1(norm, T=T, R=R) ** 2 / 4.0)
