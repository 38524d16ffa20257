"""Every synthetic figure of the four papers, by name: `run` computes, `draw` draws.

The widget, the notebook, the test and the command line call the same `run`.
"""

from attnlab.figures._output import write
from attnlab.figures._page import show
from attnlab.figures._record import Data, Figure
from attnlab.figures._registry import all, get  # noqa: A004
from attnlab.figures._workers import mapper

__all__ = ["Data", "Figure", "all", "get", "mapper", "show", "write"]
