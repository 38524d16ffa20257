"""Attention with a linear head, trained in the space of its logits by linear step rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from attnlab.checks import Array
from attnlab.models import Attention, Evaluation, Model, Params, losses
from attnlab.optim._rules import Factor, Rule, State, declared

# A Gram matrix larger than this many numbers is not worth its memory (1.2 GB).
GRAM_LIMIT = 150_000_000
AT_ONCE = 500  # trials that leap together


@dataclass(frozen=True)
class Combination:
    r"""$W=W_0+\sum_kC_kF_k$ or a gradient $\sum_kc_kF_k$: coefficients, and logits or their slope.

    A step adds combinations: where both parts move alike, GC never has to be formed anew.
    """

    pair: Array  # C and a_0 + GC, or c and Gc, (2, size, B)

    @staticmethod
    def empty(size: int, trials: int) -> Combination:
        """Room for one; rows that lie a power of two apart would share their place in caches."""
        room = trials + 8 if trials % 64 == 0 else trials
        return Combination(np.empty((2, size, room))[..., :trials])

    @staticmethod
    def seen(by_rule: Array) -> Combination:
        """What `for_rule` gave away."""
        return Combination(by_rule.transpose(1, 2, 0))

    @cached_property
    def for_rule(self) -> Array:
        """Trials first, one array: what a rule moves in the place of W."""
        return self.pair.transpose(2, 0, 1)

    @cached_property
    def coefficients(self) -> Array:
        """C, shape ``(size, B)``."""
        coefficients: Array = self.pair[0]
        return coefficients

    @cached_property
    def logits(self) -> Array:
        """Logits, or how they move: shape ``(size, B)``."""
        logits: Array = self.pair[1]
        return logits


class Logits:
    r"""Attention with a linear head, trained in the space of its logits.

    The gradient in $W$ is $\sum_k c_kF_k$ over the features $F_{it}=x_{it}z_i^\top$, so
    $W=W_0+\sum_kC_kF_k$, the logits are $a_0+GC$ with the Gram matrix $G$ of the features, and
    $\|\nabla\|^2=c^\top Gc$: neither $W$ nor $d$ appears in the loop. In the place of W a rule
    moves a `Combination`, $(C,a_0+GC)$, along another, $(c,Gc)$: it must be linear in gradients.

    Coefficients sum to zero over the tokens of a sample, so tokens may be taken relative to one
    of them, which shrinks G. That one is the worst-scoring token, whose own coefficient is
    negligible at saturation: the rounding errors that stall the paper's recipe stay in.
    """

    def __init__(self, model: Attention, problem: Any, rule: Rule) -> None:
        self.model, self.problem = model, problem
        self.exact = getattr(rule, "exact", True)
        self.loss = losses()[model.loss]
        lead = problem.trials
        self.trials = int(np.prod(lead, dtype=int))
        B, n, T, d = self.trials, problem.n, problem.T, problem.d
        z, scores = problem.z.reshape(B, n, d), problem.scores.reshape(B, n, T)
        # worst-scoring token last; where a mask may hide it, tokens are not made relative
        order = np.argsort(np.arange(T) == scores.argmin(axis=-1)[..., None], kind="stable")
        if problem.mask is not None:
            order = np.broadcast_to(np.arange(T), (B, n, T))
        self.order = order
        self.X = np.take_along_axis(problem.X.reshape(B, n, T, d), order[..., None], axis=2)
        features = self.X if problem.mask is not None else self.X[:, :, :-1] - self.X[:, :, -1:]
        self.rows = features.shape[2]
        self.features = np.ascontiguousarray(features.swapaxes(1, 2))  # (B, rows, n, d)
        self.size = self.rows * n
        flat = self.features.reshape(B, self.size, d)
        gram = (flat @ flat.swapaxes(1, 2)).reshape(B, self.rows, n, self.rows, n)
        gram *= (z @ z.swapaxes(1, 2))[:, None, :, None, :]
        self.gram = gram.reshape(B, self.size, self.size)
        self.z = z
        self.no_loss = np.full(B, np.nan)
        self.scores = _tokens_first(np.take_along_axis(scores, order, axis=-1))
        near = float(np.abs(scores).max(initial=0.0)) < 700.0  # so are margins, between scores
        self.beside = near and self.rows < T and not self.exact
        if self.beside:
            self.scores[:-1] -= self.scores[-1]
        self.best = np.ascontiguousarray(problem.best.reshape(B, n).T)
        self.start: Array = np.empty(0)
        self.logits: Array = np.empty(0)
        self.W: Array = np.empty(0)

    @staticmethod
    def fits(model: Model, problem: Any, rule: Rule, state: State | None) -> bool:
        """Whether model and rule allow it, and G is small enough to pay.

        ``state`` is that of a run to be continued, in parameters: what has more than one number per
        trial cannot be brought back into coordinates of logits.
        """
        if type(model) is not Attention or not declared(rule).linear:
            return False
        if model.factors is not None or model.train_head or not model.has_linear_head:
            return False
        if len(problem.trials) > 1 or _remembers_arrays(state, len(problem.trials)):
            return False
        size = problem.n * problem.T
        direct = 4 * (problem.n * problem.d**2 + size * problem.d) + 10_000
        return bool(size**2 <= direct and size**2 * np.prod(problem.trials) <= GRAM_LIMIT)

    def enter(self, params: Params) -> Params:
        """C = 0, and the logits of the start."""
        B, n, T, d = self.trials, self.problem.n, self.problem.T, self.problem.d
        self.W = params["W"].reshape(B, d, d)
        r = self.z @ self.W.swapaxes(1, 2)
        logits = (self.X @ r[..., None])[..., 0]
        if self.rows < T:
            logits -= logits[..., -1:]
        if self.problem.mask is not None:
            logits = np.where(self.problem.mask.reshape(B, n, T), logits, -np.inf)
        self.start = _tokens_first(logits)
        self.logits = self.start.copy()
        pair = np.zeros((2, self.size, B))
        pair[1] = self.start[: self.rows].reshape(self.size, B)
        return {"W": Combination(pair).for_rule}

    def leave(self, point: Params) -> Params:
        """W from the accumulated coefficients."""
        W = self.W + self._sum(Combination.seen(point["W"]))
        return {"W": W.reshape(*self.problem.trials, *W.shape[1:])}

    def leave_state(self, state: State) -> State:
        """What is remembered of gradients or parameters, rebuilt like the parameters."""
        made: State = self._rebuilt(state)
        return made

    def _rebuilt(self, remembered: Any) -> Any:
        """Each combination in a state, wherever it stands in it, as a matrix."""
        if isinstance(remembered, dict):
            return {name: self._rebuilt(entry) for name, entry in remembered.items()}
        if isinstance(remembered, list | tuple):
            return type(remembered)(self._rebuilt(entry) for entry in remembered)
        if np.shape(remembered) == (self.trials, 2, self.size):
            m = self._sum(Combination.seen(remembered))
            return m.reshape(*self.problem.trials, *m.shape[1:])
        return remembered

    def evaluate(self, point: Params, with_loss: bool) -> Evaluation:
        """The gradient (c, Gc), its length, and the loss where it is asked for."""
        gradient = Combination.empty(self.size, self.trials)
        found, at = self._gradient(self._logits(point), self.scores, self.gram, gradient)
        if not with_loss:
            return at
        excess = self.model.log_excess(found, self.best) if self.exact else None
        loss = self.loss.value(found.margins).mean(axis=0)
        return replace(at, loss=loss, log_excess=excess)

    def leap(self, point: Params, factor: Factor, steps: int) -> Params | None:
        """Steps by a factor, a few hundred trials at a time: what they touch stays in the cache."""
        pair = Combination.seen(point["W"]).pair
        moved = np.empty(pair.shape)
        each = -(-self.trials // -(-self.trials // AT_ONCE))
        for i in range(0, self.trials, each):
            part = (..., slice(i, i + each))
            scores, gram = np.ascontiguousarray(self.scores[part]), self.gram[i : i + each]
            # C, then the logits: a step moves both at once, all but those that stay 0
            room = np.concatenate([np.empty((self.rows, *scores.shape[1:])), self.start[part]])
            here, logits = room[: 2 * self.rows].reshape(2, self.size, -1), room[self.rows :]
            here[:] = pair[part]
            gradient = Combination.empty(self.size, len(gram))
            for _ in range(steps):
                _, at = self._gradient(logits, scores, gram, gradient)
                push = np.multiply(gradient.pair, factor(at, "W"), out=gradient.pair)
                np.subtract(here, push, out=here)
            moved[part] = here
        return {"W": Combination(moved).for_rule}

    def _gradient(
        self, logits: Array, scores: Array, gram: Array, into: Combination
    ) -> tuple[Any, Evaluation]:
        """Coefficients as they were found, and the gradient (c, Gc) of them."""
        c, moved = into.coefficients, into.logits
        room = c.reshape(self.rows, *logits.shape[1:])
        if self.beside:
            found = self.model.coefficients_beside(logits[:-1], scores[:-1], scores[-1], room)
        else:
            found = self.model.coefficients(logits, scores, exact=self.exact, out=room)
        if found.c is not room:
            room[:] = found.c[: self.rows]
        np.matmul(gram, c.T[..., None], out=moved.T[..., None])
        square = np.add.reduce(c * moved, axis=0)
        return found, Evaluation(
            loss=self.no_loss[: c.shape[1]],
            grads={"W": into.for_rule},
            log_scale=None if found.log_scale is None else {"W": found.log_scale},
            norms={"W": np.sqrt(np.maximum(square, 0.0))},
        )

    def norms(self, point: Params) -> Params:
        r"""$\|W\|^2=\|W_0\|^2+\langle C,a_0+(a_0+GC)\rangle$."""
        at = Combination.seen(point["W"])
        twice = self.start[: self.rows].reshape(self.size, -1) + at.logits
        cross = (at.coefficients * np.where(np.isneginf(twice), 0.0, twice)).sum(axis=0)
        square = np.square(self.W).sum(axis=(1, 2)) + cross
        return {"W": np.sqrt(np.maximum(square, 0.0))}

    def attention(self, point: Params, found: Evaluation) -> Array:
        """Attention, shape ``(..., n, T)``, from the logits."""
        logits = self._logits(point)
        e = np.exp(logits - np.maximum.reduce(logits, axis=0))
        ordered = np.moveaxis(e * (1.0 / np.add.reduce(e, axis=0)), (0, 1), (-1, -2))
        s = np.empty_like(ordered)
        np.put_along_axis(s, self.order, ordered, axis=-1)
        return np.asarray(s.reshape(*self.problem.trials, *s.shape[1:]))

    def _logits(self, point: Params) -> Array:
        """Logits, tokens first; the array is written anew each time."""
        logits = Combination.seen(point["W"]).logits
        self.logits[: self.rows] = logits.reshape(self.rows, self.problem.n, self.trials)
        return self.logits

    def _sum(self, combination: Combination) -> Array:
        """The matrix that a combination stands for, ``(B, d, d)``."""
        C = combination.coefficients.T.reshape(self.trials, self.rows, self.problem.n)
        P = np.einsum("btn,btnd->bdn", C, self.features)
        return np.asarray(P @ self.z)


def _tokens_first(array: Array) -> Array:
    """From (trials, samples, tokens) to the kernels' layout."""
    return np.ascontiguousarray(array.transpose(2, 1, 0))


def _remembers_arrays(state: Any, axes: int) -> bool:
    """Whether a state holds an array with more axes than trials have."""
    if isinstance(state, dict):
        return any(_remembers_arrays(entry, axes) for entry in state.values())
    if isinstance(state, list | tuple):
        return any(_remembers_arrays(entry, axes) for entry in state)
    return np.ndim(state) > axes
