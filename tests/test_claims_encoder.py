"""Checks of the encoder ledger notice when what they rest on is broken; theory at its edges."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnbook import theory
from attnbook.claims._measure import slope
from attnbook.claims.encoder._curvature import WIDTHS, nearby, spectral
from attnlab import models, ntk, problems

E = theory.encoder
Mutant = Callable[[Any], Any]

# Claim, what is broken (in attnbook.theory.encoder unless it has a dot), the mutant, in words.
MUTANTS: list[tuple[str, str, Mutant, str]] = [
    ("assumption-1", "input_bound", lambda f: lambda X: f(X) * X.shape[-2] ** 0.5, "root lost"),
    ("assumption-3", "similarity", lambda f: lambda X: np.sqrt(f(X)), "missing square"),
    (
        "proposition-1",
        "alpha",
        lambda _: lambda m, w, p: np.linalg.svd(m.features(w, p), compute_uv=False)[..., 0],
        "largest singular value for the smallest",
    ),
    ("proposition-1", "condition_2", lambda f: lambda *a: 1.0 / f(*a), "upside down"),
    (
        "theorem-1",
        "alpha",
        lambda _: lambda m, w, p: np.linalg.svd(m.features(w, p), compute_uv=False)[..., 0],
        "largest singular value for the smallest",
    ),
    (
        "lemma-1",
        "ntk.arc_cosine",
        lambda f: lambda phi: (2.0 * f(phi)[0], f(phi)[1]),
        "relu kernel doubled",
    ),
    (
        "lemma-1",
        "ntk.limiting_encoder",
        lambda f: lambda p, **_: f(p),
        "d_s^2 lost for sum pooling",
    ),
    (
        "theorem-2",
        "alpha",
        lambda f: lambda m, w, p: f(m, w, p) * m.width**0.5,
        "the paper's slip: tau_1 lost",
    ),
    (
        "theorem-3",
        "hessian_block_bounds",
        lambda f: lambda x, b: {k: 0.25 * v for k, v in f(x, b).items()},
        "a quarter of the bounds",
    ),
    ("lemma-20", "lemma_6_bound", lambda f: lambda m, r=0.0: f(m, r) / 3.0, "3 lost"),
    (
        "corollary-1",
        "effective_scalars",
        lambda f: lambda m, w: (f(m, w)[0], f(m, w)[2], f(m, w)[1]),
        "p and q swapped",
    ),
    ("definition-1", "sub_exponential_log_mgf", lambda f: lambda t, nu: 0.5 * f(t, nu), "half"),
    ("lemma-2", "scaled_sub_exponential", lambda _: lambda s, nu, a: (s * nu, a), "s lost"),
    ("lemma-3", "summed_sub_exponential", lambda _: lambda nu, a: (max(nu), max(a)), "no sum"),
    ("lemma-4", "sub_exponential_tail", lambda f: lambda *a: 0.5 * f(*a), "half"),
    ("lemma-5", "lemma_5_interval", lambda f: lambda d1, _, t: f(d1, 1, t), "d2 lost"),
    ("lemma-6", "lemma_6_bound", lambda f: lambda m, r=0.0: 0.5 * f(m, r), "half"),
    ("lemma-7", "lemma_7_bound", lambda f: lambda *a, **k: 2.0 * f(*a, **k), "doubled"),
    ("lemma-7", "lemma_7_bound", lambda f: lambda *a, **k: 0.25 * f(*a, **k), "a quarter"),
    ("lemma-8", "lemma_8_interval", lambda _: lambda T: (1.0 / T, 1.0), "missing root"),
    ("lemma-9", "lemma_9_bound", lambda f: lambda *a: 2.0 * f(*a), "doubled"),
    (
        "lemma-10",
        "lemma_10_bound",
        lambda f: lambda b, dO, dF: f(b, 0.0 * dO, dF),
        "the term of w_O dropped",
    ),
    (
        "lemma-11",
        "softmax_jacobian",
        lambda f: lambda v: f(v) + 2.0 * np.asarray(v)[..., None] * np.asarray(v)[..., None, :],
        "the sign of vv'",
    ),
    (
        "lemma-12",
        "gradient_factors",
        lambda f: lambda b: f(b) | {"W_V": f(b)["w_O"], "w_O": f(b)["W_V"]},
        "V and O swapped",
    ),
    ("lemma-13", "c2", lambda f: lambda b: f(b) ** 2, "missing root"),
    ("lemma-14", "c3", lambda f: lambda b, **k: 0.5 * f(b, **k), "half"),
    (
        "lemma-15",
        "lambda_0_lower",
        lambda f: lambda phi, eta=1.0: 2.0 * f(phi, eta),
        "the coefficient not squared",
    ),
    ("lemma-15", "lambda_0_upper", lambda f: lambda *a, **k: 2.0 * f(*a, **k), "doubled"),
    ("lemma-16", "mean_tokens", lambda f: lambda p: p.T * f(p), "sum for mean"),
    (
        "lemma-17",
        "smallest_eigenvalue",
        lambda _: lambda K: np.linalg.eigvalsh(K)[..., -1],
        "largest eigenvalue",
    ),
    (
        "lemma-18",
        "lambda_0_lower",
        lambda f: lambda phi, eta=1.0: 4.0 * f(phi, eta),
        "the coefficient lost",
    ),
    (
        "lemma-19",
        "ntk.limiting_encoder",
        lambda f: lambda p, **_: f(p),
        "d_s^2 lost for sum pooling",
    ),
    ("remark-1", "logit_variance", lambda f: lambda m, *a: f(m, *a) / m.width, "d_m lost"),
    ("remark-2", "top_eigenvalue", lambda f: lambda *a: 2.0 * f(*a), "doubled"),
    ("section-c5", "alpha_ratio", lambda f: lambda m, d, *a: 1.0 / f(m, d, *a), "inverted"),
    ("identity-3", "softmax_jacobian", lambda f: lambda v: 2.0 * f(v), "doubled"),
    (
        "identity-4",
        "effective_features",
        lambda f: lambda kappa, p: f(-np.asarray(kappa), p),
        "the sign of kappa",
    ),
]


@pytest.mark.parametrize(
    ("claim", "target", "mutant", "words"),
    MUTANTS,
    ids=[f"{claim}: {target}, {words}" for claim, target, _, words in MUTANTS],
)
def test_a_broken_bound_is_noticed(
    claim: str, target: str, mutant: Mutant, words: str, verdict: Callable[..., bool]
) -> None:
    path = f"attnlab.{target}" if "." in target else f"attnbook.theory.encoder.{target}"
    assert verdict(f"encoder.{claim}", path, mutant) is False, words


def test_hermite_coefficients_against_quadrature() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(400)  # relu: integrate over the half line
    z = 12.0 * (nodes + 1.0) / 2.0
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * weights * 6.0
    for k in range(9):
        basis = np.zeros(k + 1)
        basis[k] = 1.0
        hermite = np.polynomial.hermite_e.hermeval(z, basis) / np.sqrt(float(_factorial(k)))
        assert E.relu_hermite(k) == pytest.approx(float((density * z * hermite).sum()), abs=1e-9)


def _factorial(k: int) -> int:
    return 1 if k < 2 else k * _factorial(k - 1)


def test_relu_kernel_is_its_hermite_series() -> None:
    cosine = 0.6
    phi = np.array([[1.0, 0.0], [cosine, 0.8]])
    series = sum(E.relu_hermite(k) ** 2 * cosine**k for k in range(40))
    assert float(ntk.arc_cosine(phi)[0][0, 1]) == pytest.approx(series, abs=1e-9)


def test_tail_of_a_sum_of_products() -> None:
    t = np.array([0.5, 4.0, 60.0])
    assert np.allclose(E.product_log_tail(2, t), -t - np.log(2.0), atol=1e-9)  # Laplace
    many = E.product_log_tail(100_000, np.array([0.0, 300.0]))
    assert many[0] == pytest.approx(np.log(0.5), abs=1e-6)
    assert many[1] == pytest.approx(np.log(0.1714), abs=2e-3)  # normal, 0.9487 sigma


def test_mean_pooling_is_rho_over_tokens() -> None:
    p = problems.gaussian_regression(n=3, T=4, d=5, trials=2, rng=0)
    total, mean = (models.Encoder(6, "ntk", pooling=k) for k in ("sum", "mean"))
    params = total.init(p, rng=0)
    one, other = E.bars(total, p, params), E.bars(mean, p, params)
    for bound in (E.rho, E.c1, E.c2, E.c3):
        assert np.allclose(bound(one), 4.0 * bound(other))
    assert np.allclose(E.lemma_14_z(one), E.lemma_14_z(other))


def test_conditions_scale_as_they_should() -> None:
    b = E.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)
    assert E.condition_2(b, 2.0, 1.0) == pytest.approx(4.0 * E.condition_2(b, 1.0, 1.0))
    assert E.condition_3(b, 2.0, 1.0) == pytest.approx(8.0 * E.condition_3(b, 1.0, 1.0))
    assert E.condition_2(b, 1.0, 4.0) == pytest.approx(0.5 * E.condition_2(b, 1.0, 1.0))
    apart = dict.fromkeys(("W_Q", "W_K", "W_V", "w_O"), 3.0)
    assert E.condition_2(b, 1.0, 1.0, apart) == pytest.approx(3.0 * E.condition_2(b, 1.0, 1.0))


def test_outputs_are_lipschitz_with_c1() -> None:
    rng = np.random.default_rng(0)
    p = problems.gaussian_regression(n=3, T=3, d=2, trials=200, rng=rng)
    model = models.Encoder(4, "he", pooling="sum")
    one, noise = model.init(p, rng), model.init(p, rng)
    two = {k: one[k] + 0.3 * noise[k] for k in one}
    far = np.sqrt(sum((0.3 * v).reshape(200, -1) ** 2 @ np.ones(v[0].size) for v in noise.values()))
    gap = np.linalg.norm(model.forward(two, p) - model.forward(one, p), axis=-1)
    assert (gap <= E.c1(E.bars(model, p, one, two)) * far).all()


BARS = E.Bars(4, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: E.Bars(4, 2, -1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0), "Cx: expected"),
        (lambda: E.Bars(0, 2, 1.0, 0.1, 1.0, Q=2.0, K=2.0, V=2.0, O=1.0), "n: expected"),
        (lambda: E.norms({"W": np.eye(2)}), "params: expected the keys"),
        (lambda: E.bars(models.Encoder(2), None), "points: expected"),
        (lambda: E.bars(models.Attention(), None, {}), "model: expected an Encoder"),
        (lambda: E.condition_2(BARS, 1.0, 0.0), "loss: expected a loss above 0"),
        (lambda: E.condition_2(BARS, 1.0, 1.0, 0.0), "radius: expected numbers above 0"),
        (lambda: E.condition_3(BARS, -1.0, 1.0), "alpha: expected"),
        (lambda: E.movement_bounds(BARS, 0.0, 1.0), "alpha: expected numbers above 0"),
        (lambda: E.rate(1.0, 0.1, kept=1.5), "kept: expected"),
        (lambda: E.lemma_7_bound(BARS, -1.0, 1.0), "moved_Q: expected a norm"),
        (lambda: E.softmax_jacobian([0.5, 0.6]), "weights: expected rows of the simplex"),
        (lambda: E.sub_exponential_tail(1.0, 1.0, 1.0), "delta: expected"),
        (lambda: E.logit_entry_bound(1.0, 1.0, 2, 0.01), "width: expected at least 2 log"),
        (lambda: E.product_log_tail(3, -1.0), "threshold: expected"),
        (lambda: E.smallest_eigenvalue([[1.0, 2.0], [0.0, 1.0]]), "kernel: expected a symmetric"),
        (lambda: E.stability_limit(0.0, 10), "top: expected numbers above 0"),
        (lambda: E.variances("xavier", 10, 10), "init: expected one of"),
        (lambda: E.theorem_1_failure(10, 1, 2, 1.0), "N: expected"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 3])
def test_theorem_3_the_exponent_of_the_hessian_over_many_draws(d: int) -> None:
    """The ledger's eight draws scatter by .05; here are 64, without those whose units are dead."""
    rng = np.random.default_rng(1)
    drawn = problems.gaussian_regression(n=1, T=6, d=d, trials=64, rng=rng)
    widths = WIDTHS if d == 1 else WIDTHS // 2
    norms = []
    for width in widths:
        model = models.Encoder(int(width), "ntk", "linear", "sum")
        norms.append(spectral(model, nearby(model.init(drawn, rng), rng), drawn))
    alive = [one for one in np.transpose(norms) if (one > 0).all()]
    assert len(alive) >= 60
    assert abs(np.median([slope(widths, one) for one in alive]) + 0.5) < 0.05
