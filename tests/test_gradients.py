"""Gradients: against central differences, against the textbook formula written a second time,
and at saturation against 60-digit arithmetic."""

from __future__ import annotations

import decimal
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab import models, problems

Array = NDArray[np.float64]
Params = dict[str, Array]
LOSSES = ("logistic", "exponential", "correlation")
CASES = {"single": None, "batch": 3, "two axes": (2, 2)}
all_losses = pytest.mark.parametrize("loss", LOSSES)
single_and_batch = pytest.mark.parametrize("trials", CASES.values(), ids=CASES)


def central_difference_error(
    model: Any, params: Params, problem: Any, h: float = 1e-5
) -> dict[str, float]:
    """Largest relative error, over trials, of each gradient. Trials do not see each other, so
    one entry is moved in all of them at once."""
    _, grads = model.value_and_grad(params, problem)
    lead = len(problem.trials)
    errors = {}
    for name, p in params.items():
        difference = np.empty(p.shape)
        for entry in np.ndindex(p.shape[lead:]):
            at = (..., *entry)
            ends = []
            for sign in (1, -1):
                moved = {**params, name: p.copy()}
                moved[name][at] += sign * h
                ends.append(model.value_and_grad(moved, problem)[0])
            difference[at] = (ends[0] - ends[1]) / (2 * h)
        axes = tuple(range(lead, p.ndim))
        size = np.sqrt((grads[name] ** 2).sum(axes))
        errors[name] = float((np.sqrt(((difference - grads[name]) ** 2).sum(axes)) / size).max())
    return errors


def assert_gradients_are_derivatives(model: Any, params: Params, problem: Any) -> None:
    loss, grads = model.value_and_grad(params, problem)
    assert loss.shape == problem.trials
    assert {k: g.shape for k, g in grads.items()} == {k: p.shape for k, p in params.items()}
    errors = central_difference_error(model, params, problem)
    assert max(errors.values()) < 1e-6, errors


def assert_batch_is_a_loop(model: Any, params: Params, problem: Any) -> None:
    """Every answer of the model for a batch is the answer for each of its trials."""
    loss, grads = model.value_and_grad(params, problem)
    f, maps = model.forward(params, problem), model.attention(params, problem)
    for index in np.ndindex(problem.trials):
        one, alone = problem.trial(index), {k: p[index] for k, p in params.items()}
        loss1, grads1 = model.value_and_grad(alone, one)
        close(loss[index], loss1)
        close(f[index], model.forward(alone, one))
        close(maps[index], model.attention(alone, one))
        for name in params:
            close(grads[name][index], grads1[name])


def close(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    """Agreement relative to the size of the whole array."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    size = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * max(size, 1e-300))


def noise(model: Any, problem: Any, scale: float = 0.7, seed: int = 5) -> Params:
    """Parameters at a generic point: no zeros, no equal heads."""
    rng, lead = np.random.default_rng(seed), problem.trials
    return {
        name: scale * rng.standard_normal(lead + tail)
        for name, tail in model.shapes(problem).items()
    }


def loss_and_slope(loss: str, m: Array) -> tuple[Array, Array]:
    """l and l', as printed in the papers."""
    if loss == "logistic":
        return np.log(1 + np.exp(-m)), -1 / (1 + np.exp(m))
    if loss == "exponential":
        return np.exp(-m), -np.exp(-m)
    return -m, -np.ones_like(m)


def softmax(a: Array) -> Array:
    e = np.exp(a)
    return np.asarray(e / e.sum(-1, keepdims=True))


# --- Attention -------------------------------------------------------------------------------

RELU = models.ReLUHead(np.random.default_rng(8).standard_normal((6, 4)))
HEADS: dict[str, Any] = {
    "linear": models.LinearHead(),
    "relu": RELU,
    "concave": models.ConcaveHead(0.3),
}
HEADS_AND_JOINT = [("linear", False), ("linear", True), ("relu", False), ("concave", False)]
attention_table = pytest.mark.parametrize(
    ("head", "joint", "loss", "factors", "kind"),
    [
        (*pair, *rest)
        for pair, *rest in itertools.product(
            HEADS_AND_JOINT, LOSSES, (None, 3), ("sphere", "sequence", "causal")
        )
    ],
)


def token_problem(kind: str, trials: Any = None) -> problems.TokenProblem:
    if kind == "sphere":
        return problems.sphere(n=3, T=4, d=4, trials=trials, rng=1)
    make = problems.sequence if kind == "sequence" else problems.causal
    return make(n=2, T=3, d=4, trials=trials, rng=1)


def attention_model(head: str, joint: bool, loss: str, factors: int | None) -> models.Attention:
    return models.Attention(factors=factors, head=HEADS[head], loss=loss, train_head=joint)


@attention_table
@single_and_batch
def test_attention_gradients(
    head: str, joint: bool, loss: str, factors: int | None, kind: str, trials: Any
) -> None:
    model, p = attention_model(head, joint, loss, factors), token_problem(kind, trials)
    assert_gradients_are_derivatives(model, noise(model, p), p)


@attention_table
def test_attention_in_batch_is_a_loop_over_trials(
    head: str, joint: bool, loss: str, factors: int | None, kind: str
) -> None:
    model, p = attention_model(head, joint, loss, factors), token_problem(kind, (2, 3))
    params = noise(model, p)
    assert_batch_is_a_loop(model, params, p)
    excess, direction, log_scale = model.scaled_grad(params, p)
    for index in np.ndindex(p.trials):
        alone = {k: array[index] for k, array in params.items()}
        excess1, direction1, log_scale1 = model.scaled_grad(alone, p.trial(index))
        close(excess[index], excess1)
        for name in params:
            scale = np.exp(log_scale[index] - log_scale1)
            close(scale * direction[name][index], direction1[name])


@attention_table
def test_scaled_gradient_is_the_gradient_away_from_saturation(
    head: str, joint: bool, loss: str, factors: int | None, kind: str
) -> None:
    model, p = attention_model(head, joint, loss, factors), token_problem(kind, 4)
    params = noise(model, p)
    value, grads = model.value_and_grad(params, p)
    excess, direction, log_scale = model.scaled_grad(params, p)
    assert excess.shape == log_scale.shape == (4,)
    for name, g in grads.items():
        scale = np.exp(log_scale).reshape(4, *[1] * (g.ndim - 1))
        close(scale * direction[name], g)
    known = head == "linear" and not (joint and loss == "correlation")
    close(excess, value - model.floor(p) if known else value, 3e-12)


def twin_of_attention(
    model: models.Attention, params: Params, p: problems.TokenProblem
) -> tuple[Array, Params, Array, Array]:
    """Loss, gradients, outputs and maps of one trial by the formulas of svm 1 and bias 1."""
    W = params["W"] if model.factors is None else params["K"] @ params["Q"].T
    v = params["v"] if model.train_head else p.v
    logits = np.einsum("nti,ij,nj->nt", p.X, W, p.z)
    s = softmax(logits if p.mask is None else np.where(p.mask, logits, -np.inf))
    o = np.einsum("nt,ntd->nd", s, p.X)
    if isinstance(model.head, models.ReLUHead):
        f = np.maximum(o @ model.head.V.T, 0).sum(1)
        slope_of_head = (o @ model.head.V.T > 0) @ model.head.V
    elif isinstance(model.head, models.ConcaveHead):
        f = o @ v - model.head.penalty * (o**2).sum(1)
        slope_of_head = v - 2 * model.head.penalty * o
    else:
        f, slope_of_head = o @ v, np.tile(v, (p.n, 1))
    value, slope = loss_and_slope(model.loss, p.y * f)
    gamma = p.y[:, None] * np.einsum("ntd,nd->nt", p.X, slope_of_head)
    jacobian = np.einsum("nt,ts->nts", s, np.eye(p.T)) - np.einsum("nt,ns->nts", s, s)
    G = np.einsum("n,nti,nts,ns,nj->ij", slope / p.n, p.X, jacobian, gamma, p.z)
    grads = {"W": G} if model.factors is None else {"K": G @ params["Q"], "Q": G.T @ params["K"]}
    if model.train_head:
        grads["v"] = np.einsum("n,nd->d", slope * p.y / p.n, o)
    return value.mean(), grads, f, s


@attention_table
def test_attention_against_its_twin(
    head: str, joint: bool, loss: str, factors: int | None, kind: str
) -> None:
    model, p = attention_model(head, joint, loss, factors), token_problem(kind)
    params = noise(model, p)
    value, grads, f, s = twin_of_attention(model, params, p)
    found, found_grads = model.value_and_grad(params, p)
    close(found, value)
    assert found_grads.keys() == grads.keys()
    for name in grads:
        close(found_grads[name], grads[name])
    close(model.forward(params, p), f)
    close(model.attention(params, p), s)
    if p.mask is not None:
        assert (model.attention(params, p)[~p.mask] == 0.0).all()


@pytest.mark.parametrize("head", HEADS)
def test_scores_are_the_head_at_each_token(head: str) -> None:
    p = token_problem("sphere", 3)
    model = models.Attention(head=HEADS[head])
    flat = p.X.reshape(3, -1, 4)
    h = model.head.value(flat, p.v).reshape(3, 3, 4)
    close(model.scores(p), p.y[..., None] * h)
    if head == "linear":
        close(model.scores(p), p.scores)


def test_a_trained_head_answers_for_its_own_scores() -> None:
    p = token_problem("sphere", 3)
    model = models.Attention(train_head=True)
    params = noise(model, p)
    expected = np.einsum("bn,bntd,bd->bnt", p.y, p.X, params["v"])
    close(model.scores(p, params), expected)


def test_parameters_without_trial_axes_serve_all_trials() -> None:
    p = token_problem("causal", (2, 2))
    for model in (models.Attention(factors=2), models.Attention(train_head=True)):
        shared = noise(model, p.trial((0, 0)))
        full = {k: np.broadcast_to(a, (2, 2, *a.shape)).copy() for k, a in shared.items()}
        for one, other in zip(
            model.value_and_grad(shared, p)[1].values(),
            model.value_and_grad(full, p)[1].values(),
            strict=True,
        ):
            close(one, other)
        close(model.forward(shared, p), model.forward(full, p))


# --- MultiHead -------------------------------------------------------------------------------

multihead_table = pytest.mark.parametrize(
    ("output", "heads", "loss"),
    list(itertools.product(("full", "pooled", "last"), (1, 2, 5), LOSSES)),
)


def sequence_problem(trials: Any = None, n: int = 4, T: int = 3, d: int = 2) -> Any:
    return problems.planted(n=n, T=T, d=d, margin=0.0, trials=trials, rng=2)


@multihead_table
@single_and_batch
def test_multihead_gradients(output: str, heads: int, loss: str, trials: Any) -> None:
    model, p = models.MultiHead(heads, output=output, loss=loss), sequence_problem(trials)
    assert_gradients_are_derivatives(model, noise(model, p), p)


@multihead_table
def test_multihead_in_batch_is_a_loop_over_trials(output: str, heads: int, loss: str) -> None:
    model, p = models.MultiHead(heads, output=output, loss=loss), sequence_problem((2, 3))
    assert_batch_is_a_loop(model, noise(model, p), p)


def twin_of_multihead(
    model: models.MultiHead, params: Params, p: problems.SequenceProblem
) -> tuple[Array, Params, Array, Array]:
    """Multihead 4.2 for one trial, in the paper's convention (left index of W is the query)."""
    X, W, H = p.X, params["W"].swapaxes(-1, -2), model.heads
    U = params["U"]
    if model.output == "pooled":
        U = np.einsum("t,hd->htd", np.ones(p.T), U)
    elif model.output == "last":
        U = np.einsum("t,hd->htd", np.eye(p.T)[-1], U)
    P = softmax(np.einsum("nti,hij,nsj->nhts", X, W, X))
    O = np.einsum("nhts,nsd->nhtd", P, X)  # noqa: E741
    f = np.einsum("htd,nhtd->n", U, O) / np.sqrt(H)
    A = np.einsum("htd,nsd->nhts", U, X)
    C = P * (A - (P * A).sum(-1, keepdims=True))
    gU = O / np.sqrt(H)
    gW = np.einsum("nti,nhts,nsj->nhij", X, C, X) / np.sqrt(H)
    value, slope = loss_and_slope(model.loss, p.y * f)
    c = slope * p.y / p.n
    GU, GW = np.tensordot(c, gU, 1), np.tensordot(c, gW, 1).swapaxes(-1, -2)
    if model.output == "pooled":
        GU = GU.sum(1)
    elif model.output == "last":
        GU, P = GU[:, -1], P[:, :, -1]
    return value.mean(), {"U": GU, "W": GW}, f, P


def assert_is_its_twin(model: Any, params: Params, p: Any, twin: Any, tol: float = 1e-12) -> None:
    value, grads, f, maps = twin(model, params, p)
    found, found_grads = model.value_and_grad(params, p)
    close(found, value, tol)
    assert found_grads.keys() == grads.keys()
    for name in grads:
        close(found_grads[name], grads[name], tol)
    close(model.forward(params, p), f, tol)
    close(model.attention(params, p), maps, tol)


@multihead_table
def test_multihead_against_its_twin(output: str, heads: int, loss: str) -> None:
    model, p = models.MultiHead(heads, output=output, loss=loss), sequence_problem(n=7, T=4, d=3)
    assert_is_its_twin(model, noise(model, p), p, twin_of_multihead)


def test_the_left_index_of_W_is_the_key() -> None:
    model, p = models.MultiHead(2), sequence_problem(n=7, T=4, d=3)
    params = noise(model, p)
    logits = np.einsum("nsi,hij,ntj->nhts", p.X, params["W"], p.X)
    close(model.attention(params, p), softmax(logits))
    turned = {**params, "W": params["W"].swapaxes(-1, -2)}
    assert np.abs(model.attention(turned, p) - softmax(logits)).max() > 0.1


@pytest.mark.parametrize("output", ["full", "pooled", "last"])
@pytest.mark.parametrize("heads", [2, 8])
@pytest.mark.parametrize("d", [4, 17])
def test_multihead_in_several_blocks_of_samples(output: str, heads: int, d: int) -> None:
    # more samples than one block of the cache holds, few and many heads, small and large tokens
    model, p = models.MultiHead(heads, output=output), sequence_problem(n=700, T=5, d=d)
    assert_is_its_twin(model, noise(model, p, 0.2), p, twin_of_multihead)


@pytest.mark.parametrize("heads", [2, 5])
def test_multihead_with_equal_heads_against_its_twin(heads: int) -> None:
    # equal heads are computed once; the twin knows nothing of that
    model, p = models.MultiHead(heads), sequence_problem(n=7, T=4, d=3)
    params = {k: np.repeat(a[:1], heads, axis=0) for k, a in noise(model, p).items()}
    assert_is_its_twin(model, params, p, twin_of_multihead)


@pytest.mark.parametrize("heads", [1, 2, 5])
@pytest.mark.parametrize("output", ["full", "pooled", "last"])
def test_multihead_where_weights_are_too_large_for_a_plain_exp(heads: int, output: str) -> None:
    # the last feature is 0 in every token: a huge weight there changes no logit
    model, p = models.MultiHead(heads, output=output), sequence_problem(n=6, T=4, d=3)
    X = p.X.copy()
    X[..., -1] = 0.0
    q, params = problems.SequenceProblem(X, p.y), noise(model, p)
    assert_is_its_twin(model, params, q, twin_of_multihead)
    params["W"][:, -1, -1] = 1e6
    assert_is_its_twin(model, params, q, twin_of_multihead)


@pytest.mark.parametrize("heads", [1, 2, 5])
def test_multihead_at_hardmax(heads: int) -> None:
    # logits of thousands: attention is one-hot and the loss is that of the selected tokens
    model, p = models.MultiHead(heads), sequence_problem(n=6, T=4, d=3)
    params = noise(model, p)
    params["W"] *= 1e5
    logits = np.einsum("nsi,hij,ntj->nhts", p.X, params["W"], p.X)
    chosen = np.take_along_axis(p.X[:, None], logits.argmax(-1)[..., None], axis=2)
    f = np.einsum("htd,nhtd->n", params["U"], chosen) / np.sqrt(heads)
    loss, grads = model.value_and_grad(params, p)
    close(model.forward(params, p), f)
    close(loss, np.log(1 + np.exp(-p.y * f)).mean())
    assert all(np.isfinite(g).all() for g in grads.values())


# --- Encoder ---------------------------------------------------------------------------------

encoder_table = pytest.mark.parametrize(
    ("pooling", "init", "scaling", "loss"),
    list(
        itertools.product(
            ("mean", "sum"),
            ("lecun", "he", "ntk"),
            ("sqrt", "linear"),
            ("mean", "half_mean", "half_sum"),
        )
    ),
)


def encoder_case(
    pooling: str, init: str, scaling: str, loss: str, trials: Any = None
) -> tuple[models.Encoder, Params, problems.SequenceProblem]:
    model = models.Encoder(6, init=init, scaling=scaling, pooling=pooling, loss=loss)
    p = problems.gaussian_regression(n=4, T=3, d=3, trials=trials, rng=3)
    return model, model.init(p, rng=4), p


@encoder_table
@single_and_batch
def test_encoder_gradients(pooling: str, init: str, scaling: str, loss: str, trials: Any) -> None:
    model, params, p = encoder_case(pooling, init, scaling, loss, trials)
    assert_gradients_are_derivatives(model, params, p)


@encoder_table
def test_encoder_in_batch_is_a_loop_over_trials(
    pooling: str, init: str, scaling: str, loss: str
) -> None:
    model, params, p = encoder_case(pooling, init, scaling, loss, (2, 3))
    assert_batch_is_a_loop(model, params, p)
    features = model.features(params, p)
    for index in np.ndindex(p.trials):
        alone = {k: a[index] for k, a in params.items()}
        close(features[index], model.features(alone, p.trial(index)))


def twin_of_encoder(
    model: models.Encoder, params: Params, p: problems.SequenceProblem
) -> tuple[Array, Params, Array, Array]:
    """Encoder 4.1 and 4.2 for one trial."""
    WQ, WK, WV, wO = (params[k] for k in ("W_Q", "W_K", "W_V", "w_O"))
    m, ds = model.width, p.T
    tau0 = {"sqrt": m**-0.5, "linear": 1 / m}[str(model.scaling)]
    tau1 = m**-0.5 if "init='ntk'" in repr(model) else 1.0
    c = tau1 / ds if model.pooling == "mean" else tau1
    B = softmax(tau0 * np.einsum("nia,ka,kb,njb->nij", p.X, WQ, WK, p.X))
    U = np.einsum("nij,njd->nid", B, p.X)
    Z = np.einsum("kd,nid->nik", WV, U)
    F = c * np.maximum(Z, 0).sum(1)
    f = F @ wO
    weight = {"mean": 1 / p.n, "half_mean": 0.5 / p.n, "half_sum": 0.5}[model.loss]
    r = 2 * weight * (f - p.y)
    gate = (Z > 0) * wO
    h = np.einsum("nik,kd->nid", gate, WV)
    J = np.einsum("nij,jl->nijl", B, np.eye(ds)) - np.einsum("nij,nil->nijl", B, B)
    v = np.einsum("nja,nijl,nlb,nib->nia", p.X, J, p.X, h)
    G = c * tau0 * np.einsum("n,nia,nib->ab", r, p.X, v)
    grads = {
        "W_Q": WK @ G.T,
        "W_K": WQ @ G,
        "W_V": c * np.einsum("n,nik,nid->kd", r, gate, U),
        "w_O": F.T @ r,
    }
    return weight * ((f - p.y) ** 2).sum(), grads, f, B


@encoder_table
def test_encoder_against_its_twin(pooling: str, init: str, scaling: str, loss: str) -> None:
    model, params, p = encoder_case(pooling, init, scaling, loss)
    assert_is_its_twin(model, params, p, twin_of_encoder)


def test_encoder_with_a_number_for_tau0() -> None:
    p = problems.gaussian_regression(n=4, T=3, d=3, rng=3)
    named, number = models.Encoder(9, scaling="linear"), models.Encoder(9, scaling=1 / 9)
    params = named.init(p, rng=0)
    assert (named.tau0, number.tau0, models.Encoder(9).tau0) == (1 / 9, 1 / 9, 1 / 3)
    close(named.value_and_grad(params, p)[0], number.value_and_grad(params, p)[0])


def test_the_derivative_of_relu_at_zero_is_zero() -> None:
    p = problems.SequenceProblem(X=np.zeros((2, 3, 2)), y=[1.0, -1.0])
    model = models.Encoder(4)
    loss, grads = model.value_and_grad(model.init(p, rng=0), p)
    assert loss == 1.0
    assert all((g == 0.0).all() for g in grads.values())
    head = models.ReLUHead(np.eye(2))
    assert (head.gradient(np.zeros((1, 2)), np.zeros(2)) == 0.0).all()


# --- saturation: the exact gradient against 60 digits ----------------------------------------


def D(x: Any) -> Decimal:
    return Decimal(float(x))  # exact: every float64 is a finite decimal


exactly = np.frompyfunc(D, 1, 1)


def digits(count: int = 60) -> Any:
    return decimal.localcontext(prec=count, Emin=-(10**6), Emax=10**6)


class Oracle:
    """Attention of one trial in decimals, straight from the definitions."""

    def __init__(self, model: models.Attention, params: Params, p: problems.TokenProblem) -> None:
        self.model, self.params, self.p = model, params, p

    def samples(self) -> Any:
        """Of each sample: tokens seen, softmax, head slope, margin, and the query."""
        model, p = self.model, self.p
        X, z, y, v = (exactly(a) for a in (p.X, p.z, p.y, p.v))
        params = {name: exactly(a) for name, a in self.params.items()}
        W = params["W"] if model.factors is None else params["K"].dot(params["Q"].T)
        v = params.get("v", v)
        curve = D(getattr(model.head, "penalty", 0.0))
        for i in range(p.n):
            x = X[i] if p.mask is None else X[i][p.mask[i]]
            e = np.array([a.exp() for a in x.dot(W).dot(z[i])], dtype=object)
            s = e / e.sum()
            o = s.dot(x)
            margin = y[i] * (o.dot(v) - curve * o.dot(o))
            yield x, s, o, y[i] * (v - 2 * curve * o), margin, y[i], z[i]

    def grads(self) -> dict[str, Any]:
        """c_t = l' s_t sum_r s_r (gamma_t - gamma_r): differences before they cancel."""
        G: Any = 0
        g_v: Any = 0
        for x, s, o, slope_of_head, margin, y, z in self.samples():
            slope = self.slope(margin) / self.p.n
            gamma = x.dot(slope_of_head)
            c = slope * s * np.array([s.dot(g - gamma) for g in gamma], dtype=object)
            G = G + np.outer(c.dot(x), z)
            g_v = g_v + slope * y * o
        found = {"W": G}
        if self.model.factors is not None:
            K, Q = exactly(self.params["K"]), exactly(self.params["Q"])
            found = {"K": G.dot(Q), "Q": G.T.dot(K)}
        return {**found, "v": g_v} if self.model.train_head else found

    def excess(self, gap: float) -> Decimal:
        """Mean loss above its floor: the plain difference, with digits enough to bear it."""
        total = Decimal(0)
        with digits(60 + round(gap / 2)):
            for x, _, _, slope_of_head, margin, _, _ in self.samples():
                total += self.value(margin) - self.value(max(x.dot(slope_of_head)))
            return total / self.p.n

    def value(self, m: Decimal) -> Decimal:
        if self.model.loss == "logistic":
            return (1 + (-m).exp()).ln()
        return (-m).exp() if self.model.loss == "exponential" else -m

    def slope(self, m: Decimal) -> Decimal:
        if self.model.loss == "logistic":
            return -1 / (1 + m.exp())
        return -(-m).exp() if self.model.loss == "exponential" else Decimal(-1)


def assert_scaled_gradient_is_exact(
    model: models.Attention, params: Params, p: problems.TokenProblem, tol: float = 1e-12
) -> None:
    """`evaluate` is exact for each parameter on its own scale, `scaled_grad` on a common one
    (where a parameter whose gradient is 1e-300 of another's may vanish)."""
    found = model.evaluate(params, p)
    _, direction, log_scale = model.scaled_grad(params, p)
    assert found.log_scale is not None
    with digits():
        truth = Oracle(model, params, p).grads()
        assert direction.keys() == found.grads.keys() == truth.keys()
        overall = max(np.abs(g).max() for g in truth.values())
        for name, g in truth.items():
            allowed = D(tol) * np.abs(g).max()
            own = exactly(found.grads[name]) * D(found.log_scale[name]).exp()
            assert np.abs(own - g).max() <= allowed, name
            common = exactly(direction[name]) * D(log_scale).exp()
            assert np.abs(common - g).max() <= max(allowed, D(1e-300) * overall), name


def relative(found: Any, truth: Decimal) -> float:
    with digits():
        return abs(float(D(found) / truth - 1))


def whole_numbers(kind: str, seed: int = 0) -> problems.TokenProblem:
    """Tokens and queries in whole numbers, so that logits are exact in float64."""
    rng = np.random.default_rng(seed)
    n, T, d = 3, 4, 3
    X = rng.integers(-3, 4, (n, T, d)).astype(float)
    z = rng.integers(1, 4, (n, d)).astype(float)
    mask = np.ones((n, T), bool)
    if kind == "masked":
        mask[0, 1:] = False  # the first position of a causal sequence sees itself alone
        mask[1, 3] = False
    return problems.TokenProblem(
        X, z, rng.choice([-1.0, 1.0], n), rng.standard_normal(d), mask if kind == "masked" else None
    )


SATURATED = [
    models.Attention(loss=loss, head=head, factors=factors, train_head=joint)
    for loss, (head, joint), factors in itertools.product(
        LOSSES,
        [
            (models.LinearHead(), False),
            (models.LinearHead(), True),
            (models.ConcaveHead(0.25), False),
        ],
        (None, 2),
    )
]


@pytest.mark.parametrize("model", SATURATED, ids=repr)
@pytest.mark.parametrize("kind", ["all tokens", "masked"])
@pytest.mark.parametrize("size", [1, 8, 64, 512])
def test_scaled_gradient_at_saturation(model: models.Attention, kind: str, size: int) -> None:
    # logit gaps of about 10, 100, 1000, 10000: from the textbook's range to far below 1e-308
    p = whole_numbers(kind)
    rng = np.random.default_rng(1)
    params = {
        name: rng.integers(-2, 3, tail).astype(float) for name, tail in model.shapes(p).items()
    }
    params["W" if model.factors is None else "K"] *= size
    assert_scaled_gradient_is_exact(model, params, p, 3e-12)


@pytest.mark.parametrize("gap", [1.0, 36.0, 100.0, 500.0, 2000.0])
@all_losses
def test_two_tokens_in_closed_form(gap: float, loss: str) -> None:
    # s_2 = 1 / (1 + e^g); G = l'(u) s_1 s_2 (gamma_1 - gamma_2) (x_1 - x_2) z^T
    p = problems.two_token()
    model = models.Attention(loss=loss)
    W = np.array([[gap, 0.3], [-0.2, 0.4]])
    excess, direction, log_scale = model.scaled_grad({"W": W}, p)
    u = 1.0 - 1.0 / (1.0 + np.exp(gap)) if gap < 700 else 1.0
    log_slope = {"logistic": -np.log1p(np.exp(u)), "exponential": -u, "correlation": 0.0}[loss]
    expected = log_slope - gap - 2 * np.log1p(np.exp(-gap))
    assert direction["W"][0, 0] < 0.0
    assert (direction["W"].ravel()[1:] == 0.0).all()
    found = np.log(-direction["W"][0, 0]) + log_scale
    assert abs(found - expected) < 1e-12 * max(1.0, gap)
    truth = Oracle(model, {"W": W}, p).excess(gap)
    if gap < 700:  # the excess itself is a float64
        assert relative(excess, truth) < 1e-12
    log_excess = model.evaluate({"W": W}, p).log_excess
    assert log_excess is not None
    with digits():
        assert abs(float(log_excess) - float(truth.ln())) < 1e-12 * max(1.0, gap)


@all_losses
@pytest.mark.parametrize("gap", [40.0, 100.0, 500.0])
def test_excess_loss_where_the_naive_difference_is_zero(loss: str, gap: float) -> None:
    p = problems.bad_direction()
    # both samples settle on their optimal token, the second 6.25 times as far
    W = np.array([[0.0, -2.5 * gap], [0.0, 0.0]])
    lead = np.einsum("nd,de,ne->n", p.X[[0, 1], [1, 0]] - p.X[[0, 1], [0, 1]], W, p.z)
    assert lead.min() > 36.0
    model = models.Attention(loss=loss)
    value, _ = model.value_and_grad({"W": W}, p)
    assert value - model.floor(p) == 0.0
    excess, _, _ = model.scaled_grad({"W": W}, p)
    assert relative(excess, Oracle(model, {"W": W}, p).excess(3 * gap)) < 1e-11


@all_losses
def test_excess_loss_at_random_points(loss: str) -> None:
    model = models.Attention(loss=loss)
    for seed in range(6):
        p = whole_numbers("masked" if seed % 2 else "all tokens", seed)
        for size in (0.01, 0.25, 1.0, 4.0):
            W = size * np.random.default_rng(seed).integers(-2, 3, (3, 3))
            excess, _, _ = model.scaled_grad({"W": W}, p)
            assert relative(excess, Oracle(model, {"W": W}, p).excess(200.0)) < 1e-12


@all_losses
def test_samples_settled_at_different_depths(loss: str) -> None:
    # gaps 500 and 500.5 in one trial: both count; 500 and 2000: only one is seen, and none is NaN
    for other in (500.5, 2000.0):
        p = problems.TokenProblem(
            X=[[[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]],
            z=[[1.0, 0.0], [0.0, 1.0]],
            y=[1.0, 1.0],
            v=[1.0, 0.0],
        )
        W = np.array([[500.0, other], [0.0, 0.0]])
        assert_scaled_gradient_is_exact(models.Attention(loss=loss), {"W": W}, p)


@all_losses
def test_tied_tokens_with_equal_scores_do_not_hide_the_third(loss: str) -> None:
    p = problems.TokenProblem(
        X=[[[1.0, 1.0], [1.0, -1.0], [0.0, 0.0]]], z=[[1.0, 0.0]], y=[1.0], v=[1.0, 0.0]
    )
    W = np.array([[900.0, 0.0], [0.0, 0.0]])
    assert_scaled_gradient_is_exact(models.Attention(loss=loss), {"W": W}, p)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("margin", [30.0, 300.0, 3000.0])
def test_joint_gradient_where_the_loss_itself_vanishes(loss: str, margin: float) -> None:
    model, p = models.Attention(loss=loss, train_head=True), problems.two_token()
    params = {"W": np.array([[0.5, 0.0], [0.0, 0.0]]), "v": np.array([margin, 0.0])}
    assert_scaled_gradient_is_exact(model, params, p)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_joint_gradient_of_the_head_survives_an_exactly_zero_gradient_in_W(loss: str) -> None:
    # both tokens are equal, so W has nothing to choose; the head still learns
    model = models.Attention(loss=loss, train_head=True)
    p = problems.TokenProblem(X=[[[1.0], [1.0]]], z=[[1.0]], y=[1.0], v=[1.0])
    params = {"W": np.array([[0.0]]), "v": np.array([2000.0])}
    assert_scaled_gradient_is_exact(model, params, p)


def test_a_settled_trial_does_not_disturb_its_neighbour() -> None:
    one = problems.two_token()
    p = problems.TokenProblem(*(np.stack([a, a]) for a in (one.X, one.z, one.y, one.v)))
    model = models.Attention(loss="exponential")
    W = np.zeros((2, 2, 2))
    W[:, 0, 0] = 2000.0, 0.5
    _, direction, log_scale = model.scaled_grad({"W": W}, p)
    for b in range(2):
        _, alone, log_alone = model.scaled_grad({"W": W[b]}, one)
        found = np.log(-direction["W"][b, 0, 0]) + log_scale[b]
        assert abs(found - np.log(-alone["W"][0, 0]) - log_alone) < 1e-12 * max(1, -log_alone)


def test_softmax_moves_by_its_derivative() -> None:
    rng = np.random.default_rng(0)
    logits, move = rng.standard_normal((2, 3, 5))
    s, h = models.softmax(logits), 1e-6
    moved = (models.softmax(logits + h * move) - models.softmax(logits - h * move)) / (2 * h)
    for exact in (False, True):
        found = s * models.centred(s, move, exact=exact)
        np.testing.assert_allclose(found, moved, rtol=1e-8, atol=1e-10)


def test_the_exact_derivative_of_softmax_keeps_what_saturation_hides() -> None:
    s, a = models.softmax(np.array([40.0, 0.0])), np.array([0.1, 1.1])
    found, lost = s * models.centred(s, a, exact=True), np.exp(-40.0)
    np.testing.assert_allclose(found, [-lost, lost], rtol=1e-12)
    assert (s * models.centred(s, a))[0] == 0.0


@all_losses
def test_the_second_derivative_of_a_loss(loss: str) -> None:
    found, m, h = models.losses()[loss], np.linspace(-4.0, 4.0, 33), 1e-5
    np.testing.assert_allclose(
        found.bend(m), (found.slope(m + h) - found.slope(m - h)) / (2 * h), rtol=1e-6, atol=1e-9
    )


def test_an_unknown_loss_is_named() -> None:
    with pytest.raises(ValueError, match=r"loss: expected one of 'logistic'.*did you mean 'log"):
        models.losses()["logistics"]
    assert "mean" not in models.losses()
