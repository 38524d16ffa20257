"""Slips in the setting and its example: what W stands for, conditioning numbers, growth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal
from attnbook.claims.bias._instances import FIXED, copies
from attnlab import models, optim, problems, svm


@measures("bias.erratum-1")
def erratum_1(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    from scipy.special import softmax

    drawn = problems.sphere(n=2, T=4, d=5, trials=instances, self_attention=True, rng=rng)
    X, model = drawn.X, models.Attention(loss="exponential")
    query, key = rng.standard_normal((2, instances, 5, 3))
    between = query @ key.mT
    first_row = softmax(X @ between[:, None] @ X.mT, axis=-1)[..., 0, :]
    for W, role in ((between, "statement"), (between.mT, "correction")):
        read = model.attention({"W": W}, drawn)
        name = "W_Q W_K'" if role == "statement" else "W_K W_Q'"
        yield equal(
            f"model (1) with W = {name}: row 1 of the map", read, first_row, size=1.0, role=role
        )
    outputs = model.forward({"W": between}, drawn)
    for W, role in ((between.mT, "step"), (between, "correction")):
        s = softmax((X @ (W[:, None] @ drawn.z[..., None]))[..., 0], axis=-1)
        literal = (s * (X @ drawn.v[:, None, :, None])[..., 0]).sum(axis=-1)
        name = "with W' as in (51)" if role == "step" else "with W"
        yield equal(f"output of the model, {name}", literal, outputs, size=1.0, role=role)


@measures("bias.erratum-2")
def erratum_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    best, other = np.array([1.0, 2.0]), np.array([0.0, 0.5])
    forms = {
        "main text": ("main", 6.72, "statement"),
        "Table 1": ("table", 2.47, "step"),
        "equation (22)": ("proof", 11.08, "correction"),
    }
    share = 1.0 / (1.0 + np.exp(5.0 * rng.standard_normal((instances, 2))))
    share[0] = 1.0 - 1e-9, 1e-9  # attention at opposite ends
    share = np.concatenate([share, share[:, ::-1]])
    losses = np.exp(-(share * best + (1.0 - share) * other))
    ratio = losses.max(axis=-1) / losses.min(axis=-1) * 1.5
    for name, (form, quoted, role) in forms.items():
        value = theory.bias.conditioning(best, other, form=form)
        what = f"scores (1, 2) over (0, 0.5): kappa max loss / min loss, Upsilon of {name}"
        yield at_most(what, ratio, value, role=role)
        yield equal(f"Upsilon of {name}", value, quoted, within=2e-3, role="correction")

    many = max(instances, 20)
    drawn = problems.sphere(n=4, T=2, d=4, trials=many, self_attention=True, rng=rng)
    drawn = problems.TokenProblem(drawn.X, drawn.z, drawn.y, 5.0 * drawn.v)
    grad = models.Attention(loss="exponential").value_and_grad(
        {"W": rng.standard_normal((many, 4, 4))}, drawn
    )[1]["W"]
    logits = (drawn.X @ (grad[:, None] @ drawn.z[..., None]))[..., 0]
    moved = np.ptp(logits, axis=-1).max(axis=-1)  # all tokens have length B = 1
    top, low, _ = theory.bias.split_scores(drawn)
    what = "largest move of a logit difference in a GD step, over step size and B^4"
    printed, mended = (theory.bias.loss_scale(top, low, printed=p) for p in (True, False))
    yield at_most(f"{what}, zeta of Table 1", moved, printed, role="step")
    yield at_most(what, moved, mended, role="correction")


@measures("bias.erratum-14", instances=5)
def erratum_14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    data, start = problems.two_token(), np.array([[0.1, 0.3], [-0.2, 0.4]])
    kept = {"W": lambda params, _: params["W"]}
    run = optim.train(
        FIXED, data, optim.GD(1.0), steps=200, params={"W": start}, record=["grad_norm", kept]
    )
    W = run.history["W"]
    truth = svm.correlation(W, svm.attention_svm(data).W)
    pushed = np.cumsum(run.history["grad_norm"])  # G_t
    rest = np.square(start).sum() - start[0, 0] ** 2
    late = start[0, 0] + pushed[1:]
    shifted = start[0, 0] + pushed[:-1]
    what = "correlation of GD on the example, t = 1..200, against (3)"
    for name, along, role in (("G_t", late, "statement"), ("G_(t-1)", shifted, "correction")):
        miss = theory.bias.two_token_miss(along, rest)
        yield equal(f"{what} with {name}", truth[1:], 1.0 - miss, role=role)

    first = optim.train(FIXED, data, optim.NormalizedGD(0.1), steps=7, params={"W": start})
    grad = FIXED.value_and_grad({"W": start}, data)[1]["W"]
    unit = 7.0 * grad / np.linalg.norm(grad)  # on the example all gradients point one way
    for sign, role in ((1.0, "step"), (-1.0, "correction")):
        moved = start + 0.1 * sign * unit
        name = "W_7 of NGD from the sum of unit gradients, sign " + "-+"[sign > 0]
        yield equal(name, moved, first.params["W"], size=1.0, role=role)

    # along the example only the corner moves, so other starts are other corners
    corners = np.concatenate([[0.1], rng.uniform(-0.5, 0.5, instances - 1)])
    many = copies(data, instances)
    starts = np.array(np.broadcast_to(start, (instances, 2, 2)))
    starts[:, 0, 0] = corners
    long = optim.train(
        FIXED,
        many,
        optim.GD(1.0),
        steps=10_000,
        params={"W": starts},
        record=[{"corner": lambda params, _: params["W"][..., 0, 0]}],
        every=(100, 1000, 3000, 10_000),
    )
    t, corner = long.history["step"][1:, None], long.history["corner"][1:]
    found = np.stack([theory.bias.two_token_gd(t[:, 0], w, 1.0) for w in corners], axis=-1)
    quoted = np.array([3.542, 5.896, 7.002, 8.2087])
    what = "corner of W under GD"
    yield equal(
        f"{what}, t = 100 to 10000, quoted", corner[:, 0], quoted, within=2e-4, role="correction"
    )
    yield equal(
        f"{what} against log(e^w + t/e), t >= 1000",
        corner[1:],
        found[1:],
        within=5e-3,
        role="correction",
    )
    miss = theory.bias.two_token_miss(corner[1:], rest) * np.log(t[1:]) ** 2
    what = "(1 - correlation)(log t)^2 under GD"
    yield at_least(what, miss, rest / 4.0, role="correction")
    yield at_most(what, miss, rest, role="correction")
