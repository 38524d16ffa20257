"""More heads on the tokenized mixture (DM1): Figures 2 and 3 of the multihead paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures.multihead import heads as common
from attnlab import optim, problems
from attnlab.problems import SequenceProblem

LEAST = 1e-12  # losses below this are not shown
RULES = ("GD, step ~ √H", "Adam")


def data_of(
    cell: Cell, trials: int, rng: np.random.Generator
) -> tuple[SequenceProblem, SequenceProblem]:
    """Training and test samples."""
    drawn = problems.tokenized_mixture(
        n=cell["n"],
        T=cell["T"],
        d=cell["d"],
        M=cell["M"],
        S=cell["S"],
        zeta=cell["zeta"],
        sigma=cell["sigma"],
        trials=trials,
        rng=rng,
    )
    return drawn, drawn.fresh(cell["test_n"], rng=rng)


def finish(settings: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Coordinates, and the margin of attention that sees relevant tokens only."""
    ceiling = theory.multihead.gamma_attn(T=settings["T"], S=settings["S"])
    return {**common.coordinates(settings, arrays), "gamma_attn": ceiling}


def paint_2(data: Data, canvas: Any) -> None:
    """Loss, norms, attention and margin."""
    (loss, norms), (attention, margin) = canvas.subplots(2, 2)
    common.curves(loss, data, data["train"])
    common.curves(loss, data, data["test"], thin=True)
    loss.set(yscale="log", title="training loss (dotted: test)")
    common.curves(norms, data, np.where(data["norm_W"] > 0.0, data["norm_W"], np.nan))
    common.curves(norms, data, data["norm_U"], thin=True)
    norms.set(yscale="log", title="average ‖W‖ (dotted: ‖U‖)", ylim=(1e-3, None))
    common.curves(attention, data, data["attention"])
    attention.set(title="attention on relevant tokens", ylim=(0, 1.02), xlabel="step")
    common.curves(margin, data, data["margin"])
    common.level(margin, float(data["gamma_attn"]))
    margin.set(title="margin", xlabel="step")
    common.legend(canvas)


def alt_2(data: Data) -> str:
    """Ends of the curves."""
    return (
        f"Four panels over {data['step'][-1]} steps of gradient descent with step "
        f"{data.settings['eta']:g}. Median training loss at the end: "
        f"{common.each(data, data['train'])}. "
        f"Attention on relevant tokens: {common.each(data, data['attention'])}. "
        f"Margin: {common.each(data, data['margin'])}; γ_attn is {data['gamma_attn']:.3f}."
    )


def paint_3(data: Data, canvas: Any) -> None:
    """Loss above, margin below; gradient descent left, Adam right."""
    panels = canvas.subplots(2, 2, sharex=True)
    for k, rule in enumerate(RULES):
        loss, margin = panels[:, k]
        common.curves(loss, data, data["train"][:, k])
        common.curves(loss, data, data["test"][:, k], thin=True)
        loss.set(yscale="log", title=f"{rule}: loss")
        loss.set_ylim(max(LEAST, loss.get_ylim()[0]), None)
        common.curves(margin, data, data["margin"][:, k])
        common.level(margin, float(data["gamma_attn"]))
        margin.set(title="margin", xlabel="step")
    common.legend(canvas)


def alt_3(data: Data) -> str:
    """Ends of the curves, one sentence a rule and quantity."""
    told = [
        f"{rule}: median training loss at the end {common.each(data, data['train'][:, k])}; "
        f"margin {common.each(data, data['margin'][:, k])}."
        for k, rule in enumerate(RULES)
    ]
    return (
        f"Loss and margin over {data['step'][-1]} steps; γ_attn is {data['gamma_attn']:.3f}. "
        + " ".join(told)
    )


SETTINGS = {
    "n": 100,
    "test_n": 300,
    "T": 10,
    "d": 4,
    "M": 2,
    "S": 2.0,
    "zeta": 0.1,
    "sigma": 0.1,
}
MORE = {"attention": "mean softmax mass on the relevant tokens (training samples, queries, heads)"}
GAMMA = {"gamma_attn": "() margin of attention on relevant tokens only, S sqrt(T / 2)"}
READING = (
    "Numbers of heads and steps stand only in the paper's pictures, and the divisor of the margin "
    "nowhere: the norm of all U, for which γ_attn is the ceiling. The relevant tokens are drawn "
    "anew for each sample. From a zero start all heads stay equal, so H heads are one head with "
    "two learning rates, "
)
READING_2 = READING + "and more heads only slow W down: this explains the whole picture."
READING_3 = READING + (
    "and W is slower than U by H (GD) or √H (Adam): the loss falls faster through U alone, which "
    "is why the margin falls behind. The constant in the step √H is .3 (with 1, as in Figure 2, "
    "many heads overshoot at first); Adam has its usual β and stops where gradients reach its ε. "
    "Losses below 1e-12 are not drawn."
)


@figure(
    "multihead.2",
    "one step size for gradient descent: more heads are slower, on the tokenized mixture",
    status="with a stated reading",
    reading=READING_2,
    quick={**SETTINGS, "heads": (1, 4, 16, 64), "eta": 1.0, "trials": 3, "steps": 1000},
    paper={**SETTINGS, "heads": (1, 4, 16, 64), "eta": 1.0, "trials": 5, "steps": 10000},
    arrays={**common.described("heads", MORE), **GAMMA},
    finish=finish,
    no_draws=("eta", "steps"),
    paint=paint_2,
    alt=alt_2,
    chunk=2,
    claims=("multihead.theorem-1", "multihead.theorem-2", "multihead.proposition-3"),
    size=(9.0, 6.6),
)
def multihead_2(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Gradient descent."""
    drawn, test = data_of(cell, trials, rng)
    measures = {"attention": common.attention}
    return common.follow(drawn, test, lambda _: optim.GD(cell["eta"]), cell, measures)


@figure(
    "multihead.3",
    "steps that grow with the heads, and Adam: more heads are faster and lose margin (DM1)",
    status="with a stated reading",
    reading=READING_3,
    quick={
        **SETTINGS,
        "heads": (1, 4, 16),
        "eta": 0.3,
        "adam_step": 0.06,
        "trials": 3,
        "steps": 500,
    },
    paper={
        **SETTINGS,
        "heads": (1, 4, 16, 64),
        "eta": 0.3,
        "adam_step": 0.06,
        "trials": 5,
        "steps": 2000,
    },
    arrays={**common.described("rules, heads", MORE), **GAMMA},
    finish=finish,
    no_draws=("eta", "adam_step", "steps"),
    paint=paint_3,
    alt=alt_3,
    chunk=2,
    claims=("multihead.theorem-1", "multihead.theorem-2", "multihead.proposition-3"),
    size=(9.0, 6.6),
)
def multihead_3(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Gradient descent with a step that grows like the root of the heads, and Adam."""
    drawn, test = data_of(cell, trials, rng)
    rules = (
        lambda heads: optim.GD(cell["eta"] * heads**0.5),
        lambda _: optim.Adam(cell["adam_step"]),
    )
    measures = {"attention": common.attention}
    return common.by_rule([common.follow(drawn, test, rule, cell, measures) for rule in rules])
