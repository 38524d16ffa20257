"""A small Transformer for images or texts, as a record: its weights at the start, and NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from attnbook.real._datasets import Images
from attnbook.real._weights import Floats
from attnlab import checks as check
from attnlab.checks import Array, Rng

SCALINGS = ("sqrt", "linear")
POOLINGS = ("mean", "first")
BLOCKS = ("residual", "plain")
TINY = 1e-5  # in layer normalization, as PyTorch has it
WIDER = 4  # the two linear maps after attention are this many times as wide as a token
Weights: TypeAlias = dict[str, Floats]


@dataclass(frozen=True)
class Transformer:
    r"""A small Transformer with the options of the papers.

    A block of ``"residual"`` adds attention to the tokens, then two linear maps, each of what it
    adds to normalized first. ``"plain"`` is the encoder paper's single layer: relu of attention's
    output, pooled, times the output weights, on tokens that are normalized once.

    Args:
        T: tokens of an input.
        inputs: numbers of a token as it comes, such as the pixels of a patch.
        outputs: numbers that come out, such as classes.
        d: size of a token inside.
        width: size of queries, keys and values, all heads together ($d_m$).
        heads: heads of a layer.
        depth: layers; ``"plain"`` has one.
        scaling: $\tau_0$ is a head's width to the power -1/2 (``"sqrt"``) or -1 (``"linear"``).
        pooling: ``"mean"`` of the tokens, or a ``"first"`` token that is added and read.
        block: ``"residual"`` or ``"plain"``.
        embed: whether tokens pass a linear map of their own; without it they are of size d already.

    Returns:
        A record: `init` draws weights, `forward` and `attention` compute in NumPy.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> model = real.train.Transformer(T=4, inputs=9, d=8, width=6, heads=2)
        >>> weights = model.init(rng=0)
        >>> model.forward(weights, np.zeros((5, 4, 9))).shape
        (5, 10)
        >>> model.attention(weights, np.zeros((5, 4, 9))).shape
        (5, 1, 2, 4, 4)

    Reference: encoder, equations (1.1) and (1.2), Section 5.2; bias, Appendix C.
    """

    T: int
    inputs: int
    outputs: int = 10
    d: int = 64
    width: int = 64
    heads: int = 1
    depth: int = 1
    scaling: str = "sqrt"
    pooling: str = "mean"
    block: str = "residual"
    embed: bool = True

    def __post_init__(self) -> None:
        for name in ("T", "inputs", "outputs", "d", "width", "heads", "depth"):
            check.count(name, getattr(self, name))
        check.choice("scaling", self.scaling, SCALINGS)
        check.choice("pooling", self.pooling, POOLINGS)
        check.choice("block", self.block, BLOCKS)
        if self.width % self.heads:
            raise check.fail("width", f"a multiple of heads={self.heads}", self.width)
        if self.block == "plain" and self.depth != 1:
            raise check.fail("depth", "1 for the plain block", self.depth)
        if not self.embed and self.inputs != self.d:
            raise check.fail("inputs", f"d={self.d} without an embedding", self.inputs)

    @property
    def tau0(self) -> float:
        r"""What scores are multiplied with, by the width of one head."""
        return float((self.width // self.heads) ** (-0.5 if self.scaling == "sqrt" else -1.0))

    @property
    def length(self) -> int:
        """Tokens inside: one more where a first token is read."""
        return self.T + (self.pooling == "first")

    def init(self, rng: Rng) -> Weights:
        """Weights at the start, float32: variance 1 / inputs of each map, as LeCun's."""
        draw = check.generator(rng, "start")

        def map_of(rows: int, columns: int) -> Floats:
            return (draw.standard_normal((rows, columns)) / math.sqrt(rows)).astype(np.float32)

        def zeros(size: int) -> Floats:
            return np.zeros(size, dtype=np.float32)

        d, found = self.d, {}
        if self.embed:
            found = {"embed.W": map_of(self.inputs, d), "embed.b": zeros(d)}
        found["position"] = (0.02 * draw.standard_normal((self.length, d))).astype(np.float32)
        if self.pooling == "first":
            found["first"] = (0.02 * draw.standard_normal(d)).astype(np.float32)
        found |= {"norm.gain": zeros(d) + 1, "norm.b": zeros(d)}
        for k in range(self.depth):
            for name in ("Q", "K", "V"):
                found[f"{k}.{name}"] = map_of(d, self.width)
            if self.block == "plain":
                continue
            found |= {f"{k}.O": map_of(self.width, d), f"{k}.O.b": zeros(d)}
            for name in ("before", "between"):
                found |= {f"{k}.{name}.gain": zeros(d) + 1, f"{k}.{name}.b": zeros(d)}
            found |= {f"{k}.up.W": map_of(d, WIDER * d), f"{k}.up.b": zeros(WIDER * d)}
            found |= {f"{k}.down.W": map_of(WIDER * d, d), f"{k}.down.b": zeros(d)}
        found["out.W"] = map_of(self.width if self.block == "plain" else d, self.outputs)
        if self.block == "residual":
            found["out.b"] = zeros(self.outputs)
        return found

    def forward(self, weights: Weights, x: ArrayLike, mask: ArrayLike | None = None) -> Array:
        """Outputs in float64, shape ``(N, outputs)``; ``mask`` is True at tokens that are there."""
        return self._pass(weights, x, mask)[0]

    def attention(self, weights: Weights, x: ArrayLike, mask: ArrayLike | None = None) -> Array:
        """Maps, shape ``(N, depth, heads, T, T)``: rows are queries and sum to 1."""
        return self._pass(weights, x, mask)[1]

    def matrices(self, weights: Weights) -> Array:
        r"""$W=\tau_0KQ^\top$ of every head, shape ``(depth, heads, d, d)``: logits are $XWz$."""
        size = self.width // self.heads
        found = []
        for k in range(self.depth):
            Q, K = (
                weights[f"{k}.{name}"].astype(np.float64).reshape(self.d, self.heads, size)
                for name in "QK"
            )
            found.append(self.tau0 * np.einsum("dhm,ehm->hde", K, Q, optimize=True))
        return np.stack(found)

    def _pass(self, weights: Weights, x: ArrayLike, mask: ArrayLike | None) -> tuple[Array, Array]:
        given = check.frozen("x", x, 3)
        check.shape("x", given, (len(given), self.T, self.inputs), "N, T, inputs")
        here = np.ones(given.shape[:2], dtype=bool) if mask is None else np.asarray(mask, bool)
        check.shape("mask", here, given.shape[:2])
        w: Weights = {name: array.astype(np.float64) for name, array in weights.items()}
        tokens = given @ w["embed.W"] + w["embed.b"] if self.embed else given
        if self.pooling == "first":
            first = np.broadcast_to(w["first"], (len(tokens), 1, self.d))
            tokens = np.concatenate([first, tokens], axis=1)
            here = np.concatenate([np.ones((len(here), 1), dtype=bool), here], axis=1)
        tokens = tokens + w["position"]
        maps = []
        if self.block == "plain":
            values, one = self._attend(w, 0, _normal(tokens, w, "norm"), here)
            tokens, maps = np.maximum(values, 0.0), [one]
        else:
            for k in range(self.depth):
                values, one = self._attend(w, k, _normal(tokens, w, f"{k}.before"), here)
                tokens = tokens + values @ w[f"{k}.O"] + w[f"{k}.O.b"]
                inner = _normal(tokens, w, f"{k}.between") @ w[f"{k}.up.W"] + w[f"{k}.up.b"]
                tokens = tokens + _gelu(inner) @ w[f"{k}.down.W"] + w[f"{k}.down.b"]
                maps.append(one)
            tokens = _normal(tokens, w, "norm")
        if self.pooling == "first":
            pooled = tokens[:, 0]
        else:
            pooled = (tokens * here[..., None]).sum(1) / here.sum(1)[:, None]
        return np.asarray(pooled @ w["out.W"] + w.get("out.b", 0.0)), np.stack(maps, axis=1)

    def _attend(self, w: Weights, k: int, tokens: Array, here: Array) -> tuple[Array, Array]:
        n, T, _ = tokens.shape
        Q, K, V = (
            (tokens @ w[f"{k}.{name}"]).reshape(n, T, self.heads, -1).transpose(0, 2, 1, 3)
            for name in "QKV"
        )
        scores = np.where(here[:, None, None], self.tau0 * Q @ K.transpose(0, 1, 3, 2), -np.inf)
        weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weight /= weight.sum(axis=-1, keepdims=True)
        return (weight @ V).transpose(0, 2, 1, 3).reshape(n, T, -1), weight


def vit(images: Images, patch: int, **options: Any) -> Transformer:
    """A Vision Transformer for images cut in squares: a `Transformer` of their sizes.

    Args:
        images: what it is for; ``images.patches(patch)`` is its input.
        patch: side of a square, in pixels.
        options: the others of `Transformer`.

    Returns:
        `Transformer`.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> some = real.data.Images(np.zeros((2, 28, 28)), np.array([0, 1]))
        >>> real.train.vit(some, 7, width=16).T
        16

    Reference: encoder, Section 5.2: one layer and one head, d = 64, ``block="plain"``.
    """
    _, T, inputs = images.patches(patch).shape
    return Transformer(T=T, inputs=inputs, **options)


def _normal(x: Array, w: Weights, name: str) -> Array:
    """Layer normalization."""
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + TINY)
    return np.asarray(centred / spread * w[f"{name}.gain"] + w[f"{name}.b"])


def _gelu(x: Array) -> Array:
    r"""$x\Phi(x)$ by the tanh formula."""
    return np.asarray(0.5 * x * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
