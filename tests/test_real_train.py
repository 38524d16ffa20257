"""Small Transformers in PyTorch: forward pass, rules, the same bits by seed, checkpoints."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import real
from attnbook.real import _torch

KINDS = [
    {"block": "plain", "scaling": "linear"},
    {"block": "plain", "pooling": "first", "heads": 2},
    {"depth": 2, "heads": 4},
    {"depth": 2, "heads": 2, "pooling": "first", "scaling": "linear"},
    {"embed": False, "inputs": 8},
]


def made(**options: Any) -> real.train.Transformer:
    return real.train.Transformer(
        **{"T": 6, "inputs": 5, "outputs": 3, "d": 8, "width": 8, **options}
    )


def given(model: real.train.Transformer, n: int = 12) -> tuple[Any, Any, Any]:
    """Inputs, classes, and a mask with a token at least in each."""
    rng = np.random.default_rng(1)
    mask = rng.random((n, model.T)) < 0.6
    mask[:, 2] = True
    return rng.standard_normal((n, model.T, model.inputs)), rng.integers(0, 3, n), mask


def fit(model: real.train.Transformer, name: str = "SGD", **options: Any) -> real.train.Run:
    x, y, _ = given(model)
    rule = real.train.Rule(name, options.pop("step_size", 0.1), options.pop("cap", None))
    return real.train.fit(
        model, x, y, rule, **{"epochs": 3, "batch": 5, "seed": 0, "every": 1, **options}
    )


# -- without PyTorch -------------------------------------------------------------------------------
@pytest.mark.parametrize("options", KINDS)
def test_attention_in_numpy(options: dict[str, Any]) -> None:
    model = made(**options)
    weights, (x, _, mask) = model.init(rng=0), given(model)
    maps = model.attention(weights, x, mask)
    assert maps.shape == (12, model.depth, model.heads, model.length, model.length)
    np.testing.assert_allclose(maps.sum(-1), 1)
    hidden = ~np.concatenate([np.ones((12, model.length - model.T), dtype=bool), mask], axis=1)
    assert hidden.any()
    assert not maps.transpose(0, 4, 1, 2, 3)[hidden].any()
    changed = np.where(mask[..., None], x, 7.0)  # what is not there does not matter
    np.testing.assert_allclose(
        model.forward(weights, x, mask), model.forward(weights, changed, mask), rtol=1e-12
    )


def test_the_first_scores_are_those_of_its_matrices() -> None:
    model = made(block="plain", heads=2, width=6)
    weights, (x, _, _) = model.init(rng=0), given(model)
    tokens = x @ weights["embed.W"] + weights["position"]
    tokens = (tokens - tokens.mean(-1, keepdims=True)) / np.sqrt(
        tokens.var(-1, keepdims=True) + 1e-5
    )
    for head, W in enumerate(model.matrices(weights)[0]):
        logits = np.einsum("nsd,de,nte->nts", tokens, W, tokens)  # token s, query t
        expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        np.testing.assert_allclose(
            model.attention(weights, x)[:, 0, head], expected, rtol=1e-5, atol=1e-8
        )


def test_scalings() -> None:
    assert made(width=8, heads=2).tau0 == 0.5
    assert made(width=8, heads=2, scaling="linear").tau0 == 0.25
    one, other = (made(width=16, scaling=kind) for kind in ("sqrt", "linear"))
    sqrt, linear = (model.matrices(model.init(rng=0)) for model in (one, other))
    np.testing.assert_allclose(sqrt, 4 * linear)


def test_vit() -> None:
    some = real.data.Images(np.zeros((2, 8, 8), np.float32), np.array([0, 1]))
    model = real.train.vit(some, 4, width=12, block="plain")
    assert (model.T, model.inputs, model.width, model.block) == (4, 16, 12, "plain")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 9, "heads": 2}, "width: expected a multiple of heads=2, got 9"),
        ({"block": "plain", "depth": 2}, "depth: expected 1 for the plain block, got 2"),
        ({"scaling": "none"}, "scaling: expected one of 'sqrt', 'linear'"),
        ({"embed": False}, "inputs: expected d=8 without an embedding, got 5"),
    ],
)
def test_what_no_model_has(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": np.zeros((4, 6, 9))}, r"x: expected shape \(4, 6, 5\)"),
        ({"x": np.full((4, 6, 5), np.nan)}, "x: expected finite numbers, got 120 others"),
        ({"y": [0, 1, 2, 3]}, "y: expected classes from 0 to 2"),
        ({"y": [0, 1]}, r"y: expected shape \(4,\)"),
        ({"loss": "hinge"}, "loss: expected one of 'cross-entropy', 'squares'"),
        ({"loss": "squares"}, "model: expected 1 output for the loss 'squares', got 3"),
        ({"record": ["held_loss"]}, "held: expected inputs for 'held_loss', got None"),
        ({"record": ["attention"]}, "watch: expected inputs for 'attention', got None"),
        ({"record": ["lose"]}, "record: expected one of 'loss'"),
        ({"mask": np.zeros((4, 6))}, "mask: expected a token in every input"),
        ({"epochs": 0}, "epochs: expected a whole number of at least 1, got 0"),
    ],
)
def test_what_cannot_be_trained(options: dict[str, Any], message: str) -> None:
    x, y = options.pop("x", np.zeros((4, 6, 5))), options.pop("y", np.zeros(4))
    rest = {"epochs": 1, "batch": 2, "seed": 0, **options}
    with pytest.raises(ValueError, match=message):
        real.train.fit(made(), x, y, real.train.Rule("SGD", 0.1), **rest)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("GD", 0.1), "rule: expected one of 'SGD'"),
        (("SGD", 0.0), "step_size: expected"),
        (("SGD", 0.1, 1.0), "cap: expected None for SGD, got 1.0"),
        (("SPS", 0.1, -1.0), "cap: expected"),
    ],
)
def test_what_no_rule_is(values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        real.train.Rule(*values)


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match=r"^Training .* needs PyTorch, .*\[real-train\]"):
        fit(made())


# -- with PyTorch ----------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("masked", [False, True])
def test_the_forward_pass_is_that_of_numpy(options: dict[str, Any], masked: bool) -> None:
    model = made(**options)
    weights, (x, _, mask) = model.init(rng=0), given(model)
    with _torch.one_thread() as torch:
        here = torch.from_numpy(mask) if masked else None
        tensors = {name: torch.from_numpy(one) for name, one in weights.items()}
        found, maps = _torch.forward(model, tensors, torch.from_numpy(x).float(), here)
    given_mask = mask if masked else None
    np.testing.assert_allclose(found.numpy(), model.forward(weights, x, given_mask), atol=1e-5)
    np.testing.assert_allclose(
        torch.stack(maps, 1).numpy(), model.attention(weights, x, given_mask), atol=1e-5
    )


def by_hand(
    name: str, size: float, cap: float | None, grads: list[Any], losses: list[float]
) -> Any:
    """Where two weights are after steps along given gradients, in NumPy."""
    w = [np.array([1.0, -2.0]), np.array([[0.5]])]
    m, v = ([np.zeros_like(one) for one in w] for _ in range(2))
    for t, (g, loss) in enumerate(zip(grads, losses, strict=True), 1):
        norm = math.sqrt(sum(float(np.sum(one**2)) for one in g))
        step = {"SNGD": size / norm, "SPS": size * loss / (2 * norm**2)}.get(name, size)
        step = min(step, cap) if cap else step
        for k in range(2):
            move = g[k]
            if name == "momentum":
                m[k] = 0.9 * m[k] + g[k]
                move = m[k]
            elif name == "Adam":
                m[k], v[k] = 0.9 * m[k] + 0.1 * g[k], 0.999 * v[k] + 0.001 * g[k] ** 2
                move = m[k] / (1 - 0.9**t) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
            w[k] = w[k] - step * move
    return w


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "size", "cap"),
    [("SGD", 0.1, None), ("momentum", 0.1, None), ("Adam", 0.01, None), ("SNGD", 0.1, None),
     ("SNGD", 0.1, 0.03), ("SPS", 1.0, None), ("SPS", 1.0, 0.05)],
)  # fmt: skip
def test_rules_are_those_written_by_hand(name: str, size: float, cap: float | None) -> None:
    rng = np.random.default_rng(0)
    grads = [[rng.standard_normal(2), rng.standard_normal((1, 1))] for _ in range(5)]
    losses = [float(one) for one in rng.random(5) + 0.5]
    rule = real.train.Rule(name, size, cap)
    start = {"a": np.array([1.0, -2.0]), "b": np.array([[0.5]])}
    with _torch.one_thread() as torch:
        w = {key: torch.from_numpy(one.copy()) for key, one in start.items()}
        memory = {k: torch.from_numpy(one) for k, one in _torch.begin(rule, start).items()}
        for t, (g, loss) in enumerate(zip(grads, losses, strict=True), 1):
            along = {key: torch.from_numpy(one) for key, one in zip("ab", g, strict=True)}
            _torch.step(rule, w, along, loss, memory, t)
    expected = by_hand(name, size, cap, grads, losses)
    np.testing.assert_allclose(w["a"].numpy(), expected[0], rtol=1e-12)
    np.testing.assert_allclose(w["b"].numpy(), expected[1], rtol=1e-12)


@pytest.mark.long
def test_a_step_is_along_the_gradient_of_the_loss() -> None:
    """One step of SGD of length 1, against differences of the loss that NumPy computes."""
    model = made(heads=2)  # smooth: differences of relu meet kinks
    x, y, _ = given(model)
    run = fit(model, epochs=1, batch=12, record=["loss"], step_size=1.0)
    start = real.train.fit(
        model, x, y, real.train.Rule("SGD", 1e-12), epochs=1, batch=12, seed=0
    ).weights

    def loss(weights: Any) -> float:
        z = model.forward(weights, x)
        return float(np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(12), y]))

    np.testing.assert_allclose(run.history["loss"][0], loss(start), rtol=1e-5)
    for name in ("0.Q", "0.V", "embed.W", "out.W"):
        moved = {**start, name: start[name].astype(float)}
        away = start[name] - run.weights[name].astype(float)
        along = away / np.linalg.norm(away)
        up, down = ({**moved, name: moved[name] + e * along} for e in (1e-4, -1e-4))
        slope = (loss(up) - loss(down)) / 2e-4
        np.testing.assert_allclose(slope, np.linalg.norm(away), rtol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("name", _torch.RULES)
def test_the_same_seed_gives_the_same_bits(name: str) -> None:
    model = made(depth=2, heads=2)
    first, again, other = (fit(model, name, seed=seed) for seed in (3, 3, 4))
    for key, one in first.weights.items():
        np.testing.assert_array_equal(one, again.weights[key])
    for key, one in first.history.items():
        np.testing.assert_array_equal(one, again.history[key])
    assert (first.history["loss"] != other.history["loss"]).all()
    assert first.history["loss"][-1] < first.history["loss"][0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["momentum", "Adam", "SNGD"])
def test_a_stopped_run_goes_on_with_the_same_bits(tmp_path: Path, name: str) -> None:
    model, wanted = made(heads=2), ["loss", "batch_loss", "attention_moved", "W_norm"]
    x, _, _ = given(model)
    how: dict[str, Any] = {"record": wanted, "watch": x[:3], "every": 2}
    whole = fit(model, name, epochs=4, **how)
    fit(model, name, epochs=2, **how, checkpoints=tmp_path)
    rest = fit(model, name, epochs=4, **how, checkpoints=tmp_path)
    for key, one in whole.history.items():
        np.testing.assert_array_equal(one, rest.history[key])
    for key, one in whole.weights.items():
        np.testing.assert_array_equal(one, rest.weights[key])
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"epoch-{k:04}.npz" for k in (1, 2, 3, 4)]
    last = real.train.load(tmp_path / files[-1])
    assert (last.model, last.rule, last.seed) == (model, rest.rule, 0)
    np.testing.assert_array_equal(last.weights["0.Q"], whole.weights["0.Q"])
    with pytest.raises(ValueError, match="checkpoints: expected a folder of this run"):
        fit(model, name, epochs=4, seed=1, **how, checkpoints=tmp_path)


@pytest.mark.long
def test_what_is_written_down() -> None:
    model = made(depth=2, heads=2)
    x, y, mask = given(model)
    names = ["loss", "accuracy", "held_loss", "held_accuracy", "batch_loss", "step_length",
             "attention", "attention_moved", "W_norm", "W_moved", "W_nuclear",
             "W_rank"]  # fmt: skip
    asked = {**dict.fromkeys(names), "size": lambda w: np.linalg.norm(w["0.Q"])}
    run = fit(model, "SNGD", record=asked, watch=x[:4], held=(x, y, mask), epochs=2, mask=mask)
    h = run.history
    assert h["step"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(h["epoch"], np.arange(7) / 3)
    np.testing.assert_array_equal(h["loss"], h["held_loss"])
    np.testing.assert_array_equal(h["accuracy"], h["held_accuracy"])
    z = model.forward(run.weights, x, mask)
    np.testing.assert_allclose(
        h["loss"][-1], np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(12), y]), rtol=1e-5
    )
    assert h["accuracy"][-1] == np.mean(z.argmax(1) == y)
    np.testing.assert_allclose(h["attention"][-1], model.attention(run.weights, x[:4]), atol=1e-5)
    moved = np.abs(h["attention"] - h["attention"][0]).sum(-1).mean((1, 4))
    np.testing.assert_allclose(h["attention_moved"], moved, rtol=1e-5)
    for layer, head in itertools.product(range(2), range(2)):
        ranks = real.probe.ranks(model.matrices(run.weights)[layer, head])
        np.testing.assert_allclose(h["W_norm"][-1, layer, head], ranks.fro, rtol=1e-5)
        np.testing.assert_allclose(h["W_nuclear"][-1, layer, head], ranks.nuc, rtol=1e-5)
        np.testing.assert_allclose(h["W_rank"][-1, layer, head], ranks.effective, rtol=1e-5)
    assert (h["W_moved"][0] < 1e-5).all()
    assert (h["W_moved"][-1] > 1e-3).all()
    np.testing.assert_allclose(h["size"][-1], np.linalg.norm(run.weights["0.Q"]))


@pytest.mark.long
def test_numbers_are_fitted_too() -> None:
    model = made(outputs=1, block="plain")
    x, y, _ = given(model)
    rule = real.train.Rule("momentum", 0.05)
    run = real.train.fit(model, x, np.sign(y - 0.5), rule, epochs=40, batch=12, seed=0,
                         loss="squares")  # fmt: skip
    found = model.forward(run.weights, x)[:, 0]
    last = run.history
    np.testing.assert_allclose(
        last["loss"][-1], np.mean((found - np.sign(y - 0.5)) ** 2), rtol=1e-4
    )
    assert last["accuracy"][-1] == np.mean((found > 0) == (y > 0)) > last["accuracy"][0]
