r"""Softmax, and the coefficients of the attention gradient, with the token axis **first**.

The gradient of the mean loss in $W$ is $\sum_{it}c_{it}\,x_{it}z_i^\top$ with
$c_{it}=\frac1n\ell'(u_i)\,s_{it}(\gamma_{it}-u_i)$. The token axis stands first and trials last,
so that maxima and sums over tokens are operations on contiguous rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab._checks import Array
from attnlab.models._losses import Loss

# Above this, coefficients formed with a plain exp have lost nothing to underflow (1e-308).
TINY = 1e-280


def log_or_minus_infinity(x: Array) -> Array:
    """Log x, and -inf at 0 and below."""
    return np.asarray(np.log(np.where(x > 0.0, x, 1.0)) + np.where(x > 0.0, 0.0, -np.inf))


def softmax(logits: Array) -> Array:
    """Softmax over the last axis."""
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    e /= e.sum(axis=-1, keepdims=True)
    return np.asarray(e)


class Coefficients(NamedTuple):
    """Gradient coefficients, true value ``c * exp(log_scale)``, and what came with them."""

    c: Array  # (T, n, ...)
    log_scale: Array  # (...)
    attention: Array  # (T, n, ...)
    margins: Array  # u, (n, ...)
    lost: Array  # gamma_ref - u, free of cancellation, (n, ...)
    reference: Array  # gamma of the token attended to most, (n, ...)
    log_lost: Array | None = None  # log of the mean of |l'| lost, where exp underflows, (...)


def plain(logits: Array, scores: Array, loss: Loss) -> tuple[Array, Array, Array]:
    """The textbook coefficients, attention and margins of the linear head.

    They cancel once 1 - s falls below machine epsilon at the token attended to.
    """
    s = np.exp(logits - logits.max(axis=0))
    s /= s.sum(axis=0)
    u = np.add.reduce(s * scores, axis=0)
    c = scores - u
    c *= s
    c *= loss.slope(u) / logits.shape[1]
    return c, s, u


def exact(logits: Array, scores: Array, loss: Loss, margins: Array | None = None) -> Coefficients:
    """Coefficients relative to the token attended to most: no cancellation at saturation.

    With ``r`` that token and ``D = scores - scores[r]`` the differences ``D_t - sum_t s_t D_t``
    are small only where they should be: ``D_r`` is exactly 0. ``margins`` overrides
    ``sum_t s_t scores_t`` for heads that are not linear.
    """
    top = logits.max(axis=0)
    s = np.exp(logits - top)
    at_top = logits == top
    reference = np.where(at_top, scores, -np.inf).max(axis=0)  # of tied tokens any one will do
    s /= s.sum(axis=0)
    D = scores - reference
    mean = np.add.reduce(s * D, axis=0)
    u = reference + mean if margins is None else margins
    slope = loss.slope(u)
    slope /= logits.shape[1]
    D -= mean
    D *= s
    D *= slope
    largest = np.abs(D).max(axis=(0, 1))
    if np.all((largest > TINY) & np.isfinite(largest)):
        D /= largest
        return Coefficients(D, np.log(largest), s, u, -mean, reference)
    return _scaled(logits, scores, loss, u, s)


def _scaled(logits: Array, scores: Array, loss: Loss, u: Array, s: Array) -> Coefficients:
    """The same where exp underflows: weights are formed in the log domain, shifted per trial."""
    r = logits.argmax(axis=0)[None]
    gaps = logits - np.take_along_axis(logits, r, axis=0)
    reference = np.take_along_axis(scores, r, axis=0)[0]
    D = scores - reference
    log_weight = gaps - np.log(np.exp(gaps).sum(axis=0)) + loss.log_slope(u)  # log of s |l'|
    log_weight[D == 0.0] = -np.inf  # such a token moves nothing: it must not set the scale
    shift = log_weight.max(axis=(0, 1))
    shift = np.where(np.isfinite(shift), shift, 0.0)
    moved = np.exp(log_weight - shift) * D
    mean = moved.sum(axis=0)  # sum_t s_t D_t, in units of exp(shift) / |l'|
    c = (s * mean - moved) / logits.shape[1]
    largest = np.abs(c).max(axis=(0, 1))
    stuck = largest == 0.0  # all tokens of every sample score the same: the gradient is zero
    largest = np.where(stuck, 1.0, largest)
    c /= largest
    log_scale = np.where(stuck, 0.0, shift + np.log(largest))
    lost = (-mean).mean(axis=0)
    log_lost = shift + log_or_minus_infinity(lost)
    return Coefficients(c, log_scale, s, u, -(s * D).sum(axis=0), reference, log_lost)


def log_excess(found: Coefficients, best: Array, loss: Loss) -> Array:
    """Log of the mean loss above its floor (all mass on the best token), shape of the trials."""
    delta = (best - found.reference) + found.lost
    total = loss.excess(best, np.maximum(delta, 0.0)).mean(axis=0)
    log_total = log_or_minus_infinity(total)
    if found.log_lost is None:
        return log_total
    # below TINY every sample has settled on its best token, where the loss is linear in delta
    return np.where(total > TINY, log_total, found.log_lost)
