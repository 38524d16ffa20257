"""Heads of a real model beside their SVMs: what is kept, what is drawn, what it comes to."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from attnbook import figures, real
from attnbook.figures import Data
from attnbook.figures.svm import _real

HEADS, LAYERS = _real.HEADS, 2
WORDS = ["one", "two", "three", "four", "the", "a", "and", "is", "not", "good", "bad"]
SMALL = {"layer": (0, 1), "sentences": 6, "length": 5, "draws": 2}


@pytest.fixture(scope="module")
def small() -> Data:
    """The same measurement on a model of MiniLM's shape that learned nothing."""
    rng = np.random.default_rng(0)
    texts = tuple(" ".join(rng.choice(WORDS, 7)) for _ in range(30))
    model = real.models.random(layers=LAYERS, heads=HEADS, d=4 * HEADS, rng=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_real, "minilm", lambda: model)
        patch.setattr(_real, "texts", SimpleNamespace(texts=lambda _: SimpleNamespace(texts=texts)))
        return figures.get("svm.real").run(seed=1, **SMALL)


def test_shapes_are_those_described(small: Data) -> None:
    shown = len(_real.SENTENCES)
    assert small["own"].shape == (LAYERS, 1, HEADS, 4)
    assert small["random"].shape == small["other"].shape == (LAYERS, 1, HEADS, 2, 4)
    assert small["maps"].shape == (LAYERS, HEADS, 2, shown, 16, 16)
    assert small["cosines"].shape == (LAYERS, shown, 16, 16)
    for name in ("own", "random", "other", "taught", "agree", "special", "offsets"):
        assert (np.abs(small[name]) <= 1 + 1e-9).all(), name
    assert (small["own"][..., 0] <= small["own"][..., 2] + 1e-9).all(), "a part is no closer"


def test_a_byte_keeps_an_attention_weight(small: Data) -> None:
    model = real.models.random(layers=LAYERS, heads=HEADS, d=4 * HEADS, rng=0)
    for k, sentence in enumerate(_real.SENTENCES):
        trace = model(sentence, _real.WINDOW)
        assert _real.words(small["tokens"][k]) == [one[: _real.LETTERS] for one in trace.tokens]
        T = len(trace.tokens)
        weights = (small["maps"][1, 3, 0, k, :T, :T] / 127.0) ** 2
        np.testing.assert_allclose(weights, trace.attention[1, 3], atol=0.008)
        cosines = small["cosines"][0, k, :T, :T] / 127.0
        x = trace.hidden[0] / np.linalg.norm(trace.hidden[0], axis=1, keepdims=True)
        np.testing.assert_allclose(cosines, x @ x.T, atol=0.0041)


def test_a_head_attends_as_its_matrix_says() -> None:
    model = real.models.random(layers=LAYERS, heads=HEADS, d=4 * HEADS, rng=0)
    trace = model("one two three good", _real.WINDOW)
    found = _real.attended(model.head(1, 5).W, trace.hidden[1])
    np.testing.assert_allclose(found, trace.attention[1, 5], atol=1e-5)


def test_the_verdict_follows_the_numbers(small: Data) -> None:
    def shifted(by: float, follower: float = 0.2) -> Data:
        own = small["random"].mean(-2) + by
        taught = np.broadcast_to(small["taught_random"].mean(-2)[..., None, :] + follower,
                                 small["taught"].shape)  # fmt: skip
        arrays = {**small.arrays, "own": own, "other": small["random"], "taught": taught}
        return Data(small.figure, small.preset, small.seed, small.settings, arrays)

    told = _real.verdict(shifted(0.05))
    assert told.word == "weaker"
    assert told.numbers.startswith("24 heads, 6 sentences: inside the span ")
    far, behind = (_real.verdict(shifted(by)).numbers for by in (0.9, -0.9))
    assert "24 heads are ahead of all their 4 controls and 0 behind them all, where 5" in far
    assert " 0 heads are ahead of all their 4 controls and 24 behind them all" in behind
    assert _real.verdict(shifted(-0.1)).word == "otherwise"
    assert _real.verdict(shifted(-0.1, follower=-0.2)).word == "undecided"
    assert _real.verdict(shifted(0.15)).word == "as the paper says"
    canvas = figures.get("svm.real").draw(small)
    assert canvas.get_label().startswith("24 heads: cosine with the SVM")


def test_what_is_kept_shows_no_excess_in_the_mean() -> None:
    run = figures.kept("svm.real")
    found = _real.compared(run)
    assert _real.verdict(run).word == "otherwise"
    assert abs((found["own"] - found["random"]).mean()) < 0.02
    luck = found["first"].size / 7
    assert 1.5 * luck < found["first"].sum() < 2.5 * luck
    assert 1.5 * luck < found["last"].sum() < 2.5 * luck
    assert found["first"][[1, 2]].sum() > found["first"].sum() / 2, "most are in layers 1 and 2"
    own, others = run["taught"][..., 2].mean(axis=(0, 1))
    assert own > 0.99
    assert others < 0.6, "what was taught elsewhere is hardly closer than a head of MiniLM"
    assert others > run["taught_random"][..., 2].mean() + 0.05, "but closer than its controls"
    special = run["special"].mean()
    assert special > 1.5 * run["own"][..., 3].mean(), "a special token takes most, where it may"
    for words, sentence in zip(run["tokens"], _real.SENTENCES, strict=True):
        assert _real.words(words)[0] == "[CLS]"
        assert _real.words(words)[-1] == "[SEP]", f"cut: {sentence}"


@pytest.mark.long
def test_a_layer_of_the_kept_run_is_found_again() -> None:
    """Layer 1 alone draws what it drew among the others."""
    kept, again = figures.kept("svm.real"), figures.get("svm.real").run(layer=(1,))
    for name in ("own", "random", "other"):
        gap = np.abs(again[name][0] - kept[name][1])[..., 2]
        assert np.median(gap) < 1e-3, name  # a tie may fall otherwise on another processor
        assert gap.mean() < 0.01, name
    assert np.abs(again["maps"][0].astype(int) - kept["maps"][1]).max() <= 1
