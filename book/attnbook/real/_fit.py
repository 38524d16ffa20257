"""The loop that trains a small Transformer, and what it writes down on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook.files import folder
from attnbook.real import _torch
from attnbook.real._checkpoints import Checkpoints, Run, State, key_of
from attnbook.real._torch import Rule
from attnbook.real._transformer import Transformer, Weights
from attnlab import checks as check

LOSSES = ("cross-entropy", "squares")
RECORDS = (
    "loss", "accuracy", "held_loss", "held_accuracy", "batch_loss", "step_length",
    "attention", "attention_moved", "W_norm", "W_moved", "W_nuclear", "W_rank",
)  # fmt: skip
AT_ONCE = 500  # inputs of one evaluation
Recorder = Callable[[Weights], ArrayLike]


def fit(
    model: Transformer,
    x: ArrayLike,
    y: ArrayLike,
    rule: Rule,
    *,
    epochs: int,
    batch: int,
    seed: int,
    loss: str = "cross-entropy",
    mask: ArrayLike | None = None,
    held: tuple[Any, ...] | None = None,
    watch: ArrayLike | None = None,
    record: Iterable[str] | Mapping[str, Recorder | None] = ("loss", "accuracy"),
    every: int | Iterable[int] | None = None,
    checkpoints: str | Path | None = None,
) -> Run:
    """Train a small Transformer with PyTorch: on one thread, the same bits for the same seed.

    Args:
        model: a `Transformer`.
        x: inputs as tokens, shape ``(N, T, inputs)``.
        y: classes, or numbers for ``"squares"``.
        rule: a `Rule`.
        epochs: how often each input is used.
        batch: inputs of a step.
        seed: of the start and of the order.
        loss: ``"cross-entropy"`` or ``"squares"``, a mean over inputs.
        mask: True at tokens that are there, shape ``(N, T)``.
        held: ``(x, y)`` or ``(x, y, mask)`` that is not trained on.
        watch: inputs whose attention is written down.
        record: names: losses and accuracies of all inputs (``"loss"``, ``"accuracy"``,
            ``"held_loss"``, ``"held_accuracy"``), means since the last record (``"batch_loss"``,
            ``"step_length"``, what stood before the gradient), maps of ``watch`` (``"attention"``;
            ``"attention_moved"``: mean over rows of the change's absolute sum), and of every
            head's W (``"W_norm"``, ``"W_moved"``: distance from the start; ``"W_nuclear"``;
            ``"W_rank"``: (nuclear / Frobenius)^2). Or a mapping of names to None or to functions
            of the weights.
        every: steps between two records, or the steps themselves; None: once an epoch.
        checkpoints: a folder; a run that was stopped goes on from its last whole epoch.

    Returns:
        `Run`.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> model = real.train.Transformer(T=2, inputs=3)
        >>> x, rule = np.zeros((4, 2, 5)), real.train.Rule("SGD", 0.1)
        >>> real.train.fit(model, x, np.zeros(4), rule, epochs=1, batch=2, seed=0)
        Traceback (most recent call last):
        ...
        ValueError: x: expected shape (4, 2, 3) (N, T, inputs), got shape (4, 2, 5)

    Reference: encoder, Section 5.2; bias, Appendix C.
    """
    check.choice("loss", loss, LOSSES)
    epochs, batch = check.count("epochs", epochs), check.count("batch", batch)
    seed = check.count("seed", seed, least=0)
    data = _data("", model, loss, x, y, mask)
    kept = None if held is None else _data("held ", model, loss, *held)
    seen = None if watch is None else _tokens("watch", model, watch)
    wanted = dict(record) if isinstance(record, Mapping) else dict.fromkeys(record)
    for name, function in wanted.items():
        if function is None:
            check.choice("record", name, RECORDS)
        if function is None and name.startswith("held") and kept is None:
            raise check.fail("held", f"inputs for {name!r}", "None")
        if function is None and name.startswith("attention") and seen is None:
            raise check.fail("watch", f"inputs for {name!r}", "None")
    n = len(data[0])
    steps = -(-n // batch)
    whole = epochs * steps
    if every is None or isinstance(every, int):
        marks = {*range(0, whole + 1, steps if every is None else check.count("every", every))}
    else:
        marks = {check.count("every", one, least=0) for one in every}
    with _torch.one_thread() as torch:
        how = (
            batch,
            seed,
            loss,
            sorted(wanted),
            sorted(marks) if isinstance(every, Iterable) else every,
        )
        key = key_of(model, rule, data, kept, seen, how)
        walk = _Walk(torch, model, rule, loss, seed, data, kept, seen, wanted)
        store = None if checkpoints is None else Checkpoints(folder(checkpoints), key)
        begun = 0
        if store:
            begun, (weights, memory, walk.history, walk.since) = store.last(epochs, walk.state())
            walk.set(weights, memory)
        if not begun and 0 in marks:
            walk.note(0, 0.0)
        for epoch in range(begun, epochs):
            order = np.random.default_rng([seed, 1, epoch]).permutation(n)
            for k, first in enumerate(range(0, n, batch)):
                at = epoch * steps + k + 1
                walk.step(order[first : first + batch], at)
                if at in marks:
                    walk.note(at, at / steps)
            if store:
                store.save(epoch + 1, model, rule, seed, walk.state())
        return walk.run()


class _Walk:
    """Weights under way, and what is written down."""

    def __init__(
        self, torch: Any, model: Transformer, rule: Rule, loss: str, seed: int,
        data: tuple[Any, ...], held: Any, watch: Any, wanted: dict[str, Recorder | None],
    ) -> None:  # fmt: skip
        self.torch, self.model, self.rule, self.loss, self.seed = torch, model, rule, loss, seed
        self.wanted = wanted
        self.data, self.held = self._given(data), None if held is None else self._given(held)
        self.watch = None if watch is None else torch.from_numpy(watch)
        start = model.init(np.random.default_rng([seed, 0]))
        self.first_W = model.matrices(start)
        self.set(start, _torch.begin(rule, start))
        self.first_maps = np.zeros(0, np.float32) if self.watch is None else self._maps()
        self.since: list[tuple[float, float]] = []
        self.history: dict[str, list[NDArray[Any]]] = {}

    def _given(self, data: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if one is None else self.torch.from_numpy(one) for one in data)

    def set(self, weights: Weights, memory: Weights) -> None:
        """Begin from these."""
        make = self.torch.from_numpy
        self.w = {k: make(one.copy()).requires_grad_() for k, one in weights.items()}
        self.memory = {k: make(one.copy()) for k, one in memory.items()}

    def state(self) -> State:
        """All that the next step depends on, and what was written down."""
        memory = {name: one.numpy().copy() for name, one in self.memory.items()}
        return self.weights(), memory, self.history, self.since

    def weights(self) -> Weights:
        """As NumPy has them."""
        return {name: one.detach().numpy().copy() for name, one in self.w.items()}

    def step(self, rows: NDArray[Any], at: int) -> None:
        """One step on these inputs; ``at`` counts from 1."""
        x, y, mask = self.data
        some = self.torch.from_numpy(rows)
        found, _ = _torch.forward(self.model, self.w, x[some], None if mask is None else mask[some])
        loss = _torch.losses(found, y[some], self.loss)[0].mean()
        grads = dict(zip(self.w, self.torch.autograd.grad(loss, self.w.values()), strict=True))
        told = loss.item()
        with self.torch.no_grad():
            size = _torch.step(self.rule, self.w, grads, told, self.memory, at)
        self.since.append((told, size))

    def _whole(self, data: tuple[Any, ...]) -> tuple[float, float]:
        """Mean loss and accuracy."""
        x, y, mask = data
        loss = right = 0.0
        with self.torch.no_grad():
            for first in range(0, len(x), AT_ONCE):
                cut = slice(first, first + AT_ONCE)
                found, _ = _torch.forward(
                    self.model, self.w, x[cut], None if mask is None else mask[cut]
                )
                each, told = _torch.losses(found, y[cut], self.loss)
                loss, right = loss + float(each.double().sum()), right + int(told.sum())
        return loss / len(x), right / len(x)

    def _maps(self) -> NDArray[np.float32]:
        with self.torch.no_grad():
            maps = _torch.forward(self.model, self.w, self.watch)[1]
        return np.asarray(self.torch.stack(maps, 1).numpy())

    def note(self, at: int, epoch: float) -> None:
        """Write down what is wanted."""
        found: dict[str, Any] = {"step": at, "epoch": epoch}
        for prefix, data in (("", self.data), ("held_", self.held)):
            names = (f"{prefix}loss", f"{prefix}accuracy")
            if data is not None and any(self._asked(name) for name in names):
                found |= dict(zip(names, self._whole(data), strict=True))
        if self._asked("attention") or self._asked("attention_moved"):
            maps = self._maps()
            found["attention"] = maps
            # mean over inputs and queries; a layer and a head each
            found["attention_moved"] = np.abs(maps - self.first_maps).sum(-1).mean((0, 3))
        if any(self._asked(name) for name in RECORDS if name.startswith("W_")):
            W = self.model.matrices({k: one.detach().numpy() for k, one in self.w.items()})
            s = np.linalg.svd(W, compute_uv=False)
            norm, nuclear = np.sqrt((s**2).sum(-1)), s.sum(-1)
            moved = np.sqrt(((W - self.first_W) ** 2).sum((-1, -2)))
            found |= {"W_norm": norm, "W_moved": moved, "W_nuclear": nuclear}
            found["W_rank"] = (nuclear / norm) ** 2
        mean = np.mean(self.since, axis=0) if self.since else np.full(2, np.nan)
        found |= {"batch_loss": mean[0], "step_length": mean[1]}
        self.since = []
        for name, function in self.wanted.items():
            if function is not None:
                found[name] = function(self.weights())
        for name in ("step", "epoch", *self.wanted):
            self.history.setdefault(name, []).append(np.asarray(found[name]))

    def _asked(self, name: str) -> bool:
        return name in self.wanted and self.wanted[name] is None

    def run(self) -> Run:
        """What came of it."""
        history = {name: np.stack(rows) for name, rows in self.history.items()}
        return Run(self.model, self.weights(), history, self.rule, self.seed)


# -- at the door -----------------------------------------------------------------------------------
def _tokens(name: str, model: Transformer, x: ArrayLike) -> NDArray[np.float32]:
    given = np.array(x, dtype=np.float32, order="C")
    check.shape(name, given, (len(given), model.T, model.inputs), "N, T, inputs")
    if not np.isfinite(given).all():
        raise check.fail(name, "finite numbers", f"{int((~np.isfinite(given)).sum())} others")
    return given


def _data(
    of: str,
    model: Transformer,
    loss: str,
    x: ArrayLike,
    y: ArrayLike,
    mask: ArrayLike | None = None,
) -> tuple[Any, ...]:
    tokens, labels = _tokens(f"{of}x", model, x), check.frozen(f"{of}y", y, 1)
    check.shape(f"{of}y", labels, (len(tokens),), "one an input")
    here = None if mask is None else np.array(mask, dtype=bool)
    if here is not None:
        check.shape(f"{of}mask", here, tokens.shape[:2])
        if not here.any(1).all():
            raise check.fail(f"{of}mask", "a token in every input", "an input without one")
    if loss == "squares":
        if model.outputs != 1:
            raise check.fail("model", "1 output for the loss 'squares'", model.outputs)
        return tokens, labels.astype(np.float32), here
    if (labels != labels.round()).any() or labels.min() < 0 or labels.max() >= model.outputs:
        raise check.fail(f"{of}y", f"classes from 0 to {model.outputs - 1}", labels)
    return tokens, labels.astype(np.int64), here
