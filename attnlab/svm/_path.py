"""Regularization paths: the best W, or (K, Q), of every norm, and the cones of local ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray, Rng
from attnlab.models import Attention, Params, fit
from attnlab.problems import TokenProblem, selection
from attnlab.svm._attention import attention_svm
from attnlab.svm._log_loss import Sphere, better, matrix, within

NEARLY_LINEAR = 0.25  # largest logit on the first sphere of the continuation
GROWTH = 3.0  # from one sphere of it to the next


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    r"""Minimisers over balls of given radii: radii first, then trials.

    ``stationarity`` certifies a local minimiser without trust in the solver: the sine of the
    angle between $-\nabla\mathcal L$ and the outward normal ($W$, or $K$ and $Q$ jointly), 0 at
    a stationary point, 1 where the loss falls inwards. For $(K,Q)$ with columns to spare it is
    at least $\|\nabla_W\mathcal L\|/\lambda-1$, $\lambda$ the multiplier: at a saddle that is
    positive, and a new column leads down.

    Args:
        radii: $R$, in the order asked for, shape ``(r,)``.
        W: $\bar W_R$ or $\bar K_R\bar Q_R^\top$, shape ``(r, ..., d, d)``.
        params: the model's parameters, each with leading axes ``(r, ...)``.
        loss: $\mathcal L$, shape ``(r, ...)``.
        excess: log of the loss above its floor $\mathcal L_\star$, shape ``(r, ...)``.
        stationarity: see above, shape ``(r, ...)``.
        status: strings, shape ``(r, ...)``: ``optimal`` (stationarity at most 1e-6: a local
            minimiser on the sphere; with fewer factors than the rank asks for, a better one may
            lie elsewhere, and the loss may even rise with R), ``iteration_limit``, ``inactive``
            (the ball's minimiser is not on its sphere), ``left_the_cone`` or ``infeasible`` (local
            paths; ``W`` is NaN where infeasible).

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import models, problems, svm
        >>> p = problems.sphere(n=3, T=4, d=5, trials=20, min_gap=0.2, rng=0)
        >>> svm.regularization_path(models.Attention(), p, radii=[1, 10, 100])
        Path(radii=[1.0, 10.0, 100.0], trials=(20,) (60 optimal))

    Reference: svm, (W-RP), (KQ-RP) and Lemma 15.
    """

    radii: Array
    W: Array
    params: Params
    loss: Array
    excess: Array
    stationarity: Array
    status: Any

    def __repr__(self) -> str:
        names, counts = np.unique(self.status, return_counts=True)
        ended = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        return f"Path(radii={self.radii.tolist()}, trials={self.loss.shape[1:]} ({ended}))"


def regularization_path(
    model: Attention,
    problem: TokenProblem,
    radii: Any,
    *,
    start: Params | None = None,
    tokens: Any = None,
    epsilon: float = 0.0,
    rng: Rng | None = None,
) -> Path:
    r"""$\bar W_R=\arg\min_{\|W\|_F\le R}\mathcal L(W)$ for every radius, or the same for $(K,Q)$.

    $K$ and $Q$ share $\frac12(\|K\|_F^2+\|Q\|_F^2)\le R$, which is the nuclear ball
    $\|W\|_\star\le R$ under $\operatorname{rank}W\le m$. The log of the loss above its floor is
    minimised on the sphere, by L-BFGS: its gradient does not underflow. The problem is not convex.
    Every radius is answered by the better of two local minimisers: the one continued from a
    radius so small that the loss is linear (over a grid of the solver's own, so that the other
    radii asked for do not matter), and the one below the max-margin direction of the optimal
    tokens, to which Theorem 2 says the path goes. Where several selections of tokens compete, at
    intermediate radii, a third one may be better still. With ``start`` or ``tokens`` there is one
    start, the same direction for every radius; where it saturates attention on other tokens the
    descent may end at its limit, and says so.

    Args:
        model: `models.Attention` with a linear head that is not trained; any loss, ``W`` or
            ``factors``.
        problem: the data; any leading axes.
        radii: positive radii, in any order.
        start: parameters whose direction every radius starts from.
        tokens: selected tokens $\alpha$, shape ``(..., n)``: the local path of Theorem 9, from the
            direction $W^{mm}_\alpha$ within $\mathrm{cone}_\epsilon(\alpha)$. A single instance
            that is infeasible raises `InfeasibleMargin`.
        epsilon: $\epsilon\ge0$ of the cone; ``left_the_cone`` says that the loss leads out of it.
        rng: seed or generator, needed only where the gradient at zero vanishes.

    Returns:
        A `Path`.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models, problems, svm
        >>> p = problems.sphere(n=3, T=4, d=5, min_gap=0.2, rng=0)
        >>> path = svm.regularization_path(models.Attention(), p, radii=[1, 10, 100, 1000])
        >>> mm = svm.attention_svm(p)
        >>> cosines = (path.W * mm.W).sum(axis=(-1, -2)) / (path.radii * mm.norm)
        >>> bool((np.diff(cosines) > 0).all()), bool(cosines[-1] > 0.9999)
        (True, True)

    Reference: svm, Theorem 2; Theorems 9 and 10 (local paths); Lemma 15 (factors).
    """
    asked = check.frozen("radii", radii)
    if asked.ndim != 1 or not asked.size or not (asked > 0.0).all():
        raise check.fail("radii", "a list of positive radii", radii)
    if type(model) is not Attention or not model.has_linear_head or model.train_head:
        raise check.fail("model", "an Attention with a linear head that is not trained", model)
    epsilon = check.number("epsilon", epsilon, least=0.0)
    rng = None if rng is None else check.generator(rng, "path")
    model.shapes(problem)
    lead, n, d = problem.trials, problem.n, problem.d
    B = int(np.prod(lead, dtype=int))
    tails = {name: getattr(problem, name) for name in ("X", "z", "y", "v", "mask")}
    flat = TokenProblem(
        **{k: a.reshape(B, *a.shape[len(lead) :]) for k, a in tails.items() if a is not None}
    )
    alpha = None if tokens is None else selection(problem, tokens).reshape(B, n)
    sphere = Sphere(model, flat, np.ones(B), alpha, epsilon)
    grid, level = None, None
    norm = "fro" if model.factors is None else "nuc"
    if start is not None:
        given = fit(model, start, problem)
        V = sphere.join({k: p.reshape(B, *p.shape[-2:]) for k, p in given.items()})
    elif tokens is not None:
        V = sphere.balanced(attention_svm(problem, tokens, norm).W.reshape(B, d, d))
    else:
        V = sphere.balanced(attention_svm(flat, norm=norm).W)
        grid, level = _continuation(sphere, asked, rng)
    answers = []
    for j, R in enumerate(asked):
        at = replace(sphere, radius=np.full(B, R))
        answer = at.solve(V)
        if grid is not None and level is not None:
            answer = better(at.solve(grid[level[j], np.arange(B)]), answer)
        answers.append(answer)
    joined = [np.array(rows) for rows in zip(*answers, strict=True)]
    theta, loss, excess, sine, status = (a.reshape(-1, *lead, *a.shape[2:]) for a in joined)
    params = sphere.split(theta)
    return Path(asked, matrix(params), params, loss, excess, sine, status)


def _continuation(sphere: Sphere, radii: Array, rng: Rng | None) -> tuple[Array, IntArray]:
    r"""Minimisers on a grid $R_0,3R_0,\dots$ of each trial, and the last one below each radius."""
    B, d = len(sphere.radius), sphere.problem.d
    G = sphere.slope(np.zeros((B, d, d)))
    void = ~G.any(axis=(1, 2))
    if void.any():
        if rng is None:
            raise check.fail("rng", "a seed or generator, because the gradient at 0 vanishes", None)
        G[void] = check.generator(rng, "path").standard_normal((int(void.sum()), d, d))
    first = NEARLY_LINEAR / sphere.size
    level = np.maximum(np.log(radii[:, None] / first) // np.log(GROWTH), 0.0).astype(np.int64)
    V, grid = sphere.balanced(-G), []
    for k in range(level.max() + 1):
        wanted = np.flatnonzero(level.max(axis=0) >= k)
        at = replace(sphere, radius=first * GROWTH**k).take(wanted)
        V = V.copy()
        V[wanted] = at.solve(V[wanted]).theta / at.reach[:, None]
        grid.append(V)
    return np.array(grid), level


def in_cone(problem: TokenProblem, W: Any, tokens: Any, epsilon: float = 0.0) -> BoolArray:
    r"""Whether $W\in\mathrm{cone}_\epsilon(\alpha)$: a worse token outweighs all better ones.

    $\min_i\max_{t\in\mathrm{low}_i}\min_{\tau\in\mathrm{high}_i}(x_{it}-x_{i\tau})^\top Wz_i
    \ge\epsilon\|W\|_F$, where $\mathrm{low}_i$ holds the tokens that score below $\alpha_i$ and
    $\mathrm{high}_i$ the others. A sample without ``high`` tokens asks nothing; hidden tokens
    (mask) are in neither set.

    Args:
        problem: the data; any leading axes.
        W: matrices, shape ``(..., d, d)``; more leading axes (a path's radii) may come first.
        tokens: selected tokens $\alpha$, shape ``(..., n)``.
        epsilon: $\epsilon\ge0$.

    Returns:
        Booleans, one for each W.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems, svm
        >>> p = problems.TokenProblem(  # scores 3, 2, 1: selected is the second
        ...     X=[[[3.0, 0.0], [2.0, 1.0], [1.0, 1.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0])
        >>> svm.in_cone(p, [[[0.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]], tokens=[1])
        array([ True, False])

    Reference: svm, Definition 3 and equation 5.
    """
    alpha, epsilon = selection(problem, tokens), check.number("epsilon", epsilon, least=0.0)
    W = np.asarray(W, dtype=np.float64)
    tail = (*problem.trials, problem.d, problem.d)
    if W.shape[max(W.ndim - len(tail), 0) :] != tail:
        raise check.fail("W", f"shape (..., {', '.join(map(str, tail))})", f"shape {W.shape}")
    return within(problem, W, alpha, epsilon)
