"""Proposition 1 and Theorem 1: linear convergence, and how far its conditions are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, exponent, slope
from attnbook.claims.encoder._instances import (
    Network,
    Pieces,
    frobenius,
    half_sum,
    length,
    median_exponent,
    nearly_fitted,
    network,
    pieces,
    relabelled,
)
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array
from attnlab.models import Encoder, Params

WIDTHS = np.array([100, 300, 1000, 3000, 10000])
SAMPLES = np.array([4, 8, 16, 32, 48])


def at_a_kink(rng: np.random.Generator, trials: int) -> Pieces:
    r"""Two samples of one token; a neuron of large output weight sits at its kink for the first.

    The error of the second sample moves that neuron so that the first sample's error grows. Two
    more neurons, without output weight, see one sample each and make alpha positive.
    """
    cosine, weight = rng.uniform(0.5, 0.7, trials), rng.uniform(10.0, 20.0, trials)
    sine = np.sqrt(1.0 - cosine**2)
    zero, one = np.zeros(trials), np.ones(trials)
    X = np.stack([np.stack([one, zero], -1), np.stack([cosine, sine], -1)], 1)
    dual = np.linalg.inv(X).mT  # rows: 1 at their own sample, 0 at the other
    own = dual - 0.1 * dual[:, ::-1]
    kink = np.stack([zero - 1e-17, rng.uniform(0.2, 0.5, trials)], -1)
    W_V = np.concatenate([kink[:, None], own], 1)
    w_O = np.stack([weight, zero, zero], -1)
    none = np.zeros((trials, 3, 2))
    model = models.Encoder(3, "lecun", "sqrt", "sum", "half_sum")
    params = {"W_Q": none, "W_K": none, "W_V": W_V, "w_O": w_O}
    tokens = problems.SequenceProblem(X[:, :, None], np.zeros((trials, 2)))
    error = 1e-7 * np.stack([one, -0.5 * cosine], -1)
    return Pieces(model, params, relabelled(tokens, model.forward(params, tokens) - error))


@measures("encoder.proposition-1", instances=8)
def proposition_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _first_steps_at_a_kink(rng, instances)
    for pooling in ("sum", "mean"):
        yield from _runs_between_kinks(rng, instances, pooling)
    yield from _constants(rng, max(instances, 10))
    yield from _square(rng, instances)


def _conditions(p: Pieces, what: str) -> Iterator[Measurement]:
    """Conditions (2) and (3) hold at this start."""
    e = theory.encoder
    b, alpha = e.bars(p.model, p.problem, p.params, radius=1.0), e.alpha(*p.network)
    for number, met in (
        ("2", e.condition_2(b, alpha, p.loss)),
        ("3", e.condition_3(b, alpha, p.loss)),
    ):
        yield at_least(f"condition {number}, {what}", met, 1.0, role="correction")


def _first_steps_at_a_kink(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e, p = theory.encoder, at_a_kink(rng, instances)
    yield from _conditions(p, "a neuron at its kink")
    b, alpha = e.bars(p.model, p.problem, p.params, radius=1.0), e.alpha(*p.network)
    for share in (1.0, 1e-3):
        gamma = share / float(e.smoothness(b, p.loss).max())
        run = optim.train(p.model, p.problem, optim.GD(gamma), steps=1, params=p.params)
        decay, promised = mean_decay(run.history["loss"], np.arange(2)), e.rate(alpha, gamma)
        yield at_least(f"first step at a kink, gamma = {share:g}/C", decay, 1.0 - promised)


def _runs_between_kinks(
    rng: np.random.Generator, instances: int, pooling: str
) -> Iterator[Measurement]:
    e, p = theory.encoder, nearly_fitted(rng, instances, pooling=pooling)
    model, params, problem = p.network
    yield from _conditions(p, f"{pooling} pooling")
    b, alpha = e.bars(model, problem, params, radius=1.0), e.alpha(*p.network)
    allowed = np.maximum(e.smoothness(b, p.loss), e.smoothness(b, p.loss, printed=True))
    gamma = 1.0 / float(allowed.max())
    told = {
        "sigma": model_alpha(model),
        "moved": travelled(params),
        "drift": drifted(model, params, problem),
    }
    run = optim.train(
        model,
        problem,
        optim.GD(gamma),
        steps=400,
        params=params,
        every=40,
        record=["loss", told],
    )
    decay, promised = mean_decay(run.history["loss"], np.arange(0, 401, 40)), e.rate(alpha, gamma)
    what = f"decay of the loss a step, {pooling} pooling"
    yield at_least(what, decay, 1.0 - promised, role="correction")
    kept = (Pieces(model, run.params, problem).gate == p.gate).mean()
    yield at_least("share of neurons that stay on their side", kept, 1.0, role="correction")
    what = "smallest singular value on the way over alpha"
    yield at_least(what, run.history["sigma"] / alpha, 7.0 / 8.0, role="correction")
    bounds = np.stack(list(e.movement_bounds(b, alpha, p.loss).values()), axis=-1)
    yield at_most("way of each parameter", run.history["moved"], bounds, role="correction")
    yield at_most("half of C, the bound on the way", bounds, 0.5, role="correction")
    limit, third = e.drift_bound(b, alpha, p.loss), e.condition_3(b, alpha, p.loss)
    yield at_most("drift of F_pre", run.history["drift"], limit, role="correction")
    yield at_most("bound on that drift over alpha", limit / alpha, 0.125, role="correction")
    what = "that bound over alpha, where (3) is an equality"
    yield equal(what, limit * third / alpha, 0.125, role="correction")
    weak, strong = e.rate(alpha, gamma, kept=0.5), e.rate(alpha, gamma, kept=7 / 8)
    yield at_most("rate of alpha/2 against (4)", weak, promised, role="step")
    yield at_most("rate of 7 alpha/8 against (4)", strong, promised, role="correction")
    top = np.linalg.eigvalsh(ntk.empirical(model, params, problem))[..., -1]
    fast = optim.train(model, problem, optim.GD(3.0 / float(top.min())), steps=3, params=params)
    grown = fast.history["loss"][-1] / p.loss
    yield at_most("loss over its start, step 3/lambda_max", grown, 1.0, role="outside")


def _constants(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """Equations 35 to 37: the residual that multiplies c_3 in C, and the last term of c_1."""
    e, p = theory.encoder, nearly_fitted(rng, instances, 0.01)
    bars, residual = p.bars(), np.linalg.norm(p.residual, axis=-1)
    yield at_most("residual against 2 l (35)", residual, 2.0 * p.loss, role="step")
    share = (e.smoothness(bars, p.loss) - e.c1(bars) * e.c2(bars)) / e.c3(bars)
    yield at_least("C - c1 c2 over c3, against the residual", share, residual, role="correction")
    p = pieces(rng, instances, n=1, T=2).scaled(W_Q=1e-6, W_K=100.0, W_V=100.0, w_O=1000.0)
    uphill = p.gradient["W_Q"]
    step = 1e-9 * uphill[:, 0] / np.maximum(length([uphill]), 1e-300)[:, None, None]
    q = p.moved({"W_Q": step})
    change = np.abs(q.model.forward(*q.network[1:]) - p.model.forward(*p.network[1:]))[:, 0]
    ratio, bars = change / np.maximum(length([step]), 1e-300), p.bars(q)
    printed = e.c1(bars, printed=True)
    yield at_most("|f' - f| over the step, c_1 as printed", ratio, printed, role="step")
    yield at_most("|f' - f| over the step, c_1", ratio, e.c1(bars), role="correction")


def _square(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    """The last line of Appendix C.2 has alpha for its square: short tokens make alpha small."""
    e, p, steps = theory.encoder, nearly_fitted(rng, instances, 1e-10, size=0.01), 50
    yield from _conditions(p, "tokens of length 1/100")
    bars, alpha = e.bars(p.model, p.problem, p.params, radius=1.0), e.alpha(*p.network)
    gamma = 1.0 / float(e.smoothness(bars, p.loss).max())
    run = optim.train(p.model, p.problem, optim.GD(gamma), steps, params=p.params, every=steps)
    taken, what = mean_decay(run.history["loss"], [0, steps]), "share of the loss taken off a step"
    yield at_least(f"{what}, against gamma alpha/2", taken, gamma * alpha / 2.0, role="step")
    stated = 1.0 - e.rate(alpha, gamma)
    yield at_least(f"{what}, against gamma alpha^2/2", taken, stated, role="correction")


def mean_decay(loss: Array, steps: ArrayLike) -> Array:
    """The share of the loss that a step took off, in the geometric mean over the first t steps."""
    return np.asarray(-np.expm1(np.log(loss[1:] / loss[0]) / np.asarray(steps)[1:, None]))


def model_alpha(model: Encoder) -> Any:
    """A recorder of the smallest singular value of the hidden layer."""
    return lambda params, problem: theory.encoder.alpha(model, params, problem)


def travelled(start: Params) -> Any:
    """A recorder of how far each parameter is from its start."""
    return lambda params, _: np.stack(
        [np.sqrt(((params[k] - start[k]) ** 2).reshape(len(start[k]), -1).sum(-1)) for k in start],
        axis=-1,
    )


def drifted(model: Encoder, start: Params, problem: problems.SequenceProblem) -> Any:
    """A recorder of how far the hidden layer is from its start."""
    F = model.features(start, problem)
    return lambda params, at: frobenius(model.features(params, at) - F)


def conditions(
    rng: np.random.Generator,
    trials: int,
    init: str,
    scaling: str,
    *,
    growing: bool = False,
) -> dict[str, list[Array]]:
    """Alpha^2, the ratios of (2) and (3), and the loss at growing widths, on the same data."""
    e = theory.encoder
    drawn = problems.gaussian_regression(n=4, T=2, d=6, unit_tokens=True, trials=trials, rng=rng)
    found: dict[str, list[Array]] = {"alpha^2": [], "(2)": [], "(3)": []}
    for width in WIDTHS:
        model = models.Encoder(int(width), init, scaling, "sum", "half_sum")
        params = model.init(drawn, rng)
        radius = float(width) ** 0.5 if growing else 1.0
        b, alpha = e.bars(model, drawn, params, radius=radius), e.alpha(model, params, drawn)
        loss = half_sum(model, params, drawn)
        found["alpha^2"].append(alpha**2)
        found["(2)"].append(e.condition_2(b, alpha, loss, radius))
        found["(3)"].append(e.condition_3(b, alpha, loss))
    return found


def over_samples(
    rng: np.random.Generator, init: str, scaling: str, role: str, *, growing: bool = False
) -> Iterator[Measurement]:
    r"""Exponents of N in (2) and (3), with $\alpha$ taken out: its own N is Lemma 15's.

    Tokens are orthonormal, so that samples do not become similar as they become many. With the
    exponent 1/2 of $d_m$ in both, N^-1 and N^-1.5 ask for widths of order N^2 and N^3.
    """
    e, width, trials = theory.encoder, 256, 8
    basis = np.eye(2 * int(SAMPLES[-1]))
    second, third = [], []
    for N in SAMPLES:
        X = np.broadcast_to(basis[: 2 * N].reshape(N, 2, -1), (trials, N, 2, len(basis)))
        drawn = problems.SequenceProblem(X, rng.choice((-1.0, 1.0), (trials, N)))
        model = models.Encoder(width, init, scaling, "sum", "half_sum")
        params = model.init(drawn, rng)
        radius = float(width) ** 0.5 if growing else 1.0
        b, alpha = e.bars(model, drawn, params, radius=radius), e.alpha(model, params, drawn)
        off = model.forward(params, drawn) + drawn.y  # every error is 1: the loss is N/2
        loss = half_sum(model, params, relabelled(drawn, off))
        second.append(np.median(e.condition_2(b, alpha, loss, radius) / alpha**2))
        third.append(np.median(e.condition_3(b, alpha, loss) / alpha**3))
    name = f"{init}, tau_0 {scaling}, N from 4 to 48"
    for what, found, power in (
        ("(2) over alpha^2", second, -1.0),
        ("(3) over alpha^3", third, -1.5),
    ):
        words = f"exponent of N in {what}, {name}"
        yield exponent(words, SAMPLES, found, power, within=0.05, decades=1.0, role=role)


@measures("encoder.theorem-1", instances=10)
def theorem_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from over_samples(rng, "lecun", "sqrt", "statement")
    for init, scaling, third in (
        ("lecun", "sqrt", 0.4),
        ("he", "sqrt", 0.4),
        ("lecun", "linear", 1.2),
    ):
        found = conditions(rng, instances, init, scaling)
        name = f"{init}, tau_0 {scaling}"
        for key, least in (("alpha^2", 0.85), ("(2)", 0.4), ("(3)", third)):
            grows = median_exponent(WIDTHS, found[key], slope)
            yield at_least(f"exponent of {key} in d_m, {name}", grows, least)
        widest = found["(2)"][-1]
        yield at_least(f"condition 2 at d_m = 1e4, {name}", widest, 1.0, role="outside")
        model, params, drawn = network(
            rng, instances, n=8, T=3, d=24, width=200, init=init, scaling=scaling
        )
        top = np.linalg.eigvalsh(ntk.empirical(model, params, drawn))[..., -1].max()
        gamma, alpha = 0.25 / float(top), theory.encoder.alpha(model, params, drawn)
        run = optim.train(model, drawn, optim.GD(gamma), steps=200, params=params, every=20)
        decay = mean_decay(run.history["loss"], np.arange(0, 201, 20))
        promised = 1.0 - theory.encoder.rate(alpha, gamma)
        yield at_least(f"decay of the loss a step at width 200, {name}", decay, promised)
    for c in (1.0, 0.1, 0.01):
        kept_back = theory.encoder.theorem_1_failure(1000, 100, 10, c)[1]
        yield at_most(f"the probability's last term, c = {c:g}", kept_back, 0.5, role="step")
    model, params, swapped = swapped_tokens()
    F = model.features(params, swapped)
    first = np.maximum(
        theory.encoder.first_token_features(model, params, swapped) @ params["W_V"].mT, 0.0
    )
    least = np.linalg.svd(first, compute_uv=False)[-1]
    what = "alpha of all tokens against the first token's"
    yield at_least(what, np.linalg.svd(F, compute_uv=False)[-1], least, role="step")


def swapped_tokens() -> Network:
    """Two samples that differ in the order of their tokens: the hidden layer has rank one."""
    e1, e2 = np.eye(2)
    problem = problems.SequenceProblem(np.array([[e1, e2], [e2, e1]]), np.array([1.0, -1.0]))
    model = models.Encoder(2, "lecun", 1.0, "sum", "half_sum")
    params = {"W_Q": 5.0 * np.eye(2), "W_K": 5.0 * np.eye(2), "W_V": np.eye(2), "w_O": np.ones(2)}
    return model, params, problem
