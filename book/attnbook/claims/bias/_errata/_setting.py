"""Slips in the setting: which weights W stands for, and three conditioning numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, equal
from attnlab import models, problems


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
