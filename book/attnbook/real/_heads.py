"""The theory's own heads on real words: frozen features of an encoder, and what is trained on them.

Nothing here needs PyTorch: the model is `attnlab.models.MultiHead`, the rules are those of
`attnlab.optim`, and batches are drawn as fine-tuning draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from attnbook.real._datasets import Texts
from attnlab import checks as check
from attnlab import models, optim
from attnlab.checks import Array, Rng
from attnlab.models import Params
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


@dataclass(frozen=True)
class Cut:
    r"""Heads that share one head's number of parameters: each sees tokens in ``width`` directions.

    Head $h$ reads $P_h^\top x$, where $P_h$ has orthogonal columns that are drawn once and never
    trained; it is stretched so that tokens keep their length in the mean. Training is that of
    `MultiHead` with $W_h=P_hw_hP_h^\top$ and $U_h=u_hP_h^\top$.

    Args:
        heads: how many.
        width: directions of each.
        seed: of the directions.
        output: as in `MultiHead`.

    Returns:
        A model; parameters are ``W (..., heads, width, width)`` and ``U``.

    Examples:
        >>> from attnbook import real
        >>> real.heads.Cut(4, real.heads.width(4, d=32)).width
        16

    Reference: multihead, equation 2; the widths of heads as in Vaswani and others (2017).
    """

    heads: int
    width: int
    seed: int = 0
    output: str = "last"

    @property
    def whole(self) -> models.MultiHead:
        """The model in which these heads live."""
        return models.MultiHead(heads=self.heads, output=self.output)

    def directions(self, d: int) -> Array:
        r"""$P_h$, shape ``(heads, d, width)``."""
        if self.width > d:
            raise check.fail("width", f"at most the tokens' {d}", self.width)
        draw = np.random.default_rng([self.seed, self.heads, self.width])
        turned = np.linalg.qr(draw.standard_normal((self.heads, d, self.width)))[0]
        return np.asarray(turned * (d / self.width) ** 0.5)

    def shapes(self, problem: SequenceProblem) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter of one trial."""
        whole = self.whole.shapes(problem)
        return {
            "U": (*whole["U"][:-1], self.width),
            "W": (self.heads, self.width, self.width),
        }

    def init(self, problem: SequenceProblem, rng: Rng | None = None) -> Params:
        """Gaussian parameters, as `start` draws them."""
        return start(self, problem, rng=0 if rng is None else rng)

    def widened(self, params: Params, problem: SequenceProblem) -> Params:
        """The same heads as parameters of `whole`."""
        P = self.directions(problem.d)
        u = params["U"] if self.output == "full" else params["U"][..., None, :]
        U = u @ P.swapaxes(-1, -2)
        W = P @ params["W"] @ P.swapaxes(-1, -2)
        return {"U": U if self.output == "full" else U[..., 0, :], "W": W}

    def forward(self, params: Params, problem: SequenceProblem) -> Array:
        """Outputs, shape ``(..., n)``."""
        return self.whole.forward(self.widened(params, problem), problem)

    def attention(self, params: Params, problem: SequenceProblem) -> Array:
        """Maps ``[query, key]``."""
        return self.whole.attention(self.widened(params, problem), problem)

    def value_and_grad(self, params: Params, problem: SequenceProblem) -> tuple[Array, Params]:
        """Loss and its gradient, through the directions."""
        loss, grads = self.whole.value_and_grad(self.widened(params, problem), problem)
        P = self.directions(problem.d)
        g = grads["U"] if self.output == "full" else grads["U"][..., None, :]
        U = g @ P
        W = P.swapaxes(-1, -2) @ grads["W"] @ P
        return loss, {"U": U if self.output == "full" else U[..., 0, :], "W": W}


def width(heads: int, *, d: int, rows: int = 1) -> int:
    r"""Directions of each of H heads that together have about as many parameters as one of d.

    The nearest whole number to $b$ with $Hb(b+\mathrm{rows})=d(d+\mathrm{rows})$.

    Args:
        heads: $H$.
        d: length of a token.
        rows: of the readout: 1 where it is one vector, T where it is full.

    Returns:
        A number of directions, at least 1.

    Examples:
        >>> from attnbook import real
        >>> [real.heads.width(heads, d=32) for heads in (1, 8, 32)]
        [32, 11, 5]
    """
    share = d * (d + rows) / check.count("heads", heads)
    return max(1, round(-rows / 2 + (rows**2 / 4 + share) ** 0.5))


def start(
    model: Any, problem: SequenceProblem, *, rng: Rng, copies: bool = False, logits: float = 1.0
) -> Params:
    """Random heads: logits of about ``logits`` where tokens have length 1, and a small readout.

    Args:
        model: `MultiHead` or `Cut`.
        problem: the sentences.
        rng: seed or generator.
        copies: one head is drawn, and all others are copies of it.
        logits: size of the entries of W.

    Returns:
        Parameters.

    Examples:
        >>> from attnbook import real
        >>> from attnlab import models, problems
        >>> p = problems.tokenized_mixture(n=10, rng=0)
        >>> W = real.heads.start(models.MultiHead(heads=4), p, rng=0, copies=True)["W"]
        >>> bool((W == W[:1]).all())
        True
    """
    draw = check.generator(rng)
    params: Params = {}
    for name, scale in (("U", 0.1), ("W", logits)):
        shape = model.shapes(problem)[name]
        drawn = scale * draw.standard_normal((1, *shape[1:]) if copies else shape)
        params[name] = np.repeat(drawn, shape[0], axis=0) if copies else drawn
    return params


@dataclass(frozen=True, eq=False)
class Course:
    """What came of a training.

    Args:
        epoch: passes through the sentences when it was measured.
        train: mean loss over all sentences to learn from.
        test: mean loss over the others.
        accuracy: share of the others that is classified rightly.
        params: at the end.

    Returns:
        A record.

    Examples:
        >>> from attnbook import real
        >>> from attnlab import models, optim, problems
        >>> p = problems.tokenized_mixture(n=64, rng=0)
        >>> run = real.heads.fit(
        ...     models.MultiHead(heads=2), p, p.fresh(64, rng=1), optim.Adam(0.03), epochs=4, rng=0
        ... )
        >>> bool(run.train[-1] < run.train[0]), run.epoch.shape
        (True, (5,))
    """

    epoch: Array
    train: Array
    test: Array
    accuracy: Array
    params: Params


def fit(
    model: Any,
    train: SequenceProblem,
    test: SequenceProblem,
    rule: optim.Rule,
    *,
    epochs: int,
    batch: int = 32,
    measured: int = 1,
    copies: bool = False,
    rng: Rng,
) -> Course:
    """Train on batches of sentences, drawn anew in each pass.

    Args:
        model: `MultiHead`, `Cut`, or what has their methods.
        train: sentences to learn from.
        test: others.
        rule: a step rule of `attnlab.optim`.
        epochs: passes.
        batch: sentences a step; what is left over at the end of a pass waits for the next.
        measured: times a pass.
        copies: start from copies of one head.
        rng: of the start and of the order.

    Returns:
        A `Course`.

    Examples:
        >>> from attnbook import real
        >>> from attnlab import models, optim, problems
        >>> p = problems.tokenized_mixture(n=16, rng=0)
        >>> real.heads.fit(models.MultiHead(heads=2), p, p, optim.GD(1.0), epochs=1, rng=0)
        Traceback (most recent call last):
        ...
        ValueError: batch: expected at most the 16 sentences, got 32
    """
    if check.count("batch", batch) > train.n:
        raise check.fail("batch", f"at most the {train.n} sentences", batch)
    draw = check.generator(rng)
    params = start(model, train, rng=draw, copies=copies)
    state = rule.init(model, train, params)
    steps = train.n // batch
    marks = {round(steps * (k + 1) / measured) for k in range(check.count("measured", measured))}
    found = [(0.0, *_measured(model, params, train, test))]
    for epoch in range(check.count("epochs", epochs)):
        order = draw.permutation(train.n)
        for k in range(steps):
            some = order[k * batch : (k + 1) * batch]
            part = SequenceProblem(train.X[some], train.y[some])
            loss, grads = model.value_and_grad(params, part)
            params, state = rule.step(params, models.Evaluation(loss, grads), state)
            if k + 1 in marks:
                passed = epoch + (k + 1) / steps
                found.append((passed, *_measured(model, params, train, test)))
    epoch_, first, second, right = (np.array(one) for one in zip(*found, strict=True))
    return Course(epoch_, first, second, right, params)


def _measured(
    model: Any, params: Params, train: SequenceProblem, test: SequenceProblem
) -> tuple[float, float, float]:
    """Both losses, and the share of the test that is right."""
    m = train.y * model.forward(params, train)
    seen = test.y * model.forward(params, test)
    losses = [float(np.logaddexp(0.0, -one).mean()) for one in (m, seen)]
    return losses[0], losses[1], float((seen > 0).mean())
