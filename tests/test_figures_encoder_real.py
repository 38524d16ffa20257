"""Figures of the encoder paper on real data: small runs on data made here, and the kept ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnbook import figures, real
from attnbook.figures import Data
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
    assert judge(interval(-0.1, 0.4)) == "undecided"
    assert judge(interval(-0.4, 0.1)) == "undecided"
    assert judge(interval(-0.4, -0.1)) == "otherwise"


PLANTED = {
    "exponential": (lambda rng: 0.04 + 0.02 * rng.exponential(size=4950), "as the paper says"),
    "half-normal": (lambda rng: 0.04 + 0.02 * np.abs(rng.normal(size=4950)), "otherwise"),
    "normal": (lambda rng: 0.5 + 0.05 * rng.normal(size=4950), "otherwise"),
    "uniform": (lambda rng: rng.random(4950), "otherwise"),
    "beta": (lambda rng: rng.beta(2, 5, size=4950), "otherwise"),
    "heavy": (lambda rng: 0.01 * rng.lognormal(sigma=1.2, size=4950).clip(max=99), "otherwise"),
    "a few": (lambda rng: 0.04 + 0.02 * rng.exponential(size=60), "undecided"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_figures_1_and_6_can_come_out_otherwise(name: str) -> None:
    draw, word = PLANTED[name]
    rng, edges = np.random.default_rng(0), np.linspace(0.0, 1.0, _tails.BINS + 1)
    values = [draw(rng) for _ in range(10)]
    counts = np.array([np.histogram(one, edges)[0] for one in values], float)
    for one, row in zip(values, counts, strict=True):
        assert _tails.spread_above_median(row) == pytest.approx(
            real.probe.spread_above_median(one), rel=0.15
        )
    data = figures.kept("encoder.1")
    found = _tails.verdict(replace(data, arrays={**data.arrays, "counts": counts}))
    assert found.word == word
    told = {"heavy": "is heavier", "exponential": "is exponential", "a few": "may be"}
    assert f"the tail {told.get(name, 'falls faster')}" in found.numbers


def ends_apart(name: str, key: str, narrow: float, wide: float, spread: float) -> Data:
    """A kept run whose scalings end so far apart, narrow and wide, with noise between seeds."""
    data = figures.kept(name)
    array = np.zeros(data[key].shape)
    noise = spread * np.linspace(-1, 1, array.shape[1])
    for place, gap in ((0, narrow), (-1, wide)):
        part = array[place, :, 1]
        part += (gap + noise).reshape(-1, *(1,) * (part.ndim - 1))
    return replace(data, arrays={**data.arrays, key: array})


@pytest.mark.parametrize(
    ("name", "key", "sign"),
    [("encoder.4", "last", 1.0), ("encoder.7", "held_accuracy", -1.0), ("encoder.8", "error", 1.0)],
)
@pytest.mark.parametrize(
    ("narrow", "wide", "spread", "word"),
    [
        (0.0, 0.3, 0.01, "as the paper says"),
        (0.0, 0.05, 0.5, "undecided"),
        (0.0, -0.05, 0.5, "undecided"),
        (0.0, -0.3, 0.01, "otherwise"),
    ],
)
def test_scalings_can_come_out_otherwise(
    name: str, key: str, sign: float, narrow: float, wide: float, spread: float, word: str
) -> None:
    figure = figures.get(name)
    data = ends_apart(name, key, sign * narrow, sign * wide, spread)
    assert figure.verdict(data).word == word  # type: ignore[misc]


def test_what_is_as_large_where_the_layer_is_narrow_is_weaker() -> None:
    for name, key in (("encoder.4", "last"), ("encoder.8", "error")):
        data = ends_apart(name, key, 0.3, 0.3, 0.01)
        assert figures.get(name).verdict(data).word == "weaker"  # type: ignore[misc]


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
