"""What holds exactly: homogeneity, balance, symmetries; one feature a token (Corollary 1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope, vanishes
from attnbook.claims.encoder._instances import Network, Pieces, half_sum, network, pieces
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem


def encoders(rng: np.random.Generator, trials: int) -> Iterator[tuple[str, Network]]:
    """Some shapes, one for each kind of start and pooling."""
    for init, scaling, pooling in (
        ("lecun", "sqrt", "mean"),
        ("ntk", "linear", "sum"),
        ("ntk", "sqrt", "mean"),
    ):
        made = network(
            rng,
            trials,
            n=3,
            T=4,
            d=5,
            width=7,
            init=init,
            scaling=scaling,
            pooling=pooling,
            unit=False,
        )
        yield f"{init} {scaling} {pooling}", made


def paired(gradient: Array, weight: Array) -> Array:
    """Inner products of each sample's gradient with a parameter, ``(trials, n)``."""
    many = gradient.shape[:2]
    return np.asarray((gradient.reshape(*many, -1) * weight.reshape(many[0], 1, -1)).sum(axis=-1))


@measures("encoder.identity-1", instances=30)
def identity_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, (model, params, problem) in encoders(rng, instances):
        J, f = ntk.jacobian(model, params, problem), model.forward(params, problem)
        size = np.abs(f).mean()
        for key in ("W_V", "w_O"):
            yield equal(
                f"derivative along {key}, {name}", paired(J[key], params[key]), f, size=size
            )
        Q, K = (paired(J[key], params[key]) for key in ("W_Q", "W_K"))
        yield equal(f"derivatives along W_Q and W_K, {name}", Q, K, size=np.abs(K).mean())
        left = J["W_Q"] @ params["W_Q"][:, None].mT
        right = (J["W_K"] @ params["W_K"][:, None].mT).mT
        yield equal(f"the whole matrices, {name}", left, right, size=np.abs(right).mean())


def invariants(params: Params) -> Array:
    """What gradient flow keeps, in one row for each trial."""
    kept = params["W_Q"] @ params["W_Q"].mT - params["W_K"] @ params["W_K"].mT
    neurons = (params["W_V"] ** 2).sum(axis=-1) - params["w_O"] ** 2
    return np.concatenate([kept.reshape(len(kept), -1), neurons], axis=-1)


@measures("encoder.identity-2", instances=20)
def identity_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    steps = np.array([1e-4, 1e-3, 1e-2])
    for name, (model, params, problem) in encoders(rng, instances):
        before, drift = invariants(params), []
        for gamma in steps:
            run = optim.train(model, problem, optim.GD(float(gamma)), steps=1, params=params)
            drift.append(np.linalg.norm(invariants(run.params) - before, axis=-1))
        exponents = [slope(steps, column) for column in np.stack(drift).T]
        yield equal(f"exponent of a step's drift, {name}", exponents, 2.0, within=1e-3)


@measures("encoder.identity-3", instances=50)
def identity_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, (model, params, problem) in encoders(rng, instances):
        f = model.forward(params, problem)
        other = problems.SequenceProblem(problem.X[:, :, rng.permutation(problem.T)], problem.y)
        what = f"outputs for permuted tokens, {name}"
        yield equal(what, model.forward(params, other), f, size=np.abs(f).mean())
        beta = model.attention(params, problem)[:, :, 0]
        J = theory.encoder.softmax_jacobian(beta)
        yield equal(f"J times ones, {name}", J.sum(axis=-1), 0.0, size=1.0)
        yield at_most(f"norm of J, {name}", np.linalg.norm(J, ord=2, axis=(-2, -1)), 0.5)
        v = rng.standard_normal(beta.shape)
        mean = (beta * v).sum(axis=-1, keepdims=True)
        variance = (beta * (v - mean) ** 2).sum(axis=-1)
        quadratic = (v[..., None, :] @ J @ v[..., None])[..., 0, 0]
        yield equal(f"v'Jv against the variance, {name}", quadratic, variance, size=1.0)


@measures("encoder.identity-4", instances=20)
def identity_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    for scaling in ("sqrt", "linear"):
        for pooling in ("mean", "sum"):
            model, params, problem = network(
                rng,
                instances,
                n=8,
                T=6,
                d=1,
                width=30,
                scaling=scaling,
                pooling=pooling,
                unit=False,
            )
            kappa, p, q = e.effective_scalars(model, params)
            pair = e.effective_features(kappa, problem)
            c = e.bars(model, problem, params).pool
            f = c * (pair[..., 0] * p[:, None] + pair[..., 1] * q[:, None])
            name = f"tau_0 {scaling}, {pooling} pooling"
            size = np.abs(f).mean()
            yield equal(f"outputs, {name}", model.forward(params, problem), f, size=size)
            values = np.linalg.svd(model.features(params, problem), compute_uv=False)
            yield vanishes(
                f"third singular value of F_pre, {name}", values[:, 2] / values[:, 0], within=1e-12
            )
            K = np.linalg.eigvalsh(ntk.empirical(model, params, problem))
            yield vanishes(
                f"fourth eigenvalue of K, {name}", np.abs(K[:, -4] / K[:, -1]), within=1e-12
            )
            loss = ((model.forward(params, problem) - problem.y) ** 2).mean(axis=-1)
            yield at_least(
                f"mean loss against its floor, {name}", loss, e.effective_floor(kappa, problem)
            )
    wide = models.Encoder(30)
    two = problems.gaussian_regression(n=8, T=6, d=2, trials=instances, rng=rng)
    values = np.linalg.svd(wide.features(wide.init(two, rng), two), compute_uv=False)
    yield vanishes(
        "third singular value with d = 2", values[:, 2] / values[:, 0], within=1e-12, role="outside"
    )


@measures("encoder.corollary-1", instances=4)
def corollary_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    model, params, drawn = network(
        rng, instances, n=20, T=1, d=60, width=200, scaling="linear", pooling="mean"
    )
    top = np.linalg.eigvalsh(ntk.empirical(model, params, drawn))[..., -1]
    gamma = 0.5 * float(e.stability_limit(top, drawn.n, "half_sum").min())
    run = optim.train(model, drawn, optim.GD(gamma), steps=500, params=params, every=500)
    share = run.history["loss"][-1] / run.history["loss"][0]
    yield vanishes(
        "one token: loss over its start after 500 steps", share, within=1e-6, role="correction"
    )
    yield at_least("one token: alpha", e.alpha(model, params, drawn), 0.1, role="correction")
    fcnn = np.maximum(drawn.X[:, :, 0] @ params["W_V"].mT, 0.0) @ params["w_O"][..., None]
    what = "one token: output of the two-layer network"
    yield equal(what, model.forward(params, drawn), fcnn[..., 0], size=1.0, role="correction")
    for scaling in ("linear", "sqrt"):
        for width in (20, 200):
            model, params, drawn = network(
                rng, instances, n=10, T=15, d=1, width=width, scaling=scaling, pooling="mean"
            )
            F = np.linalg.svd(model.features(params, drawn), compute_uv=False)
            name = f"d=1, tau_0 {scaling}, d_m={width}"
            alpha, loss = e.alpha(model, params, drawn), half_sum(model, params, drawn)
            b = e.bars(model, drawn, params, radius=1.0)
            yield vanishes(
                f"{name}: alpha over the largest singular value",
                alpha / F[:, 0],
                within=1e-12,
                role="correction",
            )
            for key, value in (
                ("2", e.condition_2(b, alpha, loss)),
                ("3", e.condition_3(b, alpha, loss)),
            ):
                yield vanishes(f"{name}: condition {key}", value, within=1e-12, role="correction")
            K = np.linalg.eigvalsh(ntk.empirical(model, params, drawn))
            what = f"{name}: fourth eigenvalue of the kernel over the first"
            yield vanishes(what, np.abs(K[:, -4] / K[:, -1]), within=1e-12, role="correction")
    gamma = 0.25 * float(e.stability_limit(K[:, -1], drawn.n, "half_sum").min())
    run = optim.train(model, drawn, optim.GD(gamma), steps=300, params=params, every=300)
    kappa, p, q = e.effective_scalars(model, run.params)
    pair = e.effective_features(kappa, drawn)
    three = (pair[..., 0] * p[:, None] + pair[..., 1] * q[:, None]) / drawn.T
    reached = 2.0 * run.history["loss"][-1] / drawn.n
    yield equal(
        "d=1: output from three numbers",
        model.forward(run.params, drawn),
        three,
        size=1.0,
        role="correction",
    )
    floor = e.effective_floor(kappa, drawn)
    yield at_least(
        "d=1: loss after training against the floor at its attention",
        reached,
        floor,
        role="correction",
    )
    lowest = e.effective_floor(np.linspace(-5.0, 5.0, 41)[:, None], drawn).min(axis=0)
    share = lowest / (drawn.y**2).mean(axis=-1)
    yield at_least("d=1: lowest floor over the labels' mean square", share, 0.02, role="correction")
    for number, met in _two_samples(rng, max(10, 5 * instances)).items():
        what = f"two samples, d=1: left over right side of ({number})"
        yield at_most(what, met, 1.0, strictly=True)
    two, start, few = network(rng, 50, n=2, T=5, d=1, width=50, scaling="linear")
    yield vanishes(
        "two samples, d=1: alpha", e.alpha(two, start, few), within=1e-12, role="outside"
    )


def _two_samples(rng: np.random.Generator, trials: int) -> dict[str, Array]:
    """Left over right side of both conditions, d = 1, labels that differ by 1e-10 from outputs.

    One sample has positive tokens and one has negative ones, and neurons keep them apart.
    """
    X = rng.uniform(0.5, 1.0, (trials, 2, 5, 1)) * np.array([1.0, -1.0])[:, None, None]
    start = pieces(
        rng, trials, width=50, scaling="linear", problem=SequenceProblem(X, np.zeros((trials, 2)))
    )
    f = start.model.forward(start.params, start.problem)
    near = SequenceProblem(X, f + 1e-10 * rng.standard_normal(f.shape))
    p, e = Pieces(start.model, start.params, near), theory.encoder
    bars, a = e.bars(p.model, near, p.params, radius=1.0), e.alpha(p.model, p.params, near)
    return {"2": e.condition_2(bars, a, p.loss), "3": e.condition_3(bars, a, p.loss)}
