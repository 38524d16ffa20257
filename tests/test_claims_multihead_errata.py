"""Errata of the multihead paper that are measured: a broken library or theory is noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnbook import claims

Mutant = Callable[[Callable[..., Any]], Callable[..., Any]]
THEORY = "attnbook.theory.multihead."
ERRATA = claims.all(paper="multihead", kind="erratum")
NAMES = [entry.id for entry in ERRATA if entry.has_check]
SHOWN = sorted({entry.same_as for entry in ERRATA if entry.same_as})  # by checks of statements


def times(factor: float) -> Mutant:
    """The same, by a factor."""
    return lambda true: lambda *a, **k: factor * true(*a, **k)


def turned(keyword: str) -> Mutant:
    """One flag read the wrong way round."""
    return lambda true: lambda *a, **k: true(*a, **{**k, keyword: not k.get(keyword, False)})


def transposed(true: Callable[..., Any]) -> Callable[..., Any]:
    """Query and key exchanged."""
    return lambda *a, **k: true(*a, **k).T


def jacobian_transposed(true: Callable[..., Any]) -> Callable[..., Any]:
    """Query and key exchanged in the gradient of the weights."""

    def broken(*a: Any, **k: Any) -> dict[str, Any]:
        found = true(*a, **k)
        return {"U": found["U"], "W": found["W"].swapaxes(-1, -2)}

    return broken


def jacobian_negated(true: Callable[..., Any]) -> Callable[..., Any]:
    """The wrong sign."""
    return lambda *a, **k: {name: -part for name, part in true(*a, **k).items()}


def doubled(*names: str) -> Mutant:
    """Some of the parameters twice as large."""

    def mutant(true: Callable[..., Any]) -> Callable[..., Any]:
        def broken(*a: Any, **k: Any) -> dict[str, Any]:
            return {name: (1 + (name in names)) * part for name, part in true(*a, **k).items()}

        return broken

    return mutant


MUTANTS = [
    ("12", THEORY + "rho", times(1e-14), "no limit on the step"),
    ("12", THEORY + "beta2", lambda true: lambda norm, **k: true(9.0 / (1.0 + norm), **k), "falls"),
    ("16", "attnlab.ntk.jacobian", jacobian_transposed, "query and key exchanged"),
    ("16", THEORY + "gamma_star", times(2.0), "a factor 2"),
    ("17", "attnlab.ntk.jacobian", jacobian_negated, "the sign of the loss's slope"),
    ("21", THEORY + "W_star", transposed, "query and key exchanged"),
    ("21", THEORY + "crossing", times(2.0), "a factor 2"),
    ("24", THEORY + "W_star", times(2.0), "a factor 2"),
    ("25", THEORY + "Gamma_eps", times(0.2), "not saturated"),
    ("26", THEORY + "Gamma_eps", turned("noise_free"), "the sufficient scale for the needed one"),
    ("26", THEORY + "theta_opt", doubled("W"), "a factor 2"),
    ("27", THEORY + "head_exponents", turned("printed"), "the exponents exchanged"),
    ("27", THEORY + "head_exponents", lambda true: lambda *a, **k: true(*a, **k)[::-1], "swapped"),
    ("28", "attnlab.ntk.jacobian", jacobian_transposed, "query and key exchanged"),
    ("28", THEORY + "W_star", transposed, "query and key exchanged"),
]


@pytest.mark.parametrize(
    ("number", "target", "mutant", "word"),
    MUTANTS,
    ids=[f"{number}-{target.rpartition('.')[2]}-{word}" for number, target, _, word in MUTANTS],
)
def test_errata_notice_what_is_broken(
    verdict: Callable[..., bool], number: str, target: str, mutant: Mutant, word: str
) -> None:
    assert verdict(f"multihead.erratum-{number}", target, mutant) is False, word


@pytest.mark.parametrize("name", NAMES + SHOWN)
@pytest.mark.parametrize(("seed", "instances"), [(1, 3), (2, 10), (3, 30)])
def test_errata_agree_for_other_seeds_and_sizes(name: str, seed: int, instances: int) -> None:
    evidence = claims.get(name).check(rng=seed, instances=instances)
    assert evidence.agrees, evidence


@pytest.mark.parametrize("name", NAMES + SHOWN)
def test_every_printed_form_is_refuted(name: str) -> None:
    """One refuted measurement is enough for the status; here all of them must fail."""
    found = claims.get(name).check(rng=4).of("statement")
    assert [str(entry) for entry in found if entry.holds] == []


def test_errata_of_the_superseded_preprint_say_so() -> None:
    marked = {entry.id for entry in ERRATA if entry.preprint}
    assert marked == {f"multihead.erratum-{k}" for k in (1, 5, 29, 32)}
    assert marked == {entry.id for entry in ERRATA if "superseded preprint" in entry.number}


def test_no_erratum_is_merely_loose() -> None:
    """What holds as printed, with room, is a remark and no slip."""
    assert all(entry.status != "holds" for entry in ERRATA)


def test_every_erratum_names_its_statements() -> None:
    for entry in ERRATA:
        assert entry.errata, entry.id
