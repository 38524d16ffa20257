"""What holds exactly for every encoder: homogeneity, balance, symmetries, three numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.encoder._instances import Network, network
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array
from attnlab.models import Params


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
        yield equal(
            f"outputs for permuted tokens, {name}",
            model.forward(params, other),
            f,
            size=np.abs(f).mean(),
        )
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
            yield at_most(
                f"third singular value of F_pre, {name}", values[:, 2] / values[:, 0], 1e-12
            )
            K = np.linalg.eigvalsh(ntk.empirical(model, params, problem))
            yield at_most(f"fourth eigenvalue of K, {name}", np.abs(K[:, -4] / K[:, -1]), 1e-12)
            loss = ((model.forward(params, problem) - problem.y) ** 2).mean(axis=-1)
            yield at_least(
                f"mean loss against its floor, {name}", loss, e.effective_floor(kappa, problem)
            )
    wide = models.Encoder(30)
    two = problems.gaussian_regression(n=8, T=6, d=2, trials=instances, rng=rng)
    values = np.linalg.svd(wide.features(wide.init(two, rng), two), compute_uv=False)
    yield at_most(
        "third singular value with d = 2", values[:, 2] / values[:, 0], 1e-12, role="outside"
    )
