"""Max-margin problems: both norms, one by one and at once, and Figure 2 from draw to verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy
import daqp
import numpy as np
import quadprog

from attnlab import models, optim, problems, svm
from benchmarks import contenders as them
from benchmarks.timing import Contender, Row, peak, side_by_side

Problem = problems.TokenProblem


def textbook(p: Problem, norm: str) -> np.ndarray:
    """One constraint object a token, cvxpy's default solver: as the public code does it."""
    W = cvxpy.Variable((p.d, p.d))
    constraints = [
        (p.X[i, p.optimal[i]] - p.X[i, t]) @ W @ p.z[i] >= 1
        for i in range(p.n)
        for t in range(p.T)
        if t != p.optimal[i]
    ]
    size = cvxpy.norm(W, "fro") if norm == "fro" else cvxpy.normNuc(W)
    cvxpy.Problem(cvxpy.Minimize(size), constraints).solve()
    return np.asarray(W.value)


def dual(p: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gram matrix of the dual, and what turns multipliers into W."""
    best = p.optimal
    others = np.array([[t for t in range(p.T) if t != best[i]] for i in range(p.n)])
    rows = np.arange(p.n)[:, None]
    D = (p.X[np.arange(p.n), best][:, None] - p.X[rows, others]).reshape(-1, p.d)
    Z = np.repeat(p.z, p.T - 1, axis=0)
    K = (D @ D.T) * (Z @ Z.T)
    return K, np.ones(len(K)), D, Z


def with_daqp(p: Problem) -> np.ndarray:
    """The dual by daqp, a compiled active-set solver."""
    K, one, D, Z = dual(p)
    m = len(K)
    x, *_ = daqp.solve(
        K, -one, np.eye(m)[:0], np.full(m, 1e30), np.zeros(m), np.zeros(m, dtype=np.intc)
    )
    return (D * np.asarray(x)[:, None]).T @ Z


def with_quadprog(p: Problem) -> np.ndarray:
    """The dual by quadprog, Goldfarb and Idnani compiled."""
    K, one, D, Z = dual(p)
    x = quadprog.solve_qp(K, one, np.eye(len(K)), np.zeros(len(K)))[0]
    return (D * x[:, None]).T @ Z


def frobenius() -> list[Row]:
    """Against the textbook, and against QP libraries on the dual."""
    rows = []
    one = problems.sphere(n=5, T=5, d=10, rng=0)
    many = problems.sphere(n=5, T=5, d=10, trials=500, rng=0)
    single = [many.trial(k) for k in range(100)]
    expected = svm.attention_svm(one).W
    libraries: dict[str, Callable[[Problem], np.ndarray]] = {
        "daqp": with_daqp,
        "quadprog": with_quadprog,
    }
    for name, solver in libraries.items():
        assert np.allclose(solver(one), expected, atol=1e-6), name
    found = side_by_side(
        {
            "one": Contender(lambda: [svm.attention_svm(p) for p in single], 100),
            "many": Contender(lambda: svm.attention_svm(many), 500),
            "textbook": Contender(lambda: [textbook(p, "fro") for p in single[:3]], 3),
        }
        | {
            name: Contender(lambda solver=solver: [solver(p) for p in single], 100)
            for name, solver in libraries.items()
        }
    )
    ms = {name: 1e3 * seconds for name, seconds in found.items()}
    work, unit = "Frobenius, n=T=5, d=10", "ms per problem"
    library = min(libraries, key=lambda name: ms[name])
    rows += [
        Row(
            f"{work}, one by one",
            "cvxpy, a constraint a token",
            unit,
            ms["one"],
            ms["textbook"],
            350,
        ),
        Row(
            f"{work}, 500 at once",
            "cvxpy, a constraint a token",
            unit,
            ms["many"],
            ms["textbook"],
            1000,
        ),
        Row(f"{work}, one by one", f"{library} on the dual", unit, ms["one"], ms[library], 1),
        Row(f"{work}, 500 at once", f"{library} on the dual", unit, ms["many"], ms[library], 1),
    ]
    rows.append(memory(work, one, "fro"))
    large = problems.sphere(n=20, T=10, d=100, rng=0)
    found = side_by_side(
        {
            # after seconds of cvxpy the first solves of anybody fill the caches: 16 ms for each
            "ours": Contender(lambda: [svm.attention_svm(large) for _ in range(50)], 50),
            "textbook": Contender(lambda: textbook(large, "fro"), 1),
        }
        | {
            name: Contender(lambda solver=solver: [solver(large) for _ in range(15)], 15)
            for name, solver in libraries.items()
        },
        repeats=3,
    )
    ms = {name: 1e3 * seconds for name, seconds in found.items()}
    work, library = "Frobenius, n=20, T=10, d=100", min(libraries, key=lambda name: ms[name])
    rows += [
        Row(work, "cvxpy, a constraint a token", unit, ms["ours"], ms["textbook"], 20000),
        Row(work, f"best general tool ({library} on the dual)", unit, ms["ours"], ms[library], 1.5),
        memory(work, large, "fro"),
    ]
    return rows


def memory(work: str, problem: Problem, norm: str) -> Row:
    """Peak memory of one problem solved on its own."""
    return Row(
        f"{work}, peak memory",
        "cvxpy, a constraint a token, without its solver's own",
        "kB per problem",
        peak(lambda: svm.attention_svm(problem, norm=norm)),
        peak(lambda: textbook(problem, norm)),
        1,
    )


def nuclear() -> list[Row]:
    """Certified to 1e-9, against a default solve that reaches about 1e-5."""
    rows = []
    for n, T, d, batch, least_one, least_many in ((5, 5, 10, 100, 25, 60), (15, 5, 20, 30, 25, 40)):
        one = problems.sphere(n=n, T=T, d=d, rng=0)
        many = problems.sphere(n=n, T=T, d=d, trials=batch, rng=0)
        found = side_by_side(
            {
                "one": Contender(
                    lambda p=one: [svm.attention_svm(p, norm="nuc") for _ in range(10)], 10
                ),
                "many": Contender(lambda p=many: svm.attention_svm(p, norm="nuc"), batch),
                "textbook": Contender(lambda p=one: [textbook(p, "nuc") for _ in range(3)], 3),
            }
        )
        ms = {name: 1e3 * seconds for name, seconds in found.items()}
        work, unit = f"nuclear, n={n}, T={T}, d={d}", "ms per problem"
        rows += [
            Row(f"{work}, one by one", "cvxpy default", unit, ms["one"], ms["textbook"], least_one),
            Row(
                f"{work}, {batch} at once",
                "cvxpy default",
                unit,
                ms["many"],
                ms["textbook"],
                least_many,
            ),
            memory(work, one, "nuc"),
        ]
    return rows


def figure_2() -> list[Row]:
    """2,000 trials at d = 4: draw, train 2,000 steps, solve, classify."""
    trials, steps, sample = 2000, 2000, 2

    def ours() -> Any:
        p = problems.sphere(n=5, T=5, d=4, trials=trials, min_gap=0.1, rng=0)
        rule = optim.NormalizedGD(0.1, recipe="paper")
        run = optim.train(models.Attention(), p, rule, steps, rng=1, every=steps)
        return svm.classify(run)

    def user() -> None:
        p = problems.sphere(n=5, T=5, d=4, trials=sample, min_gap=0.1, rng=0)
        them.torch_trial_loop(p, sample, steps, False)
        for k in range(sample):
            textbook(p.trial(k), "fro")

    found = side_by_side({"ours": Contender(ours, trials), "user": Contender(user, sample)}, 2)
    return [
        Row(
            "svm Fig. 2 end to end, d=4, 2000 trials",
            "PyTorch loop + cvxpy, trial by trial",
            "ms per trial",
            1e3 * found["ours"],
            1e3 * found["user"],
            150,
        )
    ]
