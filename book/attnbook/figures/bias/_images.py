"""Four rules train a Vision Transformer: Figures 6 and 7 of the bias paper, on real images."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from attnbook import real
from attnbook.figures._interval import Interval, chosen_by_others, interval, short
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import mark, tone
from attnbook.figures._verdict import Verdict
from attnbook.figures.bias import _pen

RULES = ("SGD", "SNGD", "SPS", "Adam")
SIZES = ("sgd_steps", "sngd_steps", "sps_caps", "adam_steps")  # the paper's own first
SGD, SNGD, SPS, ADAM = range(4)
RECORD = ("loss", "accuracy", "held_loss", "held_accuracy", "step_length")
INSIDE = ("norm", "moved", "rank", "sharp", "keys")  # of every head
WATCHED = 40  # images of the test part on which attention is measured
LEVELS = 127  # of a stored attention map
LOST = 10.0  # the loss of a run that diverged


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One cell for each rule and each of its step sizes."""
    fixed = {name: value for name, value in settings.items() if name not in SIZES}
    return [
        {**fixed, "rule": rule, "size": size, "capped": name == "sngd_steps" and size == sizes[0]}
        for rule, name in zip(RULES, SIZES, strict=True)
        for sizes in [settings[name]]
        for size in sizes
    ]


def rule_of(cell: Cell) -> real.train.Rule:
    """SPS has a cap for its step size; SNGD has the paper's cap at the paper's step only."""
    if cell["rule"] == "SPS":
        return real.train.Rule("SPS", 1.0, cap=cell["size"])
    cap = cell["sngd_cap"] if cell["capped"] else None
    return real.train.Rule(cell["rule"], cell["size"], cap=cap)


@lru_cache(maxsize=4)
def pool(name: str, part: str, most: int) -> real.data.Images:
    """The first images of a part: read once for all runs of a process."""
    found = real.data.images(name, part)
    return real.data.Images(found.x[:most].copy(), found.y[:most].copy(), found.source)


def train(cell: Cell, rng: np.random.Generator) -> Arrays:
    """One run of one rule, from its own draw of images, start and order."""
    name, patch = str(cell["data"]), int(cell["patch"])
    whole = [pool(name, "train", int(cell["pool"])), pool(name, "test", int(cell["pool"]))]
    mean, spread = float(whole[0].x[:1000].mean()), float(whole[0].x[:1000].std())

    def tokens(images: real.data.Images) -> np.ndarray:
        return (images.patches(patch) - mean) / spread

    picked = []
    for images, count in zip(whole, (cell["images"], cell["held"]), strict=True):
        rows = rng.permutation(len(images.y))[: int(count)]
        picked.append(real.data.Images(images.x[rows], images.y[rows]))
    sizes = {key: int(cell[key]) for key in ("d", "width", "heads", "depth")}
    model = real.train.vit(picked[0], patch, pooling="first", **sizes)
    record: dict[str, Any] = dict.fromkeys((*RECORD, "W_norm", "W_moved", "W_rank", "attention"))
    watched = tokens(picked[1])[:WATCHED]
    own = np.zeros(0, dtype=int)
    if cell.get("own"):
        ours = tokens(real.data.Images(_pen.hand().astype(np.float32), np.array(_pen.DIGITS)))
        watched, own = np.concatenate([ours, watched]), np.array(_pen.DIGITS)
        record["told"] = lambda weights: _chances(model.forward(weights, ours))[
            np.arange(len(own)), own
        ]
    epoch = -(-int(cell["images"]) // int(cell["batch"]))
    whole = cell.get("frames", range(1, int(cell["epochs"]) + 1))
    marks = {0, epoch // 8, epoch // 4, epoch // 2} | {epoch * int(k) for k in whole}
    history = real.train.fit(
        model,
        tokens(picked[0]),
        picked[0].y,
        rule_of(cell),
        epochs=int(cell["epochs"]),
        batch=int(cell["batch"]),
        seed=int(rng.integers(2**31)),
        held=(tokens(picked[1]), picked[1].y),
        watch=watched,
        record=record,
        every=sorted(marks),
    ).history
    maps = history.pop("attention").astype(float)  # times, inputs, layers, heads, queries, keys
    seen = maps[:, len(own) :]
    spread_of = -(seen * np.log(np.maximum(seen, 1e-30))).sum(axis=-1)
    found: Arrays = {key: np.asarray(history[key], dtype=float) for key in RECORD}
    found |= {"step": history["step"], "epoch": np.asarray(history["epoch"], dtype=float)}
    for key, name_of in (("norm", "W_norm"), ("moved", "W_moved"), ("rank", "W_rank")):
        found[key] = np.asarray(history[name_of], dtype=float)
    found["sharp"] = seen.max(axis=-1).mean(axis=(1, 4))
    found["keys"] = np.exp(spread_of).mean(axis=(1, 4))
    if len(own):
        first = maps[:, : len(own), :, :, 0]  # what the token that is read looks at
        found["maps"] = np.round(LEVELS * first).astype(np.int8)
        found["told"] = np.asarray(history["told"], dtype=float)
    return found


def _chances(outputs: np.ndarray) -> np.ndarray:
    """Softmax over classes."""
    found = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """All trials of a rule at a step size."""
    runs = [train(cell, rng) for _ in range(trials)]
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}


def finish(settings: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Rules and step sizes first; times once; means over heads."""
    count = len(settings[SIZES[0]])
    found = {name: array.reshape(4, count, *array.shape[1:]) for name, array in arrays.items()}
    found |= {name: found[name][0, 0, 0] for name in ("step", "epoch")}
    found |= {name: found[name].mean(axis=-1) for name in INSIDE}
    found["size"] = np.array([settings[name] for name in SIZES])
    return found | {"gaps": gaps(found["loss"])}


# -- what came out ---------------------------------------------------------------------------------
def ends(loss: np.ndarray) -> np.ndarray:
    """Training loss at the end, rules by step sizes by trials; a run that diverged has 10."""
    last = loss[..., -1]
    return np.where(np.isfinite(last) & (last < LOST), last, LOST)


def best(loss: np.ndarray) -> np.ndarray:
    """Of each rule the place of the step size whose mean loss at the end is least."""
    return np.asarray(ends(loss).mean(axis=-1).argmin(axis=1))


def gaps(loss: np.ndarray) -> np.ndarray:
    """How far each rule's loss ends above SGD's, with printed steps and with each one's best."""
    both = ends(loss)[:, 0], chosen_by_others(ends(loss))
    return np.array([[interval(one[k] - one[SGD]) for k in range(4)] for one in both])


def verdict(data: Data) -> Verdict:
    """The paper: SNGD behind SGD, SPS ahead of it, Adam about level; with its own step sizes."""
    printed, tuned = [[Interval(*one) for one in rows] for rows in data["gaps"]]
    if printed[SNGD].below or printed[SPS].above:
        word = "otherwise"
    elif not (printed[SNGD].above and printed[SPS].below):
        word = "undecided"
    else:
        word = "weaker" if printed[ADAM].below else "as the paper says"

    def told(found: list[Interval]) -> str:
        return ", ".join(f"{RULES[k]} {found[k].told()}" for k in (SNGD, SPS, ADAM))

    losses = ends(data["loss"])
    level = [short(float(losses[SGD, k].mean())) for k in (0, best(data["loss"])[SGD])]
    return Verdict(
        word,
        f"Training loss after {data['epoch'][-1]:.0f} epochs against SGD's, {losses.shape[-1]} "
        f"seeds, 95 % intervals. With the paper's step sizes (SGD {level[0]}): {told(printed)}. "
        f"With the best of {losses.shape[1]} step sizes for each rule (SGD {level[1]}), chosen by "
        f"the other seeds: {told(tuned)}.",
    )


def paint(data: Data, canvas: Any) -> None:
    """Training and test loss, with the paper's steps above and each rule's best below."""
    place, epoch = best(data["loss"]), data["epoch"]
    panels = canvas.subplots(2, 3, sharex=True)
    for row, which in enumerate((np.zeros(4, dtype=int), place)):
        how = "the paper's step sizes" if row == 0 else "each rule's best"
        for axes, name, title in zip(
            panels[row],
            ("loss", "held_loss", "norm"),
            ("training loss", "test loss", "norm of W"),
            strict=True,
        ):
            for k, rule in enumerate(RULES):
                values = data[name][k, which[k]]
                values = values.mean(axis=-1) if name == "norm" else values
                label = rule if row else None
                axes.plot(epoch, values.mean(axis=0), label=label, marker=mark(k), markevery=3)
                low, high = values.min(axis=0), values.max(axis=0)
                axes.fill_between(epoch, low, high, color=tone(k), alpha=0.15, lw=0)
            axes.set_title(f"{title}, {how}", fontsize="small")
    for axes in panels[1]:
        axes.set_xlabel("epoch")
    canvas.legend(*panels[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def alt(data: Data) -> str:
    """Losses at the end, in numbers."""
    losses, place = ends(data["loss"]).mean(axis=-1), best(data["loss"])
    printed = ", ".join(f"{rule} {losses[k, 0]:.3f}" for k, rule in enumerate(RULES))
    tuned = ", ".join(f"{rule} {losses[k, place[k]]:.3f}" for k, rule in enumerate(RULES))
    return (
        f"Training loss, test loss and norm of W over {data['epoch'][-1]:.0f} epochs. Training "
        f"loss at the end with the paper's step sizes: {printed}; with each rule's best: {tuned}."
    )


ARRAYS = {
    "step": "(times,) recorded steps",
    "epoch": "(times,) the same in epochs",
    "gaps": "(2, 4, 3) training loss at the end minus SGD's: paper's steps, then each rule's "
    "best as the other seeds choose it; mean and 95 % interval",
    "size": "(4, sizes) step sizes of SGD, SNGD, SPS (a cap) and Adam; the paper's first",
    "loss": "(4, sizes, trials, times) loss on all training images",
    "accuracy": "(4, sizes, trials, times) share of them that is told right",
    "held_loss": "(4, sizes, trials, times) loss on test images",
    "held_accuracy": "(4, sizes, trials, times) share of those that is told right",
    "step_length": "(4, sizes, trials, times) mean factor before the gradient of late",
    "norm": "(4, sizes, trials, times, layers) Frobenius norm of W",
    "moved": "(4, sizes, trials, times, layers) Frobenius distance of W from its start",
    "rank": "(4, sizes, trials, times, layers) (nuclear / Frobenius norm of W) squared",
    "sharp": "(4, sizes, trials, times, layers) mean largest attention of a query",
    "keys": "(4, sizes, trials, times, layers) mean effective number of keys",
}
READING = (
    "The width of a token and of a head is not stated. Attention is plain, without the learned "
    "temperature and the masked diagonal of the model that the paper takes from elsewhere."
)


@figure(
    "bias.6",
    "a Vision Transformer on MNIST: SGD, normalized SGD, the stochastic Polyak step, Adam",
    reading=READING,
    quick={
        "data": "mnist", "pool": 20000, "images": 1500, "held": 400, "patch": 7,
        "d": 32, "width": 32, "heads": 8, "depth": 2, "batch": 50, "epochs": 8, "trials": 5,
        "sgd_steps": (0.1, 0.03, 0.3, 1.0), "sngd_steps": (0.001, 0.1, 0.3, 1.0),
        "sngd_cap": 0.01, "sps_caps": (0.01, 0.1, 0.3, 1.0),
        "adam_steps": (0.001, 0.0003, 0.003, 0.01),
    },
    paper={
        "data": "mnist", "pool": 60000, "images": 60000, "held": 10000, "patch": 4,
        "d": 32, "width": 128, "heads": 8, "depth": 2, "batch": 100, "epochs": 40, "trials": 5,
        "sgd_steps": (0.1, 0.03, 0.3, 1.0), "sngd_steps": (0.001, 0.1, 0.3, 1.0),
        "sngd_cap": 0.01, "sps_caps": (0.01, 0.1, 0.3, 1.0),
        "adam_steps": (0.001, 0.0003, 0.003, 0.01),
    },
    arrays=ARRAYS,
    cells=cells,
    finish=finish,
    no_draws=("sngd_cap", "batch", "epochs"),
    paint=paint,
    alt=alt,
    chunk=1,
    size=(9.0, 6.0),
    needs="real-train",
    stand_in=(
        "1,500 of MNIST's 60,000 images, 8 epochs for 40, batches of 50 for 100, patches of 7 "
        "pixels for 4, heads of 4 numbers; depth, heads and inner width as in the paper"
    ),
    verdict=verdict,
    stored=True,
)  # fmt: skip
def bias_6(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)


@figure(
    "bias.7",
    "a Vision Transformer on CIFAR-10: the four rules, and how the norm of W grows",
    reading=READING,
    quick={
        "data": "cifar-10", "pool": 10000, "images": 1500, "held": 400, "patch": 8,
        "d": 32, "width": 32, "heads": 8, "depth": 3, "batch": 50, "epochs": 8, "trials": 3,
        "sgd_steps": (0.1, 0.03, 0.3, 1.0), "sngd_steps": (0.001, 0.1, 0.3, 1.0),
        "sngd_cap": 0.1, "sps_caps": (10.0, 0.03, 0.1, 0.3),
        "adam_steps": (0.001, 0.0003, 0.003, 0.01),
    },
    paper={
        "data": "cifar-10", "pool": 50000, "images": 50000, "held": 10000, "patch": 4,
        "d": 128, "width": 512, "heads": 32, "depth": 8, "batch": 100, "epochs": 80, "trials": 3,
        "sgd_steps": (0.1, 0.03, 0.3, 1.0), "sngd_steps": (0.001, 0.1, 0.3, 1.0),
        "sngd_cap": 0.1, "sps_caps": (10.0, 0.03, 0.1, 0.3),
        "adam_steps": (0.001, 0.0003, 0.003, 0.01),
    },
    arrays=ARRAYS,
    cells=cells,
    finish=finish,
    no_draws=("sngd_cap", "batch", "epochs"),
    paint=paint,
    alt=alt,
    chunk=1,
    size=(9.0, 6.0),
    needs="real-train",
    stand_in=(
        "1,500 of CIFAR-10's 50,000 images, 8 epochs for 80, batches of 50 for 100, patches of 8 "
        "pixels for 4, 3 layers for 8, 8 heads for 32, inner width 128 for 512"
    ),
    verdict=verdict,
    stored=True,
)  # fmt: skip
def bias_7(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
