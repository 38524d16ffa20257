"""The book's own: every head of MiniLM beside the SVM of what it selects, and beside controls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnbook.figures._interval import interval, short
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._verdict import Verdict
from attnbook.real import data as texts
from attnbook.real import models, probe
from attnlab.checks import Array

HEADS = 12
WINDOW, LETTERS = 16, 14  # tokens of a sentence that is shown, letters of a token
OFFSETS = (-3, -2, -1, 0, 1, 2, 3)
SENTENCES = (
    "The dog chased the ball until it rolled into the river.",
    "My sister lent her friend a book, and she read it twice.",
    "Nobody at the station knew why the last train had stopped.",
    "If the soup is cold, warm it; if hot, wait.",
    "The keys to the old cabinet are on the kitchen table.",
    "Salt melts ice because it lowers the freezing point of water.",
)
FIELDS = "cosine with its SVM, share of W in the span, cosine inside the span, commonest position"
ARRAYS = {
    "layer": "(layers,) from 0 on",
    "own": f"(layers, trials, heads, 4) {FIELDS}",
    "random": "(layers, trials, heads, draws, 4) the same for random singular vectors",
    "other": "(layers, trials, heads, draws, 4) the same for the keys of other heads",
    "special": "(layers, trials, heads) share of the commonest position, [CLS] and [SEP] kept",
    "agree": "(layers, trials, heads, 2) the SVM selects as its matrix does, on other sentences: "
    "of the head, of random singular vectors",
    "effective": "(layers, trials, heads) effective directions of W",
    "sharp": "(layers, trials, heads) mean of the largest weight in the sentences that are shown",
    "offsets": "(layers, trials, heads, 7) mean attention to words 3 before to 3 after",
    "taught": "(layers, trials, 2, 4) a W trained as the theory has it, on its own sentences and "
    "on others",
    "taught_random": "(layers, trials, draws, 4) its random singular vectors on the others",
    "maps": "(layers, heads, 2, sentences, 16, 16) 127 times the root of the attention in the "
    "sentences that are shown: of the head, of its SVM as long as the head",
    "cosines": "(layers, sentences, 16, 16) 127 times the cosines of their tokens",
    "tokens": "(sentences, 16, 14) their letters, as numbers of UTF-8",
}


@cache
def minilm() -> models.Encoder:
    """Read once in a process."""
    return models.minilm()


def fields(one: probe.Selection) -> list[float]:
    """A selection as four numbers."""
    return [one.cosine, one.share, one.inside, one.common]


def alone(layer: int, cell: Cell, rng: np.random.Generator) -> Arrays:
    """One layer with one draw of sentences."""
    model, n, length, draws = minilm(), cell["sentences"], cell["length"], cell["draws"]
    every = texts.texts("rotten-tomatoes").texts
    order = rng.permutation(len(every))
    seen = probe.traces(model, [every[k] for k in order], length, 2 * n)
    here = probe.selections(seen[:n], layer, length, rng=rng)
    there = probe.selections(seen[n:], layer, length, rng=rng)
    whole = probe.selections(seen[:n], layer, length, rng=rng, special=True)
    shown = [model(sentence, WINDOW) for sentence in SENTENCES]
    heads = [model.head(layer, k) for k in range(HEADS)]
    found: dict[str, list[Any]] = {name: [] for name in ARRAYS}
    for k, head in enumerate(heads):
        told = probe.controls(here, head, heads[:k] + heads[k + 1 :], rng=rng, draws=draws)
        best, other = probe.solution(here, head.W), probe.scrambled(head.W, rng=rng)
        found["own"].append(fields(probe.selection(here, head.W)))
        found["random"].append([fields(one) for one in told["random directions"]])
        found["other"].append([fields(one) for one in told["key of another head"]])
        found["special"].append(np.bincount(whole.taken(head.W)).max() / n)
        guess = [(head.W, best), (other, probe.solution(here, other))]
        found["agree"].append([np.mean(there.taken(W) == there.taken(S)) for W, S in guess])
        found["effective"].append(probe.ranks(head.W_QK).effective)
        maps = [one.attention[layer, k] for one in shown]
        found["sharp"].append(np.mean([rows.max(axis=1).mean() for rows in maps]))
        rows = [one.attention[layer, k][~one.special][:, ~one.special] for one in seen]
        steps = [[np.diagonal(a, j).mean() for a in rows] for j in OFFSETS]
        found["offsets"].append(np.mean(steps, axis=1))
        along = best * (np.linalg.norm(head.W) / np.linalg.norm(best))
        svm = [attended(along, one.hidden[layer]) for one in shown]
        found["maps"].append([[packed(np.sqrt(a)) for a in some] for some in (maps, svm)])
    W = probe.taught(here, rng=rng)
    found["taught"] = [fields(probe.selection(seen, W)) for seen in (here, there)]
    wild = [probe.scrambled(W, rng=rng) for _ in range(draws)]
    found["taught_random"] = [fields(probe.selection(there, one)) for one in wild]
    found["cosines"] = [packed(near(one.hidden[layer])) for one in shown]
    found["tokens"] = [letters(one.tokens) for one in shown]
    return {name: np.asarray(some) for name, some in found.items() if name != "layer"}


def attended(W: Array, hidden: Any) -> Array:
    """Attention of every token under W: rows are queries."""
    x = np.column_stack([hidden, np.ones(len(hidden))]).astype(float)
    logits = (x @ W @ x.T).T
    rows = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def near(hidden: Any) -> Array:
    """Cosines of tokens."""
    x = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    return np.asarray(x @ x.T, float)


def packed(values: Any) -> Any:
    """Numbers up to 1 in a byte each, in a square of one size."""
    square = np.zeros((WINDOW, WINDOW), np.int8)
    square[: len(values), : len(values)] = np.rint(127 * np.asarray(values))
    return square


def letters(tokens: Sequence[str]) -> Any:
    """Tokens as numbers, for those who keep only numbers."""
    table = np.zeros((WINDOW, LETTERS), np.int8)
    for row, token in enumerate(tokens):
        given = token.encode()[:LETTERS]
        table[row, : len(given)] = list(given)
    return table


def words(table: Any) -> list[str]:
    """The tokens again."""
    return [bytes(row[row > 0].tolist()).decode() for row in table if row.any()]


def once(_: Any, arrays: Arrays) -> Arrays:
    """What is shown does not depend on the draw of sentences."""
    maps = arrays["maps"][:, 0]
    return {**arrays, "maps": maps, "cosines": arrays["cosines"][:, 0],
            "tokens": arrays["tokens"][0, 0]}  # fmt: skip


def compared(data: Data) -> dict[str, NDArray[Any]]:
    """Inside the span: heads, means of both controls, which heads are first, and which last."""
    own = data["own"][..., 2]
    random, other = data["random"][..., 2], data["other"][..., 2]
    every = np.concatenate([random, other], axis=-1)
    found = {"own": own, "random": random.mean(-1), "other": other.mean(-1)}
    return {**found, "first": own > every.max(-1), "last": own < every.min(-1)}


def verdict(data: Data) -> Verdict:
    """Whether heads lie closer to their SVMs than controls, as a follower of the theory would.

    What a follower gains over its random directions, on sentences it was not trained on, is what
    the probe could see. Heads that gain at least half of it follow the theory, a smaller excess is
    ``weaker``, none where the follower's gain would have been seen is ``otherwise``, and else the
    sentences were too few to decide.
    """
    found = compared(data)
    own = found["own"]
    gains = [interval((own - found[name]).mean(1).ravel()) for name in ("random", "other")]
    follower = float((data["taught"][..., 1, 2] - data["taught_random"][..., 2].mean(-1)).mean())
    count, draws = own[:, 0].size, data["random"].shape[-2] + data["other"].shape[-2]
    first, last = (found[name].mean(1).sum() for name in ("first", "last"))
    numbers = (
        f"{count} heads, {data.settings['sentences']} sentences: inside the span "
        f"{short(float(own.mean()))}, above random directions by {gains[0].told()} and above the "
        f"keys of other heads by {gains[1].told()}; {first:.0f} heads are ahead of all their "
        f"{draws} controls and {last:.0f} behind them all, where {count / (1 + draws):.0f} would "
        "be by chance. A W trained as the theory has it reaches "
        f"{short(float(data['taught'][..., 0, 2].mean()))} on its own sentences and "
        f"{short(float(data['taught'][..., 1, 2].mean()))} on others, "
        f"{short(follower)} above its random directions."
    )
    if all(gain.above for gain in gains):
        near = all(gain.low > follower / 2 for gain in gains)
        return Verdict("as the paper says" if near else "weaker", numbers)
    seen = all(gain.high < follower for gain in gains)
    return Verdict("otherwise" if seen else "undecided", numbers)


def paint(data: Data, canvas: Any) -> None:
    """A strip of all heads, each with its controls."""
    axes = canvas.add_subplot()
    own = data["own"][..., 2].mean(1).ravel()
    place = np.arange(len(own))
    for name, colour in (("random", "C1"), ("other", "C2")):
        some = data[name][..., 2].mean(1).reshape(len(own), -1)
        label = {"random": "random directions", "other": "key of another head"}[name]
        axes.plot(np.repeat(place, some.shape[1]), some.ravel(), ".", color=colour, label=label)
    axes.plot(place, own, "o", color="C0", label="the head")
    axes.set(xlabel="head, layer after layer", ylabel="cosine with its SVM, inside the span")
    axes.set_ylim(0, 1)
    axes.legend(loc="upper right", ncols=3)


def alt(data: Data) -> str:
    """What the strip shows."""
    found = compared(data)
    best = int(found["own"].mean(1).argmax())
    means = [f"{found[name].mean():.3f}" for name in ("own", "random", "other")]
    return (
        f"{found['own'][:, 0].size} heads: cosine with the SVM of their own selections, inside the "
        f"span, {means[0]} on average; random directions {means[1]}, keys of other heads "
        f"{means[2]}. Highest: layer {best // HEADS}, head {best % HEADS}."
    )


@figure(
    "svm.real",
    "every head of MiniLM beside the SVM of its own selections",
    quick={"layer": tuple(range(6)), "sentences": 120, "length": 16, "draws": 3, "trials": 1},
    paper={"layer": tuple(range(6)), "sentences": 240, "length": 16, "draws": 5, "trials": 5},
    arrays=ARRAYS,
    paint=paint,
    alt=alt,
    grid=("layer",),
    finish=once,
    chunk=1,
    claims=("svm.theorem-3",),
    needs="real",
    stand_in="the paper has no experiment on a real model; sentences of film reviews",
    verdict=verdict,
    stored=True,
)
def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Some draws of sentences for one layer."""
    found = [alone(cell["layer"], cell, rng) for _ in range(trials)]
    return {name: np.stack([one[name] for one in found]) for name in found[0]}
