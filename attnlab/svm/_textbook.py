"""The problem as a textbook states it, one constraint a token, solved by cvxpy as a reference."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from attnlab.checks import GAP, Array
from attnlab.svm import _nnls
from attnlab.svm._least_norm import Answer, empty
from attnlab.svm._rows import RankOne

TIGHT = 1e-10  # the solver's own tolerances; its default stops at gaps of 1e-8


def textbook(rows: RankOne, norm: str) -> Answer:
    """Every system on its own; what comes back is the solver's, with the gap it really has."""
    answer = empty(rows.valid.shape, rows.left.shape[-1], rows.right.shape[-1])
    for index in range(len(rows.valid)):
        if rows.valid[index].any():
            _fill(answer, rows, index, norm)
        else:  # nothing asked: W = 0
            for kept in (answer.W, answer.margins, answer.norm, answer.gap):
                kept[index] = 0.0
            answer.status[index] = "optimal"
    return answer


def _fill(answer: Answer, rows: RankOne, index: int, norm: str) -> None:
    try:
        import cvxpy
    except ModuleNotFoundError:
        raise ModuleNotFoundError("method='cvxpy' needs cvxpy: pip install cvxpy") from None

    cp: Any = cvxpy

    n, t, d = rows.left[index].shape
    W: Any = cp.Variable((d, rows.right.shape[-1]))
    constraints, which = [], []
    for i in range(n):
        for k in range(t):
            if rows.valid[index, i * t + k]:
                constraints.append(rows.left[index, i, k] @ W @ rows.right[index, i] >= 1)
                which.append(i * t + k)
    objective = cp.norm(W, "fro") if norm == "fro" else cp.normNuc(W)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is inaccurate is said by the gap
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=TIGHT, tol_gap_rel=TIGHT, tol_feas=TIGHT)
    if problem.status not in ("optimal", "optimal_inaccurate"):
        lam, residual = _nnls.contradiction(_unit(rows.dense(index)[0]))
        answer.multipliers[index, rows.valid[index]] = lam
        answer.residual[index] = residual
        answer.status[index] = "infeasible" if "infeasible" in problem.status else "unresolved"
        return
    lam = np.zeros(n * t)
    lam[which] = [max(0.0, float(c.dual_value)) for c in constraints]
    one = rows.take(np.array([index]))
    margins = one.apply(W.value[None])[0]
    reach = margins[rows.valid[index]].min()
    size, bound = sizes(W.value, norm), sizes(one.combine(lam[None])[0], norm, dual=True)
    answer.W[index], answer.margins[index], answer.norm[index] = W.value, margins, size
    answer.multipliers[index] = lam / bound * size  # so that the Frobenius W is their combination
    answer.gap[index] = max(0.0, 1.0 - lam.sum() / bound * reach / size)
    answer.status[index] = "optimal" if answer.gap[index] <= GAP else "iteration_limit"


def sizes(W: Array, norm: str, dual: bool = False) -> float:
    """Frobenius or nuclear norm, or its dual."""
    if norm == "fro":
        return float(np.linalg.norm(W))
    return float(np.linalg.norm(W, 2 if dual else "nuc"))


def _unit(A: Array) -> Array:
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    return np.asarray(A / np.where(lengths > 0.0, lengths, 1.0))
