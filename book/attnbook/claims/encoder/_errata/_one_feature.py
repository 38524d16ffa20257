"""Encoders whose tokens have one feature: the setting of the proof of Theorem 3."""

from __future__ import annotations

import numpy as np

from attnbook.claims.encoder._errata._pieces import Pieces, pieces
from attnlab import curvature
from attnlab.checks import Array


def one_feature(rng: np.random.Generator, instances: int, scheme: str = "ntk") -> Pieces:
    """Encoders on one sample whose tokens have one feature, as in Appendix D.3."""
    return pieces(
        rng, instances, n=1, T=4, d=1, width=5, scheme=scheme, scaling="linear", unit_tokens=False
    )


def sums(p: Pieces) -> dict[str, Array]:
    """The sums of Appendix D.3, with the dot: third moment, variance, and one for each neuron."""
    x, b, gate = p.X[:, 0, :, 0], p.beta[:, 0], p.gate[:, 0]
    W_V, w_O = p.params["W_V"][..., 0], p.params["w_O"]
    mean = b @ x[..., None]
    off = x[:, None, :] - mean
    variance, third = (b * off**2).sum(axis=-1), (b * off**3).sum(axis=-1)
    inner = (gate * (W_V * w_O)[:, None, :]).sum(axis=-1)
    scale = p.model.tau0 * p.model.tau1
    return {
        "mean": mean[..., 0],
        "variance": variance,
        "third": third,
        "c3": scale * p.model.tau0 * (x**2 * inner * third).sum(axis=-1),
        "a": scale * (x * inner * variance).sum(axis=-1),
        "neurons": scale * ((x * variance)[..., None] * gate).sum(axis=-2),
    }


def outer(left: Array, right: Array) -> Array:
    """The matrices left right'."""
    return left[..., :, None] * right[..., None, :]


def blocks(p: Pieces) -> dict[tuple[str, str], Array]:
    """The true Hessian of the output of the one sample, by blocks."""
    found = curvature.hessian(p.model, p.params, p.problem, of="output").blocks
    return {names: block[:, 0] for names, block in found.items()}
