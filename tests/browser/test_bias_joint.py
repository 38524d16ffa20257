"""Joint training, bad directions and saturation in the browser, against attnlab."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attnbook import theory
from attnbook.widgets import bias_joint
from attnlab import models, optim, problems, svm

FIXED = models.Attention(loss="exponential", start="zero")
JOINT = models.Attention(loss="exponential", start="zero", train_head=True)
CASES = 200


def near(found: Any, expected: Any, within: float = 1e-9) -> None:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= within * np.maximum(1.0, np.abs(expected))).all()


def joint_cases(trials: int, rng: int) -> tuple[problems.TokenProblem, list[dict[str, Any]]]:
    """Draws of model DM, each with its Gram matrices as the explorable carries them."""
    many = problems.gaussian(n=3, T=2, d=6, rho=0.4, alpha=3.0, trials=trials, rng=rng)
    grams = []
    for k in range(trials):
        one = problems.TokenProblem(
            many.X[k], many.z[k], many.y[k], many.v[k], relevant=np.asarray(many.relevant)[k]
        )
        span = bias_joint.span_of(one)
        grams.append({name: array.ravel().tolist() for name, array in span.items()})
    return many, grams


def rows_of(many: problems.TokenProblem, rule: optim.Rule, steps: int) -> np.ndarray:
    run = optim.train(JOINT, many, rule, steps)
    loss, _ = JOINT.value_and_grad(run.params, many)
    marked = np.asarray(many.relevant)
    tokens = marked.argmax(axis=-1)
    goal = svm.attention_svm(many, tokens=tokens)
    deciding = (many.X * marked[..., None]).sum(axis=-2)
    head = svm.decoder_svm(x=deciding, y=many.y)
    W, v = run.params["W"], run.params["v"]
    turned = (v * head.W.reshape(v.shape)).sum(axis=-1) / head.norm
    length = np.linalg.norm(v, axis=-1)
    share = (JOINT.attention(run.params, many) * marked).sum(axis=-1).mean(axis=-1)
    columns = (
        np.log(loss),
        length,
        np.linalg.norm(W, axis=(-2, -1)),
        turned / length,
        svm.correlation(W, goal.W),
        share,
    )
    return np.stack(columns, axis=-1)


def test_joint_training_is_the_training_loop(kernel) -> None:
    """Equation 10 with several powers, constant steps, and one norm for both."""
    rules: list[tuple[dict[str, Any], optim.Rule]] = [
        ({"kind": "each", "head": 2 / 3, "attention": 1.0}, optim.DecayedNormalizedGD(0.1)),
        ({"kind": "each", "head": 0.0, "attention": 0.0}, optim.NormalizedGD(0.1)),
        (
            {"kind": "each", "head": 0.5, "attention": 0.8},
            optim.DecayedNormalizedGD(0.1, head_power=0.5, attention_power=0.8),
        ),
        ({"kind": "whole", "head": 0.0, "attention": 0.0}, optim.JointNormalizedGD(0.1)),
    ]
    for seed, (given, rule) in enumerate(rules):
        many, grams = joint_cases(60, seed)
        cases = [[gram, {**given, "eta": 0.1}, [0, 1, 60]] for gram in grams]
        found = np.array(kernel("bias_joint", "jointTraining", cases))
        near(found[:, 0, :6], np.tile([0, 0, 0, 0, 0, 0.5], (60, 1)))
        near(found[:, 1, :6], rows_of(many, rule, 1))
        near(found[:, 2, :6], rows_of(many, rule, 60))


def turned_data(a: np.ndarray) -> problems.TokenProblem:
    """Figure 8's data with the tokens of sample 2 at (-a, .5) and (a, -.5), one trial an a."""
    data = problems.bad_direction()
    X = np.broadcast_to(data.X, (len(a), 2, 2, 2)).copy()
    X[:, 1, 0, 0], X[:, 1, 1, 0] = -a, a
    y, v = np.tile(data.y, (len(a), 1)), np.tile(data.v, (len(a), 1))
    return problems.TokenProblem(X, X[..., 0, :], y, v)


def plane(problem: problems.TokenProblem) -> tuple[np.ndarray, np.ndarray]:
    """The unit W_mm, and the unit matrix across it in the span of both features."""
    X = problem.X
    first = (X[:, 0, 1] - X[:, 0, 0])[:, :, None] * X[:, 0, 0][:, None, :]
    goal = svm.attention_svm(problem)
    along = goal.W / np.linalg.norm(goal.W, axis=(-2, -1), keepdims=True)
    across = first - (first * along).sum(axis=(-2, -1), keepdims=True) * along
    return along, across / np.linalg.norm(across, axis=(-2, -1), keepdims=True)


def test_the_plane_of_a_bad_direction(kernel) -> None:
    """Margins, directions and the bounds on start and step."""
    a = np.random.default_rng(0).uniform(0.0, 3.0, CASES)
    problem = turned_data(a)
    frames = kernel("bias_joint", "basinFrame", [[float(x)] for x in a])
    good = svm.attention_svm(problem)
    wrong = svm.attention_svm(problem, tokens=np.ones((CASES, 2), int))
    along, across = plane(problem)
    near([f["width"] for f in frames], good.norm)
    near([np.hypot(*f["wrong"]) for f in frames], wrong.norm)
    inside = [(wrong.W * e).sum(axis=(-2, -1)) for e in (along, across)]
    near([f["wrong"] for f in frames], np.stack(inside, axis=-1))
    start = -np.eye(2) / np.sqrt(2.0)
    seen = [(start * e).sum(axis=(-2, -1)) for e in (along, across)]
    near([f["figure"] for f in frames], np.stack(seen, axis=-1))
    B = np.linalg.norm(problem.X, axis=-1).max(axis=(-2, -1))
    eta = np.random.default_rng(1).uniform(0.001, 0.3, CASES)
    found = kernel("bias_joint", "basinAllowed", [[f, e] for f, e in zip(frames, eta, strict=True)])
    near(found, [float(theory.bias.initial_norm(*x)) for x in zip(eta, B, good.norm, strict=True)])
    found = kernel("bias_joint", "basinLongest", [[f] for f in frames])
    near(found, [float(theory.bias.largest_step(size, 2)) for size in B])


def test_paths_in_the_plane(kernel) -> None:
    draw = np.random.default_rng(2)
    a = draw.uniform(0.0, 3.0, CASES)
    angle, size = draw.uniform(-np.pi, np.pi, CASES), 10 ** draw.uniform(-3.0, 0.5, CASES)
    problem = turned_data(a)
    along, across = plane(problem)
    xy = np.stack([size * np.cos(angle), size * np.sin(angle)], axis=-1)
    W = xy[:, 0, None, None] * along + xy[:, 1, None, None] * across
    run = optim.train(FIXED, problem, optim.NormalizedGD(0.025), 60, params={"W": W})
    frames = kernel("bias_joint", "basinFrame", [[float(x)] for x in a])
    cases = [[f, start.tolist(), 0.025, 60, 60] for f, start in zip(frames, xy, strict=True)]
    found = np.array(kernel("bias_joint", "basinPath", cases))
    end = [(run.params["W"] * e).sum(axis=(-2, -1)) for e in (along, across)]
    near(found[:, 0], xy)
    near(found[:, 1], np.stack(end, axis=-1))


def test_which_starts_turn(kernel) -> None:
    """The map against runs of the training loop; a start that turned never goes back."""
    draw = np.random.default_rng(3)
    a = draw.uniform(0.0, 3.0, CASES)
    angle, size = draw.uniform(-np.pi, np.pi, CASES), 10 ** draw.uniform(-2.0, 0.7, CASES)
    problem = turned_data(a)
    along, across = plane(problem)
    xy = np.stack([size * np.cos(angle), size * np.sin(angle)], axis=-1)
    W = xy[:, 0, None, None] * along + xy[:, 1, None, None] * across
    run = optim.train(FIXED, problem, optim.NormalizedGD(0.08), 500, params={"W": W})
    frames = kernel("bias_joint", "basinFrame", [[float(x)] for x in a])
    cases = [[f, start.tolist(), 0.08, 500] for f, start in zip(frames, xy, strict=True)]
    found = np.array(kernel("bias_joint", "basinTurns", cases))
    ends = run.attention()[:, 1, 0] >= 0.5
    assert (found == ends).all()
    assert 5 < (~found).sum() < CASES / 2


def test_the_textbook_gradient(kernel) -> None:
    """The same formula as Attention.value_and_grad, from small W to full saturation."""
    draw = np.random.default_rng(4)
    n, T, d = 2, 3, 2
    X, z = draw.standard_normal((CASES, n, T, d)), draw.standard_normal((CASES, n, d))
    y, v = draw.choice([-1.0, 1.0], (CASES, n)), draw.standard_normal((CASES, d))
    W = draw.standard_normal((CASES, d, d)) * 10 ** draw.uniform(-1, 2, (CASES, 1, 1))
    loss, grads = FIXED.value_and_grad({"W": W}, problems.TokenProblem(X, z, y, v))
    given = {"X": X, "z": z, "y": y, "v": v}
    cases = [
        [{name: array[k].tolist() for name, array in given.items()}, W[k].tolist()]
        for k in range(CASES)
    ]
    found = kernel("bias_joint", "textbookGradient", cases)
    near([each["loss"] for each in found], loss)
    near([each["G"] for each in found], grads["W"])


def test_equation_10_barely_moves(explorable) -> None:
    page, root = explorable("joint_training", {"k": 200})
    assert root.get_attribute("data-step") == "10000"
    rows = np.array(json.loads(root.get_attribute("data-rows")))
    assert 0.93 < np.exp(rows[0, 0]) < 0.94
    assert rows[0, 1] < float(theory.bias.decoder_norm_bound(1e4, 0.002))
    assert rows[0, 2] < 0.002 * np.sum(1.0 / np.arange(2.0, 10_001.0))
    assert (np.exp(rows[1:, 0]) < 1e-7).all()
    rate = theory.bias.omega_1(3.0, 0.1, n=10, d=100)
    bound = float(theory.bias.joint_loss_bound(1e4, 0.002, rate))
    assert float(root.get_attribute("data-bound")) == pytest.approx(bound, rel=1e-6)
    root.locator('[data-bet="2"]').click()
    page.wait_for_function(
        "() => document.querySelector('[data-explorable=joint_training] .al-told')"
        ".textContent.startsWith('Yes. It is 0.93')"
    )


def test_joint_training_shows_what_attnlab_trains(explorable) -> None:
    problem = bias_joint.figure_3()
    _, root = explorable("joint_training", {"k": 36, "eta": 0.05})
    steps = int(root.get_attribute("data-step"))
    rows = np.array(json.loads(root.get_attribute("data-rows")))
    rules: list[optim.Rule] = [
        optim.DecayedNormalizedGD(0.05),
        optim.NormalizedGD(0.05),
        optim.JointNormalizedGD(0.05),
    ]
    for row, rule in zip(rows, rules, strict=True):
        run = optim.train(JOINT, problem, rule, steps)
        loss, _ = JOINT.value_and_grad(run.params, problem)
        expected = [np.log(loss), *(np.linalg.norm(run.params[name]) for name in ("v", "W"))]
        assert row[:3] == pytest.approx(expected, rel=1e-4)


def test_a_long_bad_start_stays_bad(explorable) -> None:
    problem = problems.bad_direction()
    good = svm.attention_svm(problem)
    for size, turns in ((-1, "true"), (0, "false")):
        _, root = explorable("bad_basin", {"angle": 78.43392852722083, "size": size})
        assert root.get_attribute("data-turned") == turns
        start = -(10.0**size) / 0.7348034446274878 * np.eye(2) / np.sqrt(2.0)  # as far as it counts
        run = optim.train(FIXED, problem, optim.NormalizedGD(0.025), 1600, params={"W": start})
        inside = float(root.get_attribute("data-cosine"))
        expected = float(svm.correlation(run.params["W"], good.W))
        assert inside == pytest.approx(expected, abs=3e-3)  # the rest of -I stays in W for ever
        share = float(root.get_attribute("data-share"))
        assert share == pytest.approx(run.attention()[1, 0], abs=1e-9)
        allowed = float(theory.bias.initial_norm(0.025, np.linalg.norm(problem.X[1, 0]), good.norm))
        assert float(root.get_attribute("data-allowed")) == pytest.approx(allowed)


def test_turned_tokens_have_no_basin(explorable) -> None:
    lost, pull = [], []
    for a in (2.5, 1.5, 1.0):
        _, root = explorable("bad_basin", {"a": a, "bet": 1})
        lost.append(int(root.get_attribute("data-lost")))
        pull.append(float(root.get_attribute("data-pull")))
    assert lost[0] > lost[1] > lost[2]
    assert pull[0] == pytest.approx(23.04 / 4.3264)
    assert pull[1] > 1 > pull[2]
    assert lost[2] < 10, "what is left has not turned yet after a path of 40"


def test_start_can_be_dragged_and_moved_by_keys(explorable) -> None:
    page, root = explorable("bad_basin")
    handle = root.locator('[data-handle="start"]')
    handle.focus()
    for _ in range(12):
        page.keyboard.press("ArrowUp")  # longer starts
    page.wait_for_function(
        "() => document.querySelector('[data-explorable=bad_basin]').dataset.turned === 'false'"
    )


def test_saturated_gradients(explorable) -> None:
    for name, problem in (("two", problems.two_token()), ("three", bias_joint.board())):
        goal = svm.attention_svm(problem)
        for R in (5, 60):
            _, root = explorable("naive_exact", {"data": name, "R": R, "k": 0})
            W = {"W": R * goal.W / goal.norm}
            _, grads = FIXED.value_and_grad(W, problem)
            _, unit, scale = FIXED.scaled_grad(W, problem)
            log10 = (np.log(np.linalg.norm(unit["W"])) + scale) / np.log(10.0)
            assert float(root.get_attribute("data-log10")) == pytest.approx(float(log10), abs=1e-9)
            naive = float(np.linalg.norm(grads["W"]))
            assert float(root.get_attribute("data-naive")) == pytest.approx(naive, rel=1e-9)


def test_the_textbook_run_goes_astray(explorable) -> None:
    _, root = explorable("naive_exact", {"data": "three", "k": 1000})
    assert root.get_attribute("data-step") == "5000"
    ends = json.loads(root.get_attribute("data-ends"))
    problem = bias_joint.board()
    goal = svm.attention_svm(problem)
    rule = optim.NormalizedGD(0.1)
    run = optim.train(FIXED, problem, rule, 5000, params={"W": np.array(bias_joint.START)})
    expected = 1.0 - float(svm.correlation(run.params["W"], goal.W))
    assert ends[0][0] == pytest.approx(expected, rel=1e-3)
    assert ends[1][0] > 1e4 * ends[0][0]
    assert ends[2][1] < 0.2 * ends[0][1], "epsilon in the norm shortens the steps"
    _, root = explorable("naive_exact", {"data": "two", "k": 1000})
    ends = json.loads(root.get_attribute("data-ends"))
    assert ends[1][1] == pytest.approx(36.8, abs=0.3), "with two tokens it stops"
