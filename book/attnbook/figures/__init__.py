"""Every figure of the four papers that shows data, by name: `run` computes, `draw` draws.

The widget, the notebook, the test and the command line call the same `run`.
"""

from attnbook.figures._kept import kept, store, verdicts
from attnbook.figures._output import write
from attnbook.figures._page import show
from attnbook.figures._record import Data, Figure
from attnbook.figures._registry import all, get  # noqa: A004
from attnbook.figures._style import colour, style
from attnbook.figures._verdict import Verdict
from attnbook.figures._workers import mapper

__all__ = [
    "Data",
    "Figure",
    "Verdict",
    "all",
    "colour",
    "get",
    "kept",
    "mapper",
    "show",
    "store",
    "style",
    "verdicts",
    "write",
]
