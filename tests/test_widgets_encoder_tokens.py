"""What the explorables of the encoder's races and shapes carry, against the library."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.special import iti0k0

from attnbook import theory, widgets
from attnbook.widgets.encoder_tokens import CEILING, InitRace, ScaleRace, TokenOrFeature
from attnlab import models, ntk, problems
from attnlab.checks import Array


def array(widget: Any, name: str) -> Array:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


@pytest.fixture(scope="module")
def inits() -> Any:
    return widgets.InitRace()


@pytest.fixture(scope="module")
def scales() -> Any:
    return widgets.ScaleRace()


@pytest.fixture(scope="module")
def shapes() -> Any:
    return widgets.TokenOrFeature()


@pytest.fixture(scope="module")
def numbers() -> Any:
    return widgets.ThreeNumbers()


def test_equal_steps_put_ntk_behind_and_equal_shares_do_not(inits: Any) -> None:
    """Appendix C.5: the order at step 1 is an effect of the step."""
    loss, values, alpha = (array(inits, name) for name in ("loss", "values", "alpha"))
    wide = len(InitRace.widths) - 1
    equal, relative = loss[0, 2, :, wide, -1], loss[1, 2, :, wide, -1]
    assert equal[2] > 1e6 * max(equal[0], equal[1])
    assert relative[2] < min(relative[0], relative[1])
    limits = 20 / values[:, :, 0]
    assert limits[2, wide] > 5 * limits[0, wide]
    ratio = [theory.encoder.alpha_ratio(width, 20) for width in InitRace.widths]
    assert np.allclose((alpha[0] / alpha[2])[1:], ratio[1:], rtol=0.25)  # another attention
    assert loss[1, 2, 0, 0, -1] >= CEILING  # a limit at the start is none later: width 20


def test_the_order_of_the_scalings_turns_round(scales: Any) -> None:
    """Appendix C.6: raw tokens, in every draw and at both widths."""
    loss, alpha, weight = (array(scales, name) for name in ("loss", "alpha", "weight"))
    draws = loss.shape[2]
    wide = len(ScaleRace.widths) - 1
    for seed in range(draws):
        sqrt, linear = loss[0, 0, seed, :, wide, -1]
        assert sqrt < linear
        sqrt, linear = loss[1, 0, seed, :, wide, -1]
        assert linear < sqrt
    assert (weight[0, :, 0] > weight[0, :, 1]).all()
    assert (alpha[0, :, 0, wide] < alpha[0, :, 1, wide]).all()
    assert np.allclose(weight[1], 1 / 5, rtol=0.01)  # unit tokens: attention is a mean


def test_the_kernel_by_shape(shapes: Any) -> None:
    values, squares, loss = (array(shapes, name) for name in ("values", "squares", "loss"))
    last = len(TokenOrFeature.tokens) - 1
    assert ((values[last] > 1e-10 * values[last, ..., :1]).sum(axis=-1) == 3).all()
    assert ((squares[last] > 1e-20 * squares[last, ..., :1]).sum(axis=-1) == 2).all()
    assert (np.diff(values[:, 1, :, -1], axis=0) < 0).all()
    floor = float(array(shapes, "floor")[0])
    assert (loss[last] > floor).all()
    assert (loss[0, 1, :, -1] < 1e-4).all()
    drawn = problems.gaussian_regression(n=24, T=1, d=24, unit_tokens=True, rng=0)
    problem = problems.SequenceProblem(drawn.X.reshape(24, 6, 4), drawn.y)
    model = models.Encoder(120)
    K = ntk.empirical(model, model.init(problem, rng=0), problem)
    assert np.allclose(values[4, 1, 0], np.linalg.eigvalsh(K)[::-1], rtol=1e-5, atol=1e-9)


def test_a_trained_network_is_its_three_numbers(numbers: Any) -> None:
    path, loss = array(numbers, "path"), array(numbers, "loss")
    for k, n in enumerate(numbers.samples):
        widget = widgets.ThreeNumbers() if k == 0 else numbers
        widget.state = {**json.loads(json.dumps(widget.state)), "N": n}
        problem = widget.problem
        assert problem.n == n
        for w in range(len(numbers.widths)):
            kappa, p, q = path[k, w, -1].astype(float)
            features = theory.encoder.effective_features(kappa, problem) / problem.T
            again = np.mean((features @ [p, q] - problem.y) ** 2)
            assert np.isclose(again, loss[k, w, -1], rtol=1e-4, atol=1e-10)
            floor = float(theory.encoder.effective_floor(kappa, problem))
            assert loss[k, w, -1] >= floor - 1e-6
    assert loss[0, :, -1].max() < 1e-10 < 0.5 < loss[-1, :, -1].min()


def test_similarities_of_four_kinds_of_data() -> None:
    """Assumption 3: the paper's data exceed 1/e at t = 1; one number and one-hot tokens do not."""
    meter = widgets.TailMeter()
    raw, unit, number, hot = (array(meter, kind) for kind in widgets.TailMeter.kinds)
    assert np.isclose(np.median(raw), 1e4, rtol=0.1)
    assert np.isclose(np.median(unit), 1.0, rtol=0.1)
    assert all((kind >= 1.0).mean() > np.exp(-1.0) for kind in (raw, unit))
    assert all((kind >= 1.0).mean() < np.exp(-1.0) for kind in (number, hot))
    share = 1.0 - np.arange(len(number)) / len(number)
    assert (share - theory.encoder.dissimilarity(number, 0.5)).max() < 0.01
    assert (share - theory.encoder.dissimilarity(number, 1.0)).max() > 0.03


def test_the_laws_behind_the_verdicts_of_the_tail_meter() -> None:
    """No sample can show that a tail is below exp(-t^c) for every t: the laws can."""
    u = np.geomspace(1e-12, 30.0, 4000)  # |x x'| of two numbers; the similarity is its square
    below = 2.0 / np.pi * iti0k0(u)[1]
    above = 2.0 * np.exp(theory.encoder.product_log_tail(1, np.geomspace(0.5, 60.0, 400)))
    far = np.geomspace(0.5, 60.0, 400)
    assert (below >= -np.expm1(-u)).all()  # c = 1/2: the chance of less, at least 1 - exp(-u)
    assert (above <= np.exp(-far)).all()
    tiny = np.array([1e-20])
    assert (2.0 / np.pi * iti0k0(tiny)[1] < -np.expm1(-(tiny**0.9))).all()  # c = 0.45
    assert (above > np.exp(-(far**1.1))).any()  # c = 0.55
    # t^(T^2/2) as t -> 0: here T = 2, in the paper's data T = 10
    rng, levels = np.random.default_rng(0), np.array([0.1, 1.0]) / 30
    X = problems.gaussian_regression(n=2, T=2, d=30, unit_tokens=True, trials=40_000, rng=rng).X
    alike = theory.encoder.similarity(X)[:, 0, 1]
    power = np.diff(np.log([(alike < t).mean() for t in levels]))[0] / np.log(10.0)
    assert abs(power - 2.0) < 0.25
