"""The two kinds of problem: a query that looks at tokens, and a sequence that looks at itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray, Rng

Made = TypeVar("Made")
Kind = TypeVar("Kind")


class Source(Protocol):
    """What a problem was drawn from: more of the same can be drawn from it."""

    def draw(self, n: int, rng: Rng) -> Any:
        """``n`` new samples of the same law (one set for each trial)."""

    def trial(self, index: Any) -> Source:
        """The source of some of the trials."""


_SOURCES: dict[str, type] = {}


def source(kind: type[Kind]) -> type[Kind]:
    r"""Register a kind of source, so that runs on its problems can be saved and read.

    Args:
        kind: a frozen dataclass with ``draw`` and ``trial`` (`Source`), used as a decorator.

    Returns:
        The class itself.

    Examples:
        >>> from dataclasses import dataclass
        >>> import numpy as np
        >>> from attnlab import problems
        >>> @problems.source
        ... @dataclass(frozen=True)
        ... class Flips:
        ...     T: int
        ...
        ...     def trial(self, index):
        ...         return self
        ...
        ...     def draw(self, n, rng):
        ...         X = np.random.default_rng(rng).choice((-1.0, 1.0), size=(n, self.T, 1))
        ...         return problems.SequenceProblem(X, X[:, 0, 0], source=self)
        >>> Flips(T=3).draw(4, rng=0).fresh(n=9, rng=1)
        SequenceProblem(n=9, T=3, d=1)
    """
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise check.fail("kind", "a dataclass", kind)
    known = _SOURCES.get(kind.__name__, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise check.fail("kind", "a name not yet taken", kind.__name__)
    _SOURCES[kind.__name__] = kind
    return kind


def sources() -> dict[str, type]:
    """Every registered kind of source by name: what a file of a run may ask for.

    Returns:
        A dict of classes.

    Examples:
        >>> from attnlab import problems
        >>> "Mixture" in problems.sources()
        True
    """
    return dict(_SOURCES)


class _Record:
    """What the two records share; arrays are read-only, records compare by identity."""

    X: Array
    source: Source | None

    @property
    def trials(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.X.shape[:-3]

    @property
    def n(self) -> int:
        """Samples in a trial."""
        return int(self.X.shape[-3])

    @property
    def T(self) -> int:
        """Tokens in a sample."""
        return int(self.X.shape[-2])

    @property
    def d(self) -> int:
        """Features in a token."""
        return int(self.X.shape[-1])

    def fresh(self, n: int, *, rng: Rng) -> Self:
        """New samples from the same source (same head, teacher or mixture), ``n`` a trial."""
        if self.source is None:
            raise check.fail("fresh", "a problem that was drawn from a source", "one made by hand")
        made: Self = self.source.draw(check.count("n", n), check.generator(rng, "fresh"))
        return made

    def trial(self, index: Any) -> Self:
        """The trials selected by ``index`` along the leading axes, as a problem of their own."""
        if not self.trials:
            raise check.fail("trial", "a problem with leading axes", repr(self))
        picked = {}
        for entry in fields(self):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            # a sequence index is one for all trials; everything else carries the leading axes
            if isinstance(value, np.ndarray) and entry.name != "sequence_index":
                picked[entry.name] = check.seal(np.array(value[index]))
        source = None if self.source is None else self.source.trial(index)
        return replace(self, **picked, source=source)  # type: ignore[type-var]

    def memo(self, key: str, build: Callable[[], Made]) -> Made:
        """Keep what is derived from this record alone (a Gram matrix, a padded copy)."""
        store: dict[str, Any] = self.__dict__.setdefault("_memo", {})
        if key not in store:
            store[key] = build()
        found: Made = store[key]
        return found

    def __repr__(self) -> str:
        lead = f"trials={self.trials}, " if self.trials else ""
        return f"{type(self).__name__}({lead}n={self.n}, T={self.T}, d={self.d})"


@dataclass(frozen=True, eq=False, repr=False)
class TokenProblem(_Record):
    r"""Samples in which one query attends to the tokens of one sequence.

    Sample $i$ has tokens $x_{i1},\dots,x_{iT}$ (rows of $X_i$), a query $z_i$ and a label $y_i$;
    the head $v$ gives each token its score $\gamma_{it}=y_i\,v^\top x_{it}$, and
    $\mathrm{opt}_i=\arg\max_t\gamma_{it}$.

    Args:
        X: tokens, shape ``(..., n, T, d)`` with ``n >= 1`` and ``T >= 2``.
        z: queries, shape ``(..., n, d)``.
        y: labels, shape ``(..., n)``.
        v: linear head, shape ``(..., d)``.
        mask: which tokens may be attended to, boolean ``(..., n, T)``; None allows all.
        sequence_index: for rows that are positions of longer sequences, the sequence of each
            row, shape ``(n,)``.
        relevant: the tokens that the generator calls relevant, boolean ``(..., n, T)``.
        source: what the samples were drawn from.

    Returns:
        A frozen record; its arrays are read-only.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> p = problems.TokenProblem(
        ...     X=[[[1.0, 0.0], [0.0, 1.0]]], z=[[1.0, 1.0]], y=[1.0], v=[0.0, 2.0])
        >>> p, p.scores.tolist(), p.optimal.tolist()
        (TokenProblem(n=1, T=2, d=2), [[0.0, 2.0]], [1])

    Reference: svm, equation 2 and Definition 1; bias, equation 1 and Definition 1.
    """

    X: Array
    z: Array
    y: Array
    v: Array
    mask: BoolArray | None = None
    sequence_index: IntArray | None = None
    relevant: BoolArray | None = None
    source: Source | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        X = check.frozen("X", self.X, ndim=3)
        *lead, n, T, d = X.shape
        if n < 1 or d < 1:
            raise check.fail("X", "at least one sample and one feature", f"shape {X.shape}")
        if T < 2:
            raise check.fail("X", "T >= 2 tokens to choose from", f"T = {T} in shape {X.shape}")
        rows, store = (*lead, n), object.__setattr__
        store(self, "X", X)
        for name, expected in (("z", (*rows, d)), ("y", rows), ("v", (*lead, d))):
            array = check.frozen(name, getattr(self, name))
            check.shape(name, array, expected, f"to fit X of shape {X.shape}")
            store(self, name, array)
        for name in ("mask", "relevant"):
            store(self, name, _tokens_mask(name, getattr(self, name), (*rows, T)))
        if self.sequence_index is not None:
            index = np.array(self.sequence_index)
            if index.dtype.kind not in "iu":
                raise check.fail("sequence_index", "whole numbers", f"dtype {index.dtype}")
            check.shape("sequence_index", index, (n,), "one entry for each row")
            store(self, "sequence_index", check.seal(index.astype(np.int64)))

    @cached_property
    def scores(self) -> Array:
        r"""$\gamma_{it}=y_i\,v^\top x_{it}$, shape ``(..., n, T)``."""
        raw = (self.X @ self.v[..., None, :, None])[..., 0]
        return check.seal(self.y[..., None] * raw)

    @cached_property
    def optimal(self) -> IntArray:
        r"""$\mathrm{opt}_i=\arg\max_t\gamma_{it}$ over the tokens that may be attended to."""
        scores = self.scores if self.mask is None else np.where(self.mask, self.scores, -np.inf)
        return check.seal(scores.argmax(axis=-1))

    @cached_property
    def allowed(self) -> BoolArray:
        """Tokens that may be attended to, boolean ``(..., n, T)``: the mask, or all of them."""
        if self.mask is not None:
            return self.mask
        return check.seal(np.ones(self.X.shape[:-1], bool))

    @cached_property
    def best(self) -> Array:
        r"""$\gamma_{i\,\mathrm{opt}_i}$, the score of the optimal token, shape ``(..., n)``."""
        picked = np.take_along_axis(self.scores, self.optimal[..., None], axis=-1)
        return check.seal(np.ascontiguousarray(picked[..., 0]))


def selection(problem: TokenProblem, tokens: Any = None) -> IntArray:
    r"""A selection of one token a sample, checked: whole numbers in range that the mask allows.

    Args:
        problem: the data.
        tokens: the selection $\alpha$ ``(..., n)``; None for the optimal tokens.

    Returns:
        The selected tokens, integers ``(..., n)``.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.TokenProblem(
        ...     X=[[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]], z=[[1.0, 1.0]], y=[1.0], v=[0.0, 2.0],
        ...     mask=[[True, True, False]])
        >>> problems.selection(p).tolist(), problems.selection(p, [0]).tolist()
        ([1], [0])
        >>> problems.selection(p, [2])
        Traceback (most recent call last):
        ValueError: tokens: expected tokens that the mask allows, got a masked token

    Reference: svm, Section 2.1.
    """
    if not isinstance(problem, TokenProblem):
        raise check.fail("problem", "a TokenProblem", type(problem).__name__)
    if tokens is None:
        return problem.optimal
    alpha = np.asarray(tokens)
    if alpha.dtype.kind not in "iu":
        raise check.fail("tokens", "whole numbers", f"dtype {alpha.dtype}")
    check.shape("tokens", alpha, (*problem.trials, problem.n), "one token a sample")
    if alpha.min() < 0 or alpha.max() >= problem.T:
        odd = int(alpha.min() if alpha.min() < 0 else alpha.max())
        raise check.fail("tokens", f"tokens from 0 to {problem.T - 1}", odd)
    if not np.take_along_axis(problem.allowed, alpha[..., None], axis=-1).all():
        raise check.fail("tokens", "tokens that the mask allows", "a masked token")
    return alpha.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class SequenceProblem(_Record):
    r"""Whole sequences with one label each: every token of $X_i$ is a query.

    Args:
        X: tokens, shape ``(..., n, T, d)``.
        y: labels or real targets, shape ``(..., n)``.
        relevant: the tokens that carry the label, boolean ``(..., n, T)``, where known.
        source: what the samples were drawn from: the mixture, or the teacher.

    Returns:
        A frozen record; its arrays are read-only.

    Examples:
        >>> from attnlab import problems
        >>> problems.SequenceProblem(X=[[[1.0, 0.0], [0.0, 1.0]]], y=[1.0])
        SequenceProblem(n=1, T=2, d=2)

    Reference: multihead, Section 2; encoder, Section 3.
    """

    X: Array
    y: Array
    relevant: BoolArray | None = None
    source: Source | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        X = check.frozen("X", self.X, ndim=3)
        if min(X.shape[-3:]) < 1:
            raise check.fail("X", "at least one sample, token and feature", f"shape {X.shape}")
        y = check.frozen("y", self.y)
        check.shape("y", y, X.shape[:-2], f"to fit X of shape {X.shape}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        relevant = _tokens_mask("relevant", self.relevant, X.shape[:-1])
        object.__setattr__(self, "relevant", relevant)

    @property
    def teacher(self) -> Any:
        """The planted network behind the labels, None where there is none."""
        return self.source if getattr(self.source, "is_teacher", False) else None


def _tokens_mask(name: str, value: object, expected: tuple[int, ...]) -> BoolArray | None:
    """A read-only boolean mask over tokens with at least one token in every row."""
    if value is None:
        return None
    mask = np.array(value)
    if mask.dtype != np.bool_:
        raise check.fail(name, "booleans", f"dtype {mask.dtype}")
    check.shape(name, mask, expected, "one entry for each token")
    if not mask.any(axis=-1).all():
        raise check.fail(name, "at least one True in every row", "a row that selects nothing")
    return check.seal(mask)
