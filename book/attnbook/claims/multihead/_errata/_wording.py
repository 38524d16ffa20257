"""Slips of words, names and ranges: what they would mean if taken at their word."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims._registry import erratum
from attnbook.claims.multihead import _instances as made
from attnbook.claims.multihead._errata import _parts as parts
from attnlab import curvature, models, problems
from attnlab.checks import Array
from attnlab.models import softmax
from attnlab.problems import SequenceProblem


@erratum(
    "multihead.erratum-29",
    "Section 3 of the superseded preprint",
    "with more heads the smallest eigenvalue becomes less negative, not less positive",
    printed="as the number of heads increases, the minimum eigenvalue becomes less positive",
    correct=r"less negative: $\lambda_{\min}(\nabla^2\hat L)\ge-\frac{\beta_3}{\sqrt H}\hat L$ "
    "rises to 0. The published version has it right",
    page="multihead/loss",
    instances=6,
    about=("multihead.corollary-1",),
    preprint=True,
)
def erratum_29(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.gaussian_regression(
        n=4, T=2, d=2, unit_tokens=True, trials=max(6, instances), rng=rng
    )
    seq = SequenceProblem(drawn.X, np.sign(drawn.y))
    heads, lowest = (1, 10, 100), []
    for H in heads:
        model = models.MultiHead(heads=H, start="gaussian", scale=1.0)
        params = model.init(seq, rng)
        smallest = curvature.extremes(model, params, seq)[0]
        lowest.append(float((smallest / model.value_and_grad(params, seq)[0]).mean()))
    yield at_least("smallest eigenvalue / loss, 1, 10 and 100 heads", lowest, 0.0)
    yield at_most("change of it from 1 to 100 heads", lowest[2] - lowest[0], 0.0)
    grown = slope(heads, -np.array(lowest))
    yield at_most("growth of its size with H", grown, -0.1, role="correction")


@erratum(
    "multihead.erratum-30",
    "equation 131, Lemma 14, the display before (113)",
    "three names: the scaled W_star, the heads after step one, and a factor left out",
    printed=r"(131) with $W_\star$ of (104); $\tilde\theta^{(1)}=\mathrm{concat}(\theta_1^{(1)},"
    r"\dots,\theta_1^{(H)})$; $\dots+(z_t^\top\mu_-)\mu_-+\dots$",
    correct=r"$\tilde\Gamma W_\star$, $\tilde\Gamma=\Gamma/(S^2\sqrt{2(M+1)})$; "
    r"$\mathrm{concat}(\theta_1^{(1)},\dots,\theta_H^{(1)})$; $(z_t^\top\mu_-)(z_{t'}^\top\mu_-)$",
    page="multihead/mixtures",
    instances=50,
    about=("multihead.proposition-3", "multihead.lemma-13", "multihead.lemma-14"),
)
def erratum_30(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    S, eps = 1.0, 0.01
    seq = parts.mixture(rng, n=instances, S=S, Z=0.1)
    found, relevant = parts.targets(seq), parts.carrying(seq)
    scaled = parts.saturated(seq, theory.multihead.Gamma_eps(eps, S=S))
    for W, role in ((found.W, "statement"), (scaled["W"][0], "correction")):
        missed = parts.missed(seq, W)
        yield at_most("attention to irrelevant tokens, eps=0.01", missed, eps, role=role)

    iterates, _ = parts.path(models.MultiHead(heads=3), seq, np.sqrt(3.0), 3)
    renamed = [np.abs(iterates[h]["W"][0]).max() for h in (1, 2, 3)]
    yield at_most("weights of the heads as named", renamed, 0.0)
    named = parts.first_phase(seq, np.ones(3))["W"]
    yield at_most("weights after the first phase", np.abs(named).max(), 0.0, role="correction")

    # scores of two irrelevant tokens; x = nu + z for the query, of which mu sees z alone
    order = np.argsort(relevant, axis=1, kind="stable")
    x, key = (seq.X[np.arange(instances), order[:, k]] for k in (0, 1))
    truth = ((key @ found.W) * x).sum(axis=-1)
    plus, minus = found.mu
    rest = (x @ plus) * (key @ plus) + (x @ found.nu.T).sum(axis=-1) * (key @ (plus + minus))
    literal = rest[:, None] + (x @ minus)[:, None] * minus
    yield equal("numbers in a score as printed", literal.size / truth.size, 1.0)
    mended = rest + (x @ minus) * (key @ minus)
    yield equal("score of two noisy tokens", mended, truth, size=S**4, role="correction")


@erratum(
    "multihead.erratum-31",
    "Corollary 2 (main text)",
    "a step of the order given may be too long: the term that does not shrink with H is left out",
    printed=r"$\rho(K)\gtrsim d^{3/2}T^{3/2}R^{13}g_0(\frac1K)^4$",
    correct=r"$\rho(K)\lesssim\big(d^{3/2}T^{3/2}R^{13}/\sqrt H+dT^2R^{12}\big)"
    r"(g_0(\frac1K)+B_2)^2$; its exact value is in Corollary 5",
    page="multihead/training",
    instances=2000,
    reason=r"The sign is read in the authors' favour: a $\rho(K)$ of this order would be enough. "
    "With many tokens it is not.",
    about=("multihead.corollary-2",),
)
def erratum_31(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    rho, order = theory.multihead.rho, theory.multihead.rho_order
    T = np.logspace(3.0, 6.0, 7)
    ratio = rho(2.0, 3.0, T=T, d=4, R=1.0, H=T**4) / order(2.0, 2.0, T=T, d=4, R=1.0, printed=True)
    yield at_most("growth of rho(K) / printed order with T", slope(T, ratio), 0.0)
    for R in (1.0, 10.0, 1000.0):
        H, T, d, g, B2 = 10.0 ** rng.uniform(0.0, 5.0, size=(5, instances))
        ratio = rho(g, g + B2, T=T, d=d, R=R, H=H) / order(0.0, g + B2, T=T, d=d, R=R, H=H)
        yield at_most(f"rho(K) / corrected order, R={R:g}", ratio, 7200.0, role="correction")
        yield at_least(f"rho(K) / corrected order, R={R:g}", ratio, 20.0, role="correction")


@erratum(
    "multihead.erratum-32",
    "Section 5.3 of the superseded preprint",
    "the heads are scaled by log n / gamma_attn; gamma_opt,n is nowhere defined",
    printed=r"$U_h=\frac{\log n}{\gamma_{\mathrm{opt},n}}H^{-1/2}U_{\mathrm{opt}}$ and "
    r"$\|\tilde U\|=\frac{\log n}{\gamma_{\mathrm{attn}}}$",
    correct=r"$U_h=\frac{\log n}{\gamma_{\mathrm{attn}}}H^{-1/2}U_{\mathrm{opt}}$, as in the "
    "published version",
    page="multihead/mixtures",
    instances=100,
    reason=r"A name left over: a few lines below, $\|\tilde U\|$ has the right one. For a number "
    r"to compare, it is read as the smallest margin of $\theta_{\mathrm{opt}}$ itself on the $n$ "
    "samples.",
    about=("multihead.proposition-3",),
    preprint=True,
)
def erratum_32(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, Z, eps, H = max(10, instances), 0.2, 0.01, 4
    seq = parts.mixture(rng, n=n, Z=Z)
    attn = float(theory.multihead.gamma_attn(eps=eps, Z_mu=Z))
    own = float(parts.saturated_margin(seq).min())
    opt = parts.saturated(seq, theory.multihead.Gamma_eps(eps))
    W = np.repeat(opt["W"], H, axis=0)
    for gamma, role in ((own, "statement"), (attn, "correction")):
        U = np.repeat(np.log(n) / gamma / np.sqrt(H) * opt["U"], H, axis=0)
        yield equal("norm of all U_h", np.linalg.norm(U), np.log(n) / attn, role=role)
    loss = models.MultiHead(heads=H).value_and_grad({"U": U, "W": W}, seq)[0]
    yield at_most("n times the loss of the saturated target", n * loss, 1.0, role="correction")


@erratum(
    "multihead.erratum-33",
    "Lemma 18",
    "softmax saturation needs A > 0 and Gamma >= 0, which the proof uses",
    printed=r"$r_1\ge\dots\ge r_L\ge A$, $B\ge r_i$ for $i>L$, $A>2B$ and "
    r"$\Gamma\ge\frac2A\log\frac{T/L-1}\epsilon$ give $\sum_{i>L}\varphi_i(\Gamma r)\le\epsilon$",
    correct=r"with $A>0$ besides, and $\Gamma\ge0$, which matters for $\epsilon>T/L-1$ alone",
    page="multihead/mixtures",
    instances=2000,
    about=("multihead.lemma-18", "multihead.proposition-3"),
)
def erratum_33(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 10
    A = rng.uniform(0.1, 3.0, size=instances)
    gap, eps = rng.uniform(0.1, 5.0, size=instances), rng.uniform(0.001, 0.3, size=instances)

    def tail(A: Array, L: int, Gamma: Array) -> Array:
        """Mass on the last T - L tokens, with scores at the levels A and B and beyond them."""
        top = A[:, None] + np.append(0.0, rng.exponential(size=L - 1))
        low = (A / 2.0 - gap)[:, None] - np.append(0.0, rng.exponential(size=T - L - 1))
        P = softmax(Gamma[:, None] * np.concatenate([top, low], axis=1))
        return np.asarray(P[:, L:].sum(axis=1))

    below = -2.0 / A * np.log((T / 3 - 1.0) / eps)
    yield at_most("mass beyond L=3, A < 0", tail(-A, 3, np.maximum(below, 0.01)), eps)
    large = rng.uniform(0.5, 0.9, size=instances)
    below = 2.0 / A * np.log((T / 7 - 1.0) / large)
    yield at_most("mass beyond L=7, eps > T/L - 1", tail(A, 7, below), large)
    enough = theory.multihead.saturation(A, large, T=T, L=7)
    yield at_most("the same, Gamma >= 0", tail(A, 7, enough), large, role="correction")
    for L in (1, 3, 7):
        Gamma = theory.multihead.saturation(A, eps, T=T, L=L)
        yield at_most(f"mass beyond L={L}, A > 0", tail(A, L, Gamma), eps, role="correction")


@erratum(
    "multihead.erratum-34",
    "Lemmas 8, 9 and 10",
    "descent is needed from the first step on: the range of k must contain 0",
    printed=r"step-wise descent (68) holds for all $k\in[K-1]=\{1,\dots,K-1\}$",
    correct=r"for all $k\in\{0,\dots,K-1\}$",
    page="multihead/training",
    instances=20,
    reason=r"With $K=1$ the printed range is empty. Lemmas 8 and 9 are looked at with "
    r"$\theta=\theta_0$, where the condition on the heads is empty too; Lemma 10 from zero, where "
    "all heads are equal and one stands for as many as its condition asks for.",
    about=("multihead.lemma-8", "multihead.lemma-9", "multihead.lemma-10"),
)
def erratum_34(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.gaussian_regression(n=60, T=3, d=3, trials=instances, rng=rng)
    seq = SequenceProblem(drawn.X, rng.choice([-1.0, 1.0], size=drawn.y.shape))
    model = models.MultiHead(heads=2, start="gaussian", scale=0.3)
    start = model.init(seq, rng)
    loss, grads = model.value_and_grad(start, seq)
    half = made.length(grads) ** 2 / 2.0
    for eta, role in ((100.0, "statement"), (1e-4, "correction")):
        after = {name: start[name] - eta * grads[name] for name in start}
        first, none = model.value_and_grad(after, seq)[0], np.zeros_like(loss)
        bound = theory.multihead.regret_bound(loss, none, none[:, None], eta=eta, K=1)
        yield at_most(f"Lemma 8, K=1, eta={eta:g}", first, bound, role=role)
        bound = theory.multihead.local_regret_bound(loss, none, loss, eta=eta, K=1)
        yield at_most(f"Lemma 9, K=1, eta={eta:g}", first, bound, role=role)
    yield at_most("descent at k=0, eta=0.0001", first, loss - eta * half, role="correction")

    # Lemma 10: the target lies downhill, at the least distance that (73) allows
    mixed = problems.tokenized_mixture(n=30, trials=instances, rng=rng)
    loss, grads = parts.ONE.value_and_grad(parts.ONE.init(mixed), mixed)
    half = made.length(grads) ** 2 / 2.0
    for share, role in ((10.0, "statement"), (0.005, "correction")):
        eta = share * float((loss / half).max())
        away = np.sqrt(eta * loss)
        (_, after), losses = parts.path(parts.ONE, mixed, eta, 1)
        down = (away / np.sqrt(2.0 * half))[:, None, None, None]
        reached = {name: after[name] + down * grads[name] for name in grads}
        bound = theory.multihead.iterate_radius() * away
        what = f"Lemma 10, K=1, eta={eta:.3g}"
        yield at_most(what, made.length(reached), bound, role=role)
    yield at_most(f"descent at k=0, eta={eta:.3g}", losses[1], loss - eta * half, role="correction")
