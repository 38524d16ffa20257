"""Figures of the encoder paper on real data: small runs on data made here, and the kept ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnbook import figures, real
from attnbook.figures._interval import Interval
from attnbook.figures.encoder import _images, _tails

TRAINED = ("encoder.4", "encoder.7", "encoder.8")
IDS = ("encoder.1", *TRAINED, "encoder.6")


# -- without PyTorch and without the data ----------------------------------------------------------
@pytest.mark.parametrize("name", IDS)
def test_a_kept_run_has_a_verdict_and_a_picture(name: str) -> None:
    figure, data = figures.get(name), figures.kept(name)
    verdict = figure.verdict(data)  # type: ignore[misc]
    assert str(len(data[next(iter(data.arrays))])) or verdict
    assert "[" in verdict.numbers
    assert "nan" not in verdict.numbers + figure.alt(data)
    assert figure.stand_in
    figure.draw(data)


def test_the_least_exponent_allows_each_threshold() -> None:
    t, share = np.array([0.2, 0.5, 0.9]), np.array([0.99, 0.6, 0.2])
    c = _tails.exponent(t, share)
    assert c[2] == 0  # exp(-t^c) is above 1/e at every t below 1
    np.testing.assert_allclose(np.exp(-(t[:2] ** c[:2])), share[:2])
    assert _tails.exponent(t, np.array([1.0, 0.6, 0.2]))[0] == np.inf


def interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high)


def test_words_of_gaps() -> None:
    judge = _images.judge
    assert judge(interval(0.2, 0.4), interval(-0.1, 0.1)) == "as the paper says"
    assert judge(interval(0.2, 0.4), interval(0.2, 0.4)) == "weaker"
    assert judge(interval(-0.1, 0.4)) == "weaker"
    assert judge(interval(-0.4, 0.1)) == "not at this size"
    assert judge(interval(-0.4, -0.1)) == "otherwise"


def made(seed: int, n: int = 400) -> real.data.Images:
    """Pictures whose class shows in one of their patches."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, n)
    x = rng.random((n, 28, 28)).astype(np.float32) * np.float32(0.3)
    x[np.arange(n), 0, y] += 1
    return real.data.Images(x, y)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_images, "given", lambda _, part: made(int(part == "test")))
    monkeypatch.setattr(_tails, "given", lambda _, part: made(int(part == "test")))


@pytest.mark.usefixtures("small")
def test_the_tail_of_pictures() -> None:
    data = figures.get("encoder.6").run(samples=20, trials=2)
    assert data["counts"].sum() == 2 * 20 * 19 / 2
    assert (np.diff(data["share"]) <= 0).all()
    assert (data["least"] <= data["t"][:, 0]).all()
    again = figures.get("encoder.6").run(samples=20, trials=2)
    for name, one in data.arrays.items():
        np.testing.assert_array_equal(one, again[name])


# -- with PyTorch ----------------------------------------------------------------------------------
SMALL: dict[str, Any] = {
    "n": 100,
    "held": 50,
    "epochs": 1,
    "batch": 20,
    "width": (8, 16),
    "trials": 2,
}


@pytest.mark.long
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", TRAINED)
def test_small_runs(name: str) -> None:
    figure = figures.get(name)
    more = {"every": 1} if "every" in figure.quick else {}
    if name == "encoder.4":
        more["watched"] = 4
    data = figure.run(**SMALL, **more)
    for array in data.arrays.values():
        assert np.isfinite(array).all()
    figure.draw(data)
    assert "seeds" in figure.verdict(data).numbers  # type: ignore[misc]
    if name == "encoder.4":
        assert data["maps"].shape == (2, 2, 6, 3, 16, 16)
        np.testing.assert_allclose(data["maps"].astype(float).sum(-1), 1, atol=0.01)
        # one start for both scalings: 1/width has the W of width^-1/2 over the root of the width
        ratio = data["W_norm"][:, :, 0, 0] / data["W_norm"][:, :, 1, 0]
        np.testing.assert_allclose(ratio, np.sqrt([[8, 8], [16, 16]]), rtol=1e-5)
        assert (data["attention_moved"][..., 0] == 0).all()


@pytest.mark.long
@pytest.mark.parametrize("name", TRAINED)
def test_the_kept_run_is_found_again(name: str) -> None:
    """The first seed of the narrow networks on the real data, but for what kernels change."""
    kept = figures.kept(name)
    data = figures.get(name).run(width=kept.settings["width"][:1], trials=1)
    curve = {"encoder.4": "batch_loss", "encoder.7": "held_accuracy", "encoder.8": "loss"}[name]
    old, new = kept[curve][0, 0], data[curve][0, 0]
    np.testing.assert_allclose(new[:, :2], old[:, :2], rtol=0.02, atol=0.01)
    np.testing.assert_allclose(new.mean(axis=1), old.mean(axis=1), rtol=0.1)


@pytest.mark.long
@pytest.mark.parametrize("name", ["encoder.1", "encoder.6"])
def test_the_kept_tail_is_found_again(name: str) -> None:
    kept = figures.kept(name)
    data = figures.get(name).run(trials=2)
    np.testing.assert_allclose(data["t"], kept["t"][:2], rtol=1e-5)
    np.testing.assert_allclose(data["share"], kept["share"][:2], atol=1e-3)
