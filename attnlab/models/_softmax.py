r"""Softmax, and the coefficients of the attention gradient, with the token axis **first**.

The gradient of the mean loss in $W$ is $\sum_{it}c_{it}\,x_{it}z_i^\top$ with
$c_{it}=\frac1n\ell'(u_i)\,s_{it}(\gamma_{it}-u_i)$. The token axis stands first and trials last,
so that maxima and sums over tokens are operations on contiguous rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.checks import Array
from attnlab.models._losses import Loss

# Above this, coefficients formed with a plain exp have lost nothing to underflow (1e-308).
TINY = 1e-280
FAR = 1e200  # times a gap between logits: beyond all scores
HUGE = 1e250  # sums of exponentials below this, and their products with scores, do not overflow


def log_or_minus_infinity(x: Array) -> Array:
    """Log x, and -inf at 0 and below."""
    return np.asarray(np.log(np.where(x > 0.0, x, 1.0)) + np.where(x > 0.0, 0.0, -np.inf))


def softmax(logits: Array) -> Array:
    r"""Softmax over the last axis, $s_t=e^{a_t}/\sum_{t'}e^{a_{t'}}$.

    Args:
        logits: $a$, shape ``(..., T)``; ``-inf`` where a mask forbids a token.

    Returns:
        Weights of the same shape; rows sum to 1.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models
        >>> models.softmax(np.array([1000.0, 1000.0, -np.inf])).tolist()
        [0.5, 0.5, 0.0]
    """
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    e /= e.sum(axis=-1, keepdims=True)
    return np.asarray(e)


def centred(s: Array, values: Array, *, exact: bool = False) -> Array:
    r"""Values minus their mean under $s$, $a_t-\langle s,a\rangle$: the derivative of softmax.

    ``s * centred(s, a)`` is $J(s)\,a=(\mathrm{diag}(s)-ss^\top)\,a$, how attention moves when the
    logits move by $a$: gradients and curvature of every model are made of it.

    Args:
        s: weights, shape ``(..., T)``.
        values: $a$, of a shape that broadcasts with ``s``.
        exact: take the values relative to the token of largest weight first, which does not cancel
            where softmax saturates.

    Returns:
        The centred values, shape ``(..., T)``.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models
        >>> s, a = models.softmax(np.array([40.0, 0.0])), np.array([0.1, 1.1])
        >>> for exact in (False, True):
        ...     print(f"{(s * models.centred(s, a, exact=exact))[0]:.6g}")
        0
        -4.24835e-18

    Reference: encoder, Lemma 11; svm, Lemma 7; multihead, Lemma 1.
    """
    if exact:
        top = s.argmax(axis=-1)[..., None]
        values = values - np.take_along_axis(values, top, axis=-1)
    return np.asarray(values - (s * values).sum(axis=-1, keepdims=True))


class Coefficients(NamedTuple):
    """Gradient coefficients, true value ``c * exp(log_scale)``, and what came with them.

    The token axis is first, trials are last.
    """

    c: Array  # (T, n, ...)
    margins: Array  # u, (n, ...)
    weights: Array  # attention before it is normalized, (T, n, ...)
    share: Array  # what normalizes it, (n, ...)
    log_scale: Array | None = None  # (...); -inf where c is 0, None for plain coefficients
    lost: Array | None = None  # gamma_ref - u, free of cancellation, (n, ...)
    reference: Array | None = None  # gamma of the token attended to most, (n, ...)
    log_lost: Array | None = None  # log of the mean of |l'| lost, where exp underflows, (...)

    @property
    def attention(self) -> Array:
        """Attention, shape (T, n, ...)."""
        return self.weights * self.share


def plain(logits: Array, scores: Array, loss: Loss, out: Array | None = None) -> Coefficients:
    """The textbook coefficients of the linear head.

    They cancel once 1 - s falls below machine epsilon at the token attended to. ``out`` is room
    for those of the first tokens, where the others are not asked for.
    """
    e = logits - np.maximum.reduce(logits, axis=0)
    np.exp(e, out=e)
    share = 1.0 / np.add.reduce(e, axis=0)
    c = e * scores
    u = np.add.reduce(c, axis=0)
    u *= share
    c = c if out is None else out
    np.subtract(scores[: len(c)], u, out=c)
    c *= e[: len(c)]
    c *= loss.slope(u) * (share / logits.shape[1])
    return Coefficients(c, u, e, share)


def beside(logits: Array, above: Array, last: Array, loss: Loss, out: Array) -> Coefficients:
    """`plain` for all tokens but the last, beside which logits and scores are given.

    Its own logit is 0 and its score ``last (n, ...)``; scores are within 700 of 0. Only where sums
    of exponentials leave float64's range is a maximum taken off, so that the others keep their
    bits. The last token's coefficient and weight are left out.
    """
    e = np.exp(logits)
    total = np.add.reduce(e, axis=0, initial=1.0)
    if not np.maximum.reduce(total, axis=None) < HUGE:  # or NaN
        top = np.where(total < HUGE, 0.0, np.maximum.reduce(logits, axis=0))
        np.exp(logits - top, out=e)
        total = np.add.reduce(np.concatenate([np.exp(-top)[None], e]), axis=0)
    share = np.divide(1.0, total, out=total)
    c = np.multiply(e, above, out=out)
    mean = np.add.reduce(c, axis=0)
    mean *= share
    np.subtract(above, mean, out=c)
    c *= e
    mean += last
    weight = loss.near_slope(mean)
    weight *= share
    weight *= 1.0 / logits.shape[1]
    c *= weight
    return Coefficients(c, mean, e, share)


def exact(
    logits: Array,
    scores: Array,
    loss: Loss,
    margins: Array | None = None,
    out: Array | None = None,
) -> Coefficients:
    """Coefficients relative to the token attended to most: no cancellation at saturation.

    With ``r`` that token and ``D = scores - scores[r]`` the differences ``D_t - sum_t s_t D_t``
    are small only where they should be: ``D_r`` is exactly 0. ``margins`` overrides
    ``sum_t s_t scores_t`` for heads that are not linear; ``out`` is as in `plain`.
    """
    top = np.maximum.reduce(logits, axis=0)
    e = logits - top
    D = e * FAR  # 0 where most is attended to; of tied tokens any one will do
    D += scores
    reference = np.maximum.reduce(D, axis=0)
    np.exp(e, out=e)
    share = 1.0 / np.add.reduce(e, axis=0)
    np.subtract(scores, reference, out=D)
    c = e * D
    mean = np.add.reduce(c, axis=0)
    mean *= share
    u = reference + mean if margins is None else margins
    np.subtract(D, mean, out=c)
    c *= e
    c *= loss.slope(u) * (share / logits.shape[1])
    largest = np.maximum.reduce(np.abs(c, out=D), axis=(0, 1))
    if largest.min() > TINY and largest.max() < np.inf:
        out = c if out is None else out
        np.multiply(c[: len(out)], 1.0 / largest, out=out)
        return Coefficients(out, u, e, share, np.log(largest), -mean, reference)
    return _scaled(logits, scores, loss, u, e, share)


def _scaled(
    logits: Array, scores: Array, loss: Loss, u: Array, e: Array, share: Array
) -> Coefficients:
    """The same where exp underflows: weights are formed in the log domain, shifted per trial."""
    s, r = e * share, logits.argmax(axis=0)[None]
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
    log_scale = np.where(stuck, -np.inf, shift + np.log(largest))
    lost = (-mean).mean(axis=0)
    log_lost = shift + log_or_minus_infinity(lost)
    return Coefficients(c, u, e, share, log_scale, -(s * D).sum(axis=0), reference, log_lost)


def log_excess(found: Coefficients, best: Array, loss: Loss) -> Array:
    """Log of the mean loss above its floor (all mass on the best token), shape of the trials."""
    assert found.reference is not None
    assert found.lost is not None
    delta = (best - found.reference) + found.lost
    total = loss.excess(best, np.maximum(delta, 0.0)).mean(axis=0)
    log_total = log_or_minus_infinity(total)
    if found.log_lost is None:
        return log_total
    # below TINY every sample has settled on its best token, where the loss is linear in delta
    return np.where(total > TINY, log_total, found.log_lost)
