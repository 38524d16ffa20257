"""The same Transformer in PyTorch, and steps by the rules that the papers name.

PyTorch is asked for when something is trained, and never before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from attnbook.real._datasets import needed
from attnbook.real._transformer import TINY, Transformer, Weights
from attnlab import checks as check

RULES = ("SGD", "momentum", "SNGD", "SPS", "Adam")
Tensors: TypeAlias = dict[str, Any]


def torch() -> Any:
    """The library, or the sentence that says how to get it."""
    return needed("torch", "Training a Transformer", "real-train")


@contextmanager
def one_thread() -> Iterator[Any]:
    """PyTorch on one thread: sums in one order, so the same seed gives the same bits."""
    library = torch()
    before = library.get_num_threads()
    library.set_num_threads(1)
    try:
        yield library
    finally:
        library.set_num_threads(before)


# -- the model -------------------------------------------------------------------------------------
def forward(model: Transformer, w: Tensors, x: Any, mask: Any = None) -> tuple[Any, list[Any]]:
    """Outputs ``(N, outputs)``, and the attention of each layer ``(N, heads, T, T)``."""
    library = torch()
    layers = library.nn.functional
    tokens = x @ w["embed.W"] + w["embed.b"] if model.embed else x
    if model.pooling == "first":
        tokens = library.cat([w["first"].expand(len(x), 1, model.d), tokens], 1)
        if mask is not None:
            mask = library.cat([mask.new_ones(len(mask), 1), mask], 1)
    tokens = tokens + w["position"]
    maps = []

    def normal(inner: Any, name: str) -> Any:
        return layers.layer_norm(inner, (model.d,), w[f"{name}.gain"], w[f"{name}.b"], TINY)

    def attend(inner: Any, k: int) -> Any:
        n, T, _ = inner.shape
        Q, K, V = (
            (inner @ w[f"{k}.{name}"]).view(n, T, model.heads, -1).transpose(1, 2) for name in "QKV"
        )
        scores = (Q @ K.transpose(-1, -2)) * model.tau0
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None], -math.inf)
        weight = scores.softmax(-1)
        maps.append(weight)
        return (weight @ V).transpose(1, 2).reshape(n, T, -1)

    if model.block == "plain":
        tokens = layers.relu(attend(normal(tokens, "norm"), 0))
    else:
        for k in range(model.depth):
            tokens = tokens + attend(normal(tokens, f"{k}.before"), k) @ w[f"{k}.O"] + w[f"{k}.O.b"]
            inner = normal(tokens, f"{k}.between") @ w[f"{k}.up.W"] + w[f"{k}.up.b"]
            inner = layers.gelu(inner, approximate="tanh")
            tokens = tokens + inner @ w[f"{k}.down.W"] + w[f"{k}.down.b"]
        tokens = normal(tokens, "norm")
    if model.pooling == "first":
        pooled = tokens[:, 0]
    elif mask is None:
        pooled = tokens.mean(1)
    else:
        pooled = (tokens * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    found = pooled @ w["out.W"]
    return (found + w["out.b"] if "out.b" in w else found), maps


# -- what is made small ----------------------------------------------------------------------------
def losses(found: Any, y: Any, kind: str) -> tuple[Any, Any]:
    """Loss of each input, and whether it is told right (its class, or its sign)."""
    if kind == "squares":
        return (found[:, 0] - y) ** 2, (found[:, 0] > 0) == (y > 0)
    each = torch().nn.functional.cross_entropy(found, y, reduction="none")
    return each, found.argmax(1) == y


# -- the rules -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Rule:
    r"""How weights move along the gradient g of a batch, all of them as one vector.

    Args:
        name: ``"SGD"``: $\eta g$. ``"momentum"``: the same along $m\leftarrow\mu m+g$. ``"SNGD"``:
            $\eta g/|g|$. ``"SPS"``: $\eta\,\mathrm{loss}/(2|g|^2)\cdot g$. ``"Adam"``: its own.
        step_size: $\eta$.
        cap: the most that stands before g, for SNGD and SPS; None: no limit.
        momentum: $\mu$, for ``"momentum"``.

    Returns:
        A record.

    Examples:
        >>> from attnbook import real
        >>> real.train.Rule("SNGD", 0.001, cap=0.01).cap
        0.01

    Reference: bias, equation (5) and Appendix C; encoder, Section 5.2.
    """

    name: str
    step_size: float
    cap: float | None = None
    momentum: float = 0.9

    def __post_init__(self) -> None:
        check.choice("rule", self.name, RULES)
        check.number("step_size", self.step_size, above=0.0)
        if self.cap is not None:
            check.number("cap", self.cap, above=0.0)
            if self.name not in ("SNGD", "SPS"):
                raise check.fail("cap", f"None for {self.name}", self.cap)
        check.number("momentum", self.momentum)


def begin(rule: Rule, weights: Weights) -> Weights:
    """What a rule remembers, before the first step."""
    kept = {"momentum": ("m",), "Adam": ("m", "v")}.get(rule.name, ())
    return {f"{k} {name}": np.zeros_like(array) for k in kept for name, array in weights.items()}


def step(rule: Rule, w: Tensors, grads: Tensors, loss: float, memory: Tensors, at: int) -> float:
    """Move the weights where they are; ``at`` counts from 1. What stood before the gradient."""
    size = rule.step_size
    if rule.name in ("SNGD", "SPS"):
        square = sum(float((g.double() ** 2).sum()) for g in grads.values())
        if square == 0:
            return 0.0
        size *= 1 / math.sqrt(square) if rule.name == "SNGD" else loss / (2 * square)
        size = size if rule.cap is None else min(size, rule.cap)
    for name, g in grads.items():
        if rule.name == "momentum":
            g = memory[f"m {name}"].mul_(rule.momentum).add_(g)
        elif rule.name == "Adam":
            m = memory[f"m {name}"].mul_(0.9).add_(g, alpha=0.1)
            v = memory[f"v {name}"].mul_(0.999).addcmul_(g, g, value=0.001)
            g = (m / (1 - 0.9**at)) / ((v / (1 - 0.999**at)).sqrt() + 1e-8)
        w[name].sub_(g, alpha=size)
    return size
