"""What holds exactly for every encoder: homogeneity, balance, symmetries, three numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims._registry import claim
from attnbook.claims.encoder._instances import Network, network
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array
from attnlab.models import Params

OURS = "Not in the paper; each is exact."


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


@claim(
    "encoder.identity-1",
    "Identity 1",
    "outputs are homogeneous in W_V and in w_O, and W_Q and W_K share their radial derivative",
    r"$\langle W_V,\nabla_{W_V}f\rangle=\langle w_O,\nabla_{w_O}f\rangle=f$ and "
    r"$\langle W_Q,\nabla_{W_Q}f\rangle=\langle W_K,\nabla_{W_K}f\rangle$; more, "
    r"$(\nabla_{W_Q}f)W_Q^\top=\big((\nabla_{W_K}f)W_K^\top\big)^\top$.",
    own=True,
    page="encoder/model",
    instances=30,
    reason=OURS,
)
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


@claim(
    "encoder.identity-2",
    "Identity 2",
    "gradient flow keeps W_Q W_Q' - W_K W_K' and every neuron's balance; GD drifts in step^2",
    r"$\frac d{dt}(W_QW_Q^\top-W_KW_K^\top)=0$ and "
    r"$\frac d{dt}\big(\|W_V^{(k,:)}\|^2-(w_O^{(k)})^2\big)=0$ for each neuron; a step of "
    r"gradient descent changes them by $O(\gamma^2)$.",
    own=True,
    page="encoder/model",
    instances=20,
    reason=OURS + " Halving the step divides the drift of a step by four.",
)
def identity_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    steps = np.array([1e-4, 1e-3, 1e-2])
    for name, (model, params, problem) in encoders(rng, instances):
        before, drift = invariants(params), []
        for gamma in steps:
            run = optim.train(model, problem, optim.GD(float(gamma)), steps=1, params=params)
            drift.append(np.linalg.norm(invariants(run.params) - before, axis=-1))
        exponents = [slope(steps, column) for column in np.stack(drift).T]
        yield equal(f"exponent of a step's drift, {name}", exponents, 2.0, within=1e-3)


@claim(
    "encoder.identity-3",
    "Identity 3",
    "outputs ignore the order of the tokens; the softmax Jacobian is a covariance",
    r"$f(PX)=f(X)$ for every permutation of tokens; $J=\mathrm{diag}\beta-\beta\beta^\top$ has "
    r"$J\mathbf1=0$, $\|J\|_2\le\frac12$ and $v^\top Jv=\mathrm{Var}_\beta(v)$.",
    own=True,
    page="encoder/model",
    instances=50,
    reason=OURS,
)
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


@claim(
    "encoder.identity-4",
    "Identity 4",
    "with one feature a token the whole network is three numbers",
    r"$d=1$: $f=c\,\big(p\sum_im_i^++q\sum_im_i^-\big)$ with $m_i=\beta_i^\top x$, "
    r"$\beta_i=\mathrm{softmax}(\kappa x_ix)$, $\kappa=\tau_0w_Q^\top w_K$, "
    r"$p=\sigma_r(w_V)^\top w_O$, $q=\sigma_r(-w_V)^\top w_O$; so "
    r"$\mathrm{rank}F_{pre}\le2$ and $\mathrm{rank}K\le3$.",
    own=True,
    page="encoder/tokens",
    instances=20,
    reason=OURS,
    errata=("encoder.erratum-s15",),
)
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
