"""Explorables: what moves on the pages, in notebooks and on the static site.

Importing this room needs anywidget; ``import attnlab`` does not import it.
"""

from attnbook.widgets._base import Explorable
from attnbook.widgets.bias_joint import BadBasin, JointTraining, NaiveExact
from attnbook.widgets.bias_rates import (
    MomentumForms,
    OptimizerRace,
    PolyakCap,
    ThreeSets,
    TwoByTwo,
)
from attnbook.widgets.bias_setting import Antipodal, AssumptionOne, LemmaFour, LogisticTwin
from attnbook.widgets.computed import (
    Arithmetic,
    FinitePart,
    HowOften,
    RegularizationPath,
    TwoNorms,
)
from attnbook.widgets.encoder_kernels import (
    CancelledWidth,
    HessianMap,
    KernelBlocks,
    LazyReplay,
)
from attnbook.widgets.encoder_steps import GaugeOne, KinkMicroscope, SoftmaxSits, StepDial
from attnbook.widgets.encoder_tokens import (
    InitRace,
    ScaleRace,
    TailMeter,
    ThreeNumbers,
    TokenOrFeature,
)
from attnbook.widgets.mixtures import HeadRace, MarginRace, OneHeadTwin, PlantedTeacher
from attnbook.widgets.simple import FateOfStart, PickToken, WaterFilling
from attnbook.widgets.single_head import AttentionRow, SegmentExplorer, WeakConvexity
from attnbook.widgets.token_board import TokenBoard
from attnbook.widgets.training_heads import HeadBudget, LeaveOneOut, StepRules, TwoGroups

__all__ = [
    "Antipodal",
    "Arithmetic",
    "AssumptionOne",
    "AttentionRow",
    "BadBasin",
    "CancelledWidth",
    "Explorable",
    "FateOfStart",
    "FinitePart",
    "GaugeOne",
    "HeadBudget",
    "HeadRace",
    "HessianMap",
    "HowOften",
    "InitRace",
    "JointTraining",
    "KernelBlocks",
    "KinkMicroscope",
    "LazyReplay",
    "LeaveOneOut",
    "LemmaFour",
    "LogisticTwin",
    "MarginRace",
    "MomentumForms",
    "NaiveExact",
    "OneHeadTwin",
    "OptimizerRace",
    "PickToken",
    "PlantedTeacher",
    "PolyakCap",
    "RegularizationPath",
    "ScaleRace",
    "SegmentExplorer",
    "SoftmaxSits",
    "StepDial",
    "StepRules",
    "TailMeter",
    "ThreeNumbers",
    "ThreeSets",
    "TokenBoard",
    "TokenOrFeature",
    "TwoByTwo",
    "TwoGroups",
    "TwoNorms",
    "WaterFilling",
    "WeakConvexity",
]
