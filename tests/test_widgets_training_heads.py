"""Data behind the explorables on training many heads."""

from __future__ import annotations

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets import training_heads
from attnlab import models, optim, problems
from attnlab.problems import SequenceProblem


@pytest.mark.parametrize("name", ["HeadBudget", "LeaveOneOut", "TwoGroups", "StepRules"])
def test_small_enough_to_travel(name: str) -> None:
    widget = getattr(widgets, name)()
    assert sum(len(entry["bytes"]) for entry in widget.data.values()) < 100_000


def test_leaving_one_out_is_training_on_the_rest() -> None:
    """Sample 2 of the first training set, by hand: its loss is taken out, 1/n stays."""
    found = training_heads.leave_one_out(4, steps=30)
    sets = training_heads.SETS[4]
    drawn = problems.tokenized_mixture(n=4, trials=sets, rng=0, **training_heads.SETTING)
    model, ends = models.MultiHead(heads=4), []
    for keep, eta in (([0, 1, 2, 3], 0.5), ([0, 2, 3], 0.5 * 3 / 4)):
        one = SequenceProblem(drawn.X[0, keep], drawn.y[0, keep])
        ends.append(optim.train(model, one, optim.GD(eta), 30).params)
    away = np.sqrt(sum(((ends[0][k] - ends[1][k]) ** 2).sum() for k in ("U", "W")))
    assert found["each"][1, -1] == pytest.approx(float(away), rel=1e-9)


def test_stability_falls_like_one_over_n() -> None:
    few, many = (training_heads.leave_one_out(n, steps=10) for n in (4, 16))
    assert few["mean"][-1] / many["mean"][-1] == pytest.approx(4.0, rel=0.2)
    for found in (few, many):
        assert (found["gap"] <= found["bound"] + 1e-12).all()
        assert (found["gap"] <= found["lemma"] + 1e-12).all()
        assert (found["mean"] <= found["stability_bound"]).all()


def test_margins_stay_below_full_attention() -> None:
    found = training_heads.step_rules(steps=60)
    # noise could lift the margin a little above that of clean patterns
    assert found["margin"].max() < 1.02 * float(theory.multihead.gamma_attn(T=10, S=2.0))
    assert (found["length_W"] <= found["length"] + 1e-12).all()
    zero = found["loss"][:, :, 0]
    assert np.allclose(zero, np.log(2.0))
