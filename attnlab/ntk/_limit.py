"""The encoder's tangent kernel at infinite width: arc-cosine kernels in closed form."""

from __future__ import annotations

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import SequenceProblem

PARALLEL = 1e-5  # below this 1 - |cos| no longer gives the angle to rounding


def arc_cosine(features: Array) -> tuple[Array, Array]:
    r"""Arc-cosine kernels of order 1 and 0: two Gaussian expectations in closed form.

    With $w\sim\mathcal N(0,I)$ and the angle $\theta$ between $\phi$ and $\phi'$,
    $$\mathbb E[\mathrm{relu}(w^\top\phi)\,\mathrm{relu}(w^\top\phi')]
    =\frac{\|\phi\|\|\phi'\|}{2\pi}(\sin\theta+(\pi-\theta)\cos\theta),\qquad
    \mathbb E[\mathbb 1\{w^\top\phi>0\}\mathbb 1\{w^\top\phi'>0\}]=\frac{\pi-\theta}{2\pi}.$$
    Rows that are zero give zero in both, because the derivative of relu at 0 is 0.

    Args:
        features: rows $\phi_i$, shape ``(..., n, d)``.

    Returns:
        The two expectations, each of shape ``(..., n, n)``.

    Examples:
        >>> import numpy as np
        >>> from attnlab import ntk
        >>> relu, step = ntk.arc_cosine(np.array([[1.0, 0.0], [0.0, 1.0]]))
        >>> relu.round(6).tolist(), step.tolist()
        ([[0.5, 0.159155], [0.159155, 0.5]], [[0.5, 0.25], [0.25, 0.5]])

    Reference: encoder, Lemma 1; Cho and Saul (2009).
    """
    phi = check.frozen("features", features, ndim=2)
    return _expectations(phi, phi @ phi.swapaxes(-1, -2))


def _expectations(phi: Array, products: Array) -> tuple[Array, Array]:
    n = phi.shape[-2]
    diagonal = np.arange(n)
    sizes = np.sqrt(products[..., diagonal, diagonal])
    if (sizes < 1e-140).any() or (sizes > 1e140).any():  # squares out of range, or zero rows
        sizes = np.abs(phi).max(axis=-1)
        sizes = sizes * np.linalg.norm(phi / np.where(sizes > 0.0, sizes, 1.0)[..., None], axis=-1)
        unit = phi / np.where(sizes > 0.0, sizes, 1.0)[..., None]
        cosine = unit @ unit.swapaxes(-1, -2)
    else:
        inverse = 1.0 / sizes
        cosine = products * inverse[..., :, None]
        cosine *= inverse[..., None, :]
    np.clip(cosine, -1.0, 1.0, out=cosine)
    cosine[..., diagonal, diagonal] = 1.0
    theta = np.arccos(cosine)
    sine = np.sqrt((1.0 - cosine) * (1.0 + cosine))
    close = np.abs(cosine) > 1.0 - PARALLEL
    if np.count_nonzero(close) > close.size // n:
        close[..., diagonal, diagonal] = False
        *lead, i, j = np.nonzero(close)
        unit = phi / np.where(sizes > 0.0, sizes, 1.0)[..., None]
        first, second = unit[(*lead, i)], unit[(*lead, j)]
        apart = np.linalg.norm(first - second, axis=-1)
        exact = 2.0 * np.arctan2(apart, np.linalg.norm(first + second, axis=-1))
        theta[close], sine[close] = exact, np.sin(exact)
    step = (np.pi - theta) * (0.5 / np.pi)
    relu = step * cosine
    sine *= 0.5 / np.pi
    relu += sine
    relu *= sizes[..., :, None]
    relu *= sizes[..., None, :]
    zero = sizes == 0.0
    if zero.any():
        step[zero[..., :, None] | zero[..., None, :]] = 0.0
    return relu, step


def limiting_encoder(problem: SequenceProblem, *, pooling: str = "mean") -> Array:
    r"""Tangent kernel of the encoder at infinite width (NTK start, $\tau_0=d_m^{-1}$).

    Attention is uniform in the limit; with the mean tokens $\phi_i=\frac1TX_i^\top\mathbf 1$ and
    $w\sim\mathcal N(0,I)$,
    $$K_\infty=\mathbb E[\mathrm{relu}(\Phi w)\mathrm{relu}(\Phi w)^\top]
    +\mathbb E[\mathbb 1\{\Phi w>0\}\mathbb 1\{\Phi w>0\}^\top]\circ\Phi\Phi^\top.$$
    The terms are the limits of the blocks ``w_O`` and ``W_V``; those of ``W_Q`` and ``W_K``
    vanish. Lemma 1 lacks the Hadamard product, and its factor $T^2$ belongs to sum pooling.

    Args:
        problem: sequences; labels play no part.
        pooling: ``"mean"`` (the model), or ``"sum"``, whose kernel is $T^2$ times as large.

    Returns:
        The kernel, shape ``(..., n, n)``.

    Examples:
        >>> from attnlab import ntk, problems
        >>> p = problems.SequenceProblem(X=[[[1.0, 0.0]], [[0.0, 1.0]]], y=[1.0, -1.0])
        >>> ntk.limiting_encoder(p).round(6).tolist()
        [[1.0, 0.159155], [0.159155, 1.0]]

    Reference: encoder, Lemma 1 (with its errata).
    """
    if not isinstance(problem, SequenceProblem):
        raise check.fail("problem", "a SequenceProblem", type(problem).__name__)
    check.choice("pooling", pooling, ("mean", "sum"))
    T = problem.T
    phi = (np.ones(T) @ problem.X) * (1.0 / T)
    products = phi @ phi.swapaxes(-1, -2)
    relu, step = _expectations(phi, products)
    step *= products
    relu += step
    if pooling == "sum":
        relu *= T * T
    return relu
