"""The ledger: every claim by its id, in the order of the papers."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable

from attnbook.claims._pages import PAGES
from attnbook.claims._records import EXTRACTION, STATUSES, Check, Claim
from attnlab import checks as check

PAPERS = ("multihead", "encoder", "bias", "svm")
_LEDGER: dict[str, Claim] = {}


def claim(
    id: str,  # noqa: A002  # what the ledger calls it
    number: str,
    words: str,
    statement: str,
    *,
    page: str,
    status: str = "holds",
    instances: int = 100,
    reason: str = "",
    correction: str = "",
    errata: Iterable[str] = (),
    own: bool = False,
    preprint: bool = False,
) -> Callable[[Check], Check]:
    """Enter a statement into the ledger; what is decorated is its check."""
    check.choice("page", page, PAGES)

    def enter(measure: Check) -> Check:
        if id in _LEDGER:
            raise check.fail("id", "an id not yet in the ledger", id)
        _LEDGER[id] = Claim(
            id=id,
            number=number,
            words=words,
            statement=statement,
            status=status,
            measure=measure,
            instances=instances,
            reason=reason,
            correction=correction,
            errata=tuple(errata),
            page=page,
            own=own,
            preprint=preprint,
        )
        return measure

    return enter


def erratum(
    id: str,  # noqa: A002
    where: str,
    words: str,
    *,
    printed: str,
    correct: str,
    page: str,
    status: str = "fails as stated",
    instances: int = 100,
    reason: str = "",
    about: Iterable[str] = (),
    preprint: bool = False,
) -> Callable[[Check], Check]:
    """Enter a slip of the paper: what is printed, what should be read, the number that shows it."""
    return claim(
        id,
        where,
        words,
        printed,
        page=page,
        status=status,
        instances=instances,
        reason=reason,
        correction=correct,
        errata=about,
        preprint=preprint,
    )


def _load(*papers: str) -> dict[str, Claim]:
    """Papers register when first asked for, so that importing attnlab stays light."""
    wanted = papers or PAPERS
    for paper in wanted:
        importlib.import_module(f"attnbook.claims.{paper}")
    order = {paper: place for place, paper in enumerate(PAPERS)}
    found = [item for item in _LEDGER.items() if item[1].paper in wanted]
    return dict(sorted(found, key=lambda item: (order[item[1].paper], item[1].kind == "erratum")))


def all(*, paper: str | None = None, kind: str | None = None) -> list[Claim]:  # noqa: A001
    r"""Every numbered statement of the four papers, and every erratum, in the papers' order.

    Args:
        paper: ``multihead``, ``encoder``, ``bias`` or ``svm``; all four unless told.
        kind: such as ``theorem``, ``lemma`` or ``erratum``; all unless told.

    Returns:
        A list of `Claim`.

    Examples:
        >>> from attnbook import claims
        >>> len(claims.all(paper="svm", kind="theorem"))
        10

    Reference: the four papers.
    """
    papers = PAPERS if paper is None else (check.choice("paper", paper, PAPERS),)
    found = list(_load(*papers).values())
    if kind is not None:
        check.choice("kind", kind, sorted({entry.kind for entry in found}))
        found = [entry for entry in found if entry.kind == kind]
    return found


def get(id: str) -> Claim:  # noqa: A002
    r"""A claim by its id.

    Args:
        id: such as ``svm.theorem-1``, ``bias.lemma-4`` or ``multihead.erratum-14``.

    Returns:
        The `Claim`.

    Examples:
        >>> from attnbook import claims
        >>> claims.get("svm.theorem-1").number
        'Theorem 1'
        >>> claims.get("svm.teorem-1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: id: expected a claim of the ledger, such as 'svm.theorem-1', ...

    Reference: the four papers.
    """
    paper = id.split(".")[0] if isinstance(id, str) else ""
    ledger = _load(paper) if paper in PAPERS else {}
    if id in ledger:
        return ledger[id]
    raise unknown("id", id, _load())


def select(*names: str) -> list[Claim]:
    r"""Claims by paper, by kind, or by id, in the order of the ledger.

    Args:
        names: papers (``svm``), kinds of a paper (``svm.lemma``) or ids; all claims where none.

    Returns:
        A list of `Claim` without repetition.

    Examples:
        >>> from attnbook import claims
        >>> [claim.id for claim in claims.select("svm.corollary", "bias.lemma-4")]
        ['bias.lemma-4', 'svm.corollary-1', 'svm.corollary-2']

    Reference: the four papers.
    """
    ledger = _load()
    if not names:
        return list(ledger.values())
    wanted: set[str] = set()
    for name in names:
        hits = {
            entry.id
            for entry in ledger.values()
            if name in (entry.id, entry.paper, f"{entry.paper}.{entry.kind}")
        }
        if not hits:
            raise unknown("name", name, ledger)
        wanted |= hits
    return [entry for entry in ledger.values() if entry.id in wanted]


def counts(chosen: Iterable[Claim]) -> dict[str, dict[str, int]]:
    r"""How many claims have which status: each paper's statements, the book's own, the errata.

    Args:
        chosen: claims, such as `all` or `select` give.

    Returns:
        Numbers by group (such as ``svm, statements``) and status; groups that are empty are left
        out. Errata of a superseded preprint are a group of their own.

    Examples:
        >>> from attnbook import claims
        >>> found = claims.counts(claims.all(paper="encoder"))
        >>> list(found)
        ['encoder, statements', 'encoder, the book\'s own', 'encoder, errata']
        >>> found["encoder, the book's own"]["holds"]
        5

    Reference: the four papers; statuses are this book's.
    """
    found: dict[str, dict[str, int]] = {}
    for entry in chosen:
        if entry.kind == "erratum":
            group = "errata of the preprint" if entry.preprint else "errata"
        else:
            group = "the book's own" if entry.own else "statements"
        row = found.setdefault(f"{entry.paper}, {group}", dict.fromkeys((*STATUSES, EXTRACTION), 0))
        row[entry.status] += 1
    return found


def unknown(name: str, given: object, ledger: dict[str, Claim]) -> ValueError:
    """The complaint about an unknown claim, with the nearest names."""
    kinds = {f"{entry.paper}.{entry.kind}" for entry in ledger.values()}
    near = difflib.get_close_matches(
        str(given), [*ledger, *sorted(kinds), *PAPERS], n=3, cutoff=0.4
    )
    hint = f", such as {', '.join(map(repr, near))}" if near else ""
    return check.fail(name, f"a claim of the ledger{hint}", repr(given))
