"""One head as statistics, and a loss that bounds itself: three explorables of chapter 1."""

from __future__ import annotations

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab import curvature, models, optim
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


class AttentionRow(Explorable):
    r"""The weights of one query as a distribution: mean, covariance and third moment.

    The reader drags tokens and logits; the output's slope and curvature along a direction of
    $W$ are compared with central differences and with their bounds.

    Returns:
        A widget.

    Reference: multihead, Lemma 1, Proposition 1.
    """

    name = "attention_row"

    def __init__(self) -> None:
        super().__init__()


class WeakConvexity(Explorable):
    r"""How far from convex the loss is, in units of the loss, over heads and their length.

    Args:
        rng: seed of data and heads.
        trials: draws of the heads.

    Returns:
        A widget.

    Reference: multihead, Corollary 1 (3), Lemma 6.
    """

    name = "weak_convexity"

    def __init__(self, rng: int = 0, trials: int = 3) -> None:
        heads, sizes = np.array([1, 2, 4, 8, 16, 64]), np.array([0.3, 1.0, 3.0])
        ratio = np.zeros((2, sizes.size, heads.size, trials))
        readout = np.zeros_like(ratio)
        for kind, s, h in np.ndindex(ratio.shape[:3]):
            H, size = int(heads[h]), float(sizes[s])
            problem, params = drawn(H, size, pairs=kind == 1, rng=rng, trials=trials)
            readout[kind, s, h] = np.sqrt((params["U"] ** 2).sum(axis=(-1, -2))).max(axis=-1)
            for k in range(trials):
                one = {name: part[k] for name, part in params.items()}
                model = models.MultiHead(heads=H)
                ratio[kind, s, h, k] = curvature.weak_convexity(model, one, problem)
        arrays = {
            "heads": heads,
            "sizes": sizes,
            "ratio": ratio,
            "readout": readout,
            "shape": np.array([problem.T, problem.d]),
        }
        super().__init__({}, arrays)


class SegmentExplorer(Explorable):
    r"""The loss along a straight line between two networks, against Proposition 4.

    Args:
        rng: seed of the data.

    Returns:
        A widget.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.SegmentExplorer().now("heads") is None  # the module's own default
        True

    Reference: multihead, Proposition 4, equations 14 to 16.
    """

    name = "segment_explorer"

    def __init__(self, rng: int = 0) -> None:
        heads = np.array([2, 4, 16, 64])
        arrays: dict[str, Array] = {"heads": heads}
        for H in heads:
            problem, points = trained(int(H), rng)
            arrays |= {"X": problem.X, "y": problem.y}
            arrays |= {f"{name}{H}": part for name, part in points.items()}
        super().__init__({}, arrays)


def unit_tokens(rng: np.random.Generator, *, n: int) -> SequenceProblem:
    """Four tokens of length 1 in three dimensions, labels in turn: Assumption 1 with R = 1."""
    X = rng.standard_normal((n, 4, 3))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    return SequenceProblem(X=X, y=np.resize([1.0, -1.0], n))


def drawn(
    heads: int, size: float, *, pairs: bool = False, rng: int = 0, trials: int = 3
) -> tuple[SequenceProblem, Params]:
    """A problem, and networks whose heads all have one length; the first axis is the draw.

    Pairs repeat the same head, however many heads there are.
    """
    problem = unit_tokens(np.random.default_rng(rng), n=6)
    count = 1 if pairs else heads
    generator = np.random.default_rng([rng, count])
    params = {
        "U": generator.standard_normal((trials, count, problem.T, problem.d)),
        "W": generator.standard_normal((trials, count, problem.d, problem.d)),
    }
    return problem, of_length(opposite_pairs(params, heads) if pairs else params, size)


def of_length(params: Params, size: float) -> Params:
    """Every head, readout and attention weights together, scaled to one length."""
    squares = sum((part**2).sum(axis=(-1, -2)) for part in params.values())
    factor = size / np.sqrt(np.asarray(squares))[..., None, None]
    return {name: factor * part for name, part in params.items()}


def opposite_pairs(params: Params, heads: int) -> Params:
    """The first head again and again, with readouts of alternating sign."""
    U, W = params["U"], params["W"]
    sign = np.resize([1.0, -1.0], heads)[:, None, None]
    return {"U": sign * U[..., :1, :, :], "W": np.repeat(W[..., :1, :, :], heads, axis=-3)}


def trained(heads: int, rng: int = 0) -> tuple[SequenceProblem, Params]:
    """A problem, and four points: one start, its run's end, and the ends of two other runs."""
    problem = unit_tokens(np.random.default_rng(rng), n=10)
    model = models.MultiHead(heads=heads, start="gaussian", scale=1.0)
    starts = [model.init(problem, rng=seed) for seed in range(3)]
    stacked = {name: np.stack([start[name] for start in starts]) for name in ("U", "W")}
    three = SequenceProblem(X=np.stack([problem.X] * 3), y=np.stack([problem.y] * 3))
    ends = optim.train(model, three, optim.GD(1.0), 1500, params=stacked, every=1500).params
    return problem, {name: np.concatenate([stacked[name][:1], ends[name]]) for name in stacked}
