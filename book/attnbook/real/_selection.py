"""Does a head point where the SVM of its own selections points?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    X, z = seen.X, seen.z
    d = X.shape[-1]
    given = check.frozen("W", W, 2)
    check.shape("W", given, (d, d), "key by query")
    M = np.array(given)
    M[-1] = 0.0  # the same for every key: softmax does not see it
    taken = seen.taken(M)
    n = len(X)
    problem = problems.TokenProblem(X=X, z=z, y=np.ones(n), v=np.zeros(d))
    best = svm.attention_svm(problem, tokens=taken).W
    part = in_span(M, X, z)
    common = np.bincount(taken).max() / n
    size = float(np.linalg.norm(part) / np.linalg.norm(M))
    return Selection(cosine(M, best), size, cosine(part, best), float(common))


def in_span(W: Array, X: Array, z: Array) -> Array:
    r"""The part of W in the span of $(x_1-x_t)z^\top$, which is where $W^{mm}$ lies."""
    away = (X[:, :1] - X[:, 1:]).reshape(-1, X.shape[-1])
    asks = np.repeat(z, X.shape[1] - 1, axis=0)
    gram = (away @ away.T) * (asks @ asks.T)
    values = np.einsum("id,id->i", away @ W, asks)
    size, vectors = np.linalg.eigh(gram)
    kept = size > 1e-10 * size[-1]
    weights = vectors[:, kept] @ ((vectors[:, kept].T @ values) / size[kept])
    return np.asarray(away.T @ (weights[:, None] * asks))


def cosine(a: Array, b: Array) -> float:
    """Between two matrices."""
    return float(np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b))


def scrambled(W: Array, rng: np.random.Generator) -> Array:
    """A matrix with the same singular values and random singular vectors."""
    s = np.linalg.svd(W, compute_uv=False)
    s = s[s > 1e-12 * s[0]]
    turns = [np.linalg.qr(rng.standard_normal((len(W), len(s))))[0] for _ in range(2)]
    return np.asarray((turns[0] * s) @ turns[1].T)


def mismatched(one: Head, other: Head) -> Array:
    """Queries of one head with keys of another."""
    return Head(one.W_Q, other.W_K, one.W_V, one.W_O, one.B_Q, other.B_K).W
