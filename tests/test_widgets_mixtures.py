"""Explorables of the mixture and of many heads, from Python: data against the rooms below."""

import base64

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets import planted, stored
from attnlab import models, optim, problems


def array(widget: widgets.Explorable, name: str) -> np.ndarray:
    """What travels, as the module unpacks it."""
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


@pytest.mark.parametrize("H", [1, 4, 16])
@pytest.mark.parametrize("rule", ["gd", "momentum", "adam"])
def test_one_head_with_two_rates_is_many_heads(H: int, rule: str) -> None:
    """The reduction itself, for all three rules."""
    problem = widgets.OneHeadTwin().problem
    rules: dict[str, optim.Rule] = {
        "gd": optim.GD(0.5),
        "momentum": optim.Momentum(0.2),
        "adam": optim.Adam(0.05),
    }
    run = optim.train(models.MultiHead(heads=H), problem, rules[rule], 60)
    kind = "adam" if rule == "adam" else "gd"
    size = {"gd": 0.5, "momentum": 0.2, "adam": 0.05}[rule]
    rates = dict(zip("UW", theory.multihead.one_head_steps(size, H, rule=kind), strict=True))
    one = models.MultiHead(heads=1)
    params = one.init(problem)
    shrink = {"U": H**0.5, "W": H}  # gradients of the twin are larger, so is Adam's eps
    first = {k: np.zeros_like(p) for k, p in params.items()}
    second = {k: np.zeros_like(p) for k, p in params.items()}
    for k in range(60):
        _, g = one.value_and_grad(params, problem)
        if rule == "gd":
            move = g
        elif rule == "momentum":
            first = {name: 0.9 * first[name] + g[name] for name in g}
            move = first
        else:
            first = {name: 0.9 * first[name] + 0.1 * g[name] for name in g}
            second = {name: 0.999 * second[name] + 0.001 * g[name] ** 2 for name in g}
            root = {n: np.sqrt(second[n] / (1 - 0.999 ** (k + 1))) + 1e-8 * shrink[n] for n in g}
            move = {n: first[n] / (1 - 0.9 ** (k + 1)) / root[n] for n in g}
        params = {name: params[name] - rates[name] * move[name] for name in params}
    assert np.allclose(run.params["W"], params["W"], rtol=0, atol=1e-11)
    assert np.allclose(H**0.5 * run.params["U"], params["U"], rtol=0, atol=1e-11)


def test_the_race_is_training() -> None:
    race = widgets.HeadRace(rng=0, steps=40)
    heads, loss = array(race, "heads").tolist(), array(race, "train")
    assert heads == [1, 2, 4, 8, 16, 32, 64, 0]
    run = optim.train(models.MultiHead(heads=16), race.problem, optim.GD(1.0), 40)
    assert loss[0, heads.index(16), -1] == pytest.approx(float(run.history["loss"][-1]), rel=1e-6)
    W = array(race, "W")[0, heads.index(16), -1]
    assert np.allclose(W, run.params["W"][5], atol=1e-6)
    assert race.limit == pytest.approx(float(loss[0, -1, -1]), rel=1e-6)
    assert (array(race, "W")[0, -1] == 0.0).all()
    assert array(race, "ceiling")[0] == pytest.approx(theory.multihead.gamma_attn())


def test_a_race_that_is_light() -> None:
    size = sum(len(base64.b64encode(entry["bytes"])) for entry in widgets.HeadRace().data.values())
    assert size < 100_000


def test_more_heads_are_slower_with_one_step_and_faster_with_its_root_up_to_16() -> None:
    race = widgets.HeadRace()
    loss, margin = array(race, "train")[:, :, -1], array(race, "margin")[:, :, -1]
    assert (np.diff(loss[0]) > 0).all()
    assert (np.diff(loss[1, :5]) < 0).all()
    for rule in (0, 1):
        assert (np.diff(margin[rule, :7]) < 0).all()


def test_the_stored_teachers_are_not_stale() -> None:
    """One setting computed anew."""
    found = stored.load("planted")
    assert found["align"].shape == (5, 4, planted.DATA["trials"], len(found["step"]))
    again = planted.sweep(heads=(4,), which=(2,))
    place = planted.HEADS.index(4)
    assert abs(found["align"][2, place].astype(int) - again["align"][0, 0]).max() <= 1
    assert np.allclose(found["loss"][2, place], again["loss"][0, 0], rtol=1e-4)
    ends = found["align"][..., -1] >= 90
    assert ends[0, 0].all(), "gradient descent with one head finds all twelve"
    assert ends[0].sum(axis=-1).tolist() == sorted(ends[0].sum(axis=-1).tolist(), reverse=True)
    problem = problems.planted(**planted.DATA)
    assert problem.trials == (12,)
