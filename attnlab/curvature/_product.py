r"""Hessian times direction: the tangent of the gradient, without any matrix of size p.

One pass computes the gradient's ingredients and their tangents:
$do=\sum_sds_s\,x_s$, $ds=s\circ(dl-\langle s,dl\rangle)$, and for the covariance
$g=\sum_ss_s(A_s-\bar A)x_s$ that carries every gradient inside the logits its own tangent $dg$.
"""

from __future__ import annotations

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array
from attnlab.curvature._network import AnyModel, Network, Problem, known, parts, read, weights
from attnlab.curvature._readouts import outer
from attnlab.models import Params, centred, fit


def product(model: AnyModel, params: Params, problem: Problem, direction: Params) -> Params:
    r"""The Hessian of the loss times a direction, exactly and without the matrix.

    The tangent of the closed-form gradient, $\frac{d}{dt}\nabla L(\theta+tv)|_{t=0}$, written
    out; it costs a few gradients (5 to 15). Kinks of relu are ignored.

    Args:
        model: `Attention`, `MultiHead` or `Encoder`.
        params: a dict of arrays; leading axes may be missing.
        problem: the samples.
        direction: a dict of the same keys and shapes as ``params``.

    Returns:
        A dict of the same keys; shapes with the trials in front.

    Examples:
        >>> import numpy as np
        >>> from attnlab import curvature, models, problems
        >>> p = problems.sphere(n=3, T=4, d=5, rng=0)
        >>> model = models.Attention()
        >>> params, v = model.init(p, rng=0), model.init(p, rng=1)
        >>> direct = curvature.hessian(model, params, p).matrix @ v["W"].ravel()
        >>> bool(np.allclose(curvature.product(model, params, p, v)["W"].ravel(), direct))
        True

    Reference: multihead, Lemma 1 (4); encoder, Theorem 3.
    """
    known(model)
    params = fit(model, params, problem)
    if not isinstance(direction, dict) or direction.keys() != params.keys():
        given = sorted(map(str, direction)) if isinstance(direction, dict) else type(direction)
        raise check.fail("direction", f"a dict with the keys {sorted(params)}", given)
    along: Params = {}
    for name, array in params.items():
        tail = array.shape[len(problem.trials) :]
        given_array = check.frozen(f"direction[{name!r}]", direction[name])
        if given_array.shape not in (tail, array.shape):
            raise check.fail(
                f"direction[{name!r}]", f"shape {array.shape}", f"shape {given_array.shape}"
            )
        along[name] = np.broadcast_to(given_array, array.shape)
    return products(model, params, problem, along, "loss")


def products(
    model: AnyModel, params: Params, problem: Problem, direction: Params, of: str
) -> Params:
    """The product for the loss or the outputs' sum; arguments are already checked."""
    b, a = weights(model, params, problem, of)
    found = {name: np.zeros_like(array) for name, array in params.items()}
    H = params["W"].shape[-3] if "U" in params else 1
    hidden = params["w_O"].shape[-1] if "w_O" in params else problem.d
    for part in parts(problem, problem.T * (H * (problem.T + problem.d) + hidden)):
        net = read(model, params, problem, part)
        for name, array in _tangent(net, direction, b[..., part], a[..., part]).items():
            found[name] += array
    return found


def _tangent(net: Network, direction: Params, b: Array, a: Array) -> Params:
    """Tangent of the weighted gradient; the weights ``b`` themselves move by ``a df``."""
    X, s, o, h = net.X, net.s, net.o, net.readout.h
    keys = X.swapaxes(-1, -2)
    moves = [net.natural(slot, direction[slot.name])[..., None, :, :] for slot in net.slots]
    dr = np.zeros(())
    for slot, move in zip(net.slots, moves, strict=True):
        rows = slot.right @ move.swapaxes(-1, -2)
        if slot.left is not None:
            rows = rows @ slot.left.swapaxes(-1, -2)[..., None, :, :]
        dr = dr + rows
    dl = dr @ keys
    ds = s * centred(s, dl)
    do = ds @ X
    turn = net.readout.turn(o, do, direction)
    df = turn.df + (h * do).sum(axis=(-1, -2, -4))
    A = centred(s, h @ keys)
    dA = centred(s, turn.dh @ keys) - (ds * A).sum(axis=-1, keepdims=True)
    g, dg = (s * A) @ X, (ds * A + s * dA) @ X
    B, dB = b[..., None, :, None, None], (a * df)[..., None, :, None, None]
    found = turn.grads(B, dB)
    g, dg = B * g, dB * g + B * dg
    for k, slot in enumerate(net.slots):
        total = outer(slot.onto(dg), slot.right)
        if len(net.slots) == 2:  # W = KQ': the other factor moves as well
            total += (
                outer(g, net.slots[1].right @ moves[1].swapaxes(-1, -2))
                if k == 0
                else outer(g @ moves[0], slot.right)
            )
        total = total.swapaxes(-1, -2) if slot.flipped else total
        found[slot.name] = total if net.headed else total[..., 0, :, :]
    return found
