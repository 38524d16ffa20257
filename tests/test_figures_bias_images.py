"""Figures 6, 7 and 9 of the bias paper on real images: their parts, verdicts and kept runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnbook import figures, real
from attnbook.figures import Data
from attnbook.figures.bias import _images, _patches, _pen, _watched

RUNS = ("bias.6", "bias.7")


def zeros_and_ones(count: int, rng: np.random.Generator) -> real.data.Images:
    """Rings and bars with noise: what a 0 and a 1 come to in 28 by 28 pixels."""
    y = rng.integers(0, 2, count)
    up, across = np.mgrid[:28, :28] - 13.5
    ring, bar = np.abs(np.hypot(up, across) - 8) < 2, (np.abs(across) < 2) & (np.abs(up) < 9)
    x = np.where(y[:, None, None] == 0, ring, bar) + 0.2 * rng.random((count, 28, 28))
    return real.data.Images(x.astype(np.float32), y)


# -- Figure 9 --------------------------------------------------------------------------------------
def test_figure_9_the_digit_is_the_best_token() -> None:
    rng = np.random.default_rng(0)
    cell = figures.get("bias.9").settings("quick")
    problem, where, accuracy = _patches.digit_among_noise(zeros_and_ones(9000, rng), cell, rng)
    assert problem.X.shape == (30, 6, 196)
    assert (problem.optimal == where).all()
    assert np.allclose(np.linalg.norm(problem.X[np.arange(30), where], axis=-1), 1.0)
    noise = problem.X[np.arange(6) != where[:, None]]
    assert np.linalg.norm(noise, axis=-1).mean() == pytest.approx(cell["noise"], rel=0.05)
    assert accuracy == 1.0
    assert len({*where}) > 1


def test_figure_9_kept_run() -> None:
    """NGD is nearer to the max-margin direction than GD in every draw; the plain recipe stalls."""
    data = figures.kept("bias.9")
    assert (data["optimal"] >= 0.96).all(), "one digit in thirty may be told wrong"
    assert (data["accuracy"] > 0.98).all()
    last, (gd, ngd, plain) = _patches.ends(data)
    assert (last[:, ngd] > last[:, gd]).all()
    assert (last[:, ngd] > 0.9999).all()
    assert (last[:, plain] < 0.999).all()
    assert _patches.verdict(data).word == "as the paper says"
    kinds = [kind for kind, _ in _patches.rules(data.settings)]
    exact = [k for k, kind in enumerate(kinds) if kind == 1]
    rounded = [k for k, kind in enumerate(kinds) if kind == 2]
    before = data["attention"][:, exact] < 0.999
    both = [data["cosine"][:, k][before] for k in (exact, rounded)]
    assert before.sum() > 100
    assert np.abs(both[0] - both[1]).max() < 1e-6, "one rule until attention rounds to one"


def with_cosines(gd: float, ngd: float, spread: float) -> Data:
    data = figures.kept("bias.9")
    cosine = data["cosine"].copy()
    wave = spread * np.linspace(-1, 1, len(cosine))
    cosine[:, :4, -1] = (gd + wave)[:, None]
    cosine[:, 4:, -1] = ngd
    return replace(data, arrays={**data.arrays, "cosine": cosine})


@pytest.mark.parametrize(
    ("gd", "ngd", "spread", "word"),
    [
        (0.95, 0.995, 0.001, "as the paper says"),
        (0.9945, 0.995, 0.005, "undecided"),
        (0.999, 0.995, 0.0001, "otherwise"),
        (0.5, 0.995, 0.001, "otherwise"),
    ],
)
def test_figure_9_each_word(gd: float, ngd: float, spread: float, word: str) -> None:
    assert _patches.verdict(with_cosines(gd, ngd, spread)).word == word


# -- Figures 6 and 7 -------------------------------------------------------------------------------
def test_each_rule_has_the_paper_s_step_first() -> None:
    for name, cap in (("bias.6", 0.01), ("bias.7", 10.0)):
        settings = figures.get(name).settings("quick")
        cells = _images.cells(settings)
        assert len(cells) == 16
        found = [_images.rule_of(cell) for cell in cells[::4]]
        assert [rule.name for rule in found] == list(_images.RULES)
        assert [rule.step_size for rule in found] == [0.1, 0.001, 1.0, 0.001]
        assert found[1].cap == settings["sngd_cap"]
        assert found[2].cap == cap
        assert _images.rule_of(cells[5]).cap is None, "a step of our own is not capped"


def test_the_step_size_is_chosen_by_the_other_seeds() -> None:
    loss = np.zeros((1, 2, 3, 1))
    loss[0, 0, :, 0] = [0.0, 1.0, 1.0]  # without its first seed the second step size is better
    loss[0, 1, :, 0] = [0.9, 0.9, 0.9]
    assert _images.best(loss).tolist() == [0]
    assert _images.chosen_by_others(_images.ends(loss)).tolist() == [[0.9, 1.0, 1.0]]
    loss[0, 0, 1, 0] = np.nan  # a run that diverged never looks good
    assert _images.best(loss).tolist() == [1]


def with_losses(sngd: float, sps: float, adam: float) -> Data:
    """Five seeds of SGD about 1, the others at these distances, at every step size."""
    data = figures.kept("bias.6")
    wave = 0.01 * np.array([-1.0, 0.5, 0.0, 1.0, -0.5])
    loss = np.stack([1.0 + d + s * wave for d, s in ((0, 1), (sngd, -1), (sps, 2), (adam, -2))])
    whole = np.broadcast_to(loss[:, None, :, None], data["loss"].shape)
    return replace(data, arrays={**data.arrays, "loss": whole, "gaps": _images.gaps(whole)})


@pytest.mark.parametrize(
    ("distances", "word"),
    [
        ((0.3, -0.3, 0.0), "as the paper says"),
        ((0.3, -0.3, -0.3), "weaker"),
        ((0.3, 0.0, -0.3), "undecided"),
        ((0.0, -0.3, 0.0), "undecided"),
        ((0.3, 0.3, 0.0), "otherwise"),
        ((-0.3, -0.3, 0.0), "otherwise"),
    ],
)
def test_each_word(distances: tuple[float, float, float], word: str) -> None:
    found = _images.verdict(with_losses(*distances))
    assert found.word == word
    assert found.numbers.count("[") == 6


@pytest.mark.parametrize("name", RUNS)
def test_kept_runs(name: str) -> None:
    data = figures.kept(name)
    trials = data.settings["trials"]
    assert data["loss"].shape[:3] == (4, 4, trials)
    assert np.allclose(data["gaps"], _images.gaps(data["loss"]), atol=1e-5)
    assert (data["gaps"][:, 0] == 0).all(), "SGD is what the others are compared with"
    assert (data["gaps"][..., 1] <= data["gaps"][..., 0]).all()
    start = data["loss"][..., 0]
    assert (np.abs(start - np.log(10)) < 1.2).all(), (
        "a classifier of ten classes that knows nothing"
    )
    assert (data["keys"] >= 1.0).all()
    assert (data["rank"][:, :, :, 0] <= 4.0 + 1e-5).all(), "heads of four numbers"
    found = _images.verdict(data)
    assert found.word == "otherwise"
    assert f"{trials} seeds" in found.numbers


# -- the one that is watched -----------------------------------------------------------------------
def test_digits_of_our_own_hand() -> None:
    found = _pen.hand()
    assert found.shape == (6, 28, 28)
    assert found.min() == 0.0
    assert found.max() == 1.0
    grid = np.arange(28) + 0.5
    for digit in found:
        assert 60 < digit.sum() < 130, "about the ink of MNIST's digits"
        for axis in (0, 1):
            centre = (digit.sum(axis=axis) * grid).sum() / digit.sum()
            assert centre == pytest.approx(14.0, abs=0.2)
        assert digit[[0, -1]].sum() + digit[:, [0, -1]].sum() < 2.0


def test_watched_run() -> None:
    data = figures.kept("bias.vit")
    sums = data["maps"].astype(int).sum(axis=-1) / _images.LEVELS
    assert np.abs(sums - 1.0).max() < 0.07, "a row of attention, rounded to 127ths"
    assert (data["told"] >= 0).all()
    assert (data["told"] <= 1).all()
    assert (data["loss"][:, :, -1] < 0.5 * data["loss"][:, :, 0]).all()
    found = _watched.verdict(data)
    assert found.word == "weaker"
    assert np.array_equal(data["picture"], np.round(127 * _pen.hand()))


@pytest.mark.parametrize(
    ("norm", "keys", "sharp", "word"),
    [
        (1.2, 0.3, 0.95, "as the paper says"),
        (1.2, 0.9, 0.3, "weaker"),
        (0.9, 0.9, 0.3, "otherwise"),
        (1.2, 1.1, 0.3, "otherwise"),
        (1.0, 0.9, 0.3, "undecided"),
    ],
)
def test_watched_each_word(norm: float, keys: float, sharp: float, word: str) -> None:
    data = figures.kept("bias.vit")

    def to(name: str, factor: float) -> np.ndarray:
        way = np.linspace(1.0, factor, data[name].shape[2])
        drift = 1 + 1e-3 * np.arange(data[name].shape[1])[:, None] * (way - 1)
        return (np.ones(data[name].shape).T * (way * drift).T[None, None, :, :, None]).T

    changed = {"norm": to("norm", norm), "keys": to("keys", keys)}
    changed["sharp"] = np.full(data["sharp"].shape, sharp)
    assert _watched.verdict(replace(data, arrays={**data.arrays, **changed})).word == word


# -- the same numbers again, from the real archives ------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize("name", [*RUNS, "bias.vit"])
def test_first_run_again(name: str) -> None:
    """The first piece as `attnlab figure --store` computes it, against the kept curve."""
    figure, data = figures.get(name), figures.kept(name)
    found: dict[str, Any] = figure.work(figure.tasks(figure.settings("quick"), 0)[0])
    kept = data["loss"][0, 0, 0] if name in RUNS else data["loss"][0, 0]
    early = found["epoch"][0] <= 2.0
    assert np.allclose(found["loss"][0][early], kept[early], rtol=2e-3)
    assert found["loss"][0, -1] == pytest.approx(kept[-1], abs=0.25)


@pytest.mark.long
def test_figure_9_again() -> None:
    """One draw of five."""
    data, kept = figures.get("bias.9").run(trials=1), figures.kept("bias.9")
    assert np.allclose(data["cosine"][0], kept["cosine"][0], atol=2e-3)
    assert np.array_equal(data["step"][0], kept["step"][0])
