"""Every figure by its id, in the order of the papers."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attnbook.figures._record import Arrays, Compute, Data, Figure
from attnbook.figures._verdict import Verdict
from attnlab import checks as check

PAPERS = ("multihead", "encoder", "bias", "svm")
_FIGURES: dict[str, Figure] = {}


def figure(
    id: str,  # noqa: A002  # what the table calls it
    words: str,
    *,
    quick: dict[str, Any],
    paper: dict[str, Any],
    arrays: dict[str, str],
    paint: Callable[[Data, Any], None],
    alt: Callable[[Data], str],
    status: str = "",
    reading: str = "",
    grid: Iterable[str] = (),
    cells: Callable[[Mapping[str, Any]], list[dict[str, Any]]] | None = None,
    finish: Callable[[Mapping[str, Any], Arrays], Arrays] | None = None,
    chunk: int = 25,
    claims: Iterable[str] = (),
    size: tuple[float, float] = (7.0, 4.0),
    needs: str = "",
    stand_in: str = "",
    verdict: Callable[[Data], Verdict] | None = None,
    stored: bool = False,
    no_draws: Iterable[str] = (),
) -> Callable[[Compute], Compute]:
    """Enter a figure; what is decorated computes one piece of it.

    An id with a word instead of the paper's number, such as ``svm.real``, is the book's own.
    """

    def enter(compute: Compute) -> Compute:
        if id in _FIGURES:
            raise check.fail("id", "an id not yet taken", id)
        _FIGURES[id] = Figure(
            id=id,
            number=f"Figure {_tail(id)}" if _tail(id).isdigit() else "the book's own",
            words=words,
            status=status or ("reproduced" if verdict is None else "measured"),
            reading=reading,
            quick=quick,
            paper=paper,
            arrays=arrays,
            compute=compute,
            grid=tuple(grid),
            cells=cells,
            finish=finish,
            paint=paint,
            alt=alt,
            chunk=chunk,
            claims=tuple(claims),
            size=size,
            needs=needs,
            stand_in=stand_in,
            verdict=verdict,
            stored=stored,
            no_draws=tuple(no_draws),
        )
        return compute

    return enter


def _tail(name: str) -> str:
    return name.split(".")[1]


def _load(*papers: str) -> dict[str, Figure]:
    """Papers register when first asked for, so that importing attnlab stays light."""
    wanted = papers or PAPERS
    for paper in wanted:
        importlib.import_module(f"attnbook.figures.{paper}")

    def place(name: str) -> tuple[int, int, str]:
        paper, number = name.split(".")
        return PAPERS.index(paper), int(number) if number.isdigit() else 1000, number

    found = [name for name in _FIGURES if name.split(".")[0] in wanted]
    return {name: _FIGURES[name] for name in sorted(found, key=place)}


def all(*, paper: str | None = None, own: bool = False) -> list[Figure]:  # noqa: A001
    r"""Every figure that can be computed, in the papers' order.

    Args:
        paper: ``multihead``, ``encoder``, ``bias`` or ``svm``; all four unless told.
        own: whether the book's own measurements, such as ``svm.real``, are among them.

    Returns:
        A list of `Figure`.

    Examples:
        >>> from attnbook import figures
        >>> [figure.id for figure in figures.all(paper="bias") if not figure.needs]
        ['bias.2', 'bias.3', 'bias.5', 'bias.8']

    Reference: the four papers.
    """
    found = _load() if paper is None else _load(check.choice("paper", paper, PAPERS))
    return [figure for name, figure in found.items() if own or _tail(name).isdigit()]


def get(id: str) -> Figure:  # noqa: A002
    r"""A figure by its id.

    Args:
        id: such as ``svm.5`` or ``bias.2``.

    Returns:
        The `Figure`.

    Examples:
        >>> from attnbook import figures
        >>> figures.get("svm.5").number
        'Figure 5'
        >>> figures.get("smv.5")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: id: expected a figure, such as 'svm.5', ...

    Reference: the four papers.
    """
    paper = id.split(".")[0] if isinstance(id, str) else ""
    known = _load(paper) if paper in PAPERS else {}
    if id in known:
        return known[id]
    every = list(_load())
    near = difflib.get_close_matches(str(id), every, n=3, cutoff=0.3) or every[:3]
    raise check.fail("id", f"a figure, such as {', '.join(map(repr, near))}", repr(id))
