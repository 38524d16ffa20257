"""One Vision Transformer, watched while it trains: the book's own, beside Figures 6 and 7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.figures._interval import Interval, interval
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures._verdict import Verdict
from attnbook.figures.bias import _images, _pen

RULES = ("SGD", "Adam")
STEPS = ("sgd_step", "adam_step")
SATURATED = 0.9  # mean largest attention from which a head has chosen
PANELS = (
    ("keys", "effective keys of a query"),
    ("sharp", "largest attention of a query"),
    ("norm", "norm of W"),
    ("rank", "(nuclear / Frobenius)² of W"),
)


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One cell a rule."""
    fixed = {name: value for name, value in settings.items() if name not in STEPS}
    return [
        {**fixed, "rule": rule, "size": settings[name], "capped": False, "own": True}
        for rule, name in zip(RULES, STEPS, strict=True)
    ]


def finish(_: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Times once; maps and words of the first run of each rule only."""
    found = dict(arrays)
    found |= {name: arrays[name][0, 0] for name in ("step", "epoch")}
    found |= {name: arrays[name][:, 0] for name in ("maps", "told")}
    ours = np.round(_images.LEVELS * _pen.hand()).astype(np.int8)
    return found | {"digit": np.array(_pen.DIGITS), "picture": ours}


def changes(data: Data, rule: int, name: str) -> Interval:
    """By what factor a quantity, averaged over heads, differs at the end from the start."""
    values = data[name][rule].mean(axis=(-1, -2))
    return interval(values[:, -1] / values[:, 0])


def verdict(data: Data) -> Verdict:
    """Does W grow, does attention choose, does W lose directions?"""
    found = {name: [changes(data, k, name) for k in range(2)] for name in ("norm", "keys", "rank")}
    sharp = data["sharp"][..., -1, :, :].mean()
    grows = all(one.low > 1.0 for one in found["norm"])
    chooses = all(one.high < 1.0 for one in found["keys"])
    shrinks = any(one.high < 1.0 for one in found["norm"])
    spreads = any(one.low > 1.0 for one in found["keys"])
    word = "otherwise" if shrinks or spreads else "undecided"
    if grows and chooses:
        word = "as the paper says" if sharp > SATURATED else "weaker"

    def told(name: str) -> str:
        both = zip(RULES, found[name], strict=True)
        return ", ".join(f"{rule} {one.told(2, sign=False)}" for rule, one in both)

    return Verdict(
        word,
        f"End over start after {data['epoch'][-1]:.0f} epochs, mean over heads, "
        f"{data['norm'].shape[1]} seeds, 95 % intervals. Norm of W: {told('norm')}. Effective "
        f"keys: {told('keys')}. Rank, as (nuclear / Frobenius) squared: {told('rank')}. The "
        f"largest attention of a query is {sharp:.2f} on average.",
    )


def paint(data: Data, canvas: Any) -> None:
    """Means over heads; the band is the range over runs."""
    for axes, (name, title) in zip(canvas.subplots(2, 2, sharex=True).flat, PANELS, strict=True):
        for k, rule in enumerate(RULES):
            values = data[name][k].mean(axis=(-1, -2))
            axes.plot(data["epoch"], values.mean(axis=0), label=rule, marker=mark(k), markevery=3)
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(data["epoch"], low, high, color=tone(k), alpha=0.15, lw=0)
        axes.set_title(title, fontsize="small")
    for axes in canvas.axes[2:]:
        axes.set_xlabel("epoch")
    canvas.legend(*canvas.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def alt(data: Data) -> str:
    """The four quantities at the start and at the end."""
    told = []
    for name, title in PANELS:
        ends = data[name].mean(axis=(1, -1, -2))[:, [0, -1]]
        both = zip(RULES, ends, strict=True)
        told.append(f"{title}: " + ", ".join(f"{r} {a:.2f} to {b:.2f}" for r, (a, b) in both))
    return f"Means over heads during {data['epoch'][-1]:.0f} epochs. " + "; ".join(told) + "."


SETTINGS = {
    "data": "mnist", "pool": 20000, "held": 400, "patch": 7, "d": 32, "width": 32, "heads": 8,
    "depth": 2, "batch": 50, "trials": 3, "sgd_step": 0.1, "adam_step": 0.001,
}  # fmt: skip


@figure(
    "bias.vit",
    "one small Vision Transformer watched in training: attention, norm and rank of W",
    reading="",
    quick={
        **SETTINGS,
        "images": 1500,
        "epochs": 40,
        "frames": (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 36, 40),
    },
    paper={**SETTINGS, "images": 60000, "epochs": 40, "frames": tuple(range(1, 41))},
    arrays={
        name: told.replace("(4, sizes, ", "(2, ").replace("layers)", "layers, heads)")
        for name, told in _images.ARRAYS.items()
        if name not in ("size", "gaps")
    }
    | {
        "maps": "(2, times, digits, layers, heads, tokens) what the token that is read attends to, "
        "on digits of our own hand, in 127ths; the first run of SGD and of Adam",
        "digit": "(digits,) which they are",
        "picture": "(digits, 28, 28) their grey values, in 127ths",
        "told": "(2, times, digits) chance that this run gives to the right digit",
    },
    cells=cells,
    finish=finish,
    no_draws=("batch", "epochs", "frames"),
    paint=paint,
    alt=alt,
    chunk=1,
    claims=("bias.theorem-1",),
    size=(9.0, 6.0),
    needs="real-train",
    stand_in="the model of bias.6, trained five times as long; the steps are the paper's",
    verdict=verdict,
    stored=True,
)  # fmt: skip
def bias_vit(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return _images.compute(cell, trials, rng)
