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
from attnlab.widgets.encoder_kernels import HessianMap, KernelBlocks, LazyReplay
from attnlab.widgets.encoder_tokens import InitRace, ScaleRace, ThreeNumbers, TokenOrFeature
from attnlab.widgets.simple import FateOfStart, PickToken, WaterFilling
from attnlab.widgets.single_head import AttentionRow, SegmentExplorer, WeakConvexity
from attnlab.widgets.token_board import TokenBoard

__all__ = [
    "Arithmetic",
    "AttentionRow",
    "Explorable",
    "FateOfStart",
    "FinitePart",
    "HessianMap",
    "HowOften",
    "InitRace",
    "KernelBlocks",
    "LazyReplay",
    "PickToken",
    "RegularizationPath",
    "ScaleRace",
    "SegmentExplorer",
    "ThreeNumbers",
    "TokenBoard",
    "TokenOrFeature",
    "TwoNorms",
    "WaterFilling",
    "WeakConvexity",
]
