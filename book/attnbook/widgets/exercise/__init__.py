r"""Exercises that check the reader's answer on the page, and say what a wrong one got wrong.

A call is the last line of a cell that is tagged `remove-input`. Words are Markdown as far as
``$formulas$``, ``*emphasis*`` and code in back-ticks go. Right answers are computed in the cell: a
test reads the pages and fails on one that is typed.
"""

from attnbook.widgets.exercise._ask import choice, false_line, number, power, reach
from attnbook.widgets.exercise._record import Exercise, unpack

__all__ = ["Exercise", "choice", "false_line", "number", "power", "reach", "unpack"]
