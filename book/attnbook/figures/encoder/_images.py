"""A Vision Transformer under both scalings: Figure 4 of the paper, and what 7 and 8 share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnbook import real
from attnbook.figures._interval import Interval, interval
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures._verdict import Verdict
from attnlab.checks import Array, IntArray

SCALINGS = ("sqrt", "linear")
NAMES = ("tau0 = width^-1/2", "tau0 = 1/width")
MEAN, SPREAD = np.float32(0.1307), np.float32(0.3081)  # of MNIST's grey values
SHOWN = 3  # images whose maps are kept, of the digits 0, 1 and 2
BINARY = 2  # the regression tells 0 from 1
SHARE = 2.0  # the wide gap is this many times the narrow one, or the scalings are not told apart


@cache
def given(name: str, part: str) -> real.data.Images:
    """Read once in a process."""
    return real.data.images(name, part)


def patched(images: real.data.Images, rows: IntArray, patch: int) -> Any:
    """Patches with mean 0 and variance 1 over MNIST."""
    cut = real.data.Images(images.x[rows], images.y[rows]).patches(patch)
    return (cut - MEAN) / SPREAD


def both(cell: Cell, trials: int, rng: np.random.Generator, **options: Any) -> Arrays:
    """Both scalings from the same start on the same images in the same order."""
    train = given(cell["data"], "train")
    held = given(cell["data"], "test")
    binary = options.get("loss") == "squares"
    rows, others = (
        np.flatnonzero(one.y < BINARY) if binary else np.arange(len(one.y)) for one in (train, held)
    )
    rule = real.train.Rule("momentum", cell["step_size"], momentum=cell["momentum"])
    found: list[dict[str, Any]] = []
    for _ in range(trials):
        mine = rng.choice(rows, min(cell["n"], len(rows)), replace=False)
        theirs = rng.choice(others, min(cell["held"], len(others)), replace=False)
        seed = int(rng.integers(2**31))
        x, xv = patched(train, mine, cell["patch"]), patched(held, theirs, cell["patch"])
        y, yv = (one.y[at] * (2.0 if binary else 1.0) - binary for one, at in
                 ((train, mine), (held, theirs)))  # fmt: skip
        # the images that are watched begin with one of each of the first digits
        first = [int(np.flatnonzero(held.y[theirs] == k % (2 if binary else 10))[0])
                 for k in range(SHOWN)]  # fmt: skip
        watch = np.concatenate([xv[first], xv[: cell["watched"]]])
        row: dict[str, list[Any]] = {}
        for scaling in SCALINGS:
            model = real.train.vit(
                train, cell["patch"], d=cell["d"], width=cell["width"], block="plain",
                scaling=scaling, outputs=1 if binary else 10,
            )  # fmt: skip
            run = real.train.fit(
                model, x, y, rule, epochs=cell["epochs"], batch=cell["batch"], seed=seed,
                held=(xv, yv), watch=watch, **options,
            )  # fmt: skip
            for name, history in run.history.items():
                row.setdefault(name, []).append(history)
        one = {name: np.stack(parts) for name, parts in row.items()}
        if "attention" in one:
            one["maps"] = one.pop("attention")[:, :, :SHOWN, 0, 0].astype(np.float16)
            one["ink"] = (watch[:SHOWN].mean(axis=-1) * SPREAD + MEAN).astype(np.float64)
        found.append(one)
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def times(arrays: Arrays) -> Arrays:
    """When things were written down is the same for all."""
    for name in ("step", "epoch"):
        arrays[name] = arrays[name].reshape(-1, arrays[name].shape[-1])[0]
    return arrays


WATCHED = ("attention_moved", "W_norm", "W_moved", "W_rank")


def finish_4(settings: Any, arrays: Arrays) -> Arrays:
    """One layer, one head; maps of the first trial, and the last epoch's mean loss."""
    del settings
    found = times(arrays)
    for name in WATCHED:
        found[name] = found[name][..., 0, 0]
    found["maps"], found["ink"] = found["maps"][:, 0], found["ink"][0, 0]
    whole = found["epoch"][1:] > found["epoch"][-1] - 1
    found["last"] = found["batch_loss"][..., whole].mean(axis=-1)
    return found


def curves(axes: Any, data: Data, name: str, k: int) -> None:
    """Both scalings of one width, with the range over seeds."""
    for s in range(2):
        value = data[name][k, :, s]
        at = data["epoch"][len(data["epoch"]) - value.shape[-1] :]
        axes.plot(at, value.mean(axis=0), marker=mark(s), label=NAMES[s])
        low, high = value.min(axis=0), value.max(axis=0)
        axes.fill_between(at, low, high, color=tone(s), alpha=0.15, lw=0)
    axes.set(title=f"width {int(data['width'][k])}", xlabel="epoch")


def paint_4(data: Data, canvas: Any) -> None:
    """Losses by width above, how far attention has moved below."""
    rows = canvas.subplots(2, len(data["width"]), sharey="row", squeeze=False)
    for k in range(len(data["width"])):
        curves(rows[0, k], data, "batch_loss", k)
        curves(rows[1, k], data, "attention_moved", k)
        rows[1, k].set(title="")
    rows[0, 0].set(ylabel="training loss")
    rows[1, 0].set(ylabel="change of attention")
    canvas.legend(*rows[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def gaps(values: Array) -> list[Interval]:
    """Linear less sqrt by width, in pairs that share start and images; ``(widths, trials, 2)``."""
    return [interval(row[:, 1] - row[:, 0]) for row in values]


def judge(wide: Interval, narrow: Interval | None = None) -> str:
    """The word for a gap that the paper says is above zero where the layer is wide."""
    if wide.above:
        alike = narrow is None or wide.mean > SHARE * abs(narrow.mean)
        return "as the paper says" if alike else "weaker"
    if wide.below:
        return "otherwise"
    return "undecided"


def verdict_4(data: Data) -> Verdict:
    """Whether 1/width is slower where the layer is wide, and no slower where it is narrow."""
    narrow, *_, wide = gaps(data["last"])
    moved = data["attention_moved"][-1, ..., -1].mean(axis=0)
    sqrt, linear = data["last"][-1].mean(axis=0)
    first, last = int(data["width"][0]), int(data["width"][-1])
    return Verdict(
        judge(wide, narrow),
        f"Mean loss of the last epoch at width {last}: {sqrt:.3f} against {linear:.3f} with "
        f"1/width, {wide.told()} over {data['last'].shape[1]} seeds; at width {first}: "
        f"{narrow.told()}. At width {last} attention has changed by {moved[0]:.2f} against "
        f"{moved[1]:.2f} (of at most 2).",
    )


def alt_4(data: Data) -> str:
    """Where the losses end, by width."""
    told = [
        f"width {int(width)}: loss {row[:, 0].mean():.3f} and {row[:, 1].mean():.3f}, attention "
        f"changed by {moved[:, 0, -1].mean():.2f} and {moved[:, 1, -1].mean():.2f}"
        for width, row, moved in zip(
            data["width"], data["last"], data["attention_moved"], strict=True
        )
    ]
    return f"After {data['epoch'][-1]:g} epochs with {NAMES[0]} and {NAMES[1]}: {'; '.join(told)}."


READING = (
    "Patches, batch, the pooling and what follows the values are not stated: here patches of 7, "
    "batches of 100, and the paper's own layer (1.2) on tokens that are normalized once."
)
SMALL = (
    "4,000 of 60,000 images, {epochs} epochs of 50, widths to 1,024 of 16,384; the paper's step "
    "size and momentum"
)
COMMON = {"data": "mnist", "patch": 7, "d": 64, "step_size": 0.1, "momentum": 0.9, "batch": 100}
QUICK: dict[str, Any] = {**COMMON, "n": 4000, "held": 1000, "epochs": 6}
PAPER: dict[str, Any] = {**COMMON, "n": 60000, "held": 10000, "epochs": 50}


@figure(
    "encoder.4",
    "a Vision Transformer on MNIST under both scalings at several widths: loss, attention",
    reading=READING,
    quick={**QUICK, "width": (16, 128, 1024), "every": 20, "watched": 100, "trials": 5},
    paper={**PAPER, "width": (16, 1024, 16384), "every": 600, "watched": 100, "trials": 3},
    grid=("width",),
    finish=finish_4,
    arrays={
        "width": "(widths,) d_m",
        "step": "(times,) steps at which things were written down",
        "epoch": "(times,) the same in epochs",
        "batch_loss": "(widths, trials, 2, times - 1) mean loss of the batches between two times, "
        "for sqrt and linear",
        "last": "(widths, trials, 2) the same over the whole last epoch",
        "attention_moved": "(widths, trials, 2, times) mean over rows of the sum of |A_t - A_0|",
        "W_norm": "(widths, trials, 2, times) Frobenius norm of tau0 K Q^T",
        "W_moved": "(widths, trials, 2, times) of its change since the start",
        "W_rank": "(widths, trials, 2, times) its effective rank, (nuclear / Frobenius)^2",
        "maps": "(widths, 2, times, 3, T, T) attention on three images, first trial; rows: queries",
        "ink": "(3, T) mean grey value of each patch of these images",
    },
    no_draws=("step_size", "momentum", "batch", "epochs", "every"),
    paint=paint_4,
    alt=alt_4,
    chunk=1,
    claims=("encoder.lemma-1", "encoder.theorem-1"),
    size=(9.0, 5.6),
    needs="real-train",
    stand_in=SMALL.format(epochs=6),
    verdict=verdict_4,
    stored=True,
)
def encoder_4(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """One width."""
    found = both(
        cell, trials, rng, every=cell["every"], record=["batch_loss", "attention", *WATCHED]
    )
    found["batch_loss"] = found["batch_loss"][..., 1:]  # before the first step there is no batch
    return found
