"""Explorables of the bias paper's rates: normalized descent, GD, the Polyak step, momentum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.widgets._base import Explorable
from attnlab import models, optim, problems, svm
from attnlab.checks import Array

MODEL = models.Attention(loss="exponential", start="zero")
CAPS = (1.0, 10.0, 100.0, 300.0, 1000.0, 1e4, 1e6)
BETAS = (0.5, 0.8, 0.9, 0.95)


def figure_2(antipodal: bool = False, rng: int = 0) -> problems.TokenProblem:
    """The data of Figure 2, or of Figure 5 where optimal tokens are opposite."""
    return problems.orthogonal(n=20, T=6, d=100, rho=0.05, antipodal=antipodal, rng=rng)


def misses(goal: svm.Margin) -> Callable[[Mapping[str, Any], Any], Array]:
    """What a run records: one minus the cosine of its W with the goal's; 1 at a zero start."""
    return lambda params, _: np.asarray(1.0 - svm.correlation(params["W"], goal.W))


class TwoByTwo(Explorable):
    r"""Two tokens in the plane: GD and normalized descent in closed form, from any start.

    Returns:
        A widget; all of it is closed forms and one scalar recursion.

    Reference: bias, Section 3.3, equation 3, and Appendix A.4.
    """

    name = "two_by_two"

    def __init__(self) -> None:
        super().__init__()


class OptimizerRace(Explorable):
    r"""GD, normalized descent, momentum, the Polyak step and Adam on the paper's data.

    Args:
        steps: how many.
        rng: seed of the data.

    Returns:
        A widget.

    Reference: bias, Figures 2 and 5, Theorem 1.
    """

    name = "optimizer_race"

    def __init__(self, steps: int = 3000, rng: int = 0) -> None:
        found: list[Array] = []
        facts: list[list[float]] = []
        times = np.zeros(0)
        for antipodal in (False, True):
            problem = figure_2(antipodal, rng)
            goal = svm.attention_svm(problem)
            for rule in racers(5.0 if antipodal else 10.0):
                run = optim.train(
                    MODEL,
                    problem,
                    rule,
                    steps,
                    record=["excess", "norm", "attention", {"miss": misses(goal)}],
                    every="log",
                )
                kept = run.history["step"] > 0
                times = run.history["step"][kept]
                names = ("miss", "excess", "norm_W", "attention")
                found.append(np.stack([run.history[key][kept] for key in names]))
            facts.append([float(goal.norm), float(np.linalg.norm(problem.X, axis=-1).max())])
        arrays = {
            "step": times.astype(int),
            "values": np.stack(found),  # (data and rules, measures, times)
            "facts": np.array(facts),  # (data, [Lambda, B])
        }
        super().__init__({"k": len(times) - 40 if len(times) > 40 else len(times) - 1}, arrays)


def racers(cap: float) -> list[optim.Rule]:
    """The five rules; the paper caps the Polyak step at 10, in Figure 5 at 5."""
    return [
        optim.GD(0.25),
        optim.NormalizedGD(0.025),
        optim.NormalizedGD(0.025, momentum=0.9),
        optim.PolyakStep(max_step=cap),
        optim.Adam(0.001),
    ]


class PolyakCap(Explorable):
    r"""The Polyak step on the paper's data, with its cap on a slider.

    Args:
        steps: how many.
        rng: seed of the data.

    Returns:
        A widget.

    Reference: bias, Section 3.3 (extension to Polyak step-size), Theorem 7, Figure 2.
    """

    name = "polyak_cap"

    def __init__(self, steps: int = 2000, rng: int = 0) -> None:
        problem = figure_2(rng=rng)
        goal = svm.attention_svm(problem)
        found: list[Array] = []
        times = np.zeros(0)
        for cap in (*CAPS, None):
            run = optim.train(
                MODEL,
                problem,
                optim.PolyakStep(max_step=cap),
                steps,
                record={"miss": misses(goal), "asked": asked_step},
                every="log",
            )
            times = run.history["step"]
            log_step, log_norm = run.history["asked"].T
            taken = np.minimum(log_step, np.inf if cap is None else np.log10(cap))
            found.append(np.stack([log_step, taken + log_norm, run.history["miss"]]))
        rules = optim.GD(0.25), optim.NormalizedGD(0.025)
        others = [
            optim.train(MODEL, problem, rule, steps, record={"miss": misses(goal)}, every="log")
            for rule in rules
        ]
        arrays = {
            "step": times.astype(int),
            "values": np.stack(found),  # (caps, [log10 asked step, log10 length, miss], times)
            "others": np.stack([run.history["miss"] for run in others]),
            "width": np.array([float(goal.norm)]),
        }
        super().__init__({}, arrays)


def asked_step(params: Mapping[str, Any], problem: problems.TokenProblem) -> Array:
    """log10 of Polyak's factor without a cap, and of the gradient's norm."""
    found = MODEL.evaluate(dict(params), problem)
    assert found.log_excess is not None
    assert found.log_scale is not None
    log_norm = np.log(np.linalg.norm(found.grads["W"], axis=(-2, -1))) + found.log_scale["W"]
    log_factor = found.log_excess - np.log(2.0) - 2.0 * log_norm
    return np.asarray(np.stack([log_factor, log_norm], axis=-1) / np.log(10.0))


class MomentumForms(Explorable):
    r"""Momentum with and without the factor one minus beta, beside one longer step.

    Args:
        steps: how many.
        rng: seed of the data.

    Returns:
        A widget.

    Reference: bias, Section 5 and Figure 2 (NGD with momentum).
    """

    name = "momentum_forms"

    def __init__(self, steps: int = 2000, rng: int = 0) -> None:
        problem = figure_2(rng=rng)
        goal = svm.attention_svm(problem)
        found: list[Array] = []
        times = np.zeros(0)
        for normalized in (True, False):
            for beta in (0.0, *BETAS):
                for rule in forms(normalized, beta):
                    run = optim.train(
                        MODEL,
                        problem,
                        rule,
                        steps,
                        record=["norm", {"miss": misses(goal)}],
                        every="log",
                    )
                    times = run.history["step"]
                    found.append(np.stack([run.history["miss"], run.history["norm_W"]]))
        arrays = {
            "step": times.astype(int),
            "betas": np.array(BETAS),
            "values": np.stack(found),  # (kind: plain, then three forms a beta; measures; times)
        }
        super().__init__({"k": len(times) - 30 if len(times) > 30 else len(times) - 1}, arrays)


def forms(normalized: bool, beta: float) -> list[optim.Rule]:
    """Heavy ball, averaged, and one plain step 1 / (1 - beta) times as long; plain for 0."""
    size, share = 0.025 if normalized else 0.25, 1.0 - beta
    if normalized:
        plain: optim.Rule = optim.NormalizedGD(size / share)
        heavy: optim.Rule = optim.NormalizedGD(size, momentum=beta)
        mean: optim.Rule = optim.NormalizedGD(size, momentum=beta, averaged=True)
    else:
        plain = optim.GD(size / share)
        heavy, mean = optim.Momentum(size, beta), optim.Momentum(size * share, beta)
    return [heavy, mean, plain] if beta else [plain]


class ThreeSets(Explorable):
    r"""Which samples are in which set of Lemma 7's proof, as training runs.

    Args:
        steps: how many.
        rng: seed of the paper's data.

    Returns:
        A widget.

    Reference: bias, Lemma 7 and Section 3.4.
    """

    name = "three_sets"

    def __init__(self, steps: int = 10_000, rng: int = 0) -> None:
        arrays: dict[str, Any] = {}
        drawn = {
            "paper": (figure_2(rng=rng), 0.025),
            "pairs": (problems.sphere(n=12, T=2, d=4, min_gap=0.2, rng=2), 0.1),
        }
        for name, (problem, step) in drawn.items():
            goal = svm.attention_svm(problem)

            def look(
                params: Mapping[str, Any], p: problems.TokenProblem, goal: svm.Margin = goal
            ) -> Array:
                return three_sets(params["W"], p, goal)

            def both(
                params: Mapping[str, Any], p: problems.TokenProblem, goal: svm.Margin = goal
            ) -> Array:
                return sides(params["W"], p, goal)

            run = optim.train(
                MODEL,
                problem,
                optim.NormalizedGD(step),
                steps,
                record={"look": look, "sides": both},
                every="log",
            )
            kept = run.history["step"] > 0
            arrays["step"] = run.history["step"][kept].astype(int)
            arrays[f"gap_{name}"] = run.history["look"][kept, 0]  # (times, n)
            arrays[f"weight_{name}"] = run.history["look"][kept, 1]
            arrays[f"sides_{name}"] = run.history["sides"][kept]  # (times, [along both, |W|])
            arrays[f"facts_{name}"] = np.array(facts_of(problem, goal, step))
        super().__init__({"k": len(arrays["step"]) // 2}, arrays)


def three_sets(W: Array, problem: problems.TokenProblem, goal: svm.Margin) -> Array:
    """The gap delta of each sample, and its share of the weights in equation 5."""
    size = max(float(np.linalg.norm(W)), 1e-300)
    logits = (problem.X @ (W @ problem.z[..., None]))[..., 0]
    chosen = np.arange(problem.T) == problem.optimal[..., None]
    best = np.where(chosen, logits, -np.inf).max(axis=-1)
    rival = np.where(chosen, -np.inf, logits).max(axis=-1)
    gap = (best - rival) * float(goal.norm) / size - 1.0
    shift = np.exp(logits - logits.max(axis=-1, keepdims=True))
    total = shift.sum(axis=-1)
    share = np.where(chosen, shift, 0.0).sum(axis=-1) / total
    rest = np.where(chosen, 0.0, shift).sum(axis=-1) / total  # 1 - share without cancellation
    high, low, _ = theory.bias.split_scores(problem)
    weight = np.exp(-(share * high + rest * low)) * (high - low) * share * rest
    return np.stack([gap, weight / weight.sum()])


def sides(W: Array, problem: problems.TokenProblem, goal: svm.Margin) -> Array:
    """The unit gradient step along ``W_mm`` and along ``W``, and |W|: Lemma 7's two sides."""
    _, grads, _ = MODEL.scaled_grad({"W": W}, problem)
    G = -grads["W"] / np.linalg.norm(grads["W"])
    size = float(np.linalg.norm(W))
    along = float((G * W).sum()) / max(size, 1e-300)
    return np.array([float((G * goal.W).sum() / goal.norm), along, size])


def facts_of(problem: problems.TokenProblem, goal: svm.Margin, step: float) -> list[float]:
    """B, Lambda, n, T, Upsilon and the step."""
    high, low, _ = theory.bias.split_scores(problem)
    B = float(np.linalg.norm(problem.X, axis=-1).max())
    spread = float(theory.bias.conditioning(high, low))
    return [B, float(goal.norm), float(problem.n), float(problem.T), spread, step]
