"""Slips about the model, its targets and its loss: Sections 2 and 5.2, equations 14 to 24.

The paper's W has the query on the left; the library's is its transpose.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.multihead import _instances as made
from attnbook.claims.multihead._errata import _parts as parts
from attnlab import curvature, models, ntk, problems
from attnlab.checks import Array
from attnlab.models import Params
from attnlab.problems import SequenceProblem

STEP = 1e-5  # of central differences


def softmax(logits: Array) -> Array:
    """Softmax of rows, by SciPy."""
    from scipy import special

    return np.asarray(special.softmax(logits, axis=-1))


def differences(v: Array) -> Array:
    """The Jacobian of softmax by central differences, ``(..., T, T)``."""
    steps = STEP * np.eye(v.shape[-1])
    ahead, behind = (softmax(v[..., None, :] + sign * steps) for sign in (1.0, -1.0))
    return (ahead - behind).mT / (2.0 * STEP)


def outer(v: Array) -> Array:
    """Outer products of rows with themselves."""
    return v[..., :, None] * v[..., None, :]


def diagonal(v: Array) -> Array:
    """Diagonal matrices of rows."""
    return v[..., None] * np.eye(v.shape[-1])


def norms(A: Array) -> Array:
    """Frobenius norms."""
    return np.asarray(np.linalg.norm(A, axis=(-1, -2)))


@measures("multihead.erratum-1")
def erratum_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    v = rng.standard_normal((instances, 5))
    truth, s = differences(v), softmax(v)
    for name, taken, role in (("v v'", v, "statement"), ("phi phi'", s, "correction")):
        error = norms(diagonal(s) - outer(taken) - truth) / norms(truth)
        yield at_most(f"diag(phi) - {name}, distance from differences", error, 1e-7, role=role)


@measures("multihead.erratum-2", instances=20)
def erratum_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 5
    centred = np.eye(T) - 1.0 / T
    truth = differences(np.zeros(T))
    yield equal("norm of the Jacobian at 0, T = 5", norms(centred), norms(truth))
    values = np.linalg.eigvalsh(truth)
    yield equal("its eigenvalues", values, [0.0, *[1.0 / T] * 4], size=1.0, role="correction")
    drawn = made.bounded(rng, trials=instances, n=1, T=T, d=3)
    U = rng.standard_normal((instances, 1, T, 3))
    params = {"U": U, "W": np.zeros((instances, 1, 3, 3))}
    exact = ntk.jacobian(parts.ONE, params, drawn)["W"][:, 0, 0].mT
    X, rows = drawn.X[:, 0], U[:, 0]
    built = X.mT @ rows @ X.mT @ centred @ X
    size = norms(exact).max()
    what = "sum of x_t u_t' X' phi'(0) X against the gradient at W = 0"
    yield equal(f"{what}, as printed", built, exact, size=size, role="step")
    yield equal(f"{what}, over T", built / T, exact, size=size, role="correction")


@measures("multihead.erratum-3")
def erratum_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield equal("rows of u 1', T = 6 and d = 3", np.outer(np.ones(3), np.ones(6)).shape[0], 6)
    T = d = 4  # where both forms have a shape that fits
    drawn = made.bounded(rng, trials=instances, n=3, T=T, d=d)
    pooled = models.MultiHead(heads=1, output="pooled")
    u = rng.standard_normal((instances, 1, d))
    W = rng.standard_normal((instances, 1, d, d))
    truth = pooled.forward({"U": u, "W": W}, drawn)
    upright = np.repeat(u[..., None, :], T, axis=-2)
    for name, U, role in (("u 1'", upright.mT, "step"), ("1 u'", upright, "correction")):
        read = parts.ONE.forward({"U": U.copy(), "W": W}, drawn)
        yield equal(f"output with U = {name}, T = d", read, truth, size=1.0, role=role)


@measures("multihead.erratum-4", instances=20)
def erratum_4(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = parts.mixture(rng, n=instances, T=6, zeta=0.5, S=2.0, M=3)
    source = made.patterns(drawn)
    both = np.repeat(source.mu.sum(axis=0)[None], len(source.nu), axis=0)
    first = np.concatenate([source.mu, source.nu]).T  # called W_K in print
    second = np.concatenate([source.mu, both]).T  # called W_Q in print
    best = np.where(parts.carrying(drawn), 2.0**4, 0.0)[:, None, :]
    for name, query, key, role in (
        ("as named", second, first, "statement"),
        ("names swapped", first, second, "correction"),
    ):
        logits = drawn.X @ (query @ key.T) @ drawn.X.mT  # X W X', W = W_Q W_K'
        what = "logits of every query: S^4 on relevant tokens, else 0"
        yield equal(f"{what}; factors {name}", logits, best, size=16.0, role=role)
    listed = first @ second.T
    yield equal("the product is W_star", listed.T, theory.multihead.W_star(source), size=16.0,
                role="correction")  # fmt: skip


def _pair(rng: np.random.Generator, instances: int) -> tuple[SequenceProblem, Params, Params]:
    """Two points not far apart, on small problems of two heads."""
    drawn = made.bounded(rng, trials=instances, n=3, T=3, d=2)
    start = made.heads(rng, drawn, 2)
    turn = made.heads(rng, drawn, 2)
    return drawn, start, {name: start[name] + 0.3 * turn[name] for name in start}


def _excess(
    model: models.MultiHead, drawn: SequenceProblem, near: Params, far: Params
) -> tuple[Array, Array]:
    """The loss at ``far`` less its linear part at ``near``, and half of their distance squared."""
    value, grads = model.value_and_grad(near, drawn)
    away = made.difference(far, near)
    inner = sum((grads[name] * away[name]).sum(axis=(-1, -2, -3)) for name in away)
    rest = model.value_and_grad(far, drawn)[0] - value - inner
    return np.asarray(rest), made.length(away) ** 2 / 2.0


@measures("multihead.erratum-5", instances=20)
def erratum_5(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    model = models.MultiHead(heads=2)
    drawn, near, far = _pair(rng, instances)
    rest, half = _excess(model, drawn, near, far)
    lowest = np.min(
        [curvature.hessian(model, p, drawn).extremes[0] for p in parts.between(near, far, 21)],
        axis=0,
    )
    what = "loss less its linear part, over |theta - theta_k|^2/2, against lambda_min"
    yield at_most(f"{what}, at most", rest / half, lowest)
    yield at_least(f"{what}, at least", rest / half, lowest, role="correction")


@measures("multihead.erratum-6", instances=20)
def erratum_6(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = made.bounded(rng, trials=max(instances, 5), n=1, T=3, d=2)
    near = made.heads(rng, drawn, 1)
    near["W"] /= made.length({"W": near["W"]})[:, None, None, None]
    attended = parts.ONE.attention(near, drawn)[:, 0] @ drawn.X  # the output is <U, this>
    U = 1e3 * rng.standard_normal(near["U"].shape)
    inner = (U * attended).sum(axis=(-1, -2), keepdims=True)
    near["U"] = U - inner / (attended**2).sum(axis=(-1, -2), keepdims=True) * attended
    values, vectors = np.linalg.eigh(curvature.hessian(parts.ONE, near, drawn).blocks["W", "W"])
    bent = values[:, 0] < 0.0  # in nearly every trial
    drawn, vectors = drawn.trial(bent), vectors[bent]
    near = {name: array[bent] for name, array in near.items()}
    turn = 1e-3 * vectors[..., 0].reshape(near["W"].shape)
    far = {"U": near["U"], "W": near["W"] + turn}
    rest, half = _excess(parts.ONE, drawn, near, far)
    points = parts.between(near, far, 21)
    worst = np.max([parts.ONE.value_and_grad(p, drawn)[0] for p in points], axis=0)
    ends = np.maximum(made.longest_head(near), made.longest_head(far))
    R = parts.longest_token(drawn)
    what = "loss less its linear part, over |theta - theta_k|^2/2 and the largest loss"
    for name, size, role in (
        ("theta_1 = theta_2 = 0", np.zeros_like(ends), "statement"),
        ("theta and theta_k", ends, "correction"),
    ):
        beta3 = theory.multihead.beta3(size, T=drawn.T, d=drawn.d, R=R)
        yield at_least(f"{what}, beta_3 at {name}", rest / half / worst, -beta3, role=role)


@measures("multihead.erratum-7", instances=10)
def erratum_7(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    H = 4
    drawn = problems.tokenized_mixture(n=10, trials=instances, rng=rng)
    model, R = models.MultiHead(heads=H), parts.longest_token(drawn)
    apart = np.broadcast_to(0.5 * parts.targets(drawn).u, (instances, H, drawn.T, drawn.d))
    near = {"U": np.array(apart), "W": np.zeros((instances, H, drawn.d, drawn.d))}
    turn = {name: rng.standard_normal(array.shape) for name, array in near.items()}
    far = {name: near[name] + 1e-5 * turn[name] for name in near}
    points = parts.between(near, far, 9)
    losses = np.array([model.value_and_grad(p, drawn)[0] for p in points])
    sizes = np.max([made.longest_head(p) for p in points], axis=0)
    beta2 = theory.multihead.beta2(sizes, T=drawn.T, d=drawn.d, R=R, H=H)
    beta3 = theory.multihead.beta3(sizes, T=drawn.T, d=drawn.d, R=R)
    short = theory.multihead.short_enough(made.length(made.difference(far, near)), beta3, H=H)
    assert (short <= 1.0).all()
    eta = 1.0 / beta2
    after = []
    for point in (near, far):
        grads = model.value_and_grad(point, drawn)[1]
        step = eta[:, None, None, None]
        after.append({name: point[name] - step * grads[name] for name in point})
    ratio = made.length(made.difference(*after)) / made.length(made.difference(near, far))
    small, top = eta * beta3 / np.sqrt(H), losses.max(axis=0)
    ends = losses[0] + losses[-1]
    what = "distance after a step over that before"
    yield at_most(f"{what}, against (21) as printed", ratio, (1.0 + small) * top)
    spread = theory.multihead.expansiveness(top, beta2, beta3, eta=eta, H=H)
    yield at_most(f"{what}, against (21) mended", ratio, spread, role="correction")
    shifted = (1.0 + 4.0 * small / 3.0) * ends
    yield at_most(f"{what}, against (89) as printed", ratio, shifted, role="step")
    shifted = 1.0 + 4.0 * small / 3.0 * ends
    yield at_most(f"{what}, against (89) mended", ratio, shifted, role="correction")


@measures("multihead.erratum-8")
def erratum_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = made.bounded(rng, trials=max(instances, 20), n=3, T=3, d=2)
    params = made.heads(rng, drawn, 2)
    params["U"] *= 10.0
    model = models.MultiHead(heads=2)
    loss = model.value_and_grad(params, drawn)[0]
    margins = drawn.y * model.forward(params, drawn)
    fall = np.logaddexp(0.0, STEP - margins) - np.logaddexp(0.0, -STEP - margins)
    slopes = (np.abs(fall) / (2.0 * STEP)).mean(axis=-1)
    yield at_most("loss, heads of many sizes", loss, 1.0)
    slack = 1.0 + 1e-6  # of the differences
    yield at_most("mean size of the slope, against the loss", slopes, loss * slack + 1e-9,
                  role="correction")  # fmt: skip
    yield at_most("mean size of the slope", slopes, slack, role="correction")
    wide = 1e-3
    bend = sum(
        weight * np.logaddexp(0.0, -margins + shift)
        for weight, shift in ((1.0, wide), (-2.0, 0.0), (1.0, -wide))
    )
    second = np.abs(np.asarray(bend) / wide**2).mean(axis=-1)
    yield at_most("mean size of the second derivative", second, 0.25 + 1e-6, role="correction")
