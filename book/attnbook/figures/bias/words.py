"""Cosines of real words, and what breaking the assumptions costs: Figure 10 of the bias paper."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnbook import real
from attnbook.figures._interval import interval, short
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures._verdict import Verdict
from attnlab import models, optim, problems

# what pairs are made of: words of one text, as the paper looks at them, or of two, as Assumption 1
PAIRS = ("words of one text", "words of two texts")
SETS = ("imdb", "snippets-tweets")
EDGES = np.linspace(-1.0, 1.0, 101)
# size of a cosine: where its share is kept, evenly on a logarithmic scale
THRESHOLDS = np.logspace(-5, 0, 101)
NEAR = 0.1  # what is called nearly orthogonal by eye
# a training: tokens that are orthogonal, or words; one score for all rivals, or each word its own
WORLDS = (("orthogonal", "equal"), ("words", "equal"), ("orthogonal", "own"), ("words", "own"))
STEP, CHOSEN = 0.05, 0.5
READ = 2000  # sentences that the head of sentiment is fitted on


def table(encoder: real.models.Encoder) -> NDArray[np.float64]:
    """The vector of each word of the vocabulary, of length 1."""
    E = encoder.weights["embeddings.word_embeddings.weight"].astype(np.float64)
    return np.asarray(E / np.maximum(np.linalg.norm(E, axis=1, keepdims=True), 1e-12))


def words(encoder: real.models.Encoder, text: str, most: int) -> NDArray[np.int_]:
    """The different words of a text, by number, in its order."""
    ids = [encoder.vocabulary[one] for one in encoder.tokens(text, most)[1:-1]]
    return np.array(list(dict.fromkeys(ids)), int)


def histogram(encoder: real.models.Encoder, chosen: list[NDArray[np.int_]]) -> Arrays:
    """Counts of cosines, and shares of them below each threshold, for both kinds of pairs."""
    E = table(encoder)
    counts, below = np.zeros((2, len(EDGES) - 1)), np.zeros((2, len(THRESHOLDS)))
    many, line = np.zeros(2), np.zeros(2)
    for k, ids in enumerate(chosen):
        one, other = E[ids], E[chosen[k - 1]]
        for kind, cosine in enumerate(
            ((one @ one.T)[np.triu_indices(len(ids), 1)], (one @ other.T).ravel())
        ):
            cosine = np.clip(cosine, -1.0, 1.0)  # a word that stands twice is 1 but for rounding
            counts[kind] += np.histogram(cosine, EDGES)[0]
            size = np.sort(np.abs(cosine))
            below[kind] += np.searchsorted(size, THRESHOLDS, side="right")
            many[kind] += len(size)
            line[kind] += cosine.sum()
    return {
        "counts": counts,
        "below": below / many[:, None],
        "pairs": many,
        "mean": line / many,
    }


# -- what it costs ---------------------------------------------------------------------------------
def head(encoder: real.models.Encoder, ids: list[NDArray[np.int_]], y: NDArray[np.float64]) -> Any:
    """Which way good lies: a ridge regression of the labels on the mean word of each text."""
    E = table(encoder)
    mean = np.stack([E[one].mean(axis=0) for one in ids])
    mean = mean - mean.mean(axis=0)
    gram = mean.T @ mean
    ridge = gram + 0.01 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return np.linalg.solve(ridge, mean.T @ y)


def sample(
    encoder: real.models.Encoder,
    ids: list[NDArray[np.int_]],
    y: NDArray[np.float64],
    n: int,
    T: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``n`` texts of which T words are taken at random, none of them twice; and their labels."""
    taken: set[int] = set()
    rows, labels = [], []
    for k in rng.permutation(len(ids)):
        fresh = np.array([one for one in ids[k] if int(one) not in taken], int)
        if len(fresh) < T:
            continue
        some = np.sort(rng.permutation(len(fresh))[:T])
        rows.append(fresh[some])
        labels.append(y[k])
        taken.update(int(one) for one in fresh[some])
        if len(rows) == n:
            break
    return table(encoder)[np.stack(rows)], np.array(labels)


def problem(
    kind: tuple[str, str],
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    v: NDArray[np.float64],
    rng: np.random.Generator,
) -> problems.TokenProblem:
    """Words as tokens, or orthogonal ones in their place; the words' own scores, or equal ones.

    Equal scores are 1 of the best word and 0 of the others, by the shortest head that gives them;
    own ones are of the head that reads sentiment, on the scale where the best are 1 on average.
    """
    n, T, d = X.shape
    own = y[:, None] * (X @ v)
    own = own / own.max(axis=1).mean()
    best = own.argmax(axis=1)
    scores = own if kind[1] == "own" else np.eye(T)[best]
    if kind[0] == "orthogonal":
        X = np.linalg.qr(rng.standard_normal((d, n * T)))[0].T.reshape(n, T, d)
    head = np.linalg.lstsq(X.reshape(n * T, d), (y[:, None] * scores).ravel(), rcond=None)[0]
    return problems.TokenProblem(X=X, z=X[:, 0], y=y, v=head)


def cost(found: list[problems.TokenProblem], steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Normalized descent from zero: the steps, and attention on each best word as it trains."""
    stacked = problems.TokenProblem(
        X=np.stack([one.X for one in found]),
        z=np.stack([one.z for one in found]),
        y=np.stack([one.y for one in found]),
        v=np.stack([one.v for one in found]),
    )
    model = models.Attention(loss="exponential", start="zero")
    best = stacked.optimal[..., None]

    def on_best(params: Any, _: Any) -> NDArray[np.float64]:
        share = model.attention(params, stacked)
        return np.asarray(np.take_along_axis(share, best, axis=-1)[..., 0])

    run = optim.train(
        model,
        stacked,
        optim.NormalizedGD(STEP),
        steps,
        record=[{"best": on_best}],
        every="log",
    )
    kept = np.flatnonzero(run.history["step"] > 0)[::-3][::-1]  # every third, with the last
    shown = np.moveaxis(run.history["best"][kept], 0, -1)  # (trainings, n, times)
    return run.history["step"][kept], shown.astype(np.float16)


# -- the figure ------------------------------------------------------------------------------------
def wilson(hits: int, of: int) -> tuple[float, float]:
    """A 95 % interval of a share, from Wilson's score."""
    z2 = 1.96**2
    middle = (hits + z2 / 2) / (of + z2)
    half = math.sqrt(z2 * (hits * (of - hits) / of + z2 / 4)) / (of + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


def share_below(data: Data, size: float, kind: int = 0, of: int = 0) -> float:
    """Share of pairs whose cosine is at most ``size``, over all draws."""
    shares = np.log(np.maximum(data["below"][:, of, kind].mean(axis=0), 1e-9))
    return float(np.exp(np.interp(math.log(size), np.log(THRESHOLDS), shares)))


def arrive(data: Data, world: int) -> tuple[int, int]:
    """How many trainings end with most attention on every best word, of how many."""
    least = data["attention"][:, world, ..., -1].min(axis=-1)  # (draws, trainings)
    return int((least > CHOSEN).sum()), int(least.size)


def verdict(data: Data) -> Verdict:
    """What the paper's figure shows, and what the line of Assumption 1 asks."""
    near = data["below"][:, 0, 0, int(np.abs(THRESHOLDS - NEAR).argmin())]
    line = real.probe.line(int(data.settings["n"]), int(data.settings["T"]))
    told = "; ".join(
        f"{name[0]} with {name[1]} scores {hits} of {of} "
        f"[{short(wilson(hits, of)[0], 2)}, {short(wilson(hits, of)[1], 2)}]"
        for name, (hits, of) in zip(WORLDS, map(partial(arrive, data), range(4)), strict=True)
    )
    most = interval(near)
    word = "as the paper says" if most.low > 0.5 else "undecided"
    return Verdict(
        "otherwise" if most.high < 0.5 else word,
        f"Of the cosines within a review {interval(near).told(sign=False)} are below {NEAR} "
        f"({len(near)} draws of reviews), yet {share_below(data, line):.1%} below Assumption 1's "
        f"line for {data.settings['n']} texts of {data.settings['T']} words; of pairs from two "
        f"reviews, which the assumption speaks of, {share_below(data, line, 1):.1%}. Trainings "
        f"that end on every best word: {told}.",
    )


def paint(data: Data, canvas: Any) -> None:
    """The histogram with the line, and the least attention of each training."""
    left, right = canvas.subplots(1, 2)
    for of, name in enumerate(SETS):
        counts = data["counts"][:, of, 0].sum(axis=0)
        left.stairs(counts / counts.sum() / np.diff(EDGES), EDGES, label=name, color=tone(of))
    line = real.probe.line(int(data.settings["n"]), int(data.settings["T"]))
    for end in (-line, line):
        left.axvline(end, color="k", lw=0.8, ls="--")
    left.set(xlim=(-0.3, 0.7), xlabel="cosine of two words of one text", ylabel="density")
    left.legend()
    for world, (tokens, scores) in enumerate(WORLDS):
        least = np.sort(data["attention"][:, world, ..., -1].min(axis=-1).ravel())
        right.plot(
            least,
            marker=mark(world),
            ls="",
            color=tone(world),
            label=f"{tokens}, {scores} scores",
        )
    right.set(xlabel="training, in order", ylabel="least attention on a best word", ylim=(0, 1.05))
    right.legend()


def alt(data: Data) -> str:
    """The verdict says it."""
    return (
        "Left, cosines of words of one text, most of them near 0, and Assumption 1's line. "
        f"Right, the least attention on a best word at the end of each training. {verdict(data)}"
    )


QUICK = {"texts": 150, "most": 128, "n": 20, "T": 12, "trainings": 5, "steps": 20_000, "trials": 4}


@figure(
    "bias.10",
    "cosines of the words of real texts, Assumption 1's line, and trainings on real words",
    quick=QUICK,
    paper={**QUICK, "texts": 10_000, "most": 512, "trainings": 20, "trials": 5},
    arrays={
        "counts": "(draws, 2 sets, 2 kinds of pairs, 100) cosines in bins from -1 to 1",
        "below": "(draws, 2, 2, 101) share of pairs whose cosine is at most 1e-5, ..., 1 in size",
        "pairs": "(draws, 2, 2) number of pairs",
        "mean": "(draws, 2, 2) mean cosine",
        "attention": "(draws, 4 worlds, trainings, n, times) attention on each best word",
        "scores": "(draws, 2: equal, own; trainings, n, T) score of each word",
        "step": "(draws, times) recorded steps",
    },
    no_draws=("steps",),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("bias.assumption-1", "bias.assumption-2", "bias.theorem-1"),
    size=(9.0, 3.6),
    needs="real",
    stand_in=(
        "MiniLM's word embeddings for BERT's; reviews of films and tweets for Civil Comments and "
        "MultiNLI, and fewer of them. The trainings are our own addition."
    ),
    verdict=verdict,
    stored=True,
)
def bias_10(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Each trial draws its own texts."""
    encoder = real.models.minilm()
    found = [draw(encoder, cell, rng) for _ in range(trials)]
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def draw(encoder: real.models.Encoder, cell: Cell, rng: np.random.Generator) -> Arrays:
    """Histograms of both sets, and the trainings of all four worlds on the same words."""
    arrays: Arrays = {}
    counted = []
    for name in SETS:
        texts = real.data.texts(name).texts
        some = [
            words(encoder, texts[k], int(cell["most"]))
            for k in rng.permutation(len(texts))[: int(cell["texts"])]
        ]
        counted.append(histogram(encoder, [one for one in some if len(one) > 1]))
    arrays |= {name: np.stack([one[name] for one in counted]) for name in counted[0]}
    given = real.data.texts("rotten-tomatoes")
    chosen = rng.permutation(len(given.texts))[:READ]
    ids = [words(encoder, given.texts[k], 64) for k in chosen]
    y = np.where(np.array(given.labels)[chosen] > 0.5, 1.0, -1.0)
    v = head(encoder, ids, y)
    drawn = [
        sample(encoder, ids, y, int(cell["n"]), int(cell["T"]), rng)
        for _ in range(int(cell["trainings"]))
    ]
    attention, scores = [], []
    for world in WORLDS:
        found = [problem(world, X, labels, v, rng) for X, labels in drawn]
        step, shown = cost(found, int(cell["steps"]))
        attention.append(shown)
        if world[0] == "words":
            scores.append(np.stack([one.scores for one in found]).astype(np.float16))
    return arrays | {"attention": np.stack(attention), "scores": np.stack(scores), "step": step}
