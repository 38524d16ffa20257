"""Heads on real words: features, heads that share parameters, training, and multihead.6."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from attnbook import figures, real, widgets
from attnbook.figures.multihead import _sentences
from attnlab import models, optim, problems
from attnlab.problems import SequenceProblem

WORDS = ("one", "two", "three", "four", "the", "a", "and", "is", "not", "good", "bad")


@pytest.fixture
def reader() -> real.models.Encoder:
    return real.models.random(layers=3, d=24, rng=0)


def texts(count: int) -> real.data.Texts:
    draw = np.random.default_rng(3)
    rows = [" ".join(draw.choice(WORDS, 18)) for _ in range(count)]
    return real.data.Texts(tuple(rows), tuple(float(row.count("good") > 1) for row in rows))


def some(n: int = 30, T: int = 4, d: int = 7) -> SequenceProblem:
    draw = np.random.default_rng(1)
    X = draw.standard_normal((n, T, d)) / d**0.5
    return SequenceProblem(X, np.sign(X[:, 0, 0] + 0.1))


# -- sentences --------------------------------------------------------------------------------
def test_words_are_spread_evenly_and_cls_is_last(reader: real.models.Encoder) -> None:
    text = "one two three four good bad the"
    found = real.heads.words(reader, text, T=4, layers=2)
    hidden = reader(text, layers=2).hidden[2]
    assert found is not None
    np.testing.assert_array_equal(found, hidden[[1, 3, 5, 7, 0]])
    np.testing.assert_array_equal(
        real.heads.words(reader, text, T=4, layers=0),
        reader(text, layers=1).hidden[0][[1, 3, 5, 7, 0]],
    )


def test_a_split_has_unit_tokens_and_nothing_of_the_test(reader: real.models.Encoder) -> None:
    found = real.heads.sentences(reader, texts(60), count=50, T=6, layers=1, rng=0)
    assert found.X.shape == (50, 7, 24)
    parts = found.split(30, 20, d=5, rng=2)
    assert parts.train.X.shape == (30, 7, 5)
    assert parts.test.X.shape == (20, 7, 5)
    flat = parts.train.X.reshape(-1, 5)
    np.testing.assert_allclose(flat.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.cov(flat.T), np.eye(5) / 5, atol=1e-6)
    assert 0.0 < parts.share < 1.0
    # what is tested on has no word in the centre and the directions
    loud = real.heads.Sentences(found.X.copy(), found.y)
    again = loud.split(30, 20, d=5, rng=2)
    place = next(k for k in range(50) if np.allclose(again(found.X[k]), again.test.X[0], atol=1e-9))
    loud.X[place] *= 100.0
    np.testing.assert_allclose(loud.split(30, 20, d=5, rng=2).train.X, parts.train.X, atol=1e-9)
    assert set(np.unique(found.y)) <= {-1.0, 1.0}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.split(30, 30, d=5, rng=0), "n: expected n + test at most the 50 sentences"),
        (lambda s: s.split(30, 20, d=25, rng=0), "d: expected at most the encoder's 24, got 25"),
        (
            lambda _: real.heads.fit(
                models.MultiHead(2), some(), some(), optim.GD(1.0), epochs=1, batch=31, rng=0
            ),
            "batch: expected at most the 30 sentences, got 31",
        ),
        (lambda _: real.heads.width(0, d=3), "heads: expected"),
        (
            lambda _: real.heads.Cut(2, 9).directions(7),
            "width: expected at most the tokens' 7, got 9",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(reader: real.models.Encoder, call: Any, says: str) -> None:
    found = real.heads.Sentences(np.ones((50, 7, 24)), np.ones(50))
    with pytest.raises(ValueError, match=re.escape(says)):
        call(found)


def test_too_few_texts_and_other_labels_are_refused(reader: real.models.Encoder) -> None:
    with pytest.raises(ValueError, match=r"texts: expected 9 of 30 words or more, got 0"):
        real.heads.sentences(reader, texts(10), count=9, T=30, layers=1, rng=0)
    given = texts(10)
    rated = real.data.Texts(given.texts, (0.5,) * 10)
    with pytest.raises(ValueError, match=r"texts: expected labels 0 and 1"):
        real.heads.sentences(reader, rated, count=9, T=3, layers=1, rng=0)


# -- heads that share one head's parameters ---------------------------------------------------
@pytest.mark.parametrize("output", ["last", "full", "pooled"])
def test_gradients_of_cut_heads_are_differences(output: str) -> None:
    problem, model = some(n=6), real.heads.Cut(3, 4, output=output)
    params = real.heads.start(model, problem, rng=0)
    loss, grads = model.value_and_grad(params, problem)
    draw = np.random.default_rng(5)
    for name in params:
        way = draw.standard_normal(params[name].shape)
        ends = [
            model.value_and_grad({**params, name: params[name] + h * way}, problem)[0]
            for h in (1e-5, -1e-5)
        ]
        assert (grads[name] * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)
    assert loss == pytest.approx(
        np.logaddexp(0.0, -problem.y * model.forward(params, problem)).mean()
    )
    assert model.attention(params, problem).sum(axis=-1) == pytest.approx(1.0)


def test_cut_heads_have_one_heads_parameters() -> None:
    for heads in (1, 2, 4, 8, 16, 32):
        size = real.heads.width(heads, d=32)
        assert heads * size * (size + 1) == pytest.approx(32 * 33, rel=0.12)
    assert real.heads.width(1, d=20, rows=9) == 20
    columns = real.heads.Cut(4, 6).directions(11)
    np.testing.assert_allclose(
        columns.swapaxes(-1, -2) @ columns,
        np.broadcast_to(np.eye(6) * 11 / 6, (4, 6, 6)),
        atol=1e-9,
    )


def test_copies_stay_equal_and_are_one_head_with_a_longer_step() -> None:
    """Descent on H copies: the readout's step as for one head, that of W shorter by H."""
    problem, heads, eta = some(), 4, 0.5
    many, one = (models.MultiHead(heads=H, output="last") for H in (heads, 1))
    params = real.heads.start(many, problem, rng=3, copies=True)
    single = {"U": heads**0.5 * params["U"][:1], "W": params["W"][:1]}
    for _ in range(20):
        _, grads = many.value_and_grad(params, problem)
        params = {name: params[name] - eta * grads[name] for name in params}
        _, grads = one.value_and_grad(single, problem)
        single = {
            "U": single["U"] - eta * grads["U"],
            "W": single["W"] - eta / heads * grads["W"],
        }
    assert bool((params["W"] == params["W"][:1]).all())
    np.testing.assert_allclose(
        many.forward(params, problem), one.forward(single, problem), rtol=1e-9
    )


def test_training_is_the_same_by_seed_and_counts_its_passes() -> None:
    problem = problems.tokenized_mixture(n=50, rng=0)
    model, rule = models.MultiHead(heads=2, output="last"), optim.Adam(0.03)
    runs = [
        real.heads.fit(model, problem, problem, rule, epochs=3, batch=16, measured=3, rng=seed)
        for seed in (4, 4, 5)
    ]
    assert np.array_equal(runs[0].train, runs[1].train)
    assert not np.array_equal(runs[0].train, runs[2].train)
    np.testing.assert_allclose(runs[0].epoch, np.arange(10) / 3)
    assert runs[0].train[-1] < runs[0].train[0]
    np.testing.assert_array_equal(runs[0].train, runs[0].test)
    right = (problem.y * model.forward(runs[0].params, problem) > 0).mean()
    assert runs[0].accuracy[-1] == pytest.approx(right)


# -- the figure -------------------------------------------------------------------------------
@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, reader: real.models.Encoder) -> None:
    _sentences.read.cache_clear()
    monkeypatch.setattr(_sentences.real.models, "minilm", lambda: reader)
    monkeypatch.setattr(_sentences.real.data, "texts", lambda _: texts(120))


SMALL: dict[str, Any] = {
    "n": 64, "test_n": 32, "d": 8, "heads": (1, 3), "rates": (0.003, 0.03), "trials": 2,
}  # fmt: skip


def test_the_figure_runs_on_any_encoder(small: None) -> None:
    figure = figures.get("multihead.6")
    data = figure.run(**SMALL)
    _sentences.read.cache_clear()
    assert data["train"].shape == (2, 3, 2, 2, 11)
    assert data["look"].shape == (2, 2, 2, 3, 17)
    np.testing.assert_array_equal(data["parameters"][:, 0], [72] * 3)
    np.testing.assert_array_equal(data["parameters"][:2, 1], [216] * 2)
    np.testing.assert_allclose(data["look"].sum(axis=-1), 1.0)
    np.testing.assert_array_equal(data["train"][:, 0, :, 0], data["train"][:, 1, :, 0])
    copies = data["look"][:, 1]
    np.testing.assert_array_equal(copies, np.broadcast_to(copies[:, :, :1], copies.shape))
    assert not np.allclose(data["look"][:, 0, 0, 0], data["look"][:, 0, 0, 1])
    assert figure.verdict is not None
    assert "2 seeds" in figure.verdict(data).numbers
    assert figure.draw(data).get_axes()
    assert "Training loss after 5 passes" in figure.alt(data)


def planted(
    differ: float, tuned: float, cut: float, copies: float = 0.2, noise: float = 0.002
) -> figures.Data:
    """Runs whose gains are known: at one rate, tuned, with one head's parameters, of copies."""
    figure = figures.get("multihead.6")
    settings = figure.settings(heads=(1, 4), rates=(0.003, 0.03), rate=0.003, trials=4)
    ends = np.full((4, 3, 2, 2), 0.6)
    ends[:, 0, :, 1] -= [differ, tuned]
    ends[:, 1, 0, 1] -= copies * differ
    ends[:, 2, :, 1] -= cut
    ends[:, :, 1, 0] -= 1e-6  # the second rate is the best one of one head
    ends += noise * np.linspace(-1, 1, 4)[:, None, None, None] * np.array([0, 1])
    train = np.stack([np.full_like(ends, 0.7), ends], axis=-1)
    arrays = {
        "train": train, "test": train, "accuracy": 1 - train,
        "heads": np.array([1, 4]), "rate": np.array([0.003, 0.03]), "epoch": np.array([0.0, 5.0]),
    }  # fmt: skip
    return figures.Data("multihead.6", "quick", 0, settings, arrays)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ((0.06, 0.08, 0.03), "as the paper says"),
        ((0.06, 0.08, 0.0), "weaker"),
        ((0.06, 0.08, -0.03), "weaker"),
        ((0.06, 0.08, 0.03, 0.8), "weaker"),
        ((0.0, 0.08, 0.03), "undecided"),
        ((-0.06, -0.08, 0.0), "otherwise"),
    ],
)
def test_the_verdict_asks_what_is_left(given: tuple[float, ...], word: str) -> None:
    verdict = figures.get("multihead.6").verdict
    assert verdict is not None
    found = verdict(planted(*given))
    assert found.word == word
    if word == "as the paper says":
        assert "4 heads gain .060 [" in found.numbers
        assert "(20 % of it)" in found.numbers


# -- what the book shows ----------------------------------------------------------------------
def test_the_kept_run_is_what_the_explorables_show() -> None:
    data = figures.kept("multihead.6")
    assert len(data["train"]) >= 4
    best = widgets.BestSteps()
    most = len(data["heads"]) - 1
    gains = _sentences.gains(data)
    found = np.frombuffer(best.data["train_best"]["bytes"], "<f4").reshape(3, most + 1, 3)
    np.testing.assert_allclose(
        found[:, 0, 0] - found[:, most, 0], gains["best"].mean(axis=0), atol=1e-6
    )
    same = np.frombuffer(best.data["train_same"]["bytes"], "<f4").reshape(3, most + 1, 3)
    np.testing.assert_allclose(
        same[:, 0, 0] - same[:, most, 0], gains["one rate"].mean(axis=0), atol=1e-6
    )
    # words of the third explorable are those of the figure's sentence
    told = re.search(r"const words = \[(.*?)\];", widgets._base.source("heads_apart.js"))
    assert told is not None
    listed = re.findall(r'"(.*?)"', told[1])
    assert listed[:-1] == re.findall(r"\w+|,", _sentences.SENTENCE)
    assert len(listed) == data["look"].shape[-1]


@pytest.mark.long
def test_the_kept_run_is_found_again() -> None:
    """One seed, two numbers of heads and one rate on the real archives."""
    data = figures.kept("multihead.6")
    settings = data.settings
    names = ("n", "test_n", "T", "layers", "d", "batch")
    assert {"encoder": "minilm", "texts": "rotten-tomatoes"}.items() <= settings.items()
    again = figures.get("multihead.6").run(
        heads=(1, 32), rates=(settings["rate"],), trials=2, epochs=settings["epochs"],
        **{name: settings[name] for name in names},
    )  # fmt: skip
    at = list(settings["rates"]).index(settings["rate"])
    kept = data["train"][:, :, at][:, :, [0, -1], -1].mean(axis=0)
    # seeds depend on the settings: other sentences, so only the sizes are compared
    np.testing.assert_allclose(again["train"][..., 0, :, -1].mean(axis=0), kept, atol=0.03)
    gain = again["train"][:, 0, 0, 0, -1] - again["train"][:, 0, 0, 1, -1]
    assert (gain > 0.0).all()


# -- a text classifier ------------------------------------------------------------------------
def test_texts_are_padded_and_what_is_not_there_does_not_matter(
    reader: real.models.Encoder,
) -> None:
    given = real.train.padded(reader, ["one two", "three good bad the", "a"], T=5, layers=1)
    assert given.mask.sum(axis=1).tolist() == [4, 5, 3]
    np.testing.assert_array_equal(given.x[0, :4], reader("one two", layers=1).hidden[1])
    assert not given.x[~given.mask].any()
    for options in ({"pooling": "first"}, {"scaling": "linear", "heads": 2}, {"block": "plain"}):
        model = real.train.text(given, width=8, d=12, **options)
        weights = model.init(rng=0)
        noise = np.where(given.mask[..., None], given.x, 9.0)
        found = model.forward(weights, given.x, given.mask)
        np.testing.assert_allclose(found, model.forward(weights, noise, given.mask), rtol=1e-12)
        alone = model.forward(weights, given.x[2:], given.mask[2:])
        np.testing.assert_allclose(found[2:], alone, rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_text_classifier_learns_a_word(reader: real.models.Encoder, pooling: str) -> None:
    """With PyTorch; its loss at the end is that of the forward pass in NumPy."""
    found = texts(80)
    given = real.train.padded(reader, found.texts, T=24)
    y = np.array([int("good" in one) for one in found.texts])
    model = real.train.text(given, width=16, heads=2, d=24, pooling=pooling)
    run = real.train.fit(
        model, given.x, y, real.train.Rule("Adam", 0.01), epochs=30, batch=16, seed=0,
        mask=given.mask,
    )  # fmt: skip
    loss = run.history["loss"]
    assert loss[-1] < 0.5 * loss[0]
    logits = model.forward(run.weights, given.x, given.mask)
    logits -= logits.max(axis=1, keepdims=True)
    own = (np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(80), y]).mean()
    assert own == pytest.approx(loss[-1], abs=1e-5)
