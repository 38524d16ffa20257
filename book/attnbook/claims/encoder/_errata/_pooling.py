"""Two poolings under one name, and the limiting kernel that depends on which it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims.encoder._errata._pieces import pieces, same
from attnlab import models, ntk, problems
from attnlab.checks import Array


@measures("encoder.erratum-s1", instances=60)
def s1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T = 5
    p = pieces(rng, instances, n=4, T=T, width=12, pooling="mean")
    summed = models.Encoder(12, pooling="sum", loss="half_sum")
    f = p.model.forward(p.params, p.problem)
    written = (np.maximum(p.pre, 0.0) @ p.params["w_O"][:, None, :, None])[..., 0].sum(axis=-1)
    yield same("f of Appendix C.2, against Eq. 1.2", written, f, 1)
    yield same("f of Appendix C.2 over d_s", written / T, f, 1, role="correction")
    other = summed.forward(p.params, p.problem)
    yield same("f of Appendix C.2, against sum pooling", written, other, 1, role="correction")
    a, b = (theory.encoder.alpha(m, p.params, p.problem) for m in (p.model, summed))
    size = b.max()  # alpha may be 0, where all neurons are off at a sample
    yield equal("alpha, average against sum", a, b, role="step", size=size)
    yield equal("alpha, average times d_s against sum", T * a, b, role="correction", size=size)
    K, L = (ntk.empirical(m, p.params, p.problem) for m in (p.model, summed))
    yield same("kernel of the average, times d_s^2", T * T * K, L, 2, role="correction")
    F = np.linalg.norm(p.model.features(p.params, p.problem), axis=(-2, -1))
    bars = p.bars()
    bound = theory.encoder.rho(bars) * bars.V
    yield at_most("|F_pre| against rho/d_s |W_V|", F, bound, role="correction")


@measures("encoder.erratum-s2")
def s2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    T, n, d, width = 5, 6, 4, 400
    data = problems.gaussian_regression(n=n, T=T, d=d, unit_tokens=True, rng=rng)
    many = max(instances, 20)
    copies = problems.SequenceProblem(
        np.broadcast_to(data.X, (many, n, T, d)), np.broadcast_to(data.y, (many, n))
    )
    phi = data.X.mean(axis=-2)
    relu, step = ntk.arc_cosine(phi)
    products = phi @ phi.T
    wrong = T**2 * step @ products
    yield same("the printed second term is symmetric", wrong, wrong.T, 2, role="step")
    for pooling, factor in (("sum", T**2), ("mean", 1)):
        model = models.Encoder(width, "ntk", "linear", pooling)
        found = ntk.empirical(model, model.init(copies, rng), copies, by_group=True)
        O, V = (found[name].mean(axis=0) for name in ("w_O", "W_V"))  # noqa: E741
        if pooling == "sum":
            yield same("W_V's kernel, matrix product", wrong, V, 2, within=0.15)
            large, steps = ntk.arc_cosine(T * phi)
            yield same("(63), w_O's kernel", T**2 * large, O, 2, role="step", within=0.15)
            printed = T**2 * steps * (T * T * products)
            yield same("(64), W_V's kernel", printed, V, 2, role="step", within=0.15)
        else:
            with_factor = T**2 * relu
            what = "w_O's kernel, average pooling, with d_s^2"
            yield same(what, with_factor, O, 2, role="step", within=0.15)
        what = f"{pooling} pooling, limit against simulation"
        yield from _limit(what, factor * relu, factor * step * products, O, V)
        whole = sum(array.mean(axis=0) for array in found.values())
        limit = ntk.limiting_encoder(data, pooling=pooling)
        yield same(f"{what}, whole", limit, np.asarray(whole), 2, role="correction", within=0.15)


def _limit(what: str, relu: Array, step: Array, O: Array, V: Array) -> Iterator[Measurement]:  # noqa: E741
    yield same(f"{what}, w_O", relu, O, 2, role="correction", within=0.15)
    yield same(f"{what}, W_V, entry by entry", step, V, 2, role="correction", within=0.15)
