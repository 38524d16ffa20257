"""The random instances of the svm paper: tokens, queries and head uniform on the sphere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, Rng
from attnlab.problems._records import TokenProblem, source


def unit(rng: np.random.Generator, *size: int) -> Array:
    """Vectors uniform on the unit sphere, along the last axis."""
    x = rng.standard_normal(size)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return x


@source
@dataclass(frozen=True, eq=False)
class SphereSource:
    """Sequences on the sphere for a fixed head; ``kind`` says what a row of the problem is."""

    v: Array
    T: int
    min_gap: float
    self_attention: bool
    kind: str  # "single": one query a sequence | "sequence": one a position | "causal"

    def trial(self, index: Any) -> SphereSource:
        """The source of some of the trials."""
        return replace(self, v=check.seal(np.array(self.v[index])))

    def draw(self, n: int, rng: Rng) -> TokenProblem:
        """``n`` new sequences a trial; a sequence whose score gap is too small is redrawn.

        Given the head, sequences are independent, and by symmetry the law of the head does not
        depend on the gap: redrawing single sequences has the law of redrawing whole instances.
        """
        rng, (*lead, d), T = check.generator(rng), self.v.shape, self.T
        K = 1 if self.kind == "single" else T
        allowed = np.tril(np.ones((T, T), bool)) if self.kind == "causal" else np.ones((K, T), bool)
        total = int(np.prod(lead, dtype=int)) * n
        heads = np.broadcast_to(self.v[..., None, :], (*lead, n, d)).reshape(total, d)
        X, z = np.empty((total, T, d)), np.empty((total, K, d))
        y = np.empty((total, K))
        todo, drawn = np.arange(total), 0
        while todo.size:
            X[todo] = unit(rng, todo.size, T, d)
            y[todo] = rng.choice((-1.0, 1.0), size=(todo.size, K))
            drawn += todo.size
            gaps = _gap(y[todo], (X[todo] @ heads[todo, :, None])[..., 0], allowed)
            todo = todo[gaps < self.min_gap]
            if drawn > 2000 * total and todo.size:
                share = (total - todo.size) / drawn
                raise check.fail(
                    "min_gap",
                    "a gap that random sequences reach",
                    f"{self.min_gap:g}, reached by a share of {share:.1g} of {drawn} draws",
                )
        z[...] = X[:, :K] if self.self_attention else unit(rng, total, K, d)
        if self.kind == "single":
            return TokenProblem(
                check.seal(X.reshape(*lead, n, T, d)),
                check.seal(z.reshape(*lead, n, d)),
                check.seal(y.reshape(*lead, n)),
                self.v,
                source=self,
            )
        X = np.repeat(X, K, axis=0).reshape(*lead, n * K, T, d)
        mask = np.tile(allowed, (total, 1)).reshape(*lead, n * K, T)
        return TokenProblem(
            check.seal(X),
            check.seal(z.reshape(*lead, n * K, d)),
            check.seal(y.reshape(*lead, n * K)),
            self.v,
            mask=mask if self.kind == "causal" else None,
            sequence_index=np.repeat(np.arange(n), K),
            source=self,
        )


def _gap(y: Array, projections: Array, allowed: BoolArray) -> Array:
    """Smallest lead of the best score over the second best, over the positions of a sequence."""
    scores = np.where(allowed, y[..., None] * projections[:, None, :], -np.inf)
    top = np.sort(scores, axis=-1)[..., -2:]
    return np.asarray((top[..., 1] - top[..., 0]).min(axis=-1))


def _draw(
    kind: str,
    n: int,
    T: int,
    d: int,
    trials: object,
    min_gap: float,
    self_attention: bool,
    rng: Rng,
) -> TokenProblem:
    rng = check.generator(rng)
    n, T, d = check.count("n", n), check.count("T", T, 2), check.count("d", d)
    gap = check.number("min_gap", min_gap, least=0.0, below=2.0)
    v = check.seal(unit(rng, *check.trials_shape(trials), d))
    return SphereSource(v, T, gap, check.flag("self_attention", self_attention), kind).draw(n, rng)


def sphere(
    *,
    n: int,
    T: int,
    d: int,
    trials: int | tuple[int, ...] | None = None,
    min_gap: float = 0.0,
    self_attention: bool = False,
    rng: Rng,
) -> TokenProblem:
    r"""Tokens, queries and head uniform on the unit sphere of $\mathbb R^d$, labels fair signs.

    Args:
        n: samples in a trial.
        T: tokens in a sample, at least 2.
        d: features in a token.
        trials: leading axes; None for a single instance.
        min_gap: sequences are redrawn until the best score $\gamma_{i\,\mathrm{opt}_i}$ leads
            the second best by at least this much.
        self_attention: take the first token as the query, $z_i=x_{i1}$.
        rng: seed or generator.

    Returns:
        A `TokenProblem`; ``fresh`` draws new sequences for the same heads.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.sphere(n=5, T=5, d=8, trials=100, min_gap=0.1, rng=0)
        >>> p
        TokenProblem(trials=(100,), n=5, T=5, d=8)
        >>> p.X.shape, p.z.shape, p.y.shape, p.v.shape, p.optimal.shape
        ((100, 5, 5, 8), (100, 5, 8), (100, 5), (100, 8), (100, 5))

    Reference: svm, Section 5.1 and Appendix F (Figures 2 and 4 to 8).
    """
    return _draw("single", n, T, d, trials, min_gap, self_attention, rng)


def sequence(
    *,
    n: int,
    T: int,
    d: int,
    trials: int | tuple[int, ...] | None = None,
    min_gap: float = 0.0,
    self_attention: bool = True,
    rng: Rng,
) -> TokenProblem:
    r"""Sequence-to-sequence attention: a query and a label for every position.

    Row $(i,k)$ of the result asks position $k$ of sequence $i$: its tokens are $X_i$, its query
    $z_{ik}$ (the token $x_{ik}$ in self-attention), its label $y_{ik}$.

    Args:
        n: sequences in a trial; the problem has ``n * T`` rows.
        T: positions, and tokens, of a sequence.
        d: features in a token.
        trials: leading axes; None for a single instance.
        min_gap: least lead of the best score at every position.
        self_attention: queries are the tokens themselves; False draws them on the sphere.
        rng: seed or generator.

    Returns:
        A `TokenProblem` whose ``sequence_index`` names the sequence of each row.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.sequence(n=2, T=3, d=4, rng=0)
        >>> p, p.sequence_index.tolist()
        (TokenProblem(n=6, T=3, d=4), [0, 0, 0, 1, 1, 1])

    Reference: svm, Section 7, equation 10.
    """
    return _draw("sequence", n, T, d, trials, min_gap, self_attention, rng)


def causal(
    *,
    n: int,
    T: int,
    d: int,
    trials: int | tuple[int, ...] | None = None,
    min_gap: float = 0.0,
    self_attention: bool = True,
    rng: Rng,
) -> TokenProblem:
    r"""Causal sequence-to-sequence attention: position $k$ sees the tokens $1,\dots,k$.

    Args:
        n: sequences in a trial; the problem has ``n * T`` rows.
        T: positions, and tokens, of a sequence.
        d: features in a token.
        trials: leading axes; None for a single instance.
        min_gap: least lead of the best visible score at every position that sees two tokens.
        self_attention: queries are the tokens themselves; False draws them on the sphere.
        rng: seed or generator.

    Returns:
        A `TokenProblem` with a ``mask`` and a ``sequence_index``.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.causal(n=1, T=3, d=4, rng=0)
        >>> p.mask.astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]

    Reference: svm, Section 7 (the causal softmax and its constraints).
    """
    return _draw("causal", n, T, d, trials, min_gap, self_attention, rng)
