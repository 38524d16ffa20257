"""The proof that wide tokens can be separated (erratum 26)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, equal


@measures("svm.erratum-26", instances=60)
def erratum_26(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, T, d = 3, 4, 5
    X = rng.standard_normal((instances, n, T, d))
    z = rng.standard_normal((instances, n, d))
    lead = X[..., :1, :] - X[..., 1:, :]  # the first token is selected
    features = lead[..., :, None] * z[..., None, None, :]
    M = features[:, :-1].reshape(instances, -1, d * d)
    span = np.linalg.svd(z[:, :-1], full_matrices=False)[2]
    off = np.eye(d) - span.swapaxes(-1, -2) @ span  # projection on Z, off z_1, ..., z_{n-1}
    wanted = lead[:, -1, :, :, None] * (z[:, -1, None, :] @ off)[:, None]  # of Claim 1
    size = np.linalg.norm(wanted, axis=(-1, -2))
    for name, rows, role in (("x_nt", X[:, -1, 1:], "statement"),
                             ("x_na - x_nt", lead[:, -1], "correction")):  # fmt: skip
        projected = rows[..., None] * z[:, -1, None, None, :] @ off[:, None]
        gap = np.linalg.norm(projected - wanted, axis=(-1, -2))
        what = f"projection on P of {name} times z_n, from the rows of Claim 1"
        yield equal(what, gap, 0.0, size=size, role=role)
    drawn = rng.standard_normal((instances, d, d))
    longest = np.linalg.norm(M, axis=-1).max(axis=-1)
    for name, A, role in (("column", off @ drawn, "statement"), ("row", drawn @ off, "correction")):
        flat = A.reshape(instances, -1, 1)
        hit = np.abs(M @ flat).max(axis=(-1, -2))
        what = f"products of the rows of M with matrices whose {name} space lies in Z"
        yield equal(what, hit, 0.0, size=longest * np.linalg.norm(A, axis=(-1, -2)), role=role)
    A = drawn @ off
    basis = np.linalg.svd(M)[2][:, M.shape[1] :]  # of S, the null space of M
    inside = np.linalg.norm(basis @ A.reshape(instances, -1, 1), axis=(-1, -2))
    size = np.linalg.norm(A, axis=(-1, -2))
    yield equal("part of P that S does not annihilate", inside, 0.0, size=size)
    yield equal("part of P that lies in S, and all of it", inside, size, role="correction")
