"""Att-SVM in both norms, and the decoder's SVM."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.problems import TokenProblem, selection
from attnlab.svm._large import by_halves
from attnlab.svm._least_norm import Answer, solve
from attnlab.svm._margin import InfeasibleMargin, Margin
from attnlab.svm._pivot import MANY
from attnlab.svm._rows import Dense, RankOne
from attnlab.svm._single import single

METHODS = ("auto", "pivot", "nnls", "interior", "cvxpy")


def attention_svm(
    problem: TokenProblem,
    tokens: Any = None,
    norm: str = "fro",
    method: str = "auto",
) -> Margin:
    r"""The max-margin direction that separates one token of each sample from the others.

    $\min\|W\|$ s.t. $(x_{i\alpha_i}-x_{it})^\top Wz_i\ge1$ for all $t\ne\alpha_i$ that may be
    attended to. A mask (causal attention) drops the constraints of hidden tokens; rows that are
    positions of sequences need nothing special.

    Args:
        problem: the data; any leading axes.
        tokens: selected tokens $\alpha$, whole numbers, shape ``(..., n)``; None for the optimal
            ones.
        norm: ``"fro"`` (trains W) or ``"nuc"`` (trains K and Q).
        method: ``"auto"`` takes what is fastest and falls back where it is not certified;
            ``"pivot"`` or ``"nnls"`` (Frobenius), ``"interior"`` (nuclear) insist on one;
            ``"cvxpy"`` for the textbook formulation, as a reference.

    Returns:
        A `Margin`. A single instance that is infeasible raises `InfeasibleMargin`; in a batch it
        is a status.

    Examples:
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=5, T=5, d=8, trials=100, min_gap=0.1, rng=0)
        >>> mm = svm.attention_svm(p)
        >>> mm.W.shape, mm.support.shape, bool(mm.gap.max() < 1e-9)
        ((100, 8, 8), (100, 5, 5), True)

    Reference: svm, (Att-SVM), (Att-SVM*), equation 11; bias, (W-SVM).
    """
    check.choice("norm", norm, ("fro", "nuc"))
    check.choice("method", method, METHODS)
    if (norm, method) in {("fro", "interior"), ("nuc", "pivot"), ("nuc", "nnls")}:
        fits = "'pivot', 'nnls'" if norm == "fro" else "'interior'"
        raise check.fail("method", f"'auto', {fits} or 'cvxpy' for norm {norm!r}", method)
    alpha = selection(problem, tokens)
    quick = norm == "fro" and method == "auto"
    if quick and problem.X.ndim == 3 and problem.mask is None:
        found = single(problem, alpha)
        if found is not None:
            return found
        quick = False
    rows, others = rows_of(problem, alpha)
    if quick and rows.full and rows.valid.shape[1] >= MANY:
        answer, left = by_halves(rows)
        if left.size:
            answer.fill(left, _general(rows.take(left), norm, method))
    else:
        answer = _general(rows, norm, method)
    flat = alpha.reshape(-1, problem.n)
    counted = None if problem.mask is None else problem.mask.reshape(-1, problem.n, problem.T)
    return present(problem, answer, flat, others, norm, counted)


def _general(rows: RankOne, norm: str, method: str) -> Answer:
    """Answers by any method, for features of any size."""
    factor: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        plain = rows.span[0] > 1e-70 and rows.span[1] < 1e70
    if not plain:
        rows, factor = rows.tamed()  # squares of such lengths leave float64
    if method == "cvxpy":
        from attnlab.svm._textbook import textbook

        answer = textbook(rows, norm)
    elif norm == "nuc":
        from attnlab.svm._nuclear import solve_nuclear

        answer = solve_nuclear(rows, method)
    else:
        answer = solve(rows, method)
    return answer if factor is None else _untamed(answer, rows, factor)


def decoder_svm(*, x: Any, y: Any) -> Margin:
    r"""The max-margin decoder, $\min\|u\|$ s.t. $y_i\,u^\top x_i\ge1$.

    Args:
        x: one token a sample, shape ``(..., n, d)``.
        y: labels +1 or -1, shape ``(..., n)``.

    Returns:
        A `Margin` with ``W`` the decoder, shape ``(..., d)``.

    Examples:
        >>> from attnlab import svm
        >>> u = svm.decoder_svm(x=[[2.0, 0.0], [0.0, 1.0]], y=[1.0, -1.0])
        >>> u.W.round(6).tolist()
        [0.5, -1.0]

    Reference: bias, (u-SVM) and Theorem 4.
    """
    x, y = check.frozen("x", x, ndim=2), check.frozen("y", y)
    check.shape("y", y, x.shape[:-1], f"to fit x of shape {x.shape}")
    if not (np.abs(y) == 1.0).all():
        raise check.fail("y", "labels +1 or -1", y.ravel().tolist())
    *lead, n, d = x.shape
    B = int(np.prod(lead, dtype=int))
    rows = Dense((y[..., None] * x).reshape(B, n, d), np.ones((B, n), bool))
    answer = solve_tamed(rows)
    margin = _margin(answer, tuple(lead), (d,), answer.margins, answer.multipliers, "fro")
    if not lead and margin.status == "infeasible":
        who = ", ".join(map(str, np.flatnonzero(margin.multipliers > 1e-9)))
        raise InfeasibleMargin(margin, f"the samples {who} by a linear decoder")
    return margin


def solve_tamed(rows: Dense) -> Answer:
    """`solve` for plain features of any size."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = rows.span[0] > 1e-70 and rows.span[1] < 1e70
    if plain:
        return solve(rows)
    tamed, factor = rows.tamed()
    answer = solve(tamed)
    good = answer.status == "optimal"
    with np.errstate(over="ignore"):  # multipliers go with the square of 1 / size
        multipliers = np.where(good[:, None], factor[:, None] ** 2, 1.0) * answer.multipliers
    return answer._replace(
        W=answer.W * factor[:, None], norm=answer.norm * factor, multipliers=multipliers
    )


def _untamed(answer: Answer, rows: RankOne, factor: Array) -> Answer:
    """Back to the sizes that were asked for; what one float64 cannot span is said."""
    left = np.abs(rows.left).max(axis=-1) * np.abs(rows.right).max(axis=-1)[..., None]
    small = (left > 0.0) & (left < 1e-70)
    if small.any():
        raise check.fail(
            "X", "token differences times queries within 70 powers of ten", f"{left[small].min():g}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return answer._replace(
            W=answer.W * factor[:, None, None],
            norm=answer.norm * factor,
            multipliers=np.where(
                (answer.status == "optimal")[:, None],
                answer.multipliers * factor[:, None] ** 2,
                answer.multipliers,
            ),
        )


def rows_of(problem: TokenProblem, tokens: IntArray) -> tuple[RankOne, IntArray]:
    r"""Rows $(x_\alpha-x_t)z^\top$ of the tokens that are not selected, and which they are."""
    n, T, d = problem.n, problem.T, problem.d
    alpha = tokens.reshape(-1, n)
    B = len(alpha)
    first, others, everything = _places(B, n, T)
    others = others + (others >= alpha[..., None])  # (B, n, T - 1)
    X = problem.X.reshape(B * n * T, d)
    left = X.take(first[..., None] + others, axis=0)
    np.subtract(X.take(first + alpha, axis=0)[:, :, None], left, out=left)
    if problem.mask is None:
        valid = everything
    else:
        mask = problem.mask.reshape(B, n, T)
        valid = np.take_along_axis(mask, others, axis=-1).reshape(B, -1)
        left = np.where(valid.reshape(B, n, -1, 1), left, 0.0)
    rows = RankOne(left, problem.z.reshape(B, n, d), valid)
    if problem.mask is None:
        rows.__dict__["full"] = True  # known without a look
    return rows, others


@lru_cache(maxsize=64)
def _places(B: int, n: int, T: int) -> tuple[IntArray, IntArray, BoolArray]:
    """Where each sample's tokens begin in a flat list of tokens; 0, ..., T - 2; all rows."""
    first = check.seal(np.arange(0, B * n * T, T).reshape(B, n))
    everything = check.seal(np.ones((B, n * (T - 1)), bool))
    return first, check.seal(np.arange(T - 1)), everything


def present(
    problem: TokenProblem,
    answer: Answer,
    alpha: IntArray,
    where: IntArray,
    norm: str,
    counted: BoolArray | None = None,
) -> Margin:
    """Answers of rows that stand for the tokens ``where (B, n, rows)``, as a `Margin`.

    ``counted (B, n, T)`` says which tokens have a margin at all; the others keep 0.
    """
    B, n, _ = where.shape
    lead, T = problem.trials, problem.T
    spread = []
    at = _places(B, n, T)[0][..., None] + where
    for values in (answer.margins, answer.multipliers):
        full = np.zeros((B, n, T))
        full.put(at, values)
        if counted is not None:
            full[~counted] = 0.0
        spread.append(full.reshape(*lead, n, T))
    margin = _margin(answer, lead, (problem.d, problem.d), spread[0], spread[1], norm)
    if not lead and margin.status == "infeasible":
        raise InfeasibleMargin(margin, _in_words(margin, alpha[0]))
    return margin


def _margin(
    answer: Answer,
    lead: tuple[int, ...],
    tail: tuple[int, ...],
    margins: Array,
    multipliers: Array,
    norm: str,
) -> Margin:
    status = answer.status.reshape(lead)
    if len(tail) == 1:  # a decoder: margins come one a sample, not yet in the trials' shape
        margins = margins.reshape(*lead, -1)
        multipliers = multipliers.reshape(*lead, -1)
    return Margin(
        W=answer.W.reshape(*lead, *tail),
        margins=margins,
        multipliers=multipliers,
        norm=answer.norm.reshape(lead),
        gap=answer.gap.reshape(lead),
        residual=answer.residual.reshape(lead),
        status=status if lead else str(status),
        norm_name=norm,
    )


def _in_words(margin: Margin, alpha: IntArray) -> str:
    """Which tokens contradict each other."""
    sample, token = np.nonzero(margin.multipliers > 1e-9)
    pairs = [
        f"sample {i}: token {t} from token {alpha[i]}"
        for i, t in zip(sample[:6], token[:6], strict=True)
    ]
    more = f" and {len(sample) - 6} more" if len(sample) > 6 else ""
    return ("; ".join(pairs) + more) if len(pairs) < 2 else "together " + "; ".join(pairs) + more
