"""Structural identities of the four papers' models, each named after its place in the papers.

Training here is a bare loop over `value_and_grad`, so that nothing but the models is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab import models, problems

Array = NDArray[np.float64]
Params = dict[str, Array]
Steps = dict[str, float]
Rule = Iterator[Callable[[Params, Params], Params]]


def close(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    """Agreement relative to the size of the whole array."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def softmax(a: Array) -> Array:
    e = np.exp(a - a.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def noise(model: Any, problem: Any, scale: float = 0.7, seed: int = 5) -> Params:
    rng = np.random.default_rng(seed)
    return {
        name: scale * rng.standard_normal(problem.trials + tail)
        for name, tail in model.shapes(problem).items()
    }


def descend(model: Any, problem: Any, params: Params, step: float, steps: int) -> Params:
    for _ in range(steps):
        _, grads = model.value_and_grad(params, problem)
        params = {name: p - step * grads[name] for name, p in params.items()}
    return params


# --- multihead: the zero start and one head (catalogue multihead 4.3) ------------------------


def one_head_gradient(V: Array, W: Array, p: problems.SequenceProblem) -> Params:
    """Lemma 1 for one head <V, softmax(X W^T X^T) X> and the logistic loss; ours is W, key left."""
    P = softmax(np.einsum("nsi,ij,ntj->nts", p.X, W, p.X))
    attended = P @ p.X
    f = np.einsum("td,ntd->n", V, attended)
    A = np.einsum("td,nsd->nts", V, p.X)
    C = P * (A - (P * A).sum(-1, keepdims=True))
    c = -p.y / (1 + np.exp(p.y * f)) / p.n
    return {
        "V": np.einsum("n,ntd->td", c, attended),
        "W": np.einsum("n,nsi,nts,ntj->ij", c, p.X, C, p.X, optimize=True),
    }


def gd(steps: Steps) -> Rule:
    while True:
        yield lambda theta, g: {k: theta[k] - steps[k] * g[k] for k in theta}


def heavy_ball(steps: Steps, beta: float) -> Rule:
    m: Params = {}

    def step(theta: Params, g: Params) -> Params:
        for k in theta:
            m[k] = beta * m.get(k, 0.0) + g[k]
        return {k: theta[k] - steps[k] * m[k] for k in theta}

    while True:
        yield step


def adam(steps: Steps, eps: Steps, b1: float = 0.9, b2: float = 0.999) -> Rule:
    m: Params = {}
    s: Params = {}
    t = 0

    def step(theta: Params, g: Params) -> Params:
        moved = {}
        for k in theta:
            m[k] = b1 * m.get(k, 0.0) + (1 - b1) * g[k]
            s[k] = b2 * s.get(k, 0.0) + (1 - b2) * g[k] ** 2
            root = np.sqrt(s[k] / (1 - b2**t))
            moved[k] = theta[k] - steps[k] * m[k] / (1 - b1**t) / (root + eps[k])
        return moved

    while True:
        t += 1
        yield step


def follow(rule: Rule, theta: Params, gradient: Callable[[Params], Params], steps: int) -> Params:
    for _, step in zip(range(steps), rule, strict=False):
        theta = step(theta, gradient(theta))
    return theta


def one_head_from_zero(p: problems.SequenceProblem, rule: Rule, steps: int) -> Params:
    zero = {"V": np.zeros((p.T, p.d)), "W": np.zeros((p.d, p.d))}
    return follow(rule, zero, lambda theta: one_head_gradient(theta["V"], theta["W"], p), steps)


def heads_from_zero(H: int, p: problems.SequenceProblem, rule: Rule, steps: int) -> Params:
    model = models.MultiHead(H)
    return follow(rule, model.init(p), lambda theta: model.value_and_grad(theta, p)[1], steps)


def assert_is_one_head(params: Params, one: Params, H: int, tol: float = 1e-13) -> None:
    """Every head is V / sqrt(H) and W, to a tolerance relative to their size."""
    for name, expected in (("U", one["V"] / np.sqrt(H)), ("W", one["W"])):
        close(params[name], np.broadcast_to(expected, params[name].shape), tol)


ETA = 1.0
REDUCTION = pytest.mark.parametrize("H", [2, 4, 16])


@REDUCTION
def test_zero_start_gd_is_one_head_with_steps_eta_and_eta_over_H(H: int) -> None:
    p = problems.tokenized_mixture(n=30, rng=0)
    params = heads_from_zero(H, p, gd({"U": ETA, "W": ETA}), 200)
    one = one_head_from_zero(p, gd({"V": ETA, "W": ETA / H}), 200)
    assert np.abs(one["W"]).max() > 0.1
    assert_is_one_head(params, one, H)
    P = softmax(np.einsum("nsi,ij,ntj->nts", p.X, one["W"], p.X))
    f = np.einsum("td,nts,nsd->n", one["V"], P, p.X)
    close(models.MultiHead(H).forward(params, p), f)


@REDUCTION
def test_zero_start_momentum_is_one_head_with_steps_eta_and_eta_over_H(H: int) -> None:
    p = problems.tokenized_mixture(n=30, rng=0)
    params = heads_from_zero(H, p, heavy_ball({"U": 0.2, "W": 0.2}, 0.9), 200)
    one = one_head_from_zero(p, heavy_ball({"V": 0.2, "W": 0.2 / H}, 0.9), 200)
    assert np.abs(one["W"]).max() > 0.1
    assert_is_one_head(params, one, H)


@REDUCTION
def test_zero_start_adam_is_one_head_with_steps_sqrt_H_eta_and_eta(H: int) -> None:
    # gradients are g_V / sqrt(H) and g_W / H: with eps scaled likewise the reduction is exact
    p, eta, eps, root = problems.tokenized_mixture(n=30, rng=0), 0.02, 1e-8, H**0.5
    params = heads_from_zero(H, p, adam({"U": eta, "W": eta}, {"U": eps, "W": eps}), 100)
    one = one_head_from_zero(
        p, adam({"V": root * eta, "W": eta}, {"V": root * eps, "W": H * eps}), 100
    )
    assert np.abs(one["W"]).max() > 0.1
    assert_is_one_head(params, one, H)


@pytest.mark.parametrize("H", [2, 5])
def test_equal_heads_stay_equal_without_the_short_cut(H: int) -> None:
    # a second trial with different heads forbids computing equal heads once
    p = problems.tokenized_mixture(n=20, trials=2, rng=0)
    model = models.MultiHead(H)
    params = noise(model, p, 0.1)
    for array in params.values():
        array[0] = 0.0
    params = descend(model, p, params, ETA, 100)
    one = one_head_from_zero(p.trial(0), gd({"V": ETA, "W": ETA / H}), 100)
    assert_is_one_head({k: a[0] for k, a in params.items()}, one, H)
    spread = np.ptp(params["W"][1], axis=0).max() / np.abs(params["W"][1]).max()
    assert spread > 0.1  # the other trial's heads did differ


@pytest.mark.parametrize("output", ["full", "pooled", "last"])
@pytest.mark.parametrize("H", [2, 5])
def test_equal_heads_stay_equal_from_any_start(output: str, H: int) -> None:
    p = problems.tokenized_mixture(n=20, rng=0)
    model = models.MultiHead(H, output=output)
    start = {k: np.repeat(a[:1], H, axis=0) for k, a in noise(model, p).items()}
    for array in descend(model, p, start, ETA, 50).values():
        assert (array == array[:1]).all()


@pytest.mark.parametrize("output", ["full", "pooled", "last"])
def test_W_does_not_move_on_the_first_step(output: str) -> None:
    p = problems.tokenized_mixture(n=30, trials=3, rng=0)
    model = models.MultiHead(4, output=output)
    first = descend(model, p, model.init(p), ETA, 1)
    assert (first["W"] == 0.0).all()
    assert (first["U"] != 0.0).any()
    assert (descend(model, p, first, ETA, 1)["W"] != 0.0).any()


@pytest.mark.parametrize("H", [1, 4, 9])
def test_lemma_16_rows_of_U_after_the_first_step(H: int) -> None:
    p = problems.tokenized_mixture(n=30, rng=0)
    model = models.MultiHead(H)
    U = descend(model, p, model.init(p), ETA, 1)["U"]
    row = ETA / (2 * p.T * p.n * np.sqrt(H)) * np.einsum("n,ntd->d", p.y, p.X)
    close(U, np.broadcast_to(row, U.shape), 1e-14)


def test_lemma_2_first_phase_finds_the_signal_with_coefficient_zeta_over_4() -> None:
    # printed zeta / 2; E[y mu_y] = (mu_+ - mu_-) / 2 makes it zeta / 4
    zeta = 0.3
    p = problems.tokenized_mixture(n=20_000, zeta=zeta, rng=0)
    model = models.MultiHead(1)
    row = -model.value_and_grad(model.init(p), p)[1]["U"][0].mean(0)
    mu = p.source.mu  # type: ignore[union-attr]
    signal = mu[0] - mu[1]
    assert abs(row @ signal / (signal @ signal) - zeta / 4) < 0.01 * zeta


def test_norm_of_W_at_step_2_is_exactly_proportional_to_1_over_H() -> None:
    p = problems.tokenized_mixture(n=100, rng=0)
    norms = {}
    for H in (1, 4, 16, 64):
        model = models.MultiHead(H)
        W = descend(model, p, model.init(p), ETA, 2)["W"]
        norms[H] = np.linalg.norm(W, axis=(1, 2))
        close(norms[H] * H, np.full(H, norms[1][0]), 1e-14)
    assert 0.1 < norms[1][0] < 0.4  # .1967 in the catalogue's draw


def test_adam_first_step_is_the_step_size_in_every_entry_of_U() -> None:
    # coursework C4: T = 10, d = 4, H = 4, eta = .06: |V| = sqrt(H) |U_h| = .06 sqrt(160) = .7589
    p = problems.tokenized_mixture(n=100, rng=0)
    params = heads_from_zero(4, p, adam({"U": 0.06, "W": 0.06}, {"U": 1e-8, "W": 1e-8}), 1)
    np.testing.assert_allclose(np.linalg.norm(2.0 * params["U"][0]), 0.7589, rtol=0, atol=5e-5)
    assert (params["W"] == 0.0).all()


def test_section_5_1_random_signs_make_two_groups_of_heads() -> None:
    H, p = 6, problems.tokenized_mixture(n=50, rng=0)
    model = models.MultiHead(H)
    signs = np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    _, grads = model.value_and_grad(model.init(p), p)
    start = {
        "U": -signs[:, None, None] * np.sqrt(H) * grads["U"],
        "W": np.zeros((H, p.d, p.d)),
    }
    end = descend(model, p, start, ETA, 100)
    for array in end.values():
        size = np.abs(array).max()
        for sign in (1.0, -1.0):
            group = array[signs == sign]
            assert np.ptp(group, axis=0).max() <= 1e-12 * size
        assert np.abs(array[0] - array[1]).max() > 0.1 * size
    on_relevant = (model.attention(end, p) * p.relevant[:, None, None]).sum(-1).mean((0, 2))  # type: ignore[index]
    assert on_relevant[signs > 0].min() > on_relevant[signs < 0].max() + 0.1


def test_pooled_and_last_outputs_are_restrictions_of_the_full_one() -> None:
    p = problems.planted(n=7, T=4, d=3, rng=0)
    full = models.MultiHead(3)
    for output, pattern in (("pooled", np.ones(4)), ("last", np.eye(4)[-1])):
        model = models.MultiHead(3, output=output)
        params = noise(model, p)
        lifted = {**params, "U": pattern[:, None] * params["U"][:, None, :]}
        loss, grads = model.value_and_grad(params, p)
        loss_full, grads_full = full.value_and_grad(lifted, p)
        close(loss, loss_full)
        close(model.forward(params, p), full.forward(lifted, p))
        close(grads["W"], grads_full["W"])
        close(grads["U"], np.einsum("t,htd->hd", pattern, grads_full["U"]))


def test_equation_2_heads_may_be_exchanged() -> None:
    p = problems.planted(n=7, T=4, d=3, rng=0)
    model, order = models.MultiHead(5), [3, 0, 4, 1, 2]
    params = noise(model, p)
    loss, grads = model.value_and_grad(params, p)
    loss2, grads2 = model.value_and_grad({k: a[order] for k, a in params.items()}, p)
    close(loss2, loss)
    for name in grads:
        close(grads2[name], grads[name][order])


# --- softmax: what it cannot see -------------------------------------------------------------


def off_differences(X: Array) -> Array:
    """A unit vector a with equal products a.x over the tokens of each sample."""
    differences = (X[:, 1:] - X[:, :1]).reshape(-1, X.shape[-1])
    a = np.linalg.svd(differences)[2][-1]
    assert np.ptp(X @ a, axis=1).max() < 1e-12
    return np.asarray(a)


@pytest.mark.parametrize(
    "head",
    [models.LinearHead(), models.ConcaveHead(0.3), models.ReLUHead(np.eye(9))],
    ids=repr,
)
def test_row_shift_invariance_of_attention(head: Any) -> None:
    # W + a b^T adds (a.x)(b.z), one constant a sample, to the logits
    p = problems.sphere(n=2, T=4, d=9, rng=0)
    a, b = off_differences(p.X), np.random.default_rng(1).standard_normal(9)
    model = models.Attention(head=head)
    params = noise(model, p)
    shifted = {"W": params["W"] + 10 * np.outer(a, b)}
    loss, grads = model.value_and_grad(params, p)
    close(model.attention(shifted, p), model.attention(params, p))
    close(model.value_and_grad(shifted, p)[0], loss)
    assert np.abs(grads["W"].T @ a).max() < 1e-14  # no gradient along such a direction
    unseen = np.linalg.svd(p.z)[2][-1]  # nor along b orthogonal to every query
    assert np.abs(grads["W"] @ unseen).max() < 1e-14


def test_row_shift_invariance_of_multihead_and_encoder() -> None:
    p = problems.gaussian_regression(n=2, T=3, d=6, rng=0)
    q = problems.SequenceProblem(p.X, np.sign(p.y))
    a = off_differences(p.X)
    rng = np.random.default_rng(1)
    mha, enc = models.MultiHead(3), models.Encoder(7)
    for model, data, name, direction in (
        (mha, q, "W", np.einsum("i,hj->hij", a, rng.standard_normal((3, 6)))),
        (enc, p, "W_K", np.outer(rng.standard_normal(7), a)),
    ):
        params = noise(model, data)
        loss, grads = model.value_and_grad(params, data)
        shifted = {**params, name: params[name] + 5 * direction}
        close(model.value_and_grad(shifted, data)[0], loss)
        close(model.attention(shifted, data), model.attention(params, data))
        assert abs((grads[name] * direction).sum()) < 1e-13 * np.linalg.norm(direction)


def test_svm_lemma_1_gradients_live_in_the_span_of_queries_and_token_differences() -> None:
    p = problems.sphere(n=3, T=3, d=8, trials=4, rng=0)
    model = models.Attention()
    grads = model.value_and_grad(noise(model, p), p)[1]["W"]
    for b in range(4):
        G, z = grads[b], p.z[b]
        differences = (p.X[b, :, 1:] - p.X[b, :, :1]).reshape(-1, 8)
        for rows, product in ((z, G), (differences, G.T)):
            onto = np.linalg.pinv(rows) @ rows
            assert np.abs(product - product @ onto).max() < 1e-14
        assert np.linalg.matrix_rank(G) == 3


def test_order_of_tokens_does_not_matter_to_pooled_models() -> None:
    p = problems.planted(n=5, T=4, d=3, rng=0)
    turned = problems.SequenceProblem(p.X[:, [2, 0, 3, 1]], p.y)
    for model in (models.MultiHead(2, output="pooled"), models.Encoder(6)):
        params = noise(model, p)
        loss, grads = model.value_and_grad(params, p)
        loss2, grads2 = model.value_and_grad(params, turned)
        close(loss2, loss)
        for name in grads:
            close(grads2[name], grads[name])


# --- svm and bias: one query, one head -------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "exponential", "correlation"])
def test_bias_identity_14_under_assumption_2(loss: str) -> None:
    r"""<-grad, W'> = mean of -l'_i (gamma_opt - gamma) s_opt (1 - s_opt) h_i, for every W'."""
    p = problems.orthogonal(n=6, T=4, d=9, rho=0.3, sigma=0.1, trials=3, rng=0)
    model, rng = models.Attention(loss=loss), np.random.default_rng(1)
    params = noise(model, p)
    grads = model.value_and_grad(params, p)[1]["W"]
    s, best = model.attention(params, p), p.relevant
    assert best is not None
    s_opt = (s * best).sum(-1)
    u = s_opt  # scores are exactly 1 and 0
    minus_slope = {"logistic": 1 / (1 + np.exp(u)), "exponential": np.exp(-u)}.get(
        loss, 1.0 + 0 * u
    )
    for _ in range(5):
        other = rng.standard_normal((3, 9, 9))
        a = np.einsum("bnti,bij,bnj->bnt", p.X, other, p.z)
        h = (a * best).sum(-1) - (s * a * ~best).sum(-1) / (s * ~best).sum(-1)
        right = (minus_slope * s_opt * (1 - s_opt) * h).mean(-1)
        close(-(grads * other).sum((-1, -2)), right)


def test_svm_lemma_7_remainder_is_exact() -> None:
    # a^T S' gamma = sum_t (a_1 - a_t) s_t (gamma_1 - gamma_t) - (a_1 - abar)(gamma_1 - gammabar)
    p = problems.sphere(n=1, T=5, d=6, rng=0)
    model = models.Attention(loss="correlation")
    params = noise(model, p)
    G = -model.value_and_grad(params, p)[1]["W"]
    other = np.random.default_rng(1).standard_normal((6, 6))
    s, gamma, a = model.attention(params, p)[0], p.scores[0], p.X[0] @ other @ p.z[0]
    right = ((a[0] - a) * s * (gamma[0] - gamma)).sum()
    right -= (a[0] - s @ a) * (gamma[0] - s @ gamma)
    assert abs((G * other).sum() - right) < 1e-14


def test_svm_lemma_2_the_floor_is_never_reached_but_approached() -> None:
    p = problems.bad_direction()
    W = np.array([[-0.2097, -0.7250], [-0.7250, -0.0084]])  # separates the optimal tokens
    for loss in ("logistic", "exponential", "correlation"):
        model = models.Attention(loss=loss)
        floor = np.asarray(model.floor(p))
        value = {
            "logistic": np.log(1 + np.exp(-np.array([0.2, 0.5]))),
            "exponential": np.exp(-np.array([0.2, 0.5])),
            "correlation": -np.array([0.2, 0.5]),
        }[loss].mean()
        close(floor, value, 1e-15)
        excess = [float(model.scaled_grad({"W": R * W}, p)[0]) for R in (0, 1, 5, 25, 125, 600)]
        assert min(excess) > 0.0
        assert excess == sorted(excess, reverse=True)
        assert excess[-1] < 1e-250
    assert abs(float(models.Attention(loss="exponential").floor(p)) - 0.71263) < 5e-6


def normalized_descent(
    model: models.Attention, p: problems.TokenProblem, W: Array, step: float, steps: int
) -> list[Array]:
    path = [W]
    for _ in range(steps):
        G = model.scaled_grad({"W": path[-1]}, p)[1]["W"]
        path.append(path[-1] - step * G / np.linalg.norm(G))
    return path


def test_for_one_sample_ngd_does_not_depend_on_the_loss() -> None:
    p = problems.sphere(n=1, T=5, d=4, rng=0)
    start = noise(models.Attention(), p)["W"]
    paths = [
        normalized_descent(models.Attention(loss=loss), p, start, 0.1, 300)
        for loss in ("logistic", "exponential", "correlation")
    ]
    close(paths[1][-1], paths[0][-1], 1e-11)
    close(paths[2][-1], paths[0][-1], 1e-11)
    two = problems.sphere(n=2, T=5, d=4, rng=0)
    ends = [
        normalized_descent(models.Attention(loss=loss), two, start, 0.1, 300)[-1]
        for loss in ("logistic", "exponential")
    ]
    assert np.abs(ends[0] - ends[1]).max() > 1e-3  # with two samples it does


START = np.array([[0.1, 0.3], [-0.2, 0.4]])
SECTION_3_3 = models.Attention(loss="exponential")


def one_minus_correlation(W: Array) -> float:
    """One minus the cosine between W and the max-margin direction e_1 e_1^T, formed exactly."""
    w, rest = W[0, 0], (W**2).sum() - W[0, 0] ** 2
    norm = np.sqrt(w * w + rest)
    return float(rest / (norm * (norm + w)))


def test_bias_section_3_3_gd_follows_its_scalar_recursion() -> None:
    # printed: W^11_t and its approximation log(e^{W^11_0} + eta t / e)
    printed = {100: (3.542, 3.635), 1000: (5.896, 5.911), 3000: (7.002, 7.007)}
    printed[10_000] = (8.2087, 8.2106)
    p, w, params = problems.two_token(), 0.1, {"W": START}
    for t in range(1, 10_001):
        phi = 1 / (1 + np.exp(-w))
        w += np.exp(-phi) * phi * (1 - phi)
        params = descend(SECTION_3_3, p, params, 1.0, 1)
        if t in printed:
            assert abs(params["W"][0, 0] - w) < 1e-12
            assert abs(w - printed[t][0]) < 5.5e-4
            assert abs(np.log(np.exp(0.1) + t / np.exp(1.0)) - printed[t][1]) < 5.5e-4
    assert np.array_equal(params["W"].ravel()[1:], START.ravel()[1:])
    close(one_minus_correlation(params["W"]), 1 - w / np.sqrt(w**2 + 0.29), 1e-10)


def test_bias_appendix_a_4_ngd_moves_W11_by_exactly_the_step() -> None:
    path = normalized_descent(SECTION_3_3, problems.two_token(), START, 0.1, 3000)
    w = np.array([W[0, 0] for W in path])
    np.testing.assert_allclose(w, 0.1 + 0.1 * np.arange(3001), rtol=1e-12)
    assert all(np.array_equal(W.ravel()[1:], START.ravel()[1:]) for W in path)
    for t, printed in ((100, 1.418e-3), (1000, 1.447e-5), (3000, 1.61e-6)):
        # 1 - corr = 1 - w / sqrt(w^2 + |W_0|^2 - (W_0^11)^2), about .29 / (2 w^2)
        one_minus = one_minus_correlation(path[t])
        assert abs(one_minus / printed - 1) < 5e-3
        assert abs(one_minus - (1 - w[t] / np.sqrt(w[t] ** 2 + 0.29))) < 1e-15
    assert abs(one_minus_correlation(path[3000]) / (0.29 / (2 * w[3000] ** 2)) - 1) < 1e-5


def test_bias_section_3_3_gradient_in_closed_form() -> None:
    # W^11 moves by e^{-phi} phi (1 - phi), phi = sigmoid(W^11), whatever the other entries
    p, rng = problems.two_token(), np.random.default_rng(0)
    for _ in range(20):
        W = 3 * rng.standard_normal((2, 2))
        phi = 1 / (1 + np.exp(-W[0, 0]))
        loss, grads = SECTION_3_3.value_and_grad({"W": W}, p)
        close(loss, np.exp(-phi))
        assert abs(-grads["W"][0, 0] - np.exp(-phi) * phi * (1 - phi)) < 1e-15
        assert (grads["W"].ravel()[1:] == 0.0).all()


def test_bias_joint_training_at_zero_moves_the_head_alone() -> None:
    p = problems.gaussian(n=10, T=2, d=100, rho=0.1, alpha=3.0, trials=3, rng=0)
    model = models.Attention(loss="exponential", start="zero", train_head=True)
    loss, grads = model.value_and_grad(model.init(p), p)
    assert (loss == 1.0).all()
    assert (grads["W"] == 0.0).all()
    close(grads["v"], -np.einsum("bn,bntd->bd", p.y, p.X) / (10 * 2), 1e-13)


def test_svm_the_problem_head_of_a_joint_model_is_not_used() -> None:
    p = problems.sphere(n=3, T=4, d=5, rng=0)
    other = problems.TokenProblem(p.X, p.z, p.y, -3 * p.v)
    model = models.Attention(train_head=True)
    params = noise(model, p)
    assert model.value_and_grad(params, p)[0] == model.value_and_grad(params, other)[0]


# --- svm: W = K Q^T --------------------------------------------------------------------------


def test_svm_lemma_15_factors_act_through_their_product_alone() -> None:
    p = problems.sphere(n=3, T=4, d=5, rng=0)
    kq, w = models.Attention(factors=3), models.Attention()
    params = noise(kq, p)
    K, Q = params["K"], params["Q"]
    O = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]  # noqa: E741
    loss, grads = kq.value_and_grad(params, p)
    loss_w, G = w.value_and_grad({"W": K @ Q.T}, p)
    close(loss, loss_w)
    close(kq.attention(params, p), w.attention({"W": K @ Q.T}, p))
    close(grads["K"], G["W"] @ Q)
    close(grads["Q"], G["W"].T @ K)
    turned, grads_turned = kq.value_and_grad({"K": K @ O, "Q": Q @ O}, p)
    close(turned, loss)
    close(grads_turned["K"], grads["K"] @ O)
    close(grads_turned["Q"], grads["Q"] @ O)


@pytest.mark.parametrize("head", [models.LinearHead(), models.ConcaveHead(0.3)], ids=repr)
def test_gradient_flow_conserves_KtK_minus_QtQ(head: Any) -> None:
    p = problems.sphere(n=3, T=4, d=5, rng=0)
    model = models.Attention(factors=3, head=head)
    assert_flow_conserves(
        model, p, noise(model, p), lambda w: w["K"].T @ w["K"] - w["Q"].T @ w["Q"]
    )


def assert_flow_conserves(
    model: Any, p: Any, params: Params, conserved: Callable[[Params], Array]
) -> None:
    """Its derivative along the flow is 0, so one GD step of size gamma moves it by gamma^2 times
    its value at the gradient, and a fixed number of steps by 4 times less where gamma is halved.
    """
    _, grads = model.value_and_grad(params, p)
    start = conserved(params)
    gamma = 0.5
    moved = conserved(descend(model, p, params, gamma, 1)) - start
    second_order = gamma**2 * conserved(grads)
    assert np.abs(second_order).max() > 1e-6
    assert np.abs(moved - second_order).max() < 1e-13 * np.abs(start).max()
    drifts = [
        np.linalg.norm(conserved(descend(model, p, params, step, 8)) - start)
        for step in (2e-4, 1e-4)
    ]
    assert abs(drifts[0] / drifts[1] - 4.0) < 0.05
    times = [
        np.linalg.norm(conserved(descend(model, p, params, step, steps)) - start)
        for step, steps in ((1e-3, 40), (5e-4, 80))
    ]
    assert abs(times[0] / times[1] - 2.0) < 0.02  # over a fixed time: by 2


# --- encoder (catalogue encoder 1.3, 1.4, 1.8) -----------------------------------------------

every_encoder = pytest.mark.parametrize(
    ("init", "pooling"), [(i, pool) for i in ("lecun", "he", "ntk") for pool in ("mean", "sum")]
)


def encoder(init: str, pooling: str, **data: Any) -> tuple[models.Encoder, Params, Any]:
    model = models.Encoder(8, init=init, pooling=pooling)
    p = problems.gaussian_regression(**{"n": 5, "T": 4, "d": 3, "rng": 0, **data})
    return model, model.init(p, rng=1), p


@every_encoder
def test_encoder_is_homogeneous_of_degree_one_in_W_V_and_w_O(init: str, pooling: str) -> None:
    model, params, p = encoder(init, pooling)
    f = model.forward(params, p)
    for name in ("W_V", "w_O"):
        close(model.forward({**params, name: 3.0 * params[name]}, p), 3.0 * f)
    # Euler: <W_V, grad f> = <w_O, grad f> = f; the loss brings the factor 2 (f - y) / n
    _, grads = model.value_and_grad(params, p)
    euler = (2 / p.n * (f - p.y) * f).sum()
    for name in ("W_V", "w_O"):
        close((params[name] * grads[name]).sum(), euler)


@every_encoder
def test_encoder_euler_sample_by_sample(init: str, pooling: str) -> None:
    model, params, p = encoder(init, pooling)
    f = model.forward(params, p)
    for i in range(p.n):
        # half of the loss with target f - 1 has slope 1, so this is the gradient of f itself
        one = problems.SequenceProblem(p.X[i : i + 1], f[i : i + 1] - 1.0)
        half = models.Encoder(8, init=init, pooling=pooling, loss="half_sum")
        _, grads = half.value_and_grad(params, one)
        for name in ("W_V", "w_O"):
            assert abs((params[name] * grads[name]).sum() - f[i]) < 1e-13
        close(grads["W_Q"] @ params["W_Q"].T, (grads["W_K"] @ params["W_K"].T).T, 1e-11)


@every_encoder
def test_encoder_query_and_key_gradients_are_balanced(init: str, pooling: str) -> None:
    model, params, p = encoder(init, pooling)
    _, grads = model.value_and_grad(params, p)
    left, right = grads["W_Q"] @ params["W_Q"].T, grads["W_K"] @ params["W_K"].T
    close(left, right.T)
    close((params["W_Q"] * grads["W_Q"]).sum(), (params["W_K"] * grads["W_K"]).sum())


@every_encoder
def test_encoder_flow_conserves_query_minus_key(init: str, pooling: str) -> None:
    model, params, p = encoder(init, pooling, unit_tokens=True)
    assert_flow_conserves(model, p, params, lambda w: w["W_Q"] @ w["W_Q"].T - w["W_K"] @ w["W_K"].T)


@every_encoder
def test_encoder_flow_conserves_each_neurons_balance(init: str, pooling: str) -> None:
    model, params, p = encoder(init, pooling, unit_tokens=True)
    assert_flow_conserves(model, p, params, lambda w: (w["W_V"] ** 2).sum(1) - w["w_O"] ** 2)


@every_encoder
def test_encoder_on_one_token_is_the_two_layer_network(init: str, pooling: str) -> None:
    model, params, p = encoder(init, pooling, T=1)
    x, tau1 = p.X[:, 0], 8**-0.5 if init == "ntk" else 1.0
    hidden = np.maximum(x @ params["W_V"].T, 0.0)
    f = tau1 * hidden @ params["w_O"]
    close(model.forward(params, p), f, 1e-14)
    assert (model.attention(params, p) == 1.0).all()
    _, grads = model.value_and_grad(params, p)
    assert (grads["W_Q"] == 0.0).all()
    assert (grads["W_K"] == 0.0).all()
    r = 2 / p.n * (f - p.y)
    close(grads["w_O"], tau1 * hidden.T @ r, 1e-13)
    close(grads["W_V"], tau1 * ((hidden > 0) * params["w_O"] * r[:, None]).T @ x, 1e-13)


@every_encoder
@pytest.mark.parametrize("scaling", ["sqrt", "linear"])
def test_corollary_1_one_feature_leaves_three_scalars(
    init: str, pooling: str, scaling: str
) -> None:
    width = 30
    model = models.Encoder(width, init=init, scaling=scaling, pooling=pooling)
    p = problems.gaussian_regression(n=12, T=5, d=1, rng=0)
    params = model.init(p, rng=1)
    W_Q, W_K, W_V, w_O = (params[k].ravel() for k in ("W_Q", "W_K", "W_V", "w_O"))
    kappa = model.tau0 * W_Q @ W_K
    above, below = np.maximum(W_V, 0) @ w_O, np.maximum(-W_V, 0) @ w_O
    x = p.X[..., 0]
    m = (softmax(kappa * x[:, :, None] * x[:, None, :]) * x[:, None, :]).sum(-1)
    c = model.tau1 * (1 / p.T if pooling == "mean" else 1.0)
    f = c * (above * np.maximum(m, 0) + below * np.maximum(-m, 0)).sum(-1)
    close(model.forward(params, p), f)
    features = model.features(params, p)
    assert features.shape == (12, width)
    close(features @ params["w_O"], f)
    values = np.linalg.svd(features, compute_uv=False)
    assert values[1] > 1e-3 * values[0]
    assert values[2] < 1e-13 * values[0]


@pytest.mark.parametrize("pooling", ["mean", "sum"])
def test_table_1_lecun_is_ntk_over_root_d_and_he_is_twice_lecun(pooling: str) -> None:
    # the same normals and the same attention: logits carry eta_Q eta_K, which tau_0 undoes
    width, d, base = 12, 5, 0.2
    p = problems.gaussian_regression(n=6, T=4, d=d, rng=0)
    f, features, maps = {}, {}, {}
    for init, scaling in (("ntk", base), ("lecun", base * d), ("he", base * d / 2)):
        model = models.Encoder(width, init=init, scaling=scaling, pooling=pooling)
        params = model.init(p, rng=7)
        f[init], features[init] = model.forward(params, p), model.features(params, p)
        maps[init] = model.attention(params, p)
    close(maps["lecun"], maps["ntk"])
    close(maps["he"], maps["ntk"])
    close(f["lecun"], f["ntk"] / np.sqrt(d))
    close(f["he"], 2 * f["lecun"])
    kernel = {init: F @ F.T for init, F in features.items()}
    close(kernel["lecun"], width / d * kernel["ntk"])
    close(kernel["he"], 2 * kernel["lecun"])


@pytest.mark.parametrize(
    ("init", "variances"),
    [
        ("lecun", {"W_Q": 1 / 50, "W_K": 1 / 50, "W_V": 1 / 50, "w_O": 1 / 400}),
        ("he", {"W_Q": 2 / 50, "W_K": 2 / 50, "W_V": 2 / 50, "w_O": 2 / 400}),
        ("ntk", {"W_Q": 1.0, "W_K": 1.0, "W_V": 1.0, "w_O": 1.0}),
    ],
)
def test_table_1_variances(init: str, variances: dict[str, float]) -> None:
    p = problems.gaussian_regression(n=2, T=2, d=50, trials=10, rng=0)
    model = models.Encoder(400, init=init)
    assert model.tau1 == (0.05 if init == "ntk" else 1.0)
    for name, array in model.init(p, rng=0).items():
        assert array.shape[0] == 10
        assert abs(array.var() / variances[name] - 1) < 0.08
        assert abs(array.mean()) < 0.05 * np.sqrt(variances[name])


@pytest.mark.parametrize(
    ("init", "scaling", "variance"),
    [("ntk", "sqrt", 1.0), ("ntk", "linear", 1 / 64), ("lecun", "sqrt", 1 / 30**2)],
)
def test_section_1_4_variance_of_the_logits_at_the_start(
    init: str, scaling: str, variance: float
) -> None:
    p = problems.gaussian_regression(n=1, T=2, d=30, unit_tokens=True, trials=2000, rng=0)
    model = models.Encoder(64, init=init, scaling=scaling)
    B = model.attention(model.init(p, rng=1), p)[:, 0]  # (trials, query, key)
    logits = np.log(B[:, :, 0]) - np.log(B[:, :, 1])
    # the difference x_t^T M (x_1 - x_2) has variance tau_0^2 d_m eta_Q eta_K |x_1 - x_2|^2
    length = ((p.X[:, 0, 0] - p.X[:, 0, 1]) ** 2).sum(-1)
    assert abs((logits**2 / length[:, None]).mean() / variance - 1) < 0.1


# --- one convention for three models ---------------------------------------------------------


def test_maps_of_the_three_models_agree_row_by_row() -> None:
    p = problems.gaussian_regression(n=4, T=5, d=3, rng=0)
    rng = np.random.default_rng(1)
    enc, mha, one = models.Encoder(6), models.MultiHead(1), models.Attention()
    params = enc.init(p, rng=2)
    W = enc.tau0 * params["W_K"].T @ params["W_Q"]  # the book's notation: logits are X W z
    q = problems.SequenceProblem(p.X, np.ones(4))
    maps = mha.attention({"W": W[None], "U": rng.standard_normal((1, 5, 3))}, q)
    close(maps[:, 0], enc.attention(params, p))
    last = models.MultiHead(1, output="last")
    close(last.attention({"W": W[None], "U": np.ones((1, 3))}, q)[:, 0], maps[:, 0, -1])
    for t in range(5):
        tokens = problems.TokenProblem(p.X, p.X[:, t], np.ones(4), np.ones(3))
        close(one.attention({"W": W}, tokens), maps[:, 0, t])


def test_one_head_reading_the_last_token_is_attention_with_a_trained_head() -> None:
    p = problems.planted(n=6, T=4, d=3, rng=0)
    tokens = problems.TokenProblem(p.X, p.X[:, -1], p.y, np.ones(3))
    mha, one = models.MultiHead(1, output="last"), models.Attention(train_head=True)
    params = noise(mha, p)
    loss, grads = mha.value_and_grad(params, p)
    loss1, grads1 = one.value_and_grad({"v": params["U"][0], "W": params["W"][0]}, tokens)
    close(loss, loss1)
    close(grads["U"][0], grads1["v"])
    close(grads["W"][0], grads1["W"])


def test_sequence_problem_is_its_token_problems_side_by_side() -> None:
    # the mean loss over rows of svm, Section 7, is the mean over positions of single problems
    n, T = 3, 4
    p = problems.causal(n=n, T=T, d=5, rng=0)
    model = models.Attention()
    params = noise(model, p)
    loss, grads = model.value_and_grad(params, p)
    losses, total = [], np.zeros((5, 5))
    for k in range(1, T):  # position k sees k + 1 tokens; the first sees itself alone
        rows = np.arange(k, n * T, T)
        part = problems.TokenProblem(p.X[rows][:, : k + 1], p.z[rows], p.y[rows], p.v)
        value, g = model.value_and_grad(params, part)
        losses.append(value)
        total += g["W"] / T
    first = np.arange(0, n * T, T)
    alone = np.log(1 + np.exp(-p.scores[first, 0])).mean()
    close(loss, np.mean([alone, *losses]))
    close(grads["W"], total)
