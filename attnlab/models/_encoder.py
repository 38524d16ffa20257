"""The encoder-only shallow Transformer of the encoder paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np

from attnlab import checks as check
from attnlab._blas import product
from attnlab.checks import Array, Rng
from attnlab.models._base import Params, draws, fit, kind
from attnlab.models._softmax import centred, softmax
from attnlab.problems import SequenceProblem

INITS = ("lecun", "he", "ntk")
LOSS_FACTORS = {"mean": 1.0, "half_mean": 0.5, "half_sum": 0.5}


class Start(str):
    """A name of Table 1; called with a problem, it draws the parameters of its encoder."""

    model: Encoder

    def __call__(self, problem: SequenceProblem, rng: Rng | None = None) -> Params:
        """Gaussian parameters with the variances of Table 1."""
        rng, shapes = draws(self, rng), self.model.shapes(problem)
        variance = dict.fromkeys(shapes, 1.0)
        if self != "ntk":
            gain, width = 2.0 if self == "he" else 1.0, self.model.width
            variance = {k: gain / (width if k == "w_O" else problem.d) for k in shapes}
        return {
            name: np.sqrt(variance[name]) * rng.standard_normal(problem.trials + tail)
            for name, tail in shapes.items()
        }


class _Init:
    """The field ``init``: told a name, it answers with the `Start` of that name."""

    @overload
    def __get__(self, model: None, owner: type) -> str: ...

    @overload
    def __get__(self, model: Encoder, owner: type) -> Start: ...

    def __get__(self, model: Encoder | None, owner: type) -> str:
        if model is None:
            return "lecun"
        start = Start(model.__dict__["init"])
        start.model = model
        return start

    def __set__(self, model: Encoder, name: str) -> None:
        model.__dict__["init"] = str(check.choice("init", name, INITS))


@dataclass(frozen=True)
class Encoder:
    r"""$f(X)=w_O^\top\varphi\big(\tau_1\,\mathrm{relu}(B\,XW_V^\top)\big)$, with attention $B$.

    $B=\mathrm{softmax}(\tau_0\,XW_Q^\top W_KX^\top)$ by rows and $\varphi$ pools over tokens.
    Parameters are ``W_Q, W_K, W_V (..., width, d)`` and ``w_O (..., width)``. In the book's
    notation the logits are $XWz$ with $W=\tau_0W_K^\top W_Q$.

    Args:
        width: $d_m$.
        init: ``"lecun"``, ``"he"`` or ``"ntk"`` (Table 1); $\tau_1$ is 1, and
            $d_m^{-1/2}$ for ``"ntk"``.
        scaling: $\tau_0$: ``"sqrt"`` for $d_m^{-1/2}$, ``"linear"`` for $d_m^{-1}$, or a number.
        pooling: ``"mean"`` (the model) or ``"sum"`` (the paper's proofs).
        loss: ``"mean"`` for $\frac1n\sum(f-y)^2$, ``"half_mean"``, or ``"half_sum"`` for
            $\frac12\sum(f-y)^2$ (the paper leaves open which one its experiments use).

    Returns:
        A model: frozen hyper-parameters; it holds no arrays of its own.

    Examples:
        >>> from attnlab import models, problems
        >>> p = problems.gaussian_regression(n=20, T=4, d=10, unit_tokens=True, rng=0)
        >>> model = models.Encoder(width=100)
        >>> params = model.init(p, rng=0)
        >>> {name: array.shape for name, array in params.items()}
        {'W_Q': (100, 10), 'W_K': (100, 10), 'W_V': (100, 10), 'w_O': (100,)}
        >>> model.tau0, model.attention(params, p).shape
        (0.1, (20, 4, 4))

    Reference: encoder, equations 1.1 and 1.2, Table 1.
    """

    width: int
    init: _Init = _Init()  # one name: the option as it is told, and what it does when called
    scaling: str | float = "sqrt"
    pooling: str = "mean"
    loss: str = "mean"

    def __post_init__(self) -> None:
        check.count("width", self.width)
        if isinstance(self.scaling, str):
            check.choice("scaling", self.scaling, ("sqrt", "linear"))
        else:
            check.number("scaling", self.scaling, above=0.0)
        check.choice("pooling", self.pooling, ("mean", "sum"))
        check.choice("loss", self.loss, LOSS_FACTORS)

    @property
    def tau0(self) -> float:
        r"""$\tau_0$, the scaling inside the softmax."""
        if isinstance(self.scaling, str):
            return float(self.width ** (-0.5 if self.scaling == "sqrt" else -1.0))
        return float(self.scaling)

    @property
    def tau1(self) -> float:
        r"""$\tau_1$, the scaling of the hidden layer."""
        return float(self.width) ** -0.5 if self.init == "ntk" else 1.0

    def shapes(self, problem: SequenceProblem) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter of one trial."""
        kind(problem, SequenceProblem, "Encoder")
        matrix = (self.width, problem.d)
        return {"W_Q": matrix, "W_K": matrix, "W_V": matrix, "w_O": (self.width,)}

    def forward(self, params: Params, problem: SequenceProblem) -> Array:
        """Outputs, shape ``(..., n)``."""
        params = self._fitted(params, problem)
        return np.asarray((self.features(params, problem) @ params["w_O"][..., None])[..., 0])

    def features(self, params: Params, problem: SequenceProblem) -> Array:
        r"""$F_{pre}$, the pooled hidden layer, shape ``(..., n, width)``."""
        params = self._fitted(params, problem)
        hidden = self._hidden(self.attention(params, problem), params, problem)[1]
        return np.asarray(self._pool(problem) * np.maximum(hidden, 0.0).sum(axis=-2))

    def attention(self, params: Params, problem: SequenceProblem) -> Array:
        """Maps ``[query, key]``, shape ``(..., n, T, T)``."""
        params = self._fitted(params, problem)
        M = product(params["W_Q"].swapaxes(-1, -2), params["W_K"])
        X = problem.X
        turned = product(X, M) if M.ndim == 2 else X @ M[..., None, :, :]
        return softmax(self.tau0 * (turned @ X.swapaxes(-1, -2)))

    def floor(self, problem: SequenceProblem) -> Array:
        """The infimum 0 of the loss where the targets can be fitted."""
        return np.zeros(problem.trials)

    def loss_weight(self, n: int) -> float:
        r"""$c$ in the loss $c\sum_{i\le n}(f(X_i)-y_i)^2$."""
        return LOSS_FACTORS[self.loss] / (1 if self.loss == "half_sum" else n)

    def value_and_grad(self, params: Params, problem: SequenceProblem) -> tuple[Array, Params]:
        r"""Squared loss, shape of the trials, and its gradient.

        With $h_i=W_V^\top(w_O\circ\mathbb 1\{W_Vu_i>0\})$ and the softmax Jacobian $J_i$,
        $G=c\,\tau_0\sum_ix_i(X^\top J_iXh_i)^\top$ gives $\nabla_{W_Q}f=W_KG^\top$ and
        $\nabla_{W_K}f=W_QG$; the derivative of relu at 0 is 0.
        """
        params = self._fitted(params, problem)
        W_Q, W_K, W_V, w_O = (params[name] for name in ("W_Q", "W_K", "W_V", "w_O"))
        X, c, lead = problem.X, self._pool(problem), problem.trials
        n, T, d, m = problem.n, problem.T, problem.d, self.width
        B = self.attention(params, problem)
        U, Z = self._hidden(B, params, problem)
        A = c * np.maximum(Z, 0.0).sum(axis=-2)
        f = (A @ w_O[..., None])[..., 0]
        factor = self.loss_weight(n)
        r = (2.0 * factor) * (f - problem.y)
        value = factor * ((f - problem.y) ** 2).sum(axis=-1)
        gate = (Z > 0.0) * w_O[..., None, None, :]
        rows = (*lead, n * T)
        weighted = (c * r)[..., None, None] * U
        g_V = product(gate.reshape(*rows, m).swapaxes(-1, -2), weighted.reshape(*rows, d))
        H = product(gate.reshape(*rows, m), W_V).reshape(X.shape)
        D = centred(B, H @ X.swapaxes(-1, -2))
        D *= B
        D *= (c * self.tau0) * r[..., None, None]
        G = X.reshape(*rows, d).swapaxes(-1, -2) @ (D @ X).reshape(*rows, d)
        grads = {
            "W_Q": W_K @ G.swapaxes(-1, -2),
            "W_K": W_Q @ G,
            "W_V": g_V,
            "w_O": (A.swapaxes(-1, -2) @ r[..., None])[..., 0],
        }
        return np.asarray(value), grads

    def _pool(self, problem: SequenceProblem) -> float:
        return self.tau1 / problem.T if self.pooling == "mean" else self.tau1

    def _hidden(self, B: Array, params: Params, problem: SequenceProblem) -> tuple[Array, Array]:
        """Attended tokens ``(..., n, T, d)`` and pre-activations ``(..., n, T, width)``."""
        U = B @ problem.X
        flat = U.reshape(*problem.trials, problem.n * problem.T, problem.d)
        Z = product(flat, params["W_V"].swapaxes(-1, -2))
        return U, Z.reshape(*U.shape[:-1], self.width)

    def _fitted(self, params: Params, problem: SequenceProblem) -> Params:
        return fit(self, params, problem, copy=False)
