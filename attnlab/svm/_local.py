"""Local optimality of a selection, and the assumptions of the svm paper as findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.models import Attention
from attnlab.problems import TokenProblem, selection
from attnlab.svm._attention import attention_svm
from attnlab.svm._margin import Margin

ENUMERATION_LIMIT = 100_000  # selections T^n times trials that may be solved one and all
TIE = 1e-12  # scores closer than this, relative to the largest, are the same


@dataclass(frozen=True, eq=False)
class LocalOptimality:
    r"""Whether training may stay at a selection $\alpha$, as printed and as it must be.

    Definition 2 asks that the selected token outscore its neighbours, the support tokens $T_i$.
    Where a sample has no support token that is vacuous, and Lemma 5 then fails although a higher
    token may be near; the corrected notion asks for support wherever some token scores at least
    as high.

    Args:
        as_printed: Definition 2, shape of the trials; False where the margin problem has no
            answer.
        corrected: the same with $T_i\ne\emptyset$ wherever a token scores at least
            $\gamma_{i\alpha_i}$.
        neighbours: the support tokens, boolean ``(..., n, T)``.
        margin: the max-margin problem of the selection.

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import problems, svm
        >>> found = svm.locally_optimal(problems.bad_direction(), tokens=[1, 1])
        >>> bool(found.as_printed), bool(found.corrected)  # margins 1 and 5.325: no support in 2
        (True, False)

    Reference: svm, Definition 2, Lemmas 5 and 16.
    """

    as_printed: BoolArray
    corrected: BoolArray
    neighbours: BoolArray
    margin: Margin

    def __repr__(self) -> str:
        share = f"as_printed={self.as_printed.mean():.2f}, corrected={self.corrected.mean():.2f}"
        return f"LocalOptimality({share}, trials={self.as_printed.shape})"


@dataclass(frozen=True, eq=False)
class Finding:
    """What a check of an assumption found, trial by trial.

    Args:
        holds: whether the assumption holds, shape of the trials.
        measured: the numbers it was read from, by name.

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=2, T=3, d=20, rng=0)
        >>> found = svm.assumption_b1(p)
        >>> bool(found.holds), sorted(found.measured)
        (True, ['largest_margin', 'lead', 'mean_margin'])

    Reference: svm, Assumptions B, C and D.
    """

    holds: BoolArray
    measured: dict[str, Array]

    def __repr__(self) -> str:
        told = ", ".join(f"{k}={np.median(v):.4g}" for k, v in self.measured.items() if v.size)
        return f"Finding(holds={float(np.mean(self.holds)):.2f} of trials; medians: {told})"


def locally_optimal(problem: TokenProblem, tokens: Any = None) -> LocalOptimality:
    r"""Definition 2: whether $\alpha$ outscores the support tokens of its max-margin problem.

    Args:
        problem: the data.
        tokens: the selection $\alpha$, shape ``(..., n)``; None for the optimal tokens.

    Returns:
        A `LocalOptimality`, as printed and corrected.

    Examples:
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=5, T=5, d=8, trials=100, min_gap=0.1, rng=0)
        >>> bool(svm.locally_optimal(p).as_printed.all())  # the optimal tokens always are
        True

    Reference: svm, Definition 2 and Theorem 7.
    """
    alpha = selection(problem, tokens)
    margin = _batched(problem, alpha)
    scores, allowed = problem.scores, problem.allowed
    own = np.take_along_axis(scores, alpha[..., None], axis=-1)
    neighbours = margin.support & allowed
    solved = np.asarray(margin.status == "optimal")
    beaten = (neighbours & (scores >= own)).any(axis=(-1, -2))
    selected = np.arange(problem.T) == alpha[..., None]
    rivals = (allowed & ~selected & (scores >= own)).any(axis=-1)
    bare = rivals & ~neighbours.any(axis=-1)
    as_printed = solved & ~beaten
    return LocalOptimality(as_printed, as_printed & ~bare.any(axis=-1), neighbours, margin)


def assumption_b1(problem: TokenProblem) -> Finding:
    """B.1: one optimal token a sample, and every other token is a support token.

    Args:
        problem: the data.

    Returns:
        A `Finding` with ``largest_margin``, ``mean_margin`` (the paper's proxy asks for a mean
        below 1.1) and ``lead``, the least lead of the best score.

    Examples:
        >>> from attnlab import problems, svm
        >>> bool(svm.assumption_b1(problems.bad_direction()).holds)
        True

    Reference: svm, Assumption B.1 and Figure 5.
    """
    others = _others(problem)
    margin = _batched(problem, problem.optimal)
    solved = np.asarray(margin.status == "optimal")
    values = np.where(solved[..., None, None], margin.margins, np.inf)
    largest = np.where(others, values, 1.0).max(axis=(-1, -2))
    count = np.maximum(others.sum(axis=(-1, -2)), 1)
    mean = np.where(others, values, 0.0).sum(axis=(-1, -2)) / count
    lead, size = _lead(problem), np.abs(problem.scores).max(axis=(-1, -2))
    holds = solved & (largest <= 1.0 + 1e-6) & (lead > TIE * size)
    return Finding(holds, {"largest_margin": largest, "mean_margin": mean, "lead": lead})


def assumption_b2(problem: TokenProblem) -> Finding:
    r"""B.2: one optimal token a sample, and all other tokens score the same.

    Args:
        problem: the data.

    Returns:
        A `Finding` with ``spread``, the largest difference among scores of tokens that are not
        optimal, and ``lead``.

    Examples:
        >>> from attnlab import problems, svm
        >>> bool(svm.assumption_b2(problems.orthogonal(n=4, T=3, d=9, rho=0.1, rng=0)).holds)
        True

    Reference: svm, Assumption B.2; bias, Assumption 2.
    """
    others = _others(problem)
    scores = problem.scores
    high = np.where(others, scores, -np.inf).max(axis=-1)
    low = np.where(others, scores, np.inf).min(axis=-1)
    alone = ~others.any(axis=-1)
    spread = np.where(alone, 0.0, np.where(alone, 0.0, high) - np.where(alone, 0.0, low))
    spread, lead = spread.max(axis=-1), _lead(problem)
    size = np.abs(scores).max(axis=(-1, -2))
    return Finding((spread <= TIE * size) & (lead > TIE * size), {"spread": spread, "lead": lead})


def assumption_c(problem: TokenProblem, loss: str = "logistic") -> Finding:
    r"""C: the first step from zero favours the optimal tokens.

    $(x_{it}-x_{i\,\mathrm{opt}_i})^\top\nabla\mathcal L(0)z_i>0$ for all $t\ne\mathrm{opt}_i$.

    Args:
        problem: the data.
        loss: ``"logistic"``, ``"exponential"`` or ``"correlation"``.

    Returns:
        A `Finding` with ``least``, the smallest of these numbers.

    Examples:
        >>> from attnlab import problems, svm
        >>> bool(svm.assumption_c(problems.two_token()).holds)
        True

    Reference: svm, Assumption C and Theorem 6.
    """
    zero = {"W": np.zeros((*problem.trials, problem.d, problem.d))}
    grad = Attention(loss=loss, start="zero").value_and_grad(zero, problem)[1]["W"]
    r = problem.z @ grad.swapaxes(-1, -2)
    logits = (problem.X @ r[..., None])[..., 0]
    best = np.take_along_axis(logits, problem.optimal[..., None], axis=-1)
    others = _others(problem)
    least = np.where(others, logits - best, np.inf).min(axis=(-1, -2))
    return Finding(least > 0.0, {"least": least})


def assumption_d(problem: TokenProblem) -> Finding:
    r"""D: every wrong selection has a sample whose optimal token is a neighbour of it.

    For every $\alpha\ne\mathrm{opt}$ whose margin problem has an answer there is an $i$ with
    $\alpha_i\ne\mathrm{opt}_i$ and $\mathrm{opt}_i\in T_i$; then no such $\alpha$ is locally
    optimal. All $T^n$ selections are solved.

    Args:
        problem: the data, small enough to enumerate and without a mask.

    Returns:
        A `Finding` with ``selections`` (how many were feasible) and ``counterexamples``.

    Examples:
        >>> from attnlab import problems, svm
        >>> found = svm.assumption_d(problems.bad_direction())
        >>> bool(found.holds), int(found.measured["counterexamples"])  # the bad direction itself
        (False, 1)

    Reference: svm, Assumption D and Section 5.2.
    """
    many, alpha = every_selection(problem)
    margin = _batched(many, alpha)
    opt = many.optimal
    wrong = alpha != opt
    near = np.take_along_axis(margin.support, opt[..., None], axis=-1)[..., 0]
    counts = wrong.any(axis=-1) & np.asarray(margin.status == "optimal")
    against = counts & ~(wrong & near).any(axis=-1)
    return Finding(
        against.sum(axis=0) == 0,
        {"selections": counts.sum(axis=0), "counterexamples": against.sum(axis=0)},
    )


def feasibility(problem: TokenProblem, tokens: Any = None) -> Finding:
    r"""Whether the tokens can be separated, and whether the dimension alone promises it.

    $d\ge\max(T-1,n)$ makes every selection feasible for almost all data; it is sufficient, not
    necessary.

    Args:
        problem: the data.
        tokens: the selection, shape ``(..., n)``; None for the optimal tokens; ``"all"`` asks
            for every selection at once (by enumeration).

    Returns:
        A `Finding` with ``promised`` (1 where $d\ge\max(T-1,n)$) and ``share``, the share of
        feasible selections.

    Examples:
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=3, T=4, d=3, trials=20, rng=0)
        >>> found = svm.feasibility(p, tokens="all")
        >>> bool(found.holds.all()), float(found.measured["promised"][0])
        (True, 1.0)

    Reference: svm, Theorems 1 and 8.
    """
    promised = np.full(problem.trials, float(problem.d >= max(problem.T - 1, problem.n)))
    if isinstance(tokens, str):
        check.choice("tokens", tokens, ("all",))
        many, alpha = every_selection(problem)
        share = np.asarray(_batched(many, alpha).status == "optimal").mean(axis=0)
    else:
        alpha = selection(problem, tokens)
        share = np.asarray(_batched(problem, alpha).status == "optimal") * 1.0
    return Finding(share == 1.0, {"promised": promised, "share": share})


def every_selection(problem: TokenProblem) -> tuple[TokenProblem, IntArray]:
    """The problem repeated for each of its $T^n$ selections, which become the first axis."""
    n, T = problem.n, problem.T
    selection(problem, None)
    if problem.mask is not None:
        raise check.fail("problem", "one without a mask to enumerate", repr(problem))
    total = T**n
    size = total * int(np.prod(problem.trials, dtype=int))
    if size > ENUMERATION_LIMIT:
        raise check.fail(
            "problem",
            f"at most {ENUMERATION_LIMIT} selections to enumerate (fewer samples, tokens, trials)",
            f"T**n times trials = {size}",
        )
    digits = np.arange(total)[:, None] // T ** np.arange(n) % T
    alpha = np.broadcast_to(
        digits.reshape(total, *(1,) * len(problem.trials), n), (total, *problem.trials, n)
    )
    X, z, y, v = (
        np.broadcast_to(a, (total, *a.shape)) for a in (problem.X, problem.z, problem.y, problem.v)
    )
    return TokenProblem(X, z, y, v), np.ascontiguousarray(alpha)


def _batched(problem: TokenProblem, alpha: IntArray) -> Margin:
    """Like `attention_svm`, but an infeasible single instance is a status, not an error."""
    if problem.trials:
        return attention_svm(problem, alpha)
    from attnlab.svm._margin import InfeasibleMargin

    try:
        return attention_svm(problem, alpha)
    except InfeasibleMargin as error:
        return error.margin


def _others(problem: TokenProblem) -> BoolArray:
    """Tokens that may be attended to and are not optimal; refuses other kinds of problem."""
    opt = selection(problem, None)
    return np.asarray(problem.allowed & (np.arange(problem.T) != opt[..., None]))


def _lead(problem: TokenProblem) -> Array:
    """Least lead of the best score over the others, over samples."""
    others = _others(problem)
    return np.asarray(
        np.where(others, problem.best[..., None] - problem.scores, np.inf).min(axis=(-1, -2))
    )
