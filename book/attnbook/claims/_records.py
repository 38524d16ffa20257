"""A claim of a paper, and the evidence for or against it."""

from __future__ import annotations

from dataclasses import dataclass

from attnbook.claims._checks import check_of
from attnbook.claims._measure import SLACK, Measurement
from attnlab import checks
from attnlab.checks import Rng

# the first is for definitions, assumptions and models, which are neither true nor false
STATUSES = ("definition", "holds", "holds with correction", "fails as stated", "out of reach")
EXTRACTION = "may be the extraction's"  # a slip seen only in the text extracted from a PDF
MISPRINT = "misprint"  # a slip of the pen: said, and nothing to measure
AMBIGUOUS = "ambiguous"  # fails in one of two readings: that one is measured, the other said
ERRATA = ("fails as stated", AMBIGUOUS, EXTRACTION, MISPRINT)


@dataclass(frozen=True)
class Suggestion:
    r"""A law that no statement promises and that the numbers suggest, measured in every build.

    Args:
        law: in words and LaTeX, for which exponent or constant a number follows.
        fitted: that number.
        interval: its interval, of 95 percent where it is a fit.

    Returns:
        A frozen record; the check's row of the role ``suggests`` has to measure the same.

    Examples:
        >>> from attnbook.claims import Suggestion
        >>> Suggestion("the loss falls as $K^p$", -0.98, (-1.01, -0.95)).fitted
        -0.98
    """

    law: str
    fitted: float
    interval: tuple[float, float]

    def __post_init__(self) -> None:
        low, high = self.interval
        if not low <= self.fitted <= high:
            expected = f"two numbers around {self.fitted:g}"
            raise checks.fail("interval", expected, list(self.interval))

    def fault(self, row: Measurement, *, own_size: bool = True) -> str:
        """Where the row is another number than the ledger's; empty where it is the same.

        The measured number must lie in the interval that is said, and neither interval be four
        times as wide as the other, unless both are narrower than a hundredth of the number. With
        another number of instances the width is another one: there the intervals must meet.
        """
        low, high = row.interval or (row.measured, row.measured)
        said, least = self.interval, 0.01 * abs(self.fitted)
        widths = sorted(max(end - start, least) for start, end in (said, (low, high)))
        if own_size:
            same = said[0] <= row.measured <= said[1] and widths[1] <= 4.0 * widths[0]
        else:
            same = low <= said[1] and said[0] <= high
        if same:
            return ""
        return f"the ledger says {self.fitted:g} [{said[0]:g}, {said[1]:g}]: {row}"


@dataclass(frozen=True, eq=False)
class Claim:
    r"""A numbered statement of a paper and what became of it, as the ledger's data say.

    Statuses: ``definition`` (of definitions, assumptions and models: nothing is asserted, and the
    check shows what the data of this book do to it); ``holds``; ``holds with correction`` (a
    constant, an index or a hypothesis must be mended, and the substance stands); ``fails as
    stated`` (a counterexample refutes it); ``out of reach`` (for a reason that is given; what can
    be measured is measured all the same). An erratum ``fails as stated``, or is ``ambiguous`` (of
    two readings one fails, which is measured; the reason says the other), or is a ``misprint``
    (a slip of the pen: nothing to measure), or ``may be the extraction's``: a glyph that is wrong
    in the text extracted from the PDF and may be right in the paper (measured, unless the data say
    that it is not ``checked`` and why).

    Args:
        id: such as ``svm.theorem-1``: the paper, the kind, the paper's number.
        number: as the paper counts, such as ``Theorem 1``; of an erratum, where it stands.
        words: the statement in a line of plain words.
        statement: the statement in LaTeX; of an erratum, the paper's own words.
        status: one of those above.
        page: where the book treats it.
        hypotheses: what the statement asks for, in LaTeX, one by one.
        correction: what to read instead, in LaTeX.
        reason: why it cannot be tested, or what the check cannot see.
        errata: ids of the errata that concern it (of an erratum: ids of the statements).
        same_as: the claim that it restates, or whose check shows it; it has no check of its own.
        own: whether it is this book's own statement, which no paper makes.
        preprint: whether it concerns a superseded preprint only.
        checked: whether it is measured; not where a check would only do a typed formula again.
        turned_by: in words, the broken formulas that turn its evidence; the tests break each.
        slack: room of the loosest bound where that is above 1,000 (infinite where it is vacuous):
            the evidence says nothing about its constant, and the book says so.
        suggests: the law that the numbers suggest beyond the statement, where there is one.

    Returns:
        A frozen record; `check` measures it.

    Examples:
        >>> from attnbook import claims
        >>> claim = claims.get("svm.theorem-1")
        >>> claim.status, claim.check(rng=0).agrees
        ('holds', True)
    """

    id: str
    number: str
    words: str
    statement: str
    status: str
    page: str
    hypotheses: tuple[str, ...] = ()
    correction: str = ""
    reason: str = ""
    errata: tuple[str, ...] = ()
    same_as: str = ""
    own: bool = False
    preprint: bool = False
    checked: bool = True
    turned_by: tuple[str, ...] = ()
    slack: float = 0.0
    suggests: Suggestion | None = None

    def __post_init__(self) -> None:
        known = ERRATA if self.kind == "erratum" else STATUSES
        checks.choice("status", self.status, known)
        if self.status == "out of reach" and not self.reason:
            raise checks.fail("reason", "why the claim cannot be tested", repr(self.reason))
        if self.status == AMBIGUOUS and not self.reason:
            raise checks.fail("reason", "the reading that is true", repr(self.reason))
        if self.status == "holds with correction" and not self.correction:
            raise checks.fail("correction", "what to read instead", repr(self.correction))
        if not self.checked and not (self.status == EXTRACTION and self.reason):
            raise checks.fail("checked", "false of a glyph only, with its reason", self.status)
        if self.slack and not self.slack > SLACK / 10.0:
            raise checks.fail("slack", f"0 or room near {SLACK:g} and more", self.slack)

    @property
    def asserts(self) -> bool:
        """Whether the statement as printed must survive its check; otherwise it must be refuted."""
        if self.status == "definition":
            return not self.correction
        return self.status in ("holds", "out of reach")

    @property
    def paper(self) -> str:
        """One of ``multihead``, ``encoder``, ``bias``, ``svm``."""
        return self.id.split(".")[0]

    @property
    def kind(self) -> str:
        """Such as ``theorem``, ``lemma``, ``assumption``, ``erratum``."""
        return self.id.split(".")[1].split("-")[0]

    @property
    def has_check(self) -> bool:
        """Whether there is something of its own to measure."""
        return self.checked and self.status != MISPRINT and not self.same_as

    def check(self, rng: Rng, *, instances: int | None = None) -> Evidence:
        """Draw instances, measure both sides, and say what was found.

        The same seed gives the same evidence, whatever was checked before.
        """
        if not self.has_check:
            where = f"; {self.same_as} has one" if self.same_as else ""
            raise checks.fail("id", f"a claim with a check of its own{where}", self.id)
        own = check_of(self.id)
        many = own.instances if instances is None else checks.count("instances", instances)
        found = tuple(own.measure(checks.generator(rng), many))
        return Evidence(self, found, own_size=many == own.instances)

    def __repr__(self) -> str:
        return f"Claim({self.id}: {self.words}; {self.status})"


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""What a check found.

    Args:
        claim: whose evidence it is.
        measurements: every inequality measured, each at its worst instance.
        own_size: whether as many instances were drawn as the check itself asks for. With others
            the room of a bound changes (what never happened in ten times as many draws has ten
            times the room), and the ledger's slack says nothing about it.

    Returns:
        A frozen record; `holds` speaks of the statement as printed, `agrees` of its status.

    Examples:
        >>> from attnbook import claims
        >>> evidence = claims.get("svm.theorem-1").check(rng=0)
        >>> evidence.holds, evidence.agrees
        (True, True)
    """

    claim: Claim
    measurements: tuple[Measurement, ...]
    own_size: bool = True

    def __post_init__(self) -> None:
        if not self.of("statement"):
            found = ", ".join(entry.role for entry in self.measurements) or "none"
            expected = f"one of the statement of {self.claim.id} itself"
            raise checks.fail("measurements", expected, found)

    def of(self, role: str) -> tuple[Measurement, ...]:
        """The measurements of one role."""
        return tuple(entry for entry in self.measurements if entry.role == role)

    @property
    def holds(self) -> bool:
        """Whether the statement as printed survived every instance."""
        return all(entry.holds for entry in self.of("statement"))

    @property
    def corrected(self) -> bool | None:
        """Whether the correction survived; None where there is none."""
        found = self.of("correction")
        return all(entry.holds for entry in found) if found else None

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the evidence does not agree with the recorded status; empty where it does.

        Every row of a statement that holds must survive, every row of one that does not must be
        refuted by a number. Premises and corrections must survive, wrong steps and dropped
        hypotheses must show, and slack and what the numbers suggest must be said in the ledger.
        """
        others = [entry for entry in self.measurements if entry.role != "statement"]
        found = [f"unexpected {entry}" for entry in others if not entry.as_expected]
        if self.claim.asserts:
            found += [str(entry) for entry in self.of("statement") if not entry.holds]
        else:
            kept = [entry for entry in self.of("statement") if entry.holds]
            found += [f"does not refute the printed statement: {entry}" for entry in kept]
        mended = self.claim.status == "holds with correction" or (
            self.claim.status == "definition" and self.claim.correction
        )
        if mended and self.corrected is None:
            found.append("the correction was not measured")
        if self.slack and not self.claim.slack and self.own_size:
            loosest = self.slack[0]
            found.append(f"slack that the ledger does not say: {loosest}, room {loosest.room:.2g}")
        said, rows = self.claim.suggests, self.of("suggests")
        if len(rows) != (said is not None):
            wanted = "one row" if said else "no row"
            found.append(f"{len(rows)} rows of what the numbers suggest, the ledger has {wanted}")
        elif said and (fault := said.fault(rows[0], own_size=self.own_size)):
            found.append(fault)
        return tuple(found)

    @property
    def slack(self) -> tuple[Measurement, ...]:
        """Asserted rows with too much room to be evidence for a constant, widest first."""
        found = [entry for entry in self.measurements if entry.slack]
        return tuple(sorted(found, key=lambda entry: -(entry.room or 0.0)))

    @property
    def agrees(self) -> bool:
        """Whether the evidence is what the recorded status asks for."""
        return not self.faults

    @property
    def deciding(self) -> Measurement:
        """The statement's tightest measurement: the one that refutes it where one does."""
        return max(self.of("statement"), key=lambda entry: entry.excess)

    @property
    def measured(self) -> float:
        """Left side of the deciding measurement."""
        return self.deciding.measured

    @property
    def bound(self) -> float:
        """Right side of the deciding measurement."""
        return self.deciding.bound

    @property
    def summary(self) -> str:
        """One line: what decides, what mends and what is suggested, or what is at fault."""
        if self.faults:
            return "DISAGREES: " + "; ".join(self.faults)
        told = (self.deciding, *self.of("correction")[:1], *self.of("suggests"))
        return "; ".join(str(entry) for entry in told)

    def __str__(self) -> str:
        return f"{self.claim.id} [{self.claim.status}] {self.summary}"

    def __repr__(self) -> str:
        return f"Evidence({self})"
