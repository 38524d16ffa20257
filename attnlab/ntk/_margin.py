"""Max-margin in the tangent space: how well the features at a point separate the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import GAP, UNRESOLVED, Array
from attnlab.models import Model, Params
from attnlab.ntk._blocks import Block
from attnlab.ntk._features import prepared, tangent
from attnlab.svm import least_norm

HARD = 1e-5  # margins below this share of the features lose digits to the rounding of a direction
MOVED = 1e-13  # what rounding may ask of an entry, relative to the largest
FEATURES = 2**22  # entries of features that are formed; beyond that, coordinates of the Gram


@dataclass(frozen=True, eq=False, repr=False)
class TangentMargin:
    r"""The largest margin of linear predictors in tangent features, with its certificate.

    $$\gamma=\max_{\|\theta\|\le1}\min_iy_i\langle\nabla f(X_i),\theta\rangle
    =\min_{\lambda\in\Delta}\Big\|\sum_i\lambda_iy_i\nabla f(X_i)\Big\|.$$

    Args:
        margin: $\gamma$, the value that ``direction`` reaches, shape of the trials.
        direction: the maximiser, of norm 1 over all parameters together; a dict of arrays
            ``(..., *shape)``. All 0 where nothing separates.
        multipliers: $\lambda\ge0$ with sum 1, shape ``(..., n)``; they bound every margin.
        gap: relative difference of bound and margin; where the status is ``infeasible``, the
            bound itself in lengths of the longest feature.
        status: ``optimal``, ``infeasible`` (nothing separates: the best margin is 0, at 0),
            ``unresolved`` (bound below 1e-6 of the longest feature, not certified) or
            ``iteration_limit``; a string, or an array of strings for trials.

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import models, ntk, problems
        >>> p, model = problems.tokenized_mixture(n=60, rng=0), models.MultiHead(heads=8)
        >>> ntk.margin(model, model.init(p), p)
        TangentMargin(margin=0.28114, gap<=1e-09, status='optimal')

    Reference: multihead, Definition 1 (P3) and Proposition 2.
    """

    margin: Array
    direction: Params
    multipliers: Array
    gap: Array
    status: Any

    def __repr__(self) -> str:
        if not self.margin.shape:
            certified = f"gap<={GAP:g}" if self.gap <= GAP else f"gap={float(self.gap):.1g}"
            found = f"margin={float(self.margin):.6g}, {certified}, status={self.status!r}"
            return f"TangentMargin({found})"
        names, counts = np.unique(self.status, return_counts=True)
        ended = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        return f"TangentMargin(trials={self.margin.shape} ({ended}))"


def margin(model: Model, params: Params, problem: Any) -> TangentMargin:
    r"""Max-margin over the unit ball in tangent features, certified.

    $$\gamma=\max_{\|\theta\|\le1}\min_iy_i\langle\nabla_\theta f(X_i),\theta\rangle.$$
    The multihead paper's Definition 1 allows $\|\theta\|=\sqrt2$ ($U$ and $W$ each of norm 1):
    its margins are $\sqrt2$ times ours.

    Args:
        model: an `Attention`, `MultiHead` or `Encoder`.
        params: where the gradients are taken.
        problem: the samples, with labels of either sign.

    Returns:
        A `TangentMargin`. Labels that nothing separates are an answer, margin 0, not an error.

    Examples:
        >>> from attnlab import models, ntk, problems
        >>> p, model = problems.tokenized_mixture(n=60, rng=0), models.MultiHead(heads=8)
        >>> found = ntk.margin(model, model.init(p), p)
        >>> found.direction["U"].shape, bool((found.direction["W"] == 0).all())
        ((8, 10, 4), True)

    Reference: multihead, Definition 1 (P3) and Proposition 2.
    """
    params = prepared(model, params, problem)
    if not (np.abs(problem.y) == 1.0).all():
        raise check.fail("problem", "labels +1 and -1", f"y with values {np.unique(problem.y)[:5]}")
    blocks = tangent(model, params, problem)
    trials, n, y = problem.trials, problem.n, problem.y
    formed = sum(block.size for block in blocks.values()) <= FEATURES
    features = (_formed if formed else _from_gram)(blocks, y).reshape(*trials, n, -1)
    systems = features.reshape(-1, n, features.shape[-1])
    answer, lengths = least_norm(systems), np.linalg.norm(systems, axis=2)
    works = np.isfinite(answer.norm)

    # Farkas weights come in units of normalized features
    units = np.where((lengths > 0.0) & ~works[:, None], lengths, 1.0)
    weights = answer.multipliers / units
    total = weights.sum(axis=1, keepdims=True)
    lam = (weights / np.where(total > 0.0, total, 1.0)).reshape(*trials, n)
    works, longest = works.reshape(trials), lengths.max(axis=1).reshape(trials)

    direction = {name: block.combine(lam * y) for name, block in blocks.items()}
    bound = _norm(direction, len(trials))
    if formed:  # here W may be better than the sum that its multipliers give
        direction = _split(np.nan_to_num(answer.W).reshape(*trials, -1), direction, len(trials))
        lower = (1.0 - answer.gap) * answer.norm  # of the norm of any W with margins 1
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(works, 1.0 / lower.reshape(trials), bound)
    size = _norm(direction, len(trials))
    direction = _times(direction, 1.0 / np.where(size > 0.0, size, 1.0))
    reached = y * sum(block.apply(direction[name]) for name, block in blocks.items())
    hard = works & (bound < HARD * longest)
    if formed and hard.any():
        direction, reached = _held(direction, reached, systems, lam, np.where(hard, bound, 0.0))
    good = works & (reached.min(axis=-1) > 0.0)
    direction = _times(direction, good.astype(float))
    value = np.where(good, reached.min(axis=-1), 0.0)

    status = answer.status.reshape(trials).astype("<U15")
    lost = np.where(status == "infeasible", longest, bound)
    gap = np.maximum(bound - value, 0.0) / np.where(lost > 0.0, lost, 1.0)
    status[(status == "optimal") & ~(gap <= GAP)] = "iteration_limit"
    status[(status == "iteration_limit") & (bound < UNRESOLVED * longest)] = "unresolved"
    return TangentMargin(
        np.asarray(value), direction, lam, np.asarray(gap), status if trials else str(status[()])
    )


def _held(
    direction: Params, reached: Array, systems: Array, lam: Array, best: Array
) -> tuple[Params, Array]:
    """Directions and margins; where ``best > 0``, such that a margin that small is held."""
    trials, n = reached.shape[:-1], reached.shape[-1]
    flat = np.concatenate([D.reshape(*trials, -1) for D in direction.values()], axis=-1)
    units, found = flat.reshape(-1, flat.shape[-1]), reached.reshape(-1, n).copy()
    for k in np.flatnonzero(best):
        features, margin = systems[k], best.flat[k]
        support = features[lam.reshape(-1, n)[k] > 0.0]
        units[k] = _rounded(units[k], support, np.full(len(support), margin))
        found[k] = features.astype(np.longdouble) @ units[k].astype(np.longdouble)
    direction = _split(units.reshape(flat.shape), direction, len(trials))
    return direction, found.reshape(reached.shape)


def _rounded(W: Array, features: Array, margins: Array) -> Array:
    r"""``W (D,)`` such that its products with the ``features (k, D)`` are the ``margins``.

    Rounding moves them by eps ||F|| ||W||, which is much where the margin is a small part of
    that. Small entries are rounded more finely: they take up what the others lose.
    """
    found = W.copy()
    largest, exact = np.abs(found).max(), features.astype(np.longdouble)
    for power in (6, 8, 10):
        fine = np.abs(found) <= 2.0**-power * largest
        if np.count_nonzero(fine) < 2 * len(features):
            break
        lost = (margins - exact @ found.astype(np.longdouble)).astype(np.float64)
        found[fine] += np.linalg.lstsq(features[:, fine], lost, rcond=1e-4)[0]
    moved = np.abs(found - W).max()
    return found if moved <= MOVED * largest else W


def _formed(blocks: dict[str, Block], y: Array) -> Array:
    r"""$y_i\nabla f(X_i)$ as rows, parameter by parameter."""
    found = [block.dense().reshape(*y.shape, -1) for block in blocks.values()]
    return np.asarray(y[..., None] * np.concatenate(found, axis=-1))


def _from_gram(blocks: dict[str, Block], y: Array) -> Array:
    """Rows with the same inner products, no longer than their number."""
    grams = [block.gram(block) for block in blocks.values()]  # type: ignore[arg-type]
    values, vectors = np.linalg.eigh(np.asarray(sum(grams)))
    return np.asarray(y[..., None] * vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def _split(W: Array, like: Params, lead: int) -> Params:
    """One vector as the parameters it stands for."""
    found, start = {}, 0
    for name, array in like.items():
        size = array[(0,) * lead].size
        found[name] = W[..., start : start + size].reshape(array.shape)
        start += size
    return found


def _times(direction: Params, factor: Array) -> Params:
    return {
        name: D * factor.reshape(*factor.shape, *(1,) * (D.ndim - factor.ndim))
        for name, D in direction.items()
    }


def _norm(direction: Params, lead: int) -> Array:
    squares = [(D * D).sum(axis=tuple(range(lead, D.ndim))) for D in direction.values()]
    return np.asarray(np.sqrt(sum(squares)))
