"""What the first explorables of chapter 2 carry, against the library."""

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets.encoder_steps import flat, rounded
from attnlab import models, optim


def unpacked(widget: widgets.Explorable, name: str) -> np.ndarray:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


@pytest.mark.parametrize("name", ["SoftmaxSits", "StepDial", "GaugeOne", "KinkMicroscope"])
def test_light_enough(name: str) -> None:
    assert sum(len(entry["bytes"]) for entry in getattr(widgets, name)().data.values()) < 1e5


@pytest.mark.parametrize(("init", "eta"), [("lecun", 0.01), ("he", 0.02), ("ntk", 1.0)])
def test_logits_scale_with_initialisation(init: str, eta: float) -> None:
    """One set of logits, times what init, scaling and token length say, is every network's."""
    board = widgets.SoftmaxSits()
    board.state = {"init": init, "a": 0.8, "r": 0.7, "width": 300}
    model, params, problem = board.network()
    scale = 300 ** (0.5 - 0.8) * eta * 10 ** (2 * 0.7)
    logits = scale * unpacked(board, "logits")[list(board.widths).index(300)].astype(float)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    expected = weights / weights.sum(axis=-1, keepdims=True)
    assert np.allclose(model.attention(params, problem), expected, atol=1e-5)
    size = 10**0.7
    assert theory.encoder.logit_variance(model, 100, size, size) == pytest.approx(scale**2)


@pytest.mark.parametrize("init", ["lecun", "he", "ntk"])
def test_starts_are_those_of_the_page(init: str) -> None:
    board = widgets.StepDial()
    board.state = {"init": init, "width": 16}
    model, params, problem = board.network()
    assert model == models.Encoder(16, init)
    own = model.init(problem, rng=0)
    for name, array in params.items():
        assert np.allclose(array, own[name], rtol=1e-6)
    if init != "he":
        assert np.array_equal(flat(rounded(own)), unpacked(board, f"{init}16"))


def test_the_kink_breaks_proposition_1_as_printed() -> None:
    """Both conditions hold; at -1e-17 the loss rises, at -1e-4 it falls as promised."""
    e = theory.encoder
    growth = []
    for p in (-1e-17, -1e-4):
        model, params, problem = widgets.KinkMicroscope.instance(p)
        loss = float(model.value_and_grad(params, problem)[0])
        b, alpha = e.bars(model, problem, params, radius=1.0), e.alpha(model, params, problem)
        assert e.condition_2(b, alpha, loss) > 1.0
        assert e.condition_3(b, alpha, loss) > 1.0
        step = 1.0 / float(e.smoothness(b, loss))
        run = optim.train(model, problem, optim.GD(step), 1, params=params)
        growth.append(run.history["loss"][1] / run.history["loss"][0])
    assert growth[0] > 1.0 + 1e-3
    assert growth[1] < e.rate(alpha, step)
