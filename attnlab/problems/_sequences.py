"""Whole-sequence data: tokenized mixtures, planted teachers, Gaussian regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, Rng
from attnlab.problems._records import SequenceProblem, source
from attnlab.problems._sphere import unit


@source
@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    r"""The tokenized mixture behind `tokenized_mixture`: its patterns and its noise.

    Args:
        mu: the patterns $\mu_+,\mu_-$ of the two labels, shape ``(2, d)``.
        nu: the irrelevant patterns $\nu_1,\dots,\nu_M$, shape ``(M, d)``.
        T: tokens in a sample.
        relevant: how many tokens carry the label, $\zeta T$.
        sigma: size of the noise on the irrelevant tokens.
        lead: leading axes.

    Returns:
        A source: ``draw(n, rng)`` gives a `SequenceProblem`.

    Examples:
        >>> from attnlab import problems
        >>> problems.tokenized_mixture(n=3, rng=0).source.mu.tolist()
        [[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]

    Reference: multihead, Section 5, model DM1 and Assumption 3.
    """

    mu: Array
    nu: Array
    T: int
    relevant: int
    sigma: float
    lead: tuple[int, ...] = ()

    def __repr__(self) -> str:
        M, d = self.nu.shape
        return f"Mixture(T={self.T}, d={d}, M={M}, relevant={self.relevant}, sigma={self.sigma:g})"

    def trial(self, index: Any) -> Mixture:
        """The source of some of the trials."""
        return replace(self, lead=np.empty(self.lead)[index].shape)

    def draw(self, n: int, rng: Rng) -> SequenceProblem:
        """``n`` new samples a trial; the relevant positions are drawn for each sample."""
        rng, rows = check.generator(rng), (*self.lead, n)
        y = rng.choice((-1.0, 1.0), size=rows)
        rank = rng.random((*rows, self.T)).argsort(axis=-1)
        marked = rank < self.relevant
        pattern = self.nu[rng.integers(len(self.nu), size=(*rows, self.T))]
        noise = self.sigma * rng.standard_normal(pattern.shape)
        plus, minus = self.mu
        label = np.where(y[..., None] > 0, plus, minus)[..., None, :]
        X = np.where(marked[..., None], label, pattern + noise)
        return SequenceProblem(check.seal(X), check.seal(y), relevant=marked, source=self)


def tokenized_mixture(
    *,
    n: int,
    T: int = 10,
    d: int = 4,
    M: int = 2,
    S: float = 2.0,
    zeta: float = 0.1,
    sigma: float = 0.1,
    trials: int | tuple[int, ...] | None = None,
    rng: Rng,
) -> SequenceProblem:
    r"""Model DM1: a share $\zeta$ of the tokens carries the label's pattern, the rest distracts.

    Relevant tokens are exactly $\mu_y$; the others are $\nu_j+z$ with $j$ uniform on $[M]$ and
    $z\sim\mathcal N(0,\sigma^2I)$. All patterns are orthogonal with length $S$ (the first basis
    vectors, as in the paper's experiments); the relevant set is drawn for each sample.

    Args:
        n: samples in a trial.
        T: tokens in a sample.
        d: features, at least ``M + 2``.
        M: number of irrelevant patterns.
        S: length of the patterns.
        zeta: share of relevant tokens; ``zeta * T`` must be a whole number.
        sigma: noise on the irrelevant tokens.
        trials: leading axes; None for a single instance.
        rng: seed or generator.

    Returns:
        A `SequenceProblem` with ``relevant`` and the `Mixture` as ``source``.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.tokenized_mixture(n=100, rng=0)
        >>> p, int(p.relevant.sum())
        (SequenceProblem(n=100, T=10, d=4), 100)

    Reference: multihead, Section 5, model DM1 (Figures 2 and 3).
    """
    n, T, M = check.count("n", n), check.count("T", T, 2), check.count("M", M)
    d = check.count("d", d, M + 2)
    S, sigma = check.number("S", S, above=0.0), check.number("sigma", sigma, least=0.0)
    share = check.number("zeta", zeta, above=0.0, below=1.0) * T
    relevant = round(share)
    if relevant < 1 or abs(share - relevant) > 1e-9:
        raise check.fail("zeta", f"a share whose multiple zeta * T is whole (T = {T})", zeta)
    patterns = check.seal(S * np.eye(M + 2, d))
    lead = check.trials_shape(trials)
    return Mixture(patterns[:2], patterns[2:], T, relevant, sigma, lead).draw(n, rng)


@source
@dataclass(frozen=True, eq=False, repr=False)
class Teacher:
    r"""The planted one-head network behind `planted`.

    Labels are $\mathrm{sign}\langle U,\varphi(XW^\top X^\top)X\rangle$; samples on which the
    teacher's output is at most ``margin`` in size are dropped.

    Args:
        W: attention weights (left index key, right index query), shape ``(..., d, d)``.
        U: projections, shape ``(..., T, d)``, with unit norm.
        margin: least size of the teacher's output.

    Returns:
        A source: ``draw(n, rng)`` gives a `SequenceProblem`; calling it on tokens gives outputs.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.planted(n=50, rng=0)
        >>> bool((abs(p.teacher(p.X)) > 0.2).all()), bool((p.teacher(p.X) * p.y > 0).all())
        (True, True)

    Reference: multihead, Appendix G, model DM2.
    """

    W: Array
    U: Array
    margin: float

    is_teacher: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"Teacher(W {self.W.shape}, U {self.U.shape}, margin={self.margin:g})"

    def trial(self, index: Any) -> Teacher:
        """The teacher of some of the trials."""
        W, U = (check.seal(np.array(array[index])) for array in (self.W, self.U))
        return replace(self, W=W, U=U)

    def __call__(self, X: Array) -> Array:
        """The teacher's output on tokens ``(..., n, T, d)``."""
        logits = X @ self.W.swapaxes(-1, -2)[..., None, :, :] @ X.swapaxes(-1, -2)
        P = np.exp(logits - logits.max(axis=-1, keepdims=True))
        P /= P.sum(axis=-1, keepdims=True)
        return np.asarray((self.U[..., None, :, :] * (P @ X)).sum(axis=(-1, -2)))

    def draw(self, n: int, rng: Rng) -> SequenceProblem:
        """``n`` new samples a trial, beyond the margin."""
        rng, (*lead, T, d) = check.generator(rng), self.U.shape
        total = int(np.prod(lead, dtype=int))
        X, f = np.empty((total, n, T, d)), np.zeros((total, n))
        flat = Teacher(self.W.reshape(total, d, d), self.U.reshape(total, T, d), self.margin)
        bad, rounds = np.ones((total, n), bool), 0
        while bad.any():
            X[bad] = rng.standard_normal((int(bad.sum()), T, d))
            f = flat(X)
            bad, rounds = np.abs(f) <= self.margin, rounds + 1
            if rounds > 1000:
                raise check.fail("margin", "a margin that random samples reach", f"{self.margin:g}")
        y = np.sign(f).reshape(*lead, n)
        return SequenceProblem(check.seal(X.reshape(*lead, n, T, d)), check.seal(y), source=self)


def planted(
    *,
    n: int,
    T: int = 10,
    d: int = 5,
    margin: float = 0.2,
    trials: int | tuple[int, ...] | None = None,
    rng: Rng,
) -> SequenceProblem:
    r"""Model DM2: Gaussian tokens labelled by a planted attention head.

    $W^*$ has standard normal entries and $\|U^*\|_F=1$, the reading under which 0.2 is the
    planted normalised margin and about 83 % of samples pass the filter (the paper leaves both
    laws open).

    Args:
        n: samples in a trial.
        T: tokens in a sample.
        d: features in a token.
        margin: samples with a teacher output of at most this size are dropped.
        trials: leading axes; None for a single instance.
        rng: seed or generator.

    Returns:
        A `SequenceProblem` with ``teacher``; ``fresh`` labels new samples by the same teacher.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.planted(n=1000, rng=0)
        >>> p, p.fresh(n=3000, rng=1)
        (SequenceProblem(n=1000, T=10, d=5), SequenceProblem(n=3000, T=10, d=5))

    Reference: multihead, Appendix G, model DM2 (Figures 4 and 5).
    """
    rng = check.generator(rng)
    n, T, d = check.count("n", n), check.count("T", T), check.count("d", d)
    margin = check.number("margin", margin, least=0.0)
    lead = check.trials_shape(trials)
    W = check.seal(rng.standard_normal((*lead, d, d)))
    U = unit(rng, *lead, T * d).reshape(*lead, T, d)
    return Teacher(W, check.seal(U), margin).draw(n, rng)


@source
@dataclass(frozen=True, eq=False)
class RegressionSource:
    """Gaussian tokens and independent Gaussian targets."""

    T: int
    d: int
    unit_tokens: bool
    lead: tuple[int, ...] = ()

    def trial(self, index: Any) -> RegressionSource:
        """The source of some of the trials."""
        return replace(self, lead=np.empty(self.lead)[index].shape)

    def draw(self, n: int, rng: Rng) -> SequenceProblem:
        """``n`` new samples a trial."""
        rng, size = check.generator(rng), (*self.lead, n, self.T, self.d)
        X = unit(rng, *size) if self.unit_tokens else rng.standard_normal(size)
        return SequenceProblem(
            check.seal(X), check.seal(rng.standard_normal((*self.lead, n))), source=self
        )


def gaussian_regression(
    *,
    n: int,
    T: int,
    d: int,
    unit_tokens: bool = False,
    trials: int | tuple[int, ...] | None = None,
    rng: Rng,
) -> SequenceProblem:
    r"""Gaussian tokens with independent targets $y\sim\mathcal N(0,1)$.

    Args:
        n: samples in a trial.
        T: tokens in a sample ($d_s$ in the encoder paper).
        d: features in a token.
        unit_tokens: scale every token to length 1 ($C_x=1$); without it step 1 diverges.
        trials: leading axes; None for a single instance.
        rng: seed or generator.

    Returns:
        A `SequenceProblem` with real targets.

    Examples:
        >>> from attnlab import problems
        >>> problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=True, rng=0)
        SequenceProblem(n=100, T=10, d=100)

    Reference: encoder, Section 5.1 (Figures 2, 5 and 9).
    """
    n, T, d = check.count("n", n), check.count("T", T), check.count("d", d)
    lead = check.trials_shape(trials)
    return RegressionSource(T, d, check.flag("unit_tokens", unit_tokens), lead).draw(n, rng)
