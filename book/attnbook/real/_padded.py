"""Texts as inputs of a small Transformer: tokens of a frozen encoder, and where they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbook.real._sentences import Reader
from attnbook.real._transformer import Transformer
from attnlab import checks as check


class Padded(NamedTuple):
    """Texts of different length in one array.

    Args:
        x: tokens, 0 where there is none, shape ``(N, T, d)``.
        mask: True at tokens that are there, shape ``(N, T)``.

    Returns:
        A pair, as `fit` takes it.

    Examples:
        >>> from attnbook import real
        >>> x, mask = real.train.padded(real.models.random(rng=0), ["one two", "three"], T=4)
        >>> x.shape, mask.sum(axis=1).tolist()
        ((2, 4, 16), [4, 3])
    """

    x: NDArray[np.float32]
    mask: NDArray[np.bool_]


def padded(reader: Reader, texts: Sequence[str], *, T: int, layers: int = 0) -> Padded:
    """Texts through the first layers of a frozen encoder, the first T tokens of each.

    Args:
        reader: an encoder.
        texts: what it reads; marks such as [CLS] stay.
        T: tokens kept; shorter texts are filled up.
        layers: passed through; 0 keeps the embedded words.

    Returns:
        `Padded`.

    Examples:
        >>> from attnbook import real
        >>> real.train.padded(real.models.random(rng=0), [], T=4)
        Traceback (most recent call last):
        ...
        ValueError: texts: expected at least one, got none
    """
    check.count("T", T)
    check.count("layers", layers, 0)
    if not len(texts):
        raise check.fail("texts", "at least one", "none")
    rows = [np.asarray(reader(one, layers=max(1, layers)).hidden[layers])[:T] for one in texts]
    x = np.zeros((len(rows), T, rows[0].shape[-1]), dtype=np.float32)
    mask = np.zeros((len(rows), T), dtype=bool)
    for k, row in enumerate(rows):
        x[k, : len(row)] = row
        mask[k, : len(row)] = True
    return Padded(x, mask)


def text(given: Padded, outputs: int = 2, **options: Any) -> Transformer:
    r"""A text classifier on such tokens: a `Transformer` of their sizes.

    Args:
        given: what `padded` gave.
        outputs: classes.
        options: the others of `Transformer`: ``scaling`` ($\tau_0$), ``heads``, ``width``,
            ``depth``, ``pooling``.

    Returns:
        `Transformer`; give `fit` the mask, too.

    Examples:
        >>> from attnbook import real
        >>> given = real.train.padded(real.models.random(rng=0), ["one two", "three"], T=4)
        >>> model = real.train.text(given, width=8, heads=2, scaling="linear", pooling="first")
        >>> model.forward(model.init(rng=0), given.x, given.mask).shape, model.tau0
        ((2, 2), 0.25)

    Reference: multihead, Appendix G; bias, Appendix C.
    """
    _, T, inputs = given.x.shape
    return Transformer(T=T, inputs=inputs, outputs=outputs, **options)
