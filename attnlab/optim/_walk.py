"""The steps themselves: trials on their way, and what is written down of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from attnlab import checks as check
from attnlab.checks import BoolArray
from attnlab.models import Params
from attnlab.optim import _returned as returned
from attnlab.optim._engines import Engine
from attnlab.optim._record import History, Recorder, Snapshot, marks
from attnlab.optim._rules import Rule, State, declared, factor_of, without_scale
from attnlab.optim._run import Run

LEAP, WORTH = 256, 4  # steps taken at once: most (an interrupt may lose them), and least


@dataclass(frozen=True)
class Watch:
    """What is asked of a run: what it writes down and when, and when it may stop."""

    wanted: dict[str, Recorder | None]
    every: int | str | Iterable[int] = 1
    tol: float | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.tol is not None:
            check.number("tol", self.tol, above=0.0)
        check.flag("progress", self.progress)


class Place(NamedTuple):
    """Where the trials are after some steps, and what their rule remembers."""

    step: int
    point: Params  # the model's parameters at the start, the engine's coordinates on the way
    state: State | None = None  # None: the rule has not begun


class Walk:
    """Trials on their way by one rule; those that leave the finite numbers stay where they were."""

    def __init__(self, engine: Engine, rule: Rule, start: Place, lost: Any = False) -> None:
        self.model, self.problem = engine.model, engine.problem
        self.engine, self.rule = engine, rule
        self.declared = declared(rule)
        self.alive: BoolArray = np.ones(self.problem.trials, bool) & ~np.asarray(lost)
        point, state = engine.enter(start.point), start.state
        if state is None:
            state = returned.state(rule, rule.init(self.model, self.problem, point))
        self.first, self.here = start.step, Place(start.step, point, state)
        self.safe = self.here  # the last place at which every gradient was finite
        self.seen: tuple[Place, Snapshot] | None = None  # what was last looked at, and where
        self.factor = factor_of(rule, state)
        self.slowly = start.step  # until this step no leaps

    def look(self, with_loss: bool) -> Snapshot:
        """What is known here."""
        self.seen = None
        found = self.engine.evaluate(self.here.point, self.declared.uses_loss or with_loss)
        at = Snapshot(self.model, self.problem, self.engine, self.here.point, found)
        self.seen = self.here, at
        return at

    def arrive(self, with_loss: bool) -> Snapshot | None:
        """Look, send back who has left the finite numbers; None where nobody is left.

        Where a leap led out of them it is taken back, and gone step by step.
        """
        at = self.look(with_loss)
        healthy = np.isfinite(at.health)
        if healthy.all():
            self.safe = self.here
            return at
        if self.here.step == self.first:
            wanted = "a start with a finite gradient"
            raise check.fail("params", wanted, "NaN or infinity in it")
        if self.here.step > self.safe.step + 1:
            self.slowly, self.here = self.here.step, self.safe
            self.move(self.look(with_loss=False))
            return self.arrive(with_loss)
        self.alive = self.alive & healthy.reshape(self.alive.shape)
        if not self.alive.any():
            return None
        self.here = self.here._replace(point=self._kept(self.here.point, self.safe.point))
        at = self.look(with_loss)
        self.safe = self.here
        return at

    def move(self, at: Snapshot) -> None:
        """One step of the rule; trials that were lost do not take it."""
        step, point, state = self.here
        assert state is not None
        known = at.found if self.declared.scaled else without_scale(at.found)
        if step == self.first:
            first = returned.FirstStep(self.rule, point, known, state)
            answer = self.rule.step(point, known, state)
            first.check(answer)
        else:
            answer = self.rule.step(point, known, state)
        moved, state = answer
        if not self.alive.all():
            moved = self._kept(moved, point)
        self.here = Place(step + 1, moved, state)

    def leap(self, target: int) -> None:
        """Go to a step where somebody looks, if the rule allows it and all trials are well."""
        step, point, state = self.here
        target = min(target, step + LEAP)
        if (
            self.factor is None
            or target - step < WORTH
            or step < self.slowly
            or not self.alive.all()
        ):
            return
        there = self.engine.leap(point, self.factor, target - step)
        if there is not None:
            self.here = Place(target, there, state)

    def run(self, steps: int, watch: Watch) -> Run:
        """Take the steps, or as many as it takes, and say how it ended."""
        history = History(watch.wanted, self.problem.trials)
        last, interrupted = self.first + steps, False
        marked = marks(watch.every, self.first, last).tolist()
        bar = _bar(steps) if watch.progress else None
        with np.errstate(all="ignore"):
            try:
                while self._visit(history, watch, marked, last):
                    if bar is not None:
                        bar.update(self.here.step - self.first - bar.n)
            except KeyboardInterrupt:
                interrupted = True
            finally:
                if bar is not None:
                    bar.close()
            self.here = self.safe
            return self._ended(history, watch, interrupted)

    def _visit(self, history: History, watch: Watch, marked: list[int], last: int) -> bool:
        """One point: look, write it down, go on; False where that was the end."""
        before = self.here.step
        at = self.arrive(_holds(marked, before) and history.uses_loss)
        if at is None:
            return False
        step = self.here.step  # before, or earlier where a leap was taken back
        later = bisect_left(marked, step)
        due = marked[later] == step
        if due and step != before:
            at = self.look(history.uses_loss)
        ended = watch.tol is not None and bool((self._rests(at, watch) | ~self.alive).all())
        if ended and not due:  # the end is written down with all that was asked for
            at = self.look(history.uses_loss)
        if due or ended:
            history.write(step, at, self.alive)
        if ended or step == last:
            return False
        self.move(at)
        if watch.tol is None:
            self.leap(marked[later + due])
        return True

    def _rests(self, at: Snapshot, watch: Watch) -> BoolArray:
        """Trials whose gradient is at most the tolerance, or exactly zero where there is none."""
        level = -np.inf if watch.tol is None else np.log(watch.tol)
        return np.asarray(at.log_grad_norm.reshape(self.alive.shape) <= level)

    def _ended(self, history: History, watch: Watch, interrupted: bool) -> Run:
        seen = self.seen
        at = seen[1] if seen is not None and seen[0] is self.here else self.look(True)
        status = np.where(
            self._rests(at, watch),
            "converged",
            "interrupted" if interrupted else "completed",
        )
        status = np.where(self.alive, status, "diverged")
        params, state = self.engine.leave(self.here.point), self.here.state
        assert state is not None
        return Run(
            model=self.model,
            problem=self.problem,
            rule=self.rule,
            params={name: np.ascontiguousarray(p) for name, p in params.items()},
            state=self.engine.leave_state(state),
            history=history.arrays(),
            steps=self.here.step,
            status=status if status.ndim else str(status),
            recorded=tuple(
                name if function is None else {name: function}
                for name, function in history.wanted.items()
            ),
        )

    def _kept(self, new: Params, old: Params) -> Params:
        """The new point of trials that are alive, the old one of those that are lost."""
        return {k: np.where(check.expand(self.alive, p), p, old[k]) for k, p in new.items()}


def _holds(marked: list[int], step: int) -> bool:
    return marked[bisect_left(marked, step)] == step


def _bar(steps: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=steps, unit="step", leave=False)
