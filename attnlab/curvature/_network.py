r"""The three models in one form, so that each derivative is written once.

Every model attends: query $z$ sees the logits $x_s^\top Wz$ over its keys, the attended token
is $o=\sum_ss_sx_s$, and the output is a readout of all $o$. A *slot* is a parameter inside the
logits: they move by $x_s^\top L\,dS\,r$. For ``W`` that is $L=I$, $r=z$; for $W=KQ^\top$ it is
$L=I$, $r=Q^\top z$ for $K$ and $L=K$, $r=z$ for $Q^\top$. Arrays have the axes
``(trials, heads, samples, queries, ...)``; a model without heads has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray
from attnlab.curvature._readouts import Layer, Projection, Readout
from attnlab.models import (
    Attention,
    ConcaveHead,
    Encoder,
    LinearHead,
    MultiHead,
    Params,
    ReLUHead,
    losses,
    softmax,
)
from attnlab.problems import SequenceProblem, TokenProblem

AnyModel: TypeAlias = Attention | MultiHead | Encoder
Problem: TypeAlias = TokenProblem | SequenceProblem

# Samples pass in blocks whose working arrays hold about this many numbers (16 MB).
BLOCK = 2_000_000


@dataclass(frozen=True)
class Slot:
    """A parameter inside the logits; its natural form is ``(key side, query side)``."""

    name: str
    left: Array | None  # (..., H, d, l); None is the identity
    right: Array  # (..., H or 1, n, Q, r)
    flipped: bool  # whether the model keeps the transpose of the natural form

    def onto(self, rows: Array) -> Array:
        """Rows of the key side ``(..., H, n, Q, d)`` in the slot's own coordinates."""
        return rows if self.left is None else rows @ self.left[..., None, :, :]


@dataclass(frozen=True)
class Network:
    """A block of samples of a model: keys, attention, attended tokens, slots and readout."""

    X: Array  # (..., 1, n, T, d)
    s: Array  # (..., H, n, Q, T)
    o: Array  # (..., H, n, Q, d)
    slots: tuple[Slot, ...]  # (W,) or (K, Q): the second's left is the first's parameter
    readout: Readout
    headed: bool  # whether parameters carry the axis of heads

    def natural(self, slot: Slot, stored: Array) -> Array:
        """A parameter of the model as ``(..., H, l, r)``."""
        array = stored if self.headed else stored[..., None, :, :]
        return array.swapaxes(-1, -2) if slot.flipped else array


def known(model: Any) -> AnyModel:
    """Complain about models whose second derivative is not written here."""
    if type(model) not in (Attention, MultiHead, Encoder):  # a subclass may compute otherwise
        raise check.fail("model", "an Attention, MultiHead or Encoder", type(model).__name__)
    if isinstance(model, Attention) and type(model.head) not in (LinearHead, ReLUHead, ConcaveHead):
        raise check.fail("model.head", "LinearHead, ReLUHead or ConcaveHead", model.head)
    return cast(AnyModel, model)


def order(model: AnyModel, problem: Problem) -> dict[str, slice]:
    """Where each parameter, flattened, stands in the matrix."""
    found, start = {}, 0
    for name, tail in model.shapes(problem).items():  # type: ignore[arg-type]
        stop = start + int(np.prod(tail, dtype=int))
        found[name] = slice(start, stop)
        start = stop
    return found


def size(places: dict[str, slice]) -> int:
    """The number p of parameters."""
    return max(int(place.stop) for place in places.values())


def weights(model: AnyModel, params: Params, problem: Problem, of: str) -> tuple[Array, Array]:
    r"""First and second derivative of the loss in each output, both ``(..., n)``.

    $\nabla^2L=\sum_ib_i\nabla^2f_i+a_i\nabla f_i\nabla f_i^\top$ returns $b$ and $a$; for
    ``of="output"`` they are 1 and 0.
    """
    rows = (*problem.trials, problem.n)
    if of == "output":
        return np.ones(rows), np.zeros(rows)
    f = model.forward(params, problem)  # type: ignore[arg-type]
    if isinstance(model, Encoder):
        factor = 2.0 * model.loss_weight(problem.n)
        return factor * (f - problem.y), np.full(rows, factor)
    m, loss = problem.y * f, losses()[model.loss]
    return np.asarray(problem.y * loss.slope(m) / problem.n), loss.bend(m) / problem.n


def parts(problem: Problem, work: int) -> Iterator[slice]:
    """Blocks of samples; ``work`` is the size of the working arrays of one sample."""
    trials = max(1, int(np.prod(problem.trials, dtype=int)))
    block = max(1, BLOCK // (max(1, work) * trials))
    for start in range(0, problem.n, block):
        yield slice(start, min(start + block, problem.n))


def read(model: AnyModel, params: Params, problem: Problem, part: slice) -> Network:
    """The samples of ``part`` in the common form."""
    X = problem.X[..., part, :, :][..., None, :, :, :]
    if isinstance(model, Attention):
        assert isinstance(problem, TokenProblem)
        Z = problem.z[..., None, part, None, :]
        mask = None if problem.mask is None else problem.mask[..., None, part, None, :]
        return _attention(model, params, X, Z, problem.v, mask)
    if isinstance(model, MultiHead):
        Z = X[..., -1:, :] if model.output == "last" else X
        slot, weight = Slot("W", None, Z, False), model.heads**-0.5
        U = params["U"] if model.output == "full" else params["U"][..., None, :]
        h = weight * U[..., None, :, :]
        shared = model.output != "full"
        h = np.broadcast_to(h, (*h.shape[:-2], Z.shape[-2], h.shape[-1]))
        s, o = _attend(X, slot, params["W"], None)
        return Network(X, s, o, (slot,), Projection("U", h, weight, shared=shared), True)
    tau0 = model.tau0
    W_Q, W_K = params["W_Q"][..., None, :, :], params["W_K"][..., None, :, :]
    K = Slot("W_K", None, tau0 * X @ W_Q.swapaxes(-1, -2)[..., None, :, :], True)
    Q = Slot("W_Q", W_K.swapaxes(-1, -2), tau0 * X, False)
    s, o = _attend(X, K, W_K.swapaxes(-1, -2), None)
    pool = model.tau1 / problem.T if model.pooling == "mean" else model.tau1
    readout = Layer.at(o, params["W_V"], params["w_O"], pool)
    return Network(X, s, o, (K, Q), readout, False)


def _attention(
    model: Attention, params: Params, X: Array, Z: Array, v: Array, mask: BoolArray | None
) -> Network:
    slots: tuple[Slot, ...]
    if model.factors is None:
        slots = (Slot("W", None, Z, False),)
        first = params["W"][..., None, :, :]
    else:
        first, Q = params["K"][..., None, :, :], params["Q"][..., None, :, :]
        slots = (Slot("K", None, Z @ Q[..., None, :, :], False), Slot("Q", first, Z, True))
    s, o = _attend(X, slots[0], first, mask)
    v = params["v"] if model.train_head else v
    h = model.head.gradient(o[..., 0, :, 0, :], v)[..., None, :, None, :]
    bend = -2.0 * model.head.penalty if isinstance(model.head, ConcaveHead) else 0.0
    readout = Projection("v" if model.train_head else None, h, 1.0, bend)
    return Network(X, s, o, slots, readout, False)


def _attend(X: Array, slot: Slot, first: Array, mask: BoolArray | None) -> tuple[Array, Array]:
    """Attention and attended tokens, from the slot that stands next to the keys."""
    keys = slot.right @ first.swapaxes(-1, -2)[..., None, :, :]
    logits = keys @ X.swapaxes(-1, -2)
    s = softmax(logits if mask is None else np.where(mask, logits, -np.inf))
    return s, s @ X
