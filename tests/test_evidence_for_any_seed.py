"""Evidence does not depend on luck: other seeds, and more instances than the book draws."""

import numpy as np
import pytest

from attnbook import claims
from attnbook.claims import Evidence, Measurement, Suggestion
from attnbook.claims._checks import check_of
from attnbook.claims._measure import Exponent, at_most, rarely, suggested
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm import _paths as paths
from attnlab import svm

CHECKED = [claim.id for claim in claims.all() if claim.has_check]
# Ten times their instances take from ten seconds to a minute each.
SLOW = {
    "multihead.lemma-2",
    "multihead.proposition-7",
    "encoder.corollary-1",
    "encoder.remark-3",
    "encoder.section-c6",
    "encoder.theorem-1",
    "encoder.theorem-2",
    "encoder.theorem-3",
    "svm.theorem-8",
    "svm.theorem-10",
}
QUICK = [name for name in CHECKED if name not in SLOW]


def evidence(name: str, seed: int, factor: int = 1) -> Evidence:
    """A claim's evidence with so many times the instances that its check draws."""
    return claims.get(name).check(seed, instances=factor * check_of(name).instances)


def explain(found: Evidence) -> str:
    """The faults, then all rows."""
    return "\n".join([*found.faults, *map(str, found.measurements)])


@pytest.mark.parametrize("name", ["svm.lemma-3", "svm.lemma-15", "svm.conjecture-1", "svm.lemma-8"])
def test_evidence_agrees_for_another_seed_and_ten_times_the_instances(name: str) -> None:
    found = evidence(name, 7, factor=10)
    assert found.agrees, explain(found)


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKED)
def test_evidence_agrees_for_one_seed_of_nineteen(name: str) -> None:
    found = evidence(name, 1 + CHECKED.index(name) % 19)
    assert found.agrees, explain(found)


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_evidence_agrees_with_ten_times_the_instances(name: str) -> None:
    found = evidence(name, 20, factor=10)
    assert found.agrees, explain(found)


def test_what_is_slow_is_in_the_ledger() -> None:
    assert set(CHECKED) >= SLOW


LOOSE = rarely("a rare event", np.zeros(10_000), 0.5)  # room 5,000: of a thousand draws, 500
NEVER = at_most("a bound", 1.0, 2.0)


def with_rows(*rows: Measurement, own_size: bool, suggests: Suggestion | None = None) -> Evidence:
    claim = claims.Claim(
        id="svm.lemma-0",
        number="Lemma 0",
        words="made for this test",
        statement="$0=0$",
        status="holds",
        page="svm/tokens",
        suggests=suggests,
    )
    return Evidence(claim, rows, own_size=own_size)


def test_room_that_more_draws_make_is_no_fault() -> None:
    assert LOOSE.slack
    assert not with_rows(LOOSE, own_size=True).agrees
    assert with_rows(LOOSE, own_size=False).agrees


@pytest.mark.parametrize(
    ("low", "high", "own", "other"),
    [
        (-1.02, -0.96, True, True),  # as the ledger has it
        (-0.9901, -0.9899, False, True),  # many instances: far sharper than the ledger
        (-0.991, -0.8, False, True),  # few instances: wide, and beside it
        (-0.94, -0.90, False, False),  # another number
    ],
)
def test_what_is_suggested_may_be_measured_more_sharply(
    low: float, high: float, own: bool, other: bool
) -> None:
    said = Suggestion("a law $K^p$", -0.98, (-1.0, -0.96))
    row = suggested("a law", Exponent((low + high) / 2.0, low, high))
    for own_size, agrees in ((True, own), (False, other)):
        assert with_rows(NEVER, row, own_size=own_size, suggests=said).agrees is agrees


@pytest.mark.parametrize("d", [2, 3, 4])
def test_every_direction_asks_for_the_identity(d: int) -> None:
    asked = cases.every_direction(d)
    f = 2.0 * asked.X[0, :, 0]
    np.testing.assert_allclose(f.T @ f, d * np.eye(d), atol=1e-12)
    found = svm.attention_svm(asked, norm="nuc")
    assert found.norm == pytest.approx(d, rel=1e-9)
    assert found.rank == d


def test_one_column_for_every_direction_of_the_plane_costs_2_plus_root_2() -> None:
    # of u v' the margin along the angle a is cos(a - p) cos(a - q), and at the worst of eight
    # angles at most (1 - cos 45) / 2 of |u| |v|
    asked = cases.every_direction(2)
    assert paths.length_with_columns(asked, 1) / 2.0 == pytest.approx(2.0 + 2.0**0.5, rel=2e-3)
