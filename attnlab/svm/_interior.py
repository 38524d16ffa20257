r"""Least nuclear norm under margin constraints: a primal-dual interior point, batched over trials.

The problem and its dual, with $M(\lambda)=\sum_k\lambda_k d_kz_k^\top$, are

$$\min_A\|A\|_*\ \text{s.t.}\ d_k^\top Az_k\ge b_k\qquad\text{and}\qquad
\max_{\lambda\ge0}b^\top\lambda\ \text{s.t.}\ \|M(\lambda)\|_2\le1.$$

Both are halves of one semidefinite program: $A=2X_{12}$ for
$\min\operatorname{tr}X$ s.t. $\langle A_k,X\rangle-x_k=b_k$, $X\succeq0$, $x\ge0$, and
$S=I-\sum_k\lambda_kA_k\succeq0$, where $A_k=u_kv_k^\top+v_ku_k^\top$, $u_k=(d_k,0)$, $v_k=(0,z_k)$.
As $A_k$ has rank two, the Schur matrix $\operatorname{tr}(A_kXA_lS^{-1})$ is a sum of Hadamard
products of the $m\times m$ Gram matrices of $u,v$ under $X$ and $S^{-1}$.

Reference: Todd, Toh, Tutuncu, "On the Nesterov-Todd direction in semidefinite programming", 1998
(the predictor-corrector and its constants, here with the HKM direction).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attnlab.checks import Array, BoolArray, IntArray

# The primal starts at X = START * I, x = START; measured: anything in [0.1, 100] costs at most two
# more iterations, as rows have length 1 and max b = 1.
START = 0.3
# Added to b. Margins come out to about 1e-13 of |A|: a row far longer than the others (tiny b)
# must not lose its sign to that. Costs about SLACK in the gap where lengths differ, else nothing.
SLACK = 2e-12
# Relative to the diagonal of the Schur matrix, which duplicate constraints make singular: as large
# as its rounding errors. Tenfold more or less loses accuracy near infeasibility.
RIDGE = 2e-15
PATIENCE = 5  # iterations without a better certificate before a trial is at its floor


class NuclearSolution(NamedTuple):
    """Optimal pairs, each with its certificate."""

    A: Array  # (B, p, q), smallest margin 1
    multipliers: Array  # (B, m), |M|_2 = 1; 0 for constraints that do not exist
    primal: Array  # (B,), |A|_*; inf where no A with positive margins was met
    dual: Array  # (B,), sum of multipliers
    gap: Array  # (B,), (primal - dual) / primal
    iterations: IntArray  # (B,)


class _State(NamedTuple):
    """What the trials still running carry; their axis is the first."""

    trial: IntArray
    D: Array  # (B, m, p), unit rows
    Z: Array  # (B, m, q), unit rows
    weight: Array  # b, largest 1; 0 where there is no constraint
    b: Array  # b as the iteration sees it: with SLACK, and padding reads 0 >= -1
    P: Array  # X and S, (B, 2, N, N)
    r: Array  # x and lambda, (B, 2, m)
    idle: IntArray  # iterations since the certificate last improved

    def take(self, which: BoolArray) -> _State:
        """The state of some of the trials."""
        if which.all():
            return self
        return _State(*(field[which] for field in self))  # type: ignore[arg-type]


class _Frame(NamedTuple):
    """The Newton system at a state."""

    L: Array  # inverse Cholesky factors of X and S, (B, 2, N, N)
    Y: Array  # inverse of S
    H: Array  # Schur matrix, scaled to unit diagonal
    scale: Array  # what it was scaled by, on both sides


class _Move(NamedTuple):
    """A direction in P and r."""

    P: Array
    r: Array


def nuclear(
    left: Array, right: Array, valid: BoolArray, *, tol: float = 1e-10, limit: int = 60
) -> NuclearSolution:
    r"""Minimize $\|A\|_*$ subject to $d_k^\top Az_k\ge1$ for all valid $k$, with a certificate.

    Args:
        left: the $d_k$, shape (B, m, p).
        right: the $z_k$, shape (B, m, q).
        valid: constraints that exist, shape (B, m); the others are padding.
        tol: relative duality gap at which a trial stops.
        limit: most iterations.

    Returns:
        A `NuclearSolution`. Its values come from ``A`` and ``multipliers`` alone, whatever became
        of the iteration: $\|A\|_*$ with $A$ scaled to smallest margin 1, and
        $\mathbf 1^\top\lambda$ with $\lambda$ scaled to $\|M(\lambda)\|_2=1$.
    """
    B, m, p = left.shape
    N = p + right.shape[2]
    D, left_length = _unit(left, valid)
    Z, right_length = _unit(right, valid)
    lengths = left_length * right_length
    weight = np.where(valid, 1.0 / lengths, 0.0)
    weight /= np.where(valid.any(axis=1), weight.max(axis=1, initial=0.0), 1.0)[:, None]
    # 0.7 of lambda = 1/|M(1)|_F is well inside |M| <= 1; bounded, for atoms may cancel
    atoms = _t(D) @ Z
    spread = np.sqrt((atoms**2).sum(axis=(1, 2)))
    inside = 0.7 / np.maximum(spread, 0.1 * np.sqrt(max(m, 1)))
    P = np.empty((B, 2, N, N))
    P[:, 0] = START * np.eye(N)
    P[:, 1] = np.eye(N) - _corners(atoms * inside[:, None, None])
    r = np.full((B, 2, m), START)
    r[:, 1] = inside[:, None]
    b = np.where(valid, weight + SLACK, -1.0)
    s = _State(np.arange(B), D, Z, weight, b, P, r, np.zeros(B, np.int64))
    A, multipliers = np.zeros((B, p, N - p)), np.zeros((B, m))
    best, iterations = np.full(B, np.inf), np.zeros(B, np.int64)
    # a trial that breaks down may pass NaN through here on its way out
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for steps in range(limit + 1):
            gap, half, rho = _cheap_gap(s)
            mu = _inner(s.P, s.r)
            # infeasibility, rather than complementarity, keeps the certificate open
            spoiled = mu * (N + m) < 0.3 * gap * np.einsum("bii->b", s.P[:, 0])
            spoiled &= (gap > tol) & (gap < 1.0)
            if spoiled.any():
                mended = _restored(s.take(spoiled), rho[spoiled])
                new_gap, new_half, _ = _cheap_gap(mended)
                closer = new_gap < gap[spoiled]
                some = np.flatnonzero(spoiled)[closer]
                gap[some], half[some] = new_gap[closer], new_half[closer]
                s.P[some], s.r[some] = mended.P[closer], mended.r[closer]
            better = gap < best[s.trial]
            won = s.trial[better]
            best[won] = gap[better]
            A[won], multipliers[won] = s.P[better, 0, :p, p:], s.r[better, 1]
            s.idle[:] = np.where(better | (gap == 1.0), 0, s.idle + 1)
            go = (gap > tol) & (s.idle < PATIENCE) & (steps < limit)
            if not go.all():
                s, half, mu = s.take(go), half[go], mu[go]
            if not s.trial.size:
                break
            s = _step(s, half, mu)
            iterations[s.trial] += 1
    multipliers = np.where(valid, multipliers / lengths, 0.0)
    return _certified(left, right, valid, A, multipliers, iterations)


def _cheap_gap(s: _State) -> tuple[Array, Array, Array]:
    """Relative gap without a decomposition, half the margins' product, and infeasibility.

    The gap is a true bound, as tr X >= |A|_* and the iterates are inside; it is 1 where some
    margin is not positive.
    """
    p = s.D.shape[2]
    half = s.D @ s.P[:, 0, :p, p:]
    margins = 2.0 * np.add.reduce(half * s.Z, axis=-1)
    smallest = np.fmin.reduce(margins / s.weight, axis=1, initial=np.inf)  # skips 0 / 0, padding
    value = np.add.reduce(s.weight * s.r[:, 1], axis=1) / np.einsum("bii->b", s.P[:, 0])
    gap = 1.0 - np.maximum(smallest, 0.0) * value
    return gap, half, s.b + s.r[:, 0] - margins


def _restored(s: _State, rho: Array) -> _State:
    r"""The state with infeasibility $\rho$ removed to first order, keeping $X\succeq0$, $x\ge0$.

    With $C=\sum_kc_kA_k$, the congruence $(I+C/2)X(I+C/2)$ adds $\mathrm{sym}(XC)$ to $X$, and
    the like adds $-x^2c$ to $x$; a system as large as Schur's, but without $S^{-1}$, gives $c$.
    """
    D, Z, X, x = s.D, s.Z, s.P[:, 0], s.r[:, 0]
    p, Dt, Zt = D.shape[2], _t(D), _t(Z)
    K = (D @ X[:, :p, :p] @ Dt) * (Z @ Zt) + (Z @ X[:, p:, p:] @ Zt) * (D @ Dt)
    np.einsum("bkk->bk", K)[...] += x * x
    c = _solve(K, _unit_diagonal(K), rho)
    C = 0.5 * _corners(_t(D * c[:, :, None]) @ Z) + np.eye(X.shape[1])
    return s._replace(
        P=np.stack([C @ X @ C, s.P[:, 1]], axis=1),
        r=np.stack([x * (1.0 - 0.5 * x * c) ** 2, s.r[:, 1]], axis=1),
    )


def _step(s: _State, half: Array, mu: Array) -> _State:
    """One predictor-corrector step; trials that break down are left out of the result."""
    lower = _guarded(np.linalg.cholesky, s.P)
    sound = np.asarray(np.isfinite(lower[:, 0, 0, 0] + lower[:, 1, 0, 0]))
    if not sound.all():
        s, half, mu, lower = s.take(sound), half[sound], mu[sound], lower[sound]
    f = _frame(s, half, _guarded(np.linalg.inv, lower))
    # the predictor aims at mu = 0; how far it gets says how much centring is needed
    aim = _direction(s, f)
    reach = np.minimum(1.0, _reach(s, f, aim))
    ahead = _inner(s.P + reach[:, :, None, None] * aim.P, s.r + reach[:, :, None] * aim.r)
    shorter = np.minimum.reduce(reach, axis=1)
    centre = np.minimum(np.maximum(ahead / mu, 0.0), 1.0) ** np.maximum(1.0, 3.0 * shorter**2)
    move = _direction(s, f, (centre * mu)[:, None], aim)
    reach = np.minimum(1.0, (0.9 + 0.095 * shorter)[:, None] * _reach(s, f, move))
    s = s._replace(P=s.P + reach[:, :, None, None] * move.P, r=s.r + reach[:, :, None] * move.r)
    return s.take(np.asarray(reach.max(axis=1) > 1e-8))  # False for NaN


def _frame(s: _State, half: Array, L: Array) -> _Frame:
    """The Schur matrix, from Gram matrices under X and under Y, the inverse of S."""
    p, D, Z, X = s.D.shape[2], s.D, s.Z, s.P[:, 0]
    Dt, Zt = _t(D), _t(Z)
    Y = _t(L[:, 1]) @ L[:, 1]
    mixed = D @ Y[:, :p, p:] @ Zt
    H = (half @ Zt) * _t(mixed)
    H += _t(H)
    H += (D @ X[:, :p, :p] @ Dt) * (Z @ Y[:, p:, p:] @ Zt)
    H += (Z @ X[:, p:, p:] @ Zt) * (D @ Y[:, :p, :p] @ Dt)
    np.einsum("bkk->bk", H)[...] += s.r[:, 0] / s.r[:, 1]
    scale = _unit_diagonal(H)
    return _Frame(L, Y, H, scale)


def _direction(s: _State, f: _Frame, mu: Array | None = None, aim: _Move | None = None) -> _Move:
    r"""Newton's direction to $XS=\mu I$, $x\lambda=\mu$, with second-order terms of ``aim``.

    Put $\Delta X=\mu S^{-1}-X-\mathrm{sym}(X\,\Delta S\,S^{-1})$ into
    $\langle A_k,X\rangle-x_k=b_k$: an $m\times m$ system for $\Delta\lambda$ is left.
    """
    p, (X, x, dual) = s.D.shape[2], (s.P[:, 0], s.r[:, 0], s.r[:, 1])
    corrector = mu is not None and aim is not None
    right = s.b
    if mu is not None and aim is not None:
        # where X and x would go if S and lambda stayed
        goal = mu[:, :, None] * f.Y - _symmetric(aim.P[:, 0] @ (aim.P[:, 1] @ f.Y))
        goal_x = (mu - aim.r[:, 0] * aim.r[:, 1]) / dual
        right = s.b + goal_x - 2.0 * np.add.reduce(s.D @ goal[:, :p, p:] * s.Z, axis=-1)
    change = _solve(f.H, f.scale, right, refined=corrector)
    move = _Move(np.empty_like(s.P), np.empty_like(s.r))
    move.r[:, 1] = change
    move.P[:, 1] = _corners(_t(s.D * -change[:, :, None]) @ s.Z)
    move.P[:, 0] = -X - _symmetric(X @ (move.P[:, 1] @ f.Y))
    move.r[:, 0] = -x - x * change / dual
    if corrector:
        move.P[:, 0] += goal
        move.r[:, 0] += goal_x
    return move


def _unit_diagonal(H: Array) -> Array:
    """Scale H in place to unit diagonal; what it was scaled by, on both sides."""
    scale = np.asarray(1.0 / np.sqrt(np.einsum("bkk->bk", H)))
    H *= scale[:, :, None]
    H *= scale[:, None, :]
    return scale


def _solve(H: Array, scale: Array, right: Array, refined: bool = True) -> Array:
    """Solve with a matrix scaled by ``_unit_diagonal``, through a ridge and one refinement."""
    ridged = H.copy()
    np.einsum("bkk->bk", ridged)[...] += RIDGE
    goal = (scale * right)[:, :, None]
    found = _guarded(np.linalg.solve, ridged, goal)
    if refined:
        found += _guarded(np.linalg.solve, ridged, goal - H @ found)
    return np.asarray(scale * found[:, :, 0])


def _reach(s: _State, f: _Frame, move: _Move) -> Array:
    """Steps to the boundary, primal and dual, shape (B, 2)."""
    lowest = _guarded(np.linalg.eigvalsh, f.L @ move.P @ _t(f.L))[:, :, 0]
    lowest = np.minimum(lowest, np.minimum.reduce(move.r / s.r, axis=2))
    return np.asarray(-1.0 / np.minimum(lowest, -1e-30))


def _certified(
    left: Array,
    right: Array,
    valid: BoolArray,
    A: Array,
    multipliers: Array,
    iterations: IntArray,
) -> NuclearSolution:
    """Rescale both sides to their boundaries, and read off their values."""
    margins = np.where(valid, (left @ A * right).sum(axis=-1), np.inf).min(axis=1, initial=np.inf)
    some = valid.any(axis=1)
    reached = some & (margins > 0.0)
    A = A / np.where(reached, margins, 1.0)[:, None, None]
    norm = np.linalg.norm(A, "nuc", axis=(1, 2))
    primal = np.where(reached, norm, np.where(some, np.inf, 0.0))
    spread = np.linalg.norm(_t(left * multipliers[:, :, None]) @ right, 2, axis=(1, 2))
    multipliers = multipliers / np.where(spread > 0.0, spread, 1.0)[:, None]
    dual = multipliers.sum(axis=1)
    gap = np.where(some, 1.0 - dual / np.where(some, primal, 1.0), 0.0)
    return NuclearSolution(A, multipliers, primal, dual, gap, iterations)


def _unit(rows: Array, valid: BoolArray) -> tuple[Array, Array]:
    """Rows scaled to length 1, and their lengths; padding becomes zero."""
    length = np.sqrt((rows**2).sum(axis=-1))
    length = np.where(valid & (length > 0.0), length, 1.0)
    return np.where(valid[:, :, None], rows / length[:, :, None], 0.0), length


def _t(stack: Array) -> Array:
    return stack.swapaxes(-1, -2)


def _symmetric(stack: Array) -> Array:
    return np.asarray(0.5 * (stack + _t(stack)))


def _corners(block: Array) -> Array:
    """Symmetric matrices with ``block`` in the upper right corner, and zero diagonal blocks."""
    B, p, q = block.shape
    whole = np.zeros((B, p + q, p + q))
    whole[:, :p, p:] = block
    whole[:, p:, :p] = _t(block)
    return whole


def _inner(P: Array, r: Array) -> Array:
    """Complementarity: the mean of the N + m products."""
    total = np.einsum("bij,bij->b", P[:, 0], P[:, 1]) + np.add.reduce(r[:, 0] * r[:, 1], axis=1)
    return np.asarray(total / (P.shape[2] + r.shape[2]))


def _guarded(function: Callable[..., Array], *stacks: Array) -> Array:
    """A function of np.linalg, where one bad matrix must not stop the batch: it gives NaN.

    Natively a singular matrix raises; under WebAssembly it may come back as anything not finite.
    """
    try:
        found = function(*stacks)
        if not np.isfinite(np.add.reduce(found, axis=None)):
            broken = ~np.isfinite(found).all(axis=tuple(range(1, found.ndim)))
            found[broken] = np.nan
        return found
    except np.linalg.LinAlgError:
        if len(stacks[0]) > 1:
            parts = (tuple(a[i : i + 1] for a in stacks) for i in range(len(stacks[0])))
            return np.concatenate([_guarded(function, *part) for part in parts])
        harmless = np.broadcast_to(np.eye(stacks[0].shape[-1]), stacks[0].shape)
        return function(harmless, *stacks[1:]) * np.nan
