"""The first explorables of chapter 2, and their kernel against attnlab on shared random cases."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attnbook import theory, widgets
from attnlab import models, ntk, optim, problems

CASES = 200
KINDS = [
    (init, scaling, pooling)
    for init in ("lecun", "he", "ntk")
    for scaling in ("sqrt", "linear")
    for pooling in ("mean", "sum")
]
Case = tuple[models.Encoder, Any, Any]


def case(seed: int) -> Case:
    """A small random network on random data."""
    draw = np.random.default_rng(seed)
    n, T, d = (int(draw.integers(low, high)) for low, high in ((2, 6), (1, 5), (2, 6)))
    init, scaling, pooling = KINDS[seed % len(KINDS)]
    drawn = problems.gaussian_regression(n=n, T=T, d=d, unit_tokens=seed % 2 == 0, rng=draw)
    model = models.Encoder(int(draw.integers(n, 12)), init, scaling, pooling, "half_sum")
    return model, model.init(drawn, draw), drawn


def net(model: models.Encoder, problem: Any) -> dict[str, Any]:
    """The sizes as the kernel wants them."""
    pool = model.tau1 / (problem.T if model.pooling == "mean" else 1)
    sizes = {"N": problem.n, "T": problem.T, "d": problem.d, "m": model.width}
    return {**sizes, "tau0": model.tau0, "pool": pool}


def flat(params: Any) -> list[float]:
    """Parameters in the kernel's order."""
    names = ("W_Q", "W_K", "W_V", "w_O")
    return [float(x) for name in names for x in np.ravel(params[name])]


def cases() -> list[tuple[Case, list[Any]]]:
    """Each with what the kernel's functions start with."""
    found = []
    for seed in range(CASES):
        model, params, problem = made = case(seed)
        found.append((made, [net(model, problem), problem.X.ravel().tolist(), flat(params)]))
    return found


def near(found: Any, expected: Any, within: float = 1e-9) -> None:
    """Relative to the largest entry."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    size = max(float(np.abs(expected).max()), 1e-300)
    assert np.abs(found - expected).max() <= within * size


def test_outputs_and_pre_activations(kernel) -> None:
    made = cases()
    js = kernel("encoder_small", "forward", [given for _, given in made])
    for ((model, params, problem), _), found in zip(made, js, strict=True):
        near(found["f"], model.forward(params, problem))
        near(np.reshape(found["A"], (problem.n, -1)), model.features(params, problem))
        attended = model.attention(params, problem) @ problem.X
        near(found["Z"], (attended @ params["W_V"].T).ravel())


def test_kernel_of_tangents(kernel) -> None:
    """Loss and largest eigenvalue before and after five steps of descent."""
    made = cases()
    given, expected = [], []
    for (model, params, problem), start in made:
        steps = 5
        top = float(np.linalg.eigvalsh(ntk.empirical(model, params, problem))[-1])
        gamma = 0.05 / top
        given.append([*start[:2], problem.y.tolist(), start[2], gamma, steps, 0.5])
        run = optim.train(model, problem, optim.GD(gamma), steps, params=params)
        last = ntk.empirical(model, run.params, problem)
        expected.append((run.history["loss"], [top, float(np.linalg.eigvalsh(last)[-1])]))
    for found, (loss, tops) in zip(kernel("encoder_small", "train", given), expected, strict=True):
        near(found["loss"], loss)
        near([found["top"][0], found["top"][-1]], tops)


def test_constants_of_proposition_1(kernel) -> None:
    made = cases()
    e = theory.encoder
    loss = np.random.default_rng(1).uniform(1e-6, 2.0, CASES)
    radius = np.random.default_rng(2).uniform(0.2, 2.0, CASES)
    given = [[*start, loss[k], radius[k]] for k, (_, start) in enumerate(made)]
    js = kernel("encoder_small", "constantsOf", given)
    for k, ((model, params, problem), _) in enumerate(made):
        b, alpha = e.bars(model, problem, params, radius=radius[k]), e.alpha(model, params, problem)
        size = np.linalg.norm(model.features(params, problem), 2)
        assert abs(js[k]["alpha"] ** 2 - alpha**2) <= 1e-12 * size**2  # from the Gram matrix
        plain = {"rho": e.rho(b), "z": e.z(b), "c1": e.c1(b), "c2": e.c2(b), "c3": e.c3(b)}
        expected = {**plain, "C": e.smoothness(b, loss[k])}
        for name, value in expected.items():
            near(js[k][name], value)
        alpha = js[k]["alpha"]
        near(js[k]["two"], e.condition_2(b, alpha, loss[k], radius[k]))
        near(js[k]["three"], e.condition_3(b, alpha, loss[k]))


def test_one_step_at_a_kink(kernel) -> None:
    """Pre-activations on both sides of the kink, against a step of attnlab."""
    draw = np.random.default_rng(3)
    given = []
    for _ in range(CASES):
        w, p = draw.uniform(5.0, 20.0), draw.normal() * 10.0 ** draw.uniform(-4, 0)
        cos, q = draw.uniform(0.2, 0.8), draw.uniform(0.1, 0.6)
        errors = draw.standard_normal(2).tolist()
        spec = {"cos": cos, "p": p, "q": q, "w": w, "e": errors}
        given.append([spec, 10.0 ** draw.uniform(-4, -1)])
    js = kernel("encoder_small", "kinkStep", given)
    for (spec, gamma), found in zip(given, js, strict=True):
        model, params, problem = widgets.KinkMicroscope.instance(**spec)
        run = optim.train(model, problem, optim.GD(gamma), 1, params=params)
        before, after = run.history["loss"]
        near(found["growth"], after / before - 1.0, 1e-9 * max(1.0, before / after))
        moved = model.forward(run.params, problem) - model.forward(params, problem)
        near(found["change"], moved)
        near(found["after"], problem.X[:, 0] @ run.params["W_V"][0])
        _, grads = model.value_and_grad(params, problem)
        near(found["slope"], sum((g**2).sum() for g in grads.values()) / before)


@pytest.mark.parametrize(
    ("init", "a", "r", "width"),
    [
        ("ntk", 0.5, 0.0, 1000),
        ("ntk", 1.0, 0.0, 1000),
        ("lecun", 0.5, 1.0, 100),
        ("he", 0.7, 0.4, 10),
    ],
)
def test_softmax_sits_where_attnlab_says(explorable, init, a, r, width) -> None:
    state = {"init": init, "a": a, "r": r, "width": width}
    _, root = explorable("softmax_sits", state)
    board = widgets.SoftmaxSits()
    board.state = state
    model, params, problem = board.network()
    rows = model.attention(params, problem)
    shown = json.loads(root.get_attribute("data-row"))
    assert shown == pytest.approx(rows[0, 0].tolist(), abs=2e-4)
    sd = float(theory.encoder.logit_variance(model, problem.d, 10.0**r, 10.0**r)) ** 0.5
    assert float(root.get_attribute("data-deviation")) == pytest.approx(sd, rel=1e-6)
    entropy = -(rows * np.log(rows)).sum(axis=-1)
    expected = float(np.exp(entropy).mean())
    assert float(root.get_attribute("data-tokens")) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("init", "width", "ratio"), [("lecun", 64, 0.9), ("he", 200, 1.2)])
def test_step_dial_trains_as_attnlab_does(explorable, init, width, ratio) -> None:
    state = {"init": init, "width": width, "ratio": ratio}
    _, root = explorable("step_dial", state)
    board = widgets.StepDial()
    board.state = state
    model, params, problem = board.network()
    top = float(np.linalg.eigvalsh(ntk.empirical(model, params, problem))[-1])
    limit = float(theory.encoder.stability_limit(top, problem.n))
    assert float(root.get_attribute("data-limit")) == pytest.approx(limit, rel=1e-9)
    run = optim.train(model, problem, optim.GD(ratio * limit), steps=80, params=params)
    loss = json.loads(root.get_attribute("data-loss"))
    assert loss[:10] == pytest.approx(run.history["loss"][:10].tolist(), rel=1e-6)
    assert root.get_attribute("data-fate") == ("settles" if ratio < 1 else "catapult")


def test_step_dial_diverges(explorable) -> None:
    _, root = explorable("step_dial", {"ratio": 5})
    assert root.get_attribute("data-fate") == "diverges"
    assert "diverges" in root.locator(".al-readout").inner_text()


@pytest.mark.parametrize(("pooling", "width"), [("sum", 100), ("mean", 500)])
def test_gauge_one_is_proposition_1(explorable, pooling, width) -> None:
    state = {"pooling": pooling, "width": width, "offset": -4, "multiple": 2}
    _, root = explorable("gauge_one", state)
    board = widgets.GaugeOne()
    board.state = state
    model, params, problem = board.network()
    e = theory.encoder
    loss = float(model.value_and_grad(params, problem)[0])
    b, alpha = e.bars(model, problem, params, radius=1.0), float(e.alpha(model, params, problem))
    C = float(e.smoothness(b, loss))
    shown = {k: float(root.get_attribute(f"data-{k}")) for k in ("two", "three", "step", "taken")}
    assert shown["two"] == pytest.approx(float(e.condition_2(b, alpha, loss)), rel=1e-6)
    assert shown["three"] == pytest.approx(float(e.condition_3(b, alpha, loss)), rel=1e-6)
    assert shown["step"] == pytest.approx(100.0 / C, rel=1e-6)
    run = optim.train(model, problem, optim.GD(100.0 / C), steps=1, params=params)
    taken = 1.0 - run.history["loss"][1] / run.history["loss"][0]
    assert shown["taken"] == pytest.approx(taken, rel=1e-5)
    assert taken > 1.0 - e.rate(alpha, 100.0 / C)


def test_kink_microscope_shows_the_counterexample(explorable) -> None:
    """At -1e-17 the first step raises the loss; at -1e-2 it falls as promised."""
    _, root = explorable("kink_microscope")
    model, params, problem = widgets.KinkMicroscope.instance()
    e = theory.encoder
    loss = float(model.value_and_grad(params, problem)[0])
    b = e.bars(model, problem, params, radius=1.0)
    C = float(e.smoothness(b, loss))
    run = optim.train(model, problem, optim.GD(1.0 / C), steps=1, params=params)
    growth = run.history["loss"][1] / run.history["loss"][0] - 1.0
    assert growth > 1e-4
    assert float(root.get_attribute("data-growth")) == pytest.approx(growth, rel=1e-5)
    assert root.get_attribute("data-crossed") == "true"
    _, far = explorable("kink_microscope", {"power": -4})
    promised = float(far.get_attribute("data-promised"))
    assert float(far.get_attribute("data-growth")) <= -promised < 0
    assert far.get_attribute("data-crossed") == "false"
