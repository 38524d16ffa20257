"""The Hessian of the loss or of the outputs, as a record that forms its matrix when asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.curvature._dense import dense
from attnlab.curvature._lanczos import by_lanczos
from attnlab.curvature._network import AnyModel, Problem, known, order, size
from attnlab.models import Params, fit
from attnlab.problems import TokenProblem

# A Hessian above this is refused; forming it takes up to three times as much for a moment.
LARGEST_BYTES = 1e9
# Up to this size eigvalsh (0.2 s at 600) is faster than Lanczos, and it takes all trials at once.
DENSE = 600


@dataclass(frozen=True, eq=False, repr=False)
class Hessian:
    r"""The second derivative of the loss, or of each sample's output, at one point.

    The matrix is formed when it is first asked for. Of relu it is the derivative that holds
    almost everywhere: the kinks are ignored.

    Args:
        model: the model.
        params: where.
        problem: the samples; for ``of="output"`` each sample is a trial of its own.
        of: ``"loss"`` or ``"output"``.
        order: where each parameter, flattened, stands in the matrix.

    Returns:
        A frozen record; its leading axes are the trials, then the samples for ``"output"``.

    Examples:
        >>> from attnlab import curvature, models, problems
        >>> seq = problems.tokenized_mixture(n=20, rng=0)
        >>> model = models.MultiHead(heads=2, start="gaussian")
        >>> found = curvature.hessian(model, model.init(seq, rng=0), seq)
        >>> found
        Hessian(of='loss', p=112: U 80, W 32)
        >>> found.blocks["U", "W"].shape
        (80, 32)

    Reference: multihead, Lemma 1; encoder, Theorem 3.
    """

    model: AnyModel
    params: Params = field(repr=False)
    problem: Problem
    of: str
    order: dict[str, slice]

    @property
    def size(self) -> int:
        """The number p of parameters."""
        return size(self.order)

    @property
    def trials(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.problem.trials

    @cached_property
    def matrix(self) -> Array:
        """The Hessian itself, symmetric, shape ``(..., p, p)``."""
        found = dense(self.model, self.params, self.problem, self.of)
        found.flags.writeable = False
        return found

    @property
    def blocks(self) -> dict[tuple[str, str], Array]:
        """Views of the matrix by pairs of parameter names."""
        return {
            (first, second): self.matrix[..., rows, columns]
            for first, rows in self.order.items()
            for second, columns in self.order.items()
        }

    @cached_property
    def extremes(self) -> tuple[Array, Array]:
        """Smallest and largest eigenvalue of each trial; by Lanczos, without matrix, if large."""
        if self.size > DENSE:
            return by_lanczos(self.model, self.params, self.problem, self.of)
        values = np.linalg.eigvalsh(self.matrix)
        return np.asarray(values[..., 0]), np.asarray(values[..., -1])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {s.stop - s.start}" for name, s in self.order.items())
        lead = f"trials={self.trials}, " if self.trials else ""
        return f"Hessian({lead}of={self.of!r}, p={self.size}: {sizes})"


def hessian(model: AnyModel, params: Params, problem: Problem, *, of: str = "loss") -> Hessian:
    r"""The exact Hessian in closed form.

    $\nabla^2L=\frac1n\sum_i\ell''_i\nabla f_i\nabla f_i^\top+\ell'_iy_i\nabla^2f_i$, and inside
    attention $\nabla^2f$ is made of the central moments of the tokens under the attention map:
    covariance for readout and $W$, third moment for $W$ and $W$. Heads meet only in the first
    sum. Two factors of $W$ have in addition the gradient of $W$ itself, the term $+a\,I$ that
    the encoder paper's $H_{QK}$ misses. Kinks of relu are ignored.

    Args:
        model: `Attention`, `MultiHead` or `Encoder`.
        params: a dict of arrays; leading axes may be missing.
        problem: the samples.
        of: ``"loss"``, or ``"output"`` for the Hessian of every sample's output.

    Returns:
        A `Hessian` with ``.matrix (..., p, p)``, ``.blocks``, ``.order`` and ``.extremes``; for
        ``of="output"`` the samples are the last leading axis.

    Examples:
        >>> import numpy as np
        >>> from attnlab import curvature, models, problems
        >>> reg = problems.gaussian_regression(n=4, T=3, d=2, unit_tokens=True, rng=0)
        >>> model = models.Encoder(width=5)
        >>> found = curvature.hessian(model, model.init(reg, rng=0), reg, of="output")
        >>> found.matrix.shape, bool((found.blocks["W_V", "W_V"] == 0.0).all())
        ((4, 35, 35), True)

    Reference: multihead, Lemma 1 and equation 65; encoder, Theorem 3 (Appendix D.3).
    """
    known(model)
    check.choice("of", of, ("loss", "output"))
    places = order(model, problem)
    params = fit(model, params, problem)
    trials = problem.trials if of == "loss" else (*problem.trials, problem.n)
    p, count = size(places), int(np.prod(trials, dtype=int))
    needed = 8.0 * p * p * count
    if needed > LARGEST_BYTES:
        each = f" for each of {count} " + ("trials" if of == "loss" else "outputs")
        raise check.fail(
            "hessian",
            f"at most {LARGEST_BYTES / 1e9:g} GB (curvature.product and curvature.extremes need "
            "no matrix)",
            f"{p} x {p}{each if count > 1 else ''}, which is {needed / 1e9:.1f} GB",
        )
    if of == "output":
        problem, params = _by_sample(problem, params)
    return Hessian(model, params, problem, of, places)


def _by_sample(problem: Problem, params: Params) -> tuple[Problem, Params]:
    """Every sample as a trial of its own."""
    lead = (*problem.trials, problem.n)

    def spread(array: Array) -> Array:
        k = len(problem.trials)
        wide = np.expand_dims(array, k)
        return np.array(np.broadcast_to(wide, (*lead, *array.shape[k:])))

    arrays: dict[str, Any] = {"X": problem.X[..., :, None, :, :], "y": problem.y[..., None]}
    if problem.relevant is not None:
        arrays["relevant"] = problem.relevant[..., None, :]
    if isinstance(problem, TokenProblem):
        arrays |= {"z": problem.z[..., :, None, :], "v": spread(problem.v), "sequence_index": None}
        arrays["mask"] = None if problem.mask is None else problem.mask[..., None, :]
    apart: Problem = replace(problem, **arrays, source=None)
    return apart, {name: spread(array) for name, array in params.items()}
