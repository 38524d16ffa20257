"""The ledger: every claim by its id, in the order of the papers, read from one file a paper."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from attnbook.claims._pages import PAGES
from attnbook.claims._records import ERRATA, STATUSES, Claim, Suggestion
from attnlab import checks

ALL = tuple(dict.fromkeys((*STATUSES, *ERRATA)))
PAPERS = ("multihead", "encoder", "bias", "svm")
# an erratum says where it stands, what is printed, what is correct, and what it is about
OF_ERRATA = {"where": "number", "printed": "latex", "correct": "correction", "about": "errata"}


@cache
def ledger(paper: str) -> dict[str, Claim]:
    """A paper's claims by their ids: statements as the paper orders them, then errata."""
    place = resources.files("attnbook.claims").joinpath(paper, "ledger.toml")
    data = tomllib.loads(place.read_text(encoding="utf-8"))
    found: dict[str, Claim] = {}
    for entry in [*data["statement"], *data["erratum"]]:
        claim = _claim(paper, entry)
        if claim.id in found:
            raise checks.fail("id", "an id not yet in the ledger", claim.id)
        found[claim.id] = claim
    return found


def _claim(paper: str, entry: dict[str, Any]) -> Claim:
    """One entry of the file; spaces and line ends are all the same, ids may leave out the paper."""
    given: dict[str, Any] = {}
    for key, value in entry.items():
        name = OF_ERRATA.get(key, key)
        name = "statement" if name == "latex" else name
        given[name] = " ".join(value.split()) if isinstance(value, str) else value
    given.setdefault("status", "fails as stated" if "printed" in entry else "holds")
    for name in ("id", "same_as"):
        if name in given:
            given[name] = _full(paper, given[name])
    given["errata"] = tuple(_full(paper, name) for name in given.get("errata", ()))
    given["turned_by"] = tuple(given.get("turned_by", ()))
    given["hypotheses"] = tuple(" ".join(text.split()) for text in given.get("hypotheses", ()))
    if "suggests" in given:
        said = given["suggests"]
        law = " ".join(said["law"].split())
        given["suggests"] = Suggestion(law, said["fitted"], tuple(said["interval"]))
    checks.choice("page", given["page"], PAGES)
    return Claim(**given)


def _full(paper: str, name: str) -> str:
    return name if "." in name else f"{paper}.{name}"


def _every() -> dict[str, Claim]:
    """All four ledgers as one."""
    return {name: claim for paper in PAPERS for name, claim in ledger(paper).items()}


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
    papers = PAPERS if paper is None else (checks.choice("paper", paper, PAPERS),)
    found = [claim for each in papers for claim in ledger(each).values()]
    if kind is not None:
        checks.choice("kind", kind, sorted({entry.kind for entry in found}))
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
    if paper in PAPERS and id in ledger(paper):
        return ledger(paper)[id]
    raise unknown("id", id, _every())


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
    every = _every()
    if not names:
        return list(every.values())
    wanted: set[str] = set()
    for name in names:
        hits = {
            entry.id
            for entry in every.values()
            if name in (entry.id, entry.paper, f"{entry.paper}.{entry.kind}")
        }
        if not hits:
            raise unknown("name", name, every)
        wanted |= hits
    return [entry for entry in every.values() if entry.id in wanted]


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
        ['encoder, statements', "encoder, the book's own", 'encoder, errata']
        >>> found["encoder, the book's own"]["holds"]
        6

    Reference: the four papers; statuses are this book's.
    """
    found: dict[str, dict[str, int]] = {}
    for entry in chosen:
        if entry.kind == "erratum":
            group = "errata of the preprint" if entry.preprint else "errata"
        else:
            group = "the book's own" if entry.own else "statements"
        row = found.setdefault(f"{entry.paper}, {group}", dict.fromkeys(ALL, 0))
        row[entry.status] += 1
    return found


def unknown(name: str, given: object, every: dict[str, Claim]) -> ValueError:
    """The complaint about an unknown claim, with the nearest names."""
    kinds = {f"{entry.paper}.{entry.kind}" for entry in every.values()}
    near = difflib.get_close_matches(str(given), [*every, *sorted(kinds), *PAPERS], n=3, cutoff=0.4)
    hint = f", such as {', '.join(map(repr, near))}" if near else ""
    return checks.fail(name, f"a claim of the ledger{hint}", repr(given))
