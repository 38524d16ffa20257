"""Several tokens a sample: Gen-SVM, the finite component, and the two together."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, BoolArray, IntArray
from attnlab.problems import TokenProblem
from attnlab.svm._attention import present, solve_tamed
from attnlab.svm._margin import Margin
from attnlab.svm._nuclear import basis
from attnlab.svm._rows import Dense

EQUALITY_SLACK = 1e-6  # of a logit, where the margin is 1
EQUALITY_RANK = 1e-11  # singular values of the equalities below this share of the largest are 0


def general_svm(problem: TokenProblem, *, selected: Any) -> Margin:
    r"""Gen-SVM: selected tokens share one logit, masked ones stay a margin below.

    $\min\|W\|_F$ s.t. $(x_{it}-x_{i\tau})^\top Wz_i\ge1$ for $t\in O_i,\tau\notin O_i$ and $=0$
    for $t,\tau\in O_i$. One selected token a sample serves as reference; equalities are
    eliminated by projecting on their null space.

    Args:
        problem: the data; any leading axes.
        selected: $O_i$ as a boolean mask, shape ``(..., n, T)``; every sample selects a token,
            and somewhere in every trial one is left out.

    Returns:
        A `Margin`; its margins are those of the masked tokens against the selected ones.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=2, T=4, d=8, rng=0)
        >>> pair = np.tile([True, True, False, False], (2, 1))
        >>> gen = svm.general_svm(p, selected=pair)
        >>> logits = p.X @ gen.W @ p.z[..., None]
        >>> bool(np.ptp(logits[:, :2, 0], axis=1).max() < 1e-9), gen.status
        (True, 'optimal')

    Reference: svm, Section 6 (Gen-SVM).
    """
    O, allowed = _masks(problem, selected)  # noqa: E741
    B, n, T = O.shape
    A, U, V, reference = _features(problem, O)
    others = allowed & ~O
    equal = np.where((O & ~_at(reference, T)).reshape(B, n * T, 1), A, 0.0)
    equal = equal / _lengths(equal)
    P = np.linalg.pinv(equal, rcond=EQUALITY_RANK) @ equal
    features = np.where(others.reshape(B, n * T, 1), A - A @ P, 0.0)
    # a difference that the equalities force to zero cannot reach a margin: call it exactly zero
    size, left = np.linalg.norm(A, axis=2), np.linalg.norm(features, axis=2)
    features[left <= 1e-12 * size] = 0.0
    answer = solve_tamed(Dense(features, others.reshape(B, n * T)))
    # the certificate is that of the projected problem: what rounding leaves of the equalities is
    # looked at in the original one
    held = (A @ answer.W[..., None])[..., 0]
    broken = np.abs(np.where(O.reshape(B, n * T), held, 0.0)).max(axis=1) > EQUALITY_SLACK
    answer.status[broken & (answer.status == "optimal")] = "iteration_limit"
    reduced = answer.W.reshape(B, U.shape[2], V.shape[2])
    answer = answer._replace(W=U @ reduced @ V.swapaxes(1, 2))
    where = np.broadcast_to(np.arange(T), (B, n, T))
    return present(problem, answer, reference, where, "fro", counted=others)


def finite_component(problem: TokenProblem, attention: Any, *, selected: Any) -> Array:
    r"""$W^{fin}$, the least-norm matrix whose softmax shares the selected tokens as given.

    $(x_{it}-x_{i\tau})^\top W^{fin}z_i=\log(s_{it}/s_{i\tau})$ for $t,\tau\in O_i$; where the
    equations contradict each other, the least-norm least-squares solution (each equation divided
    by the length of its feature).

    Args:
        problem: the data; any leading axes.
        attention: $s$, nonnegative with rows that sum to 1 and positive on the selected tokens,
            shape ``(..., n, T)``.
        selected: $O_i$ as a boolean mask, shape ``(..., n, T)``.

    Returns:
        $W^{fin}$, shape ``(..., d, d)``; zero where every sample selects one token.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=1, T=3, d=4, rng=0)
        >>> s = np.array([[0.7, 0.3, 0.0]])
        >>> W = svm.finite_component(p, s, selected=s > 0)
        >>> logits = (p.X @ W @ p.z[..., None])[0, :, 0]
        >>> round(float(np.exp(logits[0] - logits[1])), 6)
        2.333333

    Reference: svm, equation 7 (the code takes the least-norm solution).
    """
    O, _ = _masks(problem, selected, everything=True)  # noqa: E741
    B, n, T = O.shape
    s = check.frozen("attention", attention)
    check.shape("attention", s, (*problem.trials, n, T), "probabilities of the tokens")
    s = s.reshape(B, n, T)
    if s.min() < 0.0 or np.abs(s.sum(axis=-1) - 1.0).max() > 1e-6:
        worst = float(s.sum(axis=-1).ravel()[np.abs(s.sum(axis=-1) - 1.0).argmax()])
        raise check.fail(
            "attention", "nonnegative rows that sum to 1", f"least {s.min():g}, a sum of {worst:g}"
        )
    if (s[O] <= 0.0).any():
        raise check.fail("attention", "positive numbers on the selected tokens", "a zero there")
    A, U, V, reference = _features(problem, O)
    equal = O & ~_at(reference, T)
    rows = np.where(equal.reshape(B, n * T, 1), A, 0.0)
    logs = np.log(np.where(O, s, 1.0))
    base = np.take_along_axis(logs, reference[..., None], axis=-1)
    target = np.where(equal, base - logs, 0.0).reshape(B, n * T, 1)
    size = _lengths(rows)  # each equation counts alike, whatever the size of its tokens
    rows, target = rows / size, target / size
    reduced = (np.linalg.pinv(rows, rcond=EQUALITY_RANK) @ target)[..., 0]
    W = U @ reduced.reshape(B, U.shape[2], V.shape[2]) @ V.swapaxes(1, 2)
    return np.asarray(W.reshape(*problem.trials, *W.shape[1:]))


def svm_equivalent(W: Any, finite: Any, general: Margin) -> Array:
    r"""$W^{fin}+\gamma\bar W$ with the $\gamma$ that correlates best with ``W``.

    The least-norm $W^{fin}$ is orthogonal to $\bar W$, and it is the projection of ``W`` where
    the shares are those of ``W`` itself: then $\gamma=\langle W,\bar W\rangle$, which is also
    taken where no $\gamma$ is best ($\langle W,W^{fin}\rangle\le0$).

    Args:
        W: what training found, shape ``(..., d, d)``.
        finite: $W^{fin}$, same shape.
        general: the `Margin` of `general_svm` (or of `attention_svm`).

    Returns:
        The equivalent matrix, shape ``(..., d, d)``; NaN in trials whose margin is infeasible.

    Examples:
        >>> import numpy as np
        >>> from attnlab import problems, svm
        >>> p = problems.sphere(n=2, T=3, d=6, rng=0)
        >>> mm = svm.attention_svm(p)
        >>> eq = svm.svm_equivalent(5 * mm.W, np.zeros((6, 6)), mm)
        >>> round(float(svm.correlation(eq, mm.W)), 12)
        1.0

    Reference: svm, Section 6, equation 6.
    """
    W, F = check.frozen("W", W, ndim=2), check.frozen("finite", finite, ndim=2)
    check.shape("finite", F, W.shape, "that of W")
    if not isinstance(general, Margin):
        raise check.fail("general", "a Margin", type(general).__name__)
    if general.W.shape != W.shape:
        raise check.fail("general", f"directions of shape {W.shape}", f"shape {general.W.shape}")
    size = np.sqrt(_inner(general.W, general.W))
    G = general.W / size[..., None, None]
    wf, wg, ff, fg = _inner(W, F), _inner(W, G), _inner(F, F), _inner(F, G)
    # projection of W on span{F, G} is a F + b G; gamma = b / a
    a, b = wf - fg * wg, ff * wg - fg * wf
    usable = a > 1e-12 * np.sqrt(_inner(W, W) * ff)
    gamma = np.where(usable, b / np.where(usable, a, 1.0), wg)
    return np.asarray(F + gamma[..., None, None] * G)


def correlation(A: Any, B: Any) -> Array:
    r"""$\langle A,B\rangle/(\|A\|_F\|B\|_F)$, a cosine (0 where one of them is zero).

    Args:
        A: matrices, shape ``(..., d, e)``.
        B: matrices, same last axes; leading axes are broadcast.

    Returns:
        One number a trial; NaN where a matrix is NaN by declaration.

    Examples:
        >>> import numpy as np
        >>> from attnlab import svm
        >>> float(svm.correlation(np.eye(2), [[1.0, 0.0], [0.0, 0.0]]).round(6))
        0.707107

    Reference: svm, Section 5.1 (the captions say Pearson; the code computes a cosine).
    """
    A, B = _matrices("A", A), _matrices("B", B)
    if A.shape[-2:] != B.shape[-2:]:
        raise check.fail("B", f"matrices of shape {A.shape[-2:]}", f"shape {B.shape}")
    try:
        np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    except ValueError:
        fits = f"matrices with leading axes that fit {A.shape[:-2]}"
        raise check.fail("B", fits, f"shape {B.shape}") from None
    A, B = _unit(A), _unit(B)
    return _inner(A, B)


def _matrices(name: str, given: Any) -> Array:
    """Real numbers with at least two axes; NaN stands for the W of an infeasible margin."""
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise check.fail(name, "a matrix of real numbers", given) from None
    if array.ndim < 2:
        raise check.fail(name, "a matrix", f"shape {array.shape}")
    return np.asarray(array, dtype=np.float64)


def _lengths(rows: Array) -> Array:
    """Norms of the rows, 1 where a row is zero, ``(B, k, 1)``."""
    size = np.linalg.norm(rows, axis=2, keepdims=True)
    return np.where(size > 0.0, size, 1.0)


def _unit(A: Array) -> Array:
    """Scaled to length 1 in two steps, so that no square leaves float64; 0 stays 0."""
    top = np.abs(A).max(axis=(-1, -2), keepdims=True)
    A = A / np.where(top == 0.0, 1.0, top)
    size = np.sqrt(_inner(A, A))[..., None, None]
    return np.asarray(A / np.where(size == 0.0, 1.0, size))


def _inner(A: Array, B: Array) -> Array:
    return np.asarray((A * B).sum(axis=(-1, -2)))


def _at(index: IntArray, T: int) -> BoolArray:
    return np.asarray(np.arange(T) == index[..., None])


def _masks(
    problem: TokenProblem, selected: Any, everything: bool = False
) -> tuple[BoolArray, BoolArray]:
    """Selected and allowed tokens, ``(B, n, T)``."""
    if not isinstance(problem, TokenProblem):
        raise check.fail("problem", "a TokenProblem", type(problem).__name__)
    O = np.asarray(selected)  # noqa: E741
    n, T = problem.n, problem.T
    if O.dtype != np.bool_:
        raise check.fail("selected", "a boolean mask", f"dtype {O.dtype}")
    check.shape("selected", O, (*problem.trials, n, T), "one entry a token")
    if not O.any(axis=-1).all():
        raise check.fail("selected", "a token in every sample", "a sample that selects none")
    allowed = np.ones_like(O) if problem.mask is None else problem.mask
    if (O & ~allowed).any():
        raise check.fail("selected", "tokens that the mask allows", "a masked token")
    if not everything and not (allowed & ~O).any(axis=(-1, -2)).all():
        raise check.fail(
            "selected", "a token left out somewhere in every trial", "a trial that selects all"
        )
    return O.reshape(-1, n, T), np.asarray(allowed.reshape(-1, n, T))


def _features(
    problem: TokenProblem,
    O: BoolArray,  # noqa: E741
) -> tuple[Array, Array, Array, IntArray]:
    r"""$(x_{ref}-x_t)z^\top$ in coordinates of the spans, the two bases, the references."""
    B, n, T = O.shape
    d = problem.d
    X, z = problem.X.reshape(B, n, T, d), problem.z.reshape(B, n, d)
    reference = O.argmax(axis=-1)
    left = np.take_along_axis(X, reference[..., None, None], axis=2) - X
    U, V = basis(left.reshape(B, n * T, d)), basis(z)
    left, right = left @ U[:, None], z @ V
    A = left[..., :, None] * right[:, :, None, None, :]
    return A.reshape(B, n * T, -1), U, V, reference
