"""The result of training: parameters, history, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.models import Model, Params, losses
from attnlab.optim import _files
from attnlab.optim import _returned as returned
from attnlab.optim._rules import Rule, State

STATUSES = ("converged", "completed", "diverged", "interrupted")


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    r"""What `train` gives back; it can be continued, saved, and asked about fresh data.

    Args:
        model: the model that was trained.
        problem: the data it was trained on.
        rule: the step rule.
        params: parameters at the end (of a trial that diverged: the last finite ones).
        state: the rule's memory.
        history: recorded arrays, time first, then trials; ``history["step"]`` numbers the rows.
        steps: steps taken in all.
        status: ``converged`` (gradient at or below the tolerance, or exactly zero),
            ``completed``, ``diverged`` or ``interrupted``; one string, or an array for trials.
        recorded: what was recorded, to go on with.

    Returns:
        A frozen record.

    Examples:
        >>> from attnlab import models, optim, problems
        >>> p = problems.tokenized_mixture(n=100, rng=0)
        >>> run = optim.train(models.MultiHead(heads=4), p, optim.GD(1.0), steps=50)
        >>> run.status, run.steps, run.history["loss"].shape
        ('completed', 50, (51,))
        >>> more = run.extend(steps=50)
        >>> more.steps, float(more.accuracy(p.fresh(n=300, rng=1)))
        (100, 1.0)

    Reference: CONTRIBUTING, contracts.
    """

    model: Model
    problem: Any
    rule: Rule
    params: Params
    state: State
    history: dict[str, Array]
    steps: int
    status: Any
    recorded: Any = field(default=("loss",))

    def extend(
        self,
        steps: int,
        *,
        record: Any = None,
        every: Any = 1,
        tol: float | None = None,
        progress: bool = False,
    ) -> Run:
        """Continue for ``steps`` more; the history goes on where it stopped.

        ``record`` defaults to what was recorded so far (functions of your own must be given
        again after loading from a file). What is no longer recorded leaves the history; where
        something new is recorded the history starts anew.
        """
        from attnlab.optim._training import resume

        return resume(self, steps, record, every, tol, progress)

    def loss(self, problem: Any = None) -> Array:
        """Mean loss on ``problem`` (default: the training data), one number a trial."""
        return self.model.value_and_grad(self.params, self._data(problem))[0]

    def predict(self, problem: Any = None) -> Array:
        """Outputs on ``problem``, shape ``(..., n)``."""
        return returned.outputs(self.model, self.params, self._data(problem))

    def accuracy(self, problem: Any = None) -> Array:
        """Share of labels whose sign is predicted, one number a trial."""
        problem = self._data(problem)
        if getattr(self.model, "loss", None) not in losses():
            raise check.fail("accuracy", "a model with a classification loss", self.model)
        return np.asarray((np.sign(self.predict(problem)) == problem.y).mean(axis=-1))

    def attention(self, problem: Any = None) -> Array:
        """Attention maps on ``problem``."""
        return returned.attention(self.model, self.params, self._data(problem))

    def save(self, path: str | Path) -> None:
        """Write everything into one ``.npz`` (no pickle); see `load`."""
        content = {name: getattr(self, name) for name in _files.CONTENT}
        content["recorded"] = [name for name in self.recorded if isinstance(name, str)]
        _files.write(Path(path), content)

    def _data(self, problem: Any) -> Any:
        return self.problem if problem is None else problem

    def __repr__(self) -> str:
        parts = [f"{type(self.model).__name__}, {self.rule}, steps={self.steps}"]
        found = np.asarray(self.status)
        if found.ndim:
            names, counts = np.unique(found, return_counts=True)
            ended = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
            parts.append(f"trials={self.problem.trials} ({ended})")
        else:
            parts.append(f"status={self.status!r}")
        if "loss" in self.history and self.history["loss"].size:
            parts.append(f"loss={float(np.nanmedian(self.history['loss'][-1])):.4g}")
        return f"Run({', '.join(parts)})"


def load(path: str | Path) -> Run:
    """A run written by `Run.save`: parameters, history, rule state and data.

    Args:
        path: the file.

    Returns:
        The `Run`; it can be continued as if it had never been away.

    Examples:
        >>> import os, tempfile
        >>> from attnlab import models, optim, problems
        >>> p = problems.two_token()
        >>> model = models.Attention(start="zero")
        >>> run = optim.train(model, p, optim.NormalizedGD(0.1), steps=10)
        >>> path = os.path.join(tempfile.mkdtemp(), "run.npz")
        >>> run.save(path)
        >>> round(float(optim.load(path).extend(steps=10).params["W"][0, 0]), 12)
        2.0

    Reference: CONTRIBUTING, contracts.
    """
    return Run(**_files.read(Path(path)))
