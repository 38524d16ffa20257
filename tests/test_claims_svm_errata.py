"""Errata of the svm paper: their checks notice when what they rest on is broken."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnbook import claims

Mutant = Callable[[Callable[..., Any]], Callable[..., Any]]
THEORY = "attnbook.theory.svm."
WITHDRAWN = {1, 15, 21}  # their numbers stay free, so that no other one changes
ERRATA = [f"svm.erratum-{number}" for number in range(1, 34) if number not in WITHDRAWN]
GLYPHS = {f"svm.erratum-{number}" for number in (13, 14, 22, 30)}
MISPRINTS = {f"svm.erratum-{number}" for number in (10, 11, 12, 16, 17, 19, 20, 23, 26, 27, 29, 31)}
AMBIGUOUS = {"svm.erratum-4"}
TYPED = {"svm.erratum-14", "svm.erratum-30"}  # a check would only do the words again
MEASURED = [name for name in ERRATA if claims.get(name).has_check]
SHOWN = sorted({claims.get(name).same_as for name in ERRATA} - {""})


def times(factor: float) -> Mutant:
    return lambda true: lambda *a, **k: factor * true(*a, **k)


def after(change: Callable[[Any], Any]) -> Mutant:
    return lambda true: lambda *a, **k: change(true(*a, **k))


def turned(found: Any) -> Any:
    return dataclasses.replace(found, W=found.W.swapaxes(-1, -2))


def centred(true: Callable[..., Any]) -> Callable[..., Any]:
    def pearson(A: Any, B: Any) -> Any:
        return true(*(M - np.mean(M, axis=(-2, -1), keepdims=True) for M in (A, B)))

    return pearson


def factors_exchanged(found: Any) -> Any:
    if "K" not in found.params:  # a path of W has none
        return found
    params = {"K": found.params["Q"], "Q": found.params["K"]}
    return dataclasses.replace(found, params=params)


def only_first_sample(true: Callable[..., Any]) -> Callable[..., Any]:
    def look(problem: Any, W: Any, tokens: Any, **k: Any) -> Any:
        small = dataclasses.replace(
            problem,
            X=problem.X[:, :1],
            z=problem.z[:, :1],
            y=problem.y[:, :1],
            sequence_index=None,
            source=None,
        )
        return true(small, W, tokens[:, :1], **k)

    return look


# an erratum that a statement's check shows is broken there
MUTANTS: list[tuple[str, str, Mutant, str]] = [
    ("lemma-1", THEORY + "rank_bound", after(lambda rank: rank - 1), "the rank is attained"),
    (
        "erratum-2",
        "attnlab.models._softmax.plain",
        after(lambda found: found._replace(c=2.0 * found.c)),
        "a gradient twice too long is not that of the loss",
    ),
    (
        "lemma-4",
        "attnlab.curvature.smoothness",
        after(lambda L: dataclasses.replace(L, K=L.Q, Q=L.K)),
        "each constant belongs to the other factor",
    ),
    ("erratum-4", THEORY + "descent_step", times(2.0), "2/L for 1/L"),
    ("erratum-4", THEORY + "descent_step", times(0.5), "a short step refutes nothing"),
    ("lemma-9", THEORY + "lemma_9_bound", times(2.0), "attained under B.1 and B.2"),
    (
        "theorem-4",
        THEORY + "opposing_threshold",
        lambda true: lambda gram: true(np.abs(gram)),
        "features that agree do not repel",
    ),
    ("theorem-6", THEORY + "lemma_12_radius", times(0.5), "a first step half as long"),
    ("erratum-8", THEORY + "lemma_12_radius", times(0.5), "mu in place of 2 mu"),
    ("lemma-12", THEORY + "lemma_12_bounds", after(lambda b: (b[1], b[0])), "bounds exchanged"),
    (
        "lemma-13",
        THEORY + "lemma_13_bounds",
        after(lambda b: (16.0 * b[0], b[1])),
        "1/(8n) becomes 2/n",
    ),
    ("erratum-13", "attnlab.svm.attention_svm", after(turned), "the transpose does not separate"),
    (
        "assumption-b",
        THEORY + "features",
        after(lambda F: F.swapaxes(-1, -2)),
        "z x^T interpolates other margins",
    ),
    (
        "equation-6",
        THEORY + "water_filling",
        lambda true: lambda scores, curvature: true(scores, 2.0 * curvature),
        "gamma / lambda for gamma / (2 lambda)",
    ),
    (
        "corollary-1",
        "attnlab.svm.regularization_path",
        after(lambda path: dataclasses.replace(path, W=path.W[..., ::-1])),
        "columns in the wrong order",
    ),
    ("corollary-2", "attnlab.svm.regularization_path", after(factors_exchanged), "Q K^T for K Q^T"),
    (
        "theorem-9",
        "attnlab.svm.regularization_path",
        after(lambda path: dataclasses.replace(path, W=path.W[..., ::-1])),
        "columns in the wrong order",
    ),
    (
        "erratum-24",
        THEORY + "score_constants",
        after(lambda c: (0.1 * c[0], c[1])),
        "B ten times too small",
    ),
    ("definition-5", "attnlab.svm.in_cone", only_first_sample, "the cone looks at one output only"),
    ("equation-6", "attnlab.svm.correlation", centred, "Pearson's coefficient"),
    ("definition-2", THEORY + "token_margins", times(-1.0), "x_t - x_opt for x_opt - x_t"),
    (
        "lemma-16",
        "attnlab.svm.locally_optimal",
        after(lambda found: dataclasses.replace(found, corrected=found.as_printed)),
        "Definition 2 as printed",
    ),
]


@pytest.mark.parametrize(("claim", "target", "mutant", "what"), MUTANTS)
def test_a_broken_part_is_noticed(
    claim: str, target: str, mutant: Mutant, what: str, verdict: Callable[..., bool]
) -> None:
    assert not verdict(f"svm.{claim}", target, mutant), what


@pytest.mark.parametrize("name", [*MEASURED, *SHOWN])
@pytest.mark.parametrize("seed", [1, 2])
def test_few_instances_suffice(name: str, seed: int) -> None:
    evidence = claims.get(name).check(rng=seed, instances=10)
    assert evidence.agrees, "\n".join(map(str, evidence.measurements))


@pytest.mark.parametrize("name", ERRATA)
def test_each_erratum_says_what_it_is(name: str) -> None:
    """A glyph, a misprint or a failure; shown by its own check, by a statement's, or said."""
    entry = claims.get(name)
    kinds = {"may be the extraction's": GLYPHS, "misprint": MISPRINTS, "ambiguous": AMBIGUOUS}
    found = [status for status, names in kinds.items() if name in names]
    assert [entry.status] == (found or ["fails as stated"])
    assert entry.has_check == (name not in MISPRINTS | TYPED and not entry.same_as)
    assert entry.statement, "the paper's own words"
    assert not entry.same_as or entry.same_as in entry.errata, "it concerns what shows it"
    assert all(re.fullmatch(r"svm\.[a-z]+-[a-z]?\d*", link) for link in entry.errata)


@pytest.mark.parametrize("name", MEASURED)
def test_each_check_shows_both_forms(name: str) -> None:
    """What is printed is refuted by a number, what is to be read instead survives."""
    evidence = claims.get(name).check(rng=3)
    assert any(not found.holds for found in evidence.of("statement"))
    assert evidence.corrected
    assert len({str(found) for found in evidence.measurements}) == len(evidence.measurements)


def test_errata_come_in_the_order_of_the_catalogue() -> None:
    found = [entry.id for entry in claims.all(paper="svm", kind="erratum")]
    assert found == ERRATA
