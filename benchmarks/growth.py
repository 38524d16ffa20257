"""How time grows with each size, over a decade, beside what theory says: a table and a plot.

    PYTHONPATH=. python -m benchmarks.growth

Sizes of one line take turns, and each keeps its least time. The exponent of theory is that of the
term that the table names, counted in the code; what is held is chosen so that this term costs most,
within two gigabytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"

import numpy as np

from attnlab import models, ntk, optim, problems, svm
from benchmarks import timing

HERE = Path(__file__).parent
SIZES = 6  # of a line
REPEATS, LONG = 6, 3.0  # turns, and the seconds of one size after which it takes no more than two
NEAR = 0.2  # how far a slope may be from theory's exponent

GRAM = "a Gram matrix of (nT)² numbers, formed and multiplied"
FEW = (
    "a Gram matrix of (nT)² numbers, formed and multiplied; few of a sample's tokens are in the "
    "support, so that its Cholesky, (nT)³ in the end, is still the cheaper part"
)

Make = Callable[..., Callable[[], object]]


@dataclass(frozen=True)
class Line:
    """One size over a decade, the others held; ``theory`` is the exponent of what ``why`` names."""

    name: str
    start: float
    theory: float
    why: str
    held: dict[str, int]


@dataclass(frozen=True)
class Found:
    """Least seconds of each size."""

    work: str
    line: Line
    sizes: list[int]
    seconds: list[float]

    @property
    def slope(self) -> float:
        """The least-squares slope of log time in log size."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])

    @property
    def near(self) -> bool:
        """Whether it is theory's exponent, within `NEAR`."""
        return abs(self.slope - self.line.theory) <= NEAR


def training(n: int, T: int, d: int, trials: int, steps: int = 100) -> Callable[[], object]:
    """Normalized steps in W, in the space of logits: a product with (nT, nT) a step."""
    p = problems.sphere(n=n, T=T, d=d, trials=trials, min_gap=0.0, rng=0)
    start = models.Attention().init(p, rng=1)
    rule = optim.NormalizedGD(0.1)
    return lambda: optim.train(models.Attention(), p, rule, steps, params=start, every=steps)


def heads(n: int, T: int, d: int, H: int) -> Callable[[], object]:
    """A gradient of many heads."""
    p = problems.planted(n=n, T=T, d=d, rng=0)
    model = models.MultiHead(heads=H, start="gaussian")
    start = model.init(p, rng=1)
    return lambda: model.value_and_grad(start, p)


def kernel(n: int, T: int, d: int, width: int) -> Callable[[], object]:
    """The encoder's tangent kernel."""
    p = problems.gaussian_regression(n=n, T=T, d=d, unit_tokens=True, rng=0)
    model = models.Encoder(width=width, init="ntk", scaling="linear")
    start = model.init(p, rng=1)
    return lambda: ntk.empirical(model, start, p)


def margin(n: int, T: int, d: int, trials: int) -> Callable[[], object]:
    """Attention SVMs, Frobenius norm."""
    p = problems.sphere(n=n, T=T, d=d, trials=trials, min_gap=0.0, rng=0)
    return lambda: svm.attention_svm(p)


GROUPS: tuple[tuple[str, Make, tuple[Line, ...]], ...] = (
    (
        "train W",
        training,
        (
            Line("n", 250, 2, GRAM, {"T": 4, "d": 100, "trials": 1, "steps": 5}),
            Line("T", 32, 2, GRAM, {"n": 30, "d": 750, "trials": 1, "steps": 5}),
            Line(
                "d", 16, 0, "d is not in the loop", {"n": 6, "T": 8, "trials": 100, "steps": 2000}
            ),
            Line("trials", 250, 1, "trials side by side", {"n": 6, "T": 8, "d": 10}),
        ),
    ),
    (
        "many heads, a gradient",
        heads,
        (
            Line("n", 200, 1, "samples one by one", {"T": 10, "d": 5, "H": 8}),
            Line("T", 100, 2, "pairs of tokens", {"n": 4, "d": 5, "H": 4}),
            Line("d", 100, 2, "a matrix times every token", {"n": 100, "T": 4, "H": 2}),
            Line("H", 8, 1, "heads one by one", {"n": 500, "T": 10, "d": 5}),
        ),
    ),
    (
        "encoder kernel",
        kernel,
        (
            Line("n", 250, 2, "pairs of samples", {"T": 5, "d": 10, "width": 200}),
            Line("T", 16, 1, "tokens are summed before", {"n": 40, "d": 40, "width": 1000}),
            Line("width", 5000, 1, "units one by one", {"n": 30, "T": 10, "d": 100}),
        ),
    ),
    (
        "SVM, Frobenius",
        margin,
        (
            Line("n", 5, 2, FEW, {"T": 101, "d": 600, "trials": 1}),
            Line("T", 40, 2, FEW, {"n": 25, "d": 400, "trials": 1}),
            Line("trials", 250, 1, "trials side by side", {"n": 5, "T": 5, "d": 10}),
        ),
    ),
)


def measure() -> list[Found]:
    """All lines, a decade each."""
    found = []
    for work, make, lines in GROUPS:
        for line in lines:
            sizes = [round(line.start * 10 ** (k / (SIZES - 1))) for k in range(SIZES)]
            calls = [make(**line.held, **{line.name: size}) for size in sizes]
            found.append(Found(work, line, sizes, _least(calls)))
            print(f"{work}, {line.name}: {found[-1].slope:.2f} ({line.theory:g})", flush=True)
    return found


def _least(calls: list[Callable[[], object]]) -> list[float]:
    """Least processor seconds of each, in turns: short calls may not profit from a busy machine."""
    best, spent = [float("inf")] * len(calls), [0.0] * len(calls)
    for turn in range(1 + REPEATS):  # the first warms up
        for k, call in enumerate(calls):
            if turn > 1 and spent[k] > LONG:
                continue
            start = time.process_time()
            call()
            took = time.process_time() - start
            best[k], spent[k] = min(best[k], took), spent[k] + took
    return best


def table(found: list[Found]) -> str:
    """What was measured, as a Markdown table."""
    rows = ["| work | size | slope | theory | because of |", "|---|---|---|---|---|"]
    for each in found:
        line, mark = each.line, "" if each.near else ": not within 0.2"
        rows.append(
            f"| {each.work} | {line.name} = {each.sizes[0]} to {each.sizes[-1]} "
            f"| **{each.slope:.2f}** | {line.theory:g}{mark} | {line.why} |"
        )
    near = sum(each.near for each in found)
    return "\n".join([*rows, "", f"{near} of {len(found)} slopes are within {NEAR} of theory's."])


def draw(found: list[Found], path: Path) -> None:
    """Time against size from the least one; dashed lines have theory's exponents."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams |= {"svg.hashsalt": "growth", "svg.fonttype": "none"}  # one plot, one small file
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    for axes, (work, _, lines) in zip(figure.subplots(2, 2).flat, GROUPS, strict=True):
        for colour, line in zip(colours, lines, strict=False):
            each = next(one for one in found if one.work == work and one.line == line)
            size = np.array(each.sizes) / each.sizes[0]
            share = np.array(each.seconds) / each.seconds[-1]
            label = f"{line.name}: {each.slope:.2f} (theory {line.theory:g})"
            axes.loglog(size, share, "o-", color=colour, label=label, markersize=4)
            axes.loglog(size, (size / size[-1]) ** line.theory, "--", color=colour, linewidth=1)
        axes.set_title(work)
        axes.set_xlabel("size / least size")
        axes.set_ylabel("time / longest time")
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print, write the table and the plot beside this file."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    found = measure()
    text = f"Measured on: {timing.machine()}.\n\n{table(found)}\n"
    head = "# How time grows\n\nRenewed by `make bench`.\n\n"
    (HERE / "GROWTH.md").write_text(head + text)
    draw(found, HERE / "growth.svg")
    print(table(found))


if __name__ == "__main__":
    main()
