"""Where a run went: the global direction, a local one, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, IntArray
from attnlab.models import Attention
from attnlab.problems import TokenProblem
from attnlab.svm._attention import attention_svm
from attnlab.svm._general import correlation
from attnlab.svm._margin import InfeasibleMargin, Margin


@dataclass(frozen=True, eq=False)
class Classification:
    r"""For each trial whether training went to the global, a local, or no max-margin direction.

    Args:
        kind: ``"global"`` (every sample settled on its optimal token and the correlation with
            $W^{mm}$ exceeds the threshold), ``"local"`` (the same for the tokens it did settle
            on), or ``"none"``; shape of the trials.
        tokens: the tokens attended to most at the end, $\alpha$, shape ``(..., n)``.
        correlation: with $W^{mm}_\alpha$, 0 where that problem has no answer.
        margin: the max-margin problem of $\alpha$.
        threshold: what the correlation has to exceed.

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import models, optim, problems, svm
        >>> p = problems.sphere(n=5, T=5, d=10, trials=50, min_gap=0.1, rng=0)
        >>> run = optim.train(models.Attention(), p, optim.NormalizedGD(0.1), 1000, rng=1)
        >>> found = svm.classify(run, p)
        >>> bool((found.kind == "global").mean() > 0.8)
        True

    Reference: svm, Section 5.1 (Figures 2 and 5).
    """

    kind: Any
    tokens: IntArray
    correlation: Array
    margin: Margin
    threshold: float

    def share(self, kind: str) -> float:
        """Share of trials of one kind."""
        check.choice("kind", kind, ("global", "local", "none"))
        return float(np.mean(np.asarray(self.kind) == kind))

    def __repr__(self) -> str:
        told = ", ".join(f"{kind}={self.share(kind):.2f}" for kind in ("global", "local", "none"))
        return f"Classification({told}, threshold={self.threshold})"


def classify(
    run: Any, problem: TokenProblem | None = None, *, norm: str = "auto", threshold: float = 0.99
) -> Classification:
    """Compare what a run found with the max-margin direction of the tokens it settled on.

    Args:
        run: a run of `Attention`, with W or with K and Q.
        problem: the data; None for the run's own.
        norm: ``"fro"`` or ``"nuc"``; ``"auto"`` takes the norm of the parameterisation.
        threshold: correlation to exceed. For d >= 4 the choice between .90 and .99 does not
            matter (at d = 2 it moves ten points); towards .999 the papers' update fails more and
            more, because it stalls. For K and Q it is the papers' recipe, with its penalty, that
            reaches .99 in 2,000 steps; exact steps take many more.

    Returns:
        A `Classification`.

    Examples:
        >>> from attnlab import models, optim, problems, svm
        >>> p = problems.bad_direction()
        >>> rule, model = optim.NormalizedGD(0.1), models.Attention(start="zero")
        >>> svm.classify(optim.train(model, p, rule, 2000)).kind
        'global'

    Reference: svm, Section 5.1.
    """
    if not isinstance(getattr(run, "model", None), Attention):
        raise check.fail("run", "a run of Attention", run)
    check.choice("norm", norm, ("auto", "fro", "nuc"))
    check.number("threshold", threshold, above=-1.0, below=1.0)
    problem = run.problem if problem is None else problem
    params = run.params
    factored = "K" in params
    W = params["K"] @ params["Q"].swapaxes(-1, -2) if factored else params["W"]
    alpha = run.model.attention(params, problem).argmax(axis=-1)
    chosen = ("nuc" if factored else "fro") if norm == "auto" else norm
    try:
        margin = attention_svm(problem, alpha, norm=chosen)
    except InfeasibleMargin as error:
        margin = error.margin
    found = np.asarray(margin.status == "optimal")
    aligned = np.where(found, correlation(W, np.nan_to_num(margin.W)), 0.0)
    scores = run.model.scores(problem, params)
    if problem.mask is not None:
        scores = np.where(problem.mask, scores, -np.inf)
    best = (alpha == scores.argmax(axis=-1)).all(axis=-1)
    near = aligned > threshold
    kinds = np.where(near & best, "global", np.where(near, "local", "none"))
    kind = kinds if kinds.ndim else str(kinds)
    return Classification(kind, alpha, aligned, margin, threshold)
