"""Explorables of the tokenized mixture and of what more heads do."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import theory
from attnbook.figures.multihead import heads as heads_of
from attnbook.widgets import planted
from attnbook.widgets._base import Explorable
from attnlab import models, optim, problems
from attnlab.checks import Array
from attnlab.problems import SequenceProblem


class MarginRace(Explorable):
    r"""Margins of linear, tangent-feature and attention models of the tokenized mixture.

    Returns:
        A widget.

    Reference: multihead, Propositions 2 and 3, Section 5.3, equation 132.
    """

    name = "margin_race"

    def __init__(self) -> None:
        super().__init__()


class OneHeadTwin(Explorable):
    r"""Many heads from a zero start, and one head with two learning rates that does the same.

    Args:
        rng: seed of the data.

    Returns:
        A widget; `problem` is the data that it trains on.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.OneHeadTwin().problem
        SequenceProblem(n=8, T=5, d=4)

    Reference: multihead, Appendix G; the reduction is this book's.
    """

    name = "one_head_twin"
    problem: SequenceProblem

    def __init__(self, rng: int = 0) -> None:
        drawn = problems.tokenized_mixture(n=8, T=5, zeta=0.2, rng=rng)
        X = drawn.X.astype(np.float32).astype(float)  # what the module sees, to the last bit
        self.problem = SequenceProblem(X, drawn.y)
        starts = []
        for count in (1, 2, 4, 8, 16):  # as a Gaussian start with rng=0 draws them
            model = models.MultiHead(heads=count, start="gaussian", scale=1.0)
            params = model.init(self.problem, rng=0)
            starts += [params["U"].ravel(), params["W"].ravel()]
        super().__init__({}, {"X": X, "y": drawn.y, "starts": np.concatenate(starts)})


HEADS = (1, 2, 4, 8, 16, 32, 64)


class HeadRace(Explorable):
    r"""Loss, attention and margin for 1 to 64 and infinitely many heads, with a sample's map.

    With the same step for all heads the limit is a head whose W stays at 0.

    Args:
        rng: seed of the data.
        steps: how many.

    Returns:
        A widget; `problem` is the training data, `steps` how many steps were taken, and `limit`
        the last training loss of infinitely many heads.

    Examples:
        >>> from attnbook import widgets
        >>> race = widgets.HeadRace(rng=0, steps=20)
        >>> race.problem
        SequenceProblem(n=100, T=10, d=4)

    Reference: multihead, Figures 2 and 3.
    """

    name = "head_race"
    problem: SequenceProblem
    steps: int
    limit: float

    def __init__(self, rng: int = 0, steps: int = 400) -> None:
        drawn = problems.tokenized_mixture(n=100, rng=rng)
        test = drawn.fresh(200, rng=rng + 1)
        self.problem, self.steps = drawn, steps
        times = np.array(_moments(steps)[1:])
        rules: tuple[Any, ...] = (
            lambda _: optim.GD(1.0),
            lambda H: optim.GD(0.3 * H**0.5),
            lambda _: optim.Adam(0.06),
        )
        found: dict[str, list[Array]] = {}
        for rule in rules:
            told = [_followed(drawn, test, H, rule(H), steps) for H in HEADS]
            told.append(_frozen(drawn, test, steps) if rule is rules[0] else told[-1])
            for name in told[0]:
                found.setdefault(name, []).append(np.stack([run[name] for run in told]))
        arrays = {name: np.stack(values)[:, :, 1:] for name, values in found.items()}
        self.limit = float(arrays["train"][0, -1, -1])
        more = {
            "step": times.astype(int),
            "heads": np.array([*HEADS, 0]),
            "X": drawn.X[0],
            "relevant": np.asarray(drawn.relevant)[0],
            "ceiling": np.array([theory.multihead.gamma_attn()]),
        }
        super().__init__({"k": len(times) - 1}, {**arrays, **more})


def _moments(steps: int) -> list[int]:
    """Recorded steps: the start, and about 25 on a logarithmic scale."""
    return [0, *np.unique(np.geomspace(1, steps, 28).round().astype(int)).tolist()]


def _followed(
    drawn: SequenceProblem, test: SequenceProblem, H: int, rule: optim.Rule, steps: int
) -> dict[str, Array]:
    """What a race shows of one run, by time; from a zero start one W stands for all."""
    model = models.MultiHead(heads=H)

    def seen(params: Any, _: Any) -> Array:
        return _seen(params, drawn, test, model)

    record: Any = ["loss", {"seen": seen, "W": lambda params, _: params["W"][0]}]
    run = optim.train(model, drawn, rule, steps, record=record, every=_moments(steps))
    return _told(run.history["loss"], run.history["seen"], run.history["W"])


def _told(loss: Array, seen: Array, W: Array) -> dict[str, Array]:
    names = ("test", "error", "attention", "margin")
    return {"train": loss, **dict(zip(names, seen.T, strict=True)), "W": W}


def _seen(
    params: Any, drawn: SequenceProblem, test: SequenceProblem, model: models.MultiHead
) -> Array:
    """Test loss, test error, attention on relevant tokens, margin."""
    unseen = test.y * model.forward(params, test)
    least = (drawn.y * model.forward(params, drawn)).min(axis=-1)
    margin = heads_of.ratio(np.asarray(least), np.asarray(np.linalg.norm(params["U"])))
    attention = heads_of.attention(params, drawn)
    return np.array([np.logaddexp(0, -unseen).mean(), (unseen <= 0).mean(), attention, margin])


def _frozen(drawn: SequenceProblem, test: SequenceProblem, steps: int) -> dict[str, Array]:
    """Infinitely many heads with step 1: one head whose W never moves."""
    model = models.MultiHead(heads=1)
    params = model.init(drawn)
    times, loss, seen = set(_moments(steps)), [], []
    for k in range(steps + 1):
        value, grads = model.value_and_grad(params, drawn)
        if k in times:
            loss.append(value)
            seen.append(_seen(params, drawn, test, model))
        params = {"U": params["U"] - grads["U"], "W": params["W"]}
    return _told(np.array(loss), np.array(seen), np.zeros((len(loss), drawn.d, drawn.d)))


class PlantedTeacher(Explorable):
    r"""Twelve planted teachers, five rules, four numbers of heads: which runs get stuck.

    Returns:
        A widget; its sweep is stored and renewed by ``python -m attnbook.widgets.planted``.

    Reference: multihead, Figures 4 and 5, model DM2.
    """

    name = "planted_teacher"

    def __init__(self) -> None:
        found = planted.stored()
        super().__init__({"k": len(found["step"]) - 1}, found)
