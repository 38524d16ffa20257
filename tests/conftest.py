"""Oracles that several test files share; each is independent of the library."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

# Before NumPy loads: test processes share the cores, and threads that fight cost a factor five.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from scipy.optimize import nnls  # noqa: E402

MaxMargin = Callable[..., np.ndarray | None]


def frobenius_svm(
    X: np.ndarray, z: np.ndarray, tokens: np.ndarray, mask: np.ndarray | None = None
) -> np.ndarray | None:
    """argmin |W|_F with (x_selected - x_t)' W z >= 1 for every other token, None if infeasible.

    Least-distance programming (Lawson and Hanson): min |w| with G w >= 1 is the NNLS problem
    min |E u - f|, E = [G'; 1'], f = (0, ..., 0, 1), through its residual r: w = -r_head / r_last.
    """
    n, T, d = X.shape
    rows = [
        np.outer(X[i, tokens[i]] - X[i, t], z[i]).ravel()
        for i in range(n)
        for t in range(T)
        if t != tokens[i] and (mask is None or mask[i, t])
    ]
    Q, R = np.linalg.qr(np.array(rows).T)
    E = np.vstack([R, np.ones(len(rows))])
    f = np.zeros(len(E))
    f[-1] = 1.0
    residual = E @ nnls(E, f)[0] - f
    if -residual[-1] < 1e-9:
        return None
    W = (Q @ (-residual[:-1] / residual[-1])).reshape(d, d)
    assert (np.array(rows) @ W.ravel()).min() > 1.0 - 1e-8
    return np.asarray(W)


@pytest.fixture(scope="session")
def max_margin() -> MaxMargin:
    """``max_margin(X, z, tokens, mask=None)``: the Frobenius max-margin W of one instance."""
    return frobenius_svm


ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_tools"))


@cache
def ledger() -> Any:
    """The evidence of the last build of the book, by paper, over the packages under test."""
    import results
    import sources

    import attnbook
    import attnlab

    homes = {each.__name__: Path(each.__file__).parent for each in (attnlab, attnbook)}
    return results.Evidence(sources.Sources(homes))


@cache
def built_evidence(paper: str) -> dict[str, Any]:
    """What the book's build found with seed 0, where every file behind it is the same now."""
    return dict(ledger().of(paper))


@pytest.fixture
def evidence_of_the_build() -> Callable[[str], dict[str, Any]]:
    """``evidence_of_the_build("svm.lemma-4")``: its entry, or nothing where it is not today's."""
    return lambda name: built_evidence(name.split(".")[0]).get(name, {})


def intact(name: str, seed: int) -> bool:
    """Whether a claim agrees as it is: found once by all test processes, and by the build."""
    from attnbook import claims

    paper = name.split(".")[0]
    if seed == 0 and (told := built_evidence(paper).get(name)):
        return bool(told["agrees"])
    mark = ledger().folder / "intact" / ledger().key(paper)[:24] / f"{name}-{seed}"
    if not mark.exists():
        if not claims.get(name).check(rng=seed).agrees:
            return False
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return True


Mutant = Callable[[Callable[..., object]], Callable[..., object]]


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """``verdict(claim, target, mutant)``: does the evidence still agree once ``target`` is broken?

    ``target`` is a dotted path such as ``"attnbook.theory.svm.water_filling"``; ``mutant`` takes
    the true function and returns the broken one. A mutant that raises proves nothing, so errors
    are not caught.
    """
    from attnbook import claims

    def run(name: str, target: str, mutant: Mutant, seed: int = 0) -> bool:
        module, _, attribute = target.rpartition(".")
        import importlib

        true = getattr(importlib.import_module(module), attribute)
        assert intact(name, seed), "must agree before anything is broken"
        with monkeypatch.context() as patch:
            patch.setattr(target, mutant(true))
            return claims.get(name).check(rng=seed).agrees

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the browser tests measured on the pages; a busy machine makes times long."""
    found: dict[str, dict[str, float]] = {"bytes": {}, "milliseconds": {}}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for kind, (page, value) in report.user_properties:
            found[kind][page] = max(value, found[kind].get(page, 0.0))
    said = {
        "bytes": "script and data a page adds, compressed (budget 400 kB)",
        "milliseconds": "first explorable usable after load (aim 1 s)",
    }
    for kind, pages in found.items():
        if not pages:
            continue
        ordered = sorted(pages.items(), key=lambda item: -item[1])
        unit = (lambda x: f"{x / 1000:.0f} kB") if kind == "bytes" else (lambda x: f"{x:.0f} ms")
        most = ", ".join(f"{page} {unit(value)}" for page, value in ordered[:4])
        median = unit(float(np.median([value for _, value in ordered])))
        terminalreporter.write_line(f"{said[kind]}: median {median}; most {most}")
