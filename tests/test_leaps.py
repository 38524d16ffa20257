"""Steps that are taken many at once are the same steps, and whoever replaces them is asked."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from attnlab import models, optim, problems
from attnlab.optim import _walk
from attnlab.optim._logits import Logits
from attnlab.optim._rules import Plain

ATTENTION = models.Attention()
RULES: dict[str, Any] = {
    "gd": optim.GD(0.5),
    "ngd": optim.NormalizedGD(0.1),
    "cap": optim.NormalizedGD(0.1, max_step=0.3),
    "paper": optim.NormalizedGD(0.1, recipe="paper"),
}


@pytest.fixture
def leaps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all leaps that are taken."""
    true, taken = Logits.leap, []

    def counted(self: Logits, point: Any, factor: Any, steps: int) -> Any:
        taken.append(steps)
        return true(self, point, factor, steps)

    monkeypatch.setattr(Logits, "leap", counted)
    return taken


@pytest.mark.parametrize("trials", [None, 3, 64, 501])
@pytest.mark.parametrize("name", RULES)
def test_leaps_have_the_bits_of_single_steps(name: str, trials: int | None, leaps: list) -> None:
    p = problems.sphere(n=4, T=3, d=8, trials=trials, min_gap=0.05, rng=0)
    asked: dict[str, Any] = {"rng": 1, "record": ["loss", "norm", "excess"]}
    fast = optim.train(ATTENTION, p, RULES[name], 40, every=[0, 7, 30], **asked)
    assert leaps == [6, 22, 9]
    slow = optim.train(ATTENTION, p, RULES[name], 40, **asked)
    assert len(leaps) == 3, "every step was recorded"
    np.testing.assert_array_equal(fast.params["W"], slow.params["W"])
    for key, rows in fast.history.items():
        np.testing.assert_array_equal(rows, slow.history[key][[0, 7, 30, 40]], err_msg=key)


def test_masked_tokens_and_saturation_leap_alike(leaps: list) -> None:
    p = problems.causal(n=2, T=3, d=8, trials=2, rng=0)
    fast = optim.train(ATTENTION, p, optim.NormalizedGD(30.0), 200, rng=1, every=200)
    assert leaps == [199]
    slow = optim.train(ATTENTION, p, optim.NormalizedGD(30.0), 200, rng=1)
    np.testing.assert_array_equal(fast.params["W"], slow.params["W"])


def test_long_leaps_are_cut(leaps: list) -> None:
    p = problems.sphere(n=3, T=3, d=4, trials=2, rng=0)
    optim.train(ATTENTION, p, optim.GD(0.1), 700, rng=1, every=700)
    assert max(leaps) == _walk.LEAP
    assert sum(leaps) + 3 == 700


@pytest.mark.parametrize("name", ["momentum", "adam", "averaged", "polyak", "decayed", "tolerance"])
def test_what_is_more_than_a_factor_is_asked_at_every_step(name: str, leaps: list) -> None:
    rule = {
        "momentum": optim.Momentum(0.1),
        "adam": optim.Adam(0.1),
        "averaged": optim.NormalizedGD(0.1, momentum=0.5, averaged=True),
        "polyak": optim.PolyakStep(max_step=1.0),
        "decayed": optim.DecayedNormalizedGD(0.1),
        "tolerance": optim.GD(0.1),
    }[name]
    p = problems.sphere(n=3, T=3, d=8, trials=2, rng=0)
    tol = 1e-9 if name == "tolerance" else None
    optim.train(ATTENTION, p, rule, 20, rng=1, every=20, tol=tol)
    assert leaps == []


@pytest.mark.parametrize("wraps", [False, True])
def test_a_step_in_the_place_of_another_is_asked_every_time(
    monkeypatch: pytest.MonkeyPatch, wraps: bool
) -> None:
    true, asked = optim.GD.step, [0]

    def step(rule: Any, params: Any, at: Any, state: Any) -> Any:
        asked[0] += 1
        return true(rule, params, at, state)

    monkeypatch.setattr(optim.GD, "step", functools.wraps(true)(step) if wraps else step)
    p = problems.sphere(n=3, T=3, d=8, trials=2, rng=0)
    optim.train(ATTENTION, p, optim.GD(0.1), 20, rng=1, every=20)
    assert asked == [20]


def test_a_subclass_with_a_step_of_its_own_is_asked_every_time(leaps: list) -> None:
    class Uphill(optim.GD):
        def step(self, params: Any, at: Any, state: Any) -> Any:
            return {k: p + self.step_size * at.gradient(k) for k, p in params.items()}, state

    p = problems.sphere(n=3, T=3, d=8, trials=2, rng=0)
    run = optim.train(ATTENTION, p, Uphill(1.0), 20, rng=1, every=20)
    assert leaps == []
    assert (run.history["loss"][-1] > run.history["loss"][0]).all()


@dataclass(frozen=True)
class Reckless(Plain):
    """Steps of length 1 over the gradient, infinite where the gradient is small."""

    least: float

    @optim.declare(linear=True, scaled=True, uses_loss=False, factor=lambda rule: rule.factor)
    def step(self, params: Any, at: Any, state: Any) -> Any:
        """One of them."""
        return {k: p - at.times(k, self.factor(at, k)) for k, p in params.items()}, state

    def factor(self, at: Any, name: str) -> Any:
        """1 or infinity."""
        return np.where(at.norm(name) * at.scale(name) < self.least, np.inf, at.scale(name))


def test_a_leap_out_of_the_finite_numbers_is_taken_back(leaps: list) -> None:
    p = problems.sphere(n=3, T=3, d=8, trials=40, min_gap=0.3, rng=0)
    slow = optim.train(ATTENTION, p, Reckless(0.027), 60, rng=1)
    assert leaps == []
    assert 0 < (slow.status == "diverged").sum() < 40
    first = int(np.isnan(slow.history["loss"]).any(axis=1).argmax())
    assert 10 < first < 55, "in the midst of a leap"
    marks = [0, 5, 55, 60]
    fast = optim.train(ATTENTION, p, Reckless(0.027), 60, rng=1, every=marks)
    assert 49 in leaps
    assert fast.status.tolist() == slow.status.tolist()
    assert fast.history["step"].tolist() == marks
    np.testing.assert_array_equal(fast.history["loss"], slow.history["loss"][marks])
    np.testing.assert_array_equal(fast.params["W"], slow.params["W"])


@pytest.mark.parametrize("spread", [1.0, 30.0, 2000.0])
@pytest.mark.parametrize("exact", [False, True])
def test_room_for_the_first_tokens_holds_their_coefficients(exact: bool, spread: float) -> None:
    rng = np.random.default_rng(0)
    logits, scores = spread * rng.normal(size=(4, 3, 20)), rng.normal(size=(4, 3, 20))
    whole = ATTENTION.coefficients(logits, scores, exact=exact)
    room = np.full((3, 3, 20), np.nan)
    found = ATTENTION.coefficients(logits, scores, exact=exact, out=room)
    np.testing.assert_array_equal(found.c[:3], whole.c[:3])
    beyond = exact and spread == 2000.0  # formed in logarithms, in arrays of its own
    assert (found.c is room) is not beyond
    np.testing.assert_array_equal(found.margins, whole.margins)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "correlation"])
@pytest.mark.parametrize("spread", [1.0, 30.0, 2000.0])
def test_coefficients_beside_a_token_are_those_of_all_tokens(spread: float, loss: str) -> None:
    model, rng = models.Attention(loss=loss), np.random.default_rng(0)
    logits, scores = spread * rng.normal(size=(4, 3, 20)), rng.normal(size=(4, 3, 20))
    logits[-1] = 0.0
    above, last = scores[:-1] - scores[-1], scores[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        found = model.coefficients_beside(logits[:-1], above, last, np.empty((3, 3, 20)))
    wanted = model.coefficients(logits, scores, exact=False)
    np.testing.assert_allclose(found.margins, wanted.margins, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.c, wanted.c[:-1], rtol=1e-9, atol=1e-15)
    assert np.abs(wanted.c).max() > 1e-3 or spread > 1.0


def test_who_needs_no_maximum_keeps_its_bits_beside_who_does() -> None:
    rng = np.random.default_rng(0)
    logits, above, last = rng.normal(size=(3, 2, 9)), rng.random((3, 2, 9)), rng.random((2, 9))
    alone = ATTENTION.coefficients_beside(logits, above, last, np.empty((3, 2, 9)))
    logits[0, 1, 4], logits[1, 0, 7] = 5000.0, 600.0
    with np.errstate(over="ignore"):
        found = ATTENTION.coefficients_beside(logits, above, last, np.empty((3, 2, 9)))
    np.testing.assert_allclose(found.margins[1, 4], above[0, 1, 4] + last[1, 4], rtol=1e-15)
    assert np.isfinite(found.c).all()
    same = np.ones((2, 9), bool)
    same[1, 4] = same[0, 7] = False
    np.testing.assert_array_equal(found.c[:, same], alone.c[:, same])
    np.testing.assert_array_equal(found.margins[same], alone.margins[same])


def test_scores_out_of_reach_of_exp_are_not_taken_beside_another() -> None:
    p = problems.sphere(n=3, T=3, d=8, trials=2, min_gap=0.1, rng=0)
    far = problems.TokenProblem(X=p.X, z=p.z, y=p.y, v=1e4 * p.v)
    rule = optim.NormalizedGD(0.1, recipe="paper")
    assert Logits(ATTENTION, p, rule).beside
    assert not Logits(ATTENTION, far, rule).beside
    assert np.isfinite(optim.train(ATTENTION, far, rule, 20, rng=1).params["W"]).all()


@pytest.mark.parametrize("every", [1, 40])
def test_coefficients_in_the_place_of_others_are_what_a_leap_uses(
    monkeypatch: pytest.MonkeyPatch, leaps: list, every: int
) -> None:
    p = problems.sphere(n=4, T=3, d=8, trials=3, rng=0)
    wanted = optim.train(ATTENTION, p, optim.GD(1.0), 40, rng=1, every=every)
    true = models.Attention.coefficients

    def doubled(self: Any, *logits_and_scores: Any, **asked: Any) -> Any:
        found = true(self, *logits_and_scores, **asked)
        return found._replace(c=2.0 * found.c)

    monkeypatch.setattr(models.Attention, "coefficients", doubled)
    found = optim.train(ATTENTION, p, optim.GD(0.5), 40, rng=1, every=every)
    assert leaps == ([] if every == 1 else [39, 39])
    np.testing.assert_array_equal(found.params["W"], wanted.params["W"])
