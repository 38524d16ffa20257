"""What is timed both here and in a browser. Nothing but NumPy and the library: it runs in both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlab import models, ntk, optim, problems, svm

Call = Callable[[], object]


def margin(norm: str, n: int, T: int, d: int, trials: int | None = None) -> Call:
    """Attention SVMs, certified."""
    p = problems.sphere(n=n, T=T, d=d, trials=trials, rng=0)
    return lambda: svm.attention_svm(p, norm=norm)


def training(n: int, T: int, d: int, trials: int, steps: int) -> Call:
    """Normalized steps in W."""
    p = problems.sphere(n=n, T=T, d=d, trials=trials, min_gap=0.0, rng=0)
    model, rule = models.Attention(), optim.NormalizedGD(0.1)
    start = model.init(p, rng=1)
    return lambda: optim.train(model, p, rule, steps, params=start, every=steps)


def heads(H: int) -> Call:
    """A gradient of many heads."""
    p = problems.planted(n=1000, T=10, d=5, rng=0)
    model = models.MultiHead(heads=H, start="gaussian")
    start = model.init(p, rng=1)
    return lambda: model.value_and_grad(start, p)


def encoder() -> Call:
    """A gradient of an encoder."""
    X = _numbers(50, 5, 20)
    p = problems.SequenceProblem(X=X, y=np.sign(X[:, 0, 0]))
    model = models.Encoder(width=200)
    start = model.init(p, rng=1)
    return lambda: model.value_and_grad(start, p)


def kernel(width: int) -> Call:
    """The encoder's tangent kernel."""
    p = problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=True, rng=0)
    model = models.Encoder(width=width, init="ntk", scaling="linear")
    start = model.init(p, rng=0)
    return lambda: ntk.empirical(model, start, p)


LIBRARY: dict[str, Callable[[], Call]] = {
    "Frobenius, n=T=5, d=10, one": lambda: margin("fro", 5, 5, 10),
    "Frobenius, n=T=5, d=10, 100 at once": lambda: margin("fro", 5, 5, 10, 100),
    "Frobenius, n=20, T=10, d=100, one": lambda: margin("fro", 20, 10, 100),
    "nuclear, n=T=5, d=10, one": lambda: margin("nuc", 5, 5, 10),
    "nuclear, n=15, T=5, d=20, one": lambda: margin("nuc", 15, 5, 20),
    "train W, n=T=5, d=8, one trial, 300 steps": lambda: training(5, 5, 8, 1, 300),
    "train W, n=T=5, d=8, 500 trials, 50 steps": lambda: training(5, 5, 8, 500, 50),
    "train W, n=6, T=8, d=10, one trial, 300 steps": lambda: training(6, 8, 10, 1, 300),
    "train W, n=6, T=8, d=10, 500 trials, 50 steps": lambda: training(6, 8, 10, 500, 50),
    "MultiHead, H=1, n=1000, T=10, d=5": lambda: heads(1),
    "MultiHead, H=8, n=1000, T=10, d=5": lambda: heads(8),
    "MultiHead, H=64, n=1000, T=10, d=5": lambda: heads(64),
    "encoder, a gradient, n=50, T=5, d=20, width 200": encoder,
    "encoder kernel, n=100, T=10, d=100, width 1000": lambda: kernel(1000),
    "encoder kernel, n=100, T=10, d=100, width 4000": lambda: kernel(4000),
}


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


def sweep(name: str, size: int = 4000) -> Call:
    """One ufunc over an array that lies in the first cache."""
    a, b, out = _numbers(size), _numbers(size), np.empty(size)
    ufunc = getattr(np, name)
    return lambda: ufunc(*(a, b)[: ufunc.nin], out=out)


def product(*shape: int) -> Call:
    """A product of square matrices."""
    A = _numbers(*shape)
    return lambda: A @ A


def turned(n: int, way: str) -> Call:
    """A matrix times its transpose."""
    A = _numbers(n, n)
    if way == "einsum":
        return lambda: np.einsum("ik,jk->ij", A, A)
    return lambda: A @ A.T


def summed(n: int) -> Call:
    """Sums over the first axis."""
    A = _numbers(10, n)
    return lambda: np.add.reduce(A, axis=0)


def solved(n: int) -> Call:
    """A positive definite system, by NumPy's LAPACK."""
    A = _numbers(n, n)
    K = A @ A.T + np.eye(n)
    return lambda: np.linalg.solve(K, A[0])


def counted() -> object:
    """A thousand steps of the interpreter."""
    total = 0
    for k in range(1000):
        total += k * k
    return total


NUMPY: dict[str, Callable[[], Call]] = {
    "Python alone, a loop of 1000": lambda: counted,
    "a call: multiply, 4 numbers": lambda: sweep("multiply", 4),
    "a call: matmul, 4 x 4": lambda: product(4, 4),
    "multiply, 4000 numbers": lambda: sweep("multiply"),
    "divide, 4000 numbers": lambda: sweep("divide"),
    "maximum, 4000 numbers": lambda: sweep("maximum"),
    "exp, 4000 numbers": lambda: sweep("exp"),
    "sums over the first axis, 10 x 400": lambda: summed(400),
    "matmul, 1000 of 5 x 5": lambda: product(1000, 5, 5),
    "matmul, 100 x 100": lambda: product(100, 100),
    "matmul with a transpose, 300 x 300": lambda: turned(300, "matmul"),
    "the same by einsum": lambda: turned(300, "einsum"),
    "solve, 20 x 20": lambda: solved(20),
    "solve, 200 x 200": lambda: solved(200),
}
ALL = LIBRARY | NUMPY

_made: dict[str, Call] = {}


def repeat(name: str, times: int) -> None:
    """Do it so often; once more before the first time."""
    if name not in _made:
        _made[name] = ALL[name]()
        _made[name]()
    call = _made[name]
    for _ in range(times):
        call()
