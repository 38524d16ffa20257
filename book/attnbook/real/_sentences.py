"""Real sentences as problems of attnlab: words that an encoder has read, in few directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from attnbook.real._datasets import Texts
from attnlab import checks as check
from attnlab.checks import Array, Rng
from attnlab.problems import SequenceProblem


class Reader(Protocol):
    """What gives hidden states of a text: `attnbook.real.models.Encoder` does."""

    def __call__(self, text: str, most: int | None = None, layers: int | None = None) -> Any:
        """A trace with ``hidden`` and ``special``."""


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences as tokens of a frozen encoder, all of one length.

    Args:
        X: tokens, shape ``(N, T, d)``.
        y: labels, -1 or 1, shape ``(N,)``.

    Returns:
        Sentences.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> draw = np.random.default_rng(0)
        >>> some = real.heads.Sentences(draw.standard_normal((12, 3, 8)), np.tile([-1.0, 1.0], 6))
        >>> found = some.split(8, 4, d=5, rng=0)
        >>> found.train.X.shape, found.test.X.shape
        ((8, 3, 5), (4, 3, 5))
    """

    X: Array
    y: Array

    def split(self, n: int, test: int, *, d: int, rng: Rng) -> Features:
        """Draw who is learned from and who is tested on, and keep d directions of the words.

        The directions are the leading ones of the words to learn from, each stretched to the same
        variance, so that tokens have length 1 in the mean square.
        """
        check.count("n", n)
        check.count("test", test)
        if n + test > len(self.X):
            raise check.fail("n", f"n + test at most the {len(self.X)} sentences", n + test)
        if check.count("d", d) > self.X.shape[-1]:
            raise check.fail("d", f"at most the encoder's {self.X.shape[-1]}", d)
        order = check.generator(rng).permutation(len(self.X))[: n + test]
        X, y = self.X[order].astype(np.float64), self.y[order]
        seen = X[:n].reshape(-1, X.shape[-1])
        centre = seen.mean(axis=0)
        variance, directions = np.linalg.eigh(np.cov((seen - centre).T))
        kept, turned = variance[::-1][:d], directions[:, ::-1][:, :d]
        # a direction has no sign of its own: its largest entry is made positive
        turned = turned * np.sign(turned[np.abs(turned).argmax(axis=0), np.arange(d)])
        basis = turned / np.sqrt(np.maximum(kept, 1e-12 * kept[0]) * d)
        Z = (X - centre) @ basis
        return Features(
            SequenceProblem(Z[:n], y[:n]),
            SequenceProblem(Z[n:], y[n:]),
            centre,
            basis,
            float(kept.sum() / variance.sum()),
        )


@dataclass(frozen=True, eq=False)
class Features:
    """Sentences in few directions, ready for a model of attnlab.

    Args:
        train: sentences to learn from.
        test: others.
        centre: mean token of the encoder, shape ``(D,)``.
        basis: kept directions, shape ``(D, d)``.
        share: of the tokens' variance that they hold.

    Returns:
        Features; called with tokens of the encoder, they are as in ``train``.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> draw = np.random.default_rng(0)
        >>> some = real.heads.Sentences(draw.standard_normal((12, 3, 8)), np.tile([-1.0, 1.0], 6))
        >>> real.heads.Sentences.split(some, 8, 4, d=5, rng=0)(some.X[0]).shape
        (3, 5)
    """

    train: SequenceProblem
    test: SequenceProblem
    centre: Array
    basis: Array
    share: float

    def __call__(self, tokens: Array) -> Array:
        """Tokens of the encoder in the kept directions."""
        return np.asarray((tokens - self.centre) @ self.basis)


def words(reader: Reader, text: str, *, T: int, layers: int) -> Array | None:
    """T words of a text, spread evenly over it, then [CLS], as a frozen encoder leaves them.

    The last token is the one that a classifier of BERT's kind reads: `MultiHead` with the output
    ``"last"`` has it as its only query.

    Args:
        reader: an encoder.
        text: a sentence.
        T: words.
        layers: passed through; 0 keeps the embedded words.

    Returns:
        Tokens ``(T + 1, d)``; None where there are fewer words.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> real.heads.words(model, "one two three four", T=3, layers=1).shape
        (4, 16)
        >>> real.heads.words(model, "one two", T=3, layers=1) is None
        True
    """
    check.count("layers", layers, 0)
    trace = reader(text, layers=max(1, layers))
    found = np.flatnonzero(~trace.special)
    if len(found) < check.count("T", T):
        return None
    places = np.linspace(0, len(found) - 1, T).round().astype(int)
    return np.asarray(trace.hidden[layers][[*found[places], 0]])


def sentences(
    reader: Reader, texts: Texts, *, count: int, T: int, layers: int, rng: Rng
) -> Sentences:
    """Sentences with T words or more, drawn from texts, through a frozen encoder (`words`).

    Args:
        reader: an encoder.
        texts: with labels 0 and 1.
        count: how many.
        T: words of each.
        layers: of the encoder that are passed through.
        rng: which sentences.

    Returns:
        `Sentences`, with labels -1 and 1.

    Examples:
        >>> from attnbook import real
        >>> real.heads.sentences(
        ...     real.models.random(rng=0), real.data.Texts(("one",), (1.0,)),
        ...     count=2, T=3, layers=1, rng=0,
        ... )
        Traceback (most recent call last):
        ...
        ValueError: texts: expected 2 of 3 words or more, got 0
    """
    check.count("count", count)
    found: list[Array] = []
    labels: list[float] = []
    for place in check.generator(rng).permutation(len(texts.texts)):
        if len(found) == count:
            break
        tokens = words(reader, texts.texts[place], T=T, layers=layers)
        if tokens is not None:
            found.append(tokens.astype(np.float32))
            labels.append(texts.labels[place])
    if len(found) < count:
        raise check.fail("texts", f"{count} of {T} words or more", len(found))
    if set(labels) - {0.0, 1.0}:
        raise check.fail("texts", "labels 0 and 1", sorted(set(labels))[:3])
    return Sentences(np.stack(found), np.where(np.array(labels) > 0.5, 1.0, -1.0))
