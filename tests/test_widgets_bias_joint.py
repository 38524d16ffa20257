"""What the explorables of joint training and saturation carry, against attnlab itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets import bias_joint
from attnbook.widgets._base import Explorable
from attnlab import models, optim, svm


def carried(widget: Explorable, name: str) -> Any:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


def test_joint_training_stays_in_the_span() -> None:
    """Head and W are combinations of tokens and features, so Gram matrices are all it needs."""
    problem = bias_joint.figure_3()
    model = models.Attention(loss="exponential", start="zero", train_head=True)
    run = optim.train(model, problem, optim.DecayedNormalizedGD(0.1), 50)
    marked = np.asarray(problem.relevant)
    order = np.argsort(~marked, axis=-1, kind="stable")
    X = np.take_along_axis(problem.X, order[..., None], axis=-2)
    tokens = X.reshape(-1, problem.d)
    features = (X[:, 0] - X[:, 1])[:, :, None] * problem.z[:, None, :]
    for part, vectors in (("v", tokens), ("W", features.reshape(problem.n, -1))):
        found = run.params[part].ravel()
        weights, *_ = np.linalg.lstsq(vectors.T, found, rcond=None)
        assert np.linalg.norm(vectors.T @ weights - found) < 1e-12


def test_the_gram_matrices() -> None:
    span = bias_joint.span_of(bias_joint.figure_3())
    for name in ("K", "G"):
        low = np.linalg.eigvalsh(span[name])[0]
        assert low > 0, "tokens and features are independent"
    widths = {
        "goal": svm.attention_svm(
            bias_joint.figure_3(), np.asarray(bias_joint.figure_3().relevant).argmax(axis=-1)
        ).norm
    }
    assert span["goal"].min() == pytest.approx(1.0 / widths["goal"]), "the margin of W_mm"
    widget = widgets.JointTraining()
    assert carried(widget, "K").shape == (20, 20)
    assert carried(widget, "rate")[0] == pytest.approx(theory.bias.omega_1(3.0, 0.1, n=10, d=100))


def test_runs_at_saturation() -> None:
    """The exact run goes on; two tokens stop the textbook one, three lead it astray."""
    widget = widgets.NaiveExact(steps=1500)
    step, runs = carried(widget, "step"), carried(widget, "runs")
    assert step[-1] == 1500
    exact, textbook, epsilon = runs[:3, :, -1]
    assert exact[1] == pytest.approx(150.0, abs=0.2)
    assert textbook[1] == pytest.approx(36.8, abs=0.1)
    assert epsilon[1] == pytest.approx(36.7, abs=0.2)  # its last steps are rounding
    exact, textbook, epsilon = runs[3:, :, -1]
    assert textbook[0] > 1e3 * exact[0]
    assert exact[0] < 1e-4 < epsilon[0] < textbook[0]
