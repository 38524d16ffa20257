"""Does a head point where the SVM of its own selections points?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from attnbook.real._encoder import Trace
from attnbook.real._weights import Head
from attnlab import checks as check
from attnlab import problems, svm
from attnlab.checks import Array, IntArray, Rng


class Model(Protocol):
    """What can be probed.

    Returns:
        Of a call: a `models.Trace`; of ``head``: a `models.Head`.

    Examples:
        >>> from attnbook import real
        >>> model: real.probe.Model = real.models.random(rng=0)
    """

    def __call__(self, text: str, most: int | None = None) -> Trace:
        """Run a text."""

    def head(self, layer: int, head: int) -> Head:
        """Weights of one head."""


@dataclass(frozen=True, eq=False)
class Selections:
    """What a head was asked, and which token it took.

    Args:
        X: tokens with a 1 at the end, shape ``(n, T, d + 1)``.
        z: the token that asks, with a 1 at the end, shape ``(n, d + 1)``.

    Returns:
        Selections.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> seen = real.probe.traces(model, ["one two three four"] * 3, length=4)
        >>> real.probe.selections(seen, 0, length=4, rng=0).X.shape
        (3, 4, 17)
    """

    X: Array
    z: Array

    def taken(self, W: Array) -> IntArray:
        """The token with the largest logit, for each text."""
        return np.asarray(np.einsum("ntd,de,ne->nt", self.X, W, self.z, optimize=True).argmax(1))

    def within(self, W: Array) -> Array:
        r"""The part of W in the span of $(x_1-x_t)z^\top$, which is where $W^{mm}$ lies."""
        away, asks, inverse = self.span
        values = np.einsum("id,id->i", away @ W, asks)
        return np.asarray(away.T @ ((inverse @ values)[:, None] * asks))

    @cached_property
    def span(self) -> tuple[Array, Array, Array]:
        """Both factors of the constraints, and the inverse of their products."""
        away = (self.X[:, :1] - self.X[:, 1:]).reshape(-1, self.X.shape[-1])
        asks = np.repeat(self.z, self.X.shape[1] - 1, axis=0)
        size, vectors = np.linalg.eigh((away @ away.T) * (asks @ asks.T))
        kept = size > 1e-10 * size[-1]
        return away, asks, np.asarray((vectors[:, kept] / size[kept]) @ vectors[:, kept].T)


@dataclass(frozen=True)
class Selection:
    """A matrix beside the margin solution of what it selects.

    Args:
        cosine: between both.
        share: of the matrix that lies in the span of the constraints, as a length.
        inside: the cosine between that part and the solution.
        common: share of texts in which the most frequent position was taken.

    Returns:
        A selection.

    Examples:
        >>> from attnbook import real
        >>> real.probe.Selection(0.1, 0.5, 0.2, 0.25).share
        0.5
    """

    cosine: float
    share: float
    inside: float
    common: float


def traces(
    model: Model, texts: Sequence[str], length: int = 16, most: int = 70, *, special: bool = False
) -> list[Trace]:
    """What a model does with texts that are long enough.

    Args:
        model: what is probed.
        texts: those with fewer than ``length`` tokens are left out.
        length: tokens that are asked for.
        most: how many texts are kept.
        special: whether [CLS] and [SEP] count as tokens.

    Returns:
        One `models.Trace` a text.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> real.probe.traces(model, ["one two"], length=4)
        Traceback (most recent call last):
        ...
        ValueError: texts: expected some with at least 4 tokens, got none
    """
    length, most = check.count("length", length, 2), check.count("most", most)
    found: list[Trace] = []
    for text in texts:
        one = model(text, length if special else length + 2)
        if len(one.tokens) - (0 if special else int(one.special.sum())) >= length:
            found.append(one)
        if len(found) == most:
            break
    if not found:
        raise check.fail("texts", f"some with at least {length} tokens", "none")
    return found


def selections(
    seen: Sequence[Trace], layer: int, length: int = 16, *, rng: Rng, special: bool = False
) -> Selections:
    """Tokens that a layer sees, and in each text one that asks.

    Args:
        seen: of `traces`.
        layer: from 0 on.
        length: tokens of each text that are kept, from its start.
        rng: draws the token that asks.
        special: whether [CLS] and [SEP] count as tokens.

    Returns:
        `Selections`.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> seen = real.probe.traces(model, ["one two three four"], length=4)
        >>> real.probe.selections(seen, 0, length=4, rng=0).z.shape
        (1, 17)
    """
    draw = check.generator(rng)
    kept = [one.hidden[layer] if special else one.hidden[layer][~one.special] for one in seen]
    X = np.stack([one[:length] for one in kept]).astype(np.float64)
    X = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=-1)
    asks = draw.integers(length, size=len(X))
    return Selections(X, X[np.arange(len(X)), asks])


def selection(seen: Selections, W: ArrayLike) -> Selection:
    r"""Compare a matrix with $W^{mm}$ of the tokens that it selects.

    Args:
        seen: what it was asked.
        W: keyed by key and query, shape ``(d + 1, d + 1)``.

    Returns:
        A `Selection`.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> texts = real.probe.traces(model, ["one two three four"] * 2, length=4)
        >>> seen = real.probe.selections(texts, 0, length=4, rng=0)
        >>> found = real.probe.selection(seen, model.head(0, 0).W)
        >>> 0 < found.cosine <= found.inside <= 1
        True

    Reference: svm, (Att-SVM) and Theorem 3.
    """
    M = matrix(seen, W)
    best = solution(seen, M)
    part = seen.within(M)
    common = np.bincount(seen.taken(M)).max() / len(seen.X)
    size = float(np.linalg.norm(part) / np.linalg.norm(M))
    return Selection(cosine(M, best), size, cosine(part, best), float(common))


def solution(seen: Selections, W: ArrayLike) -> Array:
    r"""$W^{mm}$ of the tokens that a matrix selects: the shortest matrix that selects them.

    Args:
        seen: what it was asked.
        W: keyed by key and query, shape ``(d + 1, d + 1)``.

    Returns:
        A matrix of the same shape, whose gaps are at least 1.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> texts = real.probe.traces(model, ["one two three four"] * 2, length=4)
        >>> seen = real.probe.selections(texts, 0, length=4, rng=0)
        >>> best = real.probe.solution(seen, model.head(0, 0).W)
        >>> bool((seen.taken(best) == seen.taken(model.head(0, 0).W)).all())
        True

    Reference: svm, (Att-SVM).
    """
    n, _, d = seen.X.shape
    problem = problems.TokenProblem(X=seen.X, z=seen.z, y=np.ones(n), v=np.zeros(d))
    return svm.attention_svm(problem, tokens=seen.taken(matrix(seen, W))).W


def matrix(seen: Selections, W: ArrayLike) -> Array:
    """A matrix without its row for the 1 after each key: softmax does not see it."""
    d = seen.X.shape[-1]
    given = check.frozen("W", W, 2)
    check.shape("W", given, (d, d), "key by query")
    found = np.array(given)
    found[-1] = 0.0
    return found


def cosine(a: Array, b: Array) -> float:
    """Between two matrices."""
    return float(np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b))
