"""The bias paper's errata: breaking what a check leans on must turn its verdict."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnbook import claims
from attnbook.claims.bias._instances import at_optimal, copies, leads
from attnlab import models, problems

Verdict = Callable[..., bool]
ROOM = "attnbook.theory.bias."


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda true: lambda *a, **k: factor * true(*a, **k)


def _printed(always: bool) -> Callable[[Any], Any]:
    return lambda true: lambda *a, **k: true(*a, **(k | {"printed": always}))


def _parts(*factors: float) -> Callable[[Any], Any]:
    def scaled(true: Any) -> Any:
        return lambda *a, **k: tuple(f * x for f, x in zip(factors, true(*a, **k), strict=True))

    return scaled


def _transposed(true: type) -> type:
    class Mutant(true):  # type: ignore[misc]
        def attention(self, params: Any, problem: Any) -> Any:
            return super().attention({"W": params["W"].swapaxes(-1, -2)}, problem)

        def forward(self, params: Any, problem: Any) -> Any:
            return super().forward({"W": params["W"].swapaxes(-1, -2)}, problem)

    return Mutant


def _ascending(true: type) -> type:
    class Mutant(true):  # type: ignore[misc]
        def value_and_grad(self, params: Any, problem: Any) -> Any:
            loss, grads = super().value_and_grad(params, problem)
            return loss, {name: -grad for name, grad in grads.items()}

    return Mutant


MUTANTS = [
    ("1", "attnlab.models.Attention", _transposed, "W transposed in the model"),
    ("2", ROOM + "conditioning", _times(0.9), "Upsilon a tenth too small"),
    ("2", ROOM + "loss_scale", _printed(True), "zeta with max in place of min"),
    ("6", ROOM + "norm_threshold", _printed(True), "the factor upside down"),
    ("6", ROOM + "norm_threshold", _printed(False), "nothing wrong in print"),
    ("9", ROOM + "decoder_norm_bound", _times(2.0), "6 for 3 in the bound on the decoder"),
    ("9", ROOM + "decoder_norm_bound", _times(0.25), "nothing wrong with a quarter"),
    ("10", ROOM + "power_sum", _printed(True), "t for t' under the sum"),
    ("10", ROOM + "omega_2", _times(4.0), "omega_2 without its 1/n"),
    ("10", ROOM + "omega_1", _times(0.01), "omega_1 as small as omega_2"),
    ("11", ROOM + "joint_loss_bound", lambda true: lambda *a: true(*a) ** 4, "rate too fast"),
    ("12", ROOM + "gradient_bounds", _parts(0.1, 1.0), "a lower bound that holds"),
    ("12", ROOM + "gradient_bounds", _parts(1.0, 4.0), "omega_2 times 4"),
    ("14", ROOM + "two_token_miss", lambda true: lambda w, c: true(w, 2.0 * c), "c doubled"),
    (
        "14",
        ROOM + "two_token_gd",
        lambda true: lambda t, w, h: true(t, w, np.exp(1.0) * h),
        "no 1/e",
    ),
]


@pytest.mark.parametrize(
    ("number", "target", "mutant", "words"), MUTANTS, ids=[f"{m[0]}: {m[3]}" for m in MUTANTS]
)
def test_a_broken_formula_is_noticed(
    verdict: Verdict, number: str, target: str, mutant: Any, words: str
) -> None:
    assert not verdict(f"bias.erratum-{number}", target, mutant), words


PARTS = [
    (
        "8",
        "scipy.special.softmax",
        lambda true: lambda x, axis: true(x / 1e3, axis=axis),
        "attention that is not sharp",
    ),
    ("15", "attnlab.models.Attention", _ascending, "the sign of the expansion"),
    (
        "17",
        "attnbook.claims.bias._errata._scale._adverse",
        lambda true: lambda n, d, alpha, logs: true(n, d, alpha, logs / 1e4),
        "harmless tokens for adverse ones",
    ),
]


@pytest.mark.parametrize(("number", "target", "mutant", "words"), PARTS)
def test_a_broken_part_is_noticed(
    verdict: Verdict, number: str, target: str, mutant: Any, words: str
) -> None:
    assert not verdict(f"bias.erratum-{number}", target, mutant), words


def test_every_erratum_shows_its_number() -> None:
    found = claims.all(paper="bias", kind="erratum")
    assert [entry.id for entry in found] == [f"bias.erratum-{k}" for k in range(1, 18) if k != 16]
    glyphs = {entry.id for entry in found if entry.status == "may be the extraction's"}
    assert glyphs == {"bias.erratum-8", "bias.erratum-11"}
    slips = {entry.id for entry in found if entry.status == "misprint"}
    assert slips == {"bias.erratum-5", "bias.erratum-7", "bias.erratum-13"}
    rest = {entry.status for entry in found if entry.id not in glyphs | slips}
    assert rest == {"fails as stated"}
    assert all(entry.correction and entry.errata for entry in found)


ERRATA = claims.all(paper="bias", kind="erratum")
SHOWN = [entry.same_as or entry.id for entry in ERRATA if entry.status != "misprint"]


@pytest.mark.parametrize("name", SHOWN)
def test_evidence_agrees_for_few_instances_and_another_seed(name: str) -> None:
    evidence = claims.get(name).check(rng=7, instances=3)
    assert evidence.agrees, "\n".join(map(str, evidence.measurements))
    assert evidence.corrected


def test_helpers_agree_with_the_model() -> None:
    p = problems.orthogonal(n=3, T=4, d=9, rho=0.3, rng=0)
    W = np.random.default_rng(1).standard_normal((9, 9))
    lead = leads(W, p)
    s = models.Attention().attention({"W": W}, p)
    expected = np.log(at_optimal(s, p)[:, None] / s)
    kept = np.isfinite(lead)
    np.testing.assert_allclose(lead[kept], expected[kept], rtol=1e-9, atol=1e-12)
    assert kept.sum() == 9
    assert copies(p, 2, 5).trials == (2, 5)
