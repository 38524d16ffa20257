"""Slips about signs, factors of n, and how small or large things must be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims._registry import erratum
from attnbook.claims.bias._errata._tools import copies
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
    "Example 1 and Figure 2",
    "Example 1 asks for d of order n^2 T^2, which is 14400, before logs; Figure 2 has d = 100",
    printed=r"Figure 2, with $n=20$, $T=6$, $d=100$, $U=1$, $\rho=0.05$, is an instance of Example "
    r"1, whose tokens satisfy Assumption 1: $\|x_{i\tau}\|^2\ge4n\Upsilon T|\langle x_{i\tau},"
    r"x_{j\tau'}\rangle|$.",
    correct=r"Assumption 1 holds once $d\ge(8n\Upsilon T)^2\log(4n/\delta)$; the data of Figure 2 "
    r"miss it by a factor of 1000, and normalized descent finds $W_{mm}$ on them all the same: the "
    r"assumption is sufficient, far from necessary.",
    page="bias/setting",
    instances=4,
    about=("bias.assumption-1", "bias.example-1", "bias.lemma-6"),
)
def erratum_16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    figure = problems.orthogonal(n=20, T=6, d=100, rho=0.05, trials=instances, rng=rng)
    found = theory.bias.orthogonality(figure)
    asked = theory.bias.orthogonality_needed(20, 6, np.exp(1.0))
    yield at_least("squared norm over inner products, data of Figure 2", found, asked)
    order = theory.bias.example_dimension(20, 6, 0.1) / np.log(4 * 20 / 0.1)
    yield at_least("dimension of Figure 2 against n^2 T^2", figure.d, order, role="step")
    n, T, delta = 2, 2, 1e-7
    d = int(np.ceil((8 * n * np.exp(1.0) * T) ** 2 * np.log(4 * n / delta)))
    wide = [
        theory.bias.orthogonality(problems.orthogonal(n=n, T=T, d=d, U=15.0, rho=0.05, rng=rng))
        for _ in range(instances)
    ]
    what = f"squared norm over inner products, n = T = 2, d = {d}"
    yield at_least(
        what, wide, theory.bias.orthogonality_needed(n, T, np.exp(1.0)), role="correction"
    )
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


@erratum(
    "bias.erratum-18",
    "Theorem 1 and Appendix C.1",
    "any direction, but not any size: from a large start in a bad direction no run recovers",
    printed=r"NGD converges to $W_{mm}$ starting from any initialization direction, as Figure 8 "
    r"shows: $\langle\bar W_t,\bar W_{mm}\rangle\to1$ from $W_0=-cI/\|I\|$.",
    correct=r"From any direction with $\|W_0\|\le\eta/(4B^2\Lambda)$ (Lemma 2). In Figure 8's data "
    r"the direction $-I$ with $c\ge1$ lies in the basin of the wrong tokens, $\alpha=(2,2)$, whose "
    r"direction has correlation 0.4594 with $W_{mm}$.",
    page="bias/directions",
    instances=20,
    about=("bias.theorem-1", "bias.lemma-2"),
)
def erratum_18(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    one, eta = problems.bad_direction(), 0.025
    best = svm.attention_svm(one)
    wrong = svm.attention_svm(one, tokens=(1, 1)).W
    many = copies(one, instances + 3)
    B = np.linalg.norm(one.X, axis=-1).max()
    small = float(theory.bias.initial_norm(eta, B, best.norm))
    bad = -np.eye(2) / np.sqrt(2.0)
    free = rng.standard_normal((instances, 2, 2))
    free *= small / np.linalg.norm(free, axis=(-2, -1))[:, None, None]
    starts = np.concatenate([[bad, 3.0 * bad, small * bad], free])
    run = optim.train(
        FIXED, many, optim.NormalizedGD(eta), steps=5000, params={"W": starts}, every=5000
    )
    W = run.params["W"]
    reached = svm.correlation(W, best.W)
    yield at_least("correlation with W_mm, bad direction of norm 1 and 3", reached[:2], 0.99)
    yield at_least("the same from its small multiple", reached[2], 0.99, role="correction")
    what = f"correlation with W_mm, any direction of norm {small:.2g}"
    yield at_least(what, reached[3:], 0.99, role="correction")
    yield at_least(
        "correlation with the wrong direction",
        svm.correlation(W[:2], wrong),
        0.99,
        role="correction",
    )
    yield equal(
        "the two directions' correlation",
        svm.correlation(wrong, best.W),
        0.4594,
        within=1e-4,
        role="correction",
    )
    attended = FIXED.attention({"W": W}, many)[:2, 1, 0]
    yield at_most("attention on the optimal token of sample 2", attended, 1e-3, role="correction")
