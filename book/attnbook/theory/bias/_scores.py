r"""How token scores vary: the three forms of $\Upsilon$, and $\zeta$."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attnbook.theory.bias import _inputs as given
from attnlab import checks as check
from attnlab.checks import Array
from attnlab.problems import TokenProblem

FORMS = ("proof", "main", "table")


def split_scores(problem: TokenProblem) -> tuple[Array, Array, Array]:
    r"""Scores of the optimal tokens, the lowest others and the others' spread (bias, Definition 1).

    $\gamma_{i\,\mathrm{opt}_i}$, $\gamma_i=\min_{\tau\ne\mathrm{opt}_i}\gamma_{i\tau}$ and
    $\max_{\tau\ne\mathrm{opt}_i}\gamma_{i\tau}-\gamma_i$, ``(..., n)`` each;
    Assumption 2 wants the last to be 0.

    >>> from attnbook import theory
    >>> from attnlab import problems
    >>> p = problems.orthogonal(n=3, T=4, d=9, rho=0.1, rng=0)
    >>> [part.tolist() for part in theory.bias.split_scores(p)]
    [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    problem = given.tokens(problem)
    chosen = np.arange(problem.T) == problem.optimal[..., None]
    low = np.where(chosen, np.inf, problem.scores).min(axis=-1)
    high = np.where(chosen, -np.inf, problem.scores).max(axis=-1)
    return np.array(problem.best), low, high - low


def conditioning(best: ArrayLike, others: ArrayLike, *, form: str = "proof") -> Array:
    r"""$\Upsilon$: how much score gaps and losses vary (bias, Section 3.1, Table 1, equation 22).

    The paper has three forms. With $\kappa=\max_i(\gamma_{i\,\mathrm{opt}_i}-\gamma_i)/
    \min_i(\gamma_{i\,\mathrm{opt}_i}-\gamma_i)$ the ``"proof"`` of Lemma 3 needs
    $\kappa\max_ie^{\gamma_{i\,\mathrm{opt}_i}}/\min_ie^{\gamma_i}$, the safe one; Section 3.1
    (``"main"``) defines $\kappa\max_ie^{\gamma_{i\,\mathrm{opt}_i}-\gamma_i}$ and Table 1
    (``"table"``) $\kappa\min_ie^{\gamma_{i\,\mathrm{opt}_i}}/\max_ie^{\gamma_i}$. Where all
    samples have the same scores the three agree.

    >>> from attnbook import theory
    >>> forms = ("main", "table", "proof")
    >>> [round(float(theory.bias.conditioning([1, 2], [0, 0.5], form=f)), 2) for f in forms]
    [6.72, 2.47, 11.08]
    >>> round(float(theory.bias.conditioning([1, 1], [0, 0])), 6)
    2.718282
    """
    top, rest = given.gaps(best, others)
    check.choice("form", form, FORMS)
    gap = top - rest
    kappa = gap.max(axis=-1) / gap.min(axis=-1)
    if form == "main":
        largest = gap.max(axis=-1)
    elif form == "table":
        largest = top.min(axis=-1) - rest.max(axis=-1)
    else:
        largest = top.max(axis=-1) - rest.min(axis=-1)
    return np.asarray(kappa * np.exp(largest))


def loss_scale(best: ArrayLike, others: ArrayLike, *, printed: bool = False) -> Array:
    r"""$\zeta$, largest score gap times largest loss (bias, Table 1 and Theorem 6).

    The proof of Theorem 6 needs $\max_i(\gamma_{i\,\mathrm{opt}_i}-\gamma_i)\max_ie^{-\gamma_i}$;
    Table 1 prints $\max_ie^{\gamma_i}$ in a denominator (``printed``), which is smaller where the
    $\gamma_i$ differ.

    >>> from attnbook import theory
    >>> zeta = theory.bias.loss_scale
    >>> [round(float(zeta([1, 2], [0, 0.5], printed=p)), 4) for p in (False, True)]
    [1.5, 0.9098]
    """
    top, rest = given.gaps(best, others)
    edge = rest.max(axis=-1) if printed else rest.min(axis=-1)
    return np.asarray((top - rest).max(axis=-1) * np.exp(-edge))


def gradient_along(attention: ArrayLike, scores: ArrayLike, logits: ArrayLike) -> Array:
    r"""How fast the loss falls along $W'$, under Assumption 2 (bias, equations 5 and 14).

    $\langle-\nabla\mathcal L(W),W'\rangle=\frac1n\sum_i\ell_i(\gamma_{i\,\mathrm{opt}_i}-\gamma_i)
    \varphi_{i\,\mathrm{opt}_i}(1-\varphi_{i\,\mathrm{opt}_i})h_i$ with
    $h_i=a_{i\,\mathrm{opt}_i}-\sum_{\tau\ne\mathrm{opt}_i}\varphi_{i\tau}a_{i\tau}/
    \sum_{\tau\ne\mathrm{opt}_i}\varphi_{i\tau}$ for the exponential loss; only the scores of one
    other token of each sample enter. ``attention`` $\varphi$ at $W$, ``scores`` $\gamma$ and
    ``logits`` $a_i=X_iW'x_{i1}$ are ``(..., n, T)``.

    >>> from attnbook import theory
    >>> value = theory.bias.gradient_along([[0.5, 0.5]], [[1.0, 0.0]], [[1.0, 0.0]])
    >>> round(float(value), 6)  # exp(-1/2) / 4
    0.151633
    """
    s = check.frozen("attention", attention, ndim=2)
    gamma = check.frozen("scores", scores, ndim=2)
    a = check.frozen("logits", logits, ndim=2)
    check.shape("scores", gamma, s.shape, "that of the attention map")
    check.shape("logits", a, s.shape, "that of the attention map")
    chosen = np.arange(s.shape[-1]) == gamma.argmax(axis=-1)[..., None]
    kept = (s * chosen).sum(axis=-1)
    rest = np.where(chosen, 0.0, s)
    low = np.where(chosen, np.inf, gamma).min(axis=-1)
    gap = gamma.max(axis=-1) - low
    loss = np.exp(-(low + kept * gap))
    away = rest.sum(axis=-1)
    if not (away > 0).all():
        raise check.fail("attention", "some attention on the other tokens", attention)
    h = (a * chosen).sum(axis=-1) - (rest * a).sum(axis=-1) / away
    return np.asarray((loss * gap * kept * away * h).mean(axis=-1))
