"""What training leaves behind: a run, and a file for each of its epochs."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnbook.files import atomically
from attnbook.real._torch import Rule
from attnbook.real._transformer import Transformer, Weights
from attnlab import checks as check

History: TypeAlias = dict[str, NDArray[Any]]
State: TypeAlias = tuple[Weights, Weights, dict[str, list[NDArray[Any]]], list[tuple[float, float]]]


@dataclass(frozen=True, eq=False)
class Run:
    """A Transformer that was trained.

    Args:
        model: the record it was trained as.
        weights: at the end, or at the checkpoint.
        history: arrays by name, times first; ``step`` and ``epoch`` say when.
        rule: how it was trained.
        seed: of its start and of the order of its inputs.

    Returns:
        A frozen record.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> model = real.train.Transformer(T=2, inputs=3)
        >>> real.train.Run(model, model.init(rng=0), {"step": np.zeros(1)}, None, 0).history["step"]
        array([0.])
    """

    model: Transformer
    weights: Weights = field(repr=False)
    history: History = field(repr=False)
    rule: Rule | None
    seed: int


class Checkpoints:
    """One file an epoch in a folder: weights, the rule's memory, the history so far."""

    def __init__(self, place: Path, key: str) -> None:
        self.place, self.key = place, key

    def save(self, epoch: int, model: Transformer, rule: Rule, seed: int, state: State) -> None:
        weights, memory, history, since = state
        parts: dict[str, Any] = {f"w {name}": one for name, one in weights.items()}
        parts |= {f"m {name}": one for name, one in memory.items()}
        parts |= {f"h {name}": np.stack(rows) for name, rows in history.items()}
        parts["since"] = np.array(since, dtype=float).reshape(-1, 2)
        told = json.dumps(asdict(model)), json.dumps(asdict(rule))
        parts["about"] = np.array([self.key, *told, str(seed)])
        made = io.BytesIO()
        np.savez(made, **parts)
        atomically(self.place / f"epoch-{epoch:04}.npz", made.getvalue())

    def last(self, epochs: int, otherwise: State) -> tuple[int, State]:
        """The last checkpoint that is not beyond the end, and its epoch."""
        for path in sorted(self.place.glob("epoch-*.npz"), reverse=True):
            epoch = int(path.stem.removeprefix("epoch-"))
            if epoch > epochs:
                continue
            with np.load(path, allow_pickle=False) as kept:
                parts = {name: kept[name] for name in kept.files}
            if parts["about"][0] != self.key:
                raise check.fail("checkpoints", "a folder of this run", f"{path}, of another")
            history = {name: [*rows] for name, rows in _named(parts, "h ").items()}
            since = [(float(a), float(b)) for a, b in parts["since"]]
            return epoch, (_named(parts, "w "), _named(parts, "m "), history, since)
        return 0, otherwise


def load(path: str | Path) -> Run:
    """A checkpoint, to look at: needs no PyTorch.

    Args:
        path: a file ``epoch-....npz`` of the folder ``checkpoints`` of `fit`.

    Returns:
        `Run` up to that epoch.

    Examples:
        >>> from attnbook import real
        >>> real.train.load("nothing.npz")
        Traceback (most recent call last):
        ...
        ValueError: path: expected a checkpoint, got 'nothing.npz'
    """
    try:
        with np.load(path, allow_pickle=False) as kept:
            parts = {name: kept[name] for name in kept.files}
        _, model, rule, seed = parts["about"]
    except (OSError, ValueError, KeyError):
        raise check.fail("path", "a checkpoint", repr(str(path))) from None
    made = Transformer(**json.loads(str(model)))
    history = _named(parts, "h ")
    return Run(made, _named(parts, "w "), history, Rule(**json.loads(str(rule))), int(seed))


def _named(parts: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    cut = len(prefix)
    return {name[cut:]: one for name, one in parts.items() if name.startswith(prefix)}


def key_of(model: Transformer, rule: Rule, *rest: Any) -> str:
    """What a checkpoint depends on."""
    digest = hashlib.sha256(f"{model}{rule}".encode())

    def add(one: Any) -> None:
        if isinstance(one, tuple):
            for part in one:
                add(part)
        elif isinstance(one, np.ndarray):
            digest.update(f"{one.dtype}{one.shape}".encode() + one.tobytes())
        else:
            digest.update(repr(one).encode())

    add(rest)
    return digest.hexdigest()
