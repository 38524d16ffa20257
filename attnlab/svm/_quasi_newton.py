"""L-BFGS for many trials at once, each at its own pace: the descent behind `_path`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from attnlab.checks import Array, BoolArray

MEMORY, TICKS, TRIES = 20, 2000, 30  # pairs kept, evaluations in all, in one line search
DECREASE, CURVATURE = 1e-4, 0.9  # Wolfe's constants
NOISE = 1e-12  # relative rounding of a value; differences below it say nothing


class Objective(Protocol):
    """Values, gradients and residuals of ``B`` trials; some of the trials on their own."""

    def __call__(self, V: Array) -> tuple[Array, Array, Array]:
        """``(B,), (B, p), (B,)`` at the points ``V (B, p)``; the value is inf where forbidden."""

    def take(self, index: Any) -> Objective:
        """Some of the trials."""


def descend(at: Objective, V: Array, first: Array, aim: float) -> tuple[Array, BoolArray]:
    """Points where the residual is at most ``aim`` or nothing moves, and who met a forbidden one.

    A tick evaluates every trial once: a trial whose point passes Wolfe's conditions takes it and
    turns, another one changes the length it tries. Trials that are done leave the batch. Where
    values differ by rounding only, the slope decides (Hager and Zhang's approximate condition).
    ``first`` is the length, per gradient, of steps of which nothing is known.
    """
    out, blocked, ids = V.copy(), np.zeros(len(V), bool), np.arange(len(V))
    value, g, residual = at(V)
    stuck = ~np.isfinite(value)
    blocked[:] = met = np.isposinf(value)  # met: this line search tried a forbidden point
    S, Y = np.zeros((2, MEMORY, *V.shape))
    rho = np.zeros((MEMORY, len(V)))
    step = -first[:, None] * g
    t, lo, hi, tries = np.array([[1.0], [0.0], [np.inf], [0.0]]).repeat(len(V), axis=1)
    for _ in range(TICKS):
        done = (residual <= aim) | stuck
        if 2 * done.sum() >= len(done):
            out[ids] = V
            if done.all():
                return out, blocked
            k = np.flatnonzero(~done)
            at, ids, S, Y, rho = at.take(k), ids[k], S[:, k], Y[:, k], rho[:, k]
            V, g, step, value, residual = V[k], g[k], step[k], value[k], residual[k]
            first, t, lo, hi, tries = first[k], t[k], lo[k], hi[k], tries[k]
            stuck, met, done = stuck[k], met[k], done[k]
        tried = V + t[:, None] * step
        f, new_g, new_residual = at(tried)
        slope, new_slope = (g * step).sum(axis=1), (new_g * step).sum(axis=1)
        level = np.abs(f - value) <= NOISE * (1.0 + np.abs(value))
        falls = np.where(
            level,
            new_slope <= (2.0 * DECREASE - 1.0) * slope,
            f <= value + DECREASE * t * slope,
        )
        accept = falls & (new_slope >= CURVATURE * slope) & ~done
        lo, hi = np.where(falls, t, lo), np.where(falls, hi, t)
        t, tries = np.where(hi < np.inf, 0.5 * (lo + np.minimum(hi, 1e300)), 4.0 * t), tries + 1
        if accept.any():
            a: Any = slice(None) if accept.all() else np.flatnonzero(accept)
            s, y = (tried - V)[a], (new_g - g)[a]
            for memory, newest in ((S, s), (Y, y), (rho, inverse((s * y).sum(axis=1)))):
                memory[:-1, a] = memory[1:, a]
                memory[-1, a] = newest
            V[a], value[a], g[a], residual[a] = tried[a], f[a], new_g[a], new_residual[a]
        met |= np.isinf(f)
        failed = (tries >= TRIES) & ~accept & ~done
        if failed.any():
            again = failed & ~rho.any(axis=0)  # not even straight down
            blocked[ids[again & met]] = True
            stuck = stuck | again
            rho[:, failed] = 0.0
        turn = accept | failed
        if turn.any():
            step = np.where(turn[:, None], _direction(g, S, Y, rho, first), step)
            t, tries = np.where(turn, 1.0, t), np.where(turn, 0.0, tries)
            lo, hi, met = np.where(turn, 0.0, lo), np.where(turn, np.inf, hi), met & ~turn
    out[ids] = V
    return out, blocked


def inverse(x: Array) -> Array:
    """1 / x, and 0 where x is not positive (or so small that 1 / x would overflow)."""
    return np.where(x > 1e-200, 1.0, 0.0) / np.where(x > 1e-200, x, 1.0)


def _direction(g: Array, S: Array, Y: Array, rho: Array, first: Array) -> Array:
    """The two-loop recursion; pairs with ``rho`` 0 are empty. Steps are at most 1 long."""
    q, weights = g.copy(), np.zeros(rho.shape)
    with np.errstate(over="ignore", invalid="ignore"):  # from a plateau scales may explode
        for j in range(len(rho) - 1, -1, -1):
            weights[j] = rho[j] * np.einsum("bp,bp->b", S[j], q)
            q -= weights[j][:, None] * Y[j]
        scale = inverse(rho[-1] * np.einsum("bp,bp->b", Y[-1], Y[-1]))
        q *= np.where(scale > 0.0, scale, first)[:, None]
        for j in range(len(rho)):
            q += (weights[j] - rho[j] * np.einsum("bp,bp->b", Y[j], q))[:, None] * S[j]
        usable = (np.einsum("bp,bp->b", g, q) > 0.0) & np.isfinite(np.einsum("bp,bp->b", q, q))
    q[~usable] = first[~usable, None] * g[~usable]
    return np.asarray(-q / np.maximum(1.0, np.linalg.norm(q, axis=1, keepdims=True)))
