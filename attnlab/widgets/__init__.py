"""Explorables: what moves on the pages, in notebooks and on the static site.

Importing this room needs anywidget; ``import attnlab`` does not import it.
"""

from attnlab.widgets._base import Explorable
from attnlab.widgets.computed import (
    Arithmetic,
    FinitePart,
    HowOften,
    RegularizationPath,
    TwoNorms,
)
from attnlab.widgets.simple import FateOfStart, PickToken, WaterFilling
from attnlab.widgets.token_board import TokenBoard

__all__ = [
    "Arithmetic",
    "Explorable",
    "FateOfStart",
    "FinitePart",
    "HowOften",
    "PickToken",
    "RegularizationPath",
    "TokenBoard",
    "TwoNorms",
    "WaterFilling",
]
