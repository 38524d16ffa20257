"""The nuclear SVM by descent on a factor, and the lean way of one small Frobenius instance."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from attnlab import problems, svm

pivoting: Any = importlib.import_module("attnlab.svm._pivot")
factors: Any = importlib.import_module("attnlab.svm._factored")
nuclear: Any = importlib.import_module("attnlab.svm._nuclear")
large: Any = importlib.import_module("attnlab.svm._large")
single: Any = importlib.import_module("attnlab.svm._single")
attention: Any = importlib.import_module("attnlab.svm._attention")

SHAPES = [(5, 5, 10), (4, 4, 6), (2, 3, 4), (6, 8, 10), (1, 2, 3), (3, 4, 3), (12, 4, 16)]
FIELDS = ("W", "margins", "multipliers", "norm", "gap", "residual")


def rows(p: problems.TokenProblem) -> Any:
    return attention.rows_of(p, p.optimal)[0]


def same_bits(one: svm.Margin, other: svm.Margin, where: Any = ...) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[where])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_two_ways_agree_and_few_are_left(shape: tuple[int, int, int]) -> None:
    n, T, d = shape
    p = problems.sphere(n=n, T=T, d=d, trials=30, rng=n)
    reached = nuclear.solve_nuclear(rows(p), "interior")
    assert (nuclear._by_factors(rows(p)).status == "optimal").mean() >= 0.8
    found = svm.attention_svm(p, norm="nuc")
    assert (found.status == "optimal").all()
    assert found.gap.max() <= 1e-9
    np.testing.assert_allclose(found.norm, reached.norm, rtol=2e-9)
    values = np.linalg.svd(found.W, compute_uv=False)
    np.testing.assert_allclose(found.norm, values.sum(axis=-1), rtol=1e-12)
    best = np.arange(T) == p.optimal[..., None]
    assert found.margins[~best].min() >= 1.0 - 1e-12
    D = np.take_along_axis(p.X, p.optimal[..., None, None], axis=2) - p.X
    M = np.einsum("bnt,bntd,bne->bde", found.multipliers, D, p.z)
    np.testing.assert_allclose(np.linalg.norm(M, 2, axis=(1, 2)), 1.0, rtol=1e-9)
    assert (found.multipliers >= 0.0).all()
    assert (1.0 - found.multipliers.sum(axis=(1, 2)) / found.norm <= 1e-9).all()


@pytest.mark.parametrize("norm", ["nuc"])
def test_bits_do_not_depend_on_company(norm: str) -> None:
    """Alone, in a batch, and among others: one system's answer, bit by bit."""
    p = problems.sphere(n=4, T=4, d=8, trials=12, rng=2)
    X = np.array(p.X)
    X[3, 0, 1:] = X[3, 0, :1]  # a mate without an answer
    spoiled = problems.TokenProblem(X, p.z, p.y, p.v)
    whole = svm.attention_svm(p, p.optimal, norm=norm)
    mixed = svm.attention_svm(spoiled, p.optimal, norm=norm)
    assert mixed.status[3] == "infeasible"
    for k in (0, 1, 7, 11):
        alone = svm.attention_svm(p.trial(k), norm=norm)
        same_bits(alone, whole, k)
        same_bits(alone, mixed, k)
    part = svm.attention_svm(p.trial([9, 2, 5]), norm=norm)
    for j, k in enumerate((9, 2, 5)):
        same_bits(svm.attention_svm(p.trial(k), norm=norm), part, j)


@pytest.mark.parametrize("first", [1, 2, 12])
def test_a_factor_with_too_few_columns_gets_more(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    p = problems.sphere(n=6, T=5, d=9, trials=12, rng=1)
    expected = svm.attention_svm(p, norm="nuc", method="interior")
    assert expected.rank.max() > 2
    monkeypatch.setattr(factors, "FIRST", first)
    found = nuclear._by_factors(rows(p))
    good = found.status == "optimal"
    assert good.mean() >= 0.75
    np.testing.assert_allclose(found.norm[good], expected.norm[good], rtol=2e-9)


def test_ranks_are_those_of_the_interior_point() -> None:
    p = problems.sphere(n=6, T=8, d=10, trials=30, rng=12)
    found = svm.attention_svm(p, norm="nuc")
    other = svm.attention_svm(p, norm="nuc", method="interior")
    np.testing.assert_array_equal(found.rank, other.rank)
    values = np.linalg.svd(found.W, compute_uv=False)
    ratio = values / values[:, :1]
    assert not ((ratio > 1e-9) & (ratio < 1e-5)).any(), "what is no rank is far below"


def test_what_does_not_settle_goes_to_the_interior_point(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problems.sphere(n=3, T=4, d=6, trials=6, rng=4)
    reached = svm.attention_svm(p, norm="nuc", method="interior")
    calls = [0]

    def wrong(DD: np.ndarray, Z: np.ndarray, one: np.ndarray) -> Any:
        """Nothing, plausible nonsense, and numbers that are none."""
        calls[0] += 1
        q = Z.shape[1]
        return (None, (one.copy(), np.eye(q)), (one * np.nan, np.eye(q)))[calls[0] % 3]

    monkeypatch.setattr(nuclear, "factored", wrong)
    found = svm.attention_svm(p, norm="nuc")
    assert calls[0] == 6
    same_bits(found, reached)


def test_newton_needs_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hessian with a wrong entry would need many, and a shift that stays is linear."""
    search, steps = factors._search, [0]

    def counted(*given: Any) -> Any:
        steps[0] += 1
        return search(*given)

    monkeypatch.setattr(factors, "_search", counted)
    for n, T, d, most in ((5, 5, 10, 8.0), (6, 8, 10, 9.0), (12, 4, 16, 10.0)):
        p = problems.sphere(n=n, T=T, d=d, trials=40, rng=0)
        steps[0] = 0
        assert (nuclear._by_factors(rows(p)).status == "optimal").mean() >= 0.95
        assert steps[0] / 40 <= most


@pytest.mark.parametrize("early", [1e-4, 0.1])
def test_a_last_step_that_settles_nothing_is_not_certified(
    early: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that is not looked at again: where it is taken too early the gap says so."""
    p = problems.sphere(n=5, T=5, d=10, trials=20, rng=0)
    expected = svm.attention_svm(p, norm="nuc")
    monkeypatch.setattr(factors, "NEXT", early)
    left = nuclear._by_factors(rows(p)).status != "optimal"
    assert left.any()
    found = svm.attention_svm(p, norm="nuc")
    assert (found.status == "optimal").all()
    assert found.gap.max() <= 1e-9
    np.testing.assert_allclose(found.norm, expected.norm, rtol=2e-9)
    same_bits(
        svm.attention_svm(p.trial(left), norm="nuc", method="interior"),
        svm.attention_svm(p.trial(left), norm="nuc"),
    )


def test_masks() -> None:
    p = problems.causal(n=3, T=4, d=6, trials=8, rng=4)
    found = svm.attention_svm(p, norm="nuc")
    other = svm.attention_svm(p, norm="nuc", method="interior")
    np.testing.assert_allclose(found.norm, other.norm, rtol=2e-9)
    assert p.mask is not None
    assert (found.multipliers[~p.mask] == 0.0).all()
    assert (found.margins[~p.mask] == 0.0).all()
    same_bits(svm.attention_svm(p.trial(5), norm="nuc"), found, 5)


@pytest.mark.parametrize("size", [1e-60, 1e-6, 1e6, 1e60])
def test_any_size_of_features(size: float) -> None:
    p = problems.sphere(n=4, T=4, d=6, trials=5, rng=3)
    q = problems.TokenProblem(size * p.X, p.z, p.y, p.v)
    for norm in ("fro", "nuc"):
        plain = svm.attention_svm(p, p.optimal, norm=norm)
        scaled = svm.attention_svm(q, p.optimal, norm=norm)
        np.testing.assert_allclose(scaled.W * size, plain.W, rtol=1e-6, atol=1e-9)
        alone = svm.attention_svm(q.trial(0), p.optimal[0], norm=norm)
        assert alone.gap <= 1e-9
        np.testing.assert_allclose(alone.norm, scaled.norm[0], rtol=1e-9)


# -- one small instance in the Frobenius norm -----------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, (5, 5, 4), (8, 6, 6)], ids=str)
def test_the_lean_way_is_the_general_one(shape: tuple[int, int, int]) -> None:
    n, T, d = shape
    p = problems.sphere(n=n, T=T, d=d, trials=25, rng=d)
    lean = 0
    for k in range(25):
        q = p.trial(k)
        lean += single.single(q, q.optimal) is not None
        found, other = svm.attention_svm(q), svm.attention_svm(q, method="pivot")
        assert found.status == other.status == "optimal"
        assert found.gap <= 1e-9
        size = float(other.norm)
        np.testing.assert_allclose(found.W, other.W, atol=1e-10 * size)
        np.testing.assert_allclose(found.norm, other.norm, rtol=1e-9)
        np.testing.assert_allclose(found.margins, other.margins, atol=1e-9)
        np.testing.assert_allclose(
            found.multipliers, other.multipliers, atol=1e-8 * float(other.multipliers.max())
        )
        assert found.margins.shape == found.multipliers.shape == (n, T)
        assert found.margins[np.arange(T) != q.optimal[:, None]].min() >= 1.0
    if n * (T - 1) <= d * d:
        assert lean == 25


def test_a_first_support_that_is_right_at_once() -> None:
    """Every token is a support vector: no exchange, and nothing is divided by."""
    for n in (1, 2, 3):
        X = np.zeros((n, 2, 2 * n))
        X[np.arange(n), 0, np.arange(n)] = 2.0
        X[np.arange(n), 1, n + np.arange(n)] = 1.0
        p = problems.TokenProblem(X, np.eye(2 * n)[:n], np.ones(n), np.ones(2 * n))
        for norm in ("fro", "nuc"):
            with np.errstate(all="raise"):
                found = svm.attention_svm(p, np.zeros(n, int), norm=norm)
            assert found.status == "optimal"
            np.testing.assert_allclose(found.margins[:, 1], 1.0, rtol=1e-12)
            if norm == "fro":
                np.testing.assert_allclose(found.norm, np.sqrt(n / 5.0), rtol=1e-12)
                np.testing.assert_allclose(found.multipliers[:, 1], 0.2, rtol=1e-12)


def test_equal_tokens_are_refused() -> None:
    for zero in (0, 1):  # the first row of the Gram matrix is what multipliers are measured by
        X = np.random.default_rng(0).standard_normal((2, 3, 5))
        X[0, 1 + zero] = X[0, 0]
        p = problems.TokenProblem(X, np.eye(5)[:2], np.ones(2), np.ones(5))
        for norm in ("fro", "nuc"):
            with pytest.raises(svm.InfeasibleMargin, match=f"sample 0: token {1 + zero} from"):
                svm.attention_svm(p, [0, 0], norm=norm)


@pytest.mark.parametrize("m", [1, 2, 8, 25])
def test_exchanges_end_with_every_sign_right(m: int) -> None:
    rng = np.random.default_rng(m)
    for shift in (0.0, 0.5, 2.0):
        for _ in range(40):
            rows = rng.standard_normal((m, m + 2)) + shift
            K = rows @ rows.T
            start = rng.random(m) < 0.7
            start[0] = True
            solved = pivoting.exchange(K, np.ones(m), start)
            assert solved is not None
            found, inside, factor, S = solved
            lam = np.zeros(m)
            lam[inside] = found
            slack = K @ lam - 1.0
            assert (S.nonzero()[0] == inside).all()
            assert found.min() >= -1e-9 * np.abs(found).max()
            assert slack.min() >= -1e-8
            np.testing.assert_allclose(slack[inside], 0.0, atol=1e-8)
            lower = np.tril(factor)
            np.testing.assert_allclose(
                lower @ lower.T, K[np.ix_(inside, inside)], rtol=1e-9, atol=1e-9 * K.max()
            )
            expected, right = pivoting.pivot_one(K, np.ones(m), np.ones(m, bool))
            assert right
            np.testing.assert_allclose(lam, expected, atol=1e-7 * expected.max())


def test_exchanges_give_up_on_what_is_singular_or_no_number() -> None:
    one, every = np.ones(3), np.ones(3, bool)
    for K in (np.zeros((3, 3)), np.ones((3, 3)), np.full((3, 3), np.nan), -np.eye(3)):
        assert pivoting.exchange(K, one, every) is None
    assert pivoting.exchange(np.eye(3), one, ~every) is None


def factorizations(K: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, int]:
    """Multipliers of one large system, and how many matrices were factored for them."""
    sizes: list[int] = []
    dposv = pivoting.lapack().dposv

    class Counting:
        @staticmethod
        def dposv(*given: Any) -> Any:
            sizes.append(len(given[0]))
            return dposv(*given)

    with monkeypatch.context() as patch:
        patch.setattr(pivoting, "lapack", lambda: Counting)
        m = len(K)
        lam, right = pivoting.pivot_one(K, np.ones(m), np.ones(m, bool))
    assert right
    return lam, len(sizes)


@pytest.mark.parametrize("shape", [(20, 10, 100), (20, 10, 40), (10, 20, 60)], ids=str)
def test_a_guessed_support_saves_factorizations(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    n, T, d = shape
    guessed, plain = 0, 0
    for seed in range(4):
        K = rows(problems.sphere(n=n, T=T, d=d, rng=seed)).gram[0]
        assert len(K) >= pivoting.MANY
        lam, count = factorizations(K, monkeypatch)
        guessed += count
        with monkeypatch.context() as patch:
            patch.setattr(pivoting, "MANY", len(K) + 1)
            expected, count = factorizations(K, monkeypatch)
            plain += count
        np.testing.assert_allclose(lam, expected, atol=1e-12 * expected.max())
    assert guessed <= 0.75 * plain


@pytest.mark.parametrize("guess", ["none", "all", "random", "opposite"])
def test_whatever_the_guess_the_answer_is_the_same(
    guess: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = problems.sphere(n=16, T=10, d=60, rng=3)
    expected = svm.attention_svm(p)
    right = expected.multipliers.ravel() > 0.0
    best = (np.arange(10) == p.optimal[:, None]).ravel()
    support = {
        "none": np.zeros(144, bool),
        "all": np.ones(144, bool),
        "random": np.random.default_rng(0).random(144) < 0.5,
        "opposite": ~right[~best],
    }[guess]
    calls = [0]

    def given(K: np.ndarray, b: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return support.copy()

    for module, name, method in ((large, "guess", "auto"), (pivoting, "_guess", "pivot")):
        calls[0] = 0
        monkeypatch.setattr(module, name, given)
        found = svm.attention_svm(p, method=method)
        assert calls[0] == 1
        assert found.status == "optimal"
        np.testing.assert_allclose(found.W, expected.W, atol=1e-11)
        np.testing.assert_array_equal(found.multipliers.ravel() > 0.0, right)


@pytest.mark.filterwarnings("error")
def test_guesses_of_what_is_singular_or_of_any_size() -> None:
    m = 130
    K = rows(problems.sphere(n=13, T=11, d=60, rng=1)).gram[0]
    one = np.ones(m)
    expected = pivoting._guess(K, one)
    assert not expected.all()
    for size in (2.0**-50, 2.0**50):  # powers of two change no bit
        np.testing.assert_array_equal(pivoting._guess(K * size, one), expected)
    for size in (2.0**-400, 2.0**400):  # single precision cannot hold them
        assert pivoting._guess(K * size, one).all()
    low = np.random.default_rng(0).standard_normal((m, 3))
    for singular in (np.zeros((m, m)), np.ones((m, m)), -K, K * np.nan, low @ low.T):
        assert pivoting._guess(singular, one).shape == (m,)
        lam, right = pivoting.pivot_one(singular, one, np.ones(m, bool))
        assert not right or (singular @ lam >= 1.0 - 1e-9).all()


# -- one large instance in the Frobenius norm -----------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(20, 10, 100), (20, 10, 40), (13, 11, 60), (16, 10, 16), (40, 8, 60)], ids=str
)
def test_single_precision_and_a_correction_are_the_general_way(
    shape: tuple[int, int, int],
) -> None:
    n, T, d = shape
    p = problems.sphere(n=n, T=T, d=d, trials=8, rng=d)
    sent: list[int] = []
    for k in range(8):
        q = p.trial(k)
        sent.append(single.single(q, q.optimal) is not None)
        found, other = svm.attention_svm(q), svm.attention_svm(q, method="pivot")
        assert found.status == other.status == "optimal"
        assert found.gap <= 1e-11
        size = float(other.norm)
        np.testing.assert_allclose(found.W, other.W, atol=1e-10 * size)
        np.testing.assert_allclose(found.norm, other.norm, rtol=1e-11)
        np.testing.assert_allclose(found.margins, other.margins, atol=1e-10)
        most = float(other.multipliers.max())
        np.testing.assert_allclose(found.multipliers, other.multipliers, atol=1e-9 * most)
        best = np.arange(T) == q.optimal[:, None]
        assert found.margins[~best].min() >= 1.0
        assert not found.margins[best].any()
        # the certificate from nothing but the data: margins, and the sum that W is
        D = np.take_along_axis(q.X, q.optimal[:, None, None], axis=1) - q.X
        np.testing.assert_allclose(
            np.einsum("ntd,de,ne->nt", D, found.W, q.z), found.margins, atol=1e-12
        )
        total = np.einsum("nt,ntd,ne->de", found.multipliers, D, q.z)
        np.testing.assert_allclose(total, found.W, atol=1e-8 * size)
        assert 1.0 - found.multipliers.sum() / (np.linalg.norm(total) * found.norm) <= 1e-9
    assert all(sent)


def test_near_twins_are_corrected_until_the_gap_is_small() -> None:
    """Condition 1e4: the first correction would leave a gap of up to 1e-9."""
    p = problems.sphere(n=20, T=10, d=60, trials=20, rng=3)
    X = np.array(p.X)
    X[:, :, 1] = X[:, :, 2] + 1e-2 * np.random.default_rng(0).normal(size=X[:, :, 1].shape)
    close = problems.TokenProblem(X, X[:, :, 0], p.y, p.v)
    found, other = svm.attention_svm(close), svm.attention_svm(close, method="pivot")
    assert (found.gap <= 1e-11).all()
    assert (found.gap != other.gap).all(), "another way"
    size = np.linalg.norm(other.W, axis=(1, 2))
    assert (np.linalg.norm(found.W - other.W, axis=(1, 2)) <= 1e-10 * size).all()


def hard(kind: str) -> problems.TokenProblem:
    """Eight trials of 132 constraints; the third and the seventh are spoiled."""
    p = problems.sphere(n=12, T=12, d=80, trials=8, rng=5)
    X, z = np.array(p.X), np.array(p.z)
    for k in (2, 6):
        best = p.optimal[k, 0]
        first, second = (t for t in range(3) if t != best) if best < 3 else (0, 1)
        if kind == "twins":
            X[k, 0, first] = X[k, 0, second]
        elif kind == "equal":
            X[k, 0, first] = X[k, 0, best]
        elif kind == "opposite":  # their differences contradict each other
            X[k, 0, first] = 2.0 * X[k, 0, best] - X[k, 0, second]
        elif kind == "flat":  # tokens in a plane, and one query
            X[k, :, :, 2:] = 0.0
            z[k, 1:] = z[k, 0]
        else:
            low, high = {"long": (1.0, 1e5), "wide": (1e-3, 1e3), "tiny": (1e-60, 1e-60)}[kind]
            X[k] *= np.geomspace(low, high, 12)[:, None, None]
    return problems.TokenProblem(X, z, p.y, p.v)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["twins", "equal", "opposite", "flat", "long", "wide", "tiny"])
def test_large_systems_that_single_precision_cannot_solve(kind: str) -> None:
    """The general way's verdict, and the others keep their bits."""
    p = hard(kind)
    chosen = problems.sphere(n=12, T=12, d=80, trials=8, rng=5).optimal
    found = svm.attention_svm(p, chosen)
    other = svm.attention_svm(p, chosen, method="pivot")
    np.testing.assert_array_equal(found.status, other.status)
    good = found.status == "optimal"
    assert found.gap[good].max() <= 1e-9
    assert good.sum() == (6 if kind in ("equal", "opposite", "flat") else 8)
    np.testing.assert_allclose(found.norm[good], other.norm[good], rtol=2e-9)
    for k in range(8):
        if good[k]:
            same_bits(svm.attention_svm(p.trial(k), chosen[k]), found, k)
        else:
            with pytest.raises(svm.InfeasibleMargin) as caught:
                svm.attention_svm(p.trial(k), chosen[k])
            same_bits(caught.value.margin, found, k)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wrong", [0.0, 1.0, -1.0, 1e30, np.nan, np.inf])
def test_what_single_precision_says_is_not_trusted(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nonsense instead of multipliers, also of the correction: the general way's bits."""
    p = problems.sphere(n=16, T=10, d=60, rng=3)
    expected = svm.attention_svm(p, method="pivot")
    solved, calls = large._solved, [0]

    for right in (0, 1):  # solves that are as they should be

        def spoiled(factor: Any, b: Any, right: int = right) -> Any:
            calls[0] += 1
            return solved(factor, b) if calls[0] <= right else b * 0.0 + np.float32(wrong)

        calls[0] = 0
        monkeypatch.setattr(large, "_solved", spoiled)
        found = svm.attention_svm(p)
        assert calls[0] > right
        assert found.status == "optimal"
        same_bits(found, expected)


@pytest.mark.parametrize("shape", [(11, 7, 12), (12, 12, 80)], ids=str)
def test_large_systems_keep_their_bits_in_a_batch(shape: tuple[int, int, int]) -> None:
    """Above the sizes of the lean way a batch is its trials one by one, Frobenius norm too."""
    n, T, d = shape
    p = problems.sphere(n=n, T=T, d=d, trials=5, rng=2)
    assert n * (T - 1) > single.SMALL >= pivoting.ALONE
    whole = svm.attention_svm(p)
    assert (whole.status == "optimal").all()
    for k in range(5):
        same_bits(svm.attention_svm(p.trial(k)), whole, k)
