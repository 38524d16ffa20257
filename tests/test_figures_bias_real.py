"""Figures 1, 4 and 10 of the bias paper on real text: gradients, rules, verdicts, kept runs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from attnbook import figures, real
from attnbook.figures import Data
from attnbook.figures._interval import chosen_by_others
from attnbook.figures.bias import _layer as layer
from attnbook.figures.bias import _sentences, races, words

TEXTS = ["one good cat.", "bad and bad", "the two cats is not good", "a"]


@pytest.fixture(scope="module")
def small() -> tuple[real.models.Encoder, layer.Layer, layer.Params, layer.Features]:
    encoder = real.models.random(layers=2, heads=2, d=16, rng=0)
    data = layer.features(encoder, TEXTS, [1.0, -1.0, 1.0, -1.0], 12)
    top = layer.top(encoder)
    params = top.start(encoder, np.random.default_rng(1))
    params["u"] *= 20.0
    return encoder, top, params, data


def test_the_layer_is_the_encoders_own(small: Any) -> None:
    """Attention of its last layer, and what comes of the first token."""
    encoder, top, params, data = small
    at = top.forward(params, data)
    for k, text in enumerate(TEXTS):
        trace = encoder(text)
        T = len(trace.tokens)
        assert np.allclose(at["a"][k, :, :T], trace.attention[-1][:, 0], atol=1e-5)
        assert np.abs(at["a"][k, :, T:]).max(initial=0.0) == 0.0
        x, base = trace.hidden[-2], f"encoder.layer.{encoder.layers - 1}.attention"
        v = encoder.linear(x, f"{base}.self.value").reshape(T, encoder.heads, -1)
        mixed = np.einsum("ht,thm->hm", trace.attention[-1][:, 0], v).ravel()
        out = encoder.normal(x[0] + encoder.linear(mixed, f"{base}.output.dense"), f"{base}.output")
        assert np.allclose(at["told"][k], out, atol=1e-4)


@pytest.mark.parametrize("name", ["W_Q", "B_Q", "W_K", "W_V", "B_V", "W_O", "B_O", "u", "c"])
def test_gradients_are_differences_of_the_loss(small: Any, name: str) -> None:
    _, top, params, data = small
    exact = {key: one.astype(np.float64) for key, one in params.items()}
    fine = dataclasses.replace(data, X=data.X.astype(float), y=data.y.astype(float))
    top = layer.Layer(top.heads, top.gain.astype(float), top.shift.astype(float))
    _, grads = top.value_and_grad(exact, fine)
    way = np.random.default_rng(2).standard_normal(exact[name].shape)

    def loss(step: float) -> float:
        moved = {**exact, name: exact[name] + step * way}
        return float(np.logaddexp(0.0, -fine.y * top.forward(moved, fine)["f"]).mean())

    slope = (loss(1e-5) - loss(-1e-5)) / 2e-5
    assert float((grads[name] * way).sum()) == pytest.approx(slope, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize(
    ("rule", "size", "cap", "factor"),
    [
        ("SGD", 0.1, 0.0, 0.1),
        ("SNGD", 0.1, 1.0, 0.1 / 5.0),
        ("SNGD", 0.1, 0.01, 0.01),
        ("SPS", 9.0, 9.0, 2.0 / 50.0),
        ("SPS", 0.03, 0.03, 0.03),
    ],
)
def test_rules_by_hand(rule: str, size: float, cap: float, factor: float) -> None:
    """A gradient of norm 5 over two parameters, and a loss of 2."""
    grads = {"a": np.array([3.0], np.float32), "b": np.array([0.0, 4.0], np.float32)}
    params = {"a": np.zeros(1, np.float32), "b": np.zeros(2, np.float32)}
    layer.stepper(rule, size, cap)(params, grads, 2.0)
    assert params["a"][0] == pytest.approx(-3.0 * factor, rel=1e-6)
    assert params["b"] == pytest.approx([0.0, -4.0 * factor], rel=1e-6)


def test_adam_by_hand() -> None:
    """The first step is the size in every coordinate; the second follows the formulas."""
    step = layer.stepper("Adam", 0.01, 0.0)
    params = {"a": np.zeros(2, np.float32)}
    step(params, {"a": np.array([3.0, -0.5], np.float32)}, 0.0)
    assert params["a"] == pytest.approx([-0.01, 0.01], rel=1e-4)
    step(params, {"a": np.array([1.0, 0.0], np.float32)}, 0.0)
    m = (0.9 * 0.1 * 3.0 + 0.1) / (1 - 0.81)
    s = (0.999 * 0.001 * 9.0 + 0.001) / (1 - 0.999**2)
    assert params["a"][0] == pytest.approx(-0.01 - 0.01 * m / np.sqrt(s), rel=1e-4)


def test_a_training_learns_and_one_that_runs_away_is_told(small: Any) -> None:
    encoder, top, _, data = small
    many = layer.Features(*(np.concatenate([one] * 16) for one in (data.X, data.mask, data.y)))
    start = top.start(encoder, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    rows = layer.train(top, dict(start), many, data, ("Adam", 0.01, 0.0), 8, rng, batch=16)
    assert rows.shape == (4, 17)
    assert rows[0, -1] < 0.5 * rows[0, 0]
    huge = {key: one.copy() for key, one in start.items()}
    rng = np.random.default_rng(0)
    rows = layer.train(top, huge, many, data, ("SGD", 1e30, 0.0), 4, rng, batch=16)
    assert np.isfinite(rows[:, 0]).all()
    assert np.isnan(rows[:, -1]).all()


# -- verdicts --------------------------------------------------------------------------------------
def made_up(printed: tuple[float, ...], tuned: tuple[float, ...]) -> Data:
    """A run whose rules end at these losses, with a little noise between draws."""
    noise = 0.01 * np.random.default_rng(0).standard_normal((4, 3, 5))
    ends = np.array([printed, tuned, [1.0] * 4]).T[:, :, None] + noise
    arrays = {"loss": np.repeat(ends[..., None], 3, axis=-1), "times": np.arange(3) / 2}
    return Data("bias.1", "quick", 0, {}, arrays)


@pytest.mark.parametrize(
    ("printed", "tuned", "word"),
    [
        ((0.7, 0.5, 0.5, 0.4), (0.5, 0.3, 0.3, 0.2), "as the paper says"),
        ((0.7, 0.5, 0.5, 0.4), (0.3, 0.3, 0.3, 0.2), "weaker"),
        ((0.7, 0.7, 0.5, 0.4), (0.3, 0.3, 0.3, 0.2), "undecided"),
        ((0.5, 0.7, 0.4, 0.4), (0.3, 0.3, 0.3, 0.2), "otherwise"),
    ],
)
def test_verdicts_follow_the_numbers(printed: Any, tuned: Any, word: str) -> None:
    data = made_up(printed, tuned)
    assert (races.best(data) == 1).all()
    assert races.verdict(data).word == word


@pytest.mark.parametrize(
    ("share", "spread", "word"),
    [(0.8, 0.01, "as the paper says"), (0.5, 0.2, "undecided"), (0.2, 0.01, "otherwise")],
)
def test_words_of_figure_10(share: float, spread: float, word: str) -> None:
    data = figures.kept("bias.10")
    below = data["below"].copy()
    wave = spread * np.linspace(-1, 1, len(below))
    below[:, 0, 0] = (share + wave)[:, None]
    changed = dataclasses.replace(data, arrays={**data.arrays, "below": below})
    assert figures.get("bias.10").verdict(changed).word == word  # type: ignore[misc]


def test_who_has_more_sizes_to_choose_from_gains_nothing_by_it() -> None:
    """All sizes are equally good: noise decides, and the choice of others is fair."""
    rng = np.random.default_rng(0)
    ends = rng.standard_normal((2000, 20, 5))
    flattered = np.take_along_axis(
        ends, ends.mean(axis=-1).argmin(axis=1)[:, None, None], axis=1
    ).mean()
    assert flattered < -0.7
    assert abs(chosen_by_others(ends).mean()) < 0.05


def test_a_run_that_diverges_is_never_the_best() -> None:
    data = made_up((0.7, 0.5, 0.5, 0.4), (0.5, 0.3, 0.3, 0.2))
    data.arrays["loss"][0, 1] = np.nan
    assert races.best(data)[0] == 2


@pytest.mark.parametrize("name", ["bias.1", "bias.4", "bias.10"])
def test_kept_runs_have_a_verdict_and_no_texts(name: str) -> None:
    figure, data = figures.get(name), figures.kept(name)
    verdict = figure.verdict(data)  # type: ignore[misc]
    assert "[" in verdict.numbers
    assert all(array.dtype.kind in "fi" for array in data.arrays.values())


@pytest.mark.parametrize("name", ["bias.1", "bias.4"])
def test_each_grid_holds_the_best_of_its_rule(name: str) -> None:
    """A best at the edge of its grid would not be a fair search: only Adam's and SNGD's may."""
    data = figures.kept(name)
    ends = races.ends(data)[:, 1:].mean(axis=-1)
    for rule, row in zip(races.RULES, ends, strict=True):
        assert 0 < row.argmin() < len(row) - 1, rule


# -- words -----------------------------------------------------------------------------------------
def test_cosines_are_counted() -> None:
    encoder = real.models.random(d=16, rng=0)
    ids = [words.words(encoder, text, 16) for text in ("one two three", "four one")]
    found = words.histogram(encoder, ids)
    E = words.table(encoder)
    within = [E[a] @ E[b] for one in ids for k, a in enumerate(one) for b in one[k + 1 :]]
    across = np.concatenate([(E[ids[0]] @ E[ids[1]].T).ravel()] * 2)
    assert found["pairs"].tolist() == [len(within), len(across)]
    assert found["counts"].sum(axis=1).tolist() == [len(within), len(across)]
    assert found["mean"] == pytest.approx([np.mean(within), np.mean(across)])
    half = int(np.abs(words.THRESHOLDS - 0.3).argmin())
    shares = [(np.abs(one) <= words.THRESHOLDS[half]).mean() for one in (within, across)]
    assert found["below"][:, half] == pytest.approx(shares)
    assert found["below"][:, -1] == pytest.approx(1.0)


@pytest.mark.parametrize("world", words.WORLDS)
def test_each_world_is_what_its_name_says(world: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 4, 32)) + 1.0
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    y, v = np.array([1.0, -1.0, 1.0]), rng.standard_normal(32)
    found = words.problem(world, X, y, v, rng)
    own = y[:, None] * (X @ v)
    assert (found.scores.argmax(axis=1) == own.argmax(axis=1)).all()
    flat = found.X.reshape(12, 32)
    off = np.abs(flat @ flat.T - np.eye(12)).max()
    assert (off < 1e-12) == (world[0] == "orthogonal")
    if world[1] == "equal":
        assert np.sort(found.scores, axis=1) == pytest.approx(np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)))
    else:
        assert found.scores == pytest.approx(own / own.max(axis=1).mean())


def test_a_share_of_twenty() -> None:
    low, high = words.wilson(19, 20)
    assert (low, high) == pytest.approx((0.764, 0.991), abs=0.001)


# -- the real thing --------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize("name", ["bias.1", "bias.4"])
def test_a_kept_race_is_found_again(name: str) -> None:
    """One draw of two cells; runs drift apart by rounding, so their first epoch is compared."""
    figure, data = figures.get(name), figures.kept(name)
    cells = _sentences.cells(figure.settings())
    for rule, size in ((0, 3), (3, 2)):
        cell = {**cells[rule * data["sizes"].shape[1] + size], "epochs": 1}
        found = _sentences.compute(cell, 1, np.random.default_rng(0))["rows"][0, 0]
        assert found == pytest.approx(data["loss"][rule, size, 0, :3], rel=0.03)


@pytest.mark.long
def test_kept_cosines_are_found_again() -> None:
    """The first draw of texts, whole."""
    data, found = figures.kept("bias.10"), figures.get("bias.10").run(trials=1)
    inner = found["below"][0][..., :-1], data["below"][0][..., :-1]
    assert inner[0] == pytest.approx(inner[1], abs=1e-4)
    assert (found["below"][..., -1] == 1.0).all(), (
        "no cosine is larger than 1, whatever rounding says"
    )
    for world in range(len(words.WORLDS)):
        ends = [one["attention"][0, world, ..., -1].astype(float) for one in (found, data)]
        assert ((ends[0].min(axis=-1) > 0.5) == (ends[1].min(axis=-1) > 0.5)).mean() >= 0.8
