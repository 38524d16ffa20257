r"""Lemma 1 written out: the derivatives of one head, in our convention for $W$.

Our logits are $XWx_t$ (key left, query right); the paper's $W$ is the transpose of ours, and so
are its gradients in $W$.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import centred, softmax


def _maps(X: Array, W: Array) -> Array:
    r"""Rows $\varphi(XWx_t)$, ``(..., T, T)`` with the query first."""
    return softmax(X @ W.swapaxes(-1, -2) @ X.swapaxes(-1, -2))


def _moved(P: Array, values: Array) -> Array:
    r"""$\varphi'(g_t)v_t=\varphi_t\circ(v_t-\langle\varphi_t,v_t\rangle)$ for each query."""
    return P * centred(P, values)


def _arrays(
    X: ArrayLike, W: ArrayLike, U: ArrayLike | None = None
) -> tuple[Array, Array, Array | None]:
    tokens, weights = check.frozen("X", X, ndim=2), check.frozen("W", W, ndim=2)
    T, d = tokens.shape[-2:]
    if weights.shape[-2:] != (d, d):
        raise check.fail("W", f"shape (..., {d}, {d}) to fit X", f"shape {weights.shape}")
    if U is None:
        return tokens, weights, None
    rows = check.frozen("U", U, ndim=2)
    if rows.shape[-2:] != (T, d):
        raise check.fail("U", f"shape (..., {T}, {d}) to fit X", f"shape {rows.shape}")
    return tokens, weights, rows


def model_gradient(X: ArrayLike, W: ArrayLike, U: ArrayLike) -> tuple[Array, Array]:
    r"""Gradients of one head: $\nabla_U\Phi=PX$ and $\nabla_W\Phi$.

    $$\nabla_W\Phi=\sum_tX^\top\varphi'(XWx_t)Xu_t\,x_t^\top.$$

    Args:
        X: tokens ``(..., T, d)``.
        W: attention weights ``(..., d, d)``, key left and query right.
        U: projections ``(..., T, d)``.

    Returns:
        $\nabla_U\Phi$ ``(..., T, d)`` and $\nabla_W\Phi$ ``(..., d, d)``.

    Examples:
        >>> from attnbook import theory
        >>> gU, gW = theory.multihead.model_gradient([[1.0], [-1.0]], [[0.0]], [[1.0], [-1.0]])
        >>> gU.tolist(), gW.tolist()
        ([[0.0], [0.0]], [[2.0]])

    Reference: multihead, Lemma 1 (1) and (2).
    """
    tokens, weights, rows = _arrays(X, W, U)
    P = _maps(tokens, weights)
    C = _moved(P, np.asarray(rows) @ tokens.swapaxes(-1, -2))
    return P @ tokens, tokens.swapaxes(-1, -2) @ C.swapaxes(-1, -2) @ tokens


def mixed_derivative(X: ArrayLike, W: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    r"""How $\langle a,\nabla_U\Phi\,b\rangle$ turns with $W$ (Lemma 1 (3)).

    $$\nabla_W\langle a,\nabla_U\Phi\,b\rangle=\sum_ta_tX^\top\varphi'(XWx_t)Xb\,x_t^\top.$$

    >>> from attnbook import theory
    >>> theory.multihead.mixed_derivative([[1.0], [-1.0]], [[0.0]], [1.0, 0.0], [1.0]).tolist()
    [[1.0]]
    """
    tokens, weights, _ = _arrays(X, W)
    left, right = check.frozen("a", a, ndim=1), check.frozen("b", b, ndim=1)
    values = (tokens @ right[..., None]).swapaxes(-1, -2)
    C = left[..., None] * _moved(_maps(tokens, weights), values)
    return np.asarray(tokens.swapaxes(-1, -2) @ C.swapaxes(-1, -2) @ tokens)


def second_derivative(
    X: ArrayLike, W: ArrayLike, U: ArrayLike, b: ArrayLike, c: ArrayLike
) -> Array:
    r"""How $\langle b,\nabla_W\Phi\,c\rangle$ turns with $W$ (Lemma 1 (4)).

    $$\sum_t(c^\top x_t)\,X^\top\varphi'(g_t)\mathbf d_t\,x_t^\top,\quad
    \mathbf d_t=\mathrm{diag}(Xb)Xu_t-(b^\top X^\top\varphi(g_t))Xu_t
    -(u_t^\top X^\top\varphi(g_t))Xb,$$
    $g_t=XWx_t$. ``b`` is on the side of the key, ``c`` on the side of the query; in the paper's
    convention they change sides.

    >>> from attnbook import theory
    >>> theory.multihead.second_derivative(
    ...     [[1.0], [0.0]], [[0.0]], [[8.0], [0.0]], [1.0], [1.0]).tolist()
    [[0.0]]
    """
    tokens, weights, rows = _arrays(X, W, U)
    left, right = check.frozen("b", b, ndim=1), check.frozen("c", c, ndim=1)
    P = _maps(tokens, weights)
    A = np.asarray(rows) @ tokens.swapaxes(-1, -2)
    B = (tokens @ left[..., None]).swapaxes(-1, -2)
    means = [(P * values).sum(axis=-1, keepdims=True) for values in (A, B)]
    inner = A * B - A * means[1] - B * means[0]
    C = (tokens @ right[..., None]) * _moved(P, inner)
    return np.asarray(tokens.swapaxes(-1, -2) @ C.swapaxes(-1, -2) @ tokens)
