"""Explorables of the bias chapter's first sections, from Python."""

from __future__ import annotations

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets.bias_setting import asked, in_span, turned
from attnlab import models, optim, problems, svm

MODEL = models.Attention(loss="exponential", start="zero")


def array(widget: widgets.Explorable, name: str) -> np.ndarray:
    packed = widget.data[name]
    return np.frombuffer(packed["bytes"], dtype=packed["dtype"]).reshape(packed["shape"])


def test_coordinates_in_the_span_change_no_angle() -> None:
    """Normalized descent on tokens of 300 features, and on their coordinates in units of B."""
    drawn = problems.orthogonal(n=4, T=3, d=300, rho=0.4, rng=0)
    small = in_span([drawn])
    assert small.X.shape == (1, 4, 3, 12)
    assert np.allclose(small.scores[0], drawn.scores)
    B = np.linalg.norm(drawn.X, axis=-1).max()
    cosines, maps = [], []
    for problem, step in ((drawn, 0.5 / B**2), (small, 0.5)):
        run = optim.train(MODEL, problem, optim.NormalizedGD(float(step)), 50)
        goal = svm.attention_svm(problem)
        cosines.append(float(np.squeeze(svm.correlation(run.params["W"], goal.W))))
        maps.append(MODEL.attention(run.params, problem).reshape(4, 3))
    assert cosines[0] == pytest.approx(cosines[1], abs=1e-9)
    assert np.allclose(maps[0], maps[1], atol=1e-9)


@pytest.mark.parametrize("angle", [15, 90, 135, 180])
def test_turned_means_keep_the_scores(angle: float) -> None:
    drawn = problems.orthogonal(n=8, T=3, d=30, rho=0.1, rng=0)
    problem = turned(drawn, angle)
    best, others, spread = theory.bias.split_scores(problem)
    assert np.allclose(best, 1.0)
    assert np.allclose(others, 0.0)
    assert np.allclose(spread, 0.0)
    if angle == 90:
        assert np.allclose(problem.X, drawn.X)
    queries = asked(problem, problem.optimal).z
    assert np.allclose(np.linalg.norm(queries, axis=-1), 1.0)


def test_assumption_one_holds_what_theory_says() -> None:
    widget = widgets.AssumptionOne(draws=1, steps=2)
    factor = array(widget, "factor")
    assert factor.shape == (len(widget.widths), len(widget.sizes), 1)
    drawn = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
    found = factor[widget.widths.index(100), widget.sizes.index(0.05), 0]
    assert found == pytest.approx(float(theory.bias.orthogonality(drawn)), rel=1e-6)
    assert array(widget, "needed")[0] == pytest.approx(1304.775, abs=1e-2)


def test_antipodal_holds_the_margins() -> None:
    widget = widgets.Antipodal(steps=2)
    margin = array(widget, "margin")
    drawn = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
    at = widget.angles.index(90)
    assert margin[0, at] == pytest.approx(float(svm.attention_svm(drawn).norm), rel=1e-5)
    share = margin[1] / margin[1, at]
    law = np.sqrt(1.0 / (1.0 + np.cos(np.deg2rad(widget.angles)) ** 2))
    assert np.abs(share - law).max() < 0.02


def test_boards_hold_their_problems() -> None:
    twin = widgets.LogisticTwin()
    assert np.array_equal(twin.problem.optimal, [0, 0, 0])
    assert svm.attention_svm(twin.problem).status == "optimal"
    meter = widgets.LemmaFour()
    assert np.allclose(theory.bias.split_scores(meter.problem)[2], 0.0)
    assert meter.W.shape == (2, 2)
