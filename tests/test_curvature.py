"""Hessians against differences of the gradient, and the statements about curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab import curvature, models, problems
from attnlab.curvature import _lanczos, _network

Array = NDArray[np.float64]
Params = dict[str, Array]
CASES = {"single": None, "batch": 2, "two axes": (2, 2)}
LOSSES = ("logistic", "exponential", "correlation")
V = np.random.default_rng(11).standard_normal((4, 3))
HEADS = {
    "linear": {},
    "trained": {"train_head": True},
    "concave": {"head": models.ConcaveHead(0.4)},
    "relu": {"head": models.ReLUHead(V)},
}
MODELS: dict[str, Any] = {
    f"multihead {output} {loss}": models.MultiHead(3, output=output, loss=loss)
    for output in ("full", "pooled", "last")
    for loss in LOSSES
}
for loss in LOSSES:
    for factors in (None, 2):
        for head, kwargs in HEADS.items():
            name = f"attention {factors or 'W'} {head} {loss}"
            MODELS[name] = models.Attention(factors=factors, loss=loss, **kwargs)
for loss in ("mean", "half_mean", "half_sum"):
    for pooling in ("mean", "sum"):
        name = f"encoder {pooling} {loss}"
        MODELS[name] = models.Encoder(
            5, init="ntk" if pooling == "sum" else "lecun", scaling=0.8, pooling=pooling, loss=loss
        )
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
FEW = [
    "multihead full logistic",
    "multihead pooled exponential",
    "attention W relu logistic",
    "attention 2 trained logistic",
    "attention 2 concave exponential",
    "encoder mean mean",
    "encoder sum half_sum",
]
a_few = pytest.mark.parametrize("model", [MODELS[name] for name in FEW], ids=FEW)


def problem_for(model: Any, trials: Any = None) -> Any:
    if isinstance(model, models.Attention):
        return problems.sphere(n=4, T=5, d=3, trials=trials, rng=1)
    if isinstance(model, models.MultiHead):
        return problems.planted(n=3, T=4, d=3, trials=trials, rng=2)
    return problems.gaussian_regression(n=3, T=4, d=2, trials=trials, rng=3)


def draw(model: Any, problem: Any, rng: int, scale: float = 0.7) -> Params:
    generator = np.random.default_rng(rng)
    return {
        name: scale * generator.standard_normal(problem.trials + tail)
        for name, tail in model.shapes(problem).items()
    }


def flat(model: Any, problem: Any, arrays: Params) -> Array:
    lead = problem.trials
    return np.concatenate([arrays[k].reshape(*lead, -1) for k in model.shapes(problem)], axis=-1)


def differences(model: Any, params: Params, problem: Any, h: float = 1e-5) -> Array:
    """Central differences of the exact gradient; column by column, all trials at once."""
    columns = []
    for name, tail in model.shapes(problem).items():
        for entry in np.ndindex(tail):
            ends = []
            for sign in (1, -1):
                moved = {**params, name: params[name].copy()}
                moved[name][(..., *entry)] += sign * h
                ends.append(flat(model, problem, model.value_and_grad(moved, problem)[1]))
            columns.append((ends[0] - ends[1]) / (2 * h))
    return np.stack(columns, axis=-1)


def relative(found: Array, expected: Array) -> float:
    """Largest error over trials, relative to the Frobenius norm of each."""
    size = np.linalg.norm(expected, axis=(-1, -2))
    return float((np.linalg.norm(found - expected, axis=(-1, -2)) / size).max())


@pytest.mark.parametrize("trials", CASES.values(), ids=CASES)
@every_model
def test_hessian_of_the_loss_is_the_derivative_of_the_gradient(model: Any, trials: Any) -> None:
    p = problem_for(model, trials)
    params = draw(model, p, 5)
    found = curvature.hessian(model, params, p)
    assert found.trials == p.trials
    assert found.matrix.shape == (*p.trials, found.size, found.size)
    assert relative(found.matrix, differences(model, params, p)) < 1e-6
    assert np.array_equal(found.matrix, found.matrix.swapaxes(-1, -2))


def output_differences(model: Any, params: Params, problem: Any, i: int, h: float = 1e-5) -> Array:
    """The same for output i: its gradient is read off a loss that sees this sample alone."""
    one: dict[str, Any] = {"X": problem.X[i : i + 1], "y": problem.y[i : i + 1]}
    if isinstance(model, models.Encoder):
        # the gradient of (f - y)^2 / 2 is (f - y) grad f
        alone = models.Encoder(
            model.width, model.init, model.scaling, model.pooling, loss="half_sum"
        )
    elif isinstance(model, models.MultiHead):
        alone = models.MultiHead(model.heads, output=model.output, loss="correlation")
    else:
        one |= {"z": problem.z[i : i + 1], "v": problem.v}
        alone = models.Attention(
            model.factors, model.head, loss="correlation", train_head=model.train_head
        )
    sample = type(problem)(**one)

    class Output:
        def shapes(self, problem: Any) -> dict[str, tuple[int, ...]]:
            return alone.shapes(sample)

        def value_and_grad(self, at: Params, problem: Any) -> tuple[None, Params]:
            grads = alone.value_and_grad(at, sample)[1]
            slope = -sample.y[0]
            if isinstance(model, models.Encoder):
                slope = alone.forward(at, sample)[0] - sample.y[0]
            return None, {name: g / slope for name, g in grads.items()}

    return differences(Output(), params, sample, h)


@every_model
def test_hessian_of_each_output(model: Any) -> None:
    p = problem_for(model)
    params = draw(model, p, 6)
    found = curvature.hessian(model, params, p, of="output")
    assert found.trials == (p.n,)
    expected = np.stack([output_differences(model, params, p, i) for i in range(p.n)])
    assert relative(found.matrix, expected) < 1e-6


@a_few
def test_the_hessian_of_a_batch_is_a_loop(model: Any) -> None:
    p = problem_for(model, (2, 2))
    params = draw(model, p, 7)
    direction = draw(model, p, 8)
    for of in ("loss", "output"):
        whole = curvature.hessian(model, params, p, of=of)
        for index in np.ndindex(2, 2):
            here = {name: array[index] for name, array in params.items()}
            one = curvature.hessian(model, here, p.trial(index), of=of)
            np.testing.assert_allclose(whole.matrix[index], one.matrix, rtol=1e-12, atol=1e-14)
            for both, single in zip(whole.extremes, one.extremes, strict=True):
                np.testing.assert_allclose(both[index], single, rtol=1e-10, atol=1e-13)
    moved = curvature.product(model, params, p, direction)
    ends = curvature.extremes(model, params, p)
    for index in np.ndindex(2, 2):
        here, along = ({k: a[index] for k, a in each.items()} for each in (params, direction))
        alone = curvature.product(model, here, p.trial(index), along)
        for name, array in alone.items():
            np.testing.assert_allclose(moved[name][index], array, rtol=1e-12, atol=1e-14)
        single_ends = curvature.extremes(model, here, p.trial(index))
        np.testing.assert_allclose([e[index] for e in ends], single_ends, rtol=1e-9)


@every_model
def test_product_is_the_matrix_times_the_direction(model: Any) -> None:
    p = problem_for(model, 3)
    params, direction = draw(model, p, 9), draw(model, p, 10)
    moved = curvature.product(model, params, p, direction)
    assert {k: a.shape for k, a in moved.items()} == {k: a.shape for k, a in params.items()}
    matrix = curvature.hessian(model, params, p).matrix
    expected = (matrix @ flat(model, p, direction)[..., None])[..., 0]
    error = np.abs(flat(model, p, moved) - expected).max()
    assert error < 1e-12 * np.abs(matrix).max() * expected.shape[-1]


@a_few
def test_blocks_of_samples_do_not_change_the_answer(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = problem_for(model, 2)
    params, direction = draw(model, p, 9), draw(model, p, 10)
    matrix = curvature.hessian(model, params, p).matrix
    moved = curvature.product(model, params, p, direction)
    monkeypatch.setattr(_network, "BLOCK", 1)
    np.testing.assert_allclose(
        curvature.hessian(model, params, p).matrix, matrix, rtol=1e-11, atol=1e-13
    )
    for name, array in curvature.product(model, params, p, direction).items():
        np.testing.assert_allclose(array, moved[name], rtol=1e-11, atol=1e-13)


@a_few
def test_lanczos_finds_the_extremes(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem_for(model, 2)
    params = draw(model, p, 12)
    found = curvature.hessian(model, params, p)
    values = np.linalg.eigvalsh(found.matrix)
    size = np.abs(values).max()
    np.testing.assert_allclose(found.extremes, values[:, [0, -1]].T, atol=1e-13 * size)
    by_products = curvature.extremes(model, params, p)
    np.testing.assert_allclose(by_products, values[:, [0, -1]].T, atol=1e-9 * size)
    monkeypatch.setattr("attnlab.curvature._hessian.DENSE", 0)
    large = curvature.hessian(model, params, p)
    np.testing.assert_allclose(large.extremes, values[:, [0, -1]].T, atol=1e-9 * size)
    assert "matrix" not in vars(large)  # it was never formed


def test_lanczos_where_eigenvalues_are_zero_equal_or_few() -> None:
    for values in ([0.0] * 9, [0.0] * 8 + [2.0], [-1.0] * 3 + [1.0] * 3, [3.0], [-2.0, 5.0]):
        basis = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values),) * 2))[0]
        matrix = (basis * values) @ basis.T
        found = _lanczos.lanczos(lambda x, matrix=matrix: matrix @ x, len(values))
        np.testing.assert_allclose(found, (min(values), max(values)), atol=1e-10)


def test_masked_tokens_and_self_attention() -> None:
    p, model = problems.causal(n=2, T=4, d=3, rng=0), models.Attention(factors=2)
    assert p.mask is not None
    params, direction = draw(model, p, 1), draw(model, p, 2)
    found = curvature.hessian(model, params, p)
    assert relative(found.matrix, differences(model, params, p)) < 1e-6
    moved = flat(model, p, curvature.product(model, params, p, direction))
    np.testing.assert_allclose(moved, found.matrix @ flat(model, p, direction), atol=1e-13)
    own = curvature.hessian(model, params, p, of="output")
    assert own.matrix.shape == (p.n, 12, 12)


def test_saturated_attention_has_no_curvature_left_and_no_nan() -> None:
    p, model = problems.sphere(n=4, T=5, d=3, rng=1), models.Attention()
    params = draw(model, p, 1, scale=1e4)
    assert np.isfinite(curvature.hessian(model, params, p).matrix).all()
    assert np.abs(curvature.hessian(model, params, p).matrix).max() < 1e-3
    assert np.isfinite(curvature.extremes(model, params, p)).all()


def test_order_and_blocks() -> None:
    model = models.MultiHead(2, start="gaussian")
    p = problem_for(model)
    found = curvature.hessian(model, model.init(p, rng=0), p)
    assert list(found.order) == ["U", "W"]
    assert found.order["W"] == slice(24, 42)
    assert np.array_equal(found.blocks["U", "W"], found.matrix[:24, 24:])
    assert np.array_equal(found.blocks["W", "U"], found.blocks["U", "W"].T)
    assert repr(found) == "Hessian(of='loss', p=42: U 24, W 18)"


def test_multihead_lemma_1_curvature_is_a_third_central_moment() -> None:
    """The catalogue's einsums (its W is our transpose) for one head and one sample."""
    p, model = problems.planted(n=1, T=4, d=3, rng=0), models.MultiHead(1)
    params = draw(model, p, 2)
    X, U, W = p.X[0], params["U"][0], params["W"][0].T
    logits = X @ W @ X.T
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    A = U @ X.T
    A -= (P * A).sum(axis=1, keepdims=True)
    D = X[None] - (P @ X)[:, None]
    M = np.einsum("ts,tsa,tsb->tab", P, D, D)
    K = np.einsum("ts,ts,tsa,tsb->tab", P, A, D, D)
    found = curvature.hessian(model, params, p, of="output").blocks
    cross = np.einsum("ti,taj->taji", X, M).reshape(12, 9)
    square = np.einsum("ti,tk,tjl->jilk", X, X, K).reshape(9, 9)
    np.testing.assert_allclose(found["U", "W"][0], cross, atol=1e-14)
    np.testing.assert_allclose(found["W", "W"][0], square, atol=1e-14)


# --- multihead: Lemma 5, Proposition 1, Corollary 1, Lemma 6


@pytest.mark.parametrize("output", ["full", "pooled", "last"])
def test_heads_do_not_meet_in_the_hessian_of_the_output(output: str) -> None:
    H, model = 3, models.MultiHead(3, output=output)
    p = problem_for(model)
    params = draw(model, p, 3)
    of_output = curvature.hessian(model, params, p, of="output")
    of_loss = curvature.hessian(model, params, p)
    head = np.empty(of_output.size, dtype=int)
    for place in of_output.order.values():
        head[place] = np.repeat(np.arange(H), (place.stop - place.start) // H)
    apart = head[:, None] != head
    assert (of_output.matrix[:, apart] == 0.0).all()
    assert (np.abs(of_loss.matrix[apart]) > 0.0).mean() > 0.9
    assert (of_output.blocks["U", "U"] == 0.0).all()


def unit_sequences(trials: int, n: int, T: int, d: int, rng: np.random.Generator) -> Any:
    """Tokens of length 1 (R = 1) and fair labels."""
    X = rng.standard_normal((trials, n, T, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    return problems.SequenceProblem(X=X, y=rng.choice([-1.0, 1.0], size=(trials, n)))


def betas(p: Any, theta: Array, H: int, R: float = 1.0) -> tuple[Array, Array, Array]:
    T, d = p.T, p.d
    beta1 = np.sqrt(T) * R * (2 * R**2 * theta + 1)
    beta3 = 2 * np.sqrt(T * d) * R**3 * (3 * np.sqrt(d) * R**2 * theta + 1)
    return beta1, beta3 / np.sqrt(H) + beta1**2 / 4, beta3


def test_multihead_proposition_1() -> None:
    rng = np.random.default_rng(0)
    p, model = unit_sequences(300, 1, 4, 3, rng), models.MultiHead(1, loss="correlation")
    params = {name: array * 2.0 for name, array in draw(model, p, 1, scale=1.0).items()}
    U = np.linalg.norm(params["U"][:, 0], axis=(-1, -2))
    grads = model.value_and_grad(params, p)[1]
    length = np.sqrt(sum((g**2).sum(axis=(-1, -2, -3)) for g in grads.values()))
    assert (length / (np.sqrt(p.T) * (2 * U + 1))).max() <= 1.0
    low, high = curvature.hessian(model, params, p, of="output").extremes
    norm = np.maximum(-low, high)[:, 0]
    printed = norm / (2 * np.sqrt(p.T * p.d) * (3 * np.sqrt(p.d) * U + 1))
    free_of_dimension = norm / (np.sqrt(p.T) * (2 * U + 1))
    assert printed.max() < free_of_dimension.max() <= 1.0
    assert free_of_dimension.max() > 0.1  # the sharper bound is within a factor 10


def test_multihead_corollary_1_and_lemma_6_on_300_instances() -> None:
    rng, negative = np.random.default_rng(1), []
    for H, trials in ((1, 75), (2, 75), (4, 75), (8, 75)):
        p, model = unit_sequences(trials, 4, 4, 3, rng), models.MultiHead(H)
        params = draw(model, p, H, scale=1.0)
        loss, grads = model.value_and_grad(params, p)
        length = np.sqrt(sum((g**2).sum(axis=(-1, -2, -3)) for g in grads.values()))
        low, high = curvature.hessian(model, params, p).extremes
        U, W = (np.linalg.norm(params[k], axis=(-1, -2)) for k in ("U", "W"))
        for theta in (np.sqrt(U**2 + W**2).max(axis=-1), U.max(axis=-1)):  # Corollary, Lemma
            beta1, beta2, beta3 = betas(p, theta, H)
            assert (length <= beta1 * loss).all()
            assert (np.maximum(-low, high) <= beta2).all()
            assert (-low <= beta3 / np.sqrt(H) * loss).all()
        ratio = curvature.weak_convexity(model, params, p)
        np.testing.assert_allclose(ratio, np.maximum(-low, 0.0) / loss, rtol=1e-9)
        negative += list(low < 0.0)
    assert np.mean(negative) > 0.9  # so (3) is not vacuous in sign


def test_the_loss_is_more_convex_with_more_heads() -> None:
    rng, counts, found = np.random.default_rng(5), (1, 3, 9, 25), []
    for H in counts:
        p, model = unit_sequences(30, 5, 4, 3, rng), models.MultiHead(H, start="gaussian")
        params = draw(model, p, H, scale=0.5)
        found.append(curvature.weak_convexity(model, params, p).mean())
    slope = np.polyfit(np.log(counts), np.log(found), 1)[0]
    assert found == sorted(found, reverse=True)
    assert -0.5 < slope < -0.3, (found, slope)


def test_weak_convexity_is_zero_where_the_loss_is_convex() -> None:
    # one token: attention is constant, logistic regression in U remains
    p = problems.SequenceProblem(X=np.ones((3, 5, 1, 2)), y=np.ones((3, 5)))
    model = models.MultiHead(2, start="gaussian")
    assert (curvature.weak_convexity(model, model.init(p, rng=0), p) == 0.0).all()


# --- encoder: Theorem 3


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_encoder_theorem_3_closed_form_and_the_term_the_paper_misses(pooling: str) -> None:
    m, T = 7, 5
    model = models.Encoder(m, init="ntk", scaling=0.6, pooling=pooling)
    p = problems.gaussian_regression(n=1, T=T, d=1, rng=0)
    params = draw(model, p, 4, scale=1.0)
    found = curvature.hessian(model, params, p, of="output").blocks
    x, tau0 = p.X[0, :, 0], model.tau0
    tau1 = model.tau1 / (T if pooling == "mean" else 1)
    q, k, v, w = (params[n].reshape(m) for n in ("W_Q", "W_K", "W_V", "w_O"))
    logits = tau0 * (q @ k) * np.outer(x, x)
    beta = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    mean = beta @ x
    centred = x - mean[:, None]
    variance, third = (beta * centred**2).sum(axis=1), (beta * centred**3).sum(axis=1)
    s = (np.outer(mean, v) > 0).astype(float)
    g = s @ (v * w)
    a = tau0 * tau1 * (x * g * variance).sum()
    c3 = tau0**2 * tau1 * (x**2 * g * third).sum()
    sV = tau0 * tau1 * (x * variance) @ s
    expected = {
        ("W_Q", "W_Q"): c3 * np.outer(k, k),
        ("W_K", "W_K"): c3 * np.outer(q, q),
        ("W_Q", "W_K"): c3 * np.outer(k, q) + a * np.eye(m),
        ("W_Q", "W_V"): np.outer(k, sV * w),
        ("W_Q", "w_O"): np.outer(k, sV * v),
        ("W_K", "W_V"): np.outer(q, sV * w),
        ("W_K", "w_O"): np.outer(q, sV * v),
        ("W_V", "w_O"): np.diag(tau1 * mean @ s),
        ("W_V", "W_V"): np.zeros((m, m)),
        ("w_O", "w_O"): np.zeros((m, m)),
    }
    for pair, block in expected.items():
        np.testing.assert_allclose(found[pair][0], block, atol=1e-13, err_msg=str(pair))
    printed = c3 * np.outer(k, q)
    assert np.linalg.norm(found["W_Q", "W_K"][0] - printed) > 0.1 * np.linalg.norm(printed)


@pytest.mark.parametrize(("init", "slope", "within"), [("ntk", -0.54, 0.12), ("lecun", -0.02, 0.1)])
def test_encoder_theorem_3_rate_in_the_width(init: str, slope: float, within: float) -> None:
    """The Hessian of the output falls like width^-1/2 for NTK starts, and not for LeCun's."""
    widths, norms = (32, 64, 128, 256, 512), []
    p = problems.gaussian_regression(n=1, T=6, d=1, trials=8, rng=3)
    for width in widths:
        model = models.Encoder(width, init=init, scaling="linear", pooling="sum")
        low, high = curvature.hessian(model, model.init(p, rng=width), p, of="output").extremes
        norms.append(np.maximum(-low, high).mean())
    found = np.polyfit(np.log(widths), np.log(norms), 1)[0]
    assert abs(found - slope) < within, found


# --- svm: Lemmas 4 and 8


@pytest.mark.parametrize("loss", LOSSES)
def test_svm_lemma_4_bounds_gradient_ratios_and_curvature(loss: str) -> None:
    p, model, rng = problems.sphere(n=5, T=5, d=4, trials=40, rng=0), models.Attention(loss=loss), 0
    L = curvature.smoothness(model, p).W
    generator, worst = np.random.default_rng(rng), 0.0
    for _ in range(20):
        start = 3.0 * generator.standard_normal((40, 4, 4))
        end = start + generator.standard_normal((40, 4, 4)) * 10 ** generator.uniform(-4, 1)
        g, h = (model.value_and_grad({"W": W}, p)[1]["W"] for W in (start, end))
        ratio = np.linalg.norm(g - h, axis=(-1, -2)) / np.linalg.norm(start - end, axis=(-1, -2))
        worst = max(worst, float((ratio / L).max()))
    assert 0.0 < worst < 0.1  # very loose
    low, high = curvature.hessian(model, {"W": start}, p).extremes
    assert (np.maximum(-low, high) <= L).all()


def test_svm_lemma_4_with_masks_counts_only_tokens_that_can_be_seen() -> None:
    p, model = problems.causal(n=2, T=4, d=3, rng=0), models.Attention(loss="exponential")
    X = np.array(p.X)
    X[~p.mask] = 100.0
    far = problems.TokenProblem(X=X, z=p.z, y=p.y, v=p.v, mask=p.mask)
    assert float(curvature.smoothness(model, far).W) == float(curvature.smoothness(model, p).W)


def test_svm_lemma_4_printed_constants_for_factors_lack_a_factor() -> None:
    p, model = problems.sphere(n=5, T=5, d=4, trials=40, rng=0), models.Attention(factors=4)
    rng = np.random.default_rng(1)
    K, Q, step = rng.standard_normal((3, 40, 4, 4))
    for c, violated in ((1.0, False), (1e4, True)):
        for moving, held in (("K", "Q"), ("Q", "K")):
            start = {moving: K / c, held: Q * c}
            end = {**start, moving: start[moving] + 1e-3 * step / c}
            found = curvature.smoothness(model, p, start)
            g, h = (model.value_and_grad(at, p)[1][moving] for at in (start, end))
            move = np.linalg.norm(start[moving] - end[moving], axis=(-1, -2))
            ratio = np.linalg.norm(g - h, axis=(-1, -2)) / move
            assert (ratio <= getattr(found, moving)).all()
            assert (ratio > getattr(found, f"{moving}_printed")).any() == violated


@pytest.mark.parametrize("loss", LOSSES)
def test_svm_lemma_8_descent(loss: str) -> None:
    p, model = problems.sphere(n=4, T=5, d=4, trials=50, rng=2), models.Attention(loss=loss)
    eta = 1.0 / curvature.smoothness(model, p).W
    params = draw(model, p, 3)
    value, grads = model.value_and_grad(params, p)
    for _ in range(30):
        params = {"W": params["W"] - eta[:, None, None] * grads["W"]}
        size = (grads["W"] ** 2).sum(axis=(-1, -2))
        new, grads = model.value_and_grad(params, p)
        assert (new - value <= -0.5 * eta * size + 1e-15).all()
        value = new


# --- bad input


def test_a_hessian_that_does_not_fit_is_refused_with_the_alternative() -> None:
    p = problems.gaussian_regression(n=20, T=3, d=50, rng=0)
    model = models.Encoder(400)
    params = model.init(p, rng=0)
    with pytest.raises(ValueError, match=r"curvature\.product.*60400 x 60400.*29\.2 GB"):
        curvature.hessian(model, params, p)
    small = models.Encoder(20)
    with pytest.raises(ValueError, match="each of 20 outputs"):
        curvature.hessian(small, small.init(p, rng=0), p, of="output")
    moved = curvature.product(model, params, p, params)
    assert all(np.isfinite(array).all() for array in moved.values())


def test_bad_input() -> None:
    p, model = problems.sphere(n=3, T=4, d=3, rng=0), models.Attention()
    params = model.init(p, rng=0)
    sequences = problems.planted(n=3, T=4, d=3, rng=0)
    bad: dict[str, Any] = {
        "model: expected an Attention, MultiHead or Encoder": lambda: curvature.hessian(
            3, params, p
        ),
        "problem: expected a TokenProblem": lambda: curvature.extremes(model, params, sequences),
        "params: expected the keys": lambda: curvature.weak_convexity(model, {"K": 1.0}, p),
        r"params\['W'\]: expected finite": lambda: curvature.extremes(
            model, {"W": np.full((3, 3), np.nan)}, p
        ),
        "did you mean 'output'": lambda: curvature.hessian(model, params, p, of="outputs"),
        "direction: expected a dict": lambda: curvature.product(model, params, p, 3),
        r"keys \['W'\]": lambda: curvature.product(model, params, p, {"K": params["W"]}),
        r"direction\['W'\]": lambda: curvature.product(model, params, p, {"W": np.ones(3)}),
        "linear head": lambda: curvature.smoothness(models.Attention(train_head=True), p),
        "model: expected an Attention,": lambda: curvature.smoothness(models.Encoder(3), p),
        "bounded below": lambda: curvature.weak_convexity(
            models.Attention(loss="correlation"), params, p
        ),
    }
    for message, call in bad.items():
        with pytest.raises(ValueError, match=message):
            call()

    class Foreign:  # its second derivative is unknown
        def value(self, o: Array, v: Array) -> Array:
            return np.tanh(o).sum(axis=-1)

        def gradient(self, o: Array, v: Array) -> Array:
            return 1.0 - np.tanh(o) ** 2

    with pytest.raises(ValueError, match=r"model\.head"):
        curvature.hessian(models.Attention(head=Foreign()), params, p)
