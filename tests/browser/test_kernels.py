"""JavaScript kernels against their NumPy twins, on shared random cases, in the browser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets._base import bundle
from attnlab import models, optim, problems, svm

CASES = 200
CALL = """async ([site, name, cases]) => {
  const core = await import(`${site}/explorables/kit/core.js`);
  const { LOSSES, logSigmoid, squares } = await import(`${site}/explorables/kit/losses.js`);
  const calls = {
    gradient: (c) => {
      const { loss, G, logScale } = core.gradient(c.problem, c.W, c.loss);
      return { loss, G, logScale };
    },
    step: (c) => {
      let W = c.W;
      for (let k = 0; k < c.times; k++) W = core.step(c.problem, W, c.eta, c.rule, c.loss);
      return W;
    },
    factorStep: (c) => {
      let [K, Q] = [c.K, c.Q];
      for (let k = 0; k < c.times; k++) {
        [K, Q] = core.factorStep(c.problem, K, Q, c.eta, c.rule, c.loss);
      }
      return [K, Q];
    },
    attentionSVM: (c) => core.attentionSVM(c.problem, c.tokens),
    nuclearSVM: (c) => {
      const found = core.nuclearSVM(c.problem, c.tokens);
      return { ...found, norm: found.W ? core.nuclear(found.W) : null };
    },
    locallyOptimal: (c) => core.locallyOptimal(c.problem, c.tokens, c.support),
    waterFilling: (c) => core.waterFilling(c.gamma, c.lambda),
    loss: ({ name, m }) => [LOSSES[name].value(m), LOSSES[name].slope(m)],
    logSigmoid,
    squares: ({ f, y }) => squares(f, y),
  };
  return cases.map(calls[name]);
}"""


def told(problem: problems.TokenProblem, k: int) -> dict[str, Any]:
    return {name: getattr(problem, name)[k].tolist() for name in ("X", "z", "y", "v")}


@pytest.fixture
def run(open_page, site):
    page = open_page("404.html")
    return lambda name, cases: page.evaluate(CALL, [site, name, cases])


def near(found: Any, expected: Any, within: float = 1e-9) -> None:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    size = max(1.0, float(np.abs(expected).max()))
    assert np.abs(found - expected).max() <= within * size


def margins() -> np.ndarray:
    """Of both signs, from below rounding to where e^-m nearly leaves the floats."""
    size = 10.0 ** np.random.default_rng(12).uniform(-18.0, 2.8, CASES)
    return np.concatenate([[0.0], size, -size])


@pytest.mark.parametrize("loss", ["logistic", "exponential", "correlation"])
def test_losses(run, loss: str) -> None:
    """With two equal tokens the head alone is the output, and its gradient the loss's slope."""
    m = margins()
    tokens, query = np.ones((len(m), 1, 2, 1)), np.ones((len(m), 1, 1))
    p = problems.TokenProblem(tokens, query, np.ones((len(m), 1)), np.ones((len(m), 1)))
    params = {"W": np.zeros((len(m), 1, 1)), "v": m[:, None]}
    value, grads = models.Attention(loss=loss, train_head=True).value_and_grad(params, p)
    found = np.array(run("loss", [{"name": loss, "m": x} for x in m.tolist()]))
    assert found[:, 0] == pytest.approx(value, rel=1e-12, abs=0.0)
    assert found[:, 1] == pytest.approx(grads["v"][:, 0], rel=1e-12, abs=0.0)
    if loss == "logistic":
        assert run("logSigmoid", m.tolist()) == pytest.approx(-value, rel=1e-12, abs=0.0)


def test_squared_loss(run) -> None:
    p = problems.gaussian_regression(n=5, T=3, d=2, trials=CASES, rng=13)
    model = models.Encoder(4, loss="half_sum")
    params = model.init(p, rng=14)
    f = model.forward(params, p)
    loss, _ = model.value_and_grad(params, p)
    cases = [{"f": f[k].tolist(), "y": p.y[k].tolist()} for k in range(CASES)]
    assert run("squares", cases) == pytest.approx(2.0 * loss, rel=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "correlation"])
@pytest.mark.parametrize("scale", [1.0, 40.0, 300.0])
def test_gradient(run, loss: str, scale: float) -> None:
    """Up to where 1 - softmax is far below rounding."""
    p = problems.sphere(n=3, T=4, d=2, trials=CASES, rng=0)
    W = scale * np.random.default_rng(1).normal(size=(CASES, 2, 2))
    model = models.Attention(loss=loss)
    found = model.evaluate({"W": W}, p)
    js = run(
        "gradient",
        [{"problem": told(p, k), "W": W[k].tolist(), "loss": loss} for k in range(CASES)],
    )
    value, grads = model.value_and_grad({"W": W}, p)
    for k in range(CASES):
        near(js[k]["loss"], value[k])
        mine = np.array(js[k]["G"])
        theirs = np.asarray(found.grads["W"][k])
        near(mine / np.linalg.norm(mine), theirs / np.linalg.norm(theirs))
        near(np.exp(js[k]["logScale"]) * mine, grads["W"][k])


@pytest.mark.parametrize("rule", ["gd", "ngd"])
@pytest.mark.parametrize("times", [1, 30])
def test_steps(run, rule: str, times: int) -> None:
    p = problems.sphere(n=2, T=3, d=2, trials=CASES, rng=2)
    start = 3.0 * np.random.default_rng(3).normal(size=(CASES, 2, 2))
    step = optim.GD(0.7) if rule == "gd" else optim.NormalizedGD(0.1)
    found = optim.train(models.Attention(), p, step, times, params={"W": start}).params["W"]
    eta = 0.7 if rule == "gd" else 0.1
    cases = [
        {
            "problem": told(p, k),
            "W": start[k].tolist(),
            "eta": eta,
            "rule": rule,
            "times": times,
            "loss": "logistic",
        }
        for k in range(CASES)
    ]
    for k, W in enumerate(run("step", cases)):
        near(W, found[k])


@pytest.mark.parametrize("rule", ["gd", "ngd"])
@pytest.mark.parametrize("times", [1, 10])
def test_factor_steps(run, rule: str, times: int) -> None:
    """Longer (K, Q) paths are chaotic: two correct codes part."""
    p = problems.sphere(n=2, T=3, d=2, trials=CASES, rng=4)
    draw = np.random.default_rng(5)
    K, Q = draw.normal(size=(2, CASES, 2, 2))
    eta = 0.3 if rule == "gd" else 0.05
    step = optim.GD(eta) if rule == "gd" else optim.NormalizedGD(eta)
    run_ = optim.train(models.Attention(factors=2), p, step, times, params={"K": K, "Q": Q})
    cases = [
        {
            "problem": told(p, k),
            "K": K[k].tolist(),
            "Q": Q[k].tolist(),
            "eta": eta,
            "rule": rule,
            "times": times,
            "loss": "logistic",
        }
        for k in range(CASES)
    ]
    for k, (left, right) in enumerate(run("factorStep", cases)):
        near(left, run_.params["K"][k], 1e-9 if times == 1 else 1e-7)
        near(right, run_.params["Q"][k], 1e-9 if times == 1 else 1e-7)


@pytest.mark.parametrize(("n", "T", "d"), [(2, 3, 2), (3, 4, 2), (3, 4, 3)])
def test_frobenius_svm(run, n: int, T: int, d: int) -> None:
    """Infeasible ones included: both must say so."""
    p = problems.sphere(n=n, T=T, d=d, trials=CASES, rng=6)
    tokens = np.random.default_rng(7).integers(T, size=(CASES, n))
    margin = svm.attention_svm(p, tokens)
    js = run(
        "attentionSVM",
        [{"problem": told(p, k), "tokens": tokens[k].tolist()} for k in range(CASES)],
    )
    assert (margin.status == "optimal").sum() > CASES / 4
    if n > d:  # Theorem 1 promises nothing here
        assert (margin.status == "infeasible").sum() > 5
    for k in range(CASES):
        assert js[k]["status"] == margin.status[k]
        if margin.status[k] != "optimal":
            continue
        # next to infeasible ones |W| is in the thousands, and so is what rounding costs
        cost = max(1.0, margin.norm[k] / 100)
        near(js[k]["W"], margin.W[k], 1e-9 * cost)
        near(js[k]["margins"], margin.margins[k], 1e-8 * cost)
        near(np.sum(js[k]["multipliers"]), margin.norm[k] ** 2, 1e-8 * cost)


def test_nuclear_svm(run) -> None:
    """The least nuclear norm in the plane, within 1e-6, and every margin kept."""
    p = problems.sphere(n=2, T=3, d=2, trials=CASES, rng=8)
    margin = svm.attention_svm(p, norm="nuc")
    js = run(
        "nuclearSVM",
        [{"problem": told(p, k), "tokens": p.optimal[k].tolist()} for k in range(CASES)],
    )
    for k in range(CASES):
        assert js[k]["status"] == margin.status[k]
        if margin.status[k] == "optimal":
            assert js[k]["norm"] <= margin.norm[k] * (1 + 1e-6)
            assert js[k]["norm"] >= margin.norm[k] * (1 - 1e-8)
            held = np.arange(3) != p.optimal[k][:, None]
            assert np.array(js[k]["margins"])[held].min() >= 1 - 1e-9


def test_local_optimality(run) -> None:
    p = problems.sphere(n=2, T=3, d=3, trials=CASES, rng=9)
    tokens = np.random.default_rng(10).integers(3, size=(CASES, 2))
    margin = svm.attention_svm(p, tokens)
    found = svm.locally_optimal(p, tokens)
    cases = [
        {"problem": told(p, k), "tokens": tokens[k].tolist(), "support": margin.support[k].tolist()}
        for k in range(CASES)
        if margin.status[k] == "optimal"
    ]
    expected = [bool(found.as_printed[k]) for k in range(CASES) if margin.status[k] == "optimal"]
    assert run("locallyOptimal", cases) == expected
    assert 0.1 < np.mean(expected) < 0.9


def test_water_filling(run) -> None:
    draw = np.random.default_rng(11)
    gamma, penalty = draw.normal(size=(CASES, 6)), draw.uniform(0.01, 3.0, size=CASES)
    expected = theory.svm.water_filling(gamma, penalty)
    cases = [{"gamma": gamma[k].tolist(), "lambda": float(penalty[k])} for k in range(CASES)]
    near(run("waterFilling", cases), expected)


def test_modules_for_notebooks_load(open_page) -> None:
    """Each explorable and what it imports, as the one module that anywidget gets."""
    page = open_page("404.html")
    load = """async (text) => {
      const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      return typeof (await import(address)).default.render;
    }"""
    names = [getattr(widgets, name).name for name in widgets.__all__
             if name not in ("Explorable", "tell")]  # fmt: skip
    for name in [*names, "kit/exercise"]:
        assert page.evaluate(load, bundle(name)) == "function", name
