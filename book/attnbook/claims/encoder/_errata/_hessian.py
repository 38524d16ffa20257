"""Theorem 3's Hessian: which block lacks a term, which blocks are large, which start it needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal, slope
from attnbook.claims.encoder._errata._one_feature import blocks, one_feature, outer, sums
from attnbook.claims.encoder._errata._pieces import frobenius, pieces, same
from attnlab import curvature, problems
from attnlab.checks import Array

WIDTHS = (3, 30, 300)
CHUNK = 10  # trials at a time: 115 MB of Hessians


@measures("encoder.erratum-s8", instances=20)
def s8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = one_feature(rng, instances)
    H, s = blocks(p), sums(p)
    queries, keys = (p.params[name][..., 0] for name in ("W_Q", "W_K"))
    printed = s["c3"][:, None, None] * outer(keys, queries)
    yield same("H_QK as printed", printed, H["W_Q", "W_K"], 2)
    mended = printed + s["a"][:, None, None] * np.eye(p.model.width)
    yield same("H_QK with a I", mended, H["W_Q", "W_K"], 2, role="correction")
    yield same(
        "gradient in w_Q against a w_K",
        s["a"][:, None] * keys,
        p.gradient["W_Q"][:, 0, :, 0],
        1,
        role="correction",
    )
    many = max(instances, 20)
    drawn = problems.gaussian_regression(n=1, T=6, d=1, trials=many, rng=rng)
    lengths = np.linalg.norm(drawn.X, axis=(-2, -1), keepdims=True)
    tokens = problems.SequenceProblem(drawn.X / lengths, drawn.y)  # the same at every width
    large: dict[str, list[float]] = {"QV": [], "QO": [], "OV": []}
    for scheme, role in (("lecun", "outside"), ("ntk", "correction")):
        whole = []
        for width in WIDTHS:
            found = _sizes(rng, tokens, scheme, width)
            first, *rest = np.sqrt((found**2).mean(axis=0))
            whole.append(float(first))
            if scheme == "ntk":
                for values, size in zip(large.values(), rest, strict=True):
                    values.append(float(size))
        what = f"exponent of |H| in d_m, {scheme} start"
        yield at_most(what, slope(WIDTHS, whole), -0.35, role=role)
    for name, values in large.items():
        what = f"exponent of |H_{name}| in d_m"
        yield at_most(what, slope(WIDTHS, values), -0.8, role="step")
        yield equal(what, slope(WIDTHS, values), -0.5, role="correction", within=0.5)


def _sizes(
    rng: np.random.Generator, tokens: problems.SequenceProblem, scheme: str, width: int
) -> Array:
    """Norms of the Hessian and of its blocks QV, QO (of rank one) and OV (diagonal), by trial."""
    found = []
    for start in range(0, tokens.trials[0], CHUNK):
        part = tokens.trial(slice(start, start + CHUNK))
        p = pieces(rng, CHUNK, width=width, scheme=scheme, scaling="linear", problem=part)
        H = curvature.hessian(p.model, p.params, p.problem, of="output")
        lowest, highest = (end[:, 0] for end in H.extremes)
        sizes = [np.maximum(np.abs(lowest), np.abs(highest))]
        if scheme == "ntk":
            sizes += [frobenius([H.blocks["W_Q", name]]) for name in ("W_V", "w_O")]
            sizes.append(np.abs(H.blocks["w_O", "W_V"]).max(axis=(-3, -2, -1)))
        found.append(np.stack(sizes, axis=-1))
    return np.concatenate(found)
