"""Margins of the mixture, equal heads, the race of heads and planted teachers, as shown."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets import planted, stored
from attnlab import models, optim, problems

CASES = 200


def near(found: object, expected: object, within: float = 1e-9) -> None:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert np.abs(found - expected).max() <= within * max(1.0, float(np.abs(expected).max()))


def test_margins_and_crossing(kernel) -> None:
    rng = np.random.default_rng(0)
    f = theory.multihead
    given = [
        {
            "T": int(rng.integers(2, 30)),
            "zeta": float(rng.uniform(0.02, 0.98)),
            "S": float(rng.uniform(0.5, 12.0)),
            "M": int(rng.integers(1, 9)),
            "Z": float(rng.uniform(0.0, 1.0)),
        }
        for _ in range(CASES)
    ]
    found = kernel("mixture_margins", "marginsAt", [[case] for case in given])
    for case, margins in zip(given, found, strict=True):
        T, zeta, S, M, Z = (case[name] for name in ("T", "zeta", "S", "M", "Z"))
        near(margins["lin"], f.gamma_lin(T, zeta, S, Z))
        near(margins["star"], f.gamma_star(T, zeta, S, M, Z_mu=Z, Z_nu=Z))
        near(margins["attn"], f.gamma_attn(T, S))
    quiet = [{**case, "Z": 0.0} for case in given]
    crossings = kernel("mixture_margins", "crossing", [[case] for case in quiet])
    near(crossings, [f.crossing(case["T"], case["zeta"], case["M"]) for case in quiet])


def told(problem: problems.SequenceProblem, k: int) -> dict[str, object]:
    """One trial as the kernel wants it."""
    T, d = problem.X.shape[-2:]
    return {"X": problem.X[k].ravel().tolist(), "y": problem.y[k].tolist(), "T": T, "d": d}


def test_gradients_of_heads(kernel) -> None:
    """Loss and both gradients, with heads that differ."""
    H = 3
    p = problems.planted(n=5, T=4, d=3, trials=CASES, rng=0)
    rng = np.random.default_rng(1)
    params = {"U": rng.normal(size=(CASES, H, 4, 3)), "W": rng.normal(size=(CASES, H, 3, 3))}
    loss, grads = models.MultiHead(heads=H).value_and_grad(params, p)
    flat = {name: array.reshape(CASES, -1) for name, array in params.items()}
    cases = [[told(p, k), flat["U"][k].tolist(), flat["W"][k].tolist(), H] for k in range(CASES)]
    found = kernel("many_heads", "headsGradientLists", cases)
    near([one["loss"] for one in found], loss)
    for name in ("U", "W"):
        near([one[f"g{name}"] for one in found], grads[name].reshape(CASES, -1))


@pytest.mark.parametrize(
    ("rule", "ours", "eta"),
    [
        ("gd", optim.GD(0.3), 0.3),
        ("momentum", optim.Momentum(0.1), 0.1),
        ("adam", optim.Adam(0.05), 0.05),
    ],
)
def test_training_of_heads(kernel, rule: str, ours: optim.Rule, eta: float) -> None:
    """Twenty steps from random starts."""
    H = 2
    p = problems.tokenized_mixture(n=4, T=5, zeta=0.2, trials=CASES, rng=0)
    model = models.MultiHead(heads=H, start="gaussian", scale=0.2)
    start = model.init(p, rng=1)
    run = optim.train(model, p, ours, 20, params=start)
    how = {"H": H, "rule": rule, "etaU": eta, "etaW": eta, "steps": 20}
    cases = [
        [
            told(p, k),
            {**how, "U0": start["U"][k].ravel().tolist(), "W0": start["W"][k].ravel().tolist()},
        ]
        for k in range(CASES)
    ]
    found = kernel("many_heads", "trainHeads", cases)
    near([one["W"] for one in found], run.params["W"].reshape(CASES, -1))
    near([one["U"] for one in found], run.params["U"].reshape(CASES, -1))
    near([one["losses"][-1] for one in found], run.history["loss"][-1])


@pytest.mark.parametrize("state", [{}, {"S": 6.1}, {"S": 4, "zeta": 0.3, "Z": 0.4}])
def test_margin_race(explorable, state: dict[str, float]) -> None:
    _, root = explorable("margin_race", state)
    S, zeta, Z = (state.get(name, start) for name, start in (("S", 2), ("zeta", 0.1), ("Z", 0)))
    f = theory.multihead
    star = f.gamma_star(10, zeta, S, 2, Z_mu=Z, Z_nu=Z)
    expected = [f.gamma_lin(10, zeta, S, Z), star, f.gamma_attn(10, S)]
    assert json.loads(root.get_attribute("data-margins")) == pytest.approx(expected, abs=1e-9)
    crossing = float(root.get_attribute("data-crossing"))
    assert (star > f.gamma_attn(10, S)) == (crossing < S)
    if not Z:
        assert crossing == pytest.approx(f.crossing(zeta=zeta), abs=1e-9)
        assert f"S = {crossing:.2f}" in root.locator(".al-readout").inner_text()
    needed = float(root.get_attribute("data-needed"))
    assert (zeta >= needed) == bool(star >= expected[0] - 1e-12), "erratum 21"


@pytest.mark.parametrize("rule", ["gd", "momentum", "adam"])
def test_one_head_twin(explorable, rule: str) -> None:
    eta = {"gd": 1, "momentum": 0.3, "adam": 0.1}[rule]
    _, root = explorable("one_head_twin", {"rule": rule, "eta": eta, "H": 16})
    assert float(root.get_attribute("data-away")) < 1e-12
    assert float(root.get_attribute("data-spread")) == 0.0
    ours = {"gd": optim.GD(1.0), "momentum": optim.Momentum(0.3), "adam": optim.Adam(0.1)}[rule]
    problem = widgets.OneHeadTwin().problem
    run = optim.train(models.MultiHead(heads=16), problem, ours, 120)
    assert float(root.get_attribute("data-many")) == pytest.approx(
        float(run.history["loss"][-1]), rel=1e-9
    )


def adams_twin(problem, eta: float, H: int, eps: tuple[float, float]) -> list[float]:
    """Losses of one head under Adam with the steps of ``one_head_steps`` and an eps for each."""
    model = models.MultiHead(heads=1)
    params = model.init(problem)
    steps = dict(zip("UW", theory.multihead.one_head_steps(eta, H, rule="adam"), strict=True))
    added = dict(zip("UW", eps, strict=True))
    first = {name: np.zeros_like(part) for name, part in params.items()}
    second, losses = dict(first), []
    for k in range(1, 122):
        loss, grads = model.value_and_grad(params, problem)
        losses.append(float(loss))
        for name, g in grads.items():
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g**2
            size = np.sqrt(second[name] / (1.0 - 0.999**k)) + added[name]
            params[name] = params[name] - steps[name] * first[name] / (1.0 - 0.9**k) / size
    return losses


def test_adams_twin_is_exact_only_with_an_eps_of_its_own(explorable) -> None:
    """The read-out names the eps that the twin has, and what is left without it."""
    problem, H, eta = widgets.OneHeadTwin().problem, 16, 1
    run = optim.train(models.MultiHead(heads=H), problem, optim.Adam(eta), 120, every=1)
    found = {}
    for eps, expected in (("scaled", (1e-8 * H**0.5, 1e-8 * H)), ("same", (1e-8, 1e-8))):
        _, root = explorable("one_head_twin", {"rule": "adam", "eta": eta, "H": H, "eps": eps})
        assert json.loads(root.get_attribute("data-eps")) == pytest.approx(expected)
        away = np.abs(np.array(adams_twin(problem, eta, H, expected)) - run.history["loss"]).max()
        found[eps] = float(root.get_attribute("data-away"))
        assert found[eps] == pytest.approx(float(away), rel=0.02, abs=1e-12)
        words = root.locator(".al-readout").inner_text()
        assert (f"with ε of {4 if eps == 'scaled' else 1}.0\u00a0·\u00a010⁻⁸ and" in words) is True
    assert found["scaled"] < 1e-12
    assert found["same"] > 1e-6
    _, root = explorable("one_head_twin", {"rule": "gd", "H": H})
    assert "ε" not in root.locator(".al-readout").inner_text(), "plain descent has none"


def test_a_random_start_parts_the_heads(explorable) -> None:
    _, root = explorable("one_head_twin", {"kick": 0.1, "H": 8})
    assert float(root.get_attribute("data-spread")) > 1e-2
    assert float(root.get_attribute("data-away")) > 1e-3
    problem = widgets.OneHeadTwin().problem
    model = models.MultiHead(heads=8, start="gaussian", scale=0.1)
    run = optim.train(model, problem, optim.GD(1.0), 120, rng=0)
    shown = float(root.get_attribute("data-many"))
    assert shown == pytest.approx(float(run.history["loss"][-1]), rel=1e-4)


@pytest.mark.parametrize(("rule", "H"), [(0, 1), (0, 64), (1, 16), (2, 4)])
def test_head_race(explorable, rule: int, H: int) -> None:
    _, root = explorable("head_race", {"rule": rule, "H": H})
    race = widgets.HeadRace()
    ours = (optim.GD(1.0), optim.GD(0.3 * H**0.5), optim.Adam(0.06))[rule]
    model = models.MultiHead(heads=H)
    run = optim.train(model, race.problem, ours, race.steps)
    train, _, attention, margin = json.loads(root.get_attribute("data-now"))
    assert train == pytest.approx(float(run.history["loss"][-1]), rel=1e-4)
    maps = model.attention(run.params, race.problem)[:, 0]
    masses = (maps * race.problem.relevant[:, None, :]).sum(axis=-1).mean(axis=-1)
    assert attention == pytest.approx(float(masses.mean()), abs=1e-5)
    assert float(root.get_attribute("data-mass")) == pytest.approx(float(masses[0]), abs=1e-5)
    least = (race.problem.y * model.forward(run.params, race.problem)).min()
    assert margin == pytest.approx(float(least / np.linalg.norm(run.params["U"])), rel=1e-4)


def test_the_race_turns_around_with_the_rule(explorable) -> None:
    for rule, sign in ((0, 1), (1, -1)):
        _, root = explorable("head_race", {"rule": rule})
        ends = json.loads(root.get_attribute("data-ends"))[:5]
        assert (sign * np.diff(ends) > 0).all()


@pytest.mark.parametrize(("rule", "H"), [(0, 1), (0, 64), (4, 16)])
def test_planted_teachers(explorable, rule: int, H: int) -> None:
    _, root = explorable("planted_teacher", {"rule": rule, "H": H})
    found = stored.load("planted")
    ends = found["align"][rule, planted.HEADS.index(H), :, -1]
    assert json.loads(root.get_attribute("data-stuck")) == np.flatnonzero(ends < 90).tolist()
    told_share = f"{(ends >= 90).sum()} of 12"
    assert told_share in root.locator(".al-readout").inner_text()
