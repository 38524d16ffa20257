"""Slips of words, names and ranges: what they would mean if taken at their word."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.multihead import _instances as made
from attnbook.claims.multihead._errata import _parts as parts
from attnlab import curvature, models, problems
from attnlab.checks import Array
from attnlab.models import softmax
from attnlab.problems import SequenceProblem


@measures("multihead.erratum-29", instances=6)
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


@measures("multihead.erratum-30", instances=50)
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


@measures("multihead.erratum-31", instances=2000)
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


@measures("multihead.erratum-32")
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


@measures("multihead.erratum-33", instances=2000)
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


@measures("multihead.erratum-34", instances=20)
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
