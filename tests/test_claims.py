"""The ledger: every claim's evidence agrees with its status, and the ledger is complete."""

import dataclasses
import importlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import claims
from attnbook.claims import Claim, Evidence, Measurement, Suggestion
from attnbook.claims._checks import checked, measures
from attnbook.claims._ledger import PAPERS
from attnbook.claims._measure import (
    Exponent,
    at_least,
    at_most,
    equal,
    exponent,
    mean,
    rarely,
    slope,
    suggested,
    vanishes,
)
from attnbook.claims._pages import PAGES

LEDGER = claims.all()
# How many numbered statements and errata the four papers have.
STATEMENTS = {"multihead": 41, "encoder": 30, "bias": 32, "svm": 40}
ERRATA = {"multihead": 30, "encoder": 32, "bias": 16, "svm": 30}


@pytest.mark.parametrize("name", [claim.id for claim in LEDGER if claim.has_check])
def test_evidence_agrees_with_status(
    name: str, evidence_of_the_build: Callable[[str], dict[str, Any]]
) -> None:
    if told := evidence_of_the_build(name):  # of exactly these files: the book shows it
        assert told["agrees"], told["evidence"]
        assert told["finite"]
        return
    evidence = claims.get(name).check(rng=0)
    found = "\n".join(str(entry) for entry in evidence.measurements)
    assert evidence.agrees, f"{evidence}\n{found}"
    assert math.isfinite(evidence.measured) or math.isinf(evidence.bound)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_ledger_is_complete(paper: str) -> None:
    entries = claims.all(paper=paper)
    errata = [entry for entry in entries if entry.kind == "erratum"]
    assert len(errata) == ERRATA[paper]
    assert len(entries) - len(errata) >= STATEMENTS[paper]


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_entries_are_well_formed(claim: Claim) -> None:
    assert re.fullmatch(r"(multihead|encoder|bias|svm)\.[a-z]+(-[a-z0-9]+)*", claim.id)
    assert claim.number
    assert claim.page in PAGES
    assert len(claim.words) <= 110, "the table shows one line"
    assert claim.words.isascii(), "the table must print on any terminal"
    assert not claim.words.endswith(".")
    for text in (claim.statement, claim.correction, *claim.hypotheses):
        assert text.count("$") % 2 == 0, "every formula is closed"
        assert text.count("{") == text.count("}")
        macros = set(re.findall(r"\\(?:le|ge|gtrsim|lesssim)[A-Za-z]+", text))
        assert macros <= {r"\lesssim", r"\leftarrow"}, "a lost space makes a new macro"
    assert "$" in claim.statement or claim.kind in ("erratum", "remark"), "LaTeX"
    known = {entry.id for entry in LEDGER}
    assert set(claim.errata) <= known, "links lead somewhere"
    if claim.status == "fails as stated" and claim.kind != "erratum":
        assert claim.correction or claim.reason


def test_every_erratum_is_linked_to_a_statement_or_says_where() -> None:
    for entry in claims.all(kind="erratum"):
        assert entry.correction, f"{entry.id}: what should be read instead"


def _claim(status: str) -> Claim:
    return Claim(
        id="svm.lemma-0",
        number="Lemma 0",
        words="made for this test",
        statement="$0=0$",
        status=status,
        page="svm/tokens",
        reason="for this test",
        correction="$1=1$",
    )


GOOD = at_most("good", 1.0, 2.0)
BAD = at_most("bad", 2.0, 1.0)
MENDED = at_most("mended", 1.0, 2.0, role="correction")
UNMENDED = at_most("not mended", 2.0, 1.0, role="correction")
DROPPED = at_most("dropped", 2.0, 1.0, role="outside")
HARMLESS = at_most("harmless", 1.0, 2.0, role="outside")
SLIP = at_most("slip", 2.0, 1.0, role="step")
GIVEN = at_most("given", 1e-9, 1.0, role="premise")  # deep inside: no slack of a bound
MISSED = at_most("missed", 2.0, 1.0, role="premise")
LOOSE = at_most("loose", 1.0, 1001.0)
LOOSE_MENDED = at_least("loose", 1001.0, 1.0, role="correction")
VACUOUS = at_least("a cosine", 0.9, -9.8)


@pytest.mark.parametrize(
    ("status", "found", "agrees"),
    [
        ("holds", (GOOD,), True),
        ("holds", (GOOD, BAD), False),
        ("holds", (GOOD, DROPPED, SLIP), True),
        ("holds", (GOOD, HARMLESS), False),
        ("holds", (GOOD, UNMENDED), False),
        ("holds with correction", (BAD, MENDED), True),
        ("holds with correction", (GIVEN, BAD, MENDED), True),
        ("holds with correction", (GOOD, BAD, MENDED), False),  # one row does not refute it
        ("holds with correction", (GOOD, MENDED), False),  # nothing refutes it
        ("holds with correction", (MISSED, BAD, MENDED), False),  # not what the statement is about
        ("holds with correction", (BAD,), False),  # the correction was not tested
        ("holds with correction", (BAD, UNMENDED), False),
        ("fails as stated", (BAD,), True),
        ("fails as stated", (GOOD,), False),
        ("fails as stated", (BAD, UNMENDED), False),
        ("fails as stated", (BAD, GOOD), False),
        ("fails as stated", (BAD, BAD, GIVEN), True),
        ("holds", (GIVEN, GOOD), True),
        ("holds", (MISSED, GOOD), False),
        ("holds", (LOOSE,), False),  # slack that the ledger does not say
        ("holds", (GOOD, VACUOUS), False),
        ("fails as stated", (BAD, LOOSE_MENDED), False),
        ("out of reach", (GOOD,), True),
        ("out of reach", (BAD,), False),
        ("definition", (BAD, MENDED), True),
        ("definition", (GOOD, MENDED), False),  # nothing shows why it was mended
        ("definition", (BAD,), False),
    ],
)
def test_a_status_is_asserted(status: str, found: tuple[Measurement, ...], agrees: bool) -> None:
    assert Evidence(_claim(status), found).agrees is agrees


@pytest.mark.parametrize(("found", "agrees"), [(GOOD, True), (BAD, False)])
def test_a_definition_is_shown_on_data(found: Measurement, agrees: bool) -> None:
    entry = dataclasses.replace(_claim("definition"), correction="")
    assert Evidence(entry, (found,)).agrees is agrees


def test_an_ambiguous_erratum_says_the_other_reading() -> None:
    entry = dataclasses.replace(_claim("holds"), id="svm.erratum-99", status="ambiguous")
    assert not entry.asserts
    with pytest.raises(ValueError, match=r"reason: expected the reading that is true"):
        dataclasses.replace(entry, reason="")


def test_slack_that_is_said_agrees() -> None:
    said = dataclasses.replace(_claim("holds"), slack=1001.0)
    evidence = Evidence(said, (GOOD, LOOSE))
    assert evidence.agrees
    assert evidence.slack == (LOOSE,)
    with pytest.raises(ValueError, match=r"slack: expected 0 or room near 1000"):
        dataclasses.replace(said, slack=7.0)


SAID = Suggestion("a law $K^p$", -0.98, (-1.01, -0.95))


@pytest.mark.parametrize(
    ("said", "found", "agrees"),
    [
        (SAID, (Exponent(-0.99, -1.02, -0.96),), True),
        (SAID, (), False),  # typed, not measured
        (None, (Exponent(-0.99, -1.02, -0.96),), False),  # measured, not said
        (SAID, (Exponent(-0.99, -1.02, -0.96),) * 2, False),
        (SAID, (Exponent(-0.94, -0.97, -0.91),), False),  # outside of what is said
        (SAID, (Exponent(-0.98, -0.985, -0.975),), False),  # said wider than it is
        (SAID, (Exponent(-0.98, -1.2, -0.7),), False),  # said sharper than it is
        (Suggestion("c", 0.78, (0.77, 0.79)), (Exponent(0.7698, 0.7697, 0.7699),), False),
        (Suggestion("c", 0.77, (0.767, 0.773)), (Exponent(0.7698, 0.7697, 0.7699),), True),
    ],
)
def test_what_the_numbers_suggest_is_measured(
    said: Suggestion | None, found: tuple[Exponent, ...], agrees: bool
) -> None:
    entry = dataclasses.replace(_claim("holds"), suggests=said)
    rows = [suggested("a law", number) for number in found]
    evidence = Evidence(entry, (GOOD, *rows))
    assert evidence.agrees is agrees
    if agrees:
        assert f"suggests: a law: {found[0]:.6g} [" in evidence.summary


@pytest.mark.parametrize(
    "claim", [entry for entry in LEDGER if entry.suggests], ids=lambda claim: claim.id
)
def test_the_box_says_what_is_suggested(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "book" / "_ext")
    said, told = claim.suggests, importlib.import_module("attnlab_book").suggested(claim)
    assert said is not None
    assert told.startswith(f"**What the numbers suggest.** {said.law}: ${said.fitted:g}$")
    assert told.endswith(f"`attnlab check {claim.id}`.")
    assert not said.law.endswith(".")
    assert said.law.count("$") % 2 == 0


@pytest.mark.parametrize(
    "claim", [entry for entry in LEDGER if entry.slack], ids=lambda claim: claim.id
)
def test_the_box_says_that_it_holds_only_where_the_status_does(
    claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "book" / "_ext")
    told = importlib.import_module("attnlab_book").spare(claim)
    assert ("It holds" in told) == (claim.status == "holds")
    corrected = claim.status in ("holds with correction", "fails as stated")
    assert ("read instead" in told) == (corrected or claim.kind == "erratum")


def test_a_suggested_exponent_must_be_the_expected_one() -> None:
    sizes, entry = np.geomspace(1, 100, 5), dataclasses.replace(_claim("holds"), suggests=SAID)
    noisy = sizes**-0.98 * np.exp(0.04 * np.array([1, -1, 0, -1, 1]))
    for expected, agrees in ((-1.0, True), (-0.5, False)):
        row = exponent("x", sizes, noisy, expected, within=0.05, role="suggests")
        assert row.interval is not None
        assert Evidence(entry, (GOOD, row)).agrees is agrees


def test_a_suggestion_lies_in_its_interval() -> None:
    with pytest.raises(ValueError, match=r"interval: expected two numbers around -0\.98"):
        Suggestion("a law", -0.98, (-0.9, -0.8))


def test_a_mean_has_its_interval() -> None:
    found = mean([1.0, 2.0, 3.0])
    assert found == 2.0
    assert found.interval == pytest.approx((2.0 - 2.484, 2.0 + 2.484), abs=1e-3)
    with pytest.raises(ValueError, match="values: expected one number of each of three trials"):
        mean([1.0, 2.0])


@pytest.mark.parametrize(
    ("row", "room"),
    [
        (at_most("x", 1.0, 4.0), 4.0),
        (at_least("x", 1.0, 0.25), 4.0),
        (at_most("x", 4.0, 1.0), 0.25),
        (at_most("x", -4.0, -1.0), 4.0),
        (at_least("x", -1.0, -4.0), 4.0),
        (at_least("x", -1.0, 1.0), 0.0),
        (VACUOUS, math.inf),
        (at_most("x", 0.0, 1.0), math.inf),
        (at_most("x", [1.0, 3.0], [2.0, 4.0]), 4.0 / 3.0),  # the worst instance's
        (rarely("x", np.zeros((50, 2)), [0.5, 0.1]), 5.0),  # could have happened once in 50
        (rarely("x", np.arange(50) < 5, 0.4), 4.0),
        (at_least("a sign", 0.3, 0.0), None),
        (equal("x", 2.0, 2.0), None),
        (equal("x", 0.0, 0.0, size=1.0), None),
        (vanishes("x", 1e-16), None),
        (exponent("x", [1, 10, 100], [1, 0.1, 0.01], -1.0, within=0.05), None),
    ],
)
def test_room_of_a_row(row: Measurement, room: float | None) -> None:
    assert row.room == (room if room is None else pytest.approx(room))


@pytest.mark.parametrize("compare", [at_most, at_least, equal])
def test_zero_against_zero_is_an_error(compare: Callable[..., Measurement]) -> None:
    with pytest.raises(ValueError, match="two numbers to compare for 'x', got 0 and 0"):
        compare("x", [0.0, 0.0], 0.0)
    assert compare("x", [0.0, 1.0], [0.0, 1.0]).bound == 1.0  # the pair that can be told apart


def test_a_fitted_exponent_has_its_interval() -> None:
    sizes = np.geomspace(1.0, 1000.0, 7)
    noise = np.exp(0.1 * np.array([1, -1, 1, 1, -1, 1, -1]))
    found = exponent("x", sizes, noise * sizes**-0.5, -0.5, within=0.05)
    low, high = found.interval or (0.0, 0.0)
    assert found.holds
    assert low < -0.5 < high
    assert 0.01 < high - low < 0.2
    assert not exponent("x", sizes, noise * sizes**-0.5, -0.38, within=0.05).holds
    assert exponent("x", sizes, sizes**-1.0, -0.5, within=0.05, relation="<=").holds
    assert not exponent("x", sizes, sizes**-0.3, -0.5, within=0.05, relation="<=").holds
    assert exponent("x", sizes[:3], sizes[:3] ** 2.0, 2.0, within=0.05, decades=1.0).holds
    with pytest.raises(ValueError, match="two decades or more"):
        exponent("x", sizes[:3], sizes[:3], 1.0, within=0.05)
    assert "[" in str(found)


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_slack_in_the_ledger_is_what_is_measured(
    claim: Claim, evidence_of_the_build: Callable[[str], dict[str, Any]]
) -> None:
    if not claim.slack:
        return  # evidence that has some does not agree
    if told := evidence_of_the_build(claim.id):
        room = float(told["slack"][0]["room"])
    else:
        room = float(claim.check(rng=0).slack[0].room or 0.0)
    assert claim.slack == room or claim.slack / 3.0 < room < 3.0 * claim.slack


def test_only_an_erratum_may_be_the_extractions() -> None:
    with pytest.raises(ValueError, match="status: expected one of 'definition', 'holds'"):
        _claim("may be the extraction's")


KINDS = ("definition", "assumption", "model", "condition")
UPDATES = ("bias.equation-10",)  # an equation that defines a rule


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_definitions_and_nothing_else_carry_no_verdict(claim: Claim) -> None:
    assert (claim.status == "definition") == (claim.kind in KINDS or claim.id in UPDATES)


def test_a_check_must_measure_its_statement() -> None:
    with pytest.raises(ValueError, match=r"one of the statement of svm\.lemma-0 itself"):
        Evidence(_claim("holds"), (MENDED,))


def test_the_worst_instance_is_reported() -> None:
    found = at_most("x", [1.0, 5.0, 2.0], [2.0, 4.0, 2.0])
    assert (found.measured, found.bound, found.instances) == (5.0, 4.0, 3)
    assert not found.holds
    found = at_least("x", [1.0, 3.0], 0.5)
    assert (found.measured, found.holds) == (1.0, True)


def test_rounding_is_forgiven_and_no_more() -> None:
    assert at_most("x", 1.0 + 1e-12, 1.0).holds
    assert not at_most("x", 1.0 + 1e-6, 1.0).holds
    assert not at_most("x", 1.0 - 1e-12, 1.0, strictly=True).holds
    assert at_most("x", 1.0 - 1e-6, 1.0, strictly=True).holds
    assert equal("x", 1.0, 1.0 + 1e-12).holds
    assert not equal("x", 1.0, 1.001).holds
    assert equal("x", 1.0, 1.001, within=0.01).holds
    assert equal("x", 1e-16, 0.0, size=1.0).holds
    assert not equal("x", 1e-3, 0.0, size=1.0).holds
    assert at_most("x", math.inf, math.inf).holds
    assert not at_most("x", math.inf, 1.0).holds


@pytest.mark.parametrize("measured", [np.nan, [1.0, np.nan], []])
def test_no_silent_nan(measured: object) -> None:
    with pytest.raises(ValueError, match=r"measured: expected"):
        at_most("x", measured, 1.0)  # type: ignore[arg-type]


def test_slopes_need_two_decades() -> None:
    assert slope([1, 10, 100], [1, 0.1, 0.01]) == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="two decades"):
        slope([1, 2, 4], [1, 2, 4])
    with pytest.raises(ValueError, match="positive finite"):
        slope([1, 10, 100], [1, 0, 1])


def test_unknown_claims_are_met_with_the_nearest_names() -> None:
    with pytest.raises(ValueError, match=r"id: expected .*'svm\.theorem-1'.*got 'svm\.teorem-1'"):
        claims.get("svm.teorem-1")
    with pytest.raises(ValueError, match=r"name: expected .*'svm'"):
        claims.select("swm")
    with pytest.raises(ValueError, match=r"paper: expected one of"):
        claims.all(paper="smv")


def test_a_seed_decides_everything() -> None:
    one, two, other = (claims.get("svm.lemma-1").check(rng=seed) for seed in (3, 3, 4))
    assert one.measurements == two.measurements
    assert one.measurements != other.measurements


def test_processes_change_nothing() -> None:
    names = ["svm.theorem-1", "svm.lemma-1"]
    alone = [(o.id, o.agrees, o.evidence) for o in claims.run(names, 5, instances=7)]
    both = [(o.id, o.agrees, o.evidence) for o in claims.run(names, 5, instances=7, workers=2)]
    assert alone == both
    assert [name for name, _, _ in both] == names


def test_a_check_that_breaks_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("attnlab.svm.attention_svm", broken)
    (outcome,) = claims.run(["svm.theorem-1"], 0)
    assert not outcome.agrees
    assert outcome.evidence == "DISAGREES: RuntimeError: broken on purpose"


def test_what_has_a_check_of_its_own_has_one_and_nothing_else_has() -> None:
    for paper in PAPERS:
        wanted = {entry.id for entry in claims.all(paper=paper) if entry.has_check}
        assert checked(paper) == wanted


def test_what_is_the_same_as_another_leads_to_one_that_is_checked() -> None:
    known = {entry.id: entry for entry in LEDGER}
    for entry in LEDGER:
        if not entry.same_as:
            continue
        other = known[entry.same_as]
        assert other.has_check
        # an erratum is shown by a check that refutes what is printed
        assert entry.kind != "erratum" or not other.asserts, f"{entry.id}: {other.id} holds"
        if entry.kind != "erratum":
            assert entry.status == other.status


def test_a_claim_without_a_check_says_where_to_look() -> None:
    entry = dataclasses.replace(_claim("holds"), same_as="svm.theorem-1")
    with pytest.raises(ValueError, match=r"svm\.theorem-1 has one, got svm\.lemma-0"):
        entry.check(rng=0)


def test_only_a_glyph_with_a_reason_is_not_checked() -> None:
    (glyph, *_), fails = claims.select("encoder.erratum-t3"), _claim("fails as stated")
    assert not glyph.has_check
    for entry, changes in ((glyph, {"reason": ""}), (fails, {"checked": False})):
        with pytest.raises(ValueError, match="checked: expected false of a glyph only"):
            dataclasses.replace(entry, **changes)


def test_a_claim_has_one_check() -> None:
    checked("svm")
    with pytest.raises(ValueError, match=r"one without a check yet, got svm\.theorem-1"):
        measures("svm.theorem-1")(lambda *_: ())
