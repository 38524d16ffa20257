"""Weights of encoders: one head of them, their names, their files."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnlab import checks as check

Floats: TypeAlias = NDArray[np.floating[Any]]
TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}


@dataclass(frozen=True, eq=False)
class Head:
    r"""Weights of one head: the logit of key s for query t is
    $(W_Kx_s+B_K)^\top(W_Qx_t+B_Q)/\sqrt m$.

    Args:
        W_Q: queries, shape ``(m, d)``.
        W_K: keys, shape ``(m, d)``.
        W_V: values, shape ``(m, d)``.
        W_O: what the values become, shape ``(d, m)``.
        B_Q: bias of the queries, shape ``(m,)``.
        B_K: bias of the keys, shape ``(m,)``.

    Returns:
        A head.

    Examples:
        >>> from attnbook import real
        >>> real.models.random(rng=0).head(0, 1).W.shape
        (17, 17)
    """

    W_Q: Floats
    W_K: Floats
    W_V: Floats
    W_O: Floats
    B_Q: Floats
    B_K: Floats

    @property
    def W(self) -> NDArray[np.float64]:
        r"""$W$ of the book, keyed by key and query, with a 1 after each token for the biases."""
        key = np.column_stack([self.W_K, self.B_K]).astype(np.float64)
        query = np.column_stack([self.W_Q, self.B_Q]).astype(np.float64)
        return key.T @ query / math.sqrt(len(self.W_Q))

    @property
    def W_QK(self) -> NDArray[np.float64]:
        r"""$W_K^\top W_Q/\sqrt m$, without biases."""
        product = self.W_K.T.astype(np.float64) @ self.W_Q.astype(np.float64)
        return product / math.sqrt(len(self.W_Q))


def needs(layers: int) -> list[str]:
    """Names of the weights that such an encoder has."""
    parts = ["attention.self.query", "attention.self.key", "attention.self.value"]
    parts += ["attention.output.dense", "attention.output.LayerNorm", "intermediate.dense"]
    parts += ["output.dense", "output.LayerNorm"]
    stems = [f"encoder.layer.{layer}.{part}" for layer in range(layers) for part in parts]
    words = [f"embeddings.{one}_embeddings.weight" for one in ("word", "position", "token_type")]
    named = [
        f"{stem}.{end}" for stem in ["embeddings.LayerNorm", *stems] for end in ("weight", "bias")
    ]
    return words + named


def safetensors(data: bytes) -> dict[str, Floats]:
    """Arrays of a file of weights: a head in JSON, then numbers."""
    size = int.from_bytes(data[:8], "little")
    try:
        head = json.loads(data[8 : 8 + size])
        found = {}
        for name, one in head.items():
            if name == "__metadata__":
                continue
            start, end = one["data_offsets"]
            kind = np.dtype(TYPES[one["dtype"]]).newbyteorder("<")
            found[name] = np.frombuffer(data[8 + size + start : 8 + size + end], kind).reshape(
                one["shape"]
            )
    except (ValueError, KeyError, TypeError) as error:
        raise check.fail("weights", "a file in the format of safetensors", f"{error}") from None
    return {name: one.astype(np.float32) for name, one in found.items() if one.dtype.kind == "f"}
