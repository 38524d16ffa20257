"""Explorables: what moves on the pages, in notebooks and on the static site.

Importing this room needs anywidget; ``import attnlab`` does not import it.
"""

from attnlab.widgets._base import Explorable
from attnlab.widgets.bias_joint import BadBasin, JointTraining, NaiveExact
from attnlab.widgets.bias_rates import (
    MomentumForms,
    OptimizerRace,
    PolyakCap,
    ThreeSets,
    TwoByTwo,
)
from attnlab.widgets.bias_setting import Antipodal, AssumptionOne, LemmaFour, LogisticTwin
from attnlab.widgets.computed import (
    Arithmetic,
    FinitePart,
    HowOften,
    RegularizationPath,
    TwoNorms,
)
from attnlab.widgets.encoder_kernels import (
    CancelledWidth,
    HessianMap,
    KernelBlocks,
    LazyReplay,
)
from attnlab.widgets.encoder_steps import GaugeOne, KinkMicroscope, SoftmaxSits, StepDial
from attnlab.widgets.encoder_tokens import (
    InitRace,
    ScaleRace,
    TailMeter,
    ThreeNumbers,
    TokenOrFeature,
)
from attnlab.widgets.mixtures import HeadRace, MarginRace, OneHeadTwin, PlantedTeacher
from attnlab.widgets.simple import FateOfStart, PickToken, WaterFilling
from attnlab.widgets.single_head import AttentionRow, SegmentExplorer, WeakConvexity
from attnlab.widgets.token_board import TokenBoard
from attnlab.widgets.training_heads import HeadBudget, LeaveOneOut, StepRules, TwoGroups

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
