"""What a run writes down: the names that can be recorded, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.models import Evaluation, Params, losses
from attnlab.optim import _returned as returned
from attnlab.optim._engines import Engine
from attnlab.problems import TokenProblem

Recorder = Callable[[Params, Any], Any]
NAMES = (
    "loss",
    "excess",
    "grad_norm",
    "log_grad_norm",
    "norm",
    "attention",
    "min_attention",
    "accuracy",
)
USES_LOSS = {"loss", "excess"}


@dataclass(frozen=True)
class Snapshot:
    """One point of a run, seen through its engine; what is not asked for is not computed."""

    model: Any
    problem: Any
    engine: Engine
    point: Params
    found: Evaluation

    @cached_property
    def params(self) -> Params:
        """The model's parameters."""
        return self.engine.leave(self.point)

    @property
    def health(self) -> Array:
        """A number for each trial that is finite as long as the trial is."""
        return np.asarray(sum(self.found.norm(name) for name in self.found.grads))

    @cached_property
    def log_grad_norm(self) -> Array:
        """Log of the norm of the whole gradient."""
        scales = self.found.log_scales()
        with np.errstate(divide="ignore"):
            logs = [np.log(self.found.norm(name)) + scales[name] for name in self.found.grads]
        return np.asarray(np.logaddexp.reduce([2.0 * x for x in logs], axis=0) / 2.0)

    @cached_property
    def marked_attention(self) -> Array:
        """Mass on the marked tokens: ``(..., n)``, or ``(..., n, H)`` where there are heads."""
        s, marked = self.engine.attention(self.point, self.found), _marked(self)
        kept = marked.ndim - 1
        extra = (1,) * (s.ndim - marked.ndim)
        mass = (s * marked.reshape(*marked.shape[:-1], *extra, marked.shape[-1])).sum(axis=-1)
        while mass.ndim > kept + _heads(self.model):  # a map for every query: their mean
            mass = mass.mean(axis=-1)
        return np.asarray(mass)

    def value(self, name: str) -> dict[str, Any]:
        """The recorded entries that belong to one name."""
        found = self.found
        if name == "norm":
            return {f"norm_{key}": size for key, size in self.engine.norms(self.point).items()}
        if name == "loss":
            return {name: found.loss}
        if name == "excess":
            if found.log_excess is not None:
                return {name: np.exp(found.log_excess)}
            if not hasattr(self.model, "floor"):
                expected = "a model with a method floor(problem) for excess"
                raise check.fail("record", expected, f"a {type(self.model).__name__} without one")
            return {name: found.loss - np.asarray(self.model.floor(self.problem))}
        if name == "log_grad_norm":
            return {name: self.log_grad_norm}
        if name == "grad_norm":
            return {name: np.exp(self.log_grad_norm)}
        if name == "accuracy":
            if getattr(self.model, "loss", None) not in losses():
                raise check.fail("record", "a classification loss for accuracy", self.model)
            f = returned.outputs(self.model, self.params, self.problem)
            return {name: (np.sign(f) == self.problem.y).mean(axis=-1)}
        axis = -2 if _heads(self.model) else -1
        mass = self.marked_attention
        return {name: mass.mean(axis=axis) if name == "attention" else mass.min(axis=axis)}


def _heads(model: Any) -> int:
    return int(hasattr(model, "heads"))


def _marked(at: Snapshot) -> BoolArray | Array:
    """Relevant tokens where the generator named them, else the optimal ones."""
    problem = at.problem
    if problem.relevant is not None:
        return np.asarray(problem.relevant)
    if not isinstance(problem, TokenProblem):
        raise check.fail("record", "a problem with relevant tokens for attention", repr(problem))
    scores = problem.scores
    if hasattr(at.model, "scores"):
        scores = at.model.scores(problem, at.params)
    if problem.mask is not None:
        scores = np.where(problem.mask, scores, -np.inf)
    return np.asarray(np.arange(problem.T) == scores.argmax(axis=-1)[..., None])


def recorders(record: Any) -> dict[str, Recorder | None]:
    """From what the user asked for to names, with a function where it is the user's own."""
    try:
        entries = [record] if isinstance(record, str | Mapping) else list(record)
    except TypeError:
        expected = "names, or a dict of names and functions"
        raise check.fail("record", expected, record) from None
    wanted: dict[str, Recorder | None] = {}
    for entry in entries:
        if isinstance(entry, Mapping):
            for name, function in entry.items():
                if name in {*NAMES, "step"} or str(name).startswith("norm_"):
                    raise check.fail("record", "a name that is not attnlab's own", name)
                returned.recorder(str(name), function)
                wanted[str(name)] = function
        else:
            wanted[check.choice("record", entry, NAMES)] = None
    return wanted


def marks(every: int | str | Iterable[int], first: int, last: int) -> IntArray:
    """The steps to record, from ``first`` to ``last``, both included."""
    if isinstance(every, str):
        check.choice("every", every, ("log",))
        span = np.geomspace(1, max(1, last - first), num=min(200, last - first + 1))
        picked = first + np.unique(np.round(span).astype(np.int64))
    elif isinstance(every, Iterable) and not (isinstance(every, np.ndarray) and every.ndim == 0):
        picked = np.array([check.count("every", step, 0) for step in every], dtype=np.int64)
    else:
        picked = np.arange(first, last + 1, check.count("every", every))
    picked = picked[(picked >= first) & (picked <= last)]
    return np.union1d(picked, [first, last]).astype(np.int64)


class History:
    """Rows written during a run; time first, then trials."""

    def __init__(self, wanted: dict[str, Recorder | None], trials: tuple[int, ...]) -> None:
        self.wanted, self.trials = wanted, trials
        self.rows: dict[str, list[Array]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}  # of what each name gave at first
        self.steps: list[int] = []

    @property
    def uses_loss(self) -> bool:
        """Whether a recorded row needs the loss."""
        return bool(USES_LOSS & self.wanted.keys())

    def write(self, step: int, at: Snapshot, alive: BoolArray) -> None:
        """One row; trials that have diverged get NaN."""
        entries: dict[str, Any] = {}
        for name, function in self.wanted.items():
            if function is None:
                entries |= at.value(name)
            else:
                entries[name] = function(at.params, at.problem)
        for name, value in entries.items():
            row = returned.row(name, value, self.shapes.get(name))
            self.shapes.setdefault(name, row.shape)
            lead = at.found.loss.ndim
            if self.wanted.get(name) is None:  # ours may come flat from the engine
                row = row.reshape(self.trials + row.shape[lead:] if lead else row.shape)
            if not alive.all() and row.shape[: alive.ndim] == alive.shape:
                row = np.where(check.expand(alive, row), row, np.nan)
            self.rows.setdefault(name, []).append(row)
        self.steps.append(step)

    def arrays(self) -> dict[str, Array]:
        """The history as arrays; ``step`` numbers the rows."""
        count = len(self.steps)  # an interrupt may have left half a row behind
        made = {name: np.stack(rows[:count]) for name, rows in self.rows.items()}
        return {"step": np.array(self.steps, dtype=np.int64), **made}
