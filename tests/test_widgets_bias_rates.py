"""What the explorables of the bias paper's rates carry, against attnlab itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets import bias_rates
from attnbook.widgets._base import Explorable
from attnlab import optim, svm


def carried(widget: Explorable, name: str) -> Any:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


def end_of(rule: optim.Rule, steps: int) -> tuple[Any, float]:
    problem = bias_rates.figure_2()
    run = optim.train(bias_rates.MODEL, problem, rule, steps)
    return run, 1.0 - float(svm.correlation(run.params["W"], svm.attention_svm(problem).W))


def test_the_race_is_the_training_loop() -> None:
    widget = widgets.OptimizerRace(steps=300)
    step, values = carried(widget, "step"), carried(widget, "values")
    assert step[-1] == 300
    for place, rule in enumerate(bias_rates.racers(10.0)):
        run, miss = end_of(rule, 300)
        assert values[place, 0, -1] == pytest.approx(miss, rel=1e-4)
        assert values[place, 2, -1] == pytest.approx(np.linalg.norm(run.params["W"]), rel=1e-5)


def test_the_paper_s_polyak_step_is_gradient_descent() -> None:
    """The cap of 10 binds from the first step: the two runs are one."""
    widget = widgets.PolyakCap(steps=300)
    asked = carried(widget, "values")[bias_rates.CAPS.index(10.0), 0]
    assert asked.min() > np.log10(200.0)
    capped, descent = end_of(optim.PolyakStep(max_step=10.0), 300), end_of(optim.GD(10.0), 300)
    assert np.allclose(capped[0].params["W"], descent[0].params["W"], rtol=0, atol=1e-12)


def test_without_a_cap_it_moves_by_half_the_margin_norm() -> None:
    widget = widgets.PolyakCap(steps=1000)
    length = 10.0 ** carried(widget, "values")[-1, 1, -1]
    assert length == pytest.approx(carried(widget, "width")[0] / 2.0, rel=1e-4)


@pytest.mark.parametrize("kind", [0, 1])
def test_heavy_ball_is_a_longer_step_with_a_lag(kind: int) -> None:
    widget = widgets.MomentumForms()
    step, values = carried(widget, "step"), carried(widget, "values")
    for place in range(len(bias_rates.BETAS)):
        heavy, averaged, longer = values[13 * kind + 1 + 3 * place :][:3]
        plain = values[13 * kind]
        late = step >= 500
        assert np.abs(heavy[0, late] / longer[0, late] - 1.0).max() < 0.25
        assert np.abs(averaged[0, late] / plain[0, late] - 1.0).max() < 0.25
        assert np.abs(heavy[1, late] / longer[1, late] - 1.0).max() < 0.1


def test_three_sets_are_those_of_the_proof() -> None:
    widget = widgets.ThreeSets()
    for name in ("paper", "pairs"):
        gap, weight = carried(widget, f"gap_{name}"), carried(widget, f"weight_{name}")
        toward, along, size = carried(widget, f"sides_{name}").T
        assert np.allclose(weight.sum(axis=1), 1.0, atol=1e-5)
        sets = theory.bias.gap_set(gap, 0.5)
        assert (sets == 1).any(axis=1).all(), "I1 is never empty"
        first = np.where(sets == 1, weight, 0.0).sum(axis=1)
        assert first[-1] > 0.999
        late = size > 50
        assert (toward >= 0.5 * along)[late].all()


def test_weights_and_gaps_give_equation_5() -> None:
    """Along W the weighted gaps are the gradient: equation 5, from what the strip carries."""
    problem = bias_rates.figure_2()
    goal = svm.attention_svm(problem)
    W = np.random.default_rng(0).normal(size=(100, 100))
    gap, weight = bias_rates.three_sets(W, problem, goal)
    attention = bias_rates.MODEL.attention({"W": W}, problem)
    logits = (problem.X @ (W @ problem.z[..., None]))[..., 0]
    chosen = np.arange(problem.T) == problem.optimal[:, None]
    best = logits[chosen]
    rest = np.where(chosen, 0.0, attention)
    h = best - (rest * logits).sum(axis=1) / rest.sum(axis=1)
    rival = np.where(chosen, -np.inf, logits).max(axis=1)
    assert np.allclose((gap + 1.0) * np.linalg.norm(W) / goal.norm, best - rival)
    _, grads = bias_rates.MODEL.value_and_grad({"W": W}, problem)
    total = (np.exp(-attention[chosen]) * attention[chosen] * rest.sum(axis=1)).mean()
    expected = -float((grads["W"] * W).sum())
    assert total * float((weight * h).sum()) == pytest.approx(expected, rel=1e-9)
