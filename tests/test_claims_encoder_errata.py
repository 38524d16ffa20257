"""Errata of the encoder paper: their checks notice when what they rest on is broken."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnbook import claims

Mutant = Callable[[Callable[..., Any]], Callable[..., Any]]
ERRATA = [f"s{k}" for k in range(1, 19)] + [f"t{k}" for k in range(1, 17)]
# Errata that the catalogue lists as groups: each printed slip has a measurement of its own.
SLIPS = {"s2": 4, "s4": 4, "s5": 5, "s8": 4, "s16": 4, "s18": 4, "t1": 5, "t2": 3, "t10": 2}
SLIPS |= {"t3": 3, "t11": 3, "t12": 3, "t13": 3, "t14": 2}


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
    ("s1", "theory.rho", times(0.1), "a tenth of rho is no bound"),
    ("s1", "theory.alpha", after(lambda a: a**2), "alpha for alpha squared"),
    ("s1", "ntk.empirical", after(lambda K: np.sqrt(np.abs(K))), "missing square"),
    ("s2", "ntk.arc_cosine", after(lambda pair: (2.0 * pair[0], pair[1])), "factor 2"),
    ("s2", "ntk.arc_cosine", after(lambda pair: pair[::-1]), "orders exchanged"),
    ("s2", "ntk.limiting_encoder", mean_for_sum, "d_s^2"),
    ("s3", "theory.c3", times(1e-5), "the bound between kinks can be missed"),
    ("s3", "theory.c3", times(1e6), "so large that it hides the jump"),
    ("s4", "theory.mean_tokens", after(lambda phi: 0.1 * phi), "missing a factor"),
    ("s4", "theory.lambda_0_lower", times(8.0), "the Hermite coefficient not squared"),
    ("s4", "theory.lemma_17_printed", after(lambda x: -x), "sign"),
    ("s5", "theory.lemma_15_bound", times(2.0), "twice the margin"),
    ("s5", "theory.similarity", after(np.sqrt), "missing square"),
    ("s5", "theory.dissimilarity", after(np.sqrt), "half of the exponent"),
    ("s6", "theory.condition_2", radius_one, "the repaired radius is lost"),
    ("s6", "theory.condition_2", after(lambda r: 1.0 / r), "upside down"),
    ("s7", "theory.smallest_eigenvalue", times(-1.0), "sign"),
    ("s9", "theory.drift_bound", times(2.0), "2 alpha/8 for alpha/8"),
    ("s9", "theory.rate", kept_ignored, "the same rate whatever is kept"),
    ("s10", "theory.smoothness", always_printed, "the printed C throughout"),
    ("s11", "theory.smoothness", after(np.sqrt), "a root: N^(-1/2) after all"),
    ("s12", "theory.alpha", after(lambda a: 1.0 / a), "upside down"),
    ("s13", "theory.alpha_ratio", times(2.0), "factor 2"),
    ("s14", "theory.similarity", after(np.sqrt), "missing square"),
    ("s15", "theory.alpha", times(0.0), "no alpha at all"),
    ("s16", "theory._widths.condition_3", after(np.ones_like), "(3) dropped"),
    ("s17", "theory.lemma_16_gap", plain, "d_s^2 throughout"),
    ("s17", "theory.lemma_16_width", plain, "the logarithm throughout"),
    ("s18", "theory.lemma_14_z", times(1e9), "every bound holds with a z this large"),
    ("t1", "ntk.jacobian", turned, "W_Q and W_K exchanged"),
    ("t1", "ntk.jacobian", keyed("W_V", lambda g: 2.0 * g), "factor 2"),
    ("t2", "ntk.jacobian", keyed("w_O", lambda g: -g), "sign"),
    ("t3", "ntk.jacobian", turned, "W_Q and W_K exchanged"),
    ("t5", "theory.c1", plain, "w_O's norm throughout"),
    ("t5", "theory.c1", times(0.01), "no bound"),
    ("t6", "theory.rate", lambda true: lambda a, g: true(np.sqrt(a), g), "missing square"),
    ("t7", "theory.lambda_0_upper", times(20.0), "eta lost"),
    ("t8", "claims.encoder._errata._second_order.softmax", times(2.0), "factor 2"),
    ("t11", "ntk.empirical", keys_for_queries, "W_K's kernel for W_Q's"),
    ("t12", "theory.gradient_factors", keyed("W_Q", lambda c: 1e3 * c), "no slip visible"),
    ("t15", "theory.z", times(1e6), "z large enough to hide the slip"),
]


@pytest.mark.parametrize(
    ("erratum", "target", "mutant", "words"),
    MUTANTS,
    ids=[f"{erratum}: {target}, {words}" for erratum, target, _, words in MUTANTS],
)
def test_a_mutant_is_noticed(
    erratum: str, target: str, mutant: Mutant, words: str, verdict: Callable[..., bool]
) -> None:
    path = target.replace("theory.", "theory.encoder.")
    house = "attnbook" if path.startswith(("theory.", "claims.")) else "attnlab"
    assert verdict(f"encoder.erratum-{erratum}", f"{house}.{path}", mutant) is False, words


def test_all_are_there_in_the_order_of_the_catalogue() -> None:
    found = claims.all(paper="encoder", kind="erratum")
    assert [entry.id for entry in found] == [f"encoder.erratum-{name}" for name in ERRATA]


@pytest.mark.parametrize("name", ERRATA)
def test_every_slip_of_a_group_is_refuted_and_mended(name: str) -> None:
    evidence = claims.get(f"encoder.erratum-{name}").check(rng=1, instances=12)
    assert evidence.agrees, evidence.measurements
    wrong = [entry for entry in evidence.of("statement") + evidence.of("step") if not entry.holds]
    assert len(wrong) >= SLIPS.get(name, 1)
    assert evidence.of("correction")
    assert evidence.claim.errata


def test_the_number_of_instances_is_honoured() -> None:
    erratum = claims.get("encoder.erratum-t1")
    counts = [
        max(entry.instances for entry in erratum.check(rng=0, instances=many).measurements)
        for many in (5, 50)
    ]
    assert counts == [5, 50]
