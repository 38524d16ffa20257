"""Slips in the proof of Proposition 1: the rate, the residual, the step size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims._registry import erratum
from attnbook.claims.encoder._errata._pieces import frobenius, nearly_fitted, pieces
from attnlab import ntk, optim

STEPS = 200


@erratum(
    "encoder.erratum-s9",
    "Proposition 1, proof (equation 25 and the end of C.2)",
    "the induction keeps alpha/2, which gives only half the stated rate; 7 alpha/8 saves it",
    printed=r"$\sigma_{\min}(F^t_{pre})\ge\frac12\alpha$ and hence "
    r"$\ell(\theta^{t+1})\le(1-\gamma\frac{\alpha^2}2)\,\ell(\theta^t)$.",
    correct=r"$\alpha/2$ gives $1-\gamma\alpha^2/4$. With the 32 of (3) the drift is at most "
    r"$\rho^2\frac z{\bar\lambda_O}\frac4{\alpha^2}\sqrt{2\ell(\theta^0)}\le\alpha/8$, so "
    r"$\sigma_{\min}\ge\frac78\alpha$ and the factor is "
    r"$1-\frac{49}{64}\gamma\alpha^2\le1-\gamma\alpha^2/2$.",
    page="encoder/convergence",
    instances=6,
    reason="The statement stands; it is its proof that needs the sharper drift.",
    about=("encoder.proposition-1",),
)
def s9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = nearly_fitted(rng, instances, gap=3e-8)
    e = theory.encoder
    bars = e.bars(p.model, p.problem, p.params, radius=1.0)
    a = e.alpha(p.model, p.params, p.problem)
    yield at_least("condition (2)", e.condition_2(bars, a, p.loss), 1.0, role="correction")
    third = e.condition_3(bars, a, p.loss)
    yield at_least("condition (3)", third, 1.0, role="correction")
    gamma = 1.0 / float(e.smoothness(bars, p.loss).max())
    stated = 1.0 - e.rate(a, gamma)
    half = 1.0 - e.rate(a, gamma, kept=0.5)
    yield at_least("share of the loss that alpha/2 takes off a step", half, stated)
    eighths = 1.0 - e.rate(a, gamma, kept=7 / 8)
    what = "share of the loss that 7 alpha/8 takes off a step"
    yield at_least(what, eighths, stated, role="correction")
    drift = e.drift_bound(bars, a, p.loss)
    at_equality = "bound on the drift over alpha, where (3) is an equality"
    yield equal(at_equality, drift * third / a, 1 / 8, role="correction")
    run = optim.train(
        p.model, p.problem, optim.GD(gamma), steps=STEPS, params=p.params, every=STEPS
    )
    F, start = (p.model.features(w, p.problem) for w in (run.params, p.params))
    yield at_most("drift on a run", frobenius([F - start]), drift, role="correction")
    bottom = e.alpha(p.model, run.params, p.problem) / a
    yield at_least("sigma_min over alpha at its end", bottom, 7 / 8, role="correction")
    taken = -np.expm1(np.log(run.history["loss"][-1] / p.loss) / STEPS)
    yield at_least("share of the loss taken off on a run", taken, stated, role="correction")


@erratum(
    "encoder.erratum-s10",
    "Equations 35 and 37",
    "the residual is the root of twice the loss, not twice the loss: C is too small at small loss",
    printed=r"$\|\mathbf f^t-\mathbf y\|_2\le2\ell(\theta^0)$, so that "
    r"$C=c_1c_2+2c_3\ell(\theta^0)$.",
    correct=r"$\|\mathbf f^t-\mathbf y\|_2\le\sqrt{2\ell(\theta^0)}$ and "
    r"$C=c_1c_2+c_3\sqrt{2\ell(\theta^0)}$.",
    page="encoder/convergence",
    instances=60,
    reason="Both are the same at loss 1/2; above it the printed C is larger than needed.",
    about=("encoder.proposition-1",),
)
def s10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    e = theory.encoder
    for gap, role in ((0.1, "statement"), (0.1, "correction"), (10.0, "correction")):
        p = nearly_fitted(rng, instances, gap=gap)
        residual = np.linalg.norm(p.model.forward(p.params, p.problem) - p.problem.y, axis=-1)
        bound = 2.0 * p.loss if role == "statement" else np.sqrt(2.0 * p.loss)
        yield at_most(f"residual, labels {gap:g} away", residual, bound, role=role)
    p = nearly_fitted(rng, instances, gap=0.01)
    bars = p.bars()
    base = e.c1(bars) * e.c2(bars)
    share = (e.smoothness(bars, p.loss) - base) / e.c3(bars)
    residual = np.linalg.norm(p.model.forward(p.params, p.problem) - p.problem.y, axis=-1)
    yield at_least("C - c1 c2 over c3, against the residual", share, residual, role="correction")
    what = "2 l, which stands there in print"
    yield at_least(what, 2.0 * p.loss, residual, role="step")


@erratum(
    "encoder.erratum-s11",
    "Remark after Proposition 1",
    "the step size goes with 1/N, not with the root of it",
    printed=r"$\gamma\propto N^{-1/2}$, by the construction of $C$.",
    correct=r"$c_1,c_2,c_3$ and $\sqrt{\ell(\theta^0)}$ are each of order $\sqrt N$, so "
    r"$C\propto N$ and $\gamma\propto1/N$; so is the true limit $2/\lambda_{\max}(\mathbf K)$.",
    page="encoder/step",
    instances=6,
    about=("encoder.proposition-1",),
)
def s11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    sizes, allowed, limits = (4, 40, 400), [], []
    for n in sizes:
        p = pieces(rng, max(instances, 6), n=n, T=2, d=6, width=30)
        bars = theory.encoder.bars(p.model, p.problem, p.params, radius=1.0)
        allowed.append(float(np.median(1.0 / theory.encoder.smoothness(bars, p.loss))))
        top = np.linalg.eigvalsh(ntk.empirical(p.model, p.params, p.problem))[..., -1]
        limits.append(float(np.median(theory.encoder.stability_limit(top, n, "half_sum"))))
    found = slope(sizes, allowed)
    yield at_least("exponent of 1/C in N", found, -0.75)
    yield equal("exponent of 1/C in N", found, -1.0, role="correction", within=0.15)
    what = "exponent of 2/lambda_max(K) in N"
    yield equal(what, slope(sizes, limits), -1.0, role="correction", within=0.2)
