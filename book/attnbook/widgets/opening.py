"""What the book opens with: one run that seems to settle, and does not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab import models, ntk, optim, problems, svm
from attnlab.problems import TokenProblem

TOKENS = [[-1.3, 0.9], [-1.6, -0.8], [-0.9, -0.9], [-0.9, 0.2], [0.5, -0.5], [1.6, 0.7]]


class FirstRun(Explorable):
    r"""Six tokens and a query: attention gives itself to the second best token, then changes.

    Returns:
        A widget; `problem` is what the reader made of it.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.FirstRun().problem.optimal
        array([0])

    Reference: svm, Theorem 3; bias, Theorem 1.
    """

    name = "first_run"

    def __init__(self) -> None:
        super().__init__({"X": TOKENS})

    @property
    def problem(self) -> TokenProblem:
        """The problem as it is in the picture now."""
        X = np.array([self.now("X")], float)
        return TokenProblem(X=X, z=np.array([[0.0, 1.0]]), y=np.ones(1), v=np.array([0.0, 1.0]))


class OnePicture(Explorable):
    r"""One run from zero to saturation, with three directions that were known before it.

    Returns:
        A widget.

    Reference: multihead, Theorem 1; encoder, Lemma 1; bias, Theorem 1; svm, Theorem 2.
    """

    name = "one_picture"

    def __init__(self) -> None:
        problem = problems.sphere(n=4, T=4, d=6, min_gap=0.2, rng=6)
        model = models.Attention(start="zero")
        zero = model.init(problem, rng=0)
        first = -model.value_and_grad(zero, problem)[1]["W"]
        tangent = ntk.margin(model, zero, problem).direction["W"]
        goal = svm.attention_svm(problem).W
        record: list[Any] = [{"W": lambda params, _: params["W"]}]
        rule = optim.NormalizedGD(0.05)
        history = optim.train(model, problem, rule, 20_000, record=record, every="log").history
        W = history["W"]
        attention = np.array([model.attention({"W": each}, problem) for each in W])
        cosines = [
            [0.0] + [float(svm.correlation(each, way)) for each in W[1:]]
            for way in (first, tangent, goal)
        ]
        moved, tangents = changes(model, problem, W)
        self.near, self.far = regimes(problem, history["step"], attention)
        size = np.linalg.norm(moved[1:], axis=1)
        off = np.linalg.norm(moved - tangents, axis=1)[1:] / size
        self.error = float(off[history["step"][1:] <= self.near].max())
        super().__init__(
            arrays={
                "steps": history["step"],
                "cosines": cosines,
                "attention": attention,
                "W": W.astype(np.float32),
                "norm": np.linalg.norm(W, axis=(1, 2)),
                "optimal": problem.optimal,
                "bounds": [self.near, self.far],
                "moved": moved,
                "tangent": tangents,
            }
        )


def changes(model: models.Attention, problem: TokenProblem, W: Any) -> tuple[Any, Any]:
    """How far each output has moved from its start, and what its tangent at zero says of that."""
    zero, small = np.zeros_like(W[0]), 1e-6
    start = model.forward({"W": zero}, problem)
    moved = [model.forward({"W": each}, problem) - start for each in W]
    tangents = [(model.forward({"W": small * each}, problem) - start) / small for each in W]
    return np.array(moved), np.array(tangents)


def regimes(problem: TokenProblem, steps: Any, attention: Any) -> tuple[int, int]:
    """The step up to which no attention weight is more than a tenth away from 1/T, and the step
    from which every best token has 99 % of its attention.
    """
    off = np.abs(attention - 1.0 / problem.T).max(axis=(1, 2)) > 0.1
    best = np.take_along_axis(attention, problem.optimal[None, :, None], axis=-1)[..., 0]
    return int(steps[np.argmax(off) - 1]), int(steps[np.argmax(best.min(axis=1) > 0.99)])


class LongStart(Explorable):
    r"""The one picture's data from a start of any length along other tokens' max-margin direction.

    Returns:
        A widget; `lengths` and, for both selections, `ends`: least attention on a best token.

    Reference: svm, Theorem 7.
    """

    name = "long_start"

    def __init__(self) -> None:
        problem = problems.sphere(n=4, T=4, d=6, min_gap=0.2, rng=6)
        model = models.Attention(start="zero")
        self.lengths = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0])
        record: list[Any] = [{"W": lambda params, _: params["W"]}]
        goal = svm.attention_svm(problem).W
        least, near, steps = [], [], None
        for others in ([0, 3, 0, 0], [1, 3, 0, 0]):
            wrong = svm.attention_svm(problem, np.array(others)).W
            for length in self.lengths:
                start = {"W": length * wrong / np.linalg.norm(wrong)}
                history = optim.train(
                    model,
                    problem,
                    optim.NormalizedGD(0.05),
                    4000,
                    params=start,
                    record=record,
                    every="log",
                ).history
                steps = history["step"]
                found = np.array([model.attention({"W": W}, problem) for W in history["W"]])
                best = np.take_along_axis(found, problem.optimal[None, :, None], axis=-1)
                least.append(best[..., 0].min(axis=1))
                near.append(
                    [
                        [float(svm.correlation(W, way)) for way in (goal, wrong)]
                        for W in history["W"]
                    ]
                )
        shape = (2, len(self.lengths), -1)
        self.ends = np.array(least).reshape(shape)[..., -1]
        super().__init__(
            arrays={
                "lengths": self.lengths,
                "steps": steps,
                "least": np.array(least, np.float32).reshape(shape),
                "cosines": np.array(near, np.float32).reshape(*shape, 2),
            }
        )


class LayerSteps(Explorable):
    r"""A Transformer block with random weights, reduced to attention with a linear head.

    Each step leaves something out or merges two matrices; the change of the last token's output
    is measured over random blocks.

    Returns:
        A widget; `change` holds the medians.

    Examples:
        >>> from attnbook import widgets
        >>> bool(widgets.LayerSteps().change[4] < 1e-12)  # keys and queries meet in a product
        True

    Reference: svm, Section 1; multihead, equation (1).
    """

    name = "layer_steps"

    def __init__(self) -> None:
        T, d, m, H = 12, 64, 16, 4
        draws = np.array([_reduce(T, d, m, H, rng) for rng in range(200)])
        self.change = np.median(draws, axis=0)
        quartiles = np.quantile(draws, [0.25, 0.75], axis=0)
        super().__init__(
            arrays={
                "change": self.change,
                "quartiles": quartiles,
                "rank": [m, m],
                "sizes": [T, d, m, H],
            }
        )


def _reduce(T: int, d: int, m: int, H: int, rng: int) -> list[float]:
    """Relative change of the last token's output at each step; weights keep lengths on average."""
    draw = np.random.default_rng(rng)

    def matrix(a: int, b: int) -> Any:
        return draw.standard_normal((a, b)) / np.sqrt(a)

    def norm(x: Any) -> Any:
        return (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)

    X = draw.standard_normal((T, d)) * np.exp(0.3 * draw.standard_normal((T, 1)))
    Q, K, V = ([matrix(d, m) for _ in range(H)] for _ in range(3))
    O = [matrix(m, d) / np.sqrt(H) for _ in range(H)]  # noqa: E741
    first, second, v = matrix(d, 4 * d), matrix(4 * d, d), matrix(d, 1)[:, 0]
    Y = norm(X)

    def heads(Z: Any) -> Any:
        found = np.zeros(d)
        for h in range(H):
            s = models.softmax((Z @ K[h]) @ (Z[-1] @ Q[h]) / np.sqrt(m))
            found += (s @ (Z @ V[h])) @ O[h]
        return found

    middle = X[-1] + heads(Y)
    block = middle + np.maximum(norm(middle) @ first, 0) @ second
    W = [K[h] @ Q[h].T / np.sqrt(m) for h in range(H)]
    U = [V[h] @ O[h] for h in range(H)]
    attention = [models.softmax(Y @ W[h] @ Y[-1]) for h in range(H)]
    merged = sum((attention[h] @ (Y @ V[h])) @ O[h] for h in range(H))
    both = sum(attention[h] @ Y @ U[h] for h in range(H))
    one = attention[0] @ Y @ U[0]
    out = [block, middle, heads(Y), heads(Y), merged, both, one]
    change = [
        float(np.linalg.norm(after - before) / np.linalg.norm(before))
        for before, after in itertools.pairwise(out)
    ]
    read = abs(float(attention[0] @ (Y @ (U[0] @ v))) - float(one @ v))
    return [0.0, *change, read / float(np.linalg.norm(one) * np.linalg.norm(v))]
