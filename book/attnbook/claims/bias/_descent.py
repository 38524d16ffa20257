"""Other steps with a fixed decoder: the two-token example, Theorem 6 (GD), Theorem 7 (Polyak)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.bias import _instances as data
from attnbook.claims.bias._instances import FIXED, Setting, copies, inner, length, setting
from attnlab import checks as check
from attnlab import optim, problems, svm
from attnlab.checks import Array

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


@measures("bias.theorem-7")
def theorem_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    X = np.zeros((1, 10, 1)) - 1.0
    X[:, 0] = 1.0  # ten tokens, e once and -e nine times, from a start at zero
    long = setting(problems.TokenProblem(X, X[:, 0], np.ones(1), np.array([0.5])))
    share, ratio = _gradient_ratio(long, np.zeros((1, 1)))
    low, _ = theory.bias.gradient_bounds(long.best, long.others, long.B, long.width, beta=0.6)
    yield at_most("attention at the start, ten tokens", share, 0.6, role="correction")
    yield at_least("gradient over loss there", ratio, low)
    for n in (2, 3):
        at = data.nearly_orthogonal(rng, instances, n=n, T=2)
        d = at.problem.d
        low, high = theory.bias.gradient_bounds(at.best, at.others, at.B, at.width, beta=BETA)
        for size in (0.0, 1.0, 3.0, 30.0):
            W = rng.standard_normal((instances, d, d)) * size
            share, ratio = _gradient_ratio(at, W)
            yield at_most(
                f"gradient over loss, n={n}, size {size:g}", ratio, high, role="correction"
            )
            inside = ((share <= BETA) & (share >= 1.0 - BETA)).all(axis=-1)
            if inside.any():
                where = f"gradient over loss from below, n={n}, size {size:g}"
                yield at_least(where, ratio[inside], low[inside], role="correction")
    yield from _figure_2_kind(rng, instances)
    yield from _polyak_runs(rng, instances)


def _figure_2_kind(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """What the paper says of nu, which stands for upsilon, and of omega_2, along a short run."""
    at = setting(problems.orthogonal(n=6, T=3, d=30, rho=0.2, trials=instances, rng=rng))
    _, high = theory.bias.gradient_bounds(at.best, at.others, at.B, at.width, beta=BETA)
    record = ["loss", "excess", "grad_norm"]
    run = optim.train(FIXED, at.problem, optim.PolyakStep(), steps=8, record=record)
    loss, excess, slopes = (run.history[name] for name in record)
    what = "(loss - floor)/|gradient| along a Polyak run, against 1/(omega_2 upsilon)"
    yield at_least(f"{what}, nu of Lemma 7", excess / slopes, 9.0 / high, role="step")  # eps = 0.1
    least = 1.0 / (high * (loss / excess).max(axis=0))
    yield at_least(what, excess / slopes, least, role="correction")
    yield at_least("omega_2 there", high, 1.0, role="step")


def _gradient_ratio(at: Setting, W: Array) -> tuple[Array, Array]:
    loss, grads = FIXED.value_and_grad({"W": W}, at.problem)
    return at.attention(W), np.asarray(length(grads["W"]) / loss)


def _polyak_runs(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Polyak's step with the factor of the theorem, while attention is at most beta."""
    at = data.nearly_orthogonal(rng, instances, n=2, T=2)
    numbers: dict[str, Any] = {"B": at.B, "margin_norm": at.width}
    omegas = theory.bias.gradient_bounds(at.best, at.others, at.B, at.width, beta=BETA)
    step = theory.bias.polyak_step(at.B, omegas[0], T=2)
    W = start = data.small_start(rng, at, step)
    first = at.attention(W)
    shares: list[Array] = []
    excess: list[Array] = []
    path: list[Array] = []
    while len(path) < 2000 and (at.attention(W) <= BETA).all(axis=-1).any():
        over, direction, log_scale = FIXED.scaled_grad({"W": W}, at.problem)
        G = direction["W"]
        factor = step * over / (inner(G, G) * np.exp(log_scale))
        excess.append(_loss(at, W) / over)
        W = W - factor[:, None, None] * G
        shares.append(at.attention(W))
        path.append(W)
    share = np.array(shares)
    running = np.logical_and.accumulate((share <= BETA).all(axis=-1), axis=0)
    falls = np.where(running[..., None], share, 1.0)
    yield at_least("attention on opt, Polyak", falls, np.minimum(first, 0.5), role="correction")
    upsilon = np.where(running, np.array(excess), 1.0).max(axis=0)
    t = np.arange(1.0, len(path) + 1.0)[:, None]
    slow = omegas[1] * upsilon
    least = theory.bias.norm_bounds(t, step, **numbers)[0] / slow
    late = running & (t >= slow)
    size = np.where(late, length(np.array(path)), np.inf)
    yield at_least("norm from t = omega_2 upsilon on", size, least, role="correction")
    last = running.sum(axis=0)
    samples: dict[str, Any] = {"n": 2, "T": 2, "conditioning": at.conditioning}
    begin = slow * theory.bias.waiting_time(step, **numbers, **samples, printed=True)
    yield at_most("T_0 against t_0: the premise is empty", last, begin, role="correction")
    C = theory.bias.polyak_constant(
        step,
        **numbers,
        omegas=omegas,
        excess=upsilon,
        norm=length(start),
        along=inner(start, at.margin.W) / at.width,
    )
    cosine = svm.correlation(np.array(path)[-1], at.margin.W)
    bound = theory.bias.rate_bound(np.maximum(last, 3.0), C)
    yield at_least("cosine at the end, against a vacuous bound", cosine, bound, role="correction")
    yield at_least("cosine at the end", cosine, 0.9, role="correction")
