"""Slips about signs, factors of n, and how wide tokens and how long means must be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, equal
from attnbook.claims._registry import erratum
from attnlab import models, optim, problems, svm
from attnlab.checks import Array

FIXED = models.Attention(loss="exponential", start="zero")


@erratum(
    "bias.erratum-15",
    "Section 4.3, expansion of (12)",
    "the terms of the other samples enter with a plus, not a minus",
    printed=r"$(x_{i\,\mathrm{opt}}-x_{i\tau})^\top(-\nabla_W\hat L)x_{i1}=\frac{\ell_i}n"
    r"(\gamma_{i\,\mathrm{opt}}-\gamma_i)\varphi_i(1-\varphi_i)\|x_{i1}\|^2\|x_{i\,\mathrm{opt}}-"
    r"x_{i\tau}\|^2-\frac1n\sum_{j\ne i}\ell_j(\gamma_{j\,\mathrm{opt}}-\gamma_j)\varphi_j"
    r"(1-\varphi_j)x_{i1}^\top x_{j1}(x_{j\,\mathrm{opt}}-x_{j\tau})^\top(x_{i\,\mathrm{opt}}-"
    r"x_{i\tau'})$.",
    correct=r"The same with $+\frac1n\sum_{j\ne i}$. The proof bounds that sum in absolute value, "
    r"so nothing else changes.",
    page="bias/decoder",
    about=("bias.lemma-11", "bias.theorem-2"),
)
def erratum_15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, d = 4, 5
    drawn = problems.sphere(n=n, T=2, d=d, trials=instances, self_attention=True, rng=rng)
    joint = models.Attention(loss="exponential", train_head=True)
    W, u = rng.standard_normal((instances, d, d)), rng.standard_normal((instances, d))
    params = {"W": W, "v": u}
    grad = joint.value_and_grad(params, drawn)[1]["W"]
    away = drawn.X[:, :, 0] - drawn.X[:, :, 1]  # which of two tokens is opt does not matter
    moved = (away * ((-grad)[:, None] @ drawn.z[..., None])[..., 0]).sum(axis=-1)
    scores, s = joint.scores(drawn, params), joint.attention(params, drawn)
    loss = np.exp(-(s * scores).sum(axis=-1))
    weight = loss * (scores[..., 0] - scores[..., 1]) * s[..., 0] * s[..., 1]
    terms = weight[:, None] * (drawn.z @ drawn.z.mT) * (away @ away.mT) / n  # (trial, i, j)
    own = np.diagonal(terms, axis1=-2, axis2=-1)
    others = terms.sum(axis=-1) - own
    size = np.abs(terms).max()
    what = "left side of (12) against its expansion, "
    yield equal(f"{what}minus the other samples", moved, own - others, size=size)
    yield equal(f"{what}plus the other samples", moved, own + others, size=size, role="correction")


@erratum(
    "bias.erratum-16",
    "Example 1, Lemma 6 and Figure 2",
    "the data of Figure 2 are too narrow for Assumption 1; wide data need long means as well",
    printed=r'Figure 2 is drawn from "synthetic data with nearly orthogonal tokens (Example 1 with '
    r'$\sigma=0$)": $n=20$, $T=6$, $d=100$, $U=1$, $\rho=0.05$. By Lemma 6, data of Example 1 '
    r"with $d\gtrsim n^2T^2\log(4n/\delta)$ satisfy Assumption 1.",
    correct=r"By the proof of Lemma 6 Assumption 1 holds once "
    r"$d\ge(8n\Upsilon T)^2\log(4n/\delta)$ and "
    r"$U^2\ge8n\Upsilon T\rho^2\sqrt{d\log(4n/\delta)}$ (the latter as Example 1 asks, in "
    r"orders). The data of Figure 2 miss it by a factor of about 500, and normalized descent "
    r"finds $W_{mm}$ on them all the same: the assumption is sufficient, far from necessary.",
    page="bias/setting",
    instances=4,
    reason="The paper does not say that the data of Figure 2 satisfy Assumption 1; a reader may "
    "take it so, as the figure is said to match the theorems.",
    about=("bias.assumption-1", "bias.example-1", "bias.lemma-6"),
)
def erratum_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    figure = problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=instances, rng=rng)
    found = theory.bias.orthogonality(figure)
    asked = theory.bias.orthogonality_needed(20, 6, np.exp(1.0))
    yield at_least("squared norm over inner products, data of Figure 2", found, asked)
    yield at_least(
        "what is asked of Figure 2's data over what they have",
        asked / found,
        400.0,
        role="correction",
    )
    order = theory.bias.example_dimension(20, 6, 0.1) / np.log(4 * 20 / 0.1)
    yield at_least("dimension of Figure 2 against n^2 T^2", figure.d, order, role="step")
    n, T, rho, delta = 2, 2, 0.05, 1e-7
    needed, logs = theory.bias.orthogonality_needed(n, T, np.exp(1.0)), np.log(4 * n / delta)
    twice = 8.0 * n * np.exp(1.0) * T
    d = int(np.ceil(twice**2 * logs))
    least = float(np.sqrt(twice * rho**2 * np.sqrt(d * logs)))  # about 18.6
    many = max(instances, 20)  # both sides need draws in which both classes occur
    for U, role in ((least, "correction"), (1.0, "outside")):
        drawn = [problems.orthogonal(n=n, T=T, d=d, U=U, rho=rho, rng=rng) for _ in range(many)]
        both = [p for p in drawn if np.ptp(p.y) > 0]
        wide = [theory.bias.orthogonality(p) for p in (both if role == "outside" else drawn)]
        what = f"squared norm over inner products, n = T = 2, d = {d}, U = {U:.3g}"
        yield at_least(what, wide, needed, role=role)
    run = optim.train(FIXED, figure, optim.NormalizedGD(0.025), steps=2000, every=2000)
    reached = svm.correlation(run.params["W"], svm.attention_svm(figure).W)
    yield at_least("correlation with W_mm after 2000 steps there", reached, 0.8, role="correction")


def _adverse(n: int, d: float, alpha: float, logs: float) -> Array:
    """Tokens with the least norms and the worst inner products that Lemma 9 allows, rho = 1.

    Labels are all +1; first the n tokens that decide, then the n others.
    """
    gram = np.zeros((2 * n, 2 * n))
    gram[:n, :n] = -2.0 * alpha**2 * np.sqrt(d * logs)
    gram[:n, n:] = gram[n:, :n] = -2.0 * alpha * np.sqrt(d * logs)
    np.fill_diagonal(gram, [0.5 * alpha**2 * d] * n + [0.5 * d] * n)
    return np.asarray(np.linalg.cholesky(gram))


@erratum(
    "bias.erratum-17",
    "Lemma 12",
    "the sum over samples loses a factor n, and then d >= (12n)^2 log no longer suffices",
    printed=r"$0.5\alpha^2\rho^2d-2(n-1)\alpha^2\rho^2\sqrt\cdot-2n\alpha\rho^2\sqrt\cdot\ge0.5"
    r"\alpha^2\rho^2d-4\alpha^2\rho^2\sqrt\cdot\ge\frac13\alpha^2\rho^2d$, where "
    r"$\sqrt\cdot=\sqrt{d\log(10n^2/\delta)}$ and $d\ge(12n)^2\log(10n^2/\delta)$.",
    correct=r"$-4n\alpha^2\rho^2\sqrt\cdot$, and $d\ge(24n)^2\log(10n^2/\delta)$ for "
    r"$\frac13\alpha^2\rho^2d$. Condition 1 has room for it.",
    page="bias/decoder",
    instances=30,
    about=("bias.lemma-12",),
)
def erratum_17(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    alpha, delta = 6.0, 0.1
    rows = []
    for n in rng.integers(3, 20, size=instances).tolist():
        logs = np.log(10.0 * n**2 / delta)
        for factor in (12.0, 24.0):
            d = (factor * n) ** 2 * logs
            tokens = _adverse(n, d, alpha, logs)
            best, other = tokens[:n], tokens[n:]
            along = best.sum(axis=0)
            inner = ((best + other) @ along).min()
            root, whole = alpha**2 * np.sqrt(d * logs), alpha**2 * d
            unit = inner / np.linalg.norm(along) / (alpha / 4.0 * np.sqrt(d / n))
            shares = 0.5 - 4.0 * root / whole, 0.5 - 4.0 * n * root / whole
            rows.append((factor, inner / whole, *shares, unit))
    factor, inner, printed, corrected, unit = np.array(rows).T
    what = "inner product with the sum, adverse tokens, over alpha^2 rho^2 d"
    yield at_least(f"{what}: 0.5 - 4 sqrt(.)", inner, printed)
    yield at_least(f"{what}: 0.5 - 4n sqrt(.)", inner, corrected, role="correction")
    for least, role in ((12.0, "step"), (24.0, "correction")):
        name = f"{what}: 1/3 with d = ({least:g}n)^2 log"
        yield at_least(name, inner[factor == least], 1.0 / 3.0, role=role)
    yield at_least(
        "Lemma 12 itself there, over its bound", unit[factor == 24.0], 1.0, role="correction"
    )
    drawn = problems.gaussian(n=4, T=2, d=4000, rho=1.0, alpha=alpha, rng=rng)
    assert drawn.relevant is not None
    best, other = drawn.X[drawn.relevant], drawn.X[~drawn.relevant]
    along = (drawn.y[:, None] * best).sum(axis=0)
    reached = drawn.y * ((best + other) @ along) / np.linalg.norm(along)
    bound = theory.bias.common_margin(alpha, 1.0, n=4, d=4000)
    yield at_least("Lemma 12 on data, n = 4, d = 4000", reached, bound, role="correction")
