r"""The nuclear problem with a limit on the rank: KQ-SVM with few columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import GAP, Array
from attnlab.problems import TokenProblem, selection
from attnlab.svm._attention import attention_svm, rows_of
from attnlab.svm._least_norm import solve
from attnlab.svm._margin import Margin
from attnlab.svm._rows import RankOne


def rank_limited_svm(
    problem: TokenProblem, m: int, tokens: Any = None, rounds: int = 200
) -> Margin:
    r"""$\min\|W\|_\star$ under the margins and $\mathrm{rank}\,W\le m$.

    Where the convex answer has rank at most $m$ it is the answer (Lemma 3). Elsewhere the problem
    is not convex: $K$ and $Q$ are improved in turn, each a least-norm problem of its own, from
    three starts: the truncated convex answer, mixtures of its directions, and the queries' own.
    The result is a local answer. Its ``gap`` is measured against the convex bound, and its status
    is ``unresolved`` unless that gap closes; where no start leads to a feasible W of this rank, W
    is NaN and its norm infinite.

    Args:
        problem: the data.
        m: largest rank, the columns of $K$ and $Q$.
        tokens: selected tokens, shape ``(..., n)``; None for the optimal ones.
        rounds: turns of $K$ and $Q$.

    Returns:
        A `Margin` in the nuclear norm.

    Examples:
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=4, T=4, d=8, trials=10, rng=0)
        >>> full = svm.attention_svm(p, norm="nuc")
        >>> two = svm.rank_limited_svm(p, 2)
        >>> bool((two.rank <= 2).all()), bool((two.norm >= full.norm * (1 - 1e-9)).all())
        (True, True)

    Reference: svm, (Att-SVM*), KQ-SVM and Lemma 3.
    """
    m, rounds = check.count("m", m), check.count("rounds", rounds)
    convex = attention_svm(problem, tokens, norm="nuc")
    lead = problem.trials
    B = int(np.prod(lead, dtype=int))
    rows, others = rows_of(problem, selection(problem, tokens))
    W = convex.W.reshape(B, problem.d, problem.d).copy()
    norm, gap = convex.norm.reshape(B).copy(), convex.gap.reshape(B).copy()
    status = np.array(convex.status).reshape(B).astype("<U15")
    low = np.flatnonzero((status == "optimal") & (convex.rank.reshape(B) > m))
    if low.size:
        part, start = rows.take(low), W[low]
        found, size = _alternate(part, _leading(start, m), rounds)
        for Q in (_mixed(start, m), _queries(part, m)):
            other, least = _alternate(part, Q, rounds)
            found[least < size], size = other[least < size], np.minimum(size, least)
        bound = norm[low] * (1.0 - gap[low])
        W[low], norm[low] = found, size
        gap[low] = np.where(np.isfinite(size), 1.0 - bound / size, np.inf)
        status[low] = np.where(gap[low] <= GAP, "optimal", "unresolved")
    full: Array = np.zeros((B, problem.n, problem.T))
    np.put_along_axis(full, others, rows.apply(W).reshape(others.shape), axis=-1)
    if problem.mask is not None:
        full[~problem.mask.reshape(full.shape)] = 0.0
    margins = full.reshape(convex.margins.shape)
    return Margin(
        W=W.reshape(convex.W.shape),
        margins=margins,
        multipliers=convex.multipliers,
        norm=norm.reshape(lead),
        gap=gap.reshape(lead),
        residual=convex.residual,
        status=status.reshape(lead) if lead else str(status[0]),
        norm_name="nuc",
    )


def _leading(W: Array, m: int) -> Array:
    """Q of the truncated answer."""
    values, Vt = np.linalg.svd(W)[1:]
    return np.asarray(Vt.swapaxes(1, 2)[:, :, :m] * np.sqrt(values[:, None, :m]))


def _mixed(W: Array, m: int) -> Array:
    """Q from cosine mixtures of all directions, for answers that truncation makes infeasible."""
    values, Vt = np.linalg.svd(W)[1:]
    d = W.shape[-1]
    mix = np.cos(np.pi * (np.arange(d)[:, None] + 0.5) * np.arange(m) / d)
    return np.asarray((Vt.swapaxes(1, 2) * np.sqrt(values)[:, None, :]) @ mix)


def _queries(rows: RankOne, m: int) -> Array:
    """Q from the leading directions of the queries."""
    Vt = np.linalg.svd(rows.right, full_matrices=True)[2]
    return np.asarray(Vt.swapaxes(1, 2)[:, :, :m])


def _alternate(rows: RankOne, Q: Array, rounds: int) -> tuple[Array, Array]:
    r"""Least $\frac12(\|K\|^2+\|Q\|^2)$ in K, then in Q; the best product by nuclear norm."""
    B, n, t, d = rows.left.shape
    m = Q.shape[-1]
    best, least = np.full((B, d, rows.right.shape[-1]), np.nan), np.full(B, np.inf)
    for _ in range(rounds):
        K = np.nan_to_num(solve(RankOne(rows.left, rows.right @ Q, rows.valid)).W)
        turned = (rows.left.reshape(B, n * t, d) @ K).reshape(B, n, t, m)
        P = np.nan_to_num(solve(RankOne(turned, rows.right, rows.valid)).W)  # Q^T, (B, m, d)
        product = K @ P
        reach = np.where(rows.valid, rows.apply(product), np.inf).min(axis=1)
        values, Vt = np.linalg.svd(product)[1:]
        works = (reach > 0.0) & np.isfinite(reach)
        size = np.where(works, values.sum(axis=1) / np.where(works, reach, 1.0), np.inf)
        better = size < least * (1.0 - 1e-12)
        best[better] = product[better] / reach[better, None, None]
        least = np.where(better, size, least)
        if not better.any():
            break
        Q = Vt.swapaxes(1, 2)[:, :, :m] * np.sqrt(values[:, None, :m])
    return best, least
