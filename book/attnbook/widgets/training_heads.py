"""Explorables on training many heads: what theorems ask for, stability, good starts, steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import theory
from attnbook.widgets._base import Explorable
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem

ONE = models.MultiHead(heads=1)
HEADS = (1, 4, 16, 64)


def _length(params: Params) -> Array:
    """Euclidean length of all parameters, one number a trial."""
    squares = sum((part**2).sum(axis=(-1, -2, -3)) for part in params.values())
    return np.asarray(np.sqrt(squares))


def _away(first: Params, second: Params) -> Array:
    return _length({name: first[name] - second[name] for name in first})


def moments(steps: int, count: int) -> list[int]:
    """Recorded steps, denser at first, with the start."""
    found = np.unique(np.geomspace(1, steps, count).round().astype(int))
    return [0, *found.tolist()]


class HeadBudget(Explorable):
    r"""Heads and steps that Theorems 3 and 4 ask for, next to what training needs.

    Args:
        rng: seed of the mixture on which one head is trained.

    Returns:
        A widget; the target is the best direction at zero, so that its loss at distance
        $\delta$ is at most $\log(1+e^{-\gamma\delta})$.

    Reference: multihead, Theorems 3 and 4, Appendix G.
    """

    name = "head_budget"

    def __init__(self, rng: int = 0) -> None:
        drawn = problems.tokenized_mixture(n=100, rng=rng)
        start = ONE.init(drawn)
        run = optim.train(ONE, drawn, optim.GD(1.0), 1000, params=start, every=moments(1000, 60))
        gamma = float(ntk.margin(ONE, start, drawn).margin)
        longest = float(np.linalg.norm(drawn.X, axis=-1).max())
        arrays = {
            "step": run.history["step"].astype(int),
            "loss": run.history["loss"],
            "gamma": np.array([gamma]),
            "longest": np.array([longest]),
        }
        super().__init__({"R": round(longest, 1)}, arrays)


class LeaveOneOut(Explorable):
    r"""Distance between the runs on n samples and on all but one, and the gap that it bounds.

    Args:
        rng: seed of the samples.

    Returns:
        A widget.

    Reference: multihead, Lemmas 3 and 11, Theorem 2.
    """

    name = "leave_one_out"

    def __init__(self, rng: int = 0) -> None:
        found = [leave_one_out(n, rng=rng) for n in SAMPLES]
        arrays: dict[str, Any] = {
            name: np.stack([one[name] for one in found])
            for name in ("mean", "stability_bound", "gap", "lemma", "bound")
        }
        most = max(SAMPLES)
        each = np.zeros((len(SAMPLES), most, len(found[0]["step"])))
        for k, n in enumerate(SAMPLES):
            each[k, :n] = found[k]["each"]
        arrays |= {"each": each, "step": found[0]["step"], "samples": np.array(SAMPLES)}
        super().__init__({}, arrays)


SAMPLES = (4, 8, 16, 32)
SETTING: dict[str, Any] = {"T": 5, "zeta": 0.2, "S": 1.0, "sigma": 0.5}
SETS = {4: 160, 8: 80, 16: 40, 32: 20}  # training sets for the gap


def leave_one_out(
    n: int, *, rng: int = 0, eta: float = 0.5, steps: int = 200, heads: int = 4
) -> dict[str, Array]:
    r"""Runs with and without each sample, and the bounds with the best target on the path.

    Returns ``step``; ``each (n, times)`` and ``mean``: $\|\theta_k-\theta_k^{\neg i}\|$ on one
    set and its mean over several; ``gap``: test minus training loss; ``lemma``: twice the
    Lipschitz constant times the mean; ``stability_bound`` and ``bound``: Lemma 11 and Theorem 2.

    Examples:
        >>> from attnbook.widgets import training_heads
        >>> found = training_heads.leave_one_out(4, steps=20)
        >>> bool((found["gap"] < found["lemma"] + 1e-12).all())
        True
    """
    model, times = models.MultiHead(heads=heads), moments(steps, 24)
    drawn = problems.tokenized_mixture(n=n, trials=SETS[n], rng=rng, **SETTING)
    test = drawn.fresh(60, rng=rng + 1)
    few = max(1, 32 // n)
    kept: dict[str, Any] = {name: lambda p, _, name=name: p[name] for name in ("U", "W")}
    record = ["loss", {f"all_{name}": kept[name] for name in kept}]

    def path(problem: SequenceProblem, size: float) -> tuple[Array, list[Params]]:
        run = optim.train(model, problem, optim.GD(size), steps, record=record, every=times)
        found = [{name: run.history[f"all_{name}"][k] for name in kept} for k in range(len(times))]
        return run.history["loss"], found

    loss, points = path(drawn, eta)
    rest = [np.arange(n) != i for i in range(n)]  # all runs without a sample side by side
    X = np.stack([drawn.X[:few, keep] for keep in rest])
    y = np.stack([drawn.y[:few, keep] for keep in rest])
    # the loss without sample i keeps its 1/n: a step on the mean of the others is shorter
    others = path(SequenceProblem(X, y), eta * (n - 1) / n)[1]
    whole = [{name: part[:few] for name, part in point.items()} for point in points]
    away = np.stack([_away(*pair) for pair in zip(whole, others, strict=True)], axis=1)
    # (samples, times, training sets)
    gap = [model.value_and_grad(point, test)[0] - loss[k] for k, point in enumerate(points)]
    mean = away.mean(axis=(0, 2))
    longest = float(np.linalg.norm(drawn.X, axis=-1).max())
    readout = [np.sqrt((p["U"] ** 2).sum(axis=(-1, -2)).max()) for p in points]
    lipschitz = theory.multihead.beta1(np.array(readout), T=drawn.T, R=longest)
    # the best target among the iterates, for each number of steps
    target = loss.mean(axis=1)
    far = np.array([np.sqrt((_length(p) ** 2).mean()) for p in points])
    head = far / heads**0.5
    bounds, spread = np.zeros(len(times)), np.zeros(len(times))
    for k, K in enumerate(times[1:], start=1):
        sizes: dict[str, Any] = {"eta": eta, "K": K, "n": n}
        bounds[k] = theory.multihead.generalization_bound(target[1:], far[1:], **sizes).min()
        spread[k] = theory.multihead.stability_bound(
            target[1:], far[1:], head[1:], T=drawn.T, R=longest, **sizes
        ).min()
    return {
        "step": np.array(times),
        "each": away[:, :, 0],
        "mean": mean,
        "gap": np.mean(gap, axis=1),
        "lemma": np.asarray(theory.multihead.on_average_bound(mean, lipschitz)),
        "stability_bound": spread,
        "bound": bounds,
    }


class TwoGroups(Explorable):
    r"""Heads after a step of random sign, the way to the target, and its missing root of 2.

    Returns:
        A widget: everything is in closed form on the mixture without noise.

    Reference: multihead, Section 5.1, Definition 1, Propositions 2 and 7.
    """

    name = "two_groups"

    def __init__(self) -> None:
        super().__init__()


class StepRules(Explorable):
    r"""Six step rules on the same heads: loss, the length that they pay with, and the margin.

    Args:
        rng: seed of the samples.
        steps: how many.

    Returns:
        A widget.

    Reference: multihead, Figures 2 and 3; bias, Section 3.4.
    """

    name = "step_rules"

    def __init__(self, rng: int = 0, steps: int = 300) -> None:
        found = step_rules(rng=rng, steps=steps)
        ceiling = theory.multihead.gamma_attn(T=10, S=2.0)
        super().__init__(
            {"k": len(found["step"]) - 1}, {**found, "ceiling": np.array([float(ceiling)])}
        )


def rules(heads: int) -> dict[str, optim.Rule]:
    """The rules of `StepRules`, with the steps that they take with so many heads."""
    return {
        "GD": optim.GD(1.0),
        "GD, step 0.3 root H": optim.GD(0.3 * heads**0.5),
        "momentum": optim.Momentum(0.3, 0.9),
        "Adam": optim.Adam(0.06),
        "normalized GD": optim.NormalizedGD(0.1),
        "Polyak": optim.PolyakStep(),
    }


def step_rules(rng: int = 0, steps: int = 300, n: int = 60) -> dict[str, Array]:
    """Arrays ``(heads, rules, times)`` of loss, length, share of W in it, and margin.

    Examples:
        >>> from attnbook.widgets import training_heads
        >>> training_heads.step_rules(steps=5)["loss"].shape
        (4, 6, 6)
    """
    drawn, times = problems.tokenized_mixture(n=n, rng=rng), moments(steps, 48)
    names = ("loss", "length", "length_W", "margin")
    arrays: dict[str, list[Array]] = {name: [] for name in names}
    for heads in HEADS:
        model = models.MultiHead(heads=heads)

        def margin(params: Params, _: Any, model: Any = model) -> float:
            size = float(np.linalg.norm(params["U"]))
            return float((drawn.y * model.forward(params, drawn)).min() / size) if size else 0.0

        measures = {
            "length": lambda params, _: _length(params),
            "length_W": lambda params, _: np.linalg.norm(params["W"]),
            "margin": margin,
        }
        runs = [
            optim.train(model, drawn, rule, steps, record=["loss", measures], every=times)
            for rule in rules(heads).values()
        ]
        for name in names:
            arrays[name].append(np.stack([run.history[name] for run in runs]))
    return {"step": np.array(times), **{name: np.stack(part) for name, part in arrays.items()}}
