"""The datasets of the bias paper: nearly orthogonal tokens, model DM, and two small examples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray, Rng
from attnlab.problems._records import TokenProblem, source
from attnlab.problems._sphere import unit


def _place(T: int, where: IntArray) -> BoolArray:
    """One True in every row of T, at ``where``."""
    return np.asarray(np.arange(T) == where[..., None])


@source
@dataclass(frozen=True, eq=False)
class OrthogonalSource:
    """Example 1 with fixed class means."""

    means: Array  # (2, d): of label +1 and of label -1
    v: Array
    T: int
    rho: float
    sigma: float

    def trial(self, index: Any) -> OrthogonalSource:
        """The source of some of the trials."""
        return replace(self, v=check.seal(np.array(self.v[index])))

    def draw(self, n: int, rng: Rng) -> TokenProblem:
        """``n`` new samples a trial."""
        rng, (*lead, d) = check.generator(rng), self.v.shape
        y = rng.choice((-1.0, 1.0), size=(*lead, n))
        marked = _place(self.T, rng.integers(self.T, size=(*lead, n)))
        spread = np.where(marked, self.sigma, self.rho)[..., None]
        X = spread * rng.standard_normal((*lead, n, self.T, d))
        X[..., np.any(self.means != 0, axis=0)] = 0.0  # noise lives off the span of the means
        plus, minus = self.means
        mean = np.where(y[..., None] > 0, plus, minus)
        X += marked[..., None] * mean[..., None, :]
        return TokenProblem(
            check.seal(X), X[..., 0, :], check.seal(y), self.v, relevant=marked, source=self
        )


def orthogonal(
    *,
    n: int,
    T: int,
    d: int,
    U: float = 1.0,
    rho: float,
    sigma: float = 0.0,
    antipodal: bool = False,
    trials: int | tuple[int, ...] | None = None,
    rng: Rng,
) -> TokenProblem:
    r"""Nearly orthogonal tokens: one carries the label's mean, the others are small noise.

    $x_{\mathrm{opt}}=\mu_y+\nu$ with $\nu\sim\mathcal N(0,\sigma^2\Sigma)$, the other tokens
    $\mathcal N(0,\rho^2\Sigma)$, $\Sigma$ the projection off $\mu_\pm$; opt is uniform, the query
    is the first token, and $v=U^{-2}(\mu_+-\mu_-)$, so that scores are exactly 1 and 0. The law is
    rotation invariant, so the means are taken along the first basis vectors.

    Args:
        n: samples in a trial.
        T: tokens in a sample.
        d: features, at least 3 (2 where antipodal).
        U: length of the means.
        rho: size of the other tokens' noise.
        sigma: size of the optimal token's noise.
        antipodal: $\mu_-=-\mu_+$ (Figure 5), with $v=\mu_+/U^2$.
        trials: leading axes; None for a single instance.
        rng: seed or generator.

    Returns:
        A `TokenProblem` whose ``relevant`` marks the optimal token.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
        >>> sorted(set(p.scores.ravel().tolist()))
        [0.0, 1.0]

    Reference: bias, Example 1 (Figures 2 and 5).
    """
    antipodal = check.flag("antipodal", antipodal)
    n, T, d = check.count("n", n), check.count("T", T, 2), check.count("d", d, 3 - antipodal)
    U = check.number("U", U, above=0.0)
    rho, sigma = check.number("rho", rho, least=0.0), check.number("sigma", sigma, least=0.0)
    means = np.zeros((2, d))
    means[0, 0] = U
    means[1, 0 if antipodal else 1] = -U if antipodal else U
    v = means[0] / U**2 if antipodal else (means[0] - means[1]) / U**2
    heads = np.broadcast_to(v, (*check.trials_shape(trials), d)).copy()
    return OrthogonalSource(check.seal(means), check.seal(heads), T, rho, sigma).draw(n, rng)


@source
@dataclass(frozen=True, eq=False)
class GaussianSource:
    """Model DM with a fixed labelling direction."""

    v: Array
    T: int
    rho: float
    alpha: float

    def trial(self, index: Any) -> GaussianSource:
        """The source of some of the trials."""
        return replace(self, v=check.seal(np.array(self.v[index])))

    def draw(self, n: int, rng: Rng) -> TokenProblem:
        """``n`` new samples a trial."""
        rng, (*lead, d) = check.generator(rng), self.v.shape
        where = rng.integers(self.T, size=(*lead, n))
        marked = _place(self.T, where)
        size = np.where(marked, self.alpha * self.rho, self.rho)[..., None]
        X = size * rng.standard_normal((*lead, n, self.T, d))
        best = np.take_along_axis(X, where[..., None, None], axis=-2)[..., 0, :]
        y = np.where((best @ self.v[..., :, None])[..., 0] >= 0, 1.0, -1.0)
        return TokenProblem(
            check.seal(X), X[..., 0, :], check.seal(y), self.v, relevant=marked, source=self
        )


def gaussian(
    *,
    n: int,
    T: int,
    d: int,
    rho: float,
    alpha: float,
    trials: int | tuple[int, ...] | None = None,
    rng: Rng,
) -> TokenProblem:
    r"""Model DM: one token of each sample is larger and decides the label.

    $x_{\mathrm{opt}}\sim\mathcal N(0,\alpha^2\rho^2I)$, the others $\mathcal N(0,\rho^2I)$,
    $y=\mathrm{sign}(u_*^\top x_{\mathrm{opt}})$ for a unit vector $u_*$ (the paper says only that
    it is fixed), which is the problem's ``v``; the query is the first token. ``relevant`` marks
    opt. Under $u_*$ another token may score higher by chance, so ``optimal`` can differ.

    Args:
        n: samples in a trial.
        T: tokens in a sample.
        d: features in a token.
        rho: size of the ordinary tokens.
        alpha: how much larger the deciding token is, above 1.
        trials: leading axes; None for a single instance.
        rng: seed or generator.

    Returns:
        A `TokenProblem` with ``relevant``.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems
        >>> p = problems.gaussian(n=1000, T=2, d=100, rho=0.1, alpha=3.0, rng=0)
        >>> norms = np.linalg.norm(p.X, axis=-1)
        >>> print(norms[p.relevant].mean().round(1), norms[~p.relevant].mean().round(1))
        3.0 1.0

    Reference: bias, Section 4.1, model DM (Figure 3).
    """
    rng = check.generator(rng)
    n, T, d = check.count("n", n), check.count("T", T, 2), check.count("d", d)
    rho, alpha = check.number("rho", rho, above=0.0), check.number("alpha", alpha, above=1.0)
    v = check.seal(unit(rng, *check.trials_shape(trials), d))
    return GaussianSource(v, T, rho, alpha).draw(n, rng)


def bad_direction() -> TokenProblem:
    r"""Two samples of two tokens for which a large start in the wrong direction never recovers.

    Returns:
        A single `TokenProblem` with $n=d=T=2$ and the first token as query.

    Examples:
        >>> from attnlab import problems
        >>> p = problems.bad_direction()
        >>> p.scores.tolist(), p.optimal.tolist()
        ([[-0.2, 0.2], [0.5, -0.5]], [1, 0])

    Reference: bias, Appendix C.1 and Figure 8.
    """
    X = np.array([[[1.0, 0.2], [-1.0, -0.2]], [[-2.5, 0.5], [2.5, -0.5]]])
    return TokenProblem(X, X[:, 0], np.array([-1.0, 1.0]), np.array([0.0, 1.0]))


def two_token() -> TokenProblem:
    r"""One sample, tokens $e_1$ and $0$: gradient descent in closed form.

    Here $W^{mm}=e_1e_1^\top$, and along the path only $W^{11}$ moves.

    Returns:
        A single `TokenProblem` with $n=1$, $T=d=2$ and the first token as query.

    Examples:
        >>> from attnlab import problems
        >>> problems.two_token().scores.tolist()
        [[1.0, 0.0]]

    Reference: bias, Section 3.3 and Appendix A.4.
    """
    X = np.array([[[1.0, 0.0], [0.0, 0.0]]])
    return TokenProblem(X, X[:, 0], np.array([1.0]), np.array([1.0, 0.0]))
