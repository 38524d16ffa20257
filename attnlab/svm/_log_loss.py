"""The log loss on spheres of parameters: where `_path` descends, and what certifies the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.models import Attention, Params, losses
from attnlab.problems import TokenProblem
from attnlab.svm._quasi_newton import descend, inverse

STATIONARY = 1e-6  # sine up to which a point counts as stationary
AIM = 1e-9  # sine at which a descent stops: rounding leaves about 1e-12 at R = 1000
ROUNDS = 3  # descents from one start, each with a fresh memory and unit
PLATEAU = 30.0  # where the slope is below e^-30 of the loss, the log loss is level to rounding
KICK = 1e-3  # share of the gradient that enters unused columns of K and Q before a descent
SPARE = 1e-3  # a column is unused if its singular value is below this share of the largest


class Answer(NamedTuple):
    """A local minimiser for each trial."""

    theta: Array  # flat parameters, (B, p)
    loss: Array
    excess: Array
    stationarity: Array
    status: Array


def better(first: Answer, second: Answer) -> Answer:
    """The lower loss, trial by trial; a draw goes to the first, NaN never wins."""
    wins = second.excess < first.excess - 1e-9 * (1.0 + np.abs(first.excess))
    pairs = zip(first, second, strict=True)
    return Answer(*(np.where(wins.reshape(-1, *(1,) * (a.ndim - 1)), b, a) for a, b in pairs))


def matrix(params: Params) -> Array:
    """W itself, or the product of its factors."""
    return params["W"] if "W" in params else params["K"] @ params["Q"].swapaxes(-1, -2)


def within(problem: TokenProblem, W: Array, alpha: IntArray, epsilon: float) -> BoolArray:
    """Definition 3: in every sample some token below alpha outweighs all those above it."""
    logits = (problem.X @ (problem.z @ W.swapaxes(-1, -2))[..., None])[..., 0]
    others = np.arange(problem.T) != alpha[..., None]
    if problem.mask is not None:
        others &= problem.mask
    low = problem.scores < np.take_along_axis(problem.scores, alpha[..., None], axis=-1)
    free = ~(others & ~low).any(axis=-1)
    rival = np.where(others & ~low, logits, -np.inf).max(axis=-1)
    margin = np.where(others & low, logits, -np.inf).max(axis=-1) - np.where(free, 0.0, rival)
    needed = epsilon * np.linalg.norm(W, axis=(-1, -2))[..., None]
    return np.asarray(((margin >= needed) | free).all(axis=-1))


@dataclass(frozen=True, eq=False)
class Sphere:
    """Directions ``V (B, p)``, each taken to the sphere of its trial's radius.

    The value is the log of the loss above its floor, and the gradient that of the log. Where
    ``unit`` is not NaN the gradient is that of the loss in units of ``exp(unit)``: on a plateau
    (all attention on a worse token) the log is level to rounding, and only slopes tell. A local
    path's loss may lie on either side of the loss at its tokens: their difference has no log.
    """

    model: Attention
    problem: TokenProblem
    radius: Array
    tokens: IntArray | None
    epsilon: float
    unit: Array | None = None

    @property
    def reach(self) -> Array:
        """The norm of the parameters: R for W, sqrt(2 R) for K and Q together."""
        return self.radius if self.model.factors is None else np.sqrt(2.0 * self.radius)

    @cached_property
    def size(self) -> Array:
        """Length of the longest feature of each trial; 1 where all are 0."""
        P = self.problem
        D = P.X - np.take_along_axis(P.X, P.optimal[..., None, None], axis=-2)
        D = D if P.mask is None else np.where(P.mask[..., None], D, 0.0)
        longest = np.linalg.norm(D, axis=-1).max(axis=-1) * np.linalg.norm(P.z, axis=-1)
        size = longest.max(axis=-1)
        return np.where(size > 0.0, size, 1.0)

    def take(self, index: Any) -> Sphere:
        """Some of the trials."""
        tokens, unit = (None if a is None else a[index] for a in (self.tokens, self.unit))
        problem, radius = self.problem.trial(index), self.radius[index]
        return replace(self, problem=problem, radius=radius, tokens=tokens, unit=unit)

    def split(self, theta: Array) -> Params:
        """Parameters of flat vectors."""
        names = ("W",) if self.model.factors is None else ("K", "Q")
        shape = (*theta.shape[:-1], self.problem.d, -1)
        parts = np.split(theta, len(names), axis=-1)
        return {name: part.reshape(shape) for name, part in zip(names, parts, strict=True)}

    def join(self, params: Params) -> Array:
        """Unit vectors of parameters."""
        V = np.concatenate([p.reshape(len(p), -1) for p in params.values()], axis=1)
        norm = np.linalg.norm(V, axis=1, keepdims=True)
        if (norm == 0.0).any():
            raise check.fail("start", "parameters with a direction", "zeros")
        return np.asarray(V / norm)

    def balanced(self, W: Array) -> Array:
        """Unit vectors of W, or of balanced factors of its nearest matrix of their rank."""
        m = self.model.factors
        if m is None:
            return self.join({"W": W})
        known = np.asarray(np.isfinite(W).all(axis=(1, 2)))
        U, values, Vt = np.linalg.svd(np.where(known[:, None, None], W, np.eye(self.problem.d)))
        root = np.sqrt(values[:, None, :m] / values[:, None, :1])
        root[~known] = np.nan
        pad = ((0, 0), (0, 0), (0, max(0, m - self.problem.d)))
        K, Q = U[..., :m] * root, Vt.swapaxes(1, 2)[..., :m] * root
        return self.join({"K": np.pad(K, pad), "Q": np.pad(Q, pad)})

    def slope(self, W: Array) -> Array:
        """The gradient in W, up to its scale."""
        return replace(self.model, factors=None).evaluate({"W": W}, self.problem).grads["W"]

    def __call__(self, V: Array) -> tuple[Array, Array, Array]:
        """Value, gradient, and the sine of the angle between gradient and normal."""
        norm = np.linalg.norm(V, axis=1, keepdims=True)
        V = V / norm
        params = self.split(V * self.reach[:, None])
        found = self.model.evaluate(params, self.problem)
        assert found.log_scale is not None
        assert found.log_excess is not None
        assert found.attention is not None
        G = np.concatenate([g.reshape(len(g), -1) for g in found.grads.values()], axis=1)
        length = np.linalg.norm(G, axis=1)
        G = G - np.einsum("bp,bp->b", G, V)[:, None] * V
        value = unit = found.log_excess
        if self.unit is not None:
            unit = np.where(np.isnan(self.unit), unit, self.unit)
        if self.tokens is not None:
            scores = self.problem.scores
            own = np.take_along_axis(scores, self.tokens[..., None], axis=-1)
            lost = (found.attention * (own - scores)).sum(axis=-1)
            above = losses()[self.model.loss].excess(own[..., 0], lost).mean(axis=-1)
            with np.errstate(divide="ignore"):
                log_value = np.log(np.abs(above)) - unit
            value = np.sign(above) * np.exp(np.minimum(log_value, 100.0))
            inside = within(self.problem, matrix(params), self.tokens, self.epsilon)
            value = np.where(inside, value, np.inf)
        weight = self.reach[:, None] * _ratio(next(iter(found.log_scale.values())), unit) / norm
        return value, weight * G, np.linalg.norm(G, axis=1) * inverse(length)

    def anchored(self, V: Array) -> Sphere:
        """With units for local paths and plateaus, those of the gradient at V."""
        found = self.model.evaluate(self.split(V * self.reach[:, None]), self.problem)
        assert found.log_scale is not None
        assert found.log_excess is not None
        scale = next(iter(found.log_scale.values()))
        own = np.isfinite(scale)
        if self.tokens is None:
            own &= scale < found.log_excess - PLATEAU
        return replace(self, unit=np.where(own, scale, np.nan))

    def kicked(self, V: Array) -> Array:
        """Rebalanced, with seeds for new columns: where they are zero their gradient is, too."""
        W = matrix(self.split(V * self.reach[:, None]))
        G = self.slope(W)
        share = np.linalg.norm(W, axis=(1, 2)) * inverse(np.linalg.norm(G, axis=(1, 2)))
        return self.balanced(W - KICK * share[:, None, None] * G)

    def solve(self, V: Array) -> Answer:
        """Descend from V and certify; rows of NaN stay what they are."""
        known = np.asarray(np.isfinite(V).all(axis=1))
        V, blocked = np.where(known[:, None], V, 1.0), np.zeros(len(V), bool)
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        todo = np.flatnonzero(known)
        for _ in range(ROUNDS):
            if not todo.size:
                break
            part = self.take(todo)
            v = V[todo] if self.model.factors is None else part.kicked(V[todo])
            part = part.anchored(v)
            first = (1.0 + part.radius * part.size) ** -2.0
            v, blocked[todo] = descend(part, v, first, AIM)
            V[todo] = v / np.linalg.norm(v, axis=1, keepdims=True)
            todo = todo[(part.stationarity(V[todo]) > STATIONARY) & ~blocked[todo]]
        return self._certified(V, known, blocked)

    def stationarity(self, V: Array) -> Array:
        """The sine; what a new column of K and Q would gain; 1 where the loss falls inwards."""
        sine = self(V)[2]
        W = matrix(self.split(V * self.reach[:, None]))
        G = self.slope(W)
        pull = -np.einsum("bij,bij->b", G, W)
        if self.model.factors is not None:
            values = np.linalg.svd(W, compute_uv=False)
            last = values[:, min(self.model.factors, self.problem.d) - 1]
            steepest = np.linalg.norm(G, 2, axis=(1, 2))
            gain = steepest * values.sum(axis=1) * inverse(pull) - 1.0
            sine = np.where(last < SPARE * values[:, 0], np.maximum(sine, gain), sine)
        return np.where(pull < 0.0, 1.0, sine)

    def _certified(self, V: Array, known: BoolArray, blocked: BoolArray) -> Answer:
        theta = V * self.reach[:, None]
        params = self.split(theta)
        found, sine = self.model.evaluate(params, self.problem), self.stationarity(V)
        assert found.log_excess is not None
        status = np.where(sine <= STATIONARY, "optimal", "iteration_limit").astype("<U15")
        status[(sine == 1.0) & (self(V)[2] <= STATIONARY)] = "inactive"
        if self.tokens is not None:
            inside = within(self.problem, matrix(params), self.tokens, self.epsilon)
            status[~inside | blocked] = "left_the_cone"
        status[~known] = "infeasible"
        theta[~known] = np.nan
        loss, excess, sine = (
            np.where(known, a, np.nan) for a in (found.loss, found.log_excess, sine)
        )
        return Answer(theta, loss, excess, sine, status)


def _ratio(log_scale: Array, unit: Array) -> Array:
    """exp(log_scale - unit) as a column; 0 where there is no gradient or nothing left to lose."""
    usable = np.isfinite(log_scale) & np.isfinite(unit)
    power = np.where(usable, log_scale, -np.inf) - np.where(usable, unit, 0.0)
    return np.asarray(np.exp(np.minimum(power, 100.0))[:, None])
