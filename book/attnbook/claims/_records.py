"""A claim of a paper, and the evidence for or against it."""

from __future__ import annotations

from dataclasses import dataclass

from attnbook.claims._checks import check_of
from attnbook.claims._measure import Measurement
from attnlab import checks
from attnlab.checks import Rng

# the first is for definitions, assumptions and models, which are neither true nor false
STATUSES = ("definition", "holds", "holds with correction", "fails as stated", "out of reach")
EXTRACTION = "may be the extraction's"  # a slip seen only in the text extracted from a PDF
MISPRINT = "misprint"  # a slip of the pen: said, and nothing to measure
ERRATA = ("fails as stated", EXTRACTION, MISPRINT)


@dataclass(frozen=True, eq=False)
class Claim:
    r"""A numbered statement of a paper and what became of it, as the ledger's data say.

    Statuses: ``definition`` (of definitions, assumptions and models: nothing is asserted, and the
    check shows what the data of this book do to it); ``holds``; ``holds with correction`` (a
    constant, an index or a hypothesis must be mended, and the substance stands); ``fails as
    stated`` (a counterexample refutes it); ``out of reach`` (for a reason that is given; what can
    be measured is measured all the same). An erratum ``fails as stated``, or is a ``misprint``
    (a slip of the pen: nothing to measure), or ``may be the extraction's``: a glyph that is wrong
    in the text extracted from the PDF and may be right in the paper.

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

    def __post_init__(self) -> None:
        known = ERRATA if self.kind == "erratum" else STATUSES
        checks.choice("status", self.status, known)
        if self.status == "out of reach" and not self.reason:
            raise checks.fail("reason", "why the claim cannot be tested", repr(self.reason))
        if self.status == "holds with correction" and not self.correction:
            raise checks.fail("correction", "what to read instead", repr(self.correction))

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
        return self.status != MISPRINT and not self.same_as

    def check(self, rng: Rng, *, instances: int | None = None) -> Evidence:
        """Draw instances, measure both sides, and say what was found.

        The same seed gives the same evidence, whatever was checked before.
        """
        if not self.has_check:
            where = f"; {self.same_as} has one" if self.same_as else ""
            raise checks.fail("id", f"a claim with a check of its own{where}", self.id)
        own = check_of(self.id)
        many = own.instances if instances is None else checks.count("instances", instances)
        return Evidence(self, tuple(own.measure(checks.generator(rng), many)))

    def __repr__(self) -> str:
        return f"Claim({self.id}: {self.words}; {self.status})"


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""What a check found.

    Args:
        claim: whose evidence it is.
        measurements: every inequality measured, each at its worst instance.

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
        """Whether the statement as printed survived."""
        return all(entry.holds for entry in self.of("statement"))

    @property
    def corrected(self) -> bool | None:
        """Whether the correction survived; None where there is none."""
        found = self.of("correction")
        return all(entry.holds for entry in found) if found else None

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the evidence does not agree with the recorded status; empty where it does.

        A statement that holds must survive; one that does not must be refuted by a number. The
        correction must survive, wrong steps and dropped hypotheses must show.
        """
        others = [entry for entry in self.measurements if entry.role != "statement"]
        found = [f"unexpected {entry}" for entry in others if not entry.as_expected]
        if self.claim.asserts:
            found += [str(entry) for entry in self.of("statement") if not entry.holds]
        elif self.holds:
            found.append(f"nothing refutes the printed statement: {self.deciding}")
        mended = self.claim.status == "holds with correction" or (
            self.claim.status == "definition" and self.claim.correction
        )
        if mended and self.corrected is None:
            found.append("the correction was not measured")
        return tuple(found)

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
        """One line: the deciding measurement and the correction, or what is at fault."""
        if self.faults:
            return "DISAGREES: " + "; ".join(self.faults)
        return "; ".join(str(entry) for entry in (self.deciding, *self.of("correction")[:1]))

    def __str__(self) -> str:
        return f"{self.claim.id} [{self.claim.status}] {self.summary}"

    def __repr__(self) -> str:
        return f"Evidence({self})"
