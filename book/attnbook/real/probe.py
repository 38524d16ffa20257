"""What the theory asks of a head, measured on a model of one's own."""

from attnbook.real._controls import chance, controls, scrambled, taught
from attnbook.real._report import Report, report
from attnbook.real._selection import (
    Model,
    Selection,
    Selections,
    selection,
    selections,
    solution,
    traces,
)
from attnbook.real._tokens import (
    Ranks,
    Sharpness,
    Tail,
    cosines,
    line,
    ranks,
    sharpness,
    similarities,
    smallest,
    spread_above_median,
    tail,
)

__all__ = [
    "Model",
    "Ranks",
    "Report",
    "Selection",
    "Selections",
    "Sharpness",
    "Tail",
    "chance",
    "controls",
    "cosines",
    "line",
    "ranks",
    "report",
    "scrambled",
    "selection",
    "selections",
    "sharpness",
    "similarities",
    "smallest",
    "solution",
    "spread_above_median",
    "tail",
    "taught",
    "traces",
]
