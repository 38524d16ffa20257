"""More heads where one head labelled the data (DM2): Figures 4 and 5 of the multihead paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures.multihead import heads as common
from attnlab import optim, problems
from attnlab.problems import SequenceProblem

FOUND = 0.9  # a cosine with the planted W from which on it counts as found
RULES = ("Momentum, step ~ √H", "Adam")


def data_of(
    cell: Cell, trials: int, rng: np.random.Generator
) -> tuple[SequenceProblem, SequenceProblem]:
    """Training and test samples; each trial has a teacher of its own."""
    drawn = problems.planted(
        n=cell["n"], T=cell["T"], d=cell["d"], margin=cell["gamma_attn"], trials=trials, rng=rng
    )
    return drawn, drawn.fresh(cell["test_n"], rng=rng)


def split(found: Arrays) -> Arrays:
    """The two alignments by name."""
    both = found.pop("alignment")
    return {**found, "align_W": both[..., 0], "align_U": both[..., 1]}


def missed(data: Data) -> str:
    """How many runs ended away from the planted W, in words."""
    ends = data["align_W"][..., -1]
    return f"{int((ends < FOUND).sum())} of {ends.size} runs end with a cosine below {FOUND}."


def paint_4(data: Data, canvas: Any) -> None:
    """Loss, margin and both alignments."""
    (loss, margin), (align_W, align_U) = canvas.subplots(2, 2)
    common.curves(loss, data, data["train"])
    common.curves(loss, data, data["test"], thin=True)
    loss.set(yscale="log", title="training loss (dotted: test)")
    common.curves(margin, data, data["margin"])
    common.level(margin, data.settings["gamma_attn"])
    margin.set(title="margin", ylim=(-1.0, 0.4))
    common.curves(align_W, data, data["align_W"])
    align_W.set(title="alignment of W", ylim=(None, 1.02), xlabel="step")
    common.curves(align_U, data, data["align_U"])
    align_U.set(title="alignment of U", ylim=(None, 1.02), xlabel="step")
    common.legend(canvas)


def alt_4(data: Data) -> str:
    """Ends of the curves."""
    return (
        f"Four panels over {data['step'][-1]} steps of gradient descent with step "
        f"{data.settings['eta']:g} times √H. Median training loss at the end: "
        f"{common.each(data, data['train'])}. Margin: {common.each(data, data['margin'])}, for a "
        f"planted one of {data.settings['gamma_attn']:g}. Cosine with the planted W: "
        f"{common.each(data, data['align_W'])}. {missed(data)}"
    )


def paint_5(data: Data, canvas: Any) -> None:
    """Loss above, alignment of W below; momentum left, Adam right."""
    panels = canvas.subplots(2, 2, sharex=True, sharey="row")
    for k, rule in enumerate(RULES):
        loss, align = panels[:, k]
        common.curves(loss, data, data["train"][:, k])
        common.curves(loss, data, data["test"][:, k], thin=True)
        loss.set(yscale="log", title=f"{rule}: loss")
        common.curves(align, data, data["align_W"][:, k])
        align.set(title="alignment of W", ylim=(None, 1.02), xlabel="step")
    common.legend(canvas)


def alt_5(data: Data) -> str:
    """Ends of the curves, one sentence a rule."""
    told = [
        f"{rule}: median training loss at the end {common.each(data, data['train'][:, k])}; "
        f"cosine with the planted W {common.each(data, data['align_W'][:, k])}; "
        f"margin {common.each(data, data['margin'][:, k])}."
        for k, rule in enumerate(RULES)
    ]
    return (
        f"Loss and alignment with the planted W over {data['step'][-1]} steps. {missed(data)} "
        + " ".join(told)
    )


SMALL = {"n": 500, "test_n": 1000, "T": 5, "d": 3, "gamma_attn": 0.2}
SIZES = {"n": 1000, "test_n": 3000, "T": 10, "d": 5, "gamma_attn": 0.2}
MORE = {
    "align_W": "cosine with the planted W; 0 until W has moved",
    "align_U": "cosine with the planted U; 0 at the zero start",
}
READING = (
    "The law and the size of the teacher are not stated: W* with N(0, 1) entries and U* of norm 1, "
    "for which .2 is the planted margin and about 83 % of samples pass the filter; each trial has "
    "a teacher of its own. Numbers of heads and steps and the constant in the step √H are not "
    "stated either; the margin is divided by the norm of all U. From a zero start H heads are one "
    "head whose W is slower than its U by H (Adam: √H): beyond some heads, W lags so far that "
    "training is slower again (64 heads within 600 steps). The paper says that all optimizers find "
    "the planted model. Not for every teacher: gradient descent with 16 heads missed one in five, "
    "with 1 or 4 heads none. Lines are medians over trials, bands their range."
)
READING_5 = READING + (
    " Momentum is heavy ball with .9 and step .3 √H: with 1 √H, 16 heads can miss the planted W. "
    "Adam's step is not stated (.01 here); with .003 as well about one teacher in ten is missed."
)
QUICK = "The quick preset has smaller samples (n = 500, T = 5, d = 3)."


@figure(
    "multihead.4",
    "data labelled by a planted head, steps that grow with the heads: more heads are faster",
    status="with a stated reading",
    reading=f"{READING} {QUICK}",
    quick={
        **SMALL,
        "heads": (1, 4, 16),
        "eta": 1.0,
        "trials": 3,
        "steps": 500,
    },
    paper={
        **SIZES,
        "heads": (1, 4, 16),
        "eta": 1.0,
        "trials": 5,
        "steps": 2000,
    },
    arrays=common.described("heads", MORE),
    finish=common.coordinates,
    no_draws=("eta", "steps"),
    paint=paint_4,
    alt=alt_4,
    chunk=1,
    claims=("multihead.theorem-1", "multihead.theorem-2"),
    size=(9.0, 6.6),
)
def multihead_4(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Gradient descent with a step that grows like the root of the heads."""
    drawn, test = data_of(cell, trials, rng)

    def rule(heads: int) -> optim.Rule:
        return optim.GD(cell["eta"] * heads**0.5)

    return split(common.follow(drawn, test, rule, cell, {"alignment": common.teacher_alignment}))


@figure(
    "multihead.5",
    "the same with momentum and with Adam: both are faster, and more heads are faster still",
    status="with a stated reading",
    reading=f"{READING_5} {QUICK}",
    quick={
        **SMALL,
        "heads": (1, 4, 16),
        "eta": 0.3,
        "momentum": 0.9,
        "adam_step": 0.01,
        "trials": 3,
        "steps": 500,
    },
    paper={
        **SIZES,
        "heads": (1, 4, 16),
        "eta": 0.3,
        "momentum": 0.9,
        "adam_step": 0.01,
        "trials": 5,
        "steps": 2000,
    },
    arrays=common.described("rules, heads", MORE),
    finish=common.coordinates,
    no_draws=("eta", "momentum", "adam_step", "steps"),
    paint=paint_5,
    alt=alt_5,
    chunk=1,
    claims=("multihead.theorem-1", "multihead.theorem-2"),
    size=(9.0, 6.6),
)
def multihead_5(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Heavy ball with a step that grows like the root of the heads, and Adam."""
    drawn, test = data_of(cell, trials, rng)
    rules = (
        lambda heads: optim.Momentum(cell["eta"] * heads**0.5, cell["momentum"]),
        lambda _: optim.Adam(cell["adam_step"]),
    )
    measures = {"alignment": common.teacher_alignment}
    runs = [common.follow(drawn, test, rule, cell, measures) for rule in rules]
    return split(common.by_rule(runs))
