"""Other steps with a fixed decoder: the two-token example, Theorem 6 (GD), Theorem 7 (Polyak)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.bias import _instances as data
from attnbook.claims.bias._instances import FIXED, Setting, copies, inner, length, setting
from attnlab import checks as check
from attnlab import optim, problems, svm
from attnlab.checks import Array, BoolArray

BETA = 0.9


def _two_tokens(rng: np.random.Generator, trials: int) -> tuple[Setting, Array]:
    """The example of Section 3.3 from random starts."""
    many = copies(problems.two_token(), trials)
    return setting(many), rng.uniform(-0.5, 0.5, (trials, 2, 2))


def _path(at: Setting, W: Array, rule: optim.Rule, steps: int) -> tuple[Array, Array]:
    run = optim.train(
        FIXED,
        at.problem,
        rule,
        steps,
        params={"W": W},
        record={"W": lambda params, _: params["W"]},
        every="log",
    )
    return run.history["step"].astype(float), run.history["W"]


def _misses(W: Array, start: Array) -> tuple[Array, Array, Array]:
    """1 - cosine with e_1 e_1', its closed form, and the constant in it."""
    along, off = W[..., 0, 0], length(start) ** 2 - start[..., 0, 0] ** 2
    return 1.0 - along / length(W), theory.bias.two_token_miss(along, off), off


@measures("bias.equation-3", instances=20)
def equation_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at, start = _two_tokens(rng, instances)
    yield equal("W_mm", at.margin.W, np.diag([1.0, 0.0]), size=1.0)
    times, W = _path(at, start, optim.GD(1.0), 10_000)
    moved = W - W[0]
    moved[..., 0, 0] = 0.0
    yield equal("entries other than W11 do not move", moved, 0.0, size=1.0)
    late = times >= 100
    measured, exact, off = _misses(W[late], start)
    yield equal("1 - cosine", measured, exact, size=exact, within=1e-6)
    near = off / (2.0 * length(W[late]) ** 2)
    yield equal("1 - cosine, approximation at the end", measured[-1], near[-1], within=0.02)
    grown = [theory.bias.two_token_gd(times, float(w), 1.0)[-1] for w in start[:, 0, 0]]
    yield equal("W11 at the end against log(e^w + eta t / e)", W[-1, :, 0, 0], grown, within=1e-3)
    logs = np.log(times[late])[:, None]
    yield at_most("|W_t| over log t", length(W[late]) / logs, 1.5)
    yield at_least("(1 - cosine)(log t)^2 over its limit", measured * logs**2 / (off / 2.0), 0.99)


@measures("bias.section-a4", instances=20)
def section_a4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at, start = _two_tokens(rng, instances)
    times, W = _path(at, start, optim.NormalizedGD(0.1), 4000)
    yield equal("W11", W[:, :, 0, 0], start[:, 0, 0] + 0.1 * times[:, None], size=1.0)
    late = times >= 30
    measured, exact, off = _misses(W[late], start)
    yield equal("1 - cosine", measured, exact, size=exact, within=1e-6)
    t = times[late]
    limit = off / (2.0 * 0.1**2)
    yield equal(
        "(1 - cosine) t^2 over its limit", measured[-1] * t[-1] ** 2 / limit, 1.0, within=0.01
    )
    long = theory.bias.two_token_miss(start[:, 0, 0] + 0.1 * 1e6, off)
    yield equal("the same at t = 10^6", long * 1e12 / limit, 1.0, within=1e-4)
    worst = min(slope(t, column) for column in exact.T)
    yield at_least("exponent of 1 - cosine", worst, -2.3)
    best = max(slope(t, column) for column in exact.T)
    yield at_least("exponent, as Theorem 1 is recalled", best, -1.0, role="step")
    _, slow = _path(at, start, optim.GD(1.0), 4000)
    yield at_least("GD misses by more, ratio", _misses(slow[-1], start)[1] / exact[-1], 100.0)


@measures("bias.theorem-6", instances=20)
def theorem_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at, start = _two_tokens(rng, instances)
    numbers: dict[str, Any] = {"B": at.B, "margin_norm": at.width}
    for eps in (0.2, 0.5):
        R = theory.bias.norm_threshold(eps, **numbers, n=1, T=2, conditioning=at.conditioning)
        W = np.array(start)
        W[:, 0, 0] = np.maximum(R, 0.5)  # the line on which gradient descent moves
        cosine = svm.correlation(W, at.margin.W)
        state = {"norm": length(W), "correlation": cosine, "loss": _loss(at, W)}
        C = theory.bias.gd_constant(eps, 1.0, **state, **numbers, printed=True)
        bound = theory.bias.gd_bound(eps, length(W), C)
        yield at_least(f"cosine at |W| = R_eps, two tokens, eps={eps}", cosine, bound)
    for n, T in ((2, 2), (3, 3)):
        near = data.nearly_orthogonal(rng, instances, n=n, T=T)
        scale = theory.bias.loss_scale(near.best, near.others)
        step = float(theory.bias.gd_step(near.B, scale, T=T).min())
        first = data.small_start(rng, near, np.full(instances, step))
        _, path = _path(near, first, optim.GD(step), 10_000)
        share = np.stack([near.attention(W) for W in path])
        bound = np.minimum(share[0], 1.0 / T)
        yield at_least(f"attention on opt, n={n} T={T}", share, bound, role="correction")
        for eps in (0.02, 0.1, 0.5):
            where = f"n={n} T={T} eps={eps}"
            yield from _after(near, path, step, eps, where)
    yield from _longest_step(rng)


def _longest_step(rng: np.random.Generator) -> Iterator[Measurement]:
    r"""The first step from zero, as long as allowed, moves logits as far as Lemma 3 wants.

    Opposite tokens of length B attain both estimates of the proof: a step moves a difference of
    logits by $2B^2$ times its length, and two tokens have $\|\nabla\mathcal L\|\le B^2\zeta/2$; T
    of them, with scores $\pm h$, have $4(T-1)e^{-2h/T}/T^2$ of that.
    """
    h, shares = 0.05, []
    for T in (2, 3, 5):
        for B in (*rng.uniform(0.3, 0.8, 2), *rng.uniform(1.3, 3.0, 2)):
            X = np.zeros((2, T, 2))
            X[:, 0, 0], X[:, 1:, 0] = B, -B
            drawn = problems.TokenProblem(X, X[:, 0], np.ones(2), np.array([h / B, 0.0]))
            best, others, _ = theory.bias.split_scores(drawn)
            step = theory.bias.gd_step(B, theory.bias.loss_scale(best, others), T=T)
            run = optim.train(FIXED, drawn, optim.GD(float(step)), 1)
            lead = data.leads(run.params["W"], drawn)[0, 1]
            attained = 4.0 * (T - 1.0) / T**2 * np.exp(-2.0 * h / T)
            shares.append(lead / (np.log(2.0 * T - 1.0) * attained))
    what = "opposite tokens: lead after the first step, over log(2T-1), where the step is longest"
    yield equal(what, shares, 1.0, role="correction")


def _loss(at: Setting, W: Array) -> Array:
    return FIXED.value_and_grad({"W": W}, at.problem)[0]


def _after(at: Setting, path: Array, step: float, eps: float, where: str) -> Iterator[Measurement]:
    """Theorem 6 from the first recorded step after which the gradient is better aligned."""
    G = np.stack([at.descent(W) for W in path])
    size, cosine = length(path), svm.correlation(path, at.margin.W)
    with np.errstate(invalid="ignore"):
        ahead = inner(G, at.margin.W) / at.width - (1.0 - eps) * inner(G, path) / size
    fine = (ahead >= 0.0) & (size >= 0.5)
    begin = int(np.flatnonzero(~fine.all(axis=-1)).max()) + 1
    if begin >= len(path):
        raise check.fail("path", f"a step from which on (27) holds, {where}", "none")
    state = {
        "norm": size[begin],
        "correlation": cosine[begin],
        "loss": _loss(at, path[begin]),
    }
    C = theory.bias.gd_constant(eps, step, **state)
    bound = theory.bias.gd_bound(eps, size[begin:], C)
    yield at_least(f"cosine, {where}", cosine[begin:], bound, role="correction")
    numbers: dict[str, Any] = {"B": at.B, "margin_norm": at.width}
    C = theory.bias.gd_constant(eps, step, **state, **numbers, printed=True)
    bound = theory.bias.gd_bound(eps, size[begin:], C)
    yield at_least(f"cosine, printed C, {where}", cosine[begin:], bound)


@measures("bias.theorem-7", instances=100)
def theorem_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for n in (2, 3):
        at = data.nearly_orthogonal(rng, instances, n=n, T=2)
        d = at.problem.d
        low, high = theory.bias.gradient_bounds(at.best, at.others, at.B, at.width, beta=BETA)
        for size in (0.0, 1.0, 3.0, 30.0):
            W = rng.standard_normal((instances, d, d)) * size
            loss, grads = FIXED.value_and_grad({"W": W}, at.problem)
            share, ratio = at.attention(W), length(grads["W"]) / loss
            where = f"gradient over loss, n={n}, size {size:g}"
            yield at_most(where, ratio, high, role="correction")
            inside = ((share <= BETA) & (share >= 1.0 - BETA)).all(axis=-1)
            if inside.any():
                where = f"gradient over loss from below, n={n}, size {size:g}"
                yield at_least(where, ratio[inside], low[inside], role="correction")
    yield from _polyak_runs(rng, instances)
    yield from _no_time()


@dataclass(frozen=True, eq=False)
class Polyak:
    """Polyak's step with the factor of the theorem while attention is at most beta, and upsilon."""

    step: Array
    omegas: tuple[Array, Array]
    W: Array
    running: BoolArray
    upsilon: Array

    @property
    def last(self) -> Array:
        r"""$T_0$."""
        return np.asarray(self.running.sum(axis=0))


def _polyak(at: Setting, beta: float, start: Array) -> Polyak:
    omegas = theory.bias.gradient_bounds(at.best, at.others, at.B, at.width, beta=beta)
    step = theory.bias.polyak_step(at.B, omegas[0], T=at.problem.T)
    W, path, excess = start, [start], []
    while len(path) < 2000 and (at.attention(W) <= beta).all(axis=-1).any():
        over, direction, log_scale = FIXED.scaled_grad({"W": W}, at.problem)
        G = direction["W"]
        factor = step * over / (inner(G, G) * np.exp(log_scale))
        excess.append(_loss(at, W) / over)
        W = W - factor[:, None, None] * G
        path.append(W)
    inside = np.stack([(at.attention(W) <= beta).all(axis=-1) for W in path[1:]])
    running = np.logical_and.accumulate(inside, axis=0)
    before = np.concatenate([np.ones_like(running[:1]), running[:-1]])
    upsilon = np.where(before, np.array(excess), 1.0).max(axis=0)
    return Polyak(step, omegas, np.array(path[1:]), running, upsilon)


def _begins(at: Setting, run: Polyak) -> Array:
    r"""$t_0$ as printed, with $\upsilon$ for $\nu$."""
    samples: dict[str, Any] = {"n": at.problem.n, "T": 2, "conditioning": at.conditioning}
    wait = theory.bias.waiting_time(run.step, at.B, at.width, **samples, printed=True)
    return np.asarray(run.omegas[1] * run.upsilon * wait)


def _polyak_runs(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    at = data.nearly_orthogonal(rng, instances, n=2, T=2)
    numbers: dict[str, Any] = {"B": at.B, "margin_norm": at.width}
    low, _ = theory.bias.gradient_bounds(at.best, at.others, at.B, at.width, beta=BETA)
    start = data.small_start(rng, at, theory.bias.polyak_step(at.B, low, T=2))
    run = _polyak(at, BETA, start)
    share = np.stack([at.attention(W) for W in run.W])
    falls = np.where(run.running[..., None], share, 1.0)
    floor = np.minimum(at.attention(start), 0.5)
    yield at_least("attention on opt, Polyak", falls, floor, role="correction")
    t = np.arange(1.0, len(run.W) + 1.0)[:, None]
    slow, begin = run.omegas[1] * run.upsilon, _begins(at, run)
    late = run.running & (t >= slow)
    least = theory.bias.norm_bounds(t, run.step, **numbers)[0] / slow
    size = np.where(late, length(run.W), np.inf)
    yield at_least("norm from t = omega_2 upsilon on", size, least, role="correction")
    what = "T_0, the last step with attention at most beta, against t_0"
    yield at_most(what, run.last, begin, role="correction")
    along = inner(start, at.margin.W) / at.width
    state: dict[str, Any] = {"excess": run.upsilon, "norm": length(start), "along": along}
    C = theory.bias.polyak_constant(run.step, **numbers, omegas=run.omegas, **state)
    allowed = 1.0 - theory.bias.rate_bound(np.maximum(t, 3.0), C)
    miss = np.where(run.running & (t >= 3.0), 1.0 - svm.correlation(run.W, at.margin.W), 0.0)
    yield at_most("1 - cosine at all times up to T_0, whatever t_0", miss, allowed)
    # the proof of Theorem 5 with steps of at most eta / omega_1, at times that no run has
    t = begin * np.geomspace(1.0, 1e6, 100)[:, None]
    least = theory.bias.norm_bounds(t, run.step, **numbers)[0] / slow
    longest = run.step / run.omegas[0]
    behind = longest * theory.bias.epsilon_schedule(t, run.step, **numbers) * t
    behind = behind + longest**2 * t / (2.0 * least)
    spent = np.cumsum((behind[1:] + behind[:-1]) / 2.0 * np.diff(np.log(t), axis=0), axis=0)
    allowed = 1.0 - theory.bias.rate_bound(t[1:], C)
    what = "what the proof spends up to t, over the least norm"
    yield at_most(what, spent / least[1:], allowed, role="correction")


def _no_time() -> Iterator[Measurement]:
    """One sample with opposite tokens, scores of many sizes, from zero: is t_0 ever before T_0?"""
    gaps = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
    X = np.ones((gaps.size, 1, 2, 1)) * np.array([1.0, -1.0])[:, None]
    at = setting(problems.TokenProblem(X, X[..., 0, :], np.ones((gaps.size, 1)), gaps[:, None] / 2))
    for beta in (0.6, 0.9, 0.99):
        run = _polyak(at, beta, np.zeros((gaps.size, 1, 1)))
        ratio = _begins(at, run) / np.maximum(run.last, 1.0)
        what = f"t_0 over T_0, one sample, gaps from 1 to 100, beta = {beta:g}"
        yield at_least(what, ratio, 1.0, role="correction")
