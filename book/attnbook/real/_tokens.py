"""Tokens and attention of a model, as the theory asks of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnlab import checks as check
from attnlab.checks import Array


# -- tokens ----------------------------------------------------------------------------------------
def cosines(X: ArrayLike) -> Array:
    r"""Cosines of all pairs of tokens of a sequence.

    Args:
        X: tokens, shape ``(T, d)``.

    Returns:
        Shape ``(T * (T - 1) / 2,)``.

    Examples:
        >>> from attnbook import real
        >>> real.probe.cosines([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]).round(2)
        array([0.  , 0.71, 0.71])
    """
    tokens = unit(check.frozen("X", X, 2))
    return np.asarray((tokens @ tokens.T)[np.triu_indices(len(tokens), 1)])


def line(n: int, T: int, conditioning: float = math.e) -> float:
    r"""The largest cosine that nearly orthogonal tokens may have: $1/(4n\Upsilon T)$.

    For tokens of one length, of which Assumption 1 asks it. $\Upsilon\ge e$ with any scores.

    Args:
        n: number of texts.
        T: tokens of each.
        conditioning: $\Upsilon$.

    Returns:
        A number.

    Examples:
        >>> from attnbook import real
        >>> round(1 / real.probe.line(20, 6))  # the paper's Figure 2
        1305

    Reference: bias, Assumption 1.
    """
    n, T = check.count("n", n), check.count("T", T, 2)
    return 1.0 / (4.0 * n * check.number("conditioning", conditioning, above=0.0) * T)


def smallest(X: ArrayLike) -> float:
    r"""The smallest eigenvalue of $XX^\top$ for tokens of length 1: 0 where they are dependent.

    Args:
        X: tokens, shape ``(T, d)``.

    Returns:
        A number from 0 to 1.

    Examples:
        >>> from attnbook import real
        >>> round(real.probe.smallest([[1.0, 0.0], [0.0, 2.0]]), 12)
        1.0

    Reference: encoder, Assumption 2.
    """
    tokens = unit(check.frozen("X", X, 2))
    return float(np.clip(np.linalg.eigvalsh(tokens @ tokens.T)[0], 0.0, None))


def similarities(many: Sequence[ArrayLike]) -> Array:
    r"""$\langle X_i^\top X_i,X_j^\top X_j\rangle$ of all pairs of texts, each with $\|X\|_F=1$.

    Args:
        many: tokens of each text, shape ``(T, d)``; the lengths may differ.

    Returns:
        Shape ``(n * (n - 1) / 2,)``; each is from 0 to 1.

    Examples:
        >>> from attnbook import real
        >>> real.probe.similarities([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]])
        array([1., 0., 0.])

    Reference: encoder, Assumption 3.
    """
    given = [check.frozen(f"many[{k}]", one, 2) for k, one in enumerate(many)]
    if len(given) < 2:
        raise check.fail("many", "at least two texts", len(given))
    scaled = [one / np.linalg.norm(one) for one in given]
    return np.array([np.sum((a @ b.T) ** 2) for k, a in enumerate(scaled) for b in scaled[k + 1 :]])


@dataclass(frozen=True)
class Tail:
    r"""How often a number is at least t, above its median.

    Args:
        t: thresholds.
        share: of numbers that are at least t.
        slope: of log(share) against t, fitted.
        r2: how much of log(share) the line explains. It says little about the kind of tail: of a
            uniform distribution it is .95.
        spread: `spread_above_median`, which tells an exponential tail from others.

    Returns:
        A tail.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> draws = np.random.default_rng(0).exponential(size=10**5)
        >>> abs(real.probe.tail(draws).slope + 1) < 0.05
        True
    """

    t: Array
    share: Array
    slope: float
    r2: float
    spread: float


def spread_above_median(values: ArrayLike) -> float:
    r"""Standard deviation over mean of what lies above the median, measured from it.

    It is 1 for an exponential tail, less for a lighter one (.76 for a normal distribution, .58 for
    a uniform one) and more for a heavier one.

    Args:
        values: numbers.

    Returns:
        A number.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> draws = np.random.default_rng(0).exponential(size=10**5)
        >>> abs(real.probe.spread_above_median(draws) - 1) < 0.02
        True
        >>> round(real.probe.spread_above_median(np.arange(10**4)), 3)
        0.577

    Reference: encoder, Assumption 3 and Figures 1 and 6.
    """
    x = check.frozen("values", values, 1).ravel()
    middle = float(np.median(x))
    above = x[x > middle] - middle
    if not above.size:
        raise check.fail("values", "numbers that differ", f"none above the median {middle:g}")
    return float(above.std() / above.mean())


def tail(values: ArrayLike, points: int = 7, upto: float = 0.8) -> Tail:
    """The tail of some numbers, with the line that an exponential one has.

    Args:
        values: numbers.
        points: thresholds, from the median on.
        upto: where they end, as a share of the way to the largest.

    Returns:
        A `Tail`.

    Examples:
        >>> from attnbook import real
        >>> real.probe.tail([1.0, 2.0, 3.0, 4.0, 5.0], points=3).share
        array([0.6, 0.4, 0.2])

    Reference: encoder, Assumption 3 and Figures 1 and 6.
    """
    x = np.sort(check.frozen("values", values, 1).ravel())
    middle = float(np.median(x))
    if x[-1] <= middle:
        raise check.fail("values", "numbers that differ", f"none above the median {middle:g}")
    t = middle + np.linspace(0.0, upto * (x[-1] - middle), check.count("points", points, 2))
    share = 1.0 - np.searchsorted(x, t, side="left") / x.size
    logs = np.log(share)
    slope, start = np.polyfit(t, logs, 1)
    spread = np.sum((logs - logs.mean()) ** 2)
    left = np.sum((logs - start - slope * t) ** 2)
    r2 = float(1.0 - left / spread)
    return Tail(t, share, float(slope), r2, spread_above_median(x))


# -- attention -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Sharpness:
    """How much attention chooses.

    Args:
        largest: the largest weight of each row, mean.
        keys: the effective number of keys, exp of the entropy, mean.
        T: keys there are, mean.

    Returns:
        Sharpness.

    Examples:
        >>> from attnbook import real
        >>> real.probe.sharpness([[[0.25] * 4] * 4]).keys
        4.0
    """

    largest: float
    keys: float
    T: float


def sharpness(rows: Sequence[ArrayLike]) -> Sharpness:
    """How sparse rows of attention are.

    Args:
        rows: one array of rows ``(queries, T)`` a text.

    Returns:
        `Sharpness`.

    Examples:
        >>> from attnbook import real
        >>> real.probe.sharpness([[[1.0, 0.0], [0.5, 0.5]]]).largest
        0.75
    """
    given = [check.frozen(f"rows[{k}]", one, 2) for k, one in enumerate(rows)]
    largest = np.concatenate([one.max(axis=-1) for one in given])
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(one > 0, -one * np.log(one), 0.0).sum(axis=-1) for one in given]
    keys = np.exp(np.concatenate(parts))
    sizes = [one.shape[-1] for one in given for _ in one]
    return Sharpness(float(largest.mean()), float(keys.mean()), float(np.mean(sizes)))


@dataclass(frozen=True)
class Ranks:
    """Norms of a matrix, and how many directions they spread over.

    Args:
        fro: Frobenius norm.
        nuc: nuclear norm.
        spectral: largest singular value.
        effective: (nuc / fro)^2: the rank, were all singular values equal.
        stable: (fro / spectral)^2.

    Returns:
        Ranks.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> round(real.probe.ranks(np.eye(3)).effective, 12)
        3.0
    """

    fro: float
    nuc: float
    spectral: float
    effective: float
    stable: float


def ranks(W: ArrayLike) -> Ranks:
    """Norms and soft ranks of a matrix.

    Args:
        W: a matrix, not 0.

    Returns:
        `Ranks`.

    Examples:
        >>> from attnbook import real
        >>> real.probe.ranks([[3.0, 0.0], [0.0, 4.0]]).nuc
        7.0

    Reference: svm, the low rank that nuclear norms favour; bias, Section 5.
    """
    s = np.linalg.svd(check.frozen("W", W, 2), compute_uv=False)
    if not s[0]:
        raise check.fail("W", "a matrix that is not 0", "zeros")
    fro, nuc = float(np.sqrt(np.sum(s**2))), float(s.sum())
    return Ranks(fro, nuc, float(s[0]), (nuc / fro) ** 2, (fro / float(s[0])) ** 2)


def unit(X: Array) -> Array:
    """Tokens of length 1."""
    size = np.linalg.norm(X, axis=-1, keepdims=True)
    if not size.all():
        raise check.fail("X", "tokens that are not 0", f"{int((size == 0).sum())} zeros")
    return np.asarray(X / size)
