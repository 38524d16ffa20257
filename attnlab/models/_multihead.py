"""Multi-head self-attention in which every token is a query: the model of the multihead paper."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, Rng
from attnlab.models._base import Params, draws, fit, kind
from attnlab.models._losses import LOSSES, check_labels
from attnlab.models._softmax import softmax
from attnlab.problems import SequenceProblem

# Numbers of E and of A worked on at a time, 1.6 MB each: not far from the processor, and few calls.
BLOCK = 200_000


@dataclass(frozen=True)
class MultiHead:
    r"""$\tilde\Phi(X)=H^{-1/2}\sum_h\langle U_h,\mathrm{softmax}(XW_h^\top X^\top)X\rangle$.

    Parameters are ``W (..., H, d, d)`` and ``U (..., H, T, d)`` (``(..., H, d)`` for the pooled and
    the last-token output). Query $t$ gives key $s$ the logit $x_s^\top W_hx_t$: the paper's $W$
    is the transpose of ours.

    Args:
        heads: $H$.
        output: ``"full"`` projects every position with a row of ``U``; ``"pooled"`` uses one
            vector for all positions, $U=\mathbf 1u^\top$; ``"last"`` reads the last position.
        loss: ``"logistic"``, ``"exponential"`` or ``"correlation"``.
        start: ``"zero"``, or ``"gaussian"`` for entries $\mathcal N(0,\mathrm{scale}^2)$.
        scale: size of a Gaussian start.

    Returns:
        A model: frozen hyper-parameters; it holds no arrays of its own.

    Examples:
        >>> from attnlab import models, problems
        >>> p = problems.tokenized_mixture(n=100, rng=0)
        >>> model = models.MultiHead(heads=4)
        >>> params = model.init(p)
        >>> loss, grads = model.value_and_grad(params, p)
        >>> round(float(loss), 4), grads["U"].shape, grads["W"].shape
        (0.6931, (4, 10, 4), (4, 4, 4))
        >>> bool((grads["W"] == 0).all())  # at zero, W does not move on the first step
        True

    Reference: multihead, equations 1 and 2, Lemma 1 (gradients).
    """

    heads: int
    output: str = "full"
    loss: str = "logistic"
    start: str = "zero"
    scale: float = 0.1

    def __post_init__(self) -> None:
        check.count("heads", self.heads)
        check.choice("output", self.output, ("full", "pooled", "last"))
        check.choice("loss", self.loss, LOSSES)
        check.choice("start", self.start, ("zero", "gaussian"))
        check.number("scale", self.scale, above=0.0)

    def shapes(self, problem: SequenceProblem) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter of one trial; refuses problems that do not suit the model."""
        kind(problem, SequenceProblem, "MultiHead")
        check_labels(problem, self.loss)
        H, T, d = self.heads, problem.T, problem.d
        return {"U": (H, T, d) if self.output == "full" else (H, d), "W": (H, d, d)}

    def init(self, problem: SequenceProblem, rng: Rng | None = None) -> Params:
        """Parameters to start from; ``rng`` is needed for a Gaussian start."""
        full = {name: problem.trials + tail for name, tail in self.shapes(problem).items()}
        if self.start == "zero":
            return {name: np.zeros(size) for name, size in full.items()}
        generator = draws(self.start, rng)
        return {name: self.scale * generator.standard_normal(size) for name, size in full.items()}

    def forward(self, params: Params, problem: SequenceProblem) -> Array:
        r"""Outputs $\tilde\Phi(X_i)$, shape ``(..., n)``."""
        U, W, weight = self._parts(params, problem)
        P = self._maps(W, problem)
        attended = P @ problem.X[..., None, :, :]
        return np.asarray(weight * (U[..., None, :, :, :] * attended).sum(axis=(-1, -2, -3)))

    def attention(self, params: Params, problem: SequenceProblem) -> Array:
        """Maps ``[query, key]``: ``(..., n, H, T, T)``, for ``"last"`` only ``(..., n, H, T)``."""
        P = self._maps(self._fitted(params, problem)["W"], problem)
        return P[..., 0, :] if self.output == "last" else P

    def floor(self, problem: SequenceProblem) -> Array:
        """The infimum 0 of the loss where the data can be separated."""
        if not LOSSES[self.loss].bounded:
            raise check.fail("floor", "a loss that is bounded below", self.loss)
        return np.zeros(problem.trials)

    def value_and_grad(self, params: Params, problem: SequenceProblem) -> tuple[Array, Params]:
        r"""Mean loss, shape of the trials, and its gradient.

        The gradient in $U_h$ is a mean of attended tokens, the one in $W_h$ a sum of covariances:
        $\nabla_W\Phi=\sum_t\mathrm{Cov}_t(x,\langle u_t,x\rangle)\,x_t^\top$ (key left,
        query right). Heads that coincide are computed once: from a zero start they always do.
        """
        U, W, weight = self._parts(params, problem)
        y = problem.y
        H, Q, d = U.shape[-3:]
        lead, T, n = problem.trials, problem.T, problem.n
        loss, axes = LOSSES[self.loss], tuple(range(len(lead)))
        margins = np.empty(y.shape)
        gU, gW = np.zeros((*lead, d, Q * H)), np.zeros((*lead, d, d, H))
        matrices = np.ascontiguousarray(W.transpose(*axes, -2, -1, -3))
        columns = U.transpose(*axes, -1, -2, -3).reshape(*lead, d, Q * H)
        block = max(1, BLOCK // (H * T * Q * max(1, prod(lead))))
        logits_bound = np.sqrt((W * W).sum(axis=(-1, -2)).max()) * _longest(problem) ** 2
        safe = bool(logits_bound < 500.0)  # then exp neither overflows nor vanishes
        room, counted = _Room(lead, min(block, n), T, d, Q * H), _counted(problem)
        queries = _queries(problem, self.output)
        for i in range(0, n, block):
            part = (..., slice(i, i + block), slice(None))
            seen = _Block(room, counted[*part, :], queries[part], matrices, columns, safe)
            labels = y[..., i : i + block]
            m = margins[..., i : i + block]
            np.multiply(labels, weight * seen.outputs, out=m)
            toU, toW = seen.pull(loss.slope(m) * labels / n)
            gU += toU
            gW += toW
        gU = gU.reshape(*lead, d, Q, H).transpose(*axes, -1, -2, -3)
        gW = gW.transpose(*axes, -1, -3, -2)
        share = self.heads**-0.5
        grads = {"U": self._fold(gU) * share, "W": gW * share}
        full = {name: problem.trials + tail for name, tail in self.shapes(problem).items()}
        for name, g in grads.items():
            same = g.shape == full[name]  # else of one head in the place of all
            grads[name] = np.ascontiguousarray(g if same else np.broadcast_to(g, full[name]))
        return loss.value(margins).sum(axis=-1) / n, grads

    def _fitted(self, params: Params, problem: SequenceProblem) -> Params:
        return fit(self, params, problem, copy=False)

    def _parts(self, params: Params, problem: SequenceProblem) -> tuple[Array, Array, float]:
        """Projections ``(..., H, queries, d)``, weights and the factor of the output.

        Heads that are equal to the last bit are replaced by one of weight sqrt(H).
        """
        params = self._fitted(params, problem)
        U, W, weight = params["U"], params["W"], self.heads**-0.5
        axis = len(problem.trials)
        first = (slice(None),) * axis + (slice(0, 1),)
        if self.heads > 1 and all(bool((p == p[first]).all()) for p in (U, W)):
            U, W, weight = U[first], W[first], self.heads**0.5
        if self.output != "full":
            width = 1 if self.output == "last" else problem.T
            U = np.broadcast_to(U[..., None, :], (*U.shape[:-1], width, problem.d))
        return U, W, weight

    def _fold(self, gU: Array) -> Array:
        """Back from a row for each query to the parameter's own shape."""
        return gU if self.output == "full" else np.asarray(gU.sum(axis=-2))

    def _maps(self, W: Array, problem: SequenceProblem) -> Array:
        X = problem.X[..., None, :, :]
        queries = X[..., -1:, :] if self.output == "last" else X
        return softmax((queries @ W.swapaxes(-1, -2)[..., None, :, :, :]) @ X.swapaxes(-1, -2))


def _longest(problem: SequenceProblem) -> float:
    """Length of the longest token."""
    return problem.memo("longest token", lambda: float(np.sqrt((problem.X**2).sum(axis=-1).max())))


def _counted(problem: SequenceProblem) -> Array:
    """Tokens with a 1 behind: what is summed over them is counted too."""

    def build() -> Array:
        return np.concatenate([problem.X, np.ones((*problem.X.shape[:-1], 1))], axis=-1)

    return problem.memo("tokens with a 1", build)


def _queries(problem: SequenceProblem, output: str) -> Array:
    """Tokens that are queries, one coordinate after the other: ``(..., d, n, Q)``."""
    first = problem.T - 1 if output == "last" else 0

    def build() -> Array:
        return np.ascontiguousarray(np.moveaxis(problem.X[..., first:, :], -1, -3))

    return problem.memo(f"queries from {first}", build)


class _Room:
    """Working arrays of a pass, which every block of samples fills anew."""

    def __init__(self, lead: tuple[int, ...], n: int, T: int, d: int, K: int) -> None:
        self.tokens = np.empty((2, *lead, n, T, K))
        self.sums = np.empty((2, *lead, d + 1, n, K))
        self.ones = np.ones(max(n, K))


class _Block:
    r"""Some samples, seen by every head; the last axis is (query, head).

    Keys are tokens ``s``, queries ``t``: $R_{it}=(Wx_t)_i$, then $E_{st}=e^{x_s^\top R_t}$ and
    $A_{st}=\langle u_t,x_s\rangle$. What is needed of them are sums over keys,
    $S_t=\sum_sE_{st}(x_s,1)$ and $V_t=\sum_sE_{st}A_{st}(x_s,1)$: few numbers for each query.
    """

    def __init__(
        self, room: _Room, counted: Array, queries: Array, W: Array, columns: Array, safe: bool
    ) -> None:
        *lead, d, n, Q = queries.shape
        X, self.Z, self.ones = counted[..., :d], queries.reshape(*lead, d, n * Q), room.ones
        E, A = room.tokens[..., :n, :, :]
        self.S, self.V = room.sums[..., :n, :]  # (..., d + 1, n, Q * H)
        if W.shape[-1] == 1:
            turned = W[..., 0] @ self.Z
        else:
            turned = self.Z.swapaxes(-1, -2)[..., None, :, :] @ W  # (..., d, n * Q, H)
        np.matmul(X, turned.reshape(*lead, d, n, -1).swapaxes(-2, -3), out=E)
        if not safe:
            E -= E.max(axis=-2, keepdims=True)
        np.exp(E, out=E)
        tokens = self.Z.swapaxes(-1, -2) if X.shape[-2] == Q else X.reshape(*lead, -1, d)
        np.matmul(tokens, columns, out=A.reshape(*lead, -1, A.shape[-1]))
        A *= E
        for values, sums in ((E, self.S), (A, self.V)):
            np.matmul(counted.swapaxes(-1, -2), values, out=sums.swapaxes(-2, -3))
        self.share = 1.0 / self.S[..., -1, :, :]
        self.mean = self.V[..., -1, :, :] * self.share  # of A under attention

    @property
    def outputs(self) -> Array:
        """Sums over queries and heads, ``(..., n)``."""
        return np.asarray(self.mean @ self.ones[: self.mean.shape[-1]])

    def pull(self, slope: Array) -> tuple[Array, Array]:
        """Gradients in U ``(..., d, Q * H)`` and W ``(..., d, d, H)``; S and V are used up."""
        S, V, Z = self.S[..., :-1, :, :], self.V[..., :-1, :, :], self.Z
        weight = (self.share * slope[..., None])[..., None, :, :]
        S *= weight
        toU = self.ones[: S.shape[-2]] @ S
        S *= self.mean[..., None, :, :]
        V *= weight
        V -= S
        covariances = V.reshape(*V.shape[:-2], Z.shape[-1], -1)
        if covariances.shape[-1] == 1:
            # a dozen long inner products: half of what BLAS takes for them as a product
            inner = np.vecdot(covariances[..., None, :, 0], Z[..., None, :, :])
            return toU, inner[..., None]
        return toU, Z[..., None, :, :] @ covariances
