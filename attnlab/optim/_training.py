"""The training loop: the only one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import BoolArray, Rng
from attnlab.models import Evaluation, Model, Params
from attnlab.models._base import fit
from attnlab.optim._engines import Direct, engine_for
from attnlab.optim._record import History, Snapshot, marks, recorders
from attnlab.optim._rules import Rule, State, expand
from attnlab.optim._run import Run


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
    if isinstance(rule, type) or not (hasattr(rule, "step") and hasattr(rule, "init")):
        raise check.fail("rule", "a step rule such as GD(1.0)", rule)
    wanted = ("init", "shapes", "value_and_grad")
    if isinstance(model, type) or not all(hasattr(model, name) for name in wanted):
        raise check.fail("model", f"a model such as Attention(), with {', '.join(wanted)}", model)
    start = model.init(problem, rng) if params is None else fit(model, params, problem)
    return _loop(model, problem, rule, start, None, 0, steps, record, every, tol, progress, fast)


def resume(run: Run, steps: int, record: Any, every: Any, tol: float | None, progress: bool) -> Run:
    """Go on from the end of a run, rule state included."""
    steps = check.count("steps", steps, 0)
    record = run.recorded if record is None else record
    more = _loop(
        run.model,
        run.problem,
        run.rule,
        run.params,
        run.state,
        run.steps,
        steps,
        record,
        every,
        tol,
        progress,
        True,
        np.asarray(run.status) == "diverged",
    )
    before, after = run.history, more.history
    if after.keys() <= before.keys() and before["step"].size:
        new = after["step"] > before["step"][-1]
        joined = {name: np.concatenate([before[name], rows[new]]) for name, rows in after.items()}
        return replace(more, history=joined)
    return more


def _loop(
    model: Model,
    problem: Any,
    rule: Rule,
    start: Params,
    state: State | None,
    first: int,
    steps: int,
    record: Any,
    every: Any,
    tol: float | None,
    progress: bool,
    fast: bool,
    lost: BoolArray | None = None,
) -> Run:
    wanted, last = recorders(record), first + steps
    history = History(wanted, problem.trials)
    if tol is not None:
        check.number("tol", tol, above=0.0)
    recorded_steps = set(marks(every, first, last).tolist())
    uses_loss = getattr(rule, "uses_loss", True)
    known = hasattr(rule, "exact")  # a rule of the user's own may take the four arguments only

    def told(found: Evaluation) -> tuple[Evaluation, ...]:
        return (found,) if known else ()

    engine = engine_for(model, problem, rule, state) if fast else Direct(model, problem, rule)
    point = engine.enter(start)
    state = rule.init(model, problem, point) if state is None else state
    alive = np.ones(problem.trials, bool) if lost is None else ~np.asarray(lost)
    complete = bool(alive.all())
    safe, ended, interrupted = (first, point, state), False, False
    bar = _bar(steps) if progress else None
    with np.errstate(all="ignore"):
        try:
            for step in range(first, last + 1):
                marked = step in recorded_steps
                found = engine.evaluate(point, uses_loss or (marked and history.uses_loss))
                at = Snapshot(model, problem, engine, point, found)
                healthy = np.isfinite(at.health)
                if not healthy.all():
                    if step == first:
                        raise check.fail(
                            "params", "a start with a finite gradient", "NaN or infinity in it"
                        )
                    alive = alive & healthy.reshape(problem.trials)
                    complete = False
                    if not alive.any():
                        break
                    point = {k: _keep(alive, p, safe[1][k]) for k, p in point.items()}
                    found = engine.evaluate(point, uses_loss or history.uses_loss)
                    at = Snapshot(model, problem, engine, point, found)
                safe = (step, point, state)
                if tol is not None:
                    small = at.log_grad_norm.reshape(problem.trials) <= np.log(tol)
                    ended = bool((small | ~alive).all())
                if marked or ended:
                    history.write(step, at, alive)
                if step == last or ended:
                    break
                moved, state = rule.step(point, found.grads, found.loss, state, *told(found))
                if not complete:
                    moved = {k: _keep(alive, p, point[k]) for k, p in moved.items()}
                point = moved
                if bar is not None:
                    bar.update()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            if bar is not None:
                bar.close()
        done, point, state = safe
        found = engine.evaluate(point, True)
        level = Snapshot(model, problem, engine, point, found).log_grad_norm
    small = level.reshape(problem.trials) <= (-np.inf if tol is None else np.log(tol))
    status = np.where(small, "converged", "interrupted" if interrupted else "completed")
    status = np.where(alive, status, "diverged")
    names = tuple(
        name if function is None else {name: function} for name, function in wanted.items()
    )
    return Run(
        model=model,
        problem=problem,
        rule=rule,
        params={name: np.ascontiguousarray(p) for name, p in engine.leave(point).items()},
        state=engine.leave_state(state),
        history=history.arrays(),
        steps=done,
        status=status if status.ndim else str(status),
        recorded=names,
    )


def _keep(alive: BoolArray, new: Any, old: Any) -> Any:
    return np.where(expand(alive, new), new, old)


def _bar(steps: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=steps, unit="step", leave=False)
