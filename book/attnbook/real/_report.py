"""What the theory asks of a head, measured on a model of one's own.

A model is anything that, called with a text, gives its tokens, hidden states and attention as a
`models.Trace`, and whose ``head(layer, head)`` gives weights as a `models.Head`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnbook.real._controls import controls
from attnbook.real._selection import Model, Selection, selection, selections, traces
from attnbook.real._tokens import (
    Ranks,
    Sharpness,
    Tail,
    cosines,
    line,
    ranks,
    sharpness,
    similarities,
    smallest,
    tail,
)
from attnlab import checks as check
from attnlab.checks import Array, Rng


@dataclass(frozen=True, eq=False)
class Report:
    """What was measured of one head.

    Args:
        layer: from 0 on.
        head: from 0 on.
        texts: how many were used.
        length: tokens of each.
        cosines: of pairs of tokens within texts.
        line: the largest that Assumption 1 of bias allows here.
        smallest: smallest eigenvalue of each text's tokens.
        tail: of similarities between texts.
        sharpness: of the head's attention, with [CLS] and [SEP] among the keys.
        among_words: the same between words only, each row divided by what it gives to words.
        on_special: share of attention that goes to [CLS] and [SEP], mean over words that ask.
        ranks: of its W.
        itself: the head beside the SVM of its selections.
        controls: the same for matrices that learned nothing of it, by name.
        rows: the attention of the first text.
        tokens: of the first text.

    Returns:
        A report.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> texts = ["one two three four five", "the good and the bad", "a cat is not good one"]
        >>> told = real.probe.report(model, texts, 0, 1, length=4, draws=2, rng=0)
        >>> sorted(told.controls)
        ['key of another head', 'random directions']
    """

    layer: int
    head: int
    texts: int
    length: int
    cosines: Array
    line: float
    smallest: Array
    tail: Tail
    sharpness: Sharpness
    among_words: Sharpness
    on_special: float
    ranks: Ranks
    itself: Selection
    controls: dict[str, list[Selection]]
    rows: Array = field(repr=False)
    tokens: tuple[str, ...] = field(repr=False)

    def lines(self) -> list[str]:
        """In words, one line for each question of the theory."""
        below = float(np.mean(np.abs(self.cosines) <= self.line))
        sharp, words, rank = self.sharpness, self.among_words, self.ranks
        own = self.itself
        told = [f"layer {self.layer}, head {self.head}: {self.texts} texts of {self.length} tokens"]
        told.append(
            f"tokens nearly orthogonal? {below:.0%} of cosines are below 1/(4 n Y T) = "
            f"{self.line:.1e}; mean {self.cosines.mean():.2f}, below 0.1: "
            f"{np.mean(np.abs(self.cosines) < 0.1):.0%} (bias, Assumption 1)"
        )
        told.append(
            f"tokens independent? smallest eigenvalue {self.smallest.min():.1e} to "
            f"{self.smallest.max():.1e} (encoder, Assumption 2)"
        )
        told.append(
            f"texts unlike? tail slope {self.tail.slope:.3g}; above the median, spread over mean "
            f"is {self.tail.spread:.2f}, which is 1 for an exponential tail (encoder, Assumption 3)"
        )
        told.append(
            f"attention sparse? largest weight {sharp.largest:.2f}, {sharp.keys:.1f} effective "
            f"keys of {sharp.T:.0f}; {self.on_special:.0%} goes to [CLS] and [SEP], and among "
            f"words the largest is {words.largest:.2f}, {words.keys:.1f} keys of {words.T:.0f}"
        )
        told.append(
            f"W low in rank? {rank.effective:.1f} effective directions; norms: Frobenius "
            f"{rank.fro:.2f}, nuclear {rank.nuc:.2f}"
        )
        told.append(
            f"W along the SVM of its selections? cosine {own.cosine:.3f}; in the span of the "
            f"constraints ({own.share:.0%} of W) {own.inside:.3f}; one position takes "
            f"{own.common:.0%} (svm, Theorem 3)"
        )
        for name, some in self.controls.items():
            low, high = (f(one.cosine for one in some) for f in (min, max))
            inner = [one.inside for one in some]
            share = float(np.mean([one.share for one in some]))
            told.append(
                f"  {name}, {len(some)} draws: {low:.3f} to {high:.3f}; in the span ({share:.0%}) "
                f"{min(inner):.3f} to {max(inner):.3f}"
            )
        return told

    def draw(self, axes: Any) -> None:
        """Four panels: cosines, tail, attention of the first text, cosines with the SVM."""
        first, second, third, last = axes
        first.hist(self.cosines, bins=40, range=(-1, 1), density=True)
        first.axvspan(-self.line, self.line, color="0.5", lw=0)
        first.set(title="cosines of tokens", xlabel="cosine", ylabel="density")
        second.semilogy(self.tail.t, self.tail.share, "o-")
        second.set(title="similarity of texts", xlabel="t", ylabel="share at least t")
        third.imshow(self.rows, cmap="cividis", vmin=0)
        third.set(title="attention, first text", xlabel="key", ylabel="query")
        third.set_xticks(range(len(self.tokens)), self.tokens, rotation=90, fontsize=6)
        third.set_yticks(range(len(self.tokens)), self.tokens, fontsize=6)
        names = ["this head", *self.controls]
        groups = [[self.itself], *self.controls.values()]
        for place, some in enumerate(groups):
            last.plot([place] * len(some), [one.inside for one in some], "o")
        last.set_xticks(
            range(len(names)), [name.replace(" ", "\n", 1) for name in names], fontsize=7
        )
        last.set(title="cosine with the SVM, in the span", xlim=(-0.5, len(names) - 0.5))
        last.set_ylim(bottom=0)


def among_words(
    rows: Sequence[Array], special: Sequence[NDArray[np.bool_]]
) -> tuple[list[Array], float]:
    """Attention of words to words, each row with sum 1, and what words give to special tokens."""
    kept, given = [], []
    for s, marked in zip(rows, special, strict=True):
        asked = s[~marked]
        given.append(asked[:, marked].sum(axis=-1))
        words = asked[:, ~marked]
        words = words[words.sum(axis=-1) > 0.0]
        kept.append(words / words.sum(axis=-1, keepdims=True))
    return kept, float(np.concatenate(given).mean())


def report(
    model: Model,
    texts: Sequence[str],
    layer: int,
    head: int,
    *,
    rng: Rng,
    length: int = 16,
    most: int = 70,
    draws: int = 3,
    special: bool = False,
) -> Report:
    """Measure one head.

    Args:
        model: what is probed.
        texts: at least 3; those with fewer than ``length`` tokens are left out.
        layer: from 0 on.
        head: from 0 on.
        rng: draws the tokens that ask, and the controls.
        length: tokens of each text that are kept.
        most: texts that are used.
        draws: of each control.
        special: whether [CLS] and [SEP] count; with them one position often takes most.

    Returns:
        A `Report`; its controls are matrices with the same singular values, and this head's
        queries with another head's keys.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> texts = ["one two three four five", "the good and the bad", "a cat is not good one"]
        >>> told = real.probe.report(model, texts, 0, 1, length=4, draws=2, rng=0)
        >>> told.lines()[0]
        'layer 0, head 1: 3 texts of 4 tokens'
    """
    draw = check.generator(rng)
    most, draws = check.count("most", most, 2), check.count("draws", draws)
    own = model.head(layer, head)
    ran = traces(model, texts, length, most, special=special)
    if len(ran) < 3:
        raise check.fail("texts", f"at least 3 with {length} tokens", len(ran))
    seen = selections(ran, layer, length, rng=draw, special=special)
    rows = [np.asarray(one.attention[layer, head], np.float64) for one in ran]
    between, on_special = among_words(rows, [one.special for one in ran])
    tokens = [X[:, :-1] for X in seen.X]
    heads = ran[0].attention.shape[1]
    others = [model.head(layer, k) for k in range(heads) if k != head]
    compared = controls(seen, own, others, rng=draw, draws=draws)
    return Report(
        layer,
        head,
        len(seen.X),
        length,
        np.concatenate([cosines(one) for one in tokens]),
        line(len(seen.X), length),
        np.array([smallest(one) for one in tokens]),
        tail(similarities(tokens)),
        sharpness(rows),
        sharpness(between),
        on_special,
        ranks(own.W_QK),
        selection(seen, own.W),
        compared,
        rows[0],
        ran[0].tokens,
    )
