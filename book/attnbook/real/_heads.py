"""The theory's own heads on real words, trained as fine-tuning does: batches, drawn in each pass.

Nothing here needs PyTorch: the model is `attnlab.models.MultiHead`, the rules are those of
`attnlab.optim`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab import models, optim
from attnlab.checks import Array, Rng
from attnlab.models import Params
from attnlab.problems import SequenceProblem


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
    return max(1, round(float(np.sqrt(rows**2 / 4 + share)) - rows / 2))


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
