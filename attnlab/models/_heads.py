r"""Prediction heads $h$ of the attention model $f=h(X^\top s)$."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array


class Head(Protocol):
    """What a head answers for attended tokens ``o (..., n, d)``, given the problem's ``v``."""

    def value(self, o: Array, v: Array) -> Array:
        """$h(o)$, shape ``(..., n)``."""

    def gradient(self, o: Array, v: Array) -> Array:
        r"""$\nabla h(o)$, shape ``(..., n, d)``."""


@dataclass(frozen=True)
class LinearHead:
    r"""$h(x)=v^\top x$ with the problem's own ``v``.

    Returns:
        A head for `Attention`.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models
        >>> float(models.LinearHead().value(np.array([[1.0, 2.0]]), np.array([3.0, 1.0]))[0])
        5.0

    Reference: svm, equation 2; bias, equation 1.
    """

    def value(self, o: Array, v: Array) -> Array:
        """$h(o)$, shape ``(..., n)``."""
        return np.asarray((o @ v[..., :, None])[..., 0])

    def gradient(self, o: Array, v: Array) -> Array:
        r"""$\nabla h(o)=v$, shape ``(..., n, d)``."""
        return np.broadcast_to(v[..., None, :], o.shape)


@dataclass(frozen=True, eq=False, repr=False)
class ReLUHead:
    r"""$h(x)=\mathbf 1^\top\mathrm{relu}(Vx)$, a fixed hidden layer.

    The paper prints $\mathbf 1^\top\mathrm{relu}(x)$, which is ``V = I``; its public code draws
    $V$ at random with $\|V\|_F=1$.

    Args:
        V: hidden layer, shape ``(hidden, d)``, shared by all trials.

    Returns:
        A head for `Attention`.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models
        >>> head = models.ReLUHead(np.eye(2))
        >>> float(head.value(np.array([[1.0, -2.0]]), np.zeros(2))[0])
        1.0

    Reference: svm, Section 6 (Figures 8 and 11).
    """

    V: Array

    def __post_init__(self) -> None:
        V = check.frozen("V", self.V)
        if V.ndim != 2:
            raise check.fail("V", "shape (hidden, d)", f"shape {V.shape}")
        object.__setattr__(self, "V", V)

    def __repr__(self) -> str:
        return f"ReLUHead(V of shape {self.V.shape})"

    def value(self, o: Array, v: Array) -> Array:
        """$h(o)$, shape ``(..., n)``."""
        return np.asarray(np.maximum(o @ self._fitting(o).T, 0.0).sum(axis=-1))

    def gradient(self, o: Array, v: Array) -> Array:
        r"""$\nabla h(o)=V^\top\mathbf 1\{Vo>0\}$, shape ``(..., n, d)``."""
        V = self._fitting(o)
        return np.asarray((o @ V.T > 0.0) @ V)

    def _fitting(self, o: Array) -> Array:
        if self.V.shape[1] != o.shape[-1]:
            raise check.fail("V", f"shape (hidden, {o.shape[-1]})", f"shape {self.V.shape}")
        return self.V


@dataclass(frozen=True)
class ConcaveHead:
    r"""$h(x)=v^\top x-\lambda\|x\|^2$: several tokens are kept where $\lambda$ is large enough.

    Args:
        penalty: $\lambda\ge0$.

    Returns:
        A head for `Attention`.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models
        >>> head = models.ConcaveHead(0.3)
        >>> round(float(head.value(np.array([[1.0, 1.0]]), np.array([1.0, 0.0]))[0]), 2)
        0.4

    Reference: svm, Section 6 and Lemma 6 (Figures 9 and 12).
    """

    penalty: float

    def __post_init__(self) -> None:
        check.number("penalty", self.penalty, least=0.0)

    def value(self, o: Array, v: Array) -> Array:
        """$h(o)$, shape ``(..., n)``."""
        return np.asarray((o @ v[..., :, None])[..., 0] - self.penalty * (o * o).sum(axis=-1))

    def gradient(self, o: Array, v: Array) -> Array:
        r"""$\nabla h(o)=v-2\lambda o$, shape ``(..., n, d)``."""
        return np.asarray(v[..., None, :] - 2.0 * self.penalty * o)
