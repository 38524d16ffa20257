"""Empirical tangent kernels and Jacobians of every model, and the distance of two kernels."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Encoder, Model, Params
from attnlab.ntk._features import encoder_blocks, prepared, tangent

LARGEST = 2.0e9  # bytes of a Jacobian that is still formed


@overload
def empirical(
    model: Model,
    params: Params,
    problem: Any,
    *,
    by_group: Literal[False] = False,
    other: Any = None,
) -> Array: ...


@overload
def empirical(
    model: Model, params: Params, problem: Any, *, by_group: Literal[True], other: Any = None
) -> Params: ...


def empirical(
    model: Model, params: Params, problem: Any, *, by_group: bool = False, other: Any = None
) -> Array | Params:
    r"""Empirical tangent kernel of the model's output.

    $$K_{ij}=\langle\nabla_\theta f(X_i),\nabla_\theta f(X'_j)\rangle,$$
    the sum of one positive semidefinite kernel for each parameter. Gradients are sums of outer
    products over tokens; their inner products are taken over pairs of tokens or between the
    matrices, whichever is cheaper at this shape, and the $n\times p$ Jacobian of a wide encoder
    is never held.

    Args:
        model: an `Attention`, `MultiHead` or `Encoder`.
        params: its parameters.
        problem: the samples of the rows.
        by_group: a dict of the parameters' kernels, which sum to the whole, in its place.
        other: the samples of the columns, a problem with the same tokens' shape, trials and head;
            None for ``problem`` itself.

    Returns:
        The kernel, shape ``(..., n, n')``, or a dict of kernels keyed by parameter.

    Examples:
        >>> from attnlab import models, ntk, problems
        >>> p = problems.gaussian_regression(n=40, T=10, d=50, unit_tokens=True, rng=0)
        >>> model = models.Encoder(width=400, init="ntk", scaling="linear")
        >>> params = model.init(p, rng=0)
        >>> ntk.empirical(model, params, p).shape
        (40, 40)
        >>> sorted(ntk.empirical(model, params, p, by_group=True))
        ['W_K', 'W_Q', 'W_V', 'w_O']

    Reference: encoder, Section 4.3 and Appendix B.1; multihead, Lemma 1.
    """
    params, by_group = prepared(model, params, problem), check.flag("by_group", by_group)
    if other is None:
        other = problem
    else:
        _same_kind(model, problem, other)
        prepared(model, params, other)
    parts: Params = {}
    if isinstance(model, Encoder):
        for name, mine, theirs in encoder_blocks(model, params, problem, other):
            found = mine.gram(theirs)  # type: ignore[arg-type]
            parts[name] = parts[name] + found if name in parts else found
        parts = {name: parts[name] for name in params}
    else:
        rows = tangent(model, params, problem)
        columns = rows if other is problem else tangent(model, params, other)
        for name, block in rows.items():
            parts[name] = block.gram(columns[name])  # type: ignore[arg-type]
    return parts if by_group else np.asarray(sum(parts.values()))


def _same_kind(model: Any, problem: Any, other: Any) -> None:
    """Complain unless ``other`` is a problem on which the model has the same parameters."""
    if type(other) is not type(problem):
        raise check.fail("other", f"a {type(problem).__name__}", type(other).__name__)
    mine, theirs = ((*p.trials, "n", p.T, p.d) for p in (problem, other))
    if mine != theirs:
        shape = ", ".join(map(str, mine))
        raise check.fail("other", f"tokens of shape ({shape}) like problem's", f"{other.X.shape}")
    fixed = hasattr(problem, "v") and not getattr(model, "train_head", False)
    if fixed and not np.array_equal(problem.v, other.v):
        raise check.fail("other", "a problem with the same head v", "another v")


def jacobian(model: Model, params: Params, problem: Any) -> Params:
    r"""Gradients of the output, sample by sample: $\nabla_\theta f(X_i)$ for each parameter.

    Args:
        model: an `Attention`, `MultiHead` or `Encoder`.
        params: its parameters.
        problem: the samples. More than 2 GB of gradients are refused; `empirical` never needs
            them.

    Returns:
        A dict of arrays ``(..., n, *shape)``, one for each parameter.

    Examples:
        >>> from attnlab import models, ntk, problems
        >>> p = problems.tokenized_mixture(n=60, rng=0)
        >>> model = models.MultiHead(heads=8, start="gaussian")
        >>> J = ntk.jacobian(model, model.init(p, rng=1), p)
        >>> J["U"].shape, J["W"].shape
        ((60, 8, 10, 4), (60, 8, 4, 4))

    Reference: encoder, equations 7 to 9; multihead, Lemma 1; svm, equation 2.
    """
    params = prepared(model, params, problem)
    size = 8.0 * problem.n * sum(array.size for array in params.values())
    if size > LARGEST:
        raise check.fail(
            "problem",
            "a Jacobian of at most 2 GB; ntk.empirical gives the kernel without it, fewer samples "
            "at a time give its rows",
            f"{size / 1e9:.3g} GB",
        )
    return {name: block.dense() for name, block in tangent(model, params, problem).items()}


def distance(K: Array, L: Array) -> Array:
    r"""Distance of two kernels up to scale, $1-\mathrm{Tr}(KL^\top)/(\|K\|_F\|L\|_F)$.

    Symmetric, 0 for $L=cK$ with $c>0$, and at most 1 for positive semidefinite kernels. It is
    formed as $\frac12\|K/\|K\|-L/\|L\|\|^2$, which keeps its accuracy where it is small.

    Args:
        K: a kernel, shape ``(..., n, m)``.
        L: another one; leading axes broadcast.

    Returns:
        The distance, shape of the leading axes.

    Examples:
        >>> import numpy as np
        >>> from attnlab import ntk
        >>> float(ntk.distance(np.eye(2), 3.0 * np.eye(2)))
        0.0
        >>> round(float(ntk.distance(np.eye(2), np.ones((2, 2)))), 6)
        0.292893

    Reference: encoder, Section 5.1 (kernel distance).
    """
    unit = []
    for name, value in (("K", K), ("L", L)):
        kernel = check.frozen(name, value, ndim=2)
        largest = np.abs(kernel).max(axis=(-1, -2), keepdims=True)
        if (largest == 0.0).any():
            raise check.fail(name, "a kernel that is not zero", "all entries 0")
        kernel = kernel / largest
        unit.append(kernel / np.sqrt((kernel * kernel).sum(axis=(-1, -2), keepdims=True)))
    if unit[0].shape[-2:] != unit[1].shape[-2:]:
        raise check.fail("L", f"the shape {unit[0].shape[-2:]} of K", f"{unit[1].shape[-2:]}")
    try:
        gap = unit[0] - unit[1]
    except ValueError:
        shapes = f"{unit[0].shape} and {unit[1].shape}"
        raise check.fail("L", "leading axes that fit those of K", shapes) from None
    return np.asarray(0.5 * (gap * gap).sum(axis=(-1, -2)))
