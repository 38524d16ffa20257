"""Under WebAssembly np.linalg gives NaN where it raises elsewhere: the same answers come out.

Pyodide's LAPACK was seen to return NaN from `np.linalg.inv` of a singular matrix. Here inv, solve
and cholesky are replaced by such functions, and each test says how often they were needed.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnlab import _blas, models, ntk, problems, svm
from attnlab.svm import _rows
from attnlab.svm._interior import nuclear
from attnlab.svm._pivot import pivot, pivot_one

Silent = Callable[[], int]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Silent:
    """Replace what raises; gives the function that counts how often NaN came back instead."""
    lost = [0]

    def quiet(name: str) -> Callable[..., np.ndarray]:
        loud = getattr(np.linalg, name)

        def call(a: np.ndarray, *more: np.ndarray) -> np.ndarray:
            try:
                return np.asarray(loud(a, *more))
            except np.linalg.LinAlgError:
                if a.ndim > 2:
                    return np.array([call(*each) for each in zip(a, *more, strict=True)])
                lost[0] += 1
                return np.full(more[0].shape if more else a.shape, np.nan)

        return call

    for name in ("inv", "solve", "cholesky"):
        monkeypatch.setattr(np.linalg, name, quiet(name))
    return lambda: lost[0]


def loudly(silent: Silent, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> Any:
    """The same with NumPy's own functions."""
    monkeypatch.undo()
    return act()


def with_twins(trials: int = 6) -> problems.TokenProblem:
    """Every second trial has a token twice: its Gram matrix is singular."""
    p = problems.sphere(n=3, T=4, d=5, trials=trials, rng=0)
    X = np.array(p.X)
    for k in range(0, trials, 2):
        best = p.optimal[k, 0]
        others = [t for t in range(4) if t != best]
        X[k, 0, others[1]] = X[k, 0, others[0]]
    return problems.TokenProblem(X=X, z=p.z, y=p.y, v=p.v)


@pytest.mark.parametrize("norm", ["fro", "nuc"])
def test_margins_of_singular_and_regular_trials_together(
    silent: Silent, monkeypatch: pytest.MonkeyPatch, norm: str
) -> None:
    p = with_twins()
    found = svm.attention_svm(p, norm=norm)
    assert (found.status == "optimal").all()
    assert (found.gap <= 1e-9).all()
    expected = loudly(silent, monkeypatch, lambda: svm.attention_svm(p, norm=norm))
    np.testing.assert_allclose(found.W, expected.W, rtol=1e-7, atol=1e-9)


def test_pivoting_gives_up_on_what_is_singular(
    silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    K = np.array([np.eye(3), np.ones((3, 3)), np.diag([1.0, 2.0, 4.0])])
    b, valid = np.ones((3, 3)), np.ones((3, 3), bool)
    x, solved = pivot(K, b, valid)
    assert silent() > 0
    assert solved.tolist() == [True, False, True]
    np.testing.assert_allclose(x, [[1, 1, 1], [0, 0, 0], [1, 0.5, 0.25]])
    again = loudly(silent, monkeypatch, lambda: pivot(K, b, valid))
    np.testing.assert_array_equal(x, again[0])
    np.testing.assert_array_equal(solved, again[1])


def test_pivoting_one_system_refuses_numbers_that_are_not_finite() -> None:
    K = np.array([[1.0, np.nan], [np.nan, 1.0]])
    assert not pivot_one(K, np.ones(2), np.ones(2, bool))[1]


@pytest.mark.parametrize("name", ["inv", "cholesky", "solve", "eigvalsh"])
def test_an_interior_point_that_breaks_down_harms_no_other(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """One trial meets something that is not finite at its third step; the others never notice."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((4, 8, 3)), rng.standard_normal((4, 8, 3))
    left *= np.sign((left @ rng.standard_normal((4, 3, 3)) * right).sum(axis=-1))[..., None]
    valid, function, calls = np.ones((4, 8), bool), getattr(np.linalg, name), [0]
    expected = nuclear(left, right, valid)

    def broken(a: np.ndarray, *more: np.ndarray) -> np.ndarray:
        calls[0] += 1
        found = function(a, *more)
        if calls[0] == 3:
            found[1].flat[0] = np.inf  # as little of it as can be
        return np.asarray(found)

    monkeypatch.setattr(np.linalg, name, broken)
    with np.errstate(all="raise", under="ignore"):
        found = nuclear(left, right, valid)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours[[0, 2, 3]], theirs[[0, 2, 3]])
    assert expected.gap.max() <= 1e-9
    assert found.iterations[1] < expected.iterations[1]
    assert found.gap[1] > 1e-9, "and it says so"


def test_kernel_of_an_encoder_whose_keys_depend_on_each_other(
    silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = problems.SequenceProblem(
        X=np.random.default_rng(0).standard_normal((5, 3, 4)), y=np.ones(5)
    )
    model = models.Encoder(width=20)
    params = model.init(p, rng=1)
    params["W_K"] = np.array(params["W_K"])
    params["W_K"][:, 1] = params["W_K"][:, 0] = 0.0
    found = ntk.empirical(model, params, p)
    assert silent() > 0
    assert np.isfinite(found).all()
    expected = loudly(silent, monkeypatch, lambda: ntk.empirical(model, params, p))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("trials", [None, 3])
def test_margins_without_blas_are_the_same(
    monkeypatch: pytest.MonkeyPatch, trials: int | None
) -> None:
    """In the browser: Gram matrices by SciPy's BLAS."""
    p = problems.sphere(n=9, T=11, d=80, trials=trials, rng=0)
    with_blas = svm.attention_svm(p)
    asked = []
    monkeypatch.setattr(_rows, "BLAS", False)
    monkeypatch.setattr(_rows, "squares", lambda A: asked.append(1) or _blas.squares(A))
    without = svm.attention_svm(p)
    assert len(asked) == (trials or 1)
    assert np.all(without.status == "optimal")
    assert np.all(without.gap <= 1e-9)
    np.testing.assert_allclose(without.W, with_blas.W, rtol=1e-9, atol=1e-9)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """NumPy without BLAS, and the names of what is asked of SciPy's."""
    real, names = _blas.blas(), []

    class Noted:
        def __getattr__(self, name: str) -> Any:
            names.append(name)
            return getattr(real, name)

    monkeypatch.setattr(_blas, "BLAS", False)
    monkeypatch.setattr(_blas, "SOME", 60)
    monkeypatch.setattr(_blas, "blas", Noted)
    return names


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=-1)[..., ::2],
}


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_products_by_scipy(asked: list[str], left: str, right: str, lead: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    A = LAYOUTS[left](rng.normal(size=(*lead, 4, 5)))
    B = LAYOUTS[right](rng.normal(size=(5, 6)))
    found = _blas.product(A, B)
    assert asked == ["dgemm"]
    np.testing.assert_allclose(found, np.einsum("...ij,jk->...ik", A, B), rtol=1e-13, atol=1e-14)
    single = A.astype("f4"), B.astype("f4")
    np.testing.assert_array_equal(_blas.product(*single), single[0] @ single[1])
    np.testing.assert_array_equal(_blas.product(A[..., :1, :], B[:, :1]), A[..., :1, :] @ B[:, :1])
    if not lead:
        found = _blas.inner(A, A)
        assert asked == ["dgemm", "dsyrk"]
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(found, np.einsum("ij,kj->ik", A, A), rtol=1e-13)
        np.testing.assert_allclose(_blas.inner(A, B.T), A @ B, rtol=1e-13, atol=1e-14)


def test_gradients_of_an_encoder_by_scipy(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    p = problems.gaussian_regression(n=6, T=4, d=5, unit_tokens=True, rng=0)
    model = models.Encoder(width=30)
    params = model.init(p, rng=1)
    loss, grads = model.value_and_grad(params, p)
    assert len(asked) >= 5
    assert loss == pytest.approx(np.mean((model.forward(params, p) - p.y) ** 2), rel=1e-12)
    monkeypatch.setattr(_blas, "BLAS", True)
    expected = model.value_and_grad(params, p)[1]
    for name, g in grads.items():
        np.testing.assert_allclose(g, expected[name], rtol=1e-11, atol=1e-15, err_msg=name)


def test_scipy_is_loaded_for_large_products_only(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    A = np.ones((8, 10))
    monkeypatch.setattr(_blas, "LARGE", 900)
    monkeypatch.delitem(sys.modules, "scipy.linalg")
    _blas.product(A, A.T)
    assert asked == []
    _blas.product(A, np.ones((10, 12)))
    assert asked == ["dgemm"]
    monkeypatch.undo()
    assert "scipy.linalg" in sys.modules
