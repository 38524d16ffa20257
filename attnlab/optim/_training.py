"""The training loop: the only one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Rng
from attnlab.models import Model, Params, fit
from attnlab.optim import _returned as returned
from attnlab.optim._engines import Direct, engine_for
from attnlab.optim._record import recorders
from attnlab.optim._rules import Rule
from attnlab.optim._run import Run
from attnlab.optim._walk import Place, Walk, Watch


def train(
    model: Model,
    problem: Any,
    rule: Rule,
    steps: int,
    *,
    params: Params | None = None,
    rng: Rng | None = None,
    record: Any = ("loss",),
    every: int | str | Iterable[int] = 1,
    tol: float | None = None,
    progress: bool = False,
    fast: bool = True,
) -> Run:
    r"""Train ``model`` on ``problem`` by ``rule``; trials are trained side by side.

    Attention with a linear head is trained in the space of its logits where that is cheaper; the
    result is the same (with ``recipe="paper"`` until softmax saturates: from there on that recipe
    follows rounding noise, whichever way it is computed). A trial whose gradient leaves the
    finite numbers stops with the status ``diverged`` and its last finite parameters; its later
    history is NaN. An interrupt keeps what there is.

    Args:
        model: `Attention`, `MultiHead`, `Encoder`, or a model of your own with their methods.
        problem: a `TokenProblem` or `SequenceProblem`.
        rule: a step rule.
        steps: how many steps.
        params: where to start; without the trial axes, every trial starts there. None asks the
            model.
        rng: seed or generator for a start that draws.
        record: names among ``loss``, ``excess`` (loss above its floor), ``grad_norm``,
            ``log_grad_norm``, ``norm`` (one entry ``norm_<name>`` a parameter), ``attention``
            (mean over samples, on the relevant tokens or else the optimal ones, for each head
            where there are heads), ``min_attention``, ``accuracy``; and dicts of functions of
            ``(params, problem)``.
        every: record every so many steps, at ``"log"``-spaced steps, or at the given ones; the
            start and the end are always recorded.
        tol: stop once every trial's gradient norm is at most this.
        progress: show a progress bar.
        fast: False forbids the space of logits (to compare).

    Returns:
        A `Run`.

    Examples:
        >>> import numpy as np
        >>> from attnlab import models, optim, problems
        >>> p = problems.sphere(n=5, T=5, d=8, trials=100, min_gap=0.1, rng=0)
        >>> run = optim.train(models.Attention(), p, optim.NormalizedGD(0.1), steps=200, rng=1,
        ...     record=["loss", "norm", {"top": lambda params, p: np.abs(params["W"]).max((1, 2))}],
        ...     every="log")
        >>> run.params["W"].shape, run.history["loss"].shape == run.history["top"].shape
        ((100, 8, 8), True)

    Reference: svm, Appendix F; bias, Section 2; multihead and encoder, Section 3.
    """
    steps = check.count("steps", steps, 0)
    fast = check.flag("fast", fast)
    _methods("rule", rule, ("init", "step"), "a step rule such as GD(1.0)")
    _methods("model", model, ("init", "shapes", "value_and_grad"), "a model such as Attention()")
    watch = Watch(recorders(record), every, tol, progress)
    returned.head(model, problem)
    start = returned.start(model, problem, rng) if params is None else fit(model, params, problem)
    engine = engine_for(model, problem, rule, None) if fast else Direct(model, problem, rule)
    return Walk(engine, rule, Place(0, start)).run(steps, watch)


def _methods(name: str, given: Any, wanted: tuple[str, ...], example: str) -> None:
    """Complain about what is not an object with these methods, and say which one is missing."""
    if isinstance(given, type):
        raise check.fail(name, example, f"the class {given.__name__} itself")
    missing = [method for method in wanted if not callable(getattr(given, method, None))]
    if missing:
        kind = type(given).__name__
        expected = f"{example}, with the methods {', '.join(wanted)}"
        raise check.fail(name, expected, f"{given!r} ({kind} has no {', no '.join(missing)})")


def resume(run: Run, steps: int, record: Any, every: Any, tol: float | None, progress: bool) -> Run:
    """Go on from the end of a run, rule state included."""
    steps = check.count("steps", steps, 0)
    watch = Watch(recorders(run.recorded if record is None else record), every, tol, progress)
    engine = engine_for(run.model, run.problem, run.rule, run.state)
    start, lost = Place(run.steps, run.params, run.state), np.asarray(run.status) == "diverged"
    more = Walk(engine, run.rule, start, lost).run(steps, watch)
    before, after = run.history, more.history
    if after.keys() <= before.keys() and before["step"].size:
        new = after["step"] > before["step"][-1]
        joined = {name: np.concatenate([before[name], rows[new]]) for name, rows in after.items()}
        return replace(more, history=joined)
    return more
