r"""Tangent features of the three models: the gradient of each sample's output, as blocks.

`tangent` gives all of them in the parameters' own coordinates. The encoder's kernel at large
width goes another way, over slices of the width (`encoder_blocks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab._blas import product
from attnlab.checks import Array
from attnlab.models import Attention, Encoder, MultiHead, Params, centred, fit
from attnlab.ntk._blocks import Block, Outer, Plain
from attnlab.ntk._gates import Gates
from attnlab.problems import SequenceProblem, TokenProblem

SLICE = 2**22  # gates of the encoder held at a time: 32 MB
CACHED = 2**17  # pre-activations that are formed and pooled at a time: 1 MB


def prepared(model: Any, params: Any, problem: Any) -> Params:
    """Parameters that fit, of a model that has tangent features."""
    if type(model) not in (Attention, MultiHead, Encoder):  # a subclass may compute otherwise
        raise check.fail("model", "an Attention, MultiHead or Encoder", type(model).__name__)
    return fit(model, params, problem, copy=False)


def tangent(model: Any, params: Params, problem: Any) -> dict[str, Block]:
    """The features of every parameter, in the parameters' own coordinates."""
    if isinstance(model, Attention):
        return attention_blocks(model, params, problem)
    if isinstance(model, MultiHead):
        return multihead_blocks(model, params, problem)
    lead, side = len(problem.trials), Side.of(model, params, problem)
    A, gates = side.hidden(slice(None))
    v = side.moved()
    return {
        "W_Q": Outer(v @ params["W_K"].swapaxes(-1, -2)[..., None, :, :], problem.X, lead),
        "W_K": Outer(problem.X @ params["W_Q"].swapaxes(-1, -2)[..., None, :, :], v, lead),
        "W_V": gates.outer,
        "w_O": Plain(A, lead),
    }


def attention_blocks(model: Attention, params: Params, problem: TokenProblem) -> dict[str, Block]:
    r"""$\nabla_Wf=X^\top(\mathrm{diag}(s)-ss^\top)X\nabla h\,z^\top$: one outer product."""
    lead = len(problem.trials)
    s = model.attention(params, problem)
    o = (s[..., None, :] @ problem.X)[..., 0, :]
    v = params["v"] if model.train_head else problem.v
    values = (problem.X @ model.head.gradient(o, v)[..., None])[..., 0]
    left = (s * centred(s, values, exact=True))[..., None, :] @ problem.X
    z = problem.z[..., None, :]
    found: dict[str, Block]
    if model.factors is None:
        found = {"W": Outer(left, z, lead)}
    else:
        found = {
            "K": Outer(left, z @ params["Q"][..., None, :, :], lead),
            "Q": Outer(z, left @ params["K"][..., None, :, :], lead),
        }
    if model.train_head:
        found["v"] = Plain(o, lead)
    return found


def multihead_blocks(
    model: MultiHead, params: Params, problem: SequenceProblem
) -> dict[str, Block]:
    r"""Means $\nabla_U\Phi=PX$, covariances $\nabla_W\Phi=\sum_t\mathrm{Cov}_t(x,A)x_t^\top$."""
    lead, share = len(problem.trials), model.heads**-0.5
    X, U = problem.X, params["U"]
    P = model.attention(params, problem)
    last = model.output == "last"
    if last:
        P = P[..., None, :]
    attended = P @ X[..., None, :, :]  # (..., n, H, Q, d)
    if model.output != "full":
        U = U[..., None, :]
    A = U[..., None, :, :, :] @ X[..., None, :, :].swapaxes(-1, -2)
    moved = share * P * centred(P, np.broadcast_to(A, P.shape), exact=True)
    moved = moved @ X[..., None, :, :]
    queries = X[..., -1:, :] if last else X
    left = np.moveaxis(moved, -4, -3)  # (..., H, n, Q, d)
    right = np.broadcast_to(queries[(slice(None),) * lead + (None,)], (*left.shape[:-1], problem.d))
    means = attended if model.output == "full" else attended.sum(axis=-2)
    return {"U": Plain(share * means, lead), "W": Outer(left, right, lead)}


@dataclass
class Side:
    """One problem seen through an encoder, a slice of the width at a time."""

    model: Encoder
    params: Params
    X: Array
    B: Array
    attended: Array  # u_i, (..., n, T, d)
    pool: float
    back: Array  # h_i, summed over the slices seen so far, (..., n, T, d)

    @classmethod
    def of(cls, model: Encoder, params: Params, problem: SequenceProblem) -> Side:
        """Attention, and what it attends to."""
        B = model.attention(params, problem)
        pool = model.tau1 / problem.T if model.pooling == "mean" else model.tau1
        attended = B @ problem.X
        return cls(model, params, problem.X, B, attended, pool, np.zeros(problem.X.shape))

    def hidden(self, part: slice) -> tuple[Array, Gates]:
        """Gradients in ``w_O`` ``(..., n, m)`` and in ``W_V``, of one slice of the width."""
        *lead, n, T, d = self.X.shape
        W_V, w_O = self.params["W_V"][..., part, :], self.params["w_O"][..., part]
        attended, m = self.attended.reshape(*lead, n * T, d), w_O.shape[-1]
        A, opened = np.empty((*lead, n, m)), np.empty((*lead, n, T, m), bool)
        few = max(16, CACHED * d // self.X.size)
        for k in range(0, m, few):
            some = (..., slice(k, k + few))
            Z = product(attended, W_V[..., k : k + few, :].swapaxes(-1, -2)).reshape(
                *lead, n, T, -1
            )
            np.greater(Z, 0.0, out=opened[some])
            np.maximum(Z, 0.0, out=Z)
            np.add.reduce(Z, axis=-2, out=A[some])
        A *= self.pool
        gates = Gates(opened, self.pool * w_O, self.attended, len(lead))
        self.back += gates.times(W_V)
        return A, gates

    def moved(self) -> Array:
        r"""$c\,\tau_0v_i=c\,\tau_0X^\top J_iXh_i$, shape ``(..., n, T, d)``, after all slices."""
        D = self.back @ self.X.swapaxes(-1, -2)
        moved = self.model.tau0 * self.B * centred(self.B, D, exact=True)
        return np.asarray(moved @ self.X)


def encoder_blocks(
    model: Encoder, params: Params, problem: SequenceProblem, other: SequenceProblem
) -> Iterator[tuple[str, Block | Gates, Block | Gates]]:
    r"""Pairs of blocks that sum to the kernel; no more than a slice of the width at a time.

    Queries and keys enter the kernel through $\langle W_Kv,W_Kv'\rangle=\langle Rv,Rv'\rangle$
    with $W_K^\top W_K=R^\top R$: beyond width $d$ gradients have $d\times d$ entries there.
    """
    lead, m, d = len(problem.trials), model.width, problem.d
    mine = Side.of(model, params, problem)
    theirs = mine if other is problem else Side.of(model, params, other)
    rows = max(mine.X.size, theirs.X.size) // d
    block = max(64, SLICE // rows)
    for k in range(0, m, block):
        part = slice(k, k + block)
        A, gates = mine.hidden(part)
        hidden = Plain(A, lead)
        if theirs is mine:
            yield "w_O", hidden, hidden
            yield "W_V", gates, gates
            continue
        A, gates_too = theirs.hidden(part)
        yield "w_O", hidden, Plain(A, lead)
        yield "W_V", gates, gates_too
    W_Q, W_K = (_root(W) if m > d else W for W in (params["W_Q"], params["W_K"]))
    both = [
        (
            Outer(v @ W_K.swapaxes(-1, -2)[..., None, :, :], side.X, lead),
            Outer(side.X @ W_Q.swapaxes(-1, -2)[..., None, :, :], v, lead),
        )
        for side in ((mine,) if theirs is mine else (mine, theirs))
        for v in (side.moved(),)
    ]
    yield "W_Q", both[0][0], both[-1][0]
    yield "W_K", both[0][1], both[-1][1]


def _root(W: Array) -> Array:
    r"""$R$ with $R^\top R=W^\top W$, as many rows as columns, shape ``(..., d, d)``."""
    try:
        found = np.asarray(np.linalg.cholesky(product(W.swapaxes(-1, -2), W)).swapaxes(-1, -2))
    except np.linalg.LinAlgError:  # columns that depend on each other
        found = np.full((1,), np.nan)
    if np.isfinite(found).all():  # WebAssembly's LAPACK gives NaN where others raise
        return found
    return np.asarray(np.linalg.qr(W, mode="r"))
