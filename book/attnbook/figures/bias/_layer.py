"""The last attention layer of a real encoder on top of frozen ones, with its gradients, in NumPy.

A text is what the layers below made of it, tokens as rows; the first token, [CLS], asks. Trained
are the queries, keys, values and output of all heads, and a linear classifier on the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnbook import real

Floats = NDArray[np.float32]
Params = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Features:
    """Texts as the layers below leave them: tokens ``(N, T, d)``, which count, labels 1 or -1."""

    X: Floats
    mask: NDArray[np.bool_]
    y: Floats


def features(encoder: real.models.Encoder, texts: list[str], y: list[float], most: int) -> Features:
    """Run texts through all layers but the last; what is beyond ``most`` tokens is cut off."""
    X = np.zeros((len(texts), most, encoder.d), np.float32)
    mask = np.zeros((len(texts), most), bool)
    for k, text in enumerate(texts):
        tokens = encoder.tokens(text, most)
        x = encoder.embedded([encoder.vocabulary[one] for one in tokens])
        for layer in range(encoder.layers - 1):
            x, _ = encoder.layer(x, layer)
        X[k, : len(tokens)], mask[k, : len(tokens)] = x, True
    return Features(X, mask, np.asarray(y, np.float32))


@dataclass(frozen=True, eq=False)
class Layer:
    """Attention of ``heads`` heads from the first token, added to it, normalised, then a line."""

    heads: int
    gain: Floats
    shift: Floats

    def start(self, encoder: real.models.Encoder, rng: np.random.Generator) -> Params:
        """The encoder's own weights; the classifier is drawn small, as BERT's is."""
        heads = [encoder.head(encoder.layers - 1, h) for h in range(self.heads)]
        base = f"encoder.layer.{encoder.layers - 1}.attention"
        taken = {
            "W_Q": np.stack([one.W_Q for one in heads]),
            "B_Q": np.stack([one.B_Q for one in heads]),
            "W_K": np.stack([one.W_K for one in heads]),
            "W_V": np.stack([one.W_V for one in heads]),
            "B_V": encoder.weights[f"{base}.self.value.bias"].reshape(self.heads, -1),
            "W_O": np.stack([one.W_O.T for one in heads]),
            "B_O": encoder.weights[f"{base}.output.dense.bias"],
            "u": 0.02 * rng.standard_normal(encoder.d),
            "c": np.zeros(1),
        }
        return {name: np.array(one, np.float32) for name, one in taken.items()}

    def forward(self, p: Mapping[str, Floats], data: Features) -> dict[str, Floats]:
        """The classifier's number for each text, and all that the gradients need."""
        X, first = data.X, data.X[:, 0]
        q = np.einsum("bd,hmd->hbm", first, p["W_Q"], optimize=True) + p["B_Q"][:, None]
        size = np.float32(1.0 / math.sqrt(q.shape[-1]))
        ask = (q @ p["W_K"]).swapaxes(0, 1) * size  # (b, h, d)
        logits = np.where(data.mask[:, None], ask @ X.swapaxes(1, 2), np.float32(-1e9))
        a = np.exp(logits - logits.max(axis=-1, keepdims=True))
        a /= a.sum(axis=-1, keepdims=True)
        mixed = (a @ X).swapaxes(0, 1)  # (h, b, d)
        value = mixed @ p["W_V"].swapaxes(1, 2) + p["B_V"][:, None]
        added = first + (value @ p["W_O"]).sum(axis=0) + p["B_O"]
        centred = added - added.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        unit = centred / spread
        told = unit * self.gain + self.shift
        return {
            "q": q, "a": a, "mixed": mixed, "value": value, "spread": spread, "unit": unit,
            "told": told, "f": told @ p["u"] + p["c"],
        }  # fmt: skip

    def value_and_grad(self, p: Mapping[str, Floats], data: Features) -> tuple[float, Params]:
        """The mean logistic loss, and its gradients in closed form."""
        at, X, first = self.forward(p, data), data.X, data.X[:, 0]
        margin = data.y * at["f"]
        df = (-data.y / (1.0 + np.exp(margin)) / len(data.y)).astype(np.float32)
        dunit = df[:, None] * p["u"] * self.gain
        unit, mean = at["unit"], dunit.mean(axis=-1, keepdims=True)
        dadded = (dunit - mean - unit * (dunit * unit).mean(axis=-1, keepdims=True)) / at["spread"]
        dvalue = dadded @ p["W_O"].swapaxes(1, 2)  # (h, b, m)
        dmixed = (dvalue @ p["W_V"]).swapaxes(0, 1)
        da = dmixed @ X.swapaxes(1, 2)
        dlogits = at["a"] * (da - (at["a"] * da).sum(axis=-1, keepdims=True))
        size = np.float32(1.0 / math.sqrt(at["q"].shape[-1]))
        dask = (dlogits @ X).swapaxes(0, 1) * size  # (h, b, d)
        dq = dask @ p["W_K"].swapaxes(1, 2)
        grads = {
            "W_Q": dq.swapaxes(1, 2) @ first,
            "B_Q": dq.sum(axis=1),
            "W_K": at["q"].swapaxes(1, 2) @ dask,
            "W_V": dvalue.swapaxes(1, 2) @ at["mixed"],
            "B_V": dvalue.sum(axis=1),
            "W_O": at["value"].swapaxes(1, 2) @ dadded,
            "B_O": dadded.sum(axis=0),
            "u": at["told"].T @ df,
            "c": df.sum(keepdims=True),
        }
        return float(np.logaddexp(0.0, -margin).mean()), grads


def stepper(rule: str, size: float, cap: float) -> Callable[[Params, Params, float], None]:
    """A stochastic rule that moves parameters in place, from a batch's gradients and loss.

    ``SNGD``: ``size`` over the gradient's norm, at most ``cap``; ``SPS``: the loss over twice the
    squared norm, at most ``cap``, with 0 for the loss at the end; all parameters have one norm.
    """
    mean: Params = {}
    square: Params = {}
    count = 0

    def adam(params: Params, grads: Params, loss: float) -> None:
        nonlocal count
        del loss
        count += 1
        for name, g in grads.items():
            m = mean.setdefault(name, np.zeros_like(g))
            s = square.setdefault(name, np.zeros_like(g))
            m += np.float32(0.1) * (g - m)
            s += np.float32(0.001) * (g * g - s)
            root = np.sqrt(s / np.float32(1 - 0.999**count)) + np.float32(1e-8)
            params[name] -= np.float32(size / (1 - 0.9**count)) * m / root

    def plain(params: Params, grads: Params, loss: float) -> None:
        norm2 = sum(float(np.vdot(g, g)) for g in grads.values()) + 1e-30
        step = {"SGD": size, "SNGD": min(size / math.sqrt(norm2), cap)}.get(
            rule, min(loss / (2.0 * norm2), cap)
        )
        for name, g in grads.items():
            params[name] -= np.float32(step) * g

    return adam if rule == "Adam" else plain


def part(data: Features, chosen: NDArray[np.int_]) -> Features:
    """Some of the texts, without the tokens that none of them has."""
    longest = int(data.mask[chosen].sum(axis=1).max())
    return Features(data.X[chosen, :longest], data.mask[chosen, :longest], data.y[chosen])


def measured(layer: Layer, params: Params, data: Features) -> tuple[float, float, float]:
    """Mean loss, share classified rightly, mean largest attention weight."""
    found = [
        layer.forward(params, part(data, chosen))
        for chosen in np.array_split(np.arange(len(data.y)), max(1, len(data.y) // 250))
    ]
    margin = data.y * np.concatenate([one["f"] for one in found])
    top = np.concatenate([one["a"].max(axis=-1).mean(axis=-1) for one in found])
    with np.errstate(over="ignore", invalid="ignore"):
        return (
            float(np.logaddexp(0.0, -margin).mean()),
            float((margin > 0).mean()),
            float(top.mean()),
        )


def train(
    layer: Layer,
    params: Params,
    train_on: Features,
    test_on: Features,
    rule: tuple[str, float, float],
    epochs: int,
    rng: np.random.Generator,
    batch: int = 32,
) -> NDArray[np.float32]:
    """By ``rule``, (name, size, cap); what is told at the start and twice an epoch, ``(4, times)``.

    That is the mean loss of the batches since the last time (at the start, of all texts), and loss,
    accuracy and largest attention weight on fresh texts. What has run away is nan from there on.
    """
    step = stepper(*rule)
    times = 1 + 2 * epochs
    found = np.full((4, times), np.nan, np.float32)
    found[:, 0] = measured(layer, params, train_on)[0], *measured(layer, params, test_on)
    with np.errstate(over="ignore", invalid="ignore"):
        for epoch in range(epochs):
            batches = np.array_split(rng.permutation(len(train_on.y)), len(train_on.y) // batch)
            for half in range(2):
                losses = []
                for chosen in batches[half * len(batches) // 2 : (half + 1) * len(batches) // 2]:
                    loss, grads = layer.value_and_grad(params, part(train_on, chosen))
                    if not math.isfinite(loss):
                        return found
                    losses.append(loss)
                    step(params, grads, loss)
                told = float(np.mean(losses)), *measured(layer, params, test_on)
                found[:, 1 + 2 * epoch + half] = told
    return found


def top(encoder: real.models.Encoder) -> Layer:
    """The encoder's last attention layer."""
    base = f"encoder.layer.{encoder.layers - 1}.attention.output.LayerNorm"
    return Layer(encoder.heads, encoder.weights[f"{base}.weight"], encoder.weights[f"{base}.bias"])
