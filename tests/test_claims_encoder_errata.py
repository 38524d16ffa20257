"""Errata of the encoder paper: their checks notice when what they rest on is broken."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnbook import claims

Mutant = Callable[[Callable[..., Any]], Callable[..., Any]]
WITHDRAWN = {"s15", "t15"}  # their numbers stay free, so that no other one changes
ERRATA = [f"s{k}" for k in range(1, 19)] + [f"t{k}" for k in range(1, 17)]
ERRATA = [name for name in ERRATA if name not in WITHDRAWN]
# Claims whose check holds several slips, those of errata that lead there among them: how many
# measurements must refute what is printed.
SLIPS = {"erratum-s14": 2, "erratum-s16": 4, "erratum-t1": 3}
SLIPS |= {"erratum-t11": 2, "erratum-t12": 3, "erratum-t13": 2, "erratum-t14": 2, "theorem-3": 3}
SLIPS |= {"proposition-1": 7, "theorem-2": 3, "lemma-1": 5, "lemma-14": 6, "lemma-15": 8}
SLIPS |= {"lemma-16": 4, "lemma-17": 2, "lemma-18": 2, "lemma-19": 4}


def after(change: Callable[[Any], Any]) -> Mutant:
    return lambda true: lambda *a, **k: change(true(*a, **k))


def times(factor: float) -> Mutant:
    return after(lambda found: factor * found)


def keyed(name: str, change: Callable[[Any], Any]) -> Mutant:
    return after(lambda found: found | {name: change(found[name])})


def plain(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a, **k: true(*a, **{key: v for key, v in k.items() if key != "printed"})


def always_printed(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a, **_: true(*a, printed=True)


def radius_one(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda bars, alpha, loss, _: true(bars, alpha, loss, 1.0)


def kept_ignored(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda alpha, gamma, **_: true(alpha, gamma)


def square_lost(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda alpha, *a, **k: true(np.sqrt(alpha), *a, **k)


def turned(true: Callable[..., Any]) -> Callable[..., Any]:
    """The Jacobian with the gradients in W_Q and W_K exchanged."""

    def swap(*a: Any) -> Any:
        found = true(*a)
        return found | {"W_Q": found["W_K"], "W_K": found["W_Q"]}

    return swap


def keys_for_queries(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a, **k: (found := true(*a, **k)) | {"W_Q": found["W_K"]}


def mean_for_sum(true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda problem, **_: true(problem)


MUTANTS: list[tuple[str, str, Mutant, str]] = [
    ("erratum-s1", "theory.rho", times(0.1), "a tenth of rho is no bound"),
    ("erratum-s1", "theory.alpha", after(lambda a: a**2), "alpha for alpha squared"),
    ("erratum-s1", "ntk.empirical", after(lambda K: np.sqrt(np.abs(K))), "missing square"),
    ("lemma-1", "ntk.arc_cosine", after(lambda pair: (2.0 * pair[0], pair[1])), "factor 2"),
    ("lemma-1", "ntk.arc_cosine", after(lambda pair: pair[::-1]), "orders exchanged"),
    ("lemma-1", "ntk.limiting_encoder", mean_for_sum, "d_s^2"),
    ("lemma-14", "theory.c3", times(1e-5), "the bound between kinks can be missed"),
    ("lemma-14", "theory.c3", times(1e6), "so large that it hides the jump"),
    ("lemma-17", "theory.mean_tokens", after(lambda phi: 0.1 * phi), "missing a factor"),
    ("lemma-18", "theory.lambda_0_lower", times(8.0), "the Hermite coefficient not squared"),
    ("lemma-19", "theory.lemma_17_printed", after(lambda x: -x), "sign"),
    ("lemma-15", "theory.lemma_15_bound", times(2.0), "twice the margin"),
    ("lemma-15", "theory.similarity", after(np.sqrt), "missing square"),
    ("lemma-15", "theory.dissimilarity", after(np.sqrt), "half of the exponent"),
    ("theorem-2", "theory.condition_2", radius_one, "the repaired radius is lost"),
    ("theorem-2", "theory.condition_2", after(lambda r: 1.0 / r), "upside down"),
    ("erratum-s7", "theory.smallest_eigenvalue", times(-1.0), "sign"),
    ("proposition-1", "theory.drift_bound", times(2.0), "2 alpha/8 for alpha/8"),
    ("proposition-1", "theory.rate", kept_ignored, "the same rate whatever is kept"),
    ("proposition-1", "theory.smoothness", always_printed, "the printed C throughout"),
    ("erratum-s11", "theory.smoothness", after(np.sqrt), "a root: N^(-1/2) after all"),
    ("section-c6", "theory.alpha", after(lambda a: 1.0 / a), "upside down"),
    ("section-c5", "theory.alpha_ratio", times(2.0), "factor 2"),
    ("erratum-s14", "theory.similarity", after(np.sqrt), "missing square"),
    ("corollary-1", "theory.alpha", times(0.0), "no alpha at all"),
    ("erratum-s16", "theory._widths.condition_3", after(np.ones_like), "(3) dropped"),
    ("lemma-16", "theory.lemma_16_gap", plain, "d_s^2 throughout"),
    ("lemma-16", "theory.lemma_16_width", plain, "the logarithm throughout"),
    ("lemma-14", "theory.lemma_14_z", times(1e9), "every bound holds with a z this large"),
    ("erratum-t1", "ntk.jacobian", turned, "W_Q and W_K exchanged"),
    ("erratum-t1", "ntk.jacobian", keyed("W_V", lambda g: 2.0 * g), "factor 2"),
    ("identity-1", "ntk.jacobian", keyed("w_O", lambda g: -g), "sign"),
    ("proposition-1", "theory.c1", plain, "w_O's norm throughout"),
    ("proposition-1", "theory.c1", times(0.01), "no bound"),
    ("proposition-1", "theory.rate", square_lost, "missing square"),
    ("lemma-15", "theory.lambda_0_upper", times(20.0), "eta lost"),
    ("erratum-t11", "ntk.empirical", keys_for_queries, "W_K's kernel for W_Q's"),
    ("erratum-t12", "theory.gradient_factors", keyed("W_Q", lambda c: 1e3 * c), "no slip visible"),
]


@pytest.mark.parametrize(
    ("claim", "target", "mutant", "words"),
    MUTANTS,
    ids=[f"{claim}: {target}, {words}" for claim, target, _, words in MUTANTS],
)
def test_a_mutant_is_noticed(
    claim: str, target: str, mutant: Mutant, words: str, verdict: Callable[..., bool]
) -> None:
    path = target.replace("theory.", "theory.encoder.")
    house = "attnbook" if path.startswith("theory.") else "attnlab"
    assert verdict(f"encoder.{claim}", f"{house}.{path}", mutant) is False, words


def test_all_are_there_in_the_order_of_the_catalogue() -> None:
    found = claims.all(paper="encoder", kind="erratum")
    assert [entry.id for entry in found] == [f"encoder.erratum-{name}" for name in ERRATA]


OWN = [entry.id for entry in claims.all(paper="encoder", kind="erratum") if entry.has_check]


@pytest.mark.parametrize("name", sorted({*OWN, *(f"encoder.{name}" for name in SLIPS)}))
def test_every_slip_of_a_group_is_refuted_and_mended(name: str) -> None:
    evidence = claims.get(name).check(rng=1, instances=6)
    assert evidence.agrees, evidence.measurements
    wrong = [entry for entry in evidence.of("statement") + evidence.of("step") if not entry.holds]
    assert len(wrong) >= SLIPS.get(name.removeprefix("encoder."), 1)
    assert evidence.of("correction")


def test_every_erratum_says_what_it_is_about() -> None:
    assert all(entry.errata for entry in claims.all(paper="encoder", kind="erratum"))


def test_the_number_of_instances_is_honoured() -> None:
    erratum = claims.get("encoder.erratum-t1")
    counts = [
        max(entry.instances for entry in erratum.check(rng=0, instances=many).measurements)
        for many in (5, 50)
    ]
    assert counts == [5, 50]
