"""One feature a token, and how many neurons the theorems ask for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims._registry import erratum
from attnbook.claims.encoder._errata._pieces import pieces
from attnlab import ntk, problems

ZERO = 1e-8  # a singular value this small, relative to the largest, is rounding


@erratum(
    "encoder.erratum-s15",
    "Corollary 1, its remark and the introduction",
    "with one feature a token the failure has nothing to do with tau_0, nor with width",
    printed=r"Under $\tau_0=d_m^{-1}$ the input shape separates: with $d=1$ conditions (2) and "
    r"(3) do not hold; the remark explains it by a kernel $\mathbf X\mathbf X^\top$ of rank one.",
    correct=r"With $d=1$, $\mathrm{rank}\,F_{pre}\le2$ and $\mathrm{rank}\,\mathbf K\le3$ for "
    r"every width and every $\tau_0$, so $\alpha=0$ as soon as $N\ge3$; moreover $d_s>d$ violates "
    r"Assumption 2. With $d_s=1$ nothing of the kind happens.",
    page="encoder/tokens",
    instances=20,
    about=("encoder.corollary-1", "encoder.assumption-2", "encoder.identity-4"),
)
def s15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, n, many = 20, 8, max(instances, 10)
    drawn = problems.gaussian_regression(n=n, T=1, d=T, unit_tokens=True, trials=many, rng=rng)
    long = problems.SequenceProblem(drawn.X.swapaxes(-1, -2), drawn.y)
    for scaling in ("sqrt", "linear"):
        for width in (16, 400):
            p = pieces(rng, many, width=width, scaling=scaling, problem=long)
            sizes = np.linalg.svd(p.model.features(p.params, long), compute_uv=False)
            share = sizes[..., 2] / sizes[..., 0]
            at = f"tau_0 {scaling}, d_m = {width}"
            if (scaling, width) == ("sqrt", 400):
                yield at_least(f"third singular value of F over its first, {at}", share, ZERO)
            yield at_most(f"the same, {at}", share, ZERO, role="correction")
            values = np.linalg.eigvalsh(ntk.empirical(p.model, p.params, long))[..., ::-1]
            values = values / values[..., :1]
            what = f"fourth eigenvalue of K over its first, {at}"
            yield at_most(what, np.abs(values[..., 3]), ZERO, role="correction")
    yield at_most("second eigenvalue of K over its first", values[..., 1], ZERO, role="step")
    rank = np.linalg.matrix_rank(long.X).max()
    yield at_least("Assumption 2: rank of a sample, d_s = 20, d = 1", rank, T, role="step")
    q = pieces(rng, many, width=400, scaling="linear", problem=drawn)
    bottom = theory.encoder.alpha(q.model, q.params, drawn)
    yield at_least("alpha with d_s = 1, d = 20", bottom, 0.1, role="correction")


@erratum(
    "encoder.erratum-s16",
    "Introduction, Table 3, Theorems 1 and 2",
    "linear, quadratic and cubic widths stand side by side; the conditions give two and three",
    printed=r"'Quadratic over-parameterization is enough' (introduction); $\Omega(N)$ (Table 3, "
    r"'Our'); $\tilde\Omega(N^3)$ (Theorem 1).",
    correct=r"From (2) and (3): $N^3$ for LeCun and $\tau_0=d_m^{-1/2}$, $N^2$ for LeCun and "
    r"$\tau_0=d_m^{-1}$, none for NTK with $C_\bullet=1$ and $N^3$ with $C_\bullet=\sqrt{d_m}$; "
    r"$N$ nowhere.",
    page="encoder/width",
    instances=1,
    reason="Nothing is drawn: the least width that meets (2) and (3) is solved for, with the "
    "paper's orders of magnitude for norms, alpha and initial loss, and constants 1.",
    about=("encoder.theorem-1", "encoder.theorem-2"),
)
def s16(_rng: np.random.Generator, _instances: int) -> Iterator[Measurement]:
    sizes = np.logspace(2, 6, 5)
    sharp, flat, ntk_width = (
        slope(sizes, [theory.encoder.least_width(float(n), init, scaling) for n in sizes])
        for init, scaling in (("lecun", "sqrt"), ("lecun", "linear"), ("ntk", "linear"))
    )
    yield equal("exponent of the width in N, Theorem 1, against Table 3", sharp, 1.0, within=0.1)
    yield equal("the same, against the introduction", sharp, 2.0, role="step", within=0.1)
    yield equal("the same", sharp, 3.0, role="correction", within=0.05)
    what = "exponent for LeCun with tau_0 = 1/d_m"
    yield equal(f"{what}, against Table 3", flat, 1.0, role="step", within=0.1)
    yield equal(what, flat, 2.0, role="correction", within=0.05)
    what = "exponent for NTK with C = sqrt(d_m)"
    yield equal(f"{what}, against Theorem 2", ntk_width, 1.0, role="step", within=0.1)
    yield equal(what, ntk_width, 3.0, role="correction", within=0.05)
