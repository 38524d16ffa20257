r"""What every bound of the paper is written in: sizes of the data, of the weights, of the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory._arguments import least
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Encoder, Params
from attnlab.problems import SequenceProblem

NAMES = ("W_Q", "W_K", "W_V", "w_O")


def input_bound(X: ArrayLike) -> Array:
    r"""The constant of Assumption 1, $C_x=\max_n\|X_n\|_F/\sqrt{d_s}$.

    It bounds $\|X_n\|_2$ and every row by $\sqrt{d_s}C_x$; a row may be longer than $C_x$.

    >>> from attnbook import theory
    >>> float(theory.encoder.input_bound([[[3.0, 4.0], [0.0, 0.0]]]).round(4))
    3.5355
    """
    tokens = check.frozen("X", X, ndim=3)
    sizes = np.sqrt((tokens**2).sum(axis=(-1, -2)) / tokens.shape[-2])
    return np.asarray(sizes.max(axis=-1))


def norms(params: Mapping[str, Array]) -> dict[str, Array]:
    r"""Spectral norms $\|W_Q\|_2,\|W_K\|_2,\|W_V\|_2$ and the length $\|w_O\|_2$, by name.

    >>> import numpy as np
    >>> from attnbook import theory
    >>> W = np.diag([3.0, 1.0])
    >>> found = theory.encoder.norms({"W_Q": W, "W_K": W, "W_V": W, "w_O": np.ones(4)})
    >>> {name: float(size) for name, size in found.items()}
    {'W_Q': 3.0, 'W_K': 3.0, 'W_V': 3.0, 'w_O': 2.0}
    """
    if set(params) != set(NAMES):
        raise check.fail("params", f"the keys {list(NAMES)}", sorted(map(str, params)))
    return {name: _norm(name, params[name]) for name in NAMES}


def _norm(name: str, array: Array) -> Array:
    value = check.frozen(f"params[{name!r}]", array)
    if name == "w_O":
        return np.asarray(np.linalg.norm(value, axis=-1))
    # eigenvalues of the small Gram matrix: a wide W has few columns
    small = value.mT @ value if value.shape[-1] < value.shape[-2] else value @ value.mT
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(small)[..., -1], 0.0)))


@dataclass(frozen=True, eq=False)
class Bars:
    r"""What the paper's bounds are written in (Proposition 1).

    $N$ samples of $d_s$ tokens (``n``, ``T``), ``Cx`` of Assumption 1, $\tau_0$, and
    $\bar\lambda_\bullet$ for each parameter (``Q``, ``K``, ``V``, ``O``). The proofs pool by a sum;
    for the mean, $\tau_1$ becomes $\tau_1/d_s$ everywhere, which is why only that number, ``pool``,
    is kept. What stands in the bounds for $\tau_1$ is ``pool``.

    >>> from attnbook import theory
    >>> found = theory.encoder.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    >>> float(theory.encoder.rho(found).round(4))
    5.6569
    """

    n: int
    T: int
    Cx: Array
    tau0: float
    pool: float
    Q: Array
    K: Array
    V: Array
    O: Array  # noqa: E741

    def __post_init__(self) -> None:
        for name in ("n", "T"):
            object.__setattr__(self, name, check.count(name, getattr(self, name)))
        for name in ("tau0", "pool"):
            value = getattr(self, name)
            object.__setattr__(self, name, check.number(name, value, above=0.0))
        for name in ("Cx", "Q", "K", "V", "O"):
            object.__setattr__(self, name, least(name, getattr(self, name)))


def bars(
    model: Encoder,
    problem: SequenceProblem,
    *points: Params,
    radius: float | Mapping[str, float] = 0.0,
) -> Bars:
    r"""`Bars` of a model at one or more points.

    $\bar\lambda_\bullet=\|W_\bullet\|_2+C_\bullet$, the largest over the points; ``radius`` is
    $C_\bullet$, one number or one for each parameter by name.

    >>> from attnlab import models, problems
    >>> from attnbook import theory
    >>> p = problems.gaussian_regression(n=4, T=2, d=6, unit_tokens=True, rng=0)
    >>> model = models.Encoder(width=200, pooling="sum")
    >>> found = theory.encoder.bars(model, p, model.init(p, rng=0), radius=1.0)
    >>> bool(6.0 < found.Q < 8.0), float(found.Cx.round(12)), found.pool
    (True, 1.0, 1.0)
    """
    if not isinstance(model, Encoder):
        raise check.fail("model", "an Encoder", type(model).__name__)
    if not points:
        raise check.fail("points", "at least one set of parameters", "none")
    sizes = {name: np.stack([norms(at)[name] for at in points]).max(axis=0) for name in NAMES}
    added = radii(radius)
    Q, K, V, O = (sizes[name] + added[name] for name in NAMES)  # noqa: E741
    pool = model.tau1 / (problem.T if model.pooling == "mean" else 1)
    return Bars(problem.n, problem.T, input_bound(problem.X), model.tau0, pool, Q, K, V, O)


def radii(radius: float | Mapping[str, float]) -> dict[str, float]:
    """The four constants C, from one number or from a dict."""
    if isinstance(radius, Mapping):
        if set(radius) != set(NAMES):
            raise check.fail("radius", f"the keys {list(NAMES)}", sorted(map(str, radius)))
        return {name: check.number("radius", radius[name], least=0.0) for name in NAMES}
    return dict.fromkeys(NAMES, check.number("radius", radius, least=0.0))
