"""One head as statistics, and a loss that bounds itself: what is shown is what attnlab computes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import theory
from attnbook.widgets import single_head
from attnlab import curvature, models, problems

CASES = 200


def row(tokens: list[list[float]], logits: list[float], theta: float) -> tuple[float, float, float]:
    """Mean, covariance and third moment of a row, from an attention model that gives it."""
    X = np.column_stack([tokens, logits])[None]
    problem = problems.TokenProblem(X=X, z=np.eye(3)[:1], y=np.ones(1), v=np.eye(3)[1])
    W = np.zeros((3, 3))
    W[:, 0] = theta, 0.0, 1.0
    model = models.Attention(loss="correlation")
    value, grads = model.value_and_grad({"W": W}, problem)
    bent = curvature.hessian(model, {"W": W}, problem).matrix
    return -float(value), -float(grads["W"][0, 0]), -float(bent[0, 0])


def test_row_moments_are_lemma_1(kernel) -> None:
    """Against the lemma's formulas: a readout at one position, a direction of rank one."""
    rng = np.random.default_rng(0)
    given, expected = [], []
    for k in range(CASES):
        T, d = 2 + k % 5, 2 + k % 3
        X, W = rng.standard_normal((T, d)), (1.0 + k % 4) * rng.standard_normal((d, d))
        u, b = rng.standard_normal((2, d))
        z = X[-1]
        U = np.vstack([np.zeros((T - 1, d)), u])
        c = z / (z @ z)
        given.append([(X @ u).tolist(), (X @ b).tolist(), (X @ W @ z).tolist()])
        mean = float(
            models.MultiHead(heads=1).forward(
                {"U": U[None], "W": W[None]}, problems.SequenceProblem(X=X[None], y=np.ones(1))
            )[0]
        )
        slope = b @ theory.multihead.model_gradient(X, W, U)[1] @ c
        bend = b @ theory.multihead.second_derivative(X, W, U, b, c) @ c
        expected.append([mean, slope, bend])
    found = kernel("onehead", "rowMoments", given)
    shown = np.array([[one["mean"], one["covariance"], one["third"]] for one in found])
    size = np.maximum(1.0, np.abs(expected))
    assert (np.abs(shown - expected) / size).max() < 1e-9


def test_loss_of_many_heads(kernel) -> None:
    rng = np.random.default_rng(1)
    given, expected = [], []
    for k in range(CASES):
        H, n, T, d = 1 + k % 4, 1 + k % 3, 2 + k % 3, 1 + k % 4
        X, y = rng.standard_normal((n, T, d)), rng.choice([-1.0, 1.0], size=n)
        U, W = 3.0 * rng.standard_normal((H, T, d)), 2.0 * rng.standard_normal((H, d, d))
        told = {"X": X.ravel().tolist(), "y": y.tolist(), "T": T, "d": d}
        given.append([told, U.ravel().tolist(), W.ravel().tolist(), H])
        problem = problems.SequenceProblem(X=X, y=y)
        loss, _ = models.MultiHead(heads=H).value_and_grad({"U": U, "W": W}, problem)
        expected.append(float(loss))
    assert kernel("many_heads", "headsLoss", given) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_beta_3(kernel) -> None:
    rng = np.random.default_rng(2)
    given, expected = [], []
    for k in range(CASES):
        norm, R = rng.uniform(0.0, 9.0), rng.uniform(1.0, 3.0)
        T, d, sharp = int(rng.integers(1, 20)), int(rng.integers(1, 9)), bool(k % 2)
        given.append([norm, {"T": T, "d": d, "R": R}, sharp])
        expected.append(float(theory.multihead.beta3(norm, T=T, d=d, R=R, sharp=sharp)))
    assert kernel("onehead", "beta3", given) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("theta", [-2.0, 0.0, 3.5])
def test_attention_row_says_what_attnlab_computes(explorable, theta: float) -> None:
    state = {
        "x": [[-1.0, 0.4], [0.3, 1.2], [0.8, -0.7], [-0.2, 0.1]],
        "g": [1.0, -0.5, 0.2, 2.0],
        "theta": theta,
    }
    _, root = explorable("attention_row", state)
    shown = json.loads(root.get_attribute("data-moments"))
    found = [shown["mean"], shown["covariance"], shown["third"]]
    assert found == pytest.approx(row(state["x"], state["g"], theta), abs=1e-9)
    assert shown["slope"] == pytest.approx(shown["covariance"], abs=1e-5)
    assert shown["bend"] == pytest.approx(shown["third"], abs=1e-4)
    assert abs(shown["covariance"]) <= shown["sharp"][0] <= shown["printed"][0]
    assert abs(shown["third"]) <= shown["sharp"][1] <= shown["printed"][1]
    assert f"Mean {shown['mean']:.3f}" in root.locator(".al-readout").inner_text()


def test_attention_row_attains_the_sharp_bound(explorable) -> None:
    """Two tokens at opposite corners share the weight: the covariance is max|A| max|B|."""
    state = {"x": [[-1, -1], [1, 1], [0, 0], [0, 0]], "g": [3, 3, -300, -300], "theta": 0}
    _, root = explorable("attention_row", state)
    shown = json.loads(root.get_attribute("data-moments"))
    assert shown["covariance"] == pytest.approx(shown["sharp"][0]) == pytest.approx(1.0)


def test_dragging_a_token_changes_the_slope(explorable) -> None:
    page, root = explorable("attention_row")
    before = json.loads(root.get_attribute("data-moments"))
    root.locator('[data-handle="x3"]').focus()
    for _ in range(5):
        page.keyboard.press("Shift+ArrowDown")
    after = json.loads(root.get_attribute("data-moments"))
    assert after["p"] == pytest.approx(before["p"]), "a score does not touch the weights"
    assert after["covariance"] < before["covariance"] - 0.1


@pytest.mark.parametrize("kind", ["random", "pairs"])
def test_weak_convexity_is_within_its_bounds(explorable, kind: str) -> None:
    for heads, size in ((1, 0.3), (16, 1.0), (64, 3.0)):
        _, root = explorable("weak_convexity", {"kind": kind, "heads": heads, "size": size})
        printed, readout, sharp = json.loads(root.get_attribute("data-bounds"))
        expected = theory.multihead.beta3(size, T=4, d=3, R=1.0) / np.sqrt(heads)
        assert printed == pytest.approx(float(expected), rel=1e-6)
        problem, params = single_head.drawn(heads, size, pairs=kind == "pairs")
        model = models.MultiHead(heads=heads)
        measured = np.mean(
            [
                curvature.weak_convexity(model, {k: v[i] for k, v in params.items()}, problem)
                for i in range(3)
            ]
        )
        assert float(root.get_attribute("data-ratio")) == pytest.approx(measured, rel=1e-5)
        assert 0.0 < float(root.get_attribute("data-ratio")) < sharp < readout < printed
        assert -0.55 < float(root.get_attribute("data-power")) < -0.35


def test_copies_in_pairs_fall_like_the_root_exactly(explorable) -> None:
    """From 4 heads on: the worst direction turns two equal heads against each other."""
    found = {}
    for heads in (4, 16, 64):
        for size in (0.3, 1.0, 3.0):
            state = {"kind": "pairs", "heads": heads, "size": size}
            _, root = explorable("weak_convexity", state)
            found[heads, size] = float(root.get_attribute("data-ratio"))
            assert float(root.get_attribute("data-power")) == pytest.approx(-0.5, abs=1e-5)
            assert "from 4 heads on: -0.500" in root.locator(".al-readout").inner_text()
            assert found[heads, size] == pytest.approx(
                found[4, size] * (4 / heads) ** 0.5, rel=1e-5
            )
    problem = single_head.unit_tokens(np.random.default_rng(3), n=6)
    rng = np.random.default_rng(4)
    drawn = {"U": rng.standard_normal((64, 4, 3)), "W": rng.standard_normal((64, 3, 3))}
    exact = []
    for heads in (4, 16):
        few = single_head.opposite_pairs(drawn, heads)
        params = single_head.of_length(few, 1.0)
        exact.append(curvature.weak_convexity(models.MultiHead(heads=heads), params, problem))
    assert exact[1] == pytest.approx(exact[0] / 2.0, rel=1e-9)


@pytest.mark.parametrize(
    ("heads", "to", "share"), [(2, "other", 1.0), (16, "swap", 1.0), (64, "start", 0.02)]
)
def test_segment_explorer_walks_as_attnlab_does(
    explorable, heads: int, to: str, share: float
) -> None:
    state = {"heads": heads, "to": to, "share": share, "at": 0.3}
    _, root = explorable("segment_explorer", state)
    problem, points = single_head.trained(heads)
    first = {name: part[1] for name, part in points.items()}
    place = {"start": 0, "swap": 1, "other": 2}[to]
    last = {name: part[place] for name, part in points.items()}
    if to == "swap":
        last = {name: np.roll(part, 1, axis=0) for name, part in last.items()}
    last = {name: first[name] + share * (last[name] - first[name]) for name in first}
    model = models.MultiHead(heads=heads)

    def loss(s: float) -> float:
        point = {name: (1 - s) * first[name] + s * last[name] for name in first}
        return float(model.value_and_grad(point, problem)[0])

    losses = [loss(s) for s in np.linspace(0, 1, 101)]
    # parameters travel with 7 digits
    assert float(root.get_attribute("data-here")) == pytest.approx(loss(0.3), rel=1e-4)
    ratio = max(losses) / max(losses[0], losses[-1])
    assert float(root.get_attribute("data-ratio")) == pytest.approx(ratio, rel=1e-4)
    length = np.sqrt(sum(((first[name] - last[name]) ** 2).sum() for name in first))
    assert float(root.get_attribute("data-length")) == pytest.approx(length, rel=1e-5)
    longest = max(
        np.sqrt(sum((part**2).sum(axis=(-1, -2)) for part in end.values())).max()
        for end in (first, last)
    )
    beta3 = theory.multihead.beta3(longest, T=4, d=3, R=1.0)
    used = float(theory.multihead.short_enough(length, beta3, H=heads))
    assert float(root.get_attribute("data-used")) == pytest.approx(used, rel=1e-4)


def test_short_segments_stay_within_four_thirds(explorable) -> None:
    """Proposition 4 where it applies, and a hill where it does not."""
    for heads in (2, 4, 16, 64):
        _, root = explorable("segment_explorer", {"heads": heads, "share": 0.001})
        assert float(root.get_attribute("data-used")) < 1.0
        assert float(root.get_attribute("data-ratio")) <= 16.0 / 15.0
        _, root = explorable("segment_explorer", {"heads": heads, "share": 1})
        assert float(root.get_attribute("data-used")) > 1.0
        assert float(root.get_attribute("data-ratio")) > 4.0 / 3.0
