"""Training many heads: what the explorables show is what attnlab computes."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets import training_heads
from attnlab import models, ntk, optim, problems

CASES = 200


def told(root: Any, name: str) -> dict[str, Any]:
    return dict(json.loads(root.get_attribute(f"data-{name}")))


def ran(root: Any) -> str:
    """What the Python behind an explorable prints."""
    root.get_by_role("button", name="Copy as code").click()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(root.locator(".al-code").inner_text(), {})
    return printed.getvalue()


def test_budget(kernel) -> None:
    """Head counts, smoothness, steps and promises against theory.multihead."""
    rng, bound = np.random.default_rng(0), theory.multihead
    cases = [
        {
            "delta": float(10 ** rng.uniform(-1.3, 1.3)),
            "gamma": float(rng.uniform(0.1, 1.0)),
            "T": int(rng.integers(1, 50)),
            "d": int(rng.integers(1, 50)),
            "R": float(rng.uniform(1.0, 4.0)),
            "K": int(10 ** rng.uniform(0, 9)),
        }
        for _ in range(CASES)
    ]
    for case, found in zip(
        cases, kernel("training_heads", "budget", [[c] for c in cases]), strict=True
    ):
        sizes = {name: case[name] for name in ("T", "d", "R")}
        delta = case["delta"]

        def asked(delta=delta, sizes=sizes, **how: Any) -> float:
            fewest = max(1.0, float(bound.H_min(delta, 0.0, **sizes, **how)))
            return max(1.0, float(bound.H_min(delta, delta / fewest**0.5, **sizes, **how)))

        H, loss = asked(), float(np.logaddexp(0.0, -case["gamma"] * delta))
        rho = float(bound.rho(delta, delta / H**0.5, **sizes, H=H))
        eta = float(bound.step_size(delta, loss, np.log(2.0), rho, K=case["K"]))
        expected = {
            "heads": H,
            "generalization": asked(purpose="generalization"),
            "sharp": asked(sharp=True),
            "loss": loss,
            "rho": rho,
            "eta": eta,
            "bound": float(bound.training_bound(loss, delta, eta=eta, K=case["K"])),
        }
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-9), (name, case)
        last = max(1, int(np.ceil(found["full"])))  # from here on K no longer helps
        if last < 1e15:
            eta = float(bound.step_size(delta, loss, np.log(2.0), rho, K=last))
            promise = bound.training_bound(loss, delta, eta=eta, K=last)
            assert float(promise) == pytest.approx(3.25 * loss, rel=1e-6)


def drawn(seed: int, H: int, law: str) -> np.ndarray:
    """The first steps of ``drawSigns``, in Python."""
    state, found = (seed * 2654435761 + 12345) % 2**32, []
    for _ in range(H):
        state = (state + 0x6D2B79F5) % 2**32
        t = (state ^ (state >> 15)) * (1 | state) % 2**32
        t = ((t + (t ^ (t >> 7)) * (61 | t)) ^ t) % 2**32
        found.append((t ^ (t >> 14)) / 2**32)
    u = np.array(found)
    return 2.0 * u - 1.0 if law == "uniform" else np.where(u < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("law", ["signs", "uniform"])
def test_the_way_to_the_target(kernel, law: str) -> None:
    """Outputs and slopes along Definition 1's direction are those of the network."""
    rng = np.random.default_rng(1)
    seq = problems.tokenized_mixture(n=2, sigma=0.0, rng=0)
    mixture = {"T": 10, "zeta": 0.1, "S": 2, "M": 2}
    draws = [(int(seed), int(rng.integers(1, 9))) for seed in rng.integers(1, 999, size=CASES)]
    groups = kernel("training_heads", "drawSigns", [[seed, H, law] for seed, H in draws])
    away = rng.uniform(0.0, 20.0, size=CASES)
    rays = kernel(
        "training_heads",
        "outputAlong",
        [[g, c, mixture] for g, c in zip(groups, away.tolist(), strict=True)],
    )
    slopes = kernel("training_heads", "tangentMargin", [[g, mixture] for g in groups])
    for k, (seed, H) in enumerate(draws):
        alpha, model = drawn(seed, H, law), models.MultiHead(heads=H)
        plus = alpha > 0
        assert groups[k]["plus"]["count"] == plus.sum()
        assert groups[k]["minus"]["sum"] == pytest.approx(alpha[~plus].sum(), abs=1e-9)
        start = 0.1 / 4 * alpha[:, None, None] * theory.multihead.U_star(seq.source)
        toward = theory.multihead.theta_star(seq.source, alpha)

        def output(c: float, start=start, toward=toward, model=model) -> float:
            params = {"U": start + c * toward["U"], "W": c * toward["W"]}
            reached = seq.y * model.forward(params, seq)
            assert np.ptp(reached) < 1e-9
            return float(reached[0])

        assert rays[k] == pytest.approx(output(away[k]), abs=1e-9 * max(1.0, abs(rays[k])))
        slope = (output(1e-5) - output(-1e-5)) / 2e-5
        assert slopes[k] == pytest.approx(slope, abs=1e-7)
    if law == "signs":  # every draw has Lemma 13's margin
        assert np.allclose(slopes, float(theory.multihead.gamma_star()), atol=1e-12)


def test_head_budget_asks_for_more_with_distance(explorable) -> None:
    page, root = explorable("head_budget", {"delta": 1, "R": 4.35**0.5, "bet": 2})
    found = told(root, "budget")
    assert found["heads"] > 1e10
    assert "Yes" in root.locator(".al-told").inner_text()
    assert f"{found['heads']:.2e} heads" in ran(root)
    slider = root.locator('input[data-key="delta"]')
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert told(root, "budget")["heads"] > found["heads"]


@pytest.mark.parametrize("delta", [0.5, 5, 8, 12.6])
def test_head_budget_compares_with_what_is_promised(explorable, delta: float) -> None:
    """One head's step is that of the promised loss, and a promise above log 2 is called none."""
    _, root = explorable("head_budget", {"delta": delta})
    found, words = told(root, "budget"), root.locator(".al-readout").inner_text()
    widget = widgets.HeadBudget(rng=0)
    drawn = problems.tokenized_mixture(n=100, rng=0)
    model = models.MultiHead(heads=1)
    run = optim.train(model, drawn, optim.GD(1.0), 1000, every=1)
    gamma = float(ntk.margin(model, model.init(drawn), drawn).margin)
    loss = float(np.logaddexp(0.0, -gamma * delta))
    assert found["promised"] == pytest.approx(3.25 * loss, rel=1e-5)
    assert found["news"] == (3.25 * loss < np.log(2.0))
    shown = training_heads.moments(1000, 60)
    expected = [
        next(k for k in shown if run.history["loss"][k] <= level) for level in (3.25 * loss, loss)
    ]
    assert found["reached"] == expected
    if found["news"]:
        assert f"the promised loss by step {expected[0]}," in words
    else:
        assert "no less than log 2, the loss at step 0" in words
    assert f"by step {expected[1]}." in words
    assert "still those of the mixture" not in words
    _, root = explorable("head_budget", {"delta": delta, "T": 100})
    assert "with T = 10, d = 4" in root.locator(".al-readout").inner_text()
    assert widget.now("R") == pytest.approx(np.linalg.norm(drawn.X, axis=-1).max(), abs=0.051)


def test_leave_one_out_has_a_right_answer(explorable) -> None:
    """At the step that it opens with; and none is claimed where there is none."""
    sizes = training_heads.SAMPLES
    runs = [training_heads.leave_one_out(n) for n in sizes]
    means = np.array([found["mean"] for found in runs])
    opens = 5
    assert np.allclose(means[:-1, opens] / means[1:, opens], 2.0, rtol=0.1)
    for bet, word in ((2, "Yes."), (1, "Look again.")):
        _, root = explorable("leave_one_out", {"bet": bet})
        assert word in root.locator(".al-told").inner_text()
        assert (
            f"Measured at step {runs[0]['step'][opens]}," in root.locator(".al-told").inner_text()
        )
    late = 18
    assert np.ptp(means[:-1, late] / means[1:, late]) > 1.0
    _, root = explorable("leave_one_out", {"bet": 2, "k": late})
    assert "None of the three" in root.locator(".al-told").inner_text()


def test_leave_one_out_shows_what_was_measured(explorable) -> None:
    for n in (4, 8):
        _, root = explorable("leave_one_out", {"n": n, "k": 12, "i": 2})
        expected, found = training_heads.leave_one_out(n), told(root, "found")
        for name in ("mean", "gap", "lemma", "bound"):
            assert found[name] == pytest.approx(expected[name][12], rel=1e-4), name
        assert found["away"] == pytest.approx(expected["each"][1, 12], rel=1e-4)
        assert found["gap"] < found["bound"]
        assert found["gap"] < found["lemma"]


@pytest.mark.parametrize("law", ["signs", "uniform"])
def test_two_groups(explorable, law: str) -> None:
    """Distance, margin and loss; the Python on the page computes the same loss."""
    _, root = explorable("two_groups", {"H": 64, "law": law, "share": 0.5, "eps": 0.01})
    found = told(root, "spot")
    alpha = drawn(1, 64, law)
    assert found["first"] == pytest.approx(0.1 * alpha.sum() / 8.0, abs=1e-9)
    assert found["c"] == pytest.approx(
        float(
            theory.multihead.g0(
                0.01, B_Phi=max(1.0, abs(found["first"])), gamma=found["gamma"], printed=True
            )
        )
    )
    assert found["far"] == pytest.approx(0.5 * 2**0.5 * found["c"])
    assert float(ran(root)) == pytest.approx(found["loss"], rel=1e-6)


def test_the_printed_distance_is_too_short(explorable) -> None:
    _, root = explorable("two_groups", {"bet": 1})
    assert "Yes" in root.locator(".al-told").inner_text()
    _, root = explorable("two_groups", {"bet": 1, "H": 16})  # attention saturates: enough by luck
    assert "Look again" in root.locator(".al-told").inner_text()


def test_dragging_the_target(explorable) -> None:
    page, root = explorable("two_groups", {"H": 64})
    before = told(root, "spot")
    root.locator('[data-handle="end"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    after = told(root, "spot")
    assert after["far"] > before["far"]
    assert after["loss"] < before["loss"]


def test_step_rules_show_the_runs(explorable) -> None:
    expected = training_heads.step_rules()
    k = len(expected["step"]) - 1
    for H, j in ((1, 0), (16, 2)):
        for rule in (0, 4):
            _, root = explorable("step_rules", {"H": H, "rule": rule, "k": k})
            found = told(root, "found")
            for name in ("length", "margin"):
                assert found[name] == pytest.approx(expected[name][j, rule, k], rel=1e-4)
            reached = expected["loss"][j] <= 1e-3
            for paid, there, length in zip(
                found["paid"], reached, expected["length"][j], strict=True
            ):
                first = length[there.argmax()] if there.any() else None
                assert paid == (None if first is None else pytest.approx(first, rel=1e-4))
