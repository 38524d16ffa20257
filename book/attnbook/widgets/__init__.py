"""Explorables: what moves on the pages, in notebooks and on the static site.

Importing this room needs anywidget; ``import attnlab`` does not import it.
"""

from attnbook.widgets._base import Explorable
from attnbook.widgets.bias_images import DigitPatch, ImageRace, TrainedViT
from attnbook.widgets.bias_joint import BadBasin, JointTraining, NaiveExact
from attnbook.widgets.bias_rates import (
    MomentumForms,
    OptimizerRace,
    PolyakCap,
    ThreeSets,
    TwoByTwo,
)
from attnbook.widgets.bias_real import FourWorlds, RealRace, WordAngles
from attnbook.widgets.bias_setting import Antipodal, AssumptionOne, LemmaFour, LogisticTwin
from attnbook.widgets.computed import (
    FinitePart,
    HowOften,
    TwoNorms,
)
from attnbook.widgets.encoder_kernels import (
    CancelledWidth,
    HessianMap,
    KernelBlocks,
    LazyReplay,
)
from attnbook.widgets.encoder_real import RealTails, VitMaps
from attnbook.widgets.encoder_steps import GaugeOne, KinkMicroscope, SoftmaxSits, StepDial
from attnbook.widgets.encoder_tokens import (
    InitRace,
    ScaleRace,
    TailMeter,
    ThreeNumbers,
    TokenOrFeature,
)
from attnbook.widgets.mixtures import HeadRace, MarginRace, OneHeadTwin, PlantedTeacher
from attnbook.widgets.one_query import FirstStep, InsideCone, PickToken, StartMap
from attnbook.widgets.opening import FirstRun, LayerSteps, LongStart, OnePicture
from attnbook.widgets.prose import tell
from attnbook.widgets.real_heads import BestSteps, HeadsApart, MoreHeads
from attnbook.widgets.saturation import (
    Arithmetic,
    RankLab,
    StoredWeight,
    TrainingLab,
)
from attnbook.widgets.sequences import CausalMask, MaskForgotten
from attnbook.widgets.simple import PhasePlane, WaterFilling
from attnbook.widgets.single_head import AttentionRow, SegmentExplorer, WeakConvexity
from attnbook.widgets.svm_margin import EnoughWidth, ExposedToken, MarginStreet
from attnbook.widgets.svm_norms import TwoBalls
from attnbook.widgets.svm_real import RealHeads
from attnbook.widgets.token_board import GradientDissector, TokenBoard, TwoForms
from attnbook.widgets.training_heads import HeadBudget, LeaveOneOut, StepRules, TwoGroups

__all__ = [
    "Antipodal",
    "Arithmetic",
    "AssumptionOne",
    "AttentionRow",
    "BadBasin",
    "BestSteps",
    "CancelledWidth",
    "CausalMask",
    "DigitPatch",
    "EnoughWidth",
    "Explorable",
    "ExposedToken",
    "FinitePart",
    "FirstRun",
    "FirstStep",
    "FourWorlds",
    "GaugeOne",
    "GradientDissector",
    "HeadBudget",
    "HeadRace",
    "HeadsApart",
    "HessianMap",
    "HowOften",
    "ImageRace",
    "InitRace",
    "InsideCone",
    "JointTraining",
    "KernelBlocks",
    "KinkMicroscope",
    "LayerSteps",
    "LazyReplay",
    "LeaveOneOut",
    "LemmaFour",
    "LogisticTwin",
    "LongStart",
    "MarginRace",
    "MarginStreet",
    "MaskForgotten",
    "MomentumForms",
    "MoreHeads",
    "NaiveExact",
    "OneHeadTwin",
    "OnePicture",
    "OptimizerRace",
    "PhasePlane",
    "PickToken",
    "PlantedTeacher",
    "PolyakCap",
    "RankLab",
    "RealHeads",
    "RealRace",
    "RealTails",
    "ScaleRace",
    "SegmentExplorer",
    "SoftmaxSits",
    "StartMap",
    "StepDial",
    "StepRules",
    "StoredWeight",
    "TailMeter",
    "ThreeNumbers",
    "ThreeSets",
    "TokenBoard",
    "TokenOrFeature",
    "TrainedViT",
    "TrainingLab",
    "TwoBalls",
    "TwoByTwo",
    "TwoForms",
    "TwoGroups",
    "TwoNorms",
    "VitMaps",
    "WaterFilling",
    "WeakConvexity",
    "WordAngles",
    "tell",
]
